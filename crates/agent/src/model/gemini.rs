//! Google's Gemini interface: with a key, or as a service account.

pub mod account;
mod decode;
mod encode;
mod error;
mod kept;
mod wire;

use super::api::{Api, Decode, Refused};
use super::pieces::Pieces;
use super::table::Card;
use super::{Failure, Request};

const NAME: &str = "google";
const PROVIDER: &str = "Google";

pub struct Gemini;

impl Api for Gemini {
    fn name(&self) -> &'static str {
        NAME
    }

    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn path(&self, model: &str) -> String {
        let model = model.strip_prefix("models/").unwrap_or(model);
        format!("/v1beta/models/{}:streamGenerateContent?alt=sse", escaped(model))
    }

    fn models_path(&self) -> &'static str {
        "/v1beta/models?pageSize=1000"
    }

    fn encode(&self, request: &Request, model: &str, card: &Card) -> Pieces {
        encode::body(request, model, card)
    }

    fn decoder(&self) -> Box<dyn Decode> {
        Box::<decode::Decoder>::default()
    }

    fn refusal(&self, answer: &Refused<'_>) -> Failure {
        error::refusal(answer)
    }
}

/// As one piece of a path.
fn escaped(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
    let escape = |b: u8| match plain(b) {
        true => char::from(b).to_string(),
        false => format!("%{b:02X}"),
    };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests;
