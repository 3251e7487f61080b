//! Every JSON example of the protocols' documents; those of the two AgentLoop documents here.
//!
//! What a client sends must be understood; what a server sends must be sent in exactly that
//! shape, with the same values where they are ours to choose.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use polyloop_dialects::agentloop::Agentloop;
use polyloop_dialects::{Complaint, Dialect, Reply};
use polyloop_session::context::{ContextInfo, Strategy};
use polyloop_session::event::{Level, Outcome, Window};
use polyloop_session::item::{Fault, ItemKind, ToolResult};
use polyloop_session::policy::Effect;
use polyloop_session::{Event, Seq};
use serde_json::{Value, json};

use super::asked;
use super::compare::opened;
use super::fixture::{SEEDS, golden};
use super::make::{
    begun, call, client, completed, entries, item, judgement, native_shell, proposed, started,
    tool, updates, waits,
};
use super::world::{sent, session, values};

mod chat;
mod lines;
mod loom;
mod unified;

type Check = fn(&str);

fn all_checks() -> Vec<(&'static str, Check)> {
    [checks(), unified::checks(), loom::checks(), chat::checks()].concat()
}

fn checks() -> Vec<(&'static str, Check)> {
    vec![
        ("seed-000/01-user-input.json", user_input),
        ("seed-000/02-get-context-info.json", |text| asks(text, json!("context_info"))),
        ("seed-000/03-manual-compact.json", |text| asks(text, json!("compact"))),
        ("seed-000/04-approval-response.json", |text| asks(text, approves())),
        ("seed-000/05-assistant-message.json", assistant_message),
        ("seed-000/06-function-call.json", function_call),
        ("seed-000/07-function-call-output.json", function_call_output),
        ("seed-000/08-local-shell-call.json", local_shell_call),
        ("seed-000/09-local-shell-call-output.json", local_shell_call_output),
        ("seed-000/10-reasoning.json", reasoning),
        ("seed-000/11-system-message.json", system_message),
        ("seed-000/12-loading-state.json", loading_state),
        ("seed-000/13-approval-request-command.json", request_command),
        ("seed-000/14-approval-request-patch.json", request_patch),
        ("seed-000/15-agent-finished.json", agent_finished),
        ("seed-000/16-context-info.json", context_info),
        ("seed-000/17-context-compacted.json", context_compacted),
        ("seed-000/18-error-connection.json", error_connection),
        ("seed-000/19-error-api.json", error_api),
        ("seed-002/01-user-input.json", user_input),
        ("seed-002/02-approval-response.txt", approval_response_pattern),
        ("seed-002/03-response-item.txt", response_item_pattern),
        ("seed-002/04-loading-state.json", loading_state),
        ("seed-002/05-approval-request.txt", request_pattern),
        ("seed-002/06-agent-finished.json", agent_finished),
        ("seed-002/07-error.txt", error_pattern),
        ("seed-002/08-line-session-started.json", lines::line_started),
        ("seed-002/09-line-session-ended.json", |text| lines::adopts(text, None)),
        ("seed-002/10-line-user-input.json", lines::line_user_input),
        ("seed-002/11-line-response-item.json", lines::line_response_item),
        ("seed-002/12-line-approval-request.json", lines::line_request),
        ("seed-002/13-line-approval-response.json", lines::line_response),
        ("seed-002/14-line-loading-state.json", lines::line_loading),
        ("seed-002/15-line-error.json", lines::line_error),
        ("seed-002/16-rest-list.json", lines::rest_list),
        ("seed-002/17-rest-created.json", lines::rest_created),
    ]
}

fn text_of(name: &str) -> String {
    fs::read_to_string(golden().join(name)).unwrap()
}

#[test]
fn every_example_holds() {
    for (name, check) in all_checks() {
        println!("{name}");
        check(&text_of(name));
    }
}

#[test]
fn no_example_is_forgotten() {
    let mut found = BTreeSet::new();
    for seed in SEEDS {
        for file in fs::read_dir(golden().join(seed)).unwrap() {
            found.insert(format!("{seed}/{}", file.unwrap().file_name().to_string_lossy()));
        }
    }
    let in_seed = |seed: &str| found.iter().filter(|name| name.starts_with(seed)).count();
    assert_eq!(SEEDS.map(in_seed), [19, 28, 17, 1, 7]);
    let checked: Vec<String> = all_checks().iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(found, checked.iter().cloned().collect());
    assert_eq!(found.len(), checked.len(), "an example is checked twice");
}

// What clients send.

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn approves() -> Value {
    json!({"settle": {"wait": "presented", "reply": "approve"}})
}

fn asks(text: &str, want: Value) {
    let ask = Agentloop.decode(text, &client()).unwrap_or_else(|told| panic!("{told:?}: {text}"));
    assert_eq!(asked::told(&ask.ask), want, "{text}");
}

fn user_input(text: &str) {
    let example = parse(text);
    let said = &example["payload"]["input"][0]["content"][0]["text"];
    let tokens = said.as_str().unwrap().len().div_ceil(4);
    let id = &example["id"];
    asks(
        text,
        json!({"send": {"content": [said], "client_ref": id, "tokens": tokens,
            "answers": "question"}}),
    );
}

/// A pattern for the five decisions.
fn approval_response_pattern(text: &str) {
    let words = "YES|NO|NO_CONTINUE|ALWAYS|EXPLAIN";
    let told = "optional custom message";
    let denied = |then: &str| json!({"deny": {"message": told, "then": then}});
    let wants: BTreeMap<&str, Value> = [
        ("YES", json!("approve")),
        ("NO", denied("end_turn")),
        ("NO_CONTINUE", denied("continue")),
        ("ALWAYS", json!("always")),
        ("EXPLAIN", json!("explain")),
    ]
    .into();
    assert!(text.contains(words) && text.contains("{...}"));
    for word in words.split('|') {
        let plain = text.replace(words, word).replace("{...}", "null");
        asks(&plain, json!({"settle": {"wait": "presented", "reply": wants[word]}}));
        let patched = text.replace(words, word).replace("{...}", r#"{"patch": "P"}"#);
        let always = word == "ALWAYS";
        let want = match word {
            "YES" | "ALWAYS" => {
                let patch = json!({"wait": "presented", "patch": "P", "always": always});
                json!({ "settle_with_patch": patch })
            }
            _ => json!({"settle": {"wait": "presented", "reply": wants[word]}}),
        };
        asks(&patched, want);
    }
}

// What the server sends.

fn after(more: impl IntoIterator<Item = Event>) -> Vec<Event> {
    begun().into_iter().chain(more).collect()
}

fn runs(of: u64) -> Event {
    Event::ToolStarted { item: item(of), sandboxed: false, leave: None }
}

fn frames(events: Vec<Event>) -> Vec<Value> {
    values(&sent(&Agentloop, &updates(events)).concat())
}

fn last(events: Vec<Event>) -> Value {
    frames(events).pop().unwrap()
}

/// A frame has the example's very shape: the same fields and values, but for ids, which are only
/// of the same kind, and for our own additions at the top.
fn is_like(example: &str, mut frame: Value) {
    let mut example = parse(example);
    let fields = frame.as_object_mut().unwrap();
    for ours in ["session_id", "seq", "cursor"] {
        fields.remove(ours);
    }
    for (place, mark) in [
        ("/id", ""),
        ("/payload/id", "id"),
        ("/payload/call_id", "call_id"),
        ("/payload/responseId", "responseId"),
    ] {
        for value in [&mut example, &mut frame] {
            if let Some(id) = value.pointer_mut(place) {
                assert!(id.as_str().is_some_and(|id| !id.is_empty()), "{place} of {value}");
                *id = mark.into();
            }
        }
    }
    opened(&mut example);
    opened(&mut frame);
    assert_eq!(frame, example);
}

fn said(example: &str) -> String {
    parse(example)["payload"]["content"][0]["text"].as_str().unwrap().to_string()
}

fn assistant_message(text: &str) {
    let done = completed(4, &said(text), None);
    is_like(text, last(after([started(3, ItemKind::Text), done])));
}

fn function_call(text: &str) {
    let status = judgement(Effect::Execute, &["git", "status"], None);
    let args = r#"{"command":"git status"}"#;
    is_like(text, last(after([started(3, tool("bash")), proposed(4, args, status), runs(4)])));
}

fn function_call_output(text: &str) {
    is_like(text, git_status(tool("bash")));
}

fn local_shell_call(text: &str) {
    let status = judgement(Effect::Execute, &["git", "status"], None);
    is_like(text, last(after([started(3, native_shell()), proposed(4, "{}", status), runs(4)])));
}

fn local_shell_call_output(text: &str) {
    is_like(text, git_status(native_shell()));
}

/// What is sent when such a call has told the status of a repository.
fn git_status(call: ItemKind) -> Value {
    let status = judgement(Effect::Execute, &["git", "status"], None);
    let shown = "On branch main\nnothing to commit, working tree clean";
    let result = ToolResult { exit_code: Some(0), duration_ms: 100, ..ToolResult::default() };
    let done = completed(4, shown, Some(result));
    last(after([started(3, call), proposed(4, "{}", status), runs(4), done]))
}

fn reasoning(text: &str) {
    let mut log =
        entries(after([started(3, ItemKind::Reasoning), completed(4, &said(text), None)]));
    log[4].at.0 = log[3].at.0 + 1500;
    let updates: Vec<_> =
        log.into_iter().map(|entry| polyloop_session::Update::Logged(entry.into())).collect();
    is_like(text, sent(&Agentloop, &updates).concat().pop().unwrap().json);
}

fn system_message(text: &str) {
    let said = said(text);
    let bare = said.strip_prefix("⚠️ ").unwrap();
    let notice = Event::Noticed { level: Level::Warning, text: bare.into(), code: "net".into() };
    is_like(text, last(vec![notice]));
}

fn loading_state(text: &str) {
    is_like(text, frames(begun())[0].clone());
}

fn request(command: &[&str], patch: Option<&str>) -> Value {
    let (name, effect) = match patch {
        Some(_) => ("apply_patch", Effect::Edit),
        None => ("bash", Effect::Execute),
    };
    let judged = judgement(effect, command, patch);
    last(after([started(3, tool(name)), proposed(4, "{}", judged), waits(4)]))
}

fn request_command(text: &str) {
    is_like(text, request(&["rm", "-rf", "node_modules"], None));
}

fn request_patch(text: &str) {
    let example = parse(text);
    let patch = example["payload"]["applyPatch"]["patch"].as_str().unwrap();
    let frame = request(&["apply_patch", patch], Some(patch));
    // The example shortens the word; ours is the patch itself.
    assert_eq!(frame["payload"]["command"][1], patch);
    assert_eq!(example["payload"]["command"][1], "*** Begin Patch...");
    is_like(&text.replace("\"*** Begin Patch...\"", &json!(patch).to_string()), frame);
}

/// A pattern: with a patch and without.
fn request_pattern(text: &str) {
    let (start, rest) = text.split_once(",\n    \"applyPatch\"").unwrap();
    let end = rest.split_once('\n').unwrap().1;
    is_like(&format!("{start}\n{end}"), request(&["git", "status"], None));
    let with = format!("{start}, \"applyPatch\": {{\"patch\": \"P\"}}\n{end}");
    is_like(&with, request(&["git", "status"], Some("P")));
}

fn ended(outcome: Outcome) -> Value {
    let frames = frames(after([Event::TurnEnded { outcome, usage: Default::default() }]));
    frames.into_iter().find(|f| f["type"] == "agent_finished" || f["type"] == "error").unwrap()
}

fn agent_finished(text: &str) {
    is_like(text, ended(Outcome::Completed));
}

fn reply(reply: Reply) -> Value {
    serde_json::from_slice(&Agentloop.reply(Some(&session()), 1, &reply).text).unwrap()
}

/// The documents' numbers do not fit each other (45231 of 128000 are 35.3 %), so the count of
/// tokens is the nearest that gives the share they show.
fn context_info(text: &str) {
    let tokens = 45_312;
    let strategy = Strategy::Threshold;
    let info = ContextInfo {
        tokens,
        tokens_max: 128_000,
        pieces: 87,
        strategy,
        spent: Default::default(),
        calls: 0,
        filled: Default::default(),
    };
    is_like(&text.replace("45231", "45312"), reply(Reply::ContextInfo(info)));
}

fn context_compacted(text: &str) {
    let window = Window {
        tokens_max: 128_000,
        strategy: Strategy::Threshold,
        pieces: 1,
        overhead_tokens: None,
    };
    let compacted = Event::Compacted {
        call: call(3),
        upto: Seq(2),
        summary: "short".into(),
        summary_tokens: 1,
        tokens_before: 98_234,
        tokens_after: 12_456,
        window,
        line: None,
    };
    let frames = frames(after([compacted]));
    is_like(text, frames.into_iter().find(|f| f["type"] == "context_compacted").unwrap());
}

/// Ours always says what is wrong: details are never null and never empty.
fn is_error_like(example: Value, mut frame: Value) {
    let details = frame["payload"]["details"].clone();
    assert!(details["error"].as_str().is_some_and(|error| !error.is_empty()), "{frame}");
    assert!(details["code"].is_string() || details["code"].is_number(), "{frame}");
    frame["payload"]["details"] = example["payload"]["details"].clone();
    is_like(&example.to_string(), frame);
}

fn complaint(message: &str) -> Value {
    reply(Reply::Complaint(Complaint::new(message, "the session is not open", "not_open")))
}

fn error_connection(text: &str) {
    is_error_like(parse(text), complaint("AgentLoop not initialized"));
}

fn error_api(text: &str) {
    is_like(text, ended(Outcome::Failed { fault: Fault::new("429", "Rate limit exceeded") }));
}

fn error_pattern(text: &str) {
    let (start, _) = text.split_once("{...}").unwrap();
    is_error_like(parse(&format!("{start}null}}}}")), complaint("Error description"));
}

/// A pattern for items: of each type it names there is one, with the role or content it shows.
fn response_item_pattern(text: &str) {
    let pattern = |field: &str| {
        let (_, rest) = text.split_once(&format!("\"{field}\": \"")).unwrap();
        rest.split_once('"').unwrap().0.to_string()
    };
    let payload = &text[text.find("payload").unwrap()..];
    let types = payload.split_once("\"type\": \"").unwrap().1.split_once('"').unwrap().0;
    let touch = judgement(Effect::Execute, &["touch", "a"], None);
    let frames = frames(after([
        started(3, ItemKind::Text),
        completed(4, "a", None),
        started(3, ItemKind::Reasoning),
        completed(6, "b", None),
        started(3, tool("bash")),
        proposed(8, "{}", touch),
        runs(8),
        completed(8, "", Some(ToolResult::default())),
        Event::Noticed { level: Level::Info, text: "c".into(), code: "d".into() },
    ]));
    let items: Vec<&Value> =
        frames.iter().filter(|f| f["type"] == "response_item").map(|f| &f["payload"]).collect();
    for kind in types.split('|') {
        assert!(items.iter().any(|item| item["type"] == kind), "no {kind}");
    }
    for role in pattern("role").split('|') {
        // What users said is theirs already; it is not sent back.
        let sent = items.iter().any(|item| item["role"] == role);
        assert_eq!(sent, role != "user", "{role}");
    }
    for item in items.iter().filter(|item| item["type"] == "message") {
        assert!(item["content"].is_array(), "{item}");
    }
}
