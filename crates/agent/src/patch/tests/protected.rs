//! P: paths where an edit is code, or an instruction, later.

use super::*;
use crate::patch::is_protected;

#[test]
fn p1_p2_p3_protected_names() {
    for path in [
        ".git",
        ".git/config",
        ".git/hooks/pre-commit",
        ".gitmodules",
        "sub/.git",
        "a/b/.git/HEAD",
        ".env",
        ".env.local",
        "deep/.envrc",
        "AGENTS.md",
        "docs/SOUL.md",
        ".mcp.json",
        ".vscode/tasks.json",
        ".idea/x.xml",
        ".bashrc",
        "home/.profile",
        ".zshrc",
        ".ripgreprc",
        ".polyloop/rules",
        ".GIT/config",
        ".Git./config",
        ".git /config",
        ".git. ./hooks/x",
        "Agents.MD",
        "agents.md.",
        ".g\u{200c}it/config",
        "GIT~1/config",
        ".git::$INDEX/x",
        ".git\\config",
        ".BA\u{17f}HRC",
    ] {
        assert!(is_protected(path), "{path:?} should be protected");
    }
    for path in [
        "src/main.rs",
        "git/config",
        "a.git/config",
        ".gitignore",
        ".github/workflows/ci.yml",
        "env",
        "my.env",
        "docs/agents.md.txt",
        "AGENTS.mdx",
        "vscode/x",
        "profile",
        "x.bashrc",
    ] {
        assert!(!is_protected(path), "{path:?} should not be protected");
    }
}

#[test]
fn p1_touched_paths_say_what_is_protected_before_it_exists() {
    let ground = Ground::new(&[("a", b"1\n")]);
    let planned = ground
        .plan(
            "*** Add File: .git/hooks/pre-commit\n+x\n*** Add File: src/x\n+x\n\
             *** Update File: a\n*** Move to: sub/.EnvRC",
        )
        .unwrap();
    let told: Vec<(&str, bool, bool)> =
        planned.touched().iter().map(|t| (t.path.as_str(), t.inside, t.protected)).collect();
    let expected = [
        (".git/hooks/pre-commit", true, true),
        ("src/x", true, false),
        ("a", true, false),
        ("sub/.EnvRC", true, true),
    ];
    assert_eq!(told, expected);
}

#[test]
fn p1_a_git_directory_under_another_name_is_protected() {
    let files: [(&str, &[u8]); 4] = [
        ("meta/HEAD", b"ref: refs/heads/main\n"),
        ("meta/objects/x", b"x"),
        ("meta/refs/x", b"x"),
        ("meta/config", b"[core]\n"),
    ];
    let ground = Ground::new(&files);
    for path in ["meta/config", "meta/hooks/pre-commit"] {
        let body = format!("*** Add File: {path}-new\n+x");
        assert!(ground.plan(&body).unwrap().touched()[0].protected, "{path}");
    }
    assert!(!ground.plan("*** Add File: other/config\n+x").unwrap().touched()[0].protected);
}
