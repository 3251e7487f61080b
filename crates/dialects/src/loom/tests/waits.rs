//! Approvals, questions and plans.

use polyloop_session::event::{Outcome, Purpose, RunOptions};
use polyloop_session::item::{End, ItemKind, ToolResult};
use polyloop_session::policy::Effect;
use polyloop_session::wait::{Answer, Ask, Instead, Then, Who};
use polyloop_session::{Event, Seq, WaitId};
use serde_json::json;

use super::make::*;
use super::world::{Moment, frames, lines, sent};

fn waiting(can_approve: bool) -> (Log, u64, WaitId) {
    let mut log = Log::default();
    log.turn(queued("Hello", Some(RunOptions::default()), can_approve));
    let item = log.tool("bash", r#"{"command":"touch a"}"#, Effect::Execute);
    let wait = WaitId(Seq(log.add(asks(item, Ask::Approval))));
    (log, item, wait)
}

fn approved(always: bool, instead: Option<Box<Instead>>) -> Answer {
    Answer::Approved { grants: Vec::new(), instead, message: None, always }
}

#[test]
fn who_settled_what_and_how() {
    let instead = Instead { args: r#"{"x":1}"#.into(), judgement: judgement(Effect::Edit) };
    let denied = |then| Answer::Denied { message: "no".into(), then };
    let rows = [
        (approved(false, None), r#""decision":"approved""#),
        (approved(true, None), r#""decision":"approved_always""#),
        (
            approved(false, Some(Box::new(instead))),
            r#""arguments":{"x":1},"by":"Ada (loom)","call_id":"call_4","decision":"approved""#,
        ),
        (denied(Then::Continue), r#""decision":"denied""#),
        (denied(Then::EndTurn), r#""decision":"denied""#),
        (Answer::Answered { answers: Vec::new(), said: None }, r#""decision":"answered""#),
    ];
    for (answer, want) in rows {
        let (mut log, _, wait) = waiting(true);
        log.add(Event::WaitSettled { wait, answer: answer.clone(), by: who() });
        // A second answer is none.
        log.add(Event::WaitSettled { wait, answer, by: Who::via("chat") });
        let told = lines(&log.updates);
        assert_eq!(
            told[9],
            concat!(
                r#"10 tool_approval run-act-1 {"arguments":{"command":"touch a"},"#,
                r#""call_id":"call_4","name":"bash"}"#
            )
        );
        assert!(told[10].starts_with(r#"11 custom run-act-1 {"value":{"approval":{"#), "{told:?}");
        assert!(told[10].contains(want), "{} lacks {want}", told[10]);
        assert!(told[10].contains(r#""by":"Ada (loom)""#));
        assert_eq!(told.len(), 11);
    }
}

#[test]
fn a_withdrawn_request_is_told_too() {
    let (mut log, _, wait) = waiting(true);
    log.add(Event::WaitWithdrawn { wait, reason: "stopped".into(), by: None });
    let told = lines(&log.updates);
    let value = r#"{"value":{"approval":{"call_id":"call_4","decision":"withdrawn"}}}"#;
    assert_eq!(told[10], format!("11 custom run-act-1 {value}"));
}

#[test]
fn a_request_names_its_wait_and_is_sent_again_to_who_comes() {
    let (mut log, item, wait) = waiting(true);
    let last = sent(&log.updates).into_iter().flatten().last().unwrap();
    assert_eq!(last.presents, Some(wait));
    let (replay, _) = Moment::after(&log.updates).attach(None);
    let kinds: Vec<_> = replay.iter().map(|f| f["event"]["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["run_start", "node_enter", "tool_call", "tool_approval"]);
    let numbers: Vec<_> = replay.iter().map(|f| f["event"]["event_id"].clone()).collect();
    assert_eq!(numbers, [json!(1), json!(2), json!(3), json!(4)]);
    log.add(Event::WaitSettled { wait, answer: approved(false, None), by: who() });
    log.add(runs(item));
    let (replay, _) = Moment::after(&log.updates).attach(None);
    let kinds: Vec<_> = replay.iter().map(|f| f["event"]["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["run_start", "node_enter", "tool_call", "tool_start"]);
}

#[test]
fn who_cannot_answer_is_not_asked() {
    let (mut log, _, wait) = waiting(false);
    assert!(lines(&log.updates).iter().all(|line| !line.contains("tool_approval")));
    let (replay, _) = Moment::after(&log.updates).attach(None);
    assert_eq!(replay.len(), 3);
    log.add(Event::WaitSettled { wait, answer: approved(false, None), by: Who::via("unified") });
    let told = lines(&log.updates);
    assert!(told.last().unwrap().contains(r#""by":"a client of unified""#), "{told:?}");
}

#[test]
fn questions_and_plans_are_asked_with_their_arguments() {
    let args = r#"{"questions":[{"question":"Which?","options":[{"label":"a"}]}]}"#;
    let ask = Ask::of(&judgement(Effect::Question), args).unwrap();
    let plan = Ask::Plan { plan: "# Do it".into(), path: None };
    let rows = [
        ("ask_user", args, Effect::Question, ask),
        ("exit_plan_mode", r##"{"plan":"# Do it"}"##, Effect::Plan, plan),
    ];
    for (name, args, effect, ask) in rows {
        let mut log = Log::default();
        log.turn(queued("Hello", None, true));
        let item = log.tool(name, args, effect);
        log.add(asks(item, ask));
        log.add(completed(item, End::Whole, "The user answered: a", Some(ToolResult::default())));
        let got = frames(&log.updates);
        let asked = got.iter().find(|f| f["event"]["type"] == "tool_approval").unwrap();
        let arguments: serde_json::Value = serde_json::from_str(args).unwrap();
        assert_eq!(asked["event"]["arguments"], arguments);
        assert_eq!(asked["event"]["name"], name);
        let ends = got.iter().find(|f| f["event"]["type"] == "tool_end").unwrap();
        assert_eq!(ends["event"]["result"], "The user answered: a");
        assert!(got.iter().all(|f| f["event"]["type"] != "tool_output"), "nothing ran");
    }
}

#[test]
fn an_explanation_is_a_node_beside_the_act() {
    let (mut log, item_id, wait) = waiting(true);
    let call = log.add(calls(Purpose::Explain { wait }));
    let text = log.add(item(call, ItemKind::Text));
    log.add(said(text, "It makes a file."));
    log.add(answered(call, None));
    log.add(Event::WaitSettled { wait, answer: approved(false, None), by: who() });
    log.add(runs(item_id));
    log.add(done(item_id, ""));
    log.add(ended(Outcome::Completed));
    let told = lines(&log.updates);
    assert_eq!(
        told[10..15],
        [
            r#"11 node_enter run-explain-2 {"id":"explain"}"#,
            r#"12 message_chunk run-explain-2 {"content":"It makes a file.","id":"explain"}"#,
            r#"13 node_exit run-explain-2 {"id":"explain","result":"Ok"}"#,
            r#"14 values run-explain-2"#,
            r#"15 updates run-explain-2 {"id":"explain"}"#,
        ]
    );
    assert!(told[15].starts_with("16 custom run-act-1 "), "{told:?}");
    assert!(told[17].starts_with("18 tool_end run-act-1 "), "{told:?}");
    assert!(told[18].starts_with("19 node_exit run-act-1 "), "{told:?}");
    let got = frames(&log.updates);
    assert_eq!(got.last().unwrap()["reply"], "", "an explanation is no reply");
}
