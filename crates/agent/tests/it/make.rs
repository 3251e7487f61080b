//! Values that tests are made of.

use polyloop_session::command::{Send, WaitReply};
use polyloop_session::event::Origin;
use polyloop_session::item::Part;
use polyloop_session::wait::{Then, Who};
use polyloop_session::{
    Command, Delivery, Event, LogEntry, Seq, SessionId, State, Timestamp, WaitRef,
};

pub fn who() -> Who {
    Who::via("test")
}

pub fn id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

pub fn origin() -> Origin {
    Origin { who: who(), can_approve: true, can_answer: true }
}

pub fn parts(text: &str) -> Vec<Part> {
    vec![Part::Text { text: text.into() }]
}

/// A message as a client sends it that does nothing special.
pub fn message(text: &str) -> Send {
    Send {
        content: parts(text),
        origin: origin(),
        client_ref: None,
        delivery: Delivery::Queue,
        tokens: (text.len() / 4) as u64,
        run: None,
    }
}

pub fn send(text: &str) -> Command {
    Command::Send(Box::new(message(text)))
}

pub fn deliver(text: &str, delivery: Delivery) -> Command {
    Command::Send(Box::new(Send { delivery, ..message(text) }))
}

pub fn queued(text: &str) -> Event {
    let (content, origin) = (parts(text), origin());
    Event::MessageQueued { content, origin, client_ref: None, tokens: 1, run: None, waits: false }
}

pub fn entry(seq: u64, event: Event) -> LogEntry {
    LogEntry { seq: Seq(seq), at: Timestamp(1_000 + seq as i64), event }
}

pub fn interrupt() -> Command {
    Command::Interrupt { turn: None, reason: "enough".into(), by: who() }
}

pub fn settle(wait: WaitRef, reply: WaitReply) -> Command {
    Command::Settle { wait, reply, by: who() }
}

pub fn approve() -> WaitReply {
    WaitReply::Approve { message: None }
}

pub fn deny(then: Then) -> WaitReply {
    WaitReply::Deny { message: None, then }
}

pub fn fold<'a>(entries: impl IntoIterator<Item = &'a LogEntry>) -> State {
    let mut state = State::default();
    entries.into_iter().for_each(|entry| state.apply(entry));
    state
}
