//! A message that waits behind the turn of others: it never waits for what they are asked.

use serde_json::json;

use super::{Pipe, Stage};
use crate::wire::Event;

impl Pipe {
    /// Keeps what is asked before our turn; it is for others to answer.
    pub(super) fn note_request(&mut self, event: &Event) {
        let (id, about) = match event {
            Event::ControlRequest(request) => (&request.request_id, request.tool_name.as_str()),
            Event::AskUserQuestion { request_id, .. } => (request_id, "a question"),
            Event::ExitPlanMode { request_id, .. } => (request_id, "a plan"),
            Event::ApprovalSettled { request_id, .. } => {
                return self.open.retain(|(id, _)| id != request_id);
            }
            Event::TurnStarted(_) | Event::TurnCompleted { .. } | Event::TurnFailed { .. } => {
                return self.open.clear();
            }
            _ => return,
        };
        if self.stage != Stage::Running && self.open.iter().all(|(known, _)| known != id) {
            self.open.push((id.clone(), about.to_owned()));
            self.wait_for_nobody();
        }
    }

    /// Takes a message back that would wait for a person. It may begin before the server hears of
    /// that; then it is followed as any other.
    pub(super) fn wait_for_nobody(&mut self) {
        if matches!(self.stage, Stage::Queued(_)) && !self.open.is_empty() && !self.withdrawn {
            self.withdrawn = true;
            self.take_back();
        }
    }

    pub(super) fn take_back(&self) {
        self.send("cancel", json!({ "target_id": self.id }));
    }

    pub(super) fn waits_for(&self) -> String {
        let about = self.open.first().map_or("something that was asked", |(_, about)| about);
        format!(
            "the session waits for somebody's answer ({about}), which may never come; the message \
             was not said"
        )
    }
}
