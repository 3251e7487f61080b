//! From an id to whoever runs it: one actor a session, however many ask for it at once and however
//! soon they leave.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::join_all;
use polyloop_agent::actor::MAILBOX_REQUESTS_MAX;
use polyloop_agent::log::Log;
use polyloop_session::policy::Mode;
use polyloop_session::{Command, Seq, SessionId};

use super::client::{APPROVE, CLIENT, Client};
use super::make::{id, send, who};
use super::model::Strings;
use super::rig::{Rig, Setup, files, in_time, read_all, stop, temp_dir};
use super::view::Kind;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_who_open_one_session_get_one_actor() {
    for _ in 0..20 {
        let rig = Arc::new(Rig::offline());
        let opens = (0..50).map(|_| {
            let rig = rig.clone();
            tokio::spawn(async move { rig.client("s").await })
        });
        let mut clients: Vec<Client> =
            join_all(opens).await.into_iter().map(|client| client.unwrap()).collect();
        assert_eq!(rig.log.opens(), 1);
        assert_eq!(rig.kind.opened(), 1);
        clients[0].send("say: to all").await.unwrap();
        for client in &mut clients {
            let what = "the answer";
            client.until(what, |c| c.is_idle() && !c.texts().is_empty()).await.unwrap();
            assert_eq!(client.texts(), ["to all"]);
            assert_eq!(client.entries, read_all(&*rig.log, &id("s")).await);
        }
    }
}

/// Many more than a mailbox holds: they wait in line, and each is done once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_requests_at_once_are_all_answered() {
    const REQUESTS: usize = 20 * MAILBOX_REQUESTS_MAX;
    let rig = Rig::offline();
    let asking = (0..REQUESTS).map(|n| {
        let handle = rig.handle("s");
        tokio::spawn(async move {
            match n % 2 {
                0 => {
                    handle.command(Command::SetMode { mode: Mode::Plan, by: who() }).await.map(drop)
                }
                _ => handle.context_info().await.map(drop),
            }
        })
    });
    for done in in_time("all answers", join_all(asking)).await {
        done.unwrap().unwrap();
    }
    assert_eq!(rig.log.opens(), 1);
    assert_eq!(read_all(&*rig.log, &id("s")).await.len(), 1 + REQUESTS / 2);
}

#[tokio::test]
async fn an_opening_is_not_cut_short_when_who_asked_for_it_leaves() {
    let rig = Rig::offline();
    let gate = rig.log.hold();
    let handle = rig.handle("s");
    for _ in 0..3 {
        let mut attaching = Box::pin(handle.attach(rig.kind, None, APPROVE, CLIENT));
        while rig.log.busy_max() == 0 {
            assert!((&mut attaching).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        assert!((&mut attaching).now_or_never().is_none());
    }
    let (other, kind) = (rig.handle("s"), rig.kind);
    let attaching = tokio::spawn(async move { other.attach(kind, None, APPROVE, CLIENT).await });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(10);
    assert!(in_time("the attachment", attaching).await.unwrap().is_ok());
    assert_eq!(rig.log.busy_max(), 1, "two opened the session at the same time");
    assert_eq!(rig.log.opens(), 1);
}

/// The same with real files: the journal of the one that stays is where it belongs.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_leaves_early_takes_no_files_along() {
    let (work, store) = (temp_dir(), temp_dir());
    let log = files(store.path());
    let (model, strings) = Strings::new();
    let sessions = Setup::new(log.clone()).model(model).start(work.path());
    for n in 0..100 {
        let name = format!("s{n}");
        let handle = sessions.handle(id(&name), who());
        for _ in 0..3 {
            // Whether it was quick enough to have an answer makes no difference.
            drop(handle.attach(Kind::new(), None, APPROVE, CLIENT).now_or_never());
        }
        let mut client = Client::attach(handle, Kind::new()).await.unwrap();
        let hand = strings.hand();
        client.send("a question").await.unwrap();
        hand.begin();
        hand.say("half an answer");
        client.until("growth", |c| c.was_shown("half an answer")).await.unwrap();
        let journal = std::fs::metadata(store.path().join(format!("{name}.live")));
        assert!(journal.is_ok_and(|meta| meta.len() > 0), "session {n} has no journal");
    }
    stop(sessions, log).await;
}

#[tokio::test]
async fn a_new_session_is_listed_and_has_an_id_of_its_own() {
    let rig = Rig::offline();
    let settings = || rig.sessions.kit().settings.clone();
    let one = rig.sessions.create(who(), settings()).await.unwrap();
    let two = rig.sessions.create(who(), settings()).await.unwrap();
    assert_ne!(one.id, two.id);
    let mut listed: Vec<SessionId> =
        rig.sessions.list().await.unwrap().into_iter().map(|summary| summary.id).collect();
    let mut made = vec![one.id.clone(), two.id];
    listed.sort();
    made.sort();
    assert_eq!(listed, made);
    let handle = rig.sessions.handle(one.id.clone(), who());
    handle.command(send("say: hi")).await.unwrap();
    assert!(!rig.log.read(&one.id, Seq(1), Seq(9)).await.unwrap().is_empty());
}
