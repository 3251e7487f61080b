//! Anthropic's events as chunks.
//!
//! Its blocks are numbered by the provider and come one after the other; here they are counted
//! anew, and one whose end never came ends where the next begins.

use polyloop_session::Heal;
use polyloop_session::item::{ItemKind, Opaque, Usage};
use serde_json::value::RawValue;

use super::{NAME, PROVIDER, said_in};
use crate::model::api::Decode;
use crate::model::fault::{self, Error};
use crate::model::json::{self, Fields, Object};
use crate::model::sse::Event;
use crate::model::{Chunk, Failure, Stop};

#[derive(Default)]
pub(super) struct Decoder {
    open: Option<Open>,
    /// How many blocks have begun.
    blocks: u32,
    counts: Counts,
    stop: Option<Stop>,
    over: bool,
}

/// A block that grows.
struct Open {
    /// The provider's own number of it.
    index: Option<u64>,
    block: u32,
    kind: Kind,
}

enum Kind {
    Text,
    Thinking {
        signature: String,
        rest: Fields,
    },
    Tool {
        /// Arguments that came with the beginning; they count when no others come.
        given: String,
        streamed: bool,
        rest: Fields,
    },
    /// What has nothing to show: it is only kept, for the way back.
    Kept {
        json: String,
        /// Input that came later, in pieces.
        input: String,
        /// Something came that nobody knows, so that it cannot go back as it was.
        torn: bool,
    },
}

impl Decode for Decoder {
    fn event(&mut self, event: &Event) -> Vec<Chunk> {
        let mut out = Vec::new();
        if !self.over {
            self.read(event, &mut out);
        }
        out
    }

    fn end(&mut self) -> Vec<Chunk> {
        Vec::new() // An answer that is whole has said so.
    }
}

impl Decoder {
    fn read(&mut self, event: &Event, out: &mut Vec<Chunk>) {
        let data = event.data.trim_ascii();
        if data.is_empty() || data == b"[DONE]" {
            return; // Other interfaces' habits, which servers that speak several do not drop.
        }
        let Ok(raw) = serde_json::from_slice::<&RawValue>(data) else {
            let message = format!("{PROVIDER} sent an event that is not JSON");
            let heal = Heal::Later { after_ms: None };
            return self.fail(Failure::new(heal, "bad_answer", message), out);
        };
        let fields = Object::read(raw.get()).unwrap_or_default();
        let name = fields.text("type").unwrap_or_else(|| event.name.clone());
        match &*name {
            "message_start" => {
                let message = fields.object("message").unwrap_or_default();
                out.extend(self.counts.take(message.object("usage")));
            }
            "content_block_start" => self.block_started(&fields, out),
            "content_block_delta" => self.grew(&fields, raw, out),
            "content_block_stop" => {
                let (index, open) = (fields.count("index"), self.open.as_ref());
                if open.is_some_and(|open| index.is_none() || open.index == index) {
                    self.close(out);
                }
            }
            "message_delta" => self.stopping(&fields, out),
            "message_stop" => {
                self.close(out);
                self.over = true;
                out.push(Chunk::Done(self.stop.unwrap_or(Stop::End)));
            }
            "ping" => {}
            _ if name == "error" || fields.raw("error").is_some() => {
                let said = said_in(&fields);
                let model = "the model";
                let error = Error { provider: PROVIDER, model, said, ..Error::default() };
                self.fail(fault::failure(error), out);
            }
            _ => out.push(shown(raw)),
        }
    }

    fn block_started(&mut self, fields: &Object<'_>, out: &mut Vec<Chunk>) {
        let index = fields.count("index");
        let raw = fields.raw("content_block");
        let block = raw.and_then(|raw| Object::read(raw.get())).unwrap_or_default();
        let kind = block.text("type").unwrap_or_default();
        match &*kind {
            "text" => {
                self.open(index, Kind::Text, ItemKind::Text, out);
                self.say(block.text("text"), out);
            }
            "thinking" => {
                let signature = block.text("signature").unwrap_or_default();
                let rest = block.without(&["type", "thinking", "signature"]);
                self.open(index, Kind::Thinking { signature, rest }, ItemKind::Reasoning, out);
                self.say(block.text("thinking"), out);
            }
            "tool_use" => {
                let item = ItemKind::ToolCall {
                    name: block.text("name").unwrap_or_default().into(),
                    call_ref: block.text("id").unwrap_or_default().into(),
                    native: false,
                };
                let given = block.raw("input").map(given).unwrap_or_default();
                let rest = block.without(&["type", "id", "name", "input"]);
                self.open(index, Kind::Tool { given, streamed: false, rest }, item, out);
            }
            _ => {
                let Some(raw) = raw else { return };
                let json = json::compact(raw.get());
                let kind = Kind::Kept { json, input: String::new(), torn: false };
                self.open(index, kind, ItemKind::Reasoning, out);
            }
        }
    }

    fn grew(&mut self, fields: &Object<'_>, raw: &RawValue, out: &mut Vec<Chunk>) {
        let delta = fields.object("delta").unwrap_or_default();
        let kind = delta.text("type").unwrap_or_default();
        let index = fields.count("index");
        let unknown = |open: &Open| index.is_some() && open.index != index;
        if self.open.as_ref().is_none_or(unknown) {
            // Its beginning never came.
            match &*kind {
                "text_delta" => self.open(index, Kind::Text, ItemKind::Text, out),
                "thinking_delta" => {
                    let (signature, rest) = (String::new(), Fields::default());
                    let kind = Kind::Thinking { signature, rest };
                    self.open(index, kind, ItemKind::Reasoning, out);
                }
                _ => return out.push(shown(raw)),
            }
        }
        let Some(Open { block, kind: open, .. }) = &mut self.open else { return };
        match (&*kind, open) {
            ("text_delta", Kind::Text) => self.say(delta.text("text"), out),
            ("thinking_delta", Kind::Thinking { .. }) => self.say(delta.text("thinking"), out),
            ("signature_delta", Kind::Thinking { signature, .. }) => {
                *signature = delta.text("signature").unwrap_or_default();
            }
            ("input_json_delta", Kind::Tool { streamed, .. }) => {
                let text = delta.text("partial_json").filter(|text| !text.is_empty());
                if let Some(text) = text {
                    *streamed = true;
                    out.push(Chunk::Args { block: *block, text: text.into() });
                }
            }
            ("input_json_delta", Kind::Kept { input, .. }) => {
                input.push_str(&delta.text("partial_json").unwrap_or_default());
            }
            (_, Kind::Kept { torn, .. }) => {
                *torn = true;
                out.push(shown(raw));
            }
            (_, Kind::Text | Kind::Thinking { .. } | Kind::Tool { .. }) => out.push(shown(raw)),
        }
    }

    fn stopping(&mut self, fields: &Object<'_>, out: &mut Vec<Chunk>) {
        let delta = fields.object("delta").unwrap_or_default();
        out.extend(self.counts.take(fields.object("usage")));
        let Some(reason) = delta.text("stop_reason") else { return };
        match &*reason {
            "refusal" => {
                let details = delta.object("stop_details").unwrap_or_default();
                let words = [Some(reason), details.text("category"), details.text("explanation")];
                let words = words.into_iter().flatten().collect::<Vec<_>>().join(": ");
                let message = format!("{PROVIDER} refused to answer ({})", json::words(&words));
                self.fail(Failure::new(Heal::Never, "refused", message), out);
            }
            "max_tokens" | "model_context_window_exceeded" => self.stop = Some(Stop::Length),
            // The rest says that it had said what it had to say, each in its own way.
            _ => self.stop = Some(Stop::End),
        }
    }

    fn open(&mut self, index: Option<u64>, kind: Kind, item: ItemKind, out: &mut Vec<Chunk>) {
        self.close(out);
        let block = self.blocks;
        self.blocks += 1;
        self.open = Some(Open { index, block, kind });
        out.push(Chunk::Started { block, kind: item });
    }

    fn say(&self, text: Option<String>, out: &mut Vec<Chunk>) {
        if let (Some(open), Some(text)) = (&self.open, text.filter(|text| !text.is_empty())) {
            out.push(Chunk::Text { block: open.block, text: text.into() });
        }
    }

    fn close(&mut self, out: &mut Vec<Chunk>) {
        let Some(Open { block, kind, .. }) = self.open.take() else { return };
        let kept = match kind {
            Kind::Text => None,
            Kind::Thinking { signature, rest } => signed(&signature, rest),
            Kind::Tool { given, streamed, rest } => {
                if !streamed && !given.is_empty() {
                    out.push(Chunk::Args { block, text: given.into() });
                }
                (!rest.is_empty()).then(|| rest.json())
            }
            Kind::Kept { json, input, torn } => {
                let whole = with_input(json, &input);
                if !is_redacted(&whole) {
                    out.push(Chunk::Raw { provider: NAME.into(), json: whole.as_str().into() });
                }
                (!torn).then_some(whole)
            }
        };
        let opaque = kept.map(|json| Opaque { provider: NAME.into(), json: json.into() });
        out.push(Chunk::Ended { block, opaque });
    }

    fn fail(&mut self, failure: Failure, out: &mut Vec<Chunk>) {
        self.over = true;
        out.push(Chunk::Failed(failure));
    }
}

/// What a signed piece of reasoning needs on its way back, beside its text.
fn signed(signature: &str, rest: Fields) -> Option<String> {
    let signature = Some(signature).filter(|signature| !signature.is_empty())?;
    let mut fields = Fields::default();
    fields.set("signature", serde_json::value::to_raw_value(signature).ok());
    fields.extend(rest);
    Some(fields.json())
}

/// A block whose input came behind it, with that input.
fn with_input(json: String, input: &str) -> String {
    let read = || {
        let block = Object::read(&json)?;
        let input = serde_json::from_str::<&RawValue>(input).ok()?;
        let mut fields = block.all();
        fields.set("input", json::packed(input));
        Some(fields.json())
    };
    read().unwrap_or(json)
}

/// Reasoning that nobody may read: there is nothing in it to show, not even as it came.
fn is_redacted(json: &str) -> bool {
    let kind = Object::read(json).and_then(|block| block.text("type"));
    kind.as_deref() == Some("redacted_thinking")
}

/// Arguments that came whole: an object, or its text. An empty one may be a mere place for those
/// that are to come.
fn given(input: &RawValue) -> String {
    let text = json::text(input).unwrap_or_else(|| json::compact(input.get()));
    if text == "{}" { String::new() } else { text }
}

fn shown(raw: &RawValue) -> Chunk {
    Chunk::Raw { provider: NAME.into(), json: json::compact(raw.get()).into() }
}

/// Tokens, as far as they are known: later numbers take the place of earlier ones.
#[derive(Default)]
struct Counts {
    fresh: u64,
    cached: u64,
    cache_written: u64,
    output: u64,
    reasoning: u64,
}

impl Counts {
    fn take(&mut self, usage: Option<Object<'_>>) -> Option<Chunk> {
        let usage = usage?;
        let details = usage.object("output_tokens_details").unwrap_or_default();
        let known = [
            (&mut self.fresh, usage.count("input_tokens")),
            (&mut self.cached, usage.count("cache_read_input_tokens")),
            (&mut self.cache_written, usage.count("cache_creation_input_tokens")),
            (&mut self.output, usage.count("output_tokens")),
            (&mut self.reasoning, details.count("thinking_tokens")),
        ];
        for (count, said) in known {
            *count = said.unwrap_or(*count);
        }
        let input = self.fresh.saturating_add(self.cached).saturating_add(self.cache_written);
        Some(Chunk::Usage(Usage {
            input_tokens: input,
            output_tokens: self.output,
            cached_tokens: self.cached,
            cache_written_tokens: self.cache_written,
            reasoning_tokens: self.reasoning,
            cost_micros: None,
        }))
    }
}
