//! Client messages that are wrong in some way: each is told what, and none stops the server.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::decode::{decode, read};

/// Each row: a type, fields, the code, and what the text must name.
#[test]
fn bad_fields_are_named() {
    let rows = [
        (
            "session_start",
            json!({"permission_mode": "yolo"}),
            "bad_mode",
            "permission_mode: \"yolo\"",
        ),
        ("session_start", json!({"permission_mode": 3}), "bad_payload", "permission_mode: "),
        ("session_start", json!({"max_turns": 0}), "bad_payload", "max_turns: "),
        ("session_start", json!({"max_turns": -1}), "bad_payload", "max_turns: "),
        ("session_start", json!({"max_turns": 4_294_967_296_u64}), "bad_payload", "max_turns: "),
        ("session_start", json!({"max_turns": "10"}), "bad_payload", "max_turns: "),
        ("session_start", json!({"metadata": []}), "bad_metadata", "metadata: "),
        ("session_start", json!({"metadata": "x"}), "bad_metadata", "metadata: "),
        ("set_permission_mode", json!({}), "bad_payload", "`mode`"),
        (
            "set_permission_mode",
            json!({"mode": "Manual"}),
            "bad_mode",
            "manual, auto, bypass, plan",
        ),
        ("user_message", json!({}), "bad_payload", "`content`"),
        ("user_message", json!({"content": ["x"]}), "bad_payload", "content: "),
        (
            "user_message",
            json!({"content": "x", "parent_tool_use_id": 1}),
            "bad_payload",
            "parent_tool_use_id: ",
        ),
        ("permission_response", json!({"decision": "allow"}), "bad_payload", "`request_id`"),
        ("permission_response", json!({"request_id": "req-1"}), "bad_payload", "`decision`"),
        (
            "permission_response",
            json!({"request_id": "req-1", "decision": "Allow"}),
            "bad_decision",
            "decision: \"Allow\"",
        ),
        (
            "permission_response",
            json!({"request_id": "7", "decision": "allow"}),
            "no_such_request",
            "request_id: \"7\"",
        ),
        (
            "permission_response",
            json!({"request_id": "req-+7", "decision": "allow"}),
            "no_such_request",
            "request_id: ",
        ),
        (
            "permission_response",
            json!({"request_id": "req-99999999999999999999", "decision": "allow"}),
            "no_such_request",
            "request_id: ",
        ),
        ("user_question_response", json!({"answers": []}), "bad_payload", "request_id"),
        ("user_question_response", json!({"tool_id": "tool-1"}), "bad_payload", "`answers`"),
        (
            "user_question_response",
            json!({"tool_id": "tool-1", "answers": [{"selected": []}]}),
            "bad_payload",
            "answers[0]",
        ),
        (
            "user_question_response",
            json!({"tool_id": "tool-1", "answers": [{"question_index": -1, "selected": []}]}),
            "bad_payload",
            "answers[0].question_index: ",
        ),
        (
            "user_question_response",
            json!({"tool_id": "tool-1", "answers": [{"question_index": 0, "selected": [1]}]}),
            "bad_payload",
            "answers[0].selected[0]: ",
        ),
        ("plan_approval_response", json!({"approved": true}), "bad_payload", "request_id"),
        ("plan_approval_response", json!({"tool_id": "tool-1"}), "bad_payload", "`approved`"),
        (
            "plan_approval_response",
            json!({"tool_id": "tool-1", "approved": "yes"}),
            "bad_payload",
            "approved: ",
        ),
        ("interrupt", json!({"reason": {}}), "bad_payload", "reason: "),
        ("cancel", json!({}), "bad_payload", "`target_id`"),
        ("set_model", json!({}), "bad_payload", "`model`"),
        ("set_agent", json!({"agent": "smart"}), "bad_agent", "react, dup, tot, got"),
        ("user_messages", json!({}), "unknown_type", "Unknown message type: user_messages"),
        ("User_message", json!({}), "unknown_type", "user_message"),
    ];
    for (kind, fields, code, names) in rows {
        let complaint = read(kind, fields.clone()).unwrap_err();
        let told = format!("{kind} {fields}: {complaint:?}");
        assert_eq!(complaint.code, code, "{told}");
        assert!(complaint.error.contains(names), "{told}");
        assert_eq!(complaint.about.as_deref(), Some("msg-001"), "{told}");
    }
}

#[test]
fn frames_that_are_no_messages() {
    let deep = "[".repeat(100_000);
    let metadata = format!(
        r#"{{"type":"session_start","session_id":"s","metadata":{{"a":{}{}}}}}"#,
        "[".repeat(120),
        "]".repeat(120)
    );
    let rows = [
        ("", "bad_message"),
        ("hello", "bad_message"),
        ("null", "bad_message"),
        ("\"resume\"", "bad_message"),
        ("[]", "bad_message"),
        (r#"["resume","id","s"]"#, "bad_message"),
        ("{}", "bad_message"),
        (r#"{"type":null}"#, "bad_message"),
        (r#"{"type":1}"#, "bad_message"),
        (r#"{"type":"resume","session_id":"s"} x"#, "bad_message"),
        (r#"{"type":"resume","session_id":7}"#, "bad_message"),
        (r#"{"type":"resume","session_id":"s","id":7}"#, "bad_message"),
        (r#"{"type":"resume","type":"resume","session_id":"s"}"#, "bad_message"),
        (r#"{"type":"user_message","session_id":"s","content":"a","content":"b"}"#, "bad_payload"),
        (&deep, "bad_message"),
        (&metadata, "bad_metadata"),
    ];
    for (frame, code) in rows {
        let complaint = decode(frame).unwrap_err();
        assert_eq!(complaint.code, code, "{frame:.60}: {complaint:?}");
        assert!(!complaint.error.is_empty() && complaint.error.len() < 2_100);
    }
    let extra = format!(
        r#"{{"type":"resume","session_id":"s","x":{}{}}}"#,
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    assert!(decode(&extra).is_ok(), "what is not ours to read is ignored");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "req-[0-9]{0,25}|tool-[0-9]{1,3}|[a-z_]{0,12}|.{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("question_index|selected|user_id|x", inner, 0..3)
                .prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    #[test]
    fn decode_is_total(
        kind in proptest::sample::select(&[
            "session_start", "session_end", "set_permission_mode", "user_message",
            "permission_response", "user_question_response", "plan_approval_response",
            "interrupt", "resume", "cancel", "compact", "get_context", "set_model", "set_agent",
        ][..]),
        fields in proptest::collection::btree_map(
            "session_id|id|permission_mode|max_turns|metadata|mode|content|parent_tool_use_id|\
             request_id|decision|explanation|tool_id|answers|approved|feedback|reason|target_id|\
             model|agent",
            value(),
            0..8,
        ),
        cut in any::<proptest::sample::Index>(),
    ) {
        let mut message = Value::from_iter(fields);
        message["type"] = kind.into();
        let text = message.to_string();
        let _ = decode(&text);
        let at = (0..=cut.index(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let _ = decode(&text[..at.unwrap_or(0)]);
    }
}
