//! Searches file after file, and keeps what will be shown.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};

use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};

use super::Wanted;
use crate::tool::files::{TEXT_BYTES_MAX, Watch};

/// Of a line that is shown.
const LINE_BYTES_MAX: usize = 400;
/// Of a long line, before its match.
const LEAD_BYTES: usize = 100;
/// Of the longest line that is searched.
const HEAP_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Of all files of one call together.
const SEARCHED_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Room for the first line and the notes at the end.
const NOTES_BYTES: usize = 1_024;

pub(super) struct Search<'a> {
    wanted: &'a Wanted,
    watch: &'a Watch,
    searcher: Searcher,
    searched_bytes: Cell<u64>,
    text: String,
    /// Matching lines, with those that were skipped.
    found: usize,
    shown: usize,
    /// Another match is there that does not fit.
    is_cut: bool,
    /// Files that could not be searched to their end.
    given_up: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(wanted: &'a Wanted, watch: &'a Watch) -> Search<'a> {
        let searcher = SearcherBuilder::new()
            // As the pattern has it; a lone LF ends a line too.
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP_BYTES_MAX))
            .before_context(wanted.context)
            .after_context(wanted.context)
            .build();
        let searched_bytes = Cell::new(0);
        let (text, found, shown, is_cut, given_up) = (String::new(), 0, 0, false, 0);
        Search { wanted, watch, searcher, searched_bytes, text, found, shown, is_cut, given_up }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_cut || self.is_full() || self.watch.is_over()
    }

    fn is_full(&self) -> bool {
        self.searched_bytes.get() >= SEARCHED_BYTES_MAX
    }

    /// Searches one file; `path` is how it is called.
    pub(super) fn file(&mut self, path: &str, file: File) {
        let reader = Watched { file, watch: self.watch, bytes: &self.searched_bytes };
        let regex = &self.wanted.regex;
        let mut page = Page {
            regex,
            path,
            limit: self.wanted.limit,
            offset: self.wanted.offset,
            text: &mut self.text,
            found: &mut self.found,
            shown: &mut self.shown,
            is_cut: &mut self.is_cut,
            is_named: false,
            shows: false,
        };
        let searched = self.searcher.search_reader(regex, reader, &mut page);
        if searched.is_err() && !self.is_over() {
            self.given_up += 1;
        }
    }

    /// What the model sees; `over` says why the search ended early.
    pub(super) fn finish(self, over: Option<String>) -> String {
        let found = match (self.found, self.is_cut, self.shown) {
            (0, ..) => "No matches found.\n".to_owned(),
            (_, _, 0) if !self.is_cut => format!("No more matches: {} in all.\n", self.found),
            (1, false, _) => "Found 1 match.\n".to_owned(),
            (found, false, _) => format!("Found {found} matches.\n"),
            (_, true, shown) => format!("Found more than {shown} matches; the first of them:\n"),
        };
        let mut text = found + &self.text;
        if self.is_cut {
            let next = self.wanted.offset + self.shown;
            text.push_str(&format!(
                "(more lines match; narrow the pattern, `path` or `include`, or go on with offset \
                 {next})\n"
            ));
        }
        if self.searched_bytes.get() >= SEARCHED_BYTES_MAX {
            text.push_str(&format!(
                "(stopped after {SEARCHED_BYTES_MAX} bytes; narrow `path` or `include`)\n"
            ));
        }
        if self.given_up > 0 {
            let files = self.given_up;
            text.push_str(&format!("({files} files could not be searched to their end)\n"));
        }
        if let Some(why) = over {
            text.push_str(&why);
            text.push('\n');
        }
        text
    }
}

/// Ends in an error when it is time to stop, also within a file.
struct Watched<'a> {
    file: File,
    watch: &'a Watch,
    bytes: &'a Cell<u64>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.watch.is_over() || self.bytes.get() >= SEARCHED_BYTES_MAX {
            return Err(io::Error::other("stopped"));
        }
        let read = self.file.read(buffer)?;
        self.bytes.set(self.bytes.get().saturating_add(read as u64));
        Ok(read)
    }
}

/// Takes the lines of one file.
struct Page<'a> {
    regex: &'a RegexMatcher,
    path: &'a str,
    limit: usize,
    offset: usize,
    text: &'a mut String,
    found: &'a mut usize,
    shown: &'a mut usize,
    is_cut: &'a mut bool,
    /// Its path stands above its lines.
    is_named: bool,
    /// The match before was shown, and so is the context behind it.
    shows: bool,
}

impl Page<'_> {
    /// Whether it fitted.
    fn add(&mut self, number: Option<u64>, mark: char, line: &[u8], at: usize) -> bool {
        let (number, line) = (number.unwrap_or_default(), clipped(line, at));
        let mut row = String::new();
        if !self.is_named {
            row.push_str(&format!("{}:\n", self.path));
        }
        row.push_str(&format!("  Line {number}{mark} {line}\n"));
        if self.text.len() + row.len() > TEXT_BYTES_MAX - NOTES_BYTES {
            *self.is_cut = true;
            return false;
        }
        self.is_named = true;
        self.text.push_str(&row);
        true
    }
}

impl Sink for Page<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if *self.found < self.offset {
            *self.found += 1;
            self.shows = false;
            return Ok(true);
        }
        if *self.shown >= self.limit {
            *self.is_cut = true;
            return Ok(false);
        }
        let line = found.bytes();
        let at = self.regex.find(line).ok().flatten().map_or(0, |matched| matched.start());
        if !self.add(found.line_number(), ':', line, at) {
            return Ok(false);
        }
        *self.found += 1;
        *self.shown += 1;
        self.shows = true;
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        use grep_searcher::SinkContextKind::{After, Before, Other};
        let shows = match context.kind() {
            // What is before a match that is skipped, or does not fit, is not shown either.
            Before => *self.found >= self.offset && *self.shown < self.limit,
            After => self.shows,
            Other => false,
        };
        Ok(!shows || self.add(context.line_number(), '-', context.bytes(), 0))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.is_named && *self.shown < self.limit {
            self.text.push_str("  --\n");
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, _: &SinkFinish) -> io::Result<()> {
        Ok(())
    }
}

/// A line without its end, and of a long one the piece around its match.
fn clipped(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= LINE_BYTES_MAX {
        return String::from_utf8_lossy(line).into_owned();
    }
    let start = at.saturating_sub(LEAD_BYTES).min(line.len());
    let end = (start + LINE_BYTES_MAX).min(line.len());
    // Whole characters only: what continues one is left out at both ends.
    let is_inside = |index: &usize| line.get(*index).is_some_and(|byte| byte & 0xc0 == 0x80);
    let start = (start..end).find(|index| !is_inside(index)).unwrap_or(start);
    let end = (start..=end).rev().find(|index| !is_inside(index)).unwrap_or(end);
    let piece = String::from_utf8_lossy(line.get(start..end).unwrap_or_default()).into_owned();
    let before = if start > 0 { "…" } else { "" };
    let after = if end < line.len() { "…" } else { "" };
    format!("{before}{piece}{after}")
}
