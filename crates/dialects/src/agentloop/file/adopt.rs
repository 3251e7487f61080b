//! What another program's line says of the conversation: user inputs and response items count,
//! everything else (control events, states, approvals, errors) is no part of it.

use polyloop_session::Text;
use polyloop_session::event::Adopted;
use polyloop_session::item::Part;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::image::{self, Image};

pub(super) fn piece(fields: &Map<String, Value>) -> Option<Adopted> {
    let kind = fields.get("event_type")?.as_str()?;
    let data = fields.get("message_data")?;
    if data.get("event").is_some() {
        return None;
    }
    match (kind, data.get("type")?.as_str()?) {
        ("websocket_message_received", "user_input") => user(data.pointer("/payload/input")?),
        ("websocket_message_sent", "response_item") => item(data.get("payload")?),
        _ => None,
    }
}

fn user(input: &Value) -> Option<Adopted> {
    let mut content: Vec<Part> = Vec::new();
    for item in input.as_array()? {
        match item.get("content") {
            Some(Value::String(text)) => content.push(Part::Text { text: text.as_str().into() }),
            Some(Value::Array(parts)) => content.extend(parts.iter().filter_map(part)),
            Some(_) => {}
            None => content.extend(part(item)),
        }
    }
    (!content.is_empty()).then_some(Adopted::User { content })
}

/// A text, or a picture that is one we take.
fn part(part: &Value) -> Option<Part> {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        return Some(Part::Text { text: text.into() });
    }
    part.get("type").filter(|kind| *kind == "input_image")?;
    image::part(Image::deserialize(part).ok()?).ok()
}

fn content_texts(content: &Value) -> Vec<Text> {
    match content {
        Value::String(text) => vec![text.as_str().into()],
        Value::Array(parts) => {
            let text = |part: &Value| part.get("text").and_then(Value::as_str).map(Text::from);
            parts.iter().filter_map(text).collect()
        }
        _ => Vec::new(),
    }
}

fn item(item: &Value) -> Option<Adopted> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).map(Text::from);
    match item.get("type")?.as_str()? {
        "message" if item.get("role").and_then(Value::as_str) == Some("assistant") => {
            let text: String = content_texts(item.get("content")?).concat();
            (!text.is_empty()).then(|| Adopted::Agent { text: text.into() })
        }
        "function_call" => Some(Adopted::ToolCall {
            call_ref: text("call_id").or_else(|| text("id"))?,
            name: text("name")?,
            args: text("arguments")?,
        }),
        "local_shell_call" => Some(Adopted::ToolCall {
            call_ref: text("call_id").or_else(|| text("id"))?,
            name: "shell".into(),
            args: item.get("action")?.to_string().into(),
        }),
        "function_call_output" | "local_shell_call_output" => {
            Some(Adopted::ToolResult { call_ref: text("call_id")?, output: text("output")? })
        }
        _ => None,
    }
}
