//! Whole runs, event by event.

use polyloop_session::event::{Level, Outcome, Purpose, RunOptions, Work};
use polyloop_session::item::{End, ItemKind, ToolResult};
use polyloop_session::policy::Effect;
use polyloop_session::{Event, MessageId, Seq, Stream, TurnId};
use serde_json::json;

use super::make::*;
use super::world::{frames, line, lines, sent};
use crate::frame::RunPart;
use crate::ids::{IdKind, Ids};

/// One round of one tool on a thread.
fn one_round() -> Log {
    let mut log = Log::default();
    log.turn(queued("What is in here?", Some(RunOptions::default()), false));
    let call = log.add(think());
    let thought = log.add(item(call, ItemKind::Reasoning));
    log.grow(thought, Stream::Text, 0, "Let me");
    log.add(said(thought, "Let me look"));
    let ls = log.add(item(call, tool("ls")));
    log.grow(ls, Stream::Args, 0, "{\"pa");
    log.grow(ls, Stream::Args, 4, "th\":\".\"}");
    log.add(proposed(ls, "{\"path\":\".\"}", Effect::Read));
    log.add(answered(call, Some(usage(100, 10))));
    log.add(runs(ls));
    log.grow(ls, Stream::Output, 0, "/tmp/\n");
    log.add(done(ls, "/tmp/\n  a.txt\n"));
    let call = log.add(think());
    let text = log.add(item(call, ItemKind::Text));
    log.grow(text, Stream::Text, 0, "There");
    log.grow(text, Stream::Text, 5, " is a.txt");
    log.add(said(text, "There is a.txt."));
    log.add(answered(call, Some(usage(120, 8))));
    log.add(ended(Outcome::Completed));
    log
}

#[test]
fn one_round_of_one_tool() {
    let log = one_round();
    let want = [
        r#"1 run_start run-0 {"agent":"react","message":"What is in here?","run_id":"RUN"}"#,
        r#"2 node_enter run-think-0 {"id":"think"}"#,
        r#"3 thought_chunk run-think-0 {"content":"Let me","id":"think"}"#,
        r#"4 thought_chunk run-think-0 {"content":" look","id":"think"}"#,
        concat!(
            r#"5 tool_call_chunk run-think-0 {"arguments_delta":"{\"pa","call_id":"call_6","#,
            r#""name":"ls"}"#
        ),
        concat!(
            r#"6 tool_call_chunk run-think-0 {"arguments_delta":"th\":\".\"}","call_id":null,"#,
            r#""name":null}"#
        ),
        r#"7 tool_call run-think-0 {"arguments":{"path":"."},"call_id":"call_6","name":"ls"}"#,
        r#"8 usage run-think-0 {"completion_tokens":10,"prompt_tokens":100,"total_tokens":110}"#,
        r#"9 node_exit run-think-0 {"id":"think","result":"Ok"}"#,
        r#"10 values run-think-0"#,
        r#"11 updates run-think-0 {"id":"think"}"#,
        r#"12 node_enter run-act-1 {"id":"act"}"#,
        r#"13 tool_start run-act-1 {"call_id":"call_6","name":"ls"}"#,
        r#"14 tool_output run-act-1 {"call_id":"call_6","content":"/tmp/\n","name":"ls"}"#,
        r#"15 tool_output run-act-1 {"call_id":"call_6","content":"  a.txt\n","name":"ls"}"#,
        concat!(
            r#"16 tool_end run-act-1 {"call_id":"call_6","is_error":false,"name":"ls","#,
            r#""result":"/tmp/\n  a.txt\n"}"#
        ),
        r#"17 node_exit run-act-1 {"id":"act","result":"Ok"}"#,
        r#"18 values run-act-1"#,
        r#"19 updates run-act-1 {"id":"act"}"#,
        r#"20 node_enter run-observe-2 {"id":"observe"}"#,
        r#"21 node_exit run-observe-2 {"id":"observe","result":"Ok"}"#,
        r#"22 values run-observe-2"#,
        r#"23 updates run-observe-2 {"id":"observe"}"#,
        r#"24 node_enter run-think-3 {"id":"think"}"#,
        r#"25 message_chunk run-think-3 {"content":"There","id":"think"}"#,
        r#"26 message_chunk run-think-3 {"content":" is a.txt","id":"think"}"#,
        r#"27 message_chunk run-think-3 {"content":".","id":"think"}"#,
        r#"28 usage run-think-3 {"completion_tokens":8,"prompt_tokens":120,"total_tokens":128}"#,
        r#"29 node_exit run-think-3 {"id":"think","result":"Ok"}"#,
        r#"30 values run-think-3"#,
        r#"31 updates run-think-3 {"id":"think"}"#,
        concat!(
            r#"32 checkpoint run-think-3 {"checkpoint_id":"CHECKPOINT","checkpoint_ns":null,"#,
            r#""step":4,"thread_id":"thread-1","timestamp":"1736426126000"}"#
        ),
        concat!(
            r#"run_end {"event_id":33,"node_id":"run-think-3","reply":"There is a.txt.","#,
            r#""request_id":"req-1","total_usage":{"completion_tokens":9,"prompt_tokens":50,"#,
            r#""total_tokens":59},"usage":{"completion_tokens":8,"prompt_tokens":120,"#,
            r#""total_tokens":128}}"#
        ),
    ];
    let ids = Ids::new(Some(&session()));
    let run = format!("run-{}", ids.id(IdKind::Run, Seq(2)));
    let got = frames(&log.updates);
    let checkpoint = ids.id(IdKind::Entry(0), Seq(15));
    let told: Vec<String> = got
        .iter()
        .map(|frame| line(frame).replace(&run, "RUN").replace(&checkpoint, "CHECKPOINT"))
        .collect();
    assert_eq!(told, want);
    for frame in &got {
        assert_eq!(frame["id"], json!(run), "{frame}");
        assert_eq!(frame["request_id"], "req-1");
        assert_eq!(frame["session_id"], "thread-1");
        assert!(frame["seq"].is_u64());
        if frame["type"] == "run_stream_event" {
            assert_eq!(frame["event"]["session_id"], "thread-1", "{frame}");
            let count = frame["event"]["event_id"].to_string();
            assert!(frame["cursor"].as_str().unwrap().ends_with(&format!("!{count}")), "{frame}");
        }
    }
}

#[test]
fn the_state_follows_the_nodes() {
    let got = frames(&one_round().updates);
    let at = |number: u64| {
        let frame = got.iter().find(|frame| frame["event"]["event_id"] == number);
        frame.map(|frame| frame["event"]["state"].clone()).unwrap()
    };
    let used = |prompt: u64, completion: u64| {
        json!({"prompt_tokens": prompt, "completion_tokens": completion,
               "total_tokens": prompt + completion})
    };
    let asked = json!({"User": "What is in here?"});
    let result = json!({"call_id": "call_6", "name": "ls", "content": "/tmp/\n  a.txt\n",
                        "is_error": false});
    let tool = json!({"Tool": {"tool_call_id": "call_6", "content": "/tmp/\n  a.txt\n"}});
    let call = json!({"name": "ls", "arguments": "{\"path\":\".\"}", "id": "call_6"});
    assert_eq!(
        at(10),
        json!({"messages": [asked], "omitted_messages": 0, "earlier_messages": 4,
               "tool_calls": [call], "tool_results": [], "turn_count": 0,
               "approval_result": null, "usage": used(100, 10), "total_usage": used(100, 10),
               "message_count_after_last_think": 1})
    );
    assert_eq!(
        at(11),
        json!({"tool_calls": [call], "usage": used(100, 10), "total_usage": used(100, 10),
               "message_count_after_last_think": 1})
    );
    assert_eq!(at(18)["tool_calls"], json!([]));
    assert_eq!(at(19), json!({"tool_calls": [], "tool_results": [result]}));
    assert_eq!(at(23), json!({"messages": [asked, tool], "omitted_messages": 0, "turn_count": 1}));
    let last = json!({"messages": [asked, tool, {"Assistant": "There is a.txt."}],
        "omitted_messages": 0, "earlier_messages": 4, "tool_calls": [], "tool_results": [result],
        "turn_count": 1, "approval_result": null, "usage": used(120, 8),
        "total_usage": used(220, 18), "message_count_after_last_think": 3});
    assert_eq!(at(30), last);
    assert_eq!(at(32), last);
}

#[test]
fn a_run_without_a_thread_is_its_own_session() {
    let mut log = Log::default();
    let alone = RunOptions { alone: true, verbose: true, ..RunOptions::default() };
    log.turn(queued("Hello", Some(alone), false));
    let call = log.add(think());
    let text = log.add(item(call, ItemKind::Text));
    log.add(said(text, "Hi"));
    log.add(answered(call, None));
    log.add(ended(Outcome::Completed));
    let got = frames(&log.updates);
    for frame in &got[..got.len() - 1] {
        assert_eq!(frame["event"]["session_id"], frame["id"]);
    }
    let told: Vec<String> = got[1..].iter().map(line).collect();
    assert_eq!(
        told,
        [
            r#"2 node_enter run-think-0 {"id":"think"}"#,
            r#"3 message_chunk run-think-0 {"content":"Hi","id":"think"}"#,
            r#"4 custom run-think-0 {"value":{"timing":{"duration_ms":6000,"node":"think"}}}"#,
            r#"5 node_exit run-think-0 {"id":"think","result":"Ok"}"#,
            r#"6 values run-think-0"#,
            r#"7 updates run-think-0 {"id":"think"}"#,
            concat!(
                r#"run_end {"event_id":8,"node_id":"run-think-0","reply":"Hi","#,
                r#""request_id":"req-1","total_usage":{"completion_tokens":9,"#,
                r#""prompt_tokens":50,"total_tokens":59}}"#
            ),
        ]
    );
}

#[test]
fn two_queued_turns_are_two_runs() {
    let mut log = Log::default();
    let first = MessageId(Seq(log.add(queued("One", None, true))));
    let second = MessageId(Seq(log.add(queued("Two", None, true))));
    for message in [first, second] {
        log.add(started(Work::Message { message }));
        let call = log.add(think());
        log.add(answered(call, None));
        log.add(ended(Outcome::Completed));
    }
    let got = frames(&log.updates);
    let (one, two) = got.split_at(got.len() / 2);
    assert_ne!(one[0]["id"], two[0]["id"]);
    for (run, text) in [(one, "One"), (two, "Two")] {
        assert_eq!(run[0]["event"]["message"], text);
        assert_eq!(run[0]["event"]["event_id"], 1);
        assert!(run.iter().all(|frame| frame["id"] == run[0]["id"]));
        assert_eq!(run.last().unwrap()["event_id"], 7);
    }
    let parts: Vec<_> = sent(&log.updates).into_iter().flatten().map(|f| f.run.unwrap()).collect();
    assert_eq!(parts[0].part, RunPart::Start);
    assert_eq!((parts[0].message, parts[0].turn.0.0), (Some(first), 3));
    assert_eq!(parts[6].part, RunPart::End);
    assert_eq!((parts[7].part, parts[7].message), (RunPart::Start, Some(second)));
    assert!(parts[1..6].iter().all(|run| run.part == RunPart::Event));
}

#[test]
fn a_compaction_is_a_run_whose_text_is_not_shown() {
    let mut log = Log::default();
    log.add(started(Work::Compact { by: who() }));
    let call = log.add(calls(Purpose::Summarise));
    let text = log.add(item(call, ItemKind::Text));
    log.grow(text, Stream::Text, 0, "In short");
    log.add(said(text, "In short: nothing"));
    log.add(answered(call, Some(usage(7, 3))));
    log.add(ended(Outcome::Completed));
    let told = lines(&log.updates);
    assert!(told[0].starts_with(r#"1 run_start run-0 {"agent":"react","message":null,"#));
    assert_eq!(
        told[1..6],
        [
            r#"2 node_enter run-compress-0 {"id":"compress"}"#,
            r#"3 usage run-compress-0 {"completion_tokens":3,"prompt_tokens":7,"total_tokens":10}"#,
            r#"4 node_exit run-compress-0 {"id":"compress","result":"Ok"}"#,
            r#"5 values run-compress-0"#,
            r#"6 updates run-compress-0 {"id":"compress"}"#,
        ]
    );
    assert!(told[7].contains(r#""event_id":8"#) && told[7].contains(r#""reply":"""#), "{told:?}");
}

#[test]
fn a_resumed_turn_and_a_notice() {
    let mut log = Log::default();
    let turn = TurnId(Seq(9));
    log.add(Event::Noticed { level: Level::Info, text: "Between".into(), code: "x".into() });
    log.add(started(Work::Resume { turn, by: who() }));
    log.add(Event::Noticed { level: Level::Warning, text: "Slow".into(), code: "retry".into() });
    let told = lines(&log.updates);
    assert_eq!(told.len(), 2, "between turns there is no run to tell of");
    assert!(told[0].contains("Go on with the work that was interrupted."), "{told:?}");
    let notice = r#"{"value":{"notice":{"code":"retry","level":"warning","text":"Slow"}}}"#;
    assert_eq!(told[1], format!("2 custom run-0 {notice}"));
}

#[test]
fn the_reply_is_what_the_last_call_that_spoke_said() {
    let mut log = Log::default();
    log.turn(queued("Do it", None, true));
    let call = log.add(think());
    for text in ["First, ", "second."] {
        let id = log.add(item(call, ItemKind::Text));
        log.add(said(id, text));
    }
    let bash = log.add(item(call, tool("bash")));
    log.add(proposed(bash, "not json", Effect::Read));
    log.add(answered(call, None));
    log.add(runs(bash));
    let failed = ToolResult { exit_code: Some(1), ..ToolResult::default() };
    log.add(completed(bash, End::Whole, "", Some(failed)));
    let call = log.add(think());
    log.add(answered(call, None));
    log.add(ended(Outcome::Completed));
    let got = frames(&log.updates);
    assert_eq!(got.last().unwrap()["reply"], "First, second.");
    let one = |kind: &str| {
        got.iter().find(|f| f["event"]["type"] == kind).map(|f| f["event"].clone()).unwrap()
    };
    assert_eq!(one("tool_call")["arguments"], "not json");
    assert_eq!(one("tool_end")["result"], "(no output)");
    assert_eq!(one("tool_end")["is_error"], true);
}
