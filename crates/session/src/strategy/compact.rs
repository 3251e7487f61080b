//! A compaction: one call for a summary, then the older pieces give way to
//! it, provided that this makes the prompt smaller.

use crate::context::{compaction_cut, tokens_after, turn_cut};
use crate::decide::Limits;
use crate::event::{Event, Outcome, Purpose, Window};
use crate::item::Fault;
use crate::state::{Phase, State, Summary, Turn};

pub(crate) fn next(state: &State, turn: &Turn, limits: &Limits) -> Vec<Event> {
    let outcome = match &turn.phase {
        Phase::Asking if turn.calls_made == 0 => {
            let model = state.settings().map(|s| s.model.clone()).unwrap_or_default();
            let (purpose, tokens_max) = (Purpose::Summarise, state.tokens_max(limits));
            return vec![Event::CallStarted { purpose, model, tokens_max }];
        }
        Phase::Asking => failed("The summary was not written"),
        Phase::Calling | Phase::Acting => return Vec::new(),
        Phase::Answered | Phase::Summarised => match compacted(state, turn, limits) {
            Ok(event) => return vec![event],
            Err(outcome) => outcome,
        },
        Phase::Finished => Outcome::Completed,
        Phase::Failed(fault) => Outcome::Failed { fault: fault.clone() },
    };
    vec![Event::TurnEnded { outcome, usage: turn.usage }]
}

/// The summary takes the place of what it tells, unless that gains nothing.
pub(super) fn compacted(state: &State, turn: &Turn, limits: &Limits) -> Result<Event, Outcome> {
    let line = state.line();
    let Some(Summary { call, text, tokens }) = turn.answer.clone() else {
        return Err(failed("The model gave no summary"));
    };
    let cut = match turn.is_compaction() {
        true => compaction_cut(line),
        false => turn_cut(line, turn.id),
    };
    let Some(upto) = cut else {
        return Err(failed("There is nothing to compact"));
    };
    let before = line.tokens();
    let own = (!turn.is_compaction()).then_some(turn.id);
    let after = tokens_after(line, upto, own, tokens);
    if after >= before {
        let told =
            format!("Compaction was given up: it would leave {after} tokens of {before}, no gain");
        return Err(failed(&told));
    }
    let kept = line.pieces().iter().filter(|p| p.stays(upto, own)).count() as u64;
    Ok(Event::Compacted {
        call,
        upto,
        summary: text,
        summary_tokens: tokens,
        tokens_before: before,
        tokens_after: after,
        window: Window {
            tokens_max: state.tokens_max(limits),
            strategy: limits.strategy,
            pieces: kept + 1,
        },
    })
}

fn failed(message: &str) -> Outcome {
    Outcome::Failed { fault: Fault::new("compaction_failed", message) }
}
