//! Gemini's answers as chunks.
//!
//! An answer comes as a row of small answers, whose parts follow one another: texts go on where
//! the last one ended, calls come whole. It is over when the stream ends and one of them gave a
//! reason to finish, since numbers may still follow that.

use polyloop_session::Heal;
use polyloop_session::item::{ItemKind, Opaque, Usage};
use serde_json::value::{RawValue, to_raw_value};

use super::kept::{self, Piece};
use super::{NAME, PROVIDER, error};
use crate::model::api::Decode;
use crate::model::json::{self, Fields, Object};
use crate::model::sse::Event;
use crate::model::{Chunk, Failure, Stop};

/// Of an answer: what tells, in any of which there is nothing else to show.
const TELLING: [&str; 3] = ["candidates", "promptFeedback", "usageMetadata"];
const BOOKKEEPING: [&str; 4] = ["createTime", "modelStatus", "modelVersion", "responseId"];

#[derive(Default)]
pub(super) struct Decoder {
    open: Option<Open>,
    /// How many blocks have begun.
    blocks: u32,
    usage: Option<Usage>,
    stop: Option<Stop>,
    over: bool,
}

/// A block that is not over: a text may grow, and what has nothing to show stays with the one
/// before it.
enum Open {
    Said { block: u32, thought: bool, pieces: Vec<Piece> },
    Call { block: u32, kept: kept::Call },
}

/// What a reason to finish means.
enum Finish {
    Done(Stop),
    Refused,
    /// The model wrote something that Google itself could not read.
    Garbled,
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
        let mut out = Vec::new();
        if let (false, Some(stop)) = (self.over, self.stop) {
            self.close(&mut out);
            self.over = true;
            out.push(Chunk::Done(stop));
        }
        out
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
        match raw.get().starts_with('[') {
            true => json::list(raw).into_iter().for_each(|raw| self.answer(raw, out)),
            false => self.answer(raw, out),
        }
    }

    fn answer(&mut self, raw: &RawValue, out: &mut Vec<Chunk>) {
        if self.over {
            return;
        }
        let fields = Object::read(raw.get()).unwrap_or_default();
        if fields.raw("error").is_some() {
            return self.fail(error::failure(raw), out);
        }
        if !TELLING.iter().any(|name| fields.raw(name).is_some()) {
            // Some servers keep the line open with nothing but a name.
            if !fields.without(&BOOKKEEPING).is_empty() || !raw.get().starts_with('{') {
                out.push(shown(raw));
            }
            return;
        }
        let candidates = fields.list("candidates");
        let mut candidates = candidates.iter().filter_map(|raw| Object::read(raw.get()));
        let first = candidates.find(|candidate| candidate.count("index").unwrap_or(0) == 0);
        let candidate = first.unwrap_or_default();
        let content = candidate.object("content").unwrap_or_default();
        content.list("parts").into_iter().for_each(|part| self.part(part, out));
        self.count(fields.object("usageMetadata"), out);
        let feedback = fields.object("promptFeedback").unwrap_or_default();
        if let Some(reason) = feedback.text("blockReason") {
            return self.refuse(&reason, feedback.text("blockReasonMessage"), out);
        }
        if let Some(reason) = candidate.text("finishReason") {
            self.finish(&reason, candidate.text("finishMessage"), out);
        }
    }

    fn part(&mut self, raw: &RawValue, out: &mut Vec<Chunk>) {
        let Some(part) = Object::read(raw.get()) else { return out.push(shown(raw)) };
        if let Some(call) = part.object("functionCall") {
            return self.call(&part, &call, out);
        }
        let text = part.text("text");
        let rest = part.without(&["text", "thought"]);
        match (text.as_deref(), rest.is_empty()) {
            (None | Some(""), true) => {}
            (None, false) if !part.without(&["thought", "thoughtSignature"]).is_empty() => {
                out.push(shown(raw));
                self.keep(json::packed(raw), out);
            }
            (None | Some(""), false) => {
                // One that has nothing but a signature would not be taken back.
                let mut fields = part.all();
                fields.set("text", to_raw_value("").ok());
                self.keep(to_raw_value(&fields).ok(), out);
            }
            (Some(text), _) => self.say(text, part.is_true("thought"), rest, out),
        }
    }

    fn say(&mut self, text: &str, is_thought: bool, rest: Fields, out: &mut Vec<Chunk>) {
        let goes_on =
            matches!(&self.open, Some(Open::Said { thought, .. }) if *thought == is_thought);
        if !goes_on {
            self.begin(is_thought, out);
        }
        let Some(Open::Said { block, pieces, .. }) = &mut self.open else { return };
        out.push(Chunk::Text { block: *block, text: text.into() });
        match pieces.last_mut() {
            Some(Piece::Text { bytes, fields }) if fields.is_empty() && rest.is_empty() => {
                *bytes += text.len();
            }
            Some(_) | None => pieces.push(Piece::Text { bytes: text.len(), fields: rest }),
        }
    }

    fn call(&mut self, part: &Object<'_>, call: &Object<'_>, out: &mut Vec<Chunk>) {
        self.close(out);
        let block = self.next_block();
        let id = call.text("id").filter(|id| !id.is_empty());
        let kept = kept::Call {
            has_id: id.is_some(),
            rest: part.without(&["functionCall"]),
            inner: call.without(&["id", "name", "args"]),
            after: Vec::new(),
        };
        let name = call.text("name").unwrap_or_default().into();
        let call_ref = id.unwrap_or_default().into();
        let kind = ItemKind::ToolCall { name, call_ref, native: false };
        out.push(Chunk::Started { block, kind });
        if let Some(args) = call.raw("args") {
            let text = json::text(args).unwrap_or_else(|| json::compact(args.get()));
            if !text.is_empty() {
                out.push(Chunk::Args { block, text: text.into() });
            }
        }
        self.open = Some(Open::Call { block, kept });
    }

    /// A part without anything to show goes back behind the block it followed.
    fn keep(&mut self, part: Option<Box<RawValue>>, out: &mut Vec<Chunk>) {
        if self.open.is_none() {
            self.begin(true, out);
        }
        let Some(part) = part else { return };
        match &mut self.open {
            Some(Open::Said { pieces, .. }) => pieces.push(Piece::Whole { part }),
            Some(Open::Call { kept, .. }) => kept.after.push(part),
            None => {}
        }
    }

    fn finish(&mut self, reason: &str, words: Option<String>, out: &mut Vec<Chunk>) {
        match finish(reason) {
            Finish::Done(stop) => self.stop = Some(stop),
            Finish::Refused => self.refuse(reason, words, out),
            Finish::Garbled => {
                let told = said(reason, words);
                let message = format!("{PROVIDER} could not read what the model wrote ({told})");
                self.fail(Failure::new(Heal::Once, "bad_answer", message), out);
            }
        }
    }

    fn refuse(&mut self, reason: &str, words: Option<String>, out: &mut Vec<Chunk>) {
        let message = format!("{PROVIDER} refused to answer ({})", said(reason, words));
        self.fail(Failure::new(Heal::Never, "refused", message), out);
    }

    /// Every answer repeats the numbers; they are told when they change.
    fn count(&mut self, usage: Option<Object<'_>>, out: &mut Vec<Chunk>) {
        let Some(said) = usage else { return };
        let count = |name| said.count(name).unwrap_or(0);
        let thoughts = count("thoughtsTokenCount");
        let usage = Usage {
            input_tokens: count("promptTokenCount")
                .saturating_add(count("toolUsePromptTokenCount")),
            output_tokens: count("candidatesTokenCount").saturating_add(thoughts),
            cached_tokens: count("cachedContentTokenCount"),
            cache_written_tokens: 0,
            reasoning_tokens: thoughts,
            cost_micros: None,
        };
        if self.usage.replace(usage) != Some(usage) {
            out.push(Chunk::Usage(usage));
        }
    }

    fn begin(&mut self, thought: bool, out: &mut Vec<Chunk>) {
        self.close(out);
        let block = self.next_block();
        let kind = if thought { ItemKind::Reasoning } else { ItemKind::Text };
        out.push(Chunk::Started { block, kind });
        self.open = Some(Open::Said { block, thought, pieces: Vec::new() });
    }

    fn close(&mut self, out: &mut Vec<Chunk>) {
        let (block, kept) = match self.open.take() {
            Some(Open::Said { block, pieces, .. }) => (block, kept::text(&pieces)),
            Some(Open::Call { block, kept }) => (block, Some(kept.json())),
            None => return,
        };
        let opaque = kept.map(|json| Opaque { provider: NAME.into(), json: json.into() });
        out.push(Chunk::Ended { block, opaque });
    }

    fn next_block(&mut self) -> u32 {
        let block = self.blocks;
        self.blocks += 1;
        block
    }

    fn fail(&mut self, failure: Failure, out: &mut Vec<Chunk>) {
        self.over = true;
        out.push(Chunk::Failed(failure));
    }
}

fn finish(reason: &str) -> Finish {
    match reason.strip_prefix("IMAGE_").unwrap_or(reason) {
        "MAX_TOKENS" | "CONTINUATION" => Finish::Done(Stop::Length),
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "MODEL_ARMOR" | "JAILBREAK" => Finish::Refused,
        "MALFORMED_FUNCTION_CALL"
        | "MALFORMED_RESPONSE"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS" => Finish::Garbled,
        // `STOP`, and what is not known yet: what came is an answer.
        _ => Finish::Done(Stop::End),
    }
}

fn said(reason: &str, words: Option<String>) -> String {
    match words.filter(|words| !words.is_empty()) {
        Some(words) => json::words(&format!("{reason}: {words}")),
        None => json::words(reason),
    }
}

fn shown(raw: &RawValue) -> Chunk {
    Chunk::Raw { provider: NAME.into(), json: json::compact(raw.get()).into() }
}
