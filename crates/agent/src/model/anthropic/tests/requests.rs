use std::sync::Arc;

use polyloop_session::event::Purpose;
use polyloop_session::history::{EXPLAINED_PREFIX, Message, SUMMARISE_TEXT, SUMMARY_PREFIX};
use polyloop_session::item::Part;
use polyloop_session::{Seq, WaitId};
use serde_json::Value;

use super::*;
use crate::model::json::testing::{
    call, card, opaque, request, result, says, thought, tools, user,
};

const OLDER: &str = "claude-sonnet-4-5-20250929";
const NEWER: &str = "claude-opus-4-8";
const NEWEST: &str = "claude-opus-5-5";

fn image(media_type: &str) -> Part {
    Part::Image { media_type: media_type.into(), data: "iVBORw0KGgo=".into() }
}

/// Reasoning, two calls, their results.
fn work() -> Vec<Message> {
    let signed = opaque("anthropic", r#"{"signature":"EqQBCgIYAhIM/+=="}"#);
    let redacted = opaque("anthropic", r#"{"type":"redacted_thinking","data":"EmwKAhgB"}"#);
    let direct = opaque("anthropic", r#"{"caller":{"type":"direct"}}"#);
    vec![
        user("What is in it?"),
        Message::Assistant(vec![
            thought("I look first.\n", signed),
            thought("", redacted),
            says("I look."),
            call("toolu_01", "bash", r#"{"command": "ls", "n": 1.0}"#, None),
            call("toolu_02", "bash", "", direct),
        ]),
        result("toolu_01", "bash", "a b\n", false),
        result("toolu_02", "bash", "command: missing", true),
    ]
}

/// What another provider's model did.
fn foreign_work() -> Vec<Message> {
    let theirs = |json| opaque("openai-responses", json);
    vec![
        user("What is in it?"),
        Message::Assistant(vec![
            thought("I look first.", theirs(r#"{"signature":"theirs","id":"rs_1"}"#)),
            thought("Shown, and not signed.", None),
            call("call|fc_1", "bash", r#"{"command": "ls"}"#, theirs(r#"{"id":"fc_1"}"#)),
            call("call_fc_1", "bash", "[1]", None),
        ]),
        result("call|fc_1", "bash", "", false),
        result("call_fc_1", "bash", " ", true),
    ]
}

fn check(name: &str, messages: Vec<Message>, model: &str) {
    golden().check_request(&Anthropic, name, &request(messages), model);
}

fn body(request: &Request, model: &str) -> Value {
    serde_json::from_slice(&Anthropic.encode(request, model, &card())).unwrap()
}

#[test]
fn plain_text() {
    check("text", vec![user("Grüße, \"Welt\" 👋\n")], OLDER);
}

#[test]
fn a_model_that_thinks_by_itself() {
    check("adaptive", vec![user("Hi")], NEWER);
}

#[test]
fn images() {
    let parts = vec![
        Part::Text { text: "Look:".into() },
        image("image/png"),
        image("image/tiff"),
        Part::Text { text: " \n".into() },
    ];
    check("image", vec![Message::User(parts.clone())], OLDER);
    let blind = crate::model::table::Card { images: false, ..card() };
    let body = Anthropic.encode(&request(vec![Message::User(parts)]), OLDER, &blind);
    let body: Value = serde_json::from_slice(&body).unwrap();
    let told = "[an image was attached, which this model does not take]";
    assert_eq!(body["messages"][0]["content"][1]["text"], told);
}

#[test]
fn reasoning_and_calls() {
    check("work", work(), OLDER);
    let mut later = work();
    later.push(user("And now?"));
    later.push(user("Well?"));
    check("work-and-more", later, NEWER);
}

#[test]
fn work_of_another_provider() {
    check("foreign", foreign_work(), OLDER);
}

#[test]
fn after_a_summary() {
    let mut messages = vec![user(&format!("{SUMMARY_PREFIX}We looked."))];
    messages.extend(work());
    check("summary", messages.clone(), NEWER);
    check("summary-newest", messages, NEWEST);
}

#[test]
fn an_explanation() {
    let explained = user(&format!("{EXPLAINED_PREFIX}It lists files."));
    let mut messages = work();
    messages.push(explained);
    check("explained", messages, OLDER);

    let mut messages = work();
    messages.push(user("Before I decide: explain."));
    let mut asking = request(messages);
    asking.prompt.purpose = Purpose::Explain { wait: WaitId(Seq(3)) };
    asking.tools = Arc::new([]);
    golden().check_request(&Anthropic, "explain", &asking, OLDER);
}

#[test]
fn a_summary() {
    let mut messages = work();
    messages.push(user(SUMMARISE_TEXT));
    let mut asking = request(messages);
    asking.prompt.purpose = Purpose::Summarise;
    asking.tools = Arc::new([]);
    golden().check_request(&Anthropic, "summarise", &asking, NEWEST);
}

#[test]
fn a_user_begins_and_ends() {
    let answered = |text: &str| Message::Assistant(vec![says(text)]);
    let messages = vec![answered("Well:"), answered("Half an ans"), user(" "), answered("So.")];
    check("ends", messages, OLDER);
    assert_eq!(body(&request(vec![]), OLDER)["messages"].as_array().unwrap().len(), 1);
}

#[test]
fn nothing_is_said_without_words() {
    let messages =
        vec![user("Hi"), Message::Assistant(vec![says(""), says(" \n")]), user("Hello?")];
    let mut bare = request(messages);
    bare.instructions = " ".into();
    bare.tools = Arc::new([]);
    let body = body(&bare, OLDER);
    assert_eq!((&body["system"], &body["tools"]), (&Value::Null, &Value::Null));
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    assert_eq!(body["messages"][0]["content"].as_array().unwrap().len(), 2);
}

#[test]
fn thinking_fits_into_the_answer() {
    let thinking = |output_tokens_max, reasoning| {
        let card = crate::model::table::Card { output_tokens_max, reasoning, ..card() };
        let body = Anthropic.encode(&request(vec![user("Hi")]), OLDER, &card);
        let body: Value = serde_json::from_slice(&body).unwrap();
        (body["max_tokens"].as_u64().unwrap(), body["thinking"]["budget_tokens"].as_u64())
    };
    assert_eq!(thinking(64_000, true), (32_000, Some(8_000)));
    assert_eq!(thinking(8_192, true), (8_192, Some(4_096)));
    assert_eq!(thinking(2_048, true), (2_048, Some(1_024)));
    assert_eq!(thinking(2_047, true), (2_047, None));
    assert_eq!(thinking(0, true), (1, None));
    assert_eq!(thinking(64_000, false), (32_000, None));
}

#[test]
fn work_begun_without_thinking_is_finished_without() {
    let thinks = |messages: Vec<Message>| body(&request(messages), OLDER)["thinking"].is_object();
    assert!(thinks(work()) && !thinks(foreign_work()));
    // Only the first step of a piece of work begins with it.
    let mut second = work();
    second.push(Message::Assistant(vec![call("toolu_03", "bash", "{}", None)]));
    second.push(result("toolu_03", "bash", "ok", false));
    assert!(thinks(second));
    let mut asked = foreign_work();
    asked.push(Message::Assistant(vec![says("Done.")]));
    asked.push(user("Thanks. Now the next."));
    assert!(thinks(asked));
}

#[test]
fn two_ids_stay_two() {
    let ids = ["a|b", "a_b", "a_7cb", "id-a_7cb", "id-", "", "_", "é", "a b", "a.b", "A-9_z"];
    let calls = ids.iter().map(|id| call(id, "bash", "{}", None)).collect();
    let mut messages = vec![user("Hi"), Message::Assistant(calls)];
    messages.extend(ids.iter().map(|id| result(id, "bash", "ok", false)));
    let body = body(&request(messages), OLDER);
    let calls = body["messages"][1]["content"].as_array().unwrap();
    let results = body["messages"][2]["content"].as_array().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for (call, result) in calls.iter().zip(results) {
        let id = call["id"].as_str().unwrap();
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        assert!(!id.is_empty() && id.bytes().all(fits), "{id}");
        assert_eq!(result["tool_use_id"], id);
        assert!(seen.insert(id), "{id}");
    }
    assert_eq!(seen.len(), ids.len());
    assert!(seen.contains("a_b") && seen.contains("A-9_z"));
}

/// A growing conversation begins as the shorter one did, but for the marks of the cache.
#[test]
fn what_was_asked_before_is_found_in_the_cache() {
    let mut messages = work();
    messages.push(Message::Assistant(vec![says("Two files.")]));
    messages.push(user("And now?"));
    messages.push(Message::Assistant(vec![says("Half"), says("")]));
    messages.push(Message::Assistant(vec![says("Whole.")]));
    messages.push(user("Thanks."));
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    let asked = |count: usize| {
        let body = Anthropic.encode(&request(messages[..count].to_vec()), NEWER, &card());
        String::from_utf8(body).unwrap()
    };
    let whole = asked(messages.len());
    let tools_and_system = whole.find(r#","messages":"#).unwrap();
    for count in [1, 4, 6, 7] {
        let part = asked(count);
        assert!(part.matches(mark).count() <= 4, "{part}");
        assert_eq!(part[..tools_and_system], whole[..tools_and_system]);
        let part = part.replace(mark, "");
        let common = part.strip_suffix("}]}]}").unwrap();
        assert!(whole.replace(mark, "").starts_with(common), "{common}\n{whole}");
    }
}

#[test]
fn a_tool_is_told_of_once_it_was_used() {
    let mut asking = request(work());
    asking.tools = Arc::new([]);
    let told = body(&asking, OLDER);
    assert_eq!(told["tool_choice"]["type"], "none");
    assert_eq!(told["tools"].as_array().unwrap().len(), 1);
    assert_eq!(told["tools"][0]["name"], "bash");
    asking.tools = tools();
    assert!(body(&asking, OLDER)["tool_choice"].is_null());
}
