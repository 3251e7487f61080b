//! Reads a script as one simple command made of literal words, or says why it is none.
//!
//! Accepts less than bash does, and nothing that bash reads in another way.

use std::str::Chars;

use polyloop_session::shown::{is_deceptive, visible};

use super::SCRIPT_BYTES_MAX;
use super::show::brief;

/// What bash reads as grammar when it stands first; a command of that name is not meant.
const RESERVED: &[&str] = &[
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while",
];

/// What stands for itself in a bare word, beside letters and digits.
const BARE: &str = "_-./:=@%+,^";

/// The words of `script` if it is one simple command in which nothing is expanded, joined,
/// redirected or assigned: bare words, single-quoted and plain double-quoted ones.
pub fn literal_argv(script: &str) -> Option<Vec<String>> {
    parse(script).ok()
}

/// The same, with the reason for people when it is not.
pub(super) fn parse(script: &str) -> Result<Vec<String>, String> {
    if script.len() > SCRIPT_BYTES_MAX {
        return Err(format!("longer than {SCRIPT_BYTES_MAX} bytes, so not looked into"));
    }
    // Around the command these mean nothing; inside it a newline separates two commands.
    let mut rest = script.trim_matches([' ', '\t', '\n']).chars();
    let mut words = Vec::new();
    while let Some(word) = next_word(&mut rest)? {
        words.push(word);
    }
    let Some(first) = words.first() else { return Err("the script is empty".to_owned()) };
    if first.is_empty() || RESERVED.contains(&first.as_str()) {
        return Err(format!("not one simple command: `{first}` does not name a program"));
    }
    if first.contains('=') {
        return Err(format!("not one simple command: `{}` sets a variable", brief(first)));
    }
    Ok(words)
}

/// The next word and the blank that ends it; none when only blanks are left.
fn next_word(rest: &mut Chars<'_>) -> Result<Option<String>, String> {
    let mut word: Option<String> = None;
    let mut before = None;
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' if word.is_some() => break,
            ' ' | '\t' => continue,
            '\'' | '"' => word.get_or_insert_default().push_str(&quoted(c, rest)?),
            _ => word.get_or_insert_default().push(bare(c, before)?),
        }
        before = Some(c);
    }
    Ok(word)
}

/// What stands between two quotation marks, up to and with the second.
fn quoted(mark: char, rest: &mut Chars<'_>) -> Result<String, String> {
    let mut text = String::new();
    loop {
        match rest.next() {
            None => return Err(format!("not one simple command: a {mark} is not closed")),
            Some(c) if c == mark => return Ok(text),
            Some(c) if c == '\n' || is_deceptive(c) => return Err(odd(c)),
            Some(c @ ('$' | '`' | '\\' | '!')) if mark == '"' => return Err(odd(c)),
            Some(c) => text.push(c),
        }
    }
}

/// The character, if it stands for itself outside quotation marks.
fn bare(c: char, before: Option<char>) -> Result<char, String> {
    let literal = match c {
        // At the start of a word, and of a value, it stands for a home directory.
        '~' => !matches!(before, None | Some('=' | ':')),
        '#' => before.is_some(),
        _ if c.is_ascii() => c.is_ascii_alphanumeric() || BARE.contains(c),
        _ => c.is_alphanumeric() && !is_deceptive(c),
    };
    if literal { Ok(c) } else { Err(odd(c)) }
}

fn odd(c: char) -> String {
    match c {
        '\n' => "not one simple command: it has more than one line".to_owned(),
        c if is_deceptive(c) => {
            let code = visible(&c.to_string());
            format!("it holds {code}, a character that cannot be seen for what it is")
        }
        c => format!("not one simple command: it has {c}"),
    }
}

/// The script that gives these words, and the same one for the same words.
pub fn quote(argv: &[String]) -> String {
    let quoted: Vec<String> = argv.iter().map(|word| quote_word(word)).collect();
    quoted.join(" ")
}

pub(super) fn quote_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || BARE.contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r#"'"'"'"#))
}
