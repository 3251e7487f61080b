//! A prompt as a request.
//!
//! The items of one answer name each other by their ids, and the server refuses one whose other
//! it misses: where one cannot go back, none has an id and the reasoning stays away.

use std::collections::HashSet;

use polyloop_session::history::{AssistantPart, Message};
use polyloop_session::item::{Opaque, Part};
use serde_json::value::{RawValue, to_raw_value};

use super::wire::{Content, Contents, FunctionCall, Item, Known, Reasoning, Tool};
use super::{NAME, NAME_WITH_SHELL, SHELL_CALL, SHELL_TOOL, wire};
use crate::model::Request;
use crate::model::json::{Fields, Object};
use crate::model::openai::{Sent, sent, word};
use crate::model::table::Card;
use crate::tool::ToolSpec;

pub fn request<'a>(request: &'a Request, model: &'a str, card: &Card) -> wire::Request<'a> {
    let form = if card.native_shell { NAME_WITH_SHELL } else { NAME };
    let told = |told| tools(told, card.native_shell);
    let tools = request.tools.written(form, told);
    let has_tools = tools.is_some();
    wire::Request {
        model,
        stream: true,
        store: false,
        include: card.reasoning.then_some(["reasoning.encrypted_content"]),
        reasoning: card.reasoning.then_some(Reasoning { effort: "medium", summary: "auto" }),
        tool_choice: has_tools.then_some("auto"),
        parallel_tool_calls: has_tools.then_some(true),
        instructions: &request.instructions,
        tools,
        input: input(&request.prompt.messages, card),
    }
}

fn tools(told: &[ToolSpec], native_shell: bool) -> Vec<Tool<'_>> {
    let tools = told.iter().map(|spec| match spec {
        ToolSpec { name, .. } if native_shell && *name == SHELL_TOOL => Tool::LocalShell,
        ToolSpec { name, description, parameters } => {
            Tool::Function { name, description, parameters, strict: false }
        }
    });
    tools.collect()
}

fn input<'a>(messages: &'a [Message], card: &Card) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    // Calls of the provider's own shell, whose results have a type of their own.
    let mut native: HashSet<&str> = HashSet::new();
    for message in messages {
        match message {
            Message::User(parts) => items.extend(user(parts, card)),
            Message::Assistant(parts) => assistant(parts, card, &mut items, &mut native),
            Message::ToolResult { call_ref, output, name: _, is_error: _ } => {
                let (call_id, output) = (&**call_ref, &**output);
                items.push(Item::Ours(match native.contains(call_id) {
                    true => Known::LocalShellCallOutput { id: call_id, call_id, output },
                    false => Known::FunctionCallOutput { call_id, output },
                }));
            }
        }
    }
    items
}

fn user<'a>(parts: &'a [Part], card: &Card) -> Option<Item<'a>> {
    let content = parts.iter().filter_map(|part| sent(part, card));
    let content: Vec<Content<'_>> = content
        .map(|sent| match sent {
            Sent::Text(text) => Content::InputText { text },
            Sent::Image(image_url) => Content::InputImage { image_url, detail: "auto" },
        })
        .collect();
    if content.is_empty() {
        return None;
    }
    let (role, status, extra) = ("user", None, Fields::default());
    let content = Contents::Parts(content);
    Some(Item::Ours(Known::Message(wire::Message { role, status, content, extra })))
}

/// A part that goes back, and what came with it from this interface.
struct Kept<'a> {
    part: &'a AssistantPart,
    came: Object<'a>,
}

fn assistant<'a>(
    parts: &'a [AssistantPart],
    card: &Card,
    items: &mut Vec<Item<'a>>,
    native: &mut HashSet<&'a str>,
) {
    let mut kept: Vec<Kept<'a>> = parts.iter().filter_map(|part| keep(part, card)).collect();
    let has_id = |kept: &Kept<'_>| match kept.part {
        AssistantPart::Text { .. } => word(&kept.came, "id").is_some(),
        AssistantPart::Reasoning { .. } => !is_thought(kept) || word(&kept.came, "id").is_some(),
        // Not every server names its calls, and none misses the name.
        AssistantPart::ToolCall { .. } => true,
    };
    let with_ids = kept.len() == parts.len() && kept.iter().all(has_id);
    kept.retain(|kept| with_ids || !is_thought(kept));
    // Reasoning without what it led to is refused.
    while kept.last().is_some_and(is_thought) {
        kept.pop();
    }
    for Kept { part, came } in kept {
        items.extend(match part {
            AssistantPart::Text { text, .. } => {
                Some(Item::Ours(Known::Message(said(text, &came, with_ids))))
            }
            AssistantPart::Reasoning { opaque, .. } => as_it_came(opaque.as_ref()),
            AssistantPart::ToolCall { call_ref, opaque, .. } if is(&came, SHELL_CALL) => {
                native.insert(call_ref);
                let same = came.text("call_id").is_some_and(|given| given == **call_ref);
                match with_ids && same {
                    true => as_it_came(opaque.as_ref()),
                    false => shell_call(call_ref, &came, with_ids),
                }
            }
            AssistantPart::ToolCall { call_ref, name, args, .. } => {
                let names = ["type", "call_id", "name", "arguments", "status"];
                let arguments = if args.trim().is_empty() { "{}" } else { args };
                let extra = rest(&came, &names, with_ids);
                let call = FunctionCall { call_id: call_ref, name, arguments, extra };
                Some(Item::Ours(Known::FunctionCall(call)))
            }
        });
    }
}

fn said<'a>(text: &'a str, came: &Object<'_>, with_id: bool) -> wire::Message<'a> {
    let extra = rest(came, &["type", "role", "content", "status"], with_id);
    let content = match with_id {
        true => Contents::Parts(vec![Content::OutputText { text, annotations: [] }]),
        false => Contents::Text(text),
    };
    let status = with_id.then_some("completed");
    wire::Message { role: "assistant", status, content, extra }
}

/// What came beside these names.
fn rest(came: &Object<'_>, names: &[&str], with_id: bool) -> Fields {
    let id = (!with_id).then_some("id");
    came.without(&names.iter().copied().chain(id).collect::<Vec<_>>())
}

/// `None` cannot be: it has been read before.
fn as_it_came<'a>(opaque: Option<&Opaque>) -> Option<Item<'a>> {
    RawValue::from_string(opaque?.json.to_string()).ok().map(Item::Theirs)
}

/// The call under the name that its result has.
fn shell_call<'a>(call_ref: &str, came: &Object<'_>, with_id: bool) -> Option<Item<'a>> {
    #[derive(serde::Serialize)]
    struct Renamed<'a> {
        #[serde(flatten)]
        rest: Fields,
        call_id: &'a str,
    }

    let call = Renamed { rest: rest(came, &["call_id"], with_id), call_id: call_ref };
    to_raw_value(&call).ok().map(Item::Theirs)
}

fn is_thought(kept: &Kept<'_>) -> bool {
    is(&kept.came, "reasoning")
}

/// `None` for what cannot go back.
fn keep<'a>(part: &'a AssistantPart, card: &Card) -> Option<Kept<'a>> {
    let came = |opaque: &'a Option<Opaque>| {
        let opaque = opaque.as_ref().filter(|opaque| &*opaque.provider == NAME);
        opaque.and_then(|opaque| Object::read(&opaque.json))
    };
    let came = match part {
        AssistantPart::Text { text, .. } if text.is_empty() => return None,
        AssistantPart::Text { opaque, .. } => came(opaque).unwrap_or_default(),
        AssistantPart::ToolCall { opaque, .. } => {
            // What a shell's call has, a function's could not.
            let usable = |came: &Object<'_>| card.native_shell || !is(came, SHELL_CALL);
            came(opaque).filter(usable).unwrap_or_default()
        }
        AssistantPart::Reasoning { opaque, .. } => {
            let came = came(opaque)?;
            // The server kept nothing: an id alone would be asked for in vain.
            let told =
                word(&came, "encrypted_content").is_some() || !came.list("content").is_empty();
            if is(&came, "reasoning") && !(card.reasoning && told) {
                return None;
            }
            came
        }
    };
    Some(Kept { part, came })
}

fn is(came: &Object<'_>, kind: &str) -> bool {
    came.text("type").is_some_and(|given| given == kind)
}
