//! What one connection alone is told, with and without a session's stamp.

use polyloop_session::context::{ContextInfo, Strategy};
use polyloop_session::event::Agent;
use polyloop_session::item::Usage;
use polyloop_session::policy::Mode;
use polyloop_session::todos::{Priority, Status, Todo};
use polyloop_session::{Seq, Timestamp};
use serde_json::{Value, json};

use super::make::{json as read, session};
use crate::unified::Unified;
use crate::{Complaint, Dialect, Frame, Reply, SessionInit, ToolInfo, View};

/// A stamped frame has the session's id once, an unstamped one says that it has none.
fn told(make: impl Fn(Option<&polyloop_session::SessionId>) -> Frame) -> Value {
    let view = View::new(&Unified, &session(), Seq(7));
    let attached = make(Some(&session())).stamped(&view.place());
    let text = String::from_utf8(attached.text.to_vec()).unwrap();
    assert_eq!(text.matches("session_id").count(), 1, "{text}");
    let alone = read(&make(None));
    let mut attached = read(&attached);
    let fields = attached.as_object_mut().unwrap();
    assert_eq!(fields.remove("seq"), Some(7.into()));
    assert_eq!(fields.insert("session_id".into(), "".into()), Some("s".into()));
    assert_eq!(attached, alone);
    alone
}

fn reply(number: u64, reply: Reply) -> Value {
    told(|session| Unified.reply(session, number, &reply))
}

#[test]
fn errors() {
    let complaint = Complaint::new("Bad", "content: missing", "bad_payload");
    let want = json!({"type": "error", "id": "evt-r3", "session_id": "",
        "message": "content: missing", "is_fatal": false, "code": "bad_payload"});
    assert_eq!(reply(3, Reply::Complaint(complaint.clone())), want);
    let about = Reply::Complaint(complaint.about(Some("msg-1".into())));
    assert_eq!(reply(3, about)["client_ref"], "msg-1");
    assert_eq!(reply(3, Reply::Pong { id: "1".into() })["type"], "error");
}

#[test]
fn sessions() {
    let tool = |name: &str| ToolInfo {
        name: name.into(),
        description: "".into(),
        parameters: Value::Null,
    };
    let mut init = SessionInit {
        model: "claude-sonnet-4".into(),
        cwd: "/project".into(),
        tools: ["bash", "apply_patch", "write_file"].map(tool).to_vec().into(),
        mode: Mode::Suggest,
        mode_word: "default",
        agent: Agent::Tot,
        title: None,
        todos: Vec::new(),
        error: None,
    };
    let mut want = json!({"type": "session_init", "id": "evt-r1", "session_id": "",
        "model": "claude-sonnet-4", "success": true, "cwd": "/project",
        "tools": ["Bash", "apply_patch", "Write"], "permission_mode": "default",
        "agent": "tot", "title": null, "todos": []});
    assert_eq!(reply(1, Reply::SessionInit(Box::new(init.clone()))), want);
    let (status, priority) = (Status::InProgress, Priority::High);
    init.todos.push(Todo { content: "look".into(), status, priority });
    init.title = Some("A title".into());
    want["todos"] = json!([{"content": "look", "status": "in_progress", "priority": "high"}]);
    want["title"] = "A title".into();
    assert_eq!(reply(1, Reply::SessionInit(Box::new(init.clone()))), want);
    init.error = Some(Complaint::new("No", "Mode bypass is not allowed here", "x"));
    want["success"] = false.into();
    want["error"] = "Mode bypass is not allowed here".into();
    assert_eq!(reply(1, Reply::SessionInit(Box::new(init))), want);
    let want = json!({"type": "session_info", "id": "evt-r2", "session_id": "",
        "status": "active"});
    assert_eq!(reply(2, Reply::SessionActive), want);
}

#[test]
fn context() {
    let info = |tokens_max| ContextInfo {
        tokens: 7_000,
        tokens_max,
        pieces: 4,
        strategy: Strategy::Threshold,
        calls: 2,
        filled: Default::default(),
        spent: Usage {
            input_tokens: 9_000,
            output_tokens: 100,
            cost_micros: Some(2_500),
            ..Usage::default()
        },
    };
    let want = json!({"type": "context_info", "id": "evt-r1", "session_id": "",
        "token_count": 7_000, "max_tokens": 200_000, "usage_percent": 0.035,
        "transcript_length": 4, "strategy": "threshold", "warning_level": "normal",
        "session_usage": {"input_tokens": 9_000, "output_tokens": 100, "cached_tokens": 0,
            "total_tokens": 9_100, "cost_usd": 0.0025}});
    assert_eq!(reply(1, Reply::ContextInfo(info(200_000))), want);
    let level =
        |tokens_max| reply(1, Reply::ContextInfo(info(tokens_max)))["warning_level"].clone();
    let levels = [8_751, 8_750, 7_778, 7_777, 7_369, 7_368, 7_000, 1].map(level);
    let want = ["normal", "medium", "medium", "high", "high", "critical", "critical", "critical"];
    assert_eq!(levels, want);
    assert_eq!(reply(1, Reply::ContextInfo(info(0)))["usage_percent"], Value::Null);
}

#[test]
fn heartbeats() {
    let at = Timestamp(1_706_169_600_999);
    let beat = told(|session| Unified.heartbeat(session, 5, at).unwrap());
    let want = json!({"type": "heartbeat", "id": "evt-h5", "session_id": "",
        "timestamp": 1_706_169_600});
    assert_eq!(beat, want);
}

#[cfg(feature = "schema")]
#[test]
fn every_message_has_a_schema() {
    let schemas: std::collections::BTreeMap<_, _> =
        crate::unified::schemas().into_iter().map(|(name, s)| (name, s.to_value())).collect();
    assert_eq!(schemas.len(), 23 + 14);
    for (name, schema) in &schemas {
        let kind = name.rsplit('.').next().unwrap();
        assert_eq!(schema["properties"]["type"]["const"], kind, "{name}");
        assert_eq!(schema["required"][0], "type", "{name}");
    }
    let client = |kind: &&str| schemas.contains_key(format!("unified.client.{kind}").as_str());
    assert!(Unified.client_types().iter().all(client));
    let requires = |name: &str| {
        let required = schemas[name]["required"].as_array().unwrap().iter();
        required.map(|field| field.as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    let message = ["type", "id", "session_id", "seq", "text", "is_final"];
    assert_eq!(requires("unified.server.assistant_message"), message);
    let completed = ["type", "id", "session_id", "seq", "tool_id", "success", "result", "error"];
    assert_eq!(requires("unified.server.tool_completed"), completed);
    assert_eq!(requires("unified.server.error").iter().filter(|f| *f == "seq").count(), 0);
    assert_eq!(requires("unified.client.user_message"), ["type", "content"]);
    let percent = &schemas["unified.server.token_usage"]["$defs"]["Fraction"];
    assert_eq!(percent["type"], json!(["number", "null"]));
}
