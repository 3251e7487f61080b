//! Bytes of a terminal, made into keys.
//!
//! Total: what is no key that we know is dropped, and a paste is text, whatever stands in it.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Ctrl(char),
    Alt(char),
    Enter,
    AltEnter,
    Tab,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    WordLeft,
    WordRight,
    DeleteWord,
    Esc,
    Paste(String),
}

const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// A longer sequence is no key.
const SEQUENCE_BYTES_MAX: usize = 32;
/// What is pasted beyond that is dropped; no server takes such a message.
const PASTE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What follows an escape belongs to it if it comes as fast.
const ESCAPE: Duration = Duration::from_millis(40);
/// A paste whose end is lost is over when nothing comes for so long.
const PASTE_SILENCE: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    /// What has come of a paste that is not over.
    paste: Option<Vec<u8>>,
}

enum Found {
    Key(Key, usize),
    Nothing(usize),
    /// It may become something with more bytes.
    More,
}

impl Keys {
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.bytes.extend_from_slice(bytes);
        self.read(false)
    }

    /// How long what has begun may wait for what follows, if something has.
    pub fn patience(&self) -> Option<Duration> {
        match &self.paste {
            Some(_) => Some(PASTE_SILENCE),
            None => (!self.bytes.is_empty()).then_some(ESCAPE),
        }
    }

    /// Nothing followed.
    pub fn timed_out(&mut self) -> Vec<Key> {
        if self.paste.is_some() {
            let all = self.bytes.len();
            self.take_pasted(all);
            return self.end_paste().into_iter().collect();
        }
        self.read(true)
    }

    /// Takes what belongs to the paste; its key when it is over. Each byte is looked at once.
    fn read_paste(&mut self) -> Option<Key> {
        let end = self.bytes.windows(PASTE_END.len()).position(|window| window == PASTE_END);
        let Some(end) = end else {
            // The last bytes may be the beginning of its end.
            self.take_pasted((self.bytes.len() + 1).saturating_sub(PASTE_END.len()));
            return None;
        };
        self.take_pasted(end);
        self.bytes.drain(..PASTE_END.len());
        self.end_paste()
    }

    fn take_pasted(&mut self, count: usize) {
        let taken = self.bytes.drain(..count);
        if let Some(paste) = &mut self.paste {
            paste.extend(taken.take(PASTE_BYTES_MAX.saturating_sub(paste.len())));
        }
    }

    fn end_paste(&mut self) -> Option<Key> {
        let bytes = self.paste.take()?;
        Some(Key::Paste(pasted(&String::from_utf8_lossy(&bytes))))
    }

    fn read(&mut self, is_all: bool) -> Vec<Key> {
        let mut keys = Vec::new();
        loop {
            if self.paste.is_none() && self.bytes.starts_with(PASTE_BEGIN) {
                self.bytes.drain(..PASTE_BEGIN.len());
                self.paste = Some(Vec::new());
            }
            if self.paste.is_some() {
                match self.read_paste() {
                    Some(key) => keys.push(key),
                    None => return keys,
                }
                continue;
            }
            let used = match find(&self.bytes) {
                Found::Key(key, used) => {
                    keys.push(key);
                    used
                }
                Found::Nothing(used) => used,
                Found::More if is_all && !self.bytes.is_empty() => {
                    // A lone escape is a key; half a character is nothing.
                    if self.bytes[0] == 0x1b {
                        keys.push(Key::Esc);
                    }
                    1
                }
                Found::More => return keys,
            };
            self.bytes.drain(..used.min(self.bytes.len()));
            if self.bytes.is_empty() {
                return keys;
            }
        }
    }
}

fn find(bytes: &[u8]) -> Found {
    match bytes {
        [] => Found::More,
        [0x1b, ..] => escape(bytes),
        [b'\r' | b'\n', ..] => Found::Key(Key::Enter, 1),
        [b'\t', ..] => Found::Key(Key::Tab, 1),
        [0x7f | 0x08, ..] => Found::Key(Key::Backspace, 1),
        [0, ..] => Found::Nothing(1),
        [byte @ 1..0x1b, ..] => Found::Key(Key::Ctrl((byte + b'a' - 1) as char), 1),
        [0x1c..0x20, ..] => Found::Nothing(1),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Found {
    let length = match bytes[0] {
        0..0x80 => 1,
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return Found::Nothing(1),
    };
    if bytes.len() < length {
        return Found::More;
    }
    match std::str::from_utf8(&bytes[..length]).ok().and_then(|text| text.chars().next()) {
        Some(c) if c.is_control() => Found::Nothing(length),
        Some(c) => Found::Key(Key::Char(c), length),
        None => Found::Nothing(1),
    }
}

fn escape(bytes: &[u8]) -> Found {
    match bytes {
        [_] => Found::More,
        [_, b'[', ..] => sequence(bytes),
        [_, b'O', final_byte, ..] => match cursor_key(*final_byte, false) {
            Some(key) => Found::Key(key, 3),
            None => Found::Nothing(3),
        },
        [_, b'O'] => Found::More,
        [_, b'\r' | b'\n', ..] => Found::Key(Key::AltEnter, 2),
        [_, 0x7f | 0x08, ..] => Found::Key(Key::DeleteWord, 2),
        [_, 0x1b, ..] => Found::Key(Key::Esc, 1),
        [_, b'b', ..] => Found::Key(Key::WordLeft, 2),
        [_, b'f', ..] => Found::Key(Key::WordRight, 2),
        [_, byte @ 0x20..0x7f, ..] => Found::Key(Key::Alt(*byte as char), 2),
        _ => Found::Key(Key::Esc, 1),
    }
}

/// Line breaks as ours, and no other control characters than tabs.
fn pasted(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// `ESC [ numbers final`.
fn sequence(bytes: &[u8]) -> Found {
    let end = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte));
    let Some(end) = end.map(|end| end + 2) else {
        let odd = bytes[2..].iter().any(|byte| !(0x20..0x40).contains(byte));
        let length = bytes.len();
        return if odd || length > SEQUENCE_BYTES_MAX {
            Found::Nothing(length)
        } else {
            Found::More
        };
    };
    let text = std::str::from_utf8(&bytes[2..end]).unwrap_or_default();
    let mut numbers = text.split(';').map(|number| number.parse::<u8>().unwrap_or(0));
    let (first, modifier) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(1));
    // Shift counts 1, Alt 2, Ctrl 4, and the sum is one more.
    let by_word = modifier.saturating_sub(1) & 6 != 0;
    let key = match (bytes[end], first) {
        (b'~', 1 | 7) => Some(Key::Home),
        (b'~', 4 | 8) => Some(Key::End),
        (b'~', 3) => Some(if by_word { Key::DeleteWord } else { Key::Delete }),
        (b'u', 13) => Some(if modifier > 1 { Key::AltEnter } else { Key::Enter }),
        (final_byte, _) => cursor_key(final_byte, by_word),
    };
    match key {
        Some(key) => Found::Key(key, end + 1),
        None => Found::Nothing(end + 1),
    }
}

fn cursor_key(final_byte: u8, by_word: bool) -> Option<Key> {
    Some(match final_byte {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' if by_word => Key::WordRight,
        b'D' if by_word => Key::WordLeft,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut reader = Keys::default();
        let mut keys = reader.push(bytes);
        keys.extend(reader.timed_out());
        keys
    }

    #[test]
    fn keys_are_known() {
        assert_eq!(
            keys(b"a\r\x7f\t\x01"),
            [Key::Char('a'), Key::Enter, Key::Backspace, Key::Tab, Key::Ctrl('a')]
        );
        assert_eq!(keys("é語".as_bytes()), [Key::Char('é'), Key::Char('語')]);
        assert_eq!(
            keys(b"\x1b[A\x1bOB\x1b[1;5C\x1b[3~\x1b[H"),
            [Key::Up, Key::Down, Key::WordRight, Key::Delete, Key::Home]
        );
        assert_eq!(keys(b"\x1b\r\x1bb\x1b"), [Key::AltEnter, Key::WordLeft, Key::Esc]);
    }

    #[test]
    fn a_sequence_may_come_in_pieces() {
        let mut reader = Keys::default();
        assert!(reader.push(b"\x1b").is_empty());
        assert_eq!(reader.patience(), Some(ESCAPE));
        assert_eq!(reader.push(b"[D"), [Key::Left]);
        assert!(reader.push(&"語".as_bytes()[..2]).is_empty());
        assert_eq!(reader.push(&"語".as_bytes()[2..]), [Key::Char('語')]);
    }

    #[test]
    fn a_paste_is_text() {
        let paste = b"\x1b[200~y\r\nrm\x1b[A\x07\x1b[201~z";
        assert_eq!(keys(paste), [Key::Paste("y\nrm[A".into()), Key::Char('z')]);
        let mut reader = Keys::default();
        assert!(reader.push(b"\x1b[200~half").is_empty());
        assert_eq!(reader.patience(), Some(PASTE_SILENCE));
        assert!(reader.push(b"\x1b[20").is_empty());
        assert_eq!(reader.push(b"1~"), [Key::Paste("half".into())]);
        assert_eq!(reader.patience(), None);
    }

    #[test]
    fn a_paste_without_an_end_is_over_after_silence() {
        let mut reader = Keys::default();
        assert!(reader.push(b"\x1b[200~half\x1b").is_empty());
        assert_eq!(reader.timed_out(), [Key::Paste("half".into())]);
        assert_eq!(reader.push(b"x"), [Key::Char('x')]);
    }

    #[test]
    fn two_pastes_are_two() {
        let pastes = b"\x1b[200~a\x1b[201~\x1b[200~b\x1b[201~";
        assert_eq!(keys(pastes), [Key::Paste("a".into()), Key::Paste("b".into())]);
    }

    #[test]
    fn a_huge_paste_is_cut_and_no_key() {
        let mut reader = Keys::default();
        reader.push(PASTE_BEGIN);
        for _ in 0..=PASTE_BYTES_MAX / 4096 {
            assert!(reader.push(&[b'y'; 4096]).is_empty());
            assert!(reader.bytes.len() < PASTE_END.len(), "what was looked at is kept apart");
        }
        let [Key::Paste(text)] = &reader.push(PASTE_END)[..] else { panic!("no paste") };
        assert_eq!(text.len(), PASTE_BYTES_MAX);
    }

    #[test]
    fn odd_sequences_are_dropped() {
        assert_eq!(keys(b"\x1b[?1;2cx"), [Key::Char('x')]);
        assert_eq!(keys(b"\xff\xfea"), [Key::Char('a')]);
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut reader = Keys::default();
            reader.push(&bytes);
            reader.timed_out();
            prop_assert_eq!(reader.patience(), None);
        }
    }
}
