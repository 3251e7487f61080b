//! What an agent makes of odd answers: no model can make it run what did not come whole, run a
//! call twice, or end a turn without a word.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use polyloop_agent::model::{Chunk, Failure, Model, Request, Stop};
use polyloop_agent::perform::ANSWER_BLOCKS_MAX;
use polyloop_session::event::{CallOutcome, Outcome};
use polyloop_session::history::{AssistantPart, Message};
use polyloop_session::item::{End, ItemKind, Opaque};
use polyloop_session::policy::Mode;
use polyloop_session::{Event, Heal};

use super::client::{Client, outcome};
use super::make::interrupt;
use super::model::{Noted, Puppet, called, in_turn, said};
use super::rig::{Rig, Setup};

/// One answer after the other; the last one again and again.
fn in_order(answers: Vec<Vec<Chunk>>) -> (Arc<dyn Model>, Noted) {
    let calls = AtomicUsize::new(0);
    Noted::around(Arc::new(Puppet(move |_: Request| {
        let at = calls.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
        in_turn(answers[at].clone())
    })))
}

fn edit(line: &str) -> (&'static str, String) {
    let patch = format!(
        "*** Begin Patch\n*** Update File: counted.txt\n@@\n start\n+{line}\n*** End Patch\n"
    );
    ("apply_patch", serde_json::json!({ "patch": patch }).to_string())
}

/// A session in which everything runs unasked, with one file to count in.
async fn answered(model: Arc<dyn Model>, retries_max: u32) -> (Rig, Client) {
    let rig = Rig::new(|setup| Setup { mode: Mode::Bypass, retries_max, ..setup.model(model) });
    rig.countable("counted.txt");
    let mut client = rig.client("s").await;
    client.send("go").await.unwrap();
    client.until_idle().await.unwrap();
    (rig, client)
}

fn notices(client: &Client) -> Vec<(String, String)> {
    let told = client.entries.iter().filter_map(|entry| match &entry.event {
        Event::Noticed { code, text, .. } => Some((code.to_string(), text.to_string())),
        _ => None,
    });
    told.collect()
}

#[tokio::test]
async fn a_call_that_the_output_limit_cut_off_is_not_run_and_the_model_is_told() {
    let mut cut = called(&[edit("ran")]);
    *cut.last_mut().unwrap() = Chunk::Done(Stop::Length);
    let (model, noted) = in_order(vec![cut, said("I see")]);
    let (rig, client) = answered(model, 0).await;
    assert_eq!(rig.count("counted.txt", "ran"), 0);
    assert_eq!(noted.calls(), 2);
    let (told, is_error) = noted.told();
    assert!(told.contains("cut off, not run") && is_error, "{told}");
    assert_eq!(notices(&client)[0].0, "length");
    assert_eq!(outcome(&client), &Outcome::Completed);
}

#[tokio::test]
async fn a_call_that_was_never_ended_is_not_proposed() {
    let mut torn = called(&[edit("whole"), edit("torn")]);
    let ended = torn.iter().rposition(|chunk| matches!(chunk, Chunk::Ended { .. })).unwrap();
    torn.remove(ended);
    let (model, _) = in_order(vec![torn, said("done")]);
    let (rig, client) = answered(model, 0).await;
    assert_eq!((rig.count("counted.txt", "whole"), rig.count("counted.txt", "torn")), (1, 0));
    let cut = |event: &Event| matches!(event, Event::ItemCompleted { end: End::Cut, .. });
    assert_eq!(client.count(cut), 1);
}

#[tokio::test]
async fn calls_without_a_name_of_their_own_get_one() {
    // The same names with each answer, twice in one, and none at all.
    let mut twice = called(&[edit("a"), edit("b"), edit("c")]);
    for chunk in &mut twice {
        if let Chunk::Started { block, kind: ItemKind::ToolCall { call_ref, .. } } = chunk {
            *call_ref = if *block == 2 { "".into() } else { "same".into() };
        }
    }
    let (model, noted) = in_order(vec![twice.clone(), twice, said("done")]);
    let (rig, _client) = answered(model, 0).await;
    for line in ["a", "b", "c"] {
        assert_eq!(rig.count("counted.txt", line), 2, "once for each answer");
    }
    let prompt = noted.last_prompt();
    let calls: Vec<_> = prompt
        .messages
        .iter()
        .flat_map(|message| match message {
            Message::Assistant(parts) => parts.as_slice(),
            Message::User(_) | Message::ToolResult { .. } => &[],
        })
        .filter_map(|part| match part {
            AssistantPart::ToolCall { call_ref, .. } => Some(call_ref.clone()),
            AssistantPart::Text { .. } | AssistantPart::Reasoning { .. } => None,
        })
        .collect();
    let unique: HashSet<_> = calls.iter().collect();
    assert_eq!((calls.len(), unique.len()), (6, 6), "{calls:?}");
    assert!(unique.iter().all(|name| !name.is_empty()));
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_once_more_and_then_told() {
    let thinking = vec![
        Chunk::Started { block: 0, kind: ItemKind::Reasoning },
        Chunk::Text { block: 0, text: "hm".into() },
        Chunk::Ended { block: 0, opaque: None },
        Chunk::Done(Stop::End),
    ];
    for empty in [vec![Chunk::Done(Stop::End)], said(" \n\t"), thinking] {
        let (model, noted) = in_order(vec![empty]);
        let (_rig, client) = answered(model, 4).await;
        assert_eq!(noted.calls(), 2);
        match outcome(&client) {
            Outcome::Failed { fault } => {
                assert_eq!(&*fault.code, "empty_answer");
                assert_eq!(&*fault.message, "The model gave an empty answer (after 1 retry)");
            }
            other => panic!("{other:?}"),
        }
    }
    let (model, noted) = in_order(vec![vec![Chunk::Done(Stop::End)], said("well")]);
    let (_rig, client) = answered(model, 4).await;
    assert_eq!((noted.calls(), client.texts()), (2, vec!["well"]));
    assert_eq!(outcome(&client), &Outcome::Completed);
}

#[tokio::test]
async fn a_failed_attempt_is_told_discarded_and_made_again() {
    let later = Heal::Later { after_ms: Some(0) };
    let failure = Failure::new(later, "overloaded", "The provider is overloaded.");
    let mut half = said("half an ans");
    half.truncate(2);
    half.push(Chunk::Failed(failure));
    let (model, noted) = in_order(vec![half, said("a whole answer")]);
    let (_rig, client) = answered(model, 4).await;
    assert_eq!(noted.calls(), 2);
    assert_eq!(client.texts(), ["half an ans", "a whole answer"]);
    let told = &notices(&client)[0];
    assert_eq!(told.0, "retry");
    assert!(told.1.starts_with("The provider is overloaded; retrying in 0."), "{}", told.1);
    assert!(told.1.ends_with(" s (1/4)"), "{}", told.1);
    // The second attempt's prompt is the first one's.
    let prompts = noted.prompts();
    assert_eq!(prompts[0].messages, prompts[1].messages);
    let retried = |event: &Event| {
        matches!(event, Event::CallEnded { outcome: CallOutcome::Retried { .. }, .. })
    };
    assert_eq!(client.count(retried), 1);
}

#[tokio::test]
async fn a_retry_that_waits_can_be_interrupted() {
    let later = Heal::Later { after_ms: Some(50_000) };
    let failure = Failure::new(later, "rate_limited", "Too many requests");
    let (model, noted) = in_order(vec![vec![Chunk::Failed(failure)]]);
    let rig = Rig::new(|setup| Setup { retries_max: 4, ..setup.model(model) });
    let mut client = rig.client("s").await;
    client.send("go").await.unwrap();
    client.until("the notice", |c| !notices(c).is_empty()).await.unwrap();
    client.command(interrupt()).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(noted.calls(), 1, "nobody is asked while the second waits");
    assert!(matches!(outcome(&client), Outcome::Interrupted { .. }));
}

#[tokio::test]
async fn an_answer_without_end_is_ended() {
    let mut chunks = Vec::new();
    for block in 0..=ANSWER_BLOCKS_MAX as u32 {
        chunks.push(Chunk::Started { block, kind: ItemKind::Text });
        chunks.push(Chunk::Text { block, text: "x".into() });
        chunks.push(Chunk::Ended { block, opaque: None });
    }
    let (model, _) = in_order(vec![chunks]);
    let (_rig, client) = answered(model, 0).await;
    match outcome(&client) {
        Outcome::Failed { fault } => assert_eq!(&*fault.code, "answer_too_long"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_must_go_back_goes_back_with_its_own_part() {
    let opaque = |json: &str| Some(Opaque { provider: "p".into(), json: json.into() });
    let mut chunks = said("look");
    chunks[2] = Chunk::Ended { block: 0, opaque: opaque("text") };
    chunks.pop();
    let kind =
        ItemKind::ToolCall { name: "apply_patch".into(), call_ref: "c".into(), native: false };
    chunks.extend([
        Chunk::Started { block: 1, kind },
        Chunk::Args { block: 1, text: edit("a").1.as_str().into() },
        Chunk::Ended { block: 1, opaque: opaque("call") },
        Chunk::Done(Stop::End),
    ]);
    let (model, noted) = in_order(vec![chunks, said("done")]);
    let (_rig, _client) = answered(model, 0).await;
    let prompt = noted.last_prompt();
    let Message::Assistant(parts) = &prompt.messages[1] else { panic!("{prompt:?}") };
    match &parts[..] {
        [AssistantPart::Text { opaque: one, .. }, AssistantPart::ToolCall { opaque: two, .. }] => {
            assert_eq!((one, two), (&opaque("text"), &opaque("call")));
        }
        other => panic!("{other:?}"),
    }
}
