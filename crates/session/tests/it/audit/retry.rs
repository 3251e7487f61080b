//! Calls that failed: which are made again, how often and when, and what becomes of a conversation
//! that does not fit.

use polyloop_session::budget::BUDGET_CODE;
use polyloop_session::event::{CallOutcome, Event, Level, Outcome, Purpose, Work};
use polyloop_session::item::{End, Fault, Usage};
use polyloop_session::retry::TOO_LONG_CODE;
use polyloop_session::room::FLOOR_CODE;
use polyloop_session::{CallId, ItemId};

use super::{Audit, Checked, Turn};
use crate::it::flaw::Flaw;

/// What two calls cost, added up field by field.
pub fn sum(one: Usage, two: Usage) -> Usage {
    Usage {
        input_tokens: one.input_tokens + two.input_tokens,
        output_tokens: one.output_tokens + two.output_tokens,
        cached_tokens: one.cached_tokens + two.cached_tokens,
        cache_written_tokens: one.cache_written_tokens + two.cache_written_tokens,
        reasoning_tokens: one.reasoning_tokens + two.reasoning_tokens,
        cost_micros: match (one.cost_micros, two.cost_micros) {
            (None, None) => None,
            (one, two) => Some(one.unwrap_or(0) + two.unwrap_or(0)),
        },
    }
}

/// The call of the strategy that is due in a turn, however often it was made.
#[derive(Debug, Default)]
pub struct Due {
    attempts: u32,
    /// The window of the last attempt.
    window: u64,
    /// The last attempt was in vain: this one is next.
    again: Option<Purpose>,
    delay_ms: u64,
    /// The call failed for good.
    failed: Option<Fault>,
    shortened: Shortened,
    /// What people must be told next.
    owed: Option<Owed>,
}

/// What may follow from a failure.
pub struct May {
    pub retries_max: u32,
    /// A summary would take the place of the turn's own work.
    pub takes_turn: bool,
    /// There is more to tell of than what the turn is about.
    pub has_more: bool,
}

/// What became of a conversation that did not fit, once in a turn.
#[derive(Debug, Default, PartialEq)]
enum Shortened {
    #[default]
    No,
    /// The window is filling, and a summary is asked for before it is full.
    Early,
    /// That summary is there.
    EarlyTold,
    Asked,
    /// The summary is there.
    Told,
    Done,
}

#[derive(Debug)]
struct Owed {
    code: &'static str,
    begins: String,
    ends: String,
}

impl Due {
    /// A notice, where one is owed.
    fn noticed(&mut self, event: &Event) -> Checked {
        let Some(owed) = self.owed.take() else { return Ok(()) };
        let Event::Noticed { level, text, code } = event else {
            return Err(format!("[14] people are not told {owed:?}"));
        };
        let fits = *level == Level::Warning && **code == *owed.code;
        let says = text.starts_with(&owed.begins) && text.ends_with(&owed.ends);
        ensure!(fits && says, "[14] people are not told {owed:?}");
        Ok(())
    }

    fn advised(&self, fault: &Fault) -> Checked {
        let told = &*fault.code == TOO_LONG_CODE && fault.message.contains("larger window");
        ensure!(told, "[15] it does not fit, and the turn fails with {fault:?}");
        Ok(())
    }
}

impl Audit {
    /// Called with every entry.
    pub(super) fn notice_owed(&mut self, event: &Event) -> Checked {
        self.turn.as_mut().map_or(Ok(()), |turn| turn.due.noticed(event))
    }

    /// All events of one batch are in.
    pub fn batch_ended(&self) -> Checked {
        let owed = self.turn.as_ref().and_then(|turn| turn.due.owed.as_ref());
        ensure!(owed.is_none(), "[14] a batch ends, and people are not told {owed:?}");
        self.session.batch_ended()
    }

    /// A crash may cut a batch.
    pub fn crashed(&mut self) {
        self.session.crashed();
        if let Some(turn) = &mut self.turn {
            turn.due.owed = None;
        }
    }

    /// How long the strategy's call that has just begun must wait.
    pub fn delay_ms(&self) -> u64 {
        self.turn.as_ref().map_or(0, |turn| turn.due.delay_ms)
    }

    pub(super) fn attempt(
        turn: &mut Turn,
        purpose: Purpose,
        window: u64,
        retries_max: u32,
    ) -> Checked {
        let due = &mut turn.due;
        let before = std::mem::replace(&mut due.window, window);
        match due.again.take() {
            // The attempt is another model's, and what fitted the larger window may not fit this
            // one: room is made first. Else there is as much room as there was.
            Some(Purpose::Think) if purpose == Purpose::Summarise && window < before => {}
            Some(again) => ensure!(again == purpose, "[14] {again:?} is to be made again"),
            None => (due.attempts, due.delay_ms) = (0, 0),
        }
        due.attempts += 1;
        let made = due.attempts;
        ensure!(made <= retries_max + 1, "[14] attempt {made}, with {retries_max} retries");
        let aside = purpose == Purpose::Summarise && !matches!(turn.work, Work::Compact { .. });
        match (aside, &turn.due.shortened) {
            (true, Shortened::Asked | Shortened::Early)
            | (false, Shortened::No | Shortened::Done) => {}
            (true, Shortened::No) => turn.due.shortened = Shortened::Early,
            // It gained nothing, and the work goes on.
            (false, Shortened::EarlyTold) => {
                turn.due.shortened = Shortened::No;
                turn.calls -= 1;
            }
            (_, other) => return Err(format!("[15] {purpose:?}, though shortened: {other:?}")),
        }
        Ok(())
    }

    /// The end of an attempt; what the fault says decides whether there is another. `takes_turn`: a
    /// summary would take the place of the turn's own message.
    pub(super) fn attempted(
        turn: &mut Turn,
        purpose: Purpose,
        outcome: &CallOutcome,
        May { retries_max, takes_turn, has_more }: May,
    ) -> Checked {
        let explains = matches!(purpose, Purpose::Explain { .. });
        let aside = purpose == Purpose::Summarise && !matches!(turn.work, Work::Compact { .. });
        let (fault, retried) = match outcome {
            CallOutcome::Answered if aside => {
                turn.due.shortened = match turn.due.shortened {
                    Shortened::Early => Shortened::EarlyTold,
                    _ => Shortened::Told,
                };
                return Ok(());
            }
            CallOutcome::Answered if purpose == Purpose::Think => {
                // Something was gained, and room may be made once more.
                if turn.due.shortened == Shortened::Done {
                    turn.due.shortened = Shortened::No;
                }
                return Ok(());
            }
            CallOutcome::Answered | CallOutcome::Stopped | CallOutcome::Lost => return Ok(()),
            CallOutcome::Failed { fault } => (fault, false),
            CallOutcome::Retried { fault, .. } => (fault, true),
        };
        let (due, stopping) = (&mut turn.due, turn.stopping);
        let worth_it = !explains && !stopping;
        let (made, fits) = (due.attempts, due.shortened == Shortened::No);
        if let Some(flaw) = Flaw::of(fault) {
            let want = worth_it
                && match flaw {
                    Flaw::Overloaded | Flaw::Limited => made <= retries_max,
                    Flaw::Empty => made == 1 && retries_max > 0,
                    Flaw::TooLong => purpose == Purpose::Think && fits && has_more,
                    Flaw::Refused | Flaw::Exhausted => false,
                };
            ensure!(
                retried == want,
                "[14] attempt {made} of {purpose:?} with {retries_max} retries; stopping: \
                 {stopping}, shortened: {:?}",
                due.shortened
            );
        }
        ensure!(worth_it || !retried, "[14] {purpose:?} is made again; stopping: {stopping}");
        if !explains {
            match outcome {
                CallOutcome::Retried { fault, after_ms } => {
                    turn.calls -= 1;
                    due.retried(purpose, fault, *after_ms, retries_max)?;
                }
                _ => due.gave_up(fault)?,
            }
            if aside && !retried && turn.due.shortened == Shortened::Early {
                turn.calls -= 1;
                turn.due.goes_on(fault, stopping);
            } else if aside && !retried && &*fault.code == TOO_LONG_CODE && !stopping && !takes_turn
            {
                turn.due.goes_without(fault);
            }
        }
        Ok(())
    }

    /// What a failed call had shown is kept as discarded, or was whole before it failed.
    pub(super) fn discarded(&self, call: CallId) -> Checked {
        let of_call = self.items.range(ItemId(call.0)..).filter(|(_, row)| row.call == call);
        for (item, row) in of_call {
            let end = row.end;
            let fits = matches!(end, Some(End::Discarded | End::Whole));
            ensure!(fits, "[14] item {item} of a failed call ended as {end:?}");
            ensure!(row.proposed.is_none(), "[6] a failed call proposed {item}");
        }
        Ok(())
    }

    pub(super) fn shortened(turn: &mut Turn) -> Checked {
        if matches!(turn.work, Work::Compact { .. }) {
            return Ok(());
        }
        let due = &mut turn.due;
        let told = matches!(due.shortened, Shortened::Told | Shortened::EarlyTold);
        ensure!(told, "[15] compacted in a turn, though shortened: {:?}", due.shortened);
        due.shortened = Shortened::Done;
        // The summary is no step of the turn's own work.
        turn.calls -= 1;
        Ok(())
    }

    /// A turn fails with what its last call failed with, or says what to do.
    pub(super) fn ended_rightly(turn: &Turn, outcome: &Outcome) -> Checked {
        let fault = match outcome {
            Outcome::Failed { fault } => fault,
            Outcome::Completed => {
                let again = turn.due.again.filter(|_| !turn.stopping);
                ensure!(again.is_none(), "[14] {again:?} was to be made again");
                return Ok(());
            }
            Outcome::Interrupted { .. } => return Ok(()),
        };
        let (due, compacts) = (&turn.due, matches!(turn.work, Work::Compact { .. }));
        ensure!(!turn.stopping, "[9] a turn that stops fails with {fault:?}");
        if &*fault.code == "max_turns" {
            let (made, most) = (turn.calls, turn.calls_max);
            ensure!(made >= most, "[7] call {made} of {most}, and no more");
            return Ok(());
        }
        if &*fault.code == FLOOR_CODE {
            ensure!(due.failed.is_none(), "[18] the call failed, and {fault:?}");
            let words = if compacts { "filled by: " } else { "cannot be made shorter: " };
            let told = fault.message.contains(words);
            ensure!(told, "[18] what fills the window is not told: {fault:?}");
            return Ok(());
        }
        if &*fault.code == BUDGET_CODE {
            ensure!(due.failed.is_none(), "[18] the call failed, and {fault:?}");
            return Ok(());
        }
        match (&due.failed, &due.shortened) {
            _ if compacts && due.failed.is_none() => {
                ensure!(&*fault.code == "compaction_failed", "[15] nothing failed");
            }
            (Some(own), Shortened::Asked) if &*own.code != TOO_LONG_CODE => {
                let told = fault.message.contains("no summary could be had");
                ensure!(told && own.code == fault.code, "[15] no summary, and {fault:?}");
            }
            (_, Shortened::Early | Shortened::EarlyTold) => {
                return Err(format!("[18] no summary, and the turn fails with {fault:?}"));
            }
            (_, Shortened::Asked | Shortened::Told) => due.advised(fault)?,
            (Some(own), _) if &*own.code == TOO_LONG_CODE && !compacts => due.advised(fault)?,
            (Some(own), _) => {
                let own_words = own.message.trim_end_matches('.');
                let same = own.code == fault.code && fault.message.starts_with(own_words);
                ensure!(same, "[14] its call failed with {own:?}");
            }
            (None, _) => return Err(format!("[14] nothing failed, and {fault:?}")),
        }
        Ok(())
    }
}

impl Due {
    fn retried(
        &mut self,
        purpose: Purpose,
        fault: &Fault,
        after_ms: u64,
        retries_max: u32,
    ) -> Checked {
        let (flaw, made) = (Flaw::of(fault), self.attempts);
        if let Some(flaw) = flaw {
            let range = flaw.wait_ms(made);
            ensure!(range.contains(&after_ms), "[14] waits {after_ms} ms, not {range:?}");
        }
        let begins = fault.message.trim_end_matches('.').to_string();
        if &*fault.code == TOO_LONG_CODE {
            let (code, ends) = ("compacting", "to make room".into());
            self.owed = Some(Owed { code, begins, ends });
            self.shortened = Shortened::Asked;
            (self.again, self.attempts) = (Some(Purpose::Summarise), 0);
        } else {
            let most = if flaw == Some(Flaw::Empty) { 1 } else { retries_max };
            let (code, ends) = ("retry", format!(" ({made}/{most})"));
            self.owed = Some(Owed { code, begins, ends });
            self.again = Some(purpose);
        }
        self.delay_ms = after_ms;
        Ok(())
    }

    /// Not even a summary fits: what came before the turn goes without one.
    fn goes_without(&mut self, fault: &Fault) {
        let begins = fault.message.trim_end_matches('.').to_string();
        let ends = "the earlier conversation is left out".into();
        self.owed = Some(Owed { code: "compacting", begins, ends });
        (self.failed, self.shortened) = (None, Shortened::Told);
    }

    /// No summary could be had while there was still room.
    fn goes_on(&mut self, fault: &Fault, stopping: bool) {
        let begins = fault.message.trim_end_matches('.').to_string();
        let ends = "the work goes on without one".into();
        self.owed = (!stopping).then_some(Owed { code: "compacting", begins, ends });
        (self.failed, self.shortened) = (None, Shortened::No);
    }

    fn gave_up(&mut self, fault: &Fault) -> Checked {
        let ends = match self.attempts.saturating_sub(1) {
            0 => "",
            1 => " (after 1 retry)",
            many => &format!(" (after {many} retries)"),
        };
        let told =
            fault.message.ends_with(ends) && (fault.message.contains("(after") != ends.is_empty());
        ensure!(told, "[14] attempt {} fails with {fault:?}", self.attempts);
        self.failed = Some(fault.clone());
        Ok(())
    }
}
