//! The AgentLoop dialect: `{id, type, payload}` messages with streamed response items, approvals
//! and context reports.
//!
//! `wire` holds its message types, `decode` and `encode` convert by hand, and `file` writes the
//! session files, which are this dialect's messages with the log's own events beside them.

use polyloop_session::SessionId;

use crate::{Asked, Client, Complaint, Dialect, Encoder, Frame, Manner, Power, Reply};

mod decode;
mod encode;
pub mod file;
#[cfg(feature = "schema")]
pub(crate) mod schema;
mod wire;

pub struct Agentloop;

impl Dialect for Agentloop {
    fn name(&self) -> &'static str {
        "agentloop"
    }

    fn subprotocol(&self) -> &'static str {
        "agentloop.v1"
    }

    fn client_types(&self) -> &'static [&'static str] {
        &["user_input", "approval_response", "get_context_info", "manual_compact"]
    }

    fn manner(&self) -> Manner {
        Manner::OneSession
    }

    fn power(&self) -> Power {
        Power::Approve
    }

    fn decode(&self, frame: &str, client: &Client) -> Result<Asked, Complaint> {
        decode::decode(frame, client)
    }

    fn encoder(&self, session: &SessionId) -> Box<dyn Encoder> {
        Box::new(encode::AgentloopEncoder::new(session))
    }

    fn reply(&self, session: Option<&SessionId>, number: u64, reply: &Reply) -> Frame {
        encode::reply(session, number, reply)
    }
}
