//! What clients send: every example and table row of the protocol's documents, and bad input.

use polyloop_session::command::{Send, WaitReply};
use polyloop_session::event::{Agent, RunOptions};
use polyloop_session::item::Part;
use polyloop_session::strategy::bounds::{Judge, Search, Wanted};
use polyloop_session::wait::Then;
use polyloop_session::{Command, Delivery, ItemId, Seq, SessionId, TurnId, WaitRef};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::make::{client, session, who};
use crate::ids::{IdKind, Ids};
use crate::loom::Loom;
use crate::reply::ToolForm;
use crate::{Ask, Asked, Client, Complaint, Dialect, RunAsk};

fn decode(frame: &Value) -> Result<Asked, Complaint> {
    Loom.decode(&frame.to_string(), &client())
}

fn run(frame: &Value) -> (Option<SessionId>, RunAsk) {
    let asked = decode(frame).unwrap();
    match asked.ask {
        Ask::Run(run) => (asked.session, *run),
        other => panic!("{other:?}"),
    }
}

fn complaint(frame: &str) -> Complaint {
    match Loom.decode(frame, &client()) {
        Err(complaint) => complaint,
        Ok(asked) => panic!("{frame} was taken as {asked:?}"),
    }
}

#[test]
fn the_example_of_a_run() {
    let frame = json!({"type": "run", "message": "What time is it?", "agent": "react"});
    let (session, RunAsk { send, folder }) = run(&frame);
    let Send { content, origin, client_ref, delivery, tokens, run } = send;
    assert_eq!(content, [Part::Text { text: "What time is it?".into() }]);
    assert_eq!((session, folder, client_ref), (None, None, None));
    assert_eq!((delivery, tokens), (Delivery::Queue, 4));
    assert_eq!((origin.who, origin.can_approve, origin.can_answer), (who(), false, false));
    let options = RunOptions { agent: Some(Agent::React), alone: true, ..RunOptions::default() };
    assert_eq!(run, Some(Box::new(options)));
}

#[test]
fn every_field_of_a_run() {
    let frame = json!({"type": "run", "message": "Hi", "agent": "got", "id": "r1",
        "thread_id": "t-1", "working_folder": "/p", "got_adaptive": true, "verbose": true,
        "approvals": true, "workspace_id": "unknown", "x": [1]});
    let (session, RunAsk { send, folder }) = run(&frame);
    assert_eq!(session, SessionId::parse("t-1").ok());
    assert_eq!(folder.as_deref(), Some("/p"));
    assert_eq!(send.client_ref.as_deref(), Some("r1"));
    assert!(send.origin.can_approve && send.origin.can_answer);
    let options = RunOptions {
        agent: Some(Agent::Got),
        adaptive: true,
        verbose: true,
        ..RunOptions::default()
    };
    assert_eq!(send.run, Some(Box::new(options)));
    let nulls = json!({"type": "run", "message": "Hi", "agent": "dup", "id": null,
        "thread_id": null, "working_folder": null, "got_adaptive": null, "verbose": null,
        "approvals": null});
    let (session, RunAsk { send, folder }) = run(&nulls);
    assert_eq!((session, folder, send.client_ref), (None, None, None));
    assert_eq!(send.run.unwrap().agent, Some(Agent::Dup));
    let tot = json!({"type": "run", "message": "", "agent": "tot"});
    assert_eq!(run(&tot).1.send.run.unwrap().agent, Some(Agent::Tot));
}

#[test]
fn a_run_says_how_far_it_goes() {
    let tot = json!({"proposals": 5, "samples": 2, "beam": 100, "depth": 1, "search": "depth",
        "judge": "vote", "prune": 0, "accept": 0.95, "steps": 0});
    let got = json!({"adaptive": false, "nodes": 12, "nodes_total": 99, "layers": 4, "depth": 3,
        "attempts": 1, "refine": 0, "steps": 7});
    let frame = json!({"type": "run", "message": "Hi", "agent": "tot", "tot": tot, "got": got,
        "max_turns": 9});
    let run_of = |frame: &serde_json::Value| *run(frame).1.send.run.unwrap();
    let options = run_of(&frame);
    assert_eq!((options.calls_max, options.adaptive), (Some(9), false));
    let want = Wanted {
        tot_proposals: Some(5),
        tot_samples: Some(2),
        tot_beam: Some(100),
        tot_depth: Some(1),
        tot_search: Some(Search::Depth),
        tot_judge: Some(Judge::Vote),
        tot_prune: Some(0),
        tot_accept: Some(950),
        tot_steps: Some(0),
        got_nodes: Some(12),
        got_nodes_total: Some(99),
        got_layers: Some(4),
        got_depth: Some(3),
        got_attempts: Some(1),
        got_refine: Some(0),
        got_steps: Some(7),
        got_adaptive: Some(false),
    };
    assert_eq!(options.bounds.as_deref(), Some(&want));
    let nothing = json!({"type": "run", "message": "Hi", "agent": "tot", "tot": {}, "got": null,
        "max_turns": null});
    assert_eq!(run_of(&nothing).bounds, None);
    for adaptive in [json!({"adaptive": true}), json!({"adaptive": null})] {
        let frame = json!({"type": "run", "message": "Hi", "agent": "got", "got": adaptive,
            "got_adaptive": true});
        let options = run_of(&frame);
        assert_eq!((options.adaptive, options.bounds), (true, None));
    }
}

#[test]
fn a_bound_that_cannot_be_is_named() {
    let counts = ["proposals", "samples", "beam", "depth"].map(|field| ("tot", field, 1));
    let got = ["nodes", "nodes_total", "layers", "depth", "attempts", "steps"];
    let got = got.map(|field| ("got", field, 1));
    let rows = counts.into_iter().chain(got).chain([("tot", "steps", 0), ("got", "refine", 0)]);
    for (of, field, min) in rows {
        for value in [min - 1, -9, 101, i64::MAX] {
            let frame = json!({"type": "run", "message": "Hi", "agent": of, of: {field: value}});
            let told = decode(&frame).unwrap_err().error;
            let want = format!("{of}.{field}: {value} is out of range; use {min} to 100");
            assert!(told.starts_with(&format!("parse error: {want}")), "{told}");
        }
        for value in [json!("3"), json!(1.5), json!([1]), json!(true)] {
            let frame = json!({"type": "run", "message": "Hi", "agent": of, of: {field: value}});
            let told = decode(&frame).unwrap_err().error;
            assert!(told.starts_with(&format!("parse error: {of}.{field}: ")), "{told}");
        }
    }
    for value in [json!(-0.1), json!(1.01), json!(2)] {
        let frame =
            json!({"type": "run", "message": "Hi", "agent": "tot", "tot": {"prune": value}});
        let told = decode(&frame).unwrap_err().error;
        assert!(told.contains("tot.prune: ") && told.contains("use 0 to 1"), "{told}");
    }
}

#[test]
fn requests_about_tools_and_messages() {
    let list = json!({"type": "tools_list", "id": "1", "working_folder": "/p", "thread_id": "t"});
    match decode(&list).unwrap() {
        Asked { session: None, ask: Ask::Tools { id, folder }, .. } => {
            assert_eq!((&*id, folder.as_deref()), ("1", Some("/p")));
        }
        other => panic!("{other:?}"),
    }
    let rows = [
        (json!({"type": "tool_show", "id": "1", "name": "read"}), ToolForm::Yaml),
        (json!({"type": "tool_show", "id": "1", "name": "read", "output": null}), ToolForm::Yaml),
        (json!({"type": "tool_show", "id": "1", "name": "read", "output": "yaml"}), ToolForm::Yaml),
        (json!({"type": "tool_show", "id": "1", "name": "read", "output": "json"}), ToolForm::Json),
    ];
    for (frame, want) in rows {
        match decode(&frame).unwrap().ask {
            Ask::Tool { id, name, form, folder: None } => {
                assert_eq!((&*id, &*name, form), ("1", "read", want), "{frame}");
            }
            other => panic!("{other:?}"),
        }
    }
    let all = json!({"type": "user_messages", "id": "1", "thread_id": "t", "before": 9,
                     "limit": 5});
    let some = json!({"type": "user_messages", "id": "1", "thread_id": "t", "before": null});
    for (frame, want) in [(all, (Some(9), Some(5))), (some, (None, None))] {
        match decode(&frame).unwrap().ask {
            Ask::Messages { id, thread, before, limit } => {
                assert_eq!((&*id, thread.as_str(), (before, limit)), ("1", "t", want));
            }
            other => panic!("{other:?}"),
        }
    }
    match decode(&json!({"type": "ping", "id": "p"})).unwrap().ask {
        Ask::Ping { id } => assert_eq!(&*id, "p"),
        other => panic!("{other:?}"),
    }
}

fn run_id(session: &SessionId, turn: u64) -> String {
    format!("run-{}", Ids::new(Some(session)).id(IdKind::Run, Seq(turn)))
}

#[test]
fn a_run_is_cancelled_by_its_id() {
    let other = SessionId::parse("another").unwrap();
    let client = Client { attached: vec![other, session()], ..client() };
    let id = run_id(&session(), 12);
    let frame = json!({"type": "cancel_run", "id": "c", "run_id": id}).to_string();
    let asked = Loom.decode(&frame, &client).unwrap();
    assert_eq!(asked.session, Some(session()));
    match asked.ask {
        Ask::Command(Command::Interrupt { turn, reason, by }) => {
            assert_eq!((turn, &*reason, by), (Some(TurnId(Seq(12))), "Run cancelled", who()));
        }
        other => panic!("{other:?}"),
    }
    let foreign = run_id(&SessionId::parse("elsewhere").unwrap(), 12);
    for bad in ["", "run-", "run-x", &foreign, &id[4..], "run-\u{0}"] {
        let frame = json!({"type": "cancel_run", "id": "c", "run_id": bad}).to_string();
        let told = complaint(&frame);
        assert_eq!(told.about.as_deref(), Some("c"));
        assert!(told.error.starts_with("Run "), "{told:?}");
        assert!(told.error.ends_with(" not found or already completed"), "{told:?}");
    }
}

#[test]
fn an_approval_is_answered_by_run_and_call() {
    let id = run_id(&session(), 12);
    let answer = |approved: bool, message: Value| {
        decode(&json!({"type": "tool_approval_response", "id": "a", "run_id": id,
                       "call_id": "call_15", "approved": approved, "message": message}))
    };
    for (approved, message) in
        [(true, None), (true, Some("Blue")), (false, None), (false, Some("No"))]
    {
        let asked = answer(approved, json!(message)).unwrap();
        assert_eq!(asked.session, Some(session()));
        let Ask::Command(Command::Settle { wait, reply, by }) = asked.ask else { panic!() };
        assert_eq!((wait, by), (WaitRef::Item(ItemId(Seq(15))), who()));
        match reply {
            WaitReply::Approve { message: told } if approved => {
                assert_eq!(told.as_deref(), message)
            }
            WaitReply::Deny { message: told, then: Then::Continue } if !approved => {
                assert_eq!(told.as_deref(), message);
            }
            other => panic!("{other:?}"),
        }
    }
    for call in ["", "15", "call_", "call_x", "call_+15", "call_12", "call_99999999999999999999"] {
        let frame = json!({"type": "tool_approval_response", "id": "a", "run_id": id,
                           "call_id": call, "approved": true});
        let told = complaint(&frame.to_string());
        assert_eq!(told.about.as_deref(), Some("a"));
        assert!(told.error.starts_with("call_id: "), "{told:?}");
    }
}

#[test]
fn what_cannot_be_read_is_a_parse_error_that_names_the_field() {
    let rows = [
        ("", "one JSON object"),
        ("nonsense", "one JSON object"),
        ("[]", "one JSON object"),
        (r#"["ping"]"#, "one JSON object"),
        ("null", "one JSON object"),
        ("{", "EOF"),
        ("{}", "missing field `type`"),
        (r#"{"type":7}"#, "type: "),
        (r#"{"type":"run"} x"#, "trailing"),
        (r#"{"type":"runs"}"#, "type: unknown \"runs\""),
        (r#"{"type":"Run","message":"x","agent":"react"}"#, "type: unknown"),
        (r#"{"type":"run","agent":"react"}"#, "missing field `message`"),
        (r#"{"type":"run","message":"x"}"#, "missing field `agent`"),
        (r#"{"type":"run","message":null,"agent":"react"}"#, "message: invalid type: null"),
        (r#"{"type":"run","message":[],"agent":"react"}"#, "message: "),
        (r#"{"type":"run","message":"x","agent":"React"}"#, "agent: unknown variant `React`"),
        (r#"{"type":"run","message":"x","agent":"react","verbose":"yes"}"#, "verbose: "),
        (r#"{"type":"run","message":"x","agent":"react","id":5}"#, "id: "),
        (r#"{"type":"run","message":"x","message":"y","agent":"react"}"#, "duplicate field"),
        (r#"{"type":"tools_list"}"#, "missing field `id`"),
        (r#"{"type":"tool_show","id":"1"}"#, "missing field `name`"),
        (r#"{"type":"tool_show","id":"1","name":"x","output":"xml"}"#, "output: unknown variant"),
        (r#"{"type":"user_messages","id":"1"}"#, "missing field `thread_id`"),
        (r#"{"type":"user_messages","id":"1","thread_id":null}"#, "thread_id: "),
        (r#"{"type":"user_messages","id":"1","thread_id":"t","before":-1}"#, "before: "),
        (r#"{"type":"user_messages","id":"1","thread_id":"t","limit":4294967296}"#, "limit: "),
        (r#"{"type":"ping"}"#, "missing field `id`"),
        (r#"{"type":"cancel_run","id":"1"}"#, "missing field `run_id`"),
        (
            r#"{"type":"tool_approval_response","id":"1","run_id":"r","call_id":"c","approved":1}"#,
            "approved: ",
        ),
    ];
    for (frame, want) in rows {
        let told = complaint(frame);
        assert!(told.error.starts_with("parse error: "), "{frame}: {told:?}");
        assert!(told.error.contains(want), "{frame}: {told:?}");
        assert_eq!(told.about, None, "{frame}");
    }
    let deep = format!(r#"{{"type":"ping","id":"1","x":{}"#, "[".repeat(100_000));
    assert!(complaint(&deep).error.starts_with("parse error: "));
    let long = format!(r#"{{"type":"{}"}}"#, "x".repeat(100_000));
    assert!(complaint(&long).error.len() < 2_000);
}

#[test]
fn what_is_refused_says_what_to_do() {
    let run = |fields: Value| {
        let mut frame = json!({"type": "run", "message": "x", "agent": "react", "id": "r"});
        frame.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        complaint(&frame.to_string())
    };
    for bad in ["", ".hidden", "../x", "a b", "ä", &"x".repeat(129)] {
        let told = run(json!({"thread_id": bad}));
        assert!(told.error.starts_with("thread_id: "), "{told:?}");
        assert_eq!((told.about, &*told.code), (None, "bad_thread_id"));
        for kind in ["tools_list", "tool_show"] {
            let frame = json!({"type": kind, "id": "i", "name": "read", "thread_id": bad});
            assert_eq!(complaint(&frame.to_string()).about.as_deref(), Some("i"), "{kind}");
        }
    }
    let told = run(json!({"id": "x".repeat(257)}));
    assert_eq!(told.error, "id: 257 bytes, at most 256");
    let empty = json!({"type": "user_messages", "id": "i", "thread_id": ""});
    let told = complaint(&empty.to_string());
    assert_eq!((&*told.error, told.about.as_deref()), ("thread_id is required", Some("i")));
    let bad = json!({"type": "user_messages", "id": "i", "thread_id": "a/b"});
    let told = complaint(&bad.to_string());
    assert_eq!((&*told.code, told.about.as_deref()), ("bad_thread_id", Some("i")));
}

#[test]
fn it_is_the_dialect_that_its_documents_describe() {
    assert_eq!((Loom.name(), Loom.subprotocol()), ("loom", "loom.v1"));
    for kind in Loom.client_types() {
        let told = Loom.decode(&json!({ "type": kind }).to_string(), &client());
        let told = told.err().map(|told| told.error).unwrap_or_default();
        assert!(!told.contains("unknown"), "{kind}: {told}");
    }
}

proptest! {
    #[test]
    fn decode_is_total(
        text in r#"\PC{0,60}|[\{\}\[\]":,a-z0-9\\]{0,60}"#,
        kind in prop_oneof![Just("run"), Just("cancel_run"), Just("tool_approval_response"),
                            Just("user_messages"), Just("tool_show")],
        value in prop_oneof![Just(json!(null)), Just(json!(1)), Just(json!("x")), Just(json!({}))],
    ) {
        let _ = Loom.decode(&text, &client());
        let mut frame = json!({"type": kind, "id": "i", "message": "m", "agent": "react",
            "run_id": text, "call_id": text, "approved": true, "thread_id": text, "name": "n"});
        let _ = decode(&frame);
        for field in ["id", "message", "agent", "run_id", "thread_id", "approved", "name"] {
            frame[field] = value.clone();
            let _ = decode(&frame);
        }
    }
}
