//! How far a search may go, as a `run` says it. What is left out is the server's to say; a field
//! that is not known, or a value out of its range, is an error.

use polyloop_session::strategy::bounds::{BOUND_MAX, Judge, Search, THOUSANDTHS, Wanted};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

#[derive(Clone, Copy, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(in super::super) struct TotBounds {
    /// Thoughts that are proposed to follow one.
    pub proposals: Option<Count>,
    /// Opinions that are asked of each, or votes of each round.
    pub samples: Option<Count>,
    /// Thoughts that a breadth-first search goes on from.
    pub beam: Option<Count>,
    /// Thoughts from the first to the last.
    pub depth: Option<Count>,
    pub search: Option<TotSearch>,
    pub judge: Option<TotJudge>,
    /// What is worth less is not followed.
    pub prune: Option<Part>,
    /// What ends a depth-first search.
    pub accept: Option<Part>,
    /// Steps with tools that read before a branch must propose.
    pub steps: Option<CountOrNone>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(in super::super) struct GotBounds {
    /// The same as `got_adaptive`.
    pub adaptive: Option<bool>,
    /// Sub-tasks in one graph.
    pub nodes: Option<Count>,
    /// Sub-tasks in all graphs of the run.
    pub nodes_total: Option<Count>,
    /// Sub-tasks that wait for one another, one after the other.
    pub layers: Option<Count>,
    /// Graphs inside one another.
    pub depth: Option<Count>,
    /// Answers that a sub-task may try.
    pub attempts: Option<Count>,
    /// How often an answer may be worked over.
    pub refine: Option<CountOrNone>,
    /// Steps of one sub-task.
    pub steps: Option<Count>,
}

#[derive(Clone, Copy, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum TotSearch {
    /// The best few of each depth.
    Breadth,
    /// The best one first, down to its end, then the next.
    Depth,
}

#[derive(Clone, Copy, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum TotJudge {
    /// Each thought by itself.
    Value,
    /// All of a round together.
    Vote,
}

#[derive(Clone, Copy)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in super::super) struct Count(
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 100)))] u32,
);

#[derive(Clone, Copy)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in super::super) struct CountOrNone(
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 100)))] u32,
);

/// In thousandths.
#[derive(Clone, Copy)]
pub(in super::super) struct Part(u32);

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Part {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Part".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "number", "minimum": 0, "maximum": 1})
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Count, D::Error> {
        within(json, 1).map(Count)
    }
}

impl<'de> Deserialize<'de> for CountOrNone {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<CountOrNone, D::Error> {
        within(json, 0).map(CountOrNone)
    }
}

fn within<'de, D: Deserializer<'de>>(json: D, min: i64) -> Result<u32, D::Error> {
    let count = i64::deserialize(json)?;
    let fits = u32::try_from(count).ok().filter(|fits| *fits <= BOUND_MAX && count >= min);
    fits.ok_or_else(|| {
        D::Error::custom(format!("{count} is out of range; use {min} to {BOUND_MAX}"))
    })
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Part, D::Error> {
        let part = f64::deserialize(json)?;
        match (0.0..=1.0).contains(&part) {
            true => Ok(Part((part * f64::from(THOUSANDTHS)).round() as u32)),
            false => Err(D::Error::custom(format!("{part} is out of range; use 0 to 1"))),
        }
    }
}

/// What a run wants; `None` where it leaves all to the server.
pub(in super::super) fn wanted(
    tot: Option<TotBounds>,
    got: Option<GotBounds>,
    adaptive: Option<bool>,
) -> Option<Box<Wanted>> {
    let (tot, got) = (tot.unwrap_or_default(), got.unwrap_or_default());
    let count = |count: Option<Count>| count.map(|Count(count)| count);
    let or_none = |count: Option<CountOrNone>| count.map(|CountOrNone(count)| count);
    let part = |part: Option<Part>| part.map(|Part(part)| part);
    let wanted = Wanted {
        tot_proposals: count(tot.proposals),
        tot_samples: count(tot.samples),
        tot_beam: count(tot.beam),
        tot_depth: count(tot.depth),
        tot_search: tot.search.map(|search| match search {
            TotSearch::Breadth => Search::Breadth,
            TotSearch::Depth => Search::Depth,
        }),
        tot_judge: tot.judge.map(|judge| match judge {
            TotJudge::Value => Judge::Value,
            TotJudge::Vote => Judge::Vote,
        }),
        tot_prune: part(tot.prune),
        tot_accept: part(tot.accept),
        tot_steps: or_none(tot.steps),
        got_nodes: count(got.nodes),
        got_nodes_total: count(got.nodes_total),
        got_layers: count(got.layers),
        got_depth: count(got.depth),
        got_attempts: count(got.attempts),
        got_refine: or_none(got.refine),
        got_steps: count(got.steps),
        // To be adaptive is said apart.
        got_adaptive: adaptive.filter(|adaptive| !adaptive),
    };
    (wanted != Wanted::default()).then(|| Box::new(wanted))
}
