//! A prompt as a request.
//!
//! Messages of one role that follow each other become one, since many models' templates want the
//! roles to alternate.

use std::borrow::Cow;

use polyloop_session::history::{AssistantPart, Message};
use polyloop_session::item::Opaque;

use super::wire::{Assistant, Content, Function, ImageUrl, Part, StreamOptions, Tool, ToolCall};
use super::{NAME, thoughts, wire};
use crate::model::Request;
use crate::model::json::{self, Object};
use crate::model::openai::{Sent, sent};
use crate::model::table::Card;
use crate::tool::ToolSpec;

/// Stands between two texts that become one.
const BETWEEN: &str = "\n\n";

pub fn request<'a>(request: &'a Request, model: &'a str, card: &Card) -> wire::Request<'a> {
    wire::Request {
        model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        tools: request.tools.written(NAME, tools),
        messages: messages(request, card),
    }
}

fn tools(told: &[ToolSpec]) -> Vec<Tool<'_>> {
    let tools = told.iter().map(|ToolSpec { name, description, parameters }| Tool::Function {
        name,
        description,
        parameters,
    });
    tools.collect()
}

/// What is being put together, before its neighbour is known.
enum Open<'a> {
    User(Vec<Part<'a>>),
    Assistant(Assistant<'a>),
}

fn messages<'a>(request: &'a Request, card: &Card) -> Vec<wire::Message<'a>> {
    let mut out = Vec::new();
    if !request.instructions.is_empty() {
        out.push(wire::Message::System { content: &request.instructions });
    }
    let messages = &request.prompt.messages;
    // What was thought before the user spoke last is of no more use, and some servers refuse it.
    let spoke = messages.iter().rposition(|message| matches!(message, Message::User(_)));
    let mut open = None;
    for (at, message) in messages.iter().enumerate() {
        let said = match message {
            Message::User(parts) => {
                let parts: Vec<_> = parts.iter().filter_map(|part| user_part(part, card)).collect();
                (!parts.is_empty()).then_some(Open::User(parts))
            }
            Message::Assistant(parts) => {
                let recent = spoke.is_none_or(|spoke| at > spoke);
                assistant(parts, recent).map(Open::Assistant)
            }
            Message::ToolResult { call_ref, output, name: _, is_error: _ } => {
                close(&mut out, open.take());
                out.push(wire::Message::Tool { tool_call_id: call_ref, content: output });
                continue;
            }
        };
        open = match (open.take(), said) {
            (open, None) => open,
            (Some(Open::User(mut before)), Some(Open::User(after))) => {
                before.extend(after);
                Some(Open::User(before))
            }
            (Some(Open::Assistant(before)), Some(Open::Assistant(after)))
                if before.tool_calls.is_empty() =>
            {
                Some(Open::Assistant(joined(before, after)))
            }
            (before, said) => {
                close(&mut out, before);
                said
            }
        };
    }
    close(&mut out, open);
    out
}

fn close<'a>(out: &mut Vec<wire::Message<'a>>, open: Option<Open<'a>>) {
    out.extend(open.map(|open| match open {
        Open::User(parts) => wire::Message::User { content: content(parts) },
        Open::Assistant(assistant) => wire::Message::Assistant(assistant),
    }));
}

fn content(parts: Vec<Part<'_>>) -> Content<'_> {
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => Some(*text),
            Part::ImageUrl { .. } => None,
        })
        .collect();
    match texts.as_deref() {
        Some([text]) => Content::Text((*text).into()),
        Some(texts) => Content::Text(texts.join(BETWEEN).into()),
        None => Content::Parts(parts),
    }
}

fn user_part<'a>(part: &'a polyloop_session::item::Part, card: &Card) -> Option<Part<'a>> {
    sent(part, card).map(|sent| match sent {
        Sent::Text(text) => Part::Text { text },
        Sent::Image(url) => Part::ImageUrl { image_url: ImageUrl { url } },
    })
}

/// `None` when nothing is left to say. `recent` when the user has not spoken since.
fn assistant(parts: &[AssistantPart], recent: bool) -> Option<Assistant<'_>> {
    let mut out = Assistant::default();
    for part in parts {
        match part {
            AssistantPart::Text { text, .. } if text.is_empty() => {}
            AssistantPart::Text { text, .. } => add(&mut out.content, text),
            AssistantPart::Reasoning { text, opaque } => {
                if let Some(came) = came(opaque).filter(|_| recent) {
                    thoughts::back(&came, text, &mut out);
                }
            }
            AssistantPart::ToolCall { call_ref, name, args, opaque } => {
                let extra = came(opaque).unwrap_or_default();
                out.tool_calls.push(ToolCall {
                    id: call_ref,
                    r#type: "function",
                    function: Function { name, arguments: arguments(args) },
                    extra: extra.without(&["index", "id", "type", "function"]),
                });
            }
        }
    }
    (out.content.is_some() || !out.tool_calls.is_empty()).then_some(out)
}

fn came(opaque: &Option<Opaque>) -> Option<Object<'_>> {
    let opaque = opaque.as_ref().filter(|opaque| &*opaque.provider == NAME)?;
    Object::read(&opaque.json)
}

/// Many servers read what stands here, and fail at all of a conversation for one call that was
/// written badly.
fn arguments(args: &str) -> Cow<'_, str> {
    match Object::read(args) {
        Some(_) => args.into(),
        None => json::arguments(args).get().to_owned().into(),
    }
}

fn joined<'a>(mut before: Assistant<'a>, after: Assistant<'a>) -> Assistant<'a> {
    for (text, more) in [
        (&mut before.reasoning_content, &after.reasoning_content),
        (&mut before.reasoning, &after.reasoning),
        (&mut before.content, &after.content),
    ] {
        if let Some(more) = more {
            add(text, more);
        }
    }
    before.reasoning_details.extend(after.reasoning_details);
    before.tool_calls = after.tool_calls;
    before
}

/// More of a text, as a paragraph of its own.
pub fn add(text: &mut Option<String>, more: &str) {
    let text = text.get_or_insert_default();
    if !text.is_empty() {
        text.push_str(BETWEEN);
    }
    text.push_str(more);
}
