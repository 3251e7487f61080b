//! An answer before it is sent: its head, and a body that is made piece by piece while it goes out,
//! so that a thousand long streams cost no more than the pieces under way.

use bytes::{BufMut, Bytes, BytesMut};
use hyper::http::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::reply::Reply;

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Script,
    pub pace: Pace,
}

/// How a body goes out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Before every delta; with `chunk_bytes` before every write.
    pub delay_ms: u64,
    pub chunk_bytes: Option<usize>,
}

#[derive(Debug, Default)]
pub struct Script {
    pub segments: Vec<Segment>,
    /// Known for whole bodies; streams are sent in chunks.
    pub length: Option<u64>,
    /// How many bytes come at most, and what happens then.
    pub limit: Option<(u64, End)>,
    pub end: End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    #[default]
    Clean,
    /// The socket is closed.
    Cut,
    /// The socket stays open and nothing more comes.
    Hang,
}

#[derive(Debug)]
pub enum Segment {
    Bytes { bytes: Bytes, times: u64 },
    Deltas(Deltas),
}

/// A run of events that differ only in a piece of text and a number.
#[derive(Debug)]
pub struct Deltas {
    parts: Vec<Part>,
    text: String,
    /// Where the next piece begins.
    at: usize,
    piece_chars: usize,
    number: u64,
}

#[derive(Debug)]
enum Part {
    Literal(Bytes),
    Piece,
    Number,
}

/// Where the piece goes in a template: a character that no protocol uses.
pub const PIECE: &str = "\u{E000}";
/// Where the number goes in a template.
pub const NUMBER: u64 = u64::MAX;

impl Deltas {
    /// A template is an event with `PIECE` as the text of one field and, where events are numbered,
    /// `NUMBER` as the value of another.
    pub fn new(template: &str, text: &str, piece_chars: usize, first_number: u64) -> Deltas {
        let (piece, number) = (format!("\"{PIECE}\""), NUMBER.to_string());
        let mut parts = Vec::new();
        let mut rest = template;
        loop {
            let found = [(rest.find(&piece), Part::Piece), (rest.find(&number), Part::Number)];
            let next = found.into_iter().filter_map(|(at, part)| Some((at?, part)));
            let Some((at, part)) = next.min_by_key(|(at, _)| *at) else { break };
            let length = if matches!(part, Part::Piece) { piece.len() } else { number.len() };
            parts.push(Part::Literal(Bytes::copy_from_slice(&rest.as_bytes()[..at])));
            parts.push(part);
            rest = &rest[at + length..];
        }
        parts.push(Part::Literal(Bytes::copy_from_slice(rest.as_bytes())));
        Deltas { parts, text: text.to_owned(), at: 0, piece_chars, number: first_number }
    }

    /// Writes the next event; false when there is none.
    pub fn write_next(&mut self, out: &mut BytesMut) -> bool {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return false;
        }
        let end = rest.char_indices().nth(self.piece_chars).map_or(rest.len(), |(at, _)| at);
        for part in &self.parts {
            match part {
                Part::Literal(bytes) => out.extend_from_slice(bytes),
                Part::Piece => write_json(out, &rest[..end]),
                Part::Number => write_json(out, &self.number),
            }
        }
        self.at += end;
        self.number += 1;
        true
    }
}

fn write_json(out: &mut BytesMut, value: &(impl serde::Serialize + ?Sized)) {
    // Neither writing to memory nor a string or number in JSON can fail.
    let _ = serde_json::to_writer(out.writer(), value);
}

impl Script {
    pub fn whole(bytes: impl Into<Bytes>) -> Script {
        let bytes = bytes.into();
        let length = Some(bytes.len() as u64);
        Script { segments: vec![Segment::Bytes { bytes, times: 1 }], length, ..Script::default() }
    }

    /// Closes the socket after so many bytes.
    pub fn cut_after(&mut self, bytes: u64) {
        self.limit = Some((bytes, End::Cut));
    }

    pub fn first_bytes(&self) -> Bytes {
        match self.segments.first() {
            Some(Segment::Bytes { bytes, .. }) => bytes.clone(),
            Some(Segment::Deltas(_)) | None => Bytes::new(),
        }
    }
}

impl Answer {
    pub fn new(status: u16, content_type: &str, body: Script) -> Answer {
        let answer = Answer { status, headers: Vec::new(), body, pace: Pace::default() };
        answer.with("content-type", content_type)
    }

    pub fn json(status: u16, value: &Value) -> Answer {
        Answer::new(status, "application/json", Script::whole(value.to_string()))
    }

    /// With a header more, or another value for it. What is no header is left out.
    pub fn with(mut self, name: &str, value: &str) -> Answer {
        let header = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value));
        if let (Ok(name), Ok(value)) = header {
            self.headers.retain(|(other, _)| *other != name);
            self.headers.push((name, value));
        }
        self
    }

    /// As the reply wants it sent.
    pub fn told(mut self, reply: &Reply) -> Answer {
        let chunk_bytes = reply.chunk_bytes.map(std::num::NonZeroUsize::get);
        self.pace = Pace { delay_ms: reply.delay_ms, chunk_bytes };
        let cut = reply.cut_bytes.map(|bytes| (bytes, End::Cut));
        let hang = reply.hang_bytes.map(|bytes| (bytes, End::Hang));
        let limits = [self.body.limit, cut, hang].into_iter().flatten();
        self.body.limit = limits.min_by_key(|(bytes, _)| *bytes);
        if let Some(content_type) = &reply.content_type {
            self = self.with("content-type", content_type);
        }
        for (name, value) in reply.http.iter().flat_map(|http| &http.headers) {
            self = self.with(name, value);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut deltas: Deltas) -> Vec<String> {
        let mut events = Vec::new();
        let mut out = BytesMut::new();
        while deltas.write_next(&mut out) {
            events.push(String::from_utf8(out.split().to_vec()).unwrap());
        }
        events
    }

    #[test]
    fn deltas_split_at_characters_and_count() {
        let template = format!("a\"{PIECE}\"b{NUMBER}c");
        let events = all(Deltas::new(&template, "äöü\"x", 2, 7));
        assert_eq!(events, ["a\"äö\"b7c", "a\"ü\\\"\"b8c", "a\"x\"b9c"]);
    }

    #[test]
    fn the_number_may_come_first_or_not_at_all() {
        let template = format!("{NUMBER}-\"{PIECE}\"");
        assert_eq!(all(Deltas::new(&template, "ab", 5, 0)), ["0-\"ab\""]);
        assert_eq!(all(Deltas::new(&format!("\"{PIECE}\""), "ab", 1, 0)), ["\"a\"", "\"b\""]);
        assert!(all(Deltas::new("x", "", 1, 0)).is_empty());
    }

    #[test]
    fn the_nearest_limit_holds() {
        let reply = Reply { cut_bytes: Some(9), hang_bytes: Some(4), ..Reply::default() };
        let answer = Answer::json(200, &Value::Null).told(&reply);
        assert_eq!(answer.body.limit, Some((4, End::Hang)));
    }
}
