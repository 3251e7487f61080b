use super::*;
use serde_json::json;

fn event(value: serde_json::Value) -> Event {
    Event::of(value)
}

fn told(story: &mut Story, values: &[serde_json::Value]) -> Vec<String> {
    let take = |value: &serde_json::Value| story.take(event(value.clone()), Moment::Before);
    values.iter().flat_map(take).map(|line| line.plain()).collect()
}

#[test]
fn a_turn_is_told_in_its_order() {
    let mut story = Story::new("t-");
    let lines = told(
        &mut story,
        &[
            json!({"type": "turn_started", "message": "hi\nthere"}),
            json!({"type": "assistant_reasoning", "text": "hmm"}),
            json!({"type": "assistant_message", "text": "He"}),
            json!({"type": "assistant_message", "text": "llo\nworld"}),
            json!({"type": "assistant_message", "text": "", "is_final": true}),
            json!({"type": "turn_completed", "usage": {"input_tokens": 1200, "output_tokens": 3}}),
        ],
    );
    let want =
        ["", "› hi", "  there", "", "┊ hmm", "", "Hello", "world", "", "✓ 1,200 tokens in, 3 out"];
    assert_eq!(lines, want);
    assert!(!story.is_working());
}

#[test]
fn what_is_open_is_shown_apart() {
    let mut story = Story::new("t-");
    let lines = told(
        &mut story,
        &[
            json!({"type": "turn_started", "message": "x"}),
            json!({"type": "assistant_message", "text": "one\ntwo"}),
        ],
    );
    assert_eq!(lines, ["", "› x", "", "one"]);
    assert_eq!(story.open_lines(5)[0].plain(), "two");
}

#[test]
fn a_request_is_open_until_it_is_settled() {
    let mut story = Story::new("t-");
    let request = json!({"type": "control_request", "request_id": "req-1", "tool_name": "Bash",
        "input": {"command": "touch a"}, "context": {"risk_level": "medium"}});
    told(&mut story, std::slice::from_ref(&request));
    story.asked().unwrap().answered = true;
    assert!(told(&mut story, std::slice::from_ref(&request)).is_empty(), "told again, not twice");
    assert!(!story.asked().unwrap().answered);
    let settled = json!({"type": "approval_settled", "request_id": "req-1", "decision": "deny",
        "by": "ann", "message": "no"});
    let lines = told(&mut story, &[settled]);
    assert_eq!(lines.last().unwrap(), "✗ denied elsewhere, by ann: no");
    assert!(!story.is_asked());
}

#[test]
fn waiting_messages_come_once_and_go_with_their_turn() {
    let mut story = Story::new("t-");
    let queued = json!({"type": "message_queued", "message_id": "queued-3", "message": "later"});
    told(&mut story, &[queued.clone(), queued]);
    assert_eq!(story.queue().len(), 1);
    told(
        &mut story,
        &[json!({"type": "turn_started", "message": "later", "message_id": "queued-3"})],
    );
    assert!(story.queue().is_empty());
}

#[test]
fn the_end_of_a_turn_closes_what_is_open() {
    let mut story = Story::new("t-");
    let lines = told(
        &mut story,
        &[
            json!({"type": "turn_started", "message": "x"}),
            json!({"type": "tool_started", "tool_name": "Bash", "tool_id": "tool-1",
               "arguments": {"command": "sleep 9"}}),
            json!({"type": "turn_failed", "error": "Interrupted: stop", "code": "interrupted"}),
        ],
    );
    assert!(lines.iter().any(|line| line.contains("sleep 9")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("■ Interrupted: stop")), "{lines:?}");
    assert!(story.open_lines(5).is_empty());
}

#[test]
fn facts_of_a_session_are_kept() {
    let mut story = Story::new("t-");
    told(
        &mut story,
        &[json!({"type": "session_init", "model": "m", "agent": "react",
        "permission_mode": "manual", "cwd": "/w", "title": "T", "success": true})],
    );
    let lines = told(
        &mut story,
        &[json!({"type": "session_info", "status": "active",
        "permission_mode": "auto"})],
    );
    assert_eq!(lines, ["∙ the mode is auto now"]);
    assert_eq!((story.mode.as_str(), story.model.as_str()), ("auto", "m"));
    assert_eq!(story.title.as_deref(), Some("T"));
}
