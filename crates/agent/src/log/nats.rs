//! Sessions on NATS JetStream: a subject a session, a message a batch; `docs/decisions/0040` says
//! how everything stands there.
//!
//! Two writers never interleave: a message names the number of the one before it, and the server
//! refuses any other. Nothing is acknowledged here that JetStream has not acknowledged. Types of
//! the client library stay in this folder.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use polyloop_session::{LogEntry, Seq, SessionId, Timestamp};
use tokio::time::Instant;

use super::{Codec, Fork, ForkedAt, LinePlace, Log, LogError, OpenMode, Opened, Summary};
use crate::meter::Meter;

mod direct;
mod fork;
mod index;
mod leased;
mod login;
mod look;
mod message;
mod objects;
mod open;
mod page;
mod peers;
mod publish;
mod records;
mod streams;
mod summing;
mod writer;

#[cfg(test)]
pub(super) mod tests;

pub use look::{Look, Looked, look};
pub use streams::Place;

use leased::Leased;
use records::Due;
use streams::Streams;

/// How long an answer of NATS is waited for.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// How long something is tried again that NATS does not answer, or answers without a leader.
const TRYING_TIME_MAX: Duration = Duration::from_secs(15);
const TRY_EVERY: Duration = Duration::from_millis(100);
/// How long NATS may be silent before this server says that it cannot serve: longer than another
/// leader takes to be found, so that not all servers say so then.
const SILENCE_TIME_MAX: Duration = Duration::from_secs(5);

pub struct Nats {
    store: Arc<Store>,
}

struct Store {
    streams: Streams,
    codec: Arc<dyn Codec>,
    /// Sessions that have a writer in this process.
    leased: Mutex<HashMap<SessionId, Leased>>,
    due: Arc<Due>,
    /// When NATS last took something that is sent all the time; nothing if nothing is.
    heard: Mutex<Option<Instant>>,
    /// Where it is counted how long NATS takes.
    meter: OnceLock<Arc<Meter>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(id: &SessionId, error: impl Display) -> LogError {
    LogError::store(format!("session {id}"), error)
}

/// NATS did not answer in time, or had nobody who could.
fn unanswered(what: &str, why: impl Display) -> LogError {
    LogError::Unreachable { what: format!("session store, to {what}"), why: why.to_string() }
}

fn failed_to(what: &str, error: impl Display) -> LogError {
    LogError::store(format!("session store, to {what}"), error)
}

impl Nats {
    /// Connects, and makes the streams that are not there yet.
    pub async fn connect(place: &Place, codec: Arc<dyn Codec>) -> Result<Nats, LogError> {
        let store = Arc::new(Store {
            streams: Streams::open(place).await?,
            codec,
            leased: Mutex::default(),
            due: Arc::default(),
            heard: Mutex::default(),
            meter: OnceLock::new(),
        });
        tokio::spawn(records::write_when_due(store.due.clone(), Arc::downgrade(&store)));
        Ok(Nats { store })
    }

    /// From now on it is counted how long NATS takes to have something safe.
    pub fn timed(self, meter: Arc<Meter>) -> Nats {
        let _ = self.store.meter.set(meter);
        self
    }
}

impl Store {
    fn out_of_reach(&self) -> Option<&'static str> {
        let is_silent = lock(&self.heard).map(|heard| heard.elapsed() > SILENCE_TIME_MAX);
        match (is_silent, self.streams.client.connection_state()) {
            (Some(false), _) | (None, State::Connected) => None,
            (_, State::Connected) => Some("NATS is connected, but its streams do not answer"),
            (_, State::Disconnected | State::Pending) => Some("there is no connection to NATS"),
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.due.end();
    }
}

impl Log for Nats {
    fn open<'a>(
        &'a self,
        id: &'a SessionId,
        mode: OpenMode,
    ) -> BoxFuture<'a, Result<Option<Opened>, LogError>> {
        open::open(&self.store, id, mode).boxed()
    }

    fn read<'a>(
        &'a self,
        id: &'a SessionId,
        after: Seq,
        upto: Seq,
    ) -> BoxFuture<'a, Result<Vec<Arc<LogEntry>>, LogError>> {
        self.store.page(id, after, upto).boxed()
    }

    fn lines<'a>(
        &'a self,
        id: &'a SessionId,
        from: LinePlace,
        upto: LinePlace,
    ) -> BoxFuture<'a, Result<(Vec<String>, LinePlace), LogError>> {
        self.store.raw_lines(id, from, upto).boxed()
    }

    fn line_place<'a>(
        &'a self,
        id: &'a SessionId,
        count: u64,
    ) -> BoxFuture<'a, Result<LinePlace, LogError>> {
        self.store.line_place(id, count).boxed()
    }

    fn summary<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Summary>, LogError>> {
        self.store.summary(id).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Summary>, LogError>> {
        self.store.list().boxed()
    }

    fn archive<'a>(
        &'a self,
        id: &'a SessionId,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool, LogError>> {
        self.store.archive(id, at).boxed()
    }

    fn fork<'a>(&'a self, fork: &'a Fork) -> BoxFuture<'a, Result<ForkedAt, LogError>> {
        fork::fork(&self.store, fork).boxed()
    }

    fn kept_content<'a>(
        &'a self,
        id: &'a SessionId,
        hash: &'a str,
    ) -> BoxFuture<'a, Result<Option<Bytes>, LogError>> {
        self.store.kept_content(id, hash).boxed()
    }

    fn out_of_reach(&self) -> Option<&'static str> {
        self.store.out_of_reach()
    }
}
