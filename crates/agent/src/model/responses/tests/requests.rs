//! What is sent for which prompt.

use polyloop_session::history::{EXPLAINED_PREFIX, Message, SUMMARY_PREFIX};
use polyloop_session::item::Opaque;

use super::*;
use crate::model::openai::testing::*;

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
            thinks("Look.", ours(THOUGHT)),
            says("I look.", ours(r#"{"id":"msg_1","phase":"commentary"}"#)),
            calls("call_1", "bash", r#"{"command":"ls"}"#, ours(r#"{"id":"fc_1"}"#)),
            calls(
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
            thinks("", ours(THOUGHT)),
            calls("call_s", "bash", r#"{"command":"ls"}"#, ours(SHELL)),
            calls("call_7_2", "bash", r#"{"command":"ls"}"#, ours(SHELL)),
            calls("call_f", "apply_patch", "{}", ours(r#"{"id":"fc_9"}"#)),
        ]),
        result("call_s", "bash", "a.rs", false),
        result("call_7_2", "bash", "", false),
        result("call_f", "apply_patch", "done", false),
    ]
}

#[test]
fn requests_are_as_in_the_files() {
    let check = |name: &str, messages: Vec<Message>, card: &Card| {
        golden().check_request(&API, name, &request(messages), card);
    };
    let blind = Card { images: false, reasoning: false, ..card() };
    let picture = || vec![Message::User(vec![text("What is this?"), image()])];

    check("text", vec![user("Hello, wörld 👋")], &card());
    check("image", picture(), &card());
    check("image-not-taken", picture(), &blind);
    check("calls", with_calls(), &card());
    check("calls-without-reasoning", with_calls(), &blind);
    check("shell", with_shell(), &shell_card());
    check("shell-no-longer", with_shell(), &card());
    check(
        "foreign",
        vec![
            user("Hi."),
            Message::Assistant(vec![
                thinks("Hm.", opaque("anthropic", r#"{"type":"thinking","signature":"s"}"#)),
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
    check(
        "cut",
        vec![
            user("Tell."),
            // The text was cut: no id came with it, which the thought would miss.
            Message::Assistant(vec![thinks("Look.", ours(THOUGHT)), says("Once upon", None)]),
            user("And then?"),
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
            thinks("", ours(bare)),
            thinks("", ours("not JSON")),
            says("One.", ours(r#"{"id":"msg_1"}"#)),
            says("", None),
        ]),
        Message::Assistant(vec![
            thinks("Hm", ours(local)),
            says("Two.", ours(r#"{"id":"msg_2"}"#)),
            calls("call_1", "bash", "{}", None),
        ]),
        result("call_1", "bash", "", false),
        // Reasoning must not come last.
        Message::Assistant(vec![says("Three.", None), thinks("x", ours(THOUGHT)), says("", None)]),
        Message::Assistant(vec![says("", None)]),
    ];
    golden().check_request(&API, "left-out", &request(messages), &card());
}

#[test]
fn a_longer_prompt_begins_as_the_shorter_one_did() {
    for (messages, card) in [(with_calls(), card()), (with_shell(), shell_card())] {
        let body = |count: usize| {
            let body = API.encode(&request(messages[..count].to_vec()), MODEL, &card);
            String::from_utf8(body).unwrap()
        };
        let whole = body(messages.len());
        for count in 1..messages.len() {
            let shorter = body(count);
            assert!(whole.starts_with(shorter.strip_suffix("]}").unwrap()), "{shorter}\n{whole}");
        }
    }
}
