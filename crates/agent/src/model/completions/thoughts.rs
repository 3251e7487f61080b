//! What a model thought, which has as many names here as there are servers: `reasoning_content`
//! (DeepSeek, llama.cpp, vLLM), `reasoning` (Ollama, OpenRouter), `reasoning_details` (OpenRouter).
//!
//! It goes back under the name it came with; details go back whole, since some are signed.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::encode::add;
use super::wire::Assistant;
use crate::model::json::Object;
use crate::model::openai::word;

/// Of the details of one piece of reasoning; larger ones do not go back.
const DETAILS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Where a piece of reasoning stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    ReasoningContent,
    Reasoning,
    ReasoningDetails,
}

/// What a delta says of it.
pub struct Thought {
    pub field: Field,
    /// May be empty: details can be encrypted.
    pub text: String,
    pub details: Vec<Map<String, Value>>,
}

/// The first name that has something; most servers that use two say the same under both.
pub fn thought(delta: &Object<'_>) -> Option<Thought> {
    let details = delta.list("reasoning_details");
    let details: Vec<Map<String, Value>> =
        details.into_iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
    let (field, text) = if let Some(text) = word(delta, "reasoning_content") {
        (Field::ReasoningContent, text)
    } else if let Some(text) = word(delta, "reasoning") {
        (Field::Reasoning, text)
    } else {
        let said = |detail: &Map<String, Value>| {
            let text = ["text", "summary"].into_iter().find_map(|name| detail.get(name)?.as_str());
            text.map(str::to_owned)
        };
        (Field::ReasoningDetails, details.iter().filter_map(said).collect())
    };
    (!text.is_empty() || !details.is_empty()).then_some(Thought { field, text, details })
}

/// What one piece of reasoning must go back with.
#[derive(Debug, Serialize)]
pub struct Came {
    field: Field,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<Map<String, Value>>,
    #[serde(skip)]
    bytes: usize,
}

impl Came {
    pub fn new(field: Field) -> Came {
        Came { field, details: Vec::new(), bytes: 0 }
    }

    pub fn has_details(&self) -> bool {
        !self.details.is_empty()
    }

    /// Details come in pieces: those of one entry become one again.
    pub fn add(&mut self, details: Vec<Map<String, Value>>) {
        for detail in details {
            self.field = Field::ReasoningDetails;
            self.bytes += detail.values().filter_map(Value::as_str).map(str::len).sum::<usize>();
            if self.bytes > DETAILS_BYTES_MAX {
                self.details.clear();
                continue;
            }
            match self.details.last_mut() {
                Some(last) if goes_on(last, &detail) => merge(last, detail),
                _ => self.details.push(detail),
            }
        }
    }

    /// `None` when nothing of it can go back.
    pub fn json(&self) -> Option<String> {
        if self.field == Field::ReasoningDetails && self.details.is_empty() {
            return None;
        }
        serde_json::to_string(self).ok()
    }
}

/// Encrypted entries are whole; texts grow.
fn goes_on(last: &Map<String, Value>, detail: &Map<String, Value>) -> bool {
    let kind = detail.get("type").and_then(Value::as_str).unwrap_or_default();
    matches!(kind, "reasoning.text" | "reasoning.summary")
        && ["type", "index"].into_iter().all(|name| last.get(name) == detail.get(name))
}

fn merge(last: &mut Map<String, Value>, detail: Map<String, Value>) {
    for (name, value) in detail {
        match (last.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more))
                if matches!(&*name, "text" | "summary") =>
            {
                text.push_str(&more);
            }
            (_, value) => {
                last.insert(name, value);
            }
        }
    }
}

/// Puts a piece of reasoning where it came from.
pub fn back<'a>(came: &Object<'a>, text: &str, out: &mut Assistant<'a>) {
    let field = came.raw("field").and_then(|field| serde_json::from_str(field.get()).ok());
    match field {
        Some(Field::ReasoningContent) if !text.is_empty() => add(&mut out.reasoning_content, text),
        Some(Field::Reasoning) if !text.is_empty() => add(&mut out.reasoning, text),
        Some(Field::ReasoningDetails) => out.reasoning_details.extend(came.list("details")),
        Some(Field::ReasoningContent | Field::Reasoning) | None => {}
    }
}
