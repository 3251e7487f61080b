//! `decode` is total: whatever comes in, an ask or a complaint that says something comes out.

use std::fs;

use polyloop_dialects::agentloop::Agentloop;
use polyloop_dialects::{Client, Dialect, Reply};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::asked;
use super::fixture::{SEEDS, golden, scenarios};
use super::make::{client, client_of, wait};
use super::runner::try_all;
use super::speaks;
use super::world::json as json_of;

/// Frames that each dialect is tried with, unless `POLYLOOP_FRAMES` says how many.
const FRAMES: u64 = 20_000;
/// Deeper than any reader of ours goes; the deepest is tried once in each place that is read.
const DEPTH: usize = 1_000;
const DEPTH_MAX: usize = 100_000;

/// A share of the frames, in fifths.
fn cases(fifths: u64) -> u32 {
    let told = std::env::var("POLYLOOP_FRAMES").ok().and_then(|frames| frames.parse().ok());
    u32::try_from(told.unwrap_or(FRAMES) * fifths / 5).unwrap()
}

fn clients(dialect: &dyn Dialect) -> [Client; 2] {
    let attached = client_of(dialect);
    let shown = Some(wait(8));
    let fresh = Client { session: None, attached: Vec::new(), shown, ..attached.clone() };
    [attached, fresh]
}

/// Decodes a frame; a complaint must be one that can be sent.
fn check(dialect: &dyn Dialect, frame: &str) -> Result<(), String> {
    for client in clients(dialect) {
        let complaint = match dialect.decode(frame, &client) {
            Ok(ask) => {
                let (told, by) = (asked::told(&ask.ask), asked::by(&ask.ask));
                ensure!(by.is_none_or(|by| by.via == client.who.via), "{told} by {by:?}");
                continue;
            }
            Err(complaint) => complaint,
        };
        let said = [&complaint.message, &complaint.error, &complaint.code];
        ensure!(said.iter().all(|text| !text.trim().is_empty()), "{complaint:?} says nothing");
        ensure!(complaint.error.len() < 4_096, "{} bytes of error", complaint.error.len());
        let reply = dialect.reply(client.session.as_ref(), 1, &Reply::Complaint(complaint));
        let reply = json_of(&reply);
        ensure!(speaks::is_error(dialect, &reply), "it sends {reply}");
    }
    Ok(())
}

fn tell(frames: u32, what: &str) {
    let dialects = speaks::all().len();
    println!("{frames} {what} through decode of each of {dialects} dialects");
}

fn check_all(frame: &str) -> Result<(), String> {
    for dialect in speaks::all() {
        check(*dialect, frame).map_err(|told| format!("{}: {told}", dialect.name()))?;
    }
    Ok(())
}

/// Frames that clients send, right and wrong.
fn frames() -> Vec<String> {
    let mut frames: Vec<String> = Vec::new();
    for (scenario, dialect) in
        scenarios().iter().flat_map(|s| speaks::all().iter().map(move |d| (s, d)))
    {
        let lines = scenario.lines(&format!("{}.in.jsonl", dialect.name())).unwrap_or_default();
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
        "message",
        "session_id",
        "thread_id",
        "request_id",
        "tool_id",
        "decision",
        "answers",
        "selected",
        "question_index",
        "approved",
        "target_id",
        "agent",
        "limit",
    ];
    let words = vec![
        "message",
        "user",
        "input_text",
        "yes",
        "always",
        "explain",
        "no-continue",
        "",
        "chat",
        "run",
        "user_message",
        "session_start",
        "user_question_response",
        "permission_response",
        "allow_always",
        "tool_approval_response",
    ];
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
    try_all(cases(1), vec(any::<u8>(), 0..200), |bytes| {
        check_all(&String::from_utf8_lossy(&bytes))
    });
    tell(cases(1), "random frames");
}

#[test]
fn frames_that_went_wrong_are_answered() {
    let wrong = (select(frames()), vec(change(), 1..6));
    try_all(cases(2), wrong, |(frame, changes)| check_all(&changed(&frame, &changes)));
    tell(cases(2), "changed frames");
}

#[test]
fn frames_with_other_values_are_answered() {
    let valid: Vec<Value> =
        frames().iter().filter_map(|frame| serde_json::from_str(frame).ok()).collect();
    let other = (select(valid), 0..12_usize, any_json());
    try_all(cases(2), other, |(mut frame, mut at, other)| {
        put(&mut frame, &mut at, &other);
        check_all(&frame.to_string())
    });
    tell(cases(2), "frames with other values");
}

/// Frames of the other dialects with a hole in each of their fields.
const OTHERS: &[&str] = &[
    r#"{"type":@,"message":"x"}"#,
    r#"{"type":"chat","message":@,"session_id":"s"}"#,
    r#"{"type":"chat","message":"x","session_id":@}"#,
    r#"{"type":"session_start","session_id":@}"#,
    r#"{"type":"session_start","session_id":"s","permission_mode":@}"#,
    r#"{"type":"session_start","session_id":"s","max_turns":@}"#,
    r#"{"type":"session_start","session_id":"s","metadata":@}"#,
    r#"{"type":"user_message","session_id":"s","content":@}"#,
    r#"{"type":"user_message","session_id":"s","content":"x","parent_tool_use_id":@}"#,
    r#"{"type":"set_permission_mode","session_id":"s","mode":@}"#,
    r#"{"type":"permission_response","session_id":"s","request_id":@,"decision":"allow"}"#,
    r#"{"type":"permission_response","session_id":"s","request_id":"r","decision":@}"#,
    r#"{"type":"user_question_response","session_id":"s","request_id":"r","answers":@}"#,
    r#"{"type":"plan_approval_response","session_id":"s","request_id":"r","approved":@}"#,
    r#"{"type":"interrupt","session_id":"s","reason":@}"#,
    r#"{"type":"cancel","session_id":"s","target_id":@}"#,
    r#"{"type":"set_model","session_id":"s","model":@}"#,
    r#"{"type":"set_agent","session_id":"s","agent":@}"#,
    r#"{"type":"run","id":@,"message":"x","agent":"react"}"#,
    r#"{"type":"run","id":"1","message":@,"agent":"react"}"#,
    r#"{"type":"run","id":"1","message":"x","agent":@}"#,
    r#"{"type":"run","id":"1","message":"x","agent":"react","thread_id":@}"#,
    r#"{"type":"run","id":"1","message":"x","agent":"react","working_folder":@}"#,
    r#"{"type":"run","id":"1","message":"x","agent":"react","verbose":@}"#,
    r#"{"type":"tools_list","id":@}"#,
    r#"{"type":"tool_show","id":"1","name":@,"output":"json"}"#,
    r#"{"type":"tool_show","id":"1","name":"bash","output":@}"#,
    r#"{"type":"user_messages","id":"1","thread_id":@,"before":1,"limit":2}"#,
    r#"{"type":"user_messages","id":"1","thread_id":"t","before":@,"limit":2}"#,
    r#"{"type":"user_messages","id":"1","thread_id":"t","before":1,"limit":@}"#,
    r#"{"type":"ping","id":@}"#,
    r#"{"type":"cancel_run","id":"1","run_id":@}"#,
    r#"{"type":"tool_approval_response","id":"1","run_id":"r","call_id":@,"approved":true}"#,
    r#"{"type":"tool_approval_response","id":"1","run_id":"r","call_id":"c","approved":@}"#,
];

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
    let holes: Vec<&str> = holes.into_iter().chain(OTHERS.iter().copied()).collect();
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"type\":", "}]")] {
        for closed in [true, false] {
            let deep = |depth: usize| {
                let end = if closed { close.repeat(depth) } else { String::new() };
                format!("{}1{end}", open.repeat(depth))
            };
            for hole in &holes {
                check_all(&hole.replace('@', &deep(DEPTH))).unwrap();
            }
            check_all(&deep(DEPTH_MAX)).unwrap();
            check_all(&holes[1].replace('@', &deep(DEPTH_MAX))).unwrap();
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
            check_all(&format!("{{{}}}", fields.join(","))).unwrap();
        }
        let review = format!(
            "{{\"id\":\"1\",\"type\":\"approval_response\",\"payload\":{{\"review\":\"yes\",\
             \"requestId\":{value}}}}}"
        );
        check_all(&review).unwrap();
        check_all(&review.replace("\"yes\"", value).replace("requestId", "other")).unwrap();
        for frame in OTHERS {
            check_all(&frame.replace('@', value)).unwrap();
        }
    }
}

#[test]
fn a_wrong_field_is_named() {
    let payload = json!({"input": [{"type": "message", "role": "user", "content": [5]}]});
    let frame = json!({"id": "1", "type": "user_input", "payload": payload}).to_string();
    let complaint = Agentloop.decode(&frame, &client()).unwrap_err();
    assert!(complaint.error.starts_with("payload.input[0]"), "{complaint:?}");
    let frame = json!({"id": "1", "type": "approval_response", "payload": {"review": 5}});
    let complaint = Agentloop.decode(&frame.to_string(), &client()).unwrap_err();
    assert!(complaint.error.starts_with("payload.review"), "{complaint:?}");
}
