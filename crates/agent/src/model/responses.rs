//! OpenAI's Responses interface: `POST /responses`, streamed, and nothing kept on the server.
//!
//! What the model thought goes back with the next prompt, encrypted as it came. A model that was
//! trained on its provider's own shell gets that one in place of `bash`; its calls are calls of
//! `bash` to everyone else.

use super::api::{Api, Decode, Refused};
use super::pieces::Pieces;
use super::table::Card;
use super::{Failure, Request, json, openai};

mod decode;
mod encode;
mod growth;
mod shell;
mod wire;

/// Marks what goes back to this interface.
pub const NAME: &str = "openai-responses";
/// How tools are written for models with a shell of their own.
const NAME_WITH_SHELL: &str = "openai-responses, own shell";
/// The tool that stands for the provider's own shell.
const SHELL_TOOL: &str = "bash";
/// The type of that shell's calls.
const SHELL_CALL: &str = "local_shell_call";

pub struct Responses {
    provider: &'static str,
}

impl Responses {
    /// `provider` is whose server it is, as people say it.
    pub const fn new(provider: &'static str) -> Responses {
        Responses { provider }
    }
}

impl Api for Responses {
    fn name(&self) -> &'static str {
        NAME
    }

    fn provider(&self) -> &'static str {
        self.provider
    }

    fn path(&self, _model: &str) -> String {
        "/responses".to_owned()
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
