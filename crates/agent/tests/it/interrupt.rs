//! Whatever a turn is doing, an interruption ends it: nothing runs on, and the session is as good
//! as before.

use polyloop_session::command::Target;
use polyloop_session::event::{CallOutcome, Outcome, Stop, Work};
use polyloop_session::item::End;
use polyloop_session::next::WITHDRAWN_TEXT;
use polyloop_session::policy::Mode;
use polyloop_session::{Command, Event, Refusal, Seq, TurnId, WaitRef};

use super::client::{Client, PID, endings, outcome, refusal};
use super::make::{approve, id, interrupt, send, settle, who};
use super::model::adding;
use super::rig::{Rig, Setup, check_at_rest, helper, in_time, is_running};

const COUNTED: &str = "counted.txt";

fn interrupted() -> Outcome {
    Outcome::Interrupted { reason: "enough".into() }
}

/// The turn has ended as wanted, and the next one is worked as if nothing had happened.
async fn check_usable(rig: &Rig, client: &mut Client) {
    assert_eq!(outcome(client), &interrupted());
    assert!(client.state.interrupted().unwrap().by_person);
    let said = client.texts().len();
    client.send("say: and again").await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(client.texts()[said..], ["and again"]);
    assert_eq!(outcome(client), &Outcome::Completed);
    assert_eq!(refusal(client.try_command(interrupt()).await), Refusal::NothingRunning);
    in_time("the end of all sessions", rig.sessions.close()).await;
    check_at_rest(&*rig.log, &id("s")).await;
}

#[tokio::test]
async fn a_model_that_hangs() {
    let rig = Rig::offline();
    let mut client = rig.client("s").await;
    client.send("say: well\nfail: hang").await.unwrap();
    client.until("the words", |c| c.texts() == ["well"]).await.unwrap();
    client.command(interrupt()).await.unwrap();
    client.until_idle().await.unwrap();
    let stopped =
        |event: &Event| matches!(event, Event::CallEnded { outcome: CallOutcome::Stopped, .. });
    assert_eq!((client.count(stopped), endings(&client)), (1, vec![(End::Whole, "well")]));
    check_usable(&rig, &mut client).await;
}

#[tokio::test]
async fn a_command_that_sleeps() {
    let rig = Rig::new(|setup| Setup { mode: Mode::Bypass, helper: helper(), ..setup });
    let mut client = rig.client("s").await;
    client.send("run: echo pid $$; sleep 300 & echo pid $!; sleep 300\nsay: never").await.unwrap();
    client.until("the ids of both processes", |c| c.output(PID).len() == 2).await.unwrap();
    let processes = client.output(PID);
    assert!(processes.iter().all(|process| is_running(process)), "{processes:?}");
    client.command(interrupt()).await.unwrap();
    client.until_idle().await.unwrap();
    assert!(!processes.iter().any(|process| is_running(process)), "{processes:?} run on");
    assert_eq!(endings(&client)[0].0, End::Interrupted);
    check_usable(&rig, &mut client).await;
}

#[tokio::test]
async fn an_open_approval() {
    let rig = Rig::offline();
    rig.countable(COUNTED);
    let mut client = rig.client("s").await;
    let edit = format!("tool: apply_patch {}", adding(COUNTED, "ran"));
    client.send(&format!("{edit}\n&{edit}\nsay: never")).await.unwrap();
    check_withdrawn(&rig, &mut client).await;
    assert_eq!(rig.count(COUNTED, "ran"), 0);
}

#[tokio::test]
async fn an_open_question() {
    let rig = Rig::offline();
    let mut client = rig.client("s").await;
    client.send("ask: Well? | yes | no\nsay: never").await.unwrap();
    check_withdrawn(&rig, &mut client).await;
}

#[tokio::test]
async fn an_open_plan() {
    let rig = Rig::offline();
    let mut client = rig.client("s").await;
    client.command(Command::SetMode { mode: Mode::Plan, by: who() }).await.unwrap();
    client.send("plan: do it\nsay: never").await.unwrap();
    check_withdrawn(&rig, &mut client).await;
    assert_eq!(client.state.mode(), Mode::Plan, "nobody agreed to it");
}

async fn check_withdrawn(rig: &Rig, client: &mut Client) {
    client.until("the request", |c| c.wait().is_some()).await.unwrap();
    let wait = client.wait().unwrap();
    client.command(interrupt()).await.unwrap();
    client.until_idle().await.unwrap();
    let withdrawn = client.entries.iter().find_map(|entry| match &entry.event {
        Event::WaitWithdrawn { wait, reason, by } => Some((*wait, &**reason, by.is_none())),
        _ => None,
    });
    assert_eq!(withdrawn, Some((wait, WITHDRAWN_TEXT, true)));
    let late = client.try_command(settle(WaitRef::Id(wait), approve())).await;
    assert_eq!(refusal(late), Refusal::Withdrawn);
    assert!(client.texts().is_empty());
    assert_eq!(client.count(|event| matches!(event, Event::ToolStarted { .. })), 0);
    check_usable(rig, client).await;
}

/// Only the turn that was meant, and only once.
#[tokio::test]
async fn another_turn_is_left_alone() {
    let rig = Rig::offline();
    let mut client = rig.client("s").await;
    client.send("say: well\nfail: hang").await.unwrap();
    client.until("the words", |c| c.texts() == ["well"]).await.unwrap();
    let turn = client.state.turn().unwrap().id;
    let of = |turn| Command::Interrupt { turn: Some(turn), reason: "enough".into(), by: who() };
    let other = client.try_command(of(TurnId(Seq(turn.0.0 + 1)))).await;
    assert_eq!(refusal(other), Refusal::NoSuchTurn);
    assert!(client.state.turn().unwrap().stopping.is_none());
    client.command(of(turn)).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(refusal(client.try_command(of(turn)).await), Refusal::NoSuchTurn);
    check_usable(&rig, &mut client).await;
}

/// The message that began the turn, by its own name.
#[tokio::test]
async fn a_turn_is_ended_by_its_message_too() {
    let rig = Rig::offline();
    let mut client = rig.client("s").await;
    let message = client.try_command(send("fail: hang")).await.unwrap().message;
    client.until("the turn", |c| c.state.turn().is_some()).await.unwrap();
    let target = Target::Message(message.unwrap());
    client.command(Command::Cancel { target: target.clone(), by: who() }).await.unwrap();
    client.until_idle().await.unwrap();
    assert!(matches!(outcome(&client), Outcome::Interrupted { .. }));
    let again = client.try_command(Command::Cancel { target, by: who() }).await;
    assert_eq!(refusal(again), Refusal::UnknownTarget);
}

/// A command that ignores a polite request takes its time to end; who speaks meanwhile is heard
/// when it has.
#[tokio::test]
async fn a_message_that_comes_while_a_turn_is_stopping_is_next() {
    let rig = Rig::new(|setup| Setup { mode: Mode::Bypass, helper: helper(), ..setup });
    let mut client = rig.client("s").await;
    client.send("run: trap '' TERM; echo pid $$; while :; do sleep 300; done").await.unwrap();
    client.until("the command", |c| c.output(PID).len() == 1).await.unwrap();
    let process = client.output(PID).remove(0);
    let handle = client.handle.clone();
    // In one go, so that nothing comes between.
    let (stopped, sent) =
        tokio::join!(handle.command(interrupt()), handle.command(send("say: next")),);
    stopped.unwrap();
    let message = sent.unwrap().message.unwrap();
    client.until("the next answer", |c| c.texts() == ["next"] && c.is_idle()).await.unwrap();
    assert!(!is_running(&process), "{process} runs on");
    let order: Vec<&str> = client
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::TurnStopping { reason: Stop::Interrupted { .. } } => Some("stopping"),
            Event::MessageQueued { .. } if entry.seq == message.0 => Some("message"),
            Event::TurnEnded { outcome, .. } if *outcome == interrupted() => Some("interrupted"),
            Event::TurnStarted { work: Work::Message { message: begun }, .. } => {
                (*begun == message).then_some("begun")
            }
            Event::TurnEnded { .. } => Some("ended"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["stopping", "message", "interrupted", "begun", "ended"]);
}
