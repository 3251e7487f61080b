//! Whether a failed model call is made again, and when.
//!
//! One loop for all faults, and it stands in the log: each attempt is a call of its own, what a
//! failed one had shown is closed and never shown twice, and people are told. Knows no clock and
//! no dice: chance comes in as an argument.

use crate::context;
use crate::event::{CallOutcome, Event, Level, Purpose};
use crate::id::{CallId, Text};
use crate::item::Fault;
use crate::state::{Call, Loop, Phase, Shorten, State, Turn};

/// The fault of a conversation that does not fit the model's window.
pub const TOO_LONG_CODE: &str = "context_length_exceeded";

/// Doubled with each further attempt.
pub const RETRY_FIRST_WAIT_MS: u64 = 1_000;
pub const RETRY_WAIT_MS_MAX: u64 = 30_000;
/// A provider that wants a longer wait than this is told to people, not waited for.
pub const RETRY_ASKED_WAIT_MS_MAX: u64 = 60_000;
/// What is added to a wait that the provider asked for, so that not all come back at once.
pub const RETRY_ASKED_SPREAD_MS: u64 = 400;

/// What could make a failed call succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heal {
    /// Nothing: it would fail again.
    Never,
    /// Time; as much as the provider asked for, if it did.
    Later { after_ms: Option<u64> },
    /// A second attempt, but not a third.
    Once,
    /// A shorter conversation.
    Shorter,
}

/// A number from 0 to 999, which spreads attempts of many sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance(pub u16);

/// How the call ends, and what people are told of it.
pub(crate) fn outcome(
    state: &State,
    turn: &Turn,
    open: &Call,
    failed: Failed,
) -> (CallOutcome, Option<Event>) {
    let Failed { call, fault, heal, chance, retries_max } = failed;
    let (purpose, looped) = (open.purpose, turn.looped(open.line));
    let errand = turn.errands.get(&purpose);
    let retries = match errand {
        Some(errand) => errand.retries,
        None => looped.map_or(0, |looped| looped.retries),
    };
    let (fault, heal) = told_apart(fault, heal);
    // Whoever wants an explanation can ask again; what is being stopped is not begun anew.
    let worth_it = !matches!(purpose, Purpose::Explain { .. }) && turn.stopping.is_none();
    let wait = match heal {
        Heal::Shorter if worth_it && may_shorten(state, turn, open, call) => {
            let text = format!("{}; summarising it to make room", bare(&fault.message));
            let told = noticed("compacting", text);
            return (CallOutcome::Retried { fault, after_ms: 0 }, Some(told));
        }
        Heal::Later { after_ms } if retries < retries_max => wait_ms(retries, after_ms, chance),
        Heal::Once if retries == 0 && retries_max > 0 => wait_ms(0, None, chance),
        Heal::Never | Heal::Shorter | Heal::Later { .. } | Heal::Once => None,
    };
    match wait {
        Some(after_ms) if worth_it => {
            let (attempt, most) = match heal {
                Heal::Once => (1, 1),
                _ => (retries + 1, retries_max),
            };
            let text = format!(
                "{}; retrying in {} ({attempt}/{most})",
                bare(&fault.message),
                seconds(after_ms)
            );
            (CallOutcome::Retried { fault, after_ms }, Some(noticed("retry", text)))
        }
        _ => {
            let aside = is_aside(turn, purpose);
            let early = aside && looped.is_some_and(Loop::is_early);
            let line = state.line_of(open.line);
            let cuts_before = || line.is_some_and(|line| context::cuts_before(line, turn.id));
            let fault = after_retries(too_late(fault, heal), retries);
            let what = match () {
                () if !worth_it => None,
                () if early => Some("no summary could be had, so the work goes on without one"),
                () if aside && heal == Heal::Shorter && cuts_before() => {
                    Some("the earlier conversation is left out")
                }
                () => None,
            };
            let told =
                what.map(|what| noticed("compacting", format!("{}; {what}", bare(&fault.message))));
            (CallOutcome::Failed { fault }, told)
        }
    }
}

/// Of what could help only the fault's code stands in the log, so the two must say the same.
fn told_apart(fault: Fault, heal: Heal) -> (Fault, Heal) {
    match heal {
        Heal::Shorter => (Fault { code: TOO_LONG_CODE.into(), ..fault }, heal),
        Heal::Later { .. } | Heal::Once if &*fault.code == TOO_LONG_CODE => (fault, Heal::Shorter),
        Heal::Never | Heal::Later { .. } | Heal::Once => (fault, heal),
    }
}

pub(crate) struct Failed {
    pub call: CallId,
    pub fault: Fault,
    pub heal: Heal,
    pub chance: Chance,
    pub retries_max: u32,
}

/// A summary that a turn with other work asks for, to make room.
fn is_aside(turn: &Turn, purpose: Purpose) -> bool {
    purpose == Purpose::Summarise && !turn.is_compaction()
}

/// A conversation is made shorter once a loop, by a summary of what came before.
fn may_shorten(state: &State, turn: &Turn, open: &Call, call: CallId) -> bool {
    let Some(looped) = turn.looped(open.line) else { return false };
    let may = match (&looped.shorten, &looped.phase) {
        (Shorten::No, _) => open.purpose.is_step() || open.purpose.is_errand(),
        // Of several questions one was the first; all are asked again behind the same summary.
        (Shorten::Due(_), Phase::Asking) => open.purpose.is_errand(),
        (Shorten::Due(_) | Shorten::Early { .. } | Shorten::Done, _) => false,
    };
    if !may {
        return false;
    }
    // What the failed call said is not there to be told of.
    let Some(mut line) = state.line_of(open.line).cloned() else { return false };
    line.forget(call);
    context::has_folds(&line, turn.id)
}

/// `None` when the provider asks for more time than anybody waits.
pub fn wait_ms(attempts: u32, asked_ms: Option<u64>, chance: Chance) -> Option<u64> {
    let chance = u64::from(chance.0.min(999));
    match asked_ms {
        Some(asked) if asked > RETRY_ASKED_WAIT_MS_MAX => None,
        Some(asked) => Some(asked + RETRY_ASKED_SPREAD_MS * chance / 1_000),
        None => {
            let wait = RETRY_FIRST_WAIT_MS.saturating_mul(1 << attempts.min(16));
            // From half of it to one and a half.
            let wait = wait.min(RETRY_WAIT_MS_MAX);
            Some(wait / 2 + wait * chance / 1_000)
        }
    }
}

fn noticed(code: &str, text: String) -> Event {
    Event::Noticed { level: Level::Warning, text: text.into(), code: code.into() }
}

/// A provider that wants a longer wait than anybody keeps: people should know how long.
fn too_late(fault: Fault, heal: Heal) -> Fault {
    match heal {
        Heal::Later { after_ms: Some(asked) } if asked > RETRY_ASKED_WAIT_MS_MAX => {
            let (what, wait) = (bare(&fault.message), seconds(asked));
            Fault { message: format!("{what}; it asks to wait {wait}").into(), ..fault }
        }
        Heal::Later { .. } | Heal::Never | Heal::Once | Heal::Shorter => fault,
    }
}

fn after_retries(fault: Fault, retries: u32) -> Fault {
    let message: Text = match retries {
        0 => return fault,
        1 => format!("{} (after 1 retry)", bare(&fault.message)).into(),
        many => format!("{} (after {many} retries)", bare(&fault.message)).into(),
    };
    Fault { message, ..fault }
}

/// A sentence without its end, so that it can go on.
fn bare(message: &str) -> &str {
    message.trim_end().trim_end_matches('.')
}

fn seconds(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} s", ms.div_ceil(1_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_are_spread() {
        let waits = |attempt| {
            let all: Vec<u64> =
                (0..1_000).filter_map(|n| wait_ms(attempt, None, Chance(n))).collect();
            (all[0], all[999])
        };
        assert_eq!(waits(0), (500, 1_499));
        assert_eq!(waits(1), (1_000, 2_998));
        assert_eq!(waits(3), (4_000, 11_992));
        assert_eq!(waits(40), (15_000, 44_970));
    }

    #[test]
    fn a_wait_the_provider_asked_for_is_kept_but_not_for_ever() {
        assert_eq!(wait_ms(2, Some(3_000), Chance(0)), Some(3_000));
        assert_eq!(wait_ms(2, Some(3_000), Chance(999)), Some(3_399));
        assert_eq!(wait_ms(0, Some(60_000), Chance(0)), Some(60_000));
        assert_eq!(wait_ms(0, Some(60_001), Chance(0)), None);
        assert_eq!(wait_ms(0, Some(u64::MAX), Chance(999)), None);
    }

    #[test]
    fn times_read_well() {
        let told = [0, 999, 3_000, 3_399, 9_999, 10_000, 10_001, 60_000].map(seconds);
        assert_eq!(told, ["0.0 s", "0.9 s", "3.0 s", "3.3 s", "9.9 s", "10 s", "11 s", "60 s"]);
    }
}
