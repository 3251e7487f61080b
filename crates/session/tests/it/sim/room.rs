//! Room that is made before a window is full: when, how often, and what it costs.

use polyloop_session::State;
use polyloop_session::budget::BUDGET_CODE;
use polyloop_session::context::Strategy;
use polyloop_session::event::{Event, Outcome, Purpose};
use polyloop_session::room::{FLOOR_CODE, GAIN_SHARE};

use super::{Run, Sim};

/// What bounds the attempts: each needs a part of the window that was not there at the last.
#[derive(Default)]
pub struct Made {
    /// All that came on top of what was in use since the last attempt, and its window.
    last: Option<(u64, u64)>,
}

impl Sim {
    /// Called with every entry once it is applied; `before` is the state without it.
    pub(super) fn makes_room(&mut self, event: &Event, before: &State) -> Run {
        let (was, is) = (before.line().used(), self.state.line().used());
        if let Some((grown, _)) = &mut self.room.last {
            *grown += is.saturating_sub(was);
        }
        let tokens_max = self.state.tokens_max(&self.limits);
        match event {
            Event::CallStarted { purpose: Purpose::Summarise, .. } if !self.was_asked(before) => {
                ensure!(self.limits.strategy == Strategy::Threshold, "[18] a dummy makes room");
                let full = was * 1_000 > tokens_max * self.limits.compact_at;
                ensure!(full, "[18] {was} of {tokens_max} are in use, and room is made");
                self.count("made room early");
                // Another window is another measure.
                if let Some((grown, _)) = self.room.last.filter(|(_, max)| *max == tokens_max) {
                    self.count("made room early again");
                    let least = (tokens_max / GAIN_SHARE).max(1);
                    ensure!(grown >= least, "[18] made room again after {grown} of {least}");
                }
                self.room.last = Some((0, tokens_max));
                self.within_budget(before)?;
            }
            // What was interrupted was not tried.
            Event::TurnEnded { outcome: Outcome::Interrupted { .. }, .. } => self.room.last = None,
            Event::TurnEnded { outcome: Outcome::Failed { fault }, .. }
                if &*fault.code == FLOOR_CODE =>
            {
                self.count("a floor that does not fit");
            }
            Event::TurnEnded { outcome: Outcome::Failed { fault }, .. }
                if &*fault.code == BUDGET_CODE =>
            {
                self.count("over its budget");
            }
            Event::CallStarted { .. } => self.within_budget(before)?,
            _ => {}
        }
        Ok(())
    }

    /// No call is made by a session that has used up what it may use, but for an explanation that
    /// was asked for before.
    fn within_budget(&self, before: &State) -> Run {
        let Some(most) = self.limits.budget.tokens_max else { return Ok(()) };
        let used = before.spent().total_tokens();
        let explains = before.turn().is_some_and(|turn| !turn.waits.is_empty());
        ensure!(used < most || explains, "[18] a call after {used} of {most} tokens");
        Ok(())
    }

    /// Somebody wants the summary: a person, a provider, or the attempt before it.
    fn was_asked(&self, before: &State) -> bool {
        let Some(turn) = before.turn() else { return true };
        turn.is_compaction() || turn.main.shorten != polyloop_session::state::Shorten::No
    }
}
