//! What the reading half hands to the writing half, and what it must know of what was written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use polyloop_agent::sessions::Handle;
use polyloop_agent::subscriber::Subscription;
use polyloop_dialects::{Cursor, Dialect, Frame};
use polyloop_session::{MessageId, SessionId, TurnId, WaitId};
use tokio::sync::{Notify, OwnedSemaphorePermit};

use crate::room::Member;
use crate::view::{Bundle, DialectView};

/// The first bytes of a frame that closes, and its longest reason.
const CLOSE: u8 = 0x88;
const REASON_BYTES_MAX: usize = 123;

pub(super) enum Outgoing {
    /// A frame of a session, and the room it takes in the queue until it is written.
    Frame(SessionId, Box<Frame>, OwnedSemaphorePermit),
    /// A frame that is about no session.
    Plain(Box<Frame>, OwnedSemaphorePermit),
    /// Whatever is queued goes out.
    Flush,
    /// An answer, which gets the place of what was sent of its session before it.
    Reply(Option<SessionId>, Box<Frame>),
    /// The stamp of what the client has of a session, before anything of it was sent here.
    Place(SessionId, Vec<u8>),
    /// Goes on counting a run's events where the client left off.
    Count(SessionId, Option<TurnId>, u64),
    /// The connection's dialect is decided, and the session it named, if any.
    Speaks(&'static dyn Dialect, Option<SessionId>),
    /// From here on the session's own frames.
    Subscribed(Box<Subscribed>),
    /// The message that this connection asked for a run with. Its session's frames are let go; if
    /// the client does not watch the session, only those of this run.
    Run(RunId),
    /// No more frames of the session.
    Left(SessionId),
    /// From here on the room's frames.
    Joined(Member),
    LeftRoom,
    Close(Close),
}

pub(super) struct Subscribed {
    pub session: SessionId,
    pub dialect: &'static dyn Dialect,
    pub subscription: Subscription<Arc<Bundle>>,
    /// The stamp of what went before.
    pub place: Bytes,
    pub sight: Sight,
    pub handle: Handle<DialectView>,
}

/// A run, by the message that asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunId {
    pub session: SessionId,
    pub message: MessageId,
}

/// What a client sees of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    All,
    /// Its own run, once it is known; until then nothing.
    OwnRun(Option<MessageId>),
}

impl Sight {
    pub(super) fn sees(self, frame: &Frame) -> bool {
        match self {
            Sight::All => true,
            Sight::OwnRun(own) => frame.run.is_some_and(|run| run.message == own),
        }
    }

    /// Until its run is known, the client sees nothing, and nothing is let go.
    pub(super) fn waits(self) -> bool {
        self == Sight::OwnRun(None)
    }
}

pub(super) enum Close {
    /// The client closed, or the protocol was broken and the answer is queued already.
    Answered,
    TooBig(String),
    TooSlow,
    GoingAway,
    /// The run that the client asked for has failed, and it was told.
    RunFailed,
    /// A session moved and could not be attached to again.
    StoreAway,
}

impl Close {
    /// As it is counted.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Close::Answered => "client",
            Close::TooBig(_) => "too_big",
            Close::TooSlow => "too_slow",
            Close::GoingAway => "shutdown",
            Close::RunFailed => "run_failed",
            Close::StoreAway => "store_away",
        }
    }

    /// The frame that tells the client.
    pub(super) fn frame(&self) -> Option<Vec<u8>> {
        let (code, reason): (u16, _) = match self {
            Close::Answered => return None,
            Close::TooBig(reason) => (1009, reason.as_str()),
            Close::TooSlow => (1013, "too slow; come back with ?since= your last cursor"),
            Close::GoingAway => (1001, "the server is shutting down"),
            Close::RunFailed => (1011, "the run failed"),
            Close::StoreAway => {
                (1013, "the session cannot be reached now; come back with ?since= your last cursor")
            }
        };
        let reason = &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)];
        let length = 2 + reason.len() as u8;
        Some([&[CLOSE, length], &code.to_be_bytes(), reason.as_bytes()].concat())
    }
}

/// What the reading half needs to know of what was written.
#[derive(Default)]
pub(super) struct Written {
    /// Sessions whose subscription ended though the socket did not: where the client is.
    detached: Mutex<Vec<(SessionId, Cursor)>>,
    run_ended: Mutex<Option<RunId>>,
    wake: Notify,
    shown: Mutex<Option<WaitId>>,
}

impl Written {
    /// Waits until a session ends under the client, or its run ends.
    pub(super) async fn news(&self) {
        self.wake.notified().await;
    }

    pub(super) fn take_detached(&self) -> Vec<(SessionId, Cursor)> {
        std::mem::take(&mut *lock(&self.detached))
    }

    pub(super) fn take_run_ended(&self) -> Option<RunId> {
        lock(&self.run_ended).take()
    }

    /// The wait that was last shown to the client.
    pub(super) fn shown(&self) -> Option<WaitId> {
        *lock(&self.shown)
    }

    pub(super) fn show(&self, wait: WaitId) {
        *lock(&self.shown) = Some(wait);
    }

    pub(super) fn detach(&self, session: SessionId, place: Cursor) {
        lock(&self.detached).push((session, place));
        self.wake.notify_one();
    }

    pub(super) fn end_run(&self, run: RunId) {
        *lock(&self.run_ended) = Some(run);
        self.wake.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
