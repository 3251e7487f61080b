//! A run's state as its stream shows it.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use super::Usage;

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in super::super) struct ReactState<'a> {
    /// Of this run; long ones are shortened.
    pub messages: Vec<&'a StateMessage>,
    /// Messages of this run that were left out.
    pub omitted_messages: u64,
    /// How many pieces the conversation had before the run.
    pub earlier_messages: Option<u64>,
    /// Proposed and not done.
    pub tool_calls: Vec<PendingCall<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_tool_calls: u64,
    /// Of the last act.
    pub tool_results: &'a VecDeque<ToolOutcome>,
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_tool_results: u64,
    /// Rounds of act.
    pub turn_count: u64,
    /// Always null: who settled what is told by `custom` events.
    pub approval_result: Option<bool>,
    pub usage: Option<Usage>,
    pub total_usage: Option<Usage>,
    pub message_count_after_last_think: u64,
    /// What dup made of the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub understood: Option<&'a Understood>,
    /// Where the search of tot stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tot: Option<&'a Tot>,
    /// The sub-tasks of got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got: Option<&'a Got>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in super::super) struct Understood {
    pub core_goal: String,
    pub key_constraints: Vec<String>,
    pub relevant_context: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in super::super) struct Tot {
    /// Of what the search goes on from.
    pub depth: u32,
    /// What was proposed last, or weighed.
    pub candidates: Vec<String>,
    /// The best of them, once they were weighed.
    pub chosen: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in super::super) struct Got {
    pub node_states: BTreeMap<String, NodeState>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in super::super) struct NodeState {
    pub status: Status,
    pub result: Option<String>,
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in super::super) enum Status {
    Pending,
    Running,
    Done,
    Failed,
}

/// The same, only what a node changed.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in super::super) struct ReactUpdate<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<&'a StateMessage>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_messages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<PendingCall<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_tool_calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_results: Option<&'a VecDeque<ToolOutcome>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_tool_results: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_count_after_last_think: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub understood: Option<&'a Understood>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tot: Option<&'a Tot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got: Option<&'a Got>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in super::super) enum StateMessage {
    User(String),
    Assistant(String),
    Tool { tool_call_id: String, content: String },
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in super::super) struct PendingCall<'a> {
    pub name: String,
    /// JSON text.
    pub arguments: String,
    pub id: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in super::super) struct ToolOutcome {
    pub call_id: String,
    pub name: String,
    pub content: String,
    pub is_error: bool,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
