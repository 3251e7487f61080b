//! Tool calls: their arguments, their output, the files they change, and how they end.

use polyloop_session::Stream;
use polyloop_session::item::{End, FileChange, Operation, ToolResult};
use polyloop_session::policy::Effect;
use serde_json::json;

use super::make::*;

#[test]
fn arguments_are_passed_on_as_they_are() {
    let rows = [
        (r#"{"b":1.50,"a":{"x":[]}}"#, json!({"b": 1.5, "a": {"x": []}})),
        ("not json", json!("not json")),
        ("", json!("")),
    ];
    for (args, want) in rows {
        let (log, _) = call_of("read", args, judgement(Effect::Read));
        let told = log.told();
        assert_eq!(told[1]["tool_name"], "Read");
        assert_eq!(told[1]["arguments"], want);
    }
}

fn result(seen: Option<&str>, exit_code: Option<i32>) -> Option<ToolResult> {
    Some(ToolResult { seen: seen.map(Into::into), exit_code, ..ToolResult::default() })
}

#[test]
fn a_call_ends_with_a_result_or_an_error() {
    let rows = [
        (End::Whole, "out", None, Ok("out")),
        (End::Whole, "out", result(Some("seen"), None), Ok("out")),
        (End::Whole, "", result(Some("seen"), None), Ok("seen")),
        (End::Whole, "", None, Ok("")),
        (End::Whole, "out", result(Some("seen"), Some(2)), Err("seen")),
        (End::Whole, "out", result(None, Some(2)), Err("out")),
        (
            End::Whole,
            "",
            result(Some(""), Some(2)),
            Err("It ended with exit code 2 and no output."),
        ),
        (End::Failed, "", result(Some("no such file"), None), Err("no such file")),
        (End::Failed, "", None, Err("It failed without saying why.")),
        (End::Denied, "Not now", result(None, None), Err("Not now")),
        (End::Denied, "", None, Err("It was not allowed to run.")),
        (End::Interrupted, "", None, Err("It was stopped before its end.")),
        (End::Interrupted, "half", None, Err("half")),
        (End::Cut, "", result(None, Some(0)), Err("It was stopped before its end.")),
    ];
    for (end, text, result, want) in rows {
        let (mut log, item) = call_of("read", "{}", judgement(Effect::Read));
        log.add(runs(item));
        log.add(completed(item, end, text, result));
        let want = json!({"type": "tool_completed", "id": "evt-8-0-86020b22", "tool_id": "tool-4",
            "success": want.is_ok(), "result": want.ok(), "error": want.err()});
        assert_eq!(log.last(), [want]);
    }
}

#[test]
fn a_command_that_was_stopped_has_no_exit_code_and_one_that_was_denied_no_output() {
    let args = r#"{"command":"sleep 9","workdir":"x"}"#;
    let (mut log, item) = call_of("bash", args, judgement(Effect::Execute));
    let mut denied = log.clone();
    log.add(runs(item));
    log.add(completed(item, End::Interrupted, "", None));
    let last = json!({"type": "command_output", "id": "evt-8-0-86020b22", "command": "sleep 9",
        "output": "", "exit_code": null, "is_streaming": false, "tool_id": "tool-4"});
    let told = log.last();
    assert_eq!(told[0], last);
    assert_eq!((told.len(), &told[1]["id"]), (2, &json!("evt-8-1-86020b22")));
    denied.add(completed(item, End::Denied, "Not now", None));
    let told = denied.last();
    assert_eq!((told.len(), &told[0]["type"]), (1, &json!("tool_completed")));
}

/// What a model's own shell was given may be words.
#[test]
fn commands_are_scripts() {
    let rows = [
        (r#"{"command":"ls | wc"}"#, "ls | wc"),
        (r#"{"command":["git","status"]}"#, "git status"),
        (r#"{"command":["bash","-lc","a && b"]}"#, "a && b"),
        (r#"{"command":7}"#, "rm -rf /tmp/cache"),
        ("nonsense", "rm -rf /tmp/cache"),
    ];
    for (args, want) in rows {
        let (mut log, item) = call_of("bash", args, judgement(Effect::Execute));
        log.add(runs(item));
        log.grow(item, Stream::Output, "x");
        assert_eq!(log.last()[0]["command"], want);
    }
    let (mut log, item) = call_of("read", "{}", judgement(Effect::Read));
    log.add(runs(item));
    log.grow(item, Stream::Output, "x");
    assert!(log.last().is_empty(), "only a command's output is shown as it comes");
}

#[test]
fn files() {
    let file = |path: &str, operation| FileChange {
        path: path.into(),
        operation,
        ..FileChange::default()
    };
    let files = vec![
        file("src/a.rs", Operation::Create),
        file("/etc/b", Operation::Update),
        file("c", Operation::Delete),
        file("new", Operation::Move { from: "old".into() }),
    ];
    let (mut log, item) = call_of("apply_patch", "{}", judgement(Effect::Edit));
    log.add(runs(item));
    let result = ToolResult { files, ..ToolResult::default() };
    log.add(completed(item, End::Whole, "Done", Some(result)));
    let want = [
        ("/project/src/a.rs", "create"),
        ("/etc/b", "update"),
        ("/project/c", "delete"),
        ("/project/old", "delete"),
        ("/project/new", "create"),
    ];
    let told = log.last();
    assert_eq!(told.len(), want.len() + 1);
    for (part, (path, operation)) in want.iter().enumerate() {
        let want = json!({"type": "file_changed", "id": format!("evt-8-{part}-86020b22"), "path": path,
            "operation": operation});
        assert_eq!(told[part], want);
    }
    assert_eq!(told[5]["type"], "tool_completed");
}
