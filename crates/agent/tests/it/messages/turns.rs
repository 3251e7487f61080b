//! What of a turn is a message, however the turn went.

use polyloop_agent::messages::Messages;
use polyloop_session::command::WaitReply;
use polyloop_session::state::Phase;
use polyloop_session::{Command, Target};

use super::super::client::Client;
use super::super::faults::{Break, How, Moment, Op};
use super::super::make::{approve, interrupt, who};
use super::super::model::{Strings, adding};
use super::super::rig::memory;
use super::{Stage, all, texts};

/// The messages are these, and what the log says.
async fn check(stage: &Stage, messages: &Messages, want: &[(&str, &str)]) {
    let found = all(messages, "s").await;
    assert_eq!(texts(&found), want);
    assert_eq!(found, stage.said("s").await);
}

async fn turn(client: &mut Client, text: &str) {
    client.send(text).await.unwrap();
    client.until_idle().await.unwrap();
}

#[tokio::test]
async fn queued_messages_stand_in_the_order_of_the_conversation() {
    let (model, strings) = Strings::new();
    let stage = Stage::new(|_| memory(), |setup| setup.model(model));
    let messages = stage.messages().await;
    let mut client = stage.client("s").await;
    let hands = [strings.hand(), strings.hand(), strings.hand()];
    client.send("first").await.unwrap();
    let calls = |c: &Client| c.state.turn().is_some_and(|turn| turn.main.phase == Phase::Calling);
    client.until("the call", calls).await.unwrap();
    // Its words are there as soon as it is asked, those that wait are not.
    check(&stage, &messages, &[("user", "first")]).await;
    client.send("second").await.unwrap();
    client.send("dropped").await.unwrap();
    client.send("third").await.unwrap();
    let dropped = client.state.queue()[1].id;
    client.command(Command::Cancel { target: Target::Message(dropped), by: who() }).await.unwrap();
    hands[0].begin();
    hands[0].say("one");
    client.until("a word", |c| c.was_shown("one")).await.unwrap();
    check(&stage, &messages, &[("user", "first")]).await;
    hands[0].finish();
    let is_second = |c: &Client| c.texts().len() == 1 && calls(c) && c.state.queue().len() == 1;
    client.until("the second turn", is_second).await.unwrap();
    check(&stage, &messages, &[("user", "first"), ("assistant", "one"), ("user", "second")]).await;
    for (hand, text) in hands[1..].iter().zip(["two", "three"]) {
        hand.begin();
        hand.say(text);
        hand.finish();
    }
    client.until_idle().await.unwrap();
    let want = [
        ("user", "first"),
        ("assistant", "one"),
        ("user", "second"),
        ("assistant", "two"),
        ("user", "third"),
        ("assistant", "three"),
    ];
    check(&stage, &messages, &want).await;
}

#[tokio::test]
async fn reasoning_tools_and_failures_are_no_messages() {
    let stage = Stage::in_memory();
    std::fs::write(stage.dir.path().join("work/f.txt"), "start\n").unwrap();
    let messages = stage.messages().await;
    let mut client = stage.client("s").await;
    turn(&mut client, "think: hidden\nsay: shown").await;
    turn(&mut client, "say: taken back\nfail: 500").await;
    turn(&mut client, "say: cut off\nfail: disconnect").await;
    let edit = format!("say: I edit\ntool: apply_patch {}\nsay: edited", adding("f.txt", "ran"));
    client.send(&edit).await.unwrap();
    client.until("a request", Client::can_decide).await.unwrap();
    let before = all(&messages, "s").await;
    client.settle(WaitReply::Explain).await.unwrap();
    let is_more = |c: &Client| c.texts().len() == 5 && c.can_decide();
    client.until("an explanation", is_more).await.unwrap();
    let explained = client.texts()[4].to_owned();
    assert!(!explained.is_empty());
    let after = all(&messages, "s").await;
    assert_eq!(texts(&after[before.len()..]), [("assistant", &*explained)]);
    client.settle(approve()).await.unwrap();
    client.until_idle().await.unwrap();
    let mut want = vec![
        ("user", "think: hidden\nsay: shown"),
        ("assistant", "shown"),
        ("user", "say: taken back\nfail: 500"),
        ("user", "say: cut off\nfail: disconnect"),
        ("user", &*edit),
        ("assistant", "I edit"),
        ("assistant", &*explained),
        ("assistant", "edited"),
    ];
    check(&stage, &messages, &want).await;

    // A summary is no message, and takes none away.
    client.command(Command::Compact { by: who() }).await.unwrap();
    client.until_idle().await.unwrap();
    assert!(client.state.line().pieces().len() < 4, "nothing was compacted");
    check(&stage, &messages, &want).await;
    turn(&mut client, "say: after").await;
    want.extend([("user", "say: after"), ("assistant", "after")]);
    check(&stage, &messages, &want).await;
}

#[tokio::test]
async fn what_was_said_before_an_interruption_or_a_crash_counts() {
    let (model, strings) = Strings::new();
    let stage = Stage::new(|_| memory(), |setup| setup.model(model));
    let messages = stage.messages().await;
    let mut client = stage.client("s").await;
    let hand = strings.hand();
    client.send("stop me").await.unwrap();
    hand.begin();
    hand.say("half an ans");
    client.until("a word", |c| c.was_shown("half")).await.unwrap();
    client.command(interrupt()).await.unwrap();
    client.until_idle().await.unwrap();
    let mut want = vec![("user", "stop me"), ("assistant", "half an ans")];
    check(&stage, &messages, &want).await;

    let hand = strings.hand();
    client.send("crash").await.unwrap();
    hand.begin();
    hand.say("so far");
    client.until("a word", |c| c.was_shown("so far")).await.unwrap();
    let broken = Break { moment: Moment::Before, how: How::Error };
    stage.log.break_when(move |write| matches!(write.op, Op::Grow).then_some(broken));
    hand.say(" so good");
    client.until_end().await;
    want.push(("user", "crash"));
    check(&stage, &messages, &want).await;
    // Opened again, its log says what was cut.
    let mut client = stage.client("s").await;
    want.push(("assistant", "so far"));
    check(&stage, &messages, &want).await;

    // To go on is to say nothing.
    let hand = strings.hand();
    client.command(Command::Resume { by: who() }).await.unwrap();
    hand.begin();
    hand.say("and on");
    hand.finish();
    client.until_idle().await.unwrap();
    want.push(("assistant", "and on"));
    check(&stage, &messages, &want).await;
}
