//! Lines that others wrote, and lines that time has not been kind to.

use std::fs;

use polyloop_dialects::agentloop::file::{FileEncoder, Line, line_time, read_line, restored};
use polyloop_session::event::Adopted;
use polyloop_session::item::Part;
use polyloop_session::{Seq, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::decode::any_json;
use super::fixture::{golden, scenarios};
use super::make::parts;
use super::runner::try_all;
use super::world::session;

const CASES: u32 = 5_000;

fn read(line: &str) -> Line {
    read_line(line, &|_| None)
}

fn foreign(kind: &str, data: Value) -> Line {
    let direction = if kind.ends_with("received") { "incoming" } else { "outgoing" };
    let line = json!({
        "timestamp": "2025-01-09T12:34:56.789Z",
        "event_type": kind,
        "direction": direction,
        "message_data": data,
    });
    read(&line.to_string())
}

/// What a line of another program adds to the conversation.
fn piece(kind: &str, data: Value) -> Option<Adopted> {
    match foreign(kind, data) {
        Line::Foreign { at: Timestamp(1_736_426_096_789), piece } => piece,
        other => panic!("{other:?}"),
    }
}

fn item(payload: Value) -> Option<Adopted> {
    let data = json!({"id": "1", "type": "response_item", "payload": payload});
    piece("websocket_message_sent", data)
}

fn input(input: Value) -> Option<Adopted> {
    let data = json!({"id": "1", "type": "user_input", "payload": {"input": input}});
    piece("websocket_message_received", data)
}

#[test]
fn user_inputs_are_loaded() {
    let hello = Some(Adopted::User { content: parts("Hello") });
    assert_eq!(input(json!([{"type": "input_text", "text": "Hello"}])), hello);
    let message = |content| json!([{"type": "message", "role": "user", "content": content}]);
    assert_eq!(input(message(json!("Hello"))), hello);
    assert_eq!(input(message(json!([{"type": "input_text", "text": "Hello"}]))), hello);
    let two = json!([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]);
    let both = [parts("a"), parts("b")].concat();
    assert_eq!(input(message(two)), Some(Adopted::User { content: both }));
    assert_eq!(input(json!([])), None);
    assert_eq!(input(json!("Hello")), None);
}

#[test]
fn pictures_are_loaded_where_they_are_some() {
    const PNG: &str = "iVBORw0KGgo=";
    let picture = Part::Image { media_type: "image/png".into(), data: PNG.into() };
    let url = json!({"type": "input_image", "image_url": format!("data:image/png;base64,{PNG}")});
    let text = json!({"type": "input_text", "text": "Hello"});
    let message = |content| json!([{"type": "message", "role": "user", "content": content}]);
    let both = [parts("Hello"), vec![picture.clone()]].concat();
    assert_eq!(input(message(json!([text, url]))), Some(Adopted::User { content: both }));
    let alone = Some(Adopted::User { content: vec![picture] });
    assert_eq!(input(json!([url])), alone);
    assert_eq!(
        input(json!([{"type": "input_image", "media_type": "image/png", "data": PNG}])),
        alone
    );
    let elsewhere = json!({"type": "input_image", "image_url": "https://example.org/a.png"});
    let hello = Some(Adopted::User { content: parts("Hello") });
    assert_eq!(input(message(json!([text, elsewhere]))), hello);
    assert_eq!(input(message(json!([elsewhere]))), None);
}

#[test]
fn response_items_are_loaded() {
    let said = |kind: &str| {
        let content = json!([{"type": kind, "text": "Hi "}, {"type": kind, "text": "there"}]);
        item(json!({"type": "message", "role": "assistant", "content": content}))
    };
    let agent = Some(Adopted::Agent { text: "Hi there".into() });
    assert_eq!(said("output_text"), agent);
    assert_eq!(said("input_text"), agent);
    let call = Some(Adopted::ToolCall {
        call_ref: "c1".into(),
        name: "shell".into(),
        args: r#"{"command":["ls"]}"#.into(),
    });
    let args = r#"{"command":["ls"]}"#;
    let function = json!({"id": "f1", "type": "function_call", "call_id": "c1", "name": "shell",
        "arguments": args});
    assert_eq!(item(function), call);
    let native = json!({"type": "local_shell_call", "id": "x", "call_id": "c1",
        "action": {"command": ["ls"]}, "status": "completed"});
    assert_eq!(item(native), call);
    let result = Some(Adopted::ToolResult { call_ref: "c1".into(), output: "out".into() });
    for kind in ["function_call_output", "local_shell_call_output"] {
        assert_eq!(item(json!({"type": kind, "call_id": "c1", "output": "out"})), result);
    }
}

/// User echoes would stand twice, system messages were never the model's.
#[test]
fn what_is_no_conversation_is_not_loaded() {
    for role in ["user", "system"] {
        let content = json!([{"type": "input_text", "text": "x"}]);
        assert_eq!(item(json!({"type": "message", "role": role, "content": content})), None);
    }
    for event in ["session_started", "session_connected", "session_ended"] {
        assert_eq!(piece("websocket_message_received", json!({ "event": event })), None);
    }
    for kind in ["loading_state", "context_info", "context_compacted", "agent_finished"] {
        let data = json!({"id": "1", "type": kind, "payload": {"loading": true}});
        assert_eq!(piece("websocket_message_sent", data), None, "{kind}");
    }
    let request = json!({"id": "1", "type": "approval_request", "payload": {"command": ["ls"]}});
    assert_eq!(piece("websocket_message_sent", request), None);
    let response = json!({"id": "1", "type": "approval_response", "payload": {"review": "yes"}});
    assert_eq!(piece("websocket_message_received", response), None);
    let error = json!({"id": "1", "type": "error", "payload": {"message": "no"}});
    assert_eq!(piece("websocket_message_sent", error), None);
    // A message counts only in its own direction, and an event is none whatever it holds.
    let payload = json!({"input": [{"type": "input_text", "text": "x"}]});
    let message = json!({"id": "1", "type": "user_input", "payload": payload});
    assert_eq!(piece("websocket_message_sent", message.clone()), None);
    assert_eq!(piece("other", message.clone()), None);
    let mut event = message;
    event["event"] = json!("session_started");
    assert_eq!(piece("websocket_message_received", event), None);
}

/// The lines that the documents show, compact as a file has them.
pub fn documented() -> Vec<(String, String)> {
    let files = fs::read_dir(golden().join("seed-002")).unwrap().map(|file| file.unwrap().path());
    let named = files.map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path));
    let mut lines: Vec<(String, String)> = named
        .filter(|(name, _)| name.contains("-line-"))
        .map(|(name, path)| {
            let value: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
            (name, value.to_string())
        })
        .collect();
    lines.sort();
    assert_eq!(lines.len(), 8);
    lines
}

fn our_lines() -> Vec<String> {
    let mut lines = Vec::new();
    for scenario in scenarios() {
        let mut encoder = FileEncoder::new(&session());
        lines.extend(scenario.entries().iter().flat_map(|entry| encoder.lines(entry).lines));
    }
    lines
}

#[test]
fn a_torn_line_is_damaged() {
    let documented = documented().into_iter().map(|(_, line)| line);
    for line in our_lines().into_iter().step_by(7).chain(documented) {
        let line = line.trim_end();
        for at in (0..line.len()).filter(|at| line.is_char_boundary(*at)) {
            let torn = read(&line[..at]);
            assert!(
                matches!(torn, Line::Damaged { seq: None, .. }),
                "{torn:?} from {}",
                &line[..at]
            );
        }
    }
}

#[test]
fn what_is_no_line_is_damaged() {
    for line in [
        "",
        "\n",
        "null",
        "[]",
        "5",
        "\"x\"",
        "{}",
        "{\"seq\":1}x",
        "not JSON",
        r#"{"timestamp":"2025-01-09T12:34:56.789Z"}"#,
        r#"{"event_type":"websocket_message_sent","message_data":{}}"#,
        r#"{"timestamp":"yesterday","event_type":"websocket_message_sent","message_data":{}}"#,
        r#"{"seq":3,"event":{"type":"noticed"}}"#,
    ] {
        assert!(matches!(read(line), Line::Damaged { .. }), "{line}: {:?}", read(line));
    }
}

/// A line of ours whose number is gone is no line of another program: its message stands in an
/// entry that would be adopted beside what can be read of the session.
#[test]
fn a_line_of_ours_without_its_number_is_damaged() {
    for line in our_lines() {
        for number in [json!(-1), json!("1"), json!(null), json!(1.5), json!([1])] {
            let mut fields: Value = serde_json::from_str(&line).unwrap();
            fields["seq"] = number;
            let read = read(&fields.to_string());
            assert!(matches!(read, Line::Damaged { seq: None, .. }), "{read:?} from {fields}");
        }
        let mut fields: Value = serde_json::from_str(&line).unwrap();
        fields.as_object_mut().unwrap().remove("seq");
        let first = fields.get("event").is_some();
        let damaged = matches!(read(&fields.to_string()), Line::Damaged { seq: None, .. });
        assert_eq!(damaged, first, "{fields}");
    }
}

#[test]
fn an_event_of_a_later_version_is_damaged_and_keeps_its_number() {
    for line in our_lines() {
        let mut fields: Value = serde_json::from_str(&line).unwrap();
        if fields.get("event").is_none() {
            continue;
        }
        fields["event"]["type"] = json!("teleported");
        let seq = fields["seq"].as_u64().map(Seq);
        match read(&fields.to_string()) {
            Line::Damaged { seq: told, why } => {
                assert_eq!(told, seq);
                assert!(why.contains("teleported"), "{why}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Whatever a file holds, reading a line gives a value.
fn is_read(line: &str) -> Result<(), String> {
    if let Line::Damaged { why, .. } = read(line) {
        ensure!(!why.is_empty(), "it does not say why");
    }
    let any = |_: &str| Some("text".to_string());
    let _ = (read_line(line, &any), restored(line, &any), restored(line, &|_| None));
    let _ = line_time(line);
    Ok(())
}

/// What stands in the place of a text, pointing anywhere.
fn reference() -> impl Strategy<Value = Value> {
    let places = vec![
        "",
        "/",
        "@",
        "#",
        "@#",
        "@/text",
        "@/text#/a",
        "/payload",
        "/payload/content/0/text",
        "/payload/content/0/text#/a#",
        "/payload/content/9/text",
        "@/type",
        "/id#",
        "~",
    ];
    let name = prop_oneof![select(places).prop_map(str::to_string), ".{0,8}"];
    (name, any::<bool>()).prop_map(|(name, blob)| match blob {
        true => json!({"$blob": name, "bytes": 3}),
        false => json!({ "$in": name }),
    })
}

#[test]
fn any_line_is_read() {
    let lines: Vec<String> =
        our_lines().into_iter().chain(documented().into_iter().map(|(_, line)| line)).collect();
    let cut = (select(lines.clone()), vec((any::<Index>(), any::<u8>()), 1..4));
    try_all(CASES, cut, |(line, changes)| {
        let mut bytes = line.into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        is_read(&String::from_utf8_lossy(&bytes))
    });
    let known = vec!["message_data", "event", "seq", "timestamp", "event_type", "audit"];
    let other = prop_oneof![any_json(), reference()];
    try_all(CASES, (select(lines), select(known), other), |(line, name, other)| {
        let mut fields: Value = serde_json::from_str(&line).map_err(|e| e.to_string())?;
        if let Some(event) = fields.get_mut("event").and_then(Value::as_object_mut) {
            event.insert("text".into(), other.clone());
        }
        is_read(&fields.to_string())?;
        fields[name] = other;
        is_read(&fields.to_string())
    });
    try_all(CASES, ".{0,200}", |line| is_read(&line));
}
