//! The events of `unified.v1` that this client shows, and the messages that it sends.
//!
//! Reading is total: what is not known, or not as expected, is `Other` and shows nothing.

use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    SessionInit(Facts),
    SessionInfo(Facts),
    SessionRenamed {
        title: String,
    },
    TurnStarted(TurnStarted),
    TurnCompleted {
        #[serde(default)]
        usage: Usage,
    },
    TurnFailed {
        error: String,
        #[serde(default)]
        code: String,
    },
    AssistantMessage {
        text: String,
        #[serde(default)]
        is_final: bool,
    },
    AssistantReasoning {
        text: String,
    },
    ToolStarted {
        tool_name: String,
        tool_id: String,
        #[serde(default)]
        arguments: Value,
    },
    CommandOutput {
        tool_id: String,
        output: String,
        #[serde(default)]
        exit_code: Option<i64>,
    },
    ToolCompleted {
        tool_id: String,
        success: bool,
        #[serde(default)]
        result: Option<String>,
        #[serde(default)]
        error: Option<String>,
    },
    FileChanged {
        path: String,
        operation: String,
    },
    ControlRequest(ControlRequest),
    AskUserQuestion {
        request_id: String,
        questions: Vec<Question>,
    },
    ExitPlanMode {
        request_id: String,
        #[serde(default)]
        plan: String,
        #[serde(default)]
        plan_file_path: Option<String>,
    },
    ApprovalSettled {
        request_id: String,
        decision: String,
        #[serde(default)]
        by: Option<String>,
        #[serde(default)]
        message: Option<String>,
    },
    TokenUsage {
        #[serde(default)]
        context_window: Option<u64>,
        #[serde(default)]
        usage_percent: f64,
    },
    ContextCompaction {
        #[serde(default)]
        reason: String,
        tokens_before: u64,
        tokens_after: u64,
    },
    ContextInfo(ContextInfo),
    TodosChanged {
        todos: Vec<Todo>,
    },
    MessageQueued {
        message_id: String,
        #[serde(default)]
        message: String,
        #[serde(default)]
        by: Option<String>,
        #[serde(default)]
        client_ref: Option<String>,
    },
    MessageDropped {
        message_id: String,
        #[serde(default)]
        by: Option<String>,
    },
    Notice {
        #[serde(default)]
        level: String,
        text: String,
        #[serde(default)]
        code: String,
    },
    Error {
        message: String,
        #[serde(default)]
        is_fatal: bool,
        #[serde(default)]
        client_ref: Option<String>,
    },
    #[serde(other)]
    Other,
}

/// What `session_init` and `session_info` say of a session, as far as they do.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Facts {
    pub status: Option<String>,
    pub success: Option<bool>,
    pub error: Option<String>,
    pub model: Option<String>,
    pub agent: Option<String>,
    pub title: Option<String>,
    pub cwd: Option<String>,
    pub permission_mode: Option<String>,
    pub todos: Option<Vec<Todo>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TurnStarted {
    pub message: Option<String>,
    pub by: Option<String>,
    pub client_ref: Option<String>,
    pub message_id: Option<String>,
    pub resumes: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost_usd: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ControlRequest {
    pub request_id: String,
    pub tool_name: String,
    #[serde(default)]
    pub input: Value,
    #[serde(default)]
    pub context: RequestContext,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RequestContext {
    pub description: String,
    pub risk_level: String,
    pub covers: String,
    pub command: Vec<String>,
    pub reasons: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Question {
    pub question: String,
    #[serde(default)]
    pub options: Vec<Choice>,
    #[serde(default, rename = "multiSelect")]
    pub multi: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Choice {
    pub label: String,
    #[serde(default)]
    pub description: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Todo {
    pub content: String,
    #[serde(default)]
    pub status: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContextInfo {
    pub token_count: u64,
    pub max_tokens: u64,
    pub usage_percent: f64,
    pub transcript_length: u64,
    pub strategy: String,
    pub warning_level: String,
    pub session_usage: Usage,
}

/// What every frame may say of itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Head {
    #[serde(rename = "type")]
    pub kind: String,
    pub client_ref: Option<String>,
    pub seq: Option<u64>,
    cursor: Option<String>,
}

impl Head {
    pub fn read(frame: &str) -> Head {
        serde_json::from_str(frame).unwrap_or_default()
    }

    /// Whether it is the server's refusal of the message with this id.
    pub fn refuses(&self, id: &str) -> bool {
        self.kind == "error" && self.client_ref.as_deref() == Some(id)
    }

    /// Whether it stands at its place in the session. The others are said to one client alone, at
    /// any time, and their place may be one that was passed long ago.
    pub fn is_of_the_session(&self) -> bool {
        !matches!(self.kind.as_str(), "session_init" | "error" | "heartbeat" | "context_info")
    }

    /// What a client hands back to go on behind this frame.
    pub fn place(&self) -> Option<String> {
        self.cursor.clone().or_else(|| self.seq.map(|seq| seq.to_string()))
    }
}

impl Event {
    pub fn read(frame: &str) -> Event {
        serde_json::from_str(frame).unwrap_or(Event::Other)
    }

    /// Whether it happens only while a turn runs.
    pub fn is_work(&self) -> bool {
        matches!(
            self,
            Event::AssistantMessage { .. }
                | Event::AssistantReasoning { .. }
                | Event::ToolStarted { .. }
                | Event::CommandOutput { .. }
                | Event::ControlRequest(_)
                | Event::AskUserQuestion { .. }
                | Event::ExitPlanMode { .. }
        )
    }

    pub fn of(value: Value) -> Event {
        serde_json::from_value(value).unwrap_or(Event::Other)
    }
}

/// A message of this client, by its type and its own fields.
pub fn message(kind: &str, id: &str, fields: Value) -> String {
    let mut message = json!({ "type": kind, "id": id });
    if let (Some(message), Value::Object(fields)) = (message.as_object_mut(), fields) {
        message.extend(fields);
    }
    message.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_other() {
        for frame in ["", "[]", "{}", r#"{"type":"raw","data":1}"#, r#"{"type":"error"}"#] {
            assert!(matches!(Event::read(frame), Event::Other), "{frame}");
        }
    }

    #[test]
    fn a_frame_has_its_place() {
        let frame = r#"{"type":"x","seq":7,"cursor":"7~7t16"}"#;
        assert_eq!(Head::read(frame).place().as_deref(), Some("7~7t16"));
        assert_eq!(Head::read(r#"{"type":"x","seq":7}"#).place().as_deref(), Some("7"));
        assert_eq!(Head::read(r#"{"type":"heartbeat"}"#).place(), None);
    }

    #[test]
    fn messages_have_their_fields() {
        let text = message("interrupt", "t-1", json!({ "reason": "why" }));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value, json!({"type": "interrupt", "id": "t-1", "reason": "why"}));
    }
}
