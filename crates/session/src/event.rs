//! What happened. Lifecycle is the event, kind is the item.
//!
//! An entry never changes once it is written, and `State::apply` is the only reader that decides
//! what it means. No floating-point numbers; no event names a sibling of its own batch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::context::Strategy;
use crate::growth::Growth;
use crate::id::{
    CallId, ItemId, MessageId, NodeId, Seq, SessionId, Text, ThoughtId, Timestamp, TurnId, WaitId,
};
use crate::item::{End, Fault, FileChange, ItemKind, Opaque, Part, ToolResult, Usage};
use crate::policy::{Judgement, Leave, Mode};
use crate::wait::{Answer, Ask, Who};

mod settings;
mod strategy;

pub use settings::{Agent, RunOptions, Setting, Settings};
pub use strategy::{LineId, NodeOutcome, PlannedNode, Purpose, Thought, Understanding, Weighed};

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
    /// What a provider sent that is no event of ours: shown to whoever watches, and not kept.
    Raw(Raw),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raw {
    pub call: CallId,
    pub provider: Text,
    /// JSON text.
    pub json: Text,
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
    SettingSet {
        setting: Setting,
        by: Who,
    },
    /// A client ended the session. With a turn running, `TurnStopping` stands before it.
    SessionClosed {
        by: Who,
    },
    SessionReopened {
        by: Who,
    },

    MessageQueued {
        content: Vec<Part>,
        origin: Origin,
        /// The client's own name for the message, so that it can be cancelled by it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_ref: Option<Text>,
        tokens: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<Box<RunOptions>>,
        /// Its turn cannot begin at once: another runs, or others came before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        waits: bool,
    },
    MessageDropped {
        message: MessageId,
        by: Who,
    },

    TurnStarted {
        work: Work,
        /// The agent kind in force; nothing is react.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<Agent>,
        /// The folder in force, which file paths are relative to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<Text>,
        /// Pieces that the prompt held before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        earlier: Option<u64>,
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
        /// What instructions and tool schemas take of it; absent where nobody counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        overhead_tokens: Option<u64>,
        /// Whose loop asks; nothing is the session's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<LineId>,
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
        /// What must go back to the provider with this call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Opaque>,
    },
    ToolStarted {
        item: ItemId,
        sandboxed: bool,
        /// By what it may run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        leave: Option<Leave>,
    },
    /// The sandbox stopped what ran in it: the call is weighed again, without a sandbox.
    SandboxRefused {
        item: ItemId,
        /// What it did not let the call do, for people.
        reason: Text,
        /// All that was streamed so far.
        text: Text,
        /// What the run came to.
        result: Box<ToolResult>,
        /// Someone who can approve was attached, or had begun the turn.
        answerable: bool,
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
        /// Who cancelled it; nobody did when its turn was stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Who>,
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
        /// The line that was made shorter; nothing is the session's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<LineId>,
    },
    /// In the prompt these tool outputs gave way to the stub. The log keeps them.
    Trimmed {
        items: Vec<ItemId>,
        stub: Text,
        stub_tokens: u64,
        tokens_before: u64,
        tokens_after: u64,
        /// What the numbers were measured against.
        window: Window,
        /// The line that was made shorter; nothing is the session's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<LineId>,
    },
    /// Something a person should know that changes nothing.
    Noticed {
        level: Level,
        text: Text,
        code: Text,
    },

    /// All before it is a copy of that session's log up to `upto`; from here it goes its own way.
    Forked {
        session: SessionId,
        upto: Seq,
        by: Who,
    },
    /// Recorded before an edit is made, so that a crash loses nothing that undo needs.
    FilesTouched {
        item: ItemId,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileChange>,
        /// Directories that are not there and will be, outermost first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        made: Vec<Text>,
        /// Directories that are there and will not be, outermost first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<Text>,
    },
    /// Recorded before files are taken back, with what will be done: a crash loses nothing that is
    /// needed to know whether it was, and to take that back too. `Undone` or `UndoFailed` ends it.
    UndoStarted {
        items: Vec<ItemId>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileChange>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        made: Vec<Text>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<Text>,
        /// What will not be taken back, and why.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<Skipped>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<Text>,
        by: Who,
    },
    /// What was begun to be taken back is in place still.
    UndoFailed {
        reason: Text,
    },
    /// File changes of these calls were taken back, or those of an earlier `Undone`.
    Undone {
        items: Vec<ItemId>,
        /// What that did, so that it can be taken back too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileChange>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        made: Vec<Text>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<Text>,
        /// What was not taken back, and why.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<Skipped>,
        /// What the paths are relative to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<Text>,
        by: Who,
        /// Of what the model is told.
        tokens: u64,
    },

    /// What a call gave does not say what it was asked for.
    Misread {
        call: CallId,
        why: Text,
    },
    /// A part of what dup made of the problem.
    Understood {
        call: CallId,
        part: Understanding,
        /// Of what the model is told of it.
        tokens: u64,
    },
    /// Thoughts that may follow one, or begin the search; none where that failed.
    Expanded {
        call: CallId,
        from: Option<ThoughtId>,
        thoughts: Vec<Thought>,
    },
    /// One opinion of thoughts or answers.
    Scored {
        call: CallId,
        /// In thousandths. Nothing where none could be had.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        score: Option<u32>,
        /// What a vote is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thought: Option<ThoughtId>,
    },
    /// The search goes on from these, best first; from none, where nothing is good enough.
    Chosen {
        depth: u32,
        beam: Vec<ThoughtId>,
        /// All that were weighed, in the order they were told.
        weighed: Vec<Weighed>,
    },
    /// Nothing was found there: the search goes on from earlier ones.
    Backtracked {
        to_depth: u32,
        beam: Vec<ThoughtId>,
        reason: Text,
        /// All that were weighed before it went back.
        weighed: Vec<Weighed>,
    },
    /// The search is over, and the model is told this before it answers.
    PathTaken {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thought: Option<ThoughtId>,
        note: Text,
        tokens: u64,
    },
    /// A graph of sub-tasks: of the work, or of one that is too much for one.
    Planned {
        call: CallId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<NodeId>,
        nodes: Vec<PlannedNode>,
    },
    Judged {
        call: CallId,
        node: NodeId,
        complex: bool,
    },
    NodeStarted {
        node: NodeId,
        /// What it is told beside the conversation.
        note: Text,
        tokens: u64,
    },
    /// The best of its answers, which is worked over.
    Kept {
        node: NodeId,
        text: Text,
    },
    /// Its answer was worked over.
    Refined {
        call: CallId,
        node: NodeId,
        /// Nothing where that failed: the answer stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Text>,
    },
    NodeEnded {
        node: NodeId,
        outcome: NodeOutcome,
    },
    /// A graph is done, and whoever answers with its results is told this before.
    Gathered {
        /// The one that it is inside of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeId>,
        note: Text,
        tokens: u64,
    },
    /// The answer of the turn, found without another call.
    Concluded {
        text: Text,
        tokens: u64,
    },
}

impl Event {
    /// Whoever follows a session may begin before it: what comes after names nothing further back,
    /// but for queued messages. A search that is taken up does, and a compaction may stand between.
    pub fn is_beginning(&self) -> bool {
        match self {
            Event::TurnStarted { work, agent, .. } => match work {
                Work::Message { .. } => true,
                Work::Resume { .. } => agent.is_none(),
                Work::Compact { .. } => false,
            },
            _ => false,
        }
    }
}

/// A change that stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    pub path: Text,
    pub reason: Text,
}

/// Who began a turn, and whether they can answer what it asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    #[serde(flatten)]
    pub who: Who,
    pub can_approve: bool,
    /// Can answer questions and plans, though not approvals.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_answer: bool,
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CallOutcome {
    Answered,
    Failed {
        fault: Fault,
    },
    /// The attempt failed and is made again, as a new call, not before this time has passed.
    Retried {
        fault: Fault,
        after_ms: u64,
    },
    Stopped,
    /// A crash ended it.
    Lost,
}

impl CallOutcome {
    /// What it gave is no part of the conversation.
    pub fn is_failure(&self) -> bool {
        match self {
            CallOutcome::Failed { .. } | CallOutcome::Retried { .. } => true,
            CallOutcome::Answered | CallOutcome::Stopped | CallOutcome::Lost => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub tokens_max: u64,
    pub strategy: Strategy,
    /// Pieces left in the prompt.
    pub pieces: u64,
    /// What instructions and tools take beside them; absent: nobody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_tokens: Option<u64>,
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
