//! Makes a session of another one's beginning, and takes edits of a session back.

use polyloop_session::undo::Which;
use polyloop_session::wait::Who;
use polyloop_session::{Seq, SessionId};
use tokio::sync::{Semaphore, oneshot};

use super::handle::{Asks, OPEN_TRIES_MAX};
use super::{Handle, Sessions};
use crate::actor::{CommandError, Kept, Request, UndoError, Undone, noted};
use crate::clock;
use crate::log::{Fork, ForkedAt, Summary, TakenGrowth};
use crate::subscriber::View;

/// Each reads and writes as fast as the disk goes.
const FORKS_AT_ONCE_MAX: usize = 2;

static FORKS: Semaphore = Semaphore::const_new(FORKS_AT_ONCE_MAX);

/// What came of a fork.
#[derive(Debug, PartialEq, Eq)]
pub enum Forked {
    Done(Summary),
    NotFound,
    /// The session ends before that entry.
    Beyond {
        last: Seq,
    },
}

impl<V: View> Sessions<V> {
    /// A new session whose log is that of `id` up to `upto`, or all of it. The other one stays as
    /// it is, and goes on if it runs.
    pub async fn fork(
        &self,
        id: &SessionId,
        upto: Option<Seq>,
        by: Who,
    ) -> Result<Forked, CommandError> {
        let (sessions, id) = (self.clone(), id.clone());
        // Whoever asked may leave in the middle; then it is made all the same.
        let forking = tokio::spawn(async move { sessions.make_fork(id, upto, by).await });
        forking.await.unwrap_or_else(|error| {
            Err(CommandError::Store(format!("the session could not be forked: {error}")))
        })
    }

    async fn make_fork(
        &self,
        from: SessionId,
        upto: Option<Seq>,
        by: Who,
    ) -> Result<Forked, CommandError> {
        let _one_of_few = FORKS.acquire().await;
        let to = clock::new_session_id();
        let (at, kit) = (clock::now(), &self.shared.kit);
        let fork = Fork { from, to, upto, growth: TakenGrowth::Left, at, by };
        let copied = self.copy(fork.clone()).await;
        let left = matches!(copied, Ok(ForkedAt::Done { .. }));
        if let Some(todos) = self.todos().filter(|_| left)
            && let Err(error) = todos.copy(&fork.from, &fork.to, at)
        {
            tracing::warn!(session = %fork.to, %error, "its todos file could not be copied");
        }
        match copied? {
            ForkedAt::Done { upto } => noted::forked(&kit.audit, &fork, upto),
            ForkedAt::NotFound => return Ok(Forked::NotFound),
            ForkedAt::Beyond { last } => return Ok(Forked::Beyond { last }),
        }
        // It is opened once, so that what was open in it is closed.
        self.running(&fork.to, &fork.by, Kept::InStore, None).await?;
        match kit.log.summary(&fork.to).await? {
            Some(summary) => Ok(Forked::Done(summary)),
            None => Err(CommandError::Store("the new session is gone".into())),
        }
    }

    /// One that sleeps is not woken, and nobody wakes it meanwhile; one that runs goes on, and says
    /// itself how far it is.
    async fn copy(&self, mut fork: Fork) -> Result<ForkedAt, CommandError> {
        let log = &self.shared.kit.log;
        if log.summary(&fork.from).await?.is_none() {
            return Ok(ForkedAt::NotFound);
        }
        for _ in 0..OPEN_TRIES_MAX {
            let slot = self.slot(&fork.from).lock_owned().await;
            let running = slot.as_ref().filter(|running| !running.gone.is_cancelled()).cloned();
            let Some(running) = running else {
                let copied = log.fork(&fork).await;
                drop(slot);
                self.forget(&fork.from);
                return Ok(copied?);
            };
            drop(slot);
            let (reply, answer) = oneshot::channel();
            let sent = running.mailbox.send(Box::new(Request::Shown { reply })).await.is_ok();
            let shown = if sent { running.answered(answer).await } else { None };
            let Some((last, growths)) = shown else {
                running.gone.cancelled().await;
                continue;
            };
            if fork.upto.is_some_and(|upto| upto > last) {
                return Ok(ForkedAt::Beyond { last });
            }
            fork.upto.get_or_insert(last);
            fork.growth = TakenGrowth::Told { at: last, growths };
            return Ok(log.fork(&fork).await?);
        }
        Err(CommandError::Store("the session ended before it could be copied".into()))
    }
}

impl<V: View> Handle<V> {
    /// Takes file edits of the session back: all that are meant, or none.
    pub async fn undo(&self, which: Which, by: Who) -> Result<Undone, UndoError> {
        self.ask(Asks::Changes, |reply| Request::Undo { which, by: by.clone(), reply }).await?
    }
}
