//! How entries are written: every field comes back, and fields that are left out may be missing.

use polyloop_session::event::{
    Agent, CallOutcome, Event, Origin, RunOptions, Setting, Settings, Skipped, Work,
};
use polyloop_session::item::{
    End, Fault, FileChange, IMAGE_TOKENS, Opaque, Operation, ToolResult, Usage,
};
use polyloop_session::policy::{Effect, Judgement, Leave, Mode, Rule, Says};
use polyloop_session::state::Fate;
use polyloop_session::todos::{Priority, Status, Todo};
use polyloop_session::wait::{Answer, Ask, Given, Who};
use polyloop_session::{LogEntry, Seq, SessionId};
use serde_json::Value;

use super::make::{
    ASKS_ONE, ASKS_TWO, call, entries, fold, image, item, judgement, message, parts, queued,
    settings, wait,
};

#[test]
fn a_completion_with_everything_in_it_comes_back_whole() {
    let change = |operation, before: Option<&str>| FileChange {
        diff: None,
        path: "src/é \"x\".rs".into(),
        operation,
        before: before.map(Into::into),
        after: before.map(|_| "00ff".into()),
        ..FileChange::default()
    };
    let result = ToolResult {
        seen: Some("gist\n\u{0}\u{2028}".into()),
        exit_code: Some(-9),
        duration_ms: u64::MAX,
        todos: Some("Open todos:\n- a".into()),
        todo_list: Some(vec![Todo {
            content: "a".into(),
            status: Status::InProgress,
            priority: Priority::High,
        }]),
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
    let list = r#""todo_list":[{"content":"a","status":"in_progress","priority":"high"}]"#;
    assert!(json.contains(list), "{json}");
    assert!(!json.contains('\n'), "an entry is one line");
    assert_eq!(serde_json::from_str::<LogEntry>(&json).unwrap(), log[0]);
}

#[test]
fn what_is_left_out_may_be_missing() {
    let lines = [
        r#"{"type":"adopted"}"#,
        r#"{"type":"tool_started","item":4,"sandboxed":true}"#,
        r#"{"type":"sandbox_refused","item":4,"reason":"r","text":"","result":{},
            "answerable":false}"#,
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

/// Entries of a server that knew nothing of questions, runs and settings: they mean what they
/// meant, and are written again as they were.
#[test]
fn an_older_log_means_what_it_meant() {
    let judgement = r#"{"effect":"execute","safe":false,"confined":false,"sandbox":false,
        "risk":"medium","reason":"why","command":["touch"],"covers":"touch","keys":[]}"#;
    let proposed = format!(
        r#"{{"type":"tool_proposed","item":4,"args":"{{}}","judgement":{judgement},
            "answerable":true,"tokens":1}}"#
    );
    let lines = [
        r#"{"type":"session_created","settings":{"cwd":"/w","model":"m","mode":"suggest",
            "calls_max":9},"by":{"via":"x"}}"#,
        r#"{"type":"message_queued","content":[{"type":"text","text":"hi"}],
            "origin":{"via":"x","can_approve":true},"tokens":1}"#,
        r#"{"type":"turn_started","work":{"kind":"message","message":2}}"#,
        r#"{"type":"call_started","purpose":{"kind":"think"},"model":"m","tokens_max":5}"#,
        r#"{"type":"item_started","call":4,"block":0,
            "item":{"kind":"tool_call","name":"bash","call_ref":"c"}}"#,
        &proposed.replace("\"item\":4", "\"item\":5"),
        r#"{"type":"call_ended","call":4,"outcome":{"kind":"answered"}}"#,
        r#"{"type":"wait_opened","item":5,"ask":{"kind":"approval"}}"#,
        r#"{"type":"wait_withdrawn","wait":8,"reason":"gone"}"#,
        r#"{"type":"tool_started","item":5,"sandboxed":true}"#,
    ];
    let mut log = Vec::new();
    for (seq, line) in (1..).zip(lines) {
        let entry = format!(r#"{{"seq":{seq},"at":{seq},"event":{line}}}"#);
        let read: LogEntry = serde_json::from_str(&entry).unwrap_or_else(|e| panic!("{line}: {e}"));
        let (again, before): (Value, Value) =
            (serde_json::to_value(&read).unwrap(), serde_json::from_str(&entry).unwrap());
        assert_eq!(again, before);
        log.push(read);
    }
    let waiting = fold(&log[..8]);
    let turn = waiting.turn().expect("the turn began");
    assert_eq!((turn.agent, &turn.cwd, turn.calls_max), (Agent::React, &None, 9));
    assert_eq!(turn.origin, Origin { who: Who::via("x"), can_approve: true, can_answer: false });
    assert_eq!(turn.waits[&wait(8)].ask, Ask::Approval);
    let after = fold(&log);
    assert_eq!(after.fate(wait(8)), Some(&Fate::Withdrawn));
    assert_eq!(after.settings(), Some(&settings(Mode::Suggest, 9)));
}

fn by() -> Who {
    Who { via: "unified".into(), name: Some("Ada".into()), from: None }
}

#[test]
fn every_newer_event_comes_back_whole_and_is_spelled_so() {
    let set = |setting| Event::SettingSet { setting, by: Who::via("x") };
    let rows = [
        (Event::SessionClosed { by: by() }, r#""by":{"via":"unified","name":"Ada"}"#),
        (Event::SessionReopened { by: by() }, r#"{"type":"session_reopened","#),
        (
            set(Setting::Model { model: "m".into(), tokens_max: 7 }),
            r#""setting":{"kind":"model","model":"m","tokens_max":7}"#,
        ),
        (set(Setting::Agent { agent: Agent::Got }), r#"{"kind":"agent","agent":"got"}"#),
        (set(Setting::Title { title: "é\n".into() }), r#"{"kind":"title","title":"é\n"}"#),
        (set(Setting::CallsMax { calls_max: 3 }), r#"{"kind":"calls_max","calls_max":3}"#),
        (
            set(Setting::Metadata { json: r#"{"a":1.50}"#.into() }),
            r#"{"kind":"metadata","json":"{\"a\":1.50}"}"#,
        ),
        (
            Event::WaitWithdrawn { wait: wait(3), reason: "r".into(), by: Some(by()) },
            r#""reason":"r","by":{"via":"#,
        ),
    ];
    for (event, spelled) in rows {
        comes_back(event, spelled);
    }
}

#[test]
fn forks_and_undo_come_back_whole_and_are_spelled_so() {
    let forked = Event::Forked {
        session: SessionId::parse("a-1").unwrap(),
        upto: Seq(7),
        by: Who::via("rest"),
    };
    let spelled = r#"{"type":"forked","session":"a-1","upto":7,"by":{"via":"rest"}}"#;
    comes_back(forked, spelled);
    let file = FileChange {
        path: "a".into(),
        operation: Operation::Delete,
        mode: Some(0o640),
        before_blob: Some("00ff".into()),
        ..FileChange::default()
    };
    let files = vec![file];
    let (made, removed) = (vec!["new".into()], Vec::new());
    let touched = Event::FilesTouched { item: item(4), files: files.clone(), made, removed };
    let spelled = [
        r#"{"type":"files_touched","item":4,"files":[{"path":"a","operation":{"kind":"delete"},"#,
        r#""mode":416,"before_blob":"00ff"}],"made":["new"]}"#,
    ];
    comes_back(touched, &spelled.concat());
    let (items, skipped) = (vec![item(4)], Vec::new());
    let (made, removed, cwd) = (Vec::new(), vec!["new".into()], Some("/p".into()));
    let link = FileChange {
        path: "l".into(),
        operation: Operation::Create,
        link: Some("../a".into()),
        ..FileChange::default()
    };
    let (files, by_whom) = (vec![link], by());
    let started = Event::UndoStarted { items, files, made, removed, skipped, cwd, by: by_whom };
    let spelled = [
        r#"{"type":"undo_started","items":[4],"files":[{"path":"l","operation":{"kind":"create"},"#,
        r#""link":"../a"}],"removed":["new"],"cwd":"/p","by":{"via":"unified","name":"Ada"}}"#,
    ];
    comes_back(started, &spelled.concat());
    let failed = Event::UndoFailed { reason: "why".into() };
    comes_back(failed, r#"{"type":"undo_failed","reason":"why"}"#);
    let undone = Event::Undone {
        items: vec![item(4)],
        files: Vec::new(),
        made: Vec::new(),
        removed: vec!["new".into()],
        skipped: vec![Skipped { path: "b".into(), reason: "why".into() }],
        cwd: Some("/p".into()),
        by: by(),
        tokens: 3,
    };
    let spelled = [
        r#"{"type":"undone","items":[4],"removed":["new"],"skipped":[{"path":"b","reason":"why"}],"#,
        r#""cwd":"/p","by":{"via":"unified","name":"Ada"},"tokens":3}"#,
    ];
    comes_back(undone, &spelled.concat());
}

#[test]
fn every_newer_field_comes_back_whole_and_is_spelled_so() {
    let run = RunOptions {
        agent: Some(Agent::Tot),
        adaptive: true,
        cwd: Some("/e".into()),
        calls_max: Some(2),
        verbose: true,
        bounds: None,
        alone: true,
    };
    let queued = Event::MessageQueued {
        content: parts("hi"),
        origin: Origin { who: by(), can_approve: false, can_answer: true },
        client_ref: Some("mine".into()),
        tokens: 1,
        run: Some(Box::new(run)),
        waits: true,
    };
    let spelled =
        r#""run":{"agent":"tot","adaptive":true,"cwd":"/e","calls_max":2,"verbose":true,"#;
    comes_back(queued.clone(), spelled);
    comes_back(queued, r#""alone":true},"waits":true}"#);
    let whole = Settings {
        tokens_max: Some(1),
        agent: Some(Agent::Dup),
        title: Some("t".into()),
        metadata: Some("{}".into()),
        ..settings(Mode::Plan, 9)
    };
    let created = Event::SessionCreated { settings: whole, by: by() };
    comes_back(created, r#""tokens_max":1,"agent":"dup","title":"t","metadata":"{}""#);
    let work = Work::Message { message: message(2) };
    let (agent, cwd, earlier) = (Some(Agent::Got), Some("/e".into()), Some(0));
    let started = Event::TurnStarted { work, agent, cwd, earlier };
    comes_back(started, r#""agent":"got","cwd":"/e","earlier":0"#);
    let judgement =
        Judgement { diff: None, plan_file: Some("p.md".into()), ..judgement(Effect::Plan) };
    let (judgement, answerable, tokens) = (Box::new(judgement), false, 1);
    let args = ASKS_ONE.into();
    let opaque = Some(Opaque { provider: "p".into(), json: r#"{"s": 1.50}"#.into() });
    let item = item(4);
    let proposed = Event::ToolProposed { item, args, judgement, answerable, tokens, opaque };
    comes_back(proposed.clone(), r#""plan_file":"p.md""#);
    comes_back(proposed, r#""opaque":{"provider":"p","json":"{\"s\": 1.50}"}"#);
}

#[test]
fn what_a_call_costs_and_why_it_is_made_again_is_spelled_so() {
    let fault = Fault::new("overloaded", "Busy");
    let outcome = CallOutcome::Retried { fault, after_ms: 1_200 };
    let ended = |outcome, usage| Event::CallEnded { call: call(3), outcome, usage };
    let spelled = [
        r#""outcome":{"kind":"retried","fault":{"message":"Busy","code":"overloaded"},"#,
        r#""after_ms":1200}}"#,
    ];
    comes_back(ended(outcome, None), &spelled.concat());
    let usage = Usage {
        input_tokens: 9,
        output_tokens: 4,
        cached_tokens: 3,
        cache_written_tokens: 2,
        reasoning_tokens: 1,
        cost_micros: Some(u64::MAX),
    };
    let spelled = [
        r#""usage":{"input_tokens":9,"output_tokens":4,"cached_tokens":3,"#,
        r#""cache_written_tokens":2,"reasoning_tokens":1,"cost_micros":18446744073709551615}"#,
    ];
    comes_back(ended(CallOutcome::Answered, Some(usage)), &spelled.concat());
    // What is not known is not written, as it was before it could be known.
    let usage = Usage { input_tokens: 9, output_tokens: 4, ..Usage::default() };
    let spelled = r#""usage":{"input_tokens":9,"output_tokens":4,"cached_tokens":0}}"#;
    comes_back(ended(CallOutcome::Answered, Some(usage)), spelled);
}

#[test]
fn a_picture_comes_back_whole_and_is_spelled_so() {
    let content = vec![parts("look").remove(0), image("aGk=")];
    let Event::MessageQueued { origin, client_ref, run, .. } = queued("", 1) else {
        panic!("a message")
    };
    let event =
        Event::MessageQueued { content, origin, client_ref, tokens: 1_601, run, waits: false };
    let spelled = [
        r#""content":[{"type":"text","text":"look"},"#,
        r#"{"type":"image","media_type":"image/png","data":"aGk="}]"#,
    ];
    comes_back(event, &spelled.concat());
    assert_eq!(image("aGk=").tokens(), IMAGE_TOKENS);
    assert_eq!(&*image("aGk=").shown(), "[image: image/png]");
}

#[test]
fn usage_adds_up_as_far_as_it_is_known() {
    let usage = |n, cost_micros| Usage {
        input_tokens: n,
        output_tokens: 2 * n,
        cached_tokens: 3 * n,
        cache_written_tokens: 4 * n,
        reasoning_tokens: 5 * n,
        cost_micros,
    };
    let sum = |one, two| {
        let mut sum = usage(1, one);
        sum.add(usage(2, two));
        sum
    };
    assert_eq!(sum(Some(7), Some(8)), usage(3, Some(15)));
    assert_eq!(sum(None, Some(8)), usage(3, Some(8)));
    assert_eq!(sum(Some(7), None), usage(3, Some(7)));
    assert_eq!(sum(None, None), usage(3, None));
    assert_eq!(sum(Some(u64::MAX), Some(1)).cost_micros, Some(u64::MAX));
    assert_eq!(usage(3, None).total_tokens(), 9, "input and output, the rest are parts of them");
}

#[test]
fn what_is_asked_and_answered_comes_back_whole_and_is_spelled_so() {
    let ask = |effect| Ask::of(&judgement(effect), ASKS_TWO).unwrap();
    let opened = |ask| Event::WaitOpened { item: item(4), ask };
    let questions =
        r#""ask":{"kind":"question","questions":[{"header":"Wall","question":"Colour?","#;
    comes_back(opened(ask(Effect::Question)), questions);
    comes_back(opened(ask(Effect::Question)), r#"{"label":"Green"}],"multi":true}"#);
    comes_back(opened(ask(Effect::Plan)), r#""ask":{"kind":"plan","plan":"All at once"}"#);
    let settled = |answer| Event::WaitSettled { wait: wait(5), answer, by: by() };
    let answers =
        vec![Given { selected: vec!["Red".into()], text: Some("mauve".into()) }, Given::default()];
    let answered = Answer::Answered { answers, said: Some("red".into()) };
    let spelled =
        r#"{"kind":"answered","answers":[{"selected":["Red"],"text":"mauve"},{}],"said":"#;
    comes_back(settled(answered), spelled);
    let (grants, message) = (Vec::new(), Some("but".into()));
    let approved = Answer::Approved { grants, instead: None, message, always: true };
    comes_back(settled(approved), r#""answer":{"kind":"approved","message":"but","always":true}"#);
}

#[test]
fn what_the_sandbox_stopped_and_by_what_a_call_runs_is_spelled_so() {
    let started = |sandboxed, leave| Event::ToolStarted { item: item(4), sandboxed, leave };
    let head = r#"{"type":"tool_started","item":4,"sandboxed":"#;
    let rows = [
        (started(false, None), r#"false}"#),
        (started(false, Some(Leave::Reads)), r#"false,"leave":{"kind":"reads"}}"#),
        (started(false, Some(Leave::Safe)), r#"false,"leave":{"kind":"safe"}}"#),
        (
            started(true, Some(Leave::Mode { mode: Mode::FullAuto })),
            r#"true,"leave":{"kind":"mode","mode":"full_auto"}}"#,
        ),
        (started(false, Some(Leave::Granted)), r#"false,"leave":{"kind":"granted"}}"#),
        (
            started(false, Some(Leave::Rule { line: "allow \"a b\"".into() })),
            r#"false,"leave":{"kind":"rule","line":"allow \"a b\""}}"#,
        ),
        (started(false, Some(Leave::Person)), r#"false,"leave":{"kind":"person"}}"#),
    ];
    for (event, spelled) in rows {
        comes_back(event, &format!("{head}{spelled}"));
    }
    let result = Box::new(ToolResult { exit_code: Some(1), ..ToolResult::default() });
    let (reason, text) = ("no network".into(), "half\n".into());
    let refused = Event::SandboxRefused { item: item(4), reason, text, result, answerable: true };
    let spelled = [
        r#"{"type":"sandbox_refused","item":4,"reason":"no network","text":"half\n","#,
        r#""result":{"exit_code":1,"duration_ms":0},"answerable":true}"#,
    ];
    comes_back(refused, &spelled.concat());
    let ask = Ask::Outside { reason: "no network".into() };
    let spelled = r#""ask":{"kind":"outside","reason":"no network"}"#;
    comes_back(Event::WaitOpened { item: item(4), ask }, spelled);
    for (says, word) in [(Says::Allow, "allow"), (Says::Ask, "ask"), (Says::Deny, "deny")] {
        let rule = Some(Rule { says, line: "git *".into() });
        let judgement = Box::new(Judgement { rule, ..judgement(Effect::Execute) });
        let (args, answerable, tokens, opaque) = ("{}".into(), true, 1, None);
        let item = item(4);
        let event = Event::ToolProposed { item, args, judgement, answerable, tokens, opaque };
        comes_back(event, &format!(r#""rule":{{"says":"{word}","line":"git *"}}"#));
    }
}

fn comes_back(event: Event, spelled: &str) {
    let log = entries([event]);
    let json = serde_json::to_string(&log[0]).unwrap();
    assert!(json.contains(spelled), "{json}");
    assert!(!json.contains('\n'), "an entry is one line");
    assert_eq!(serde_json::from_str::<LogEntry>(&json).unwrap(), log[0]);
}
