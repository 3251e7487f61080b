//! What the model is told of a folder is kept while nothing changes that it was read from.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use polyloop_agent::patch::Root;
use polyloop_agent::place::Instructions;
use polyloop_agent::tool::Place;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::{Ground, Test};

pub const ALL: &[Test] = &[("what_is_told_is_what_the_folder_says_now", as_it_is_now)];

const EDITS: usize = 500;
const NAMES: [&str; 3] = ["SOUL.md", "AGENTS.md", "elsewhere.md"];
/// As long as one another, so that a length gives nothing away.
const TEXTS: [&str; 3] = ["Be brief.", "Be exact.", "Be quick."];
const HEADS: [&str; 3] = ["ref: refs/heads/a", "ref: refs/heads/b", "nothing that Git says"];
const SKILL: &str = ".polyloop/skills/ship.md";

fn told(kept: Arc<polyloop_agent::place::Told>) -> Instructions {
    Instructions { role: "ROLE".into(), rules: "RULES".into(), own: None, kept }
}

fn remove(path: &Path) {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// One of the ways in which a folder changes; `which` of the texts or names, where there are some.
fn edit(dir: &Path, way: usize, which: usize) {
    let named = dir.join(NAMES[which]);
    let git = dir.join(".git");
    match way {
        0 => remove(&named),
        1 if which < 2 => {
            remove(&named);
            symlink("elsewhere.md", named).unwrap();
        }
        2 => {
            remove(&named);
            fs::create_dir(named).unwrap();
        }
        3 => {
            // As editors do it.
            fs::write(dir.join("new"), TEXTS[which]).unwrap();
            remove(&dir.join("AGENTS.md"));
            fs::rename(dir.join("new"), dir.join("AGENTS.md")).unwrap();
        }
        4..=8 => {
            let named = dir.join(NAMES[way % NAMES.len()]);
            if !named.is_dir() && !named.is_symlink() {
                fs::write(named, TEXTS[which]).unwrap();
            }
        }
        9 | 10 => remove(&git),
        11 => {
            remove(&git);
            let there = dir.join("store");
            fs::write(there.join("HEAD"), HEADS[which]).unwrap();
            fs::write(git, format!("gitdir: {}\n", there.display())).unwrap();
        }
        12..=14 if !git.is_file() => {
            fs::create_dir_all(&git).unwrap();
            fs::write(git.join("HEAD"), HEADS[which]).unwrap();
        }
        15..=17 => remove(&dir.join(".polyloop")),
        18 => {
            fs::create_dir_all(dir.join(SKILL).parent().unwrap()).unwrap();
            fs::write(dir.join(SKILL), format!("# {}\n", TEXTS[which])).unwrap();
        }
        _ => fs::write(dir.join("of no interest"), TEXTS[which]).unwrap(),
    }
}

/// Until what is changed now has another time than what was changed before: clocks of file systems
/// stand still for some milliseconds.
fn next_tick(dir: &Path) {
    let changed = || {
        fs::write(dir.join("probe"), "").unwrap();
        let found = fs::metadata(dir.join("probe")).unwrap();
        (found.ctime(), found.ctime_nsec())
    };
    let before = changed();
    while changed() == before {
        std::thread::yield_now();
    }
}

fn as_it_is_now() {
    let ground = Ground::new();
    let sub = ground.cwd().join("sub");
    fs::create_dir_all(sub.join("store")).unwrap();
    let places = [ground.cwd(), &sub].map(|cwd| Place {
        root: Some(Root::open(cwd).unwrap()),
        cwd: cwd.to_path_buf(),
        ..(*ground.place).clone()
    });
    let out = ground.cwd().with_file_name("out");
    let kept = told(Arc::default());
    let (mut runner, mut changes) = (TestRunner::deterministic(), 0);
    let mut before = String::new();
    for round in 0..EDITS {
        let choice = (0..2_usize, 0..20_usize, 0..3_usize).new_tree(&mut runner).unwrap();
        let (at, way, which) = choice.current();
        let dir = if at == 0 { ground.cwd() } else { &sub };
        edit(dir, way, which);
        next_tick(&out);
        // When all of it has been as it is for long.
        let later = SystemTime::now() + Duration::from_secs(3600);
        for place in &places {
            let now = told(Arc::default()).at(place, later);
            let first = kept.at(place, later);
            assert_eq!(first, now, "{round}: {way} {which} in {}", dir.display());
            assert_eq!(kept.at(place, later), now, "{round}: asked again");
            changes += usize::from(*before != *now);
            before = now.to_string();
        }
    }
    assert!(changes > EDITS / 4, "only {changes} of {EDITS} changed anything");
}
