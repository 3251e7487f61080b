//! Values that tests are made of.

use std::sync::Arc;

use polyloop_session::event::{CallOutcome, Origin, Outcome, Purpose, Work};
use polyloop_session::item::{End, ItemKind, Part, ToolResult, Usage};
use polyloop_session::policy::{Effect, Judgement, Key, Risk};
use polyloop_session::wait::{Answer, Ask, Who};
use polyloop_session::{
    CallId, Event, Growth, ItemId, LogEntry, MessageId, Seq, SessionId, Stream, Timestamp, Update,
    WaitId,
};
use serde_json::Value;

use crate::unified::Unified;
use crate::{Client, Frame, Own, View};

pub fn session() -> SessionId {
    SessionId::parse("s").unwrap()
}

pub fn who() -> Who {
    Who { via: "unified".into(), name: Some("Ada".into()), from: None }
}

pub fn client(session: Option<SessionId>) -> Client {
    Client { who: who(), session, attached: Vec::new(), shown: None }
}

pub fn json(frame: &Frame) -> Value {
    serde_json::from_slice(&frame.text)
        .unwrap_or_else(|error| panic!("{error} in {}", String::from_utf8_lossy(&frame.text)))
}

/// A message without its place.
pub fn placeless(frame: &Value) -> Value {
    let mut frame = frame.clone();
    let fields = frame.as_object_mut().unwrap();
    assert_eq!(fields.remove("session_id"), Some("s".into()));
    assert!(fields.remove("seq").is_some_and(|seq| seq.is_u64()));
    fields.remove("cursor");
    frame
}

/// A log as it is written, with the growth between its entries.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub updates: Vec<Update>,
    head: u64,
    grown: std::collections::BTreeMap<(ItemId, Stream), u64>,
}

impl Log {
    pub fn of(events: impl IntoIterator<Item = Event>) -> Log {
        let mut log = Log::default();
        events.into_iter().for_each(|event| {
            log.add(event);
        });
        log
    }

    /// A turn that somebody's message began, with its first call; gives the call.
    pub fn begin(&mut self, text: &str) -> u64 {
        let message = MessageId(Seq(self.add(queued(text, None))));
        self.add(turn(Work::Message { message }));
        self.add(calling(Purpose::Think))
    }

    pub fn add(&mut self, event: Event) -> u64 {
        self.head += 1;
        let at = Timestamp(1_736_426_096_000 + 1_000 * self.head as i64);
        let entry = LogEntry { seq: Seq(self.head), at, event };
        self.updates.push(Update::Logged(Arc::new(entry)));
        self.head
    }

    pub fn grow(&mut self, item: u64, stream: Stream, text: &str) {
        let item = ItemId(Seq(item));
        let grown = self.grown.entry((item, stream)).or_default();
        let offset = *grown;
        *grown += text.len() as u64;
        self.updates.push(Update::Grew(Growth { item, stream, offset, text: text.into() }));
    }

    /// The messages by update, of a client that never leaves.
    pub fn frames(&self) -> Vec<Vec<Value>> {
        let mut view = View::new(&Unified, &session(), Seq::NONE);
        self.updates.iter().map(|update| told(view.see(update))).collect()
    }

    /// All messages, without their places.
    pub fn told(&self) -> Vec<Value> {
        self.frames().iter().flatten().map(placeless).collect()
    }

    /// The messages of the last update, without their places.
    pub fn last(&self) -> Vec<Value> {
        self.frames().last().unwrap().iter().map(placeless).collect()
    }
}

/// Frames as a connection that chose no words of its own reads them.
pub fn told(frames: Vec<Frame>) -> Vec<Value> {
    let mut own = Own::default();
    frames.into_iter().map(|frame| json(&own.finish(frame))).collect()
}

pub fn queued(text: &str, client_ref: Option<&str>) -> Event {
    let origin = Origin { who: who(), can_approve: true, can_answer: true };
    let content = vec![Part::Text { text: text.into() }];
    Event::MessageQueued {
        content,
        origin,
        client_ref: client_ref.map(Into::into),
        tokens: 1,
        run: None,
        waits: false,
    }
}

/// A message whose turn cannot begin at once.
pub fn waiting(text: &str, client_ref: Option<&str>) -> Event {
    match queued(text, client_ref) {
        Event::MessageQueued { content, origin, client_ref, tokens, run, .. } => {
            Event::MessageQueued { content, origin, client_ref, tokens, run, waits: true }
        }
        other => other,
    }
}

pub fn turn(work: Work) -> Event {
    Event::TurnStarted { work, agent: None, cwd: Some("/project".into()), earlier: None }
}

pub fn calling(purpose: Purpose) -> Event {
    Event::CallStarted {
        purpose,
        model: "offline".into(),
        tokens_max: 200_000,
        overhead_tokens: None,
        line: None,
    }
}

pub fn call_ended(call: u64, usage: Option<Usage>) -> Event {
    Event::CallEnded { call: CallId(Seq(call)), outcome: CallOutcome::Answered, usage }
}

pub fn started(call: u64, item: ItemKind) -> Event {
    Event::ItemStarted { call: CallId(Seq(call)), block: 0, item }
}

pub fn tool(name: &str) -> ItemKind {
    ItemKind::ToolCall { name: name.into(), call_ref: "t1".into(), native: false }
}

pub fn proposed(item: u64, args: &str, judgement: Judgement) -> Event {
    Event::ToolProposed {
        item: ItemId(Seq(item)),
        args: args.into(),
        judgement: Box::new(judgement),
        answerable: true,
        tokens: 1,
        opaque: None,
    }
}

pub fn runs(item: u64) -> Event {
    Event::ToolStarted { item: ItemId(Seq(item)), sandboxed: false, leave: None }
}

pub fn completed(item: u64, end: End, text: &str, result: Option<ToolResult>) -> Event {
    Event::ItemCompleted {
        item: ItemId(Seq(item)),
        end,
        text: text.into(),
        opaque: None,
        result: result.map(Box::new),
        tokens: 1,
    }
}

pub fn exited(code: i32) -> Option<ToolResult> {
    Some(ToolResult { exit_code: Some(code), ..ToolResult::default() })
}

pub fn opened(item: u64, ask: Ask) -> Event {
    Event::WaitOpened { item: ItemId(Seq(item)), ask }
}

pub fn settled(wait: u64, answer: Answer) -> Event {
    Event::WaitSettled { wait: WaitId(Seq(wait)), answer, by: who() }
}

pub fn approved(message: Option<&str>, always: bool) -> Answer {
    let message = message.map(Into::into);
    Answer::Approved { grants: Vec::new(), instead: None, message, always }
}

pub fn ended(outcome: Outcome) -> Event {
    Event::TurnEnded { outcome, usage: usage(1_000, 500, 200) }
}

pub fn usage(input_tokens: u64, output_tokens: u64, cached_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, cached_tokens, ..Usage::default() }
}

pub fn judgement(effect: Effect) -> Judgement {
    Judgement {
        effect,
        safe: false,
        confined: false,
        sandbox: false,
        refusal: None,
        risk: Risk::Medium,
        reason: "Delete temporary cache files".into(),
        command: ["rm", "-rf", "/tmp/cache"].map(Into::into).to_vec(),
        patch: None,
        diff: None,
        plan_file: None,
        covers: "rm -rf /tmp/cache".into(),
        keys: vec![Key { what: "rm -rf /tmp/cache".into(), risk: Risk::Medium }],
        rule: None,
    }
}

/// A turn with one tool call, up to its proposal; gives the item.
pub fn call_of(name: &str, args: &str, judgement: Judgement) -> (Log, u64) {
    let mut log = Log::default();
    let call = log.begin("Go");
    let item = log.add(started(call, tool(name)));
    log.add(proposed(item, args, judgement));
    log.add(call_ended(call, None));
    (log, item)
}
