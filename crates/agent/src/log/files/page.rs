//! Pages of a session's file: its entries, or its lines as they stand. Costs what the page holds.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::sync::Arc;

use polyloop_session::event::{Event, Level};
use polyloop_session::{LogEntry, Seq, SessionId};

use super::super::{Codec, DAMAGED_CODE, Line, LinePlace, LogError};
use super::index::Place;
use super::lines::Lines;
use super::{Store, load};

const PAGE_ENTRIES_MAX: usize = 256;
const PAGE_BYTES_MAX: u64 = 1024 * 1024;

impl Store {
    pub(super) fn page(
        &self,
        id: &SessionId,
        after: Seq,
        upto: Seq,
    ) -> Result<Vec<Arc<LogEntry>>, LogError> {
        let Some(near) = self.near(id, |place| place.seq <= after.next())? else {
            return Ok(Vec::new());
        };
        let file = File::open(self.path(id, "jsonl")).map_err(|error| self.error(id, &error))?;
        let mut reading = Reading {
            store: self,
            id,
            after,
            upto,
            seq: near.place.map_or(Seq::NONE, |place| place.seq.before()),
            line: near.place.map_or(0, |place| place.line),
            places: near.place.into_iter().collect(),
        };
        let from = near.place.map_or(0, |place| place.byte);
        let page = Lines::from(file, from).and_then(|lines| reading.page(lines));
        let page = page.map_err(|error| self.error(id, &error))?;
        self.learn(id, near.bytes, reading.places);
        Ok(page)
    }

    /// The place of the line after the first `count`.
    pub(super) fn line_place(&self, id: &SessionId, count: u64) -> Result<LinePlace, LogError> {
        let Some(near) = self.near(id, |place| place.line <= count)? else {
            return Ok(LinePlace::default());
        };
        let find = || -> io::Result<LinePlace> {
            let (line, byte) = near.place.map_or((0, 0), |place| (place.line, place.byte));
            let mut lines = Lines::from(File::open(self.path(id, "jsonl"))?, byte)?;
            for _ in line..count {
                if lines.next()?.is_none_or(|line| !line.whole) {
                    break;
                }
            }
            Ok(LinePlace(lines.place))
        };
        find().map_err(|error| self.error(id, &error))
    }

    pub(super) fn raw_lines(
        &self,
        id: &SessionId,
        from: LinePlace,
        upto: LinePlace,
    ) -> Result<(Vec<String>, LinePlace), LogError> {
        let read = || -> io::Result<(Vec<String>, LinePlace)> {
            let mut lines = Lines::from(File::open(self.path(id, "jsonl"))?, from.0)?;
            let (mut page, mut end) = (Vec::new(), from);
            let blobs = Blobs { store: self, id, bytes: Cell::new(0) };
            while end < upto && end.0 - from.0 + blobs.bytes.get() < PAGE_BYTES_MAX {
                let Some(line) = lines.next()? else { break };
                if !line.whole {
                    // It is just being written.
                    break;
                }
                end = LinePlace(line.place + line.length);
                let Some(text) = line.text() else { continue };
                match text.contains("\"$blob\"") {
                    true => page.extend(self.codec.restored(text, &|name| blobs.get(name))),
                    // A damaged line is no JSON and cannot be shown.
                    false if self.codec.line_time(text).is_some() => page.push(text.to_string()),
                    false => {}
                }
            }
            Ok((page, end))
        };
        match read() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((Vec::new(), from)),
            done => done.map_err(|error| self.error(id, &error)),
        }
    }
}

/// One page of entries on its way.
struct Reading<'a> {
    store: &'a Store,
    id: &'a SessionId,
    after: Seq,
    upto: Seq,
    /// The entry and the line that were read last.
    seq: Seq,
    line: u64,
    places: Vec<Place>,
}

impl Reading<'_> {
    fn page(&mut self, mut lines: Lines) -> io::Result<Vec<Arc<LogEntry>>> {
        let mut page = Vec::new();
        // Where the page's first entry begins.
        let mut began = lines.place;
        let blobs = Blobs { store: self.store, id: self.id, bytes: Cell::new(0) };
        while let Some(line) = lines.next()? {
            let (byte, before) = (line.place, self.line);
            self.line += 1;
            let Some(text) = line.text() else { continue };
            let entry = match self.entry(text, &blobs) {
                Line::Entry(entry) => entry,
                Line::Foreign { at, piece } => load::adopted(self.seq.next(), at, piece),
                // What is known of it is its number: who reads on is told, there, what is missing.
                Line::Damaged { seq: Some(seq), why } => gap(&*self.store.codec, seq, text, &why),
                Line::Damaged { seq: None, .. } => continue,
                Line::More { .. } | Line::Audit => continue,
            };
            if entry.seq > self.upto {
                break;
            }
            let fresh = entry.seq > self.seq;
            self.seq = entry.seq.max(self.seq);
            let place = Place { seq: entry.seq, line: before, byte };
            if fresh && place.counts_after(self.places.last()) {
                self.places.push(place);
            }
            if fresh && entry.seq > self.after {
                page.push(Arc::new(entry));
            } else if page.is_empty() {
                began = lines.place;
            }
            let bytes = lines.place - began + blobs.bytes.get();
            let full = page.len() >= PAGE_ENTRIES_MAX || bytes > PAGE_BYTES_MAX;
            if full && !page.is_empty() {
                break;
            }
        }
        Ok(page)
    }

    /// Texts in files of their own are read for entries of the page alone.
    fn entry(&self, text: &str, blobs: &Blobs<'_>) -> Line {
        let lacks = Cell::new(false);
        let without = self.store.codec.read(text, &|_| {
            lacks.set(true);
            None
        });
        match &without {
            Line::Damaged { seq, .. }
                if lacks.get() && seq.is_none_or(|seq| seq > self.after && seq <= self.upto) =>
            {
                self.store.codec.read(text, &|name| blobs.get(name))
            }
            _ => without,
        }
    }
}

/// Stands for an entry that cannot be read.
pub(in crate::log) fn gap(codec: &dyn Codec, seq: Seq, line: &str, why: &str) -> LogEntry {
    let text = format!("What stood here (entry {seq}) cannot be shown: {why}.").into();
    let (level, code) = (Level::Warning, DAMAGED_CODE.into());
    let at = codec.line_time(line).unwrap_or_default();
    LogEntry { seq, at, event: Event::Noticed { level, text, code } }
}

/// Files of their own that a page needed, and how much they held.
struct Blobs<'a> {
    store: &'a Store,
    id: &'a SessionId,
    bytes: Cell<u64>,
}

impl Blobs<'_> {
    fn get(&self, name: &str) -> Option<String> {
        let text = self.store.blob(self.id, name)?;
        self.bytes.set(self.bytes.get() + text.len() as u64);
        Some(text)
    }
}
