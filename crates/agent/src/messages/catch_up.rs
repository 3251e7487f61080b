//! Reads what is new in a session's log and stores the messages in it.
//!
//! It may be ended at any point, and begun again by anyone: it goes on from the mark that stands in
//! the database.

use std::sync::Arc;

use polyloop_session::{Event, MessageId, Seq, SessionId, Text};

use super::database::Mark;
use super::fold::{Fold, words};
use super::store::Written;
use super::{MessagesError, Shared};

/// How often it is begun again because another server on the same database was faster. Each time it
/// goes on from what that one has stored, unless their logs differ.
const TRIES_MAX: u32 = 50;

/// How often a broken file is made anew for one request.
const BROKEN_MAX: u32 = 2;

impl Shared {
    pub(super) async fn catch_up(&self, id: &SessionId) -> Result<(), MessagesError> {
        let reader = self.reader(id);
        let _alone = reader.lock().await;
        let mut broken = 0;
        for _ in 0..TRIES_MAX {
            match self.read_on(id).await {
                Ok(Written::Done) => return Ok(()),
                Ok(Written::Raced) => {}
                // It is made anew, and then there is nothing in it.
                Err(MessagesError::Broken { .. }) if broken < BROKEN_MAX => broken += 1,
                Err(error) => return Err(error),
            }
        }
        let why = format!("another server keeps storing other messages of session {id}");
        Err(MessagesError::Failed { why })
    }

    async fn read_on(&self, id: &SessionId) -> Result<Written, MessagesError> {
        let mut mark = self.store.mark(id).await?;
        let mut page = match &mark {
            None => self.log.read(id, Seq::NONE, Seq(u64::MAX)).await?,
            // With the mark itself, which must stand where it stood.
            Some(mark) => self.log.read(id, mark.seq.before(), Seq(u64::MAX)).await?,
        };
        if let Some(known) = mark.take() {
            if page.first().is_some_and(|entry| Mark::of(entry) == known) {
                page.remove(0);
                if page.is_empty() {
                    // The page may have ended with it, and the log not.
                    page = self.log.read(id, known.seq, Seq(u64::MAX)).await?;
                }
                mark = Some(known);
            } else {
                // The session was put away and another made under its name, or the end of its log
                // was lost with the machine.
                if self.store.clear(id, known).await? == Written::Raced {
                    return Ok(Written::Raced);
                }
                page = self.log.read(id, Seq::NONE, Seq(u64::MAX)).await?;
            }
        }
        let mut fold = Fold::default();
        loop {
            let Some(after) = page.last().map(|last| last.seq) else { return Ok(Written::Done) };
            for entry in &page {
                if let Some(message) = fold.take(entry)
                    && let Some(content) = self.queued(id, message).await?
                {
                    fold.begun(entry.seq, content);
                }
            }
            if let Some(batch) = fold.batch() {
                let upto = Mark::of(&batch.upto);
                let onto = mark.replace(upto.clone());
                if self.store.write(id, onto, batch, upto).await? == Written::Raced {
                    return Ok(Written::Raced);
                }
            }
            page = self.log.read(id, after, Seq(u64::MAX)).await?;
        }
    }

    async fn queued(
        &self,
        id: &SessionId,
        message: MessageId,
    ) -> Result<Option<Text>, MessagesError> {
        let found = self.log.read(id, message.0.before(), message.0).await?;
        Ok(found.first().map(Arc::as_ref).and_then(|entry| match &entry.event {
            Event::MessageQueued { content, .. } => Some(words(content)),
            _ => None,
        }))
    }
}
