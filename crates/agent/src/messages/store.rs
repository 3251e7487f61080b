//! One thread that owns the database, so that nobody else ever waits for a disk or a lock.
//!
//! Rows and the place they go up to are written together or not at all, and only onto what their
//! writer has seen.

use std::path::{Path, PathBuf};

use polyloop_session::SessionId;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::database::{self, Mark};
use super::fold::Batch;
use super::{MessagesError, Page};

const QUEUED_JOBS_MAX: usize = 64;

/// What became of a write onto a certain mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Done,
    /// The mark was another: someone else wrote, so nothing was done.
    Raced,
}

enum Job {
    Work(Box<dyn FnOnce(&mut Connection) -> Health + Send>),
    Close,
}

/// Whether the file is one still.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Fine,
    Broken,
}

impl Health {
    fn of<T>(done: &rusqlite::Result<T>) -> Health {
        let code = done.as_ref().err().and_then(rusqlite::Error::sqlite_error_code);
        match code {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Health::Broken,
            _ => Health::Fine,
        }
    }
}

pub(super) struct Store {
    path: PathBuf,
    jobs: mpsc::Sender<Job>,
    /// Cancelled when the connection is closed.
    gone: CancellationToken,
}

impl Store {
    pub async fn open(path: &Path) -> Result<Store, MessagesError> {
        let failed = |error: std::io::Error| MessagesError::unusable(path, &error);
        let path = std::path::absolute(path).map_err(failed)?;
        let (jobs, queue) = mpsc::channel(QUEUED_JOBS_MAX);
        let (reply, opened) = oneshot::channel();
        let gone = CancellationToken::new();
        let (file, end) = (path.clone(), gone.clone().drop_guard());
        let run = move || {
            let _end = end;
            match database::open(&file) {
                Ok(connection) => {
                    let _ = reply.send(Ok(()));
                    serve(connection, &file, queue);
                }
                Err(error) => {
                    let _ = reply.send(Err(error));
                }
            }
        };
        std::thread::Builder::new().name("messages".into()).spawn(run).map_err(failed)?;
        opened.await.unwrap_or_else(|_| Err(closed()))?;
        Ok(Store { path, jobs, gone })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until what was asked for is done and the file is let go of.
    pub async fn close(&self) {
        let _ = self.jobs.send(Job::Close).await;
        self.gone.cancelled().await;
    }

    pub async fn mark(&self, id: &SessionId) -> Result<Option<Mark>, MessagesError> {
        let id = id.clone();
        self.run(move |connection| database::mark(connection, &id)).await
    }

    /// Without a mark to write onto, the session is stored from its beginning.
    pub async fn write(
        &self,
        id: &SessionId,
        onto: Option<Mark>,
        batch: Batch,
        upto: Mark,
    ) -> Result<Written, MessagesError> {
        let from_start = onto.is_none();
        let work = move |at: &Transaction<'_>, id: &SessionId| {
            if from_start {
                database::delete(at, id)?;
            }
            database::insert(at, id, &batch.rows, &upto)
        };
        self.change(id, onto, work).await
    }

    pub async fn clear(&self, id: &SessionId, onto: Mark) -> Result<Written, MessagesError> {
        self.change(id, Some(onto), database::delete).await
    }

    /// Takes out all of a session, whatever is there.
    pub async fn forget(&self, id: &SessionId) -> Result<(), MessagesError> {
        let id = id.clone();
        let work = move |connection: &mut Connection| {
            let at = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            database::delete(&at, &id)?;
            at.commit()
        };
        self.run(work).await
    }

    pub async fn sessions(&self) -> Result<Vec<SessionId>, MessagesError> {
        self.run(|connection| database::sessions(connection)).await
    }

    pub async fn page(
        &self,
        id: &SessionId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Page, MessagesError> {
        let id = id.clone();
        self.run(move |connection| database::page(connection, &id, before, limit)).await
    }

    async fn change(
        &self,
        id: &SessionId,
        onto: Option<Mark>,
        work: impl FnOnce(&Transaction<'_>, &SessionId) -> rusqlite::Result<()> + Send + 'static,
    ) -> Result<Written, MessagesError> {
        let id = id.clone();
        let change = move |connection: &mut Connection| {
            let at = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if database::mark(&at, &id)? != onto {
                return Ok(Written::Raced);
            }
            work(&at, &id)?;
            at.commit().map(|()| Written::Done)
        };
        self.run(change).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, MessagesError> {
        let (reply, done) = oneshot::channel();
        let job = move |connection: &mut Connection| {
            let done = work(connection);
            let health = Health::of(&done);
            // Whoever asked may have left.
            let _ = reply.send(done);
            health
        };
        self.jobs.send(Job::Work(Box::new(job))).await.map_err(|_| closed())?;
        let done = done.await.map_err(|_| closed())?;
        done.map_err(|error| {
            let why = error.to_string();
            match Health::of::<()>(&Err(error)) {
                Health::Fine => MessagesError::Failed { why },
                Health::Broken => MessagesError::Broken { why },
            }
        })
    }
}

/// A broken file is made anew: all that it said stands in the logs, and is read from there when it
/// is next asked for.
fn serve(mut connection: Connection, file: &Path, mut queue: mpsc::Receiver<Job>) {
    while let Some(Job::Work(work)) = queue.blocking_recv() {
        if work(&mut connection) == Health::Fine {
            continue;
        }
        tracing::warn!(path = %file.display(), "the user message store is broken; made anew");
        drop(connection);
        for ending in ["", "-wal", "-shm"] {
            let mut name = file.as_os_str().to_owned();
            name.push(ending);
            let _ = std::fs::remove_file(name);
        }
        connection = match database::open(file) {
            Ok(connection) => connection,
            Err(error) => {
                tracing::warn!(%error, "the user message store cannot be made anew");
                return;
            }
        };
    }
}

fn closed() -> MessagesError {
    MessagesError::Failed { why: "it is closed".into() }
}
