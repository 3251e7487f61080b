//! How everybody asks a session, wherever it runs: it is opened when it is asked, and asked again
//! where that can do no harm.

use std::sync::Arc;

use polyloop_session::context::ContextInfo;
use polyloop_session::event::Settings;
use polyloop_session::wait::Who;
use polyloop_session::{Command, LogEntry, Seq, SessionId, Text, Timestamp, WaitRef};
use tokio::sync::oneshot;

use super::Sessions;
use crate::actor::{Attach, Attached, Beginnings, CommandError, Kept, Look, Recorded, Request};
use crate::log::LogError;
use crate::subscriber::{Ending, Power, Presence, View};

/// How often a request is tried when the session goes to sleep in that very moment.
pub(super) const OPEN_TRIES_MAX: u32 = 3;

/// One session, wherever it runs.
pub struct Handle<V: View> {
    pub(super) sessions: Sessions<V>,
    pub(super) id: SessionId,
    pub(super) by: Who,
    /// Never changes: a session that passed does not become one that stays.
    pub(super) kept: Kept,
    /// What the session is made with, if it is new.
    pub(super) settings: Option<Box<Settings>>,
}

impl<V: View> Clone for Handle<V> {
    fn clone(&self) -> Handle<V> {
        Handle {
            sessions: self.sessions.clone(),
            id: self.id.clone(),
            by: self.by.clone(),
            kept: self.kept,
            settings: self.settings.clone(),
        }
    }
}

/// Whether what is asked of a session changes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    Changes,
    Looks,
}

impl<V: View> Handle<V> {
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    pub async fn command(&self, command: Command) -> Result<Recorded, CommandError> {
        self.ask(Asks::Changes, |reply| Request::Command { command: command.clone(), reply })
            .await?
    }

    pub async fn settle_with_patch(
        &self,
        wait: WaitRef,
        patch: Text,
        always: bool,
        by: Who,
    ) -> Result<Recorded, CommandError> {
        let request = |reply| {
            let (patch, by) = (patch.clone(), by.clone());
            Request::SettleWithPatch { wait, patch, always, by, reply }
        };
        self.ask(Asks::Changes, request).await?
    }

    pub async fn attach(
        &self,
        kind: V::Kind,
        since: Option<Seq>,
        power: Power,
        presence: Presence,
    ) -> Result<Attached<V>, CommandError> {
        let mut tries = 0;
        loop {
            let request = |reply| {
                let ask = Attach { kind, since, power, presence };
                Request::Attach { ask, reply }
            };
            tries += 1;
            match self.ask(Asks::Looks, request).await {
                // It changes nothing, so it may be asked of whoever has the session now.
                Ok(Err(CommandError::Moved)) if tries < OPEN_TRIES_MAX => {}
                attached => return attached?,
            }
        }
    }

    pub async fn context_info(&self) -> Result<ContextInfo, CommandError> {
        self.ask(Asks::Looks, |reply| Request::ContextInfo { reply }).await
    }

    /// Up to `count` places from which the session may be read, the last ones up to `upto`.
    pub async fn beginnings(&self, upto: Seq, count: usize) -> Result<Beginnings, CommandError> {
        self.ask(Asks::Looks, |reply| Request::Beginnings { upto, count, reply }).await
    }

    pub async fn look(&self) -> Result<Look, CommandError> {
        self.ask(Asks::Looks, |reply| Request::Look { reply }).await
    }

    /// Notes what went to one client alone; given up if the session is busy or asleep.
    pub async fn audit(&self, line: impl FnOnce(Timestamp, Seq) -> String + Send + 'static) {
        // A note is no reason to wake a session.
        let slot = self.sessions.slots().get(&self.id).cloned();
        let Some(slot) = slot else { return };
        let running = slot.lock().await.clone();
        drop(slot);
        self.sessions.forget(&self.id);
        if let Some(running) = running {
            let note = Request::Audit { line: Box::new(line) };
            let _ = running.mailbox.try_send(Box::new(note));
        }
    }

    /// A page of entries after `after` up to `upto`; an empty one is the end.
    pub async fn read(&self, after: Seq, upto: Seq) -> Result<Vec<Arc<LogEntry>>, LogError> {
        self.sessions.shared.kit.log_of(self.kept).read(&self.id, after, upto).await
    }

    pub(super) async fn ask<T>(
        &self,
        asks: Asks,
        request: impl Fn(oneshot::Sender<T>) -> Request<V>,
    ) -> Result<T, CommandError> {
        for _ in 0..OPEN_TRIES_MAX {
            let settings = self.settings.as_deref();
            let running = self.sessions.running(&self.id, &self.by, self.kept, settings).await?;
            let (reply, answer) = oneshot::channel();
            if running.mailbox.send(Box::new(request(reply))).await.is_err() {
                continue;
            }
            if let Some(answer) = running.answered(answer).await {
                return Ok(answer);
            }
            running.gone.cancelled().await;
            let is_repeated = match running.ended.get() {
                // It went in good order, so what it did not answer it did not do.
                Some(Ending::Closed) => true,
                // What it did is in doubt; where nothing was to be done, nothing is.
                Some(Ending::Moved) => asks == Asks::Looks,
                Some(Ending::Failed(_) | Ending::Behind) | None => false,
            };
            if !is_repeated {
                break;
            }
        }
        Err(CommandError::Store(
            "the session ended before it answered; look before you repeat".into(),
        ))
    }
}
