//! What the chat document promises, on small logs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use polyloop_session::event::{Agent, CallOutcome, Origin, Outcome, Purpose, Stop, Work};
use polyloop_session::item::{End, Fault, ItemKind, Part, ToolResult};
use polyloop_session::policy::{Effect, Judgement, Risk};
use polyloop_session::wait::{Answer, Ask as Asks, Choice, Given, Question, Then, Who};
use polyloop_session::{
    CallId, Command, Delivery, Event, ItemId, LogEntry, MessageId, Seq, SessionId, Timestamp,
    Update, WaitId,
};
use serde_json::{Value, json};

use super::Chat;
use super::encode::{DENIED, NOTHING_SAID};
use crate::{Ask, Client, Cursor, Dialect, Frame, Reply, View};

fn session() -> SessionId {
    SessionId::parse("room").unwrap()
}

fn bob() -> Who {
    Who { via: "agentloop".into(), name: Some("bob".into()), from: None }
}

fn queued(text: &str) -> Event {
    let origin = Origin { who: Who::via("chat"), can_approve: false, can_answer: true };
    let content = vec![Part::Text { text: text.into() }];
    Event::MessageQueued { content, origin, client_ref: None, tokens: 1, run: None, waits: false }
}

fn turn(message: u64) -> Event {
    let work = Work::Message { message: MessageId(Seq(message)) };
    Event::TurnStarted { work, agent: None::<Agent>, cwd: None, earlier: None }
}

fn think() -> Event {
    Event::CallStarted {
        purpose: Purpose::Think,
        model: "m".into(),
        tokens_max: 100,
        overhead_tokens: None,
        line: None,
    }
}

fn answered(call: u64) -> Event {
    let call = CallId(Seq(call));
    Event::CallEnded { call, outcome: CallOutcome::Answered, usage: None }
}

fn started(call: u64, item: ItemKind) -> Event {
    Event::ItemStarted { call: CallId(Seq(call)), block: 0, item }
}

fn tool(name: &str) -> ItemKind {
    ItemKind::ToolCall { name: name.into(), call_ref: "t".into(), native: false }
}

fn proposed(item: u64, effect: Effect, args: &str) -> Event {
    let judgement = Box::new(Judgement {
        effect,
        safe: false,
        confined: false,
        sandbox: false,
        refusal: None,
        risk: Risk::Low,
        reason: "".into(),
        command: vec!["touch".into(), "a\nb".into()],
        patch: None,
        diff: None,
        plan_file: None,
        covers: "".into(),
        keys: Vec::new(),
        rule: None,
    });
    let (item, args, answerable) = (ItemId(Seq(item)), args.into(), true);
    Event::ToolProposed { item, args, judgement, answerable, tokens: 1, opaque: None }
}

fn done(item: u64, end: End, text: &str, result: Option<ToolResult>) -> Event {
    let (item, result) = (ItemId(Seq(item)), result.map(Box::new));
    Event::ItemCompleted { item, end, text: text.into(), opaque: None, result, tokens: 1 }
}

fn ended(outcome: Outcome) -> Event {
    Event::TurnEnded { outcome, usage: Default::default() }
}

fn asks(item: u64, ask: Asks) -> Event {
    Event::WaitOpened { item: ItemId(Seq(item)), ask }
}

fn settled(wait: u64, answer: Answer) -> Event {
    Event::WaitSettled { wait: WaitId(Seq(wait)), answer, by: bob() }
}

fn approved() -> Answer {
    Answer::Approved { grants: Vec::new(), instead: None, message: None, always: false }
}

fn colour() -> Asks {
    let option = |label: &str| Choice { label: label.into(), description: None };
    let options = vec![option("Red"), option("Blue")];
    let question = Question { header: None, question: "Colour?".into(), options, multi: false };
    Asks::Question { questions: vec![question] }
}

fn entries(events: Vec<Event>) -> Vec<Arc<LogEntry>> {
    let entry = |(seq, event)| LogEntry { seq: Seq(seq), at: Timestamp(seq as i64), event };
    (1..).zip(events).map(entry).map(Arc::new).collect()
}

fn value(frame: &Frame) -> Value {
    serde_json::from_slice(&frame.text).unwrap()
}

/// A frame without its place.
fn bare(frame: &Frame) -> Value {
    let mut frame = value(frame);
    for place in ["session_id", "seq", "cursor"] {
        frame.as_object_mut().unwrap().remove(place);
    }
    frame
}

fn sent(events: Vec<Event>) -> Vec<Value> {
    let mut view = View::new(&Chat, &session(), Seq::NONE);
    let see = |entry| view.see(&Update::Logged(entry));
    entries(events).into_iter().flat_map(see).map(|frame| bare(&frame)).collect()
}

fn user(message: &str) -> Value {
    json!({"type": "user_message", "message": message})
}

fn agent(message: &str) -> Value {
    json!({"type": "agent_message", "message": message})
}

fn thinking(reasoning: &str) -> Value {
    json!({"type": "agent_thinking", "reasoning": reasoning})
}

/// One turn with reasoning, a remark, a tool that is approved, and an answer in two texts.
fn whole_turn() -> Vec<Event> {
    vec![
        queued(" Hello agent\n"),
        turn(1),
        think(),
        started(3, ItemKind::Reasoning),
        done(4, End::Whole, "Planning tool usage...", None),
        started(3, ItemKind::Text),
        started(3, tool("Search")),
        done(6, End::Whole, "I look it up.", None),
        proposed(7, Effect::Execute, r#"{"query":"weather"}"#),
        answered(3),
        asks(7, Asks::Approval),
        settled(11, approved()),
        Event::ToolStarted { item: ItemId(Seq(7)), sandboxed: false, leave: None },
        done(7, End::Whole, "Sunny, 70F", Some(ToolResult::default())),
        think(),
        started(15, ItemKind::Text),
        started(15, ItemKind::Text),
        done(17, End::Whole, "How can I help?", None),
        done(16, End::Whole, "Hi!", None),
        answered(15),
        ended(Outcome::Completed),
    ]
}

/// The examples of the document, in its order, are what such a turn sends.
#[test]
fn a_turn_is_told_in_order_and_in_the_documents_shapes() {
    let want = vec![
        user("Hello agent"),
        thinking("Planning tool usage..."),
        thinking("I look it up."),
        json!({"type": "tool_call", "tool_name": "Search",
            "tool_args": "{\"query\":\"weather\"}"}),
        thinking("touch a…: approved by bob (agentloop)"),
        json!({"type": "tool_result", "tool_name": "Search", "result": "Sunny, 70F",
            "success": true}),
        agent("Hi!\n\nHow can I help?"),
    ];
    assert_eq!(sent(whole_turn()), want);
}

#[test]
fn messages_that_wait_are_shown_when_their_turn_begins() {
    let said = |text| vec![started(0, ItemKind::Text), done(0, End::Whole, text, None)];
    let got = sent(vec![
        queued("one"),
        turn(1),
        queued("two"),
        queued("three"),
        said("ignored: of no call").remove(0),
        ended(Outcome::Completed),
        turn(3),
        Event::MessageDropped { message: MessageId(Seq(4)), by: bob() },
        ended(Outcome::Interrupted { reason: "enough".into() }),
    ]);
    let want = [
        user("one"),
        agent(NOTHING_SAID),
        user("two"),
        json!({"type": "error", "error": "A message that waited was cancelled by bob (agentloop)"}),
        json!({"type": "error", "error": "Interrupted: enough"}),
    ];
    assert_eq!(got, want);
}

#[test]
fn a_question_is_an_agent_message_and_its_answer_a_user_message() {
    let asked = |answer: Answer| {
        sent(vec![
            queued("go"),
            turn(1),
            think(),
            started(3, tool("ask_user")),
            proposed(4, Effect::Question, "{}"),
            answered(3),
            asks(4, colour()),
            settled(7, answer),
            done(4, End::Whole, "The user answered: Blue", Some(ToolResult::default())),
            ended(Outcome::Completed),
        ])
    };
    let given = |label: &str| Given { selected: vec![label.into()], text: None };
    let rows = [
        (Answer::Answered { answers: vec![given("Blue")], said: Some(" 2 ".into()) }, "2"),
        (Answer::Answered { answers: vec![given("Blue")], said: None }, "Blue"),
        (Answer::Denied { message: "not now".into(), then: Then::Continue }, "not now"),
        (approved(), "Approved"),
    ];
    for (answer, said) in rows {
        let want = [user("go"), agent("Colour?\n1. Red\n2. Blue"), user(said), agent(NOTHING_SAID)];
        assert_eq!(asked(answer), want);
    }
}

#[test]
fn a_tool_succeeds_only_if_it_ran_and_said_so() {
    let result = |code| Some(ToolResult { exit_code: code, ..ToolResult::default() });
    let seen = ToolResult { seen: Some("because".into()), ..ToolResult::default() };
    let rows = [
        (End::Whole, result(None), true, "text"),
        (End::Whole, result(Some(0)), true, "text"),
        (End::Whole, result(Some(1)), false, "text"),
        (End::Denied, result(None), false, "text"),
        (End::Interrupted, Some(seen), false, "because"),
        (End::Failed, None, false, "text"),
    ];
    for (end, result, success, shown) in rows {
        let got = sent(vec![
            turn(9),
            think(),
            started(2, tool("bash")),
            proposed(3, Effect::Execute, "{}"),
            answered(2),
            done(3, end, "text", result),
        ]);
        let want = json!({"type": "tool_result", "tool_name": "bash", "result": shown,
            "success": success});
        assert_eq!(got.last(), Some(&want), "{end:?}");
    }
}

#[test]
fn failures_and_compactions() {
    let compacts = |outcome| {
        let work = Work::Compact { by: bob() };
        let start = Event::TurnStarted { work, agent: None, cwd: None, earlier: None };
        let call = Event::CallStarted {
            purpose: Purpose::Summarise,
            model: "m".into(),
            tokens_max: 100,
            overhead_tokens: None,
            line: None,
        };
        let text = [started(2, ItemKind::Text), done(3, End::Whole, "summary", None)];
        let mut events = vec![start, call];
        events.extend(text);
        events.extend([answered(2), ended(outcome)]);
        sent(events)
    };
    let fault = Fault::new("529", "The provider is overloaded");
    let error = json!({"type": "error", "error": "The provider is overloaded"});
    assert_eq!(compacts(Outcome::Completed), Vec::<Value>::new());
    assert_eq!(compacts(Outcome::Failed { fault: fault.clone() }), std::slice::from_ref(&error));
    let text = [started(3, ItemKind::Text), done(4, End::Discarded, "half an ans", None)];
    let failed = CallOutcome::Failed { fault: fault.clone() };
    let mut events = vec![queued("x"), turn(1), think()];
    events.extend(text);
    events.push(Event::CallEnded { call: CallId(Seq(3)), outcome: failed, usage: None });
    events.push(ended(Outcome::Failed { fault }));
    assert_eq!(sent(events), [user("x"), error]);
    let stopped = Event::TurnStopping { reason: Stop::Denied { wait: WaitId(Seq(3)) } };
    let got = sent(vec![queued("x"), turn(1), stopped, ended(Outcome::Completed)]);
    assert_eq!(got, [user("x"), agent(DENIED)]);
}

/// Attaching after every entry, from every frame: nothing is lost or doubled.
#[test]
fn whoever_comes_back_misses_nothing() {
    let log = entries(whole_turn());
    let mut view = View::new(&Chat, &session(), Seq::NONE);
    let all: Vec<Frame> =
        log.iter().flat_map(|entry| view.see(&Update::Logged(entry.clone()))).collect();
    for (at, left) in all.iter().enumerate() {
        let place = value(left);
        assert_eq!(place["session_id"], "room");
        let cursor = place["cursor"].as_str().map(str::to_string);
        let cursor = Cursor::parse(&cursor.unwrap_or(place["seq"].to_string())).unwrap();
        let mut view = View::new(&Chat, &session(), Seq(1));
        view.recall(&log[0]);
        let mut got = Vec::new();
        for entry in &log[1..] {
            match entry.seq <= cursor.seq {
                true => view.skip(entry),
                false => {
                    let parts = if entry.seq == cursor.seq.next() { cursor.parts } else { 0 };
                    got.extend(view.see_entry(entry, parts));
                }
            }
        }
        let got: Vec<Value> = got.iter().map(value).collect();
        let want: Vec<Value> = all[at + 1..].iter().map(value).collect();
        assert_eq!(got, want, "from {cursor}");
    }
}

#[test]
fn who_attaches_in_a_turn_gets_its_message_and_what_is_asked() {
    let log = entries(vec![
        queued("go"),
        turn(1),
        think(),
        started(3, tool("exit_plan_mode")),
        proposed(4, Effect::Plan, "{}"),
        answered(3),
        asks(4, Asks::Plan { plan: "1. Do it".into(), path: None }),
    ]);
    let mut view = View::new(&Chat, &session(), Seq::NONE);
    log.iter().for_each(|entry| view.skip(entry));
    let opening: Vec<Value> = view.opening().iter().map(bare).collect();
    assert_eq!(opening, [user("go")]);
    let pending = view.pending();
    assert_eq!(pending.iter().map(bare).collect::<Vec<_>>(), [agent("1. Do it")]);
    assert_eq!(pending[0].presents, Some(WaitId(Seq(7))));
    assert!(view.pending().is_empty(), "it is asked twice");
}

fn client() -> Client {
    let (session, attached) = (None, Vec::new());
    Client { who: Who::via("chat"), session, attached, shown: None }
}

#[test]
fn a_chat_is_a_message_to_its_session() {
    let frame = json!({"type": "chat", "message": " Hello agent ", "session_id": " s-1 ", "x": 1});
    let asked = Chat.decode(&frame.to_string(), &client()).unwrap();
    assert_eq!(asked.session, SessionId::parse("s-1").ok());
    let Ask::Command(Command::Send(send)) = asked.ask else { panic!("{asked:?}") };
    assert_eq!(send.content, [Part::Text { text: "Hello agent".into() }]);
    assert_eq!((send.origin.can_approve, send.origin.can_answer), (false, true));
    assert_eq!(send.delivery, Delivery::Answer { consents: false });
    for none in [json!(null), json!(""), json!("  ")] {
        let frame = json!({"type": "chat", "message": "Yes!", "session_id": none});
        let asked = Chat.decode(&frame.to_string(), &client()).unwrap();
        assert_eq!(asked.session, None);
        let Ask::Command(Command::Send(send)) = asked.ask else { panic!("{asked:?}") };
        assert_eq!(send.delivery, Delivery::Answer { consents: true });
    }
}

#[test]
fn what_is_wrong_is_said_in_the_exact_words() {
    let rows = [
        ("nonsense", "Invalid JSON: expected ident at line 1 column 2"),
        ("[]", "Invalid JSON: a message is an object with a `type`"),
        ("{}", "Unknown message type: None"),
        (r#"{"type":null}"#, "Unknown message type: null"),
        (r#"{"type":["chat"]}"#, r#"Unknown message type: ["chat"]"#),
        (r#"{"type":"Chat","message":5}"#, "Unknown message type: Chat"),
        (r#"{"type":"chat"}"#, "Field 'message' must be a string"),
        (r#"{"type":"chat","message":null}"#, "Field 'message' must be a string"),
        (r#"{"type":"chat","message":" \n"}"#, "Empty message received"),
        (
            r#"{"type":"chat","message":"x","session_id":5}"#,
            "Field 'session_id' must be a string or null",
        ),
    ];
    for (frame, want) in rows {
        let told = Chat.decode(frame, &client()).unwrap_err();
        assert_eq!((told.message.as_str(), told.error.as_str()), (want, want), "{frame}");
        let reply = Chat.reply(None, 1, &Reply::Complaint(told));
        assert_eq!(value(&reply), json!({"type": "error", "error": want}));
    }
    let bad = r#"{"type":"chat","message":"x","session_id":"../x"}"#;
    let told = Chat.decode(bad, &client()).unwrap_err();
    assert!(told.error.starts_with("Field 'session_id' is not valid. "), "{told:?}");
    let reply = value(&Chat.reply(None, 1, &Reply::SessionActive));
    assert_eq!(reply["type"], "error");
}

#[cfg(feature = "schema")]
#[test]
fn every_message_has_a_schema() {
    let schemas = super::schemas();
    assert_eq!(schemas.len(), 7);
    for (name, schema) in schemas {
        let (_, kind) = name.rsplit_once('.').unwrap();
        let schema = schema.to_value();
        assert_eq!(schema["properties"]["type"]["const"], kind, "{schema}");
        assert!(schema["required"].as_array().unwrap().contains(&json!("type")), "{schema}");
    }
}
