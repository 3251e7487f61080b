//! A prompt as a request to Anthropic.
//!
//! Roles alternate and a user begins and ends; every call is followed by its result, all results
//! of one message standing first in the next.

use std::borrow::Cow;

use polyloop_session::Text;
use polyloop_session::event::Purpose;
use polyloop_session::history::{AssistantPart, Message, Prompt, SUMMARY_PREFIX};
use polyloop_session::item::{Opaque, Part};
use serde_json::json;

use super::wire::{
    self, Block, Body, CacheControl, Display, Kind, Role, Source, System, Thinking, Tool,
    ToolChoice,
};
use super::{NAME, binds_reasoning, thinks_adaptively};
use crate::model::Request;
use crate::model::json::{self, Object};
use crate::model::pieces::Pieces;
use crate::model::table::Card;
use crate::tool::{ToolSpec, Written};

/// Of one answer: what may be written counts against the window before it is.
const OUTPUT_TOKENS_MAX: u64 = 32_000;
/// Of one answer's reasoning, where a number is wanted.
const THINKING_TOKENS_MAX: u64 = 8_000;
/// Less is refused.
const THINKING_TOKENS_MIN: u64 = 1_024;
/// Breakpoints in messages; one more stands behind the tools and one behind the instructions.
const MESSAGE_BREAKPOINTS: usize = 2;

const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
const NO_IMAGE: &str = "[an image was attached, which this model does not take]";
const NO_TEXT: &str = "(The message was empty.)";
const NO_OUTPUT: &str = "(no output)";
const BEGUN: &str = "(The conversation begins with your answer.)";
const GO_ON: &str = "(Go on.)";
/// Before an id that had to be changed.
const CHANGED_ID: &str = "id-";

pub(super) fn body(request: &Request, model: &str, card: &Card) -> Pieces {
    let max_tokens = card.output_tokens_max.clamp(1, OUTPUT_TOKENS_MAX);
    let goes_on = request.prompt.purpose == Purpose::Think;
    let reasoning = goes_on && !(binds_reasoning(model) && is_summarised(&request.prompt));
    let mut messages = messages(&request.prompt, card, reasoning);
    mark_last(&mut messages);
    let wanted = card.reasoning && goes_on;
    let thinking = wanted.then(|| thinking(model, max_tokens, &messages)).flatten();
    let (tools, tool_choice) = tools(request);
    let text = Some(&request.instructions).filter(|words| !words.trim().is_empty());
    let system = text.map(|text| [System { text, cache_control: CacheControl::Ephemeral }]);
    let body =
        Body { model, max_tokens, stream: true, thinking, tool_choice, tools, system, messages };
    json::written(&body, request)
}

fn is_summarised(prompt: &Prompt) -> bool {
    let Some(Message::User(parts)) = prompt.messages.first() else { return false };
    matches!(parts.first(), Some(Part::Text { text }) if text.starts_with(SUMMARY_PREFIX))
}

fn thinking(model: &str, max_tokens: u64, messages: &[wire::Message<'_>]) -> Option<Thinking> {
    if thinks_adaptively(model) {
        // Otherwise nothing of it would be shown.
        return Some(Thinking::Adaptive { display: Display::Summarized });
    }
    let budget_tokens = THINKING_TOKENS_MAX.min(max_tokens / 2);
    let fits = budget_tokens >= THINKING_TOKENS_MIN && may_think(messages);
    fits.then_some(Thinking::Enabled { budget_tokens })
}

/// Whoever works with tools must have begun with thinking, or is refused when asked to think now:
/// another model's work, whose reasoning stays away, is finished without.
fn may_think(messages: &[wire::Message<'_>]) -> bool {
    let mut begun = true;
    for message in messages.iter().rev() {
        let has = |wanted: fn(&Kind<'_>) -> bool| message.content.iter().any(|b| wanted(&b.kind));
        match message.role {
            Role::User if !has(|kind| matches!(kind, Kind::ToolResult { .. })) => return begun,
            Role::User => {}
            Role::Assistant => {
                begun = message.content.first().is_some_and(|block| block.kind.is_thinking());
            }
        }
    }
    begun
}

/// Calls in a conversation are refused where no tools are told of: where none may be proposed,
/// those that were used are named, and forbidden.
fn tools(request: &Request) -> (Option<Written>, Option<ToolChoice>) {
    if let Some(written) = request.tools.written(NAME, told) {
        return (Some(written), None);
    }
    let used = used(&request.prompt).into_iter().map(|name| {
        let input_schema = Cow::Owned(json!({"type": "object"}).into());
        Tool { name, description: None, input_schema, cache_control: None }
    });
    let used: Vec<Tool<'_>> = used.collect();
    match used.is_empty() {
        true => (None, None),
        false => (Some(Written::of(&cached(used))), Some(ToolChoice::None)),
    }
}

fn told(specs: &[ToolSpec]) -> Vec<Tool<'_>> {
    let tools = specs.iter().map(|spec| Tool {
        name: spec.name,
        description: Some(&spec.description).filter(|words| !words.is_empty()),
        input_schema: Cow::Borrowed(&spec.parameters),
        cache_control: None,
    });
    cached(tools.collect())
}

/// With a breakpoint behind the last one.
fn cached(mut tools: Vec<Tool<'_>>) -> Vec<Tool<'_>> {
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
    tools
}

/// The tools a conversation called, each once.
fn used(prompt: &Prompt) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for message in &prompt.messages {
        let Message::Assistant(parts) = message else { continue };
        for part in parts {
            if let AssistantPart::ToolCall { name, .. } = part
                && !names.contains(&&**name)
            {
                names.push(name);
            }
        }
    }
    names
}

fn messages<'a>(prompt: &'a Prompt, card: &Card, reasoning: bool) -> Vec<wire::Message<'a>> {
    let mut out = Vec::new();
    for message in &prompt.messages {
        match message {
            Message::User(parts) => {
                let mut blocks: Vec<Block<'a>> =
                    parts.iter().filter_map(|part| user(part, card)).collect();
                if blocks.is_empty() {
                    blocks.push(Kind::Text { text: NO_TEXT }.into());
                }
                push(&mut out, Role::User, blocks);
            }
            Message::Assistant(parts) => {
                let said = parts.iter().filter_map(|part| assistant(part, reasoning)).collect();
                push(&mut out, Role::Assistant, said);
            }
            Message::ToolResult { call_ref, output, is_error, .. } => {
                let content = if output.trim().is_empty() { NO_OUTPUT } else { output };
                let (tool_use_id, is_error) = (id(call_ref), *is_error);
                let result = Kind::ToolResult { tool_use_id, content, is_error };
                push(&mut out, Role::User, vec![result.into()]);
            }
        }
    }
    // An answer to be gone on with is a thing of the past: newer models refuse it.
    match out.last().map(|last| last.role) {
        Some(Role::User) => {}
        Some(Role::Assistant) => push(&mut out, Role::User, filler(GO_ON)),
        None => push(&mut out, Role::User, filler(NO_TEXT)),
    }
    out
}

/// What stands between messages is the same whatever comes later, or nothing would be found in
/// the provider's cache.
fn push<'a>(out: &mut Vec<wire::Message<'a>>, role: Role, content: Vec<Block<'a>>) {
    if content.is_empty() {
        return;
    }
    match (out.last_mut(), role) {
        (Some(last), Role::User) if last.role == Role::User => {
            last.content.extend(content);
            return;
        }
        (Some(last), Role::Assistant) if last.role == Role::Assistant => {
            out.push(wire::Message { role: Role::User, content: filler(GO_ON) });
        }
        (None, Role::Assistant) => {
            out.push(wire::Message { role: Role::User, content: filler(BEGUN) });
        }
        (Some(_) | None, Role::User | Role::Assistant) => {}
    }
    out.push(wire::Message { role, content });
}

fn filler(text: &str) -> Vec<Block<'_>> {
    vec![Kind::Text { text }.into()]
}

/// Nothing where there is nothing but blanks: such texts are refused.
fn text(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then(|| Kind::Text { text }.into())
}

fn user<'a>(part: &'a Part, card: &Card) -> Option<Block<'a>> {
    match part {
        Part::Text { text: words } => text(words),
        Part::Image { media_type, data } if card.images && IMAGE_TYPES.contains(&&**media_type) => {
            Some(Kind::Image { source: Source::Base64 { media_type, data } }.into())
        }
        Part::Image { .. } => text(NO_IMAGE),
    }
}

fn assistant(part: &AssistantPart, reasoning: bool) -> Option<Block<'_>> {
    match part {
        AssistantPart::Text { text: words, .. } => text(words),
        AssistantPart::Reasoning { text, opaque } => {
            let kept = reasoning.then(|| own(opaque)).flatten()?;
            if kept.raw("type").is_some() {
                return Some(Kind::Whole(kept.all()).into());
            }
            kept.text("signature").filter(|signature| !signature.is_empty())?;
            let rest = kept.without(&["thinking", "cache_control"]);
            Some(Kind::Thinking { thinking: text, rest }.into())
        }
        AssistantPart::ToolCall { call_ref, name, args, opaque } => {
            let rest = own(opaque).unwrap_or_default();
            let rest = rest.without(&["type", "id", "name", "input", "cache_control"]);
            let (id, input) = (id(call_ref), json::arguments(args));
            Some(Kind::ToolUse { id, name, input, rest }.into())
        }
    }
}

/// What came from here; what came from others means nothing here.
fn own(opaque: &Option<Opaque>) -> Option<Object<'_>> {
    let opaque = opaque.as_ref().filter(|opaque| &*opaque.provider == NAME)?;
    Object::read(&opaque.json)
}

/// Ids of other providers may have characters that are refused here. Two ids stay two.
fn id(call_ref: &Text) -> Cow<'_, str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let fits = |b: u8| plain(b) || b == b'_';
    if !call_ref.is_empty() && call_ref.bytes().all(fits) && !call_ref.starts_with(CHANGED_ID) {
        return Cow::Borrowed(call_ref);
    }
    let changed = call_ref.bytes().map(|b| match plain(b) {
        true => char::from(b).to_string(),
        false => format!("_{b:02x}"),
    });
    Cow::Owned(format!("{CHANGED_ID}{}", changed.collect::<String>()))
}

/// What was asked last time is found in the cache by its mark, and what is asked now is put there
/// for the next.
fn mark_last(messages: &mut [wire::Message<'_>]) {
    let asked = messages.iter_mut().rev().filter(|message| message.role == Role::User);
    asked.take(MESSAGE_BREAKPOINTS).for_each(|message| mark(message.content.last_mut()));
}

fn mark(block: Option<&mut Block<'_>>) {
    if let Some(block) = block {
        block.cache_control = Some(CacheControl::Ephemeral);
    }
}
