use std::sync::Arc;

use polyloop_session::event::Purpose;
use polyloop_session::history::{
    AssistantPart, EXPLAINED_PREFIX, Message, SUMMARISE_TEXT, SUMMARY_PREFIX,
};
use polyloop_session::item::Part;
use polyloop_session::{Seq, WaitId};
use serde_json::Value;

use super::*;
use crate::model::json::testing::{call, card, opaque, request, result, says, thought, user};

const MODEL: &str = "gemini-3-pro-preview";

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
            AssistantPart::Text { text: "Écco".into(), opaque: kept(words) },
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
            AssistantPart::Text { text: "I look.".into(), opaque: theirs(r#"{"parts":[]}"#) },
            call("toolu_1", "bash", r#"{"command": "ls"}"#, theirs(r#"{"thoughtSignature":"no"}"#)),
            call("toolu_2", "bash", "[1]", None),
        ]),
        result("toolu_1", "bash", "", false),
        result("toolu_2", "bash", "not an object", true),
    ]
}

fn check(name: &str, messages: Vec<Message>) {
    golden().check_request(&Gemini, name, &request(messages), MODEL);
}

fn body(request: &Request) -> Value {
    serde_json::from_slice(&Gemini.encode(request, MODEL, &card())).unwrap()
}

#[test]
fn plain_text() {
    check("text", vec![user("Grüße, \"Welt\" 👋\n")]);
}

#[test]
fn images() {
    let parts = vec![
        Part::Text { text: "Look:".into() },
        Part::Image { media_type: "image/png".into(), data: "iVBORw0KGgo=".into() },
        Part::Text { text: " \n".into() },
    ];
    check("image", vec![Message::User(parts.clone())]);
    let blind = Card { images: false, ..card() };
    let body = Gemini.encode(&request(vec![Message::User(parts)]), MODEL, &blind);
    let body: Value = serde_json::from_slice(&body).unwrap();
    let told = "[an image was attached, which this model does not take]";
    assert_eq!(body["contents"][0]["parts"][1]["text"], told);
}

#[test]
fn reasoning_and_calls() {
    check("work", work());
    let mut later = work();
    later.push(user("And now?"));
    later.push(user("Well?"));
    check("work-and-more", later);
}

#[test]
fn work_of_another_provider() {
    check("foreign", foreign_work());
}

#[test]
fn after_a_summary() {
    let mut messages = vec![user(&format!("{SUMMARY_PREFIX}We looked."))];
    messages.extend(work());
    check("summary", messages);
}

#[test]
fn an_explanation() {
    let mut messages = work();
    messages.push(user(&format!("{EXPLAINED_PREFIX}It lists files.")));
    check("explained", messages);

    let mut messages = work();
    messages.push(user("Before I decide: explain."));
    let mut asking = request(messages);
    asking.prompt.purpose = Purpose::Explain { wait: WaitId(Seq(3)) };
    asking.tools = Arc::new([]);
    golden().check_request(&Gemini, "explain", &asking, MODEL);
}

#[test]
fn a_summary() {
    let mut messages = foreign_work();
    messages.push(user(SUMMARISE_TEXT));
    let mut asking = request(messages);
    asking.prompt.purpose = Purpose::Summarise;
    asking.tools = Arc::new([]);
    golden().check_request(&Gemini, "summarise", &asking, MODEL);
}

#[test]
fn a_user_begins_and_ends() {
    let answered = |text: &str| Message::Assistant(vec![says(text)]);
    let messages = vec![answered("Well:"), answered("Half an ans"), user(" "), answered("So.")];
    check("ends", messages);
    assert_eq!(body(&request(vec![]))["contents"].as_array().unwrap().len(), 1);
}

#[test]
fn nothing_is_asked_for_that_is_not_known() {
    let mut bare = request(vec![user("Hi"), Message::Assistant(vec![says(" ")])]);
    bare.instructions = "\n".into();
    bare.tools = Arc::new([]);
    let card = Card { output_tokens_max: 0, reasoning: false, ..card() };
    let body = String::from_utf8(Gemini.encode(&bare, MODEL, &card)).unwrap();
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
        let said = AssistantPart::Text { text: "éa".into(), opaque: opaque.clone() };
        let parts = vec![thought("éa", opaque), said];
        let body = body(&request(vec![user("Hi"), Message::Assistant(parts)]));
        let wanted = serde_json::json!([{"text": "éa"}]);
        assert_eq!(body["contents"][1]["parts"], wanted, "{json}");
    }
}

/// A growing conversation begins as the shorter one did.
#[test]
fn what_was_asked_before_is_found_in_the_cache() {
    let mut messages = work();
    messages.push(Message::Assistant(vec![says("Two files.")]));
    messages.push(user("And now?"));
    messages.push(Message::Assistant(vec![says("Half"), says("")]));
    messages.push(Message::Assistant(vec![says("Whole.")]));
    messages.push(user("Thanks."));
    let asked = |count: usize| {
        let body = Gemini.encode(&request(messages[..count].to_vec()), MODEL, &card());
        String::from_utf8(body).unwrap()
    };
    let whole = asked(messages.len());
    for count in [1, 4, 6, 7] {
        let part = asked(count);
        let common = part.strip_suffix("]}]}").unwrap();
        assert!(whole.starts_with(common), "{common}\n{whole}");
    }
}
