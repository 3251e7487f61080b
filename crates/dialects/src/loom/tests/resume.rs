//! A client that leaves and comes back ends with what one that never left has, and every stream,
//! whole or put together, keeps the protocol's order.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use polyloop_session::{Event, ItemId, Seq, Stream, Update};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::Value;

use super::play::{actions, play};
use super::world::{Moment, json, sent};
use crate::{Cursor, Frame, Own};

const CASES: u32 = 40;
const SEED: u64 = 7;

fn kind(frame: &Value) -> &str {
    frame["event"]["type"].as_str().or(frame["type"].as_str()).unwrap()
}

fn is_chunk(frame: &Value) -> bool {
    matches!(kind(frame), "message_chunk" | "thought_chunk" | "tool_call_chunk" | "tool_output")
}

/// Texts by where they stand, and all other messages in order, without their numbers and places.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    texts: BTreeMap<String, String>,
    others: Vec<Value>,
}

impl Seen {
    fn of<'a>(frames: impl IntoIterator<Item = &'a Value>) -> Seen {
        let mut seen = Seen::default();
        for frame in frames {
            if !is_chunk(frame) {
                seen.others.push(placeless(frame));
                continue;
            }
            let event = &frame["event"];
            let call = if kind(frame) == "tool_output" { &event["call_id"] } else { &Value::Null };
            let place = format!("{} {} {} {call}", frame["id"], event["node_id"], kind(frame));
            let text = event["content"].as_str().or(event["arguments_delta"].as_str()).unwrap();
            seen.texts.entry(place).or_default().push_str(text);
        }
        seen
    }
}

fn placeless(frame: &Value) -> Value {
    let mut frame = frame.clone();
    let fields = frame.as_object_mut().unwrap();
    fields.remove("seq");
    fields.remove("cursor");
    fields.remove("event_id");
    if let Some(event) = fields.get_mut("event").and_then(Value::as_object_mut) {
        event.remove("event_id");
    }
    frame
}

/// Checks one client's frames from the start of a run on.
fn well_formed(frames: &[Value]) -> Result<(), String> {
    let (mut run, mut count) = (String::new(), 0);
    let (mut open, mut named) = (BTreeSet::new(), BTreeSet::new());
    let (mut calls, mut running) = (BTreeSet::new(), BTreeSet::new());
    for frame in frames {
        let (event, kind) = (&frame["event"], kind(frame));
        let text = |value: &Value| value.as_str().unwrap_or("?").to_string();
        if kind == "run_start" {
            ensure(run.is_empty(), || format!("{run} is not over at {frame}"))?;
            (run, count) = (text(&frame["id"]), 0);
        }
        ensure(frame["id"] == *run && !run.is_empty(), || format!("outside its run: {frame}"))?;
        if let Some(number) = event["event_id"].as_u64().or(frame["event_id"].as_u64()) {
            count += 1;
            ensure(number == count, || format!("the number is not {count}: {frame}"))?;
        }
        let (node, call) = (text(&event["node_id"]), text(&event["call_id"]));
        let in_open = open.contains(&node);
        let fits = match kind {
            "node_enter" => open.insert(node),
            "node_exit" => open.remove(&node),
            "message_chunk" | "thought_chunk" | "usage" => in_open,
            // Only the first of a call names it.
            "tool_call_chunk" if event["call_id"].is_null() => in_open && !named.is_empty(),
            "tool_call_chunk" => in_open && named.insert(call),
            "tool_call" => in_open && calls.insert(call),
            "tool_start" => in_open && calls.contains(&call) && running.insert(call),
            "tool_output" => in_open && running.contains(&call),
            "tool_end" => {
                running.remove(&call);
                in_open && calls.remove(&call)
            }
            "tool_approval" => in_open && calls.contains(&call),
            "run_end" | "error" => {
                run.clear();
                named.clear();
                calls.clear();
                running.clear();
                open.is_empty()
            }
            _ => true,
        };
        ensure(fits, || format!("{frame} does not fit: open {open:?}, calls {calls:?}"))?;
    }
    Ok(())
}

fn ensure(holds: bool, told: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(told()) }
}

/// All that a session sent, and its moments.
struct Told {
    updates: Vec<Update>,
    raw: Vec<Vec<Frame>>,
    frames: Vec<Vec<Value>>,
    moments: Vec<Moment>,
}

impl Told {
    fn new(updates: Vec<Update>) -> Told {
        let raw = sent(&updates);
        let mut own = Own::default();
        let mut finish = |frames: &Vec<Frame>| -> Vec<Value> {
            frames.iter().map(|frame| json(&own.finish(frame.clone()))).collect()
        };
        let frames = raw.iter().map(&mut finish).collect();
        let mut moments = vec![Moment::default()];
        for update in &updates {
            let mut next = moments.last().unwrap().clone();
            next.take(update);
            moments.push(next);
        }
        Told { updates, raw, frames, moments }
    }

    /// Every frame with its update, and moments to come back at.
    fn leaves(&self) -> Vec<(usize, usize, usize)> {
        let all = self.updates.len();
        let mut leaves = Vec::new();
        for (update, frames) in self.frames.iter().enumerate() {
            let mut back = vec![update + 1, (update + 1 + all) / 2, all];
            back.dedup();
            let each = (0..frames.len()).flat_map(|at| back.iter().map(move |b| (update, at, *b)));
            leaves.extend(each);
        }
        leaves
    }

    fn until(&self, update: usize, at: usize) -> Vec<Value> {
        let before = self.frames[..update].iter().flatten();
        before.chain(&self.frames[update][..=at]).cloned().collect()
    }

    fn between(&self, update: usize, at: usize, moment: usize) -> Vec<&Value> {
        let rest = self.frames[update][at + 1..].iter();
        rest.chain(self.frames[update + 1..moment].iter().flatten()).collect()
    }

    /// What comes after a moment, with a connection's own numbers.
    fn live(&self, moment: usize, mut own: Own) -> Vec<Value> {
        let frames = self.raw[moment..].iter().flatten();
        frames.map(|frame| json(&own.finish(frame.clone()))).collect()
    }

    /// Requests that are open at a moment, as they were sent.
    fn pending(&self, moment: usize) -> Vec<Value> {
        let open = self.moments[moment].state.turn().map(|turn| turn.waits.clone());
        let open = open.unwrap_or_default();
        let asked = self.raw[..moment].iter().flatten().zip(self.frames[..moment].iter().flatten());
        let asked = asked.filter(|(raw, _)| raw.presents.is_some_and(|w| open.contains_key(&w)));
        asked.map(|(_, frame)| placeless(frame)).collect()
    }
}

/// `others` must be what is due, then what is pending unless it is among it.
fn owes(mut due: Vec<Value>, pending: Vec<Value>, others: &[Value]) -> Result<(), String> {
    let missing: Vec<Value> = pending.into_iter().filter(|p| !due.contains(p)).collect();
    due.extend(missing);
    ensure(due == others, || format!("owed\n  {due:?}\n  got\n  {others:?}"))
}

fn cursor_of(frame: &Value) -> Cursor {
    let text = frame["cursor"].as_str().map(str::to_string);
    Cursor::parse(&text.unwrap_or_else(|| frame["seq"].to_string())).unwrap()
}

/// By its last cursor: no gap, no duplicate, not in one character and not in the numbers.
fn by_cursor(told: &Told) -> Result<(), String> {
    let whole: Vec<Value> = told.frames.concat();
    well_formed(&whole)?;
    let texts = Seen::of(&whole).texts;
    for (update, at, back) in told.leaves() {
        let cursor = cursor_of(&told.frames[update][at]);
        let place = |told| format!("left at {cursor}, back after update {back}: {told}");
        let (replay, own) = told.moments[back].attach(Some(&cursor));
        let due = Seen::of(told.between(update, at, back)).others;
        owes(due, told.pending(back), &Seen::of(&replay).others).map_err(place)?;
        let stream = [told.until(update, at), replay, told.live(back, own)].concat();
        let got = Seen::of(&stream).texts;
        ensure(got == texts, || place(format!("{got:?}, not {texts:?}")))?;
        well_formed(&stream).map_err(place)?;
    }
    Ok(())
}

/// Whether a stream was whole, and so was sent, with the entry `seq`.
fn is_whole(log: &Moment, seq: Seq, item: ItemId, stream: Stream) -> bool {
    log.log.iter().take_while(|entry| entry.seq <= seq).any(|entry| match &entry.event {
        Event::ItemCompleted { item: ended, .. } => *ended == item,
        Event::ToolProposed { item: whole, .. } => *whole == item && stream == Stream::Args,
        _ => false,
    })
}

/// By a bare seq: what came after it, and streams that were open then from their start.
fn by_seq(told: &Told) -> Result<(), String> {
    let all = told.updates.len();
    for (update, at, back) in told.leaves() {
        let seq = Seq(told.frames[update][at]["seq"].as_u64().unwrap());
        let (replay, own) = told.moments[back].attach(Some(&Cursor::at(seq)));
        let place = |told| format!("left at seq {seq}, back after update {back}: {told}");
        let after = |to: usize| -> Vec<&Value> {
            let updates = told.updates.iter().zip(&told.frames).take(to);
            let due = updates.filter(|(update, _)| match update {
                Update::Logged(entry) => entry.seq > seq,
                Update::Grew(grown) => !is_whole(&told.moments[all], seq, grown.item, grown.stream),
                Update::Raw(_) => false,
            });
            due.flat_map(|(_, frames)| frames).collect()
        };
        let due = Seen::of(after(back)).others;
        owes(due, told.pending(back), &Seen::of(&replay).others).map_err(place)?;
        let got = Seen::of(&[replay, told.live(back, own)].concat()).texts;
        let want = Seen::of(after(all)).texts;
        ensure(got == want, || place(format!("{got:?}, not {want:?}")))?;
    }
    Ok(())
}

/// Without a place: a stream of its own, numbered from 1, that begins with the run.
fn without_since(told: &Told) -> Result<(), String> {
    for (at, moment) in told.moments.iter().enumerate() {
        let (replay, own) = moment.attach(None);
        let starts = replay.first().map(kind) == Some("run_start");
        let runs = moment.state.turn().is_some();
        ensure(starts == runs, || format!("after update {at}: {replay:?}"))?;
        let stream = [replay, told.live(at, own)].concat();
        well_formed(&stream).map_err(|told| format!("after update {at}: {told}"))?;
    }
    Ok(())
}

/// A view that is opened late sends what one that was there from the start sends.
fn late_view(told: &Told) -> Result<(), String> {
    for (at, moment) in told.moments.iter().enumerate() {
        let mut view = moment.open_view();
        let rest = told.updates.iter().zip(&told.raw).zip(&told.moments).skip(at);
        for ((update, want), before) in rest {
            let got = before.show(&mut view, update);
            ensure(got == *want, || format!("opened at {at}: {got:?}, not {want:?}"))?;
        }
    }
    Ok(())
}

/// Tries the same sessions on every run, unless `POLYLOOP_CASES` and `POLYLOOP_SEED` say others.
fn holds(check: impl Fn(&Told) -> Result<(), String>) {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let cases = number("POLYLOOP_CASES").and_then(|cases| u32::try_from(cases).ok());
    let config = Config {
        cases: cases.unwrap_or(CASES),
        rng_seed: RngSeed::Fixed(number("POLYLOOP_SEED").unwrap_or(SEED)),
        failure_persistence: None,
        ..Config::default()
    };
    let played = TestRunner::new(config)
        .run(&actions(), |actions| check(&Told::new(play(&actions))).map_err(TestCaseError::fail));
    played.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn from_a_cursor_it_goes_on_at_the_very_character_and_number() {
    holds(by_cursor);
}

#[test]
fn from_a_seq_open_items_are_sent_from_their_start() {
    holds(by_seq);
}

#[test]
fn without_a_place_it_gets_what_is_open() {
    holds(without_since);
}

#[test]
fn a_view_that_opens_late_sends_the_same() {
    holds(late_view);
}

/// The properties above would hold for a dialect that sends nothing.
#[test]
fn random_sessions_are_worth_watching() {
    let met = RefCell::new(BTreeMap::<String, usize>::new());
    holds(|told| {
        for frame in told.frames.iter().flatten() {
            let mut met = met.borrow_mut();
            *met.entry(kind(frame).to_string()).or_default() += 1;
            let cursor = frame["cursor"].as_str().unwrap_or("");
            *met.entry("inside an item".into()).or_default() += usize::from(cursor.contains('~'));
            *met.entry("inside an entry".into()).or_default() += usize::from(cursor.contains('+'));
        }
        Ok(())
    });
    let met = met.into_inner();
    for kind in [
        "run_start",
        "node_enter",
        "node_exit",
        "values",
        "updates",
        "usage",
        "message_chunk",
        "thought_chunk",
        "tool_call_chunk",
        "tool_call",
        "tool_start",
        "tool_output",
        "tool_end",
        "tool_approval",
        "custom",
        "checkpoint",
        "run_end",
        "error",
        "inside an item",
        "inside an entry",
    ] {
        assert!(met.get(kind).is_some_and(|times| *times >= 5), "{kind} is too rare in {met:?}");
    }
}
