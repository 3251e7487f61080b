//! The request's types. `input` is last: what comes before it is the same with every call of a
//! session, and what is in it only grows.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::json::Fields;
use crate::tool::{Schema, Words, Written};

#[derive(Serialize)]
pub struct Request<'a> {
    pub model: &'a str,
    pub stream: bool,
    pub store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub instructions: &'a Words,
    /// Of `Tool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Written>,
    pub input: Vec<Item<'a>>,
}

#[derive(Serialize)]
pub struct Reasoning {
    pub effort: &'static str,
    pub summary: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Tool<'a> {
    Function {
        name: &'a str,
        description: &'a Words,
        parameters: &'a Schema,
        /// Strict is the interface's default, and takes no optional arguments.
        strict: bool,
    },
    LocalShell,
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum Item<'a> {
    Ours(Known<'a>),
    /// As it came.
    Theirs(Box<RawValue>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Known<'a> {
    Message(Message<'a>),
    FunctionCall(FunctionCall<'a>),
    FunctionCallOutput { call_id: &'a str, output: &'a str },
    LocalShellCallOutput { id: &'a str, call_id: &'a str, output: &'a str },
}

#[derive(Serialize)]
pub struct Message<'a> {
    pub role: &'static str,
    /// Belongs to an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    pub content: Contents<'a>,
    #[serde(flatten)]
    pub extra: Fields,
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum Contents<'a> {
    /// What the interface takes of an assistant's message without an id.
    Text(&'a str),
    Parts(Vec<Content<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content<'a> {
    InputText {
        text: &'a str,
    },
    InputImage {
        image_url: String,
        detail: &'static str,
    },
    /// Some servers want `annotations` to be there, if only to be empty.
    OutputText {
        text: &'a str,
        annotations: [(); 0],
    },
}

#[derive(Serialize)]
pub struct FunctionCall<'a> {
    pub call_id: &'a str,
    pub name: &'a str,
    pub arguments: &'a str,
    #[serde(flatten)]
    pub extra: Fields,
}
