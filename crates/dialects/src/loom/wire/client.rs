//! What clients send. Optional fields may be absent or null; fields that are not known are
//! ignored.

use std::num::NonZeroU32;

use serde::Deserialize;

use super::bounds::{GotBounds, TotBounds};

/// The part of every request that says which it is.
#[derive(Deserialize)]
pub(in super::super) struct Kind {
    #[serde(rename = "type")]
    pub kind: String,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "run")]
pub(in super::super) struct Run {
    pub message: String,
    pub agent: Agent,
    /// Comes back as `request_id`.
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub thread_id: Option<String>,
    #[serde(default)]
    pub working_folder: Option<String>,
    /// For `got` only: sub-tasks are judged first, and split where they are too much for one.
    #[serde(default)]
    pub got_adaptive: Option<bool>,
    /// An addition: how far a search of `tot` may go.
    #[serde(default)]
    pub tot: Option<TotBounds>,
    /// An addition: how far a graph of `got` may go.
    #[serde(default)]
    pub got: Option<GotBounds>,
    /// An addition: model calls that the run may make.
    #[serde(default)]
    pub max_turns: Option<NonZeroU32>,
    #[serde(default)]
    pub verbose: Option<bool>,
    /// The client answers `tool_approval` events.
    #[serde(default)]
    pub approvals: Option<bool>,
}

#[derive(Clone, Copy, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Agent {
    React,
    Dup,
    Tot,
    Got,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "tools_list")]
pub(in super::super) struct ToolsList {
    pub id: String,
    #[serde(default)]
    pub working_folder: Option<String>,
    #[serde(default)]
    pub thread_id: Option<String>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "tool_show")]
pub(in super::super) struct ToolShow {
    pub id: String,
    pub name: String,
    /// YAML unless said otherwise.
    #[serde(default)]
    pub output: Option<Output>,
    #[serde(default)]
    pub working_folder: Option<String>,
    #[serde(default)]
    pub thread_id: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Output {
    Yaml,
    Json,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "user_messages")]
pub(in super::super) struct UserMessages {
    pub id: String,
    pub thread_id: String,
    #[serde(default)]
    pub before: Option<u64>,
    #[serde(default)]
    pub limit: Option<u32>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "ping")]
pub(in super::super) struct Ping {
    pub id: String,
}

/// An addition: interrupts a run.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "cancel_run")]
pub(in super::super) struct CancelRun {
    pub id: String,
    pub run_id: String,
}

/// An addition: answers a `tool_approval` event.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "tool_approval_response")]
pub(in super::super) struct ToolApprovalResponse {
    pub id: String,
    pub run_id: String,
    pub call_id: String,
    pub approved: bool,
    /// Why not, or the answer to a question.
    #[serde(default)]
    pub message: Option<String>,
}
