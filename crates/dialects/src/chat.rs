//! The chat dialect: one client message, `chat`, and whole messages back, nothing streamed.
//!
//! `wire` holds its message types, `decode` and `encode` convert by hand. A chat is answered by
//! exactly one `agent_message`, or an `error` in its place.

use polyloop_session::SessionId;

use crate::{Asked, Client, Complaint, Dialect, Encoder, Frame, Manner, Power, Reply};

mod decode;
mod encode;
#[cfg(feature = "schema")]
mod schema;
#[cfg(test)]
mod tests;
mod wire;

#[cfg(feature = "schema")]
pub(crate) use schema::schemas;

pub struct Chat;

impl Dialect for Chat {
    fn name(&self) -> &'static str {
        "chat"
    }

    fn subprotocol(&self) -> &'static str {
        "chat.v1"
    }

    fn client_types(&self) -> &'static [&'static str] {
        &["chat"]
    }

    fn manner(&self) -> Manner {
        Manner::Room
    }

    /// Its clients can talk, and so answer questions and plans; they cannot give leave.
    fn power(&self) -> Power {
        Power::Answer
    }

    fn decode(&self, frame: &str, client: &Client) -> Result<Asked, Complaint> {
        decode::decode(frame, client)
    }

    fn not_utf8(&self) -> Complaint {
        let text = "Invalid JSON: the frame is not UTF-8";
        Complaint::new(text, text, "not_utf8")
    }

    fn encoder(&self, _session: &SessionId) -> Box<dyn Encoder> {
        Box::new(encode::ChatEncoder::default())
    }

    fn reply(&self, _session: Option<&SessionId>, _number: u64, reply: &Reply) -> Frame {
        encode::reply(reply)
    }
}
