//! What is sent for which prompt.

use polyloop_session::history::{EXPLAINED_PREFIX, Message, SUMMARY_PREFIX};
use polyloop_session::item::Opaque;

use super::*;
use crate::model::openai::testing::*;

fn ours(json: &str) -> Option<Opaque> {
    opaque(NAME, json)
}

/// A question, a thought, a text, two calls, and what came of them.
fn with_calls(thought: Option<Opaque>) -> Vec<Message> {
    let signed = r#"{"extra_content":{"google":{"thought_signature":"Cp+/="}}}"#;
    vec![
        user("What is here?"),
        Message::Assistant(vec![
            thinks("Look.", thought),
            says("I look.", None),
            calls("call_1", "bash", r#"{"command":"ls"}"#, ours(signed)),
            calls("call_2", "bash", r#"{"command":"cat x"}"#, None),
        ]),
        result("call_1", "bash", "a.rs\nb.rs\n", false),
        result("call_2", "bash", "cat: x: No such file", true),
    ]
}

#[test]
fn requests_are_as_in_the_files() {
    let check = |name: &str, messages: Vec<Message>, card: &Card| {
        golden().check_request(&API, name, &request(messages), card);
    };
    let blind = Card { images: false, ..card() };
    let picture = || vec![Message::User(vec![text("What is this?"), image()])];
    let content = ours(r#"{"field":"reasoning_content"}"#);

    check("text", vec![user("Hello, wörld 👋")], &card());
    check("image", picture(), &card());
    check("image-not-taken", picture(), &blind);
    check("calls", with_calls(content.clone()), &card());
    check("calls-reasoning", with_calls(ours(r#"{"field":"reasoning"}"#)), &card());
    let details = concat!(
        r#"{"field":"reasoning_details","details":"#,
        r#"[{"type":"reasoning.text","text":"Look.","signature":"s=="}]}"#,
    );
    check("calls-details", with_calls(ours(details)), &card());
    let mut later = with_calls(content.clone());
    later.extend([Message::Assistant(vec![says("Two files.", None)]), user("Thanks.")]);
    check("calls-earlier", later, &card());
    check(
        "foreign",
        vec![
            user("Hi."),
            Message::Assistant(vec![
                thinks("Hm.", opaque("anthropic", r#"{"field":"reasoning"}"#)),
                thinks("Hm, too.", None),
                says("Hi!", opaque("gemini", r#"{"id":"g"}"#)),
                calls("toolu_1", "bash", "{}", opaque("anthropic", r#"{"id":"toolu_1"}"#)),
            ]),
            result("toolu_1", "bash", "ok", false),
        ],
        &card(),
    );
    check(
        "invalid-arguments",
        vec![
            user("Go."),
            Message::Assistant(vec![
                calls("call_1", "bash", r#"{"command":"ls"#, None),
                calls("call_2", "bash", "", None),
                calls("call_3", "bash", "[1]", None),
            ]),
            result("call_1", "bash", "bash: the arguments are not a JSON object", true),
            result("call_2", "bash", "bash: `command` is missing", true),
            result("call_3", "bash", "bash: the arguments are not a JSON object", true),
        ],
        &card(),
    );
    check(
        "summary",
        vec![user(&format!("{SUMMARY_PREFIX}Tests were written.")), user("Go on.")],
        &card(),
    );
    check(
        "explanation",
        vec![
            user("Delete it."),
            Message::Assistant(vec![calls("call_1", "bash", r#"{"command":"rm x"}"#, None)]),
            result("call_1", "bash", "Denied", true),
            user(&format!("{EXPLAINED_PREFIX}It removes x.")),
        ],
        &card(),
    );
}

#[test]
fn without_tools_nothing_is_said_of_them() {
    let request =
        Request { tools: [].into(), instructions: "".into(), ..request(vec![user("Hi")]) };
    golden().check_request(&API, "no-tools", &request, &card());
}

#[test]
fn roles_alternate_and_nothing_is_empty() {
    let thought = || ours(r#"{"field":"reasoning_content"}"#);
    let messages = vec![
        Message::User(vec![text("")]),
        user("One."),
        Message::Assistant(vec![says("", None), thinks("only a thought", thought())]),
        Message::User(vec![text("Two."), image()]),
        Message::Assistant(vec![thinks("a", thought()), says("Three.", None)]),
        Message::Assistant(vec![
            thinks("b", thought()),
            says("Four.", None),
            calls("call_1", "bash", "{}", None),
            says("Five.", None),
        ]),
        result("call_1", "bash", "", false),
        Message::Assistant(vec![thinks("", ours("not JSON")), says("Six.", None)]),
    ];
    golden().check_request(&API, "merged", &request(messages), &card());
}

#[test]
fn a_longer_prompt_begins_as_the_shorter_one_did() {
    let messages = with_calls(None);
    let body = |count: usize| {
        String::from_utf8(API.encode(&request(messages[..count].to_vec()), MODEL, &card())).unwrap()
    };
    let whole = body(messages.len());
    for count in 1..messages.len() {
        let shorter = body(count);
        assert!(whole.starts_with(shorter.strip_suffix("]}").unwrap()), "{shorter}\n{whole}");
    }
}
