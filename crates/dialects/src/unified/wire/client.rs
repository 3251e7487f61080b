//! What clients send. `type`, `id` and `session_id` stand in every message; the rest is each
//! message's own. Fields that are not listed here are ignored.

use std::num::NonZeroU32;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::image::Image;

#[derive(Deserialize)]
pub(in crate::unified) struct Envelope {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub session_id: Option<String>,
}

/// Begins a session, or opens it again.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct SessionStart {
    /// manual, auto, bypass, plan, default, acceptEdits, bypassPermissions or dontAsk.
    #[serde(default)]
    pub permission_mode: Option<String>,
    /// Model calls that one turn may make.
    #[serde(default)]
    pub max_turns: Option<NonZeroU32>,
    /// The client's own data; `user_id` says who is speaking.
    #[serde(default)]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")
    )]
    pub metadata: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct SetPermissionMode {
    pub mode: String,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct UserMessage {
    pub content: String,
    /// Pictures that belong to the message.
    #[serde(default)]
    pub images: Vec<Image>,
    /// Names an open question, which the message then answers.
    #[serde(default)]
    pub parent_tool_use_id: Option<String>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct PermissionResponse {
    pub request_id: String,
    /// allow, allow_always, deny, deny_stop or explain.
    pub decision: String,
    #[serde(default)]
    pub explanation: Option<String>,
}

/// Names its question by `request_id` or `tool_id`.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct UserQuestionResponse {
    #[serde(default)]
    pub request_id: Option<String>,
    #[serde(default)]
    pub tool_id: Option<String>,
    pub answers: Vec<QuestionAnswer>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct QuestionAnswer {
    pub question_index: u64,
    /// Labels, or the user's own words.
    pub selected: Vec<String>,
}

/// Names its plan by `request_id` or `tool_id`.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct PlanApprovalResponse {
    #[serde(default)]
    pub request_id: Option<String>,
    #[serde(default)]
    pub tool_id: Option<String>,
    pub approved: bool,
    #[serde(default)]
    pub feedback: Option<String>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct Interrupt {
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct Cancel {
    /// The `id` of a message, or the `request_id` of what is pending.
    pub target_id: String,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct SetModel {
    pub model: String,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct SetAgent {
    /// react, dup, tot or got.
    pub agent: String,
}
