//! What clients see of the way to an answer: which texts are said, which are thought, and what a
//! strategy tells of its search in a sentence.

use std::collections::BTreeMap;

use polyloop_session::event::{Event, LineId, NodeOutcome, Purpose, Understanding};
use polyloop_session::id::{NodeId, ThoughtId};
use polyloop_session::{LogEntry, Text};

/// How the texts of a call are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Said,
    /// On the way to what is said.
    Thought,
    /// A summary is no part of the conversation that clients see.
    Nowhere,
}

pub(crate) fn manner(purpose: Purpose, line: Option<LineId>) -> Manner {
    match purpose {
        Purpose::Summarise => Manner::Nowhere,
        Purpose::Explain { .. } => Manner::Said,
        Purpose::Think if line.is_none() => Manner::Said,
        _ => Manner::Thought,
    }
}

/// More than any search has; a damaged log may hold any number.
const KNOWN_MAX: usize = 4096;
const SHOWN_BYTES_MAX: usize = 200;

/// The names of what a search is about.
#[derive(Default)]
pub(crate) struct Progress {
    thoughts: BTreeMap<ThoughtId, Text>,
    nodes: BTreeMap<NodeId, Text>,
}

impl Progress {
    pub(crate) fn forget(&mut self) {
        *self = Progress::default();
    }

    /// What an entry tells of a search, in a sentence.
    pub(crate) fn told(&mut self, entry: &LogEntry) -> Option<String> {
        match &entry.event {
            Event::Misread { why, .. } => Some(format!("{why}; asking again")),
            Event::Understood { part, .. } => Some(understood(part)),
            Event::Expanded { thoughts, .. } => {
                for (index, thought) in (0..).zip(thoughts) {
                    if self.thoughts.len() < KNOWN_MAX {
                        let id = ThoughtId { expanded: entry.seq, index };
                        self.thoughts.insert(id, thought.text.clone());
                    }
                }
                None
            }
            Event::Chosen { depth, beam, .. } => {
                let beam: Vec<&str> = beam.iter().map(|id| self.thought(id)).collect();
                Some(format!("Step {depth}, going on with: {}", beam.join(" | ")))
            }
            Event::Backtracked { to_depth, beam, reason, .. } => {
                let beam: Vec<&str> = beam.iter().map(|id| self.thought(id)).collect();
                Some(format!("Back to step {to_depth}: {reason}. Trying: {}", beam.join(" | ")))
            }
            Event::Planned { parent, nodes, .. } => {
                let above = parent.and_then(|parent| self.nodes.get(&parent).cloned());
                let prefix = above.as_ref().map(|above| format!("{above}.")).unwrap_or_default();
                let mut names = Vec::new();
                for (index, node) in (0..).zip(nodes) {
                    let name = format!("{prefix}{}", node.name);
                    if self.nodes.len() < KNOWN_MAX {
                        let id = NodeId { planned: entry.seq, index };
                        self.nodes.insert(id, name.as_str().into());
                    }
                    names.push(name);
                }
                Some(format!("Sub-tasks: {}", names.join(", ")))
            }
            Event::NodeStarted { node, .. } => Some(format!("Begun: {}", self.node(node))),
            Event::NodeEnded { node, outcome } => {
                let name = self.node(node);
                Some(match outcome {
                    NodeOutcome::Done { .. } => format!("Done: {name}"),
                    NodeOutcome::Failed { fault } => format!("Failed: {name}: {}", fault.message),
                    NodeOutcome::Skipped { missing } => {
                        format!("Not begun: {name}, which needs {}", self.node(missing))
                    }
                })
            }
            _ => None,
        }
    }

    fn thought(&self, id: &ThoughtId) -> &str {
        self.thoughts.get(id).map_or("…", |text| shortened(text))
    }

    fn node(&self, id: &NodeId) -> &str {
        self.nodes.get(id).map_or("a sub-task", |name| shortened(name))
    }
}

fn understood(part: &Understanding) -> String {
    match part {
        Understanding::Question { goal } => format!("The core question: {goal}"),
        Understanding::Information { constraints, context } => {
            let mut told = String::from("What bears on it:");
            constraints.iter().for_each(|one| told.push_str(&format!("\n- {one}")));
            if !context.is_empty() {
                told.push_str(&format!("\n{context}"));
            }
            told
        }
    }
}

fn shortened(text: &str) -> &str {
    match text.len() > SHOWN_BYTES_MAX {
        true => &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)],
        false => text,
    }
}
