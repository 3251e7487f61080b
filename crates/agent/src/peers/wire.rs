//! What servers say to each other. All of one store run the same version while they share it; what
//! cannot be read is answered as unknown, and the log stays the truth.

use std::sync::Arc;

use bytes::Bytes;
use polyloop_session::event::Raw;
use polyloop_session::undo::Which;
use polyloop_session::wait::Who;
use polyloop_session::{Command, Growth, LogEntry, Seq, SessionId, Text, Update, WaitRef};
use serde::{Deserialize, Serialize};

use super::ServerId;
use crate::actor::{CommandError, Recorded, UndoError, Undone};
use crate::subscriber::Power;

/// What a server asks of the one that has a session.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub id: SessionId,
    pub from: ServerId,
    pub what: What,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum What {
    /// Somebody watches there; said again and again while that is so.
    Watch {
        watch: Watch,
        /// How far somebody was shown the session who comes back there.
        since: Option<Seq>,
    },
    /// Nobody does any more.
    Leave,
    Command(Command),
    SettleWithPatch {
        wait: WaitRef,
        patch: Text,
        always: bool,
        by: Who,
    },
    Undo {
        which: Which,
        by: Who,
    },
    Audit {
        line: String,
    },
    CloseIfIdle,
}

/// Those who watch a session at another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Watch {
    /// What the most powerful of them can do.
    pub power: Power,
    /// There are clients among them, for whom a session stays awake.
    pub clients: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answered {
    /// The session does not run here, so nothing was done.
    NotHere,
    /// How far the session is, and what is shown of open items there.
    Stands {
        head: Seq,
        live: Vec<Growth>,
    },
    Recorded(Result<Recorded, CommandError>),
    Undone(Result<Undone, UndoError>),
    /// Whether it was idle, and so was ended.
    Idle(bool),
    Noted,
}

/// What is told of a session to the servers that follow it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Told {
    Logged(Arc<LogEntry>),
    Grew(Growth),
    Raw(Raw),
    /// More than can be told: it is in the log.
    Look,
}

impl From<&Update> for Told {
    fn from(update: &Update) -> Told {
        match update {
            Update::Logged(entry) => Told::Logged(entry.clone()),
            Update::Grew(growth) => Told::Grew(growth.clone()),
            Update::Raw(raw) => Told::Raw(raw.clone()),
        }
    }
}

pub(crate) fn written<T: Serialize>(what: &T) -> Option<Bytes> {
    let text = serde_json::to_vec(what);
    text.inspect_err(|error| tracing::error!(%error, "cannot be told to other servers"))
        .ok()
        .map(Bytes::from)
}

pub(crate) fn read<T: for<'a> Deserialize<'a>>(text: &[u8]) -> Option<T> {
    let read = serde_json::from_slice(text);
    read.inspect_err(|error| tracing::warn!(%error, "another server says what cannot be read")).ok()
}
