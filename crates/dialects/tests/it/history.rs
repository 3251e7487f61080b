//! Pages of a session's past, put together, are what a replay from the start carries; and who takes
//! the newest page and attaches where it ends has everything once.

use polyloop_dialects::history::{Page, Renderer};
use polyloop_dialects::{Cursor, Dialect};
use polyloop_session::event::Work;
use polyloop_session::{Event, Seq, Update};
use serde_json::Value;

use super::action::sessions;
use super::fixture::scenarios;
use super::play::play;
use super::runner::try_all;
use super::speaks::{self, Reader};
use super::world::{Moment, Sent, session};

const CASES: u32 = 32;
const BYTES_MAX: usize = 1 << 20;

/// A page as the server makes it: its frames, and where the one before it ends.
fn page(
    moment: &Moment,
    dialect: &dyn Dialect,
    upto: Seq,
    limits: (usize, usize),
) -> (Vec<Value>, Seq) {
    let open: Vec<_> =
        moment.state.turn().map(|t| t.items.keys().copied().collect()).unwrap_or_default();
    let mut page = Page::new(limits.0, limits.1);
    let mut end = upto;
    let turns = moment.turns.iter().rev().filter(|turn| **turn <= upto);
    let mut turns = turns.map(|turn| turn.before());
    while end > Seq::NONE && !page.is_full() {
        // Before the first turn of ours it may begin at any entry of another program.
        let adopted = |seq: Seq| {
            let entry = moment.log.iter().find(|entry| entry.seq == seq);
            entry.is_some_and(|entry| matches!(entry.event, Event::Adopted { .. }))
        };
        let anywhere = if adopted(end) { end.before() } else { Seq::NONE };
        let from = turns.next().unwrap_or(anywhere);
        let mut renderer = Renderer::new(dialect, &session(), from, &open);
        let mut chunk = page.older();
        for entry in moment.log.iter().filter(|entry| entry.seq > from && entry.seq <= end) {
            if let Event::TurnStarted { work: Work::Message { message }, .. }
            | Event::MessageDropped { message, .. } = &entry.event
                && message.0 <= from
                && let Some(queued) = moment.log.iter().find(|entry| entry.seq == message.0)
            {
                renderer.recall(queued);
            }
            chunk.push(entry.seq, renderer.see(entry));
        }
        page.take(chunk);
        end = from;
    }
    let frames = page.frames().map(|frame| serde_json::from_slice(frame).unwrap()).collect();
    let older = if page.is_full() { page.first().map_or(end, Seq::before) } else { end };
    (frames, older)
}

fn pages(moment: &Moment, dialect: &dyn Dialect, limits: (usize, usize)) -> Vec<Value> {
    let (mut all, mut upto) = (Vec::new(), moment.state.last_seq());
    while upto > Seq::NONE {
        let (mut frames, older) = page(moment, dialect, upto, limits);
        assert!(older < upto, "a page must bring one further");
        frames.append(&mut all);
        (all, upto) = (frames, older);
    }
    all
}

/// What a replay from the start carries of the log, without cursors.
fn replayed(moment: &Moment, dialect: &dyn Dialect) -> Vec<Value> {
    let log: Vec<Update> = moment.log.iter().cloned().map(Update::Logged).collect();
    let frames = super::world::sent(dialect, &log);
    frames.iter().flatten().map(without_cursor).collect()
}

fn without_cursor(frame: &Sent) -> Value {
    let mut frame = frame.json.clone();
    frame.as_object_mut().unwrap().remove("cursor");
    frame
}

fn as_sent(json: Value) -> Sent {
    Sent { json, presents: None, item: None, text: String::new() }
}

fn are_the_replay(updates: &[Update]) -> Result<(), String> {
    let moment = Moment::after(updates);
    if moment.state.turn().is_some_and(|turn| !turn.items.is_empty()) {
        return Ok(()); // What is open comes by attaching.
    }
    for dialect in speaks::all() {
        let want = replayed(&moment, *dialect);
        for limits in
            [(1, BYTES_MAX), (2, BYTES_MAX), (7, BYTES_MAX), (1_000, BYTES_MAX), (50, 900)]
        {
            let got = pages(&moment, *dialect, limits);
            let name = dialect.name();
            ensure!(got == want, "{name}, pages of {limits:?}:\n  {got:#?}\n  not {want:#?}");
        }
    }
    Ok(())
}

/// At any moment, also in the middle of an item: the newest page and what attaching where it ends
/// gives are all characters, each once.
fn then_attaching(updates: &[Update]) -> Result<(), String> {
    let moments = Moment::all(updates);
    for dialect in speaks::all() {
        let reader = Reader::new(*dialect, &moments.last().unwrap().log);
        let frames = super::world::sent(*dialect, updates);
        for (at, moment) in moments.iter().enumerate() {
            let head = moment.state.last_seq();
            let told = pages(moment, *dialect, (1_000, BYTES_MAX));
            let last = told.iter().filter_map(|frame| frame["seq"].as_u64()).max();
            ensure!(last.is_none_or(|last| last <= head.0), "a page goes beyond its end");
            let attached = moment.attach(*dialect, Some(&Cursor::at(head)));
            let open = reader.seen(&attached).texts;
            let told: Vec<Sent> = told.into_iter().map(as_sent).collect();
            let paged = reader.seen(&told).texts;
            // Elsewhere the order says which item a frame is about, and pages do not.
            let is_named = ["agentloop", "unified"].contains(&dialect.name());
            let want = reader.seen(frames[..at].iter().flatten()).texts;
            let ended = |key| moment.log.iter().any(|entry| speaks::ends(key, entry));
            for (key, text) in &want {
                let shown = open.get(key);
                let name = dialect.name();
                match ended(*key) {
                    true => ensure!(shown.is_none(), "{name}: {key:?} comes again at {at}"),
                    false => ensure!(shown == Some(text), "{name}: {key:?} is {shown:?} at {at}"),
                }
                let due = Some(text).filter(|_| ended(*key));
                let paged = paged.get(key);
                ensure!(
                    !is_named || paged == due,
                    "{name}: {key:?} is {paged:?} in a page at {at}"
                );
            }
        }
    }
    Ok(())
}

fn holds(check: impl Fn(&[Update]) -> Result<(), String>) {
    for scenario in scenarios() {
        check(&scenario.updates(scenario.steps.len()))
            .unwrap_or_else(|told| panic!("{}: {told}", scenario.name));
    }
    try_all(CASES, sessions(), |(start, actions)| check(&play(&start, &actions)));
}

#[test]
fn pages_put_together_are_the_replay() {
    holds(are_the_replay);
}

#[test]
fn the_newest_page_and_attaching_is_everything_once() {
    holds(then_attaching);
}
