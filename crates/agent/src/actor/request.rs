//! What may be asked of a session, here or by another server, and what comes of it.

use polyloop_session::context::ContextInfo;
use polyloop_session::event::Settings;
use polyloop_session::policy::Mode;
use polyloop_session::todos::Todo;
use polyloop_session::undo::Which;
use polyloop_session::wait::Who;
use polyloop_session::{
    Command, Growth, ItemId, MessageId, Refusal, Seq, Text, Timestamp, WaitRef,
};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::{UndoError, Undone};
use crate::log::LogError;
use crate::peers::wire::{self, Asked};
use crate::subscriber::{Power, Presence, Subscription, View};

/// What a command came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The message that was queued.
    pub message: Option<MessageId>,
}

/// A session as it is.
#[derive(Clone, Debug)]
pub struct Look {
    pub settings: Settings,
    pub mode: Mode,
    pub closed: bool,
    pub todos: Vec<Todo>,
}

pub(super) type Answered = Result<Recorded, CommandError>;

pub(crate) enum Request<V: View> {
    Command {
        command: Command,
        reply: oneshot::Sender<Answered>,
    },
    SettleWithPatch {
        wait: WaitRef,
        patch: Text,
        always: bool,
        by: Who,
        reply: oneshot::Sender<Answered>,
    },
    Attach {
        ask: Attach<V>,
        reply: oneshot::Sender<Result<Attached<V>, CommandError>>,
    },
    ContextInfo {
        reply: oneshot::Sender<ContextInfo>,
    },
    Look {
        reply: oneshot::Sender<Look>,
    },
    Audit {
        line: Box<dyn FnOnce(Timestamp, Seq) -> String + Send>,
    },
    /// End if nobody is attached and no turn runs; the answer says whether.
    CloseIfIdle {
        reply: oneshot::Sender<bool>,
    },
    /// End in good order: the server stops.
    Close,
    Undo {
        which: Which,
        by: Who,
        reply: oneshot::Sender<Result<Undone, UndoError>>,
    },
    Beginnings {
        upto: Seq,
        count: usize,
        reply: oneshot::Sender<Beginnings>,
    },
    /// The newest entry, and what is shown of open items there.
    Shown {
        reply: oneshot::Sender<(Seq, Vec<Growth>)>,
    },
    /// What another server asks of the one that has the session.
    Remote {
        asked: Asked,
        reply: oneshot::Sender<wire::Answered>,
    },
    /// Perhaps another server has it now, or none.
    OwnerChanged,
    /// Its server let it go: what has its name now may be another one.
    LetGo,
}

impl<V: View> Request<V> {
    /// Whether it is what servers say to each other again and again.
    pub(super) fn is_of_servers(&self) -> bool {
        matches!(self, Request::Remote { .. } | Request::OwnerChanged | Request::LetGo)
    }
}

/// Where a session may be read from.
#[derive(Clone, Debug)]
pub struct Beginnings {
    /// The newest entry.
    pub head: Seq,
    /// Items that are open there.
    pub open: Vec<ItemId>,
    /// Turns before which nothing is open, the newest first.
    pub turns: Vec<Seq>,
    /// There is none before these.
    pub is_all: bool,
}

pub struct Attach<V: View> {
    pub kind: V::Kind,
    /// The last entry that the client has.
    pub since: Option<Seq>,
    pub power: Power,
    pub presence: Presence,
}

/// What a client needs to catch up: it reads the log after `from` up to `head`, takes `live`, and
/// goes on with the subscription.
pub struct Attached<V: View> {
    pub head: Seq,
    pub from: Seq,
    pub live: Vec<Growth>,
    /// Messages up to `from` that still wait for their turn.
    pub waiting: Vec<MessageId>,
    pub subscription: Subscription<V::Bundle>,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum CommandError {
    Refused(Refusal),
    Store(String),
    /// The store failed under the session; whoever is attached to it is told as it ends.
    Failed(String),
    /// Another server took the session over before it was safe.
    Moved,
}

/// What whoever asked is told then.
pub const MOVED: &str =
    "another server took the session over before this was safe; look before you repeat";

impl From<LogError> for CommandError {
    fn from(error: LogError) -> CommandError {
        CommandError::told_of(&error)
    }
}

impl CommandError {
    pub(crate) fn told_of(error: &LogError) -> CommandError {
        match error.is_lost() {
            true => CommandError::Moved,
            false => CommandError::Store(error.to_string()),
        }
    }
}
