//! What is sent for which prompt.

use polyloop_session::history::{Message, SUMMARY_PREFIX};
use polyloop_session::item::Opaque;

use super::*;
use crate::model::testing::*;

requests_hold!(API);

fn ours(json: &str) -> Option<Opaque> {
    opaque(NAME, json)
}

/// A question, a thought, a text, two calls, and what came of them.
fn with_calls(kept: Option<Opaque>) -> Vec<Message> {
    let signed = r#"{"extra_content":{"google":{"thought_signature":"Cp+/="}}}"#;
    vec![
        user("What is here?"),
        Message::Assistant(vec![
            thought("Look.", kept),
            says("I look."),
            call("call_1", "bash", r#"{"command":"ls"}"#, ours(signed)),
            call("call_2", "bash", r#"{"command":"cat x"}"#, None),
        ]),
        result("call_1", "bash", "a.rs\nb.rs\n", false),
        result("call_2", "bash", "cat: x: No such file", true),
    ]
}

#[test]
fn requests_are_as_in_the_files() {
    let check = |name: &str, messages: Vec<Message>, card: &Card| {
        API.check_request(name, &API.request(messages), card);
    };
    let picture = || vec![Message::User(vec![text("What is this?"), image("image/png")])];
    let content = ours(r#"{"field":"reasoning_content"}"#);

    check("text", vec![user("Hello, wörld 👋")], &card());
    check("image", picture(), &card());
    check("calls", with_calls(content.clone()), &card());
    check("calls-reasoning", with_calls(ours(r#"{"field":"reasoning"}"#)), &card());
    let details = concat!(
        r#"{"field":"reasoning_details","details":"#,
        r#"[{"type":"reasoning.text","text":"Look.","signature":"s=="}]}"#,
    );
    check("calls-details", with_calls(ours(details)), &card());
    let mut later = with_calls(content.clone());
    later.extend([Message::Assistant(vec![says("Two files.")]), user("Thanks.")]);
    check("calls-earlier", later, &card());
    check("foreign", work_of_others(), &card());
    check(
        "summary",
        vec![user(&format!("{SUMMARY_PREFIX}Tests were written.")), user("Go on.")],
        &card(),
    );
}

#[test]
fn roles_alternate_and_nothing_is_empty() {
    let kept = || ours(r#"{"field":"reasoning_content"}"#);
    let messages = vec![
        Message::User(vec![text("")]),
        user("One."),
        Message::Assistant(vec![says(""), thought("only a thought", kept())]),
        Message::User(vec![text("Two."), image("image/png")]),
        Message::Assistant(vec![thought("a", kept()), says("Three.")]),
        Message::Assistant(vec![
            thought("b", kept()),
            says("Four."),
            call("call_1", "bash", "{}", None),
            says("Five."),
        ]),
        result("call_1", "bash", "", false),
        Message::Assistant(vec![thought("", ours("not JSON")), says("Six.")]),
    ];
    API.check_request("merged", &API.request(messages), &card());
}

#[test]
fn a_longer_prompt_begins_as_the_shorter_one_did() {
    let messages = goes_on(with_calls(None));
    // Not 7: a text that another follows becomes one with it.
    let bodies = API.grown(&messages, &[1, 2, 3, 4, 5, 6, 8, messages.len()], &card());
    let whole = bodies.last().unwrap();
    bodies.iter().for_each(|part| begins(whole, part, "]}"));
}

#[test]
fn an_explanation() {
    API.check_explain(&with_calls(ours(r#"{"field":"reasoning_content"}"#)));
}

#[test]
fn a_summary() {
    API.check_summarise(with_calls(ours(r#"{"field":"reasoning_content"}"#)));
}

#[test]
fn reasoning_and_calls_and_more() {
    API.check_work_and_more(with_calls(ours(r#"{"field":"reasoning_content"}"#)));
}
