//! Where a session stands, as lists show it: a small fold beside the state, so that a list opens
//! no session.

use std::collections::BTreeSet;

use polyloop_session::event::Adopted;
use polyloop_session::item::Part;
use polyloop_session::{Event, LogEntry, Text, WaitId};
use serde::{Deserialize, Serialize};

/// Of the newest message, in characters.
pub const PREVIEW_CHARS_MAX: usize = 120;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The beginning of the newest message of a user, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Text>,
    /// A turn began and has not ended. After a crash nothing may be running all the same.
    #[serde(default)]
    pub in_turn: bool,
    /// What was asked of a person and is not settled.
    #[serde(default)]
    pub waits: BTreeSet<WaitId>,
    /// A client ended the session.
    #[serde(default)]
    pub closed: bool,
}

impl Standing {
    pub(crate) fn take(&mut self, entry: &LogEntry) {
        match &entry.event {
            Event::MessageQueued { content, .. }
            | Event::Adopted { piece: Some(Adopted::User { content }) } => {
                self.preview = preview(content).or(self.preview.take());
            }
            Event::TurnStarted { .. } => self.in_turn = true,
            // What was open in the session that was copied is ended in the copy.
            Event::TurnEnded { .. } | Event::Forked { .. } => {
                self.in_turn = false;
                self.waits.clear();
            }
            Event::WaitOpened { .. } => {
                self.waits.insert(WaitId(entry.seq));
            }
            Event::WaitSettled { wait, .. } | Event::WaitWithdrawn { wait, .. } => {
                self.waits.remove(wait);
            }
            Event::SessionClosed { .. } => self.closed = true,
            Event::SessionReopened { .. } => self.closed = false,
            _ => {}
        }
    }

    /// Whether a line may hold an event that counts here, so that most need not be read.
    pub(crate) fn may_count(line: &str) -> bool {
        const WORDS: [&str; 8] = [
            "\"message_queued\"",
            "\"user_input\"",
            "\"turn_started\"",
            "\"turn_ended\"",
            "\"wait_",
            "\"session_closed\"",
            "\"session_reopened\"",
            "\"forked\"",
        ];
        WORDS.iter().any(|word| line.contains(word))
    }
}

/// `None` where a message has no words.
fn preview(content: &[Part]) -> Option<Text> {
    let words = content.iter().flat_map(|part| match part {
        Part::Text { text } => text.split_whitespace(),
        Part::Image { .. } => "[image]".split_whitespace(),
    });
    let mut line = String::new();
    let mut chars = 0;
    for word in words {
        let space = if line.is_empty() { "" } else { " " };
        for letter in space.chars().chain(word.chars()) {
            if chars == PREVIEW_CHARS_MAX {
                return Some(line.trim_end().into());
            }
            line.push(letter);
            chars += 1;
        }
    }
    (!line.is_empty()).then(|| line.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Option<String> {
        let parts = texts.iter().map(|text| Part::Text { text: (*text).into() });
        preview(&parts.collect::<Vec<_>>()).map(|line| line.to_string())
    }

    #[test]
    fn a_preview_is_one_short_line() {
        assert_eq!(of(&["  a\n\tb  ", "c"]).unwrap(), "a b c");
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[" \n "]), None);
        let long = of(&[&"é".repeat(500)]).unwrap();
        assert_eq!(long, "é".repeat(PREVIEW_CHARS_MAX));
        let words = of(&[&"word ".repeat(500)]).unwrap();
        assert!(words.len() <= PREVIEW_CHARS_MAX && words.ends_with("word"), "{words}");
    }
}
