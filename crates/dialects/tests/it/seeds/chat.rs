//! Every JSON example of the chat document.

use polyloop_dialects::chat::Chat;
use polyloop_dialects::{Dialect, Reply};
use polyloop_session::event::Outcome;
use polyloop_session::item::{ItemKind, ToolResult};
use polyloop_session::policy::Effect;
use polyloop_session::{Event, SessionId};
use serde_json::{Value, json};

use super::super::asked;
use super::super::make::{
    answered, begun, client_of, completed, judgement, proposed, queued, started, tool, updates,
};
use super::super::world::{json as json_of, sent};
use super::{Check, after, parse, runs};

pub fn checks() -> Vec<(&'static str, Check)> {
    vec![
        ("seed-004/01-chat.json", chat),
        ("seed-004/02-user-message.json", user_message),
        ("seed-004/03-agent-message.json", agent_message),
        ("seed-004/04-tool-call.json", tool_call),
        ("seed-004/05-tool-result.json", tool_result),
        ("seed-004/06-agent-thinking.json", agent_thinking),
        ("seed-004/07-error.json", error),
    ]
}

fn chat(text: &str) {
    let asked = Chat.decode(text, &client_of(&Chat)).unwrap();
    assert_eq!(asked.session, SessionId::parse("optional-session-id").ok());
    let send = json!({"content": ["Hello agent"], "client_ref": null, "tokens": 3,
        "answers": "any"});
    assert_eq!(asked::told(&asked.ask), json!({ "send": send }));
}

/// The last frame is the example, but for the place that we add.
fn is_like(example: &str, events: Vec<Event>) {
    let mut frame: Value = sent(&Chat, &updates(events)).concat().pop().unwrap().json;
    for ours in ["session_id", "seq", "cursor"] {
        frame.as_object_mut().unwrap().remove(ours);
    }
    assert_eq!(frame, parse(example));
}

fn user_message(text: &str) {
    let [_, turn, _] = <[Event; 3]>::try_from(begun()).unwrap();
    is_like(text, vec![queued("Hello agent"), turn]);
}

fn agent_message(text: &str) {
    let said = completed(4, "Hi! How can I help?", None);
    let end = Event::TurnEnded { outcome: Outcome::Completed, usage: Default::default() };
    is_like(text, after([started(3, ItemKind::Text), said, answered(3), end]));
}

fn search() -> [Event; 2] {
    let judged = judgement(Effect::Read, &["Search", "weather"], None);
    [started(3, tool("Search")), proposed(4, r#"{"query":"weather"}"#, judged)]
}

fn tool_call(text: &str) {
    is_like(text, after(search()));
}

fn tool_result(text: &str) {
    let done = completed(4, "Sunny, 70F", Some(ToolResult::default()));
    is_like(text, after(search().into_iter().chain([answered(3), runs(4), done])));
}

fn agent_thinking(text: &str) {
    let thought = completed(4, "Planning tool usage...", None);
    is_like(text, after([started(3, ItemKind::Reasoning), thought]));
}

fn error(text: &str) {
    let empty = r#"{"type":"chat","message":" "}"#;
    let complaint = Chat.decode(empty, &client_of(&Chat)).unwrap_err();
    let frame = json_of(&Chat.reply(None, 1, &Reply::Complaint(complaint)));
    assert_eq!(frame, parse(text));
}
