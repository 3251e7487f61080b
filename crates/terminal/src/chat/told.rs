//! What the server tells, taken into the story.

use std::time::Instant;

use super::{ARMING, Chat, Connection, Writing};
use crate::link::Told;
use crate::story::Moment;
use crate::wire::Event;

impl Chat {
    pub(super) fn told(&mut self, told: Told) {
        match told {
            Told::Frame(frame) => self.event(Event::read(&frame)),
            Told::Up => {
                if let Connection::Down { .. } = self.connection {
                    let lines = self.story.note("connected again");
                    self.done.extend(lines);
                }
                self.connection = Connection::Up;
                self.story.unanswer();
                self.say_settings();
            }
            Told::Anew => self.begin_anew(),
            Told::Lost { why, again_in } => {
                self.connection = Connection::Down { why, again_at: Instant::now() + again_in };
            }
            Told::GaveUp { why } => {
                self.link = None;
                self.connection = Connection::None;
                self.session = None;
                let lines = self.story.complain(&format!("the session cannot be reached: {why}"));
                self.done.extend(lines);
                // Nothing of it runs or is asked any more, as far as can be known here.
                self.reset_story();
                self.take_back();
            }
        }
    }

    /// The server no longer has what is on the screen; what it has is shown below it.
    fn begin_anew(&mut self) {
        let lines = self.story.complain(
            "the server no longer has this session as it was; it begins anew, and the model knows \
             nothing of what stands above",
        );
        self.done.extend(lines);
        self.reset_story();
        self.connection = Connection::Connecting;
    }

    fn event(&mut self, event: Event) {
        let seen = match &event {
            Event::TurnStarted(started) => started.client_ref.as_ref(),
            Event::MessageQueued { client_ref, .. } | Event::Error { client_ref, .. } => {
                client_ref.as_ref()
            }
            _ => None,
        };
        if let Some(seen) = seen {
            self.outbox.retain(|(id, _)| id != seen);
        }
        if let Event::Error { .. } = &event {
            // It may be about an answer.
            self.story.unanswer();
        }
        let was_asked = self.asked_id();
        let was_working = self.story.is_working();
        let lines = self.story.take(event, Moment::Now(Instant::now()));
        self.done.extend(lines);
        if was_working && !self.story.is_working() {
            // What was said of the turn is over with it.
            self.hint.clear();
        }
        let is_asked = self.asked_id();
        if is_asked != was_asked {
            self.next_wait(is_asked);
        }
    }

    fn asked_id(&mut self) -> Option<String> {
        self.story.asked().map(|wait| wait.id.clone())
    }

    /// Something else is asked than before, or nothing any more.
    fn next_wait(&mut self, asked: Option<String>) {
        // It was meant for what is gone.
        self.letter = None;
        if self.writing != Writing::Message {
            // Its request is gone.
            self.writing = Writing::Message;
            self.editor.set("");
        }
        match asked {
            Some(_) => self.armed_at = Some(Instant::now() + ARMING),
            None => {
                self.armed_at = None;
                self.bring_back();
            }
        }
    }

    /// The line that was put aside stands there again.
    fn bring_back(&mut self) {
        if self.editor.is_empty() && !self.kept.is_empty() {
            let line = std::mem::take(&mut self.kept);
            self.editor.set(&line);
        }
    }
}
