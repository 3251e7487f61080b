//! OpenAI's Chat Completions interface: `POST /chat/completions`, streamed.
//!
//! The one that everybody speaks: llama.cpp, Ollama, vLLM, LM Studio, OpenRouter, DeepSeek. Asks
//! for no more than all of them take, and reads what any of them sends: whatever is missing, of
//! another kind or unheard of fails no answer.

use super::api::{Api, Decode, Refused};
use super::pieces::Pieces;
use super::table::Card;
use super::{Failure, Request, json, openai};

mod calls;
mod decode;
mod encode;
mod plain;
mod thoughts;
mod wire;

/// Marks what goes back to this interface.
pub const NAME: &str = "openai-chat";

pub struct Completions {
    provider: &'static str,
}

impl Completions {
    /// `provider` is whose server it is, as people say it; `The model server` for one that is
    /// nobody's.
    pub const fn new(provider: &'static str) -> Completions {
        Completions { provider }
    }
}

impl Api for Completions {
    fn name(&self) -> &'static str {
        NAME
    }

    fn provider(&self) -> &'static str {
        self.provider
    }

    fn path(&self, _model: &str) -> String {
        "/chat/completions".to_owned()
    }

    fn encode(&self, request: &Request, model: &str, card: &Card) -> Pieces {
        // Strings, numbers and JSON that has been read: nothing here can fail.
        json::written(&encode::request(request, model, card), request)
    }

    fn decoder(&self) -> Box<dyn Decode> {
        Box::new(decode::Decoder::new(self.provider))
    }

    fn refusal(&self, answer: &Refused<'_>) -> Failure {
        openai::refusal(self.provider, answer)
    }
}

#[cfg(test)]
mod tests;
