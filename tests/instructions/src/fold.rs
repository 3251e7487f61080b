//! What the log adds up to, and what follows from that.

use std::hint::black_box;

use polyloop_session::{Event, Growth, ItemId, Live, Seq, State, Stream, next};

use crate::meter::Meter;
use crate::story::Story;
use crate::{LIMITS, flat};

const ROUNDS: u64 = 100;

pub fn count(meter: &Meter) {
    let (mut state, mut story) = (State::default(), Story::default());
    flat(story.begin()).iter().for_each(|entry| state.apply(entry));
    let turns: Vec<_> = (0..Meter::all(ROUNDS)).map(|_| flat(story.turn())).collect();
    meter.count("fold turn", ROUNDS, |round| {
        turns[round as usize].iter().for_each(|entry| state.apply(entry));
    });
    meter.count("next, at rest", ROUNDS, |_| {
        black_box(next(black_box(&state), &LIMITS));
    });
    let (opening, item) = story.open_turn();
    let opening = flat(opening);
    opening.iter().for_each(|entry| state.apply(entry));
    assert!(opening.iter().any(|entry| matches!(entry.event, Event::ItemStarted { .. })));
    meter.count("next, in a turn", ROUNDS, |_| {
        black_box(next(black_box(&state), &LIMITS));
    });
    let (mut live, text) = (Live::default(), "of interest ");
    meter.count("fold growth", ROUNDS, |round| {
        let offset = round * text.len() as u64;
        let (item, stream) = (ItemId(Seq(item)), Stream::Text);
        live.grow(&Growth { item, stream, offset, text: text.into() });
    });
}
