//! A language model, whoever runs it.
//!
//! A model is a dialect that faces the other way: it is given a provider-neutral prompt and
//! answers with a stream of chunks. It never runs a tool and never sees a session.

use std::sync::Arc;

use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::history::Prompt;
use polyloop_session::item::{Fault, ItemKind, Opaque, Usage};

use crate::tool::ToolSpec;

pub mod offline;

pub trait Model: Send + Sync + 'static {
    fn name(&self) -> &str;

    /// The size of the model's window.
    fn tokens_max(&self) -> u64;

    /// Asks the model. The stream ends with `Done` or `Failed`; one that ends otherwise was cut
    /// and counts as failed. Dropping the stream stops the request.
    fn ask(&self, request: Request) -> BoxStream<'static, Chunk>;
}

pub struct Request {
    pub prompt: Prompt,
    pub instructions: Text,
    /// Empty when the call may not propose any.
    pub tools: Arc<[ToolSpec]>,
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
    Done,
    Failed(Fault),
}
