//! Entries to and from the lines of a session file.
//!
//! A line has the four fields that other readers of these files know (`timestamp`, `event_type`,
//! `direction`, `message_data`), then `seq`, and on the first line of an entry its `event`. A long
//! text stands once: the event refers to the message by `{"$in": pointer}`; a very long one is a
//! file of its own, named by `{"$blob": name, "bytes": n}`. Reading is total.

use std::borrow::Cow;

use polyloop_session::event::{Adopted, Stop, Work};
use polyloop_session::wait::{Answer, Then};
use polyloop_session::{Event, ItemId, LogEntry, Seq, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::encode::{AgentloopEncoder, reply_payload};
use super::wire::{self, Message};
use crate::ids::{IdKind, Ids};
use crate::time::{iso, parse_iso};
use crate::{MESSAGE_BYTES, Reply, time, to_json, with_json};

mod adopt;
mod incoming;
mod refer;

use incoming::{By, Incoming, Payload, Said};

/// A text of more bytes becomes a file of its own.
pub const TEXT_IN_LINE_BYTES_MAX: usize = 64 * 1024;

/// The lines of an entry, each ended by a newline, and the files they name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lines {
    pub lines: Vec<String>,
    pub blobs: Vec<Blob>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Blob {
    pub name: String,
    pub text: String,
}

/// What a line of a file turned out to be.
#[derive(Debug, PartialEq)]
pub enum Line {
    Entry(LogEntry),
    /// A further message of the entry `seq`.
    More {
        seq: Seq,
    },
    /// What went to one client alone; never replayed.
    Audit,
    /// Written by another program; it has no number of its own.
    Foreign {
        at: Timestamp,
        piece: Option<Adopted>,
    },
    /// It holds no event that can be read; `seq` where that much was legible.
    Damaged {
        seq: Option<Seq>,
        why: String,
    },
}

/// Writes one session's entries. A fold: it must see every entry of the running turn.
pub struct FileEncoder {
    encoder: AgentloopEncoder,
    ids: Ids,
}

enum Direction {
    Incoming,
    Outgoing,
    None,
}

impl Direction {
    /// As a line names it.
    fn words(&self) -> (&'static str, &'static str) {
        match self {
            Direction::Incoming => ("websocket_message_received", "incoming"),
            Direction::Outgoing => ("websocket_message_sent", "outgoing"),
            Direction::None => ("session_event", "outgoing"),
        }
    }
}

impl FileEncoder {
    pub fn new(session: &SessionId) -> FileEncoder {
        FileEncoder { encoder: AgentloopEncoder::new(session), ids: Ids::new(Some(session)) }
    }

    pub fn lines(&mut self, entry: &LogEntry) -> Lines {
        let incoming = self.incoming(entry);
        let messages = self.encoder.messages(entry, unless_empty);
        plain_lines(entry, incoming.as_ref(), &messages)
            .unwrap_or_else(|| long_lines(entry, incoming.as_ref(), &messages))
    }

    /// What a client sent that made this entry, in this dialect's words, whoever sent it.
    fn incoming<'e>(&self, entry: &'e LogEntry) -> Option<Incoming<'e>> {
        let id = || Cow::Owned(self.ids.id(IdKind::Entry(0x100), entry.seq));
        let message = |kind: &'static str, payload: Value| {
            Some(Incoming::Message { id: id(), kind, payload: Some(Payload::Value(payload)) })
        };
        match &entry.event {
            Event::SessionCreated { .. } => Some(Incoming::Mark { event: "session_started" }),
            Event::MessageQueued { content, client_ref, .. } => {
                let id = client_ref.as_deref().map_or_else(id, Cow::Borrowed);
                let payload = Some(Payload::Input(Said { input: [By::user(content)] }));
                Some(Incoming::Message { id, kind: "user_input", payload })
            }
            Event::WaitSettled { answer: Answer::Answered { answers, said }, .. } => {
                let chosen = || answers.iter().flat_map(|given| &given.selected);
                let words: Vec<&str> = match said {
                    Some(said) => vec![said],
                    None => chosen()
                        .chain(answers.iter().filter_map(|g| g.text.as_ref()))
                        .map(|word| &**word)
                        .collect(),
                };
                let text = words.join("\n");
                let content = [json!({"type": "input_text", "text": text})];
                let item = json!({"type": "message", "role": "user", "content": content});
                message("user_input", json!({"input": [item]}))
            }
            Event::WaitSettled { answer, .. } => message("approval_response", review(answer)),
            Event::SessionClosed { .. } => Some(Incoming::Mark { event: "session_ended" }),
            Event::ExplainAsked { .. } => {
                message("approval_response", json!({"review": "explain"}))
            }
            Event::TurnStarted { work: Work::Compact { .. }, .. } => {
                Some(Incoming::Message { id: id(), kind: "manual_compact", payload: None })
            }
            Event::TurnStopping { reason: Stop::Interrupted { reason, .. } } => {
                message("interrupt", json!({"reason": reason}))
            }
            _ => None,
        }
    }
}

/// What most entries are: nothing in them is long, so they are written as they are. `None` where
/// something is.
fn plain_lines(
    entry: &LogEntry,
    incoming: Option<&Incoming<'_>>,
    messages: &[Message],
) -> Option<Lines> {
    let event = to_json(&entry.event);
    let mut event = (!refer::holds_long_text(&event)).then_some(&*event);
    event?;
    let timestamp = iso(entry.at);
    let mut lines = Vec::with_capacity(messages.len() + 1);
    if let Some(incoming) = incoming {
        lines.push(plain_line(&timestamp, Direction::Incoming, incoming, entry.seq, event.take())?);
    }
    for message in messages {
        let sent = Sent::from(message);
        lines.push(plain_line(&timestamp, Direction::Outgoing, &sent, entry.seq, event.take())?);
    }
    if lines.is_empty() {
        lines.push(plain_line(&timestamp, Direction::None, &(), entry.seq, event)?);
    }
    Some(Lines { lines, blobs: Vec::new() })
}

/// The same as `Fields`, put together by hand. `None` where a text of the data may stand in a file
/// of its own, which only a longer one does.
fn plain_line(
    timestamp: &str,
    direction: Direction,
    data: &impl Serialize,
    seq: Seq,
    event: Option<&str>,
) -> Option<String> {
    const FIELDS_BYTES: usize = 160;
    let (event_type, direction) = direction.words();
    let bytes = FIELDS_BYTES + MESSAGE_BYTES + event.map_or(0, str::len);
    let mut line = String::with_capacity(bytes);
    let head = [
        "{\"timestamp\":\"",
        timestamp,
        "\",\"event_type\":\"",
        event_type,
        "\",\"direction\":\"",
        direction,
        "\",\"message_data\":",
    ];
    head.into_iter().for_each(|part| line.push_str(part));
    let before = line.len();
    let mut line = with_json(line, data);
    if line.len() - before > TEXT_IN_LINE_BYTES_MAX {
        return None;
    }
    let mut digits = itoa::Buffer::new();
    let seq = digits.format(seq.0);
    let rest = [",\"seq\":", seq, event.map_or("", |_| ",\"event\":"), event.unwrap_or(""), "}\n"];
    rest.into_iter().for_each(|part| line.push_str(part));
    Some(line)
}

/// The lines of an entry with long texts in it: each stands once.
fn long_lines(entry: &LogEntry, incoming: Option<&Incoming<'_>>, messages: &[Message]) -> Lines {
    let mut data: Vec<(Direction, Value)> = Vec::new();
    if let Some(incoming) = incoming {
        data.push((Direction::Incoming, serde_json::to_value(incoming).unwrap_or_default()));
    }
    for message in messages {
        data.push((Direction::Outgoing, value(message)));
    }
    if data.is_empty() {
        data.push((Direction::None, Value::Null));
    }
    let mut out = Lines::default();
    let mut event = serde_json::to_value(&entry.event).ok();
    for (direction, mut data) in data {
        let event = event.take().map(|mut event| {
            refer::shorten(&mut event, &data);
            refer::extract(&mut event, entry.seq, &mut out.blobs);
            event
        });
        refer::extract(&mut data, entry.seq, &mut out.blobs);
        out.lines.push(line(entry.at, direction, data, entry.seq, event));
    }
    out
}

/// A line for what went to one client alone: an error, a context report.
pub fn audit_line(session: &SessionId, at: Timestamp, last: Seq, reply: &Reply) -> String {
    let id = Ids::new(Some(session)).id(IdKind::Reply, last);
    let data = value(&Message::new(id, reply_payload(reply)));
    let mut fields = fields(at, Direction::Outgoing, data, last);
    fields.audit = Some(true);
    ended(&fields)
}

/// A file holds each text whole; an empty one is no message, as it is none on the wire.
fn unless_empty(_: ItemId, whole: &str) -> Option<(u64, &str)> {
    (!whole.is_empty()).then_some((0, whole))
}

fn value(message: &Message) -> Value {
    serde_json::to_value(Sent::from(message)).unwrap_or_default()
}

/// A message as it stands in a file.
#[derive(Serialize)]
struct Sent<'m> {
    id: &'m str,
    #[serde(rename = "type")]
    kind: &'static str,
    payload: &'m wire::Payload,
}

impl<'m> From<&'m Message> for Sent<'m> {
    fn from(message: &'m Message) -> Sent<'m> {
        let Message { id, payload, .. } = message;
        Sent { id, kind: payload.kind(), payload }
    }
}

fn review(answer: &Answer) -> Value {
    match answer {
        Answer::Approved { grants, instead, always, message: _ } => {
            let review = if grants.is_empty() && !always { "yes" } else { "always" };
            match instead {
                Some(instead) => {
                    json!({"review": review, "applyPatch": {"patch": instead.judgement.patch}})
                }
                None => json!({"review": review}),
            }
        }
        Answer::Denied { message, then } => {
            let review = match then {
                Then::Continue => "no-continue",
                Then::EndTurn => "no-exit",
            };
            json!({"review": review, "customDenyMessage": message})
        }
        // Written as what was said.
        Answer::Answered { .. } => json!({"review": "yes"}),
    }
}

/// A line's fields in the order that people read them.
#[derive(Serialize)]
struct Fields {
    timestamp: String,
    event_type: &'static str,
    direction: &'static str,
    message_data: Value,
    seq: Seq,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<bool>,
}

fn fields(at: Timestamp, direction: Direction, message_data: Value, seq: Seq) -> Fields {
    let (event_type, direction) = direction.words();
    let (event, audit) = (None, None);
    Fields { timestamp: iso(at), event_type, direction, message_data, seq, event, audit }
}

fn line(at: Timestamp, to: Direction, data: Value, seq: Seq, event: Option<Value>) -> String {
    let mut fields = fields(at, to, data, seq);
    fields.event = event;
    ended(&fields)
}

fn ended(fields: &Fields) -> String {
    let mut line = to_json(fields);
    line.push('\n');
    line
}

/// Reads one line. `blob` finds the text of a file that the line names.
pub fn read_line(line: &str, blob: &dyn Fn(&str) -> Option<String>) -> Line {
    read_plain(line).unwrap_or_else(|| read_any(line, blob))
}

/// Most lines are ours, with nothing to put back, and need no second look. `None` for all others,
/// whatever they are.
fn read_plain(line: &str) -> Option<Line> {
    #[derive(Deserialize)]
    struct Plain<'a> {
        timestamp: &'a str,
        seq: u64,
        #[serde(borrow)]
        event: Option<&'a RawValue>,
    }
    if [refer::IN, refer::BLOB, "\"audit\""].iter().any(|word| line.contains(word)) {
        return None;
    }
    let Plain { timestamp, seq, event } = serde_json::from_str(line).ok()?;
    let (seq, at) = (Seq(seq), parse_iso(timestamp)?);
    match event {
        Some(event) => {
            let event = serde_json::from_str(event.get()).ok()?;
            Some(Line::Entry(LogEntry { seq, at, event }))
        }
        None => (!line.contains("\"event\"")).then_some(Line::More { seq }),
    }
}

fn read_any(line: &str, blob: &dyn Fn(&str) -> Option<String>) -> Line {
    let damaged = |seq, why: &str| Line::Damaged { seq, why: why.to_string() };
    let mut fields: Map<String, Value> = match serde_json::from_str(line) {
        Ok(fields) => fields,
        Err(error) => return damaged(None, &format!("not a JSON object: {error}")),
    };
    let at = fields.get("timestamp").and_then(Value::as_str).and_then(time::parse_iso);
    let seq = fields.get("seq").and_then(Value::as_u64).map(Seq);
    if fields.contains_key("audit") {
        return Line::Audit;
    }
    let Some(seq) = seq else {
        // Another program's line has neither; adopting one of ours would tell its message twice.
        if fields.contains_key("seq") || fields.contains_key("event") {
            return damaged(None, "its number cannot be read");
        }
        return match (at, fields.get("event_type").and_then(Value::as_str)) {
            (Some(at), Some(_)) => Line::Foreign { at, piece: adopt::piece(&fields) },
            _ => damaged(None, "neither ours nor another program's: no timestamp or event_type"),
        };
    };
    let Some(mut event) = fields.remove("event") else { return Line::More { seq } };
    let Some(at) = at else { return damaged(Some(seq), "no timestamp") };
    let mut data = fields.remove("message_data").unwrap_or_default();
    let names_files = line.contains(refer::BLOB);
    let found = !names_files || refer::restore(&mut data, blob) && refer::restore(&mut event, blob);
    if !found {
        return damaged(Some(seq), "a file that holds one of its texts is missing");
    }
    refer::lengthen(&mut event, &data);
    match serde_json::from_value(event) {
        Ok(event) => Line::Entry(LogEntry { seq, at, event }),
        Err(error) => damaged(Some(seq), &format!("an event this version does not know: {error}")),
    }
}

/// A line as REST shows it: texts that stand in files of their own are put back. Of one whose file
/// is gone the message says so; the event still names it, so that nobody takes that for the text.
pub fn restored(line: &str, blob: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut value: Value = serde_json::from_str(line).ok()?;
    refer::restore(&mut value, blob);
    if let Some(data) = value.get_mut("message_data") {
        refer::tell_missing(data);
    }
    Some(value.to_string())
}

/// The time a line was written, for lists.
pub fn line_time(line: &str) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Timed<'a> {
        timestamp: &'a str,
    }
    parse_iso(serde_json::from_str::<Timed<'_>>(line).ok()?.timestamp)
}
