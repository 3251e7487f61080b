//! Anthropic's Messages interface, and servers that speak it.

mod decode;
mod encode;
mod wire;

use polyloop_session::Heal;

use super::api::{Api, Decode, Refused, Said};
use super::fault::{self, Error};
use super::json::{self, Object};
use super::pieces::Pieces;
use super::table::Card;
use super::{Failure, Request};

const NAME: &str = "anthropic";
const PROVIDER: &str = "Anthropic";

/// What it says of reasoning that was kept while something before it changed.
const STALE_REASONING: &str = "bound to a different conversation";

pub struct Anthropic;

impl Api for Anthropic {
    fn name(&self) -> &'static str {
        NAME
    }

    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn path(&self, _model: &str) -> String {
        "/v1/messages".to_owned()
    }

    fn models_path(&self) -> &'static str {
        "/v1/models?limit=1000"
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn encode(&self, request: &Request, model: &str, card: &Card) -> Pieces {
        encode::body(request, model, card)
    }

    fn decoder(&self) -> Box<dyn Decode> {
        Box::<decode::Decoder>::default()
    }

    fn refusal(&self, answer: &Refused<'_>) -> Failure {
        let Refused { status, body, model, retry_after_ms } = *answer;
        let said = said(body);
        if status == 400 && said.message.contains(STALE_REASONING) {
            // A conversation that begins with a summary goes there without its reasoning.
            let message = format!(
                "{model} does not take back its reasoning of this conversation ({status}: {}: {})",
                said.code,
                json::words(&said.message)
            );
            return Failure::new(Heal::Shorter, "invalid_request", message);
        }
        let status = Some(status);
        fault::failure(Error { provider: PROVIDER, model, status, said, retry_after_ms })
    }
}

/// The error in a body; of one that is none, its words.
fn said(body: &[u8]) -> Said {
    let json = std::str::from_utf8(body).unwrap_or_default();
    match Object::read(json) {
        Some(answer) => said_in(&answer),
        None => Said { code: String::new(), message: json::told(body).into() },
    }
}

/// Gateways in front of it leave out the outer or the inner object.
fn said_in(answer: &Object<'_>) -> Said {
    let error = answer.object("error").unwrap_or_default();
    let message = error
        .text("message")
        .or_else(|| ["error", "message", "detail"].iter().find_map(|name| answer.text(name)));
    Said {
        code: error.text("type").unwrap_or_default(),
        message: message.unwrap_or_default().into(),
    }
}

/// The generation in a model's name, `claude-opus-4-8` being 4.8.
fn version(model: &str) -> Option<(u32, u32)> {
    let words = model[model.find("claude")?..].split(|c: char| !c.is_ascii_alphanumeric());
    // Longer numbers are dates.
    let number = |word: &str| word.parse().ok().filter(|_| word.len() <= 2);
    let mut words = words.skip_while(|word| number(word).is_none());
    let major = words.next().and_then(number)?;
    Some((major, words.next().and_then(number).unwrap_or(0)))
}

/// Newer models decide themselves how much they think, and refuse to be given a number; older
/// ones, and those nobody knows, want one.
pub fn thinks_adaptively(model: &str) -> bool {
    let family = ["fable", "mythos"].iter().any(|family| model.contains(family));
    family || version(model).is_some_and(|version| version >= (4, 6))
}

/// The newest take reasoning back only if nothing before it has changed.
fn binds_reasoning(model: &str) -> bool {
    version(model).is_some_and(|version| version >= (5, 1))
}

#[cfg(test)]
mod tests;
