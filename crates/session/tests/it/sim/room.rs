//! Room that is made before a window is full: when, how often, and what it costs.

use polyloop_session::State;
use polyloop_session::budget::BUDGET_CODE;
use polyloop_session::context::Strategy;
use polyloop_session::event::{Event, Outcome, Purpose};
use polyloop_session::room::{FLOOR_CODE, GAIN_SHARE};

use super::{Run, Sim};

/// What bounds the attempts: each needs a part of the window that was not there before.
#[derive(Default)]
pub struct Made {
    attempts: u64,
    /// All that ever came on top of what was in use.
    grown: u64,
    /// The smallest window that there was.
    window_min: Option<u64>,
    /// Another window is another measure.
    windows: u64,
}

impl Sim {
    /// Called with every entry once it is applied; `before` is the state without it.
    pub(super) fn makes_room(&mut self, event: &Event, before: &State) -> Run {
        let (was, is) = (before.line().used(), self.state.line().used());
        self.room.grown += is.saturating_sub(was);
        let tokens_max = self.state.tokens_max(&self.limits);
        self.room.window_min =
            Some(self.room.window_min.map_or(tokens_max, |min| min.min(tokens_max)));
        match event {
            Event::SettingSet { .. } => self.room.windows += 1,
            Event::CallStarted { purpose: Purpose::Summarise, .. } if !self.was_asked(before) => {
                ensure!(self.limits.strategy == Strategy::Threshold, "[18] a dummy makes room");
                let full = was * 1_000 > tokens_max * self.limits.compact_at;
                ensure!(full, "[18] {was} of {tokens_max} are in use, and room is made");
                self.room.attempts += 1;
                self.count("made room early");
                let least = (self.room.window_min.unwrap_or(1) / GAIN_SHARE).max(1);
                let most = 1 + self.room.windows + self.room.grown / least;
                let attempts = self.room.attempts;
                ensure!(attempts <= most, "[18] attempt {attempts} of {most} to make room");
                self.within_budget(before)?;
            }
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
        turn.is_compaction() || turn.shorten != polyloop_session::state::Shorten::No
    }
}
