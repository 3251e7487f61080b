//! What keys do.

use std::time::Instant;

use super::{Chat, Connection, Writing};
use crate::editor::Outcome;
use crate::keys::Key;
use crate::slash::{Slash, complete};
use crate::style::{Line, Style};
use crate::{Exit, SIGINT, too_long, tty};

impl Chat {
    pub(super) fn key(&mut self, key: Key) {
        self.hint.clear();
        if self.withdraws_letter(&key) {
            return self.hint("not answered");
        }
        self.follow_letter(&key);
        let leaving = std::mem::take(&mut self.leaving);
        match key {
            Key::Ctrl('c') => self.ctrl_c(leaving),
            Key::Ctrl('d') if self.editor.is_empty() => self.exit = Some(Exit::Done),
            Key::Ctrl('l') => {
                // What cannot be written now is written with the next drawing.
                let _ = self.screen.clear();
            }
            Key::Ctrl('z') => self.suspend(),
            Key::Esc if !self.editor.is_searching() => self.escape(),
            Key::Tab if !self.editor.is_searching() => self.complete(),
            key => {
                if !self.may_answer(&key) {
                    self.write(key);
                }
            }
        }
    }

    /// A key for the line that is written.
    pub(super) fn write(&mut self, key: Key) {
        if let Outcome::Submit(line) = self.editor.key(key, &self.history) {
            self.submit(&line);
        }
    }

    fn ctrl_c(&mut self, leaving: bool) {
        if self.writing != Writing::Message {
            return self.stop_writing();
        }
        if !self.editor.is_empty() {
            return self.editor.set("");
        }
        if leaving {
            self.exit = Some(Exit::Signal(SIGINT));
            return;
        }
        self.leaving = true;
        if self.story.is_working() {
            self.interrupt();
        } else {
            self.hint("Ctrl-C again leaves; the session stays");
        }
    }

    fn escape(&mut self) {
        if self.writing != Writing::Message {
            self.stop_writing();
        } else if self.story.is_asked() && !self.editor.is_empty() {
            // The line waits until the request is answered.
            let line = self.editor.take();
            self.kept = if self.kept.is_empty() { line } else { format!("{}\n{line}", self.kept) };
            self.armed_at = Some(Instant::now());
        } else if self.story.is_working() && !self.story.is_asked() && self.editor.is_empty() {
            self.interrupt();
        }
    }

    fn stop_writing(&mut self) {
        self.writing = Writing::Message;
        self.editor.set("");
    }

    pub(super) fn interrupt(&mut self) {
        self.tell("interrupt", serde_json::json!({ "reason": "stopped by the user" }));
        if matches!(self.connection, Connection::Up) {
            self.hint("interrupting …");
        }
    }

    fn suspend(&mut self) {
        let _ = self.screen.leave();
        self.raw = None;
        let stopped = tty::suspend();
        self.come_back();
        if stopped.is_err() {
            self.hint("this terminal cannot stop programs");
        }
    }

    /// Here again after a stop: the terminal was used by others, and may have another size.
    pub(super) fn come_back(&mut self) {
        let entered = match &self.raw {
            Some(raw) => raw.again(),
            None => tty::Raw::enter().map(|raw| self.raw = Some(raw)),
        };
        if entered.is_err() {
            self.hint("the terminal cannot be used as before");
        }
        self.screen.resize(tty::size());
    }

    fn complete(&mut self) {
        let (line, choices) = complete(self.editor.text(), &self.known);
        if line != self.editor.text() {
            self.editor.set(&line);
        }
        if !choices.is_empty() {
            self.hint = vec![Line::of(&choices.join("  "), Style::DIM)];
        }
    }

    /// A line that was written and sent.
    fn submit(&mut self, line: &str) {
        match std::mem::take(&mut self.writing) {
            Writing::Reason(id) => return self.deny_because(&id, line),
            Writing::Feedback(id) => return self.send_back(&id, line),
            Writing::Message => {}
        }
        self.history.add(line);
        match Slash::read(line) {
            Some(Ok(command)) => self.command(command),
            Some(Err(hint)) => {
                self.hint(&hint);
                // So that it can be mended.
                self.editor.set(line);
            }
            None if self.is_questioned() => self.answer_question(line),
            None => self.send(line),
        }
    }

    /// Says something in the session, which is made if there is none yet.
    pub(super) fn send(&mut self, text: &str) {
        if let Some(problem) = too_long(text, &self.about) {
            self.editor.set(text);
            return self.hint(&problem);
        }
        self.sent += 1;
        let id = format!("{}{}", self.own, self.sent);
        // What was set before it is said first.
        if let Some(link) = self.link.as_ref().filter(|_| self.settings.is_empty()) {
            link.say(&id, text);
        }
        self.outbox.push_back((id, text.to_owned()));
        if self.link.is_none() && !self.making {
            self.make(serde_json::json!({}));
        }
    }

    /// What was written before there was a session.
    pub(super) fn say_outbox(&mut self) {
        if let Some(link) = &self.link {
            self.outbox.iter().for_each(|(id, text)| link.say(id, text));
        }
    }
}
