//! What clients see of the way to an answer: which texts are said, which are thought, and what a
//! strategy tells of its search in a sentence.
//!
//! Several calls of a search run at once. Where a dialect's increments do not say which text they
//! go on, what such a call thinks is shown when it is whole, so that no two are mixed.

use std::collections::BTreeMap;

use polyloop_session::event::{
    Event, LineId, NodeOutcome, Outcome, Purpose, Understanding, Weighed, Work,
};
use polyloop_session::id::{NodeId, ThoughtId};
use polyloop_session::item::ItemKind;
use polyloop_session::{LogEntry, Text};

/// How a text or a piece of reasoning is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Said,
    /// On the way to what is said.
    Thought,
    /// The same, of a call beside others: shown when it is whole.
    ThoughtWhole,
    /// A summary is no part of the conversation that clients see, and what a strategy reads is
    /// told in its own words.
    Nowhere,
}

/// How an item of a call is shown where increments do not say what they belong to.
pub(crate) fn manner(kind: &ItemKind, purpose: Purpose, line: Option<LineId>) -> Manner {
    let is_text = matches!(kind, ItemKind::Text);
    match purpose {
        Purpose::Summarise => Manner::Nowhere,
        Purpose::Explain { .. } => said(is_text),
        Purpose::Think if line.is_none() => said(is_text),
        Purpose::Think | Purpose::Refine { .. } => Manner::ThoughtWhole,
        _ if is_text => Manner::Nowhere,
        _ if is_alone(purpose) => Manner::Thought,
        _ => Manner::ThoughtWhole,
    }
}

fn said(is_text: bool) -> Manner {
    if is_text { Manner::Said } else { Manner::Thought }
}

/// Nothing else is asked while such a call is open.
fn is_alone(purpose: Purpose) -> bool {
    match purpose {
        Purpose::Question | Purpose::Information => true,
        Purpose::Expand { thought } => thought.is_none(),
        Purpose::Plan { node } => node.is_none(),
        Purpose::Think | Purpose::Explain { .. } | Purpose::Summarise => false,
        Purpose::Value { .. } | Purpose::Vote { .. } => false,
        Purpose::Judge { .. } | Purpose::Score { .. } | Purpose::Refine { .. } => false,
    }
}

/// More than any search has; a damaged log may hold any number.
const KNOWN_MAX: usize = 4096;
/// Of a thought, a task, or a name in a sentence.
const SHOWN_BYTES_MAX: usize = 200;
/// Of what dup understood.
const UNDERSTOOD_BYTES_MAX: usize = 2 * 1024;
/// Of the name of a sub-task, with those that it is inside of.
const NAME_BYTES_MAX: usize = 64;
const MARK: &str = "…";

/// The names of what a search is about.
#[derive(Default)]
pub(crate) struct Progress {
    thoughts: BTreeMap<ThoughtId, Known>,
    nodes: BTreeMap<NodeId, Named>,
}

struct Named {
    name: String,
    /// What it is inside of.
    parent: Option<NodeId>,
}

struct Known {
    text: String,
    from: Option<ThoughtId>,
    depth: u32,
}

impl Progress {
    /// A turn begins. One that takes up a search goes on with its names.
    pub(crate) fn turn_started(&mut self, work: &Work) {
        if let Work::Message { .. } = work {
            *self = Progress::default();
        }
    }

    /// What was interrupted may be taken up.
    pub(crate) fn turn_ended(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Interrupted { .. } => {}
            Outcome::Completed | Outcome::Failed { .. } => *self = Progress::default(),
        }
    }

    /// Remembers what an entry names.
    pub(crate) fn take(&mut self, entry: &LogEntry) {
        match &entry.event {
            Event::Expanded { from, thoughts, .. } => {
                let depth = from.and_then(|from| self.depth(&from)).unwrap_or(0).saturating_add(1);
                for (index, thought) in (0..).zip(thoughts) {
                    if self.thoughts.len() >= KNOWN_MAX {
                        self.thoughts.pop_first();
                    }
                    let text = shortened(&thought.text);
                    let known = Known { text, from: *from, depth };
                    self.thoughts.insert(ThoughtId { expanded: entry.seq, index }, known);
                }
            }
            Event::Planned { parent, nodes, .. } => {
                let above = parent.map(|parent| self.node(&parent).to_owned());
                for (index, node) in (0..).zip(nodes) {
                    if self.nodes.len() >= KNOWN_MAX {
                        self.nodes.pop_first();
                    }
                    let id = NodeId { planned: entry.seq, index };
                    let name = named(id, above.as_deref(), &node.name);
                    // A damaged log may have one inside of what comes later.
                    let parent = parent.filter(|parent| parent.planned < entry.seq);
                    self.nodes.insert(id, Named { name, parent });
                }
            }
            _ => {}
        }
    }

    pub(crate) fn node(&self, id: &NodeId) -> &str {
        self.nodes.get(id).map_or("task", |named| &named.name)
    }

    /// The sub-task that one is inside of.
    pub(crate) fn above(&self, id: &NodeId) -> Option<NodeId> {
        self.nodes.get(id).and_then(|named| named.parent)
    }

    pub(crate) fn thought(&self, id: &ThoughtId) -> &str {
        self.thoughts.get(id).map_or(MARK, |known| &known.text)
    }

    /// Steps from the beginning, the first is 1.
    pub(crate) fn depth(&self, id: &ThoughtId) -> Option<u32> {
        self.thoughts.get(id).map(|known| known.depth)
    }

    /// What an entry tells of a search, in a sentence.
    pub(crate) fn told(&mut self, entry: &LogEntry) -> Option<String> {
        self.take(entry);
        match &entry.event {
            Event::Misread { why, .. } => Some(format!("{why}; asking again")),
            Event::Understood { part, .. } => understood(part),
            Event::Expanded { from, thoughts, .. } => {
                let mut told = match from {
                    None => String::from("Ways to begin:"),
                    Some(from) => format!("Ways to go on after “{}”:", self.thought(from)),
                };
                for thought in thoughts {
                    told.push_str(&format!("\n- {}", shortened(&thought.text)));
                }
                // That there are none was told with the reason.
                (!thoughts.is_empty()).then_some(told)
            }
            Event::Chosen { beam, .. } if beam.is_empty() => {
                Some("None of these is promising enough".to_owned())
            }
            Event::Chosen { beam, weighed, .. } => {
                Some(format!("Going on with {}", self.listed(beam, weighed)))
            }
            Event::Backtracked { to_depth, beam, reason, weighed } => {
                let beam = self.listed(beam, weighed);
                Some(format!("Going back to step {to_depth}: {reason}. Trying {beam}"))
            }
            Event::PathTaken { thought: None, .. } => {
                Some("No way was found worth following; answering without one".to_owned())
            }
            Event::PathTaken { thought: Some(thought), .. } => {
                let mut told = String::from("The best way that was found:");
                for (number, id) in (1..).zip(self.path(*thought)) {
                    told.push_str(&format!("\n{number}. {}", self.thought(&id)));
                }
                Some(told)
            }
            Event::Planned { parent, nodes, .. } => {
                let mut told = match parent {
                    None => String::from("Sub-tasks:"),
                    Some(parent) => format!("“{}” is split further:", self.node(parent)),
                };
                for (index, node) in (0..).zip(nodes) {
                    let name = |index| self.node(&NodeId { planned: entry.seq, index });
                    let needs: Vec<&str> = node.needs.iter().map(|need| name(*need)).collect();
                    let after = match needs.is_empty() {
                        true => String::new(),
                        false => format!(" (after {})", needs.join(", ")),
                    };
                    let task = shortened(&node.task);
                    told.push_str(&format!("\n- {}{after}: {task}", name(index)));
                }
                Some(told)
            }
            Event::NodeStarted { node, .. } => Some(format!("Working on “{}”", self.node(node))),
            Event::Kept { node, .. } => {
                Some(format!("The best answer to “{}” is improved", self.node(node)))
            }
            Event::Refined { node, text: Some(_), .. } => {
                Some(format!("The answer to “{}” was improved", self.node(node)))
            }
            Event::NodeEnded { node, outcome } => Some(self.ended(node, outcome)),
            Event::Gathered { node: None, .. } => Some("Putting the results together".to_owned()),
            Event::Gathered { node: Some(node), .. } => {
                Some(format!("Putting the results of “{}” together", self.node(node)))
            }
            _ => None,
        }
    }

    fn ended(&self, node: &NodeId, outcome: &NodeOutcome) -> String {
        let name = self.node(node);
        match outcome {
            NodeOutcome::Done { .. } => format!("“{name}” is done"),
            NodeOutcome::Failed { fault } => format!("“{name}” failed: {}", fault.message),
            NodeOutcome::Skipped { missing } => {
                format!("“{name}” is left out: it needs “{}”", self.node(missing))
            }
        }
    }

    /// Thoughts, and what each was found to be worth.
    fn listed(&self, beam: &[ThoughtId], weighed: &[Weighed]) -> String {
        let one = |id: &ThoughtId| {
            let score = weighed.iter().find(|one| one.thought == *id).map(|one| one.score);
            let worth = score.map(|score| format!(" ({}/10)", tenths(score))).unwrap_or_default();
            format!("“{}”{worth}", self.thought(id))
        };
        beam.iter().map(one).collect::<Vec<_>>().join(" and ")
    }

    fn path(&self, last: ThoughtId) -> Vec<ThoughtId> {
        let mut path = vec![last];
        while let Some(from) = path.last().and_then(|id| self.thoughts.get(id)?.from) {
            // A damaged log may have any thought follow any other.
            if path.contains(&from) {
                break;
            }
            path.push(from);
        }
        path.reverse();
        path
    }
}

/// The name of a sub-task, which no other of the turn has.
fn named(id: NodeId, above: Option<&str>, name: &Text) -> String {
    // Signs that take more room in JSON could push out what tells two long names apart.
    let plain = |letter: char| match letter {
        '"' | '\\' => '_',
        letter if letter.is_control() => '_',
        letter => letter,
    };
    let name: String = one_line(name).chars().map(plain).collect();
    let name = above.map_or(name.clone(), |above| format!("{above}.{name}"));
    match name.len() > NAME_BYTES_MAX {
        true => format!("{}{}-{}", cut(&name, NAME_BYTES_MAX), id.planned, id.index),
        false => name,
    }
}

/// Thousandths as tenths, with a decimal where there is one.
fn tenths(score: u32) -> String {
    match (score / 100, score % 100 / 10) {
        (whole, 0) => whole.to_string(),
        (whole, part) => format!("{whole}.{part}"),
    }
}

fn understood(part: &Understanding) -> Option<String> {
    match part {
        Understanding::Question { goal } if goal.is_empty() => None,
        Understanding::Question { goal } => {
            Some(format!("The core question: {}", cut(goal, UNDERSTOOD_BYTES_MAX)))
        }
        Understanding::Information { constraints, context } => {
            let mut told = String::from("What bears on it:");
            constraints.iter().for_each(|one| told.push_str(&format!("\n- {}", shortened(one))));
            if !context.is_empty() {
                told.push_str(&format!("\n{}", cut(context, UNDERSTOOD_BYTES_MAX)));
            }
            let any = !constraints.is_empty() || !context.is_empty();
            any.then_some(told)
        }
    }
}

/// On one line, and not too long.
fn shortened(text: &str) -> String {
    cut(&one_line(text), SHOWN_BYTES_MAX)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut(text: &str, bytes_max: usize) -> String {
    match text.len() > bytes_max {
        true => format!("{}{MARK}", &text[..text.floor_char_boundary(bytes_max)]),
        false => text.to_owned(),
    }
}
