//! What a replay of a session would carry, as pages from its end backwards.
//!
//! An encoder only goes forwards, and only from where nothing is open. So a page is made of chunks,
//! each from such a place on, the newest chunk first; of a chunk only the end is kept that has room
//! in the page. Never reads anything: whoever asks for a page brings the entries.

use std::collections::VecDeque;

use bytes::Bytes;
use polyloop_session::{ItemId, LogEntry, Seq, SessionId};

use crate::{Dialect, Frame, Own, View};

/// Renders the entries of one chunk, in order.
pub struct Renderer {
    view: View,
    own: Own,
}

impl Renderer {
    /// Of what comes after the entry `from`, which must not be inside a turn. What `open` items
    /// have shown so far is left to whoever attaches, who is sent it from its start.
    pub fn new(dialect: &dyn Dialect, session: &SessionId, from: Seq, open: &[ItemId]) -> Renderer {
        let mut view = View::new(dialect, session, from);
        view.hold(open);
        Renderer { view, own: Own::default() }
    }

    /// Takes in an entry from further back, which a later one names.
    pub fn recall(&mut self, entry: &LogEntry) {
        self.view.recall(entry);
    }

    /// The frames of an entry, as a connection that was there from the start has them, without
    /// cursors: nobody goes on from inside a page.
    pub fn see(&mut self, entry: &LogEntry) -> Vec<Bytes> {
        let frames = self.view.see_entry(entry, 0);
        frames.into_iter().map(|frame| without_cursor(&self.own.finish(frame))).collect()
    }
}

fn without_cursor(frame: &Frame) -> Bytes {
    const CURSOR: &[u8] = b",\"cursor\":\"";
    let stamp_at = frame.stamp_at.unwrap_or(frame.text.len());
    let stamp = frame.text.get(stamp_at..).unwrap_or_default();
    match stamp.windows(CURSOR.len()).position(|part| part == CURSOR) {
        Some(at) => [&frame.text[..stamp_at + at], b"}"].concat().into(),
        None => frame.text.clone(),
    }
}

/// Whole entries with their frames, oldest first, as many as there is room for.
pub struct Page {
    entries: VecDeque<(Seq, Vec<Bytes>)>,
    frames: usize,
    bytes: usize,
    frames_max: usize,
    bytes_max: usize,
    full: bool,
}

impl Page {
    pub fn new(frames_max: usize, bytes_max: usize) -> Page {
        let (entries, frames, bytes, full) = (VecDeque::new(), 0, 0, false);
        Page { entries, frames, bytes, frames_max, bytes_max, full }
    }

    /// Nothing older has room.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// A chunk that ends where the page begins so far.
    pub fn older(&self) -> Chunk {
        let frames_max = self.frames_max.saturating_sub(self.frames);
        let bytes_max = self.bytes_max.saturating_sub(self.bytes);
        // The newest entry is there in any case: a page brings whoever asks for it further.
        let entries_min = usize::from(self.entries.is_empty());
        Chunk { page: Page::new(frames_max, bytes_max), entries_min }
    }

    /// Takes what is kept of a chunk.
    pub fn take(&mut self, chunk: Chunk) {
        let Page { entries, frames, bytes, full, .. } = chunk.page;
        entries.into_iter().rev().for_each(|entry| self.entries.push_front(entry));
        self.frames += frames;
        self.bytes += bytes;
        self.full = full || self.frames >= self.frames_max || self.bytes >= self.bytes_max;
    }

    /// The first entry of the page.
    pub fn first(&self) -> Option<Seq> {
        self.entries.front().map(|(seq, _)| *seq)
    }

    pub fn frames(&self) -> impl Iterator<Item = &Bytes> {
        self.entries.iter().flat_map(|(_, frames)| frames)
    }
}

/// The end of a chunk for which a page has room.
pub struct Chunk {
    page: Page,
    entries_min: usize,
}

impl Chunk {
    pub fn push(&mut self, seq: Seq, frames: Vec<Bytes>) {
        if frames.is_empty() {
            return;
        }
        let page = &mut self.page;
        page.frames += frames.len();
        page.bytes += size(&frames);
        page.entries.push_back((seq, frames));
        while page.entries.len() > self.entries_min
            && (page.frames > page.frames_max || page.bytes > page.bytes_max)
        {
            let Some((_, frames)) = page.entries.pop_front() else { return };
            page.frames -= frames.len();
            page.bytes -= size(&frames);
            page.full = true;
        }
    }
}

fn size(frames: &[Bytes]) -> usize {
    frames.iter().map(Bytes::len).sum()
}
