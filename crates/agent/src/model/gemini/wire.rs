//! What a request to Gemini is made of. Answers are read field by field, in `decode`.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::json::Fields;
use crate::tool::{Schema, Words, Written};

/// What changes least comes first, so that requests begin alike.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation_config: Option<GenerationConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_instruction: Option<Instruction<'a>>,
    /// Of `Tools`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Written>,
    pub contents: Vec<Content<'a>>,
}

#[derive(PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_config: Option<ThinkingConfig>,
}

#[derive(PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingConfig {
    pub include_thoughts: bool,
}

#[derive(Serialize)]
pub(super) struct Instruction<'a> {
    pub parts: [Instructed<'a>; 1],
}

#[derive(Serialize)]
pub(super) struct Instructed<'a> {
    pub text: &'a Words,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tools<'a> {
    pub function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Declaration<'a> {
    pub name: &'a str,
    pub description: &'a Words,
    /// Takes JSON Schema; `parameters` would take a dialect of it.
    pub parameters_json_schema: &'a Schema,
}

#[derive(Serialize)]
pub(super) struct Content<'a> {
    pub role: Role,
    pub parts: Vec<Part<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    User,
    Model,
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(super) enum Part<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        thought: bool,
        /// Its signature, and whatever else it came with.
        #[serde(flatten)]
        rest: Fields,
    },
    Image {
        inline_data: Blob<'a>,
    },
    Call {
        function_call: Call<'a>,
        #[serde(flatten)]
        rest: Fields,
    },
    Response {
        function_response: Response<'a>,
    },
    /// A part as it came.
    Whole(Box<RawValue>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Blob<'a> {
    pub mime_type: &'a str,
    pub data: &'a str,
}

#[derive(Serialize)]
pub(super) struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    pub name: &'a str,
    pub args: Box<RawValue>,
    #[serde(flatten)]
    pub rest: Fields,
}

#[derive(Serialize)]
pub(super) struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    pub name: &'a str,
    pub response: Outcome<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome<'a> {
    Output(&'a str),
    Error(&'a str),
}

impl<'a> Part<'a> {
    pub fn text(text: &'a str) -> Part<'a> {
        Part::Text { text, thought: false, rest: Fields::default() }
    }
}
