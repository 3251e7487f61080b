//! Whole scripts: what bash would make of them, and whether all of it only reads.

use std::fs;
use std::os::unix::fs::symlink;

use super::super::*;
use super::ground;

#[test]
fn scripts_that_only_read_are_safe() {
    let ground = ground();
    let scripts = [
        "ls; pwd",
        "ls;",
        "cd src && ls && cd - && ls",
        "for d in src tests; do cd $d; ls; cd ..; done",
        "for d in src tests; do cd $d && ls; cd -; done",
        "find src -name '*.rs' | while read -r f; do wc -l < \"$f\"; done",
        "ls src/*.rs | xargs head -n 2",
        "ls -d src/*.rs | xargs -I{} echo x/{}",
        "printf \"files: $x\\n\"",
        "ls\npwd\n",
        "ls && pwd || echo no",
        "! ls",
        "time -p ls",
        "ls | wc -l",
        "ls |& cat",
        "( ls; pwd ) | wc -l",
        "{ ls; pwd; }",
        "cd src && ls",
        "cd src && cat ../a.txt",
        "cd src; cat main.rs; cd ..; ls",
        "(cd src && cat main.rs); cat a.txt",
        "cd nosuch || ls",
        "cd src || exit 1; cat ../a.txt",
        "cd src && ls; cat ../a.txt",
        "if [ -f a.txt ]; then cat a.txt; elif ls; then pwd; else echo no; fi",
        "for f in a.txt b.txt; do head -1 \"$f\"; done",
        "for f in src/*.rs; do [ -s \"$f\" ] && wc -l \"$f\"; done",
        "test a.txt -nt b.txt; [ ! -d src ] || [ -n \"$(ls)\" ]",
        "for f in src/*.rs; do wc -l $f; done",
        "for i in {1..3}; do echo $i; done",
        "for i in $(seq 3); do echo \"$i\"; done",
        "while read -r line; do echo \"$line\"; done < a.txt",
        "while IFS= read -r line; do echo \"$line\"; done <a.txt",
        "[[ -d src && ! -f x ]] && ls src",
        "x=src; ls $x; ls \"$x/deep\"",
        "x='a.txt b.txt'; cat $x",
        "x=$(date); echo \"$x\"",
        "echo \"$(wc -l < a.txt) lines\" `pwd` $((2 * (3 + 4)))",
        "echo ${HOME} ${x:-none} ${#x}",
        "basename \"$(pwd)\"; ls \"$PWD/src\"",
        "diff <(sort a.txt) <(sort b.txt)",
        "cat < a.txt",
        "wc -w <<< 'a b'",
        "cat <<'E'\n$(touch x)\nE",
        "cat <<-E | grep x\n\tplain\n\tE",
        "cat <<A <<B\na\nA\nb\nB\nls",
        "ls >/dev/null 2>&1",
        "ls &>/dev/null",
        "ls 2>/dev/null >&2",
        "echo a >/dev/stderr",
        "ls # a comment; touch x",
        "# a comment\nls",
        "ls \\\n  -l \\\n  src",
        "l\\s; 'l's; \"ls\"; $'ls'; $'\\x6c\\163'",
        "cat src/{main,lib}.rs; ls {src,tests}",
        "cat *.txt",
        "ls src/*/ src/[ml]*.rs ?.txt",
        "grep -rn TODO . | head; grep 'a|b' README.md | sort -u | uniq -c",
        "LC_ALL=C sort a.txt",
        "set -euo pipefail\nls",
        "bash -c 'ls | wc -l'",
        "sh -c 'ls; cat a.txt'",
        "bash -lc 'cd src && ls'",
        "timeout 5 ls; nice -n 5 ls; env LC_ALL=C ls; command ls",
        "find src -name '*.rs' -exec head -1 {} +",
        "find src -name '*.rs' | xargs grep -n fn",
        "find src -type f -print0 | xargs -0 -n1 wc -l",
        "rg -l fn src | sort | head -3 | xargs wc -l",
        "echo a b | xargs -n1 echo",
        "wc -l $(find src -name '*.rs')",
        "for f in $(find src -name '*.rs'); do head -1 $f; done",
        "find src -name '*.rs' | while read -r f; do echo \"$f\"; head -1 \"$f\"; done",
        "find src -type f -print0 | while IFS= read -r -d '' f; do wc -l \"$f\"; done",
        "ls nosuch; [ $? -eq 0 ] && echo yes; ps -p $$",
        "[ -z \"$CI\" ] && echo no",
        "awk '{print $1 \" | \" $2}' a.txt",
        "sed 's/^[ \\t]*//; s/[[:space:]]*$//' a.txt",
        "exit 0",
        "echo '⚡ → ✓'",
    ];
    for script in scripts {
        let judged = ground.judge(script);
        assert!(judged.safe, "{script:?}: {}", judged.reason);
        assert_eq!(judged.risk, Risk::Low, "{script:?}");
    }
}

#[test]
fn scripts_that_may_do_more_are_not() {
    let ground = ground();
    let scripts = [
        "ls; touch x",
        "ls && touch x",
        "ls || touch x",
        "ls | tee x",
        "ls & pwd",
        "ls &",
        "(touch x)",
        "{ touch x; }",
        "if touch x; then ls; fi",
        "if ls; then touch x; fi",
        "if ls; then ls; else touch x; fi",
        "while touch x; do ls; done",
        "for x in a; do touch $x; done",
        "for x in /etc/passwd; do cat $x; done",
        "for x in a.txt ../out/victim; do cat \"$x\"; done",
        "for PATH in .; do ls; done",
        "for f in *; do cat $f; done",
        "until ls; do touch x; done",
        "until ls; do ls; done",
        "while true; do ls; done",
        "while [ ! -e x ]; do sleep 1; done",
        "while ! read -r x; do ls; done",
        "sleep 1000",
        "sleep 5 6",
        "sleep inf",
        "sleep -1 nan",
        "cd .. && ls",
        "cd src/.. && cd .. && ls",
        "cd; ls",
        "cd -",
        "cd nosuch; cd -; ls",
        "[[ -n x) ]]",
        "[[ ( -n x ]]",
        "(cd src); cd -",
        "for d in src tests; do cd -; cd $d; done",
        "ls src | xargs cat",
        "ls -l src/*.rs | xargs cat",
        "ls -- -x | xargs sort",
        "ls *.txt leaf | xargs cat",
        "ls src | xargs -I{} cat src/{}",
        "ls src | xargs -I{} sort -o{} a.txt",
        "find . -name leaf | while read -r f; do cat < \"$f\"; done",
        "cd ~",
        "cd linked && ls",
        "cd src; cat ../../out/victim",
        "cd src || cd deep; cat ../../out/victim",
        "cd nosuch; cat ../../out/victim",
        "cd nosuch; cat ../out/victim",
        "cd nosuch && ls; cat ../a.txt",
        "cd src || touch x",
        "! cd src || cat ../a.txt; cat ../a.txt",
        "while read -r x; do cd src; done",
        "x=a.txt; if ls; then x=/etc/passwd; fi; cat $x",
        "x=a.txt; { x=/etc/passwd; }; cat $x",
        "x='a.txt /etc/passwd'; cat $x",
        "x=$(ls); cat $x",
        "read x < a.txt; cat $x",
        "echo a | read x; cat $x",
        "x=ls; $x",
        "$(echo ls)",
        "`echo ls`",
        "PATH=.; ls",
        "IFS=x; ls",
        "x+=1; ls",
        "x=(a b); ls",
        "LS_COLORS=x ls",
        "LC_ALL=../x ls",
        "IFS=x ls",
        "echo $(touch x)",
        "echo \"$(touch x)\"",
        "echo `touch x`",
        "echo \"`touch x`\"",
        "cat <(touch x)",
        "cat > >(tee x)",
        "cat >(touch x)",
        "echo ${x:=y}",
        "echo ${x@P}",
        "echo ${!x}",
        "echo ${x:$(touch y)}",
        "echo ${x[$(touch y)]}",
        "echo $((x))",
        "echo $((a[$(touch x)]))",
        "echo $[1]",
        "echo $\"x\"",
        "echo $OPENAI_API_KEY",
        "((x=1))",
        "let x=1",
        "[[ -v 'a[$(touch x)]' ]]",
        "[[ x -eq 'a[$(touch x)]' ]]",
        "test -v 'a[$(touch x)]'",
        "test -f /etc/passwd",
        "test -f \"$(echo /etc/passwd)\"",
        "[ ! -e ../secret ]",
        "[ a.txt -nt /etc/passwd ]",
        "[[ -f /etc/passwd ]]",
        "x=$(echo -v); [ \"$x\" 'a[$(touch y)]' ]",
        "[ -f a.txt",
        "ls >x",
        "ls >>x",
        "ls >|x",
        "ls &>x",
        "ls >&x",
        "ls 2>x",
        "ls <>x",
        "ls {x}>y",
        "ls >$(echo x)",
        "ls > /dev/null2",
        "cat <../out/victim",
        "cat </etc/passwd",
        "cat <.env",
        "cat <fifo",
        "cat <<E\n$(touch x)\nE",
        "cat <<E\n`touch x`\nE",
        "cat <<E",
        "cat <<E\nx",
        "cat <<'E' | sh\ntouch x\nE",
        "bash <<< 'touch x'",
        "cat <<E \"a\nb\"\nE\ntouch x",
        "f() { ls; }; f",
        "function f { ls; }",
        "coproc ls",
        "select x in a; do ls; done",
        "case x in x) touch y;; esac",
        "exec ls",
        "eval ls",
        "source a.txt",
        ". a.txt",
        "trap 'touch x' EXIT",
        "alias ls=touch; ls x",
        "export X=1",
        "declare -x X=1",
        "set -a",
        "set -- x",
        "shopt -s extglob",
        "enable -f x y",
        "hash -p ./x ls",
        "printf -v x y",
        "printf -vx y",
        "mapfile -C touch -c 1 x < a.txt",
        "read -p x",
        "history -w x",
        "ls {-la,>x}",
        "ls ~",
        "ls a=~",
        "cat .*",
        "cat l*",
        "cat linked/*",
        "cat ../out/*",
        "cat /etc/*",
        "echo ../*",
        "sort -{u,ox} a.txt",
        "find . -{delete,print}",
        "bash -c 'touch x'",
        "bash -c ls x",
        "bash -c \"$(cat a.txt)\"",
        "bash a.txt",
        "bash -lc 'touch x'",
        "bash -ic ls",
        "sh -c 'ls &>/dev/null'",
        "sh -c 'ls {a,b}'",
        "find . -exec touch {} +",
        "find . -exec sh -c 'cat {}' ;",
        "find . -name '*.rs' -exec cat {} +x",
        "find . -exec cat {} +",
        "find . -execdir ls ;",
        "find src | xargs rm",
        "find src | xargs -I ls ls",
        "find src | xargs -I{} sh -c 'cat {}'",
        "find src | xargs --replace touch ls",
        "find src | xargs sh -c ls",
        "find . | xargs cat",
        "find src | sed 's/src/../' | xargs cat",
        "find src 2>&1 | xargs cat",
        "find src -printf '/etc/passwd\\n' | xargs cat",
        "find src | head -v | xargs cat",
        "find src | tail -c 9 | xargs cat",
        "find src | grep -o '/.*' | xargs cat",
        "rg --files --path-separator ' ' src | xargs cat",
        "rg -l --stats x src | xargs cat",
        "grep -rlc x src | xargs cat",
        "echo /etc/passwd | xargs cat",
        "ls | xargs cat",
        "cat a.txt | xargs head",
        "wc -l $(cat a.txt)",
        "wc -l x$(find src)",
        "wc -l \"$(find src)\"",
        "wc -l $(find src; echo /etc/passwd)",
        "find src | while read -r f; do cat \"../out/$f\"; done",
        "find src | while read -r f; do cd deep; cat \"$f\"; done",
        "find src | (cd src && xargs cat)",
        "find src | (cd src && while read -r f; do cat $f; done)",
        "find . | while read -r f; do cat \"$f\"; done",
        "find src | while read -r f g; do cat \"$g\"; done",
        "find src | while read -r f; do echo; done; cat $f",
        "echo $AWS_SECRET_ACCESS_KEY $GITHUB_TOKEN",
        "cat \"$(cat a.txt)\"",
        "ls\r",
        "ls \u{a0}",
        "ls\0",
        "ls ))",
        "ls (",
        "if ls",
        "fi",
        "ls;;",
        "&& ls",
        "ls | | wc",
        "a\\\nb",
    ];
    for script in scripts {
        let judged = ground.judge(script);
        assert!(!judged.safe, "{script:?}: {}", judged.reason);
        assert!(!judged.reason.is_empty() && !judged.keys.is_empty(), "{script:?}");
        assert!(!judged.reason.contains('\n'), "{script:?}: {}", judged.reason);
    }
}

/// Names that programs take apart, or for options, and links that lead out.
#[test]
fn what_a_directory_holds_counts() {
    let ground = ground();
    let dir = ground.cwd.join("names");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("plain"), "").unwrap();
    let scripts = [
        "cd names && sort *",
        "find names -type f | xargs cat",
        "grep -R x names",
        "find names -exec cat {} +",
        "find -L names",
        "rg -L x names",
        "diff -r names src",
    ];
    for script in scripts {
        let judged = ground.judge(script);
        assert!(judged.safe, "{script:?}: {}", judged.reason);
    }
    let unsafe_with = |scripts: &[&str]| {
        for script in scripts {
            assert!(!ground.judge(script).safe, "{script:?}");
        }
    };
    fs::write(dir.join("-oout"), "").unwrap();
    unsafe_with(&scripts[..2]);
    fs::remove_file(dir.join("-oout")).unwrap();
    fs::write(dir.join("a b"), "").unwrap();
    unsafe_with(&scripts[1..2]);
    assert!(ground.judge(scripts[0]).safe);
    fs::remove_file(dir.join("a b")).unwrap();
    fs::write(dir.join(".env"), "").unwrap();
    unsafe_with(&["find names | xargs cat", "find names -exec cat {} ;"]);
    assert!(ground.judge("find names -name plain -exec cat {} +").safe);
    assert!(!ground.judge("find names -exec cat {} + -name plain").safe);
    fs::remove_file(dir.join(".env")).unwrap();
    fs::create_dir(dir.join("deep .env")).unwrap();
    fs::write(dir.join("deep .env/x.rs"), "").unwrap();
    unsafe_with(&["find names -name '*.rs' | xargs cat", "find 'names/deep .env' | xargs cat"]);
    assert!(ground.judge("find names -name '*.md' | xargs cat").safe);
    fs::remove_dir_all(dir.join("deep .env")).unwrap();
    fs::create_dir(dir.join(".ssh")).unwrap();
    fs::write(dir.join(".ssh/config"), "").unwrap();
    unsafe_with(&["find names -name config | xargs cat", "find names -type f | xargs cat"]);
    assert!(ground.judge("find names -name plain | xargs cat").safe);
    fs::remove_dir_all(dir.join(".ssh")).unwrap();
    symlink("/etc/passwd", dir.join("way")).unwrap();
    unsafe_with(&scripts[2..]);
    unsafe_with(&["find names | xargs cat", "find names -name 'w*' | xargs cat"]);
    unsafe_with(&["find names -name plain -o -name way | xargs cat"]);
    unsafe_with(&["find names -L -type f | xargs cat", "find names ! -type f | xargs cat"]);
    let passes = [
        "find names -type f | xargs cat",
        "find names -name 'p*' -exec cat {} +",
        "find names \\( -name plain -o -name nosuch \\) -print0 | xargs -0 cat",
        "find names -name nosuch -prune -o -name plain -print | xargs cat",
        "rg -l x names | xargs cat",
    ];
    for script in passes {
        let judged = ground.judge(script);
        assert!(judged.safe, "{script:?}: {}", judged.reason);
    }
}

#[test]
fn the_users_own_programs_count_but_not_those_of_the_session() {
    let ground = ground();
    let own = ground.cwd.with_file_name("own");
    let inside = ground.cwd.join("bin");
    for dir in [&own, &inside] {
        fs::create_dir(dir).unwrap();
        fs::write(dir.join("node"), "").unwrap();
    }
    let path = std::env::join_paths([inside.as_path(), own.as_path(), "relative".as_ref()]);
    let scope = ground.scope().with_path(&path.unwrap());
    let found = scope.search_path().into_string().unwrap();
    assert_eq!(found, format!("{SAFE_PATH}:{}", own.display()));
    // The one that answers would not be the one the user means, or might be a script.
    assert!(!scope.judge("node --version").safe);
    assert!(scope.judge("ls").safe);
    assert!(ground.scope().judge("bash --version").safe);
    assert!(!ground.scope().judge("node --version x").safe);
}
