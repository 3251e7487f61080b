//! Cursors that no server wrote: nothing breaks, and no text comes that is not in the session.

use std::collections::BTreeSet;

use polyloop_dialects::Cursor;
use polyloop_session::{Event, ItemId, Seq, Stream, Update};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::action::sessions;
use super::catch_up::{placeless, text_of};
use super::fixture::scenarios;
use super::play::play;
use super::runner::try_all;
use super::world::{Moment, sent};

const CASES: u32 = 256;

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
    (seq(), parts, sent).prop_map(|(seq, parts, sent)| Cursor { seq: Seq(seq), parts, sent })
}

/// Every message that was sent.
fn known(updates: &[Update]) -> BTreeSet<String> {
    sent(updates).iter().flatten().map(|frame| placeless(frame).to_string()).collect()
}

/// What may be sent at a moment: what is known, and texts from anywhere inside an item.
fn is_harmless(known: &BTreeSet<String>, moment: &Moment, cursor: &Cursor) -> Result<(), String> {
    let mut met = BTreeSet::new();
    for frame in moment.attach(Some(cursor)) {
        match text_of(&frame) {
            Some((id, text)) => {
                let whole = whole(moment, id).ok_or(format!("{id} is no item"))?;
                ensure!(!text.is_empty(), "an empty text is sent of {id}");
                ensure!(whole.contains(text), "{id} is {whole:?}, and {text:?} is sent of it");
            }
            None => {
                let told = placeless(&frame).to_string();
                ensure!(known.contains(&told), "{told} was never sent");
                let again = !met.insert(told.clone());
                ensure!(!again || told.contains("approval_request"), "{told} is sent twice");
            }
        }
        let place: &Value = &frame["cursor"];
        let own = place.as_str().map(Cursor::parse);
        ensure!(!matches!(own, Some(Err(_))), "{place} cannot be read back");
    }
    Ok(())
}

/// All that an item's clients may see of it by now.
fn whole(moment: &Moment, id: &str) -> Option<String> {
    let item = ItemId(Seq(id.strip_prefix("msg_")?.parse().ok()?));
    let logged = moment.log.iter().find_map(|entry| match &entry.event {
        Event::ItemCompleted { item: of, text, .. } if *of == item => Some(text.to_string()),
        Event::Adopted { piece: Some(polyloop_session::event::Adopted::Agent { text }) }
            if entry.seq == item.0 =>
        {
            Some(text.to_string())
        }
        _ => None,
    });
    logged.or_else(|| Some(moment.live.text(item, Stream::Text).to_string()))
}

#[test]
fn a_hostile_cursor_gets_nothing_that_is_not_there() {
    let told: Vec<Vec<Update>> =
        scenarios().iter().map(|scenario| scenario.updates(scenario.steps.len())).collect();
    try_all(CASES, (0..told.len(), any::<u16>(), cursor()), |(which, at, cursor)| {
        let updates = &told[which];
        let updates = &updates[..usize::from(at) % (updates.len() + 1)];
        is_harmless(&known(updates), &Moment::after(updates), &cursor)
    });
    let random = (sessions(), any::<u16>(), vec(cursor(), 8));
    try_all(CASES, random, |((start, actions), at, cursors)| {
        let updates = play(&start, &actions);
        let updates = &updates[..usize::from(at) % (updates.len() + 1)];
        let (known, moment) = (known(updates), Moment::after(updates));
        cursors.iter().try_for_each(|cursor| is_harmless(&known, &moment, cursor))
    });
}

fn gets_what_is_pending(moment: &Moment, cursor: &Cursor) -> Result<(), String> {
    let frames = moment.attach(Some(cursor));
    let requests = frames.iter().filter(|frame| frame["type"] == "approval_request").count();
    let waits = moment.is_waiting();
    ensure!(!waits || requests > 0, "{cursor}: nothing is pending in {frames:?}");
    Ok(())
}

/// Every place that a cursor can name in a short session, and some that it cannot.
#[test]
fn every_place_of_the_scenarios_is_harmless() {
    for scenario in scenarios() {
        let updates = scenario.updates(scenario.steps.len());
        for (at, moment) in Moment::all(&updates).iter().enumerate() {
            let known = known(&updates[..at]);
            let places = 0..moment.state.last_seq().0 + 3;
            for (seq, parts) in places.flat_map(|seq| (0..4).map(move |parts| (seq, parts))) {
                let cursor = Cursor { parts, ..Cursor::at(Seq(seq)) };
                is_harmless(&known, moment, &cursor)
                    .and_then(|()| gets_what_is_pending(moment, &cursor))
                    .unwrap_or_else(|told| panic!("{} at {cursor}: {told}", scenario.name));
            }
        }
    }
}

/// Whatever a client says of its place, it is told what waits for its answer.
#[test]
fn a_hostile_cursor_still_gets_what_is_pending() {
    let random = (sessions(), any::<u16>(), vec(cursor(), 8));
    try_all(CASES, random, |((start, actions), at, cursors)| {
        let updates = play(&start, &actions);
        let updates = &updates[..usize::from(at) % (updates.len() + 1)];
        let moment = Moment::after(updates);
        cursors.iter().try_for_each(|cursor| gets_what_is_pending(&moment, cursor))
    });
}

#[test]
fn a_cursor_from_any_text_is_a_place_or_refused() {
    let updates = scenarios().iter().find(|s| s.name == "streamed-talk").unwrap().updates(8);
    let (known, moment) = (known(&updates), Moment::after(&updates));
    try_all(
        CASES,
        "[0-9]{0,3}[+ ~]?[0-9]{0,3}~?[0-9tao,]{0,12}|.{0,40}",
        |text| match Cursor::parse(&text) {
            Ok(cursor) => is_harmless(&known, &moment, &cursor),
            Err(told) => {
                ensure!(!told.to_string().is_empty(), "it says nothing");
                Ok(())
            }
        },
    );
}
