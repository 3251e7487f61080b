//! JSON Schemas of every message, for the documents.

use schemars::{JsonSchema, Schema, schema_for};
use serde_json::{Value, json};

use super::wire::{ApprovalResponse, Interrupt, Payload, Settled, UserInput};

/// The kinds of messages in the order of `Payload`'s variants.
const KINDS: [(&str, &str); 7] = [
    ("agentloop.server.response_item", "response_item"),
    ("agentloop.server.loading_state", "loading_state"),
    ("agentloop.server.approval_request", "approval_request"),
    ("agentloop.server.agent_finished", "agent_finished"),
    ("agentloop.server.context_info", "context_info"),
    ("agentloop.server.context_compacted", "context_compacted"),
    ("agentloop.server.error", "error"),
];

/// Every message under its name: `agentloop.server.response_item`, `agentloop.client.user_input` ….
pub(crate) fn schemas() -> Vec<(&'static str, Schema)> {
    let payloads = schema_for!(Payload).to_value();
    let variants = payloads["anyOf"].as_array().cloned().unwrap_or_default();
    let defs = payloads.get("$defs").cloned();
    let server = KINDS.iter().zip(variants).map(|((name, kind), payload)| {
        let answers = matches!(*kind, "error" | "context_info");
        (*name, message(kind, payload, defs.clone(), answers))
    });
    let mut all: Vec<(&'static str, Schema)> = server.collect();
    all.extend([
        ("agentloop.client.user_input", request::<UserInput>("user_input", true)),
        (
            "agentloop.client.approval_response",
            request::<ApprovalResponse>("approval_response", true),
        ),
        ("agentloop.client.get_context_info", request::<Nothing>("get_context_info", false)),
        ("agentloop.client.manual_compact", request::<Nothing>("manual_compact", false)),
        ("agentloop.client.interrupt", request::<Interrupt>("interrupt", false)),
    ]);
    all
}

#[derive(JsonSchema)]
struct Nothing {}

/// An answer to one client is about no place in the log until that client is attached.
fn message(kind: &str, payload: Value, defs: Option<Value>, answers: bool) -> Schema {
    let mut settled = schema_for!(Settled).to_value();
    if let Some(fields) = settled.as_object_mut() {
        fields.remove("$schema");
        fields.remove("title");
    }
    let mut required = vec!["id", "type", "payload"];
    if !answers {
        required.extend(["session_id", "seq"]);
    }
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind,
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "type": {"type": "string", "const": kind},
            "payload": payload,
            "settled": settled,
            "session_id": {"type": "string"},
            "seq": {"type": "integer", "minimum": 0},
            "cursor": {"type": "string"},
        },
        "required": required,
    });
    if let Some(defs) = defs {
        schema["$defs"] = defs;
    }
    Schema::try_from(schema).unwrap_or_default()
}

fn request<T: JsonSchema>(kind: &str, needs_payload: bool) -> Schema {
    let mut payload = schema_for!(T).to_value();
    let defs = payload.as_object_mut().and_then(|fields| {
        fields.remove("$schema");
        fields.remove("$defs")
    });
    let is_read = payload.get("properties").is_some();
    if !needs_payload {
        payload = json!({"anyOf": [payload, {"type": "null"}]});
    }
    let mut required = vec!["id", "type"];
    required.extend(needs_payload.then_some("payload"));
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind,
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "type": {"type": "string", "const": kind},
            "payload": payload,
        },
        "required": required,
    });
    if !is_read && let Some(fields) = schema["properties"].as_object_mut() {
        fields.remove("payload");
    }
    if let Some(defs) = defs {
        schema["$defs"] = defs;
    }
    Schema::try_from(schema).unwrap_or_default()
}
