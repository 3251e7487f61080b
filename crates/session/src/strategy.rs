//! How a turn is worked: each strategy is a function of the state that says what to record next.

pub mod compact;
pub mod react;

use crate::decide::Limits;
use crate::event::{Event, Purpose, Work};
use crate::state::{State, Turn};

/// What the turn's strategy wants recorded, once no tool and no call is open.
pub(crate) fn next(state: &State, turn: &Turn, limits: &Limits) -> Vec<Event> {
    match turn.work {
        Work::Message { .. } | Work::Resume { .. } => react::next(state, turn, limits),
        Work::Compact { .. } => compact::next(state, turn, limits),
    }
}

/// The beginning of a model call, with what is in force for it.
pub(crate) fn call(state: &State, limits: &Limits, purpose: Purpose) -> Event {
    let model = state.settings().map(|s| s.model.clone()).unwrap_or_default();
    let tokens_max = state.tokens_max(limits);
    // Other calls are told fewer tools, or none.
    let counted = limits.overhead.total();
    let overhead_tokens = (purpose == Purpose::Think && counted > 0).then_some(counted);
    Event::CallStarted { purpose, model, tokens_max, overhead_tokens }
}
