#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn shown_of(args: &Value) -> Value {
    serde_json::from_str(&arguments(&args.to_string())).unwrap()
}

#[test]
fn every_text_of_the_arguments_is_shown() {
    let args = json!({
        "command": "r\u{43c} -rf \u{202e}x", "workdir": "\u{440}\u{440}", "n": [1, null, true, -2.5],
        "description": "\u{440} \u{202e}", "k\u{200b}ey": {"deep": ["\u{1b}", {"\u{2014}": "—"}]},
    });
    let want = json!({
        "command": "r\\u{43c} -rf \\u{202e}x", "workdir": "\\u{440}\\u{440}",
        "n": [1, null, true, -2.5], "description": "\u{440} \\u{202e}",
        "k\\u{200b}ey": {"deep": ["\\u{1b}", {"\\u{2014}": "\\u{2014}"}]},
    });
    assert_eq!(shown_of(&args), want);
    let args = json!({
        "path": "—", "content": "— \u{ad}", "edits": [{"oldString": "—\\u{41}", "x": "—"}],
        "patch": "*** Add File: —\n+—", "questions": [{"question": "—\u{7f}", "options": ["—"]}],
    });
    let want = json!({
        "path": "\\u{2014}", "content": "— \\u{ad}",
        "edits": [{"oldString": "—\\u{5c}u{41}", "x": "\\u{2014}"}],
        "patch": "*** Add File: \\u{2014}\n+—",
        "questions": [{"question": "—\\u{7f}", "options": ["—"]}],
    });
    assert_eq!(shown_of(&args), want);
}

#[test]
fn what_is_honest_stays_as_it_was_written() {
    let rows = [
        r#" {"command" : "ls -la \"a\\b\"","n":1e400,"n":[ 00e-1 ]}"#.replace("00e-1", "0e-1"),
        r#"{"a":{},"b":[[]],"c":"отчёт.txt"}"#.to_string(),
        "not JSON".to_string(),
        String::new(),
        "[".repeat(5_000) + &"]".repeat(5_000),
    ];
    for text in rows {
        assert_eq!(arguments(&text), text);
    }
    assert_eq!(arguments("\"\\u202e\""), "\"\\\\u{202e}\"");
    assert_eq!(arguments("{\"a\":\"\\ud800\u{202e}\"}"), "{\"a\":\"\\\\ud800\\\\u{202e}\"}");
    assert_eq!(arguments("no\u{202e}"), "no\\u{202e}");
    assert_eq!(arguments("[\r1]"), "[ 1]");
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = "[ab\\\\\"{}:,\\[\\]u\u{202e}\u{200b}\u{1b}\ra—п\n]{0,8}";
    let leaf = prop_oneof![
        text.prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        Just(Value::Null)
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        let name = prop_oneof![text.prop_map(String::from), Just("patch".to_string())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// The same value with each text shown, found by walking it.
fn walked(value: &Value, form: Form) -> Value {
    match value {
        Value::String(text) => form.show(text).into(),
        Value::Array(items) => items.iter().map(|item| walked(item, form)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (shown::command(name), walked(field, form.below(name))))
            .collect(),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn arguments_are_shown_text_by_text(args in any_json(), pretty in any::<bool>()) {
        let text = if pretty { format!("{args:#}") } else { args.to_string() };
        let got: Value = serde_json::from_str(&arguments(&text)).unwrap();
        prop_assert_eq!(got, walked(&args, Form::Command));
    }

    #[test]
    fn arguments_of_any_text_hold_nothing_deceptive(text in "\\PC*|[\"{}\\[\\]:,\\\\\r\u{202e}a]*") {
        let got = arguments(&text);
        prop_assert!(!got.chars().any(shown::is_deceptive), "{got:?}");
    }
}
