//! What strategies record: what a model call is for, on which line it is made, and what was read
//! in its answer.

use serde::{Deserialize, Serialize};

use crate::id::{NodeId, Text, ThoughtId, WaitId};
use crate::item::Fault;

/// What a model call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Purpose {
    /// The next step of the conversation.
    Think,
    /// Say what the call that waits for approval would do.
    Explain {
        wait: WaitId,
    },
    Summarise,
    /// The core question of the problem.
    Question,
    /// What bears on the core question.
    Information,
    /// Thoughts that may follow one, or begin the search.
    Expand {
        thought: Option<ThoughtId>,
    },
    /// What one thought is worth; several are asked.
    Value {
        thought: ThoughtId,
        sample: u32,
    },
    /// Which thought is the best of a round; several are asked.
    Vote {
        round: u32,
        sample: u32,
    },
    /// A graph of sub-tasks: of the work, or of one of them.
    Plan {
        node: Option<NodeId>,
    },
    /// Whether a sub-task is too much for one.
    Judge {
        node: NodeId,
    },
    /// What an answer to a sub-task is worth.
    Score {
        node: NodeId,
        attempt: u32,
    },
    /// Work over the answer to a sub-task.
    Refine {
        node: NodeId,
        round: u32,
    },
}

impl Purpose {
    /// One question without tools, whose answer the strategy reads.
    pub fn is_errand(self) -> bool {
        match self {
            Purpose::Think | Purpose::Explain { .. } | Purpose::Summarise => false,
            Purpose::Expand { .. } => false,
            Purpose::Question
            | Purpose::Information
            | Purpose::Value { .. }
            | Purpose::Vote { .. }
            | Purpose::Plan { .. }
            | Purpose::Judge { .. }
            | Purpose::Score { .. }
            | Purpose::Refine { .. } => true,
        }
    }

    /// A step of a loop: it may call tools.
    pub fn is_step(self) -> bool {
        matches!(self, Purpose::Think | Purpose::Expand { .. })
    }
}

/// A line beside the session's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LineId {
    /// A sub-task is worked on; several answers may be tried side by side.
    Node { node: NodeId, attempt: u32 },
    /// What follows from a thought, or from none yet.
    Branch { thought: Option<ThoughtId> },
}

/// What the problem comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Understanding {
    /// The core question.
    Question { goal: Text },
    /// What bears on it.
    Information { constraints: Vec<Text>, context: Text },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thought {
    pub text: Text,
    /// Nothing is left to do after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
}

/// What a thought was found to be worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weighed {
    pub thought: ThoughtId,
    /// In thousandths.
    pub score: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedNode {
    /// Unique in its graph.
    pub name: Text,
    pub task: Text,
    /// Which of the same graph it needs the results of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<u32>,
    /// Answers to try side by side, of which the best is kept.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub attempts: u32,
    /// How often the answer is worked over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refine: u32,
}

fn one() -> u32 {
    1
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NodeOutcome {
    Done {
        result: Text,
        tokens: u64,
    },
    Failed {
        fault: Fault,
    },
    /// What it needs failed.
    Skipped {
        missing: NodeId,
    },
}
