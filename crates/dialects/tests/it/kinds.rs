//! The kinds of messages of each dialect, as their documents name them.

use polyloop_dialects::Dialect;
use serde_json::Value;

/// A word for what a frame is.
pub fn kind(dialect: &dyn Dialect, frame: &Value) -> String {
    let inner = match dialect.name() {
        "agentloop" => frame["payload"]["type"].as_str(),
        "loom" => frame["event"]["type"].as_str(),
        _ => None,
    };
    inner.or(frame["type"].as_str()).unwrap_or("?").to_string()
}

/// What random sessions must have shown often, so that a check of them holds something.
pub fn kinds(dialect: &dyn Dialect) -> &'static [&'static str] {
    match dialect.name() {
        "agentloop" => &[
            "message",
            "function_call",
            "function_call_output",
            "reasoning",
            "approval_request",
            "loading_state",
            "agent_finished",
            "error",
            "context_compacted",
            "context_info",
        ],
        "unified" => &[
            "session_info",
            "session_renamed",
            "turn_started",
            "turn_completed",
            "turn_failed",
            "assistant_message",
            "assistant_reasoning",
            "tool_started",
            "tool_completed",
            "control_request",
            "approval_settled",
            "command_output",
            "token_usage",
            "context_compaction",
            "ask_user_question",
            "exit_plan_mode",
            "notice",
        ],
        "loom" => &[
            "run_start",
            "node_enter",
            "node_exit",
            "message_chunk",
            "thought_chunk",
            "usage",
            "values",
            "updates",
            "custom",
            "tot_expand",
            "tot_evaluate",
            "got_plan",
            "got_node_start",
            "got_node_complete",
            "got_expand",
            "checkpoint",
            "tool_call_chunk",
            "tool_call",
            "tool_start",
            "tool_output",
            "tool_end",
            "tool_approval",
            "run_end",
            "error",
        ],
        "chat" => &[
            "user_message",
            "agent_message",
            "agent_thinking",
            "tool_call",
            "tool_result",
            "error",
        ],
        other => panic!("nobody knows what is sent in {other}"),
    }
}
