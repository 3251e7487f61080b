//! What a client may ask of one session, and the typed "no" it may get.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::event::{Origin, RunOptions, Setting};
use crate::id::{ItemId, MessageId, Text, TurnId, WaitId};
use crate::item::Part;
use crate::policy::{Judgement, Mode};
use crate::wait::{Reading, Then, Who};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Command {
    Send(Box<Send>),
    /// Drops a queued message, interrupts the turn that a message began, or withdraws a request.
    Cancel {
        target: Target,
        by: Who,
    },
    Settle {
        wait: WaitRef,
        reply: WaitReply,
        by: Who,
    },
    Interrupt {
        /// Only this turn; nothing means the one that runs.
        turn: Option<TurnId>,
        reason: Text,
        by: Who,
    },
    Resume {
        by: Who,
    },
    Compact {
        by: Who,
    },
    SetMode {
        mode: Mode,
        by: Who,
    },
    Set {
        setting: Setting,
        by: Who,
    },
    Close {
        by: Who,
    },
    Reopen {
        by: Who,
    },
}

/// What is to be cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    Message(MessageId),
    /// What the client itself called its message.
    ClientRef(Text),
    Wait(WaitId),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Send {
    pub content: Vec<Part>,
    pub origin: Origin,
    pub client_ref: Option<Text>,
    pub delivery: Delivery,
    /// Counted by the agent.
    pub tokens: u64,
    pub run: Option<Box<RunOptions>>,
}

/// What to do with a message while a turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Delivery {
    Queue,
    /// It answers the open question, if there is one.
    AnswerQuestion,
    /// It answers the open question or plan, if there is one. `consents`: to a plan it says yes.
    Answer {
        consents: bool,
    },
}

/// Which wait is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitRef {
    /// The oldest that is open: dialects without ids present one at a time.
    Presented,
    Id(WaitId),
    /// The one that is open about this item.
    Item(ItemId),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WaitReply {
    /// `message`: what was said with the yes. To a question it is the answer.
    Approve {
        message: Option<Text>,
    },
    /// Approve, and ask no more for what the request said this would cover.
    ApproveAlways,
    /// Approve, but run these arguments, judged by the agent, in place of the model's.
    ApproveInstead {
        args: Text,
        judgement: Box<Judgement>,
        always: bool,
    },
    Deny {
        message: Option<Text>,
        then: Then,
    },
    Explain,
    /// The answers of a form.
    Answer {
        answers: Reading,
    },
}

/// Why a command changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    EmptyMessage,
    QueueFull { limit: usize },
    NoPendingApproval,
    AlreadySettled { by: String },
    Withdrawn,
    AlreadyExplaining,
    NotAnEdit,
    BadAnswer { why: String },
    Refused { reason: Text },
    UnknownTarget,
    NoSuchTurn,
    AlreadyClosed,
    BadSetting { why: String },
    NothingRunning,
    NothingToResume,
    TurnRunning,
    NothingToCompact,
    BypassNotAllowed,
    NothingToUndo,
    NoSuchEdit,
    AlreadyUndone,
    TooManySessions { limit: usize },
}

impl Refusal {
    /// A short word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::EmptyMessage => "empty_message",
            Refusal::QueueFull { .. } => "queue_full",
            Refusal::NoPendingApproval => "no_pending_approval",
            Refusal::AlreadySettled { .. } => "already_settled",
            Refusal::Withdrawn => "withdrawn",
            Refusal::AlreadyExplaining => "already_explaining",
            Refusal::NotAnEdit => "not_an_edit",
            Refusal::Refused { .. } => "refused",
            Refusal::BadAnswer { .. } => "bad_answer",
            Refusal::UnknownTarget => "unknown_target",
            Refusal::NoSuchTurn => "no_such_turn",
            Refusal::AlreadyClosed => "already_closed",
            Refusal::BadSetting { .. } => "bad_setting",
            Refusal::NothingRunning => "nothing_running",
            Refusal::NothingToResume => "nothing_to_resume",
            Refusal::TurnRunning => "turn_running",
            Refusal::NothingToCompact => "nothing_to_compact",
            Refusal::BypassNotAllowed => "bypass_not_allowed",
            Refusal::NothingToUndo => "nothing_to_undo",
            Refusal::NoSuchEdit => "no_such_edit",
            Refusal::AlreadyUndone => "already_undone",
            Refusal::TooManySessions { .. } => "overloaded",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::EmptyMessage => f.write_str("The message is empty"),
            Refusal::QueueFull { limit } => write!(
                f,
                "{limit} messages are queued already, which is the limit (MAX_QUEUED_MESSAGES); \
                 wait for a turn to end"
            ),
            Refusal::NoPendingApproval => f.write_str("No pending approval request"),
            Refusal::AlreadySettled { by } => {
                write!(f, "That approval request was settled already by {by}")
            }
            Refusal::Withdrawn => {
                f.write_str("That approval request was withdrawn: its turn was stopped")
            }
            Refusal::AlreadyExplaining => f.write_str("An explanation is on its way already"),
            Refusal::NotAnEdit => {
                f.write_str("applyPatch can only take the place of a proposed patch")
            }
            Refusal::Refused { reason } => f.write_str(reason),
            Refusal::BadAnswer { why } | Refusal::BadSetting { why } => f.write_str(why),
            Refusal::UnknownTarget => f.write_str(
                "Nothing that can be cancelled has that id: no queued message, no running turn, no \
                 pending request",
            ),
            Refusal::NoSuchTurn => f.write_str("That run is not running"),
            Refusal::AlreadyClosed => f.write_str("The session was ended already"),
            Refusal::NothingRunning => f.write_str("No turn is running"),
            Refusal::NothingToResume => f.write_str("No interrupted turn is left to resume"),
            Refusal::TurnRunning => {
                f.write_str("A turn is running; wait for its end, or interrupt it first")
            }
            Refusal::NothingToCompact => f.write_str("Cannot compact empty transcript"),
            Refusal::BypassNotAllowed => f.write_str(
                "Mode bypass is not allowed here; start the server with ALLOW_BYPASS=true",
            ),
            Refusal::NothingToUndo => {
                f.write_str("No file edit of this session is left to take back")
            }
            Refusal::NoSuchEdit => f.write_str(
                "No file edit of this session has that number; give the number of a turn, of a \
                 tool call, or of an undo",
            ),
            Refusal::AlreadyUndone => f.write_str("That was taken back already"),
            Refusal::TooManySessions { limit } => write!(
                f,
                "{limit} sessions are in use, as many as this server holds at once \
                 (MAX_AWAKE_SESSIONS); try again later"
            ),
        }
    }
}
