//! The request's types. `messages` is last: what comes before it is the same with every call of a
//! session, and what is in it only grows.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::json::Fields;
use crate::tool::{Schema, Words, Written};

#[derive(Serialize)]
pub struct Request<'a> {
    pub model: &'a str,
    pub stream: bool,
    pub stream_options: StreamOptions,
    /// Of `Tool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Written>,
    pub messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
pub struct StreamOptions {
    pub include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", content = "function", rename_all = "snake_case")]
pub enum Tool<'a> {
    Function { name: &'a str, description: &'a Words, parameters: &'a Schema },
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message<'a> {
    System { content: &'a Words },
    User { content: Content<'a> },
    Assistant(Assistant<'a>),
    Tool { tool_call_id: &'a str, content: &'a str },
}

/// A plain string where there is nothing but text: not every server takes a list.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
pub struct ImageUrl {
    pub url: String,
}

#[derive(Default, Serialize)]
pub struct Assistant<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasoning_details: Vec<&'a RawValue>,
    /// Null beside calls, but there: some servers miss it.
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall<'a>>,
}

#[derive(Serialize)]
pub struct ToolCall<'a> {
    pub id: &'a str,
    pub r#type: &'static str,
    pub function: Function<'a>,
    #[serde(flatten)]
    pub extra: Fields,
}

#[derive(Serialize)]
pub struct Function<'a> {
    pub name: &'a str,
    pub arguments: Cow<'a, str>,
}
