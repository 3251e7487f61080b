//! One session's part in the counts. What it adds to a level it takes away again, whatever ends
//! it: the levels are what the states of all sessions in memory add up to.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use polyloop_session::event::{CallOutcome, Outcome};
use polyloop_session::item::{End, ItemKind};
use polyloop_session::wait::{Answer, Ask};
use polyloop_session::{CallId, Event, ItemId, Seq, State};
use prometheus_client::metrics::gauge::Gauge;

use super::running::{Passage, Running};
use super::{Meter, ModelMeter, OTHER, STATUSES};

/// How a call or a tool ended for which the server itself had no room: nobody else is to blame.
pub(crate) const REFUSED_HERE: &str = "refused_here";

/// The kinds of waits.
pub(super) const WAITS: [&str; 4] = ["approval", "outside", "question", "plan"];

pub(crate) struct Tally {
    meter: Arc<Meter>,
    /// What this session has in the levels.
    level: Level,
    turn_begun: Option<Instant>,
    calls: HashMap<CallId, Asked>,
    /// Calls of which nothing has come yet.
    silent: Vec<CallId>,
    tools: HashMap<ItemId, Ran>,
}

#[derive(Clone, Copy, Default, PartialEq)]
struct Level {
    turns: i64,
    queued: i64,
    waits: [i64; WAITS.len()],
}

struct Asked {
    model: Arc<ModelMeter>,
    running: Arc<Running>,
}

struct Ran {
    tool: &'static str,
    running: Arc<Running>,
}

impl Tally {
    /// A session is opened.
    pub(crate) fn open(meter: Arc<Meter>) -> Tally {
        meter.sessions.inc();
        meter.opened.inc();
        Tally {
            meter,
            level: Level::default(),
            turn_begun: None,
            calls: HashMap::new(),
            silent: Vec::new(),
            tools: HashMap::new(),
        }
    }

    /// A model is asked, unless the gate that is told of it holds that up.
    pub(crate) fn asks(&mut self, call: CallId, model: Arc<ModelMeter>) -> Passage {
        let running = Running::begin(&self.meter.calls_running);
        let passage = Passage::of(&running);
        self.calls.insert(call, Asked { model, running });
        self.silent.push(call);
        passage
    }

    /// The same for a tool that has been started.
    pub(crate) fn runs(&self, item: ItemId) -> Passage {
        self.tools.get(&item).map(|ran| Passage::of(&ran.running)).unwrap_or_default()
    }

    /// How a call that has not ended gets on, or a tool.
    pub(crate) fn running(&self, begun: Seq) -> Option<&Running> {
        let call = self.calls.get(&CallId(begun)).map(|asked| &asked.running);
        call.or_else(|| self.tools.get(&ItemId(begun)).map(|ran| &ran.running)).map(|run| &**run)
    }

    /// Something came of a call; true when it is the first of it. For all that follows this is
    /// nothing.
    #[inline]
    pub(crate) fn hears(&mut self, call: CallId) -> bool {
        !self.silent.is_empty() && self.hears_first(call)
    }

    fn hears_first(&mut self, call: CallId) -> bool {
        let silent = self.silent.iter().position(|silent| *silent == call);
        let Some(at) = silent else { return false };
        self.silent.swap_remove(at);
        if let Some(asked) = self.calls.get(&call)
            && let Some(took) = asked.running.took()
        {
            asked.model.first_seconds.observe(took.as_secs_f64());
        }
        true
    }

    /// To be called before the event is applied, while what it ends is still known.
    pub(crate) fn see(&mut self, state: &State, event: &Event) {
        let meter = &self.meter;
        match event {
            Event::TurnStarted { .. } => self.turn_begun = Some(Instant::now()),
            Event::TurnEnded { outcome, .. } => {
                let outcome = match outcome {
                    Outcome::Completed => "completed",
                    Outcome::Failed { .. } => "failed",
                    Outcome::Interrupted { .. } => "interrupted",
                };
                meter.turns.get_or_create(&[("outcome", outcome)]).inc();
                // One that another process began is not timed.
                if let Some(begun) = self.turn_begun.take() {
                    meter.turn_seconds.observe(begun.elapsed().as_secs_f64());
                }
            }
            Event::CallEnded { call, outcome, usage } => {
                self.silent.retain(|silent| silent != call);
                // One that was not asked here was counted where it was, if at all.
                let Some(asked) = self.calls.remove(call) else { return };
                let status = match asked.running.was_refused() {
                    true => REFUSED_HERE,
                    false => status(outcome),
                };
                meter.calls.get_or_create(&asked.model.with("status", status)).inc();
                if let Some(took) = asked.running.took() {
                    asked.model.seconds.observe(took.as_secs_f64());
                }
                if let Some(usage) = usage {
                    asked.model.used(usage);
                }
            }
            Event::ToolStarted { item, .. } => {
                let tool = tool_name(meter, state, *item);
                let running = Running::begin(&meter.tools_running);
                self.tools.insert(*item, Ran { tool, running });
            }
            Event::SandboxRefused { item, .. } => self.ran(state, *item, "sandbox_refused"),
            Event::ItemCompleted { item, end, .. } if is_tool(state, *item) => {
                let outcome = match end {
                    End::Whole => "ok",
                    End::Failed => "failed",
                    End::Denied => "denied",
                    End::Interrupted => "interrupted",
                    End::Cut | End::Discarded => "cut",
                };
                self.ran(state, *item, outcome);
            }
            Event::WaitSettled { answer, .. } => {
                let decision = decision(answer);
                meter.decisions.get_or_create(&[("decision", decision)]).inc();
            }
            Event::Compacted { .. } => {
                meter.compactions.get_or_create(&[("how", "summary")]).inc();
            }
            Event::Trimmed { .. } => {
                meter.compactions.get_or_create(&[("how", "trim")]).inc();
            }
            _ => {}
        }
    }

    fn ran(&mut self, state: &State, item: ItemId, outcome: &'static str) {
        let ran = self.tools.remove(&item);
        let tool = ran.as_ref().map_or_else(|| tool_name(&self.meter, state, item), |ran| ran.tool);
        let outcome = match ran.as_ref().is_some_and(|ran| ran.running.was_refused()) {
            true => REFUSED_HERE,
            false => outcome,
        };
        self.meter.tools.get_or_create(&[("tool", tool), ("outcome", outcome)]).inc();
        if let Some(took) = ran.and_then(|ran| ran.running.took()) {
            let seconds = self.meter.tool_seconds.get_or_create_owned(&[("tool", tool)]);
            seconds.observe(took.as_secs_f64());
        }
    }

    /// After events were applied: the levels follow the state.
    pub(crate) fn stand(&mut self, state: &State) {
        let turn = state.turn();
        let mut waits = [0; WAITS.len()];
        for open in turn.iter().flat_map(|turn| turn.waits.values()) {
            let at = match open.ask {
                Ask::Approval => 0,
                Ask::Outside { .. } => 1,
                Ask::Question { .. } => 2,
                Ask::Plan { .. } => 3,
            };
            waits[at] += 1;
        }
        self.set(Level {
            turns: i64::from(turn.is_some()),
            queued: state.queue().len() as i64,
            waits,
        });
    }

    fn set(&mut self, now: Level) {
        let was = std::mem::replace(&mut self.level, now);
        if was == now {
            return;
        }
        let meter = &self.meter;
        shift(&meter.turns_running, was.turns, now.turns);
        shift(&meter.queued_messages, was.queued, now.queued);
        for (at, kind) in
            WAITS.into_iter().enumerate().filter(|(at, _)| was.waits[*at] != now.waits[*at])
        {
            let gauge = meter.waits.get_or_create_owned(&[("kind", kind)]);
            shift(&gauge, was.waits[at], now.waits[at]);
        }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.set(Level::default());
        self.meter.sessions.dec();
    }
}

pub(super) fn shift(gauge: &Gauge, was: i64, now: i64) {
    if now != was {
        gauge.inc_by(now - was);
    }
}

/// What a person decided, in a word.
pub(crate) fn decision(answer: &Answer) -> &'static str {
    match answer {
        Answer::Approved { always: true, .. } => "always",
        Answer::Approved { always: false, .. } => "yes",
        Answer::Denied { .. } => "no",
        Answer::Answered { .. } => "answered",
    }
}

/// How a call ended, in a word; there are few.
pub(crate) fn status(outcome: &CallOutcome) -> &'static str {
    let fault = match outcome {
        CallOutcome::Answered => return "ok",
        CallOutcome::Stopped => return "stopped",
        CallOutcome::Lost => return "lost",
        CallOutcome::Failed { fault } | CallOutcome::Retried { fault, .. } => fault,
    };
    STATUSES.into_iter().find(|status| *status == &*fault.code).unwrap_or(OTHER)
}

fn is_tool(state: &State, item: ItemId) -> bool {
    let open = state.turn().and_then(|turn| turn.items.get(&item));
    open.is_some_and(|open| matches!(open.kind, ItemKind::ToolCall { .. }))
}

fn tool_name(meter: &Meter, state: &State, item: ItemId) -> &'static str {
    match state.turn().and_then(|turn| turn.items.get(&item)).map(|open| &open.kind) {
        Some(ItemKind::ToolCall { name, .. }) => meter.tool(name),
        Some(ItemKind::Text | ItemKind::Reasoning) | None => OTHER,
    }
}
