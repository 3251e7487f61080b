//! The Loom dialect: requests of one connection, and runs that are streamed as events of the nodes
//! of a graph.
//!
//! `wire` holds its message types, `decode` and `encode` convert by hand, `reply` answers one
//! client. A run is a turn under another name; this module never decides anything about it, and
//! never counts a stream's events: that number is each connection's own.

use polyloop_session::SessionId;

use crate::{Asked, Client, Complaint, Dialect, Encoder, Frame, Manner, Power, Reply};

mod decode;
mod encode;
mod reply;
#[cfg(feature = "schema")]
mod schema;
mod short;
#[cfg(test)]
mod tests;
mod wire;

#[cfg(feature = "schema")]
#[allow(
    unused_imports,
    reason = "the documentation's test asks every dialect for its schemas"
)]
pub(crate) use schema::schemas;

pub struct Loom;

impl Dialect for Loom {
    fn name(&self) -> &'static str {
        "loom"
    }

    fn subprotocol(&self) -> &'static str {
        "loom.v1"
    }

    fn client_types(&self) -> &'static [&'static str] {
        &["run", "tools_list", "tool_show", "user_messages", "ping"]
    }

    fn manner(&self) -> Manner {
        Manner::Runs
    }

    /// A run says for itself whether its client answers (`approvals`); watching alone gives no
    /// power.
    fn power(&self) -> Power {
        Power::Watch
    }

    fn decode(&self, frame: &str, client: &Client) -> Result<Asked, Complaint> {
        decode::decode(frame, client)
    }

    fn not_utf8(&self) -> Complaint {
        let text = "parse error: the frame is not UTF-8";
        Complaint::new(text, text, "not_utf8")
    }

    fn encoder(&self, session: &SessionId) -> Box<dyn Encoder> {
        Box::new(encode::LoomEncoder::new(session))
    }

    fn reply(&self, _session: Option<&SessionId>, _number: u64, reply: &Reply) -> Frame {
        reply::reply(reply)
    }
}

/// What clients call the call of an item.
fn call_id(item: polyloop_session::ItemId) -> String {
    format!("call_{item}")
}
