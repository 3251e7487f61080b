//! A copy of a session's log up to an entry, under another id, and what came of making it.

use polyloop_session::event::Event;
use polyloop_session::wait::Who;
use polyloop_session::{Growth, LogEntry, Seq, SessionId, Timestamp};

/// What is to be copied. The copy ends with an entry that says what it is a copy of.
#[derive(Clone, Debug)]
pub struct Fork {
    pub from: SessionId,
    pub to: SessionId,
    /// The last entry that is copied; nothing is the newest.
    pub upto: Option<Seq>,
    pub growth: TakenGrowth,
    pub at: Timestamp,
    pub by: Who,
}

/// What was shown of items that are open at the newest entry. Of an older one nobody knows.
#[derive(Clone, Debug)]
pub enum TakenGrowth {
    /// Nobody writes the session: what its last writer left.
    Left,
    /// As its writer tells it, at that entry.
    Told { at: Seq, growths: Vec<Growth> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkedAt {
    Done {
        upto: Seq,
    },
    NotFound,
    /// The session ends before that entry.
    Beyond {
        last: Seq,
    },
}

impl Fork {
    /// The entry behind the copied ones. `last_at` is the newest time among those.
    pub(super) fn entry(&self, upto: Seq, last_at: Timestamp) -> LogEntry {
        let (session, by) = (self.from.clone(), self.by.clone());
        let event = Event::Forked { session, upto, by };
        LogEntry { seq: upto.next(), at: self.at.max(last_at), event }
    }
}
