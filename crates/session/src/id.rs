//! Names of things. An id is the `Seq` of the log entry that introduced the thing, so no id is
//! ever made up; only a session's own id comes from outside.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

/// A text that many places share; cloning it copies a pointer.
pub type Text = Arc<str>;

pub const SESSION_ID_BYTES_MAX: usize = 128;

/// Names one session in every dialect: `[A-Za-z0-9._-]{1,128}`, not starting with a dot.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SessionId(Text);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSessionId;

impl SessionId {
    pub fn parse(id: &str) -> Result<SessionId, BadSessionId> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let fits = !id.is_empty() && id.len() <= SESSION_ID_BYTES_MAX && !id.starts_with('.');
        if fits && id.bytes().all(allowed) { Ok(SessionId(id.into())) } else { Err(BadSessionId) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({})", self.0)
    }
}

impl fmt::Display for BadSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Invalid session ID format: use 1 to {SESSION_ID_BYTES_MAX} letters, digits, dots, \
             underscores or dashes, not starting with a dot"
        )
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SessionId, D::Error> {
        let id = String::deserialize(from)?;
        SessionId::parse(&id).map_err(serde::de::Error::custom)
    }
}

/// The place of an entry in its session's log, counted from 1 without gaps; 0 is "before all".
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    pub const NONE: Seq = Seq(0);

    pub fn next(self) -> Seq {
        Seq(self.0.saturating_add(1))
    }

    pub fn before(self) -> Seq {
        Seq(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Milliseconds since the Unix epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Seq);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! {
    /// The `TurnStarted` of a turn.
    TurnId,
    /// The `CallStarted` of a request to a model.
    CallId,
    /// The `ItemStarted` of an item.
    ItemId,
    /// The `WaitOpened` of an approval, question or plan.
    WaitId,
    /// The `MessageQueued` of a user's message.
    MessageId,
}

/// A sub-task: one of those that a `Planned` told, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId {
    pub planned: Seq,
    pub index: u32,
}

/// A thought of a search: one of those that an `Expanded` told, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThoughtId {
    pub expanded: Seq,
    pub index: u32,
}
