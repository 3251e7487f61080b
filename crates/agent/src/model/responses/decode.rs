//! An answer's events as chunks.
//!
//! Each item of the output is a block. Deltas are told as they come; what a final event repeats
//! is told only where no delta had it. A block ends with its `output_item.done`, which alone
//! brings what must go back; one that had none ends with the answer.

use std::collections::BTreeSet;

use polyloop_session::Text;
use polyloop_session::item::{ItemKind, Opaque, Usage};
use serde_json::value::RawValue;

use super::growth::{Channel, Extent, Kind, growth};
use super::{NAME, SHELL_CALL, SHELL_TOOL, shell};
use crate::model::api::Decode;
use crate::model::json::{self, Object};
use crate::model::openai::{self, Read, Refusal, word};
use crate::model::sse::Event;
use crate::model::{Chunk, Failure, Stop};

pub struct Decoder {
    provider: &'static str,
    /// As the server calls it; empty until it does.
    model: String,
    items: Vec<Item>,
    refusal: Refusal,
    over: bool,
    chunks: Vec<Chunk>,
}

/// An item that has a block; the block's number is its place.
struct Item {
    kind: Kind,
    place: Place,
    /// The parts that were told.
    told: BTreeSet<(Channel, u64)>,
    last: Option<(Channel, u64)>,
    ended: bool,
}

/// Where the server says an item is. Some change the id with every event, some always say 0.
#[derive(Clone, Default)]
struct Place {
    id: Option<String>,
    index: Option<u64>,
}

impl Decode for Decoder {
    fn event(&mut self, event: &Event) -> Vec<Chunk> {
        if self.over {
            return Vec::new();
        }
        match openai::read(event) {
            Read::Nothing | Read::Last => {}
            Read::Object(fields, json) => self.object(event, &fields, json),
            Read::Other(json) => self.raw(json),
            Read::NotJson => self.fail(openai::not_json(self.provider)),
        }
        std::mem::take(&mut self.chunks)
    }

    /// Every answer has a final event; one without was cut.
    fn end(&mut self) -> Vec<Chunk> {
        Vec::new()
    }
}

impl Decoder {
    pub fn new(provider: &'static str) -> Decoder {
        Decoder {
            provider,
            model: String::new(),
            items: Vec::new(),
            refusal: Refusal::default(),
            over: false,
            chunks: Vec::new(),
        }
    }

    fn object(&mut self, event: &Event, fields: &Object<'_>, json: &str) {
        let name = fields.text("type").unwrap_or_else(|| event.name.clone());
        if let Some((channel, extent, field)) = growth(&name) {
            return self.grew(channel, extent, field, fields);
        }
        let response = fields.object("response").unwrap_or_default();
        if let Some(model) = word(&response, "model") {
            self.model = model;
        }
        match &*name {
            "response.output_item.added" => self.added(fields),
            "response.output_item.done" => {
                let place = Place { id: None, index: fields.count("output_index") };
                if let Some(item) = fields.raw("item") {
                    self.done(item, place);
                }
            }
            "response.completed" => self.completed(&response, Stop::End),
            "response.incomplete" => self.incomplete(&response),
            "response.failed" => self.failed(&response, &response),
            "error" => self.failed(&response, fields),
            // They only say that something goes on, or repeat it.
            "response.created"
            | "response.queued"
            | "response.in_progress"
            | "response.content_part.added"
            | "response.content_part.done"
            | "response.reasoning_summary_part.added"
            | "response.reasoning_summary_part.done"
            | "ping"
            | "keepalive" => {}
            // A gateway's error, which knows nothing of events.
            "" if fields.raw("error").is_some() => self.failed(&response, fields),
            _ => self.raw(json),
        }
    }

    fn grew(&mut self, channel: Channel, extent: Extent, field: &str, fields: &Object<'_>) {
        let Some(text) = word(fields, field) else { return };
        let place = Place { id: word(fields, "item_id"), index: fields.count("output_index") };
        let kind = channel.kind();
        let at = match (self.find_open(kind, &place), kind) {
            (Some(at), _) => at,
            (None, Kind::Message) => self.begin(kind, place, ItemKind::Text),
            (None, Kind::Reasoning) => self.begin(kind, place, ItemKind::Reasoning),
            // Nobody knows yet what is called: the whole item will say.
            (None, Kind::Call | Kind::Unknown) => return,
        };
        let part = fields.count(channel.index()).unwrap_or_default();
        self.say(at, channel, part, extent, text);
    }

    fn added(&mut self, fields: &Object<'_>) {
        let item = fields.object("item").unwrap_or_default();
        let place = Place { id: word(&item, "id"), index: fields.count("output_index") };
        let (kind, block) = match &*item.text("type").unwrap_or_default() {
            "message" => (Kind::Message, ItemKind::Text),
            "reasoning" => (Kind::Reasoning, ItemKind::Reasoning),
            "function_call" if word(&item, "name").is_some() => (Kind::Call, called(&item)),
            // These are told when they are whole.
            _ => return,
        };
        let again = self.items.iter().any(|item| item.kind == kind && item.place.id == place.id);
        if place.id.is_none() || !again {
            self.begin(kind, place, block);
        }
    }

    fn begin(&mut self, kind: Kind, place: Place, block: ItemKind) -> usize {
        let at = self.items.len();
        self.chunks.push(Chunk::Started { block: number(at), kind: block });
        let (told, last) = (BTreeSet::new(), None);
        self.items.push(Item { kind, place, told, last, ended: false });
        at
    }

    /// The item that is meant, open or not.
    fn find(&self, kind: Kind, place: &Place) -> Option<usize> {
        let of_kind = || self.items.iter().enumerate().filter(|(_, item)| item.kind == kind);
        let by_id = place.id.is_some().then(|| of_kind().find(|(_, i)| i.place.id == place.id));
        let by_index = || {
            place.index?;
            of_kind().rfind(|(_, item)| item.place.index == place.index)
        };
        by_id.flatten().or_else(by_index).map(|(at, _)| at)
    }

    fn find_open(&self, kind: Kind, place: &Place) -> Option<usize> {
        let open = |at: &usize| !self.items[*at].ended;
        let last = || self.items.iter().rposition(|item| item.kind == kind && !item.ended);
        self.find(kind, place).filter(open).or_else(last)
    }

    fn say(&mut self, at: usize, channel: Channel, part: u64, extent: Extent, text: String) {
        let Some(item) = self.items.get_mut(at).filter(|item| !item.ended) else { return };
        let told = item.told.contains(&(channel, part));
        // A server that shows both what was thought and a summary of it says the same twice.
        let other = item.kind == Kind::Reasoning && item.last.is_some_and(|(c, _)| c != channel);
        if text.is_empty() || other || (told && extent == Extent::Whole) {
            return;
        }
        let block = number(at);
        let next = item.last.is_some_and(|last| last != (channel, part));
        if item.kind == Kind::Reasoning && next {
            self.chunks.push(Chunk::Text { block, text: "\n\n".into() });
        }
        item.told.insert((channel, part));
        item.last = Some((channel, part));
        if channel == Channel::Refusal {
            self.refusal.say(&text);
        }
        let text: Text = text.into();
        self.chunks.push(match channel {
            Channel::Args => Chunk::Args { block, text },
            Channel::Text | Channel::Refusal | Channel::Summary | Channel::Thought => {
                Chunk::Text { block, text }
            }
        });
    }

    /// A whole item: what is not told yet is told, and its block ends.
    fn done(&mut self, raw: &RawValue, mut place: Place) {
        let Some(item) = Object::read(raw.get()) else { return };
        place.id = word(&item, "id");
        match &*item.text("type").unwrap_or_default() {
            "message" => {
                let Some(at) = self.ending(Kind::Message, place, || ItemKind::Text) else { return };
                self.say_parts(at, &item.list("content"));
                let names = ["type", "role", "content", "status"];
                self.ended(at, rest(&item, &names));
            }
            "reasoning" => {
                let begun = self.ending(Kind::Reasoning, place, || ItemKind::Reasoning);
                let Some(at) = begun else { return };
                self.say_parts(at, &item.list("summary"));
                self.say_parts(at, &item.list("content"));
                self.ended(at, Some(raw.get().to_owned()));
            }
            "function_call" => {
                let Some(at) = self.ending(Kind::Call, place, || called(&item)) else { return };
                let args = item.raw("arguments");
                // Some servers send the object itself.
                let args = args.map(|args| json::text(args).unwrap_or(args.get().to_owned()));
                self.say(at, Channel::Args, 0, Extent::Whole, args.unwrap_or_default());
                let names = ["type", "call_id", "name", "arguments", "status"];
                self.ended(at, rest(&item, &names));
            }
            SHELL_CALL => {
                let call_ref: Text = item.text("call_id").unwrap_or_default().into();
                let block = ItemKind::ToolCall { name: SHELL_TOOL.into(), call_ref, native: true };
                let Some(at) = self.ending(Kind::Call, place, || block) else { return };
                let args = shell::args(item.object("action").as_ref());
                self.say(at, Channel::Args, 0, Extent::Whole, args);
                self.ended(at, Some(raw.get().to_owned()));
            }
            _ => {
                self.raw(raw.get());
                // A call that nobody here answers would be missed, so it does not go back.
                if word(&item, "call_id").is_none() && word(&item, "type").is_some() {
                    let at = self.begin(Kind::Unknown, place, ItemKind::Reasoning);
                    self.ended(at, Some(raw.get().to_owned()));
                }
            }
        }
    }

    /// The block of an item that is whole now, begun if need be; none if it has ended before.
    fn ending(
        &mut self,
        kind: Kind,
        place: Place,
        block: impl FnOnce() -> ItemKind,
    ) -> Option<usize> {
        let found = match (&place.id, place.index) {
            (None, None) => self.find_open(kind, &place),
            _ => self.find(kind, &place),
        };
        match found.map(|at| (at, &self.items[at])) {
            Some((at, item)) if !item.ended => Some(at),
            Some((_, item)) if item.place.id == place.id => None,
            Some(_) | None => Some(self.begin(kind, place, block())),
        }
    }

    fn say_parts(&mut self, at: usize, parts: &[&RawValue]) {
        for (part, at_part) in parts.iter().zip(0..) {
            let Some(part) = Object::read(part.get()) else { continue };
            let (channel, field) = match &*part.text("type").unwrap_or_default() {
                "output_text" => (Channel::Text, "text"),
                "refusal" => (Channel::Refusal, "refusal"),
                "summary_text" => (Channel::Summary, "text"),
                "reasoning_text" => (Channel::Thought, "text"),
                _ => continue,
            };
            let text = part.text(field).unwrap_or_default();
            self.say(at, channel, at_part, Extent::Whole, text);
        }
    }

    fn ended(&mut self, at: usize, json: Option<String>) {
        self.items[at].ended = true;
        let opaque = json.map(|json| Opaque { provider: NAME.into(), json: json.into() });
        self.chunks.push(Chunk::Ended { block: number(at), opaque });
    }

    fn completed(&mut self, response: &Object<'_>, stop: Stop) {
        let nothing_came = self.items.is_empty();
        for (item, index) in response.list("output").into_iter().zip(0..) {
            let place = Place { id: None, index: Some(index) };
            if nothing_came || self.is_open(item, &place) {
                self.done(item, place);
            }
        }
        if let Some(said) = self.refusal.said() {
            let failure = openai::refused(self.provider, said);
            self.usage(response);
            return self.fail(failure);
        }
        for at in 0..self.items.len() {
            if !self.items[at].ended {
                self.ended(at, None);
            }
        }
        self.usage(response);
        self.over = true;
        self.chunks.push(Chunk::Done(stop));
    }

    /// Whether this is an item that began and did not end.
    fn is_open(&self, raw: &RawValue, place: &Place) -> bool {
        let Some(item) = Object::read(raw.get()) else { return false };
        let kind = match &*item.text("type").unwrap_or_default() {
            "message" => Kind::Message,
            "reasoning" => Kind::Reasoning,
            "function_call" => Kind::Call,
            _ => return false,
        };
        let place = Place { id: word(&item, "id"), index: place.index };
        self.find(kind, &place).is_some_and(|at| !self.items[at].ended)
    }

    fn incomplete(&mut self, response: &Object<'_>) {
        let details = response.object("incomplete_details").unwrap_or_default();
        let reason = word(&details, "reason").unwrap_or_else(|| "incomplete".to_owned());
        if reason == "max_output_tokens" {
            return self.completed(response, Stop::Length);
        }
        self.usage(response);
        self.fail(openai::refused(self.provider, &reason));
    }

    fn failed(&mut self, response: &Object<'_>, error: &Object<'_>) {
        self.usage(response);
        let told = openai::told(error).unwrap_or_else(openai::Told::nothing);
        self.fail(openai::broken(self.provider, &self.model, told));
    }

    fn usage(&mut self, response: &Object<'_>) {
        let Some(usage) = response.object("usage") else { return };
        let input = usage.object("input_tokens_details").unwrap_or_default();
        let output = usage.object("output_tokens_details").unwrap_or_default();
        self.chunks.push(Chunk::Usage(Usage {
            input_tokens: usage.count("input_tokens").unwrap_or_default(),
            output_tokens: usage.count("output_tokens").unwrap_or_default(),
            cached_tokens: input.count("cached_tokens").unwrap_or_default(),
            cache_written_tokens: input.count("cache_write_tokens").unwrap_or_default(),
            reasoning_tokens: output.count("reasoning_tokens").unwrap_or_default(),
            cost_micros: None,
        }));
    }

    fn fail(&mut self, failure: Failure) {
        self.over = true;
        self.chunks.push(Chunk::Failed(failure));
    }

    fn raw(&mut self, json: &str) {
        self.chunks.push(Chunk::Raw { provider: NAME.into(), json: json.into() });
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn called(item: &Object<'_>) -> ItemKind {
    let name = item.text("name").unwrap_or_default().into();
    let call_ref = item.text("call_id").unwrap_or_default().into();
    ItemKind::ToolCall { name, call_ref, native: false }
}

/// What an item has beside what is told of it; nothing if it has not.
fn rest(item: &Object<'_>, names: &[&str]) -> Option<String> {
    let rest = item.without(names);
    (!rest.is_empty()).then(|| rest.json())
}
