//! Tells the server's own log what was decided about tool calls: by whom, where, by which rule.
//!
//! The session's log is the truth of it; this is for whoever runs the server. Never says what a
//! call's arguments were: they may hold secrets.

use polyloop_session::item::{End, ItemKind};
use polyloop_session::policy::{Judgement, Leave};
use polyloop_session::state::ToolPhase;
use polyloop_session::{Event, ItemId, State};

use crate::meter::decision;

/// To be called before the event is applied, while its item is still known.
pub(super) fn tell(session: &str, state: &State, event: &Event) {
    match event {
        Event::ToolStarted { item, sandboxed, leave } => {
            let (tool, by) = (tool(state, *item), leave.as_ref().map_or("", by));
            let rule = match leave {
                Some(Leave::Rule { line }) => &**line,
                _ => "",
            };
            match leave {
                Some(Leave::Reads | Leave::Safe) => {
                    tracing::debug!(session, %item, tool, by, "a call runs");
                }
                _ => tracing::info!(session, %item, tool, by, rule, sandboxed, "a call runs"),
            }
        }
        Event::WaitSettled { wait, answer, by } => {
            let item = state.turn().and_then(|turn| turn.waits.get(wait)).map(|open| open.item);
            let tool = item.map_or("", |item| tool(state, item));
            // What was said with it is the session's.
            let decision = decision(answer);
            let by = by.describe();
            tracing::info!(session, %wait, tool, decision, by, "a person decided");
        }
        Event::SandboxRefused { item, reason, .. } => {
            let (tool, reason) = (tool(state, *item), &**reason);
            tracing::info!(session, %item, tool, reason, "the sandbox stopped a call");
        }
        Event::ItemCompleted { item, end: End::Denied, text, .. } => {
            let open = state.turn().and_then(|turn| turn.items.get(item));
            if let Some(judgement) = open.and_then(|open| open.tool.as_ref()).and_then(unasked) {
                // A tool's own refusal quotes what it was given.
                let why = if judgement.refusal.is_some() { REFUSED } else { &**text };
                let rule = judgement.rule.as_ref().map_or("", |rule| &*rule.line);
                let tool = tool(state, *item);
                tracing::info!(session, %item, tool, why, rule, "a call was denied");
            }
        }
        _ => {}
    }
}

pub(super) fn tool(state: &State, item: ItemId) -> &str {
    match state.turn().and_then(|turn| turn.items.get(&item)).map(|item| &item.kind) {
        Some(ItemKind::ToolCall { name, .. }) => name,
        Some(ItemKind::Text | ItemKind::Reasoning) | None => "",
    }
}

const REFUSED: &str = "the tool refuses such a call in every mode";

/// What a call was judged by that nobody was asked about: the policy itself said no.
pub(super) fn unasked(phase: &ToolPhase) -> Option<&Judgement> {
    match phase {
        ToolPhase::Proposed { judgement, .. } => Some(judgement),
        ToolPhase::Waiting { .. }
        | ToolPhase::Approved { .. }
        | ToolPhase::Denied { .. }
        | ToolPhase::Answered { .. }
        | ToolPhase::Running { .. } => None,
    }
}

pub(super) fn by(leave: &Leave) -> &'static str {
    match leave {
        Leave::Reads => "it only reads",
        Leave::Safe => "it was judged harmless",
        Leave::Mode { .. } => "the session's mode",
        Leave::Granted => "an earlier always",
        Leave::Rule { .. } => "a rule",
        Leave::Person => "a person",
    }
}
