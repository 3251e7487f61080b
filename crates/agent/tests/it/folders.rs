//! Where turns work: in the folder of their session, or of their own, and never outside the
//! allowed roots.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use polyloop_agent::place::Places;
use polyloop_agent::tool::Place;
use polyloop_session::command::Send;
use polyloop_session::event::{RunOptions, Settings, Work};
use polyloop_session::policy::Mode;
use polyloop_session::{Command, Event, SessionId};
use serde_json::json;

use super::client::Client;
use super::make::{id, interrupt, message, send, who};
use super::rig::{Rig, Setup, helper, temp_dir};

/// Stands before the folder that a script tells of.
const AT: &str = "at ";

/// Says where it is, and leaves a file there.
fn script(file: &str) -> String {
    let patch = format!("*** Begin Patch\n*** Add File: {file}\n+here\n*** End Patch\n");
    format!(
        "run: echo \"at $(pwd -P)\"\ntool: apply_patch {}\nsay: done",
        json!({ "patch": patch })
    )
}

fn within(cwd: &Path, text: &str) -> Command {
    let cwd = Some(cwd.display().to_string().into());
    let run = Some(Box::new(RunOptions { cwd, ..RunOptions::default() }));
    Command::Send(Box::new(Send { run, ..message(text) }))
}

fn at_work(change: impl FnOnce(Setup) -> Setup) -> Rig {
    Rig::new(|setup| change(Setup { mode: Mode::Bypass, helper: helper(), ..setup }))
}

/// Sends a command and tells where its turn worked: what the shell and the log say.
async fn worked_in(client: &mut Client, command: Command) -> (PathBuf, PathBuf) {
    let (lines, said) = (client.output(AT).len(), client.texts().len());
    client.command(command).await.unwrap();
    client.until("the end", |c| c.texts().len() > said && c.is_idle()).await.unwrap();
    let began = client.entries.iter().rev().find_map(|entry| match &entry.event {
        Event::TurnStarted { cwd, .. } => cwd.as_deref().map(PathBuf::from),
        _ => None,
    });
    (PathBuf::from(&client.output(AT)[lines]), began.unwrap())
}

fn both(path: &Path) -> (PathBuf, PathBuf) {
    (path.to_path_buf(), path.to_path_buf())
}

fn real(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().canonicalize().unwrap()
}

#[tokio::test]
async fn a_run_works_in_its_own_folder_and_the_next_one_in_the_sessions() {
    let elsewhere = temp_dir();
    let (other, root) = (real(&elsewhere).join("deep"), real(&elsewhere));
    fs::create_dir(&other).unwrap();
    let rig = at_work(|setup| Setup { roots: vec![root], ..setup });
    let mut client = rig.client("s").await;
    assert_eq!(worked_in(&mut client, within(&other, &script("one.txt"))).await, both(&other));
    assert_eq!(fs::read_to_string(other.join("one.txt")).unwrap(), "here\n");

    let own = real(&rig.dir);
    let next = send(&script("two.txt"));
    assert_eq!(worked_in(&mut client, next).await, both(&own));
    assert_eq!(fs::read_to_string(own.join("two.txt")).unwrap(), "here\n");
    assert!(!own.join("one.txt").exists() && !other.join("two.txt").exists());
}

/// Two turns of two sessions, each in a folder of its own, at the same time.
#[tokio::test]
async fn a_session_may_have_a_folder_of_its_own() {
    let elsewhere = temp_dir();
    let root = real(&elsewhere);
    let rig = at_work(|setup| Setup { roots: vec![root.clone()], ..setup });
    let settings =
        Settings { cwd: root.display().to_string().into(), ..rig.sessions.kit().settings.clone() };
    let handle = rig.sessions.handle_with(id("there"), who(), settings.clone());
    let mut there = Client::attach(handle, rig.kind).await.unwrap();
    let mut here = rig.client("here").await;
    let (there_at, here_at) = tokio::join!(
        worked_in(&mut there, send(&script("file.txt"))),
        worked_in(&mut here, send(&script("file.txt"))),
    );
    assert_eq!((there_at, here_at), (both(&root), both(&real(&rig.dir))));
    assert!(root.join("file.txt").exists() && rig.dir.path().join("file.txt").exists());
    // It is the session's, whoever opens it next; settings count only for a new one.
    let again = rig.sessions.handle_with(id("here"), who(), settings);
    assert_eq!(Path::new(&*again.look().await.unwrap().settings.cwd), real(&rig.dir));
    let again = rig.handle("there").look().await.unwrap();
    assert_eq!(Path::new(&*again.settings.cwd), root);
}

/// The log may name a folder that is gone, or that was allowed once.
#[tokio::test]
async fn a_folder_that_cannot_be_entered_is_not() {
    let (outside, own) = (temp_dir(), temp_dir());
    let gone = own.path().join("gone");
    fs::create_dir(&gone).unwrap();
    let rig = at_work(|setup| Setup { roots: vec![real(&own)], ..setup });
    fs::remove_dir(&gone).unwrap();
    let mut client = rig.client("s").await;
    for (n, cwd) in [gone.as_path(), outside.path(), Path::new("/")].into_iter().enumerate() {
        let file = format!("{n}.txt");
        let (shell, told) = worked_in(&mut client, within(cwd, &script(&file))).await;
        assert_eq!((shell, told), (real(&rig.dir), cwd.to_path_buf()));
        assert!(rig.dir.path().join(file).exists(), "{cwd:?}");
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

/// What takes up an interrupted run works where that did.
#[tokio::test]
async fn a_resumed_run_works_where_it_did() {
    let rig = at_work(|setup| setup);
    let sub = real(&rig.dir).join("sub");
    fs::create_dir(&sub).unwrap();
    let mut client = rig.client("s").await;
    client.command(within(&sub, "say: well\nfail: hang")).await.unwrap();
    client.until("the words", |c| c.texts() == ["well"]).await.unwrap();
    client.command(interrupt()).await.unwrap();
    client.until_idle().await.unwrap();
    client.command(Command::Resume { by: who() }).await.unwrap();
    let resumed = client.entries.iter().find_map(|entry| match &entry.event {
        Event::TurnStarted { work: Work::Resume { .. }, cwd, .. } => cwd.clone(),
        _ => None,
    });
    assert_eq!(resumed.as_deref().map(Path::new), Some(&*sub));
}

fn places(rig: &Rig) -> &Places {
    &rig.sessions.kit().places
}

#[test]
fn a_folder_is_judged_with_its_links_followed() {
    let (outside, second) = (temp_dir(), temp_dir());
    let rig = Rig::new(|setup| Setup { roots: vec![real(&second)], ..setup });
    let (own, second) = (real(&rig.dir), real(&second));
    fs::create_dir_all(own.join("a/b")).unwrap();
    fs::create_dir(second.join("c")).unwrap();
    fs::write(own.join("file"), "").unwrap();
    symlink(own.join("a/b"), own.join("inside")).unwrap();
    symlink(&second, own.join("second")).unwrap();
    symlink(outside.path(), own.join("out")).unwrap();
    symlink("/", own.join("a/top")).unwrap();
    symlink("loop", own.join("loop")).unwrap();
    symlink("nowhere", own.join("dangling")).unwrap();
    let beside = own.with_file_name(format!("{}x", own.file_name().unwrap().to_str().unwrap()));
    fs::create_dir(&beside).unwrap();

    let good = [
        (".", own.clone()),
        ("", own.clone()),
        ("a/b", own.join("a/b")),
        ("a/../a", own.join("a")),
        ("inside", own.join("a/b")),
        ("second/c", second.join("c")),
        (second.to_str().unwrap(), second.clone()),
    ];
    for (wanted, folder) in good {
        assert_eq!(places(&rig).folder(wanted), Ok(folder), "{wanted}");
    }
    let bad = [
        ("file", "is not a directory"),
        ("file/..", "is not there, or outside"),
        ("missing", "is not there, or outside"),
        ("dangling", "is not there, or outside"),
        ("loop", "is not there, or outside"),
        ("out", "outside the allowed roots"),
        ("a/top", "outside the allowed roots"),
        ("..", "outside the allowed roots"),
        ("/", "outside the allowed roots"),
        ("a/b/../../..", "outside the allowed roots"),
        ("inside/../../../..", "outside the allowed roots"),
        (outside.path().to_str().unwrap(), "outside the allowed roots"),
        (beside.to_str().unwrap(), "outside the allowed roots"),
        ("nul\0", "nul"),
    ];
    for (wanted, why) in bad {
        let refused = places(&rig).folder(wanted).unwrap_err();
        assert!(refused.starts_with("working folder ") && refused.contains(why), "{refused}");
        assert!(!refused.contains('\0'), "{refused}");
    }
    let long = "x".repeat(100_000);
    let refused = places(&rig).folder(&long).unwrap_err();
    assert!(refused.len() < 1_000, "{} bytes", refused.len());
    fs::remove_dir(&beside).unwrap();
}

/// A folder that was worked in is known; what became of it since counts all the same.
#[test]
fn a_known_folder_is_not_trusted() {
    let outside = temp_dir();
    let rig = Rig::new(|setup| setup);
    let (own, session) = (real(&rig.dir), SessionId::parse("s").unwrap());
    let (folder, moved) = (own.join("work"), real(&outside).join("moved"));
    fs::create_dir(&folder).unwrap();
    let place = || places(&rig).place(&session, folder.to_str(), None);
    let at = |place: &Place| (place.cwd.clone(), place.root.as_ref().unwrap().path().to_path_buf());
    assert_eq!(at(&place()), (folder.clone(), folder.clone()));
    // The very same folder, by the very same name, but outside.
    fs::rename(&folder, &moved).unwrap();
    symlink(&moved, &folder).unwrap();
    assert_eq!(at(&place()), (own.clone(), own.clone()));
    // Another one, by the same name.
    fs::remove_file(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("AGENTS.md"), "new").unwrap();
    let there = place();
    assert_eq!(at(&there), (folder.clone(), folder.clone()));
    // One inside, by a link.
    fs::rename(&folder, own.join("other")).unwrap();
    symlink(own.join("other"), &folder).unwrap();
    assert_eq!(at(&place()), (own.join("other"), own.join("other")));
    fs::remove_file(&folder).unwrap();
    assert_eq!(at(&place()), (own.clone(), own.clone()));
}
