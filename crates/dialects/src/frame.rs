//! A message ready to be written, and the few words in it that are a connection's own.
//!
//! The body of a frame is made once for all clients of a dialect; `Own` puts in what differs from
//! connection to connection: the count of a run's events, the client's own word for a mode.

use std::collections::HashMap;

use bytes::Bytes;
use polyloop_session::policy::Mode;
use polyloop_session::{MessageId, TurnId, WaitId};

use crate::cursor::Decimal;

/// Room for what a connection puts into a frame.
const INSERT_BYTES: usize = 32;

/// One text message of a dialect; cloning it copies a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub text: Bytes,
    /// Where the stamp of place begins: the last fields of the object and its closing brace.
    /// `None` when the frame is about no session, or its place is for the writer to say.
    pub stamp_at: Option<usize>,
    /// The wait that this frame asks a person about.
    pub presents: Option<WaitId>,
    /// The run it is a part of, where the dialect has runs.
    pub run: Option<RunFrame>,
    /// What a connection puts in, by place in the text, in order.
    pub inserts: Vec<(usize, Insert)>,
}

/// A frame's part in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunFrame {
    pub turn: TurnId,
    /// The message that asked for the run.
    pub message: Option<MessageId>,
    pub part: RunPart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPart {
    /// The first event of the run.
    Start,
    Event,
    End,
    Failed,
    Interrupted,
}

/// A word that is a connection's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insert {
    /// The number of this event in its run's stream.
    EventNumber,
    /// The number of the last one, in a frame that is none itself.
    EventCount,
    /// What the client calls the mode.
    Mode(Mode),
}

impl Frame {
    /// A frame that is not stamped (yet).
    pub fn unstamped(text: impl Into<Bytes>) -> Frame {
        let (presents, run, inserts) = (None, None, Vec::new());
        Frame { text: text.into(), stamp_at: None, presents, run, inserts }
    }

    /// The stamp: `,"session_id":…,"seq":…}`.
    pub fn stamp(&self) -> Option<Bytes> {
        self.stamp_at.map(|at| self.text.slice(at..))
    }

    /// The same message with another frame's place, which is the client's.
    pub fn stamped(&self, stamp: &[u8]) -> Frame {
        let Some(body) = self.text.strip_suffix(b"}") else { return self.clone() };
        let text = [body, stamp].concat();
        Frame { stamp_at: Some(body.len()), text: text.into(), ..self.clone() }
    }
}

/// What one connection's frames of one session have of their own.
#[derive(Clone, Debug, Default)]
pub struct Own {
    turn: Option<TurnId>,
    events: u64,
    words: HashMap<Mode, &'static str>,
}

impl Own {
    /// Goes on counting where the client left off.
    pub fn count_from(&mut self, turn: Option<TurnId>, events: u64) {
        self.turn = turn;
        self.events = events;
    }

    /// From now on the client's own word is used for the mode.
    pub fn call(&mut self, mode: Mode, word: &'static str) {
        self.words.insert(mode, word);
    }

    pub fn word(&self, mode: Mode) -> &'static str {
        self.words.get(&mode).copied().unwrap_or_else(|| default_word(mode))
    }

    /// Puts in what is the connection's own.
    pub fn finish(&mut self, frame: Frame) -> Frame {
        if frame.inserts.is_empty() {
            return frame;
        }
        let mut text = Vec::with_capacity(frame.text.len() + INSERT_BYTES);
        let stamp_at = self.finish_into(&frame, &mut text);
        Frame { text: text.into(), stamp_at, inserts: Vec::new(), ..frame }
    }

    /// The same, with the text put behind `text`; gives where in the frame its stamp then begins.
    pub fn finish_into(&mut self, frame: &Frame, text: &mut Vec<u8>) -> Option<usize> {
        let counts = frame.inserts.iter().any(|(_, insert)| *insert == Insert::EventNumber);
        if let Some(run) = frame.run.filter(|_| counts) {
            let begins = run.part == RunPart::Start || self.turn.is_some_and(|t| t != run.turn);
            if begins {
                self.events = 0;
            }
            self.turn = Some(run.turn);
        }
        if counts {
            self.events = self.events.saturating_add(1);
        }
        let number = Decimal::new(self.events);
        let (mut from, mut stamp_at) = (0, frame.stamp_at);
        for (at, insert) in &frame.inserts {
            let at = (*at).clamp(from, frame.text.len());
            text.extend_from_slice(&frame.text[from..at]);
            let word = match insert {
                Insert::EventNumber | Insert::EventCount => number.as_str(),
                Insert::Mode(mode) => self.word(*mode),
            };
            text.extend_from_slice(word.as_bytes());
            if frame.stamp_at.is_some_and(|stamp| at <= stamp) {
                stamp_at = stamp_at.map(|stamp| stamp + word.len());
            }
            from = at;
        }
        text.extend_from_slice(&frame.text[from..]);
        stamp_at
    }
}

/// What a mode is called where the client did not say.
pub(crate) fn default_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Suggest => "manual",
        Mode::AutoEdit => "acceptEdits",
        Mode::FullAuto => "auto",
        Mode::Bypass => "bypass",
        Mode::Plan => "plan",
        Mode::DontAsk => "dontAsk",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polyloop_session::Seq;

    fn frame(text: &str, part: RunPart, inserts: &[(usize, Insert)]) -> Frame {
        let run = RunFrame { turn: TurnId(Seq(3)), message: None, part };
        let inserts = inserts.to_vec();
        let stamp_at = text.find(",s");
        Frame { run: Some(run), inserts, stamp_at, ..Frame::unstamped(text.to_string()) }
    }

    #[test]
    fn numbers_count_per_run_and_words_are_the_clients() {
        let mut own = Own::default();
        let number = |at| (at, Insert::EventNumber);
        let told = |own: &mut Own, part, inserts: &[(usize, Insert)]| {
            let done = own.finish(frame("{a:,s:!}", part, inserts));
            (String::from_utf8_lossy(&done.text).into_owned(), done.stamp_at)
        };
        let both = [number(3), number(7)];
        assert_eq!(told(&mut own, RunPart::Start, &both), ("{a:1,s:!1}".into(), Some(4)));
        assert_eq!(told(&mut own, RunPart::Event, &both), ("{a:2,s:!2}".into(), Some(4)));
        assert_eq!(told(&mut own, RunPart::Failed, &[]), ("{a:,s:!}".into(), Some(3)));
        own.count_from(Some(TurnId(Seq(3))), 41);
        assert_eq!(told(&mut own, RunPart::Event, &both).0, "{a:42,s:!42}");
        assert_eq!(told(&mut own, RunPart::Start, &both).0, "{a:1,s:!1}");
        let mode = [(3, Insert::Mode(Mode::Suggest))];
        assert_eq!(told(&mut own, RunPart::Event, &mode).0, "{a:manual,s:!}");
        own.call(Mode::Suggest, "default");
        assert_eq!(told(&mut own, RunPart::Event, &mode).0, "{a:default,s:!}");
    }
}
