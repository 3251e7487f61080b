//! What a search shows of itself: its nodes, and the events that are a strategy's own.
//!
//! What a call gave is read right behind its end, so its node stays open for that. The opinions of
//! one round share a node, and so does all that is done for one sub-task.

use std::collections::BTreeMap;

use polyloop_session::event::{
    Agent, Event, LineId, NodeOutcome, PlannedNode, Purpose, Thought, Understanding, Weighed,
};
use polyloop_session::id::{NodeId, ThoughtId};
use polyloop_session::{CallId, LogEntry, Seq, Text, Timestamp};

use super::super::super::short::short;
use super::super::super::wire::{Event as Told, Exit};
use super::super::state::{NodeState, Status};
use super::{Changed, ERROR_BYTES_MAX, Run, Span};
use crate::conn::Out;

/// Of a result that is shown of a sub-task.
const SUMMARY_BYTES_MAX: usize = 1024;
const CANDIDATE_BYTES_MAX: usize = 1024;
/// More than any search has; a damaged log may hold any number.
const KNOWN_MAX: usize = 4096;

#[derive(Default)]
pub(super) struct Search {
    /// Nodes of calls that ended, whose answer is read next.
    unread: BTreeMap<CallId, (Span, Changed)>,
    /// The round of opinions that is under way.
    weighing: Option<Span>,
    /// Sub-tasks that are under way.
    nodes: BTreeMap<NodeId, Span>,
    names: BTreeMap<NodeId, Text>,
    thoughts: BTreeMap<ThoughtId, Text>,
}

/// Where the events of a call are placed.
pub(super) enum Place {
    Own(&'static str),
    Shared(Span),
}

/// Whether a strategy reads what a call of this purpose gave.
pub(super) fn is_read(purpose: Purpose) -> bool {
    purpose.is_errand() || matches!(purpose, Purpose::Expand { .. })
}

impl Search {
    pub(super) fn read_next(&mut self, call: CallId, span: Span, changed: Changed) {
        self.unread.insert(call, (span, changed));
    }

    /// All that is open beside calls and acts.
    pub(super) fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        let unread = self.unread.values().map(|(span, _)| *span);
        unread.chain(self.weighing).chain(self.nodes.values().copied())
    }

    fn node_of(&self, purpose: Purpose, line: Option<LineId>) -> Option<Span> {
        let node = match (purpose, line) {
            (_, Some(LineId::Node { node, .. })) => node,
            (
                Purpose::Plan { node: Some(node) }
                | Purpose::Judge { node }
                | Purpose::Score { node, .. }
                | Purpose::Refine { node, .. },
                _,
            ) => node,
            _ => return None,
        };
        self.nodes.get(&node).copied()
    }
}

impl Run {
    pub(super) fn place(
        &mut self,
        purpose: Purpose,
        line: Option<LineId>,
        at: Timestamp,
        out: &mut Out<'_>,
    ) -> Place {
        if let Purpose::Explain { .. } = purpose {
            return Place::Own("explain");
        }
        if let Some(span) = self.search.node_of(purpose, line) {
            return Place::Shared(span);
        }
        match (purpose, self.begun.agent) {
            (Purpose::Summarise, _) => Place::Own("compress"),
            (Purpose::Question | Purpose::Information, _) => Place::Own("understand"),
            (Purpose::Expand { .. }, _) => Place::Own("think_expand"),
            (Purpose::Plan { .. } | Purpose::Judge { .. }, _) => Place::Own("plan_graph"),
            (Purpose::Score { .. } | Purpose::Refine { .. }, _) => Place::Own("execute_graph"),
            (Purpose::Value { .. } | Purpose::Vote { .. }, _) => match self.search.weighing {
                Some(span) => Place::Shared(span),
                None => {
                    let span = self.enter("think_evaluate", at, out);
                    self.search.weighing = Some(span);
                    Place::Shared(span)
                }
            },
            (Purpose::Think | Purpose::Explain { .. }, Agent::Dup) => Place::Own("plan"),
            (Purpose::Think | Purpose::Explain { .. }, _) => Place::Own("think"),
        }
    }

    /// A call ended whose node goes on: what it proposed is carried out in the same one.
    pub(super) fn shared_ended(&mut self, call: CallId, span: Span, _: &mut Out<'_>) {
        for item in self.items.values_mut().filter(|item| item.is_pending_of(call)) {
            item.node = span.node;
        }
    }

    pub(super) fn searched(&mut self, entry: &LogEntry, out: &mut Out<'_>) {
        let (seq, at) = (entry.seq, entry.at);
        match &entry.event {
            Event::Misread { call, why } => {
                if let Some((span, _)) = self.search.unread.remove(call) {
                    let why = short(why, ERROR_BYTES_MAX);
                    self.exit(span, Exit::Err(&why), at, out);
                }
            }
            Event::Understood { call, part, .. } => {
                match part {
                    Understanding::Question { goal } => self.state.understood(Some(goal), &[], ""),
                    Understanding::Information { constraints, context } => {
                        self.state.understood(None, constraints, context);
                    }
                }
                self.read(*call, Changed { understood: true, ..Changed::default() }, at, out);
            }
            Event::Expanded { call, thoughts, .. } => self.expanded(seq, *call, thoughts, at, out),
            Event::Chosen { depth, beam, weighed } => {
                self.weighed(*depth, beam, weighed, at, out);
            }
            Event::Backtracked { to_depth, beam, reason, weighed } => {
                self.weighed(*to_depth, beam, weighed, at, out);
                let span = self.enter("backtrack", at, out);
                let event = Told::TotBacktrack { reason, to_depth: *to_depth };
                self.tell(Some(span.node), &event, out);
                self.exit(span, Exit::Ok, at, out);
                self.changed(span.node, Changed { tot: true, ..Changed::default() }, out);
            }
            Event::Planned { call, parent, nodes } => {
                self.planned(seq, *call, *parent, nodes, at, out);
            }
            Event::NodeStarted { node, .. } => self.node_started(*node, at, out),
            Event::NodeEnded { node, outcome } => self.node_ended(*node, outcome, at, out),
            Event::PathTaken { .. } => self.weighing_ends(at, out),
            Event::Concluded { text, .. } => {
                let node = self.last;
                let name = node.map_or("execute_graph", |node| node.name);
                self.tell(node, &Told::MessageChunk { content: text, id: name }, out);
                self.state.thought(text);
                self.reply = vec![text.clone()];
            }
            // Parts of a node that is told as a whole.
            _ => {}
        }
    }

    /// What a call gave was read: its node ends.
    fn read(&mut self, call: CallId, fresh: Changed, at: Timestamp, out: &mut Out<'_>) {
        let Some((span, changed)) = self.search.unread.remove(&call) else { return };
        self.exit(span, Exit::Ok, at, out);
        self.changed(span.node, changed.and(fresh), out);
    }

    fn expanded(
        &mut self,
        seq: Seq,
        call: CallId,
        thoughts: &[Thought],
        at: Timestamp,
        out: &mut Out<'_>,
    ) {
        for (index, thought) in (0..).zip(thoughts) {
            if self.search.thoughts.len() < KNOWN_MAX {
                let id = ThoughtId { expanded: seq, index };
                self.search.thoughts.insert(id, thought.text.clone());
            }
        }
        let texts: Vec<String> =
            thoughts.iter().map(|thought| short(&thought.text, CANDIDATE_BYTES_MAX)).collect();
        let candidates: Vec<&str> = texts.iter().map(String::as_str).collect();
        self.state.proposed(&candidates);
        let node = self.search.unread.get(&call).map(|(span, _)| span.node);
        if !candidates.is_empty() {
            self.tell(node.or(self.last), &Told::TotExpand { candidates: &candidates }, out);
        }
        self.read(call, Changed { tot: true, ..Changed::default() }, at, out);
    }

    /// The opinions of a round are in.
    fn weighed(
        &mut self,
        depth: u32,
        beam: &[ThoughtId],
        weighed: &[Weighed],
        at: Timestamp,
        out: &mut Out<'_>,
    ) {
        let scores: Vec<f64> = weighed.iter().map(|one| f64::from(one.score) / 1_000.0).collect();
        let best = weighed.iter().max_by_key(|one| one.score).map(|one| one.thought);
        let chosen = beam.first().copied().filter(|id| weighed.iter().any(|w| w.thought == *id));
        let chosen = chosen.or(best);
        let chosen = chosen.and_then(|id| weighed.iter().position(|one| one.thought == id));
        let text = |id: &ThoughtId| self.search.thoughts.get(id).cloned().unwrap_or_default();
        let candidates: Vec<Text> = weighed.iter().map(|one| text(&one.thought)).collect();
        self.state.chosen(depth, &candidates, chosen);
        let Some(span) = self.search.weighing.take() else { return };
        if let Some(chosen) = chosen {
            let event = Told::TotEvaluate { chosen, scores: &scores };
            self.tell(Some(span.node), &event, out);
        }
        self.exit(span, Exit::Ok, at, out);
        let changed = Changed { tot: true, usage: true, ..Changed::default() };
        self.changed(span.node, changed, out);
    }

    /// The search ended before a choice.
    fn weighing_ends(&mut self, at: Timestamp, out: &mut Out<'_>) {
        if let Some(span) = self.search.weighing.take() {
            self.exit(span, Exit::Ok, at, out);
            self.changed(span.node, Changed::default(), out);
        }
    }

    fn planned(
        &mut self,
        seq: Seq,
        call: CallId,
        parent: Option<NodeId>,
        nodes: &[PlannedNode],
        at: Timestamp,
        out: &mut Out<'_>,
    ) {
        let above = parent.and_then(|parent| self.search.names.get(&parent).cloned());
        let prefix = above.as_ref().map(|above| format!("{above}.")).unwrap_or_default();
        let mut names: Vec<String> = Vec::new();
        for (index, node) in (0..).zip(nodes) {
            let name = format!("{prefix}{}", node.name);
            if self.search.names.len() < KNOWN_MAX {
                let id = NodeId { planned: seq, index };
                self.search.names.insert(id, name.as_str().into());
            }
            self.state.node(&name, NodeState::new(Status::Pending));
            names.push(name);
        }
        let edge_count = nodes.iter().map(|node| node.needs.len()).sum();
        let place = self.search.unread.get(&call).map(|(span, _)| span.node);
        let place = place.or(parent.and_then(|p| self.search.nodes.get(&p)).map(|s| s.node));
        match above {
            Some(above) => {
                let (nodes_added, edges_added) = (nodes.len(), edge_count);
                let event = Told::GotExpand { node_id: &above, nodes_added, edges_added };
                self.tell(place.or(self.last), &event, out);
            }
            None => {
                let node_ids: Vec<&str> = names.iter().map(String::as_str).collect();
                let event =
                    Told::GotPlan { node_count: nodes.len(), edge_count, node_ids: &node_ids };
                self.tell(place.or(self.last), &event, out);
            }
        }
        self.read(call, Changed { got: true, ..Changed::default() }, at, out);
    }

    fn node_started(&mut self, node: NodeId, at: Timestamp, out: &mut Out<'_>) {
        let name = self.name(node);
        let span = self.enter("execute_graph", at, out);
        self.search.nodes.insert(node, span);
        self.state.node(&name, NodeState::new(Status::Running));
        self.tell(Some(span.node), &Told::GotNodeStart { id: &name }, out);
    }

    fn node_ended(
        &mut self,
        node: NodeId,
        outcome: &NodeOutcome,
        at: Timestamp,
        out: &mut Out<'_>,
    ) {
        let name = self.name(node);
        // One that was never begun is told all the same.
        let span = match self.search.nodes.remove(&node) {
            Some(span) => span,
            None => self.enter("execute_graph", at, out),
        };
        let state = match outcome {
            NodeOutcome::Done { result, .. } => {
                let result = match result.trim() {
                    "" => "(nothing)",
                    result => result,
                };
                let result_summary = short(result, SUMMARY_BYTES_MAX);
                let event = Told::GotNodeComplete { id: &name, result_summary: &result_summary };
                self.tell(Some(span.node), &event, out);
                NodeState::done(&result_summary)
            }
            NodeOutcome::Failed { fault } => {
                let error = short(&fault.message, ERROR_BYTES_MAX);
                self.tell(Some(span.node), &Told::GotNodeFailed { id: &name, error: &error }, out);
                NodeState::failed(&error)
            }
            NodeOutcome::Skipped { missing } => {
                let error = format!("Not begun: {} failed", self.name(*missing));
                self.tell(Some(span.node), &Told::GotNodeFailed { id: &name, error: &error }, out);
                NodeState::failed(&error)
            }
        };
        self.state.node(&name, state);
        self.exit(span, Exit::Ok, at, out);
        self.changed(span.node, Changed { got: true, usage: true, ..Changed::default() }, out);
    }

    fn name(&self, node: NodeId) -> Text {
        self.search.names.get(&node).cloned().unwrap_or_else(|| "task".into())
    }
}
