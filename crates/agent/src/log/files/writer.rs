//! Appends to one session's files.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use polyloop_session::{Event, Growth, LogEntry, Seq, SessionId, State};

use super::super::{Flush, Flushing, LineEncoder, LogError, Occasion, Writer};
use super::disk::Access;
use super::index::{self, Beside, Place, Source};
use super::journal::Journal;
use super::kept;
use super::lines::LINE_BYTES_MAX;
use super::{Store, lock, make_dir};

/// So much must have come in since the last index, and as much as that one held, before a new one
/// is written while the session goes on: so that all indexes together cost what the session does.
const INDEX_EVERY_BYTES: u64 = 256 * 1024;
/// What an entry takes in its file, so that most batches are put together in one piece of memory.
const ENTRY_BYTES: usize = 448;

type Held = Arc<Mutex<VecDeque<u64>>>;

/// Whether people have seen what is flushed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Already,
    /// The file was so long before it.
    NotYet {
        before: u64,
    },
}

pub(super) struct FileWriter {
    store: Arc<Store>,
    id: SessionId,
    file: Arc<File>,
    journal: Journal,
    encoder: Box<dyn LineEncoder>,
    last: Seq,
    /// Something failed that this writer cannot undo; the session must be opened anew.
    failed: Option<String>,
    flush_failed: Arc<AtomicBool>,
    /// Something was appended that is to be flushed soon.
    owes_flush: bool,
    /// Where each batch begins that nobody may be shown yet, the oldest first.
    held: Held,
    /// Files and folders that belong to the next flush.
    unflushed: Vec<File>,
    unflushed_names: Vec<PathBuf>,
    since: Since,
}

/// What came in since the last index, and what the next one needs to know besides.
pub(super) struct Since {
    pub bytes: u64,
    /// How long the session's file is by now.
    pub file_bytes: u64,
    /// How long that index was.
    pub index_bytes: u64,
    /// The conversation was made shorter, so that a new one is short and saves much.
    pub compacted: bool,
    pub turns: Vec<Seq>,
    pub beside: Beside,
}

impl FileWriter {
    pub(super) fn new(
        store: Arc<Store>,
        id: SessionId,
        file: File,
        journal: Journal,
        encoder: Box<dyn LineEncoder>,
        last: Seq,
        since: Since,
    ) -> FileWriter {
        FileWriter {
            store,
            id,
            file: Arc::new(file),
            journal,
            encoder,
            last,
            failed: None,
            flush_failed: Arc::default(),
            owes_flush: false,
            held: Held::default(),
            unflushed: Vec::new(),
            unflushed_names: Vec::new(),
            since,
        }
    }

    fn usable(&self) -> Result<(), LogError> {
        if self.flush_failed.load(Ordering::Acquire) {
            // Whoever waits for that flush may not come to hear of it any more.
            take_back(&self.store, &self.file, &self.held);
            self.store.may_go_on(&self.id)?;
        }
        match &self.failed {
            Some(why) => Err(LogError::store(format!("session {}", self.id), why)),
            None => Ok(()),
        }
    }

    /// One write for all of it; what does not fit is taken back. Returns how long the file was.
    fn write(&mut self, text: &str) -> io::Result<u64> {
        let before = self.since.file_bytes;
        if let Err(error) = self.store.disk.write(&self.file, text.as_bytes()) {
            self.store.disk.cut(&self.file, before)?;
            return Err(error);
        }
        self.since.file_bytes += text.len() as u64;
        Ok(before)
    }

    fn blobs(&mut self, blobs: &[(String, String)]) -> io::Result<()> {
        if blobs.is_empty() {
            return Ok(());
        }
        let dir = self.store.path(&self.id, "blobs");
        make_dir(&dir)?;
        for (name, text) in blobs {
            let file = self.store.disk.open(&dir.join(name), Access::MakeAnew)?;
            self.store.disk.write(&file, text.as_bytes())?;
            self.since.bytes += text.len() as u64;
            self.unflushed.push(file);
        }
        // Their names too must survive the machine.
        self.unflushed_names = vec![dir, self.store.dir.clone()];
        Ok(())
    }

    /// Returns how long the file was before.
    fn add(&mut self, entries: &[Arc<LogEntry>]) -> io::Result<u64> {
        let mut text = String::with_capacity(entries.len() * ENTRY_BYTES);
        let (mut count, mut places) = (0, Vec::with_capacity(entries.len()));
        for entry in entries {
            let lines = self.encoder.lines(entry);
            self.blobs(&lines.blobs)?;
            places.push(Place { seq: entry.seq, line: count, byte: text.len() as u64 });
            count += lines.lines.len() as u64;
            if lines.lines.iter().any(|line| line.len() as u64 > LINE_BYTES_MAX) {
                return Err(io::Error::other("it is too long for one line of the session's file"));
            }
            lines.lines.iter().for_each(|line| text.push_str(line));
        }
        let before = self.write(&text)?;
        self.since.bytes += text.len() as u64;
        for entry in entries {
            self.since.beside.take(entry);
            match &entry.event {
                event if event.is_beginning() => self.since.turns.push(entry.seq),
                Event::Compacted { .. } => self.since.compacted = true,
                _ => {}
            }
        }
        if let Some(known) = lock(&self.store.known).get_mut(&self.id) {
            if known.summary.lines == 0 {
                known.summary.start = entries.first().map_or(known.summary.start, |e| e.at);
            }
            known.bytes = before + text.len() as u64;
            for Place { seq, line, byte } in places {
                let line = known.summary.lines + line;
                known.appended(Place { seq, line, byte: before + byte });
            }
            known.summary.lines += count;
            for entry in entries {
                known.summary.named.take(&entry.event);
                known.summary.spent.take(&entry.event);
                known.summary.standing.take(entry);
            }
            known.summary.last = entries.last().map_or(known.summary.last, |entry| entry.at);
        }
        Ok(before)
    }

    /// The text of an index as of now; `None` where there is nothing to gain.
    fn index(&self, state: &State, occasion: Occasion) -> Option<String> {
        // An index is made between turns: the line encoder must see a turn from its start. How far an
        // interrupted search had come is folded from the log, from the index before.
        let at_rest = self.failed.is_none() && state.turn().is_none() && state.may_be_kept();
        if !at_rest || state.last_seq() != self.last {
            return None;
        }
        let due = match occasion {
            Occasion::TurnEnded => {
                let much = self.since.bytes >= self.since.index_bytes.max(INDEX_EVERY_BYTES);
                much || self.since.compacted
            }
            Occasion::Leaving => self.since.bytes > 0,
        };
        let (summary, bytes, places) = {
            let all = lock(&self.store.known);
            let known = all.get(&self.id)?;
            if !due || known.bytes < self.store.index_bytes_min {
                return None;
            }
            (known.summary.clone(), known.bytes, known.places.clone().unwrap_or_default())
        };
        let Since { turns, beside, .. } = &self.since;
        let (summary, state) = (&summary, Some((state, beside)));
        let source = Source { summary, bytes, places: &places, turns, state };
        index::text(&self.file, &source).ok()
    }

    /// Begins to flush what was written; who waits for it learns what came of it.
    fn flush(&mut self, seen: Seen) -> Flushing {
        self.owes_flush = false;
        if let Seen::NotYet { before } = seen {
            lock(&self.held).push_back(before);
        }
        let (file, others) = (self.file.clone(), std::mem::take(&mut self.unflushed));
        let names = std::mem::take(&mut self.unflushed_names);
        let (store, id, failed) = (self.store.clone(), self.id.clone(), self.flush_failed.clone());
        let work = move || {
            let flushed = (|| {
                others.iter().try_for_each(|file| store.disk.flush(file))?;
                names.iter().try_for_each(|dir| store.disk.flush_names(dir))?;
                store.disk.flush(&file)
            })();
            let Err(error) = flushed else { return Ok(()) };
            // After a failed flush the kernel may have dropped the data: asking again proves
            // nothing. That it failed is kept also if nobody waits for it.
            store.flush_failed(&id, &error);
            failed.store(true, Ordering::Release);
            store.may_go_on(&id)
        };
        let flushed = tokio::task::spawn_blocking(work);
        let (store, file, id) = (self.store.clone(), self.file.clone(), self.id.clone());
        let held = self.held.clone();
        async move {
            let done = flushed.await.unwrap_or_else(|error| {
                let error = io::Error::other(error);
                store.flush_failed(&id, &error);
                store.may_go_on(&id)
            });
            match &done {
                Err(_) => take_back(&store, &file, &held),
                Ok(()) if seen != Seen::Already => _ = lock(&held).pop_front(),
                Ok(()) => {}
            }
            done
        }
        .boxed()
    }
}

/// What nobody was shown is taken back, as far as that goes.
fn take_back(store: &Store, file: &File, held: &Held) {
    if let Some(before) = lock(held).front() {
        let _ = store.disk.cut(file, *before);
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        // Whoever fails or panics has told people of it all the same.
        if self.owes_flush && tokio::runtime::Handle::try_current().is_ok() {
            drop(self.flush(Seen::Already));
        }
        lock(&self.store.known).release(&self.id);
    }
}

impl Writer for FileWriter {
    fn append_ahead<'a>(
        &'a mut self,
        expected_last: Seq,
        entries: &'a [Arc<LogEntry>],
        flush: Flush,
    ) -> BoxFuture<'a, Result<Option<Flushing>, LogError>> {
        async move {
            self.usable()?;
            if self.last != expected_last {
                return Err(LogError::Conflict { expected: expected_last, found: self.last });
            }
            let before = match self.add(entries) {
                Ok(before) => before,
                Err(error) => {
                    // The encoder has seen entries that the file does not hold.
                    self.failed = Some(error.to_string());
                    return Err(self.store.error(&self.id, &error));
                }
            };
            self.last = entries.last().map_or(self.last, |entry| entry.seq);
            // A line must not reach the disk before a text that it names.
            let flush = if self.unflushed.is_empty() { flush } else { Flush::Disk };
            Ok(match flush {
                Flush::Disk => Some(self.flush(Seen::NotYet { before })),
                Flush::Soon => {
                    self.owes_flush = true;
                    None
                }
                Flush::Process => None,
            })
        }
        .boxed()
    }

    fn flush_owed(&mut self) -> Option<Flushing> {
        self.owes_flush.then(|| self.flush(Seen::Already))
    }

    fn confirmed(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        async { Ok(()) }.boxed() // No other process has the session.
    }

    fn grow<'a>(&'a mut self, growths: &'a [Growth]) -> BoxFuture<'a, Result<(), LogError>> {
        async move {
            self.usable()?;
            self.journal.grow(growths).map_err(|error| self.store.error(&self.id, &error))
        }
        .boxed()
    }

    fn end_growth(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        async move { self.journal.end().map_err(|error| self.store.error(&self.id, &error)) }
            .boxed()
    }

    fn forget_growth(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        async move { self.journal.clear().map_err(|error| self.store.error(&self.id, &error)) }
            .boxed()
    }

    fn audit<'a>(&'a mut self, line: &'a str) -> BoxFuture<'a, Result<(), LogError>> {
        async move {
            self.usable()?;
            let before = self.write(line).map_err(|error| self.store.error(&self.id, &error))?;
            if let Some(known) = lock(&self.store.known).get_mut(&self.id) {
                known.bytes = before + line.len() as u64;
                known.summary.lines += 1;
            }
            Ok(())
        }
        .boxed()
    }

    fn keep_content<'a>(
        &'a mut self,
        hash: &'a str,
        content: &'a Bytes,
    ) -> BoxFuture<'a, Result<bool, LogError>> {
        async move {
            self.usable()?;
            let kept = kept::keep(&self.store, &self.id, hash, content);
            let kept = kept.map_err(|error| self.store.error(&self.id, &error))?;
            let fits = kept.is_some();
            self.unflushed.extend(kept.unwrap_or_default());
            Ok(fits)
        }
        .boxed()
    }

    fn keep<'a>(&'a mut self, state: &'a State, occasion: Occasion) -> BoxFuture<'a, ()> {
        async move {
            let Some(text) = self.index(state, occasion) else { return };
            let (disk, path) = (self.store.disk.clone(), self.store.path(&self.id, "index"));
            let index_bytes = text.len() as u64;
            let write = move || index::write(&*disk, &path, &text);
            match tokio::task::spawn_blocking(write).await {
                Ok(Ok(())) => {
                    (self.since.bytes, self.since.compacted) = (0, false);
                    self.since.index_bytes = index_bytes;
                }
                // Without one the session's file is read from an earlier place, or whole.
                failed => tracing::debug!(session = %self.id, ?failed, "no index"),
            }
        }
        .boxed()
    }
}
