//! The state of a run as `values` shows it: a bounded fold.
//!
//! Texts are shortened when they come in and the oldest messages are let go, so that neither the
//! fold nor an event that shows it grows with the run.

use std::collections::VecDeque;

use polyloop_session::Text;
use polyloop_session::event::Agent;
use polyloop_session::item::Usage;

use super::super::short::{json_bytes, short};
use super::super::wire::{
    Got, PendingCall, ReactState, ReactUpdate, StateMessage, ToolOutcome, Tot, Understood,
    Usage as WireUsage,
};
pub(super) use super::super::wire::{NodeState, Status};

/// All that `values` shows stays under 64 KiB: the bounds below add up to 59 KiB at most, and
/// what is around them takes less than 4.
const MESSAGE_BYTES_MAX: usize = 2 * 1024;
const MESSAGES_BYTES_MAX: usize = 20 * 1024;
/// Of these, what a strategy shows has to do without.
const STRATEGY_BYTES_MAX: usize = 8 * 1024;
/// What stands around a message's texts.
const MESSAGE_FRAME_BYTES: usize = 72;
const NAME_BYTES_MAX: usize = 128;
const CALLS_MAX: usize = 16;
const CALL_ARGUMENTS_BYTES_MAX: usize = 640;
const RESULTS_MAX: usize = 16;
const RESULT_BYTES_MAX: usize = 1024;
/// Of what a strategy shows there is one part or another, never all.
const UNDERSTOOD_BYTES_MAX: usize = 2 * 1024;
const CONSTRAINTS_MAX: usize = 16;
const CONSTRAINT_BYTES_MAX: usize = 256;
const CANDIDATES_MAX: usize = 32;
const CANDIDATE_BYTES_MAX: usize = 256;
const NODES_MAX: usize = 40;
/// Names are shorter, however many of their letters are escaped.
const NODE_NAME_BYTES_MAX: usize = 160;
const NODE_TEXT_BYTES_MAX: usize = 80;

/// What a strategy shows, which the run that takes up another's search goes on with.
#[derive(Default)]
pub(super) struct Shown {
    understood: Option<Understood>,
    tot: Option<Tot>,
    got: Option<Got>,
}

#[derive(Default)]
pub(super) struct State {
    messages: VecDeque<StateMessage>,
    messages_bytes: usize,
    omitted: u64,
    earlier: Option<u64>,
    results: VecDeque<ToolOutcome>,
    omitted_results: u64,
    turn_count: u64,
    usage: Option<Usage>,
    total_usage: Option<Usage>,
    after_last_think: u64,
    strategy: Shown,
    messages_bytes_max: usize,
}

/// A call that was proposed and is not done.
pub(super) struct Pending<'a> {
    pub call_id: &'a str,
    pub name: &'a str,
    pub args: &'a str,
}

/// What a node changed.
#[derive(Clone, Copy, Default)]
pub(super) struct Changed {
    pub messages: bool,
    pub calls: bool,
    pub results: bool,
    pub turn_count: bool,
    pub usage: bool,
    pub after_last_think: bool,
    pub understood: bool,
    pub tot: bool,
    pub got: bool,
}

impl State {
    pub(super) fn new(earlier: Option<u64>, message: Option<&str>, agent: Agent) -> State {
        let messages_bytes_max = match agent {
            Agent::React => MESSAGES_BYTES_MAX,
            Agent::Dup | Agent::Tot | Agent::Got => MESSAGES_BYTES_MAX - STRATEGY_BYTES_MAX,
        };
        let mut state = State { earlier, messages_bytes_max, ..State::default() };
        if let Some(text) = message {
            state.add(StateMessage::User(short(text, MESSAGE_BYTES_MAX)));
        }
        state
    }

    fn add(&mut self, message: StateMessage) {
        self.messages_bytes += bytes(&message);
        self.messages.push_back(message);
        // What the run was asked stays.
        while self.messages_bytes > self.messages_bytes_max
            && let Some(oldest) = self.messages.remove(1)
        {
            self.messages_bytes = self.messages_bytes.saturating_sub(bytes(&oldest));
            self.omitted += 1;
        }
    }

    fn count(&self) -> u64 {
        self.omitted + self.messages.len() as u64
    }

    pub(super) fn used(&mut self, usage: Option<Usage>) {
        let Some(usage) = usage else { return };
        self.usage = Some(usage);
        self.total_usage.get_or_insert_default().add(usage);
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// A think ended well; it may have said something.
    pub(super) fn thought(&mut self, said: &str) {
        if !said.is_empty() {
            self.add(StateMessage::Assistant(short(said, MESSAGE_BYTES_MAX)));
        }
        self.after_last_think = self.count();
    }

    pub(super) fn act_began(&mut self) {
        self.results.clear();
        self.omitted_results = 0;
    }

    pub(super) fn done(&mut self, call_id: &str, name: &str, content: &str, is_error: bool) {
        self.results.push_back(ToolOutcome {
            call_id: call_id.to_string(),
            name: short(name, NAME_BYTES_MAX),
            content: short(content, RESULT_BYTES_MAX),
            is_error,
        });
        if self.results.len() > RESULTS_MAX {
            self.results.pop_front();
            self.omitted_results += 1;
        }
    }

    /// The results of the act become messages, those of the session's own loop.
    pub(super) fn observed(&mut self, main: bool) {
        self.turn_count += 1;
        if !main {
            return;
        }
        self.omitted += self.omitted_results;
        for result in std::mem::take(&mut self.results) {
            self.add(StateMessage::Tool {
                tool_call_id: result.call_id.clone(),
                content: result.content.clone(),
            });
            self.results.push_back(result);
        }
    }

    pub(super) fn leave(&mut self) -> Shown {
        std::mem::take(&mut self.strategy)
    }

    pub(super) fn take_up(&mut self, strategy: Shown) {
        self.strategy = strategy;
    }

    pub(super) fn values<'a>(
        &'a self,
        pending: impl Iterator<Item = Pending<'a>>,
    ) -> ReactState<'a> {
        let (tool_calls, omitted_tool_calls) = calls(pending);
        ReactState {
            messages: self.messages.iter().collect(),
            omitted_messages: self.omitted,
            earlier_messages: self.earlier,
            tool_calls,
            omitted_tool_calls,
            tool_results: &self.results,
            omitted_tool_results: self.omitted_results,
            turn_count: self.turn_count,
            approval_result: None,
            usage: self.usage.map(WireUsage::from),
            total_usage: self.total_usage.map(WireUsage::from),
            message_count_after_last_think: self.after_last_think,
            understood: self.strategy.understood.as_ref(),
            tot: self.strategy.tot.as_ref(),
            got: self.strategy.got.as_ref(),
        }
    }

    pub(super) fn update<'a>(
        &'a self,
        changed: Changed,
        pending: impl Iterator<Item = Pending<'a>>,
    ) -> ReactUpdate<'a> {
        let mut update = ReactUpdate::default();
        if changed.messages {
            update.messages = Some(self.messages.iter().collect());
            update.omitted_messages = Some(self.omitted);
        }
        if changed.calls {
            let (tool_calls, omitted) = calls(pending);
            update.tool_calls = Some(tool_calls);
            update.omitted_tool_calls = (omitted > 0).then_some(omitted);
        }
        if changed.results {
            update.tool_results = Some(&self.results);
            let omitted = self.omitted_results;
            update.omitted_tool_results = (omitted > 0).then_some(omitted);
        }
        if changed.usage {
            update.usage = self.usage.map(WireUsage::from);
            update.total_usage = self.total_usage.map(WireUsage::from);
        }
        update.turn_count = changed.turn_count.then_some(self.turn_count);
        update.message_count_after_last_think =
            changed.after_last_think.then_some(self.after_last_think);
        update.understood = self.strategy.understood.as_ref().filter(|_| changed.understood);
        update.tot = self.strategy.tot.as_ref().filter(|_| changed.tot);
        update.got = self.strategy.got.as_ref().filter(|_| changed.got);
        update
    }

    /// A part of what the problem comes to.
    pub(super) fn understood(&mut self, goal: Option<&str>, constraints: &[Text], context: &str) {
        let understood = self.strategy.understood.get_or_insert_default();
        match goal {
            Some(goal) => understood.core_goal = short(goal, UNDERSTOOD_BYTES_MAX),
            None => {
                let shown = constraints.iter().take(CONSTRAINTS_MAX);
                let shown = shown.map(|one| short(one, CONSTRAINT_BYTES_MAX));
                understood.key_constraints = shown.collect();
                understood.relevant_context = short(context, UNDERSTOOD_BYTES_MAX);
            }
        }
    }

    pub(super) fn proposed(&mut self, candidates: &[&str]) {
        let tot = self.strategy.tot.get_or_insert_default();
        tot.chosen = None;
        tot.candidates = shown(candidates.iter().copied());
    }

    pub(super) fn chosen<'a>(
        &mut self,
        depth: u32,
        candidates: impl Iterator<Item = &'a str>,
        chosen: Option<usize>,
    ) {
        let tot = self.strategy.tot.get_or_insert_default();
        let candidates = shown(candidates);
        if !candidates.is_empty() {
            (tot.depth, tot.candidates, tot.chosen) = (depth, candidates, chosen);
        }
    }

    /// The search goes on from earlier thoughts.
    pub(super) fn went_back(&mut self, to_depth: u32) {
        self.strategy.tot.get_or_insert_default().depth = to_depth;
    }

    pub(super) fn node(&mut self, name: &str, state: NodeState) {
        let got = self.strategy.got.get_or_insert_default();
        let name = short(name, NODE_NAME_BYTES_MAX);
        if got.node_states.len() < NODES_MAX || got.node_states.contains_key(&name) {
            got.node_states.insert(name, state);
        }
    }
}

fn shown<'a>(candidates: impl Iterator<Item = &'a str>) -> Vec<String> {
    candidates.take(CANDIDATES_MAX).map(|text| short(text, CANDIDATE_BYTES_MAX)).collect()
}

impl NodeState {
    pub(super) fn new(status: Status) -> NodeState {
        NodeState { status, result: None, error: None }
    }

    pub(super) fn done(result: &str) -> NodeState {
        let result = Some(short(result, NODE_TEXT_BYTES_MAX));
        NodeState { result, ..NodeState::new(Status::Done) }
    }

    pub(super) fn failed(error: &str) -> NodeState {
        let error = Some(short(error, NODE_TEXT_BYTES_MAX));
        NodeState { error, ..NodeState::new(Status::Failed) }
    }
}

fn calls<'a>(pending: impl Iterator<Item = Pending<'a>>) -> (Vec<PendingCall<'a>>, u64) {
    let (mut shown, mut omitted) = (Vec::new(), 0);
    for Pending { call_id, name, args } in pending {
        if shown.len() == CALLS_MAX {
            omitted += 1;
            continue;
        }
        let arguments = short(args, CALL_ARGUMENTS_BYTES_MAX);
        shown.push(PendingCall { name: short(name, NAME_BYTES_MAX), arguments, id: call_id });
    }
    (shown, omitted)
}

fn bytes(message: &StateMessage) -> usize {
    MESSAGE_FRAME_BYTES
        + match message {
            StateMessage::User(text) | StateMessage::Assistant(text) => json_bytes(text),
            StateMessage::Tool { tool_call_id: _, content } => json_bytes(content),
        }
}
