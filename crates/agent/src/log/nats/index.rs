//! What a long session adds up to at one place, in the object store, so that opening it reads only
//! what came after.
//!
//! Never the truth: it is made from acknowledged messages and can be made again; one that cannot be
//! read, is of another version or does not fit the log is not used. A writer that was fenced off
//! can at most put an older one there, which is as true.

use bytes::Bytes;
use polyloop_session::state::FOLD_ID;
use polyloop_session::{Seq, State, Timestamp};
use serde::{Deserialize, Serialize};

use super::super::files::index::{Beside, Place};
use super::super::files::load::Pass;
use super::super::{LogError, Named, Spent, Standing, Summary};
use super::Store;
use super::leased::Leased;
use super::message::Marks;
use super::records::Record;

/// Goes up when the form changes, or how lines are read and numbered.
const INDEX_VERSION: u32 = 1;
/// Less is read as fast as an index would be.
pub(super) const INDEX_BYTES_MIN: usize = 64 * 1024;

#[derive(Serialize, Deserialize)]
struct Index<S> {
    version: u32,
    /// The fold that made the state.
    fold: String,
    /// The number of the last message that is in it.
    upto: u64,
    start: Timestamp,
    last: Timestamp,
    lines: u64,
    named: Named,
    spent: Spent,
    standing: Standing,
    places: Vec<Place>,
    turns: Vec<Seq>,
    state: S,
    beside: Beside,
}

fn name(record: &Record) -> String {
    format!("{}/index", record.birth)
}

/// The text of an index as of now.
pub(super) fn text(leased: &Leased, state: &State) -> Option<Vec<u8>> {
    let Summary { id: _, start, last, lines, named, spent, standing } = leased.summary.clone();
    let index = Index {
        version: INDEX_VERSION,
        fold: FOLD_ID.to_owned(),
        upto: leased.newest,
        start,
        last,
        lines,
        named,
        spent,
        standing,
        places: leased.places.clone(),
        turns: leased.turns.clone(),
        state,
        beside: leased.beside.clone(),
    };
    serde_json::to_vec(&index).ok()
}

impl Store {
    pub(super) async fn keep_index(&self, record: &Record, text: &[u8]) -> Result<(), LogError> {
        self.put(&name(record), text).await
    }

    /// As if the messages had been read up to the number that is given.
    pub(super) async fn indexed(&self, record: &Record) -> Option<(Pass, u64)> {
        let content: Bytes = self.get(&name(record)).await.ok().flatten()?;
        let index: Index<State> = serde_json::from_slice(&content).ok()?;
        if index.version != INDEX_VERSION || index.fold != FOLD_ID {
            return None;
        }
        // It must be of this log: the message it ends with says the same.
        let (stream, subject) = (&self.streams.log, self.streams.log_subject(&record.birth));
        let stream = &stream.cached_info().config.name;
        let message = self.streams.messages(stream, &subject, index.upto, 1).await.ok()?;
        let message = message.first().filter(|message| message.sequence == index.upto)?;
        let marks = Marks::read(&message.headers)?;
        let last = index.state.last_seq();
        if marks.seq != last || marks.lines != index.lines {
            return None;
        }
        let pass = Pass {
            folded: index.beside.folded(index.state, index.turns),
            last,
            lines: index.lines,
            times: Some((index.start, index.last)),
            named: index.named,
            spent: index.spent,
            standing: index.standing,
            places: index.places,
            ..Pass::default()
        };
        Some((pass, index.upto))
    }
}
