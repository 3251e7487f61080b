//! Values that tests are made of.

use std::sync::Arc;

use polyloop_dialects::agentloop::Agentloop;
use polyloop_dialects::{Client, Dialect};
use polyloop_session::event::{CallOutcome, Origin, Purpose, Settings, Work};
use polyloop_session::item::{End, ItemKind, Part, ToolResult, Usage};
use polyloop_session::policy::{Effect, Judgement, Key, Mode, Risk};
use polyloop_session::wait::{Ask, Who};
use polyloop_session::{
    CallId, Event, ItemId, LogEntry, MessageId, Seq, Timestamp, Update, WaitId,
};

use super::world::session;

pub fn who() -> Who {
    Who::via("agentloop")
}

/// A client of a dialect that is attached and was shown no request.
pub fn client_of(dialect: &dyn Dialect) -> Client {
    let who = Who::via(dialect.name());
    Client { who, session: Some(session()), attached: vec![session()], shown: None }
}

pub fn client() -> Client {
    client_of(&Agentloop)
}

pub fn call(seq: u64) -> CallId {
    CallId(Seq(seq))
}

pub fn item(seq: u64) -> ItemId {
    ItemId(Seq(seq))
}

pub fn wait(seq: u64) -> WaitId {
    WaitId(Seq(seq))
}

pub fn settings(mode: Mode) -> Settings {
    let (cwd, model) = ("/project".into(), "offline".into());
    Settings { cwd, model, mode, calls_max: 50, ..Settings::default() }
}

pub fn parts(text: &str) -> Vec<Part> {
    vec![Part::Text { text: text.into() }]
}

pub fn queued(text: &str) -> Event {
    let content = parts(text);
    Event::MessageQueued {
        content,
        origin: origin(),
        client_ref: None,
        tokens: 1,
        run: None,
        waits: false,
    }
}

pub fn origin() -> Origin {
    Origin { who: who(), can_approve: true, can_answer: true }
}

pub fn turn_started(work: Work) -> Event {
    Event::TurnStarted { work, agent: None, cwd: Some("/project".into()), earlier: Some(0) }
}

/// A turn whose first call, entry 3, is open.
pub fn begun() -> Vec<Event> {
    vec![
        queued("Hello"),
        turn_started(Work::Message { message: MessageId(Seq(1)) }),
        Event::CallStarted {
            purpose: Purpose::Think,
            model: "offline".into(),
            tokens_max: 1_000,
            overhead_tokens: None,
            line: None,
        },
    ]
}

pub fn started(of: u64, kind: ItemKind) -> Event {
    Event::ItemStarted { call: call(of), block: 0, item: kind }
}

pub fn completed(of: u64, text: &str, result: Option<ToolResult>) -> Event {
    Event::ItemCompleted {
        item: item(of),
        end: End::Whole,
        text: text.into(),
        opaque: None,
        result: result.map(Box::new),
        tokens: 1,
    }
}

/// The call ended well.
pub fn answered(of: u64) -> Event {
    Event::CallEnded { call: call(of), outcome: CallOutcome::Answered, usage: None }
}

pub fn tool(name: &str) -> ItemKind {
    ItemKind::ToolCall { name: name.into(), call_ref: "t1".into(), native: false }
}

/// A call of the model's own shell.
pub fn native_shell() -> ItemKind {
    ItemKind::ToolCall { name: "bash".into(), call_ref: "t1".into(), native: true }
}

pub fn proposed(of: u64, args: &str, judgement: Judgement) -> Event {
    let judgement = Box::new(judgement);
    Event::ToolProposed {
        item: item(of),
        args: args.into(),
        judgement,
        answerable: true,
        tokens: 1,
        opaque: None,
    }
}

pub fn waits(of: u64) -> Event {
    Event::WaitOpened { item: item(of), ask: Ask::Approval }
}

/// A call that every asking mode asks about.
pub fn judgement(effect: Effect, command: &[&str], patch: Option<&str>) -> Judgement {
    Judgement {
        effect,
        safe: false,
        confined: false,
        sandbox: false,
        refusal: None,
        risk: Risk::Medium,
        reason: "It changes files".into(),
        command: command.iter().map(|word| (*word).into()).collect(),
        patch: patch.map(Into::into),
        diff: None,
        plan_file: None,
        covers: "touch".into(),
        keys: vec![Key { what: "touch".into(), risk: Risk::Medium }],
        rule: None,
    }
}

pub fn usage() -> Usage {
    Usage { input_tokens: 20, output_tokens: 3, cached_tokens: 10, ..Usage::default() }
}

/// Numbers events from 1, as a log does, a second apart.
pub fn entries(events: impl IntoIterator<Item = Event>) -> Vec<LogEntry> {
    let numbered = (1..).zip(events);
    let entry = |(seq, event): (u64, Event)| LogEntry {
        seq: Seq(seq),
        at: Timestamp(1_736_426_096_000 + 1_000 * seq as i64),
        event,
    };
    numbered.map(entry).collect()
}

pub fn updates(events: impl IntoIterator<Item = Event>) -> Vec<Update> {
    entries(events).into_iter().map(|entry| Update::Logged(Arc::new(entry))).collect()
}
