//! One replacement in the bytes of a file.
//!
//! A line break in `oldString` matches any line ending of the file, and one in `newString` takes
//! the ending that it replaces, else that of the lines around it; who writes CR means CR.

use memchr::memmem;

use crate::tool::files::Args;

/// Lines that an error names before it only counts.
const LINES_NAMED_MAX: usize = 8;
/// Places that one replacement may have.
const PLACES_MAX: usize = 100_000;
/// How much of `oldString` an error quotes.
const QUOTED_CHARS_MAX: usize = 80;

pub(crate) struct Replacement {
    old: String,
    new: String,
    all: bool,
}

impl Replacement {
    /// The error says nothing of the tool.
    pub(crate) fn parse(args: &Args) -> Result<Replacement, String> {
        let text = |names: &[&str], what| {
            args.required(names, what).map_err(|why| {
                let why = why.to_string();
                why.split_once(": ").map_or(why.clone(), |(_, rest)| rest.to_owned())
            })
        };
        let old = text(&["oldString", "old_string"], "what is to be replaced")?;
        let new = text(&["newString", "new_string"], "what takes its place")?;
        if old == new {
            return Err("`oldString` and `newString` are the same".to_owned());
        }
        let all = args.flag(&["replaceAll", "replace_all"], false);
        let all = all.map_err(|_| "`replaceAll` must be true or false".to_owned())?;
        Ok(Replacement { old, new, all })
    }

    /// The new content, and in how many places it differs. `None` is a file that is not there.
    pub(crate) fn apply(&self, content: Option<&[u8]>) -> Result<(Vec<u8>, usize), String> {
        let content = match content {
            None | Some([]) if self.old.is_empty() => {
                return Ok((self.new.clone().into_bytes(), 1));
            }
            None => {
                return Err("there is no such file; to make it, leave `oldString` empty".to_owned());
            }
            Some(_) if self.old.is_empty() => {
                let why = "`oldString` is empty, but the file is not; say what is to be replaced, \
                           or use write_file to replace all of it";
                return Err(why.to_owned());
            }
            Some(content) => content,
        };
        if content.contains(&0) {
            return Err("a binary file; edit changes text".to_owned());
        }
        let view = View::new(content, self.old.contains('\r'));
        let mut places = view.find(self.old.as_bytes());
        if let ([place], false) = (places.as_slice(), self.all) {
            places.extend(view.find_overlapping(self.old.as_bytes(), *place));
        }
        match places.as_slice() {
            [] => Err(self.not_found(&view)),
            places if places.len() > PLACES_MAX => {
                Err(format!("`oldString` is in the file more than {PLACES_MAX} times; use bash"))
            }
            [_] => Ok((self.replaced(content, &view, &places), 1)),
            _ if self.all => Ok((self.replaced(content, &view, &places), places.len())),
            places => Err(self.ambiguous(&view, places)),
        }
    }

    fn replaced(&self, content: &[u8], view: &View<'_>, places: &[usize]) -> Vec<u8> {
        let mut after = Vec::with_capacity(content.len() + self.new.len());
        let mut copied = 0;
        for &place in places {
            let (start, end) = (view.origin(place), view.origin(place + self.old.len()));
            after.extend_from_slice(content.get(copied..start).unwrap_or_default());
            if self.new.contains('\r') || self.old.contains('\r') {
                after.extend_from_slice(self.new.as_bytes());
            } else {
                self.write_lines(content, start, end, &mut after);
            }
            copied = end;
        }
        after.extend_from_slice(content.get(copied..).unwrap_or_default());
        after
    }

    fn write_lines(&self, content: &[u8], start: usize, end: usize, after: &mut Vec<u8>) {
        let replaced = content.get(start..end).unwrap_or_default();
        let mut endings = memchr::memchr_iter(b'\n', replaced).map(|at| is_crlf(replaced, at));
        let usual = around(content, start, end);
        for (index, line) in self.new.split('\n').enumerate() {
            if index > 0 {
                let crlf = endings.next().unwrap_or(usual);
                after.extend_from_slice(if crlf { b"\r\n" } else { b"\n" });
            }
            after.extend_from_slice(line.as_bytes());
        }
    }

    fn not_found(&self, view: &View<'_>) -> String {
        let quoted = quoted(&self.old);
        let mut why = format!("`oldString` is not in the file: {quoted}");
        let first = self.old.lines().map(str::trim).find(|line| !line.is_empty());
        let Some(first) = first else { return why };
        let alike = |line: &&[u8]| line.trim_ascii() == first.as_bytes();
        let numbered = view.bytes().split(|byte| *byte == b'\n').enumerate();
        let places: Vec<usize> =
            numbered.filter(|(_, line)| alike(line)).map(|(index, _)| index + 1).collect();
        match (self.old.lines().count(), places.is_empty()) {
            (_, true) => why.push_str("; no line of the file is its first line: read the file"),
            (1, false) => why.push_str(&format!(
                "; line {} differs from it in blanks alone",
                listed(&places, places.len())
            )),
            (_, false) => why.push_str(&format!(
                "; its first line is at line {}, but what follows or the blanks differ: read it",
                listed(&places, places.len())
            )),
        }
        why
    }

    fn ambiguous(&self, view: &View<'_>, places: &[usize]) -> String {
        let named = places.iter().take(LINES_NAMED_MAX);
        let lines: Vec<usize> = named.map(|&place| view.line(place)).collect();
        format!(
            "`oldString` is in the file {} times (lines {}): {}; give more of what is around it, \
             or set `replaceAll`",
            places.len(),
            listed(&lines, places.len()),
            quoted(&self.old)
        )
    }
}

/// A content as it is searched: with every CRLF as LF, unless CR is searched for.
struct View<'a> {
    content: &'a [u8],
    /// Only if something was left out.
    normal: Option<Vec<u8>>,
    /// Where in `normal` the line breaks are before which a CR was left out.
    dropped: Vec<usize>,
}

impl<'a> View<'a> {
    fn new(content: &'a [u8], literal: bool) -> View<'a> {
        if literal || memmem::find(content, b"\r\n").is_none() {
            return View { content, normal: None, dropped: Vec::new() };
        }
        let (mut normal, mut dropped) = (Vec::with_capacity(content.len()), Vec::new());
        let mut copied = 0;
        for at in memmem::find_iter(content, b"\r\n") {
            normal.extend_from_slice(content.get(copied..at).unwrap_or_default());
            dropped.push(normal.len());
            copied = at + 1;
        }
        normal.extend_from_slice(content.get(copied..).unwrap_or_default());
        View { content, normal: Some(normal), dropped }
    }

    fn bytes(&self) -> &[u8] {
        self.normal.as_deref().unwrap_or(self.content)
    }

    /// Everywhere, without overlaps, up to one more than is allowed.
    fn find(&self, old: &[u8]) -> Vec<usize> {
        memmem::find_iter(self.bytes(), old).take(PLACES_MAX + 1).collect()
    }

    /// Another place that overlaps the only one: then it is not clear which is meant.
    fn find_overlapping(&self, old: &[u8], only: usize) -> Option<usize> {
        let rest = self.bytes().get(only + 1..)?;
        memmem::find(rest, old).map(|at| only + 1 + at)
    }

    /// The place in the content of a place in the view.
    fn origin(&self, place: usize) -> usize {
        place + self.dropped.partition_point(|dropped| *dropped < place)
    }

    fn line(&self, place: usize) -> usize {
        let before = self.bytes().get(..place).unwrap_or_default();
        memchr::memchr_iter(b'\n', before).count() + 1
    }
}

fn is_crlf(bytes: &[u8], line_feed: usize) -> bool {
    line_feed.checked_sub(1).and_then(|at| bytes.get(at)) == Some(&b'\r')
}

/// Whether the line in which something ends, else the one before it, ends with CRLF.
fn around(content: &[u8], start: usize, end: usize) -> bool {
    let behind = content.get(end..).and_then(|rest| memchr::memchr(b'\n', rest));
    let line_feed = behind
        .map(|at| end + at)
        .or_else(|| content.get(..start).and_then(|before| memchr::memrchr(b'\n', before)));
    line_feed.is_some_and(|at| is_crlf(content, at))
}

fn quoted(text: &str) -> String {
    let first: String = text.chars().take(QUOTED_CHARS_MAX).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(QUOTED_CHARS_MAX).is_some() { "…" } else { "" };
    format!("\"{first}{more}\"")
}

fn listed(lines: &[usize], all: usize) -> String {
    let named: Vec<String> = lines.iter().take(LINES_NAMED_MAX).map(usize::to_string).collect();
    match all.saturating_sub(named.len()) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
