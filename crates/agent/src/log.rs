//! Where sessions are kept. One writer a session; a read after an append sees it; numbers are
//! gapless; a torn tail is cut.
//!
//! A log knows no wire format: how an entry is written as lines is the codec's business, which
//! the server hands in. `conformance` is the test that every log must pass.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use polyloop_session::event::{Adopted, Agent, Setting};
use polyloop_session::item::Usage;
use polyloop_session::{Event, Growth, Live, LogEntry, Seq, SessionId, State, Text, Timestamp};
use serde::{Deserialize, Serialize};

pub mod files;
mod fork;
pub mod memory;
#[cfg(feature = "nats")]
pub mod nats;
mod standing;

pub use fork::{Fork, ForkedAt, TakenGrowth};
pub use standing::{PREVIEW_CHARS_MAX, Standing};

#[cfg(test)]
mod conformance;

pub trait Log: Send + Sync + 'static {
    /// Leases a session for writing and folds what it holds. `None` when there is no such session
    /// and `mode` does not make one.
    fn open<'a>(
        &'a self,
        id: &'a SessionId,
        mode: OpenMode,
    ) -> BoxFuture<'a, Result<Option<Opened>, LogError>>;

    /// Entries after `after` up to and including `upto`, a page at a time: fewer than asked for
    /// does not mean the end, an empty page does.
    fn read<'a>(
        &'a self,
        id: &'a SessionId,
        after: Seq,
        upto: Seq,
    ) -> BoxFuture<'a, Result<Vec<Arc<LogEntry>>, LogError>>;

    /// The session's lines as its file holds them, from one place up to another, a page at a time;
    /// at the end the place stays where it is.
    fn lines<'a>(
        &'a self,
        id: &'a SessionId,
        from: LinePlace,
        upto: LinePlace,
    ) -> BoxFuture<'a, Result<(Vec<String>, LinePlace), LogError>>;

    /// The place after the first `count` lines, or after the last if there are not so many.
    fn line_place<'a>(
        &'a self,
        id: &'a SessionId,
        count: u64,
    ) -> BoxFuture<'a, Result<LinePlace, LogError>>;

    fn summary<'a>(&'a self, id: &'a SessionId)
    -> BoxFuture<'a, Result<Option<Summary>, LogError>>;

    /// All sessions that are not archived, in no order.
    fn list(&self) -> BoxFuture<'_, Result<Vec<Summary>, LogError>>;

    /// Puts a session away under a name that holds the time; false when there is none. Nobody may
    /// have it open.
    fn archive<'a>(
        &'a self,
        id: &'a SessionId,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool, LogError>>;

    /// Makes a session of a copy of another's entries: a whole one, or none. The other stays as
    /// it is, and may be written meanwhile by whoever told of its growth.
    fn fork<'a>(&'a self, fork: &'a Fork) -> BoxFuture<'a, Result<ForkedAt, LogError>>;

    /// A content that a writer kept under its hash.
    fn kept_content<'a>(
        &'a self,
        id: &'a SessionId,
        hash: &'a str,
    ) -> BoxFuture<'a, Result<Option<Bytes>, LogError>>;

    /// Why it cannot be asked anything now, for people. A log on this machine always can.
    fn out_of_reach(&self) -> Option<&'static str> {
        None
    }
}

/// Of all contents that are kept for undo in one session.
pub const KEPT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A lease on one session: while it lives, nobody else appends.
pub trait Writer: Send {
    /// Appends a batch in one write, or nothing of it. Refused unless the log ends at
    /// `expected_last`. Does not wait for the disk: the batch is in the log, and what is given says
    /// when it is also safe. Until then nobody may be shown it, or anything that follows from it;
    /// where nothing is given it may be shown at once.
    fn append_ahead<'a>(
        &'a mut self,
        expected_last: Seq,
        entries: &'a [Arc<LogEntry>],
        flush: Flush,
    ) -> BoxFuture<'a, Result<Option<Flushing>, LogError>>;

    /// Begins to flush what was appended to be flushed soon, if nothing has flushed it since. It
    /// was shown already, so nobody waits for it.
    fn flush_owed(&mut self) -> Option<Flushing> {
        None
    }

    /// The same as `append_ahead`; what is done is safe.
    fn append<'a>(
        &'a mut self,
        expected_last: Seq,
        entries: &'a [Arc<LogEntry>],
        flush: Flush,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        async move {
            match self.append_ahead(expected_last, entries, flush).await? {
                Some(flushing) => flushing.await,
                None => Ok(()),
            }
        }
        .boxed()
    }

    /// Fails unless this writer is still the one that writes.
    fn confirmed(&mut self) -> BoxFuture<'_, Result<(), LogError>>;

    /// Keeps growth of open items until it is forgotten.
    fn grow<'a>(&'a mut self, growths: &'a [Growth]) -> BoxFuture<'a, Result<(), LogError>>;

    /// No item is open: what `grow` kept is no longer needed. It is forgotten when the writer is
    /// let go, and before it is much; until then whoever opens the session after a crash may find
    /// growth of items that are complete.
    fn end_growth(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        self.forget_growth()
    }

    /// Forgets what `grow` kept, at once.
    fn forget_growth(&mut self) -> BoxFuture<'_, Result<(), LogError>>;

    /// Adds a line that is never replayed.
    fn audit<'a>(&'a mut self, line: &'a str) -> BoxFuture<'a, Result<(), LogError>>;

    /// Keeps a file's content beside the log, until the session is put away; it reaches the disk
    /// with the next batch that does. False where there is no room for it.
    fn keep_content<'a>(
        &'a mut self,
        hash: &'a str,
        content: &'a Bytes,
    ) -> BoxFuture<'a, Result<bool, LogError>>;

    /// Says what the log adds up to, so that whoever opens it next need not fold it all. A log may
    /// keep it or not; nothing depends on it.
    fn keep<'a>(&'a mut self, state: &'a State, occasion: Occasion) -> BoxFuture<'a, ()>;
}

/// Ends when a batch is safe, or cannot be made so; it comes about also if nobody waits for it.
pub type Flushing = BoxFuture<'static, Result<(), LogError>>;

/// When a log is told what it adds up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The session goes on: worth it if much came in since.
    TurnEnded,
    /// The session leaves memory.
    Leaving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    Existing,
    OrCreate,
}

/// Whether a batch must be on the disk, or only out of this process, before anyone sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flush {
    #[default]
    Process,
    /// Out of this process, and on the disk with the next batch that must be, or when `flush_owed`
    /// is called.
    Soon,
    Disk,
}

/// A place in a session's lines; where the next page begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinePlace(pub u64);

impl LinePlace {
    /// After all of them.
    pub const END: LinePlace = LinePlace(u64::MAX);
}

pub struct Opened {
    pub writer: Box<dyn Writer>,
    pub folded: Folded,
    /// What was open when the last writer went away.
    pub live: Live,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub id: SessionId,
    pub start: Timestamp,
    pub last: Timestamp,
    pub lines: u64,
    pub named: Named,
    pub spent: Spent,
    pub standing: Standing,
}

/// What a session was named to be, the last time somebody said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
}

impl Named {
    pub(crate) fn take(&mut self, event: &Event) {
        match event {
            Event::SessionCreated { settings, .. } => {
                self.title = settings.title.clone().or(self.title.take());
                self.agent = settings.agent.or(self.agent);
            }
            Event::SettingSet { setting: Setting::Title { title }, .. } => {
                self.title = Some(title.clone());
            }
            Event::SettingSet { setting: Setting::Agent { agent }, .. } => {
                self.agent = Some(*agent);
            }
            _ => {}
        }
    }
}

/// What all model calls of a session cost together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    pub calls: u64,
    pub usage: Usage,
}

impl Spent {
    pub(crate) fn take(&mut self, event: &Event) {
        if let Event::CallEnded { usage, .. } = event {
            self.calls = self.calls.saturating_add(1);
            self.usage.add(usage.unwrap_or_default());
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Counted from 1.
    pub line: u64,
    pub why: String,
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("session log moved on: expected to end at {expected}, it ends at {found}")]
    Conflict { expected: Seq, found: Seq },
    #[error("{what}: another server has opened it since")]
    Lost { what: String },
    #[error("{what}: {why}")]
    Store { what: String, why: String },
    /// It did not answer; the same may work later.
    #[error("{what}: {why}")]
    Unreachable { what: String, why: String },
}

impl LogError {
    /// Somebody else writes the session: this writer is done for, and the session is well.
    pub fn is_lost(&self) -> bool {
        match self {
            LogError::Conflict { .. } | LogError::Lost { .. } => true,
            LogError::Store { .. } | LogError::Unreachable { .. } => false,
        }
    }

    pub fn store(what: impl Into<String>, why: impl std::fmt::Display) -> LogError {
        LogError::Store { what: what.into(), why: why.to_string() }
    }

    pub fn lost(what: impl Into<String>) -> LogError {
        LogError::Lost { what: what.into() }
    }
}

/// What a session's entries add up to, with the places where whoever follows it may
/// begin.
#[derive(Default)]
pub struct Folded {
    pub state: State,
    pub turns: Vec<Seq>,
    pub damage: Vec<Damage>,
    /// What people were last told of damage, so that they are told once.
    pub damage_told: Option<Text>,
    /// The newest time in the log, which no later entry goes behind.
    pub last_at: Timestamp,
}

/// The code of notices about damaged files.
pub const DAMAGED_CODE: &str = "damaged_file";

impl Folded {
    pub fn take(&mut self, entry: &LogEntry) {
        match &entry.event {
            event if event.is_beginning() => self.turns.push(entry.seq),
            Event::Noticed { code, text, .. } if &**code == DAMAGED_CODE => {
                self.damage_told = Some(text.clone());
            }
            _ => {}
        }
        self.last_at = self.last_at.max(entry.at);
        self.state.apply(entry);
    }
}

/// How entries are written as lines, and read back.
pub trait Codec: Send + Sync + 'static {
    fn encoder(&self, id: &SessionId) -> Box<dyn LineEncoder>;

    /// `blob` finds a text that stands in a file of its own.
    fn read(&self, line: &str, blob: &dyn Fn(&str) -> Option<String>) -> Line;

    /// The line with such texts put back; `None` when it cannot be read.
    fn restored(&self, line: &str, blob: &dyn Fn(&str) -> Option<String>) -> Option<String>;

    fn line_time(&self, line: &str) -> Option<Timestamp>;
}

/// A fold: it must be shown every entry of the running turn.
pub trait LineEncoder: Send {
    fn lines(&mut self, entry: &LogEntry) -> Lines;
}

#[derive(Debug, Default)]
pub struct Lines {
    /// Each ends with a newline.
    pub lines: Vec<String>,
    /// Files that the lines name: name and text.
    pub blobs: Vec<(String, String)>,
}

#[derive(Debug)]
pub enum Line {
    Entry(LogEntry),
    More { seq: Seq },
    Audit,
    Foreign { at: Timestamp, piece: Option<Adopted> },
    Damaged { seq: Option<Seq>, why: String },
}
