//! Why model calls fail in simulated sessions. The fault's code says what could heal it, so that
//! whoever reads the log alone knows what must follow.

use std::ops::RangeInclusive;

use polyloop_session::Heal;
use polyloop_session::item::Fault;
use polyloop_session::retry::TOO_LONG_CODE;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It would fail again.
    Refused,
    Overloaded,
    /// The provider says when to come back: soon.
    Limited,
    /// The same, but nobody waits so long.
    Exhausted,
    /// Worth a second attempt.
    Empty,
    TooLong,
}

pub const FLAWS: [Flaw; 6] =
    [Flaw::Refused, Flaw::Overloaded, Flaw::Limited, Flaw::Exhausted, Flaw::Empty, Flaw::TooLong];

const ASKED_MS: u64 = 3_000;

impl Flaw {
    pub fn of(fault: &Fault) -> Option<Flaw> {
        FLAWS.into_iter().find(|flaw| *flaw.code() == *fault.code)
    }

    fn code(self) -> &'static str {
        match self {
            Flaw::Refused => "refused",
            Flaw::Overloaded => "overloaded",
            Flaw::Limited => "limited",
            Flaw::Exhausted => "exhausted",
            Flaw::Empty => "empty",
            Flaw::TooLong => TOO_LONG_CODE,
        }
    }

    pub fn fault(self) -> Fault {
        let code = self.code();
        Fault::new(code, format!("The call failed: {code}."))
    }

    pub fn heal(self) -> Heal {
        match self {
            Flaw::Refused => Heal::Never,
            Flaw::Overloaded => Heal::Later { after_ms: None },
            Flaw::Limited => Heal::Later { after_ms: Some(ASKED_MS) },
            Flaw::Exhausted => Heal::Later { after_ms: Some(3_600_000) },
            Flaw::Empty => Heal::Once,
            Flaw::TooLong => Heal::Shorter,
        }
    }

    /// How long the next attempt may be made to wait after this many.
    pub fn wait_ms(self, attempts: u32) -> RangeInclusive<u64> {
        match self {
            Flaw::Limited => ASKED_MS..=ASKED_MS + 400,
            Flaw::TooLong => 0..=0,
            Flaw::Refused | Flaw::Overloaded | Flaw::Exhausted | Flaw::Empty => {
                // A second, doubled with each attempt, and spread by half of it.
                let second = 500_u64 << attempts.saturating_sub(1).min(5);
                second.min(15_000)..=(3 * second).min(45_000)
            }
        }
    }
}
