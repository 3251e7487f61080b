//! What differs between the providers' interfaces: how a prompt is written, where it goes, how
//! the answer's events are read, and what an error means.
//!
//! Pure: an `Api` makes and reads bytes. Sockets, keys, time and retries are `remote`'s.

use polyloop_session::Text;

use super::pieces::Pieces;
use super::sse::Event;
use super::table::Card;
use super::{Chunk, Failure, Request};

/// One provider's interface. The folders beside this file hold one each, split like a dialect:
/// `wire` (the provider's types), `encode` (prompt → request), `decode` (events → chunks).
pub trait Api: Send + Sync + 'static {
    /// Marks what must go back to this interface, and to no other.
    fn name(&self) -> &'static str;

    /// Whose it is, as people say it: `OpenAI`.
    fn provider(&self) -> &'static str;

    /// Behind the base URL, with a slash first.
    fn path(&self, model: &str) -> String;

    /// Where the list of models is, behind the base URL.
    fn models_path(&self) -> &'static str {
        "/models"
    }

    /// Headers beside the key and the content's type.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The request's body: JSON.
    fn encode(&self, request: &Request, model: &str, card: &Card) -> Pieces;

    fn decoder(&self) -> Box<dyn Decode>;

    /// What an answer other than 2xx means. `body` may be cut, and may be anything.
    fn refusal(&self, answer: &Refused<'_>) -> Failure;
}

/// Reads one answer, event by event. Total: the worst event is still a chunk.
pub trait Decode: Send {
    /// `Done` or `Failed`, once given, is the last chunk.
    fn event(&mut self, event: &Event) -> Vec<Chunk>;

    /// The stream has ended. Gives `Done` where the interface has no final event and the answer
    /// was whole; otherwise nothing, and the answer counts as cut.
    fn end(&mut self) -> Vec<Chunk>;
}

/// An answer that is no success.
#[derive(Clone, Copy, Debug)]
pub struct Refused<'a> {
    pub status: u16,
    pub body: &'a [u8],
    pub model: &'a str,
    /// What the answer's headers ask for.
    pub retry_after_ms: Option<u64>,
}

/// A provider's error as all of them have it: a word and a sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The provider's own word: `insufficient_quota`, `overloaded_error`, `RESOURCE_EXHAUSTED`.
    pub code: String,
    pub message: Text,
}
