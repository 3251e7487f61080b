//! The visible things of a turn, and what is known of a finished one.

use serde::{Deserialize, Serialize};

use crate::id::Text;
use crate::todos::Todo;

/// One piece of what a user sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    Text {
        text: Text,
    },
    /// `data` is base64, as clients send it and providers take it.
    Image {
        media_type: Text,
        data: Text,
    },
}

/// What an image counts, whatever its size: providers scale it down to about this.
pub const IMAGE_TOKENS: u64 = 1_600;

impl Part {
    /// What people are shown of it.
    pub fn shown(&self) -> Text {
        match self {
            Part::Text { text } => text.clone(),
            Part::Image { media_type, .. } => format!("[image: {media_type}]").into(),
        }
    }

    pub fn tokens(&self) -> u64 {
        match self {
            Part::Text { text } => crate::state::estimate_tokens(text.len()),
            Part::Image { .. } => IMAGE_TOKENS,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ItemKind {
    Text,
    Reasoning,
    /// `call_ref` is the provider's own id of the call, sent back to it with the result; `native`
    /// when the model called its provider's own shell tool.
    ToolCall {
        name: Text,
        call_ref: Text,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        native: bool,
    },
}

/// How an item ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All of it came; a tool ran and said so itself.
    Whole,
    /// The stream stopped inside it; what was shown is kept and stays in the prompt.
    Cut,
    /// Its call failed; what was shown is kept for replay but is no part of the prompt.
    Discarded,
    /// Leave to run was not given.
    Denied,
    /// The tool could not do it.
    Failed,
    /// The tool was stopped, or a crash ended it.
    Interrupted,
}

/// What a provider sent that must go back to it unchanged: raw JSON, kept byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opaque {
    pub provider: Text,
    pub json: Text,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// What the model is shown, where it differs from what was streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default)]
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// What is open of the session's todos, where the call wrote or read them: a line each, as
    /// `todos::open` gives them, or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todos: Option<Text>,
    /// The whole list, where the call wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo_list: Option<Vec<Todo>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Relative to the working directory where it is inside it.
    pub path: Text,
    pub operation: Operation,
    /// The content before, for undo; absent when there was none or it is too large to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Text>,
    /// What changed, as a unified diff in Git's form; absent where nobody compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Text>,
    /// SHA-256 of the content after, in hex, so that undo can tell whether it changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Text>,
    /// The permission bits before; absent where they did not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// SHA-256 of the content before, in hex, where that is kept beside the log: it is no text, or
    /// long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_blob: Option<Text>,
    /// Where it leads, if it is no file but a symbolic link that was deleted, or made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Text>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Operation {
    Create,
    #[default]
    Update,
    Delete,
    Move {
        from: Text,
    },
}

/// What one model call, or all calls of a turn, cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All input, cached or not.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The part of the input that came from the provider's cache.
    #[serde(default)]
    pub cached_tokens: u64,
    /// The part of the input that was written to the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_written_tokens: u64,
    /// The part of the output that was reasoning.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// In millionths of a dollar, where the model's price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    pub fn add(&mut self, other: Usage) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.cache_written_tokens =
            self.cache_written_tokens.saturating_add(other.cache_written_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
        self.cost_micros = match (self.cost_micros, other.cost_micros) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
    }
}

/// A failure as people are told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub message: Text,
    /// A short word or a provider's status, for programs.
    pub code: Text,
}

impl Fault {
    pub fn new(code: &str, message: impl Into<Text>) -> Fault {
        Fault { message: message.into(), code: code.into() }
    }
}
