//! The pieces that the model's text is made of. Each carries the time at which it was sent, so that
//! whoever finds it anywhere knows how long it was under way, and its number, so that none is lost,
//! doubled or changed without being noticed.
//!
//! `~` 16 digits of nanoseconds `~` 8 digits of its number, then `x` up to the length asked for.

use std::io;

use memchr::memmem;

const MARK: u8 = b'~';
const TIME_DIGITS: usize = 16;
const NUMBER_DIGITS: usize = 8;
const FILLER: u8 = b'x';
const DIGITS: &[u8; 16] = b"0123456789abcdef";
/// The shortest piece.
pub const BYTES_MIN: usize = TIME_DIGITS + 2 + NUMBER_DIGITS;

pub fn put(out: &mut Vec<u8>, bytes: usize, ns: u64, number: u64) {
    let end = out.len() + bytes.max(BYTES_MIN);
    out.push(MARK);
    put_digits(out, ns, TIME_DIGITS);
    out.push(MARK);
    put_digits(out, number, NUMBER_DIGITS);
    out.resize(end, FILLER);
}

fn put_digits(out: &mut Vec<u8>, value: u64, digits: usize) {
    for place in (0..digits).rev() {
        out.push(DIGITS[((value >> (4 * place)) & 0xf) as usize]);
    }
}

/// What is to come: answers of so many pieces of so many bytes, one answer after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    bytes: usize,
    answer: u64,
    /// How many have come, of all answers.
    pub count: u64,
}

impl Pieces {
    pub fn new(answer: u64, bytes: usize) -> Pieces {
        Pieces { bytes: bytes.max(BYTES_MIN), answer: answer.max(1), count: 0 }
    }

    /// Reads the text of a frame, which stands anywhere in it, and calls `each` with the time of
    /// every piece. Gives how many there were.
    pub fn read(&mut self, frame: &[u8], mut each: impl FnMut(u64)) -> io::Result<u64> {
        // A place in a session has such marks too, but never at the beginning of a text.
        let Some(quote) = memmem::find(frame, b"\"~") else { return Ok(0) };
        let (mut at, before) = (quote + 1, self.count);
        while frame.get(at) == Some(&MARK) {
            let wanted = self.count % self.answer;
            let piece = frame.get(at..at + self.bytes).and_then(|piece| read(piece, wanted));
            let Some(ns) = piece else {
                let shown = &frame[at..frame.len().min(at + 2 * BYTES_MIN)];
                let shown = String::from_utf8_lossy(shown);
                let bytes = self.bytes;
                return Err(io::Error::other(format!(
                    "piece {wanted} of {bytes} bytes was to come, and this came: {shown}"
                )));
            };
            each(ns);
            self.count += 1;
            at += self.bytes;
        }
        match frame.get(at) {
            Some(b'"') => Ok(self.count - before),
            _ => Err(io::Error::other(format!("text that is no piece follows the {at}th byte"))),
        }
    }

    /// An error that says what is missing.
    pub fn are_all(&self, answers: u64) -> io::Result<()> {
        let (found, wanted) = (self.count, self.answer * answers);
        match found == wanted {
            true => Ok(()),
            false => Err(io::Error::other(format!("{found} of {wanted} pieces arrived"))),
        }
    }
}

/// The time of a piece that is as it was sent.
fn read(piece: &[u8], wanted: u64) -> Option<u64> {
    let (time, rest) = piece[1..].split_at(TIME_DIGITS);
    let (number, filler) = rest.strip_prefix(&[MARK])?.split_at(NUMBER_DIGITS);
    let whole = digits(number)? == wanted && filler.iter().all(|byte| *byte == FILLER);
    digits(time).filter(|_| whole)
}

fn digits(text: &[u8]) -> Option<u64> {
    text.iter()
        .try_fold(0u64, |value, digit| Some(value << 4 | u64::from((*digit as char).to_digit(16)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 32;

    fn frame(numbers: &[u64]) -> Vec<u8> {
        let mut text = b"{\"text\":\"".to_vec();
        for number in numbers {
            put(&mut text, BYTES, 1000 + number, *number);
        }
        text.extend(b"\"}");
        text
    }

    #[test]
    fn what_is_put_is_read() {
        let (mut pieces, mut times) = (Pieces::new(3, BYTES), Vec::new());
        let nothing = b"{\"text\":\"\",\"cursor\":\"5~5t11\"}";
        assert_eq!(pieces.read(nothing, |_| {}).unwrap(), 0);
        assert_eq!(pieces.read(&frame(&[0]), |ns| times.push(ns)).unwrap(), 1);
        // The next answer begins anew, and may come in the same frame.
        assert_eq!(pieces.read(&frame(&[1, 2, 0]), |ns| times.push(ns)).unwrap(), 3);
        assert_eq!(times, [1000, 1001, 1002, 1000]);
        assert!(pieces.are_all(2).is_err());
        pieces.read(&frame(&[1, 2]), |_| {}).unwrap();
        pieces.are_all(2).unwrap();
    }

    #[test]
    fn what_is_lost_doubled_or_swapped_is_noticed() {
        for wrong in [&[0, 2][..], &[0, 0], &[1, 0], &[0, 1, 2, 3]] {
            assert!(Pieces::new(3, BYTES).read(&frame(wrong), |_| {}).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn every_byte_counts() {
        let whole = frame(&[0, 1]);
        let text = b"{\"text\":\"".len();
        for at in text..text + 2 * BYTES {
            for byte in [b'z', b'\\'] {
                let mut wrong = whole.clone();
                wrong[at] = byte;
                let read = Pieces::new(2, BYTES).read(&wrong, |_| {});
                // Without its first mark a frame has other text, or none.
                assert!(!matches!(read, Ok(2)), "byte {at}");
            }
            let mut short = whole.clone();
            short.remove(at);
            assert!(!matches!(Pieces::new(2, BYTES).read(&short, |_| {}), Ok(2)), "byte {at}");
        }
    }
}
