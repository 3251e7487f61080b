//! How far a search may go. Each bound has a default, a setting of the server's, and a place in
//! what one run may ask for.

use serde::{Deserialize, Serialize};

/// Model calls of one turn that are open at the same time.
pub const CALLS_AT_ONCE: u32 = 8;

/// Bounds of every strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub calls_at_once: u32,
    /// Thoughts that are proposed to follow one.
    pub tot_proposals: u32,
    /// Opinions that are asked of each.
    pub tot_samples: u32,
    /// Thoughts that a breadth-first search goes on from.
    pub tot_beam: u32,
    /// Thoughts from the first to the last.
    pub tot_depth: u32,
    pub tot_search: Search,
    pub tot_judge: Judge,
    /// What is worth less is not followed, in thousandths.
    pub tot_prune: u32,
    /// What ends a depth-first search, in thousandths.
    pub tot_accept: u32,
    /// Steps with tools before a branch must propose.
    pub tot_steps: u32,
    /// Sub-tasks in one graph.
    pub got_nodes: u32,
    /// Sub-tasks in all graphs of a turn. What a graph leaves of them its nodes share alike.
    pub got_nodes_total: u32,
    /// Sub-tasks that wait for one another, one after the other.
    pub got_layers: u32,
    /// Graphs inside one another.
    pub got_depth: u32,
    /// Answers that a sub-task may try.
    pub got_attempts: u32,
    /// How often an answer may be worked over.
    pub got_refine: u32,
    /// Steps of one sub-task.
    pub got_steps: u32,
    /// Whether sub-tasks are judged, and split where they are too much for one.
    pub got_adaptive: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Search {
    /// The best few of each depth.
    #[default]
    Breadth,
    /// The best one first, down to its end, then the next.
    Depth,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// Each thought by itself.
    #[default]
    Value,
    /// All of a round together.
    Vote,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds::DEFAULT
    }
}

impl Bounds {
    pub const DEFAULT: Bounds = Bounds {
        calls_at_once: CALLS_AT_ONCE,
        tot_proposals: 3,
        tot_samples: 1,
        tot_beam: 2,
        tot_depth: 3,
        tot_search: Search::Breadth,
        tot_judge: Judge::Value,
        tot_prune: 200,
        tot_accept: 700,
        tot_steps: 4,
        got_nodes: 8,
        got_nodes_total: 32,
        got_layers: 6,
        got_depth: 2,
        got_attempts: 3,
        got_refine: 2,
        got_steps: 20,
        got_adaptive: false,
    };
}

/// What one run wants otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tot_proposals: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tot_samples: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tot_beam: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tot_depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tot_search: Option<Search>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tot_judge: Option<Judge>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tot_prune: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tot_accept: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tot_steps: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got_nodes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got_nodes_total: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got_layers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got_depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got_refine: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got_steps: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got_adaptive: Option<bool>,
}

/// No bound is larger than this, whoever asks.
pub const BOUND_MAX: u32 = 100;
/// Of a whole.
pub const THOUSANDTHS: u32 = 1_000;

impl Bounds {
    /// With what a run wants otherwise, held to what makes sense.
    pub fn with(self, wanted: Option<&Wanted>, adaptive: bool) -> Bounds {
        let w = wanted.copied().unwrap_or_default();
        let count = |wanted: Option<u32>, own: u32| wanted.unwrap_or(own).clamp(1, BOUND_MAX);
        let part = |wanted: Option<u32>, own: u32| wanted.unwrap_or(own).min(THOUSANDTHS);
        Bounds {
            calls_at_once: self.calls_at_once.clamp(1, BOUND_MAX),
            tot_proposals: count(w.tot_proposals, self.tot_proposals),
            tot_samples: count(w.tot_samples, self.tot_samples),
            tot_beam: count(w.tot_beam, self.tot_beam),
            tot_depth: count(w.tot_depth, self.tot_depth),
            tot_search: w.tot_search.unwrap_or(self.tot_search),
            tot_judge: w.tot_judge.unwrap_or(self.tot_judge),
            tot_prune: part(w.tot_prune, self.tot_prune),
            tot_accept: part(w.tot_accept, self.tot_accept),
            tot_steps: w.tot_steps.unwrap_or(self.tot_steps).min(BOUND_MAX),
            got_nodes: count(w.got_nodes, self.got_nodes),
            got_nodes_total: count(w.got_nodes_total, self.got_nodes_total),
            got_layers: count(w.got_layers, self.got_layers),
            got_depth: count(w.got_depth, self.got_depth),
            got_attempts: count(w.got_attempts, self.got_attempts),
            got_refine: w.got_refine.unwrap_or(self.got_refine).min(BOUND_MAX),
            got_steps: count(w.got_steps, self.got_steps),
            got_adaptive: w.got_adaptive.unwrap_or(self.got_adaptive) || adaptive,
        }
    }
}
