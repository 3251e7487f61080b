//! What a search shows of itself: its nodes, and the events that are a strategy's own.
//!
//! What a call gave is read right behind its end, so its node stays open for that. In one node one
//! text follows another and none runs beside it: each branch and each try at a sub-task has a node
//! of its own. Only the opinions of one round share one, and they are sent when they are whole.

use std::collections::{BTreeMap, BTreeSet};

use polyloop_session::event::{
    Agent, Event, LineId, NodeOutcome, PlannedNode, Purpose, Thought, Understanding, Weighed,
};
use polyloop_session::id::{NodeId, ThoughtId};
use polyloop_session::{CallId, LogEntry, Timestamp};

use super::super::super::short::short;
use super::super::super::wire::{Custom, Event as Told, Exit};
use super::super::frame::Node;
use super::super::state::{NodeState, Status};
use super::{Changed, ERROR_BYTES_MAX, NOTICE_BYTES_MAX, Run, Span};
use crate::conn::Out;
use crate::progress::Progress;

/// Of a result that is shown of a sub-task.
const SUMMARY_BYTES_MAX: usize = 1024;
const CANDIDATE_BYTES_MAX: usize = 1024;
/// A sub-task whose answer is empty came to something all the same.
const NOTHING: &str = "(nothing)";
/// Between two texts of one node.
pub(super) const BETWEEN_TEXTS: &str = "\n\n";

#[derive(Default)]
pub(super) struct Search {
    /// Nodes of calls that ended, whose answer is read next.
    unread: BTreeMap<CallId, (Span, Changed)>,
    /// The same of calls whose node goes on.
    shared: BTreeMap<CallId, Node>,
    /// What the problem comes to is being asked.
    understanding: Option<Span>,
    /// The round of opinions that is under way.
    weighing: Option<Span>,
    /// Sub-tasks that are under way, by their tries; the first has the sub-task's own node.
    tasks: BTreeMap<(NodeId, u32), Span>,
    /// Nodes in which something was thought, by number.
    spoke: BTreeSet<u32>,
    pub(super) names: Progress,
}

/// Where the events of a call are placed.
pub(super) enum Place {
    Own(&'static str),
    Shared(Span),
}

impl Search {
    pub(super) fn read_next(&mut self, call: CallId, span: Span, changed: Changed) {
        self.unread.insert(call, (span, changed));
    }

    pub(super) fn read_shared(&mut self, call: CallId, node: Node) {
        self.shared.insert(call, node);
    }

    /// All that is open beside calls and acts.
    pub(super) fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        let unread = self.unread.values().map(|(span, _)| *span);
        let rounds = self.understanding.into_iter().chain(self.weighing);
        unread.chain(rounds).chain(self.tasks.values().copied())
    }

    /// The sub-task that a node works on, and whether it is the sub-task's own.
    pub(super) fn task_at(&self, node: Node) -> Option<(&str, bool)> {
        let found = self.tasks.iter().find(|(_, span)| span.node == node);
        found.map(|((task, attempt), _)| (self.names.node(task), *attempt == 0))
    }

    pub(super) fn has_spoken(&self, node: Node) -> bool {
        self.spoke.contains(&node.number)
    }

    pub(super) fn speaks(&mut self, node: Node) {
        self.spoke.insert(node.number);
    }

    /// The node of an understanding that came to nothing.
    pub(super) fn misunderstood(&mut self, span: Span) -> Option<Span> {
        self.understanding.take_if(|open| open.node == span.node)
    }
}

/// Whether a strategy reads what a call of this purpose gave, behind its end and in its node.
pub(super) fn is_read(purpose: Purpose) -> bool {
    matches!(purpose, Purpose::Expand { .. } | Purpose::Plan { node: None })
}

impl Run {
    pub(super) fn place(
        &mut self,
        purpose: Purpose,
        line: Option<LineId>,
        at: Timestamp,
        out: &mut Out<'_>,
    ) -> Place {
        match (purpose, line) {
            (Purpose::Explain { .. }, _) => Place::Own("explain"),
            (Purpose::Summarise, _) => Place::Own("compress"),
            (Purpose::Question | Purpose::Information, _) => {
                let open = self.search.understanding;
                let span = open.unwrap_or_else(|| self.enter("understand", at, out));
                self.search.understanding = Some(span);
                Place::Shared(span)
            }
            (Purpose::Value { .. } | Purpose::Vote { .. }, _) => {
                let open = self.search.weighing;
                let span = open.unwrap_or_else(|| self.enter("think_evaluate", at, out));
                self.search.weighing = Some(span);
                Place::Shared(span)
            }
            (Purpose::Plan { node: None }, _) => Place::Own("plan_graph"),
            (
                Purpose::Plan { node: Some(node) }
                | Purpose::Judge { node }
                | Purpose::Refine { node, .. },
                _,
            ) => Place::Shared(self.task(node, 0, at, out)),
            (Purpose::Score { node, attempt }, _)
            | (Purpose::Think, Some(LineId::Node { node, attempt })) => {
                Place::Shared(self.task(node, attempt, at, out))
            }
            (Purpose::Expand { .. }, _) | (Purpose::Think, Some(LineId::Branch { .. })) => {
                Place::Own("think_expand")
            }
            (Purpose::Think, None) => {
                // Where few calls may be made, not all is asked.
                if let Some(span) = self.search.understanding.take() {
                    self.exit(span, Exit::Ok, at, out);
                    self.changed(span.node, understood(), out);
                }
                Place::Own(if self.begun.agent == Agent::Dup { "plan" } else { "think" })
            }
        }
    }

    /// The node of a try at a sub-task. One that a run takes up is begun again in it.
    fn task(&mut self, task: NodeId, attempt: u32, at: Timestamp, out: &mut Out<'_>) -> Span {
        if let Some(span) = self.search.tasks.get(&(task, attempt)) {
            return *span;
        }
        let around = match attempt {
            0 => self.search.names.above(&task),
            _ => Some(task),
        };
        if let Some(around) = around {
            self.task(around, 0, at, out);
        }
        let name = self.search.names.node(&task).to_owned();
        let span = self.enter_task(&name, at, out);
        self.search.tasks.insert((task, attempt), span);
        if attempt == 0 {
            self.state.node(&name, NodeState::new(Status::Running));
            self.tell(Some(span.node), &Told::GotNodeStart { id: &name }, out);
        }
        span
    }

    pub(super) fn searched(&mut self, entry: &LogEntry, out: &mut Out<'_>) {
        self.search.names.take(entry);
        let at = entry.at;
        match &entry.event {
            Event::Misread { call, why } => self.misread(*call, why, at, out),
            Event::Understood { part, .. } => self.understood(part, at, out),
            Event::Expanded { call, from, thoughts } => {
                self.expanded(*call, *from, thoughts, at, out);
            }
            Event::Chosen { beam, weighed, .. } => {
                self.weighed(beam, weighed, at, out);
            }
            Event::Backtracked { to_depth, beam, reason, weighed } => {
                self.weighed(beam, weighed, at, out);
                self.state.went_back(*to_depth);
                let span = self.enter("backtrack", at, out);
                let event = Told::TotBacktrack { reason, to_depth: *to_depth };
                self.tell(Some(span.node), &event, out);
                self.exit(span, Exit::Ok, at, out);
                self.changed(span.node, Changed { tot: true, ..Changed::default() }, out);
            }
            Event::PathTaken { .. } => self.weighing_ends(at, out),
            Event::Planned { call, parent, nodes } => {
                self.planned(entry, (*call, *parent), nodes, out);
            }
            Event::NodeStarted { node, .. } => {
                self.task(*node, 0, at, out);
            }
            Event::Kept { node, .. } => self.tries_end(*node, at, out),
            Event::NodeEnded { node, outcome } => self.node_ended(*node, outcome, at, out),
            Event::Scored { call, .. }
            | Event::Judged { call, .. }
            | Event::Refined { call, .. } => {
                self.search.shared.remove(call);
            }
            Event::Concluded { text, .. } => {
                let span = self.enter("think", at, out);
                if !text.is_empty() {
                    let event = Told::MessageChunk { content: text, id: span.node.name };
                    self.tell(Some(span.node), &event, out);
                    self.reply = vec![text.clone()];
                }
                self.state.thought(text);
                self.exit(span, Exit::Ok, at, out);
                let (messages, after_last_think) = (!text.is_empty(), true);
                let changed = Changed { messages, after_last_think, ..Changed::default() };
                self.changed(span.node, changed, out);
            }
            // What is told to the model is no event of this dialect.
            _ => {}
        }
    }

    fn misread(&mut self, call: CallId, why: &str, at: Timestamp, out: &mut Out<'_>) {
        let shared = self.search.shared.remove(&call);
        let unread = self.search.unread.remove(&call).map(|(span, _)| span);
        if let Some(span) = unread.or_else(|| self.search.understanding.take()) {
            let why = short(why, ERROR_BYTES_MAX);
            return self.exit(span, Exit::Err(&why), at, out);
        }
        let text = &short(&format!("{why}; asking again"), NOTICE_BYTES_MAX);
        let value = Custom::Notice { level: "warning", text, code: "misread" };
        self.tell(shared.or(self.last), &Told::Custom { value }, out);
    }

    fn understood(&mut self, part: &Understanding, at: Timestamp, out: &mut Out<'_>) {
        // What was asked in the run before may be read in the one that takes it up.
        let open = self.search.understanding.take();
        let span = open.unwrap_or_else(|| self.enter("understand", at, out));
        match part {
            Understanding::Question { goal } => {
                self.state.understood(Some(goal), &[], "");
                self.search.understanding = Some(span);
            }
            Understanding::Information { constraints, context } => {
                self.state.understood(None, constraints, context);
                self.exit(span, Exit::Ok, at, out);
                self.changed(span.node, understood(), out);
            }
        }
    }

    fn expanded(
        &mut self,
        call: CallId,
        from: Option<ThoughtId>,
        thoughts: &[Thought],
        at: Timestamp,
        out: &mut Out<'_>,
    ) {
        let unread = self.search.unread.remove(&call);
        // A branch that failed has told so.
        if unread.is_none() && thoughts.is_empty() {
            return;
        }
        let (span, changed) =
            unread.unwrap_or_else(|| (self.enter("think_expand", at, out), Changed::default()));
        let texts = thoughts.iter().map(|thought| match thought.text.trim() {
            "" => NOTHING.to_owned(),
            text => short(text, CANDIDATE_BYTES_MAX),
        });
        let texts: Vec<String> = texts.collect();
        let candidates: Vec<&str> = texts.iter().map(String::as_str).collect();
        self.state.proposed(&candidates);
        if !candidates.is_empty() {
            let from = from.and_then(|from| self.search.names.depth(&from));
            let depth = from.unwrap_or(0).saturating_add(1);
            self.tell(Some(span.node), &Told::TotExpand { candidates: &candidates, depth }, out);
        }
        self.exit(span, Exit::Ok, at, out);
        self.changed(span.node, Changed { tot: true, ..changed }, out);
    }

    /// The opinions of a round are in.
    fn weighed(
        &mut self,
        beam: &[ThoughtId],
        weighed: &[Weighed],
        at: Timestamp,
        out: &mut Out<'_>,
    ) {
        let scores: Vec<f64> = weighed.iter().map(|one| f64::from(one.score) / 1_000.0).collect();
        // The first of those with the highest score, where none of them is followed.
        let best = weighed.iter().rev().max_by_key(|one| one.score).map(|one| one.thought);
        let followed = beam.first().filter(|id| weighed.iter().any(|w| w.thought == **id));
        let chosen = followed.copied().or(best);
        let chosen = chosen.and_then(|id| weighed.iter().position(|one| one.thought == id));
        let names = &self.search.names;
        let depth = weighed.first().and_then(|one| names.depth(&one.thought)).unwrap_or(1);
        let candidates = weighed.iter().map(|one| names.thought(&one.thought));
        self.state.chosen(depth, candidates, chosen);
        let Some(chosen) = chosen else { return self.weighing_ends(at, out) };
        // One alone is weighed without being asked about.
        let open = self.search.weighing.take();
        let span = open.unwrap_or_else(|| self.enter("think_evaluate", at, out));
        let event = Told::TotEvaluate { chosen, scores: &scores, depth };
        self.tell(Some(span.node), &event, out);
        self.exit(span, Exit::Ok, at, out);
        let changed = Changed { tot: true, usage: true, ..Changed::default() };
        self.changed(span.node, changed, out);
    }

    /// The search ended before a choice.
    fn weighing_ends(&mut self, at: Timestamp, out: &mut Out<'_>) {
        if let Some(span) = self.search.weighing.take() {
            self.exit(span, Exit::Ok, at, out);
            self.changed(span.node, Changed { usage: true, ..Changed::default() }, out);
        }
    }

    fn planned(
        &mut self,
        entry: &LogEntry,
        (call, parent): (CallId, Option<NodeId>),
        nodes: &[PlannedNode],
        out: &mut Out<'_>,
    ) {
        self.search.shared.remove(&call);
        let ids = (0..nodes.len() as u32).map(|index| NodeId { planned: entry.seq, index });
        let names: Vec<String> = ids.map(|id| self.search.names.node(&id).to_owned()).collect();
        for name in &names {
            self.state.node(name, NodeState::new(Status::Pending));
        }
        let edge_count = nodes.iter().map(|node| node.needs.len()).sum();
        if let Some(parent) = parent {
            let span = self.task(parent, 0, entry.at, out);
            let above = self.search.names.node(&parent).to_owned();
            let (nodes_added, edges_added) = (nodes.len(), edge_count);
            let event = Told::GotExpand { node_id: &above, nodes_added, edges_added };
            return self.tell(Some(span.node), &event, out);
        }
        let unread = self.search.unread.remove(&call);
        let (span, changed) =
            unread.unwrap_or_else(|| (self.enter("plan_graph", entry.at, out), Changed::default()));
        let node_ids: Vec<&str> = names.iter().map(String::as_str).collect();
        let event = Told::GotPlan { node_count: nodes.len(), edge_count, node_ids: &node_ids };
        self.tell(Some(span.node), &event, out);
        self.exit(span, Exit::Ok, entry.at, out);
        self.changed(span.node, Changed { got: true, ..changed }, out);
    }

    /// The further tries at a sub-task are done with.
    fn tries_end(&mut self, task: NodeId, at: Timestamp, out: &mut Out<'_>) {
        let tries = self.search.tasks.range((task, 1)..=(task, u32::MAX));
        let tries: Vec<u32> = tries.map(|((_, attempt), _)| *attempt).collect();
        for attempt in tries {
            if let Some(span) = self.search.tasks.remove(&(task, attempt)) {
                self.exit(span, Exit::Ok, at, out);
                self.changed(span.node, Changed { usage: true, ..Changed::default() }, out);
            }
        }
    }

    fn node_ended(
        &mut self,
        node: NodeId,
        outcome: &NodeOutcome,
        at: Timestamp,
        out: &mut Out<'_>,
    ) {
        self.tries_end(node, at, out);
        let name = self.search.names.node(&node).to_owned();
        // One that was never begun is told all the same.
        let open = self.search.tasks.remove(&(node, 0));
        let span = open.unwrap_or_else(|| self.enter_task(&name, at, out));
        let failed = match outcome {
            NodeOutcome::Done { .. } => None,
            NodeOutcome::Failed { fault } => Some(short(&fault.message, ERROR_BYTES_MAX)),
            NodeOutcome::Skipped { missing } => {
                Some(format!("Not begun: it needs {}", self.search.names.node(missing)))
            }
        };
        let state = match (outcome, &failed) {
            (NodeOutcome::Done { result, .. }, _) => {
                let result = Some(result.trim()).filter(|result| !result.is_empty());
                let result_summary = short(result.unwrap_or(NOTHING), SUMMARY_BYTES_MAX);
                let event = Told::GotNodeComplete { id: &name, result_summary: &result_summary };
                self.tell(Some(span.node), &event, out);
                NodeState::done(&result_summary)
            }
            (_, error) => {
                let error = error.as_deref().unwrap_or_default();
                self.tell(Some(span.node), &Told::GotNodeFailed { id: &name, error }, out);
                NodeState::failed(error)
            }
        };
        self.state.node(&name, state);
        self.exit(span, Exit::Ok, at, out);
        self.changed(span.node, Changed { got: true, usage: true, ..Changed::default() }, out);
    }
}

fn understood() -> Changed {
    Changed { understood: true, usage: true, ..Changed::default() }
}
