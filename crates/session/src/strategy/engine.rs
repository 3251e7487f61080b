//! What strategies have in common: loops and errands are begun while there are calls to spare, and
//! what they gave is handed to whoever wanted it.

use crate::budget;
use crate::decide::Limits;
use crate::event::{Event, Level, LineId, Outcome, Purpose};
use crate::id::{CallId, Text};
use crate::item::Fault;
use crate::room::{self, Room};
use crate::state::{Misread, Phase, Shorten, Turn};
use crate::strategy::bounds::Bounds;
use crate::strategy::react::{self, Step};
use crate::strategy::{Desk, call, compact};

/// Of a turn's calls, one part in so many is kept for the answer.
const ANSWER_SHARE: u32 = 4;

pub(super) struct Engine<'a> {
    pub desk: Desk<'a>,
    pub bounds: Bounds,
    /// What is to be recorded.
    pub events: Vec<Event>,
    /// Calls that may begin now.
    free: u32,
    /// Calls that the search may still make.
    left: u32,
    /// Something that was wanted did not begin for lack of calls.
    pub exhausted: bool,
    /// Why no call may be made any more.
    pub fault: Option<Fault>,
}

/// How far the searches of a turn may go.
pub(super) fn bounds_of(turn: &Turn, limits: &Limits) -> Bounds {
    let run = turn.run.as_deref();
    let adaptive = run.is_some_and(|run| run.adaptive);
    limits.bounds.with(run.and_then(|run| run.bounds.as_deref()), adaptive)
}

/// What nothing else of a search would escape either.
pub(super) fn ends_all(fault: &Fault) -> bool {
    [budget::BUDGET_CODE, react::CALLS_CODE].contains(&&*fault.code)
}

/// What came of something that was wanted.
pub(super) enum Came<'a> {
    /// It is under way, or waits for its turn.
    Nothing,
    Answer {
        call: CallId,
        text: Text,
        /// It was asked again already, because of this.
        misread: Option<&'a Misread>,
    },
    Failed {
        call: Option<CallId>,
        fault: Fault,
    },
}

impl<'a> Engine<'a> {
    pub fn new(desk: &Desk<'a>) -> Engine<'a> {
        let (turn, bounds) = (desk.turn, bounds_of(desk.turn, desk.limits));
        let open = turn.calls.values();
        let open = open.filter(|call| !matches!(call.purpose, Purpose::Explain { .. })).count();
        let open = u32::try_from(open).unwrap_or(u32::MAX);
        let kept = (turn.calls_max / ANSWER_SHARE).max(1);
        let left = turn.calls_max.saturating_sub(kept).saturating_sub(turn.calls_made);
        Engine {
            desk: *desk,
            bounds,
            events: Vec::new(),
            free: bounds.calls_at_once.saturating_sub(open),
            left,
            exhausted: false,
            fault: react::over_budget(desk),
        }
    }

    /// Nothing is under way.
    pub fn is_idle(&self) -> bool {
        let turn = self.desk.turn;
        turn.calls.is_empty() && turn.waits.is_empty() && turn.items.is_empty()
    }

    /// Room on the session's own line, which all others begin with. `Some` where something comes
    /// before the search goes on.
    pub fn room(&mut self) -> Option<Vec<Event>> {
        let desk = &self.desk;
        let summary = || Some(vec![call(desk.state, desk.limits, Purpose::Summarise, None)]);
        match (&desk.looped.phase, &desk.looped.shorten) {
            (Phase::Asking, _) if self.fault.is_some() => None,
            // A question did not fit, and no other would.
            (Phase::Asking, Shorten::Due(_) | Shorten::Early { .. }) if self.is_idle() => summary(),
            (Phase::Asking, Shorten::Due(_)) => Some(Vec::new()),
            (Phase::Asking, _) if self.is_idle() => match room::before_call(desk) {
                Room::Enough => None,
                Room::Trim(event) => Some(vec![event]),
                Room::Summarise => summary(),
                Room::None(fault) => {
                    self.fault = Some(fault);
                    None
                }
            },
            (Phase::Calling, _) => Some(Vec::new()),
            // Where nothing is gained the work goes on without.
            (Phase::Summarised, _) => compact::compacted(desk).ok().map(|event| vec![event]),
            (Phase::Failed(fault), _) => {
                self.fault = Some(fault.clone());
                None
            }
            (Phase::Asking | Phase::Acting | Phase::Answered | Phase::Finished, _) => None,
        }
    }

    /// What is recorded where a search waits; its end where it can make no more calls, with what
    /// ends it then.
    pub fn settled(mut self, told: &str, end: impl FnOnce() -> Vec<Event>) -> Vec<Event> {
        if !self.events.is_empty() || !self.is_idle() {
            return self.events;
        }
        if let Some(fault) = self.fault.take() {
            let (outcome, usage) = (Outcome::Failed { fault }, self.desk.turn.usage);
            return vec![Event::TurnEnded { outcome, usage }];
        }
        if self.exhausted {
            self.notice("search_ended", told.to_owned());
            self.events.extend(end());
        }
        self.events
    }

    /// No call may begin now, whoever wants one.
    pub fn is_full(&self) -> bool {
        self.fault.is_some() || self.free == 0 || self.left == 0
    }

    /// Whether a call may begin now.
    fn is_free(&mut self) -> bool {
        if self.fault.is_some() || self.free == 0 {
            return false;
        }
        self.exhausted |= self.left == 0;
        self.left > 0
    }

    fn may_begin(&mut self) -> bool {
        let may = self.is_free();
        if may {
            self.free -= 1;
            self.left -= 1;
        }
        may
    }

    /// One question.
    pub fn errand(&mut self, purpose: Purpose) -> Came<'a> {
        if let Some(errand) = self.desk.turn.errands.get(&purpose) {
            match (&errand.given, errand.call) {
                (Some(Ok(text)), Some(call)) => {
                    let (text, misread) = (text.clone(), errand.misread.as_ref());
                    return Came::Answer { call, text, misread };
                }
                (Some(Err(fault)), call) => return Came::Failed { call, fault: fault.clone() },
                (None, Some(_)) => return Came::Nothing,
                (_, None) => {}
            }
        }
        if self.may_begin() {
            self.events.push(call(self.desk.state, self.desk.limits, purpose, None));
        }
        Came::Nothing
    }

    /// One loop on a line of its own.
    pub fn aside(&mut self, on: LineId, purpose: Purpose) -> Came<'a> {
        let Some(desk) = self.desk.aside(on) else {
            if self.may_begin() {
                self.events.push(call(self.desk.state, self.desk.limits, purpose, Some(on)));
            }
            return Came::Nothing;
        };
        let looped = desk.looped;
        let asks = matches!(looped.phase, Phase::Asking | Phase::Summarised);
        // An explanation of one of its calls may outlive that call.
        let explains = |call: &crate::state::Call| matches!(call.purpose, Purpose::Explain { .. });
        if asks && desk.turn.calls.values().any(explains) {
            return Came::Nothing;
        }
        if looped.phase == Phase::Asking && !self.is_free() {
            return Came::Nothing;
        }
        let begins = |event: &Event| matches!(event, Event::CallStarted { .. });
        match react::step(&desk, purpose) {
            // What fails instead takes no other's place.
            Step::Record(events) => {
                if !events.iter().any(begins) || self.may_begin() {
                    self.events.extend(events);
                }
                Came::Nothing
            }
            Step::Open => Came::Nothing,
            Step::Answered => match looped.last {
                Some(call) => {
                    let (text, misread) = (looped.answer(), looped.misread.as_ref());
                    Came::Answer { call, text, misread }
                }
                None => Came::Nothing,
            },
            Step::Failed(fault) => Came::Failed { call: looped.last, fault },
        }
    }

    /// Takes what was read; or what was wrong with it, once; or something in its place, of which
    /// people are told.
    pub fn read<T>(
        &mut self,
        came: (CallId, Option<&Misread>),
        read: Result<T, Text>,
        else_told: &str,
        instead: impl FnOnce() -> T,
    ) -> Option<T> {
        let (call, misread) = came;
        match (read, misread) {
            (Ok(value), _) => Some(value),
            (Err(why), None) => {
                self.events.push(Event::Misread { call, why });
                None
            }
            (Err(why), Some(_)) => {
                self.notice("misread", format!("{why}; {else_told}"));
                Some(instead())
            }
        }
    }

    pub fn notice(&mut self, code: &str, text: String) {
        let (level, text, code) = (Level::Warning, text.into(), code.into());
        self.events.push(Event::Noticed { level, text, code });
    }
}
