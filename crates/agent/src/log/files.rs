//! Sessions in files: `<id>.jsonl` for the entries, `<id>.live` for growth of open items,
//! `<id>.blobs/` for very long texts, `<id>.index` to find one's way in long ones.
//!
//! A batch goes out in one write before anyone sees it, so it survives the process; batches that
//! must survive the machine are flushed too. One server a store, by a lock on `.lock`. A torn last
//! line is cut off, other damaged lines are skipped and reported. A session whose flush failed is
//! not written any more before the server was started again (`anew`).

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use polyloop_session::{LogEntry, Seq, SessionId, Timestamp};

use super::{Codec, Fork, ForkedAt, LinePlace, Log, LogError, OpenMode, Opened, Summary};

mod anew;
pub mod check;
pub mod disk;
mod fork;
pub(super) mod index;
pub(super) mod journal;
mod kept;
mod known;
mod lines;
pub(super) mod load;
pub(super) mod page;
mod writer;

use disk::{Disk, RealDisk};
use known::Known;

/// Conversations are their user's own.
const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;
const LOCK_FILE: &str = ".lock";
/// A shorter file is read as fast as its index would be.
const INDEX_BYTES_MIN: u64 = 64 * 1024;

pub struct Files {
    store: Arc<Store>,
    /// Held by a server; whoever only reads has none.
    _lock: Option<File>,
}

struct Store {
    dir: PathBuf,
    codec: Arc<dyn Codec>,
    disk: Arc<dyn Disk>,
    /// What is known of sessions that were opened or listed.
    known: Mutex<Known>,
    /// Sessions of which a flush has failed, and why.
    failed: Mutex<HashMap<SessionId, String>>,
    /// Whether the store is this process's own to change.
    may_write: bool,
    index_bytes_min: u64,
}

/// How often, and how long apart, a store is asked for.
const LOCK_TRIES_MAX: u32 = 50;
const LOCK_TRY_EVERY: Duration = Duration::from_millis(20);

/// A process that is just being started has a copy of what its parent holds until its own program
/// begins: a store that was let go a moment ago may seem to be in use.
fn take(lock: &File) -> bool {
    (0..LOCK_TRIES_MAX).any(|tried| {
        if tried > 0 {
            std::thread::sleep(LOCK_TRY_EVERY);
        }
        lock.try_lock().is_ok()
    })
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
        Files::open_on(Arc::new(RealDisk), dir, codec)
    }

    /// The same on a disk that may have its own mind.
    pub fn open_on(
        disk: Arc<dyn Disk>,
        dir: &Path,
        codec: Arc<dyn Codec>,
    ) -> Result<Files, LogError> {
        let what = || format!("session store {}", dir.display());
        make_dir(dir).map_err(|error| LogError::store(what(), error))?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(FILE_MODE)
            .open(dir.join(LOCK_FILE))
            .map_err(|error| LogError::store(what(), error))?;
        if !take(&lock) {
            return Err(LogError::store(what(), "another server is using it"));
        }
        fork::sweep(dir).map_err(|error| LogError::store(what(), error))?;
        let store = Store::new(disk, dir, codec, true);
        Ok(Files { store: Arc::new(store), _lock: Some(lock) })
    }

    /// Opens a store to look at it, also while a server uses it: nothing of it is changed.
    pub fn open_to_read(dir: &Path, codec: Arc<dyn Codec>) -> Result<Files, LogError> {
        let what = || format!("session store {}", dir.display());
        std::fs::read_dir(dir).map_err(|error| LogError::store(what(), error))?;
        let store = Store::new(Arc::new(RealDisk), dir, codec, false);
        Ok(Files { store: Arc::new(store), _lock: None })
    }

    /// Files of that length and more get an index.
    #[must_use]
    pub fn index_from(self, bytes: u64) -> Files {
        let Files { store, _lock } = self;
        let Store { dir, codec, disk, may_write, .. } = &*store;
        let (codec, disk) = (codec.clone(), disk.clone());
        let store = Store { index_bytes_min: bytes, ..Store::new(disk, dir, codec, *may_write) };
        Files { store: Arc::new(store), _lock }
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
    fn new(disk: Arc<dyn Disk>, dir: &Path, codec: Arc<dyn Codec>, may_write: bool) -> Store {
        Store {
            dir: dir.to_path_buf(),
            codec,
            disk,
            known: Mutex::default(),
            failed: Mutex::default(),
            may_write,
            index_bytes_min: INDEX_BYTES_MIN,
        }
    }

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

    fn archive(&self, id: &SessionId, at: Timestamp) -> Result<bool, LogError> {
        let name = free_name(&self.dir, &format!(".{id}-{}", file_time(at)), "jsonl");
        let aside = |kind: &str| -> io::Result<bool> {
            let away = self.dir.join(format!("{name}.{kind}"));
            match self.disk.rename(&self.path(id, kind), &away) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
            }
        };
        let moved = (|| {
            let moved = aside("jsonl")?;
            aside("blobs")?;
            aside("live")?;
            aside(anew::MARK)?;
            // It can be made again, if anyone should want it.
            let _ = std::fs::remove_file(self.path(id, "index"));
            Ok(moved)
        })();
        lock(&self.known).remove(id);
        lock(&self.failed).remove(id);
        moved.map_err(|error| self.error(id, &error))
    }

    /// The sessions that have a file here.
    fn ids(&self) -> Result<Vec<SessionId>, LogError> {
        let failed =
            |error| LogError::store(format!("session store {}", self.dir.display()), error);
        let mut all = Vec::new();
        for file in std::fs::read_dir(&self.dir).map_err(failed)? {
            let name = file.map_err(failed)?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".jsonl"));
            all.extend(id.and_then(|id| SessionId::parse(id).ok()));
        }
        Ok(all)
    }

    fn list(&self) -> Result<Vec<Summary>, LogError> {
        let mut all = Vec::new();
        let mut there = HashSet::new();
        for id in self.ids()? {
            match self.summary(&id) {
                Ok(summary) => all.extend(summary),
                // One that cannot be read does not hide the others.
                Err(error) => tracing::warn!(session = %id, %error, "cannot be listed"),
            }
            there.insert(id);
        }
        lock(&self.known).keep(&there);
        Ok(all)
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
        upto: LinePlace,
    ) -> BoxFuture<'a, Result<(Vec<String>, LinePlace), LogError>> {
        let work = move |store: &Arc<Store>, id: Option<&SessionId>| match id {
            Some(id) => store.raw_lines(id, from, upto),
            None => Ok((Vec::new(), from)),
        };
        async move { self.blocking(Some(id), work).await }.boxed()
    }

    fn line_place<'a>(
        &'a self,
        id: &'a SessionId,
        count: u64,
    ) -> BoxFuture<'a, Result<LinePlace, LogError>> {
        let work = move |store: &Arc<Store>, id: Option<&SessionId>| match id {
            Some(id) => store.line_place(id, count),
            None => Ok(LinePlace::default()),
        };
        async move { self.blocking(Some(id), work).await }.boxed()
    }

    fn summary<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Summary>, LogError>> {
        let work = |store: &Arc<Store>, id: Option<&SessionId>| match id {
            Some(id) => store.summary(id),
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
