//! A session as its clients meet it: what was sent, and what attaching at any moment gives.
//!
//! `Moment::attach` does what the server's socket does when a client attaches, with the places in
//! the log that the session's actor gives it.

use std::ops::Deref;
use std::sync::Arc;

use polyloop_dialects::{Cursor, Dialect, Frame, Own, View};
use polyloop_session::event::{Agent, Work};
use polyloop_session::state::Queued;
use polyloop_session::{Event, ItemId, Live, LogEntry, Seq, SessionId, State, Update, WaitId};
use serde_json::Value;

use super::strict::Strict;

pub fn session() -> SessionId {
    SessionId::parse("golden").unwrap()
}

/// What a frame holds; each of its objects must have every field once.
pub fn json(frame: &Frame) -> Value {
    let Strict(value) = serde_json::from_slice(&frame.text)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&frame.text)));
    value
}

/// A frame as a client gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub json: Value,
    pub presents: Option<WaitId>,
    /// The item that it is about: clients of some dialects learn that from the order alone.
    pub item: Option<ItemId>,
    pub text: String,
}

impl Deref for Sent {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.json
    }
}

pub fn values(frames: &[Sent]) -> Vec<Value> {
    frames.iter().map(|frame| frame.json.clone()).collect()
}

/// What a connection makes of the frames that all clients of its dialect share.
fn finished(own: &mut Own, frames: Vec<Frame>, item: Option<ItemId>) -> Vec<Sent> {
    let finish = |frame: Frame| {
        let frame = own.finish(frame);
        let text = String::from_utf8(frame.text.to_vec()).unwrap();
        Sent { json: json(&frame), presents: frame.presents, item, text }
    };
    frames.into_iter().map(finish).collect()
}

/// The frames that a client which never leaves is sent, by update.
pub fn sent(dialect: &dyn Dialect, updates: &[Update]) -> Vec<Vec<Sent>> {
    let mut view = View::new(dialect, &session(), Seq::NONE);
    let mut own = Own::default();
    updates.iter().map(|update| finished(&mut own, view.see(update), item_of(update))).collect()
}

fn item_of(update: &Update) -> Option<ItemId> {
    match update {
        Update::Grew(growth) => Some(growth.item),
        Update::Logged(entry) => item_of_entry(entry),
        Update::Raw(_) => None,
    }
}

fn item_of_entry(entry: &LogEntry) -> Option<ItemId> {
    match &entry.event {
        Event::ItemCompleted { item, .. }
        | Event::ToolProposed { item, .. }
        | Event::SandboxRefused { item, .. } => Some(*item),
        _ => None,
    }
}

/// A session between two updates.
#[derive(Clone, Default)]
pub struct Moment {
    pub state: State,
    pub log: Vec<Arc<LogEntry>>,
    pub live: Live,
    pub turns: Vec<Seq>,
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
            Update::Raw(_) => {}
            Update::Grew(growth) => self.live.grow(growth),
            Update::Logged(entry) => {
                self.state.apply(entry);
                if entry.event.is_beginning() {
                    self.turns.push(entry.seq);
                }
                if let Event::ItemCompleted { item, .. } = &entry.event {
                    self.live.close(*item);
                }
                self.log.push(entry.clone());
            }
        }
    }

    /// The entry after which a client's view must be fed.
    fn from(&self, since: Option<Seq>) -> Seq {
        let head = self.state.last_seq();
        let left = self.state.interrupted().is_some_and(|left| left.agent != Agent::React);
        let since = match since {
            None if self.state.turn().is_none() && !left => return head,
            None => head,
            Some(since) => since.min(head),
        };
        let before = self.turns.partition_point(|turn| *turn <= since);
        let turn = before.checked_sub(1).and_then(|at| self.turns.get(at));
        turn.map_or(Seq::NONE, |turn| turn.before())
    }

    /// What a client that attaches now is sent before it goes on with what comes.
    pub fn attach(&self, dialect: &dyn Dialect, since: Option<&Cursor>) -> Vec<Sent> {
        let head = self.state.last_seq();
        let from = self.from(since.map(|cursor| cursor.seq));
        let mut view = View::new(dialect, &session(), from);
        let cursor = since.cloned().unwrap_or_else(|| Cursor::at(head));
        let cursor = Cursor { seq: cursor.seq.min(head), ..cursor };
        let (mut own, mut sent) = (Own::default(), Vec::new());
        let mut resumed = false;
        for entry in self.log.iter().filter(|entry| entry.seq > from) {
            recall(&mut view, &self.log, from, entry);
            if entry.seq <= cursor.seq {
                view.skip(entry);
                continue;
            }
            if !std::mem::replace(&mut resumed, true) {
                resume(&mut view, &mut own, &cursor);
            }
            let parts = if entry.seq == cursor.seq.next() { cursor.parts } else { 0 };
            let frames = view.see_entry(entry, parts);
            sent.extend(finished(&mut own, frames, item_of_entry(entry)));
        }
        if !resumed {
            resume(&mut view, &mut own, &cursor);
        }
        if since.is_none() {
            sent.extend(finished(&mut own, view.opening(), None));
        }
        for growth in self.live.growths() {
            let item = Some(growth.item);
            sent.extend(finished(&mut own, view.see(&Update::Grew(growth)), item));
        }
        let waiting = |entry: &&Arc<LogEntry>| {
            let queued = |queued: &Queued| queued.id.0 == entry.seq;
            entry.seq <= from && self.state.queue().iter().any(queued)
        };
        self.log.iter().filter(waiting).for_each(|entry| view.recall(entry));
        sent.extend(finished(&mut own, view.pending(), None));
        sent
    }

    /// A view for all who watch from now on, as the session's actor opens one.
    pub fn open_view(&self, dialect: &dyn Dialect) -> Opened {
        let from = self.from(None);
        let mut view = View::new(dialect, &session(), from);
        for entry in self.log.iter().filter(|entry| entry.seq > from) {
            recall(&mut view, &self.log, from, entry);
            view.skip(entry);
        }
        for growth in self.live.growths() {
            view.see(&Update::Grew(growth));
        }
        Opened { view, from, log: self.log.clone() }
    }
}

/// The message that an entry names may stand before what a view is fed.
fn recall(view: &mut View, log: &[Arc<LogEntry>], from: Seq, entry: &LogEntry) {
    let (Event::TurnStarted { work: Work::Message { message }, .. }
    | Event::MessageDropped { message, .. }) = &entry.event
    else {
        return;
    };
    if message.0 <= from
        && let Some(queued) = log.iter().find(|entry| entry.seq == message.0)
    {
        view.recall(queued);
    }
}

/// Goes on where the client is, in its texts and in its count of a run's events.
fn resume(view: &mut View, own: &mut Own, cursor: &Cursor) {
    view.resume(cursor);
    let (turn, events) = view.run();
    own.count_from(turn, cursor.events.unwrap_or(events));
}

/// A view that was opened late.
pub struct Opened {
    pub view: View,
    from: Seq,
    log: Vec<Arc<LogEntry>>,
}

impl Opened {
    pub fn see(&mut self, update: &Update) -> Vec<Frame> {
        if let Update::Logged(entry) = update {
            recall(&mut self.view, &self.log, self.from, entry);
        }
        self.view.see(update)
    }
}
