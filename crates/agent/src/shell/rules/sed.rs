//! `sed`: scripts that print, delete lines and substitute text on their way to the output.
//!
//! Left out: `-i` (writes), `-f`, the commands `w`, `W`, `e`, `r`, `R` and the flags `w` and `e` of
//! `s`, which write, run and read files; labels and jumps, which may never end.

use std::iter::Peekable;
use std::str::Chars;
use std::sync::LazyLock;

use super::super::path::Want;
use super::super::show::brief;
use super::super::walk::Stream;
use super::Call;
use super::options::Spec;

const OPTIONS: &str = "-Enrsuz -e=word -l=number --debug --expression=word \
    --line-length=number --null-data --posix --quiet --regexp-extended --sandbox --separate \
    --silent --unbuffered --zero-terminated";

pub(super) fn check(call: &Call<'_, '_>) -> Result<Stream, String> {
    static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec::of(OPTIONS));
    let parsed = SPEC.parse(call, call.args)?;
    let mut scripts: Vec<_> = parsed.values("-e --expression").collect();
    let mut files = parsed.operands.as_slice();
    if scripts.is_empty() {
        let Some((script, rest)) = files.split_first() else {
            // `--help`, or an error.
            return Ok(Stream::Data);
        };
        scripts.push(script);
        files = rest;
    }
    // Several parts are one script, with a line end between them.
    let script: Option<Vec<&str>> = scripts.into_iter().map(|script| script.exact()).collect();
    let script = script.ok_or("`sed` with a script that is not known yet")?.join("\n");
    match only_prints(&script) {
        Some(()) => call.check_paths(files, Want::Content).map(|()| Stream::Data),
        None => Err(format!("`sed` with `{}` may write, or run something", brief(&script))),
    }
}

/// Whether a script does nothing but print; none if it may do more or is not understood.
fn only_prints(script: &str) -> Option<()> {
    let mut chars = script.chars().peekable();
    let mut open = 0usize;
    loop {
        while chars.next_if(|c| matches!(c, ' ' | '\t' | '\n' | ';')).is_some() {}
        if chars.peek().is_none() {
            return (open == 0).then_some(());
        }
        addresses(&mut chars)?;
        match chars.next()? {
            '{' => {
                open += 1;
                continue;
            }
            '}' => open = open.checked_sub(1)?,
            '=' | 'd' | 'D' | 'F' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' => {}
            'l' | 'q' | 'Q' => {
                blanks(&mut chars);
                while chars.next_if(char::is_ascii_digit).is_some() {}
            }
            's' => {
                let mark = mark(&mut chars)?;
                expression(&mut chars, mark)?;
                delimited(&mut chars, mark)?;
                while chars.next_if(|c| c.is_ascii_digit() || "gpiImM".contains(*c)).is_some() {}
            }
            'y' => {
                let mark = mark(&mut chars)?;
                delimited(&mut chars, mark)?;
                delimited(&mut chars, mark)?;
            }
            _ => return None,
        }
        blanks(&mut chars);
        match chars.peek() {
            None | Some('\n' | ';') => {}
            Some('}') if open > 0 => {}
            Some(_) => return None,
        }
    }
}

fn blanks(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
}

/// `1`, `$`, `/re/`, `1,5`, `/a/,/b/`, `2,+3`, `0~4`, each perhaps with `!`.
fn addresses(chars: &mut Peekable<Chars<'_>>) -> Option<()> {
    if address(chars)? {
        blanks(chars);
        if chars.next_if_eq(&',').is_some() {
            blanks(chars);
            let _ = chars.next_if(|c| matches!(c, '+' | '~'));
            if !address(chars)? {
                return None;
            }
        }
    }
    blanks(chars);
    while chars.next_if_eq(&'!').is_some() {
        blanks(chars);
    }
    Some(())
}

/// Whether there was one; none if it is not understood.
fn address(chars: &mut Peekable<Chars<'_>>) -> Option<bool> {
    match chars.peek()? {
        '0'..='9' => {
            while chars.next_if(char::is_ascii_digit).is_some() {}
            if chars.next_if_eq(&'~').is_some() {
                while chars.next_if(char::is_ascii_digit).is_some() {}
            }
            Some(true)
        }
        '$' => {
            chars.next();
            Some(true)
        }
        '/' => {
            chars.next();
            expression(chars, '/')?;
            while chars.next_if(|c| matches!(c, 'I' | 'M')).is_some() {}
            Some(true)
        }
        _ => Some(false),
    }
}

/// What separates the parts of `s` and `y`.
fn mark(chars: &mut Peekable<Chars<'_>>) -> Option<char> {
    chars.next().filter(|mark| mark.is_ascii_punctuation() && !"\\[]".contains(*mark))
}

/// Past a regular expression and the mark behind it. Where a bracket ends, and whether a mark in it
/// ends the expression, depends on who reads: only brackets that all read alike are understood.
fn expression(chars: &mut Peekable<Chars<'_>>, mark: char) -> Option<()> {
    loop {
        match chars.next()? {
            '\n' => return None,
            '\\' => {
                chars.next().filter(|c| *c != '\n')?;
            }
            c if c == mark => return Some(()),
            '[' => bracket(chars, mark)?,
            _ => {}
        }
    }
}

/// Past the `]` that ends a bracket, if there is nothing in it that could be read in two ways.
fn bracket(chars: &mut Peekable<Chars<'_>>, mark: char) -> Option<()> {
    let _ = chars.next_if_eq(&'^');
    let mut first = true;
    loop {
        match chars.next()? {
            ']' if first => return None,
            ']' => return Some(()),
            '\n' => return None,
            c if c == mark => return None,
            '\\' => {
                chars.next().filter(|c| c.is_ascii_alphanumeric() && *c != mark)?;
            }
            // A class, as in `[[:space:]]`.
            '[' => {
                chars.next_if_eq(&':')?;
                while chars.next_if(char::is_ascii_lowercase).is_some() {}
                chars.next_if_eq(&':')?;
                chars.next_if_eq(&']')?;
            }
            _ => {}
        }
        first = false;
    }
}

/// Past the text up to the mark.
fn delimited(chars: &mut Peekable<Chars<'_>>, mark: char) -> Option<()> {
    loop {
        match chars.next()? {
            '\n' => return None,
            '\\' => {
                chars.next().filter(|c| *c != '\n')?;
            }
            c if c == mark => return Some(()),
            _ => {}
        }
    }
}
