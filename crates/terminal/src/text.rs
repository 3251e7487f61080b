//! Text that is safe to show: every character that a terminal would act on, or that people would
//! not see, is shown as a sign.
//!
//! Knows nothing of colours or lines; `style` makes spans of what comes out of here.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// How far a tab goes, in columns.
pub const TAB_COLUMNS: usize = 4;

/// The text with nothing in it that a terminal obeys. Line breaks become signs too: who wants
/// lines splits first, with [`lines`].
pub fn clean(text: &str) -> String {
    if text.chars().all(|c| !is_hidden(c)) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\t' => shown.extend(std::iter::repeat_n(' ', TAB_COLUMNS)),
            '\0'..='\u{1f}' => shown.push(picture(c as u32)),
            '\u{7f}' => shown.push('\u{2421}'),
            _ if is_hidden(c) => shown.push_str(&format!("<{:04X}>", c as u32)),
            _ => shown.push(c),
        }
    }
    shown
}

/// JSON in which such characters stand as its own escapes. They can only be inside of its strings:
/// outside of them it has none but blanks and line breaks, and a frame is one line.
pub fn escaped(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    let mut units = [0; 2];
    for c in json.chars() {
        if is_hidden(c) {
            let units = c.encode_utf16(&mut units);
            shown.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Unicode has a picture of each control character.
fn picture(control: u32) -> char {
    char::from_u32(0x2400 + control).unwrap_or('?')
}

/// What a terminal acts on, what turns the order of characters around, and what has no width
/// outside of letters and emoji.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Lines of a text, by every line break that programs write; a carriage return alone is one too,
/// so that nothing is written over.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        line.split('\r')
    })
}

/// Columns that a clean text takes.
pub fn width(text: &str) -> usize {
    text.graphemes(true).map(grapheme_width).sum()
}

pub fn grapheme_width(grapheme: &str) -> usize {
    // A terminal gives no character more than two columns.
    grapheme.width().min(2)
}

/// The beginning of a text, with dots if it is longer than that.
pub fn shorten(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut taken = 0;
    let mut short = String::new();
    for grapheme in text.graphemes(true) {
        taken += grapheme_width(grapheme);
        if taken + 1 > columns {
            break;
        }
        short.push_str(grapheme);
    }
    short.push('…');
    short
}

/// The first line of a text, with dots if there is more.
pub fn one_line(text: &str, columns: usize) -> String {
    let text = text.trim();
    let mut all = lines(text);
    let first = clean(all.next().unwrap_or_default());
    let more = if all.next().is_some() { " …" } else { "" };
    shorten(&format!("{first}{more}"), columns)
}

/// A number with its thousands apart.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_terminals_obey_is_shown() {
        assert_eq!(clean("a\x1b[31mb\x07"), "a␛[31mb␇");
        assert_eq!(clean("\u{9b}2J\x7f"), "<009B>2J␡");
        assert_eq!(clean("\u{202e}txt.exe"), "<202E>txt.exe");
        assert_eq!(clean("a\tb\nc"), "a    b␊c");
        assert_eq!(clean("wörter 語 👩‍👩‍👧"), "wörter 語 👩‍👩‍👧");
    }

    #[test]
    fn escaped_json_is_the_same_and_shows_nothing_hidden() {
        let text = "a\u{9b}2J \u{7f} \u{202e}exe \u{e0041} é 語";
        let json = serde_json::json!({ "text": text }).to_string();
        let shown = escaped(&json);
        assert!(shown.contains(r"a\u009b2J \u007f \u202eexe \udb40\udc41 é 語"), "{shown}");
        let back: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(back["text"], text);
    }

    #[test]
    fn every_line_break_counts_once() {
        let got: Vec<&str> = lines("a\r\nb\nc\rd\n").collect();
        assert_eq!(got, ["a", "b", "c", "d", ""]);
    }

    #[test]
    fn widths_are_columns() {
        assert_eq!(width("abc"), 3);
        assert_eq!(width("語語"), 4);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(shorten("語語語", 5), "語語…");
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(one_line("one\ntwo", 20), "one …");
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(count(7), "7");
        assert_eq!(count(1234), "1,234");
        assert_eq!(count(1234567), "1,234,567");
    }

    proptest! {
        #[test]
        fn nothing_clean_is_a_control(text in any::<String>()) {
            let shown = clean(&text);
            prop_assert!(shown.chars().all(|c| !is_hidden(c)), "{shown:?}");
            prop_assert_eq!(clean(&shown), shown);
        }

        #[test]
        fn shortened_fits(text in "\\PC{0,40}", columns in 1usize..30) {
            let short = shorten(&clean(&text), columns);
            prop_assert!(width(&short) <= columns.max(1), "{short:?}");
        }
    }
}
