//! The shapes of all stream events, those included that nothing sends yet.

use serde_json::{Value, json};

use crate::loom::wire::{Arguments, Envelope, Event, RunStreamEvent};

fn rendered(event: &Event<'_>) -> Value {
    let has_own = matches!(event, Event::GotExpand { .. });
    let node_id = (!has_own).then_some("n");
    let event = Envelope { event, session_id: "s", node_id, event_id: 3 };
    serde_json::to_value(RunStreamEvent { id: "run-1", request_id: None, event }).unwrap()
}

#[test]
fn events_of_the_other_agents() {
    let rows = [
        (
            Event::TotExpand { candidates: &["look up docs", "answer directly"], depth: 1 },
            json!({"type": "tot_expand", "candidates": ["look up docs", "answer directly"],
                "depth": 1}),
        ),
        (
            Event::TotEvaluate { chosen: 0, scores: &[1.1, 0.8], depth: 1 },
            json!({"type": "tot_evaluate", "chosen": 0, "scores": [1.1, 0.8], "depth": 1}),
        ),
        (
            Event::TotBacktrack { reason: "tool error", to_depth: 0 },
            json!({"type": "tot_backtrack", "reason": "tool error", "to_depth": 0}),
        ),
        (
            Event::GotPlan { node_count: 2, edge_count: 1, node_ids: &["a", "b"] },
            json!({"type": "got_plan", "node_count": 2, "edge_count": 1, "node_ids": ["a", "b"]}),
        ),
        (Event::GotNodeStart { id: "a" }, json!({"type": "got_node_start", "id": "a"})),
        (
            Event::GotNodeComplete { id: "a", result_summary: "done" },
            json!({"type": "got_node_complete", "id": "a", "result_summary": "done"}),
        ),
        (
            Event::GotNodeFailed { id: "a", error: "no" },
            json!({"type": "got_node_failed", "id": "a", "error": "no"}),
        ),
        (
            Event::GotExpand { node_id: "merge", nodes_added: 2, edges_added: 2 },
            json!({"type": "got_expand", "node_id": "merge", "nodes_added": 2, "edges_added": 2}),
        ),
    ];
    for (event, mut want) in rows {
        let fields = want.as_object_mut().unwrap();
        fields.entry("node_id").or_insert(json!("n"));
        fields.insert("session_id".into(), json!("s"));
        fields.insert("event_id".into(), json!(3));
        let frame = json!({"type": "run_stream_event", "id": "run-1", "event": want});
        assert_eq!(rendered(&event), frame);
    }
}

#[test]
fn arguments_are_an_object_or_a_text() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(500), "]".repeat(500));
    let rows: &[(&str, Value)] = &[
        (r#"{"b":1,"a":2}"#, json!({"b": 1, "a": 2})),
        ("", json!({})),
        (" \n", json!({})),
        ("[1]", json!("[1]")),
        ("{\"a\":", json!("{\"a\":")),
        (r#"{"a":"\ud800"}"#, json!(r#"{"a":"\ud800"}"#)),
        (&deep, json!(deep)),
    ];
    for (args, want) in rows {
        assert_eq!(serde_json::to_value(Arguments::of(args)).unwrap(), *want, "{args}");
    }
    let kept = serde_json::to_string(&Arguments::of(r#"{"b":1.50,"a":2}"#)).unwrap();
    assert_eq!(kept, r#"{"b":1.50,"a":2}"#, "as the model wrote it");
}

#[cfg(feature = "schema")]
#[test]
fn every_message_has_a_schema() {
    let all = crate::loom::schemas();
    let named = |name: &str| {
        let schema = all.iter().find(|(found, _)| *found == name);
        serde_json::to_value(&schema.unwrap_or_else(|| panic!("{name}")).1).unwrap()
    };
    for kind in crate::Dialect::client_types(&crate::loom::Loom) {
        let schema = named(&format!("loom.client.{kind}"));
        assert_eq!(schema["properties"]["type"]["const"], *kind, "{schema}");
    }
    let event = named("loom.server.run_stream_event");
    for field in ["type", "id", "event", "session_id", "seq"] {
        assert!(event["required"].as_array().unwrap().contains(&json!(field)), "{field}");
    }
    let text = event.to_string();
    for kind in ["run_start", "node_exit", "values", "got_expand", "tot_evaluate", "tool_approval"]
    {
        assert!(text.contains(&format!("\"const\":\"{kind}\"")), "{kind}");
    }
    assert_eq!(named("loom.server.run_end")["properties"]["type"]["const"], "run_end");
}
