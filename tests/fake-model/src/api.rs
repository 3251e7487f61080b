//! The four APIs: which one a request speaks, and how each says an answer.
//!
//! Never touches a socket: a reply and a request go in, an answer comes out.

pub mod anthropic;
pub mod chat;
pub mod gemini;
pub mod responses;

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::answer::{Answer, Script};
use crate::ask::{Ask, Delivery};
use crate::events::Events;
use crate::made;
use crate::reply::{Block, Reply, Stop};
use crate::usage::Usage;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    Responses,
    Chat,
    Anthropic,
    Gemini,
}

/// One request and the reply it gets.
pub struct Job<'a> {
    pub ask: &'a Ask,
    pub reply: &'a Reply,
    /// The number of the request: every made id and opaque text follows from it.
    pub n: u64,
    pub usage: Usage,
    pub created: u64,
}

impl<'a> Job<'a> {
    pub fn new(ask: &'a Ask, reply: &'a Reply, n: u64) -> Job<'a> {
        let created =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Job { ask, reply, n, usage: Usage::of(reply, ask.input_tokens), created }
    }

    /// The reply said whole or as events, as the request wants it.
    pub fn answer(&self) -> Answer {
        match self.ask.delivery {
            Delivery::Whole => self.whole(),
            Delivery::Events | Delivery::Array => self.stream(),
        }
    }

    fn whole(&self) -> Answer {
        if let Some(error) = &self.reply.error
            && let Some(answer) = crate::fault::whole(self.ask.api, error, self.n)
        {
            return answer;
        }
        let value = match self.ask.api {
            Api::Responses => responses::whole(self),
            Api::Chat => chat::whole(self),
            Api::Anthropic => anthropic::whole(self),
            Api::Gemini => gemini::whole(self),
        };
        let mut answer = Answer::json(200, &value);
        if let Some((block, chars)) = self.reply.cut_block {
            answer.body.cut_after(self.place_in(&answer.body, block, chars));
        }
        self.with_request_id(answer)
    }

    fn stream(&self) -> Answer {
        let mut events = Events::new(self);
        match self.ask.api {
            Api::Responses => responses::stream(self, &mut events),
            Api::Chat => chat::stream(self, &mut events),
            Api::Anthropic => anthropic::stream(self, &mut events),
            Api::Gemini => gemini::stream(self, &mut events),
        }
        let content_type = match self.ask.delivery {
            Delivery::Events => "text/event-stream; charset=utf-8",
            Delivery::Array | Delivery::Whole => "application/json; charset=UTF-8",
        };
        let answer = Answer::new(200, content_type, events.script());
        self.with_request_id(answer)
    }

    fn with_request_id(&self, answer: Answer) -> Answer {
        match self.ask.api {
            Api::Responses | Api::Chat => answer.with("x-request-id", &self.id("req_", 0)),
            Api::Anthropic => answer.with("request-id", &self.id("req_", 0)),
            Api::Gemini => answer, // It names the response in the body only.
        }
    }

    /// Where in a whole body the first characters of a block end; its middle if it has no text.
    fn place_in(&self, body: &Script, block: usize, chars: usize) -> u64 {
        let bytes = body.first_bytes();
        let text = self.reply.blocks.get(block).and_then(Block::text).unwrap_or_default();
        let escaped = |text: &str| made::escaped(text).into_bytes();
        let begin: String = text.chars().take(chars).collect();
        let find = |needle: &[u8]| bytes.windows(needle.len().max(1)).position(|at| at == needle);
        let place = match find(&escaped(text)) {
            Some(at) => at + escaped(&begin).len(),
            None => find(text.as_bytes()).map_or(bytes.len() / 2, |at| at + begin.len()),
        };
        place as u64
    }

    pub fn id(&self, prefix: &str, place: usize) -> String {
        made::id(prefix, self.n, place)
    }

    /// An opaque text that the script gave, or a made one.
    pub fn opaque(&self, given: Option<&str>, place: usize) -> String {
        given.map_or_else(|| made::opaque(self.n, place), str::to_owned)
    }

    pub fn has_calls(&self) -> bool {
        self.reply.blocks.iter().any(|block| matches!(block, Block::Call(_) | Block::Shell(_)))
    }

    pub fn refuses(&self) -> bool {
        self.reply.stop == Stop::Refusal
    }

    /// The blocks of the reply; a refusal without words gets some.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks = self.reply.blocks.clone();
        let silent = !blocks.iter().any(|block| matches!(block, Block::Say(_)));
        if self.refuses() && silent && self.ask.api != Api::Gemini {
            blocks.push(Block::say("I cannot help with that."));
        }
        blocks
    }
}

/// Sets a field of a JSON object; other values stay as they are.
pub fn set(value: &mut Value, key: &str, field: impl Into<Value>) {
    if let Some(object) = value.as_object_mut() {
        object.insert(key.to_owned(), field.into());
    }
}
