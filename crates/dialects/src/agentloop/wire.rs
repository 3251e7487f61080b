//! The message types of the AgentLoop protocol, as its documents write them.

use polyloop_session::WaitId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

// What clients send.

#[derive(Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(rename = "id")]
    pub _id: String,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(borrow, default)]
    pub payload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct UserInput {
    pub input: Vec<InputItem>,
    /// Accepted and not used: the session remembers by itself.
    #[serde(default, rename = "previousResponseId")]
    pub _previous_response_id: Option<String>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum InputItem {
    Message {
        role: Role,
        content: Content,
    },
    InputText {
        text: String,
    },
    OutputText {
        text: String,
    },
    /// A picture: a data URL, or its kind and its base64.
    InputImage {
        #[serde(default)]
        image_url: Option<String>,
        #[serde(default)]
        media_type: Option<String>,
        #[serde(default)]
        data: Option<String>,
    },
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    User,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "a text or a list of {type, text} parts")]
pub(super) enum Content {
    Text(String),
    Parts(Vec<InputPart>),
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum InputPart {
    InputText {
        text: String,
    },
    OutputText {
        text: String,
    },
    /// A picture: a data URL, or its kind and its base64.
    InputImage {
        #[serde(default)]
        image_url: Option<String>,
        #[serde(default)]
        media_type: Option<String>,
        #[serde(default)]
        data: Option<String>,
    },
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct ApprovalResponse {
    pub review: String,
    #[serde(default)]
    pub apply_patch: Option<ApplyPatch>,
    #[serde(default)]
    pub custom_deny_message: Option<String>,
    #[serde(default, rename = "explanation")]
    pub _explanation: Option<String>,
    #[serde(default)]
    pub request_id: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ApplyPatch {
    pub patch: String,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Interrupt {
    #[serde(default)]
    pub reason: Option<String>,
}

// What the server sends.

/// One message; `kind` is its `type`.
pub(super) struct Message {
    pub id: String,
    pub payload: Payload,
    /// The wait it asks about.
    pub presents: Option<WaitId>,
    pub settled: Option<Settled>,
}

/// How a request ended and who ended it: an extra beside the message that follows from it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Settled {
    pub request_id: String,
    pub decision: &'static str,
    pub by: String,
}

impl Message {
    pub(super) fn new(id: String, payload: Payload) -> Message {
        Message { id, payload, presents: None, settled: None }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum Payload {
    ResponseItem(ResponseItem),
    LoadingState {
        loading: bool,
    },
    ApprovalRequest {
        command: Vec<String>,
        #[serde(rename = "applyPatch", skip_serializing_if = "Option::is_none")]
        apply_patch: Option<ApplyPatch>,
    },
    AgentFinished {
        #[serde(rename = "responseId")]
        response_id: String,
    },
    #[serde(rename_all = "camelCase")]
    ContextInfo {
        token_count: u64,
        usage_percent: f64,
        transcript_length: u64,
        max_tokens: u64,
        strategy: &'static str,
    },
    #[serde(rename_all = "camelCase")]
    ContextCompacted {
        old_token_count: u64,
        new_token_count: u64,
        reduction_percent: f64,
        strategy: &'static str,
    },
    Error {
        message: String,
        details: ErrorDetails,
    },
}

impl Payload {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Payload::ResponseItem(_) => "response_item",
            Payload::LoadingState { .. } => "loading_state",
            Payload::ApprovalRequest { .. } => "approval_request",
            Payload::AgentFinished { .. } => "agent_finished",
            Payload::ContextInfo { .. } => "context_info",
            Payload::ContextCompacted { .. } => "context_compacted",
            Payload::Error { .. } => "error",
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ErrorDetails {
    pub error: String,
    pub code: Code,
}

/// A provider's status is a number on the wire, our own codes are words.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum Code {
    Status(u16),
    Word(String),
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponseItem {
    Message { id: String, role: &'static str, content: [TextPart; 1] },
    FunctionCall { id: String, call_id: String, name: String, arguments: String },
    FunctionCallOutput { id: String, call_id: String, output: String },
    LocalShellCall { id: String, action: ShellAction, status: &'static str },
    LocalShellCallOutput { id: String, output: String },
    Reasoning { id: String, content: [TextPart; 1], duration_ms: i64 },
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct TextPart {
    #[serde(rename = "type")]
    kind: &'static str,
    pub text: String,
}

impl TextPart {
    pub(super) fn new(text: &str) -> TextPart {
        TextPart { kind: "input_text", text: text.to_string() }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ShellAction {
    pub command: Vec<String>,
}

/// What the `output` text of a call's result holds, as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ToolOutput<'a> {
    pub output: &'a str,
    pub metadata: ToolMetadata,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ToolMetadata {
    pub exit_code: i32,
    pub duration_seconds: f64,
}
