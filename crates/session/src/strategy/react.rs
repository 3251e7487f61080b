//! ReAct: ask the model, run what it proposes, ask again with the results, until it answers.

use crate::budget;
use crate::event::{Event, Level, Outcome, Purpose};
use crate::item::Fault;
use crate::retry::TOO_LONG_CODE;
use crate::room::{self, Room};
use crate::state::{Phase, Shorten};
use crate::strategy::{Desk, call, compact};

/// The fault of a turn that made as many calls as it may.
pub const CALLS_CODE: &str = "max_turns";

/// What the session's own loop comes to is what the turn comes to.
pub(crate) fn next(desk: &Desk<'_>) -> Vec<Event> {
    let turn = desk.turn;
    // An explanation that is asked for may outlive its call.
    if !turn.calls.is_empty() || !turn.waits.is_empty() {
        return Vec::new();
    }
    let outcome = match step(desk, Purpose::Think) {
        Step::Record(events) => return events,
        Step::Open => return Vec::new(),
        Step::Answered => Outcome::Completed,
        Step::Failed(fault) => Outcome::Failed { fault },
    };
    vec![Event::TurnEnded { outcome, usage: turn.usage }]
}

/// What follows in a loop.
pub(crate) enum Step {
    Record(Vec<Event>),
    /// Something of it is under way.
    Open,
    Answered,
    Failed(Fault),
}

/// Asks with this purpose until there is an answer.
pub(crate) fn step(desk: &Desk<'_>, purpose: Purpose) -> Step {
    let ask = |purpose| call(desk.state, desk.limits, purpose, desk.on);
    match &desk.looped.phase {
        Phase::Asking => match asks(desk, purpose) {
            Ok(event) => Step::Record(vec![event]),
            Err(fault) => Step::Failed(fault),
        },
        Phase::Calling | Phase::Acting => Step::Open,
        Phase::Summarised => match compact::compacted(desk) {
            Ok(event) => Step::Record(vec![event]),
            Err(fault) if desk.looped.is_early() => match over_budget(desk) {
                None if room::fits(desk) => Step::Record(vec![noticed(&fault), ask(purpose)]),
                None => Step::Failed(room::floor(desk)),
                Some(fault) => Step::Failed(fault),
            },
            Err(_) => Step::Failed(failed(desk, None)),
        },
        Phase::Answered | Phase::Finished => Step::Answered,
        Phase::Failed(fault) => Step::Failed(failed(desk, Some(fault))),
    }
}

/// The next call, or what must come before it.
fn asks(desk: &Desk<'_>, purpose: Purpose) -> Result<Event, Fault> {
    let turn = desk.turn;
    if turn.calls_made >= turn.calls_max {
        let limit = turn.calls_max;
        let message = format!("Stopped after {limit} model calls, the limit for one turn");
        return Err(Fault::new(CALLS_CODE, message));
    }
    if let Some(fault) = over_budget(desk) {
        return Err(fault);
    }
    let purpose = match desk.looped.shorten {
        Shorten::Early { .. } | Shorten::Due(_) => Purpose::Summarise,
        Shorten::No | Shorten::Done => match room::before_call(desk) {
            Room::Enough => purpose,
            Room::Trim(event) => return Ok(event),
            Room::Summarise => Purpose::Summarise,
            Room::None(fault) => return Err(fault),
        },
    };
    Ok(call(desk.state, desk.limits, purpose, desk.on))
}

pub(crate) fn over_budget(desk: &Desk<'_>) -> Option<Fault> {
    budget::exceeded(&desk.limits.budget, desk.state.spent())
}

fn noticed(fault: &Fault) -> Event {
    let (level, text) = (Level::Warning, fault.message.clone());
    Event::Noticed { level, text, code: fault.code.clone() }
}

/// What the turn fails with: where no summary made room, with what can be done about that.
fn failed(desk: &Desk<'_>, fault: Option<&Fault>) -> Fault {
    let Desk { turn, looped, .. } = *desk;
    let bare = |text: &str| text.trim_end().trim_end_matches('.').to_owned();
    let first = match (&looped.shorten, fault) {
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
