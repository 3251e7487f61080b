//! Texts cut to a size. The size is what they take in JSON, where a control character is six
//! bytes, so that a bound on texts is a bound on the message that holds them.

const MARK: char = '…';

/// The text, or its beginning and a mark.
pub(super) fn short(text: &str, bytes_max: usize) -> String {
    let room = bytes_max.saturating_sub(MARK.len_utf8());
    let (mut bytes, mut end) = (0, 0);
    for (at, letter) in text.char_indices() {
        bytes += cost(letter);
        if bytes > bytes_max {
            let mut cut = text[..end].to_string();
            cut.push(MARK);
            return cut;
        }
        if bytes <= room {
            end = at + letter.len_utf8();
        }
    }
    text.to_string()
}

/// Bytes of a text inside JSON quotes.
pub(super) fn json_bytes(text: &str) -> usize {
    text.chars().map(cost).sum()
}

fn cost(letter: char) -> usize {
    match letter {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\u{0}'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples() {
        assert_eq!(short("", 3), "");
        assert_eq!(short("abc", 3), "abc");
        assert_eq!(short("abcd", 3), "…");
        assert_eq!(short("abcdefg", 6), "abc…");
        assert_eq!(short("ab\u{0}\u{0}", 8), "ab…");
        assert_eq!(short("äöü", 6), "äöü");
        assert_eq!(short("äöüß", 7), "äö…");
    }

    proptest! {
        #[test]
        fn what_it_takes_in_json_is_bounded(
            text in "[\\x00-\\x7fäß🙂\u{2028}]{0,60}",
            max in 3..90_usize,
        ) {
            let cut = short(&text, max);
            let quoted = serde_json::to_string(&cut).unwrap();
            prop_assert_eq!(quoted.len() - 2, json_bytes(&cut));
            prop_assert!(json_bytes(&cut) <= max);
            prop_assert!(cut == text || text.starts_with(cut.strip_suffix(MARK).unwrap()));
            prop_assert_eq!(cut == text, json_bytes(&text) <= max);
        }
    }
}
