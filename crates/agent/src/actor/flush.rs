//! What is on its way to the disk: nobody is told of it, or of what follows from it, before it is
//! safe. A message alone is shown before: it is flushed with whatever must be next, or soon.

use std::collections::VecDeque;
use std::time::Duration;

use polyloop_session::Refusal;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Actor, Answered, CommandError, Flow};
use crate::log::{Flush, Flushing, LogError};
use crate::meter::Limit;
use crate::subscriber::{Ending, View};

/// How long a message may wait for the flush of what follows from it, which then is its own.
const FLUSH_SOON: Duration = Duration::from_millis(2);

/// Whether what is flushed was shown before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Already,
    /// The audience holds it, and what follows from it.
    Held,
}

impl<V: View> Actor<V> {
    /// Waits until everything that happened is safe, and tells of it.
    pub(super) async fn flushed(&mut self) -> Result<(), LogError> {
        self.write_out().await?;
        self.flush_owed();
        while !self.flushing.is_empty() {
            let flushed = next_flushed(&mut self.flushing).await;
            self.release(flushed).await?;
        }
        Ok(())
    }

    pub(super) async fn release(&mut self, flushed: Result<(), LogError>) -> Result<(), LogError> {
        let shown = self.flushing.pop_front().map(|(_, shown)| shown);
        flushed?;
        if shown == Some(Shown::Held) {
            self.audience.release();
        }
        self.end_growth().await
    }

    /// What was written and shown is flushed with the next batch that must be, or soon.
    pub(super) fn will_flush(&mut self, flush: Flush) {
        if flush == Flush::Soon {
            self.flush_at.get_or_insert_with(|| Instant::now() + FLUSH_SOON);
        }
    }

    pub(super) fn flush_owed(&mut self) {
        self.flush_at = None;
        if let Some(flushing) = self.writer.flush_owed() {
            self.flushing.push_back((flushing, Shown::Already));
        }
    }

    /// What is held takes memory: where there is much of it, the session waits for its disk.
    pub(super) async fn flushed_if_much(&mut self) -> Result<(), LogError> {
        match self.audience.holds_much() {
            true => self.flushed().await,
            false => Ok(()),
        }
    }

    /// Tells the client, once it is safe, and the loop when the store failed.
    pub(super) fn answer(
        &mut self,
        reply: oneshot::Sender<Answered>,
        done: Answered,
    ) -> Result<Flow, LogError> {
        let why = match done {
            Err(CommandError::Moved) => {
                let _ = reply.send(Err(CommandError::Moved));
                return Err(LogError::lost(format!("session {}", self.id)));
            }
            Err(CommandError::Store(why) | CommandError::Failed(why)) => why,
            done => {
                if let Err(CommandError::Refused(Refusal::QueueFull { .. })) = &done {
                    self.kit.meter.refuses(Limit::QueuedMessages);
                }
                self.tell(move |safe| {
                    let _ = reply.send(safe.map_err(not_safe).and(done));
                });
                return Ok(Flow::GoOn);
            }
        };
        // It says already which session it is about.
        let (what, told) = why.split_once(": ").unwrap_or(("session", &why));
        let error = LogError::store(what, told);
        let _ = reply.send(Err(CommandError::Failed(why)));
        Err(error)
    }
}

/// The session ended before what was done was safe.
fn not_safe(ending: &Ending) -> CommandError {
    match ending {
        Ending::Failed(why) => CommandError::Failed(why.clone()),
        Ending::Moved | Ending::Closed | Ending::Behind => CommandError::Moved,
    }
}

/// When the oldest batch is safe.
pub(super) async fn next_flushed(
    flushing: &mut VecDeque<(Flushing, Shown)>,
) -> Result<(), LogError> {
    match flushing.front_mut() {
        Some((oldest, _)) => oldest.await,
        None => std::future::pending().await,
    }
}

/// When what is owed to the disk must be flushed.
pub(super) async fn flush_due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
