//! Random changes of a few files, taken back: all is as before, or nothing is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use super::super::{Revert, Reverted, Root, Was, plan_reverts};

const NAMES: [&str; 4] = ["a", "b", "d/c", "d/e/f"];
const CONTENTS: [&str; 3] = ["one\n", "two\n", ""];
/// What no change ever leaves.
const THEIRS: &str = "somebody else's\n";

/// A change that may be possible when it is played.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write(usize, usize),
    Delete(usize),
    Move(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let (name, content) = (0..NAMES.len(), 0..CONTENTS.len());
    prop_oneof![
        3 => (name.clone(), content).prop_map(|(name, content)| Step::Write(name, content)),
        1 => name.clone().prop_map(Step::Delete),
        1 => (name.clone(), name).prop_map(|(from, to)| Step::Move(from, to)),
    ]
}

fn hash(content: &str) -> String {
    format!("{:x}", Sha256::digest(content))
}

fn tree(dir: &Path) -> BTreeMap<&'static str, String> {
    let read = |name: &&'static str| Some((*name, fs::read_to_string(dir.join(name)).ok()?));
    NAMES.iter().filter_map(read).collect()
}

fn put(dir: &Path, name: &str, content: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Plays what is possible; gives the way back, newest first.
fn play(dir: &Path, steps: &[Step]) -> (Vec<Revert>, BTreeSet<&'static str>) {
    let (mut back, mut touched) = (Vec::new(), BTreeSet::new());
    for step in steps {
        let now = tree(dir);
        let file = |content: &String| Was::File {
            bytes: Bytes::copy_from_slice(content.as_bytes()),
            mode: Some(0o644),
        };
        let revert = match *step {
            Step::Write(name, content) => {
                let (path, content) = (NAMES[name], CONTENTS[content]);
                let before = now.get(path).map_or(Was::Nothing, file);
                put(dir, path, content);
                touched.insert(path);
                Revert { path: path.into(), from: None, before, after: Some(hash(content)) }
            }
            Step::Delete(name) => {
                let path = NAMES[name];
                let Some(content) = now.get(path) else { continue };
                fs::remove_file(dir.join(path)).unwrap();
                touched.insert(path);
                Revert { path: path.into(), from: None, before: file(content), after: None }
            }
            Step::Move(from, to) => {
                let (from, to) = (NAMES[from], NAMES[to]);
                let Some(content) = now.get(from).filter(|_| !now.contains_key(to)) else {
                    continue;
                };
                fs::remove_file(dir.join(from)).unwrap();
                put(dir, to, content);
                touched.extend([from, to]);
                let (path, from) = (to.into(), Some(from.into()));
                Revert { path, from, before: Was::Moved, after: Some(hash(content)) }
            }
        };
        back.insert(0, revert);
    }
    (back, touched)
}

fn go_back(root: &Root, back: &[Revert]) -> bool {
    match plan_reverts(root, back).unwrap() {
        Reverted::Already => true,
        Reverted::Plan(plan) => {
            plan.apply(None).unwrap();
            true
        }
        Reverted::Conflicts(conflicts) => {
            assert!(!conflicts.is_empty());
            false
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_is_as_before_or_nothing_is_touched(
        first in vec((0..NAMES.len(), 0..CONTENTS.len()), 0..4),
        steps in vec(step(), 0..12),
        theirs in option::of((0..NAMES.len(), any::<bool>())),
    ) {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        let root = Root::open(dir).unwrap();
        first.iter().for_each(|(name, content)| put(dir, NAMES[*name], CONTENTS[*content]));
        let before = tree(dir);
        let (back, touched) = play(dir, &steps);
        let theirs = theirs.map(|(name, removes)| {
            let name = NAMES[name];
            match removes && dir.join(name).exists() {
                true => fs::remove_file(dir.join(name)).unwrap(),
                false => put(dir, name, THEIRS),
            }
            name
        });
        let left = tree(dir);
        let done = go_back(&root, &back);
        let now = tree(dir);
        match theirs {
            None => {
                prop_assert!(done);
                prop_assert_eq!(&now, &before);
                // Once more there is nothing to do, and nothing is in the way.
                prop_assert!(go_back(&root, &back));
                prop_assert_eq!(tree(dir), before);
            }
            Some(name) if left.get(name).is_some_and(|content| content == THEIRS) => {
                // What somebody put there is never lost.
                prop_assert_eq!(now.get(name).map(String::as_str), Some(THEIRS));
                prop_assert_eq!(done, !touched.contains(name), "{:?}", now);
                if !done {
                    prop_assert_eq!(now, left);
                }
            }
            // Somebody removed it: it stays so, or comes back as it was.
            Some(_) if !done => prop_assert_eq!(now, left),
            Some(name) if touched.contains(name) => prop_assert_eq!(now, before),
            Some(name) => {
                let others = |tree: BTreeMap<&'static str, String>| -> BTreeMap<_, _> {
                    tree.into_iter().filter(|(other, _)| *other != name).collect()
                };
                prop_assert!(!now.contains_key(name));
                prop_assert_eq!(others(now), others(before));
            }
        }
    }
}
