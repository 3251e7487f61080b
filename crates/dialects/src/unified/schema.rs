//! JSON Schemas of every message, for the documents.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::wire::*;

/// Whether every message of a type has the stamp of a place in the log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stamp {
    Always,
    /// An answer to one connection has it only where that is attached.
    WhereAttached,
}

/// Each message's name and schema: `unified.server.turn_started`, `unified.client.cancel` ….
pub fn schemas() -> Vec<(&'static str, Schema)> {
    [server_schemas(), client_schemas()].concat()
}

fn server_schemas() -> Vec<(&'static str, Schema)> {
    use Stamp::{Always, WhereAttached};
    vec![
        ("unified.server.session_init", server::<SessionInit<'_>>(WhereAttached)),
        ("unified.server.session_info", server::<SessionInfo<'_>>(WhereAttached)),
        ("unified.server.session_renamed", server::<SessionRenamed<'_>>(Always)),
        ("unified.server.message_queued", server::<MessageQueued<'_>>(Always)),
        ("unified.server.message_dropped", server::<MessageDropped<'_>>(Always)),
        ("unified.server.turn_started", server::<TurnStarted<'_>>(Always)),
        ("unified.server.turn_completed", server::<TurnCompleted>(Always)),
        ("unified.server.turn_failed", server::<TurnFailed<'_>>(Always)),
        ("unified.server.assistant_message", server::<AssistantMessage<'_>>(Always)),
        ("unified.server.assistant_reasoning", server::<AssistantReasoning<'_>>(Always)),
        ("unified.server.tool_started", server::<ToolStarted<'_>>(Always)),
        ("unified.server.tool_completed", server::<ToolCompleted<'_>>(Always)),
        ("unified.server.control_request", server::<ControlRequest<'_>>(Always)),
        ("unified.server.approval_settled", server::<ApprovalSettled>(Always)),
        ("unified.server.file_changed", server::<FileChanged<'_>>(Always)),
        ("unified.server.command_output", server::<CommandOutput<'_>>(Always)),
        ("unified.server.token_usage", server::<TokenUsage>(Always)),
        ("unified.server.context_compaction", server::<ContextCompaction>(Always)),
        ("unified.server.context_info", server::<ContextReport>(WhereAttached)),
        ("unified.server.ask_user_question", server::<AskUserQuestion<'_>>(Always)),
        ("unified.server.exit_plan_mode", server::<ExitPlanMode>(Always)),
        ("unified.server.todos_changed", server::<TodosChanged<'_>>(Always)),
        ("unified.server.notice", server::<Notice<'_>>(Always)),
        ("unified.server.error", server::<ErrorTold<'_>>(WhereAttached)),
        ("unified.server.heartbeat", server::<Heartbeat>(WhereAttached)),
        ("unified.server.raw", server::<RawTold<'_>>(Always)),
    ]
}

fn client_schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("unified.client.session_start", client::<SessionStart>("session_start")),
        ("unified.client.session_end", client::<Bare>("session_end")),
        ("unified.client.set_permission_mode", client::<SetPermissionMode>("set_permission_mode")),
        ("unified.client.user_message", client::<UserMessage>("user_message")),
        ("unified.client.permission_response", client::<PermissionResponse>("permission_response")),
        (
            "unified.client.user_question_response",
            client::<UserQuestionResponse>("user_question_response"),
        ),
        (
            "unified.client.plan_approval_response",
            client::<PlanApprovalResponse>("plan_approval_response"),
        ),
        ("unified.client.interrupt", client::<Interrupt>("interrupt")),
        ("unified.client.resume", client::<Bare>("resume")),
        ("unified.client.cancel", client::<Cancel>("cancel")),
        ("unified.client.compact", client::<Bare>("compact")),
        ("unified.client.get_context", client::<Bare>("get_context")),
        ("unified.client.set_model", client::<SetModel>("set_model")),
        ("unified.client.set_agent", client::<SetAgent>("set_agent")),
    ]
}

/// A message without fields of its own.
#[derive(JsonSchema)]
struct Bare {}

fn server<T: Told + JsonSchema>(stamp: Stamp) -> Schema {
    let settings = SchemaSettings::default().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut fields = vec![
        ("type", json!({ "const": T::TYPE }), true),
        ("id", json!({ "type": "string", "pattern": "^evt-" }), true),
        ("session_id", json!({ "type": "string" }), true),
    ];
    let always = stamp == Stamp::Always;
    fields.push(("seq", json!({ "type": "integer", "minimum": 0 }), always));
    fields.push(("cursor", json!({ "type": "string" }), false));
    with(schema, fields)
}

fn client<T: JsonSchema>(kind: &str) -> Schema {
    let settings = SchemaSettings::default().for_deserialize();
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let fields = vec![
        ("type", json!({ "const": kind }), true),
        ("id", json!({ "type": ["string", "null"] }), false),
        ("session_id", json!({ "type": ["string", "null"] }), false),
    ];
    with(schema, fields)
}

/// Adds what all messages have to what is a message's own.
fn with(mut schema: Schema, fields: Vec<(&str, Value, bool)>) -> Schema {
    let object = schema.ensure_object();
    let properties = object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    let mut required = Vec::new();
    for (name, field, is_required) in fields {
        if let Some(properties) = properties.as_object_mut() {
            properties.insert(name.to_string(), field);
        }
        required.extend(is_required.then(|| Value::from(name)));
    }
    let all = object.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(all) = all.as_array_mut() {
        all.splice(0..0, required);
    }
    schema
}
