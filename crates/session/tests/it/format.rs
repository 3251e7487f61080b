//! How entries are written: every field comes back, and fields that are left out may be missing.

use polyloop_session::LogEntry;
use polyloop_session::event::Event;
use polyloop_session::item::{End, FileChange, Opaque, Operation, ToolResult};

use super::make::{entries, item};

#[test]
fn a_completion_with_everything_in_it_comes_back_whole() {
    let change = |operation, before: Option<&str>| FileChange {
        path: "src/é \"x\".rs".into(),
        operation,
        before: before.map(Into::into),
        after: before.map(|_| "00ff".into()),
    };
    let result = ToolResult {
        seen: Some("gist\n\u{0}\u{2028}".into()),
        exit_code: Some(-9),
        duration_ms: u64::MAX,
        files: vec![
            change(Operation::Create, None),
            change(Operation::Update, Some("")),
            change(Operation::Delete, Some("\r\n")),
            change(Operation::Move { from: "a".into() }, None),
        ],
    };
    let opaque = Opaque { provider: "p".into(), json: r#"{"b" :1.50, "a":"\u00e9"}"#.into() };
    let log = entries([Event::ItemCompleted {
        item: item(u64::MAX),
        end: End::Failed,
        text: "🦀".into(),
        opaque: Some(opaque),
        result: Some(Box::new(result)),
        tokens: u64::MAX,
    }]);
    let json = serde_json::to_string(&log[0]).unwrap();
    assert!(!json.contains('\n'), "an entry is one line");
    assert_eq!(serde_json::from_str::<LogEntry>(&json).unwrap(), log[0]);
}

#[test]
fn what_is_left_out_may_be_missing() {
    let lines = [
        r#"{"type":"adopted"}"#,
        r#"{"type":"call_ended","call":3,"outcome":{"kind":"answered"}}"#,
        r#"{"type":"item_completed","item":4,"end":"whole","text":"t","tokens":1}"#,
        r#"{"type":"wait_settled","wait":5,"answer":{"kind":"approved"},"by":{"via":"x"}}"#,
        r#"{"type":"message_queued","content":[{"type":"text","text":"hi"}],
            "origin":{"via":"x","can_approve":true},"tokens":1}"#,
        r#"{"type":"turn_ended","outcome":{"kind":"completed"},
            "usage":{"input_tokens":1,"output_tokens":2}}"#,
    ];
    for line in lines {
        let entry = format!(r#"{{"seq":9,"at":-1,"event":{line}}}"#);
        let read: LogEntry = serde_json::from_str(&entry).unwrap_or_else(|e| panic!("{line}: {e}"));
        let again = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<LogEntry>(&again).unwrap(), read);
    }
}
