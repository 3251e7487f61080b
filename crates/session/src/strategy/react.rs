//! ReAct: ask the model, run what it proposes, ask again with the results, until it answers.

use crate::budget;
use crate::decide::Limits;
use crate::event::{Event, Level, Outcome, Purpose};
use crate::item::Fault;
use crate::retry::TOO_LONG_CODE;
use crate::room::{self, Room};
use crate::state::{Phase, Shorten, State, Turn};
use crate::strategy::{call, compact};

pub(crate) fn next(state: &State, turn: &Turn, limits: &Limits) -> Vec<Event> {
    let fault = match &turn.phase {
        Phase::Asking => match asks(state, turn, limits) {
            Ok(event) => return vec![event],
            Err(fault) => fault,
        },
        Phase::Calling | Phase::Acting => return Vec::new(),
        Phase::Summarised => match compact::compacted(state, turn, limits) {
            Ok(event) => return vec![event],
            Err(fault) if turn.is_early() => match over_budget(state, limits) {
                None if room::fits(state, limits) => {
                    return vec![noticed(&fault), call(state, limits, Purpose::Think)];
                }
                None => room::floor(state, turn, limits),
                Some(fault) => fault,
            },
            Err(_) => failed(turn, None),
        },
        Phase::Answered | Phase::Finished => {
            return vec![Event::TurnEnded { outcome: Outcome::Completed, usage: turn.usage }];
        }
        Phase::Failed(fault) => failed(turn, Some(fault)),
    };
    vec![Event::TurnEnded { outcome: Outcome::Failed { fault }, usage: turn.usage }]
}

/// The next call, or what must come before it.
fn asks(state: &State, turn: &Turn, limits: &Limits) -> Result<Event, Fault> {
    if turn.calls_made >= turn.calls_max {
        let limit = turn.calls_max;
        let message = format!("Stopped after {limit} model calls, the limit for one turn");
        return Err(Fault::new("max_turns", message));
    }
    if let Some(fault) = over_budget(state, limits) {
        return Err(fault);
    }
    let purpose = match turn.shorten {
        Shorten::Early { .. } | Shorten::Due(_) => Purpose::Summarise,
        Shorten::No | Shorten::Done => match room::before_call(state, turn, limits) {
            Room::Enough => Purpose::Think,
            Room::Trim(event) => return Ok(event),
            Room::Summarise => Purpose::Summarise,
            Room::None(fault) => return Err(fault),
        },
    };
    Ok(call(state, limits, purpose))
}

fn over_budget(state: &State, limits: &Limits) -> Option<Fault> {
    budget::exceeded(&limits.budget, state.spent())
}

fn noticed(fault: &Fault) -> Event {
    let (level, text) = (Level::Warning, fault.message.clone());
    Event::Noticed { level, text, code: fault.code.clone() }
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
        (Shorten::No | Shorten::Early { .. } | Shorten::Done, None) => {
            bare("The conversation is too long for the model")
        }
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
