//! What was said, session by session: a projection of the logs in an SQLite database.
//!
//! The log is the truth, and the database is only ever filled by reading it: a database that is
//! lost, old or of another log is made anew and says the same. Each message is there exactly once,
//! because messages and the place up to which the log was read are written together. Nothing here
//! can harm a session: it is never waited for, and when the database fails, only those who ask for
//! messages are told.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use polyloop_session::SessionId;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::store::Store;
use crate::log::{Log, LogError};

mod catch_up;
mod database;
mod fold;
mod store;

#[cfg(test)]
mod tests;

pub const PAGE_MESSAGES_DEFAULT: u32 = 100;
pub const PAGE_MESSAGES_MAX: u32 = 1_000;
/// A page of very long messages holds fewer than were asked for, but never none.
pub const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    User,
    Assistant,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }

    /// The table allows no other.
    fn parse(role: &str) -> Role {
        if role == Role::User.as_str() { Role::User } else { Role::Assistant }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its place in the session, to page with: higher is later, and there are gaps.
    pub seq: u64,
    pub role: Role,
    pub content: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Oldest first.
    pub messages: Vec<Message>,
    /// There are older ones.
    pub has_more: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum MessagesError {
    #[error(
        "user message store {}: this file is not a message store of this server; it was left as \
         it is, name another", path.display()
    )]
    Foreign { path: PathBuf },
    #[error(
        "user message store {}: it is of version {found} and this server knows versions up to \
         {known}; use a newer server, or name another file", path.display()
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("user message store {}: {why}", path.display())]
    Unusable { path: PathBuf, why: String },
    /// Clients are told this, so it says nothing of the server's files.
    #[error("the user message store failed: {why}")]
    Failed { why: String },
    /// The file was no database any more, and is made anew.
    #[error("the user message store was broken: {why}")]
    Broken { why: String },
    #[error(transparent)]
    Log(#[from] LogError),
}

impl MessagesError {
    fn unusable(path: &Path, why: &dyn std::fmt::Display) -> MessagesError {
        MessagesError::Unusable { path: path.into(), why: why.to_string() }
    }
}

/// The store. Clones are the same one; with the last of them it ends.
#[derive(Clone)]
pub struct Messages {
    shared: Arc<Shared>,
    background: Arc<Background>,
}

struct Background {
    stop: CancellationToken,
    _at_last: DropGuard,
}

struct Shared {
    store: Store,
    log: Arc<dyn Log>,
    news: Mutex<News>,
    has_news: Notify,
    /// Sessions that are being read: one reader each.
    readers: Mutex<HashMap<SessionId, Weak<tokio::sync::Mutex<()>>>>,
    failing: AtomicBool,
}

/// What the background has yet to look at. Bounded by the number of sessions.
#[derive(Default)]
struct News {
    sessions: BTreeSet<SessionId>,
    all: bool,
}

impl Messages {
    /// Opens the database at `path`, which is made if there is none, as a projection of `log`.
    pub async fn open(path: &Path, log: Arc<dyn Log>) -> Result<Messages, MessagesError> {
        let shared = Arc::new(Shared {
            store: Store::open(path).await?,
            log,
            news: Mutex::default(),
            has_news: Notify::new(),
            readers: Mutex::default(),
            failing: AtomicBool::new(false),
        });
        let stop = CancellationToken::new();
        let (follower, stopped) = (shared.clone(), stop.clone());
        tokio::spawn(async move { stopped.run_until_cancelled(follower.follow()).await });
        let _at_last = stop.clone().drop_guard();
        Ok(Messages { shared, background: Arc::new(Background { stop, _at_last }) })
    }

    /// There is something new in a session's log: it is looked at soon. Worth saying when a turn
    /// has ended; whoever asks for messages gets the newest in any case.
    pub fn touch(&self, id: &SessionId) {
        self.shared.news().sessions.insert(id.clone());
        self.shared.has_news.notify_one();
    }

    /// All sessions are looked at soon, also those that the database knows and the log does not.
    /// Worth saying when the server starts.
    pub fn sweep(&self) {
        self.shared.news().all = true;
        self.shared.has_news.notify_one();
    }

    /// Returns when all that the log held when this began is stored. What a call says is stored
    /// when it has ended and no other is open beside it: until then it may still fail.
    pub async fn catch_up(&self, id: &SessionId) -> Result<(), MessagesError> {
        let done = self.shared.catch_up(id).await;
        self.shared.noted(done)
    }

    /// The newest `limit` messages before `before`. A session that does not exist has none.
    pub async fn page(
        &self,
        id: &SessionId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Page, MessagesError> {
        self.catch_up(id).await?;
        let limit = limit.min(PAGE_MESSAGES_MAX);
        let mut page = self.shared.store.page(id, before, limit).await;
        if matches!(page, Err(MessagesError::Broken { .. })) {
            self.catch_up(id).await?;
            page = self.shared.store.page(id, before, limit).await;
        }
        self.shared.noted(page)
    }

    /// Takes out what is stored of a session that was put away.
    pub async fn forget(&self, id: &SessionId) -> Result<(), MessagesError> {
        let reader = self.shared.reader(id);
        let _alone = reader.lock().await;
        let done = self.shared.store.forget(id).await;
        self.shared.noted(done)
    }

    /// Makes all of it anew from the logs, and says how far it has come: how many of how many
    /// sessions. Whoever ends it in the middle leaves what the next look goes on from.
    pub async fn rebuild(&self, mut told: impl FnMut(usize, usize)) -> Result<(), MessagesError> {
        let all: BTreeSet<SessionId> = self.shared.all_sessions().await?.into_iter().collect();
        for (done, id) in all.iter().enumerate() {
            told(done, all.len());
            self.forget(id).await?;
            self.catch_up(id).await?;
        }
        told(all.len(), all.len());
        Ok(())
    }

    /// Ends in good order: the file is let go of when this returns.
    pub async fn close(&self) {
        self.background.stop.cancel();
        self.shared.store.close().await;
    }
}

impl Shared {
    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self, id: &SessionId) -> Arc<tokio::sync::Mutex<()>> {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.retain(|_, reader| reader.strong_count() > 0);
        if let Some(reader) = readers.get(id).and_then(Weak::upgrade) {
            return reader;
        }
        let reader = Arc::default();
        readers.insert(id.clone(), Arc::downgrade(&reader));
        reader
    }

    async fn follow(&self) {
        loop {
            let (all, next) = {
                let mut news = self.news();
                (std::mem::take(&mut news.all), news.sessions.pop_first())
            };
            if all {
                let listed = self.all_sessions().await;
                self.news().sessions.extend(self.noted(listed).unwrap_or_default());
            }
            match next {
                // It was noted; whoever asks next tries again.
                Some(id) => drop(self.noted(self.catch_up(&id).await)),
                None if all => {}
                None => self.has_news.notified().await,
            }
        }
    }

    async fn all_sessions(&self) -> Result<Vec<SessionId>, MessagesError> {
        let mut all = self.store.sessions().await?;
        all.extend(self.log.list().await?.into_iter().map(|summary| summary.id));
        Ok(all)
    }

    /// Tells the operator when the database begins to fail and when it works again, not each time.
    fn noted<T>(&self, done: Result<T, MessagesError>) -> Result<T, MessagesError> {
        let path = self.store.path().display();
        match &done {
            Err(MessagesError::Log(error)) => tracing::warn!(%error, "messages cannot be read"),
            Err(error) => {
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%path, %error, "messages cannot be stored");
                }
            }
            Ok(_) => {
                if self.failing.swap(false, Ordering::Relaxed) {
                    tracing::info!(%path, "messages are stored again");
                }
            }
        }
        done
    }
}
