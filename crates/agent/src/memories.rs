//! What agents were told to remember, user by user, in an SQLite database.
//!
//! A user is whoever began the turn, by the name that was given; who gave none is [`NOBODY`]. What
//! one user's agents kept shows nowhere for another: not as a memory, not as a key that is similar,
//! not in a score. One thread owns the database, so that nobody else ever waits for a disk or a
//! lock; when it fails, only those who ask for memories are told. Unlike messages, memories are no
//! projection: they are nowhere else.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use polyloop_session::Text;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

mod database;
mod search;

#[cfg(test)]
mod tests;

/// The user of turns whose client gave no name.
pub const NOBODY: &str = "default";

pub const KEY_BYTES_MAX: usize = 256;
/// Of a value as JSON.
pub const VALUE_BYTES_MAX: usize = 8 * 1024;
pub const MEMORIES_PER_USER_MAX: usize = 1_000;
/// Names cost nothing, so the number of those who have memories is bounded too.
pub const USERS_MAX: usize = 10_000;
pub const QUERY_BYTES_MAX: usize = 1_024;
/// Words of a query that are looked for.
pub const QUERY_WORDS_MAX: usize = 32;
pub const RESULTS_MAX: usize = 100;
/// Of the whole database.
const FILE_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// The same where it is no file.
const UNKEPT_BYTES_MAX: u64 = 64 * 1024 * 1024;

const QUEUED_JOBS_MAX: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum MemoriesError {
    #[error(
        "{}: this file does not hold memories of this server; it was left as it is, name another",
        path.display()
    )]
    Foreign { path: PathBuf },
    #[error(
        "{}: it is of version {found} and this server knows versions up to {known}; use a newer \
         server, or name another file", path.display()
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("{}: {why}", path.display())]
    Unusable { path: PathBuf, why: String },
    #[error(
        "{MEMORIES_PER_USER_MAX} memories are kept for this user, which is the limit; forget one \
         first (remember its key with the value null)"
    )]
    Full,
    #[error("memories of {USERS_MAX} users are kept, which is the limit")]
    TooManyUsers,
    /// Models are told this, so it says nothing of the server's files.
    #[error("the memories cannot be reached: {why}")]
    Failed { why: String },
}

/// The memories of all users. Clones are the same ones; with the last of them they are closed.
#[derive(Clone)]
pub struct Memories(Arc<Inner>);

struct Inner {
    /// For the operator.
    name: String,
    state: State,
    failing: AtomicBool,
}

enum State {
    Open {
        jobs: mpsc::Sender<Job>,
        /// Cancelled when the connection is closed.
        gone: CancellationToken,
    },
    /// There is a file and it cannot be used.
    Unusable { why: String },
}

enum Job {
    Work(Box<dyn FnOnce(&mut Connection) + Send>),
    Close,
}

impl fmt::Debug for Memories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Memories").field(&self.0.name).finish()
    }
}

impl Memories {
    /// Opens the database at `path`, which is made if there is none. Blocks.
    pub fn open(path: &Path) -> Result<Memories, MemoriesError> {
        let unusable = |why: std::io::Error| MemoriesError::Unusable {
            path: path.into(),
            why: why.to_string(),
        };
        let path = std::path::absolute(path).map_err(unusable)?;
        let connection = database::open(&path, FILE_BYTES_MAX)?;
        Memories::on(connection, path.display().to_string()).map_err(unusable)
    }

    /// Memories that end with the server.
    pub fn unkept() -> Result<Memories, MemoriesError> {
        let failed = |why: &dyn fmt::Display| MemoriesError::Failed { why: why.to_string() };
        let connection = database::unkept(UNKEPT_BYTES_MAX).map_err(|error| failed(&error))?;
        Memories::on(connection, "in memory".into()).map_err(|error| failed(&error))
    }

    /// In place of those that could not be opened: whoever asks is told that.
    pub fn unusable(error: &MemoriesError) -> Memories {
        tracing::warn!(%error, "memories cannot be used");
        // The operator was told more.
        let why = match error {
            MemoriesError::Foreign { .. } => "their file is damaged or another program's",
            MemoriesError::Newer { .. } => "their file is of a newer server",
            MemoriesError::Unusable { .. }
            | MemoriesError::Failed { .. }
            | MemoriesError::Full
            | MemoriesError::TooManyUsers => "their file cannot be opened",
        };
        let state = State::Unusable { why: why.into() };
        Memories(Arc::new(Inner { name: "unusable".into(), state, failing: true.into() }))
    }

    fn on(connection: Connection, name: String) -> std::io::Result<Memories> {
        let (jobs, queue) = mpsc::channel(QUEUED_JOBS_MAX);
        let gone = CancellationToken::new();
        let end = gone.clone().drop_guard();
        let run = move || {
            let _end = end;
            serve(connection, queue);
        };
        std::thread::Builder::new().name("memories".into()).spawn(run)?;
        let (state, failing) = (State::Open { jobs, gone }, AtomicBool::new(false));
        Ok(Memories(Arc::new(Inner { name, state, failing })))
    }

    /// Those of one user.
    pub fn of(&self, user: Option<&str>) -> UserMemories {
        UserMemories { memories: self.clone(), user: user.unwrap_or(NOBODY).into() }
    }

    /// Waits until what was asked for is done and the file is let go of.
    pub async fn close(&self) {
        if let State::Open { jobs, gone } = &self.0.state {
            let _ = jobs.send(Job::Close).await;
            gone.cancelled().await;
        }
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, MemoriesError> + Send + 'static,
    ) -> Result<T, MemoriesError> {
        let closed = || MemoriesError::Failed { why: "they are closed".into() };
        let jobs = match &self.0.state {
            State::Open { jobs, .. } => jobs,
            State::Unusable { why } => return Err(MemoriesError::Failed { why: why.clone() }),
        };
        let (reply, done) = oneshot::channel();
        let job = move |connection: &mut Connection| {
            // Whoever asked may have left.
            let _ = reply.send(work(connection));
        };
        jobs.send(Job::Work(Box::new(job))).await.map_err(|_| closed())?;
        let done = done.await.unwrap_or_else(|_| Err(closed()));
        self.note(&done);
        done
    }

    /// Tells the operator when the database begins to fail and when it works again, not each time.
    fn note<T>(&self, done: &Result<T, MemoriesError>) {
        let Inner { name, failing, .. } = &*self.0;
        match done {
            Err(error @ MemoriesError::Failed { .. }) => {
                if !failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(file = %name, %error, "memories fail");
                }
            }
            Err(_) => {}
            Ok(_) => {
                if failing.swap(false, Ordering::Relaxed) {
                    tracing::info!(file = %name, "memories work again");
                }
            }
        }
    }
}

fn serve(mut connection: Connection, mut queue: mpsc::Receiver<Job>) {
    while let Some(Job::Work(work)) = queue.blocking_recv() {
        work(&mut connection);
    }
}

impl From<rusqlite::Error> for MemoriesError {
    fn from(error: rusqlite::Error) -> MemoriesError {
        MemoriesError::Failed { why: error.to_string() }
    }
}

/// A memory that a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    pub key: String,
    /// JSON text, as it was given.
    pub value: String,
    /// Higher is better.
    pub score: f64,
}

/// The best of what a search found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub hits: Vec<Hit>,
    /// How many there are in all.
    pub total: usize,
    /// The query has more words than are looked for.
    pub words_cut: bool,
}

/// The memories of one user; there is no way from here to another's.
#[derive(Clone, Debug)]
pub struct UserMemories {
    memories: Memories,
    user: Text,
}

impl UserMemories {
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Keeps a value, JSON text, in place of the one before. It is on the disk when this returns.
    pub async fn remember(&self, key: &str, value: &str) -> Result<(), MemoriesError> {
        let (user, key, value) = (self.user.clone(), key.to_owned(), value.to_owned());
        self.memories.run(move |at| database::remember(at, &user, &key, &value)).await
    }

    /// Whether there was such a memory.
    pub async fn forget(&self, key: &str) -> Result<bool, MemoriesError> {
        let (user, key) = (self.user.clone(), key.to_owned());
        self.memories.run(move |at| database::forget(at, &user, &key)).await
    }

    pub async fn recall(&self, key: &str) -> Result<Option<String>, MemoriesError> {
        let (user, key) = (self.user.clone(), key.to_owned());
        self.memories.run(move |at| Ok(database::recall(at, &user, &key)?)).await
    }

    /// In the order of their bytes.
    pub async fn keys(&self) -> Result<Vec<String>, MemoriesError> {
        let user = self.user.clone();
        self.memories.run(move |at| Ok(database::keys(at, &user)?)).await
    }

    /// The best first. Without a word to look for: the newest.
    pub async fn search(&self, query: &str, limit: usize) -> Result<Found, MemoriesError> {
        let (user, query) = (self.user.clone(), query.to_owned());
        self.memories.run(move |at| Ok(search::search(at, &user, &query, limit)?)).await
    }
}
