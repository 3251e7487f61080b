//! Growth of an open item: the characters that clients see before the item is complete.
//!
//! Growth is not an event: it lives in the session's journal until the item's completion, which
//! carries the whole, takes its place.

use serde::{Deserialize, Serialize};

use crate::id::{ItemId, Text};

/// A tool call has two streams, a text or a piece of reasoning one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Text,
    Args,
    Output,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Growth {
    pub item: ItemId,
    pub stream: Stream,
    /// Bytes of this stream that came before.
    pub offset: u64,
    pub text: Text,
}
