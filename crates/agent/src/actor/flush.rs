//! What is on its way to the disk: nobody is told of it, or of what follows from it, before it is
//! safe.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::{Actor, Answered, CommandError, Flow};
use crate::log::{Flushing, LogError};
use crate::subscriber::{Ending, View};

impl<V: View> Actor<V> {
    /// Waits until everything that happened is safe, and tells of it.
    pub(super) async fn flushed(&mut self) -> Result<(), LogError> {
        self.write_out().await?;
        while !self.flushing.is_empty() {
            let flushed = next_flushed(&mut self.flushing).await;
            self.release(flushed)?;
        }
        Ok(())
    }

    pub(super) fn release(&mut self, flushed: Result<(), LogError>) -> Result<(), LogError> {
        self.flushing.pop_front();
        flushed?;
        self.audience.release();
        Ok(())
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
                self.audience.tell(move |safe| {
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
pub(super) async fn next_flushed(flushing: &mut VecDeque<Flushing>) -> Result<(), LogError> {
    match flushing.front_mut() {
        Some(oldest) => oldest.await,
        None => std::future::pending().await,
    }
}
