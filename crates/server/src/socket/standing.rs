//! Where a client stands: its place in each session, its own words, the run it waits for. Kept as
//! frames go out, whoever sends them; sends nothing itself.

use std::collections::{HashMap, VecDeque};

use polyloop_dialects::{Cursor, Frame, Own, RunPart};
use polyloop_session::policy::Mode;
use polyloop_session::{Seq, SessionId, TurnId};

use super::outgoing::{RunId, Written};
use crate::view::Bundle;

/// More runs than can end between a run's acceptance and the news of it.
const ENDED_RUNS_MAX: usize = 64;
/// Room for what a connection puts into a frame.
const OWN_BYTES: usize = 32;

#[derive(Default)]
pub(super) struct Standing {
    /// What is known of each session that frames went out about.
    known: HashMap<SessionId, Known>,
    words: Vec<(Mode, &'static str)>,
    /// The run that this connection asked for.
    run: Option<RunId>,
    /// The last runs that ended, perhaps before one was known to be the client's.
    ended: VecDeque<(RunId, RunPart)>,
    /// Its run has failed: there is no more to say.
    pub(super) run_failed: bool,
}

#[derive(Default)]
struct Known {
    /// The stamp of the last frame that went out; empty when there was none.
    place: Vec<u8>,
    own: Own,
}

impl Known {
    fn stamp(&mut self, stamp: &[u8]) {
        self.place.clear();
        self.place.extend_from_slice(stamp);
    }
}

impl Standing {
    fn known(&mut self, session: &SessionId) -> &mut Known {
        let words = &self.words;
        self.known.entry(session.clone()).or_insert_with(|| {
            let mut known = Known::default();
            words.iter().for_each(|(mode, word)| known.own.call(*mode, word));
            known
        })
    }

    /// The client got everything up to this stamp.
    pub(super) fn stamp(&mut self, session: &SessionId, stamp: &[u8]) {
        match self.known.get_mut(session) {
            Some(known) => known.stamp(stamp),
            None => self.known(session).stamp(stamp),
        }
    }

    pub(super) fn cursor(&self, session: &SessionId) -> Cursor {
        let known = self.known.get(session);
        let cursor = known.and_then(|known| Cursor::of_stamp(&known.place));
        cursor.unwrap_or_else(|| Cursor::at(Seq::NONE))
    }

    /// An answer, at the place of what was sent of its session before it.
    pub(super) fn stamped(&self, session: &SessionId, frame: &Frame) -> Frame {
        let place = self.known.get(session).map(|known| &*known.place);
        match place.filter(|place| !place.is_empty()) {
            Some(place) => frame.stamped(place),
            None => frame.stamped(format!(",\"session_id\":\"{session}\",\"seq\":0}}").as_bytes()),
        }
    }

    pub(super) fn count_from(&mut self, session: &SessionId, turn: Option<TurnId>, events: u64) {
        self.known(session).own.count_from(turn, events);
    }

    pub(super) fn call(&mut self, mode: Mode, word: &'static str) {
        self.words.retain(|(known, _)| *known != mode);
        self.words.push((mode, word));
        self.known.values_mut().for_each(|known| known.own.call(mode, word));
    }

    pub(super) fn forget(&mut self, session: &SessionId) {
        self.known.remove(session);
    }

    /// Puts a frame behind `out` as this client gets it; gives the length of its text.
    pub(super) fn feed(
        &mut self,
        session: &SessionId,
        frame: &Frame,
        written: &Written,
        out: &mut Vec<u8>,
    ) -> usize {
        if let Some(wait) = frame.presents {
            written.show(wait);
        }
        if Bundle::ends_run(frame) {
            self.run_ends(session, frame);
        }
        if frame.inserts.is_empty() {
            if let Some(at) = frame.stamp_at {
                self.stamp(session, &frame.text[at..]);
            }
            Bundle::push(out, &frame.text);
            return frame.text.len();
        }
        let known = self.known(session);
        let mut text = Vec::with_capacity(frame.text.len() + OWN_BYTES);
        if let Some(at) = known.own.finish_into(frame, &mut text) {
            known.stamp(&text[at..]);
        }
        Bundle::push(out, &text);
        text.len()
    }

    fn run_ends(&mut self, session: &SessionId, frame: &Frame) {
        let Some(run) = frame.run else { return };
        let Some(message) = run.message else { return };
        if self.ended.len() >= ENDED_RUNS_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back((RunId { session: session.clone(), message }, run.part));
    }

    /// The run was accepted; it may even have ended.
    pub(super) fn own_run(&mut self, run: RunId, written: &Written) {
        self.run = Some(run);
        self.see_run_end(written);
    }

    /// Whether the client waits for a run of the session.
    pub(super) fn runs_in(&self, session: &SessionId) -> bool {
        self.run.as_ref().is_some_and(|run| run.session == *session)
    }

    /// Looks whether the run that the client waits for is over.
    pub(super) fn see_run_end(&mut self, written: &Written) {
        let own = self.ended.iter().position(|(run, _)| self.run.as_ref() == Some(run));
        let Some((run, part)) = own.and_then(|at| self.ended.remove(at)) else { return };
        self.run = None;
        written.end_run(run);
        self.run_failed |= part == RunPart::Failed;
    }
}
