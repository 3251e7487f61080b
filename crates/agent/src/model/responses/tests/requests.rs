//! What is sent for which prompt.

use polyloop_session::history::{Message, SUMMARY_PREFIX};
use polyloop_session::item::Opaque;

use super::*;
use crate::model::testing::*;

requests_hold!(API);

const THOUGHT: &str = concat!(
    r#"{"id":"rs_1","type":"reasoning","encrypted_content":"gAAAA+/=","#,
    r#""summary":[{"type":"summary_text","text":"Look."}], "glow": 1.50}"#,
);
const SHELL: &str = concat!(
    r#"{"id":"lsh_1","type":"local_shell_call","status":"completed","call_id":"call_s","#,
    r#""action":{"type":"exec","command":["ls"],"env":{}}}"#,
);

fn ours(json: &str) -> Option<Opaque> {
    opaque(NAME, json)
}

fn shell_card() -> Card {
    Card { native_shell: true, ..card() }
}

/// A question, a thought, a text, two calls, and what came of them.
fn with_calls() -> Vec<Message> {
    vec![
        user("What is here?"),
        Message::Assistant(vec![
            thought("Look.", ours(THOUGHT)),
            says_with("I look.", ours(r#"{"id":"msg_1","phase":"commentary"}"#)),
            call("call_1", "bash", r#"{"command":"ls"}"#, ours(r#"{"id":"fc_1"}"#)),
            call(
                "call_2",
                "bash",
                r#"{"command":"cat x"}"#,
                ours(r#"{"id":"fc_2","namespace":"n"}"#),
            ),
        ]),
        result("call_1", "bash", "a.rs\nb.rs\n", false),
        result("call_2", "bash", "cat: x: No such file", true),
    ]
}

fn with_shell() -> Vec<Message> {
    vec![
        user("List."),
        Message::Assistant(vec![
            thought("", ours(THOUGHT)),
            call("call_s", "bash", r#"{"command":"ls"}"#, ours(SHELL)),
            call("call_7_2", "bash", r#"{"command":"ls"}"#, ours(SHELL)),
            call("call_f", "apply_patch", "{}", ours(r#"{"id":"fc_9"}"#)),
        ]),
        result("call_s", "bash", "a.rs", false),
        result("call_7_2", "bash", "", false),
        result("call_f", "apply_patch", "done", false),
    ]
}

#[test]
fn requests_are_as_in_the_files() {
    let check = |name: &str, messages: Vec<Message>, card: &Card| {
        API.check_request(name, &API.request(messages), card);
    };
    let plain = plain_card();
    let picture = || vec![Message::User(vec![text("What is this?"), image("image/png")])];

    check("text", vec![user("Hello, wörld 👋")], &card());
    check("image", picture(), &card());
    check("calls", with_calls(), &card());
    check("calls-without-reasoning", with_calls(), &plain);
    check("shell", with_shell(), &shell_card());
    check("shell-no-longer", with_shell(), &card());
    check("foreign", work_of_others(), &card());
    check(
        "summary",
        vec![user(&format!("{SUMMARY_PREFIX}Tests were written.")), user("Go on.")],
        &card(),
    );
    check(
        "cut",
        vec![
            user("Tell."),
            // The text was cut: no id came with it, which the thought would miss.
            Message::Assistant(vec![thought("Look.", ours(THOUGHT)), says("Once upon")]),
            user("And then?"),
        ],
        &card(),
    );
}

#[test]
fn what_cannot_go_back_is_left_out() {
    let bare = r#"{"id":"rs_1","type":"reasoning","encrypted_content":null,"summary":[]}"#;
    let local = concat!(
        r#"{"id":"x","type":"reasoning","summary":[],"#,
        r#""content":[{"type":"reasoning_text","text":"Hm"}]}"#,
    );
    let messages = vec![
        Message::User(vec![text("")]),
        user("Hi."),
        Message::Assistant(vec![
            thought("", ours(bare)),
            thought("", ours("not JSON")),
            says_with("One.", ours(r#"{"id":"msg_1"}"#)),
            says(""),
        ]),
        Message::Assistant(vec![
            thought("Hm", ours(local)),
            says_with("Two.", ours(r#"{"id":"msg_2"}"#)),
            call("call_1", "bash", "{}", None),
        ]),
        result("call_1", "bash", "", false),
        // Reasoning must not come last.
        Message::Assistant(vec![says("Three."), thought("x", ours(THOUGHT)), says("")]),
        Message::Assistant(vec![says("")]),
    ];
    API.check_request("left-out", &API.request(messages), &card());
}

#[test]
fn a_longer_prompt_begins_as_the_shorter_one_did() {
    for (work, card) in [(with_calls(), card()), (with_shell(), shell_card())] {
        let messages = goes_on(work);
        let counts: Vec<usize> = (1..=messages.len()).collect();
        let bodies = API.grown(&messages, &counts, &card);
        let whole = bodies.last().unwrap();
        bodies.iter().for_each(|part| begins(whole, part, "]}"));
    }
}

#[test]
fn an_explanation() {
    API.check_explain(&with_calls());
}

#[test]
fn a_summary() {
    API.check_summarise(with_calls());
}

#[test]
fn reasoning_and_calls_and_more() {
    API.check_work_and_more(with_calls());
}
