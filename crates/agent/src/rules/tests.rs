// Git is started to make a repository.
#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};

use polyloop_session::policy::Says;

use super::{Rules, of_all};
use crate::shell::Scope;

struct Ground {
    _dir: tempfile::TempDir,
    cwd: PathBuf,
}

fn ground() -> Ground {
    let dir = tempfile::tempdir().unwrap();
    let cwd = dir.path().canonicalize().unwrap().join("work");
    std::fs::create_dir_all(cwd.join("secret/deep")).unwrap();
    std::fs::write(cwd.join("secret/key"), "k").unwrap();
    std::fs::write(cwd.join("a.txt"), "a").unwrap();
    std::os::unix::fs::symlink("secret", cwd.join("link")).unwrap();
    Ground { _dir: dir, cwd }
}

fn rules(text: &str) -> Rules {
    Rules::parse(text).unwrap()
}

fn says(rules: &Rules, script: &str, cwd: &Path) -> Option<Says> {
    rules.of_command(script, &Scope::new(cwd, &[]), cwd, cwd).map(|rule| rule.says)
}

#[test]
fn a_denied_command_is_found_wherever_it_stands() {
    let ground = ground();
    let rules = rules("deny command git push\nask command rm\n");
    for script in [
        "git push",
        "git push origin main",
        "git  -C sub push",
        "git -c a.b=c --no-pager push",
        "sudo git push",
        "env A=b git push",
        "/usr/bin/git push",
        "cd sub && git push",
        "ls | xargs git push",
        "bash -c 'git push'",
        "bash -lc \"cd x; git push\"",
        "(git push)",
        "echo $(git push)",
        "echo `git push`",
        "if true; then git push; fi",
        "'git' \"push\"",
        "g\\it push",
        "git \\\n push",
        "timeout 5 git push",
    ] {
        assert_eq!(says(&rules, script, &ground.cwd), Some(Says::Deny), "{script}");
    }
    for script in ["git commit -m push", "git log", "echo pushed", "git status; ls push"] {
        assert_eq!(says(&rules, script, &ground.cwd), None, "{script}");
    }
    assert_eq!(says(&rules, "rm -r x", &ground.cwd), Some(Says::Ask));
    assert_eq!(says(&rules, "rm x; git push", &ground.cwd), Some(Says::Deny));
}

#[test]
fn what_cannot_be_seen_is_asked_about_where_something_is_denied() {
    let ground = ground();
    let denies = rules("deny command git push");
    for script in
        ["$x push", "g=git; $g push", "eval \"$x\"", ". ./x", "source x", "$(echo git) push"]
    {
        assert_eq!(says(&denies, script, &ground.cwd), Some(Says::Ask), "{script}");
    }
    assert_eq!(says(&rules("ask command rm"), "$x push", &ground.cwd), Some(Says::Ask));
    assert_eq!(says(&rules("ask tool bash"), "$x push", &ground.cwd), None);
}

#[test]
fn an_allowed_command_runs_alone_or_beside_harmless_ones() {
    let ground = ground();
    let rules = rules("allow command cargo test\nallow command npm run lint");
    for script in [
        "cargo test",
        "cargo test --workspace",
        "cargo test 2>&1 | tail -n 20",
        "ls && cargo test && npm run lint -- --fix",
    ] {
        assert_eq!(says(&rules, script, &ground.cwd), Some(Says::Allow), "{script}");
    }
    for script in [
        "cargo build",
        "cargo  +nightly test",
        "cargo test > out.txt",
        "cargo test; rm -rf x",
        "cargo test $(rm x)",
        "cargo test $x",
        "A=b cargo test",
        "./cargo test",
        "cargo test &",
        "sudo cargo test",
        "cargo 'test ; x'",
        "bash -c 'cargo test; rm x'",
    ] {
        assert_eq!(says(&rules, script, &ground.cwd), None, "{script}");
    }
}

#[test]
fn paths_are_known_by_where_they_lead() {
    let ground = ground();
    let rules = rules("deny path secret\nask path **/*.pem\nallow path docs/**\ndeny path /srv/x");
    let of = |path: &str| rules.of_path(&ground.cwd.join(path), &ground.cwd).map(|r| r.says);
    assert_eq!(of("secret"), Some(Says::Deny));
    assert_eq!(of("secret/deep/x"), Some(Says::Deny));
    assert_eq!(of("secrets"), None);
    assert_eq!(of("sub/secret"), None);
    assert_eq!(of("a.pem"), Some(Says::Ask));
    assert_eq!(of("a/b/c.pem"), Some(Says::Ask));
    assert_eq!(of("docs/a/b.md"), Some(Says::Allow));
    assert_eq!(of("docs/a.pem"), Some(Says::Ask));
    assert_eq!(of("/srv/x/y"), Some(Says::Deny));
    for script in
        ["cat secret/key", "cat link/key", "head -c5 ./secret/../secret/key", "x --f=secret/key"]
    {
        assert_eq!(says(&rules, script, &ground.cwd), Some(Says::Deny), "{script}");
    }
    assert_eq!(says(&rules, "cat a.txt", &ground.cwd), None);
    assert_eq!(rules.denied_paths(&ground.cwd), [ground.cwd.join("secret"), "/srv/x".into()]);
}

#[test]
fn a_denied_command_is_not_hidden_from_an_allowing_rule() {
    let ground = ground();
    let rules = rules("allow command git\ndeny command git push");
    for script in [
        "git status # don't\ngit push # '",
        "cat <<EOF\nit's\nEOF\ngit push\necho 'x'",
        "x=push; git $x origin",
        "git {push,origin}",
        "git $'pu\\x73h'",
        "git $x",
    ] {
        let says = says(&rules, script, &ground.cwd);
        assert!(matches!(says, Some(Says::Deny | Says::Ask)), "{script}: {says:?}");
    }
    assert_eq!(says(&rules, "git commit -m x", &ground.cwd), Some(Says::Allow));
    let asks = super::Rules::parse("ask command rm").unwrap();
    let script = "echo a # don't\nrm -rf src # '";
    assert_eq!(says(&asks, script, &ground.cwd), Some(Says::Ask));
}

#[test]
fn paths_are_those_of_the_session_wherever_a_command_runs() {
    let ground = ground();
    let rules = rules("deny path secret");
    let inner = ground.cwd.join("secret");
    let of = |script: &str, at: &Path| {
        let scope = Scope::new(at, &[]);
        rules.of_command(script, &scope, at, &ground.cwd).map(|rule| rule.says)
    };
    assert_eq!(of("cat key", &inner), Some(Says::Deny));
    assert_eq!(of("cat ../key", &inner.join("deep")), Some(Says::Deny));
    assert_eq!(of("cat a.txt", &ground.cwd), None);
}

#[test]
fn bad_lines_are_all_named() {
    let text = "# ok\n\nallow tool bash\npermit tool bash\nallow\nallow tool\nallow tool bsh\n\
                deny command git $x\ndeny path ../x\nask path a[\nask word x\nask path ~/x";
    let bad = Rules::parse(text).unwrap_err();
    let lines: Vec<usize> = bad.iter().map(|bad| bad.line).collect();
    assert_eq!(lines, [4, 5, 6, 7, 8, 9, 10, 11, 12]);
    assert!(bad[3].to_string().contains("line 7: `bsh` is no tool; the tools are bash, "));
}

#[test]
fn several_things_are_allowed_only_if_each_is() {
    let rules = rules("allow path docs\nask path a.txt\ndeny path secret");
    let cwd = Path::new("/w");
    let of = |paths: &[&str]| {
        of_all(paths.iter().map(|path| rules.of_path(&cwd.join(path), cwd))).map(|rule| rule.says)
    };
    assert_eq!(of(&["docs/a", "docs/b"]), Some(Says::Allow));
    assert_eq!(of(&["docs/a", "src/b"]), None);
    assert_eq!(of(&["docs/a", "a.txt"]), Some(Says::Ask));
    assert_eq!(of(&["src/a", "a.txt", "secret/x"]), Some(Says::Deny));
    assert_eq!(of(&[]), None);
}

#[test]
fn each_rule_is_told_in_words() {
    let text = "allow command cargo test\nask tool web_fetcher\ndeny path secret/**";
    let Ok(rules) = Rules::parse(&text.replace("web_fetcher", "grep")) else { panic!() };
    let told: Vec<String> = rules.describe().collect();
    assert_eq!(
        told,
        [
            "a command that begins with `cargo test` runs without asking, alone or beside harmless \
             ones",
            "every call of grep is always asked about",
            "a call that touches secret below the working directory, or anything in it, never runs",
        ]
    );
}

#[test]
fn what_a_pattern_closes_is_not_read_unasked_however_it_is_named() {
    let ground = ground();
    std::fs::create_dir_all(ground.cwd.join("src/deep")).unwrap();
    std::fs::create_dir_all(ground.cwd.join("plain")).unwrap();
    std::fs::write(ground.cwd.join("src/deep/host.draft"), "p").unwrap();
    std::fs::write(ground.cwd.join("plain/a.rs"), "a").unwrap();
    std::os::unix::fs::symlink("deep/host.draft", ground.cwd.join("src/innocent")).unwrap();
    let git = |words: &[&str]| {
        let status = std::process::Command::new("git")
            .args(["-c", "user.name=n", "-c", "user.email=e", "-C"])
            .arg(&ground.cwd)
            .args(words)
            .output()
            .unwrap();
        assert!(status.status.success(), "{words:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "x"]);
    let rules = std::sync::Arc::new(rules("ask path **/*.draft"));
    let open = Scope::new(&ground.cwd, &[]);
    let closed = rules.close(open.clone(), &ground.cwd);
    for script in [
        "cat src/deep/*",
        "cat src/deep/host.draf?",
        "cat src/innocent",
        "head src/*/*.draft",
        "grep -r p src",
        "grep -r p .",
        "git show HEAD:src/deep/host.draft",
        "git grep p",
        "git diff",
        "git log -p",
        "git log -p --stat",
        "git show HEAD",
        "git blame src/innocent",
        "wc -l src/deep/*",
    ] {
        assert!(open.judge(script).safe, "safe without the rule: {script}");
        assert!(!closed.judge(script).safe, "{script}");
    }
    for script in ["cat plain/*", "grep -r a plain", "git status", "git log --oneline", "ls src"] {
        assert!(closed.judge(script).safe, "{script}: {}", closed.judge(script).reason);
    }
}

#[test]
fn leave_for_a_command_is_none_for_protected_paths() {
    let ground = ground();
    let rules = rules("allow command cp\nallow command tee");
    assert_eq!(says(&rules, "cp a.txt b.txt", &ground.cwd), Some(Says::Allow));
    for script in [
        "cp a.txt .git/hooks/pre-commit",
        "cp a.txt .env",
        "cp a.txt sub/.git/config",
        "cp a.txt './.gi't/config",
    ] {
        assert_eq!(says(&rules, script, &ground.cwd), None, "{script}");
    }
}

#[test]
fn a_long_script_is_searched_too_and_costs_little() {
    let ground = ground();
    let lines: Vec<String> = (0..super::RULES_MAX / 2)
        .flat_map(|at| [format!("deny command git push{at}"), format!("deny path secret{at}")])
        .collect();
    let many = rules(&lines.join("\n"));
    let long = format!("{}\ngit push7", "git -a b git -c d src/x;".repeat(20_000));
    assert!(long.len() > crate::shell::SCRIPT_BYTES_MAX);
    assert_eq!(says(&many, &long, &ground.cwd), Some(Says::Deny));
    let harmless = "echo git -a git -b; ".repeat(3_000);
    assert_eq!(says(&many, &harmless, &ground.cwd), Some(Says::Ask), "too many words to follow");
    let deep = (0..6).fold("git push7".to_owned(), |inner, _| {
        format!("bash -c {}", crate::shell::quote(&[inner]))
    });
    assert_eq!(says(&many, &deep, &ground.cwd), Some(Says::Deny));
}
