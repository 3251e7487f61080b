//! Collects the events of a stream and writes them as server-sent events, in every style that the
//! standard allows, or as the elements of a JSON array.

use serde_json::{Value, json};

use crate::answer::{Deltas, End, NUMBER, PIECE, Script, Segment};
use crate::api::{Api, Job, set};
use crate::ask::Delivery;
use crate::made;
use crate::reply::{PIECE_CHARS, Style};

pub struct Events {
    api: Api,
    delivery: Delivery,
    style: Style,
    piece_chars: usize,
    segments: Vec<Segment>,
    /// Bytes behind the last segment.
    pending: Vec<u8>,
    /// Of the next event; only the Responses API shows it.
    number: u64,
    cut_block: Option<(usize, usize)>,
    is_cut: bool,
}

impl Events {
    pub fn new(job: &Job<'_>) -> Events {
        let mut events = Events {
            api: job.ask.api,
            delivery: job.ask.delivery,
            style: job.reply.style,
            piece_chars: job.reply.pieces.map_or(PIECE_CHARS, std::num::NonZeroUsize::get),
            segments: Vec::new(),
            pending: Vec::new(),
            number: 0,
            cut_block: job.reply.cut_block,
            is_cut: false,
        };
        match events.delivery {
            Delivery::Array => events.pending.push(b'['),
            Delivery::Events | Delivery::Whole if events.style.bom => {
                events.pending.extend_from_slice("\u{FEFF}".as_bytes());
            }
            Delivery::Events | Delivery::Whole => {}
        }
        events
    }

    /// An event; the APIs that name theirs also name it inside.
    pub fn event(&mut self, name: &str, value: Value) {
        if self.is_cut {
            return;
        }
        if self.number > 0 && self.style.unknown_events {
            let (name, value) = self.unknown();
            let bytes = self.framed(name, &value.to_string());
            self.pending.extend_from_slice(bytes.as_bytes());
        }
        let text = self.numbered(name, value);
        self.pending.extend_from_slice(self.framed(name, &text).as_bytes());
    }

    /// The event that ends the stream.
    pub fn last(&mut self, name: &str, value: Value) {
        if self.is_cut {
            return;
        }
        if self.delivery == Delivery::Array {
            self.pending.extend_from_slice(value.to_string().as_bytes());
            self.pending.push(b']');
            return;
        }
        self.event(name, value.clone());
        if self.style.done_twice {
            self.event(name, value);
        }
    }

    /// The end of a chat stream.
    pub fn done(&mut self) {
        if !self.is_cut {
            let times = if self.style.done_twice { 2 } else { 1 };
            let done = self.framed("", "[DONE]").repeat(times);
            self.pending.extend_from_slice(done.as_bytes());
        }
    }

    /// One event for every piece of a block's text; the template has `PIECE` where it goes.
    pub fn deltas(&mut self, block: usize, name: &str, template: Value, text: &str) {
        if self.is_cut {
            return;
        }
        let text = match self.cut_block {
            Some((cut, chars)) if cut == block => first_chars(text, chars),
            _ => text,
        };
        let first = self.number;
        let template = self.numbered_as(name, template, NUMBER);
        let template = self.framed(name, &template);
        self.number = first + text.chars().count().div_ceil(self.piece_chars) as u64;
        self.close_segment();
        let deltas = Deltas::new(&template, text, self.piece_chars, first);
        self.segments.push(Segment::Deltas(deltas));
        self.cut_behind(block);
    }

    /// An event with the whole text of a block in it, cut inside that text if the script says so.
    pub fn whole_block(&mut self, block: usize, name: &str, value: Value, text: &str) {
        let begin = self.pending.len();
        self.event(name, value);
        if let Some((cut, chars)) = self.cut_block
            && cut == block
            && !self.is_cut
        {
            let event = String::from_utf8_lossy(&self.pending[begin..]).into_owned();
            let place =
                event.find(text).map_or(event.len() / 2, |at| at + first_chars(text, chars).len());
            self.pending.truncate(begin + place);
            self.is_cut = true;
        }
    }

    /// A block that has no text to cut in ends here, if it is the one to be cut.
    pub fn cut_behind(&mut self, block: usize) {
        self.is_cut |= self.cut_block.is_some_and(|(cut, _)| cut == block);
    }

    pub fn script(mut self) -> Script {
        self.close_segment();
        let end = if self.is_cut { End::Cut } else { End::Clean };
        Script { segments: self.segments, end, ..Script::default() }
    }

    fn close_segment(&mut self) {
        if !self.pending.is_empty() {
            let bytes = std::mem::take(&mut self.pending).into();
            self.segments.push(Segment::Bytes { bytes, times: 1 });
        }
    }

    fn numbered(&mut self, name: &str, value: Value) -> String {
        let number = self.number;
        self.number += 1;
        self.numbered_as(name, value, number)
    }

    fn numbered_as(&self, name: &str, mut value: Value, number: u64) -> String {
        match self.api {
            Api::Responses => {
                set(&mut value, "type", name);
                set(&mut value, "sequence_number", number);
            }
            Api::Anthropic => set(&mut value, "type", name),
            Api::Chat | Api::Gemini => {} // Their events have neither name nor number.
        }
        value.to_string()
    }

    /// One event as bytes. A split event has its outer braces on lines of their own.
    fn framed(&self, name: &str, data: &str) -> String {
        if self.delivery == Delivery::Array {
            return format!("{data},\r\n");
        }
        let Style { crlf, no_space, comments, split_data, .. } = self.style;
        let end = if crlf { "\r\n" } else { "\n" };
        let space = if no_space { "" } else { " " };
        let mut event = String::new();
        if comments {
            event += &format!(": a comment{end}");
        }
        if !name.is_empty() {
            event += &format!("event:{space}{name}{end}");
        }
        let inner = data.strip_prefix('{').and_then(|data| data.strip_suffix('}'));
        let lines = match inner {
            Some(inner) if split_data => vec!["{", inner, "}"],
            _ => vec![data],
        };
        for line in lines {
            event += &format!("data:{space}{line}{end}");
        }
        event + end
    }

    /// An event that no client knows.
    fn unknown(&self) -> (&'static str, Value) {
        let note = "nobody knows this";
        match self.api {
            Api::Responses => {
                ("response.fake_unknown", json!({"type": "response.fake_unknown", "note": note}))
            }
            Api::Anthropic => ("fake_unknown", json!({"type": "fake_unknown", "note": note})),
            Api::Chat => {
                let id = made::id("chatcmpl-", 0, 0);
                let object = "chat.completion.chunk";
                (
                    "",
                    json!({"id": id, "object": object, "created": 0, "model": "fake-model",
                    "choices": [], "fake_unknown": note}),
                )
            }
            Api::Gemini => ("", json!({"fakeUnknown": note})),
        }
    }
}

/// A field of a template.
pub fn piece() -> Value {
    Value::from(PIECE)
}

fn first_chars(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(at, _)| &text[..at])
}
