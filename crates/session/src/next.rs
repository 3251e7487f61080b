//! What follows from the state: events to record until nothing is left to record, then the open
//! steps.
//!
//! Never performs a step. No tool starts without leave from the policy or a person, and none
//! before its model call has ended well. Costs what is open, never what has been.

use std::collections::BTreeMap;

use crate::decide::Limits;
use crate::event::{Agent, Event, LineId, Outcome, Purpose, Stop, Work};
use crate::id::{CallId, ItemId, Text};
use crate::item::{End, ToolResult};
use crate::policy::{self, Effect, Judgement, Leave, Verdict, Weighed};
use crate::state::{Explain, Item, State, ToolPhase, Turn, estimate_tokens};
use crate::strategy;
use crate::wait::{self, Ask};

#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Record these, then ask again.
    Record(Vec<Event>),
    /// Nothing is left to record; these are open (perhaps none).
    Steps(Vec<Step>),
}

/// One effect to perform, named by the `Seq` of its intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Ask(CallId),
    Run(ItemId),
    StopCall(CallId),
    StopTool(ItemId),
}

pub const WITHDRAWN_TEXT: &str = "The turn was stopped";
pub const UNREADABLE_TEXT: &str = "Not asked: the arguments do not say what to ask.";
/// Stands between what a call that the sandbox stopped gave and why it was not run outside.
pub const OUTSIDE_TEXT: &str = "Not run outside the sandbox:";
/// What a search is told of a call that would do more than read.
pub const BRANCH_TEXT: &str = "Not run: while ways are weighed only tools that read are run. \
                               Propose it as a step instead.";
pub const NOT_RUN_TEXT: &str = "Not run: the turn was stopped before it started.";

pub fn next(state: &State, limits: &Limits) -> Next {
    let Some(turn) = state.turn() else { return between_turns(state) };
    if let Some(reason) = &turn.stopping {
        return stop(turn, reason);
    }
    let events = tools(state, turn);
    if !events.is_empty() {
        return Next::Record(events);
    }
    let events = explanations(state, turn, limits);
    if !events.is_empty() {
        return Next::Record(events);
    }
    match strategy::next(state, turn, limits) {
        events if events.is_empty() => Next::Steps(open_steps(turn)),
        events => Next::Record(events),
    }
}

fn between_turns(state: &State) -> Next {
    match state.queue().front() {
        Some(queued) if !state.is_paused() => {
            let work = Work::Message { message: queued.id };
            Next::Record(vec![turn_started(state, work)])
        }
        _ => Next::Steps(Vec::new()),
    }
}

/// The beginning of a turn, with what is in force for it.
pub(crate) fn turn_started(state: &State, work: Work) -> Event {
    let run = match &work {
        Work::Message { message } => {
            state.queue().iter().find(|q| q.id == *message).and_then(|q| q.run.as_deref())
        }
        Work::Resume { .. } => state.interrupted().and_then(|left| left.run.as_deref()),
        Work::Compact { .. } => None,
    };
    let settings = state.settings();
    let agent = match &work {
        Work::Resume { .. } => state.interrupted().map(|left| left.agent),
        Work::Message { .. } | Work::Compact { .. } => {
            run.and_then(|run| run.agent).or(settings.and_then(|s| s.agent))
        }
    };
    let cwd = run.and_then(|run| run.cwd.clone()).or(settings.map(|s| s.cwd.clone()));
    let agent = agent.filter(|agent| *agent != Agent::React);
    Event::TurnStarted { work, agent, cwd, earlier: Some(state.line().pieces().len() as u64) }
}

fn open_steps(turn: &Turn) -> Vec<Step> {
    let calls = turn.calls.keys().map(|call| Step::Ask(*call));
    let running = turn.items.iter().filter(|(_, item)| is_running(item));
    calls.chain(running.map(|(id, _)| Step::Run(*id))).collect()
}

fn is_running(item: &Item) -> bool {
    matches!(item.tool, Some(ToolPhase::Running { .. }))
}

/// Starts, asks about, or closes proposed calls, in each loop in the order the model gave them:
/// only reading calls may run side by side; anything else waits for all before it and holds all
/// after it, and runs while nothing runs in any other loop.
fn tools(state: &State, turn: &Turn) -> Vec<Event> {
    let mut events = Vec::new();
    let mut lanes: BTreeMap<Option<LineId>, Lane> = BTreeMap::new();
    let mut under_way = UnderWay::of(turn);
    for (id, item) in &turn.items {
        let Some(phase) = &item.tool else { continue };
        let lane = lanes.entry(item.line).or_default();
        lane.held |= turn.calls.contains_key(&item.call);
        if lane.held {
            continue;
        }
        let before = std::mem::replace(&mut lane.any, true);
        match phase {
            ToolPhase::Proposed { args, judgement, answerable } => {
                let reads = judgement.effect == Effect::Read;
                if before && (!reads || lane.changes) {
                    lane.held = true;
                    continue;
                }
                let (mode, grants) = (state.mode(), state.grants());
                let weighed = policy::weigh(judgement, mode, grants, *answerable);
                let event = match item.line {
                    Some(LineId::Branch { .. }) => in_branch(*id, item, weighed, judgement, args),
                    Some(LineId::Node { .. }) | None => judged(*id, item, weighed, judgement, args),
                };
                // A rule may ask about a reading call too, and what waits holds all after it.
                lane.changes |= !reads || matches!(event, Event::WaitOpened { .. });
                match &event {
                    Event::ToolStarted { .. } if !under_way.may_start(reads) => {
                        lane.held = true;
                        continue;
                    }
                    Event::ToolStarted { .. } => under_way.started(reads),
                    _ => {}
                }
                events.push(event);
            }
            ToolPhase::Approved { .. } => {
                lane.changes = true;
                if under_way.may_start(false) {
                    under_way.started(false);
                    let leave = Some(Leave::Person);
                    events.push(Event::ToolStarted { item: *id, sandboxed: false, leave });
                }
            }
            ToolPhase::Denied { message } => {
                events.push(closed(*id, item, End::Denied, message.clone()));
            }
            ToolPhase::Answered { ask, answer } => {
                let (end, text) = wait::told(ask, answer);
                events.push(closed(*id, item, end, text));
            }
            ToolPhase::Waiting { .. } => lane.changes = true,
            ToolPhase::Running { reads, .. } => lane.changes |= !*reads,
        }
    }
    events
}

/// Where the calls of one loop stand, in their order.
#[derive(Default)]
struct Lane {
    /// There was one before.
    any: bool,
    /// One before does more than read, or may.
    changes: bool,
    /// What comes now must wait.
    held: bool,
}

/// What runs in all loops.
struct UnderWay {
    any: bool,
    changes: bool,
}

impl UnderWay {
    fn of(turn: &Turn) -> UnderWay {
        let mut under_way = UnderWay { any: false, changes: false };
        for item in turn.items.values() {
            if let Some(ToolPhase::Running { reads, .. }) = &item.tool {
                under_way.started(*reads);
            }
        }
        under_way
    }

    fn may_start(&self, reads: bool) -> bool {
        if reads { !self.changes } else { !self.any }
    }

    fn started(&mut self, reads: bool) {
        self.any = true;
        self.changes |= !reads;
    }
}

/// While ways are weighed nothing is changed and nobody is asked.
fn in_branch(
    id: ItemId,
    item: &Item,
    weighed: Weighed,
    judged_as: &Judgement,
    args: &str,
) -> Event {
    let reads = judged_as.effect == Effect::Read || judged_as.safe;
    match weighed.verdict {
        Verdict::Allow | Verdict::AllowSandboxed | Verdict::Deny(_) if reads => {
            judged(id, item, weighed, judged_as, args)
        }
        _ => closed(id, item, End::Denied, BRANCH_TEXT.into()),
    }
}

fn judged(id: ItemId, item: &Item, weighed: Weighed, judged: &Judgement, args: &str) -> Event {
    let Weighed { verdict, leave } = weighed;
    match (verdict, &item.stopped) {
        (Verdict::Allow, _) => Event::ToolStarted { item: id, sandboxed: false, leave },
        (Verdict::AllowSandboxed, _) => Event::ToolStarted { item: id, sandboxed: true, leave },
        (Verdict::Ask, Some(stopped)) => {
            let reason = stopped.reason.clone();
            Event::WaitOpened { item: id, ask: Ask::Outside { reason } }
        }
        (Verdict::Ask, None) => match Ask::of(judged, args) {
            Some(ask) => Event::WaitOpened { item: id, ask },
            None => closed(id, item, End::Failed, UNREADABLE_TEXT.into()),
        },
        // It ran, and may not run again: what it gave is what the model gets.
        (Verdict::Deny(_), Some(stopped)) => {
            let (text, result) = (stopped.text.clone(), Box::new(stopped.result.clone()));
            let seen = result.seen.as_ref().unwrap_or(&text);
            let tokens = estimate_tokens(seen.len());
            // As it would have ended where nobody looks for a sandbox's doing.
            let end = if result.exit_code.is_some() { End::Whole } else { End::Failed };
            let result = Some(result);
            Event::ItemCompleted { item: id, end, text, opaque: None, result, tokens }
        }
        (Verdict::Deny(reason), None) => closed(id, item, End::Denied, reason),
    }
}

/// Ends a call that does not run, or not again: the model is told why, after what it had.
pub(crate) fn closed(id: ItemId, item: &Item, end: End, why: Text) -> Event {
    let (text, result) = match &item.stopped {
        None => (why, ToolResult::default()),
        Some(stopped) => {
            let mut result = stopped.result.clone();
            let had = result.seen.take().unwrap_or_else(|| stopped.text.clone());
            let why = why.strip_prefix("Not run: ").unwrap_or(&why);
            result.seen = Some(format!("{had}\n{OUTSIDE_TEXT} {why}").into());
            (stopped.text.clone(), result)
        }
    };
    let tokens = estimate_tokens(result.seen.as_ref().unwrap_or(&text).len());
    let result = Some(Box::new(result));
    Event::ItemCompleted { item: id, end, text, opaque: None, result, tokens }
}

fn explanations(state: &State, turn: &Turn, limits: &Limits) -> Vec<Event> {
    let asked = turn.waits.iter().filter(|(_, wait)| wait.explain == Explain::Asked);
    let call = |wait| strategy::call(state, limits, Purpose::Explain { wait }, None);
    asked.map(|(wait, _)| call(*wait)).collect()
}

/// Winds a turn down: waits are withdrawn, calls that do not run yet are closed, what runs is
/// stopped and reports what it had; when nothing is open the turn ends.
fn stop(turn: &Turn, reason: &Stop) -> Next {
    let mut events: Vec<Event> = Vec::new();
    for wait in turn.waits.keys() {
        events.push(Event::WaitWithdrawn { wait: *wait, reason: WITHDRAWN_TEXT.into(), by: None });
    }
    for (id, item) in &turn.items {
        match &item.tool {
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
            // Running ones report themselves; items without one belong to an open call.
            Some(ToolPhase::Running { .. }) | None => {}
        }
    }
    if !events.is_empty() {
        return Next::Record(events);
    }
    let calls = turn.calls.keys().map(|call| Step::StopCall(*call));
    let running = turn.items.iter().filter(|(_, item)| is_running(item));
    let steps: Vec<Step> = calls.chain(running.map(|(id, _)| Step::StopTool(*id))).collect();
    if !steps.is_empty() {
        return Next::Steps(steps);
    }
    let outcome = match reason {
        Stop::Interrupted { reason, .. } => Outcome::Interrupted { reason: reason.clone() },
        Stop::Denied { .. } => Outcome::Completed,
    };
    Next::Record(vec![Event::TurnEnded { outcome, usage: turn.usage }])
}
