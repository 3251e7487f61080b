//! JSON Schemas of the chat messages, with the fields that say a message's place.

use schemars::{Schema, schema_for};
use serde_json::{Value, json};

use super::wire::{CHAT, Chat, Told};

/// Every message under its name.
pub(crate) fn schemas() -> Vec<(&'static str, Schema)> {
    let all = schema_for!(Told<'_>).to_value();
    let one = |kind: &str| {
        let variants = all["oneOf"].as_array().into_iter().flatten();
        let found = variants.clone().find(|one| one["properties"]["type"]["const"] == kind);
        placed(found.cloned().unwrap_or(json!({})), kind == "error")
    };
    vec![
        ("chat.client.chat", chat()),
        ("chat.server.user_message", one("user_message")),
        ("chat.server.agent_message", one("agent_message")),
        ("chat.server.tool_call", one("tool_call")),
        ("chat.server.tool_result", one("tool_result")),
        ("chat.server.agent_thinking", one("agent_thinking")),
        ("chat.server.error", one("error")),
    ]
}

fn chat() -> Schema {
    let mut schema = schema_for!(Chat).to_value();
    schema["properties"]["type"] = json!({"type": "string", "const": CHAT});
    require(&mut schema, "type");
    finished(schema)
}

/// Adds the stamp of place; an error may be about no session.
fn placed(mut schema: Value, may_be_placeless: bool) -> Schema {
    schema["properties"]["session_id"] = json!({"type": "string"});
    schema["properties"]["seq"] = json!({"type": "integer", "minimum": 0});
    schema["properties"]["cursor"] = json!({"type": "string"});
    if !may_be_placeless {
        require(&mut schema, "session_id");
        require(&mut schema, "seq");
    }
    finished(schema)
}

fn require(schema: &mut Value, field: &str) {
    match schema.get_mut("required").and_then(Value::as_array_mut) {
        Some(required) => required.push(field.into()),
        None => schema["required"] = json!([field]),
    }
}

fn finished(schema: Value) -> Schema {
    Schema::try_from(schema).unwrap_or_default()
}
