//! JSON Schemas of every message, for the documentation and its test.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, schema_for};
use serde_json::json;

use super::wire::{self, client};

/// A message about a session, with its place in it.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Placed<T> {
    #[serde(flatten)]
    message: T,
    session_id: String,
    /// The last log entry that the message completes.
    seq: u64,
    /// The same and what was sent beyond it, where there is such.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

/// An answer to one client, with its place if the client is attached to a session.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Answer<T> {
    #[serde(flatten)]
    message: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

#[allow(dead_code, reason = "the documentation's test asks every dialect for its schemas")]
pub(crate) fn schemas() -> Vec<(&'static str, Schema)> {
    let client = [
        ("loom.client.run", schema_for!(client::Run)),
        ("loom.client.tools_list", schema_for!(client::ToolsList)),
        ("loom.client.tool_show", schema_for!(client::ToolShow)),
        ("loom.client.user_messages", schema_for!(client::UserMessages)),
        ("loom.client.ping", schema_for!(client::Ping)),
        ("loom.client.cancel_run", schema_for!(client::CancelRun)),
        ("loom.client.tool_approval_response", schema_for!(client::ToolApprovalResponse)),
    ];
    let server = [
        ("loom.server.run_stream_event", sent::<Placed<wire::RunStreamEvent<'_>>>()),
        ("loom.server.run_end", sent::<Placed<wire::RunEnd<'_>>>()),
        ("loom.server.error", sent::<Answer<wire::Error<'_>>>()),
        ("loom.server.tools_list", sent::<Answer<wire::ToolsList<'_>>>()),
        ("loom.server.tool_show", sent::<Answer<wire::ToolShow<'_>>>()),
        ("loom.server.user_messages", sent::<Answer<wire::UserMessages<'_>>>()),
        ("loom.server.pong", sent::<Answer<wire::Pong<'_>>>()),
    ];
    client.into_iter().chain(server).map(|(name, schema)| (name, typed(name, schema))).collect()
}

/// The schema of what is written, where fields that may be left out are not required.
fn sent<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// Adds the `type` that the message has: the last word of its name.
fn typed(name: &str, mut schema: Schema) -> Schema {
    let kind = name.rsplit('.').next().unwrap_or(name);
    let object = schema.ensure_object();
    object.insert("title".into(), json!(name));
    let fields = object.entry("properties").or_insert_with(|| json!({}));
    if let Some(fields) = fields.as_object_mut() {
        fields.insert("type".into(), json!({"type": "string", "const": kind}));
    }
    let required = object.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut().filter(|names| !names.contains(&json!("type")))
    {
        required.insert(0, json!("type"));
    }
    schema
}
