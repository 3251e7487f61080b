//! Every JSON example of the unified document.

use std::sync::Arc;

use polyloop_dialects::unified::Unified;
use polyloop_dialects::{Complaint, Dialect, Reply, SessionInit};
use polyloop_session::context::Strategy;
use polyloop_session::event::{Agent, CallOutcome, Outcome, Window};
use polyloop_session::item::{Fault, FileChange, ItemKind, Operation, ToolResult, Usage};
use polyloop_session::policy::{Effect, Judgement, Mode};
use polyloop_session::wait::Ask;
use polyloop_session::{Event, Growth, Seq, Stream, Timestamp, Update};
use serde_json::{Value, json};

use super::super::asked;
use super::super::make::{
    begun, call, client_of, completed, item, judgement, proposed, started, tool, updates, waits,
};
use super::super::world::{json as json_of, sent, session};
use super::{Check, after, parse, runs};

pub fn checks() -> Vec<(&'static str, Check)> {
    vec![
        ("seed-001/01-session-init.json", session_init),
        ("seed-001/02-session-info.txt", session_info),
        ("seed-001/03-turn-started.json", turn_started),
        ("seed-001/04-turn-completed.json", turn_completed),
        ("seed-001/05-turn-failed.json", turn_failed),
        ("seed-001/06-assistant-message.json", assistant_message),
        ("seed-001/07-assistant-reasoning.json", assistant_reasoning),
        ("seed-001/08-tool-started.json", tool_started),
        ("seed-001/09-tool-completed.json", tool_completed),
        ("seed-001/10-control-request.txt", control_request),
        ("seed-001/11-file-changed.txt", file_changed),
        ("seed-001/12-command-output.json", command_output),
        ("seed-001/13-token-usage.json", token_usage),
        ("seed-001/14-context-compaction.json", context_compaction),
        ("seed-001/15-ask-user-question.json", ask_user_question),
        ("seed-001/16-exit-plan-mode.json", exit_plan_mode),
        ("seed-001/17-error.json", error),
        ("seed-001/18-heartbeat.json", heartbeat),
        ("seed-001/19-session-start.txt", session_start),
        ("seed-001/20-session-end.json", |text| asks(text, json!("close"))),
        ("seed-001/21-set-permission-mode.json", |text| {
            asks(text, json!({"set_mode": "full_auto"}));
        }),
        ("seed-001/22-user-message.json", user_message),
        ("seed-001/23-permission-response.txt", permission_response),
        ("seed-001/24-user-question-response.json", question_response),
        ("seed-001/25-plan-approval-response.json", plan_response),
        ("seed-001/26-interrupt.json", |text| {
            asks(text, json!({"interrupt": {"reason": "User requested stop"}}));
        }),
        ("seed-001/27-resume.json", |text| asks(text, json!("resume"))),
        ("seed-001/28-cancel.json", |text| {
            asks(text, json!({"cancel": {"client_ref": "msg-004"}}));
        }),
    ]
}

/// An example with remarks in it, which are no JSON.
fn plain(text: &str) -> Value {
    let line = |line: &str| line.split("  //").next().unwrap_or_default().to_string();
    parse(&text.lines().map(line).collect::<Vec<_>>().join("\n"))
}

/// The values that a remark lists: `// active | paused | completed | error`.
fn listed(text: &str) -> Vec<&str> {
    let (_, remark) = text.split_once("// ").unwrap();
    remark.lines().next().unwrap().split(" | ").collect()
}

// What clients send.

fn asks(text: &str, want: Value) {
    asks_for(&parse(text), want);
}

fn asks_for(example: &Value, want: Value) {
    let asked = Unified.decode(&example.to_string(), &client_of(&Unified));
    let asked = asked.unwrap_or_else(|told| panic!("{told:?}: {example}"));
    assert_eq!(asked::told(&asked.ask), want, "{example}");
    let session = asked.session.map(|id| id.to_string());
    assert_eq!(session.as_deref(), example["session_id"].as_str());
}

fn session_start(text: &str) {
    let modes = [("auto", "full_auto"), ("manual", "suggest"), ("bypass", "bypass")];
    assert_eq!(listed(text), modes.map(|(word, _)| word));
    for (word, mode) in modes {
        let mut example = plain(text);
        example["permission_mode"] = word.into();
        let metadata = &example["metadata"];
        let start = json!({"mode": mode, "calls_max": 10, "metadata": metadata});
        asks_for(&example, json!({ "start": start }));
    }
}

fn user_message(text: &str) {
    let said = "Please help me debug this code";
    let tokens = said.len().div_ceil(4);
    asks(text, json!({"send": {"content": [said], "client_ref": "msg-004", "tokens": tokens}}));
}

fn permission_response(text: &str) {
    let why = "This operation is safe";
    let replies = [
        ("allow", json!({"approve": {"message": why}})),
        ("deny", json!({"deny": {"message": why, "then": "continue"}})),
        ("allow_always", json!("always")),
    ];
    assert_eq!(listed(text), replies.each_ref().map(|(word, _)| *word));
    for (word, reply) in replies {
        let mut example = plain(text);
        example["decision"] = word.into();
        asks_for(&example, json!({"settle": {"wait": 1, "reply": reply}}));
    }
}

fn question_response(text: &str) {
    let answer = json!({"answer": [[0, ["Option A: Fast but less flexible"]]]});
    asks(text, json!({"settle": {"wait": {"item": 890}, "reply": answer}}));
}

fn plan_response(text: &str) {
    let reply = json!({"approve": {"message": "Looks good, proceed with implementation"}});
    asks(text, json!({"settle": {"wait": {"item": 891}, "reply": reply}}));
}

// What the server sends.

/// A frame has all fields and values of the example, but for ids, which are only of the same
/// kind, and no other than those named.
fn is_like(example: &Value, frame: Value, extras: &[&str]) {
    let (mut example, mut frame) = (example.clone(), frame);
    for ours in extras.iter().chain(&["seq", "cursor"]) {
        frame.as_object_mut().unwrap().remove(*ours);
    }
    for id in ["id", "session_id", "tool_id", "tool_use_id", "request_id"] {
        for value in [&mut example, &mut frame] {
            if let Some(id) = value.get_mut(id) {
                assert!(id.as_str().is_some_and(|id| !id.is_empty()), "{id}");
                *id = "".into();
            }
        }
    }
    assert_eq!(frame, example);
}

fn frames(updates: &[Update]) -> Vec<Value> {
    let sent = sent(&Unified, updates).concat();
    sent.into_iter().map(|frame| frame.json).collect()
}

/// The last frame of the example's type.
fn found(example: &Value, updates: &[Update]) -> Value {
    let frames = frames(updates);
    let found = frames.iter().rfind(|frame| frame["type"] == example["type"]);
    found.unwrap_or_else(|| panic!("{example} is not in {frames:?}")).clone()
}

fn last(example: &Value, events: Vec<Event>) -> Value {
    found(example, &updates(events))
}

/// An answer to a client that is attached.
fn replied(reply: &Reply) -> Value {
    let frame = Unified.reply(Some(&session()), 1, reply);
    json_of(&frame.stamped(br#","session_id":"golden","seq":1}"#))
}

fn session_init(text: &str) {
    let init = SessionInit {
        model: "claude-sonnet-4".into(),
        cwd: "/project".into(),
        tools: Arc::new([]),
        mode: Mode::Suggest,
        mode_word: "default",
        agent: Agent::React,
        title: None,
        todos: Vec::new(),
        error: None,
    };
    let frame = replied(&Reply::SessionInit(Box::new(init)));
    assert_eq!((&frame["success"], &frame["permission_mode"]), (&json!(true), &json!("default")));
    let extras = ["success", "cwd", "tools", "permission_mode", "agent", "title", "todos"];
    is_like(&parse(text), frame, &extras);
}

/// `error` is for a session whose log cannot be written, which is no event of the log.
fn session_info(text: &str) {
    assert_eq!(listed(text), ["active", "paused", "completed", "error"]);
    is_like(&plain(text), replied(&Reply::SessionActive), &[]);
    let by = client_of(&Unified).who;
    for (event, status) in [
        (Event::SessionReopened { by: by.clone() }, "active"),
        (ended(Outcome::Interrupted { reason: "enough".into() }), "paused"),
        (Event::SessionClosed { by }, "completed"),
    ] {
        let mut example = plain(text);
        example["status"] = status.into();
        is_like(&example, last(&example, vec![event]), &[]);
    }
}

fn turn_started(text: &str) {
    let example = parse(text);
    let frame = last(&example, begun());
    assert_eq!(
        (&frame["message"], &frame["by"]),
        (&json!("Hello"), &json!("a client of agentloop"))
    );
    is_like(&example, frame, &["message", "by"]);
}

fn ended(outcome: Outcome) -> Event {
    Event::TurnEnded { outcome, usage: Usage::default() }
}

fn usage(input_tokens: u64, output_tokens: u64, cached_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, cached_tokens, ..Usage::default() }
}

fn turn_completed(text: &str) {
    let usage = usage(1000, 500, 200);
    let end = Event::TurnEnded { outcome: Outcome::Completed, usage };
    let example = parse(text);
    is_like(&example, last(&example, after([end])), &[]);
}

fn turn_failed(text: &str) {
    let fault = Fault::new("429", "API rate limit exceeded");
    let example = parse(text);
    let frame = last(&example, after([ended(Outcome::Failed { fault })]));
    is_like(&example, frame, &["code"]);
}

/// What a stream's first characters give.
fn grown(example: &Value, kind: ItemKind, stream: Stream, events: Vec<Event>) -> Value {
    let field = if stream == Stream::Output { "output" } else { "text" };
    let text = example[field].as_str().unwrap().into();
    let mut updates = updates(after([started(3, kind)].into_iter().chain(events)));
    updates.push(Update::Grew(Growth { item: item(4), stream, offset: 0, text }));
    found(example, &updates)
}

fn assistant_message(text: &str) {
    let example = parse(text);
    let frame = grown(&example, ItemKind::Text, Stream::Text, Vec::new());
    is_like(&example, frame, &[]);
}

fn assistant_reasoning(text: &str) {
    let example = parse(text);
    let frame = grown(&example, ItemKind::Reasoning, Stream::Text, Vec::new());
    is_like(&example, frame, &[]);
}

fn shell(command: &str) -> [Event; 2] {
    let words: Vec<&str> = command.split(' ').collect();
    let judged = judgement(Effect::Execute, &words, None);
    let args = json!({ "command": command }).to_string();
    [started(3, tool("bash")), proposed(4, &args, judged)]
}

fn tool_started(text: &str) {
    let example = parse(text);
    is_like(&example, last(&example, after(shell("ls -la"))), &[]);
}

fn tool_completed(text: &str) {
    let example = parse(text);
    let shown = example["result"].as_str().unwrap();
    let done = completed(4, shown, Some(ToolResult::default()));
    let frame = last(&example, after(shell("ls -la").into_iter().chain([runs(4), done])));
    is_like(&example, frame, &[]);
}

fn control_request(text: &str) {
    assert_eq!(listed(text), ["low", "medium", "high"]);
    let mut example = plain(text);
    let [start, propose] = shell("rm -rf /tmp/cache");
    let Event::ToolProposed { judgement, .. } = propose.clone() else { panic!("{propose:?}") };
    let reason = example["context"]["description"].as_str().unwrap().into();
    let judged = Judgement { reason, ..*judgement };
    let args = r#"{"command":"rm -rf /tmp/cache"}"#;
    let mut frame = last(&example, after([start, proposed(4, args, judged), waits(4)]));
    let context = frame["context"].as_object_mut().unwrap();
    assert_eq!(context.remove("covers"), Some(json!("touch")));
    assert_eq!(context.remove("command"), Some(json!(["rm", "-rf", "/tmp/cache"])));
    assert_eq!(frame["tool_use_id"], "tool-4");
    example["context"]["risk_level"] = "medium".into();
    is_like(&example, frame, &[]);
}

fn file_changed(text: &str) {
    let operations = [
        ("create", Operation::Create),
        ("update", Operation::Update),
        ("delete", Operation::Delete),
    ];
    assert_eq!(listed(text), operations.each_ref().map(|(word, _)| *word));
    for (word, operation) in operations {
        let mut example = plain(text);
        example["operation"] = word.into();
        let path = example["path"].as_str().unwrap().into();
        let file = FileChange { path, operation, ..FileChange::default() };
        let result = ToolResult { files: vec![file], ..ToolResult::default() };
        let done = completed(4, "", Some(result));
        let frame = last(&example, after(shell("x").into_iter().chain([runs(4), done])));
        is_like(&example, frame, &[]);
    }
}

fn command_output(text: &str) {
    let example = parse(text);
    let [_, propose] = shell("cargo build");
    let frame = grown(&example, tool("bash"), Stream::Output, vec![propose, runs(4)]);
    assert_eq!(frame["tool_id"], "tool-4");
    is_like(&example, frame, &["tool_id"]);
}

fn token_usage(text: &str) {
    let usage = usage(5000, 2000, 1000);
    let mut events = begun();
    if let Some(Event::CallStarted { tokens_max, .. }) = events.last_mut() {
        *tokens_max = 200_000;
    }
    let outcome = CallOutcome::Answered;
    events.push(Event::CallEnded { call: call(3), outcome, usage: Some(usage) });
    let (example, updates) = (parse(text), updates(events));
    is_like(&example, found(&example, &updates), &[]);
    let raw = sent(&Unified, &updates).concat().pop().unwrap().text;
    assert!(raw.contains("\"usage_percent\":0.035,"), "{raw}");
}

fn context_compaction(text: &str) {
    let window = Window {
        tokens_max: 200_000,
        strategy: Strategy::Threshold,
        pieces: 1,
        overhead_tokens: None,
    };
    let compacted = Event::Compacted {
        call: call(3),
        upto: Seq(2),
        summary: "short".into(),
        summary_tokens: 1,
        tokens_before: 180_000,
        tokens_after: 90_000,
        window,
        line: None,
    };
    let (example, events) = (parse(text), after([compacted]));
    is_like(&example, last(&example, events.clone()), &[]);
    // As in the document's scenario: then what is used now.
    let frames = frames(&updates(events));
    assert_eq!(frames.last().unwrap()["usage_percent"], 0.45);
}

fn asking(effect: Effect, ask: Ask) -> Vec<Event> {
    let judged = judgement(effect, &["ask"], None);
    let wait = Event::WaitOpened { item: item(4), ask };
    after([started(3, tool("ask_user")), proposed(4, "{}", judged), wait])
}

fn ask_user_question(text: &str) {
    let example = parse(text);
    let questions = serde_json::from_value(example["questions"].clone()).unwrap();
    let frame = last(&example, asking(Effect::Question, Ask::Question { questions }));
    assert_eq!(frame["tool_id"], frame["request_id"]);
    is_like(&example, frame, &["request_id"]);
}

fn exit_plan_mode(text: &str) {
    let example = parse(text);
    let path = example["plan_file_path"].as_str().map(Into::into);
    let frame = last(&example, asking(Effect::Plan, Ask::Plan { plan: "Do it".into(), path }));
    assert_eq!(frame["tool_id"], frame["request_id"]);
    assert_eq!(frame["plan"], "Do it");
    is_like(&example, frame, &["request_id", "plan"]);
}

fn error(text: &str) {
    let example = parse(text);
    let told = example["message"].as_str().unwrap();
    let complaint = Complaint::new("No", told, "denied");
    is_like(&example, replied(&Reply::Complaint(complaint)), &["code"]);
}

fn heartbeat(text: &str) {
    let at = Timestamp(1_706_169_600_999);
    let frame = Unified.heartbeat(Some(&session()), 1, at).unwrap();
    let frame = json_of(&frame.stamped(br#","session_id":"golden","seq":1}"#));
    is_like(&parse(text), frame, &[]);
}
