//! The list of models, as each provider lists them. Any other name works as well.

use serde_json::{Value, json};

use crate::api::Api;

const NAMES: [&str; 2] = ["fake-model", "fake-model-mini"];
const CREATED_SECS: u64 = 1_700_000_000;
const CREATED: &str = "2023-11-14T22:13:20Z";
const CONTEXT_TOKENS: u64 = 200_000;
const OUTPUT_TOKENS: u64 = 32_000;

pub fn list(api: Api) -> Value {
    match api {
        Api::Responses | Api::Chat => {
            let model = |name: &&str| {
                let (object, owner) = ("model", "fake");
                json!({"id": name, "object": object, "created": CREATED_SECS, "owned_by": owner})
            };
            json!({"object": "list", "data": NAMES.iter().map(model).collect::<Value>()})
        }
        Api::Anthropic => {
            let model = |name: &&str| {
                json!({"type": "model", "id": name, "display_name": name, "created_at": CREATED,
                    "lifecycle": "active", "max_input_tokens": CONTEXT_TOKENS,
                    "max_tokens": OUTPUT_TOKENS})
            };
            let [first, .., last] = NAMES;
            json!({"data": NAMES.iter().map(model).collect::<Value>(), "has_more": false,
                "first_id": first, "last_id": last})
        }
        Api::Gemini => {
            let model = |name: &&str| {
                json!({"name": format!("models/{name}"), "version": "1", "displayName": name,
                    "description": "A scripted model.", "inputTokenLimit": CONTEXT_TOKENS,
                    "outputTokenLimit": OUTPUT_TOKENS, "thinking": true,
                    "supportedGenerationMethods": ["generateContent", "streamGenerateContent"]})
            };
            json!({"models": NAMES.iter().map(model).collect::<Value>()})
        }
    }
}
