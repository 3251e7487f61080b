//! Each other event, and what it becomes.

use polyloop_session::event::{
    Adopted, Agent, CallOutcome, Level, Outcome, Purpose, Setting, Work,
};
use polyloop_session::item::{End, Fault, ItemKind, Part};
use polyloop_session::policy::{Effect, Judgement, Mode, Risk};
use polyloop_session::wait::{Answer, Ask, Instead, Then};
use polyloop_session::{
    CallId, Event, Growth, ItemId, MessageId, Raw, Seq, Stream, TurnId, Update, WaitId,
};
use serde_json::{Value, json};

use super::make::*;
use crate::unified::Unified;
use crate::{Own, View};

fn one(event: Event) -> Value {
    let mut told = Log::of([event]).told();
    assert_eq!(told.len(), 1, "{told:#?}");
    told.remove(0)
}

fn info(fields: Value) -> Value {
    let mut want = json!({"type": "session_info", "id": "evt-1-0-86020b22", "status": "active"});
    want.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    want
}

#[test]
fn settings() {
    let set = |setting| Event::SettingSet { setting, by: who() };
    let model = Setting::Model { model: "m".into(), tokens_max: 9 };
    assert_eq!(one(set(model)), info(json!({"model": "m"})));
    let agent = Setting::Agent { agent: Agent::Tot };
    assert_eq!(one(set(agent)), info(json!({"agent": "tot"})));
    assert_eq!(one(set(Setting::CallsMax { calls_max: 3 })), info(json!({"max_turns": 3})));
    let metadata = Setting::Metadata { json: r#"{"a":[1]}"#.into() };
    assert_eq!(one(set(metadata)), info(json!({"metadata": {"a": [1]}})));
    let title = Setting::Title { title: "New".into() };
    let want = json!({"type": "session_renamed", "id": "evt-1-0-86020b22", "title": "New"});
    assert_eq!(one(set(title)), want);
    assert_eq!(one(Event::SessionReopened { by: who() }), info(json!({})));
    assert_eq!(one(Event::SessionClosed { by: who() })["status"], "completed");
}

#[test]
fn a_mode_is_told_in_each_connections_own_word() {
    let event = Event::ModeSet { mode: Mode::Suggest, by: who() };
    assert_eq!(one(event.clone()), info(json!({"permission_mode": "manual"})));
    let mut view = View::new(&Unified, &session(), Seq::NONE);
    let frame = view.see(&Log::of([event]).updates[0]).remove(0);
    let mut own = Own::default();
    own.call(Mode::Suggest, "default");
    let told = own.finish(frame);
    assert_eq!(placeless(&json(&told)), info(json!({"permission_mode": "default"})));
    let stamp = told.stamp().unwrap();
    assert_eq!(&stamp[..], br#","session_id":"s","seq":1}"#);
}

#[test]
fn notices() {
    let told = one(Event::Noticed {
        level: Level::Warning,
        text: "No sandbox".into(),
        code: "no_sandbox".into(),
    });
    let want = json!({"type": "notice", "id": "evt-1-0-86020b22", "level": "warning", "text": "No sandbox",
        "code": "no_sandbox"});
    assert_eq!(told, want);
}

#[test]
fn messages_that_wait() {
    let message = MessageId(Seq(1));
    let told = json!({"type": "message_queued", "id": "evt-1-0-86020b22",
        "message_id": "queued-1", "message": "Later", "by": "Ada (unified)",
        "client_ref": "msg-004"});
    let log = Log::of([waiting("Later", Some("msg-004")), turn(Work::Message { message })]);
    let started = json!({"type": "turn_started", "id": "evt-2-0-86020b22",
        "message_id": "queued-1", "message": "Later", "by": "Ada (unified)",
        "client_ref": "msg-004"});
    assert_eq!(log.told(), [told.clone(), started]);
    let dropped = Event::MessageDropped { message, by: who() };
    let log = Log::of([waiting("Later", Some("msg-004")), dropped.clone()]);
    let gone = json!({"type": "message_dropped", "id": "evt-2-0-86020b22",
        "message_id": "queued-1", "by": "Ada (unified)", "client_ref": "msg-004"});
    assert_eq!(log.told(), [told, gone]);
    assert_eq!(one(dropped).get("client_ref"), None);
    let log = Log::of([queued("At once", None)]);
    assert_eq!(log.told(), Vec::<serde_json::Value>::new(), "nothing is told of what starts");
}

#[test]
fn turns() {
    let message = Work::Message { message: MessageId(Seq(1)) };
    let log = Log::of([queued("Hi", Some("msg-1")), turn(message.clone())]);
    let want = json!({"type": "turn_started", "id": "evt-2-0-86020b22", "message": "Hi",
        "by": "Ada (unified)", "client_ref": "msg-1"});
    assert_eq!(log.told(), [want]);
    // A message that the encoder was not shown takes only the extras with it.
    let log = Log::of([turn(message)]);
    assert_eq!(log.told(), [json!({"type": "turn_started", "id": "evt-1-0-86020b22"})]);
    let log = Log::of([turn(Work::Resume { turn: TurnId(Seq(1)), by: who() })]);
    let want = json!({"type": "turn_started", "id": "evt-1-1-86020b22", "by": "Ada (unified)",
        "resumes": true});
    assert_eq!(log.told(), [info(json!({})), want]);
    let log = Log::of([turn(Work::Compact { by: who() })]);
    let want = json!({"type": "turn_started", "id": "evt-1-0-86020b22", "by": "Ada (unified)"});
    assert_eq!(log.told(), [want]);
}

#[test]
fn turns_end_once() {
    let fault = Fault::new("429", "API rate limit exceeded");
    let want = json!({"type": "turn_failed", "id": "evt-1-0-86020b22", "error": "API rate limit exceeded",
        "code": "429"});
    assert_eq!(one(ended(Outcome::Failed { fault })), want);
    let interrupted = || ended(Outcome::Interrupted { reason: "Stop".into() });
    let failed = |id: &str| {
        json!({"type": "turn_failed", "id": id, "error": "Interrupted: Stop",
        "code": "interrupted"})
    };
    let stands = |id: &str, status: &str| {
        json!({"type": "session_info", "id": id,
        "status": status})
    };
    let mut log = Log::default();
    log.begin("Hi");
    log.add(interrupted());
    assert_eq!(log.last(), [failed("evt-4-0-86020b22"), stands("evt-4-1-86020b22", "paused")]);

    let mut log = Log::default();
    log.begin("Hi");
    log.add(Event::SessionClosed { by: who() });
    assert!(log.last().is_empty(), "it is told when the turn has ended");
    log.add(interrupted());
    assert_eq!(log.last(), [failed("evt-5-0-86020b22"), stands("evt-5-1-86020b22", "completed")]);

    let mut log = Log::default();
    log.begin("Hi");
    log.add(Event::SessionClosed { by: who() });
    log.add(Event::SessionReopened { by: who() });
    log.add(interrupted());
    assert_eq!(log.last(), [failed("evt-6-0-86020b22"), stands("evt-6-1-86020b22", "paused")]);
}

#[test]
fn texts_that_are_not_shown() {
    let mut log = Log::default();
    let call = log.begin("Go");
    let cut = log.add(started(call, tool("bash")));
    log.grow(cut, Stream::Args, r#"{"comm"#);
    log.add(completed(cut, End::Cut, r#"{"comm"#, None));
    let empty = log.add(started(call, ItemKind::Text));
    log.add(completed(empty, End::Discarded, "", None));
    let summary = log.add(calling(Purpose::Summarise));
    for kind in [ItemKind::Text, ItemKind::Reasoning] {
        let item = log.add(started(summary, kind));
        log.grow(item, Stream::Text, "sum");
        log.add(completed(item, End::Whole, "summary", None));
    }
    assert_eq!(log.told().len(), 1, "{:#?}", log.told());
}

#[test]
fn requests_and_how_they_end() {
    let risky = Judgement { risk: Risk::High, ..judgement(Effect::Execute) };
    let (mut log, item) = call_of("bash", r#"{"command":"x"}"#, risky);
    let wait = log.add(opened(item, Ask::Approval));
    assert_eq!(log.last()[0]["context"]["risk_level"], "high");
    let denied = |then| Answer::Denied { message: "No".into(), then };
    let instead = Answer::Approved {
        grants: Vec::new(),
        instead: Some(Box::new(Instead {
            args: r#"{"patch":"p"}"#.into(),
            judgement: judgement(Effect::Edit),
        })),
        message: None,
        always: false,
    };
    let rows = [
        (approved(None, false), json!({"decision": "allow"})),
        (approved(None, true), json!({"decision": "allow_always"})),
        (denied(Then::Continue), json!({"decision": "deny", "message": "No"})),
        (denied(Then::EndTurn), json!({"decision": "deny_stop", "message": "No"})),
        (instead, json!({"decision": "allow", "input": {"patch": "p"}})),
    ];
    for (answer, fields) in rows {
        let mut log = log.clone();
        log.add(settled(wait, answer));
        let mut want = json!({"type": "approval_settled", "id": "evt-8-0-86020b22", "request_id": "req-7",
            "by": "Ada (unified)"});
        want.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        assert_eq!(log.last(), [want]);
    }
    for (by, told) in [(None, Value::Null), (Some(who()), json!("Ada (unified)"))] {
        let mut log = log.clone();
        let wait = WaitId(Seq(wait));
        log.add(Event::WaitWithdrawn { wait, reason: "Stopped".into(), by });
        let want = json!({"type": "approval_settled", "id": "evt-8-0-86020b22", "request_id": "req-7",
            "decision": "withdrawn", "by": told, "message": "Stopped"});
        assert_eq!(log.last(), [want]);
    }
}

#[test]
fn plans() {
    for path in [None, Some("/path/to/plan.md")] {
        let (mut log, item) = call_of("exit_plan_mode", "{}", judgement(Effect::Plan));
        assert_eq!(log.told().len(), 1, "a plan is no tool to clients");
        log.add(opened(item, Ask::Plan { plan: "# Do it".into(), path: path.map(Into::into) }));
        let want = json!({"type": "exit_plan_mode", "id": "evt-7-0-86020b22", "tool_id": "req-7",
            "request_id": "req-7", "plan_file_path": path, "plan": "# Do it"});
        assert_eq!(log.last(), [want]);
        log.add(completed(item, End::Whole, "Approved", None));
        assert!(log.last().is_empty());
    }
    // A question that reached nobody is a call that was denied.
    let mut log = Log::default();
    let call = log.begin("Go");
    let item = log.add(started(call, tool("ask_user")));
    let Event::ToolProposed { item: id, args, judgement, tokens, opaque, .. } =
        proposed(item, "{}", judgement(Effect::Question))
    else {
        panic!()
    };
    let answerable = false;
    log.add(Event::ToolProposed { item: id, args, judgement, answerable, tokens, opaque });
    assert_eq!(log.last()[0]["tool_name"], "AskUserQuestion");
    log.add(completed(item, End::Denied, "Nobody is here", None));
    assert_eq!(log.last()[0]["error"], "Nobody is here");
}

/// The explanation is a message, and then the request is there again, with its ids.
#[test]
fn an_explanation() {
    let (mut log, item) = call_of("bash", r#"{"command":"x"}"#, judgement(Effect::Execute));
    let wait = log.add(opened(item, Ask::Approval));
    let request = log.last();
    log.add(Event::ExplainAsked { wait: WaitId(Seq(wait)), by: who() });
    assert!(log.last().is_empty());
    let call = log.add(calling(Purpose::Explain { wait: WaitId(Seq(wait)) }));
    let mut failed = log.clone();
    let text = log.add(started(call, ItemKind::Text));
    log.add(completed(text, End::Whole, "It deletes", None));
    assert_eq!(log.last()[0]["text"], "It deletes");
    log.add(call_ended(call, None));
    assert_eq!(log.last(), request);
    let fault = Fault::new("500", "broken");
    let (call, outcome) = (CallId(Seq(call)), CallOutcome::Failed { fault });
    failed.add(Event::CallEnded { call, outcome, usage: None });
    let told = failed.last();
    assert_eq!(told[0]["text"], "The explanation failed: broken");
    assert_eq!(told[0]["code"], "explanation_failed");
    assert_eq!(told[1..], request);
}

#[test]
fn usage_without_a_known_window() {
    let told = Log::of([call_ended(9, Some(usage(1, 2, 0)))]).told();
    assert_eq!(told[0]["context_window"], Value::Null);
    assert_eq!(told[0]["usage_percent"], Value::Null);
    assert!(Log::of([call_ended(9, None)]).told().is_empty());
}

#[test]
fn raw() {
    let mut view = View::new(&Unified, &session(), Seq::NONE);
    let mut log = Log::default();
    let call = CallId(Seq(log.begin("Go")));
    log.updates.iter().for_each(|update| {
        view.see(update);
    });
    let rows = [(r#"{"ping":1}"#, json!({"ping": 1})), ("data: [DONE", json!("data: [DONE"))];
    for (at, (text, want)) in rows.into_iter().enumerate() {
        let raw = Raw { call, provider: "openai".into(), json: text.into() };
        let told = told(view.see(&Update::Raw(raw)));
        let want = json!({"type": "raw", "id": format!("evt-3r{at}-86020b22"), "data": want,
            "provider": "openai"});
        assert_eq!(placeless(&told[0]), want);
    }
}

#[test]
fn a_session_of_another_program() {
    let piece = |piece| Event::Adopted { piece: Some(piece) };
    let content = ["One", "two"].map(|text| Part::Text { text: text.into() }).to_vec();
    let log = Log::of([
        Event::Adopted { piece: None },
        piece(Adopted::User { content }),
        piece(Adopted::ToolCall {
            call_ref: "c1".into(),
            name: "read".into(),
            args: r#"{"path":"a"}"#.into(),
        }),
        piece(Adopted::ToolResult { call_ref: "c1".into(), output: "text".into() }),
        piece(Adopted::Agent { text: "Done".into() }),
    ]);
    let want = [
        json!({"type": "notice", "id": "evt-2-0-86020b22", "level": "info", "text": "One\ntwo",
            "code": "adopted_user_message"}),
        json!({"type": "tool_started", "id": "evt-3-0-86020b22", "tool_name": "Read", "tool_id": "c1",
            "arguments": {"path": "a"}}),
        json!({"type": "tool_completed", "id": "evt-4-0-86020b22", "tool_id": "c1", "success": true,
            "result": "text", "error": null}),
        json!({"type": "assistant_message", "id": "evt-5-0-86020b22", "text": "Done", "is_final": true}),
    ];
    assert_eq!(log.told(), want);
}

#[test]
fn growth_of_nothing_that_is_open() {
    let mut view = View::new(&Unified, &session(), Seq::NONE);
    let growth = |stream| Growth { item: ItemId(Seq(9)), stream, offset: 0, text: "x".into() };
    for stream in [Stream::Text, Stream::Args, Stream::Output] {
        assert!(view.see(&Update::Grew(growth(stream))).is_empty());
    }
}
