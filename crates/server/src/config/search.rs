//! How far a search may go: read from the settings, and told again.

use polyloop_session::strategy::bounds::{Bounds, Judge, Search, THOUSANDTHS};

use super::read::{lower, required_number};
use super::settings::{self, Setting};
use super::source::Reader;
use super::value::{self, TotJudge, TotSearch};

/// Reads every bound, so that all problems are noted.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<Bounds> {
    let mut count = |setting| required_number::<u32>(reader, setting);
    let calls_at_once = count(&settings::MAX_CALLS_AT_ONCE);
    let tot_proposals = count(&settings::TOT_PROPOSALS);
    let tot_samples = count(&settings::TOT_SAMPLES);
    let tot_beam = count(&settings::TOT_BEAM);
    let tot_depth = count(&settings::TOT_DEPTH);
    let tot_steps = count(&settings::TOT_STEPS);
    let got_nodes = count(&settings::GOT_NODES);
    let got_nodes_total = count(&settings::GOT_NODES_TOTAL);
    let got_layers = count(&settings::GOT_LAYERS);
    let got_depth = count(&settings::GOT_DEPTH);
    let got_attempts = count(&settings::GOT_ATTEMPTS);
    let got_refine = count(&settings::GOT_REFINE);
    let got_steps = count(&settings::GOT_STEPS);
    let tot_search = reader.required(&settings::TOT_SEARCH, |t| TotSearch::parse(&lower(t)));
    let tot_judge = reader.required(&settings::TOT_JUDGE, |t| TotJudge::parse(&lower(t)));
    let tot_prune = reader.required(&settings::TOT_PRUNE, value::part);
    let tot_accept = reader.required(&settings::TOT_ACCEPT, value::part);
    let got_adaptive = reader.required(&settings::GOT_ADAPTIVE, value::switch);
    Some(Bounds {
        calls_at_once: calls_at_once?,
        tot_proposals: tot_proposals?,
        tot_samples: tot_samples?,
        tot_beam: tot_beam?,
        tot_depth: tot_depth?,
        tot_search: match tot_search? {
            TotSearch::Breadth => Search::Breadth,
            TotSearch::Depth => Search::Depth,
        },
        tot_judge: match tot_judge? {
            TotJudge::Value => Judge::Value,
            TotJudge::Vote => Judge::Vote,
        },
        tot_prune: thousandths(tot_prune?),
        tot_accept: thousandths(tot_accept?),
        tot_steps: tot_steps?,
        got_nodes: got_nodes?,
        got_nodes_total: got_nodes_total?,
        got_layers: got_layers?,
        got_depth: got_depth?,
        got_attempts: got_attempts?,
        got_refine: got_refine?,
        got_steps: got_steps?,
        got_adaptive: got_adaptive?,
    })
}

fn thousandths(part: f64) -> u32 {
    (part * f64::from(THOUSANDTHS)).round() as u32
}

/// Those of the table's own group, in its order.
pub(super) fn describe(bounds: &Bounds) -> Vec<(&'static str, String)> {
    let count = |setting: &Setting, count: u32| (setting.name, count.to_string());
    let part = |setting: &Setting, part: u32| {
        (setting.name, (f64::from(part) / f64::from(THOUSANDTHS)).to_string())
    };
    let search = match bounds.tot_search {
        Search::Breadth => TotSearch::Breadth,
        Search::Depth => TotSearch::Depth,
    };
    let judge = match bounds.tot_judge {
        Judge::Value => TotJudge::Value,
        Judge::Vote => TotJudge::Vote,
    };
    vec![
        (settings::TOT_SEARCH.name, search.word().to_owned()),
        (settings::TOT_JUDGE.name, judge.word().to_owned()),
        count(&settings::TOT_PROPOSALS, bounds.tot_proposals),
        count(&settings::TOT_SAMPLES, bounds.tot_samples),
        count(&settings::TOT_BEAM, bounds.tot_beam),
        count(&settings::TOT_DEPTH, bounds.tot_depth),
        part(&settings::TOT_PRUNE, bounds.tot_prune),
        part(&settings::TOT_ACCEPT, bounds.tot_accept),
        count(&settings::TOT_STEPS, bounds.tot_steps),
        (settings::GOT_ADAPTIVE.name, bounds.got_adaptive.to_string()),
        count(&settings::GOT_NODES, bounds.got_nodes),
        count(&settings::GOT_NODES_TOTAL, bounds.got_nodes_total),
        count(&settings::GOT_LAYERS, bounds.got_layers),
        count(&settings::GOT_DEPTH, bounds.got_depth),
        count(&settings::GOT_ATTEMPTS, bounds.got_attempts),
        count(&settings::GOT_REFINE, bounds.got_refine),
        count(&settings::GOT_STEPS, bounds.got_steps),
    ]
}
