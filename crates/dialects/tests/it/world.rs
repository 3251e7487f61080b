//! A session as its clients meet it: what was sent, and what attaching at any moment gives.
//!
//! `Moment::attach` does what the server's socket does when a client attaches, with the places in
//! the log that the session's actor gives it.

use std::sync::Arc;

use polyloop_dialects::agentloop::Agentloop;
use polyloop_dialects::{Cursor, Frame, View};
use polyloop_session::{Event, Live, LogEntry, Seq, SessionId, State, Update};
use serde_json::Value;

pub fn session() -> SessionId {
    SessionId::parse("golden").unwrap()
}

pub fn json(frame: &Frame) -> Value {
    serde_json::from_slice(&frame.text).expect("a frame is JSON")
}

fn all_json(frames: Vec<Frame>) -> Vec<Value> {
    frames.iter().map(json).collect()
}

/// The frames that a client which never leaves is sent, by update.
pub fn sent(updates: &[Update]) -> Vec<Vec<Value>> {
    let mut view = View::new(&Agentloop, &session(), Seq::NONE);
    updates.iter().map(|update| all_json(view.see(update))).collect()
}

/// A session between two updates.
#[derive(Clone, Default)]
pub struct Moment {
    pub state: State,
    pub log: Vec<Arc<LogEntry>>,
    pub live: Live,
    turns: Vec<Seq>,
}

impl Moment {
    /// The moments before the first update, between any two, and after the last.
    pub fn all(updates: &[Update]) -> Vec<Moment> {
        let mut moments = vec![Moment::default()];
        for update in updates {
            let mut next = moments.last().unwrap().clone();
            next.take(update);
            moments.push(next);
        }
        moments
    }

    pub fn after(updates: &[Update]) -> Moment {
        let mut moment = Moment::default();
        updates.iter().for_each(|update| moment.take(update));
        moment
    }

    pub fn take(&mut self, update: &Update) {
        match update {
            Update::Grew(growth) => self.live.grow(growth),
            Update::Logged(entry) => {
                self.state.apply(entry);
                match &entry.event {
                    Event::TurnStarted { .. } => self.turns.push(entry.seq),
                    Event::ItemCompleted { item, .. } => self.live.close(*item),
                    _ => {}
                }
                self.log.push(entry.clone());
            }
        }
    }

    pub fn is_waiting(&self) -> bool {
        self.state.turn().is_some_and(|turn| !turn.waits.is_empty())
    }

    /// The entry after which a client's view must be fed.
    fn from(&self, since: Option<Seq>) -> Seq {
        let head = self.state.last_seq();
        match since {
            None => self.state.turn().map_or(head, |turn| turn.id.0.before()),
            Some(since) => {
                let before = self.turns.partition_point(|turn| *turn <= since.min(head));
                let turn = before.checked_sub(1).and_then(|at| self.turns.get(at));
                turn.map_or(Seq::NONE, |turn| turn.before())
            }
        }
    }

    /// What a client that attaches now is sent before it goes on with what comes.
    pub fn attach(&self, since: Option<&Cursor>) -> Vec<Value> {
        all_json(self.frames(since))
    }

    pub fn frames(&self, since: Option<&Cursor>) -> Vec<Frame> {
        let head = self.state.last_seq();
        let from = self.from(since.map(|cursor| cursor.seq));
        let mut view = View::new(&Agentloop, &session(), from);
        let cursor = since.cloned().unwrap_or_else(|| Cursor::at(head));
        let cursor = Cursor { seq: cursor.seq.min(head), ..cursor };
        let (mut frames, mut resumed) = (Vec::new(), false);
        for entry in self.log.iter().filter(|entry| entry.seq > from) {
            if entry.seq <= cursor.seq {
                view.skip(entry);
                continue;
            }
            if !std::mem::replace(&mut resumed, true) {
                view.resume(&cursor);
            }
            let parts = if entry.seq == cursor.seq.next() { cursor.parts } else { 0 };
            frames.extend(view.see_entry(entry, parts));
        }
        if !resumed {
            view.resume(&cursor);
        }
        if since.is_none() {
            frames.extend(view.opening());
        }
        for growth in self.live.growths() {
            frames.extend(view.see(&Update::Grew(growth)));
        }
        frames.extend(view.pending());
        frames
    }

    /// A view for all who watch from now on, as the session's actor opens one.
    pub fn open_view(&self) -> View {
        let from = self.from(None);
        let mut view = View::new(&Agentloop, &session(), from);
        self.log.iter().filter(|entry| entry.seq > from).for_each(|entry| view.skip(entry));
        for growth in self.live.growths() {
            view.see(&Update::Grew(growth));
        }
        view
    }
}
