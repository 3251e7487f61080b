//! The unified dialect: flat, typed events with increments of text and output, permissions,
//! questions, plans and token counts.
//!
//! `wire` holds its message types, `decode` and `encode` convert by hand. A connection may speak
//! of many sessions; what it says of a session is stamped with the session's id, never with
//! another's.

use polyloop_session::{SessionId, Timestamp};

use crate::{Asked, Client, Complaint, Dialect, Encoder, Frame, Manner, Power, Reply};

mod decode;
mod encode;
#[cfg(feature = "schema")]
mod schema;
#[cfg(test)]
mod tests;
mod wire;

#[cfg(feature = "schema")]
pub use schema::schemas;

pub struct Unified;

impl Dialect for Unified {
    fn name(&self) -> &'static str {
        "unified"
    }

    fn subprotocol(&self) -> &'static str {
        "unified.v1"
    }

    fn client_types(&self) -> &'static [&'static str] {
        &decode::DOCUMENTED
    }

    fn manner(&self) -> Manner {
        Manner::ManySessions
    }

    fn power(&self) -> Power {
        Power::Approve
    }

    fn decode(&self, frame: &str, client: &Client) -> Result<Asked, Complaint> {
        decode::decode(frame, client)
    }

    fn encoder(&self, _session: &SessionId) -> Box<dyn Encoder> {
        Box::new(encode::UnifiedEncoder::default())
    }

    fn reply(&self, session: Option<&SessionId>, number: u64, reply: &Reply) -> Frame {
        encode::reply(session, number, reply)
    }

    fn heartbeat(&self, session: Option<&SessionId>, number: u64, at: Timestamp) -> Option<Frame> {
        Some(encode::heartbeat(session, number, at))
    }
}
