//! How people answer what is asked: by one key, by a number, or in words.

use std::time::Instant;

use serde_json::json;

use super::{Chat, Connection, LETTER, Writing};
use crate::keys::Key;
use crate::story::wait::Kind;

impl Chat {
    /// Whether keys count as answers: something is asked, long enough to be seen, and no line is
    /// being written.
    pub(super) fn is_armed(&mut self) -> bool {
        let free = self.editor.is_empty() && self.writing == Writing::Message;
        let seen = self.armed_at.is_some_and(|at| at <= Instant::now());
        let open = self.story.asked().is_some_and(|wait| !wait.answered);
        free && seen && open
    }

    /// Takes a letter that is an answer, if no other follows it at once.
    pub(super) fn may_answer(&mut self, key: &Key) -> bool {
        let Key::Char(c) = key else { return false };
        if !self.is_armed() {
            return false;
        }
        let letters = match self.story.asked().map(|wait| &wait.kind) {
            Some(Kind::Approval(_)) => "yansre",
            Some(Kind::Plan { .. }) => "yrn",
            Some(Kind::Question { .. }) | None => "",
        };
        let letter = c.to_ascii_lowercase();
        let is_answer = letters.contains(letter);
        if is_answer {
            self.letter = Some((*c, Instant::now() + LETTER));
        }
        is_answer
    }

    /// Who presses a letter and thinks better of it at once has not answered.
    pub(super) fn withdraws_letter(&mut self, key: &Key) -> bool {
        matches!(key, Key::Ctrl('c') | Key::Esc) && self.letter.take().is_some()
    }

    /// What the next key makes of a letter that waits: a line that begins, or an answer.
    pub(super) fn follow_letter(&mut self, next: &Key) {
        let Some((letter, _)) = self.letter else { return };
        match next {
            Key::Char(_) | Key::Paste(_) | Key::Backspace => {
                self.letter = None;
                self.write(Key::Char(letter));
            }
            _ => self.settle_letter(),
        }
    }

    /// Nothing followed: the letter is the answer.
    pub(super) fn settle_letter(&mut self) {
        let Some((letter, _)) = self.letter.take() else { return };
        let Some(wait) = self.story.asked() else { return };
        let id = wait.id.clone();
        match (&wait.kind, letter.to_ascii_lowercase()) {
            (Kind::Approval(_), 'y') => self.decide(&id, "allow"),
            (Kind::Approval(_), 'a') => self.decide(&id, "allow_always"),
            (Kind::Approval(_), 'n') => self.decide(&id, "deny"),
            (Kind::Approval(_), 's') => self.decide(&id, "deny_stop"),
            (Kind::Approval(_), 'e') => self.decide(&id, "explain"),
            (Kind::Approval(_), 'r') => self.writing = Writing::Reason(id),
            (Kind::Plan { .. }, 'y') => {
                let fields = json!({ "request_id": id, "approved": true });
                self.reply("plan_approval_response", fields);
            }
            (Kind::Plan { .. }, 'r' | 'n') => self.writing = Writing::Feedback(id),
            _ => {}
        }
    }

    fn decide(&mut self, id: &str, decision: &str) {
        let fields = json!({ "request_id": id, "decision": decision });
        self.reply("permission_response", fields);
    }

    pub(super) fn deny_because(&mut self, id: &str, reason: &str) {
        let fields = json!({ "request_id": id, "decision": "deny", "explanation": reason });
        self.reply("permission_response", fields);
    }

    pub(super) fn send_back(&mut self, id: &str, feedback: &str) {
        let fields = json!({ "request_id": id, "approved": false, "feedback": feedback });
        self.reply("plan_approval_response", fields);
    }

    /// Sends the answer to what is asked; it stays open until the server says that it is settled.
    fn reply(&mut self, kind: &str, fields: serde_json::Value) {
        let up = matches!(self.connection, Connection::Up);
        self.tell(kind, fields);
        if let Some(wait) = self.story.asked().filter(|_| up) {
            wait.answered = true;
        }
    }

    pub(super) fn is_questioned(&mut self) -> bool {
        let asked = self.story.asked();
        asked.is_some_and(|wait| !wait.answered && matches!(wait.kind, Kind::Question { .. }))
    }

    pub(super) fn answer_question(&mut self, text: &str) {
        if !matches!(self.connection, Connection::Up) {
            self.editor.set(text);
            return self.hint("not connected; try again in a moment");
        }
        let Some(wait) = self.story.asked() else { return };
        match wait.answer(text) {
            Ok(Some(fields)) => {
                wait.forget();
                self.reply("user_question_response", fields);
            }
            Ok(None) => {
                let next = wait.lines("");
                self.done.extend(next);
            }
            Err(problem) => {
                self.editor.set(text);
                self.hint(&problem);
            }
        }
    }
}
