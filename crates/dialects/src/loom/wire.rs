//! The message types of the Loom protocol, as its documents write them.
//!
//! `client` is what clients send, `event` what a run's stream holds, `state` the run's state in
//! it. Every type can say its JSON Schema.

use serde::Serialize;

pub(super) mod bounds;
pub(super) mod client;
mod event;
mod state;

pub(super) use event::{Arguments, Custom, Event, Exit};
pub(super) use state::{
    Got, NodeState, PendingCall, ReactState, ReactUpdate, StateMessage, Status, ToolOutcome, Tot,
    Understood,
};

/// One event of a run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "run_stream_event")]
pub(super) struct RunStreamEvent<'a> {
    /// The run's id.
    pub id: &'a str,
    /// The id that the client gave its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
    pub event: Envelope<'a>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Envelope<'a> {
    #[serde(flatten)]
    pub event: &'a Event<'a>,
    /// The thread, or the run's id where the run has none.
    pub session_id: &'a str,
    /// Left out where the event has a `node_id` of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<&'a str>,
    /// The number of the event in its stream, from 1.
    // Last, because it is each connection's own: its place must be known.
    pub event_id: u64,
}

/// The end of a run that completed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "run_end")]
pub(super) struct RunEnd<'a> {
    pub id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
    pub reply: &'a str,
    /// Of the last model call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Of all model calls of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_usage: Option<Usage>,
    pub node_id: &'a str,
    /// The number of the event in its stream, from 1.
    // Last, because it is each connection's own: its place must be known.
    pub event_id: u64,
}

/// What went wrong with a run (`id` is the run's) or with a request (`id` is the request's own).
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "error")]
pub(super) struct Error<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
    pub error: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Usage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
}

impl From<polyloop_session::item::Usage> for Usage {
    fn from(usage: polyloop_session::item::Usage) -> Usage {
        Usage {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.total_tokens(),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "tools_list")]
pub(super) struct ToolsList<'a> {
    pub id: &'a str,
    pub tools: Vec<ToolSpec<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ToolSpec<'a> {
    pub name: &'a str,
    pub description: &'a str,
    /// JSON Schema of the arguments.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub input_schema: &'a serde_json::Value,
}

/// Exactly one of `tool` and `tool_yaml` is there.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "tool_show")]
pub(super) struct ToolShow<'a> {
    pub id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolSpec<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_yaml: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "user_messages")]
pub(super) struct UserMessages<'a> {
    pub id: &'a str,
    pub thread_id: &'a str,
    /// Oldest first.
    pub messages: Vec<StoredMessage<'a>>,
    pub has_more: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct StoredMessage<'a> {
    pub role: &'a str,
    pub content: &'a str,
    /// What `before` takes.
    pub seq: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "pong")]
pub(super) struct Pong<'a> {
    pub id: &'a str,
}
