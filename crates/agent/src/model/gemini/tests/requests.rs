//! What is sent for which prompt.

use polyloop_session::history::{Message, SUMMARY_PREFIX};
use serde_json::Value;

use super::*;
use crate::model::testing::*;

// One that takes calls of others as they are.
requests_hold!(API.on("gemini-2.5-pro"));

/// A thought, a signed text, two calls, their results.
fn work() -> Vec<Message> {
    let kept = |json| opaque("google", json);
    let thoughts =
        r#"{"parts":[{"bytes":8},{"part":{"text":"","thought":true,"thoughtSignature":"QQ=="}}]}"#;
    let words = r#"{"parts":[{"bytes":2},{"bytes":3,"fields":{"thoughtSignature":"Qg=="}}]}"#;
    let first = r#"{"thoughtSignature":"Qw==","noId":true}"#;
    let second = r#"{"functionCall":{"new":1.0},"after":[{"text":"","thoughtSignature":"RA=="}]}"#;
    vec![
        user("What is in it?"),
        Message::Assistant(vec![
            thought("I look.\n", kept(thoughts)),
            says_with("Écco", kept(words)),
            call("made-1", "bash", r#"{"command": "ls", "n": 1.0}"#, kept(first)),
            call("8f2b", "bash", "", kept(second)),
        ]),
        result("made-1", "bash", "a b\n", false),
        result("8f2b", "bash", "command: missing", true),
    ]
}

fn foreign_work() -> Vec<Message> {
    let theirs = |json| opaque("anthropic", json);
    vec![
        user("What is in it?"),
        Message::Assistant(vec![
            thought("I look first.", theirs(r#"{"signature":"theirs"}"#)),
            thought("Shown, and not signed.", None),
            says_with("I look.", theirs(r#"{"parts":[]}"#)),
            call("toolu_1", "bash", r#"{"command": "ls"}"#, theirs(r#"{"thoughtSignature":"no"}"#)),
            call("toolu_2", "bash", "[1]", None),
        ]),
        result("toolu_1", "bash", "", false),
        result("toolu_2", "bash", "not an object", true),
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
fn images() {
    let parts = vec![text("Look:"), image("image/png"), text(" \n")];
    API.check("image", vec![Message::User(parts)]);
}

#[test]
fn reasoning_and_calls() {
    API.check("work", work());
    API.check_work_and_more(work());
}

#[test]
fn work_of_another_provider() {
    API.check("foreign", foreign_work());
}

#[test]
fn after_a_summary() {
    let mut messages = vec![user(&format!("{SUMMARY_PREFIX}We looked."))];
    messages.extend(work());
    API.check("summary", messages);
}

#[test]
fn an_explanation() {
    API.check_explain(&work());
}

#[test]
fn a_summary() {
    API.check_summarise(foreign_work());
}

#[test]
fn a_user_is_asked_at_least() {
    assert_eq!(body(&API.request(vec![]))["contents"].as_array().unwrap().len(), 1);
}

#[test]
fn nothing_is_asked_for_that_is_not_known() {
    let mut bare = API.request(vec![user("Hi"), Message::Assistant(vec![says(" ")])]);
    bare.instructions = "\n".into();
    bare.tools = Default::default();
    let card = Card { output_tokens_max: 0, reasoning: false, ..card() };
    let body = API.body(&bare, &card);
    assert_eq!(body, r#"{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}"#);
}

#[test]
fn signatures_that_do_not_fit_the_text_stay_away() {
    let kept = [
        r#"{"parts":[{"bytes":9,"fields":{"thoughtSignature":"QQ=="}}]}"#,
        r#"{"parts":[{"bytes":1,"fields":{"thoughtSignature":"QQ=="}},{"bytes":2}]}"#,
        r#"{"parts":[{"bytes":2}]}"#,
        r#"{"parts":[{"bytes":-1}]}"#,
        r#"{"parts":[3]}"#,
        r#"{"parts":[{"bytes":18446744073709551615},{"bytes":4}]}"#,
        "not JSON",
    ];
    for json in kept {
        let opaque = opaque("google", json);
        let said = says_with("éa", opaque.clone());
        let parts = vec![thought("éa", opaque), said];
        let body = body(&API.request(vec![user("Hi"), Message::Assistant(parts)]));
        let wanted = serde_json::json!([{"text": "éa"}]);
        assert_eq!(body["contents"][1]["parts"], wanted, "{json}");
    }
}

/// A growing conversation begins as the shorter one did.
#[test]
fn what_was_asked_before_is_found_in_the_cache() {
    let messages = goes_on(work());
    let bodies = API.grown(&messages, &[1, 4, 6, 7, messages.len()], &card());
    let (whole, parts) = bodies.split_last().unwrap();
    parts.iter().for_each(|part| begins(whole, part, "]}]}"));
}
