//! Sums a conversation up, much shorter than it is.
//!
//! Says who asked for what, which tools were used and what came last. When a script is being
//! followed, its open lines are kept word for word where they fit, so that the work can go on
//! from the summary alone.

use std::collections::BTreeMap;

use polyloop_session::Text;
use polyloop_session::history::{
    AssistantPart, EXPLAINED_PREFIX, Message, SUMMARISE_TEXT, SUMMARY_END, SUMMARY_PREFIX,
};
use polyloop_session::state::RESUME_TEXT;

use super::reply::{self, LEFT_HEADING, user_text};
use super::talk::shortened;

/// A summary has at most this part of the conversation's bytes.
const SUMMARY_PART: usize = 3;
/// ... but never fewer than these, so that something is said of a very short one.
const SUMMARY_BYTES_MIN: usize = 16;
/// Of a summary without the lines that are left of a script.
pub(super) const SUMMARY_BYTES_MAX: usize = 400;
const LEFT_BYTES_MAX: usize = 16 * 1024;

const ASKED_SHOWN_MAX: usize = 3;
const ASKED_BYTES_MAX: usize = 60;
const EARLIER_BYTES_MAX: usize = 100;
const RESULT_BYTES_MAX: usize = 80;
const TOOLS_SHOWN_MAX: usize = 8;

pub(super) fn summary(messages: &[Message]) -> Text {
    let messages = without_request(messages);
    let room = bytes(messages) / SUMMARY_PART;
    let left = reply::left(messages);
    let mut rest = String::new();
    if !left.is_empty() {
        rest = format!("{LEFT_HEADING}{}", left.join("\n"));
    }
    if rest.len() > LEFT_BYTES_MAX || rest.len() + SUMMARY_BYTES_MIN > room {
        rest.clear();
    }
    let prose_max = (room - rest.len().min(room)).clamp(SUMMARY_BYTES_MIN, SUMMARY_BYTES_MAX);
    format!("{}{rest}", shortened(&prose(messages), prose_max)).into()
}

pub(super) fn bytes(messages: &[Message]) -> usize {
    let part_bytes = |part: &AssistantPart| match part {
        AssistantPart::Text { text, .. } | AssistantPart::Reasoning { text, .. } => text.len(),
        AssistantPart::ToolCall { name, args, .. } => name.len() + args.len(),
    };
    let message_bytes = |message: &Message| match message {
        Message::User(parts) => user_text(parts).len(),
        Message::Assistant(parts) => parts.iter().map(part_bytes).sum(),
        Message::ToolResult { output, .. } => output.len(),
    };
    messages.iter().map(message_bytes).sum()
}

/// The wish for a summary is no part of the conversation.
fn without_request(messages: &[Message]) -> &[Message] {
    match messages.split_last() {
        Some((Message::User(parts), rest)) if user_text(parts) == SUMMARISE_TEXT => rest,
        _ => messages,
    }
}

fn prose(messages: &[Message]) -> String {
    let mut sentences = Vec::new();
    let (mut earlier, mut asked) = (None, Vec::new());
    for message in messages {
        let Message::User(parts) = message else { continue };
        let text = user_text(parts);
        if let Some(summary) = text.strip_prefix(SUMMARY_PREFIX) {
            let summary = summary.strip_suffix(SUMMARY_END).unwrap_or(summary);
            earlier = Some(shortened(summary, EARLIER_BYTES_MAX));
        } else if !text.starts_with(EXPLAINED_PREFIX) && text.trim() != RESUME_TEXT {
            asked.push(shortened(&text, ASKED_BYTES_MAX));
        }
    }
    if !asked.is_empty() {
        let more = match asked.len().saturating_sub(ASKED_SHOWN_MAX) {
            0 => String::new(),
            count => format!(" (and {count} more)"),
        };
        asked.truncate(ASKED_SHOWN_MAX);
        sentences.push(format!("The user asked: {}{more}.", asked.join("; ")));
    }
    let tools = tools(messages);
    if !tools.is_empty() {
        sentences.push(format!("Tools used: {tools}."));
    }
    if let Some((output, is_error)) = reply::last_result(messages) {
        let how = if is_error { " (an error)" } else { "" };
        sentences.push(format!("Last result{how}: {}.", shortened(output, RESULT_BYTES_MAX)));
    }
    if let Some(earlier) = earlier {
        sentences.push(format!("Before that: {earlier}"));
    }
    if sentences.is_empty() { "Little was said.".to_owned() } else { sentences.join(" ") }
}

fn tools(messages: &[Message]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for message in messages {
        if let Message::ToolResult { name, .. } = message {
            *counts.entry(name).or_default() += 1;
        }
    }
    let shown = counts.iter().take(TOOLS_SHOWN_MAX);
    let shown: Vec<String> = shown.map(|(name, count)| format!("{name} ×{count}")).collect();
    shown.join(", ")
}
