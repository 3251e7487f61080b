//! A language model, whoever runs it.
//!
//! A model is a dialect that faces the other way: it is given a provider-neutral prompt and
//! answers with a stream of chunks. It never runs a tool and never sees a session.

use std::sync::Arc;

use futures_util::stream::BoxStream;
use polyloop_session::Heal;
use polyloop_session::Text;
use polyloop_session::history::Prompt;
use polyloop_session::item::{Fault, ItemKind, Opaque, Usage};

use self::table::Card;
use crate::tool::{ToolList, Words};

pub mod anthropic;
pub mod api;
pub mod completions;
pub mod fault;
pub mod gemini;
pub mod http;
mod json;
pub mod lane;
pub mod offline;
mod openai;
pub mod pieces;
pub mod remote;
pub mod responses;
pub mod secret;
pub mod sse;
pub mod table;
#[cfg(test)]
mod testing;
pub mod token;

pub trait Model: Send + Sync + 'static {
    fn name(&self) -> &str;

    /// What is known of it: its window, what it takes, what it costs.
    fn card(&self) -> &Card;

    /// Asks the model. The stream ends with `Done` or `Failed`; one that ends otherwise was cut
    /// and counts as failed. Dropping the stream stops the request.
    fn ask(&self, request: Request) -> BoxStream<'static, Chunk>;
}

/// The models of a server, by name.
pub trait Models: Send + Sync + 'static {
    /// The one of sessions that named none.
    fn preset(&self) -> Arc<dyn Model>;

    /// Somebody is about to ask one: what that takes may be made ready.
    fn prepare(&self) {}

    /// `Err` is a text for people: what is missing.
    fn find(&self, name: &str) -> Result<Arc<dyn Model>, String>;

    /// Who runs a model of that name, in a word.
    fn provider(&self, _name: &str) -> &'static str {
        crate::meter::OTHER
    }
}

/// One model, and no other.
pub struct Only(pub Arc<dyn Model>);

impl Models for Only {
    fn preset(&self) -> Arc<dyn Model> {
        self.0.clone()
    }

    fn find(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        let known = self.0.name();
        match name == known {
            true => Ok(self.0.clone()),
            false => Err(format!("is not available; use {known:?}")),
        }
    }
}

pub struct Request {
    pub prompt: Prompt,
    pub instructions: Words,
    /// Empty when the call may not propose any.
    pub tools: ToolList,
}

/// A piece of an answer. Blocks are counted from 0 in the order they begin; a block's chunks come
/// between its `Started` and its `Ended`.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    Started {
        block: u32,
        kind: ItemKind,
    },
    /// More of a text or of a piece of reasoning.
    Text {
        block: u32,
        text: Text,
    },
    /// More of a tool call's arguments (JSON text).
    Args {
        block: u32,
        text: Text,
    },
    /// `opaque` is what must go back to the provider with the block, next time.
    Ended {
        block: u32,
        opaque: Option<Opaque>,
    },
    Usage(Usage),
    /// Something of the provider's that has no place in an answer: JSON text, shown and not kept.
    Raw {
        provider: Text,
        json: Text,
    },
    Done(Stop),
    Failed(Failure),
}

/// The fault of an answer that ended before its end.
pub const CUT_CODE: &str = "stream_cut";
pub const CUT_TEXT: &str = "The model's answer broke off before its end";

/// Why a model stopped where it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It had said what it had to say.
    End,
    /// It reached the limit of its output: the last block may not be whole.
    Length,
}

/// Why there is no answer, and what could help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub fault: Fault,
    pub heal: Heal,
}

impl Failure {
    pub fn new(heal: Heal, code: &str, message: impl Into<Text>) -> Failure {
        Failure { fault: Fault::new(code, message), heal }
    }
}
