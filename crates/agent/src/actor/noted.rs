//! Tells the audit log who did what to a session, as it is recorded. Never what was said, and
//! never what a tool was given.

use polyloop_session::event::{Setting, Stop, Work};
use polyloop_session::policy::{Effect, Leave};
use polyloop_session::state::ToolPhase;
use polyloop_session::wait::Who;
use polyloop_session::{Event, ItemId, LogEntry, Seq, State};
use serde_json::Value;

use super::decisions::{by, tool, unasked};
use crate::audit::{Audit, Pairs, who};
use crate::log::Fork;
use crate::meter::decision;

/// To be called before the event is applied, while what it is about is still known.
pub(super) fn note(audit: &Audit, session: &str, state: &State, entry: &LogEntry) {
    if !audit.is_on() {
        return;
    }
    let about = About { audit, session };
    let item_of = |wait| state.turn().and_then(|turn| turn.waits.get(wait)).map(|open| open.item);
    match &entry.event {
        Event::SessionCreated { settings, by } => {
            about.by(
                "session_created",
                by,
                [("mode", value(settings.mode)), ("model", (*settings.model).into())],
            );
        }
        Event::SessionClosed { by } => about.by("session_closed", by, []),
        Event::SessionReopened { by } => about.by("session_reopened", by, []),
        Event::ModeSet { mode, by } => about.by("mode_set", by, [("mode", value(mode))]),
        Event::SettingSet { setting, by } => {
            let (name, value) = setting_told(setting);
            about.by("setting_set", by, [("setting", name.into()), ("value", value)]);
        }
        Event::MessageQueued { origin, .. } => {
            about.by("message", &origin.who, [("message", entry.seq.0.into())]);
        }
        Event::MessageDropped { message, by } => {
            about.by("message_dropped", by, [("message", message.0.0.into())]);
        }
        Event::TurnStarted { work: Work::Resume { by, .. }, .. } => about.by("resumed", by, []),
        Event::TurnStarted { work: Work::Compact { by }, .. } => about.by("compacted", by, []),
        Event::TurnStopping { reason: Stop::Interrupted { by, .. } } => {
            about.by("interrupted", by, []);
        }
        Event::ToolStarted { item, sandboxed, leave } => {
            let rule = match leave {
                Some(Leave::Rule { line }) => Value::from(&**line),
                _ => Value::Null,
            };
            about.note(
                "tool_started",
                [
                    ("item", item.0.0.into()),
                    ("tool", tool(state, *item).into()),
                    ("leave", leave.as_ref().map_or("", by).into()),
                    ("rule", rule),
                    ("sandboxed", (*sandboxed).into()),
                ],
            );
        }
        Event::ItemCompleted { item, end: polyloop_session::item::End::Denied, .. } => {
            let open = state.turn().and_then(|turn| turn.items.get(item));
            if open.and_then(|open| open.tool.as_ref()).and_then(unasked).is_some() {
                about.note(
                    "tool_denied",
                    [("item", item.0.0.into()), ("tool", tool(state, *item).into())],
                );
            }
        }
        Event::WaitSettled { wait, answer, by } => {
            let item = item_of(wait);
            about.by(
                "decided",
                by,
                [
                    ("wait", wait.0.0.into()),
                    ("item", item.map(|item| item.0.0).into()),
                    ("tool", item.map_or("", |item| tool(state, item)).into()),
                    (
                        "effect",
                        item.and_then(|item| effect(state, item)).map_or(Value::Null, value),
                    ),
                    ("decision", decision(answer).into()),
                ],
            );
        }
        Event::WaitWithdrawn { wait, by: Some(by), .. } => {
            about.by("withdrawn", by, [("wait", wait.0.0.into())]);
        }
        Event::Undone { items, files, by, .. } => {
            about.by("undone", by, [("calls", items.len().into()), ("files", files.len().into())]);
        }
        _ => {}
    }
}

/// A session was made of another one's entries up to this one.
pub(crate) fn forked(audit: &Audit, fork: &Fork, upto: Seq) {
    let about = About { audit, session: fork.to.as_str() };
    let of = [("forked_from", fork.from.as_str().into()), ("upto", upto.0.into())];
    about.by("session_created", &fork.by, of);
}

struct About<'a> {
    audit: &'a Audit,
    session: &'a str,
}

impl About<'_> {
    fn note<const N: usize>(&self, what: &'static str, pairs: Pairs<N>) {
        self.write(what, Value::Null, pairs);
    }

    fn by<const N: usize>(&self, what: &'static str, by: &Who, pairs: Pairs<N>) {
        self.write(what, who(by), pairs);
    }

    fn write<const N: usize>(&self, what: &'static str, by: Value, pairs: Pairs<N>) {
        self.audit.note_with(what, [("session", self.session.into()), ("by", by)], pairs);
    }
}

fn value(word: impl serde::Serialize) -> Value {
    serde_json::to_value(word).unwrap_or_default()
}

/// A title and a client's own data are texts of people.
fn setting_told(setting: &Setting) -> (&'static str, Value) {
    match setting {
        Setting::Model { model, .. } => ("model", (**model).into()),
        Setting::Agent { agent } => ("agent", agent.name().into()),
        Setting::CallsMax { calls_max } => ("max_turns", (*calls_max).into()),
        Setting::Title { .. } => ("title", Value::Null),
        Setting::Metadata { .. } => ("metadata", Value::Null),
    }
}

/// What a call that waits would do to the world.
fn effect(state: &State, item: ItemId) -> Option<Effect> {
    match state.turn()?.items.get(&item)?.tool.as_ref()? {
        ToolPhase::Waiting { judgement, .. } | ToolPhase::Proposed { judgement, .. } => {
            Some(judgement.effect)
        }
        _ => None,
    }
}
