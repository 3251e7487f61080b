//! Values that tests are made of.

use std::sync::Arc;

use polyloop_session::event::{CallOutcome, Origin, Outcome, Purpose, RunOptions, Work};
use polyloop_session::item::{End, Fault, ItemKind, Part, ToolResult, Usage};
use polyloop_session::policy::{Effect, Judgement, Key, Risk};
use polyloop_session::wait::{Ask, Who};
use polyloop_session::{
    CallId, Event, Growth, ItemId, LogEntry, MessageId, Seq, SessionId, Stream, Text, Timestamp,
    Update,
};

use crate::Client;

pub fn session() -> SessionId {
    SessionId::parse("thread-1").unwrap()
}

pub fn who() -> Who {
    Who { via: "loom".into(), name: Some("Ada".into()), from: None }
}

pub fn client() -> Client {
    Client { who: who(), session: None, attached: vec![session()], shown: None }
}

/// Updates as a session sends them: entries are numbered and two seconds apart.
#[derive(Default)]
pub struct Log {
    pub updates: Vec<Update>,
    last: u64,
}

impl Log {
    /// Records an event and gives its place.
    pub fn add(&mut self, event: Event) -> u64 {
        self.last += 1;
        let at = Timestamp(1_736_426_096_000 + 2_000 * self.last as i64);
        let entry = LogEntry { seq: Seq(self.last), at, event };
        self.updates.push(Update::Logged(Arc::new(entry)));
        self.last
    }

    pub fn last_entry(&self) -> Arc<LogEntry> {
        let logged = |update: &Update| match update {
            Update::Logged(entry) => Some(entry.clone()),
            Update::Grew(_) | Update::Raw(_) => None,
        };
        self.updates.iter().rev().find_map(logged).unwrap()
    }

    pub fn grow(&mut self, item: u64, stream: Stream, offset: u64, text: &str) {
        let growth = Growth { item: ItemId(Seq(item)), stream, offset, text: text.into() };
        self.updates.push(Update::Grew(growth));
    }

    /// A turn with a message; gives the place of its start.
    pub fn turn(&mut self, queued: Event) -> u64 {
        let message = MessageId(Seq(self.add(queued)));
        self.add(started(Work::Message { message }))
    }

    /// A call that proposes one tool and ends well; gives the item.
    pub fn tool(&mut self, name: &str, args: &str, effect: Effect) -> u64 {
        let call = self.add(think());
        let item = self.add(item(call, tool(name)));
        self.add(proposed(item, args, effect));
        self.add(answered(call, Some(usage(10, 2))));
        item
    }
}

pub fn queued(text: &str, run: Option<RunOptions>, can_approve: bool) -> Event {
    Event::MessageQueued {
        content: vec![Part::Text { text: text.into() }],
        origin: Origin { who: who(), can_approve, can_answer: can_approve },
        client_ref: Some("req-1".into()),
        tokens: 1,
        run: run.map(Box::new),
        waits: false,
    }
}

pub fn started(work: Work) -> Event {
    Event::TurnStarted { work, agent: None, cwd: None, earlier: Some(4) }
}

pub fn calls(purpose: Purpose) -> Event {
    Event::CallStarted {
        purpose,
        model: "offline".into(),
        tokens_max: 1_000,
        overhead_tokens: None,
        line: None,
    }
}

pub fn think() -> Event {
    calls(Purpose::Think)
}

pub fn answered(call: u64, usage: Option<Usage>) -> Event {
    ended_call(call, CallOutcome::Answered, usage)
}

pub fn ended_call(call: u64, outcome: CallOutcome, usage: Option<Usage>) -> Event {
    Event::CallEnded { call: CallId(Seq(call)), outcome, usage }
}

pub fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, cached_tokens: 1, ..Usage::default() }
}

pub fn item(call: u64, item: ItemKind) -> Event {
    Event::ItemStarted { call: CallId(Seq(call)), block: 0, item }
}

pub fn tool(name: &str) -> ItemKind {
    ItemKind::ToolCall { name: name.into(), call_ref: "t".into(), native: false }
}

pub fn proposed(item: u64, args: impl Into<Text>, effect: Effect) -> Event {
    Event::ToolProposed {
        item: ItemId(Seq(item)),
        args: args.into(),
        judgement: Box::new(judgement(effect)),
        answerable: true,
        tokens: 1,
        opaque: None,
    }
}

pub fn judgement(effect: Effect) -> Judgement {
    Judgement {
        effect,
        safe: false,
        confined: false,
        sandbox: false,
        refusal: None,
        risk: Risk::Medium,
        reason: "It changes files".into(),
        command: vec!["touch".into(), "a".into()],
        patch: None,
        diff: None,
        plan_file: None,
        covers: "touch".into(),
        keys: vec![Key { what: "touch".into(), risk: Risk::Medium }],
        rule: None,
    }
}

pub fn runs(item: u64) -> Event {
    Event::ToolStarted { item: ItemId(Seq(item)), sandboxed: false, leave: None }
}

pub fn completed(item: u64, end: End, text: impl Into<Text>, result: Option<ToolResult>) -> Event {
    Event::ItemCompleted {
        item: ItemId(Seq(item)),
        end,
        text: text.into(),
        opaque: None,
        result: result.map(Box::new),
        tokens: 1,
    }
}

pub fn done(item: u64, text: impl Into<Text>) -> Event {
    completed(item, End::Whole, text, Some(ToolResult::default()))
}

pub fn said(item: u64, text: impl Into<Text>) -> Event {
    completed(item, End::Whole, text, None)
}

pub fn asks(item: u64, ask: Ask) -> Event {
    Event::WaitOpened { item: ItemId(Seq(item)), ask }
}

pub fn ended(outcome: Outcome) -> Event {
    Event::TurnEnded { outcome, usage: usage(50, 9) }
}

pub fn fault() -> Fault {
    Fault::new("529", "The provider is overloaded")
}
