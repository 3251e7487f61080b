//! What a command printed: decoded as it comes, and bounded for those who read it.

/// How much of a command's output is streamed; the rest is counted.
pub const OUTPUT_BYTES_MAX: usize = 256 * 1024;

/// How much of it, with the notes about it, the model is shown: the beginning and the end.
pub const SEEN_BYTES_MAX: usize = 32 * 1024;

/// Kept free for the notes.
const NOTES_BYTES: usize = 1024;
const HEAD_BYTES: usize = (SEEN_BYTES_MAX - NOTES_BYTES) / 2;
const TAIL_BYTES: usize = HEAD_BYTES;

/// All sizes are those of the decoded text.
#[derive(Debug, Default)]
pub(super) struct Output {
    decoder: Decoder,
    shown_bytes: usize,
    total_bytes: usize,
    /// Nothing more is shown once something was left out.
    full: bool,
    finished: bool,
    head: String,
    /// What came after the head, or as much of its end as is needed, and a bit more.
    tail: String,
}

impl Output {
    /// Takes what was read; gives what is to be streamed of it, and all of it.
    pub(super) fn push(&mut self, bytes: &[u8]) -> (String, String) {
        let text = self.decoder.push(bytes);
        (self.take(text.clone()), text)
    }

    /// Takes the end of the output; gives the last text to be streamed, and that only once.
    pub(super) fn finish(&mut self) -> Option<(String, String)> {
        if std::mem::replace(&mut self.finished, true) {
            return None;
        }
        let rest = self.decoder.finish();
        let mut last = self.take(rest.clone());
        let left_out = self.total_bytes - self.shown_bytes;
        if left_out > 0 {
            last.push_str(&format!("\n[{left_out} more bytes of output are not shown]\n"));
        }
        Some((last, rest))
    }

    /// More was printed than the model is shown.
    pub(super) fn is_long(&self) -> bool {
        self.total_bytes > HEAD_BYTES + TAIL_BYTES
    }

    pub(super) fn total_bytes(&self) -> usize {
        self.total_bytes
    }

    fn take(&mut self, mut text: String) -> String {
        self.total_bytes += text.len();
        self.remember(&text);
        let room = if self.full { 0 } else { OUTPUT_BYTES_MAX - self.shown_bytes };
        if text.len() > room {
            self.full = true;
            text.truncate(text.floor_char_boundary(room));
        }
        self.shown_bytes += text.len();
        text
    }

    fn remember(&mut self, text: &str) {
        // Once something has gone into the tail, the head has its end.
        let room = if self.tail.is_empty() { HEAD_BYTES - self.head.len() } else { 0 };
        let (head, tail) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(head);
        self.tail.push_str(tail);
        // Not at every chunk, so that each byte is moved once or twice at most.
        if self.tail.len() > 2 * TAIL_BYTES + OUTPUT_BYTES_MAX {
            self.cut_tail();
        }
    }

    fn cut_tail(&mut self) {
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..self.tail.ceil_char_boundary(surplus));
    }

    /// What is kept of it.
    pub(super) fn kept(&self) -> String {
        [&*self.head, &*self.tail].concat()
    }

    /// What the model is shown of it, with where the rest is and a note at the end; none if that is
    /// what was streamed.
    pub(super) fn seen(mut self, note: Option<&str>, rest: Option<&str>) -> Option<String> {
        self.cut_tail();
        let cut = self.total_bytes - self.head.len() - self.tail.len();
        if cut == 0 && note.is_none() {
            return None;
        }
        let mut seen = self.head;
        if cut > 0 {
            let rest = rest.map_or("run it again with less output to see them", |rest| rest);
            seen.push_str(&format!("\n[{cut} bytes of output are left out here; {rest}]\n"));
        }
        seen.push_str(&self.tail);
        if let Some(note) = note {
            if !seen.is_empty() && !seen.ends_with('\n') {
                seen.push('\n');
            }
            // What is left of the room for notes.
            seen.push_str(&note[..note.floor_char_boundary(NOTES_BYTES / 2)]);
        }
        Some(seen)
    }
}

/// Decodes UTF-8 that comes in pieces: whatever the cuts, the text is the same.
#[derive(Debug, Default)]
struct Decoder {
    /// The beginning of a character whose end has not come yet; at most three bytes.
    held: Vec<u8>,
}

impl Decoder {
    fn push(&mut self, bytes: &[u8]) -> String {
        let joined;
        let mut rest = if self.held.is_empty() {
            bytes
        } else {
            self.held.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.held);
            &joined
        };
        let mut text = String::with_capacity(rest.len());
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => error,
            };
            let (valid, after) = rest.split_at(error.valid_up_to());
            text.push_str(&String::from_utf8_lossy(valid));
            let Some(bad) = error.error_len() else {
                self.held = after.to_vec();
                return text;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = after.get(bad..).unwrap_or_default();
        }
    }

    /// A character that never got its end.
    fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        String::from_utf8_lossy(&held).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes in which whole, broken and invalid characters are frequent.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            any::<Vec<u8>>(),
            ".{0,4}".prop_map(String::into_bytes),
            prop::sample::select(vec![
                vec![0xe2],
                vec![0xe2, 0x82],
                vec![0xf0, 0x9f, 0x98],
                vec![0xff],
                vec![0x80],
                vec![0xed, 0xa0, 0x80],
                vec![0xc0, 0xaf],
            ]),
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn pieces_decode_to_what_the_whole_decodes_to(
            bytes in bytes(),
            cuts in prop::collection::vec(1usize..6, 0..200),
        ) {
            let (mut decoder, mut text, mut rest) = (Decoder::default(), String::new(), &bytes[..]);
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                text.push_str(&decoder.push(piece));
                prop_assert!(decoder.held.len() < 4);
                rest = after;
            }
            text.push_str(&decoder.push(rest));
            text.push_str(&decoder.finish());
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn what_is_kept_is_bounded_and_is_the_beginning_and_the_end(
            piece in "[a-zä€]{1,40}",
            count in 0usize..40_000,
        ) {
            let whole = piece.repeat(count);
            let (mut output, mut shown) = (Output::default(), String::new());
            for chunk in whole.as_bytes().chunks(16 * 1024) {
                shown.push_str(&output.push(chunk).0);
            }
            let last = output.finish().unwrap().0;
            let seen = output.seen(None, Some("all is in /x"));
            if whole.len() <= OUTPUT_BYTES_MAX {
                shown.push_str(&last);
                prop_assert_eq!(&shown, &whole);
            } else {
                let cut = last.find("\n[").unwrap();
                shown.push_str(&last[..cut]);
                let left: usize = last[cut + 2..].split(' ').next().unwrap().parse().unwrap();
                prop_assert!(shown.len() <= OUTPUT_BYTES_MAX && whole.starts_with(&shown));
                prop_assert_eq!(shown.len() + left, whole.len());
            }
            match seen {
                None => prop_assert!(whole.len() <= SEEN_BYTES_MAX),
                Some(seen) => {
                    prop_assert!(seen.len() <= SEEN_BYTES_MAX);
                    let (head, rest) = seen.split_once("\n[").unwrap();
                    let note = " bytes of output are left out here; all is in /x]\n";
                    let (cut, tail) = rest.split_once(note).unwrap();
                    prop_assert!(whole.starts_with(head) && whole.ends_with(tail));
                    prop_assert_eq!(
                        head.len() + tail.len() + cut.parse::<usize>().unwrap(),
                        whole.len()
                    );
                }
            }
        }
    }

    #[test]
    fn a_note_goes_on_a_line_of_its_own() {
        let seen = |text: &str| {
            let mut output = Output::default();
            output.push(text.as_bytes());
            output.finish();
            output.seen(Some("Exit code 2."), None).unwrap()
        };
        assert_eq!(seen(""), "Exit code 2.");
        assert_eq!(seen("a\n"), "a\nExit code 2.");
        assert_eq!(seen("a"), "a\nExit code 2.");
    }
}
