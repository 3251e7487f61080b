//! What the server sends. Each type holds a message's own fields; `type` and `id` come before them
//! (`Head` for replies, by hand in `encode/parts.rs` for all that many are sent), and the stamp of
//! place adds `session_id`, `seq` and `cursor`.

use polyloop_session::item::Usage;
use serde::Serialize;

use super::asks::{ApprovalSettled, AskUserQuestion, ControlRequest, ExitPlanMode, ToolId};
use super::number::{Dollars, Fraction, Json};
use super::queue::{MessageDropped, MessageName, MessageQueued};
use super::todos::{TodoTold, TodosChanged};

/// A message of the server.
pub(in crate::unified) trait Told: Serialize {
    const TYPE: &'static str;
}

#[derive(Serialize)]
pub(in crate::unified) struct Head<'a, T> {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub id: &'a str,
    /// Only where no stamp will say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a str>,
    #[serde(flatten)]
    pub own: &'a T,
}

macro_rules! told {
    ($($kind:literal $own:ty),* $(,)?) => {$(
        impl Told for $own {
            const TYPE: &'static str = $kind;
        }
    )*};
}

told! {
    "session_init" SessionInit<'_>,
    "session_info" SessionInfo<'_>,
    "session_renamed" SessionRenamed<'_>,
    "message_queued" MessageQueued<'_>,
    "message_dropped" MessageDropped<'_>,
    "turn_started" TurnStarted<'_>,
    "turn_completed" TurnCompleted,
    "turn_failed" TurnFailed<'_>,
    "assistant_message" AssistantMessage<'_>,
    "assistant_reasoning" AssistantReasoning<'_>,
    "tool_started" ToolStarted<'_>,
    "tool_completed" ToolCompleted<'_>,
    "control_request" ControlRequest<'_>,
    "approval_settled" ApprovalSettled,
    "file_changed" FileChanged<'_>,
    "command_output" CommandOutput<'_>,
    "token_usage" TokenUsage,
    "context_compaction" ContextCompaction,
    "context_info" ContextReport,
    "ask_user_question" AskUserQuestion<'_>,
    "exit_plan_mode" ExitPlanMode,
    "todos_changed" TodosChanged<'_>,
    "notice" Notice<'_>,
    "error" ErrorTold<'_>,
    "heartbeat" Heartbeat,
    "raw" RawTold<'_>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct SessionInit<'a> {
    pub model: &'a str,
    pub success: bool,
    pub cwd: &'a str,
    pub tools: Vec<&'a str>,
    pub permission_mode: &'static str,
    pub agent: &'static str,
    pub title: Option<&'a str>,
    /// As in `todos_changed`.
    pub todos: Vec<TodoTold<'a>>,
    /// Why the session could not be begun as asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) enum Status {
    Active,
    Paused,
    Completed,
}

/// How the session stands; a setting that has changed stands beside it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct SessionInfo<'a> {
    pub status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// The last field: the connection's own word is put in between its quotes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<&'static str>,
}

impl SessionInfo<'_> {
    pub(in crate::unified) fn new(status: Status) -> SessionInfo<'static> {
        SessionInfo {
            status,
            model: None,
            agent: None,
            max_turns: None,
            metadata: None,
            permission_mode: None,
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct SessionRenamed<'a> {
    pub title: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct TurnStarted<'a> {
    /// By this the message was told as one that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub message_id: Option<MessageName>,
    /// What was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Who said it, or asked for the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<&'a str>,
    /// The `id` of the client's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_ref: Option<&'a str>,
    /// It takes up what an interrupted turn left.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resumes: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct TurnCompleted {
    pub usage: Tokens,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct TurnFailed<'a> {
    pub error: String,
    pub code: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct Tokens {
    /// All input, cached or not.
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    /// Input and output.
    pub total_tokens: u64,
    /// In dollars, where the model's price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Dollars>,
}

impl Tokens {
    pub(in crate::unified) fn of(usage: &Usage) -> Tokens {
        Tokens {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            total_tokens: usage.total_tokens(),
            cost_usd: usage.cost_micros.map(|micros| Dollars { micros }),
        }
    }
}

/// An increment of a message; clients append until `is_final`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct AssistantMessage<'a> {
    pub text: &'a str,
    pub is_final: bool,
}

/// An increment of reasoning.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct AssistantReasoning<'a> {
    pub text: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct ToolStarted<'a> {
    pub tool_name: &'a str,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub tool_id: CallName<'a>,
    pub arguments: Json,
}

/// How a call is named: by our item, or by the program whose file it came from.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
pub(in crate::unified) enum CallName<'a> {
    Ours(ToolId),
    Theirs(&'a str),
}

/// Exactly one of `result` and `error` is not null.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct ToolCompleted<'a> {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub tool_id: CallName<'a>,
    pub success: bool,
    pub result: Option<&'a str>,
    pub error: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct FileChanged<'a> {
    pub path: std::borrow::Cow<'a, str>,
    pub operation: FileOperation,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) enum FileOperation {
    Create,
    Update,
    Delete,
}

/// An increment of a command's output; the last one is not streaming and has the exit code.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct CommandOutput<'a> {
    pub command: &'a str,
    pub output: &'a str,
    pub exit_code: Option<i32>,
    pub is_streaming: bool,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub tool_id: ToolId,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct TokenUsage {
    pub usage: Tokens,
    pub context_window: Option<u64>,
    /// The share of the window that is used; a fraction.
    pub usage_percent: Fraction,
}

impl TokenUsage {
    pub(in crate::unified) fn new(usage: &Usage, window: u64) -> TokenUsage {
        let usage = Tokens::of(usage);
        let usage_percent = Fraction { part: usage.total_tokens, whole: window };
        TokenUsage { usage, context_window: (window > 0).then_some(window), usage_percent }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct ContextCompaction {
    pub reason: &'static str,
    pub tokens_before: u64,
    pub tokens_after: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct ContextReport {
    pub token_count: u64,
    pub max_tokens: u64,
    /// A fraction.
    pub usage_percent: Fraction,
    pub transcript_length: u64,
    pub strategy: &'static str,
    /// How near that is to the end: normal, medium (from 80 %), high (90) or critical (95).
    pub warning_level: &'static str,
    /// What all model calls of the session cost.
    pub session_usage: Tokens,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct Notice<'a> {
    pub level: NoticeLevel,
    pub text: std::borrow::Cow<'a, str>,
    pub code: &'a str,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) enum NoticeLevel {
    Info,
    Warning,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct ErrorTold<'a> {
    pub message: &'a str,
    pub is_fatal: bool,
    pub code: &'a str,
    /// The `id` of the client's message that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_ref: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct Heartbeat {
    /// Unix seconds.
    pub timestamp: i64,
}

/// What a provider sent that has no event of its own.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct RawTold<'a> {
    pub data: Json,
    pub provider: &'a str,
}
