//! A client that leaves and comes back ends with the same texts as one that never left, and with
//! every other message once.

use std::collections::BTreeMap;
use std::sync::Arc;

use polyloop_session::event::{Outcome, Purpose, Work};
use polyloop_session::item::{End, ItemKind};
use polyloop_session::policy::Effect;
use polyloop_session::wait::{Ask, Question};
use polyloop_session::{Event, Live, LogEntry, MessageId, Seq, Stream, Update, WaitId};
use serde_json::Value;

use super::make::*;
use crate::unified::Unified;
use crate::{Cursor, View};

/// Two turns with streamed text, reasoning, two commands of which one waits for leave, a
/// question, an explanation and a call that is cut.
fn log() -> Log {
    let mut log = Log::default();
    let call = log.begin("First");
    let reasoning = log.add(started(call, ItemKind::Reasoning));
    log.grow(reasoning, Stream::Text, "Hm, ");
    log.grow(reasoning, Stream::Text, "éé");
    log.add(completed(reasoning, End::Whole, "Hm, éé so", None));
    let text = log.add(started(call, ItemKind::Text));
    for part in ["Let", " me", " ✓"] {
        log.grow(text, Stream::Text, part);
    }
    log.add(completed(text, End::Whole, "Let me ✓ see", None));
    let second = log.add(queued("Second", Some("msg-2")));
    let (one, two) = (log.add(started(call, tool("bash"))), log.add(started(call, tool("bash"))));
    log.grow(one, Stream::Args, "{");
    log.add(proposed(one, r#"{"command":"one"}"#, judgement(Effect::Execute)));
    log.add(proposed(two, r#"{"command":"two"}"#, judgement(Effect::Execute)));
    log.add(call_ended(call, Some(usage(10, 5, 0))));
    log.add(runs(one));
    log.grow(one, Stream::Output, "a\n");
    let wait = log.add(opened(two, Ask::Approval));
    log.grow(one, Stream::Output, "b\n");
    log.add(completed(one, End::Whole, "a\nb\nc\n", exited(1)));
    let explained = WaitId(Seq(wait));
    log.add(Event::ExplainAsked { wait: explained, by: who() });
    let explain = log.add(calling(Purpose::Explain { wait: explained }));
    let text = log.add(started(explain, ItemKind::Text));
    log.grow(text, Stream::Text, "Because");
    log.add(completed(text, End::Whole, "Because", None));
    log.add(call_ended(explain, Some(usage(10, 5, 0))));
    log.add(settled(wait, approved(None, true)));
    log.add(runs(two));
    log.grow(two, Stream::Output, "x");
    log.add(completed(two, End::Whole, "xy", exited(0)));
    log.add(ended(Outcome::Completed));

    log.add(turn(Work::Message { message: MessageId(Seq(second)) }));
    let call = log.add(calling(Purpose::Think));
    let whole = log.add(started(call, ItemKind::Text));
    log.add(completed(whole, End::Whole, "At once", None));
    let asks = log.add(started(call, tool("ask_user")));
    let cut = log.add(started(call, tool("bash")));
    log.add(completed(cut, End::Cut, "{", None));
    log.add(proposed(asks, "{}", judgement(Effect::Question)));
    log.add(call_ended(call, None));
    let question =
        Question { header: None, question: "Sure?".into(), options: Vec::new(), multi: false };
    let wait = log.add(opened(asks, Ask::Question { questions: vec![question] }));
    log.add(Event::WaitWithdrawn { wait: WaitId(Seq(wait)), reason: "Stopped".into(), by: None });
    log.add(completed(asks, End::Interrupted, "Stopped", None));
    log.add(ended(Outcome::Interrupted { reason: "Enough".into() }));
    log
}

/// What a client has made of the frames it was sent.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// Messages that have ended, and the one that has not.
    texts: Vec<String>,
    open: String,
    reasoning: String,
    outputs: BTreeMap<String, String>,
    /// All else, without its place; of a message's end only that it came.
    others: Vec<Value>,
}

impl Seen {
    fn of<'a>(frames: impl IntoIterator<Item = &'a Value>) -> Seen {
        let mut seen = Seen::default();
        frames.into_iter().for_each(|frame| seen.take(frame));
        seen
    }

    fn take(&mut self, frame: &Value) {
        let text = |name: &str| frame[name].as_str().unwrap();
        match (text("type"), &frame["is_final"], &frame["is_streaming"]) {
            ("assistant_reasoning", ..) => self.reasoning.push_str(text("text")),
            ("assistant_message", is_final, _) => {
                self.open.push_str(text("text"));
                if is_final == true {
                    self.texts.push(std::mem::take(&mut self.open));
                    let mut end = placeless(frame);
                    end["text"] = "".into();
                    self.others.push(end);
                }
            }
            ("command_output", _, Value::Bool(true)) => {
                self.outputs.entry(text("tool_id").into()).or_default().push_str(text("output"));
            }
            _ => self.others.push(placeless(frame)),
        }
    }

    fn streams(&self) -> (&[String], &str, &str, &BTreeMap<String, String>) {
        (&self.texts, &self.open, &self.reasoning, &self.outputs)
    }
}

/// A session between two updates, and what attaching then gives: as the server does it.
#[derive(Clone, Default)]
struct Moment {
    log: Vec<Arc<LogEntry>>,
    live: Live,
    turns: Vec<Seq>,
    running: bool,
    waits: Vec<Seq>,
}

impl Moment {
    fn all(updates: &[Update]) -> Vec<Moment> {
        let mut moments = vec![Moment::default()];
        for update in updates {
            let mut next = moments.last().unwrap().clone();
            next.take(update);
            moments.push(next);
        }
        moments
    }

    fn take(&mut self, update: &Update) {
        let entry = match update {
            Update::Grew(growth) => return self.live.grow(growth),
            Update::Raw(_) => return,
            Update::Logged(entry) => entry,
        };
        match &entry.event {
            Event::TurnStarted { .. } => {
                self.turns.push(entry.seq);
                self.running = true;
            }
            Event::TurnEnded { .. } => self.running = false,
            Event::ItemCompleted { item, .. } => self.live.close(*item),
            Event::WaitOpened { .. } => self.waits.push(entry.seq),
            Event::WaitSettled { wait, .. } | Event::WaitWithdrawn { wait, .. } => {
                self.waits.retain(|open| *open != wait.0);
            }
            _ => {}
        }
        self.log.push(entry.clone());
    }

    fn head(&self) -> Seq {
        self.log.last().map_or(Seq::NONE, |entry| entry.seq)
    }

    /// A view that is fed from the turn at or before a place.
    fn view(&self, since: Option<Seq>) -> (View, Seq) {
        let at = since.unwrap_or(self.head());
        let turn = self.turns.iter().rfind(|turn| **turn <= at).copied();
        let from = match (since, self.running) {
            (None, false) => self.head(),
            _ => turn.map_or(Seq::NONE, Seq::before),
        };
        let mut view = View::new(&Unified, &session(), from);
        let named = turn.and_then(|turn| match &self.log[turn.0 as usize - 1].event {
            Event::TurnStarted { work: Work::Message { message }, .. } => Some(message.0),
            _ => None,
        });
        if let Some(named) = named.filter(|named| *named <= from) {
            view.recall(&self.log[named.0 as usize - 1]);
        }
        (view, from)
    }

    fn attach(&self, since: Option<&Cursor>) -> Vec<Value> {
        let (mut view, from) = self.view(since.map(|cursor| cursor.seq));
        let cursor = since.cloned().unwrap_or_else(|| Cursor::at(self.head()));
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
        told(frames)
    }
}

struct Told {
    updates: Vec<Update>,
    frames: Vec<Vec<Value>>,
    moments: Vec<Moment>,
}

impl Told {
    fn new() -> Told {
        let log = log();
        let (frames, moments) = (log.frames(), Moment::all(&log.updates));
        Told { updates: log.updates, frames, moments }
    }

    /// Every frame, and every moment after it to come back at.
    fn leaves(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let all = self.updates.len();
        self.frames.iter().enumerate().flat_map(move |(update, frames)| {
            (0..frames.len())
                .flat_map(move |frame| (update + 1..=all).map(move |b| (update, frame, b)))
        })
    }

    /// What waits at a moment, as it was sent.
    fn pending(&self, moment: usize) -> Vec<Value> {
        let sent = |wait: &Seq| {
            let id = format!("evt-{wait}-0-86020b22");
            let mut sent = self.frames[..moment].iter().flatten();
            placeless(sent.find(|frame| frame["id"] == *id).unwrap())
        };
        self.moments[moment].waits.iter().map(sent).collect()
    }
}

/// What is owed, and then what waits, unless that is among it.
fn with_pending(mut due: Vec<Value>, pending: Vec<Value>) -> Vec<Value> {
    let sent = due.clone();
    due.extend(pending.into_iter().filter(|request| !sent.contains(request)));
    due
}

fn cursor_of(frame: &Value) -> Cursor {
    let text = frame["cursor"].as_str().map(str::to_string);
    Cursor::parse(&text.unwrap_or_else(|| frame["seq"].to_string())).unwrap()
}

#[test]
fn from_a_cursor_nothing_is_missing_and_nothing_comes_twice() {
    let told = Told::new();
    let whole = Seen::of(told.frames.iter().flatten());
    assert_eq!(whole.texts, ["Let me ✓ see", "Because", "At once"]);
    assert_eq!(whole.reasoning, "Hm, éé so");
    let outputs = [("tool-9", "a\nb\nc\n"), ("tool-10", "xy")];
    assert_eq!(whole.outputs, outputs.map(|(id, text)| (id.into(), text.into())).into());
    let mut tried = 0;
    for (update, frame, back) in told.leaves() {
        let cursor = cursor_of(&told.frames[update][frame]);
        let place = format!("left at {cursor}, back after update {back}");
        let replay = told.moments[back].attach(Some(&cursor));
        let missed = told.frames[update][frame + 1..].iter();
        let missed = missed.chain(told.frames[update + 1..back].iter().flatten());
        let due = with_pending(Seen::of(missed).others, told.pending(back));
        assert_eq!(Seen::of(&replay).others, due, "{place}");
        let before = told.frames[..update].iter().flatten().chain(&told.frames[update][..=frame]);
        let after = told.frames[back..].iter().flatten();
        let seen = Seen::of(before.chain(&replay).chain(after));
        assert_eq!(seen.streams(), whole.streams(), "{place}");
        tried += 1;
    }
    assert!(tried > 500, "{tried}");
}

/// From a bare place, items that were open are sent from their start.
#[test]
fn from_a_seq_every_message_after_it_comes_once() {
    let told = Told::new();
    for seq in 0..=told.moments.last().unwrap().log.len() as u64 {
        let replay = told.moments.last().unwrap().attach(Some(&Cursor::at(Seq(seq))));
        let mut due = Vec::new();
        for (update, frames) in told.updates.iter().zip(&told.frames) {
            if let Update::Logged(entry) = update
                && entry.seq.0 > seq
            {
                due.extend(Seen::of(frames).others);
            }
        }
        let seen = Seen::of(&replay);
        assert_eq!(seen.others, due, "from {seq}");
        let texts = ["Let me ✓ see", "Because", "At once"];
        assert_eq!(seen.texts, texts[texts.len() - seen.texts.len()..], "from {seq}");
        for output in seen.outputs.values() {
            assert!(["a\nb\nc\n", "xy"].contains(&output.as_str()), "from {seq}: {output}");
        }
    }
}

/// Whoever comes without a place knows the turn, its open calls and what waits.
#[test]
fn without_a_place_it_gets_what_is_open() {
    let told = Told::new();
    let (mut calls, mut requests) = (0, 0);
    for (at, moment) in told.moments.iter().enumerate() {
        let got = Seen::of(&moment.attach(None));
        let sent = || told.frames[..at].iter().flatten();
        let mut due = Vec::new();
        if moment.running {
            due.extend(sent().rfind(|frame| frame["type"] == "turn_started").map(placeless));
            let done: Vec<&Value> = sent()
                .filter(|frame| frame["type"] == "tool_completed")
                .map(|frame| &frame["tool_id"])
                .collect();
            let open = sent().filter(|frame| frame["type"] == "tool_started");
            due.extend(open.filter(|frame| !done.contains(&&frame["tool_id"])).map(placeless));
            calls += due.len() - 1;
        }
        let pending = told.pending(at);
        requests += pending.len();
        due.extend(pending);
        assert_eq!(got.others, due, "after update {at}");
        let shown = Seen::of(sent());
        assert_eq!(got.open, shown.open, "after update {at}");
        assert!(got.texts.is_empty(), "after update {at}");
    }
    assert!(calls > 5 && requests > 5, "{calls} {requests}");
}

/// A client whose connection breaks after every single frame still gets all of them once.
#[test]
fn one_frame_a_connection_is_enough() {
    let told = Told::new();
    let moment = told.moments.last().unwrap();
    let (mut cursor, mut read) = (Cursor::default(), Vec::new());
    while let Some(frame) = moment.attach(Some(&cursor)).into_iter().next() {
        cursor = cursor_of(&frame);
        read.push(frame);
        assert!(read.len() < 200, "it never ends at {cursor}");
    }
    let (got, want) = (Seen::of(&read), Seen::of(told.frames.iter().flatten()));
    assert_eq!(got, want);
}

/// A view that is opened late sends what one that was there from the start sends.
#[test]
fn a_view_that_opens_late_sends_the_same() {
    let told = Told::new();
    for (at, moment) in told.moments.iter().enumerate() {
        let (mut view, from) = moment.view(None);
        moment.log.iter().filter(|entry| entry.seq > from).for_each(|entry| view.skip(entry));
        for growth in moment.live.growths() {
            view.see(&Update::Grew(growth));
        }
        for (update, want) in told.updates[at..].iter().zip(&told.frames[at..]) {
            // The message that a turn names comes before it.
            if let Update::Logged(entry) = update
                && let Event::TurnStarted { work: Work::Message { message }, .. } = &entry.event
                && let Some(named) = moment.log.get(message.0.0 as usize - 1)
            {
                view.recall(named);
            }
            assert_eq!(super::make::told(view.see(update)), *want, "opened at {at}");
        }
    }
}

/// Everything that waits is there at once, with the ids it had, and once.
#[test]
fn all_that_waits_is_sent_again() {
    let mut log = Log::default();
    let call = log.begin("Go");
    let items = [log.add(started(call, tool("bash"))), log.add(started(call, tool("read")))];
    for item in items {
        log.add(proposed(item, "{}", judgement(Effect::Execute)));
        log.add(opened(item, Ask::Approval));
    }
    let sent = log.told();
    let requests: Vec<_> = sent.iter().filter(|f| f["type"] == "control_request").collect();
    let mut view = View::new(&Unified, &session(), Seq::NONE);
    for update in &log.updates {
        let Update::Logged(entry) = update else { continue };
        view.skip(entry);
    }
    let frames = view.pending();
    let presents: Vec<_> = frames.iter().map(|frame| frame.presents).collect();
    assert_eq!(presents, [Some(WaitId(Seq(7))), Some(WaitId(Seq(9)))]);
    let again: Vec<Value> = told(frames).iter().map(placeless).collect();
    assert_eq!(again.iter().collect::<Vec<_>>(), requests);
    assert!(view.pending().is_empty());
}
