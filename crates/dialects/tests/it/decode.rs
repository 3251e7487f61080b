//! `decode` is total: whatever comes in, an ask or a complaint that says something comes out.

use std::fs;

use polyloop_dialects::agentloop::Agentloop;
use polyloop_dialects::{Client, Dialect, Reply};
use polyloop_session::wait::Who;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::fixture::{SEEDS, golden, scenarios};
use super::runner::try_all;
use super::world::session;

const CASES: u32 = 20_000;
const DEPTH: usize = 100_000;

fn client(attached: bool) -> Client {
    Client { who: Who::via("agentloop"), session: attached.then(session), shown: None }
}

/// Decodes a frame; a complaint must be one that can be sent.
fn check(frame: &str) -> Result<(), String> {
    for attached in [true, false] {
        let client = client(attached);
        let Err(complaint) = Agentloop.decode(frame, &client) else { continue };
        let said = [&complaint.message, &complaint.error, &complaint.code];
        ensure!(said.iter().all(|text| !text.trim().is_empty()), "{complaint:?} says nothing");
        ensure!(complaint.error.len() < 4_096, "{} bytes of error", complaint.error.len());
        let reply = Agentloop.reply(client.session.as_ref(), 1, &Reply::Complaint(complaint));
        let reply: Value = serde_json::from_slice(&reply.text).map_err(|e| e.to_string())?;
        let details = &reply["payload"]["details"];
        ensure!(reply["type"] == "error" && details["error"].is_string(), "it sends {reply}");
    }
    Ok(())
}

/// Frames that clients send, right and wrong.
fn frames() -> Vec<String> {
    let mut frames: Vec<String> = Vec::new();
    for scenario in scenarios() {
        let lines = scenario.lines("agentloop.in.jsonl").unwrap_or_default();
        frames.extend(lines.iter().map(|line| line["frame"].to_string()));
    }
    for seed in SEEDS {
        for file in fs::read_dir(golden().join(seed)).unwrap() {
            frames.push(fs::read_to_string(file.unwrap().path()).unwrap());
        }
    }
    assert!(frames.len() > 80);
    frames
}

#[derive(Clone, Debug)]
enum Change {
    Cut(Index, Index),
    Repeat(Index, Index),
    Insert(Index, &'static [u8]),
    Set(Index, u8),
}

fn change() -> impl Strategy<Value = Change> {
    let place = any::<Index>;
    let tokens: Vec<&'static [u8]> = vec![
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b"\\",
        b"null",
        b"true",
        b"-1",
        b"1e999",
        b"\\ud800",
        b"\\u0000",
        b",",
        b":",
        b"99999999999999999999999999",
        b"\xff",
        b"\xed\xa0\x80",
        b"\"review\":\"yes\",",
        b"\"payload\":{},",
        b"\"requestId\":\"-\",",
        b"\xef\xbb\xbf",
    ];
    prop_oneof![
        (place(), place()).prop_map(|(from, to)| Change::Cut(from, to)),
        (place(), place()).prop_map(|(from, to)| Change::Repeat(from, to)),
        (place(), select(tokens)).prop_map(|(at, token)| Change::Insert(at, token)),
        (place(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
    ]
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for change in changes {
        let place = |at: &Index| at.index(bytes.len() + 1);
        match change {
            Change::Cut(from, to) | Change::Repeat(from, to) => {
                let (a, b) = (place(from), place(to));
                let range = a.min(b)..a.max(b).min(a.min(b) + 64);
                let repeat = matches!(change, Change::Repeat(..));
                let part = if repeat { bytes[range.clone()].repeat(2) } else { Vec::new() };
                bytes.splice(range, part);
            }
            Change::Insert(at, token) => {
                let at = place(at);
                bytes.splice(at..at, token.iter().copied());
            }
            Change::Set(at, byte) => {
                let at = place(at);
                if let Some(old) = bytes.get_mut(at) {
                    *old = *byte;
                }
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Any JSON, with the protocol's own names in it.
pub fn any_json() -> impl Strategy<Value = Value> {
    let names = vec![
        "id",
        "type",
        "payload",
        "input",
        "role",
        "content",
        "text",
        "review",
        "applyPatch",
        "patch",
        "requestId",
        "reason",
        "customDenyMessage",
        "$in",
        "$blob",
        "bytes",
    ];
    let words =
        vec!["message", "user", "input_text", "yes", "always", "explain", "no-continue", ""];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(words).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((select(names.clone()), inner), 0..4).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(n, v)| (n.to_string(), v)).collect())
            }),
        ]
    })
}

/// Puts another value in the place of one that is somewhere inside.
fn put(value: &mut Value, at: &mut usize, other: &Value) {
    if *at == 0 {
        *value = other.clone();
        *at = usize::MAX;
        return;
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| descend(item, at, other)),
        Value::Object(fields) => fields.values_mut().for_each(|field| descend(field, at, other)),
        _ => {}
    }
}

fn descend(value: &mut Value, at: &mut usize, other: &Value) {
    if *at != usize::MAX {
        put(value, at, other);
    }
}

#[test]
fn bytes_are_answered() {
    try_all(CASES, vec(any::<u8>(), 0..200), |bytes| check(&String::from_utf8_lossy(&bytes)));
}

#[test]
fn frames_that_went_wrong_are_answered() {
    let wrong = (select(frames()), vec(change(), 1..6));
    try_all(CASES, wrong, |(frame, changes)| check(&changed(&frame, &changes)));
}

#[test]
fn frames_with_other_values_are_answered() {
    let valid: Vec<Value> =
        frames().iter().filter_map(|frame| serde_json::from_str(frame).ok()).collect();
    try_all(CASES, (select(valid), 0..12_usize, any_json()), |(mut frame, mut at, other)| {
        put(&mut frame, &mut at, &other);
        check(&frame.to_string())
    });
}

#[test]
fn depth_is_answered() {
    let holes = [
        "@",
        r#"{"id":"1","type":"user_input","payload":@}"#,
        r#"{"id":"1","type":"user_input","payload":{"input":@}}"#,
        r#"{"id":"1","type":"user_input","payload":{"input":[{"type":"message","content":@}]}}"#,
        r#"{"id":"1","type":"user_input","payload":{"input":[],"other":@}}"#,
        r#"{"id":"1","type":"approval_response","payload":{"review":@}}"#,
        r#"{"id":"1","type":"approval_response","payload":{"review":"yes","applyPatch":@}}"#,
        r#"{"id":"1","type":"get_context_info","payload":@}"#,
        r#"{"id":"1","type":"interrupt","payload":@}"#,
        r#"{"id":@,"type":"user_input"}"#,
    ];
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"type\":", "}]")] {
        for closed in [true, false] {
            let end = if closed { close.repeat(DEPTH) } else { String::new() };
            let deep = format!("{}1{end}", open.repeat(DEPTH));
            for hole in holes {
                check(&hole.replace('@', &deep)).unwrap();
            }
        }
    }
}

#[test]
fn odd_texts_and_numbers_are_answered() {
    let long = "9".repeat(10_000);
    let name = format!("\"{}\"", "x".repeat(1_000_000));
    let odd = [
        "1e400",
        "-1e400",
        "1e-400",
        "-0",
        &long,
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "\"\\u0000\"",
        "\"\u{feff}\"",
        "18446744073709551616",
        "\"\"",
        &name,
        "\"\\ud83d\\ude00\"",
        "NaN",
    ];
    for value in odd {
        for field in ["id", "type", "payload"] {
            let mut fields = [("id", "\"1\""), ("type", "\"interrupt\""), ("payload", "{}")];
            fields.iter_mut().filter(|(name, _)| *name == field).for_each(|(_, v)| *v = value);
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            check(&format!("{{{}}}", fields.join(","))).unwrap();
        }
        let review = format!(
            "{{\"id\":\"1\",\"type\":\"approval_response\",\"payload\":{{\"review\":\"yes\",\
             \"requestId\":{value}}}}}"
        );
        check(&review).unwrap();
        check(&review.replace("\"yes\"", value).replace("requestId", "other")).unwrap();
    }
}

#[test]
fn a_wrong_field_is_named() {
    let payload = json!({"input": [{"type": "message", "role": "user", "content": [5]}]});
    let frame = json!({"id": "1", "type": "user_input", "payload": payload}).to_string();
    let complaint = Agentloop.decode(&frame, &client(true)).unwrap_err();
    assert!(complaint.error.starts_with("payload.input[0]"), "{complaint:?}");
    let frame = json!({"id": "1", "type": "approval_response", "payload": {"review": 5}});
    let complaint = Agentloop.decode(&frame.to_string(), &client(true)).unwrap_err();
    assert!(complaint.error.starts_with("payload.review"), "{complaint:?}");
}
