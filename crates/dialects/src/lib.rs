//! How clients *speak* of a session: one module a dialect, all of them sans I/O.
//!
//! A dialect decodes a client's frames into asks and encodes a session's updates into frames. It
//! never reads a socket, never sees the agent, and no wire type leaves its module. `decode` is
//! total: the worst input becomes an error frame.

use bytes::Bytes;
use polyloop_session::context::ContextInfo;
use polyloop_session::wait::Who;
use polyloop_session::{Command, Growth, LogEntry, Refusal, SessionId, Text, WaitId, WaitRef};

pub mod agentloop;
pub mod conn;
pub mod cursor;
pub mod detect;
pub mod rest;
pub mod time;

pub use conn::View;
pub use cursor::Cursor;

/// One text message of a dialect, ready to be written; cloning it copies a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub text: Bytes,
    /// Where the stamp of place begins: the last fields of the object and its closing brace.
    /// `None` when the frame is about no session, or its place is for the writer to say.
    pub stamp_at: Option<usize>,
    /// The wait that this frame asks a person about.
    pub presents: Option<WaitId>,
}

impl Frame {
    /// A frame that is not stamped (yet).
    pub fn unstamped(text: impl Into<Bytes>) -> Frame {
        Frame { text: text.into(), stamp_at: None, presents: None }
    }

    /// The stamp: `,"session_id":…,"seq":…}`.
    pub fn stamp(&self) -> Option<Bytes> {
        self.stamp_at.map(|at| self.text.slice(at..))
    }

    /// The same message with another frame's place, which is the client's.
    pub fn stamped(&self, stamp: &[u8]) -> Frame {
        let Some(body) = self.text.strip_suffix(b"}") else { return self.clone() };
        let text = [body, stamp].concat();
        Frame { stamp_at: Some(body.len()), text: text.into(), presents: self.presents }
    }
}

/// What the dialects have in common. Stateless: what a connection or a session needs to remember
/// lives in its `Encoder`.
pub trait Dialect: Send + Sync {
    /// As in `?protocol=` and in the audit log.
    fn name(&self) -> &'static str;

    fn subprotocol(&self) -> &'static str;

    /// The client message types that the dialect's documents define; they decide the dialect of a
    /// connection that did not name one.
    fn client_types(&self) -> &'static [&'static str];

    /// Whether its clients can answer an approval.
    fn can_approve(&self) -> bool;

    fn decode(&self, frame: &str, client: &Client) -> Result<Ask, Complaint>;

    /// Renders a session's updates for every client of the dialect.
    fn encoder(&self, session: &SessionId) -> Box<dyn Encoder>;

    /// An answer to one client alone, unstamped. `number` is the connection's own count of answers.
    fn reply(&self, session: Option<&SessionId>, number: u64, reply: &Reply) -> Frame;
}

/// Who speaks on a connection.
#[derive(Clone, Debug)]
pub struct Client {
    pub who: Who,
    /// The session it is attached to, once there is one.
    pub session: Option<SessionId>,
    /// The wait it was last shown: what an answer that names none is an answer to.
    pub shown: Option<WaitId>,
}

/// What a client wants of its session.
#[derive(Clone, Debug)]
pub enum Ask {
    Command(Command),
    /// Approve with another patch, which the agent judges first.
    SettleWithPatch {
        wait: WaitRef,
        patch: Text,
        always: bool,
        by: Who,
    },
    ContextInfo,
}

/// What is wrong with a frame, a request, or the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    pub message: String,
    /// What exactly, for people.
    pub error: String,
    /// A short word for programs.
    pub code: String,
}

impl Complaint {
    pub fn new(message: &str, error: impl Into<String>, code: &str) -> Complaint {
        Complaint { message: message.into(), error: error.into(), code: code.into() }
    }
}

impl From<&Refusal> for Complaint {
    fn from(refusal: &Refusal) -> Complaint {
        let told = refusal.to_string();
        let message = match refusal {
            // Whoever names no request answers nothing that is pending; the rest is detail.
            Refusal::AlreadySettled { .. } | Refusal::Withdrawn => {
                Refusal::NoPendingApproval.to_string()
            }
            _ => told.clone(),
        };
        Complaint::new(&message, told, refusal.code())
    }
}

/// What one client is told.
#[derive(Clone, Debug)]
pub enum Reply {
    Complaint(Complaint),
    ContextInfo(ContextInfo),
}

/// A fold of entries into messages. Equal input gives equal frames, so one encoder serves all
/// clients of its dialect on a session, and a late client's own encoder catches up to it.
pub trait Encoder: Send {
    fn entry(&mut self, entry: &LogEntry, out: &mut conn::Out<'_>);

    fn growth(&mut self, growth: &Growth, out: &mut conn::Out<'_>);

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
