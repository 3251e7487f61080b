//! What prompts are made of.

use polyloop_session::history::{AssistantPart, Message};
use polyloop_session::item::{Opaque, Part};

pub fn text(text: &str) -> Part {
    Part::Text { text: text.into() }
}

pub fn image(media_type: &str) -> Part {
    Part::Image { media_type: media_type.into(), data: "iVBORw0KGgo=".into() }
}

pub fn user(said: &str) -> Message {
    Message::User(vec![text(said)])
}

pub fn says(text: &str) -> AssistantPart {
    says_with(text, None)
}

pub fn says_with(text: &str, opaque: Option<Opaque>) -> AssistantPart {
    AssistantPart::Text { text: text.into(), opaque }
}

pub fn thought(text: &str, opaque: Option<Opaque>) -> AssistantPart {
    AssistantPart::Reasoning { text: text.into(), opaque }
}

pub fn call(call_ref: &str, name: &str, args: &str, opaque: Option<Opaque>) -> AssistantPart {
    let (call_ref, name, args) = (call_ref.into(), name.into(), args.into());
    AssistantPart::ToolCall { call_ref, name, args, opaque }
}

pub fn result(call_ref: &str, name: &str, output: &str, is_error: bool) -> Message {
    let (call_ref, name, output) = (call_ref.into(), name.into(), output.into());
    Message::ToolResult { call_ref, name, output, is_error }
}

pub fn opaque(provider: &str, json: &str) -> Option<Opaque> {
    Some(Opaque { provider: provider.into(), json: json.into() })
}

/// What models of other providers did, in fields that would mean something to OpenAI's.
pub fn work_of_others() -> Vec<Message> {
    let signed = r#"{"type":"thinking","signature":"s","field":"reasoning"}"#;
    vec![
        user("Hi."),
        Message::Assistant(vec![
            thought("Hm.", opaque("anthropic", signed)),
            thought("Hm, too.", None),
            says_with("Hi!", opaque("gemini", r#"{"id":"g"}"#)),
            call("toolu_1", "bash", "{}", opaque("anthropic", r#"{"id":"toolu_1"}"#)),
        ]),
        result("toolu_1", "bash", "ok", false),
    ]
}

/// With more behind it.
pub fn then<const N: usize>(mut messages: Vec<Message>, more: [Message; N]) -> Vec<Message> {
    messages.extend(more);
    messages
}

/// A piece of work, and what was said after it.
pub fn goes_on(work: Vec<Message>) -> Vec<Message> {
    let more = [
        Message::Assistant(vec![says("Two files.")]),
        user("And now?"),
        Message::Assistant(vec![says("Half"), says("")]),
        Message::Assistant(vec![says("Whole.")]),
        user("Thanks."),
    ];
    then(work, more)
}
