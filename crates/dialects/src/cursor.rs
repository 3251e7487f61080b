//! Where a client stands in a session: the last entry it has whole, how many messages of the next
//! entry it has, and how many bytes of each open item.
//!
//! Text form: `14`, `14+1`, `14~12t57`, `14+1~12t57,13o20`, and with the count of a run's events
//! `14~12t57!23`. It comes back from clients, so it is
//! hostile input: parsing is total, and whoever uses it clamps it to what is there.

use std::fmt;

use polyloop_session::{ItemId, Seq, SessionId, Stream};

/// More open items than any turn has; a longer cursor is refused.
pub const CURSOR_ITEMS_MAX: usize = 1024;
pub const CURSOR_BYTES_MAX: usize = 32 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    pub seq: Seq,
    /// Messages of entry `seq + 1` that were sent.
    pub parts: u32,
    pub sent: Vec<(ItemId, Stream, u64)>,
    /// Events of the running run that were sent, where the dialect counts them.
    pub events: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCursor;

impl fmt::Display for BadCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("since: use the `seq` or the `cursor` of the last message you received")
    }
}

impl Cursor {
    pub fn at(seq: Seq) -> Cursor {
        Cursor { seq, ..Cursor::default() }
    }

    /// The place that the stamp of a frame names.
    pub fn of_stamp(stamp: &[u8]) -> Option<Cursor> {
        #[derive(serde::Deserialize)]
        struct Stamp {
            seq: u64,
            cursor: Option<String>,
        }
        // A stamp is the end of an object: put a beginning in the place of its comma.
        let object = [b"{", stamp.strip_prefix(b",")?].concat();
        let stamp: Stamp = serde_json::from_slice(&object).ok()?;
        match stamp.cursor {
            Some(cursor) => Cursor::parse(&cursor).ok(),
            None => Some(Cursor::at(Seq(stamp.seq))),
        }
    }

    /// What a frame ends with that leaves its client here.
    pub fn stamp(&self, session: &SessionId) -> String {
        let seq = self.seq;
        match *self == Cursor::at(seq) {
            true => format!(",\"session_id\":\"{session}\",\"seq\":{seq}}}"),
            false => format!(",\"session_id\":\"{session}\",\"seq\":{seq},\"cursor\":\"{self}\"}}"),
        }
    }

    pub fn parse(text: &str) -> Result<Cursor, BadCursor> {
        if text.len() > CURSOR_BYTES_MAX {
            return Err(BadCursor);
        }
        // A query may carry the plus sign as a blank.
        let text = text.trim().replace(' ', "+");
        let (text, events) = match text.split_once('!') {
            Some((text, events)) => (text, Some(number(events)?)),
            None => (text.as_str(), None),
        };
        let (head, items) = text.split_once('~').map_or((text, None), |(h, i)| (h, Some(i)));
        let (seq, parts) = head.split_once('+').map_or((head, None), |(s, p)| (s, Some(p)));
        let seq = Seq(number(seq)?);
        let parts = parts.map_or(Ok(0), number)?;
        let sent = match items {
            None => Vec::new(),
            Some(items) => items.split(',').map(item).collect::<Result<Vec<_>, _>>()?,
        };
        if sent.len() > CURSOR_ITEMS_MAX {
            return Err(BadCursor);
        }
        Ok(Cursor { seq, parts, sent, events })
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, BadCursor> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().map_err(|_| BadCursor) } else { Err(BadCursor) }
}

fn item(text: &str) -> Result<(ItemId, Stream, u64), BadCursor> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or(BadCursor)?;
    let stream = match text.as_bytes().get(at) {
        Some(b't') => Stream::Text,
        Some(b'a') => Stream::Args,
        Some(b'o') => Stream::Output,
        _ => return Err(BadCursor),
    };
    let (id, bytes) = (&text[..at], &text[at + 1..]);
    Ok((ItemId(Seq(number(id)?)), stream, number(bytes)?))
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        push_place(&mut text, self.seq, self.parts, self.sent.iter().copied());
        f.write_str(&text)?;
        match self.events {
            Some(events) => write!(f, "!{events}"),
            None => Ok(()),
        }
    }
}

/// The letter of a stream, in cursors and ids.
pub(crate) fn letter(stream: Stream) -> char {
    match stream {
        Stream::Text => 't',
        Stream::Args => 'a',
        Stream::Output => 'o',
    }
}

/// A cursor's text, up to the count of events.
pub(crate) fn push_place(
    text: &mut String,
    seq: Seq,
    parts: u32,
    sent: impl Iterator<Item = (ItemId, Stream, u64)>,
) {
    push_number(text, seq.0);
    if parts > 0 {
        text.push('+');
        push_number(text, parts.into());
    }
    for (at, (item, stream, bytes)) in sent.enumerate() {
        text.push(if at == 0 { '~' } else { ',' });
        push_number(text, item.0.0);
        text.push(letter(stream));
        push_number(text, bytes);
    }
}

/// A number in decimal, without the detour that `format!` takes: several stand in every frame.
pub(crate) struct Decimal {
    digits: [u8; Decimal::DIGITS_MAX],
    from: usize,
}

impl Decimal {
    const DIGITS_MAX: usize = 20;

    pub(crate) fn new(mut number: u64) -> Decimal {
        let (mut digits, mut from) = ([b'0'; Decimal::DIGITS_MAX], Decimal::DIGITS_MAX);
        loop {
            from -= 1;
            digits[from] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return Decimal { digits, from };
            }
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        // They are all digits.
        std::str::from_utf8(&self.digits[self.from..]).unwrap_or_default()
    }
}

pub(crate) fn push_number(text: &mut String, number: u64) {
    text.push_str(Decimal::new(number).as_str());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream() -> impl Strategy<Value = Stream> {
        prop_oneof![Just(Stream::Text), Just(Stream::Args), Just(Stream::Output)]
    }

    #[test]
    fn numbers_of_any_length_are_written_whole() {
        for number in [0, 9, 10, 99, 100, 1_234_567_890, u64::MAX - 1, u64::MAX] {
            let mut text = "x".to_string();
            push_number(&mut text, number);
            assert_eq!(text, format!("x{number}"));
        }
    }

    proptest! {
        #[test]
        fn parse_reads_back_what_display_wrote(
            seq in any::<u64>(),
            parts in any::<u32>(),
            sent in proptest::collection::vec((any::<u64>(), stream(), any::<u64>()), 0..5),
            events in any::<Option<u64>>(),
        ) {
            let sent = sent.into_iter().map(|(i, s, b)| (ItemId(Seq(i)), s, b)).collect();
            let cursor = Cursor { seq: Seq(seq), parts, sent, events };
            prop_assert_eq!(Cursor::parse(&cursor.to_string()), Ok(cursor));
        }

        #[test]
        fn parse_is_total(text in "[0-9+~!,taox -]{0,40}|.{0,40}") {
            let _ = Cursor::parse(&text);
        }
    }

    #[test]
    fn examples() {
        for bad in [
            "",
            "x",
            "1!",
            "1!x",
            "!1",
            "-1",
            "1+",
            "1~",
            "1~2",
            "1~2z3",
            "1~t3",
            "99999999999999999999",
        ] {
            assert_eq!(Cursor::parse(bad), Err(BadCursor), "{bad}");
        }
        assert_eq!(Cursor::parse("14 1~12t57"), Cursor::parse("14+1~12t57"));
    }
}
