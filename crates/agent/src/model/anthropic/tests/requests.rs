//! What is sent for which prompt.

use polyloop_session::history::{Message, SUMMARY_PREFIX};
use serde_json::Value;

use super::*;
use crate::model::testing::*;

const NEWER: &str = "claude-opus-4-8";
const NEWEST: &str = "claude-opus-5-5";

requests_hold!(API);

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

fn body(request: &Request) -> Value {
    API.value(request, &card())
}

#[test]
fn plain_text() {
    API.check("text", vec![user("Grüße, \"Welt\" 👋\n")]);
}

#[test]
fn a_model_that_thinks_by_itself() {
    API.on(NEWER).check("adaptive", vec![user("Hi")]);
}

#[test]
fn images() {
    let parts = vec![text("Look:"), image("image/png"), image("image/tiff"), text(" \n")];
    API.check("image", vec![Message::User(parts)]);
}

#[test]
fn reasoning_and_calls() {
    API.check("work", work());
    API.on(NEWER).check_work_and_more(work());
}

#[test]
fn work_of_another_provider() {
    API.check("foreign", foreign_work());
}

#[test]
fn after_a_summary() {
    let mut messages = vec![user(&format!("{SUMMARY_PREFIX}We looked."))];
    messages.extend(work());
    API.on(NEWER).check("summary", messages.clone());
    API.on(NEWEST).check("summary-newest", messages);
}

#[test]
fn an_explanation() {
    API.check_explain(&work());
}

#[test]
fn a_summary() {
    API.on(NEWEST).check_summarise(work());
}

#[test]
fn a_user_is_asked_at_least() {
    assert_eq!(body(&API.request(vec![]))["messages"].as_array().unwrap().len(), 1);
}

#[test]
fn nothing_is_said_without_words() {
    let messages =
        vec![user("Hi"), Message::Assistant(vec![says(""), says(" \n")]), user("Hello?")];
    let mut bare = API.request(messages);
    bare.instructions = " ".into();
    bare.tools = Default::default();
    let body = body(&bare);
    assert_eq!((&body["system"], &body["tools"]), (&Value::Null, &Value::Null));
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    assert_eq!(body["messages"][0]["content"].as_array().unwrap().len(), 2);
}

#[test]
fn thinking_fits_into_the_answer() {
    let thinking = |output_tokens_max, reasoning| {
        let card = Card { output_tokens_max, reasoning, ..card() };
        let body = API.value(&API.request(vec![user("Hi")]), &card);
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
    let thinks = |messages: Vec<Message>| body(&API.request(messages))["thinking"].is_object();
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
    let body = body(&API.request(messages));
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
    let messages = goes_on(work());
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    let bodies = API.on(NEWER).grown(&messages, &[1, 4, 6, 7, messages.len()], &card());
    let (whole, parts) = bodies.split_last().unwrap();
    let tools_and_system = whole.find(r#","messages":"#).unwrap();
    for part in parts {
        assert!(part.matches(mark).count() <= 4, "{part}");
        assert_eq!(part[..tools_and_system], whole[..tools_and_system]);
        begins(&whole.replace(mark, ""), &part.replace(mark, ""), "}]}]}");
    }
}

#[test]
fn a_tool_is_told_of_once_it_was_used() {
    let mut asking = API.request(work());
    asking.tools = Default::default();
    let told = body(&asking);
    assert_eq!(told["tool_choice"]["type"], "none");
    assert_eq!(told["tools"].as_array().unwrap().len(), 1);
    assert_eq!(told["tools"][0]["name"], "bash");
    asking.tools = API.tools();
    assert!(body(&asking)["tool_choice"].is_null());
}
