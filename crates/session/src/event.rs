//! What happened. Lifecycle is the event, kind is the item.
//!
//! An entry never changes once it is written, and `State::apply` is the only reader that decides
//! what it means. No floating-point numbers; no event names a sibling of its own batch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::context::Strategy;
use crate::growth::Growth;
use crate::id::{CallId, ItemId, MessageId, Seq, Text, Timestamp, TurnId, WaitId};
use crate::item::{End, Fault, ItemKind, Opaque, Part, ToolResult, Usage};
use crate::policy::{Judgement, Mode};
use crate::wait::{Answer, Ask, Who};

/// A durable fact with its place and time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    pub seq: Seq,
    pub at: Timestamp,
    pub event: Event,
}

/// What subscribers are sent, in one order.
#[derive(Clone, Debug)]
pub enum Update {
    Logged(Arc<LogEntry>),
    Grew(Growth),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// Always the first event of a session of our own making.
    SessionCreated {
        settings: Settings,
        by: Who,
    },
    /// One line of a file that another program wrote, taken over as it stands.
    Adopted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        piece: Option<Adopted>,
    },
    ModeSet {
        mode: Mode,
        by: Who,
    },

    MessageQueued {
        content: Vec<Part>,
        origin: Origin,
        /// The client's own name for the message, so that it can be cancelled by it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_ref: Option<Text>,
        tokens: u64,
    },
    MessageDropped {
        message: MessageId,
        by: Who,
    },

    TurnStarted {
        work: Work,
    },
    TurnStopping {
        reason: Stop,
    },
    TurnEnded {
        outcome: Outcome,
        usage: Usage,
    },

    /// `tokens_max` is the size of the model's window.
    CallStarted {
        purpose: Purpose,
        model: Text,
        tokens_max: u64,
    },
    CallEnded {
        call: CallId,
        outcome: CallOutcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },

    ItemStarted {
        call: CallId,
        block: u32,
        item: ItemKind,
    },
    /// The arguments are whole, the call ended well, and the agent judged what it would do.
    ToolProposed {
        item: ItemId,
        args: Text,
        judgement: Box<Judgement>,
        /// Someone who can approve was attached, or had begun the turn.
        answerable: bool,
        tokens: u64,
    },
    ToolStarted {
        item: ItemId,
        sandboxed: bool,
    },
    ItemCompleted {
        item: ItemId,
        end: End,
        /// All that was streamed: text, reasoning, or a tool's output (for a call cut inside its
        /// arguments, those).
        text: Text,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Opaque>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Box<ToolResult>>,
        tokens: u64,
    },

    WaitOpened {
        item: ItemId,
        ask: Ask,
    },
    WaitSettled {
        wait: WaitId,
        answer: Answer,
        by: Who,
    },
    WaitWithdrawn {
        wait: WaitId,
        reason: Text,
    },
    ExplainAsked {
        wait: WaitId,
        by: Who,
    },

    Compacted {
        call: CallId,
        /// Pieces of the prompt up to and including this entry are replaced by the summary.
        upto: Seq,
        summary: Text,
        summary_tokens: u64,
        tokens_before: u64,
        tokens_after: u64,
        /// What the numbers were measured against.
        window: Window,
    },
    /// Something a person should know that changes nothing.
    Noticed {
        level: Level,
        text: Text,
        code: Text,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub cwd: Text,
    pub model: Text,
    pub mode: Mode,
    /// Model calls one turn may make.
    pub calls_max: u32,
}

/// Who began a turn, and whether they can answer what it asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    #[serde(flatten)]
    pub who: Who,
    pub can_approve: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Work {
    Message {
        message: MessageId,
    },
    /// Takes up what an interrupted turn left.
    Resume {
        turn: TurnId,
        by: Who,
    },
    Compact {
        by: Who,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Stop {
    Interrupted {
        by: Who,
        reason: Text,
    },
    /// A denial that ends the turn.
    Denied {
        wait: WaitId,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    Completed,
    Failed { fault: Fault },
    Interrupted { reason: Text },
}

/// What a model call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Purpose {
    /// The next step of the conversation.
    Think,
    /// Say what the call that waits for approval would do.
    Explain {
        wait: WaitId,
    },
    Summarise,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CallOutcome {
    Answered,
    Failed {
        fault: Fault,
    },
    Stopped,
    /// A crash ended it.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub tokens_max: u64,
    pub strategy: Strategy,
    /// Pieces left in the prompt.
    pub pieces: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Info,
    Warning,
}

/// A piece of conversation found in another program's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Adopted {
    User { content: Vec<Part> },
    Agent { text: Text },
    ToolCall { call_ref: Text, name: Text, args: Text },
    ToolResult { call_ref: Text, output: Text },
}
