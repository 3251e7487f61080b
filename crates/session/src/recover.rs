//! Closes what a crash left open.
//!
//! A model call that was cut keeps every character that was shown; a tool is never run twice; open
//! waits stay open and their turn goes on; a turn with no open wait ends as interrupted. Running
//! it on a session that was closed properly gives nothing.

use std::collections::BTreeMap;

use crate::absorb::cut;
use crate::event::{CallOutcome, Event, LogEntry, Outcome, Stop, Work};
use crate::growth::Stream;
use crate::id::{ItemId, Text, Timestamp};
use crate::item::{End, ToolResult};
use crate::live::Live;
use crate::next::{NOT_RUN_TEXT, closed, turn_started};
use crate::state::{Item, State, Stopped, ToolPhase, Turn, estimate_tokens};
use crate::wait;

pub const CRASH_REASON: &str = "The server stopped while the turn was running";
pub const FORK_REASON: &str = "The session was forked while the turn was running";
pub const FORKED_TOOL_TEXT: &str = "Interrupted: the session was forked while this was running. In \
                                    the other session it went on; check what it did before \
                                    repeating it.";
pub const CRASHED_TOOL_TEXT: &str = "Interrupted: the server stopped while this was running. It \
                                     was not run again; check what it did before repeating it.";

/// What was found out since about calls that were running, a sentence or more each.
pub type Found = BTreeMap<ItemId, Text>;

/// The events that bring the session to rest. Applied in order, they leave nothing running.
pub fn recover(state: &State, live: &Live) -> Vec<Event> {
    recover_with(state, live, &Found::default())
}

/// The same, and whoever reads the results of calls that were running is told what was found out.
pub fn recover_with(state: &State, live: &Live, found: &Found) -> Vec<Event> {
    let Some(turn) = state.turn() else { return queued(state) };
    let mut events = Vec::new();
    let forked = state.is_fresh_fork();
    // The same question, asked in two sessions, could be answered with yes in both.
    let stays = !turn.waits.is_empty() && turn.stopping.is_none() && !forked;
    for (id, item) in &turn.items {
        match &item.tool {
            None => events.push(cut(*id, item, live, End::Cut)),
            Some(ToolPhase::Running { .. }) => {
                let why = if forked { FORKED_TOOL_TEXT } else { CRASHED_TOOL_TEXT };
                let (live, found) = (live.text(*id, Stream::Output), found.get(id));
                events.push(crashed(*id, item, live, (why, found)));
            }
            // Their leave was given or pending before the crash: the turn goes on to them.
            Some(_) if stays => {}
            Some(ToolPhase::Denied { message }) => {
                events.push(closed(*id, item, End::Denied, message.clone()));
            }
            Some(ToolPhase::Answered { ask, answer }) => {
                let (end, text) = wait::told(ask, answer);
                events.push(closed(*id, item, end, text));
            }
            Some(
                ToolPhase::Proposed { .. } | ToolPhase::Waiting { .. } | ToolPhase::Approved { .. },
            ) => events.push(closed(*id, item, End::Interrupted, NOT_RUN_TEXT.into())),
        }
    }
    for call in turn.calls.keys() {
        let outcome = CallOutcome::Lost;
        events.push(Event::CallEnded { call: *call, outcome, usage: None });
    }
    if !stays {
        events.extend(ended(turn, reason(state)));
        // The session may not be paused: a denial ended the turn, or somebody spoke while it was
        // stopping. Still nothing may begin by itself.
        if turn.stopping.is_some() {
            let begun = queued(&after(state, &events));
            events.extend(begun);
        }
    }
    events
}

/// The state once these are recorded: a turn's start tells what was before it.
fn after(state: &State, events: &[Event]) -> State {
    let mut state = state.clone();
    for event in events {
        let (seq, at) = (state.last_seq().next(), Timestamp::default());
        state.apply(&LogEntry { seq, at, event: event.clone() });
    }
    state
}

/// A message that was accepted but whose turn had not begun: its turn begins and ends, so that
/// nothing is called before a client asks, and `resume` takes it up.
fn queued(state: &State) -> Vec<Event> {
    match state.queue().front() {
        Some(queued) if !state.is_paused() => {
            let work = Work::Message { message: queued.id };
            let outcome = Outcome::Interrupted { reason: reason(state).into() };
            vec![turn_started(state, work), Event::TurnEnded { outcome, usage: Default::default() }]
        }
        _ => Vec::new(),
    }
}

fn reason(state: &State) -> &'static str {
    if state.is_fresh_fork() { FORK_REASON } else { CRASH_REASON }
}

fn ended(turn: &Turn, why: &str) -> Vec<Event> {
    let reason: Text = crate::next::WITHDRAWN_TEXT.into();
    let withdraw =
        |wait: &_| Event::WaitWithdrawn { wait: *wait, reason: reason.clone(), by: None };
    let mut events: Vec<Event> = turn.waits.keys().map(withdraw).collect();
    let outcome = match &turn.stopping {
        Some(Stop::Interrupted { reason, .. }) => Outcome::Interrupted { reason: reason.clone() },
        Some(Stop::Denied { .. }) => Outcome::Completed,
        None => Outcome::Interrupted { reason: why.into() },
    };
    events.push(Event::TurnEnded { outcome, usage: turn.usage });
    events
}

fn crashed(id: ItemId, item: &Item, live: &str, told: (&str, Option<&Text>)) -> Event {
    let (why, found) = told;
    let first = item.stopped.as_deref();
    // The journal may be gone with the machine; the log has what the first run gave.
    let shown = match first {
        Some(first) if !live.starts_with(&*first.text) => &*first.text,
        _ => live,
    };
    let mut seen = match shown {
        "" => why.to_owned(),
        shown => format!("{shown}\n{why}"),
    };
    if let Some(found) = found {
        seen.push_str(&format!(" {found}"));
    }
    let tokens = estimate_tokens(seen.len());
    let result = ToolResult { seen: Some(seen.into()), ..ToolResult::default() };
    let result = Some(Box::new(Stopped::before(first, result)));
    let (end, text) = (End::Interrupted, Text::from(shown));
    Event::ItemCompleted { item: id, end, text, opaque: None, result, tokens }
}
