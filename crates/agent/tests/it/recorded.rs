//! What a command came to, and how a session looks from outside.

use std::collections::HashSet;

use polyloop_session::event::{Agent, Setting};
use polyloop_session::policy::Mode;
use polyloop_session::{Command, Delivery, Event, MessageId, Refusal, WaitRef};

use super::client::{Client, refusal};
use super::make::{approve, deliver, interrupt, parts, send, settle, who};
use super::model::{acting, adding};
use super::rig::{Rig, in_time};

/// The entry of that number, which must be a message of these words.
fn check_named(client: &Client, message: Option<MessageId>, text: &str) {
    let seq = message.expect("no message was named").0;
    let entry = client.entries.iter().find(|entry| entry.seq == seq).expect("no such entry");
    match &entry.event {
        Event::MessageQueued { content, .. } => assert_eq!(*content, parts(text)),
        other => panic!("no message: {other:?}"),
    }
}

async fn sent(client: &mut Client, text: &str) -> Option<MessageId> {
    let recorded = client.try_command(send(text)).await.unwrap();
    client.until("the answer", |c| c.last() > recorded.message.unwrap().0).await.unwrap();
    client.until_idle().await.unwrap();
    recorded.message
}

#[tokio::test]
async fn a_message_is_named_by_its_entry() {
    let rig = Rig::offline();
    let mut client = rig.client("s").await;
    for text in ["say: one", "say: two"] {
        let message = sent(&mut client, text).await;
        check_named(&client, message, text);
    }
    // In the queue of a turn, and after an interruption.
    client.send("fail: hang").await.unwrap();
    let queued = client.try_command(send("say: queued")).await.unwrap().message;
    client.command(interrupt()).await.unwrap();
    let last = client.try_command(send("say: last")).await.unwrap().message;
    client.until("both answers", |c| c.texts().last() == Some(&"last")).await.unwrap();
    check_named(&client, queued, "say: queued");
    check_named(&client, last, "say: last");
}

#[tokio::test]
async fn a_message_that_opens_a_session_again_is_named_too() {
    let rig = Rig::offline();
    let mut client = rig.client("s").await;
    let close = || Command::Close { by: who() };
    for text in ["say: one", "say: two"] {
        assert_eq!(client.try_command(close()).await.unwrap().message, None);
        client.until("the end", |c| c.state.is_closed()).await.unwrap();
        assert!(client.handle.look().await.unwrap().closed);
        assert_eq!(refusal(client.try_command(close()).await), Refusal::AlreadyClosed);
        let message = sent(&mut client, text).await;
        check_named(&client, message, text);
        let reopened = client.entries.iter().find(|e| e.seq == message.unwrap().0.before());
        assert!(matches!(reopened.unwrap().event, Event::SessionReopened { .. }));
        assert!(!client.handle.look().await.unwrap().closed);
    }
}

/// Many at once: each is told of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_sender_is_told_of_its_own() {
    let rig = Rig::offline();
    let mut client = rig.client("s").await;
    client.send("fail: hang").await.unwrap();
    let sending = (0..10).map(|n| {
        let handle = rig.handle("s");
        tokio::spawn(async move { (n, handle.command(send(&format!("say: {n}"))).await.unwrap()) })
    });
    let sending: Vec<_> = sending.collect();
    let mut named = Vec::new();
    for done in sending {
        named.push(in_time("an answer", done).await.unwrap());
    }
    client.until("all messages", |c| c.state.queue().len() == 10).await.unwrap();
    for (n, recorded) in &named {
        check_named(&client, recorded.message, &format!("say: {n}"));
    }
    let ids: HashSet<MessageId> = named.iter().filter_map(|(_, r)| r.message).collect();
    assert_eq!(ids.len(), 10);
}

#[tokio::test]
async fn what_queues_nothing_names_nothing() {
    let file = "counted.txt";
    let rig = Rig::new(|setup| setup.model(acting(vec![("apply_patch", adding(file, "ran"))])));
    rig.countable(file);
    let mut client = rig.client("s").await;
    let mode = Command::SetMode { mode: Mode::Suggest, by: who() };
    let title = Setting::Title { title: "a title".into() };
    for command in [mode, Command::Set { setting: title, by: who() }] {
        assert_eq!(client.try_command(command).await.unwrap().message, None);
    }
    for _ in 0..2 {
        client.send("go").await.unwrap();
        client.until("the request", |c| c.wait().is_some()).await.unwrap();
        let settled = client.try_command(settle(WaitRef::Presented, approve())).await.unwrap();
        assert_eq!(settled.message, None);
        client.until_idle().await.unwrap();
    }
    // A refused message is none.
    let empty = client.try_command(deliver(" \n", Delivery::Queue)).await;
    assert_eq!(refusal(empty), Refusal::EmptyMessage);
}

#[tokio::test]
async fn a_look_shows_what_was_set() {
    let rig = Rig::offline();
    let handle = rig.handle("s");
    let new = handle.look().await.unwrap();
    assert_eq!(new.settings, rig.sessions.kit().settings);
    assert_eq!((new.mode, new.closed), (Mode::Suggest, false));
    let settings = [
        Setting::Title { title: "a title".into() },
        Setting::CallsMax { calls_max: 3 },
        Setting::Metadata { json: r#"{"n":1.0}"#.into() },
        Setting::Model { model: "other".into(), tokens_max: 77 },
        Setting::Agent { agent: Agent::Tot },
    ];
    for setting in settings {
        handle.command(Command::Set { setting, by: who() }).await.unwrap();
    }
    handle.command(Command::SetMode { mode: Mode::Plan, by: who() }).await.unwrap();
    let look = handle.look().await.unwrap();
    assert_eq!((look.mode, look.settings.mode), (Mode::Plan, Mode::Plan));
    let settings = look.settings;
    assert_eq!(settings.title.as_deref(), Some("a title"));
    assert_eq!(settings.metadata.as_deref(), Some(r#"{"n":1.0}"#));
    assert_eq!((settings.calls_max, settings.tokens_max), (3, Some(77)));
    assert_eq!((&*settings.model, settings.agent), ("other", Some(Agent::Tot)));
    assert_eq!(settings.cwd, new.settings.cwd);
    for agent in [Agent::Dup, Agent::Tot, Agent::Got] {
        handle
            .command(Command::Set { setting: Setting::Agent { agent }, by: who() })
            .await
            .unwrap();
        assert_eq!(handle.look().await.unwrap().settings.agent, Some(agent));
    }
}
