//! A compaction: one call for a summary, then the older pieces give way to
//! it, provided that this makes the prompt smaller.

use crate::budget;
use crate::context::{calibrated, cut, tokens_after};
use crate::event::{Event, Outcome, Purpose, Window};
use crate::id::Text;
use crate::item::Fault;
use crate::room;
use crate::state::{Phase, Summary, estimate_tokens};
use crate::strategy::{Desk, call};

pub(crate) fn next(desk: &Desk<'_>) -> Vec<Event> {
    let Desk { state, turn, limits, .. } = *desk;
    let fault = match &desk.looped.phase {
        Phase::Asking if turn.calls_made == 0 => {
            match budget::exceeded(&limits.budget, state.spent()) {
                None => return vec![call(state, limits, Purpose::Summarise, None)],
                Some(fault) => fault,
            }
        }
        Phase::Asking => failed("The summary was not written"),
        Phase::Calling | Phase::Acting => return Vec::new(),
        Phase::Answered | Phase::Summarised => match compacted(desk) {
            Ok(event) => return vec![event],
            Err(fault) => fault,
        },
        Phase::Finished => {
            return vec![Event::TurnEnded { outcome: Outcome::Completed, usage: turn.usage }];
        }
        Phase::Failed(fault) => fault.clone(),
    };
    vec![Event::TurnEnded { outcome: Outcome::Failed { fault }, usage: turn.usage }]
}

/// The summary takes the place of what it tells, unless that gains nothing.
pub(super) fn compacted(desk: &Desk<'_>) -> Result<Event, Fault> {
    let Desk { turn, line, looped, limits, on, .. } = *desk;
    let Some(Summary { call, text, tokens }) = looped.summary.clone() else {
        return Err(failed("The model gave no summary"));
    };
    let Some(upto) = cut(line, turn, looped) else {
        return Err(failed("There is nothing to compact"));
    };
    let (summary, summary_tokens) = with_todos(text, tokens, line.todos());
    let own = (!turn.is_compaction()).then_some(turn.id);
    let overhead = room::overhead(desk);
    let counted = line.tokens().saturating_add(overhead);
    let left = tokens_after(line, upto, own, summary_tokens).saturating_add(overhead);
    let Some((tokens_before, tokens_after)) = calibrated(line.used_with(overhead), counted, left)
    else {
        let filled = room::filled(desk);
        let message = format!(
            "Compaction was given up: it would leave {left} tokens of {counted}, no gain. The \
             window is filled by: {filled}"
        );
        return Err(Fault::new(room::FLOOR_CODE, message));
    };
    let kept = line.pieces().iter().filter(|p| p.stays(upto, own)).count() as u64;
    let (tokens_max, strategy) = (desk.tokens_max(), limits.strategy);
    let overhead_tokens = (overhead > 0).then_some(overhead);
    let window = Window { tokens_max, strategy, pieces: kept + 1, overhead_tokens };
    Ok(Event::Compacted {
        call,
        upto,
        summary,
        summary_tokens,
        tokens_before,
        tokens_after,
        window,
        line: on,
    })
}

/// The calls that were about the todos may be among what goes, so what is open of them stands
/// behind.
fn with_todos(text: Text, tokens: u64, open: Option<&Text>) -> (Text, u64) {
    match open {
        None => (text, tokens),
        Some(open) => {
            let tokens = tokens.saturating_add(estimate_tokens(open.len()));
            (format!("{}\n\n{open}", text.trim_end()).into(), tokens)
        }
    }
}

fn failed(message: &str) -> Fault {
    Fault::new("compaction_failed", message)
}
