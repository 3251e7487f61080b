//! The frames of one run: its ids around an event, and the place of the event's number.

use polyloop_session::wait::Who;
use polyloop_session::{MessageId, Text, TurnId};

use super::super::wire::{Envelope, Error, Event, RunEnd, RunStreamEvent};
use crate::conn::Message;
use crate::cursor::Decimal;
use crate::{Insert, RunFrame, RunPart, to_json};

/// A client's id for its request stands in every frame of the run. A longer one, which this
/// dialect refuses and another may have taken, is left out.
pub(in super::super) const REQUEST_ID_BYTES_MAX: usize = 256;

/// A node that was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Node {
    /// Its place among the nodes of the run.
    pub number: u32,
    pub name: &'static str,
}

/// The id of a node; of none before the first.
pub(super) fn node_id(node: Option<Node>) -> String {
    match node {
        Some(Node { number, name }) => {
            ["run-", name, "-", Decimal::new(number.into()).as_str()].concat()
        }
        None => "run-0".to_string(),
    }
}

/// What all frames of a run have in common.
pub(super) struct Head {
    turn: TurnId,
    message: Option<MessageId>,
    id: String,
    request_id: Option<Text>,
    /// What events call their session.
    session: String,
}

impl Head {
    pub(super) fn new(
        turn: TurnId,
        message: Option<MessageId>,
        id: String,
        request_id: Option<Text>,
        session: String,
    ) -> Head {
        let request_id = request_id.filter(|id| id.len() <= REQUEST_ID_BYTES_MAX);
        Head { turn, message, id, request_id, session }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    fn run(&self, part: RunPart) -> Option<RunFrame> {
        Some(RunFrame { turn: self.turn, message: self.message, part })
    }

    /// An event that nobody reads; it counts like any other.
    pub(super) fn unread(&self, part: RunPart) -> Message {
        let inserts = vec![(0, Insert::EventNumber)];
        Message { run: self.run(part), inserts, ..Message::default() }
    }

    pub(super) fn event(&self, part: RunPart, node: Option<Node>, event: &Event<'_>) -> Message {
        let node_id = node_id(node);
        let has_own = matches!(event, Event::GotExpand { .. });
        let text = to_json(&RunStreamEvent {
            id: &self.id,
            request_id: self.request_id.as_deref(),
            event: Envelope {
                event,
                session_id: &self.session,
                node_id: (!has_own).then_some(&node_id),
                event_id: 0,
            },
        });
        self.numbered(part, text, "0}}", "}")
    }

    pub(super) fn end(&self, end: &RunEnd<'_>) -> Message {
        let request_id = self.request_id.as_deref();
        let text = to_json(&RunEnd { id: &self.id, request_id, ..*end });
        self.numbered(RunPart::End, text, "0}", "")
    }

    /// The number stands last, so its place is known without a search.
    fn numbered(&self, part: RunPart, mut text: String, tail: &str, after: &str) -> Message {
        text.truncate(text.len().saturating_sub(tail.len()));
        let inserts = vec![(text.len(), Insert::EventNumber)];
        text.push_str(after);
        let session_as = self.session_as();
        Message { text, run: self.run(part), inserts, session_as, ..Message::default() }
    }

    /// A run of its own is all there is of its session, and gives it its name.
    fn session_as(&self) -> Option<String> {
        (self.session == self.id).then(|| self.id.clone())
    }

    /// A run's failure is no event of its stream, so it has no number.
    pub(super) fn error(&self, part: RunPart, error: &str) -> Message {
        let request_id = self.request_id.as_deref();
        let mut text = to_json(&Error { id: Some(&self.id), request_id, error });
        text.pop();
        let session_as = self.session_as();
        Message { text, run: self.run(part), session_as, ..Message::default() }
    }
}

/// A run that was asked for never began.
pub(super) fn dropped(message: MessageId, request_id: Option<&str>, by: &Who) -> Message {
    let error = format!("The run was removed from the queue by {}", by.describe());
    let mut text = to_json(&Error { id: None, request_id, error: &error });
    text.pop();
    let (turn, part) = (TurnId(message.0), RunPart::Interrupted);
    let run = Some(RunFrame { turn, message: Some(message), part });
    Message { text, run, keeps_count: true, ..Message::default() }
}

#[cfg(test)]
mod tests {
    use polyloop_session::Seq;

    use super::*;

    #[test]
    fn an_event_with_a_node_of_its_own_keeps_it() {
        let (id, session) = ("run-1".to_string(), "s".to_string());
        let head = Head::new(TurnId(Seq(1)), None, id, Some("r".into()), session);
        let node = Some(Node { number: 1, name: "execute_graph" });
        let event = Event::GotExpand { node_id: "merge", nodes_added: 1, edges_added: 0 };
        let message = head.event(RunPart::Event, node, &event);
        let want = concat!(
            r#"{"type":"run_stream_event","id":"run-1","request_id":"r","event":"#,
            r#"{"type":"got_expand","node_id":"merge","nodes_added":1,"edges_added":0,"#,
            r#""session_id":"s","event_id":}"#
        );
        assert_eq!(message.text, want);
        assert_eq!(message.inserts, [(want.len() - 1, Insert::EventNumber)]);
    }

    #[test]
    fn a_request_id_that_is_too_long_is_left_out() {
        let long = "x".repeat(REQUEST_ID_BYTES_MAX + 1);
        let (id, session) = ("run-1".to_string(), "s".to_string());
        let head = Head::new(TurnId(Seq(1)), None, id, Some(long.into()), session);
        let text = head.error(RunPart::Failed, "no").text;
        assert_eq!(text, r#"{"type":"error","id":"run-1","error":"no""#);
    }
}
