//! Tables of commands: what is literal, what is safe, how risky, what "always" covers.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use polyloop_session::policy::Risk;
use polyloop_session::shown::visible;
use tempfile::TempDir;

use super::*;

mod attack;
mod corpus;
mod scripts;
mod weigh;

/// A working directory with files and traps, and a directory outside of it.
struct Ground {
    cwd: PathBuf,
    _dir: TempDir,
}

impl Ground {
    /// Without the system's temporary directories, because the ground is in one of them.
    fn scope(&self) -> Scope {
        Scope { temporary: Vec::new().into(), ..Scope::new(&self.cwd, &[]) }
    }

    fn judge(&self, script: &str) -> Judged {
        self.scope().judge(script)
    }
}

fn ground() -> Ground {
    let dir = TempDir::new().unwrap();
    let cwd = dir.path().canonicalize().unwrap().join("work");
    let out = cwd.with_file_name("out");
    for folder in [cwd.join("src/deep"), cwd.join("tests"), cwd.join(".ssh"), out.join("deep")] {
        fs::create_dir_all(folder).unwrap();
    }
    let files = [
        "a.txt",
        "b.txt",
        "README.md",
        "Cargo.toml",
        "src/main.rs",
        "src/lib.rs",
        "payload.sh",
        ".env",
        ".env.local",
        ".gitignore",
        ".ssh/config",
        "id_rsa",
        "server.key",
        "secrets.yml",
        "äöü.txt",
    ];
    for file in files {
        fs::write(cwd.join(file), "x\n").unwrap();
    }
    fs::write(out.join("victim"), "x\n").unwrap();
    symlink(out.join("victim"), cwd.join("leaf")).unwrap();
    symlink(&out, cwd.join("linked")).unwrap();
    symlink(out.join("deep"), cwd.join("deep")).unwrap();
    symlink(out.join("nowhere"), cwd.join("dangling")).unwrap();
    symlink(".env", cwd.join("notes")).unwrap();
    symlink("src/main.rs", cwd.join("inner")).unwrap();
    symlink("loop", cwd.join("loop")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, cwd.join("fifo"), rustix::fs::Mode::RWXU).unwrap();
    Ground { cwd, _dir: dir }
}

fn words(script: &str) -> Vec<String> {
    literal_argv(script).unwrap_or_else(|| panic!("{script:?} is not literal"))
}

#[test]
fn literal_commands_are_read_as_bash_reads_them() {
    let rows: &[(&str, &[&str])] = &[
        ("ls", &["ls"]),
        ("  ls\t-la  src\n", &["ls", "-la", "src"]),
        ("echo 'a > b; rm -rf /'", &["echo", "a > b; rm -rf /"]),
        ("echo \"a && b\" ''", &["echo", "a && b", ""]),
        ("echo a'b'\"c\"d", &["echo", "abcd"]),
        ("'l's -l", &["ls", "-l"]),
        ("git tag v1.0^ a~1 x#y", &["git", "tag", "v1.0^", "a~1", "x#y"]),
        ("dd if=a of=b", &["dd", "if=a", "of=b"]),
        ("echo '$(x) `y` \\ !'", &["echo", "$(x) `y` \\ !"]),
        ("grep -n \"it's\" README.md", &["grep", "-n", "it's", "README.md"]),
        ("cat äöü.txt", &["cat", "äöü.txt"]),
    ];
    for (script, want) in rows {
        assert_eq!(words(script), *want, "{script:?}");
    }
}

#[test]
fn everything_else_is_not_literal() {
    let scripts = [
        "",
        " ",
        "\n",
        "''",
        "ls\nrm -rf x",
        "ls; pwd",
        "ls;",
        "ls && pwd",
        "ls || pwd",
        "ls | wc",
        "ls &",
        "ls |& cat",
        "(ls)",
        "{ ls; }",
        "{ls,-la}",
        "ls >x",
        "ls 2>x",
        "cat <x",
        "cat <<E",
        "echo $x",
        "echo ${x}",
        "echo $(x)",
        "echo `x`",
        "echo \"$(x)\"",
        "echo \"`x`\"",
        "echo $'x'",
        "echo $\"x\"",
        "echo \"\\x\"",
        "echo \\x",
        "echo \"a!b\"",
        "! ls",
        "echo a!b",
        "echo *",
        "echo a?",
        "echo [a]",
        "echo a]",
        "echo {a,b}",
        "echo a{1..3}",
        "~/x",
        "ls ~",
        "ls ~root",
        "echo a=~",
        "echo a=b:~",
        "x=1 ls",
        "x=1",
        "x+=1 ls",
        "'x'=1 ls",
        "# ls",
        "ls # x",
        "ls #",
        "if true",
        "time ls",
        "coproc ls",
        "while",
        "case x",
        "function f",
        "ls \r",
        "ls\0",
        "ls \x1b[2J",
        "echo 'a\nb'",
        "echo \"a\nb\"",
        "echo 'a",
        "echo \"a",
        "ls\u{a0}-la",
        "ls \u{202e}x",
        "echo 'a\u{200b}b'",
        "ls\u{2028}rm",
        "ls\u{3000}-la",
        "echo “x”",
        "ls\u{feff}",
        "echo a\\\nb",
        "cat$IFS/etc/passwd",
        "cat <(ls)",
    ];
    for script in scripts {
        assert_eq!(literal_argv(script), None, "{script:?}");
    }
    assert!(literal_argv(&"a".repeat(SCRIPT_BYTES_MAX)).is_some());
    assert_eq!(literal_argv(&"a".repeat(SCRIPT_BYTES_MAX + 1)), None);
}

#[test]
fn harmless_reads_are_safe() {
    let ground = ground();
    let scripts = [
        "pwd",
        "pwd -P",
        "true",
        "false",
        "echo",
        "echo hello",
        "echo -n hi",
        "echo \"-delete\"",
        "echo 'x | sh'",
        "ls",
        "ls -la",
        "ls -lahR src",
        "ls -la src/ tests/",
        "ls --all --color",
        "ls nosuch",
        "ls src/nosuch/deeper",
        "ls .",
        "ls ./src/../src",
        "cat a.txt b.txt",
        "cat -n src/main.rs",
        "cat inner",
        "cat -- a.txt",
        "cat -",
        "cat .gitignore",
        "cat .eslintrc.json .env.example",
        "ls -la .git .vscode",
        "cat 'äöü.txt'",
        "head -n 50 a.txt",
        "head -n50 a.txt",
        "head -5 a.txt",
        "head -c 200 a.txt",
        "head -qn 5 a.txt",
        "head --lines=5 a.txt",
        "tail -n +20 a.txt",
        "tail -5 a.txt",
        "wc -l a.txt b.txt",
        "wc --lines a.txt",
        "date",
        "date -u",
        "date '+%Y-%m-%d %H:%M'",
        "whoami",
        "uname -a",
        "id -u",
        "nproc",
    ];
    for script in scripts {
        let judged = judge(script, &ground.cwd);
        assert!(judged.safe, "{script:?}: {}", judged.reason);
        assert_eq!(judged.risk, Risk::Low, "{script:?}");
    }
}

#[test]
fn whatever_could_do_more_is_not_safe() {
    let ground = ground();
    let scripts = [
        "ls\nrm -rf x",
        "echo $(x)",
        "cat ../out/victim",
        "cat ..",
        "ls ..",
        "cat src/../../out/x",
        "cat /etc/passwd",
        "cat leaf",
        "ls linked",
        "cat linked/victim",
        "cat linked/nosuch",
        "cat dangling",
        "cat deep/../victim",
        "cat loop",
        "cat a.txt/x",
        "cat fifo",
        "cat notes",
        "cat .env",
        "cat .env.local",
        "cat src/../.env",
        "cat ./.env",
        "cat .ENV",
        "ls .ssh",
        "cat .ssh/config",
        "cat id_rsa",
        "cat server.key",
        "cat secrets.yml",
        "cat .git/config",
        "cat ''",
        "head -n a.txt",
        "head -n",
        "head -n x a.txt",
        "head --lines=x a.txt",
        "tail -f a.txt",
        "tail -F a.txt",
        "tail -5f a.txt",
        "tail --follow a.txt",
        "tail --follow=name a.txt",
        "tail --foll a.txt",
        "tail -qf a.txt",
        "tail --pid=1 a.txt",
        "wc --files0-from=a.txt",
        "ls -L src",
        "ls -H linked",
        "ls --dereference",
        "date 010100002030",
        "date -s now",
        "date -f a.txt",
        "date --set=now",
        "pwd x",
        "uname x",
        "./ls",
        "/bin/ls",
        "src/../ls",
        "bin/cat a.txt",
        "builtin echo x",
        "touch x",
        "rm x",
        "git status",
        "sudo ls",
        "LS",
        "ls\u{a0}-la",
        "l\u{455}",
        "echo 'a\u{202e}b'",
        "echo 'a\u{200b}b'",
        "cat 'a\tb' ../x",
    ];
    for script in scripts {
        let judged = judge(script, &ground.cwd);
        assert!(!judged.safe, "{script:?}: {}", judged.reason);
        assert!(!judged.reason.is_empty() && !judged.keys.is_empty(), "{script:?}");
    }
}

#[test]
fn what_is_private_and_where_the_system_lives_is_never_read_unasked() {
    let ground = ground();
    let private = [ground.cwd.join("src")];
    let scope = Scope::new(&ground.cwd, &private);
    assert!(scope.judge("cat a.txt").safe);
    assert!(!scope.judge("cat src/main.rs").safe);
    assert!(!scope.judge("cat inner").safe);
    assert!(!scope.judge("ls src").safe);

    let root = Path::new("/");
    for script in ["ls", "cat etc/passwd", "cat proc/self/environ", "ls tmp"] {
        assert!(!judge(script, root).safe, "{script:?}");
    }
    assert!(!judge("ls", Path::new("/usr")).safe);
    assert!(!judge("cat self/environ", Path::new("/proc")).safe);
    assert!(!judge("cat a.txt", Path::new("/nosuch/directory")).safe);
}

#[test]
fn a_working_directory_reached_by_a_link_works() {
    let ground = ground();
    let link = ground.cwd.with_file_name("link");
    symlink(&ground.cwd, &link).unwrap();
    assert!(judge("cat src/main.rs", &link).safe);
    assert!(!judge("cat leaf", &link).safe);
}

#[test]
fn reasons_name_what_was_not_understood() {
    let ground = ground();
    let out = ground.cwd.with_file_name("out").join("victim");
    let rows = [
        ("ls | frobnicate", "`frobnicate`"),
        ("ls\ntouch x", "`touch`"),
        ("ls &", "background"),
        ("ls >x", "writes to the file `x`"),
        ("rm x", "deletes files"),
        ("cat x; ls )", "not understood"),
        ("frobnicate x", "`frobnicate`"),
        ("ls -L", "`-L`"),
        ("cat .env", "`.env`"),
        ("cat ../x", "`../x`"),
        ("cat leaf", out.to_str().unwrap()),
        ("echo 'a\u{202e}b'", "\\u{202e}"),
        ("echo \u{7}", "\\u{7}"),
        ("curl -s x | head", "`curl`"),
        ("sudo ls", "`sudo`"),
        ("cat x | sh", "pipes into `sh`"),
        ("rm -rf /", "deletes outside"),
    ];
    for (script, part) in rows {
        let reason = judge(script, &ground.cwd).reason;
        assert!(reason.contains(part), "{script:?}: {reason}");
        assert_eq!(visible(&reason), *reason, "{script:?}");
    }
}

#[test]
fn the_command_is_the_words_or_the_script() {
    let cwd = Path::new("/nosuch");
    let command = |script| judge(script, cwd).command.iter().map(ToString::to_string).collect();
    let literal: Vec<String> = command("git  'status'");
    assert_eq!(literal, ["git", "status"]);
    let script: Vec<String> = command("git status | cat\u{202e}");
    assert_eq!(script, ["bash", "-lc", "git status | cat\u{202e}"]);
}

#[test]
fn argv_and_script_of_the_same_words_are_judged_alike() {
    let ground = ground();
    for script in ["ls -la", "rm 'a b'", "git push", "touch a", "cat ../x"] {
        let by_words = judge_argv(&words(script), &ground.cwd);
        assert_eq!(by_words, judge(script, &ground.cwd), "{script:?}");
    }
    let hidden = ["echo".to_owned(), "a\nb\u{202e}".to_owned()];
    assert!(!judge_argv(&hidden, &ground.cwd).safe);
    assert!(!judge_argv(&[], &ground.cwd).safe);
    assert!(!judge_argv(&["".to_owned()], &ground.cwd).safe);
}

/// What looks like a harmless program is another one.
#[test]
fn look_alikes_of_safe_programs_are_never_safe() {
    let ground = ground();
    fs::write(ground.cwd.join("x"), "x").unwrap();
    assert!(judge("cat x", &ground.cwd).safe);
    let alike = [
        "c\u{430}t x",
        "\u{441}\u{430}t x",
        "\u{ff43}at x",
        "\u{1d41c}at x",
        "l\u{455}",
        "\u{4cf}s",
    ];
    for script in alike {
        assert!(!judge(script, &ground.cwd).safe, "{script:?}");
        assert!(!judge(&format!("cat x | {script}"), &ground.cwd).safe, "{script:?}");
    }
}
