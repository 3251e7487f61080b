//! Putting sessions away: never under someone's hands, and never a word lost.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use polyloop_agent::actor::CommandError;
use polyloop_agent::log::{Flush, Log, OpenMode};
use polyloop_agent::sessions::{Archived, Sessions};
use polyloop_agent::todos::Todos;
use polyloop_session::{Refusal, Seq, Timestamp, WaitRef};

use super::client::{APPROVE, CLIENT, Client};
use super::make::{approve, entry, id, interrupt, queued, send, settle, who};
use super::model::{acting, adding};
use super::rig::{Rig, Setup, files, in_time, memory, read_all, stop, temp_dir};
use super::view::{Kind, Seeing};

async fn archive(sessions: &Sessions<Seeing>, name: &str) -> Archived {
    in_time("the archiving", sessions.archive(&id(name))).await.unwrap()
}

#[tokio::test]
async fn an_idle_session_is_put_away_and_its_name_is_free() {
    let rig = Rig::offline();
    assert_eq!(archive(&rig.sessions, "s").await, Archived::NotFound);
    for n in 0..3 {
        let mut client = rig.client("s").await;
        assert_eq!(client.entries.len(), 1, "nothing is left of the last one");
        client.send(&format!("say: {n}")).await.unwrap();
        client.until_idle().await.unwrap();
        drop(client);
        assert_eq!(archive(&rig.sessions, "s").await, Archived::Done);
        assert!(rig.sessions.list().await.unwrap().is_empty());
        assert_eq!(archive(&rig.sessions, "s").await, Archived::NotFound);
    }
    assert_eq!(rig.log.writers(), 0);
}

#[tokio::test]
async fn a_session_in_use_is_not_put_away() {
    let file = "counted.txt";
    let rig = Rig::new(|setup| setup.model(acting(vec![("apply_patch", adding(file, "ran"))])));
    rig.countable(file);
    // Someone watches.
    let mut client = rig.client("s").await;
    assert_eq!(archive(&rig.sessions, "s").await, Archived::Active);
    // Nobody watches, but a turn waits for an answer.
    client.send("go").await.unwrap();
    client.until("the request", |c| c.wait().is_some()).await.unwrap();
    let wait = client.wait().unwrap();
    let handle = client.handle.clone();
    drop(client);
    assert_eq!(archive(&rig.sessions, "s").await, Archived::Active);
    handle.command(settle(WaitRef::Id(wait), approve())).await.unwrap();
    let mut client = rig.client("s").await;
    client.until_idle().await.unwrap();
    assert_eq!(rig.count(file, "ran"), 1);
    drop(client);
    assert_eq!(archive(&rig.sessions, "s").await, Archived::Done);
}

#[tokio::test]
async fn a_session_that_is_being_opened_is_waited_for() {
    let rig = Rig::offline();
    let gate = rig.log.hold();
    let (handle, kind, sessions) = (rig.handle("s"), rig.kind, rig.sessions.clone());
    let attaching =
        tokio::spawn(async move { handle.attach(kind, None, APPROVE, CLIENT).await.unwrap() });
    while rig.log.busy() == 0 {
        tokio::task::yield_now().await;
    }
    let archiving = tokio::spawn(async move { archive(&sessions, "s").await });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(10);
    let attached = in_time("the attachment", attaching).await.unwrap();
    // Whoever of the two was first at the actor: both orders are fine, but not both at once.
    match in_time("the archiving", archiving).await.unwrap() {
        Archived::Active => {}
        Archived::Done => assert!(rig.sessions.list().await.unwrap().is_empty()),
        Archived::NotFound => panic!("the session was there"),
    }
    assert_eq!(rig.log.busy_max(), 1);
    drop(attached);
}

/// Whoever asked for it has left; nobody may open the session until it is really away.
#[tokio::test]
async fn an_archiving_is_not_cut_short_when_who_asked_for_it_leaves() {
    let rig = Rig::offline();
    drop(rig.client("s").await);
    let gate = rig.log.hold();
    let name = id("s");
    let mut archiving = Box::pin(rig.sessions.archive(&name));
    while rig.log.busy() == 0 {
        assert!((&mut archiving).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    drop(archiving);
    let (handle, kind) = (rig.handle("s"), rig.kind);
    let attaching = tokio::spawn(async move { handle.attach(kind, None, APPROVE, CLIENT).await });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(10);
    assert!(in_time("the attachment", attaching).await.unwrap().is_ok());
    assert_eq!(rig.log.busy_max(), 1, "it was opened while it was put away");
}

fn lines_with(dir: &Path, word: &str) -> usize {
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let lines = files.filter(|path| path.extension().is_some_and(|kind| kind == "jsonl"));
    let count = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().filter(|line| line.contains(word)).count()
    };
    lines.map(count).sum()
}

/// Messages and archivings at the same time: a message that was taken is in one of the files.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_message_is_lost_to_an_archiving() {
    const MESSAGES: usize = 200;
    let (work, store) = (temp_dir(), temp_dir());
    let log = files(store.path());
    let sessions = Setup::new(log.clone()).start(work.path());
    let (speaking, putting_away) = (sessions.clone(), sessions.clone());
    let speaker = tokio::spawn(async move {
        let (handle, mut taken) = (speaking.handle(id("s"), who()), 0);
        for n in 0..MESSAGES {
            match handle.command(send(&format!("say: {n}"))).await {
                Ok(_) => taken += 1,
                // Put away again and again under its hands: it was not done, and says so.
                Err(CommandError::Store(_) | CommandError::Failed(_) | CommandError::Moved) => {}
                // It speaks faster than turns end.
                Err(CommandError::Refused(Refusal::QueueFull { .. })) => {
                    tokio::task::yield_now().await;
                }
                Err(CommandError::Refused(refusal)) => panic!("{refusal}"),
            }
        }
        taken
    });
    let archiver = tokio::spawn(async move {
        let mut done = 0;
        while !speaker.is_finished() {
            done += usize::from(archive(&putting_away, "s").await == Archived::Done);
        }
        (speaker.await.unwrap(), done)
    });
    let (taken, done) = in_time("all messages", archiver).await.unwrap();
    assert!(done > 0 && taken > 0, "{taken} taken, {done} put away");
    stop(sessions, log).await;
    assert_eq!(lines_with(store.path(), "message_queued"), taken);
}

/// Two of one name that are put away in the same moment stay two.
#[tokio::test]
async fn what_was_put_away_before_is_not_replaced() {
    let store = temp_dir();
    let log = files(store.path());
    for n in 0..3 {
        let mut opened = log.open(&id("s"), OpenMode::OrCreate).await.unwrap().unwrap();
        let first = [Arc::new(entry(1, queued(&format!("number {n}"))))];
        opened.writer.append(Seq::NONE, &first, Flush::Process).await.unwrap();
        drop(opened);
        assert!(log.archive(&id("s"), Timestamp(7)).await.unwrap());
    }
    assert_eq!(lines_with(store.path(), "number"), 3);
}

/// The todos file goes with its session.
#[tokio::test]
async fn the_todos_file_is_put_away_too() {
    let (work, store) = (temp_dir(), temp_dir());
    let log = memory();
    let todos = Todos::open(store.path()).unwrap();
    let file = todos.path(&id("s"));
    let sessions = Sessions::new(Setup::new(log.clone()).kit(work.path()), Some(todos));
    let kind = Kind::new();
    let mut client = Client::attach(sessions.handle(id("s"), who()), kind).await.unwrap();
    assert!(std::fs::read_to_string(&file).unwrap().contains("Session ID: `s`"));
    std::fs::write(&file, "mine").unwrap();
    client.send("fail: hang").await.unwrap();
    assert_eq!(archive(&sessions, "s").await, Archived::Active);
    client.command(interrupt()).await.unwrap();
    client.until_idle().await.unwrap();
    drop(client);
    assert_eq!(archive(&sessions, "s").await, Archived::Done);
    assert!(!file.exists());
    let kept: Vec<String> = std::fs::read_dir(store.path())
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    assert_eq!(kept, ["mine"]);
    assert!(read_all(&*log, &id("s")).await.is_empty());
}

#[test]
fn a_todos_file_that_was_put_away_before_is_not_replaced() {
    let (work, store) = (temp_dir(), temp_dir());
    let todos = Todos::open(store.path()).unwrap();
    for _ in 0..3 {
        todos.create(&id("s"), Timestamp(7)).unwrap();
        todos.archive(&id("s"), work.path(), Timestamp(7)).unwrap();
    }
    assert_eq!(std::fs::read_dir(store.path()).unwrap().count(), 3);
}
