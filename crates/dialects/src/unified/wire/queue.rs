//! Messages that wait for their turn, and how they are named.

use polyloop_session::MessageId;
use serde::Serialize;

/// `queued-<message>`: a message that had to wait.
#[derive(Clone, Copy)]
pub(in crate::unified) struct MessageName(pub MessageId);

impl Serialize for MessageName {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("queued-{}", self.0))
    }
}

/// A user's message whose turn cannot begin at once.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct MessageQueued<'a> {
    /// By this it is told again, cancelled, and known when its turn starts.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub message_id: MessageName,
    /// What was said.
    pub message: String,
    /// Who said it.
    pub by: &'a str,
    /// The `id` of the client's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_ref: Option<&'a str>,
}

/// It left the queue unread.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct MessageDropped<'a> {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub message_id: MessageName,
    /// Who took it out.
    pub by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_ref: Option<&'a str>,
}
