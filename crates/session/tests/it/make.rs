//! Values that tests are made of.

use polyloop_session::budget::Budget;
use polyloop_session::command::{Send, WaitReply};
use polyloop_session::context::{Overhead, Strategy, WindowSize};
use polyloop_session::event::{Event, Origin, Settings};
use polyloop_session::item::{ItemKind, Part};
use polyloop_session::policy::{Effect, Judgement, Key, Mode, Risk};
use polyloop_session::strategy::bounds::Bounds;
use polyloop_session::wait::Who;
use polyloop_session::{
    CallId, Command, Delivery, ItemId, Limits, LogEntry, MessageId, Seq, State, Text, Timestamp,
    TurnId, WaitId,
};

pub const LIMITS: Limits = Limits {
    queued_messages_max: 3,
    tokens_max: 1_000,
    window: WindowSize::Known,
    strategy: Strategy::Threshold,
    bypass_allowed: true,
    retries_max: 4,
    compact_at: 800,
    overhead: Overhead { instructions: 0, tools: 0 },
    budget: Budget { cost_micros_max: None, tokens_max: None },
    bounds: Bounds::DEFAULT,
};

/// Arguments that ask one question, and propose a plan: which of them the judgement says.
pub const ASKS_ONE: &str = r#"{"plan":"First this, then that","questions":[{"question":"Colour?",
    "options":[{"label":"Red"},{"label":"Blue","description":"dark"}]}]}"#;
pub const ASKS_TWO: &str = r#"{"plan":"All at once","questions":[
    {"header":"Wall","question":"Colour?","options":[{"label":"Red"},{"label":"Blue"}]},
    {"question":"Others?","multiSelect":true,"options":[{"label":"Red"},{"label":"Green"}]}]}"#;

pub fn who() -> Who {
    Who::via("test")
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

pub fn message(seq: u64) -> MessageId {
    MessageId(Seq(seq))
}

pub fn turn(seq: u64) -> TurnId {
    TurnId(Seq(seq))
}

pub fn parts(text: &str) -> Vec<Part> {
    vec![Part::Text { text: text.into() }]
}

pub fn image(data: &str) -> Part {
    Part::Image { media_type: "image/png".into(), data: data.into() }
}

/// What people are shown of a message.
pub fn spoken(content: &[Part]) -> String {
    let texts: Vec<Text> = content.iter().map(Part::shown).collect();
    texts.join("\n")
}

pub fn settings(mode: Mode, calls_max: u32) -> Settings {
    Settings { cwd: "/w".into(), model: "m".into(), mode, calls_max, ..Settings::default() }
}

pub fn created(mode: Mode, calls_max: u32) -> Event {
    Event::SessionCreated { settings: settings(mode, calls_max), by: who() }
}

pub fn origin() -> Origin {
    Origin { who: who(), can_approve: true, can_answer: false }
}

pub fn interrupt() -> Command {
    Command::Interrupt { turn: None, reason: "enough".into(), by: who() }
}

/// A yes without a word.
pub fn approve() -> WaitReply {
    WaitReply::Approve { message: None }
}

/// A yes with words: the answer to a question.
pub fn said(text: &str) -> WaitReply {
    WaitReply::Approve { message: Some(text.into()) }
}

pub fn form(index: u64, words: &[&str]) -> WaitReply {
    let words = words.iter().map(|word| Text::from(*word)).collect();
    WaitReply::Answer { answers: vec![(index, words)] }
}

pub fn send(text: &str) -> Command {
    sent(text, Delivery::Queue)
}

pub fn sent(text: &str, delivery: Delivery) -> Command {
    let (content, origin) = (parts(text), origin());
    let (client_ref, tokens, run) = (None, 2, None);
    Command::Send(Box::new(Send { content, origin, client_ref, delivery, tokens, run }))
}

pub fn queued(text: &str, tokens: u64) -> Event {
    let (content, origin) = (parts(text), origin());
    Event::MessageQueued { content, origin, client_ref: None, tokens, run: None, waits: false }
}

pub fn tool(name: &str, call_ref: &str) -> ItemKind {
    ItemKind::ToolCall { name: name.into(), call_ref: call_ref.into(), native: false }
}

/// A call that every asking mode asks about.
pub fn judgement(effect: Effect) -> Judgement {
    Judgement {
        effect,
        safe: false,
        confined: false,
        sandbox: false,
        refusal: None,
        risk: Risk::Medium,
        reason: "why".into(),
        command: vec!["touch".into(), "a".into()],
        patch: None,
        diff: None,
        plan_file: None,
        covers: "touch".into(),
        keys: vec![key("touch")],
        rule: None,
    }
}

pub fn key(what: &str) -> Key {
    Key { what: Text::from(what), risk: Risk::Medium }
}

/// Numbers events from 1, as a log does.
pub fn entries(events: impl IntoIterator<Item = Event>) -> Vec<LogEntry> {
    let numbered = (1..).zip(events);
    numbered
        .map(|(seq, event)| LogEntry { seq: Seq(seq), at: Timestamp(seq as i64), event })
        .collect()
}

pub fn fold<'a>(log: impl IntoIterator<Item = &'a LogEntry>) -> State {
    let mut state = State::default();
    for entry in log {
        state.apply(entry);
    }
    state
}
