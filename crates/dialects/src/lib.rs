//! How clients *speak* of a session: one module a dialect, all of them sans I/O.
//!
//! A dialect decodes a client's frames into asks and encodes a session's updates into frames. It
//! never reads a socket, never sees the agent, and no wire type leaves its module. `decode` is
//! total: the worst input becomes an error frame.

use polyloop_session::{Growth, LogEntry, Raw, SessionId, Timestamp};

pub mod agentloop;
mod ask;
mod asks;
pub mod chat;
pub mod conn;
pub mod cursor;
pub mod detect;
mod edits;
mod frame;
pub mod history;
mod ids;
mod image;
pub mod loom;
mod progress;
mod reply;
mod request;
pub mod rest;
pub mod time;
pub mod tools;
pub mod unified;

pub(crate) use asks::is_asked;

pub use ask::{Ask, Asked, Client, Complaint, Name, RunAsk, Start};
pub use conn::View;
pub use cursor::Cursor;
pub use frame::{Frame, Insert, Own, RunFrame, RunPart};
pub use reply::{Listed, Reply, SessionInit, ToolForm, ToolInfo};

/// What the dialects have in common. Stateless: what a connection or a session needs to remember
/// lives in its `Own` and its `Encoder`.
pub trait Dialect: Send + Sync {
    /// As in `?protocol=` and in the audit log.
    fn name(&self) -> &'static str;

    fn subprotocol(&self) -> &'static str;

    /// The client message types that the dialect's documents define; they decide the dialect of a
    /// connection that did not name one.
    fn client_types(&self) -> &'static [&'static str];

    fn manner(&self) -> Manner;

    fn power(&self) -> Power;

    fn decode(&self, frame: &str, client: &Client) -> Result<Asked, Complaint>;

    /// Renders a session's updates for every client of the dialect.
    fn encoder(&self, session: &SessionId) -> Box<dyn Encoder>;

    /// An answer to one client alone, unstamped. `number` is the connection's own count of answers.
    fn reply(&self, session: Option<&SessionId>, number: u64, reply: &Reply) -> Frame;

    /// What is said of a binary frame that is no text.
    fn not_utf8(&self) -> Complaint {
        Complaint::new("Invalid message format", "the frame is not UTF-8", "not_utf8")
    }

    /// What a silent connection is sent now and then, where the dialect has such a message.
    fn heartbeat(&self, session: Option<&SessionId>, number: u64, at: Timestamp) -> Option<Frame> {
        let _ = (session, number, at);
        None
    }
}

/// How a dialect's connections relate to sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// A connection belongs to one session.
    OneSession,
    /// Every message names its session.
    ManySessions,
    /// A connection asks for runs, one at a time, and watches the session it named when it came.
    Runs,
    /// Connections are members of one room.
    Room,
}

/// What a client can do about what a turn asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Power {
    Watch,
    /// It can answer questions and plans.
    Answer,
    /// It can also give leave.
    Approve,
}

/// A fold of entries into messages. Equal input gives equal frames, so one encoder serves all
/// clients of its dialect on a session, and a late client's own encoder catches up to it.
///
/// It is fed from a turn's `TurnStarted` on; the `MessageQueued` that it names comes before it,
/// muted if it stands further back in the log.
pub trait Encoder: Send {
    fn entry(&mut self, entry: &LogEntry, out: &mut conn::Out<'_>);

    fn growth(&mut self, growth: &Growth, out: &mut conn::Out<'_>);

    /// What a provider sent that has no event of its own; live only.
    fn raw(&mut self, raw: &Raw, out: &mut conn::Out<'_>) {
        let _ = (raw, out);
    }

    /// What a client that attaches in the middle of a turn must know first.
    fn opening(&mut self, out: &mut conn::Out<'_>);

    /// What waits for an answer, unless this encoder has just sent it.
    fn pending(&mut self, out: &mut conn::Out<'_>);
}

/// An error text may quote what a client sent, which may be as long as a frame.
pub(crate) fn bounded(mut told: String) -> String {
    const ERROR_CHARS_MAX: usize = 500;
    if let Some((end, _)) = told.char_indices().nth(ERROR_CHARS_MAX) {
        told.truncate(end);
        told.push('…');
    }
    told
}

/// A name from outside, short enough for an error text.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 80;
    text.chars().take(SHOWN_CHARS_MAX).flat_map(char::escape_debug).collect()
}

/// What is wrong with JSON from outside, and where: `.` where it is all of it.
pub(crate) struct Unread {
    pub at: String,
    pub why: String,
}

/// The place is looked for where something is wrong: to know it costs more than all else.
pub(crate) fn from_json<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, Unread> {
    if let Ok(read) = serde_json::from_str(text) {
        return Ok(read);
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let at = error.path().to_string();
        Unread { at, why: error.into_inner().to_string() }
    })?;
    let whole = |error: serde_json::Error| Unread { at: ".".to_string(), why: error.to_string() };
    json.end().map(|()| read).map_err(whole)
}

/// Most messages fit, with their stamp, so that they need not be moved while they are written.
pub(crate) const MESSAGE_BYTES: usize = 384;

/// None of our wire types can fail to serialise: no maps with odd keys, no failing types.
pub(crate) fn to_json(value: &impl serde::Serialize) -> String {
    with_json(String::with_capacity(MESSAGE_BYTES), value)
}

/// A text with the JSON of a value behind it.
pub(crate) fn with_json(text: String, value: &impl serde::Serialize) -> String {
    let mut text = text.into_bytes();
    let before = text.len();
    if serde_json::to_writer(&mut text, value).is_err() {
        text.truncate(before);
        text.extend_from_slice(b"{}");
    }
    // What it writes is UTF-8.
    String::from_utf8(text).unwrap_or_default()
}

/// An object that lacks its closing brace, with the fields of another behind its own.
pub(crate) fn with_fields(object: String, fields: &impl serde::Serialize) -> String {
    let mut text = object.into_bytes();
    let at = text.len();
    match serde_json::to_writer(&mut text, fields) {
        Ok(()) if text.len() > at + "{}".len() => {
            text[at] = b',';
            text.pop();
        }
        Ok(()) | Err(_) => text.truncate(at),
    }
    String::from_utf8(text).unwrap_or_default()
}

/// The JSON Schema of every message of every dialect, under its name.
#[cfg(feature = "schema")]
pub fn schemas() -> Vec<(&'static str, serde_json::Value)> {
    let all = [agentloop::schema::schemas(), unified::schemas(), loom::schemas(), chat::schemas()]
        .concat();
    all.into_iter().map(|(name, schema)| (name, schema.to_value())).collect()
}
