//! An answer's events as chunks.
//!
//! A text or a piece of reasoning ends when something else begins. Calls end with the answer:
//! their pieces may be mixed, and no piece says that it is the last. The answer ends with
//! `[DONE]`, or with the stream if a reason to finish was given; usage may come behind that.

use polyloop_session::Text;
use polyloop_session::item::{ItemKind, Opaque, Usage};
use serde_json::value::RawValue;

use super::NAME;
use super::calls::{Calls, Piece};
use super::plain::{Around, Choice, Plain};
use super::thoughts::{Came, Field, Thought, thought};
use crate::model::api::{Decode, Said};
use crate::model::json::{self, Object};
use crate::model::openai::{self, Read, Refusal, Told, word};
use crate::model::sse::Event;
use crate::model::{Chunk, Failure, Stop};

pub struct Decoder {
    provider: &'static str,
    /// As the server calls it; empty until it does.
    model: String,
    /// The next block's number.
    next: u32,
    text: Option<u32>,
    thought: Option<Thinking>,
    calls: Calls,
    usage: Option<Usage>,
    finish: Option<String>,
    refusal: Refusal,
    over: bool,
    chunks: Vec<Chunk>,
    around: Around,
}

/// A piece of reasoning whose block has not ended.
struct Thinking {
    block: u32,
    /// Something else has begun; only details may still come, which belong to it.
    past: bool,
    came: Came,
}

/// What a server means by its reason to finish. A word that nobody knows is a good end.
enum Finish {
    End,
    Length,
    Refused,
    Broken,
}

fn finish(reason: &str) -> Finish {
    match &*reason.to_ascii_lowercase() {
        "length" | "max_tokens" | "model_length" | "max_output_tokens" => Finish::Length,
        "content_filter" | "safety" | "refusal" | "sensitive" | "recitation" | "blocklist"
        | "prohibited_content" | "spii" => Finish::Refused,
        "error" | "engine_error" | "insufficient_system_resource" => Finish::Broken,
        _ => Finish::End,
    }
}

impl Decode for Decoder {
    fn event(&mut self, event: &Event) -> Vec<Chunk> {
        if self.over {
            return Vec::new();
        }
        if let Some(text) = self.around.text(event) {
            self.say(text);
            return std::mem::take(&mut self.chunks);
        }
        if let Some(plain) = Plain::read(event) {
            self.plain(&plain);
            self.around.keep(event, &plain);
            return std::mem::take(&mut self.chunks);
        }
        match openai::read(event) {
            Read::Nothing => {}
            Read::Last => self.done(),
            Read::Object(fields, json) => self.object(event, &fields, json),
            Read::Other(json) => self.raw(json),
            Read::NotJson => self.fail(openai::not_json(self.provider)),
        }
        std::mem::take(&mut self.chunks)
    }

    fn end(&mut self) -> Vec<Chunk> {
        if !self.over && self.finish.is_some() {
            self.done();
        }
        std::mem::take(&mut self.chunks)
    }
}

impl Decoder {
    pub fn new(provider: &'static str) -> Decoder {
        Decoder {
            provider,
            model: String::new(),
            next: 0,
            text: None,
            thought: None,
            calls: Calls::default(),
            usage: None,
            finish: None,
            refusal: Refusal::default(),
            over: false,
            chunks: Vec::new(),
            around: Around::default(),
        }
    }

    fn plain(&mut self, plain: &Plain<'_>) {
        if !plain.model.is_empty() && *self.model != *plain.model {
            self.model = plain.model.as_ref().into();
        }
        let [Choice { delta, .. }] = &plain.choices;
        self.say(&delta.content);
    }

    fn object(&mut self, event: &Event, fields: &Object<'_>, json: &str) {
        if let Some(model) = word(fields, "model") {
            self.model = model;
        }
        let is_error = event.name == "error" || fields.text("object").is_some_and(|o| o == "error");
        if is_error || fields.raw("error").is_some() {
            let told = openai::told(fields).unwrap_or_else(Told::nothing);
            return self.fail(openai::broken(self.provider, &self.model, told));
        }
        if !["choices", "usage"].into_iter().any(|name| fields.raw(name).is_some()) {
            return self.raw(json);
        }
        let choices = fields.list("choices").into_iter();
        let mut choices = choices.filter_map(|choice| Object::read(choice.get()));
        // Only the first of several answers counts.
        let choice = choices.find(|choice| choice.count("index").unwrap_or_default() == 0);
        if let Some(choice) = choice {
            self.choice(&choice);
        }
        if let Some(usage) = fields.object("usage") {
            self.used(&usage);
        }
    }

    fn choice(&mut self, choice: &Object<'_>) {
        // A server that does not stream has it all in a message.
        let whole = || choice.object("message").filter(|_| self.next == 0);
        if let Some(delta) = choice.object("delta").or_else(whole) {
            self.delta(&delta);
        }
        if let Some(reason) = word(choice, "finish_reason") {
            self.finish = Some(reason);
        }
    }

    fn delta(&mut self, delta: &Object<'_>) {
        if let Some(thought) = thought(delta) {
            self.think(thought);
        }
        if let Some(content) = delta.raw("content") {
            self.content(content);
        }
        if let Some(text) = word(delta, "refusal") {
            self.refusal.say(&text);
            self.say(&text);
        }
        for call in delta.list("tool_calls") {
            if let Some(call) = Object::read(call.get()) {
                self.call(Piece::of_call(&call));
            }
        }
        if let Some(function) = delta.object("function_call") {
            self.call(Piece::of_function(&function));
        }
    }

    /// A string, or a list of parts.
    fn content(&mut self, content: &RawValue) {
        if let Some(text) = json::text(content) {
            return self.say(&text);
        }
        for part in json::list(content) {
            let Some(part) = Object::read(part.get()) else { continue };
            if let Some(text) = part.text("text") {
                self.say(&text);
            }
            // Mistral's way to think.
            for thought in part.list("thinking") {
                let text = Object::read(thought.get()).and_then(|thought| thought.text("text"));
                let (field, details) = (Field::ReasoningDetails, Vec::new());
                self.think(Thought { field, text: text.unwrap_or_default(), details });
            }
        }
    }

    fn say(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let block = self.text.unwrap_or_else(|| {
            self.pass();
            let block = self.start(ItemKind::Text);
            self.text = Some(block);
            block
        });
        self.chunks.push(Chunk::Text { block, text: text.into() });
    }

    fn think(&mut self, thought: Thought) {
        let Thought { field, text, details } = thought;
        // Details that come behind the thought they sign.
        if let Some(thinking) = self.thought.as_mut().filter(|_| text.is_empty()) {
            return thinking.came.add(details);
        }
        if text.is_empty() && details.is_empty() {
            return;
        }
        if self.thought.as_ref().is_none_or(|thinking| thinking.past) {
            self.pass();
            self.end_thought();
            let block = self.start(ItemKind::Reasoning);
            self.thought = Some(Thinking { block, past: false, came: Came::new(field) });
        }
        let Some(thinking) = &mut self.thought else { return };
        thinking.came.add(details);
        if !text.is_empty() {
            self.chunks.push(Chunk::Text { block: thinking.block, text: text.into() });
        }
    }

    fn call(&mut self, piece: Piece) {
        self.end_text();
        self.pass_thought();
        self.calls.take(piece, &mut self.next, &mut self.chunks);
    }

    fn start(&mut self, kind: ItemKind) -> u32 {
        let block = self.next;
        self.next = self.next.saturating_add(1);
        self.chunks.push(Chunk::Started { block, kind });
        block
    }

    /// Something else begins.
    fn pass(&mut self) {
        self.end_text();
        self.pass_thought();
        self.calls.begin_named(&mut self.next, &mut self.chunks);
    }

    fn end_text(&mut self) {
        if let Some(block) = self.text.take() {
            self.chunks.push(Chunk::Ended { block, opaque: None });
        }
    }

    fn pass_thought(&mut self) {
        let Some(thinking) = &mut self.thought else { return };
        thinking.past = true;
        if !thinking.came.has_details() {
            self.end_thought();
        }
    }

    fn end_thought(&mut self) {
        let Some(Thinking { block, came, .. }) = self.thought.take() else { return };
        let opaque = came.json().map(|json| Opaque { provider: NAME.into(), json: json.into() });
        self.chunks.push(Chunk::Ended { block, opaque });
    }

    fn used(&mut self, usage: &Object<'_>) {
        let input = usage.object("prompt_tokens_details").unwrap_or_default();
        let output = usage.object("completion_tokens_details").unwrap_or_default();
        let cached = input.count("cached_tokens");
        // DeepSeek's name for it.
        let cached = cached.or_else(|| usage.count("prompt_cache_hit_tokens"));
        let usage = Usage {
            input_tokens: usage.count("prompt_tokens").unwrap_or_default(),
            output_tokens: usage.count("completion_tokens").unwrap_or_default(),
            cached_tokens: cached.unwrap_or_default(),
            cache_written_tokens: input.count("cache_write_tokens").unwrap_or_default(),
            reasoning_tokens: output.count("reasoning_tokens").unwrap_or_default(),
            cost_micros: None,
        };
        // Some servers count with every event.
        if self.usage != Some(usage) {
            self.usage = Some(usage);
            self.chunks.push(Chunk::Usage(usage));
        }
    }

    /// The answer has ended, and its reason says how.
    fn done(&mut self) {
        let reason = self.finish.take().unwrap_or_default();
        if let Some(said) = self.refusal.said() {
            return self.fail(openai::refused(self.provider, said));
        }
        let stop = match finish(&reason) {
            Finish::End => Stop::End,
            Finish::Length => Stop::Length,
            Finish::Refused => return self.fail(openai::refused(self.provider, &reason)),
            Finish::Broken => {
                let message: Text = "the answer was broken off".into();
                let told = Told { said: Said { code: reason, message }, status: None };
                return self.fail(openai::broken(self.provider, &self.model, told));
            }
        };
        self.end_text();
        self.end_thought();
        self.calls.end(&mut self.next, &mut self.chunks);
        self.over = true;
        self.chunks.push(Chunk::Done(stop));
    }

    fn fail(&mut self, failure: Failure) {
        self.over = true;
        self.chunks.push(Chunk::Failed(failure));
    }

    fn raw(&mut self, json: &str) {
        self.chunks.push(Chunk::Raw { provider: NAME.into(), json: json.into() });
    }
}
