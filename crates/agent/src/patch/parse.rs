//! Reads the text of a patch.
//!
//! Pure, and strict where leniency could apply something nobody wrote: a patch that was cut off, or
//! has other text around it, is an error that names the line.

use bytes::Bytes;

use super::error::PatchError;
use super::path;
use super::text::Ending;
use super::{HUNKS_MAX, PATCH_BYTES_MAX, PATCH_LINES_MAX, SECTIONS_MAX};

mod header;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";
/// What Git writes below a last line without a newline. A file keeps its own, so it says nothing.
const NO_NEWLINE: &str = "\\ No newline";
/// How much of an offending line an error quotes.
const QUOTE_CHARS_MAX: usize = 80;

/// What a patch text says, before any file was looked at.
#[derive(Clone, Debug)]
pub struct Patch {
    pub(super) sections: Vec<Section>,
}

impl Patch {
    /// Every path the patch names, as it is written there.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().flat_map(|section| {
            let target = match &section.action {
                Action::Update { move_to, .. } => move_to.as_deref(),
                Action::Add { .. } | Action::Delete => None,
            };
            std::iter::once(section.path.as_str()).chain(target)
        })
    }
}

#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) path: String,
    pub(super) action: Action,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Add { content: Bytes },
    Delete,
    Update { move_to: Option<String>, hunks: Vec<Hunk> },
}

#[derive(Clone, Debug)]
pub(super) struct Hunk {
    /// Where it begins in the patch text.
    pub(super) line: usize,
    /// Lines that must come before it, outermost first.
    pub(super) anchors: Vec<String>,
    pub(super) hint: Option<Hint>,
    pub(super) lines: Vec<HunkLine>,
    pub(super) end_of_file: bool,
}

/// What a header like `@@ -12,3 +12,4 @@ fn main()` suggests; it need not be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hint {
    /// The first old line, counted from 1; with no old lines, the line before.
    pub(super) start: usize,
    pub(super) count: usize,
    pub(super) heading: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct HunkLine {
    pub(super) sign: Sign,
    pub(super) text: String,
    /// The ending the patch itself insists on.
    pub(super) ending: Option<Ending>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Context,
    Delete,
    Add,
}

/// Reads a patch text. Nothing is looked up; paths are only checked for being usable names.
pub fn parse(text: &str) -> Result<Patch, PatchError> {
    PatchError::limit("the patch's bytes", text.len(), PATCH_BYTES_MAX)?;
    if let Some(at) = text.find('\0') {
        let line = text[..at].matches('\n').count() + 1;
        return Err(syntax(line, "it holds a NUL character"));
    }
    let (first_line, body) = envelope(text)?;
    let carriage = text.trim_start().split('\n').next().is_some_and(|line| line.ends_with('\r'));
    let mut parser = Parser { rest: body, line: first_line, carriage, hunks: 0, hunk_lines: 0 };
    let mut sections: Vec<Section> = Vec::new();
    while let Some((line, text)) = parser.next() {
        if blank_trimmed(text).is_empty() {
            continue;
        }
        sections.push(parser.section(line, text)?);
        PatchError::limit("the patch's sections", sections.len(), SECTIONS_MAX)?;
    }
    if sections.is_empty() {
        return Err(PatchError::Unchanged);
    }
    Ok(Patch { sections })
}

/// The text between the two markers, and the number of its first line.
fn envelope(text: &str) -> Result<(usize, &str), PatchError> {
    let (mut number, mut rest) = (1, text);
    let mut ends = trimmed_ends(&mut number, &mut rest);
    if ["<<EOF", "<<'EOF'", "<<\"EOF\""].contains(&ends.0) && ends.1 == "EOF" {
        rest =
            rest.split_once('\n').and_then(|(_, rest)| rest.rsplit_once('\n')).map_or("", |r| r.0);
        number += 1;
        ends = trimmed_ends(&mut number, &mut rest);
    }
    if ends.0 != BEGIN {
        let quoted = quote(ends.0);
        return Err(syntax(number, &format!("a patch begins with `{BEGIN}`, not with `{quoted}`")));
    }
    if ends.1 != END {
        let last = number + rest.matches('\n').count();
        let quoted = quote(ends.1);
        let message = format!(
            "a patch ends with `{END}`, not with `{quoted}`; it may have been cut off, so nothing \
             of it was applied"
        );
        return Err(syntax(last, &message));
    }
    let body = rest.split_once('\n').and_then(|(_, rest)| rest.rsplit_once('\n'));
    Ok((number + 1, body.map_or("", |(body, _)| body)))
}

/// Drops blank lines around the text; gives its first and last line without blanks around them.
fn trimmed_ends<'a>(number: &mut usize, rest: &mut &'a str) -> (&'a str, &'a str) {
    let trimmed = rest.trim_start();
    *number += rest[..rest.len() - trimmed.len()].matches('\n').count();
    *rest = trimmed.trim_end();
    let first = rest.split('\n').next().unwrap_or_default().trim();
    let last = rest.rsplit('\n').next().unwrap_or_default().trim();
    (first, last)
}

struct Parser<'a> {
    rest: &'a str,
    /// The number of the next line.
    line: usize,
    /// The patch itself has CRLF endings, which then say nothing about the files.
    carriage: bool,
    hunks: usize,
    hunk_lines: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let line = self.rest.split('\n').next().unwrap_or_default();
        Some(if self.carriage { line.strip_suffix('\r').unwrap_or(line) } else { line })
    }

    fn next(&mut self) -> Option<(usize, &'a str)> {
        let text = self.peek()?;
        let line = self.line;
        self.line += 1;
        self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
        Some((line, text))
    }

    fn section(&mut self, line: usize, text: &str) -> Result<Section, PatchError> {
        let header = blank_trimmed(text);
        if let Some(name) = header.strip_prefix(ADD) {
            return Ok(Section { path: usable(line, name)?, action: self.added() });
        }
        if let Some(name) = header.strip_prefix(DELETE) {
            return Ok(Section { path: usable(line, name)?, action: Action::Delete });
        }
        if let Some(name) = header.strip_prefix(UPDATE) {
            return Ok(Section { path: usable(line, name)?, action: self.updated(line)? });
        }
        if header == END {
            return Err(syntax(line, &format!("there is text after `{END}`")));
        }
        let message = format!(
            "`{}` is no header; expected `{ADD} …`, `{DELETE} …`, `{UPDATE} …` or `{END}` (in a \
             new file every line, also an empty one, begins with `+`)",
            quote(text)
        );
        Err(syntax(line, &message))
    }

    fn added(&mut self) -> Action {
        let mut content = Vec::new();
        while let Some(text) = self.peek().and_then(|line| line.strip_prefix('+')) {
            content.extend_from_slice(text.as_bytes());
            content.push(b'\n');
            self.next();
        }
        Action::Add { content: Bytes::from(content) }
    }

    fn updated(&mut self, line: usize) -> Result<Action, PatchError> {
        let mut move_to = None;
        if let Some(name) = self.peek().and_then(|text| text.strip_prefix(MOVE)) {
            move_to = Some(usable(self.line, name)?);
            self.next();
        }
        let mut hunks = Vec::new();
        while let Some(hunk) = self.hunk(hunks.is_empty())? {
            hunks.push(hunk);
            self.hunks += 1;
            PatchError::limit("the patch's hunks", self.hunks, HUNKS_MAX)?;
        }
        if hunks.is_empty() && move_to.is_none() {
            return Err(syntax(line, "the update has no hunk, so it would change nothing"));
        }
        Ok(Action::Update { move_to, hunks })
    }

    /// The next hunk of this section, if there is one. Only the first may lack its `@@`.
    fn hunk(&mut self, is_first: bool) -> Result<Option<Hunk>, PatchError> {
        while self.peek().is_some_and(str::is_empty) {
            self.next();
        }
        let Some(opening) = self.peek().filter(|text| !text.starts_with("***")) else {
            return Ok(None);
        };
        if !is_first && !opening.starts_with("@@") {
            let message = format!("`{}` comes after the hunk's end; expected `@@`", quote(opening));
            return Err(syntax(self.line, &message));
        }
        let mut hunk = Hunk {
            line: self.line,
            anchors: Vec::new(),
            hint: None,
            lines: Vec::new(),
            end_of_file: false,
        };
        while let Some(text) = self.peek().and_then(|text| text.strip_prefix("@@")) {
            match header::read(text) {
                header::Header::Bare => {}
                header::Header::Anchor(anchor) => hunk.anchors.push(anchor),
                header::Header::Hint(hint) => hunk.hint = Some(hint),
            }
            self.next();
        }
        self.hunk_body(&mut hunk)?;
        if hunk.lines.is_empty() {
            return Err(syntax(hunk.line, "the hunk has no lines"));
        }
        self.hunk_lines += hunk.lines.len();
        PatchError::limit("the patch's hunk lines", self.hunk_lines, PATCH_LINES_MAX)?;
        Ok(Some(hunk))
    }

    fn hunk_body(&mut self, hunk: &mut Hunk) -> Result<(), PatchError> {
        while let Some(line) = self.peek() {
            if line.starts_with("***") || line.starts_with("@@") {
                if blank_trimmed(line) == END_OF_FILE {
                    hunk.end_of_file = true;
                    self.next();
                }
                return Ok(());
            }
            let (sign, text) = match line.split_at_checked(1) {
                None if line.is_empty() => (Sign::Context, ""),
                Some((" ", text)) => (Sign::Context, text),
                Some(("-", text)) => (Sign::Delete, text),
                Some(("+", text)) => (Sign::Add, text),
                Some(_) | None if line.starts_with(NO_NEWLINE) => {
                    self.next();
                    continue;
                }
                Some(_) | None => {
                    let message = format!(
                        "`{}` begins with none of ` `, `-`, `+`; every line of a hunk does",
                        quote(line)
                    );
                    return Err(syntax(self.line, &message));
                }
            };
            push_lines(&mut hunk.lines, sign, text);
            self.next();
        }
        Ok(())
    }
}

/// A carriage return ends a line in a file, so it does in a patch too.
fn push_lines(lines: &mut Vec<HunkLine>, sign: Sign, text: &str) {
    let (text, last) = match text.strip_suffix('\r') {
        Some(text) => (text, Some(Ending::CrLf)),
        None => (text, None),
    };
    let mut pieces = text.split('\r').peekable();
    while let Some(piece) = pieces.next() {
        let ending = if pieces.peek().is_some() { Some(Ending::Cr) } else { last };
        lines.push(HunkLine { sign, text: piece.to_owned(), ending });
    }
}

fn usable(line: usize, name: &str) -> Result<String, PatchError> {
    let name = blank_trimmed(name).to_owned();
    match path::check(&name) {
        Ok(()) => Ok(name),
        Err(reason) => Err(PatchError::BadPath { line, path: name, reason }),
    }
}

/// Without blanks around it. A carriage return is no blank: in a name it is an error.
fn blank_trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

fn quote(text: &str) -> String {
    path::shown(&text.chars().take(QUOTE_CHARS_MAX).collect::<String>())
}

fn syntax(line: usize, message: &str) -> PatchError {
    PatchError::Syntax { line, message: message.to_owned() }
}
