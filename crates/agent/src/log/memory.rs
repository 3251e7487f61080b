//! Sessions that live as long as the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use polyloop_session::{Growth, Live, LogEntry, Seq, SessionId, State, Text, Timestamp};

use super::fork::{Fork, ForkedAt};
use super::{
    Codec, Flush, Flushing, Folded, KEPT_BYTES_MAX, LinePlace, Log, LogError, Named, Occasion,
    OpenMode, Opened, Spent, Standing, Summary, Writer,
};

mod fork;

const PAGE_ENTRIES_MAX: usize = 256;
const PAGE_LINES_MAX: usize = 256;

type Kept = Arc<Mutex<Session>>;

pub struct Memory {
    codec: Arc<dyn Codec>,
    sessions: Mutex<HashMap<SessionId, Kept>>,
}

#[derive(Default)]
struct Session {
    entries: Vec<Arc<LogEntry>>,
    lines: Vec<String>,
    live: Live,
    /// Contents of files before edits, by their hash.
    kept: HashMap<Text, Bytes>,
    named: Named,
    spent: Spent,
    standing: Standing,
}

struct MemoryWriter {
    session: Kept,
    codec: Arc<dyn Codec>,
    encoder: Box<dyn super::LineEncoder>,
}

/// A panic elsewhere leaves whole entries behind, so the data stays usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    pub fn new(codec: Arc<dyn Codec>) -> Memory {
        Memory { codec, sessions: Mutex::default() }
    }

    /// Nothing is left of the session; nobody may have it open.
    pub fn remove(&self, id: &SessionId) {
        lock(&self.sessions).remove(id);
    }

    fn get(&self, id: &SessionId) -> Option<Kept> {
        lock(&self.sessions).get(id).cloned()
    }

    fn opened(&self, id: &SessionId, mode: OpenMode) -> Option<Opened> {
        let session = match (self.get(id), mode) {
            (Some(session), _) => session,
            (None, OpenMode::Existing) => return None,
            (None, OpenMode::OrCreate) => {
                lock(&self.sessions).entry(id.clone()).or_default().clone()
            }
        };
        let mut encoder = self.codec.encoder(id);
        let mut folded = Folded::default();
        let live = {
            let kept = lock(&session);
            for entry in &kept.entries {
                folded.take(entry);
                encoder.lines(entry);
            }
            kept.live.clone()
        };
        let codec = self.codec.clone();
        let writer = Box::new(MemoryWriter { session, codec, encoder });
        Some(Opened { writer, folded, live })
    }

    fn page(&self, id: &SessionId, after: Seq, upto: Seq) -> Vec<Arc<LogEntry>> {
        let Some(session) = self.get(id) else { return Vec::new() };
        let kept = lock(&session);
        let from = kept.entries.partition_point(|entry| entry.seq <= after);
        let wanted = kept.entries[from..].iter().take_while(|entry| entry.seq <= upto);
        wanted.take(PAGE_ENTRIES_MAX).cloned().collect()
    }

    fn summarise(&self, id: &SessionId) -> Option<Summary> {
        let session = self.get(id)?;
        let kept = lock(&session);
        let (first, last) = (kept.entries.first()?, kept.entries.last()?);
        let lines = kept.lines.len() as u64;
        Some(Summary {
            id: id.clone(),
            start: first.at,
            last: last.at,
            lines,
            named: kept.named.clone(),
            spent: kept.spent,
            standing: kept.standing.clone(),
        })
    }
}

impl Log for Memory {
    fn open<'a>(
        &'a self,
        id: &'a SessionId,
        mode: OpenMode,
    ) -> BoxFuture<'a, Result<Option<Opened>, LogError>> {
        async move { Ok(self.opened(id, mode)) }.boxed()
    }

    fn read<'a>(
        &'a self,
        id: &'a SessionId,
        after: Seq,
        upto: Seq,
    ) -> BoxFuture<'a, Result<Vec<Arc<LogEntry>>, LogError>> {
        async move { Ok(self.page(id, after, upto)) }.boxed()
    }

    fn lines<'a>(
        &'a self,
        id: &'a SessionId,
        from: LinePlace,
        upto: LinePlace,
    ) -> BoxFuture<'a, Result<(Vec<String>, LinePlace), LogError>> {
        async move {
            let Some(session) = self.get(id) else { return Ok((Vec::new(), from)) };
            let kept = lock(&session);
            let at = |place: LinePlace| {
                usize::try_from(place.0).unwrap_or(usize::MAX).min(kept.lines.len())
            };
            let (from, upto) = (at(from), at(upto));
            let lines = kept.lines[from..upto.max(from)].iter();
            let page: Vec<String> = lines.take(PAGE_LINES_MAX).cloned().collect();
            let next = LinePlace((from + page.len()) as u64);
            Ok((page, next))
        }
        .boxed()
    }

    fn line_place<'a>(
        &'a self,
        id: &'a SessionId,
        count: u64,
    ) -> BoxFuture<'a, Result<LinePlace, LogError>> {
        async move {
            let lines = self.get(id).map_or(0, |session| lock(&session).lines.len() as u64);
            Ok(LinePlace(count.min(lines)))
        }
        .boxed()
    }

    fn summary<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Summary>, LogError>> {
        async move { Ok(self.summarise(id)) }.boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Summary>, LogError>> {
        async move {
            let ids: Vec<SessionId> = lock(&self.sessions).keys().cloned().collect();
            Ok(ids.iter().filter_map(|id| self.summarise(id)).collect())
        }
        .boxed()
    }

    fn archive<'a>(
        &'a self,
        id: &'a SessionId,
        _at: Timestamp,
    ) -> BoxFuture<'a, Result<bool, LogError>> {
        async move { Ok(lock(&self.sessions).remove(id).is_some()) }.boxed()
    }

    fn fork<'a>(&'a self, fork: &'a Fork) -> BoxFuture<'a, Result<ForkedAt, LogError>> {
        async move { self.forked(fork) }.boxed()
    }

    fn kept_content<'a>(
        &'a self,
        id: &'a SessionId,
        hash: &'a str,
    ) -> BoxFuture<'a, Result<Option<Bytes>, LogError>> {
        async move { Ok(self.get(id).and_then(|session| lock(&session).kept.get(hash).cloned())) }
            .boxed()
    }
}

impl MemoryWriter {
    fn add(&mut self, entry: &Arc<LogEntry>) {
        let mut kept = lock(&self.session);
        // Very long texts stay in the line: there are no files to put them in.
        let lines = self.encoder.lines(entry);
        let blob = |name: &str| {
            let found = lines.blobs.iter().find(|(blob, _)| blob == name);
            found.map(|(_, text)| text.clone())
        };
        for line in &lines.lines {
            let whole = match lines.blobs.is_empty() {
                true => None,
                false => self.codec.restored(line, &blob),
            };
            let line = whole.as_deref().unwrap_or(line);
            kept.lines.push(line.trim_end().to_string());
        }
        kept.named.take(&entry.event);
        kept.spent.take(&entry.event);
        kept.standing.take(entry);
        kept.entries.push(entry.clone());
    }
}

impl Writer for MemoryWriter {
    fn append_ahead<'a>(
        &'a mut self,
        expected_last: Seq,
        entries: &'a [Arc<LogEntry>],
        _flush: Flush,
    ) -> BoxFuture<'a, Result<Option<Flushing>, LogError>> {
        async move {
            let found = lock(&self.session).entries.last().map_or(Seq::NONE, |entry| entry.seq);
            if found != expected_last {
                return Err(LogError::Conflict { expected: expected_last, found });
            }
            entries.iter().for_each(|entry| self.add(entry));
            Ok(None)
        }
        .boxed()
    }

    fn confirmed(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        async { Ok(()) }.boxed() // No other process has the session.
    }

    fn grow<'a>(&'a mut self, growths: &'a [Growth]) -> BoxFuture<'a, Result<(), LogError>> {
        async move {
            let mut kept = lock(&self.session);
            growths.iter().for_each(|growth| kept.live.grow(growth));
            Ok(())
        }
        .boxed()
    }

    fn forget_growth(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        async move {
            lock(&self.session).live = Live::default();
            Ok(())
        }
        .boxed()
    }

    fn audit<'a>(&'a mut self, line: &'a str) -> BoxFuture<'a, Result<(), LogError>> {
        async move {
            lock(&self.session).lines.push(line.trim_end().to_string());
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
            let mut session = lock(&self.session);
            let bytes: u64 = session.kept.values().map(|content| content.len() as u64).sum();
            let fits = bytes + content.len() as u64 <= KEPT_BYTES_MAX;
            if fits {
                session.kept.insert(hash.into(), content.clone());
            }
            Ok(fits)
        }
        .boxed()
    }

    fn keep<'a>(&'a mut self, _: &'a State, _: Occasion) -> BoxFuture<'a, ()> {
        // It is all in memory; folding it is what there is to do.
        std::future::ready(()).boxed()
    }
}
