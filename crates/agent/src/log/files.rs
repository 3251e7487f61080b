//! Sessions in files: `<id>.jsonl` for the entries, `<id>.live` for growth of open items,
//! `<id>.blobs/` for very long texts.
//!
//! A batch goes out in one write before anyone sees it, so it survives the process; batches that
//! must survive the machine are flushed too. One server a store, by a lock on `.lock`. A torn last
//! line is cut off, other damaged lines are skipped and reported.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use polyloop_session::{LogEntry, Seq, SessionId, Timestamp};

use super::{Codec, Fork, ForkedAt, Line, LinePlace, Log, LogError, OpenMode, Opened, Summary};

mod fork;
mod journal;
mod kept;
mod load;
mod writer;

/// Conversations are their user's own.
const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;
const PAGE_ENTRIES_MAX: usize = 256;
const PAGE_BYTES_MAX: u64 = 1024 * 1024;
/// A longer line cannot be one of ours: long texts stand in files of their own.
const LINE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// How many entries lie between two places that the index remembers.
const INDEX_ENTRIES: u64 = 64;

pub struct Files {
    store: Arc<Store>,
    _lock: File,
}

struct Store {
    dir: PathBuf,
    codec: Arc<dyn Codec>,
    /// What is known of sessions that were opened or listed.
    known: Mutex<HashMap<SessionId, Known>>,
}

#[derive(Clone)]
struct Known {
    summary: Summary,
    /// The file's length when the summary was made; a file of another length is read again.
    bytes: u64,
    /// Where some entries begin, in order.
    index: Vec<(Seq, u64)>,
    /// A writer has the session open and keeps this up to date.
    leased: bool,
}

fn make_dir(dir: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Files {
    /// Opens a store, making the folder if needed. Fails when it cannot be written or when another
    /// server has it.
    pub fn open(dir: &Path, codec: Arc<dyn Codec>) -> Result<Files, LogError> {
        let what = || format!("session store {}", dir.display());
        make_dir(dir).map_err(|error| LogError::store(what(), error))?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(FILE_MODE)
            .open(dir.join(".lock"))
            .map_err(|error| LogError::store(what(), error))?;
        if lock.try_lock().is_err() {
            return Err(LogError::store(what(), "another server is using it"));
        }
        fork::sweep(dir).map_err(|error| LogError::store(what(), error))?;
        let store = Store { dir: dir.to_path_buf(), codec, known: Mutex::default() };
        Ok(Files { store: Arc::new(store), _lock: lock })
    }

    async fn blocking<T: Send + 'static>(
        &self,
        id: Option<&SessionId>,
        work: impl FnOnce(&Arc<Store>, Option<&SessionId>) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let (store, id) = (self.store.clone(), id.cloned());
        let done = tokio::task::spawn_blocking(move || work(&store, id.as_ref())).await;
        done.unwrap_or_else(|error| Err(LogError::store("session store", error)))
    }
}

impl Store {
    fn path(&self, id: &SessionId, kind: &str) -> PathBuf {
        self.dir.join(format!("{id}.{kind}"))
    }

    fn error(&self, id: &SessionId, error: &io::Error) -> LogError {
        LogError::store(format!("session {id}"), error)
    }

    /// The text of a file of its own; names are ours, so anything else is not looked for.
    fn blob(&self, id: &SessionId, name: &str) -> Option<String> {
        let ours = name.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        if !ours {
            return None;
        }
        std::fs::read_to_string(self.path(id, "blobs").join(name)).ok()
    }

    fn known(&self, id: &SessionId) -> Result<Option<Known>, LogError> {
        let path = self.path(id, "jsonl");
        let bytes = match std::fs::metadata(&path) {
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.error(id, &error)),
        };
        if let Some(known) = lock(&self.known).get(id)
            && (known.leased || known.bytes == bytes)
        {
            return Ok(Some(known.clone()));
        }
        let scanned = self.scan(id, &path).map_err(|error| self.error(id, &error))?;
        let mut all = lock(&self.known);
        if let Some(known) = all.get(id).filter(|known| known.leased) {
            // It was opened in the meantime.
            return Ok(Some(known.clone()));
        }
        all.insert(id.clone(), scanned.clone());
        Ok(Some(scanned))
    }

    /// What a list needs to know of a file: how many lines, and when the first and the last were
    /// written. Reads no event.
    fn scan(&self, id: &SessionId, path: &Path) -> io::Result<Known> {
        let mut lines = Lines::new(File::open(path)?);
        let (mut start, mut last, mut count) = (None, String::new(), 0);
        while let Some(line) = lines.next()? {
            count += 1;
            let Some(text) = line.text().filter(|text| !text.is_empty()) else { continue };
            if start.is_none() {
                start = self.codec.line_time(text);
            }
            last.clear();
            last.push_str(text);
        }
        let start = start.unwrap_or_default();
        let last = self.codec.line_time(&last).unwrap_or(start);
        let summary = Summary { id: id.clone(), start, last, lines: count };
        Ok(Known { summary, bytes: lines.place, index: Vec::new(), leased: false })
    }

    fn page(&self, id: &SessionId, after: Seq, upto: Seq) -> Result<Vec<Arc<LogEntry>>, LogError> {
        let Some(known) = self.known(id)? else { return Ok(Vec::new()) };
        let before = known.index.partition_point(|(seq, _)| *seq <= after.next());
        let (mut seq, place) = match before.checked_sub(1).and_then(|at| known.index.get(at)) {
            Some((seq, place)) => (seq.before(), *place),
            None => (Seq::NONE, 0),
        };
        let mut places = Vec::new();
        let mut read = || -> io::Result<Vec<Arc<LogEntry>>> {
            let mut file = File::open(self.path(id, "jsonl"))?;
            file.seek(SeekFrom::Start(place))?;
            let mut lines = Lines::new(file);
            // Bytes that were only passed over on the way to the first entry.
            let mut passed = 0;
            let mut page = Vec::new();
            let blobs = Blobs { store: self, id, bytes: Cell::new(0) };
            while let Some(line) = lines.next()? {
                let start = place + line.place;
                let Some(text) = line.text() else { continue };
                let entry = match self.codec.read(text, &|name| blobs.get(name)) {
                    Line::Entry(entry) => entry,
                    Line::Foreign { at, piece } => load::adopted(seq.next(), at, piece),
                    Line::Damaged { seq: damaged, .. } => {
                        seq = seq.max(damaged.unwrap_or(seq));
                        continue;
                    }
                    Line::More { .. } | Line::Audit => continue,
                };
                if entry.seq > upto {
                    break;
                }
                let fresh = entry.seq > seq;
                seq = entry.seq.max(seq);
                if fresh && entry.seq.0 % INDEX_ENTRIES == 1 {
                    places.push((entry.seq, start));
                }
                if fresh && entry.seq > after {
                    page.push(Arc::new(entry));
                } else if page.is_empty() {
                    passed = lines.place;
                    blobs.bytes.set(0);
                }
                let bytes = lines.place - passed + blobs.bytes.get();
                let full = page.len() >= PAGE_ENTRIES_MAX || bytes > PAGE_BYTES_MAX;
                if full && !page.is_empty() {
                    break;
                }
            }
            Ok(page)
        };
        let page = read().map_err(|error| self.error(id, &error))?;
        self.learn(id, known.bytes, places);
        Ok(page)
    }

    /// Remembers places in a file that nobody has open, so that the next page begins there.
    fn learn(&self, id: &SessionId, bytes: u64, places: Vec<(Seq, u64)>) {
        let mut all = lock(&self.known);
        let unchanged = all.get_mut(id).filter(|known| !known.leased && known.bytes == bytes);
        let Some(known) = unchanged else { return };
        for (seq, place) in places {
            if known.index.last().is_none_or(|(last, _)| *last < seq) {
                known.index.push((seq, place));
            }
        }
    }

    fn raw_lines(
        &self,
        id: &SessionId,
        from: LinePlace,
    ) -> Result<(Vec<String>, LinePlace), LogError> {
        let read = || -> io::Result<(Vec<String>, LinePlace)> {
            let mut file = File::open(self.path(id, "jsonl"))?;
            file.seek(SeekFrom::Start(from.0))?;
            let mut lines = Lines::new(file);
            let mut page = Vec::new();
            let mut end = from;
            let blobs = Blobs { store: self, id, bytes: Cell::new(0) };
            while lines.place + blobs.bytes.get() < PAGE_BYTES_MAX {
                let Some(line) = lines.next()? else { break };
                if !line.whole {
                    // It is just being written.
                    break;
                }
                end = LinePlace(from.0 + line.place + line.length);
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

    fn archive(&self, id: &SessionId, at: Timestamp) -> Result<bool, LogError> {
        let name = free_name(&self.dir, &format!(".{id}-{}", file_time(at)), "jsonl");
        let aside = |kind: &str| -> io::Result<bool> {
            match std::fs::rename(self.path(id, kind), self.dir.join(format!("{name}.{kind}"))) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
            }
        };
        let moved = (|| {
            let moved = aside("jsonl")?;
            aside("blobs")?;
            aside("live")?;
            Ok(moved)
        })();
        lock(&self.known).remove(id);
        moved.map_err(|error| self.error(id, &error))
    }

    fn list(&self) -> Result<Vec<Summary>, LogError> {
        let failed =
            |error| LogError::store(format!("session store {}", self.dir.display()), error);
        let mut all = Vec::new();
        for file in std::fs::read_dir(&self.dir).map_err(failed)? {
            let name = file.map_err(failed)?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".jsonl"));
            let Some(id) = id.and_then(|id| SessionId::parse(id).ok()) else { continue };
            match self.known(&id) {
                Ok(known) => all.extend(known.map(|known| known.summary)),
                // One that cannot be read does not hide the others.
                Err(error) => tracing::warn!(session = %id, %error, "cannot be listed"),
            }
        }
        Ok(all)
    }
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

/// A time that is safe in file names everywhere: colons become dashes.
pub fn file_time(at: Timestamp) -> String {
    let time = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    format!("{time:.3}").replace(':', "-")
}

/// A name without its ending that nobody has; two may be put away in the same moment.
pub(crate) fn free_name(dir: &Path, name: &str, ending: &str) -> String {
    let mut free = name.to_owned();
    let mut count = 1;
    while dir.join(format!("{free}.{ending}")).exists() {
        count += 1;
        free = format!("{name}-{count}");
    }
    free
}

impl Log for Files {
    fn open<'a>(
        &'a self,
        id: &'a SessionId,
        mode: OpenMode,
    ) -> BoxFuture<'a, Result<Option<Opened>, LogError>> {
        let work = move |store: &Arc<Store>, id: Option<&SessionId>| match id {
            Some(id) => load::open(store, id, mode),
            None => Ok(None),
        };
        async move { self.blocking(Some(id), work).await }.boxed()
    }

    fn read<'a>(
        &'a self,
        id: &'a SessionId,
        after: Seq,
        upto: Seq,
    ) -> BoxFuture<'a, Result<Vec<Arc<LogEntry>>, LogError>> {
        let work = move |store: &Arc<Store>, id: Option<&SessionId>| match id {
            Some(id) if after < upto => store.page(id, after, upto),
            _ => Ok(Vec::new()),
        };
        async move { self.blocking(Some(id), work).await }.boxed()
    }

    fn lines<'a>(
        &'a self,
        id: &'a SessionId,
        from: LinePlace,
    ) -> BoxFuture<'a, Result<(Vec<String>, LinePlace), LogError>> {
        let work = move |store: &Arc<Store>, id: Option<&SessionId>| match id {
            Some(id) => store.raw_lines(id, from),
            None => Ok((Vec::new(), from)),
        };
        async move { self.blocking(Some(id), work).await }.boxed()
    }

    fn summary<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Summary>, LogError>> {
        let work = |store: &Arc<Store>, id: Option<&SessionId>| match id {
            Some(id) => Ok(store.known(id)?.map(|known| known.summary)),
            None => Ok(None),
        };
        async move { self.blocking(Some(id), work).await }.boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Summary>, LogError>> {
        async move { self.blocking(None, |store, _| store.list()).await }.boxed()
    }

    fn archive<'a>(
        &'a self,
        id: &'a SessionId,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool, LogError>> {
        let work = move |store: &Arc<Store>, id: Option<&SessionId>| match id {
            Some(id) => store.archive(id, at),
            None => Ok(false),
        };
        async move { self.blocking(Some(id), work).await }.boxed()
    }

    fn fork<'a>(&'a self, fork: &'a Fork) -> BoxFuture<'a, Result<ForkedAt, LogError>> {
        let fork = fork.clone();
        async move { self.blocking(None, move |store, _| fork::fork(store, &fork)).await }.boxed()
    }

    fn kept_content<'a>(
        &'a self,
        id: &'a SessionId,
        hash: &'a str,
    ) -> BoxFuture<'a, Result<Option<Bytes>, LogError>> {
        let hash = hash.to_owned();
        let work = move |store: &Arc<Store>, id: Option<&SessionId>| match id {
            Some(id) => kept::read(store, id, &hash).map_err(|error| store.error(id, &error)),
            None => Ok(None),
        };
        async move { self.blocking(Some(id), work).await }.boxed()
    }
}

/// Lines of a file in a stream, each with its place; a line that is too long is passed over.
struct Lines {
    reader: BufReader<File>,
    /// Bytes read so far.
    place: u64,
    buffer: Vec<u8>,
}

struct RawLine<'a> {
    place: u64,
    length: u64,
    bytes: &'a [u8],
    /// It ends with a newline.
    whole: bool,
    too_long: bool,
}

impl RawLine<'_> {
    /// The line without its end and a byte order mark; `None` when it is no text.
    fn text(&self) -> Option<&str> {
        if self.too_long {
            return None;
        }
        let text = std::str::from_utf8(self.bytes).ok()?;
        Some(text.trim_start_matches('\u{feff}').trim_end_matches(['\n', '\r']))
    }
}

impl Lines {
    fn new(file: File) -> Lines {
        Lines { reader: BufReader::with_capacity(64 * 1024, file), place: 0, buffer: Vec::new() }
    }

    fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        use std::io::Read;
        let place = self.place;
        self.buffer.clear();
        let mut read =
            (&mut self.reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut self.buffer)? as u64;
        if read == 0 {
            return Ok(None);
        }
        let mut whole = self.buffer.last() == Some(&b'\n');
        let too_long = !whole && read == LINE_BYTES_MAX;
        if too_long {
            self.buffer.clear();
            let mut rest = 1;
            while !whole && rest > 0 {
                self.buffer.clear();
                let part = (&mut self.reader).take(LINE_BYTES_MAX);
                rest = { part }.read_until(b'\n', &mut self.buffer)? as u64;
                whole = self.buffer.last() == Some(&b'\n');
                read += rest;
            }
        }
        self.place += read;
        Ok(Some(RawLine { place, length: read, bytes: &self.buffer, whole, too_long }))
    }
}
