//! The message types of the chat protocol, as its document writes them.

use serde::{Deserialize, Serialize};

/// What clients send. Its `type` is looked at before the rest is read.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Chat {
    pub message: String,
    #[serde(default)]
    pub session_id: Option<String>,
}

/// The one type of client message.
pub(super) const CHAT: &str = "chat";

/// What the server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) enum Told<'a> {
    UserMessage {
        message: &'a str,
    },
    AgentMessage {
        message: &'a str,
    },
    /// `tool_args` is JSON as text.
    ToolCall {
        tool_name: &'a str,
        tool_args: &'a str,
    },
    ToolResult {
        tool_name: &'a str,
        result: &'a str,
        success: bool,
    },
    AgentThinking {
        reasoning: &'a str,
    },
    Error {
        error: &'a str,
    },
}
