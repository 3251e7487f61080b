//! Git in repositories that try to make it run something.
//!
//! Every trap leaves a file where no command may write. What is judged safe runs; the file must
//! never be there. Each trap is also shown to work, where a person would allow the command.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use polyloop_agent::tool::bash::Bash;
use serde_json::json;

use crate::{Ground, Test};

mod hostile;

use hostile::HOSTILE;

pub const ALL: &[Test] = &[
    ("git_reads_run_unasked_in_a_harmless_repository", harmless),
    ("no_repository_makes_git_run_something_unasked", hostile),
    ("what_was_judged_safe_leaves_the_repository_alone", unchanged),
];

const READS: &[&str] = &[
    "git status",
    "git diff",
    "git log -p",
    "git show",
    "git blame a.txt",
    "git ls-files -m",
    "git grep -n one",
    "git cat-file -p HEAD:a.txt",
];

/// More ways to read, which must work in a harmless repository.
const MORE_READS: &[&str] = &[
    "git status --short --branch",
    "git diff --stat HEAD",
    "git diff --cached",
    "git log --oneline -n 3",
    "git log --graph --all --format='%h %an %s'",
    "git show --stat HEAD",
    "git show HEAD:a.txt",
    "git branch -a",
    "git tag --list",
    "git remote -v",
    "git rev-parse --abbrev-ref HEAD",
    "git describe --always",
    "git shortlog -sn HEAD",
    "git stash list",
    "git reflog",
    "git rev-list --count HEAD",
    "git --no-pager log -1",
    "git -C sub status",
    "cd sub && git log -1 -- ..",
    "git diff | head -5 && git status",
];

/// A repository with a commit and a change; none if there is no git here.
fn repository() -> Option<Ground> {
    let ground = Ground::new();
    ground.write("a.txt", "one\ntwo\n");
    ground.write("sub/b.txt", "three\n");
    let made = run(
        &ground,
        "git init -q . && git add -A && git -c user.name=A -c user.email=a@b commit -qm one",
    );
    if made.contains("git: command not found") {
        println!("not tested: there is no git here");
        return None;
    }
    assert_eq!(made, "");
    ground.write("a.txt", "one\nthree\n");
    Some(ground)
}

/// As a person would allow it: the trap may close.
fn run(ground: &Ground, script: &str) -> String {
    // Not a command that would be judged safe.
    let script = format!("{script}\nunset none");
    ground.finish(&Bash, json!({ "command": script })).output
}

fn is_safe(ground: &Ground, script: &str) -> Result<(), String> {
    let judged = ground.judge(&Bash, json!({ "command": script })).unwrap();
    if judged.safe { Ok(()) } else { Err(judged.reason.to_string()) }
}

fn harmless() {
    let Some(ground) = repository() else { return };
    for script in READS.iter().chain(MORE_READS) {
        assert_eq!(is_safe(&ground, script), Ok(()), "{script}");
        let ended = ground.finish(&Bash, json!({ "command": script }));
        assert_eq!(ended.result.exit_code, Some(0), "{script}: {}", ended.seen());
    }
    let seen = |script: &str| ground.finish(&Bash, json!({ "command": script })).output;
    assert!(seen("git status").contains("modified:   a.txt"));
    assert!(seen("git diff").contains("+three"));
    assert!(seen("git log -p").contains("+two"));
    assert!(seen("git blame a.txt").contains("Not Committed Yet"));
}

/// Where traps leave their mark.
fn mark(ground: &Ground) -> std::path::PathBuf {
    ground.cwd().with_file_name("out").join("closed")
}

/// A program that marks that it was run, and passes on what it is given.
fn trap(ground: &Ground) -> String {
    let path = ground.cwd().join("trap.sh");
    let mark = mark(ground);
    fs::write(&path, format!("#!/bin/sh\ntouch '{}'\ncat \"$@\" 2>/dev/null\n", mark.display()))
        .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn hostile() {
    let (mut asked, mut ran, mut closed) = (0, 0, 0);
    for (name, set, closes) in HOSTILE {
        let Some(ground) = repository() else { return };
        let mark = mark(&ground);
        set(&ground, &trap(&ground));
        let _ = fs::remove_file(&mark);
        for read in READS {
            match is_safe(&ground, read) {
                Ok(()) => {
                    ran += 1;
                    ground.finish(&Bash, json!({ "command": read }));
                }
                Err(_) => asked += 1,
            }
            assert!(!mark.exists(), "{name}: {read}");
        }
        for read in READS {
            run(&ground, read);
        }
        closed += u32::from(mark.exists());
        assert!(!closes || mark.exists(), "{name}: the trap does not work");
    }
    println!(
        "{} repositories, {} reads each: {asked} asked about, {ran} run, 0 traps closed; {closed} \
         close when allowed",
        HOSTILE.len(),
        READS.len(),
    );
    assert_eq!(asked + ran, HOSTILE.len() * READS.len());
}

/// Neither the index nor anything else in the repository is written to.
fn unchanged() {
    let Some(ground) = repository() else { return };
    // The index is old news for every file, which git would like to write down.
    run(&ground, "touch -d '1 hour ago' a.txt sub/b.txt");
    let before = look(&ground.cwd().join(".git"));
    for script in READS.iter().chain(MORE_READS) {
        ground.finish(&Bash, json!({ "command": script }));
        let after = look(&ground.cwd().join(".git"));
        let changed: Vec<_> = after.iter().filter(|file| !before.contains(file)).collect();
        assert!(changed.is_empty() && after.len() == before.len(), "{script}: {changed:?}");
    }
}

/// Every file below, with what it holds.
fn look(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(look(&path)),
            false => files.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    files.sort();
    files
}
