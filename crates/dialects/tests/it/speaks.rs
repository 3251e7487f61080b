//! How a client of each dialect reads what it is sent, as the documents tell it to.

use std::collections::BTreeMap;
use std::sync::Arc;

use polyloop_dialects::{Cursor, Dialect, detect};
use polyloop_session::event::Adopted;
use polyloop_session::state::{Queued, Turn};
use polyloop_session::{Event, ItemId, Live, LogEntry, Seq, State, Stream, WaitId};
use serde_json::{Value, json};

use super::world::Sent;

/// Every dialect that the server speaks.
pub fn all() -> &'static [&'static dyn Dialect] {
    detect::ALL
}

/// A stream of characters: an item, and which of its streams.
pub type Key = (ItemId, Stream);

/// What a client has made of the frames it was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// What was streamed, put together.
    pub texts: BTreeMap<Key, String>,
    /// All other messages, in order.
    pub others: Vec<Value>,
}

/// A client of a dialect, which knows the session's log better than it lets on.
pub struct Reader {
    pub dialect: &'static dyn Dialect,
    /// The item that an entry completed: where a message is sent whole it has no other name.
    completed: BTreeMap<u64, ItemId>,
}

impl Reader {
    pub fn new(dialect: &'static dyn Dialect, log: &[Arc<LogEntry>]) -> Reader {
        let completed = log.iter().filter_map(|entry| match &entry.event {
            Event::ItemCompleted { item, .. } => Some((entry.seq.0, *item)),
            _ => None,
        });
        Reader { dialect, completed: completed.collect() }
    }

    pub fn seen<'f>(&self, frames: impl IntoIterator<Item = &'f Sent>) -> Seen {
        let mut seen = Seen::default();
        frames.into_iter().for_each(|frame| self.take(frame, &mut seen));
        seen
    }

    pub fn take(&self, frame: &Sent, seen: &mut Seen) {
        let (text, other) = self.read(frame);
        if let Some((key, text)) = text {
            seen.texts.entry(key).or_default().push_str(&text);
        }
        seen.others.extend(other);
    }

    /// What a frame adds to a stream, and what else it says.
    pub fn read(&self, frame: &Sent) -> (Option<(Key, String)>, Option<Value>) {
        let text = match self.dialect.name() {
            "agentloop" => agentloop_text(frame),
            "unified" => return self.unified(frame),
            "loom" => loom_text(frame),
            "chat" => None, // Nothing is streamed.
            other => panic!("nobody knows how a client of {other} reads"),
        };
        match text {
            Some(text) => (Some(text), None),
            None => (None, Some(placeless(frame))),
        }
    }

    /// A message's last increment is also its end.
    fn unified(&self, frame: &Value) -> (Option<(Key, String)>, Option<Value>) {
        let field = match (&frame["type"], &frame["is_streaming"]) {
            (Value::String(kind), _) if kind == "assistant_message" => "text",
            (Value::String(kind), _) if kind == "assistant_reasoning" => "text",
            (Value::String(kind), Value::Bool(true)) if kind == "command_output" => "output",
            _ => return (None, Some(placeless(frame))),
        };
        let (id, text) = (frame["id"].as_str().unwrap(), frame[field].as_str().unwrap());
        // What is thought is streamed; a sentence about it is none of its characters.
        let whole = || self.unified_whole(id).filter(|_| frame["type"] == "assistant_message");
        let key = unified_place(id).or_else(whole);
        let mut other = placeless(frame);
        other[field] = "".into();
        let text = key.map(|key| (key, text.to_string())).filter(|(_, text)| !text.is_empty());
        // What came out of another program's file is whole, and of no item of ours.
        let adopted = key.is_none();
        let other = match adopted {
            true => Some(placeless(frame)),
            false => (frame["is_final"] == true).then_some(other),
        };
        (text, other)
    }

    fn unified_whole(&self, id: &str) -> Option<Key> {
        let (seq, _) = id.strip_prefix("evt-")?.split_once('-')?;
        let item = self.completed.get(&seq.parse().ok()?)?;
        Some((*item, Stream::Text))
    }
}

fn agentloop_text(frame: &Value) -> Option<(Key, String)> {
    let payload = &frame["payload"];
    if frame["type"] != "response_item" || payload["role"] != "assistant" {
        return None;
    }
    let id = payload["id"].as_str()?.strip_prefix("msg_")?.parse().ok()?;
    let text = payload["content"][0]["text"].as_str()?;
    Some(((ItemId(Seq(id)), Stream::Text), text.to_string()))
}

/// Chunks of a stream have no name of their own: they belong to what their node is doing.
fn loom_text(frame: &Sent) -> Option<(Key, String)> {
    let event = &frame["event"];
    let (stream, field) = match event["type"].as_str()? {
        "message_chunk" | "thought_chunk" => (Stream::Text, "content"),
        "tool_call_chunk" => (Stream::Args, "arguments_delta"),
        "tool_output" => (Stream::Output, "content"),
        _ => return None,
    };
    // What an opinion is followed by is none of its characters.
    let parts = event["content"] == "\n\n" && event["id"] == "think_evaluate";
    let item = frame.item.filter(|_| !parts)?;
    Some(((item, stream), event[field].as_str()?.to_string()))
}

/// Characters are named by their place: `evt-12t57`.
fn unified_place(id: &str) -> Option<Key> {
    let place = id.strip_prefix("evt-")?;
    let at = place.find(|c: char| !c.is_ascii_digit())?;
    let stream = match &place[at..=at] {
        "t" => Stream::Text,
        "o" => Stream::Output,
        _ => return None,
    };
    Some((ItemId(Seq(place[..at].parse().ok()?)), stream))
}

/// A message without its place and its number, which differ when it is sent again.
pub fn placeless(frame: &Value) -> Value {
    let mut frame = frame.clone();
    let fields = frame.as_object_mut().unwrap();
    for place in ["seq", "cursor", "event_id"] {
        fields.remove(place);
    }
    if let Some(event) = fields.get_mut("event").and_then(Value::as_object_mut) {
        event.remove("event_id");
    }
    frame
}

/// The run that a frame is of, and the number it has in the run's stream.
pub fn number(frame: &Value) -> Option<(String, u64)> {
    let number = frame["event"]["event_id"].as_u64().or(frame["event_id"].as_u64())?;
    Some((frame["id"].as_str()?.to_string(), number))
}

pub fn cursor_of(frame: &Value) -> Cursor {
    let text = frame["cursor"].as_str().map(str::to_string);
    let text = text.unwrap_or_else(|| frame["seq"].to_string());
    Cursor::parse(&text).expect("the server wrote it")
}

/// Of the frames of a running turn, what whoever comes later is sent first.
pub fn opening(dialect: &dyn Dialect, frames: &[&Sent], turn: &Turn) -> Vec<Value> {
    let is_open =
        |named: &Value, word: &str| turn.items.keys().any(|item| *named == format!("{word}{item}"));
    let told = |is: &dyn Fn(&Value) -> bool| -> Vec<Value> {
        frames.iter().filter(|frame| is(frame)).map(|frame| known(dialect, frame)).collect()
    };
    match dialect.name() {
        "agentloop" => told(&|frame| frame["payload"]["loading"] == true),
        "unified" => told(&|frame| match frame["type"].as_str() {
            Some("turn_started") => true,
            Some("tool_started") => is_open(&frame["tool_id"], "tool-"),
            _ => false,
        }),
        "loom" => {
            let event = |frame: &Value, kind: &str| frame["event"]["type"] == kind;
            let left = |node: &Value| {
                let exit = |f: &&Sent| event(f, "node_exit") && f["event"]["node_id"] == *node;
                frames.iter().any(exit)
            };
            let mut all = told(&|frame| {
                let enters = event(frame, "node_enter") || event(frame, "got_node_start");
                event(frame, "run_start") || enters && !left(&frame["event"]["node_id"])
            });
            for item in turn.items.keys() {
                let of = |frame: &Value| frame["event"]["call_id"] == format!("call_{item}");
                all.extend(told(&|frame| {
                    of(frame) && (event(frame, "tool_call") || event(frame, "tool_start"))
                }));
            }
            all
        }
        // The message that it began with, if it began with one.
        "chat" => told(&|frame| frame["type"] == "user_message" && frame["seq"] == json!(turn.id)),
        other => panic!("nobody knows how a turn begins in {other}"),
    }
}

/// A message as it may be sent again: a call that is open is placed where it is now, with what a
/// person may have put in the place of its arguments.
pub fn known(dialect: &dyn Dialect, frame: &Value) -> Value {
    let mut frame = placeless(frame);
    if dialect.name() == "loom" && frame["event"]["type"] == "tool_call" {
        let event = frame["event"].as_object_mut().unwrap();
        event.remove("node_id");
        event.remove("arguments");
    }
    frame
}

/// Whether a frame goes with the request that follows it, and is sent again with it.
fn goes_with(dialect: &dyn Dialect, frame: &Value, wait: WaitId) -> bool {
    dialect.name() == "agentloop" && frame["payload"]["id"] == format!("ask_{wait}")
}

/// What asks about each wait that is open, as it was sent last: the request, and before it what
/// goes with it.
pub fn pending<'a>(
    dialect: &dyn Dialect,
    frames: impl Iterator<Item = &'a Sent>,
    is_open: impl Fn(WaitId) -> bool,
) -> Vec<Vec<Value>> {
    let mut asked: BTreeMap<WaitId, Vec<Value>> = BTreeMap::new();
    let mut before: Vec<&Sent> = Vec::new();
    for frame in frames {
        if let Some(wait) = frame.presents.filter(|wait| is_open(*wait)) {
            let with = before.iter().rev().take_while(|f| goes_with(dialect, f, wait));
            let mut all: Vec<Value> = with.map(|frame| placeless(frame)).collect();
            all.reverse();
            all.push(placeless(frame));
            asked.insert(wait, all);
        }
        before.push(frame);
    }
    asked.into_values().collect()
}

/// What tells of each message that waits for its turn, where a dialect tells it.
pub fn waiting<'a>(frames: impl Iterator<Item = &'a Sent>, state: &State) -> Vec<Value> {
    let waits = |frame: &&Sent| {
        let named = |queued: &Queued| frame["message_id"] == format!("queued-{}", queued.id);
        frame["type"] == "message_queued" && state.queue().iter().any(named)
    };
    frames.filter(waits).map(|frame| placeless(frame)).collect()
}

/// Whether clients of the dialect are sent an item's characters before it is complete.
pub fn streams(dialect: &dyn Dialect) -> bool {
    dialect.name() != "chat"
}

/// Whether an entry says a stream whole, after which it is not sent again.
pub fn ends((item, stream): Key, entry: &LogEntry) -> bool {
    match &entry.event {
        Event::Adopted { .. } | Event::Concluded { .. } => entry.seq == item.0,
        Event::ItemCompleted { item: of, .. } => *of == item,
        Event::ToolProposed { item: of, .. } => *of == item && stream == Stream::Args,
        _ => false,
    }
}

/// All that clients may see of a stream, where an entry says it whole.
pub fn whole((item, stream): Key, entry: &LogEntry) -> Option<String> {
    match &entry.event {
        Event::ItemCompleted { item: of, text, .. } if *of == item => Some(text.to_string()),
        Event::ToolProposed { item: of, args, .. } if *of == item && stream == Stream::Args => {
            Some(args.to_string())
        }
        Event::Adopted { piece: Some(Adopted::Agent { text }) } | Event::Concluded { text, .. }
            if entry.seq == item.0 =>
        {
            Some(text.to_string())
        }
        _ => None,
    }
}

/// The same while the item is open.
pub fn live((item, stream): Key, live: &Live) -> Option<String> {
    Some(live.text(item, stream).to_string())
}

/// Whether the same message may be sent twice in a session: some have no ids.
pub fn recurs(dialect: &dyn Dialect, frame: &Value) -> bool {
    let unnamed = frame["type"] == "error" && frame.get("id").is_none();
    let event = frame["event"]["type"].as_str().unwrap_or_default();
    let recurs = ["custom", "usage", "thought_chunk"].contains(&event);
    dialect.name() == "chat" || recurs || unnamed
}

/// Whether an error that one client is sent has the dialect's shape.
pub fn is_error(dialect: &dyn Dialect, frame: &Value) -> bool {
    let says = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
    let shape = match dialect.name() {
        "agentloop" => {
            says(&frame["id"])
                && says(&frame["payload"]["message"])
                && says(&frame["payload"]["details"]["error"])
        }
        "unified" => says(&frame["id"]) && says(&frame["message"]) && frame["is_fatal"] == false,
        "loom" => says(&frame["error"]) && frame.get("id").is_none_or(Value::is_string),
        "chat" => says(&frame["error"]) && frame.as_object().is_some_and(|f| f.len() == 2),
        other => panic!("nobody knows an error of {other}"),
    };
    shape && frame["type"] == "error"
}

/// Whether a frame is of a kind that can ask a person.
pub fn may_ask(dialect: &dyn Dialect, frame: &Value) -> bool {
    let kind = frame["type"].as_str().unwrap_or_default();
    match dialect.name() {
        "agentloop" => {
            let asks = frame["payload"]["id"].as_str().is_some_and(|id| id.starts_with("ask_"));
            kind == "approval_request" || asks
        }
        "unified" => ["control_request", "ask_user_question", "exit_plan_mode"].contains(&kind),
        "loom" => frame["event"]["type"] == "tool_approval",
        "chat" => kind == "agent_message",
        other => panic!("nobody knows what asks in {other}"),
    }
}

/// An answer that names the request it answers, where the dialect has such an answer.
pub fn yes(dialect: &dyn Dialect, frame: &Value) -> Option<Value> {
    let kind = frame["type"].as_str().unwrap_or_default();
    match (dialect.name(), kind) {
        ("agentloop", "approval_request") => {
            let payload = json!({"review": "yes", "requestId": frame["id"]});
            Some(json!({"id": "1", "type": "approval_response", "payload": payload}))
        }
        ("unified", "control_request") => Some(json!({"type": "permission_response",
            "session_id": "golden", "request_id": frame["request_id"], "decision": "allow"})),
        ("unified", "ask_user_question") => Some(json!({"type": "user_question_response",
            "session_id": "golden", "tool_id": frame["tool_id"],
            "answers": [{"question_index": 0, "selected": ["x"]}]})),
        ("unified", "exit_plan_mode") => Some(json!({"type": "plan_approval_response",
            "session_id": "golden", "tool_id": frame["tool_id"], "approved": true})),
        ("loom", _) => Some(json!({"type": "tool_approval_response", "id": "1",
            "run_id": frame["id"], "call_id": frame["event"]["call_id"], "approved": true})),
        ("agentloop" | "chat", _) => None, // The next message answers it.
        (other, kind) => panic!("nobody knows how to answer {kind} in {other}"),
    }
}
