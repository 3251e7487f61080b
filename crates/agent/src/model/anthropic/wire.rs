//! What a request to Anthropic is made of. Answers are read field by field, in `decode`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::json::Fields;
use crate::tool::{Schema, Words, Written};

/// What changes least comes first, so that requests begin alike.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    pub model: &'a str,
    pub max_tokens: u64,
    pub stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Of `Tool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<[System<'a>; 1]>,
    pub messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
pub(super) struct System<'a> {
    pub text: &'a Words,
    pub cache_control: CacheControl,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    Enabled { budget_tokens: u64 },
    Adaptive { display: Display },
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Display {
    Summarized,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ToolChoice {
    None,
}

#[derive(Serialize)]
pub(super) struct Tool<'a> {
    pub name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<&'a Words>,
    pub input_schema: Cow<'a, Schema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<CacheControl>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub role: Role,
    pub content: Vec<Block<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
pub(super) struct Block<'a> {
    #[serde(flatten)]
    pub kind: Kind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Kind<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    Thinking {
        thinking: &'a str,
        /// The signature, and whatever else came with it.
        #[serde(flatten)]
        rest: Fields,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Box<RawValue>,
        #[serde(flatten)]
        rest: Fields,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// A block as it came, with its own type.
    #[serde(untagged)]
    Whole(Fields),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

impl<'a> From<Kind<'a>> for Block<'a> {
    fn from(kind: Kind<'a>) -> Block<'a> {
        Block { kind, cache_control: None }
    }
}

impl Kind<'_> {
    /// Reasoning, readable or not.
    pub fn is_thinking(&self) -> bool {
        match self {
            Kind::Thinking { .. } => true,
            Kind::Whole(fields) => fields.is("type", "redacted_thinking"),
            Kind::Text { .. }
            | Kind::Image { .. }
            | Kind::ToolUse { .. }
            | Kind::ToolResult { .. } => false,
        }
    }
}
