//! Cursors that no server wrote: nothing breaks, and no text comes that is not in the session.

use std::collections::BTreeSet;

use polyloop_dialects::{Cursor, Dialect};
use polyloop_session::{ItemId, Seq, Stream, Update};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::action::sessions;
use super::fixture::scenarios;
use super::play::play;
use super::runner::try_all;
use super::speaks::{self, Reader, placeless};
use super::world::{Moment, Sent, sent};

const CASES: u32 = 96;

fn cursor() -> impl Strategy<Value = Cursor> {
    let seq = || prop_oneof![6 => 0..60_u64, 1 => any::<u64>()];
    let parts = prop_oneof![3 => 0..4_u32, 1 => any::<u32>()];
    let stream = prop_oneof![
        4 => Just(Stream::Text),
        1 => Just(Stream::Args),
        1 => Just(Stream::Output),
    ];
    let bytes = prop_oneof![4 => 0..40_u64, 1 => any::<u64>()];
    let sent = vec((seq().prop_map(|seq| ItemId(Seq(seq))), stream, bytes), 0..20);
    let events = proptest::option::of(prop_oneof![4 => 0..40_u64, 1 => any::<u64>()]);
    let all = (seq().prop_map(Seq), parts, sent, events);
    all.prop_map(|(seq, parts, sent, events)| Cursor { seq, parts, sent, events })
}

/// A session in one dialect.
struct Known {
    dialect: &'static dyn Dialect,
    reader: Reader,
    moment: Moment,
    /// Every message that was sent.
    others: BTreeSet<String>,
    /// What asks about the waits that are open.
    pending: Vec<Vec<Value>>,
}

impl Known {
    fn all(updates: &[Update]) -> Vec<Known> {
        let known = |dialect: &&'static dyn Dialect| {
            let (moment, frames) = (Moment::after(updates), sent(*dialect, updates).concat());
            let reader = Reader::new(*dialect, &moment.log);
            let others = reader.seen(&frames).others;
            let turn = moment.state.turn();
            let is_open = |wait| turn.is_some_and(|turn| turn.waits.contains_key(&wait));
            let pending = speaks::pending(*dialect, frames.iter(), is_open);
            let others = others.iter().map(Value::to_string).collect();
            Known { dialect: *dialect, reader, moment, others, pending }
        };
        speaks::all().iter().map(known).collect()
    }

    /// Nothing is sent but what is known, and texts from anywhere inside an item.
    fn is_harmless(&self, frames: &[Sent]) -> Result<(), String> {
        let mut met = BTreeSet::new();
        for frame in frames {
            let (text, other) = self.reader.read(frame);
            if let Some((key, text)) = text {
                let whole = self.whole(key).ok_or(format!("{key:?} is no item"))?;
                ensure!(whole.contains(&text), "{key:?} is {whole:?}, and {text:?} is sent of it");
            }
            if let Some(told) = other.map(|other| other.to_string()) {
                ensure!(self.others.contains(&told), "{told} was never sent");
                // A request is sent again when it was explained, and with it what goes with it.
                let asks = speaks::may_ask(self.dialect, frame);
                let once = met.insert(told.clone());
                ensure!(
                    once || asks || speaks::recurs(self.dialect, frame),
                    "{told} is sent twice"
                );
            }
            let place: &Value = &frame["cursor"];
            let own = place.as_str().map(Cursor::parse);
            ensure!(!matches!(own, Some(Err(_))), "{place} cannot be read back");
        }
        Ok(())
    }

    /// All that an item's clients may see of it by now.
    fn whole(&self, key: speaks::Key) -> Option<String> {
        let logged = self.moment.log.iter();
        let mut logged = logged.filter_map(|entry| speaks::whole(key, entry));
        logged.next().or_else(|| speaks::live(key, &self.moment.live))
    }

    /// Whatever a client says of its place, it is told what waits for its answer.
    fn asks(&self, frames: &[Sent]) -> Result<(), String> {
        let got: Vec<Value> = frames.iter().map(|frame| placeless(frame)).collect();
        let mut requests = self.pending.iter().filter_map(|asked| asked.last());
        let missing = requests.find(|request| !got.contains(request));
        ensure!(missing.is_none(), "{missing:?} is not in {got:?}");
        Ok(())
    }

    fn holds(&self, cursor: &Cursor) -> Result<(), String> {
        let frames = self.moment.attach(self.dialect, Some(cursor));
        let told = self.is_harmless(&frames).and_then(|()| self.asks(&frames));
        told.map_err(|told| format!("{} at {cursor}: {told}", self.dialect.name()))
    }
}

#[test]
fn a_hostile_cursor_gets_nothing_that_is_not_there_and_all_that_is_pending() {
    let told: Vec<Vec<Update>> =
        scenarios().iter().map(|scenario| scenario.updates(scenario.steps.len())).collect();
    try_all(CASES, (0..told.len(), any::<u16>(), cursor()), |(which, at, cursor)| {
        let updates = &told[which];
        let updates = &updates[..usize::from(at) % (updates.len() + 1)];
        Known::all(updates).iter().try_for_each(|known| known.holds(&cursor))
    });
    let random = (sessions(), any::<u16>(), vec(cursor(), 8));
    try_all(CASES, random, |((start, actions), at, cursors)| {
        let updates = play(&start, &actions);
        let updates = &updates[..usize::from(at) % (updates.len() + 1)];
        let known = Known::all(updates);
        let all = known.iter().flat_map(|known| cursors.iter().map(move |cursor| (known, cursor)));
        all.into_iter().try_for_each(|(known, cursor)| known.holds(cursor))
    });
}

/// Every place that a cursor can name in a short session, and some that it cannot: at some moments,
/// or at all of them when more cases than usual are asked for.
#[test]
fn every_place_of_the_scenarios_is_harmless() {
    let all = std::env::var("POLYLOOP_CASES").is_ok();
    for scenario in scenarios() {
        let updates = scenario.updates(scenario.steps.len());
        let apart = if all { 1 } else { (updates.len() / 2).max(5) };
        let moments = (0..updates.len()).step_by(apart).chain([updates.len()]);
        for at in moments {
            for known in Known::all(&updates[..at]) {
                let places = 0..known.moment.state.last_seq().0 + 3;
                for (seq, parts) in places.flat_map(|seq| [0, 1, 4].map(move |parts| (seq, parts)))
                {
                    let cursor = Cursor { parts, ..Cursor::at(Seq(seq)) };
                    let told = known.holds(&cursor);
                    told.unwrap_or_else(|told| panic!("{}: {told}", scenario.name));
                }
            }
        }
    }
}

#[test]
fn a_cursor_from_any_text_is_a_place_or_refused() {
    let updates = scenarios().iter().find(|s| s.name == "streamed-talk").unwrap().updates(8);
    let known = Known::all(&updates);
    try_all(CASES, "[0-9]{0,3}[+ ~]?[0-9]{0,3}~?[0-9tao,!]{0,12}|.{0,40}", |text| {
        match Cursor::parse(&text) {
            Ok(cursor) => known.iter().try_for_each(|known| known.holds(&cursor)),
            Err(told) => {
                ensure!(!told.to_string().is_empty(), "it says nothing");
                Ok(())
            }
        }
    });
}
