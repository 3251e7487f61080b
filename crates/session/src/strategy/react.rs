//! ReAct: ask the model, run what it proposes, ask again with the results, until it answers.

use crate::decide::Limits;
use crate::event::{Event, Outcome, Purpose};
use crate::item::Fault;
use crate::state::{Phase, State, Turn};

pub(crate) fn next(state: &State, turn: &Turn, limits: &Limits) -> Vec<Event> {
    let outcome = match &turn.phase {
        Phase::Asking if turn.calls_made < turn.calls_max => {
            let model = state.settings().map(|s| s.model.clone()).unwrap_or_default();
            let (purpose, tokens_max) = (Purpose::Think, state.tokens_max(limits));
            return vec![Event::CallStarted { purpose, model, tokens_max }];
        }
        Phase::Asking => {
            let limit = turn.calls_max;
            let message = format!("Stopped after {limit} model calls, the limit for one turn");
            Outcome::Failed { fault: Fault::new("max_turns", message) }
        }
        Phase::Calling | Phase::Acting => return Vec::new(),
        Phase::Answered | Phase::Finished => Outcome::Completed,
        Phase::Failed(fault) => Outcome::Failed { fault: fault.clone() },
    };
    vec![Event::TurnEnded { outcome, usage: turn.usage }]
}
