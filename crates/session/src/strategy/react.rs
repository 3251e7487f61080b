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
    let bare = |text: &str| text.trim_end().trim_end_matches('.').to_owned();
    let first = match (&turn.shorten, fault) {
        (_, Some(fault)) if &*fault.code == TOO_LONG_CODE => bare(&fault.message),
        (Shorten::Due(first), Some(fault)) => {
            let (first, why) = (bare(&first.message), bare(&fault.message));
            let message = format!("{first}, and no summary could be had: {why}");
            return Fault { message: message.into(), ..fault.clone() };
        }
        (_, Some(fault)) if turn.is_hopeless(fault) => {
            let message = format!(
                "{}. This message was left out of the conversation: send another",
                bare(&fault.message)
            );
            return Fault { message: message.into(), ..fault.clone() };
        }
        (_, Some(fault)) => return fault.clone(),
        (Shorten::Due(first), None) => bare(&first.message),
        (Shorten::No | Shorten::Done, None) => bare("The conversation is too long for the model"),
    };
    let fault = Fault::new(TOO_LONG_CODE, "");
    let message = match turn.is_hopeless(&fault) {
        true => format!(
            "{first}. This message was left out of the conversation: send a shorter one, or \
             choose a model with a larger window"
        ),
        false => format!(
            "{first}, and no more room can be made in this turn; what was done stands, so say how \
             to go on, or choose a model with a larger window"
        ),
    };
    Fault { message: message.into(), ..fault }
}
