//! ReAct: ask the model, run what it proposes, ask again with the results, until it answers.

use crate::decide::Limits;
use crate::event::{Event, Outcome, Purpose};
use crate::item::Fault;
use crate::retry::TOO_LONG_CODE;
use crate::state::{Phase, Shorten, State, Turn};
use crate::strategy::compact;

pub(crate) fn next(state: &State, turn: &Turn, limits: &Limits) -> Vec<Event> {
    let outcome = match &turn.phase {
        Phase::Asking if turn.calls_made < turn.calls_max => {
            let model = state.settings().map(|s| s.model.clone()).unwrap_or_default();
            let purpose = match turn.shorten {
                Shorten::Due(_) => Purpose::Summarise,
                Shorten::No | Shorten::Done => Purpose::Think,
            };
            let tokens_max = state.tokens_max(limits);
            return vec![Event::CallStarted { purpose, model, tokens_max }];
        }
        Phase::Asking => {
            let limit = turn.calls_max;
            let message = format!("Stopped after {limit} model calls, the limit for one turn");
            Outcome::Failed { fault: Fault::new("max_turns", message) }
        }
        Phase::Calling | Phase::Acting => return Vec::new(),
        Phase::Summarised => match compact::compacted(state, turn, limits) {
            Ok(event) => return vec![event],
            Err(_) => Outcome::Failed { fault: failed(turn, None) },
        },
        Phase::Answered | Phase::Finished => Outcome::Completed,
        Phase::Failed(fault) => Outcome::Failed { fault: failed(turn, Some(fault)) },
    };
    vec![Event::TurnEnded { outcome, usage: turn.usage }]
}

/// What the turn fails with: where no summary made room, with what can be done about that.
fn failed(turn: &Turn, fault: Option<&Fault>) -> Fault {
    let first = match (&turn.shorten, fault) {
        (Shorten::Due(first), _) => &first.message,
        (Shorten::Done, Some(again)) if &*again.code == TOO_LONG_CODE => &again.message,
        (Shorten::No | Shorten::Done, Some(fault)) => return fault.clone(),
        (Shorten::No | Shorten::Done, None) => "The conversation is too long for the model",
    };
    let message = format!(
        "{}, and a summary did not make enough room; compact the session, start a new one, or \
         choose a model with a larger window",
        first.trim_end().trim_end_matches('.')
    );
    Fault::new(TOO_LONG_CODE, message)
}
