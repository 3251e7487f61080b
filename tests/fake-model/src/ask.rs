//! What a model request asks, whichever API it speaks.
//!
//! Reads only what an answer depends on; it is no judge of requests. Whoever wants to know whether
//! a request was right reads it from the recorded ones.

use serde_json::{Value, json};

use crate::api::{Api, set};
use crate::route::Target;
use crate::usage::tokens;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    Whole,
    /// Server-sent events.
    Events,
    /// Gemini without `alt=sse`: a JSON array that grows.
    Array,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Last {
    User(String),
    ToolResult(String),
}

#[derive(Debug)]
pub struct Ask {
    pub api: Api,
    pub model: String,
    pub delivery: Delivery,
    pub last: Last,
    /// Chat: `stream_options.include_usage`.
    pub include_usage: bool,
    /// Responses: `include` has `reasoning.encrypted_content`.
    pub encrypted_reasoning: bool,
    /// Responses: the tools have `{"type":"local_shell"}`.
    pub local_shell: bool,
    pub input_tokens: u64,
    /// Responses: the settings that its answer repeats.
    pub settings: Value,
}

impl Ask {
    pub fn read(target: &Target, body: &[u8]) -> Result<Ask, String> {
        let body: Value = serde_json::from_slice(body)
            .map_err(|error| format!("fake-model: the body is no JSON: {error}"))?;
        let (model, delivery) = match &target.gemini {
            Some((model, delivery)) => (model.clone(), *delivery),
            None => {
                let stream = body["stream"].as_bool().unwrap_or(false);
                let delivery = if stream { Delivery::Events } else { Delivery::Whole };
                (body["model"].as_str().unwrap_or("fake-model").to_owned(), delivery)
            }
        };
        let last = match target.api {
            Api::Responses => last_of_responses(&body["input"]),
            Api::Chat => last_of_chat(&body["messages"]),
            Api::Anthropic => last_of_anthropic(&body["messages"]),
            Api::Gemini => last_of_gemini(&body["contents"]),
        };
        Ok(Ask {
            api: target.api,
            model,
            delivery,
            last,
            include_usage: body["stream_options"]["include_usage"] == true,
            encrypted_reasoning: has(&body["include"], |it| it == "reasoning.encrypted_content"),
            local_shell: has(&body["tools"], |tool| tool["type"] == "local_shell"),
            input_tokens: tokens(prompt_chars(&body)),
            settings: settings(&body),
        })
    }
}

fn has(list: &Value, wanted: impl Fn(&Value) -> bool) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(wanted))
}

/// Characters of all texts in a request: an estimate needs no more.
fn prompt_chars(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.chars().count(),
        Value::Array(values) => values.iter().map(prompt_chars).sum(),
        Value::Object(fields) => fields.values().map(prompt_chars).sum(),
    }
}

fn settings(body: &Value) -> Value {
    let mut settings = json!({
        "background": false, "instructions": null, "max_output_tokens": null,
        "max_tool_calls": null, "metadata": {}, "parallel_tool_calls": true,
        "previous_response_id": null, "prompt_cache_key": null,
        "reasoning": {"effort": null, "summary": null}, "safety_identifier": null,
        "service_tier": "default", "store": true, "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"}, "tool_choice": "auto",
        "tools": [], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "user": null,
    });
    let names: Vec<String> =
        settings.as_object().into_iter().flat_map(|settings| settings.keys().cloned()).collect();
    for name in names {
        if !body[&*name].is_null() {
            set(&mut settings, &name, body[&*name].clone());
        }
    }
    settings
}

fn last_of_responses(input: &Value) -> Last {
    let Some(item) = input.as_array().and_then(|items| items.last()) else {
        return Last::User(text_of(input));
    };
    let is_output = item["type"].as_str().is_some_and(|kind| kind.ends_with("_output"));
    if is_output {
        return Last::ToolResult(text_of(&item["output"]));
    }
    let items = input.as_array().into_iter().flatten();
    let user = items.rev().find(|item| item["role"] == "user");
    Last::User(user.map(|item| text_of(&item["content"])).unwrap_or_default())
}

fn last_of_chat(messages: &Value) -> Last {
    let mut messages = messages.as_array().into_iter().flatten().rev();
    let last = messages.clone().next().unwrap_or(&Value::Null);
    if last["role"] == "tool" || last["role"] == "function" {
        return Last::ToolResult(text_of(&last["content"]));
    }
    let user = messages.find(|message| message["role"] == "user");
    Last::User(user.map(|message| text_of(&message["content"])).unwrap_or_default())
}

fn last_of_anthropic(messages: &Value) -> Last {
    let mut messages = messages.as_array().into_iter().flatten().rev();
    let last = messages.clone().next().unwrap_or(&Value::Null);
    let block = last["content"].as_array().and_then(|blocks| blocks.last()).unwrap_or(&Value::Null);
    if block["type"] == "tool_result" {
        return Last::ToolResult(text_of(&block["content"]));
    }
    let user = messages.find(|message| message["role"] == "user");
    Last::User(user.map(|message| text_of(&message["content"])).unwrap_or_default())
}

fn last_of_gemini(contents: &Value) -> Last {
    let mut contents = match contents {
        Value::Array(contents) => contents.iter().collect(),
        single => vec![single],
    };
    contents.reverse();
    let parts = |content: &Value| content["parts"].as_array().cloned().unwrap_or_default();
    let last = contents.first().and_then(|content| parts(content).pop()).unwrap_or_default();
    if let Some(response) = last.get("functionResponse") {
        return Last::ToolResult(result_of(&response["response"]));
    }
    let user = contents.iter().find(|content| content["role"] != "model");
    Last::User(user.map(|content| text_of(&content["parts"])).unwrap_or_default())
}

/// Gemini wraps a result in an object; its usual keys hold the text.
fn result_of(response: &Value) -> String {
    let text = ["output", "result", "error", "content"].iter().find_map(|key| response.get(*key));
    match text {
        Some(Value::String(text)) => text.clone(),
        Some(value) if value.is_array() => text_of(value),
        _ => response.to_string(),
    }
}

/// The text of a string, of parts that have a `text`, or the JSON of anything else.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str().or(part.as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
