//! What is written to a session's files, and read when it is opened.

use std::path::Path;
use std::sync::Arc;

use polyloop_agent::log::files::Files;
use polyloop_agent::log::{Flush, Log, Occasion, OpenMode, Opened};
use polyloop_session::{Growth, ItemId, Seq, SessionId, Stream};
use tokio::runtime::Runtime;

use crate::meter::Meter;
use crate::story::{Batches, Story};
use crate::view::FileCodec;

const ROUNDS: u64 = 100;
/// What the session that is opened holds.
const OPENED_TURNS: u64 = 150;

pub fn count(meter: &Meter, runtime: &Runtime, dir: &Path) {
    let log = Files::open(dir, FileCodec::shared()).unwrap();
    turns(meter, runtime, &log);
    growth(meter, runtime, &log);
    open(meter, runtime, &log);
}

/// Appends what comes first in a session, and says how far that is.
async fn append(opened: &mut Opened, batches: &Batches) {
    for batch in batches {
        let Opened { writer, folded, live: _ } = opened;
        let last = folded.state.last_seq();
        writer.append(last, batch, Flush::Process).await.unwrap();
        batch.iter().for_each(|entry| folded.take(entry));
    }
}

fn made(runtime: &Runtime, log: &Files, name: &str) -> Opened {
    let id = SessionId::parse(name).unwrap();
    runtime.block_on(log.open(&id, OpenMode::OrCreate)).unwrap().unwrap()
}

/// As the actor does it: a batch is one append. What is applied is counted elsewhere.
fn turns(meter: &Meter, runtime: &Runtime, log: &Files) {
    let (mut story, mut opened) = (Story::default(), made(runtime, log, "appended"));
    runtime.block_on(append(&mut opened, &story.begin()));
    let turns: Vec<Batches> = (0..Meter::all(ROUNDS)).map(|_| story.turn()).collect();
    let mut last = opened.folded.state.last_seq();
    meter.count("append turn", ROUNDS, |round| {
        runtime.block_on(async {
            for batch in &turns[round as usize] {
                opened.writer.append(last, batch, Flush::Process).await.unwrap();
                last = Seq(last.0 + batch.len() as u64);
            }
        });
    });
}

fn growth(meter: &Meter, runtime: &Runtime, log: &Files) {
    let (mut story, mut opened) = (Story::default(), made(runtime, log, "grown"));
    runtime.block_on(append(&mut opened, &story.begin()));
    let (opening, item) = story.open_turn();
    runtime.block_on(append(&mut opened, &opening));
    let text: Arc<str> = "of interest ".into();
    let (item, stream) = (ItemId(Seq(item)), Stream::Text);
    meter.count("append growth", ROUNDS, |round| {
        let offset = round * text.len() as u64;
        let growth = Growth { item, stream, offset, text: text.clone() };
        runtime.block_on(opened.writer.grow(&[growth])).unwrap();
    });
}

fn open(meter: &Meter, runtime: &Runtime, log: &Files) {
    let (mut story, mut opened) = (Story::default(), made(runtime, log, "opened"));
    runtime.block_on(append(&mut opened, &story.begin()));
    for _ in 0..OPENED_TURNS {
        runtime.block_on(append(&mut opened, &story.turn()));
    }
    let Opened { mut writer, folded, live: _ } = opened;
    runtime.block_on(writer.keep(&folded.state, Occasion::Leaving));
    drop(writer);
    meter.count("open session", 5, |_| {
        let opened = made(runtime, log, "opened");
        assert_eq!(opened.folded.state.last_seq().0, story.last());
    });
}
