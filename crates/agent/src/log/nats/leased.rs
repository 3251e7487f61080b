//! What this process knows of the sessions that it writes, so that it need not look for it.

use std::collections::VecDeque;
use std::sync::Arc;

use polyloop_session::{LogEntry, Seq, SessionId};

use super::super::Summary;
use super::super::files::index::{Beside, Place};
use super::open::Epoch;
use super::records::Record;
use super::{Store, lock};

/// Newest batches whose places are all known: most who read on are near the end.
const RECENT_BATCHES: usize = 64;

/// What this process knows of a session that it writes: what is acknowledged.
pub(super) struct Leased {
    pub subject: String,
    pub summary: Summary,
    /// Where some entries are, in order; a place's byte is the number of the message.
    pub places: Vec<Place>,
    pub recent: VecDeque<Place>,
    pub turns: Vec<Seq>,
    pub beside: Beside,
    /// What came in since the last index.
    pub since_bytes: usize,
    /// The number of the newest message.
    pub newest: u64,
    pub epoch: Epoch,
}

/// Where to look for an entry.
pub(super) struct Near {
    pub subject: String,
    pub from: u64,
    /// It is not behind this one.
    pub before: u64,
    pub newest: u64,
}

impl Leased {
    pub fn near(&self, seq: Seq) -> Near {
        let (subject, newest) = (self.subject.clone(), self.newest);
        if let Some(place) = self.recent.iter().rev().find(|place| place.seq <= seq) {
            return Near { subject, from: place.byte, before: place.byte, newest };
        }
        let count = self.places.partition_point(|place| place.seq <= seq);
        let from = count.checked_sub(1).and_then(|at| self.places.get(at));
        let before = self.places.get(count).filter(|_| seq != Seq::NONE);
        let (from, before) =
            (from.map_or(1, |place| place.byte), before.map_or(newest, |place| place.byte));
        Near { subject, from, before, newest }
    }

    fn appended(&mut self, entries: &[Arc<LogEntry>], Added { lines, bytes }: Added, number: u64) {
        self.newest = number;
        self.since_bytes += bytes;
        for entry in entries {
            self.beside.take(entry);
            if entry.event.is_beginning() {
                self.turns.push(entry.seq);
            }
        }
        if let Some(first) = entries.first() {
            let place = Place { seq: first.seq, line: self.summary.lines, byte: number };
            if place.counts_after(self.places.last()) {
                self.places.push(place);
            }
            if self.recent.len() == RECENT_BATCHES {
                self.recent.pop_front();
            }
            self.recent.push_back(place);
        }
        self.summary.append(entries, lines);
    }
}

/// How much a batch is.
#[derive(Clone, Copy)]
pub(super) struct Added {
    pub lines: u64,
    pub bytes: usize,
}

impl Store {
    /// A batch is stored: what is known of its session follows.
    pub(super) fn acknowledged(
        &self,
        mut record: Record,
        epoch: Epoch,
        entries: &[Arc<LogEntry>],
        added: Added,
        number: u64,
    ) {
        let mut all = lock(&self.leased);
        let leased = all.get_mut(&record.id).filter(|leased| leased.epoch == epoch);
        let Some(leased) = leased else { return };
        let before = (leased.summary.named.clone(), leased.summary.standing.clone());
        leased.appended(entries, added, number);
        let is_shown = (&before.0, &before.1) != (&leased.summary.named, &leased.summary.standing);
        if is_shown {
            record.sum_up(&leased.summary, number);
            self.due.add(record);
        }
    }

    /// The record as of now, of a session that this writer has.
    pub(super) fn summed(&self, record: &Record, epoch: Epoch) -> Option<Record> {
        let all = lock(&self.leased);
        let leased = all.get(&record.id).filter(|leased| leased.epoch == epoch)?;
        let mut record = record.clone();
        record.sum_up(&leased.summary, leased.newest);
        Some(record)
    }

    /// Whoever reads it looks for themselves from now on.
    pub(super) fn released(&self, id: &SessionId, epoch: Epoch) {
        let mut all = lock(&self.leased);
        if all.get(id).is_some_and(|leased| leased.epoch == epoch) {
            all.remove(id);
        }
    }
}
