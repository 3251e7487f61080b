//! What the whole engine seldom meets: file systems that cannot exchange names, and undoing that
//! fails.

use std::fs;
use std::path::Path;

use bytes::Bytes;

use super::*;
use crate::patch::plan::Content;

/// What is written beside the files for these steps, and under which names.
fn prepared(work: &mut Work<'_>, steps: &[Step]) -> Vec<Named> {
    let names: Vec<Named> = steps.iter().map(|step| work.spares.reserve(step)).collect();
    work.prepare(steps, &names).unwrap();
    names
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn replace_step(root: &Root) -> Step {
    fs::write(root.path().join("f"), "old").unwrap();
    let old = root.read("f").unwrap().unwrap();
    let content =
        Content { bytes: Bytes::from_static(b"new"), like: Some(old.clone()), mode: None };
    Step::Replace { path: "f".to_owned(), content, old }
}

#[test]
fn a_copy_serves_where_names_cannot_be_exchanged() {
    let home = tempfile::tempdir().unwrap();
    let root = Root::open(home.path()).unwrap();
    let step = replace_step(&root);
    let old = root.read("f").unwrap().unwrap();

    let mut done = Work::new(&root);
    let spares = prepared(&mut done, std::slice::from_ref(&step));
    done.replace_by_copy("f", &spares[0], &old).unwrap();
    assert_eq!(fs::read(home.path().join("f")).unwrap(), b"new");
    assert_eq!(done.undo(), Vec::<String>::new());
    done.spares.remove_all(&done.directories);
    assert_eq!(fs::read(home.path().join("f")).unwrap(), b"old");
    assert_eq!(names(home.path()), ["f"]);
}

#[test]
fn what_cannot_be_put_back_is_kept_and_named() {
    let home = tempfile::tempdir().unwrap();
    let root = Root::open(home.path()).unwrap();
    fs::write(home.path().join("f"), "old").unwrap();
    let old = root.read("f").unwrap().unwrap();

    let mut work = Work::new(&root);
    let step = Step::Remove { path: "f".to_owned(), old: old.clone() };
    let spares = prepared(&mut work, &[step]);
    work.remove("f", &spares[0].spare, &old).unwrap();
    fs::write(home.path().join("f"), "somebody else's").unwrap();
    let left = work.undo();
    work.spares.remove_all(&work.directories);
    assert!(left.len() == 1 && left[0].contains(&spares[0].spare), "{left:?}");
    assert_eq!(fs::read(home.path().join(&spares[0].spare)).unwrap(), b"old");
    assert_eq!(fs::read(home.path().join("f")).unwrap(), b"somebody else's");
}

#[test]
fn a_file_replaced_by_another_program_at_the_last_moment_comes_back() {
    let home = tempfile::tempdir().unwrap();
    let root = Root::open(home.path()).unwrap();
    let step = replace_step(&root);
    let old = root.read("f").unwrap().unwrap();

    let mut work = Work::new(&root);
    let spares = prepared(&mut work, &[step]);
    fs::write(home.path().join("g"), "saved by an editor").unwrap();
    fs::rename(home.path().join("g"), home.path().join("f")).unwrap();
    let error = work.replace("f", &spares[0], &old).unwrap_err();
    assert!(matches!(error, PatchError::Changed { .. }), "{error}");
    assert_eq!(work.undo(), Vec::<String>::new());
    work.spares.remove_all(&work.directories);
    assert_eq!(fs::read(home.path().join("f")).unwrap(), b"saved by an editor");
    assert_eq!(names(home.path()), ["f"]);
}

#[test]
fn b15_spare_names_cannot_be_foreseen() {
    let mut names: Vec<String> = (0..1_000).map(|_| spare_name()).collect();
    assert!(names.iter().all(|name| is_spare(name)));
    for other in ["", ".polyloop-.tmp", "../x", ".polyloop-0123456789abcdef0123456789abcde/.tmp"] {
        assert!(!is_spare(other), "{other}");
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 1_000);
}
