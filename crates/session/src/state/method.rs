//! What a turn's strategy has come to: folded from what was read in the model's answers.

use super::*;
use crate::event::{LineId, NodeOutcome, PlannedNode, Thought, Understanding, Weighed};
use crate::id::{NodeId, ThoughtId};

mod graph;
mod tree;

pub use graph::{Graph, Node};
pub use tree::{Branch, Tree};

#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    React,
    Dup(Dup),
    Tot(Box<Tree>),
    Got(Box<Graph>),
}

/// The understanding of a problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dup {
    pub goal: Option<Text>,
    /// What bears on it is known too, and the model was told both.
    pub understood: bool,
}

/// What an interrupted turn leaves to the one that takes it up.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    pub method: Method,
    pub asides: BTreeMap<LineId, Aside>,
    pub errands: BTreeMap<Purpose, Errand>,
    /// They count for whoever goes on: a search that is stopped often does not grow by that.
    pub calls_made: u32,
}

impl Method {
    pub(super) fn of(agent: Agent) -> Method {
        match agent {
            Agent::React => Method::React,
            Agent::Dup => Method::Dup(Dup::default()),
            Agent::Tot => Method::Tot(Box::default()),
            Agent::Got => Method::Got(Box::default()),
        }
    }

    /// Nothing is left of it but to answer on the session's own line.
    pub fn is_done(&self) -> bool {
        match self {
            Method::React => true,
            Method::Dup(dup) => dup.understood,
            Method::Tot(tree) => tree.taken,
            Method::Got(graph) => graph.gathered,
        }
    }

    /// What was to be found is found already.
    pub(super) fn finish(&mut self) {
        match self {
            Method::React => {}
            Method::Dup(dup) => dup.understood = true,
            Method::Tot(tree) => tree.taken = true,
            Method::Got(graph) => graph.gathered = true,
        }
    }

    pub(super) fn parent(&self, thought: ThoughtId) -> Option<ThoughtId> {
        match self {
            Method::Tot(tree) => tree.thoughts.get(&thought).and_then(|thought| thought.parent),
            Method::React | Method::Dup(_) | Method::Got(_) => None,
        }
    }

    /// What a sub-task was told beside the conversation.
    pub(super) fn notes(&self, node: NodeId) -> Vec<(Seq, u64, Text)> {
        match self {
            Method::Got(graph) => {
                graph.nodes.get(&node).map(|node| node.notes.clone()).unwrap_or_default()
            }
            Method::React | Method::Dup(_) | Method::Tot(_) => Vec::new(),
        }
    }
}

impl Turn {
    /// Takes in what was read in a model's answer.
    pub(super) fn learn(&mut self, entry: &LogEntry, main: &mut Line) {
        let seq = entry.seq;
        match &entry.event {
            Event::Misread { call, why } => self.misread(*call, why),
            Event::Understood { call, part, tokens } => {
                self.answered_for(*call);
                let Method::Dup(dup) = &mut self.method else { return };
                match part {
                    Understanding::Question { goal } => dup.goal = Some(goal.clone()),
                    Understanding::Information { constraints, context } => {
                        dup.understood = true;
                        let goal = dup.goal.clone().unwrap_or_default();
                        let text = crate::strategy::dup::told(&goal, constraints, context);
                        main.push(seq, *tokens, Piece::Note { text });
                    }
                }
            }
            Event::Expanded { call, from, thoughts } => {
                if let Some(aside) = self.asides.get_mut(&LineId::Branch { thought: *from }) {
                    // What it proposed stands in the tree.
                    aside.line.forget(*call);
                    aside.looped.phase = Phase::Finished;
                }
                if let Method::Tot(tree) = &mut self.method {
                    tree.expanded(seq, *from, thoughts);
                }
            }
            Event::Scored { call, score, thought } => {
                let Some(purpose) = self.answered_for(*call) else { return };
                match &mut self.method {
                    Method::Tot(tree) => tree.scored(purpose, *score, *thought),
                    Method::Got(graph) => graph.scored(purpose, *score),
                    Method::React | Method::Dup(_) => {}
                }
            }
            Event::Chosen { depth, beam, weighed } => {
                if let Method::Tot(tree) = &mut self.method {
                    tree.chosen(*depth, beam, weighed);
                }
            }
            Event::Backtracked { to_depth, beam, weighed, reason: _ } => {
                if let Method::Tot(tree) = &mut self.method {
                    tree.chosen(*to_depth, beam, weighed);
                }
            }
            Event::PathTaken { thought, note, tokens } => {
                self.path_taken(*thought, main);
                main.push(seq, *tokens, Piece::Note { text: note.clone() });
            }
            Event::Planned { call, parent, nodes } => {
                self.answered_for(*call);
                if let Method::Got(graph) = &mut self.method {
                    graph.planned(seq, *parent, nodes);
                }
            }
            Event::Judged { call, node, complex } => {
                self.answered_for(*call);
                if let Some(node) = self.node_mut(*node) {
                    node.complex = Some(*complex);
                }
            }
            Event::NodeStarted { node, note, tokens } => {
                if let Some(node) = self.node_mut(*node) {
                    node.notes.push((seq, *tokens, note.clone()));
                }
            }
            Event::Kept { node, text } => {
                if let Some(node) = self.node_mut(*node) {
                    node.best = Some(text.clone());
                }
            }
            Event::Refined { call, node, text } => {
                self.answered_for(*call);
                if let Some(node) = self.node_mut(*node) {
                    node.refined = node.refined.saturating_add(1);
                    if let (Some(text), Some(best)) = (text, &mut node.best) {
                        *best = text.clone();
                    }
                }
            }
            Event::NodeEnded { node, outcome } => self.node_ended(*node, outcome),
            Event::Gathered { node: Some(node), note, tokens } => {
                if let Some(node) = self.node_mut(*node) {
                    node.gathered = true;
                    node.notes.push((seq, *tokens, note.clone()));
                }
            }
            Event::Gathered { node: None, note, tokens } => {
                self.drop_search();
                if let Method::Got(graph) = &mut self.method {
                    graph.gathered = true;
                }
                main.push(seq, *tokens, Piece::Note { text: note.clone() });
            }
            Event::Concluded { text, tokens } => {
                self.drop_search();
                if let Method::Got(graph) = &mut self.method {
                    graph.gathered = true;
                }
                let (call, item, text) = (None, ItemId(seq), text.clone());
                main.push(seq, *tokens, Piece::Agent { call, item, text, opaque: None });
                self.main.phase = Phase::Answered;
                self.answered = true;
            }
            _ => {}
        }
    }

    /// The errand that a call was, which is done.
    fn answered_for(&mut self, call: CallId) -> Option<Purpose> {
        let done = self.errands.iter().find(|(_, errand)| errand.call == Some(call));
        let purpose = done.map(|(purpose, _)| *purpose)?;
        self.errands.remove(&purpose);
        Some(purpose)
    }

    fn misread(&mut self, call: CallId, why: &Text) {
        let why = why.clone();
        if let Some(errand) = self.errands.values_mut().find(|e| e.call == Some(call)) {
            let text = match errand.given.take() {
                Some(Ok(text)) => text,
                Some(Err(_)) | None => "".into(),
            };
            errand.call = None;
            errand.misread = Some(Misread { text, why });
            return;
        }
        if let Some(aside) = self.asides.values_mut().find(|a| a.looped.last == Some(call)) {
            let text = aside.looped.answer();
            aside.line.forget(call);
            aside.looped.misread = Some(Misread { text, why });
            aside.looped.phase = Phase::Asking;
        }
    }

    fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        match &mut self.method {
            Method::Got(graph) => graph.nodes.get_mut(&id),
            Method::React | Method::Dup(_) | Method::Tot(_) => None,
        }
    }

    fn node_ended(&mut self, id: NodeId, outcome: &NodeOutcome) {
        let is_of = |line: &LineId| matches!(line, LineId::Node { node, .. } if *node == id);
        self.asides.retain(|line, _| !is_of(line));
        if let Some(node) = self.node_mut(id) {
            node.outcome = Some(outcome.clone());
            node.notes = Vec::new();
            node.answers = BTreeMap::new();
            node.best = None;
        }
    }

    /// What was looked up on the way stays in the conversation.
    fn path_taken(&mut self, thought: Option<ThoughtId>, main: &mut Line) {
        let parent = thought.and_then(|thought| self.method.parent(thought));
        let branch = LineId::Branch { thought: parent };
        let last = main.pieces().last().map_or(Seq::NONE, |piece| piece.seq);
        if let Some(aside) = self.asides.get(&branch) {
            for piece in aside.line.pieces().iter().filter(|piece| piece.seq > last) {
                main.push(piece.seq, piece.tokens, piece.piece.clone());
            }
        }
        self.drop_search();
        if let Method::Tot(tree) = &mut self.method {
            tree.taken = true;
        }
    }

    fn drop_search(&mut self) {
        self.asides.clear();
        self.errands.clear();
    }

    /// What whoever takes the turn up goes on from.
    pub(super) fn left(self) -> Option<Box<Left>> {
        if self.method.is_done() {
            return None;
        }
        let Turn { method, mut asides, mut errands, calls_made, .. } = self;
        asides.values_mut().for_each(|aside| aside.looped.rest());
        errands.retain(|_, errand| errand.given.is_some() || errand.misread.is_some());
        Some(Box::new(Left { method, asides, errands, calls_made }))
    }

    pub(super) fn take_up(&mut self, left: Left) {
        let Left { method, asides, errands, calls_made } = left;
        (self.method, self.asides, self.errands) = (method, asides, errands);
        self.calls_made = calls_made;
    }
}
