//! Questions: asked in every mode, answered by form or by word, and the model is told what was
//! said, or why nothing was.

use std::sync::Arc;
use std::time::Duration;

use polyloop_agent::model::offline::Offline;
use polyloop_session::command::{Target, WaitReply};
use polyloop_session::decide::{EXPIRED_TEXT, NO_ANSWER_TEXT, WITHDRAWN_BY_TEXT};
use polyloop_session::event::Outcome;
use polyloop_session::item::End;
use polyloop_session::policy::Mode;
use polyloop_session::wait::{Answer, Ask, Given, Then, Who};
use polyloop_session::{Command, Delivery, Event, Refusal, Text, WaitId, WaitRef};
use serde_json::{Value, json};

use super::client::{Client, endings, outcome, refusal};
use super::faults::Faulty;
use super::make::{approve, deliver, deny, send, settle, who};
use super::model::{Noted, acting};
use super::rig::{Rig, Setup, in_time, temp_dir};

const MODES: [Mode; 6] =
    [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto, Mode::Bypass, Mode::Plan, Mode::DontAsk];

const COLOUR: &str = "ask: Which colour? | red | blue\nsay: as you like";

/// A rig whose model is the offline one, and what that is asked.
fn offline(change: impl FnOnce(Setup) -> Setup) -> (Rig, Noted) {
    let (model, noted) = Noted::around(Arc::new(Offline));
    (Rig::new(|setup| change(setup).model(model)), noted)
}

/// A client who is being asked for a colour.
async fn asked(rig: &Rig) -> (Client, WaitId) {
    let mut client = rig.client("s").await;
    client.send(COLOUR).await.unwrap();
    client.until("the question", |c| c.wait().is_some()).await.unwrap();
    let wait = client.wait().unwrap();
    (client, wait)
}

fn form(answers: &[(u64, &[&str])]) -> WaitReply {
    let words = |words: &[&str]| words.iter().map(|word| Text::from(*word)).collect();
    let answers = answers.iter().map(|(index, chosen)| (*index, words(chosen))).collect();
    WaitReply::Answer { answers }
}

fn given(client: &Client) -> &Answer {
    let settled = client.entries.iter().rev().find_map(|entry| match &entry.event {
        Event::WaitSettled { answer, .. } => Some(answer),
        _ => None,
    });
    settled.expect("nothing was settled")
}

fn is_asked(event: &Event) -> bool {
    matches!(event, Event::WaitOpened { .. })
}

#[tokio::test]
async fn a_form_is_filled_in_in_every_mode() {
    for mode in MODES {
        let (rig, noted) = offline(|setup| Setup { mode, ..setup });
        let (mut client, _) = asked(&rig).await;
        let Some(Ask::Question { questions }) = client.asked() else {
            panic!("{mode:?}: {:?}", client.asked());
        };
        let labels: Vec<&str> = questions[0].options.iter().map(|o| &*o.label).collect();
        assert_eq!((&*questions[0].question, labels), ("Which colour?", vec!["red", "blue"]));
        client.settle(form(&[(0, &["blue"])])).await.unwrap();
        client.until_idle().await.unwrap();
        assert_eq!(noted.told(), ("The user answered: blue".into(), false), "{mode:?}");
        assert_eq!(client.texts(), ["as you like"], "{mode:?}");
        assert_eq!(client.count(|event| matches!(event, Event::ToolStarted { .. })), 0);
        assert_eq!(endings(&client)[0], (End::Whole, "The user answered: blue"));
    }
}

#[tokio::test]
async fn several_questions_are_answered_at_once() {
    let option = |label: &str| json!({ "label": label });
    let args = json!({ "questions": [
        { "question": "Which?", "options": [option("a"), option("b")], "multiSelect": true },
        { "header": "Why", "question": "Why that?" },
        { "question": "When?", "options": [option("now")] },
    ]});
    let (model, noted) = Noted::around(acting(vec![("ask_user", args.to_string())]));
    let rig = Rig::new(|setup| setup.model(model));
    let mut client = rig.client("s").await;
    client.send("go").await.unwrap();
    client.until("the questions", |c| c.wait().is_some()).await.unwrap();
    client.settle(form(&[(1, &["because"]), (0, &["B", "a", "neither"])])).await.unwrap();
    client.until_idle().await.unwrap();
    let told = "The user answered:\n- Which? b, a, neither\n- Why that? because\n\
                - When? (no answer)";
    assert_eq!(noted.told(), (told.into(), false));
}

/// Each waits for the one before it, and gets the answer that was meant for it.
#[tokio::test]
async fn questions_of_one_answer_are_asked_one_after_the_other() {
    let (rig, noted) = offline(|setup| setup);
    let mut client = rig.client("s").await;
    client.send("ask: One? | a\n&ask: Two? | b\nsay: thanks").await.unwrap();
    let mut waits = Vec::new();
    for text in ["first", "second"] {
        let is_new = |c: &Client| c.wait().is_some_and(|wait| !waits.contains(&wait));
        client.until("a question", is_new).await.unwrap();
        waits.extend(client.wait());
        assert_eq!(client.state.turn().unwrap().waits.len(), 1);
        client.command(deliver(text, Delivery::AnswerQuestion)).await.unwrap();
    }
    client.until_idle().await.unwrap();
    let told = ["The user answered: first", "The user answered: second", "thanks"];
    assert_eq!(endings(&client), told.map(|text| (End::Whole, text)));
    assert_eq!(noted.calls(), 2);
}

#[tokio::test]
async fn a_message_answers_if_it_is_meant_to() {
    let rows = [
        ("2", Delivery::AnswerQuestion, "blue", true),
        ("RED", Delivery::Answer { consents: true }, "red", true),
        ("neither of\nthem ", Delivery::Answer { consents: false }, "neither of\nthem", false),
    ];
    for (text, delivery, told, is_label) in rows {
        let (rig, noted) = offline(|setup| setup);
        let (mut client, _) = asked(&rig).await;
        // One that is not meant to waits in the queue.
        let queued = client.try_command(send("say: later")).await.unwrap();
        assert!(queued.message.is_some());
        let recorded = client.try_command(deliver(text, delivery)).await.unwrap();
        assert_eq!(recorded.message, None, "it is no message of its own");
        client.until("both answers", |c| c.texts().len() == 2 && c.is_idle()).await.unwrap();
        assert_eq!(client.texts(), ["as you like", "later"]);
        assert_eq!(client.count(|event| matches!(event, Event::MessageQueued { .. })), 2);
        assert_eq!(endings(&client)[0], (End::Whole, &*format!("The user answered: {told}")));
        assert_eq!(noted.calls(), 3);
        let Answer::Answered { answers, said } = given(&client) else { panic!() };
        assert_eq!(said.as_deref(), Some(text));
        let want = match is_label {
            true => Given { selected: vec![told.into()], text: None },
            false => Given { selected: Vec::new(), text: Some(told.into()) },
        };
        assert_eq!(answers, &[want]);
    }
}

/// With nothing open, or only an approval, a message that would answer is a message.
#[tokio::test]
async fn a_message_that_answers_nothing_is_queued() {
    let (rig, _) = offline(|setup| setup);
    let mut client = rig.client("s").await;
    for delivery in [Delivery::AnswerQuestion, Delivery::Answer { consents: true }] {
        let recorded = client.try_command(deliver("say: hi", delivery)).await.unwrap();
        assert!(recorded.message.is_some());
    }
    client.until("both", |c| c.texts() == ["hi", "hi"] && c.is_idle()).await.unwrap();
    client.send("run: touch file").await.unwrap();
    client.until("the request", |c| c.wait().is_some()).await.unwrap();
    let recorded = client.try_command(deliver("say: yes", Delivery::Answer { consents: true }));
    assert!(recorded.await.unwrap().message.is_some());
    client.until("the message", |c| !c.state.queue().is_empty()).await.unwrap();
    assert_eq!(client.asked(), Some(&Ask::Approval));
}

#[tokio::test]
async fn who_does_not_answer_says_so() {
    for (message, told) in
        [(None, NO_ANSWER_TEXT), (Some("none of your business".into()), "none of your business")]
    {
        let (rig, noted) = offline(|setup| setup);
        let (mut client, _) = asked(&rig).await;
        let reply = WaitReply::Deny { message, then: Then::Continue };
        client.settle(reply).await.unwrap();
        client.until_idle().await.unwrap();
        assert_eq!(noted.told(), (told.into(), true));
        assert_eq!(client.texts(), ["as you like"]);
    }
    let (rig, noted) = offline(|setup| setup);
    let (mut client, _) = asked(&rig).await;
    client.settle(deny(Then::EndTurn)).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!((noted.calls(), client.texts().len()), (1, 0), "the model is not asked again");
    assert_eq!(outcome(&client), &Outcome::Completed);
    assert_eq!(endings(&client), [(End::Denied, NO_ANSWER_TEXT)]);
}

#[tokio::test]
async fn a_question_can_be_withdrawn() {
    let (rig, noted) = offline(|setup| setup);
    let (mut client, wait) = asked(&rig).await;
    let by = Who { via: "test".into(), name: Some("ann".into()), from: None };
    let cancel = Command::Cancel { target: Target::Wait(wait), by: by.clone() };
    client.command(cancel.clone()).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(noted.told(), (WITHDRAWN_BY_TEXT.into(), true));
    assert_eq!((client.texts(), outcome(&client)), (vec!["as you like"], &Outcome::Completed));
    let withdrawn = client.entries.iter().find_map(|entry| match &entry.event {
        Event::WaitWithdrawn { wait, by, .. } => Some((*wait, by.clone())),
        _ => None,
    });
    assert_eq!(withdrawn, Some((wait, Some(by))));
    let late = settle(WaitRef::Id(wait), form(&[(0, &["red"])]));
    assert_eq!(refusal(client.try_command(late).await), Refusal::Withdrawn);
    assert_eq!(refusal(client.try_command(cancel).await), Refusal::UnknownTarget);
}

#[tokio::test]
async fn a_question_that_nobody_answers_in_time_is_closed() {
    let timeout = Some(Duration::from_millis(50));
    let (rig, noted) = offline(|setup| Setup { approval_timeout: timeout, ..setup });
    let mut client = rig.client("s").await;
    client.send(COLOUR).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(client.count(is_asked), 1);
    assert_eq!(noted.told(), (EXPIRED_TEXT.into(), true));
    assert_eq!(client.texts(), ["as you like"]);
}

/// An answer that does not fit is refused and changes nothing.
#[tokio::test]
async fn a_bad_answer_leaves_the_question_open() {
    let (rig, noted) = offline(|setup| setup);
    let (mut client, wait) = asked(&rig).await;
    let before = client.entries.len();
    let blank = WaitReply::Approve { message: Some(" ".into()) };
    let bad = [
        form(&[]),
        form(&[(1, &["red"])]),
        form(&[(u64::MAX, &["red"])]),
        form(&[(0, &["red", "blue"])]),
        form(&[(0, &["red"]), (0, &["blue"])]),
        approve(),
        blank,
        WaitReply::ApproveAlways,
        WaitReply::Explain,
    ];
    for reply in bad {
        let refused = refusal(client.try_command(settle(WaitRef::Id(wait), reply.clone())).await);
        assert!(matches!(refused, Refusal::BadAnswer { .. }), "{reply:?}: {refused:?}");
    }
    let patch = client.handle.settle_with_patch(WaitRef::Id(wait), "no patch".into(), true, who());
    assert!(matches!(refusal(in_time("the answer", patch).await), Refusal::Refused { .. }));
    client.handle.context_info().await.unwrap();
    assert_eq!((client.entries.len(), client.wait()), (before, Some(wait)));
    client.settle(form(&[(0, &["red"])])).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(noted.told(), ("The user answered: red".into(), false));
}

/// The server stops while a question is open: the next one still has it, under the same id.
#[tokio::test]
async fn an_open_question_outlives_the_server() {
    let (rig, _) = offline(|setup| setup);
    let (mut client, wait) = asked(&rig).await;
    in_time("the end", rig.sessions.close()).await;
    client.until_end().await;
    let (model, noted) = Noted::around(Arc::new(Offline));
    let log = Faulty::new(rig.log.clone());
    let sessions = Setup::new(log.clone()).model(model).start(rig.dir.path());
    let next = Rig { dir: temp_dir(), log, sessions, kind: rig.kind };
    let mut again = next.client("s").await;
    assert_eq!((again.wait(), &again.entries), (Some(wait), &client.entries));
    again.settle(form(&[(0, &["blue"])])).await.unwrap();
    again.until_idle().await.unwrap();
    assert_eq!(noted.told(), ("The user answered: blue".into(), false));
}

fn question(text: &str, labels: &[&str]) -> Value {
    let options: Vec<Value> = labels.iter().map(|label| json!({ "label": label })).collect();
    json!({ "question": text, "options": options })
}

/// What cannot be asked is told to the model, in every mode, and to nobody else.
#[tokio::test]
async fn a_bad_question_is_told_to_the_model_and_never_asked() {
    let many = |count: usize| vec![question("Well?", &[]); count];
    let labels: Vec<String> = (0..17).map(|n| n.to_string()).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let long = "x".repeat(17_000);
    let bad = [
        ("", "missing"),
        ("{}", "missing"),
        ("not json", "not a JSON object"),
        ("[]", "not a JSON object"),
        (r#"{"questions": 7}"#, "must be a list"),
        (r#"{"questions": [{"text": "Well?"}]}"#, "must be a list"),
        (&json!({ "questions": [] }).to_string(), "at least one"),
        (&json!({ "questions": many(9) }).to_string(), "at most 8"),
        (&json!({ "questions": [question(" \n", &["a"])] }).to_string(), "is empty"),
        (&json!({ "questions": [question("?", &["a", ""])] }).to_string(), "empty label"),
        (&json!({ "questions": [question("?", &["a", "b", " A"])] }).to_string(), "same label"),
        (&json!({ "questions": [question("?", &labels)] }).to_string(), "at most 16"),
        (&json!({ "questions": [question(&long, &[])] }).to_string(), "bytes"),
    ];
    for (args, why) in bad {
        let (model, noted) = Noted::around(acting(vec![("ask_user", args.to_owned())]));
        let rig = Rig::new(|setup| Setup { mode: Mode::Bypass, ..setup }.model(model));
        let mut client = rig.client("s").await;
        client.send("go").await.unwrap();
        client.until_idle().await.unwrap();
        let (told, is_error) = noted.told();
        assert!(is_error && told.starts_with("ask_user: ") && told.contains(why), "{args}: {told}");
        assert_eq!((client.count(is_asked), client.texts()), (0, vec!["done"]), "{args}");
    }
    // As many as may be asked are.
    let args = json!({ "questions": many(8) }).to_string();
    let rig = Rig::new(|setup| setup.model(acting(vec![("ask_user", args)])));
    let mut client = rig.client("s").await;
    client.send("go").await.unwrap();
    client.until("the questions", |c| c.wait().is_some()).await.unwrap();
}
