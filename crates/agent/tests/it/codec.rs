//! A file format as plain as can be: an entry is a line of JSON, one of a person's words or of a
//! finished item two. Long entries stand in files of their own, and a line without a number is
//! another program's.

use polyloop_agent::log::{Codec, Line, LineEncoder, Lines};
use polyloop_session::event::Adopted;
use polyloop_session::item::Part;
use polyloop_session::{Event, LogEntry, Seq, SessionId, Timestamp};
use serde_json::{Value, json};

pub const LONG_BYTES_MIN: usize = 4_000;

pub struct Plain;

struct Encoder;

impl Codec for Plain {
    fn encoder(&self, _: &SessionId) -> Box<dyn LineEncoder> {
        Box::new(Encoder)
    }

    fn read(&self, line: &str, blob: &dyn Fn(&str) -> Option<String>) -> Line {
        let damaged = |seq, why: &str| Line::Damaged { seq, why: why.into() };
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            return damaged(None, "no JSON");
        };
        if value.get("audit").is_some() {
            return Line::Audit;
        }
        let at = Timestamp(value["at"].as_i64().unwrap_or_default());
        let Some(seq) = value["seq"].as_u64().map(Seq) else {
            return match value["user"].as_str() {
                Some(text) => {
                    let content = vec![Part::Text { text: text.into() }];
                    Line::Foreign { at, piece: Some(Adopted::User { content }) }
                }
                None => Line::Foreign { at, piece: None },
            };
        };
        if value.get("more").is_some() {
            return Line::More { seq };
        }
        let value = match value["$blob"].as_str() {
            Some(name) => match blob(name) {
                Some(text) => serde_json::from_str(&text).unwrap(),
                None => return damaged(Some(seq), "its file is missing"),
            },
            None => value,
        };
        match serde_json::from_value::<LogEntry>(value) {
            Ok(entry) => Line::Entry(entry),
            Err(_) => damaged(Some(seq), "an event nobody knows"),
        }
    }

    fn restored(&self, line: &str, blob: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let value: Value = serde_json::from_str(line).ok()?;
        match value["$blob"].as_str() {
            Some(name) => blob(name),
            None => Some(line.to_string()),
        }
    }

    fn line_time(&self, line: &str) -> Option<Timestamp> {
        let value: Value = serde_json::from_str(line).ok()?;
        value["at"].as_i64().map(Timestamp)
    }
}

impl LineEncoder for Encoder {
    fn lines(&mut self, entry: &LogEntry) -> Lines {
        let (seq, at) = (entry.seq, entry.at);
        let mut line = serde_json::to_string(entry).unwrap();
        let mut blobs = Vec::new();
        if line.len() >= LONG_BYTES_MIN {
            let name = seq.to_string();
            let short = json!({ "seq": seq, "at": at, "$blob": name });
            blobs.push((name, std::mem::replace(&mut line, short.to_string())));
        }
        let mut lines = vec![format!("{line}\n")];
        if has_two_lines(&entry.event) {
            lines.push(format!("{}\n", json!({ "seq": seq, "at": at, "more": true })));
        }
        Lines { lines, blobs }
    }
}

pub fn has_two_lines(event: &Event) -> bool {
    matches!(event, Event::MessageQueued { .. } | Event::ItemCompleted { .. })
}
