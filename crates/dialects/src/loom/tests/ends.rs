//! Runs that fail, are interrupted, or were cut by a crash.

use polyloop_session::event::{CallOutcome, Outcome, Stop};
use polyloop_session::item::{End, Fault, ItemKind, ToolResult};
use polyloop_session::policy::Effect;
use polyloop_session::wait::Ask;
use polyloop_session::{Event, Seq, Stream, WaitId};

use super::make::*;
use super::world::{frames, lines, sent};
use crate::frame::RunPart;

fn stops(reason: &str) -> Event {
    Event::TurnStopping { reason: Stop::Interrupted { by: who(), reason: reason.into() } }
}

fn interrupted(reason: &str) -> Event {
    ended(Outcome::Interrupted { reason: reason.into() })
}

fn last_part(log: &Log) -> RunPart {
    sent(&log.updates).into_iter().flatten().last().unwrap().run.unwrap().part
}

#[test]
fn a_failed_call_fails_its_node_and_its_run() {
    let mut log = Log::default();
    log.turn(queued("Hello", None, true));
    let call = log.add(think());
    let text = log.add(item(call, ItemKind::Text));
    log.grow(text, Stream::Text, 0, "Hal");
    log.add(completed(text, End::Discarded, "Hallo", None));
    log.add(ended_call(call, CallOutcome::Failed { fault: fault() }, None));
    log.add(ended(Outcome::Failed { fault: fault() }));
    let told = lines(&log.updates);
    assert_eq!(
        told[2..],
        [
            r#"3 message_chunk run-think-0 {"content":"Hal","id":"think"}"#,
            r#"4 message_chunk run-think-0 {"content":"lo","id":"think"}"#,
            concat!(
                r#"5 node_exit run-think-0 {"id":"think","#,
                r#""result":{"Err":"The provider is overloaded"}}"#
            ),
            r#"error {"error":"The provider is overloaded","request_id":"req-1"}"#,
        ]
    );
    let got = frames(&log.updates);
    assert_eq!(got.last().unwrap()["id"], got[0]["id"], "the error names its run");
    assert_eq!(last_part(&log), RunPart::Failed);
}

#[test]
fn a_run_that_fails_without_words_says_so() {
    let mut log = Log::default();
    log.turn(queued("Hello", None, true));
    log.add(think());
    log.add(ended(Outcome::Failed { fault: Fault::new("x", "") }));
    let told = lines(&log.updates);
    assert_eq!(
        told[2..],
        [
            r#"3 node_exit run-think-0 {"id":"think","result":{"Err":"The run failed"}}"#,
            r#"error {"error":"The run failed","request_id":"req-1"}"#,
        ]
    );
}

#[test]
fn interrupted_while_it_thinks() {
    let mut log = Log::default();
    log.turn(queued("Hello", None, true));
    let call = log.add(think());
    let bash = log.add(item(call, tool("bash")));
    log.grow(bash, Stream::Args, 0, "{\"com");
    log.add(stops("enough"));
    log.add(completed(bash, End::Cut, "{\"comm", None));
    log.add(ended_call(call, CallOutcome::Stopped, None));
    log.add(interrupted("enough"));
    assert_eq!(
        lines(&log.updates)[2..],
        [
            concat!(
                r#"3 tool_call_chunk run-think-0 {"arguments_delta":"{\"com","#,
                r#""call_id":"call_4","name":"bash"}"#
            ),
            r#"4 tool_call_chunk run-think-0 {"arguments_delta":"m","call_id":null,"name":null}"#,
            r#"5 node_exit run-think-0 {"id":"think","result":{"Err":"Interrupted"}}"#,
            r#"error {"error":"Interrupted: enough","request_id":"req-1"}"#,
        ]
    );
    assert_eq!(last_part(&log), RunPart::Interrupted);
}

#[test]
fn interrupted_while_it_acts() {
    let mut log = Log::default();
    log.turn(queued("Hello", None, true));
    let bash = log.tool("bash", "{}", Effect::Execute);
    log.add(runs(bash));
    log.grow(bash, Stream::Output, 0, "half");
    log.add(stops("enough"));
    let seen = Some("half\nstopped".into());
    let result = ToolResult { seen, ..ToolResult::default() };
    log.add(completed(bash, End::Interrupted, "half", Some(result)));
    log.add(interrupted("enough"));
    let told = lines(&log.updates);
    assert_eq!(
        told[told.len() - 5..],
        [
            r#"10 tool_start run-act-1 {"call_id":"call_4","name":"bash"}"#,
            r#"11 tool_output run-act-1 {"call_id":"call_4","content":"half","name":"bash"}"#,
            concat!(
                r#"12 tool_end run-act-1 {"call_id":"call_4","is_error":true,"name":"bash","#,
                r#""result":"half\nstopped"}"#
            ),
            r#"13 node_exit run-act-1 {"id":"act","result":{"Err":"Interrupted"}}"#,
            r#"error {"error":"Interrupted: enough","request_id":"req-1"}"#,
        ]
    );
}

#[test]
fn an_act_that_a_crash_cut_is_closed() {
    let mut log = Log::default();
    log.turn(queued("Hello", None, true));
    let bash = log.tool("bash", "{}", Effect::Execute);
    log.add(runs(bash));
    log.add(completed(bash, End::Interrupted, "", Some(ToolResult::default())));
    log.add(interrupted("The server stopped while the turn was running"));
    let told = lines(&log.updates);
    assert_eq!(
        told[told.len() - 2],
        r#"12 node_exit run-act-1 {"id":"act","result":{"Err":"Interrupted"}}"#
    );
    // What the end of a run finds open, it closes.
    let mut log = Log::default();
    log.turn(queued("Hello", None, true));
    log.tool("bash", "{}", Effect::Execute);
    log.add(interrupted("enough"));
    let told = lines(&log.updates);
    assert_eq!(
        told[told.len() - 2],
        r#"10 node_exit run-act-1 {"id":"act","result":{"Err":"Interrupted"}}"#
    );
}

#[test]
fn a_denial_that_ends_the_turn_completes_the_run() {
    let mut log = Log::default();
    log.turn(queued("Hello", None, true));
    let call = log.add(think());
    let (one, two) = (log.add(item(call, tool("bash"))), log.add(item(call, tool("bash"))));
    log.add(proposed(one, "{}", Effect::Execute));
    log.add(proposed(two, "{}", Effect::Execute));
    log.add(answered(call, None));
    let wait = WaitId(Seq(log.add(asks(one, Ask::Approval))));
    log.add(Event::TurnStopping { reason: Stop::Denied { wait } });
    log.add(completed(one, End::Denied, "no", Some(ToolResult::default())));
    log.add(completed(two, End::Interrupted, "not run", Some(ToolResult::default())));
    log.add(ended(Outcome::Completed));
    let told = lines(&log.updates);
    let exits: Vec<&String> = told.iter().filter(|line| line.contains(" node_exit ")).collect();
    assert_eq!(exits.len(), 3, "{told:?}");
    assert!(exits.iter().all(|line| line.contains(r#""result":"Ok""#)), "{exits:?}");
    assert!(told.last().unwrap().starts_with("run_end"));
}
