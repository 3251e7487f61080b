//! The time at which the model sent a piece of text, written into the text itself, so that whoever
//! finds it anywhere knows how long it was under way.

const MARK: u8 = b'~';
const DIGITS: usize = 16;
/// A stamp's length.
pub const BYTES: usize = DIGITS + 2;

pub fn put(out: &mut Vec<u8>, ns: u64) {
    out.push(MARK);
    for place in (0..DIGITS).rev() {
        let digit = (ns >> (4 * place)) & 0xf;
        out.push(b"0123456789abcdef"[digit as usize]);
    }
    out.push(MARK);
}

/// Calls `each` with every stamp in `text`, and says how many there were.
pub fn find(text: &[u8], mut each: impl FnMut(u64)) -> usize {
    let (mut at, mut count) = (0, 0);
    while let Some(found) = memchr::memchr(MARK, &text[at..]) {
        let start = at + found;
        match read(&text[start..]) {
            Some(ns) => {
                each(ns);
                count += 1;
                at = start + BYTES;
            }
            None => at = start + 1,
        }
    }
    count
}

fn read(text: &[u8]) -> Option<u64> {
    let stamp = text.get(..BYTES).filter(|stamp| stamp[BYTES - 1] == MARK)?;
    stamp[1..=DIGITS]
        .iter()
        .try_fold(0u64, |ns, digit| Some(ns << 4 | u64::from((*digit as char).to_digit(16)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &[u8]) -> Vec<u64> {
        let mut all = Vec::new();
        assert_eq!(find(text, |ns| all.push(ns)), all.len());
        all
    }

    #[test]
    fn what_is_put_is_found() {
        let mut text = b"~ a ~12".to_vec();
        put(&mut text, 0);
        text.extend(b"~~");
        put(&mut text, u64::MAX);
        put(&mut text, 0x0123_4567_89ab_cdef);
        assert_eq!(found(&text), [0, u64::MAX, 0x0123_4567_89ab_cdef]);
    }

    #[test]
    fn a_stamp_that_is_cut_is_none() {
        let mut text = Vec::new();
        put(&mut text, 77);
        assert!((0..text.len()).all(|end| found(&text[..end]).is_empty()));
    }
}
