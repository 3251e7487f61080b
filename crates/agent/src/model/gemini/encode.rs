//! A prompt as a request to Gemini.
//!
//! A user begins and ends; the results of one message's calls stand together, right behind it and
//! in its order. What came signed goes back signed, part by part.

use std::collections::BTreeSet;

use polyloop_session::history::{AssistantPart, Message, Prompt};
use polyloop_session::item::{Opaque, Part as Given};

use super::NAME;
use super::kept::{self, Piece};
use super::wire::{
    Blob, Body, Call, Content, Declaration, GenerationConfig, Instructed, Instruction, Outcome,
    Part, Response, Role, ThinkingConfig, Tools,
};
use crate::model::Request;
use crate::model::json::{self, Fields, Object};
use crate::model::pieces::Pieces;
use crate::model::table::Card;
use crate::tool::ToolSpec;

const NO_IMAGE: &str = "[an image was attached, which this model does not take]";
const NO_TEXT: &str = "(The message was empty.)";
const BEGUN: &str = "(The conversation begins with your answer.)";
const GO_ON: &str = "(Go on.)";
const NOT_SIGNED: &str = r#"{"thoughtSignature":"skip_thought_signature_validator"}"#;

pub(super) fn body(request: &Request, model: &str, card: &Card) -> Pieces {
    let config = GenerationConfig {
        max_output_tokens: Some(card.output_tokens_max).filter(|most| *most > 0),
        thinking_config: card.reasoning.then_some(ThinkingConfig { include_thoughts: true }),
    };
    let nothing = GenerationConfig { max_output_tokens: None, thinking_config: None };
    let instructions = Some(&request.instructions).filter(|text| !text.trim().is_empty());
    let body = Body {
        generation_config: Some(config).filter(|config| *config != nothing),
        system_instruction: instructions.map(|text| Instruction { parts: [Instructed { text }] }),
        tools: request.tools.written(NAME, tools),
        contents: contents(&request.prompt, wants_signatures(model), card),
    };
    json::written(&body, request)
}

fn tools(told: &[ToolSpec]) -> [Tools<'_>; 1] {
    let declared = told.iter().map(|spec| Declaration {
        name: spec.name,
        description: &spec.description,
        parameters_json_schema: &spec.parameters,
    });
    [Tools { function_declarations: declared.collect() }]
}

/// Contents as they grow.
#[derive(Default)]
struct Contents<'a> {
    done: Vec<Content<'a>>,
    /// The last one holds results, which stay by themselves.
    results: bool,
    /// The model refuses calls that nobody signed.
    signed: bool,
    /// Calls of the last answer that had ids of their own.
    ids: BTreeSet<&'a str>,
}

fn contents<'a>(prompt: &'a Prompt, signed: bool, card: &Card) -> Vec<Content<'a>> {
    let mut out = Contents { signed, ..Contents::default() };
    for message in &prompt.messages {
        match message {
            Message::User(parts) => {
                let mut parts: Vec<Part<'a>> =
                    parts.iter().filter_map(|part| user(part, card)).collect();
                if parts.is_empty() {
                    parts.push(Part::text(NO_TEXT));
                }
                out.user(parts);
            }
            Message::Assistant(parts) => out.model(parts),
            Message::ToolResult { call_ref, name, output, is_error } => {
                let id = out.ids.contains(&**call_ref).then_some(&**call_ref);
                let response =
                    if *is_error { Outcome::Error(output) } else { Outcome::Output(output) };
                let function_response = Response { id, name, response };
                out.result(Part::Response { function_response });
            }
        }
    }
    match out.done.last().map(|last| last.role) {
        Some(Role::User) => {}
        Some(Role::Model) => out.user(vec![Part::text(GO_ON)]),
        None => out.user(vec![Part::text(NO_TEXT)]),
    }
    out.done
}

impl<'a> Contents<'a> {
    fn user(&mut self, parts: Vec<Part<'a>>) {
        let results = std::mem::replace(&mut self.results, false);
        match self.done.last_mut() {
            Some(last) if last.role == Role::User && !results => last.parts.extend(parts),
            Some(_) | None => self.done.push(Content { role: Role::User, parts }),
        }
    }

    fn result(&mut self, part: Part<'a>) {
        match self.done.last_mut() {
            Some(last) if self.results => last.parts.push(part),
            Some(_) | None => self.done.push(Content { role: Role::User, parts: vec![part] }),
        }
        self.results = true;
    }

    fn model(&mut self, said: &'a [AssistantPart]) {
        let mut parts = Vec::new();
        self.ids.clear();
        for part in said {
            match part {
                AssistantPart::Text { text, opaque } => {
                    if !signed(text, false, opaque, &mut parts) && !text.trim().is_empty() {
                        parts.push(Part::text(text));
                    }
                }
                // Without a signature it is only what people were shown.
                AssistantPart::Reasoning { text, opaque } => {
                    signed(text, true, opaque, &mut parts);
                }
                AssistantPart::ToolCall { call_ref, name, args, opaque } => {
                    let kept = own(opaque).map(|kept| kept::Call::read(&kept));
                    let foreign = kept.is_none();
                    let mut kept = kept.unwrap_or_default();
                    if foreign && self.signed && !parts.iter().any(is_call) {
                        kept.rest = unsigned();
                    }
                    let id = kept.has_id.then_some(&**call_ref);
                    self.ids.extend(id);
                    let args = json::arguments(args);
                    let function_call = Call { id, name, args, rest: kept.inner };
                    parts.push(Part::Call { function_call, rest: kept.rest });
                    parts.extend(kept.after.into_iter().map(Part::Whole));
                }
            }
        }
        if parts.is_empty() {
            return;
        }
        match self.done.last().map(|last| last.role) {
            Some(Role::User) => {}
            Some(Role::Model) => self.user(vec![Part::text(GO_ON)]),
            None => self.user(vec![Part::text(BEGUN)]),
        }
        self.results = false;
        self.done.push(Content { role: Role::Model, parts });
    }
}

/// From the third generation on, the first call of a reply must be signed.
fn wants_signatures(model: &str) -> bool {
    let name = model.strip_prefix("models/").unwrap_or(model);
    !["gemini-1", "gemini-2"].iter().any(|old| name.starts_with(old))
}

/// What the provider takes in place of a signature, for calls that another model made.
fn unsigned() -> Fields {
    Object::read(NOT_SIGNED).map(|fields| fields.without(&[])).unwrap_or_default()
}

fn is_call(part: &Part<'_>) -> bool {
    matches!(part, Part::Call { .. })
}

/// Puts a text back into the parts it came in; says whether it could.
fn signed<'a>(
    text: &'a str,
    thought: bool,
    opaque: &Option<Opaque>,
    parts: &mut Vec<Part<'a>>,
) -> bool {
    let Some(pieces) = own(opaque).and_then(|kept| kept::pieces(&kept, text)) else { return false };
    let mut rest = text;
    for piece in pieces {
        match piece {
            Piece::Text { bytes, fields } => {
                let (text, behind) = rest.split_at(bytes);
                rest = behind;
                parts.push(Part::Text { text, thought, rest: fields });
            }
            Piece::Whole { part } => parts.push(Part::Whole(part)),
        }
    }
    true
}

fn user<'a>(part: &'a Given, card: &Card) -> Option<Part<'a>> {
    match part {
        Given::Text { text } => (!text.trim().is_empty()).then(|| Part::text(text)),
        Given::Image { media_type, data } if card.images => {
            Some(Part::Image { inline_data: Blob { mime_type: media_type, data } })
        }
        Given::Image { .. } => Some(Part::text(NO_IMAGE)),
    }
}

/// What came from here; what came from others means nothing here.
fn own(opaque: &Option<Opaque>) -> Option<Object<'_>> {
    let opaque = opaque.as_ref().filter(|opaque| &*opaque.provider == NAME)?;
    Object::read(&opaque.json)
}
