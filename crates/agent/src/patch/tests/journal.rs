//! A server that is killed at any moment of a patch leaves all files old or all new, once the next
//! one has started.
//!
//! The kill is an end at one of the points of `halt`: before and after everything that changes the
//! disk. Real kills of the real program are in the black-box tests.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use polyloop_session::{ItemId, Seq, SessionId};

use super::{Ground, wrapped};
use crate::patch::halt::{self, Halted};
use crate::patch::{
    Does, Fact, Facts, Flush, Journal, Named, PatchError, Replayed, Said, parse, plan, spare_name,
};

type Snapshot = BTreeMap<PathBuf, (String, u32, Vec<u8>)>;

const FILES: [(&str, &[u8]); 6] = [
    ("a.txt", b"one\ntwo\nthree\n"),
    ("src/b.txt", b"red\ngreen\n"),
    ("src/deep/c.txt", b"gone soon\n"),
    ("src/deep/d.txt", b"moves\n"),
    ("doc/e.txt", b"was\n"),
    ("doc/same.txt", b"stays\n"),
];

/// Adds in directories old and new, updates, deletes, moves, deletes and adds again.
const BODY: &str = "*** Update File: a.txt\n@@\n one\n-two\n+2\n three\n\
    *** Update File: src/b.txt\n@@\n-red\n+blue\n green\n\
    *** Delete File: src/deep/c.txt\n\
    *** Update File: src/deep/d.txt\n*** Move to: new/place/d.txt\n@@\n-moves\n+moved\n\
    *** Add File: new/f.txt\n+fresh\n\
    *** Add File: doc/g.txt\n+too\n\
    *** Delete File: doc/e.txt\n*** Add File: doc/e.txt\n+is";

/// A small one, for what is tried very often.
const SHORT: &str = "*** Update File: a.txt\n@@\n-two\n+2\n*** Delete File: doc/e.txt\n\
    *** Update File: src/b.txt\n*** Move to: new/b.txt";

/// A ground, and a journal that is none of its files.
struct Place {
    ground: Ground,
    store: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let ground = Ground::new(&FILES);
        fs::set_permissions(ground.inside("a.txt"), fs::Permissions::from_mode(0o754)).unwrap();
        Place { ground, store: tempfile::tempdir().unwrap() }
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.store.path().join("patches")).unwrap()
    }

    fn apply(&self, body: &str) -> Result<(), PatchError> {
        let planned = plan(&self.ground.root, &parse(&wrapped(body)).unwrap()).unwrap();
        planned.apply(Some(&self.journal())).map(drop)
    }

    /// Applies a patch and is killed on the way.
    fn killed(&self, points: usize, body: &str) -> Result<Result<(), PatchError>, Halted> {
        halt::run(points, || self.apply(body))
    }

    fn journals(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.store.path().join("patches")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// The trees before and after a patch.
fn ends(body: &str) -> [Snapshot; 2] {
    let place = Place::new();
    let before = relative(&place);
    place.apply(body).unwrap();
    assert!(place.journals().is_empty());
    [before, relative(&place)]
}

fn relative(place: &Place) -> Snapshot {
    let home = place.ground.home.path();
    let all = place.ground.snapshot().into_iter();
    all.map(|(path, facts)| (path.strip_prefix(home).unwrap().to_owned(), facts)).collect()
}

/// Kills a patch at every point, and lets `restart` do what follows; gives how many ended old and
/// how many new.
fn at_every_point(body: &str, mut restart: impl FnMut(&Place)) -> (usize, usize) {
    let [before, after] = ends(body);
    let (mut old, mut new) = (0, 0);
    for points in 0.. {
        let place = Place::new();
        let killed = place.killed(points, body);
        restart(&place);
        let now = relative(&place);
        assert!(now == before || now == after, "torn at point {points}: {:?}", now.keys());
        assert!(place.journals().is_empty(), "a journal is left at point {points}");
        match killed {
            Err(Halted) if now == before => old += 1,
            Err(Halted) => new += 1,
            Ok(ended) => {
                ended.unwrap();
                assert!(now == after && points == old + new);
                return (old, new);
            }
        }
    }
    unreachable!()
}

#[test]
fn f6_killed_at_any_point_all_files_are_old_or_all_are_new() {
    let (old, new) = at_every_point(BODY, |place| drop(place.journal().replay()));
    assert!(old > 50 && new > 10, "{old} old, {new} new");
    let (old, new) = halt::on_a_plain_file_system(|| {
        at_every_point(BODY, |place| drop(place.journal().replay()))
    });
    assert!(old > 50 && new > 10, "without exchanging: {old} old, {new} new");
}

#[test]
fn f6_without_a_journal_files_are_torn() {
    let [before, after] = ends(SHORT);
    let torn = (0..).map_while(|points| {
        let place = Place::new();
        let planned = plan(&place.ground.root, &parse(&wrapped(SHORT)).unwrap()).unwrap();
        let killed = halt::run(points, || planned.apply(None));
        killed.is_err().then(|| ![&before, &after].contains(&&relative(&place)))
    });
    assert!(torn.filter(|is_torn| *is_torn).count() > 10, "the check would not notice");
}

#[test]
fn f6_a_start_that_is_killed_too_changes_nothing_of_that() {
    for plain in [false, true] {
        let restart = |place: &Place| {
            for points in 0.. {
                // Each start gets a little further, because the one before did something.
                let started = || halt::run(points, || place.journal().replay());
                let ended = if plain { halt::on_a_plain_file_system(started) } else { started() };
                if ended.is_ok() {
                    return;
                }
            }
        };
        let kills = || at_every_point(SHORT, restart);
        let (old, new) = if plain { halt::on_a_plain_file_system(kills) } else { kills() };
        assert!(old > 20 && new > 5, "{old} old, {new} new");
    }
}

#[test]
fn a_patch_that_fails_and_is_killed_while_it_is_undone_changes_nothing() {
    for points in 0.. {
        let place = Place::new();
        let planned = plan(&place.ground.root, &parse(&wrapped(BODY)).unwrap()).unwrap();
        place.ground.write("src/deep/d.txt", b"by somebody else, after the plan\n");
        place.ground.write("new/f.txt", b"taken\n");
        let before = relative(&place);
        let ended = halt::run(points, || planned.apply(Some(&place.journal())));
        place.journal().replay();
        assert_eq!(relative(&place), before, "at point {points}");
        if let Ok(ended) = ended {
            ended.unwrap_err();
            return;
        }
    }
}

/// Everybody who writes between the kill and the start finds it unharmed.
#[test]
fn what_somebody_else_changed_since_stays_and_nothing_is_lost() {
    let written = |path: &Path| fs::write(path, b"theirs\n").unwrap();
    let replaced = |path: &Path| {
        fs::write(path.with_extension("mine"), b"theirs\n").unwrap();
        fs::rename(path.with_extension("mine"), path).unwrap();
    };
    let removed = |path: &Path| fs::remove_file(path).unwrap_or_default();
    type Change<'a> = (&'a dyn Fn(&Path), Option<&'a [u8]>);
    let changes: [Change<'_>; 3] =
        [(&written, Some(b"theirs\n")), (&replaced, Some(b"theirs\n")), (&removed, None)];
    let ends = ends(SHORT);
    let is_spare = |path: &PathBuf| path.extension().is_some_and(|end| end == "tmp");
    for (change, theirs) in changes {
        for file in ["a.txt", "doc/e.txt", "new/b.txt"] {
            let key = Path::new("W").join(file);
            let others = |all: &Snapshot| -> Snapshot {
                let others = all.iter().filter(|(path, _)| **path != key && !is_spare(path));
                others.map(|(path, facts)| (path.clone(), facts.clone())).collect()
            };
            for points in 0.. {
                let place = Place::new();
                let killed = place.killed(points, SHORT);
                let path = place.ground.inside(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                let is_changed = path.exists() || theirs.is_some();
                change(&path);
                let replayed = place.journal().replay();
                if is_changed {
                    let now = fs::read(&path).ok();
                    assert_eq!(now.as_deref(), theirs, "{file} at point {points}");
                }
                assert!(place.journals().is_empty());
                let now = relative(&place);
                // The directory is there because of what they wrote.
                let is_made = |path: &PathBuf, _: &mut _| path != Path::new("W/new");
                let [mut old, mut new, mut all] =
                    [others(&ends[0]), others(&ends[1]), others(&now)];
                for tree in [&mut old, &mut new, &mut all] {
                    tree.retain(is_made);
                }
                assert!(all == old || all == new, "{file} at point {points}: {:?}", all.keys());
                if let Some((spare, (_, _, content))) = now.iter().find(|(path, _)| is_spare(path))
                {
                    // What it was before is not lost, and its place is told.
                    assert_eq!(*content, ends[0].get(&key).unwrap().2);
                    let name = spare.file_name().unwrap().to_str().unwrap();
                    let left = &replayed[0].left;
                    assert!(left.iter().any(|text| text.contains(name) && text.contains(file)));
                }
                if killed.is_ok() {
                    break;
                }
            }
        }
    }
}

/// The result of the call that was cut off says what became of its files, and never says it wrong.
#[test]
fn a_call_that_was_cut_off_is_told_what_became_of_its_patch() {
    let [before, after] = ends(SHORT);
    let (session, other) = (SessionId::parse("s").unwrap(), SessionId::parse("t").unwrap());
    let item = ItemId(Seq(7));
    let (mut undone, mut applied) = (0, 0);
    for points in 0.. {
        let place = Place::new();
        let planned = plan(&place.ground.root, &parse(&wrapped(SHORT)).unwrap()).unwrap();
        let journal = place.journal().of_call(&session, item);
        let killed = halt::run(points, || planned.apply(Some(&journal)).map(drop));
        let had_journal = !place.journals().is_empty();
        let started = place.journal();
        assert!(started.found(&session).is_empty(), "nothing is known before it is replayed");
        let replayed = started.replay();
        let now = relative(&place);
        let found = started.found(&session);
        assert_eq!(found.len(), replayed.len(), "at point {points}");
        assert!(started.found(&other).is_empty());
        if let Some(words) = found.get(&item) {
            assert!(
                had_journal && words.contains("(a.txt, doc/e.txt, new/b.txt, src/b.txt)"),
                "{words}"
            );
            match words.contains("was undone") {
                true => assert_eq!(now, before, "at point {points}: {words}"),
                false => assert_eq!(now, after, "at point {points}: {words}"),
            }
            assert_eq!(words.contains("is in place as a whole"), now == after, "{words}");
            undone += usize::from(now == before);
            applied += usize::from(now == after);
        }
        // The next start knows nothing of it any more.
        assert!(place.journal().found(&session).is_empty());
        if killed.is_ok() {
            break;
        }
    }
    assert!(undone > 10 && applied > 3, "{undone} undone, {applied} in place");
}

/// Ends a patch after its first file changed, and gives the ground.
fn cut() -> Place {
    for points in 0.. {
        let place = Place::new();
        place.killed(points, BODY).unwrap_err();
        if place.ground.read("a.txt").contains("2\n") {
            return place;
        }
    }
    unreachable!()
}

#[test]
fn a_root_that_was_replaced_is_left_alone_until_it_is_back() {
    let place = cut();
    let (root, aside) = (place.ground.home.path().join("W"), place.ground.outside("aside"));
    fs::rename(&root, &aside).unwrap();
    let kept = |replayed: Vec<Replayed>| matches!(replayed[0].said, Said::Kept { .. });
    assert!(kept(place.journal().replay()), "it is gone");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.txt"), "another\n").unwrap();
    assert!(kept(place.journal().replay()), "it is another");
    assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "another\n");
    fs::remove_dir_all(&root).unwrap();
    symlink(&aside, &root).unwrap();
    assert!(kept(place.journal().replay()), "it is reached by a link");
    assert_eq!(place.journals().len(), 1);

    fs::remove_file(&root).unwrap();
    fs::rename(&aside, &root).unwrap();
    let replayed = place.journal().replay();
    assert_eq!(replayed[0].said, Said::Undone);
    assert_eq!(place.ground.files().len(), FILES.len());
    assert_eq!(place.ground.read("a.txt"), "one\ntwo\nthree\n");
}

#[test]
fn a_directory_that_became_a_link_leads_nowhere() {
    let place = cut();
    for (directory, name) in [("src", "b.txt"), ("doc", "e.txt"), ("new", "f.txt")] {
        let inside = place.ground.inside(directory);
        if inside.exists() {
            fs::rename(&inside, place.ground.inside(&format!("{directory}-moved"))).unwrap();
        }
        let decoy = place.ground.outside(directory);
        fs::create_dir_all(&decoy).unwrap();
        fs::write(decoy.join(name), "a victim\n").unwrap();
        symlink(&decoy, &inside).unwrap();
    }
    let out = |place: &Place| -> Snapshot {
        relative(place).into_iter().filter(|(path, _)| path.starts_with("OUT")).collect()
    };
    let before = out(&place);
    let replayed = place.journal().replay();
    assert_eq!(out(&place), before);
    assert!(replayed[0].left.iter().any(|left| left.contains("its directory is gone")));
}

#[test]
fn a_journal_of_a_living_server_is_passed_by() {
    let place = cut();
    let [journal] = place.journals().try_into().unwrap();
    let held = fs::File::open(&journal).unwrap();
    held.try_lock().unwrap();
    let before = relative(&place);
    assert!(place.journal().replay().is_empty());
    assert_eq!(relative(&place), before);
    drop(held);
    assert_eq!(place.journal().replay().len(), 1);
}

#[test]
fn what_is_no_journal_of_ours_does_nothing() {
    let place = cut();
    let [journal] = place.journals().try_into().unwrap();
    let whole = fs::read_to_string(&journal).unwrap();
    let before = relative(&place);
    let forged = [
        "not JSON\n".to_owned(),
        whole.replacen(r#""path":"a.txt""#, r#""path":"../OUT/a.txt""#, 1),
        whole.replacen(r#""path":"a.txt""#, r#""path":"/etc/passwd""#, 1),
        whole.replacen(".polyloop-", "../polyloop-", 1),
        whole.replacen(r#""spare":".polyloop-"#, r#""spare":"doc/same.txt"#, 1),
        whole.lines().last().unwrap().to_owned() + "\n",
        format!("{whole}{whole}"),
    ];
    for text in forged {
        assert_ne!(text, whole);
        fs::write(&journal, &text).unwrap();
        assert!(place.journal().replay().is_empty(), "{text}");
        assert_eq!(relative(&place), before, "{text}");
    }
    fs::write(&journal, &whole).unwrap();
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(place.journal().replay().is_empty(), "others may have written it");
    assert_eq!(relative(&place), before);
    assert_eq!(fs::metadata(place.store.path().join("patches")).unwrap().mode() & 0o777, 0o700);
}

/// What a deletion by way of a spare name leaves, when it is killed before and after the renaming.
#[test]
fn a_deletion_that_was_begun_is_finished() {
    for (path, does) in [("src", Does::RemoveTree), ("a.txt", Does::Remove)] {
        for is_aside in [false, true] {
            let place = Place::new();
            let (target, spare) = (place.ground.inside(path), spare_name());
            let facts = fs::metadata(&target).unwrap();
            let content = fs::read(&target).unwrap_or_default();
            let mut fact = Fact::new(&content, facts.ino());
            if does == Does::RemoveTree {
                fact = Fact { bytes: facts.len(), hash: String::new(), ..fact };
            }
            let named = Named { does, path: path.to_owned(), spare: spare.clone(), copy: None };
            let mut open =
                place.journal().begin(&place.ground.root, vec![named], Vec::new()).unwrap();
            open.ready(vec![Facts { old: Some(fact), new: None }], Flush::No).unwrap();
            drop(open);
            let before = relative(&place);
            if is_aside {
                fs::rename(&target, place.ground.inside(&spare)).unwrap();
            }
            let replayed = place.journal().replay();
            assert_eq!(replayed[0].left, Vec::<String>::new());
            assert_eq!(target.exists(), !is_aside);
            assert!(place.journals().is_empty() && !place.ground.inside(&spare).exists());
            match is_aside {
                true => assert_eq!(replayed[0].said, Said::Applied),
                false => assert!(replayed[0].said == Said::Undone && relative(&place) == before),
            }
        }
    }
}

/// As it is when the machine loses power before a line is on the disk.
#[test]
fn a_torn_line_was_never_written() {
    let is_ready = |place: &Place| match place.journals().as_slice() {
        [journal] => fs::read_to_string(journal).unwrap().contains("\"line\":\"ready\""),
        _ => false,
    };
    let killed = |points| {
        let place = Place::new();
        place.killed(points, SHORT).unwrap_err();
        place
    };
    let ready = (0..).find(|&points| is_ready(&killed(points))).unwrap();
    let bytes = fs::metadata(&killed(ready).journals()[0]).unwrap().len();
    let [before, _] = ends(SHORT);
    for length in (0..bytes).step_by(11).chain([bytes - 1]) {
        let place = killed(ready);
        let [journal] = place.journals().try_into().unwrap();
        let whole = fs::read(&journal).unwrap();
        let kept = &whole[..usize::try_from(length).unwrap()];
        fs::write(&journal, kept).unwrap();
        place.journal().replay();
        assert!(!journal.exists(), "cut at byte {length}");
        let mut now = relative(&place);
        if !kept.contains(&b'\n') {
            // Nothing is known; but no file has changed.
            now.retain(|path, _| before.contains_key(path));
        }
        assert_eq!(now, before, "cut at byte {length}");
    }
}
