//! The Loom document: its one JSON example, and the tables that say what each message holds.

use std::sync::Arc;

use polyloop_dialects::loom::Loom;
use polyloop_dialects::{Complaint, Dialect, Listed, Reply, ToolForm, ToolInfo};
use polyloop_session::event::{CallOutcome, Outcome};
use polyloop_session::item::{Fault, ItemKind};
use polyloop_session::{Event, SessionId};
use serde_json::{Value, json};

use super::super::asked;
use super::super::make::{call, client_of, completed, started, updates, usage};
use super::super::world::{json as json_of, sent};
use super::{Check, after};

pub fn checks() -> Vec<(&'static str, Check)> {
    vec![("seed-003/01-run.json", run)]
}

/// Without a thread nothing is remembered.
fn run(text: &str) {
    let asked = Loom.decode(text, &client_of(&Loom)).unwrap();
    let run = json!({"content": ["What time is it?"], "client_ref": null, "tokens": 4,
        "run": {"agent": "react", "alone": true}, "folder": null, "can_approve": false});
    assert_eq!(asked::told(&asked.ask), json!({ "run": run }));
    assert_eq!(asked.session, None);
}

/// A message holds what its table lists, each of the listed kind, and no other than those named.
fn holds(message: &Value, table: &[(&str, &str)], extras: &[&str]) {
    for (field, kind) in table {
        let value = &message[*field];
        let is = match *kind {
            "string" => value.is_string(),
            "object" => value.is_object(),
            "array" => value.is_array(),
            "number" => value.is_u64(),
            "bool" => value.is_boolean(),
            other => panic!("no kind {other}"),
        };
        assert!(is, "{field} is no {kind} in {message}");
    }
    for field in message.as_object().unwrap().keys() {
        let listed = table.iter().any(|(name, _)| name == field);
        assert!(listed || extras.contains(&field.as_str()), "{field} is not listed: {message}");
    }
}

const PLACE: &[&str] = &["session_id", "seq", "cursor"];
const USAGE: &[(&str, &str)] =
    &[("prompt_tokens", "number"), ("completion_tokens", "number"), ("total_tokens", "number")];

fn frames(outcome: Outcome) -> Vec<Value> {
    let answered =
        Event::CallEnded { call: call(3), outcome: CallOutcome::Answered, usage: Some(usage()) };
    let end = Event::TurnEnded { outcome, usage: usage() };
    let said = [started(3, ItemKind::Text), completed(4, "Noon.", None), answered, end];
    sent(&Loom, &updates(after(said))).concat().into_iter().map(|frame| frame.json).collect()
}

#[test]
fn a_run_is_streamed_and_ends_once() {
    let mut frames = frames(Outcome::Completed);
    let end = frames.pop().unwrap();
    for frame in &frames {
        let table = [("type", "string"), ("id", "string"), ("event", "object")];
        holds(frame, &table, PLACE);
        assert_eq!(frame["type"], "run_stream_event");
        assert_eq!(frame["id"], end["id"]);
        for field in ["type", "session_id", "node_id"] {
            assert!(frame["event"][field].is_string(), "{frame}");
        }
        assert!(frame["event"]["event_id"].is_u64(), "{frame}");
    }
    assert_eq!(frames[0]["event"]["type"], "run_start");
    let table = [
        ("type", "string"),
        ("id", "string"),
        ("reply", "string"),
        ("usage", "object"),
        ("total_usage", "object"),
        ("session_id", "string"),
        ("node_id", "string"),
        ("event_id", "number"),
    ];
    holds(&end, &table, PLACE);
    assert_eq!((&end["type"], &end["reply"]), (&json!("run_end"), &json!("Noon.")));
    assert!(end["id"].as_str().unwrap().starts_with("run-"), "{end}");
    for usage in [&end["usage"], &end["total_usage"]] {
        holds(usage, USAGE, &[]);
        let number = |field: &str| usage[field].as_u64().unwrap();
        assert_eq!(number("total_tokens"), number("prompt_tokens") + number("completion_tokens"));
    }
    assert_eq!(end["event_id"].as_u64().unwrap(), frames.len() as u64 + 1);
}

#[test]
fn a_run_that_fails_ends_with_its_id() {
    let outcome = Outcome::Failed { fault: Fault::new("500", "It broke") };
    let error = frames(outcome).pop().unwrap();
    let table = [("type", "string"), ("id", "string"), ("error", "string")];
    holds(&error, &table, PLACE);
    assert_eq!((&error["type"], &error["error"]), (&json!("error"), &json!("It broke")));
}

fn replied(reply: &Reply) -> Value {
    json_of(&Loom.reply(None, 1, reply))
}

fn tool() -> ToolInfo {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    ToolInfo { name: "read".into(), description: "Reads\na file".into(), parameters }
}

const TOOL: &[(&str, &str)] =
    &[("name", "string"), ("description", "string"), ("input_schema", "object")];

#[test]
fn requests_are_answered_under_their_id() {
    let id = "q1";
    let tools = replied(&Reply::Tools { id: id.into(), tools: Arc::new([tool()]) });
    holds(&tools, &[("type", "string"), ("id", "string"), ("tools", "array")], &[]);
    holds(&tools["tools"][0], TOOL, &[]);

    let show = |form| replied(&Reply::Tool { id: id.into(), tool: tool(), form });
    let (json, yaml) = (show(ToolForm::Json), show(ToolForm::Yaml));
    holds(&json, &[("type", "string"), ("id", "string"), ("tool", "object")], &[]);
    holds(&json["tool"], TOOL, &[]);
    holds(&yaml, &[("type", "string"), ("id", "string"), ("tool_yaml", "string")], &[]);
    assert_eq!(yaml["type"], "tool_show");

    let message = |seq, role, content: &str| Listed { seq, role, content: content.into() };
    let messages = vec![message(2, "user", "Hi"), message(5, "assistant", "Hello")];
    let thread = SessionId::parse("t").unwrap();
    let (id_of, has_more) = (id.into(), false);
    let list = replied(&Reply::Messages { id: id_of, thread, messages, has_more });
    let table = [
        ("type", "string"),
        ("id", "string"),
        ("thread_id", "string"),
        ("messages", "array"),
        ("has_more", "bool"),
    ];
    holds(&list, &table, &[]);
    for message in list["messages"].as_array().unwrap() {
        holds(message, &[("role", "string"), ("content", "string")], &["seq"]);
    }

    let pong = replied(&Reply::Pong { id: id.into() });
    assert_eq!(pong, json!({"type": "pong", "id": id}));
    let unknown = Complaint::new("no", "tool not found: x", "no_such_tool").about(Some(id.into()));
    let error = replied(&Reply::Complaint(unknown));
    assert_eq!(error, json!({"type": "error", "id": id, "error": "tool not found: x"}));
    for answer in [tools, json, yaml, list] {
        assert_eq!(answer["id"], id);
    }
}

#[test]
fn a_frame_that_cannot_be_read_is_answered_without_an_id() {
    for frame in ["{", r#"{"type":"run","id":"r1"}"#, r#"{"type":"nonsense","id":"r1"}"#] {
        let complaint = Loom.decode(frame, &client_of(&Loom)).unwrap_err();
        let error = replied(&Reply::Complaint(complaint));
        holds(&error, &[("type", "string"), ("error", "string")], &[]);
        assert!(error["error"].as_str().unwrap().starts_with("parse error: "), "{error}");
    }
}
