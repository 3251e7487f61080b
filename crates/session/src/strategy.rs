//! How a turn is worked: each strategy is a function of the state that says what to record next.

pub mod compact;
pub mod react;

use crate::decide::Limits;
use crate::event::{Event, Work};
use crate::state::{State, Turn};

/// What the turn's strategy wants recorded, once no tool and no call is open.
pub(crate) fn next(state: &State, turn: &Turn, limits: &Limits) -> Vec<Event> {
    match turn.work {
        Work::Message { .. } | Work::Resume { .. } => react::next(state, turn, limits),
        Work::Compact { .. } => compact::next(state, turn, limits),
    }
}
