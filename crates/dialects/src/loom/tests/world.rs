//! A session as its clients meet it: what was sent, and what attaching at any moment gives.

use std::sync::Arc;

use polyloop_session::event::Work;
use polyloop_session::{Event, Live, LogEntry, Seq, State, Update};
use serde_json::Value;

use super::make::session;
use crate::loom::Loom;
use crate::{Cursor, Frame, Own, View};

pub fn json(frame: &Frame) -> Value {
    serde_json::from_slice(&frame.text)
        .unwrap_or_else(|error| panic!("{error} in {:?}", frame.text))
}

/// The frames of each update, before a connection has put in its own.
pub fn sent(updates: &[Update]) -> Vec<Vec<Frame>> {
    let mut view = View::new(&Loom, &session(), Seq::NONE);
    updates.iter().map(|update| view.see(update)).collect()
}

/// All that a client which was there from the start is sent.
pub fn frames(updates: &[Update]) -> Vec<Value> {
    let mut own = Own::default();
    sent(updates).into_iter().flatten().map(|frame| json(&own.finish(frame))).collect()
}

/// An event in one line: number, type, node and the rest of its payload but the state.
pub fn line(frame: &Value) -> String {
    if frame["type"] != "run_stream_event" {
        let mut rest = frame.clone();
        let fields = rest.as_object_mut().unwrap();
        ["id", "seq", "cursor", "session_id", "type"].iter().for_each(|name| {
            fields.remove(*name);
        });
        return format!("{} {rest}", frame["type"].as_str().unwrap());
    }
    let mut rest = frame["event"].clone();
    let fields = rest.as_object_mut().unwrap();
    let number = fields.remove("event_id").unwrap();
    let kind = fields.remove("type").unwrap();
    let node = fields.remove("node_id").unwrap();
    fields.remove("session_id");
    fields.remove("state");
    let rest = if fields.is_empty() { String::new() } else { format!(" {rest}") };
    format!("{number} {} {}{rest}", kind.as_str().unwrap(), node.as_str().unwrap())
}

pub fn lines(updates: &[Update]) -> Vec<String> {
    frames(updates).iter().map(line).collect()
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
            Update::Raw(_) => {}
        }
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

    /// The message that a turn names, where the view was not fed it.
    fn recall(&self, view: &mut View, entry: &LogEntry, from: Seq) {
        if let Event::TurnStarted { work: Work::Message { message }, .. } = &entry.event
            && message.0 <= from
        {
            view.recall(&self.log[message.0.0 as usize - 1]);
        }
    }

    /// What a client that attaches now is sent, and the numbers it goes on with.
    pub fn attach(&self, since: Option<&Cursor>) -> (Vec<Value>, Own) {
        let head = self.state.last_seq();
        let from = self.from(since.map(|cursor| cursor.seq));
        let mut view = View::new(&Loom, &session(), from);
        let cursor = since.cloned().unwrap_or_else(|| Cursor::at(head));
        let cursor = Cursor { seq: cursor.seq.min(head), ..cursor };
        let (mut own, mut frames) = (Own::default(), Vec::new());
        let mut resumed = false;
        let mut resume = |view: &mut View| {
            if !std::mem::replace(&mut resumed, true) {
                view.resume(&cursor);
                let (turn, count) = view.run();
                own.count_from(turn, cursor.events.unwrap_or(count));
            }
        };
        for entry in self.log.iter().filter(|entry| entry.seq > from) {
            self.recall(&mut view, entry, from);
            if entry.seq <= cursor.seq {
                view.skip(entry);
                continue;
            }
            resume(&mut view);
            let parts = if entry.seq == cursor.seq.next() { cursor.parts } else { 0 };
            frames.extend(view.see_entry(entry, parts));
        }
        resume(&mut view);
        if since.is_none() {
            frames.extend(view.opening());
        }
        for growth in self.live.growths() {
            frames.extend(view.see(&Update::Grew(growth)));
        }
        frames.extend(view.pending());
        let frames = frames.into_iter().map(|frame| json(&own.finish(frame))).collect();
        (frames, own)
    }

    /// A view for all who watch from now on.
    pub fn open_view(&self) -> View {
        let from = self.from(None);
        let mut view = View::new(&Loom, &session(), from);
        for entry in self.log.iter().filter(|entry| entry.seq > from) {
            self.recall(&mut view, entry, from);
            view.skip(entry);
        }
        for growth in self.live.growths() {
            view.see(&Update::Grew(growth));
        }
        view
    }

    /// Feeds a view that was opened earlier an update, as the session's actor does.
    pub fn show(&self, view: &mut View, update: &Update) -> Vec<Frame> {
        if let Update::Logged(entry) = update {
            self.recall(view, entry, entry.seq);
        }
        view.see(update)
    }
}
