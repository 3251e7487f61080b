//! Onlookers see everything and hold up nothing; and whoever wants to know is told of every
//! session that is opened.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use polyloop_agent::sessions::Archived;
use polyloop_agent::subscriber::{Ending, Power, Presence};
use polyloop_session::SessionId;

use super::client::Client;
use super::faults::How;
use super::make::{id, interrupt, send, who};
use super::rig::{Rig, Setup, in_time};

const SHORT: Duration = Duration::from_millis(10);

async fn onlooker(rig: &Rig, name: &str) -> Client {
    let attaching = Client::attach_as(rig.handle(name), rig.kind, Power::Watch, Presence::Onlooker);
    attaching.await.unwrap()
}

async fn archive(rig: &Rig) -> Archived {
    in_time("the archiving", rig.sessions.archive(&id("s"))).await.unwrap()
}

#[tokio::test]
async fn an_onlooker_does_not_keep_a_session_awake() {
    let rig = Rig::new(|setup| Setup { sleep_after: SHORT, ..setup });
    let mut idle = onlooker(&rig, "s").await;
    assert_eq!(idle.until_end().await, Ending::Closed);
    rig.log.until_writers(0).await;
    // It sees a turn to its end, and whatever is recorded before the session sleeps.
    let mut client = rig.client("s").await;
    let mut onlooker = onlooker(&rig, "s").await;
    client.send("stream: 5 9 2\nsay: seen").await.unwrap();
    client.until_idle().await.unwrap();
    drop(client);
    assert_eq!(onlooker.until_end().await, Ending::Closed);
    rig.log.until_writers(0).await;
    assert_eq!(onlooker.texts().last(), Some(&"seen"));
    assert!(onlooker.growths > 0 && onlooker.is_idle());
    assert_eq!(rig.kind.open(), 0);
}

/// A turn keeps it awake all the same.
#[tokio::test]
async fn a_turn_that_only_onlookers_see_is_worked_to_its_end() {
    let rig = Rig::new(|setup| Setup { sleep_after: SHORT, ..setup });
    rig.handle("s").command(send("stream: 20 9 3\nsay: seen")).await.unwrap();
    let mut onlooker = onlooker(&rig, "s").await;
    assert_eq!(onlooker.until_end().await, Ending::Closed);
    assert_eq!(onlooker.texts().last(), Some(&"seen"));
}

#[tokio::test]
async fn a_session_with_onlookers_alone_can_be_put_away() {
    let rig = Rig::offline();
    let (mut one, mut two) = (onlooker(&rig, "s").await, onlooker(&rig, "s").await);
    let mut client = rig.client("s").await;
    assert_eq!(archive(&rig).await, Archived::Active);
    client.send("fail: hang").await.unwrap();
    let handle = client.handle.clone();
    drop(client);
    assert_eq!(archive(&rig).await, Archived::Active, "a turn runs");
    handle.command(interrupt()).await.unwrap();
    one.until("the end", |c| c.entries.len() > 3 && c.is_idle()).await.unwrap();
    assert_eq!(archive(&rig).await, Archived::Done);
    for onlooker in [&mut one, &mut two] {
        assert_eq!(onlooker.until_end().await, Ending::Closed);
    }
    assert!(rig.sessions.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn every_opening_is_told() {
    let rig = Rig::new(|setup| Setup { sleep_after: SHORT, ..setup });
    rig.handle("before").look().await.unwrap();
    let opened: Arc<Mutex<Vec<SessionId>>> = Arc::default();
    let told = opened.clone();
    rig.sessions.on_open(move |id| told.lock().unwrap().push(id.clone()));
    let mut want = Vec::new();
    for _ in 0..3 {
        // The first use opens it; more of it, while it is awake, do not.
        let mut client = rig.client("s").await;
        client.send("say: hi").await.unwrap();
        client.until_idle().await.unwrap();
        rig.handle("s").look().await.unwrap();
        want.push(id("s"));
        assert_eq!(*opened.lock().unwrap(), want);
        drop(client);
        rig.log.until_writers(0).await;
    }
    let made = rig.sessions.create(who(), rig.sessions.kit().settings.clone()).await.unwrap();
    let mut passing = Client::attach(rig.sessions.passing(who()), rig.kind).await.unwrap();
    want.extend([made.id, passing.handle.id().clone()]);
    assert_eq!(*opened.lock().unwrap(), want);
    // One that cannot be opened was not.
    rig.log.break_open(How::Error);
    assert!(rig.handle("t").look().await.is_err());
    rig.sessions.close().await;
    assert!(rig.handle("t").look().await.is_err());
    passing.until_end().await;
    assert_eq!(*opened.lock().unwrap(), want);
}

/// Whoever is told may go and look at once, in a task of their own.
#[tokio::test]
async fn who_is_told_of_an_opening_can_attach() {
    let rig = Rig::offline();
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let (sessions, kind) = (rig.sessions.clone(), rig.kind);
    rig.sessions.on_open(move |id| {
        let (handle, sender) = (sessions.handle(id.clone(), who()), sender.clone());
        tokio::spawn(async move {
            let (power, presence) = (Power::Watch, Presence::Onlooker);
            let mut onlooker = Client::attach_as(handle, kind, power, presence).await.unwrap();
            onlooker.until("the words", |c| c.texts() == ["hi"]).await.unwrap();
            sender.send(()).unwrap();
        });
    });
    rig.handle("s").command(send("say: hi")).await.unwrap();
    in_time("the onlooker", seen.recv()).await.unwrap();
    assert_eq!(rig.log.opens(), 1);
}
