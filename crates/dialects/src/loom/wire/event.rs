//! The events of a run's stream.

use serde::Serialize;
use serde_json::value::RawValue;

use super::state::{ReactState, ReactUpdate};

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in super::super) enum Event<'a> {
    /// Always the first.
    RunStart {
        run_id: &'a str,
        message: Option<&'a str>,
        agent: &'a str,
    },
    NodeEnter {
        id: &'a str,
        /// The sub-task that it works on.
        #[serde(skip_serializing_if = "Option::is_none")]
        got_node: Option<&'a str>,
    },
    NodeExit {
        id: &'a str,
        result: Exit<'a>,
    },
    /// `id` is the node that says it.
    MessageChunk {
        content: &'a str,
        id: &'a str,
    },
    ThoughtChunk {
        content: &'a str,
        id: &'a str,
    },
    Usage {
        prompt_tokens: u64,
        completion_tokens: u64,
        total_tokens: u64,
    },
    /// The run's whole state, after a node.
    Values {
        state: ReactState<'a>,
    },
    /// What the node changed of it.
    Updates {
        id: &'a str,
        state: ReactUpdate<'a>,
    },
    Custom {
        value: Custom<'a>,
    },
    Checkpoint {
        checkpoint_id: &'a str,
        /// Milliseconds since 1970.
        timestamp: &'a str,
        /// Nodes that were entered.
        step: u32,
        state: ReactState<'a>,
        thread_id: &'a str,
        checkpoint_ns: Option<&'a str>,
    },
    /// `call_id` and `name` are in the first of a call only.
    ToolCallChunk {
        call_id: Option<&'a str>,
        name: Option<&'a str>,
        arguments_delta: &'a str,
    },
    ToolCall {
        call_id: &'a str,
        name: &'a str,
        arguments: Arguments<'a>,
    },
    ToolStart {
        call_id: &'a str,
        name: &'a str,
    },
    ToolOutput {
        call_id: &'a str,
        name: &'a str,
        content: &'a str,
    },
    /// `result` is shortened.
    ToolEnd {
        call_id: &'a str,
        name: &'a str,
        result: &'a str,
        is_error: bool,
    },
    /// Waits for a `tool_approval_response`.
    ToolApproval {
        call_id: &'a str,
        name: &'a str,
        arguments: Arguments<'a>,
        /// Why a call that ran is asked about: the sandbox stopped it.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    },
    TotExpand {
        candidates: &'a [&'a str],
        /// Steps from the beginning, of these the last; the first is 1.
        depth: u32,
    },
    TotEvaluate {
        chosen: usize,
        scores: &'a [f64],
        /// Of the candidates.
        depth: u32,
    },
    TotBacktrack {
        reason: &'a str,
        to_depth: u32,
    },
    GotPlan {
        node_count: usize,
        edge_count: usize,
        node_ids: &'a [&'a str],
    },
    GotNodeStart {
        id: &'a str,
    },
    GotNodeComplete {
        id: &'a str,
        result_summary: &'a str,
    },
    GotNodeFailed {
        id: &'a str,
        error: &'a str,
    },
    /// `node_id` is the graph's node, in the place of the envelope's.
    GotExpand {
        node_id: &'a str,
        nodes_added: usize,
        edges_added: usize,
    },
}

/// How a node ended: `"Ok"` or `{"Err": why}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in super::super) enum Exit<'a> {
    Ok,
    Err(&'a str),
}

/// A call's arguments: the object as the model wrote it, or the text if it is none.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(in super::super) enum Arguments<'a> {
    Object(
        #[cfg_attr(
            feature = "schema",
            schemars(with = "serde_json::Map<String, serde_json::Value>")
        )]
        &'a RawValue,
    ),
    Text(&'a str),
}

impl<'a> Arguments<'a> {
    pub(in super::super) fn of(args: &'a str) -> Arguments<'a> {
        type Object = serde_json::Map<String, serde_json::Value>;
        // The object is read once in full: what is passed on unread might be nested too deep, or
        // hold numbers and escapes that no client can read.
        let written = if args.trim().is_empty() { "{}" } else { args };
        let raw = serde_json::from_str::<Object>(written)
            .and_then(|_| serde_json::from_str::<&RawValue>(written));
        raw.map_or(Arguments::Text(args), Arguments::Object)
    }
}

/// Values that the protocol leaves to the program.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Custom<'a> {
    /// How a request was settled, and by whom.
    Approval {
        call_id: &'a str,
        decision: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<&'a str>,
        /// What runs in place of what was proposed.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<Arguments<'a>>,
    },
    /// What a person should know.
    Notice { level: &'a str, text: &'a str, code: &'a str },
    /// How long a node took, in a verbose run.
    Timing { node: &'a str, duration_ms: i64 },
}
