//! The server stops: what runs is ended and its last words are kept, what waits stays open.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use polyloop_agent::actor::CommandError;
use polyloop_agent::model::{Model, Request};
use polyloop_agent::subscriber::Ending;
use polyloop_session::command::WaitReply;
use polyloop_session::event::{Outcome, Purpose};
use polyloop_session::history::Message;
use polyloop_session::item::End;
use polyloop_session::policy::Mode;
use polyloop_session::wait::Then;
use polyloop_session::{Stream, WaitRef};

use super::client::{Client, PID, endings, outcome};
use super::faults::Faulty;
use super::make::{approve, deny, id, parts, send, settle};
use super::model::{Puppet, Strings, acting, adding, called, in_turn, said};
use super::rig::{Rig, Setup, check_at_rest, helper, in_time, is_running, temp_dir};

const COUNTED: &str = "counted.txt";

async fn close(rig: &Rig) {
    in_time("the end of all sessions", rig.sessions.close()).await;
    assert_eq!(rig.log.writers(), 0);
}

/// Another server on the same log.
fn successor(rig: &Rig) -> Rig {
    let log = Faulty::new(rig.log.clone());
    let dir = temp_dir();
    let sessions = Setup::new(log.clone()).start(rig.dir.path());
    Rig { dir, log, sessions, kind: rig.kind }
}

#[tokio::test]
async fn a_model_call_is_ended_and_what_it_said_is_kept() {
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let hand = strings.hand();
    let mut client = rig.client("s").await;
    client.send("a question").await.unwrap();
    client.send("another").await.unwrap();
    hand.begin();
    hand.say("half an answer");
    client.until("the words", |c| c.was_shown("half an answer")).await.unwrap();
    close(&rig).await;
    assert_eq!(client.until_end().await, Ending::Closed);
    assert_eq!(endings(&client), [(End::Cut, "half an answer")]);
    assert!(matches!(outcome(&client), Outcome::Interrupted { .. }));
    assert!(!client.state.interrupted().unwrap().by_person, "nobody wanted it so");
    check_at_rest(&*rig.log, &id("s")).await;

    match client.try_command(send("too late")).await {
        Err(CommandError::Store(why) | CommandError::Failed(why)) => {
            assert!(why.contains("shutting down"), "{why}")
        }
        other => panic!("{other:?}"),
    }
    // The next server finds nothing to repair, and what was queued is still there.
    let next = successor(&rig);
    let again = next.client("s").await;
    assert_eq!(again.entries, client.entries);
    assert_eq!(again.state.queue().len(), 1);
}

#[tokio::test]
async fn an_open_request_stays_open() {
    let calls = vec![("apply_patch", adding(COUNTED, "ran"))];
    let rig = Rig::new(|setup| setup.model(acting(calls)));
    rig.countable(COUNTED);
    let mut client = rig.client("s").await;
    client.send("go").await.unwrap();
    client.until("the request", |c| c.wait().is_some()).await.unwrap();
    let wait = client.wait();
    close(&rig).await;
    assert_eq!(client.until_end().await, Ending::Closed);
    assert_eq!(client.wait(), wait);

    let next = successor(&rig);
    let mut again = next.client("s").await;
    assert_eq!(again.wait(), wait, "with the same id");
    assert_eq!(again.entries, client.entries);
    again.settle(approve()).await.unwrap();
    again.until_idle().await.unwrap();
    assert_eq!(rig.count(COUNTED, "ran"), 1);
}

/// Proposes an edit, never gets to the end of explaining it, and never answers "hang".
fn slow_to_explain() -> Arc<dyn Model> {
    Arc::new(Puppet(|request: Request| {
        let last = request.prompt.messages.last();
        match (request.prompt.purpose, last) {
            (Purpose::Explain { .. }, _) => stream::pending().boxed(),
            (_, Some(Message::ToolResult { .. })) => in_turn(said("done")),
            (_, Some(last)) if *last == Message::User(parts("hang")) => stream::pending().boxed(),
            _ => in_turn(called(&[("apply_patch", adding(COUNTED, "ran"))])),
        }
    }))
}

/// A client who was asked for approval and has asked back, which will take for ever.
async fn being_explained(rig: &Rig) -> Client {
    rig.countable(COUNTED);
    let mut client = rig.client("s").await;
    client.send("go").await.unwrap();
    client.until("the request", |c| c.wait().is_some()).await.unwrap();
    client.settle(WaitReply::Explain).await.unwrap();
    let called = |c: &Client| c.state.turn().is_some_and(|turn| !turn.calls.is_empty());
    client.until("the call", called).await.unwrap();
    client
}

/// A server that stops in good order takes no more than one that is killed.
#[tokio::test]
async fn a_request_that_is_being_explained_stays_open() {
    let rig = Rig::new(|setup| setup.model(slow_to_explain()));
    let mut client = being_explained(&rig).await;
    let wait = client.wait();
    close(&rig).await;
    assert_eq!(client.until_end().await, Ending::Closed);
    assert_eq!(client.wait(), wait);
    check_at_rest(&*rig.log, &id("s")).await;

    let next = successor(&rig);
    let mut again = next.client("s").await;
    assert_eq!(again.wait(), wait);
    assert!(again.can_decide());
    assert_eq!(again.entries, client.entries, "nothing was left to repair");
    again.settle(approve()).await.unwrap();
    again.until_idle().await.unwrap();
    assert_eq!(rig.count(COUNTED, "ran"), 1);
}

/// A denial ends the turn, and the next message would begin another, in the very moment when the
/// server stops.
#[tokio::test]
async fn nothing_begins_while_the_server_stops() {
    for _ in 0..30 {
        let rig = Rig::new(|setup| setup.model(slow_to_explain()));
        let mut client = being_explained(&rig).await;
        client.send("hang").await.unwrap();
        let denied = client.try_command(settle(WaitRef::Presented, deny(Then::EndTurn)));
        let (denied, ()) = tokio::join!(denied, close(&rig));
        denied.unwrap();
        assert_eq!(client.until_end().await, Ending::Closed);
        assert!(client.state.turn().is_none());
        check_at_rest(&*rig.log, &id("s")).await;
    }
}

#[tokio::test]
async fn a_command_is_ended_with_all_that_it_started() {
    let rig = Rig::new(|setup| Setup { mode: Mode::Bypass, helper: helper(), ..setup });
    let mut client = rig.client("s").await;
    client.send("run: echo pid $$; sleep 300 & echo pid $!; wait").await.unwrap();
    client.until("the ids of both processes", |c| c.output(PID).len() == 2).await.unwrap();
    let processes = client.output(PID);
    assert!(processes.iter().all(|process| is_running(process)), "{processes:?}");

    close(&rig).await;
    assert!(!processes.iter().any(|process| is_running(process)), "{processes:?} run on");
    assert_eq!(client.until_end().await, Ending::Closed);
    let output = client.shown.iter().filter(|((_, stream), _)| *stream == Stream::Output);
    let shown: String = output.map(|(_, text)| text.as_str()).collect();
    assert!(shown.ends_with(&format!("pid {}\npid {}\n", processes[0], processes[1])), "{shown}");
    assert_eq!(endings(&client), [(End::Interrupted, shown.as_str())]);
    assert!(matches!(outcome(&client), Outcome::Interrupted { .. }));
    check_at_rest(&*rig.log, &id("s")).await;
}

/// All of them end side by side, and none is forgotten.
#[tokio::test]
async fn many_sessions_end_at_once() {
    let rig = Rig::offline();
    let mut clients = Vec::new();
    for n in 0..50 {
        let mut client = rig.client(&format!("s{n}")).await;
        client.send("say: at work\nfail: hang").await.unwrap();
        client.until("the words", |c| c.was_shown("at work")).await.unwrap();
        clients.push(client);
    }
    close(&rig).await;
    for (n, mut client) in clients.into_iter().enumerate() {
        assert_eq!(client.until_end().await, Ending::Closed);
        assert!(matches!(outcome(&client), Outcome::Interrupted { .. }), "{n}");
        check_at_rest(&*rig.log, &id(&format!("s{n}"))).await;
    }
}
