//! What is shown to a person who is asked for leave, so that it is what runs.
//!
//! Characters that a screen does not show, or shows as something else, are written as their codes:
//! `\u{202e}`. What runs, and what the log holds, is never touched: this is about the request
//! alone. It is here because both who judges calls and who words requests must mean the same
//! characters, and neither sees the other.
//!
//! Every code can be read back, and a code that stands in the text itself gets one for its
//! backslash. So two commands never look the same.

mod letters;
mod signs;

use letters::{Kind, is_mark, is_overlay, kind};
use signs::is_sign;

/// More marks on one letter are drawn over what is around it.
const MARKS_ON_LETTER_MAX: usize = 2;
const CODE_OPENS: &str = "\\u{";
/// The most digits of a code.
const CODE_DIGITS_MAX: usize = 6;
/// Our own sign for what was left out of a sentence.
const ELLIPSIS: char = '…';

/// Whether a character hides, turns around or imitates something on the screen, so that what a
/// person reads is not what runs. Newline and tab are what they look like.
pub fn is_deceptive(c: char) -> bool {
    is_hidden(c) || (c.is_whitespace() && !matches!(c, ' ' | '\n' | '\t')) || is_private(c)
}

/// Drawn as nothing, or changes how its neighbours are drawn.
pub fn is_hidden(c: char) -> bool {
    if matches!(c, '\n' | '\t') {
        return false;
    }
    c.is_control()
        || matches!(c,
            // Soft hyphen, grapheme joiner, fillers that are drawn empty.
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}'
            | '\u{ffa0}' | '\u{2800}' | '\u{16fe4}' | '\u{1d159}'
            // Direction: what follows, or what is enclosed, is drawn the other way round.
            | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            // Lines that not every screen breaks.
            | '\u{2028}' | '\u{2029}'
            // Zero width, and invisible operators.
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffc}'
            | '\u{70f}' | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}'
            // Variation selectors and tags: whole texts can be hidden in them.
            | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}'
            | '\u{1d173}'..='\u{1d17a}')
}

/// Drawn as whatever the reader's font likes.
fn is_private(c: char) -> bool {
    let unused = u32::from(c) & 0xfffe == 0xfffe || matches!(c, '\u{fdd0}'..='\u{fdef}');
    unused || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

/// A piece of a sentence: what [`is_deceptive`] finds is written as its code, and nothing else is
/// changed, so that it may be done twice. It cannot be read back.
pub fn visible(text: &str) -> String {
    each(text, |c, _, _| is_deceptive(c))
}

/// A command, a word of one, or a path. Besides what is deceptive, codes are written for signs
/// that look like those of the shell, and for letters that make a word look like another: where
/// they stand among Latin ones, or where all of a word look like ASCII. Honest words of any script
/// are shown as they are.
pub fn command(text: &str) -> String {
    words(text, is_sign, Backslash::Coded)
}

/// Words of our own about a call, with pieces of it in them.
pub fn sentence(text: &str) -> String {
    words(text, |c| c != ELLIPSIS && is_sign(c), Backslash::AsItIs)
}

/// What stands in a file, or will.
pub fn content(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (c, rest) in with_rest(text) {
        let ends_line = c == '\r' && rest.starts_with('\n');
        let coded = is_deceptive(c) && !ends_line || opens_code(c, rest);
        push(&mut shown, c, coded);
    }
    shown
}

/// A patch: contents, but for the lines that name files.
pub fn patch(text: &str) -> String {
    let line = |line: &str| match names_file(line) {
        true => {
            let named = line.strip_suffix("\r\n").unwrap_or(line);
            command(named) + &line[named.len()..]
        }
        false => content(line),
    };
    text.split_inclusive('\n').map(line).collect()
}

/// The patch that was shown as this. Codes that [`patch`] would not have written stay as they are.
pub fn read_back(shown: &str) -> String {
    let line = |line| {
        let named = names_file(line);
        uncoded(line, |c| is_deceptive(c) || (named && !c.is_ascii()))
    };
    shown.split_inclusive('\n').map(line).collect()
}

/// What the agent says or asks: a question, a plan. Nothing of it runs, so blanks of any width are
/// blanks, and what joins letters or makes a picture of two belongs to them.
pub fn prose(text: &str) -> String {
    each(text, |c, before, after| is_hidden(c) && !joins(c, before, after))
}

fn names_file(line: &str) -> bool {
    line.trim_start_matches([' ', '\t']).starts_with("***")
}

/// Whether an invisible character only does its honest work between its neighbours.
fn joins(c: char, before: Option<char>, after: Option<char>) -> bool {
    let picture = |c: Option<char>| {
        c.is_some_and(|c| {
            matches!(c, '©' | '®' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
                | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{24c2}'
                | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}'
                | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
        })
    };
    // Scripts whose letters change with their neighbours.
    let joining = |c: Option<char>| matches!(c, Some('\u{620}'..='\u{dff}'));
    match c {
        '\u{fe0f}' => picture(before) || after == Some('\u{20e3}'),
        '\u{200d}' if picture(after) => picture(before) || before == Some('\u{fe0f}'),
        '\u{200c}' | '\u{200d}' => joining(before) && joining(after),
        _ => false,
    }
}

fn each(text: &str, is_coded: impl Fn(char, Option<char>, Option<char>) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    for (c, rest) in with_rest(text) {
        push(&mut shown, c, is_coded(c, before, rest.chars().next()));
        before = Some(c);
    }
    shown
}

/// What becomes of the backslash of a code that stands in the text itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backslash {
    Coded,
    /// The code was written by us.
    AsItIs,
}

fn words(text: &str, is_sign: impl Fn(char) -> bool, backslash: Backslash) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        let (now, later) = rest.split_at(word.max(c.len_utf8()));
        if word > 0 {
            push_word(&mut shown, now, &is_sign);
        } else {
            let code = backslash == Backslash::Coded && opens_code(c, later);
            push(&mut shown, c, code || is_deceptive(c) || is_sign(c));
        }
        rest = later;
    }
    shown
}

fn in_word(c: char) -> bool {
    (c.is_alphanumeric() || is_mark(c)) && !is_deceptive(c)
}

fn push_word(shown: &mut String, word: &str, is_sign: impl Fn(char) -> bool) {
    let has = |wanted: &[Kind]| word.chars().any(|c| wanted.contains(&kind(c)));
    let is_latin = has(&[Kind::Ascii, Kind::Latin]);
    let imitates = is_latin || !has(&[Kind::Other]);
    // A mark on nothing is drawn on what is before the word.
    let mut marks = MARKS_ON_LETTER_MAX;
    for c in word.chars() {
        marks = if is_mark(c) { marks.saturating_add(1) } else { 0 };
        let coded = match kind(c) {
            Kind::Ascii | Kind::Digit | Kind::Latin => false,
            Kind::Mark => is_overlay(c) || marks > MARKS_ON_LETTER_MAX,
            Kind::Alike => imitates,
            Kind::Other => is_latin,
        };
        push(shown, c, coded || is_sign(c));
    }
}

/// Whether the text itself holds what looks like a code here.
fn opens_code(c: char, rest: &str) -> bool {
    c == '\\' && rest.starts_with("u{")
}

fn push(shown: &mut String, c: char, coded: bool) {
    if coded {
        shown.extend(c.escape_unicode());
    } else {
        shown.push(c);
    }
}

/// Each character, and what follows it.
fn with_rest(text: &str) -> impl Iterator<Item = (char, &str)> {
    text.char_indices().map(|(at, c)| (c, &text[at + c.len_utf8()..]))
}

/// Puts characters in the place of their codes.
fn uncoded(shown: &str, was_coded: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(shown.len());
    let mut rest = shown;
    while let Some(at) = rest.find(CODE_OPENS) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let (c, length) = match code(from) {
            Some((c, length)) if was_coded(c) || opens_code(c, &from[length..]) => (c, length),
            _ => ('\\', 1),
        };
        text.push(c);
        rest = &from[length..];
    }
    text.push_str(rest);
    text
}

/// The character whose code, written as we write it, the text begins with; and the code's length.
fn code(text: &str) -> Option<(char, usize)> {
    let digits = text.strip_prefix(CODE_OPENS)?;
    let length = digits.find('}').filter(|length| *length <= CODE_DIGITS_MAX)?;
    let c = char::from_u32(u32::from_str_radix(&digits[..length], 16).ok()?)?;
    let length = CODE_OPENS.len() + length + 1;
    c.escape_unicode().eq(text[..length].chars()).then_some((c, length))
}

#[cfg(test)]
mod tests;
