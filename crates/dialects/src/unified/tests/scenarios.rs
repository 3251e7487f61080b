//! The four message flows of the protocol's documents.

use polyloop_session::event::{Outcome, Purpose, Window, Work};
use polyloop_session::item::{End, ItemKind};
use polyloop_session::policy::Effect;
use polyloop_session::wait::{Answer, Ask, Choice, Given, Question};
use polyloop_session::{CallId, Event, Seq, Stream};
use serde_json::{Value, json};

use super::make::*;

fn same(got: &[Value], want: &[Value]) {
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        assert_eq!(got, want, "message {at}");
    }
    assert_eq!(got.len(), want.len(), "{got:#?}");
}

/// With every place, cursor and order of fields.
#[test]
fn a_simple_query() {
    let mut log = Log::default();
    let call = log.begin("Hello");
    let text = log.add(started(call, ItemKind::Text));
    log.grow(text, Stream::Text, "Hé");
    log.grow(text, Stream::Text, "llo");
    log.add(completed(text, End::Whole, "Héllo you", None));
    log.add(call_ended(call, Some(usage(5_000, 2_000, 1_000))));
    log.add(ended(Outcome::Completed));
    let mut view = crate::View::new(&crate::unified::Unified, &session(), Seq::NONE);
    let frames = log.updates.iter().flat_map(|update| view.see(update));
    let got: Vec<String> =
        frames.map(|frame| String::from_utf8(frame.text.to_vec()).unwrap()).collect();
    let want = [
        concat!(
            r#"{"type":"turn_started","id":"evt-2-0-86020b22","message":"Hello""#,
            r#","by":"Ada (unified)","session_id":"s","seq":2}"#,
        ),
        concat!(
            r#"{"type":"assistant_message","id":"evt-4t0-86020b22","text":"Hé""#,
            r#","is_final":false,"session_id":"s","seq":4,"cursor":"4~4t3"}"#,
        ),
        concat!(
            r#"{"type":"assistant_message","id":"evt-4t3-86020b22","text":"llo""#,
            r#","is_final":false,"session_id":"s","seq":4,"cursor":"4~4t6"}"#,
        ),
        concat!(
            r#"{"type":"assistant_message","id":"evt-4t6-86020b22","text":" you""#,
            r#","is_final":false,"session_id":"s","seq":4,"cursor":"4~4t10"}"#,
        ),
        concat!(
            r#"{"type":"assistant_message","id":"evt-5-0-86020b22","text":"","is_final":true"#,
            r#","session_id":"s","seq":5}"#,
        ),
        concat!(
            r#"{"type":"token_usage","id":"evt-6-0-86020b22","usage":{"input_tokens":5000"#,
            r#","output_tokens":2000,"cached_tokens":1000,"total_tokens":7000}"#,
            r#","context_window":200000,"usage_percent":0.035,"session_id":"s""#,
            r#","seq":6}"#,
        ),
        concat!(
            r#"{"type":"turn_completed","id":"evt-7-0-86020b22","usage":{"input_tokens":1000"#,
            r#","output_tokens":500,"cached_tokens":200,"total_tokens":1500}"#,
            r#","session_id":"s","seq":7}"#,
        ),
    ];
    assert_eq!(got, want);
}

#[test]
fn a_tool_that_needs_leave() {
    let mut log = Log::default();
    let call = log.begin("Clean up");
    let text = log.add(started(call, ItemKind::Text));
    log.add(completed(text, End::Whole, "Let me help you with that...", None));
    let tool = log.add(started(call, tool("bash")));
    let args = r#"{"command":"rm -rf /tmp/cache"}"#;
    log.grow(tool, Stream::Args, args);
    log.add(proposed(tool, args, judgement(Effect::Execute)));
    log.add(call_ended(call, None));
    let wait = log.add(opened(tool, Ask::Approval));
    log.add(settled(wait, approved(Some("This operation is safe"), false)));
    log.add(runs(tool));
    log.grow(tool, Stream::Output, "removed\n");
    log.add(completed(tool, End::Whole, "removed\ndone\n", exited(0)));
    let call = log.add(calling(Purpose::Think));
    let text = log.add(started(call, ItemKind::Text));
    log.add(completed(text, End::Whole, "Done.", None));
    log.add(call_ended(call, None));
    log.add(ended(Outcome::Completed));
    let output = |id: &str, output: &str, exit_code: Value, is_streaming: bool| {
        json!({"type": "command_output", "id": id, "command": "rm -rf /tmp/cache",
            "output": output, "exit_code": exit_code, "is_streaming": is_streaming,
            "tool_id": "tool-6"})
    };
    same(
        &log.told(),
        &[
            json!({"type": "turn_started", "id": "evt-2-0-86020b22", "message": "Clean up",
            "by": "Ada (unified)"}),
            json!({"type": "assistant_message", "id": "evt-5-0-86020b22",
            "text": "Let me help you with that...", "is_final": true}),
            json!({"type": "tool_started", "id": "evt-7-0-86020b22", "tool_name": "Bash",
            "tool_id": "tool-6", "arguments": {"command": "rm -rf /tmp/cache"}}),
            json!({"type": "control_request", "id": "evt-9-0-86020b22", "request_id": "req-9",
            "tool_name": "Bash", "tool_use_id": "tool-6",
            "input": {"command": "rm -rf /tmp/cache"},
            "context": {"description": "Delete temporary cache files", "risk_level": "medium",
                "covers": "rm -rf /tmp/cache", "command": ["rm", "-rf", "/tmp/cache"]}}),
            json!({"type": "approval_settled", "id": "evt-10-0-86020b22", "request_id": "req-9",
            "decision": "allow", "by": "Ada (unified)", "message": "This operation is safe"}),
            output("evt-6o0-86020b22", "removed\n", Value::Null, true),
            output("evt-6o8-86020b22", "done\n", Value::Null, true),
            output("evt-12-0-86020b22", "", 0.into(), false),
            json!({"type": "tool_completed", "id": "evt-12-1-86020b22", "tool_id": "tool-6", "success": true,
            "result": "removed\ndone\n", "error": null}),
            json!({"type": "assistant_message", "id": "evt-15-0-86020b22", "text": "Done.",
                "is_final": true}),
            json!({"type": "turn_completed", "id": "evt-17-0-86020b22", "usage": {"input_tokens": 1000,
            "output_tokens": 500, "cached_tokens": 200, "total_tokens": 1500}}),
        ],
    );
}

#[test]
fn questions_and_answers() {
    let mut log = Log::default();
    let call = log.begin("Build it");
    let reasoning = log.add(started(call, ItemKind::Reasoning));
    log.grow(reasoning, Stream::Text, "First, ");
    log.add(completed(reasoning, End::Whole, "First, I need to check", None));
    let tool = log.add(started(call, tool("ask_user")));
    log.add(proposed(tool, r#"{"questions":[]}"#, judgement(Effect::Question)));
    log.add(call_ended(call, None));
    let option = |label: &str, description: Option<&str>| Choice {
        label: label.into(),
        description: description.map(Into::into),
    };
    let question = Question {
        header: Some("Approach".into()),
        question: "Which one?".into(),
        options: vec![option("A", Some("Fast")), option("B", None)],
        multi: false,
    };
    let bare = Question {
        header: None,
        question: "Anything else?".into(),
        options: Vec::new(),
        multi: true,
    };
    let wait = log.add(opened(tool, Ask::Question { questions: vec![question, bare] }));
    let given = |selected: &[&str], text: Option<&str>| Given {
        selected: selected.iter().map(|label| (*label).into()).collect(),
        text: text.map(Into::into),
    };
    let answers = vec![given(&["A"], Some("soon")), given(&[], Some("no"))];
    log.add(settled(wait, Answer::Answered { answers, said: None }));
    log.add(completed(tool, End::Whole, "The user answered: A", None));
    log.add(ended(Outcome::Completed));
    same(
        &log.told()[1..],
        &[
            json!({"type": "assistant_reasoning", "id": "evt-4t0-86020b22", "text": "First, "}),
            json!({"type": "assistant_reasoning", "id": "evt-4t7-86020b22", "text": "I need to check"}),
            json!({"type": "ask_user_question", "id": "evt-9-0-86020b22", "tool_id": "req-9",
            "request_id": "req-9", "questions": [
                {"header": "Approach", "question": "Which one?", "multiSelect": false,
                    "options": [{"label": "A", "description": "Fast"},
                        {"label": "B", "description": ""}]},
                {"header": "", "question": "Anything else?", "options": [], "multiSelect": true},
            ]}),
            json!({"type": "approval_settled", "id": "evt-10-0-86020b22", "request_id": "req-9",
            "decision": "answered", "by": "Ada (unified)", "message": "A, soon; no"}),
            json!({"type": "turn_completed", "id": "evt-12-0-86020b22", "usage": {"input_tokens": 1000,
            "output_tokens": 500, "cached_tokens": 200, "total_tokens": 1500}}),
        ],
    );
}

fn compaction(work: Work) -> Vec<Value> {
    let mut log = Log::default();
    log.add(turn(work));
    let call = log.add(calling(Purpose::Summarise));
    let text = log.add(started(call, ItemKind::Text));
    log.grow(text, Stream::Text, "What was");
    log.add(completed(text, End::Whole, "What was said", None));
    log.add(call_ended(call, Some(usage(183_000, 1_000, 0))));
    log.add(Event::Compacted {
        call: CallId(Seq(call)),
        upto: Seq(1),
        summary: "What was said".into(),
        summary_tokens: 100,
        tokens_before: 180_000,
        tokens_after: 90_000,
        window: Window {
            tokens_max: 200_000,
            strategy: Default::default(),
            pieces: 3,
            overhead_tokens: None,
        },
        line: None,
    });
    log.add(ended(Outcome::Completed));
    log.told()
}

#[test]
fn a_context_compaction() {
    let usage = |id: &str, numbers: [u64; 3], percent: f64| {
        json!({"type": "token_usage", "id": id, "usage": {"input_tokens": numbers[0],
            "output_tokens": numbers[1], "cached_tokens": 0, "total_tokens": numbers[2]},
            "context_window": 200_000, "usage_percent": percent})
    };
    let resume = Work::Resume { turn: polyloop_session::TurnId(Seq(1)), by: who() };
    let rows = [
        (Work::Compact { by: who() }, "Requested by the user", 1),
        (resume, "Context window approaching limit", 2),
    ];
    for (work, reason, before) in rows {
        let told = compaction(work);
        same(
            &told[before..told.len() - 1],
            &[
                usage("evt-5-0-86020b22", [183_000, 1_000, 184_000], 0.92),
                json!({"type": "context_compaction", "id": "evt-6-0-86020b22", "reason": reason,
                "tokens_before": 180_000, "tokens_after": 90_000}),
                usage("evt-6-1-86020b22", [90_000, 0, 90_000], 0.45),
            ],
        );
        assert_eq!(told[before - 1]["type"], "turn_started");
        assert_eq!(told[told.len() - 1]["type"], "turn_completed");
    }
}
