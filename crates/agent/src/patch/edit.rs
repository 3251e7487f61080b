//! Computes a file's new bytes from its old ones and the hunks of a patch.
//!
//! Never rewrites a line that no hunk deletes: context is copied from the file, not from the patch.

use super::FILE_LINES_MAX;
use super::error::PatchError;
use super::matching::{Budget, Finder};
use super::parse::{Hunk, HunkLine, Sign};
use super::place::{Miss, Spot, place};
use super::text::{BYTE_ORDER_MARK, Ending, Line, lines};

/// Lines an error quotes, and how much of each.
const QUOTED_LINES_MAX: usize = 12;
const QUOTED_CHARS_MAX: usize = 200;
/// Lines of a hunk that are compared to say where it nearly fits.
const CLOSEST_LINES_MAX: usize = 50;

pub(super) fn edit(
    path: &str,
    bytes: &[u8],
    hunks: &[Hunk],
    budget: &mut Budget,
) -> Result<Vec<u8>, PatchError> {
    if bytes.contains(&0) {
        return Err(PatchError::unfit(path, "a binary file; a patch edits text"));
    }
    let (mark, text) = match bytes.strip_prefix(BYTE_ORDER_MARK) {
        Some(text) => (BYTE_ORDER_MARK, text),
        None => (&[][..], bytes),
    };
    let lines = lines(text);
    PatchError::limit(&format!("{path}: its lines"), lines.len(), FILE_LINES_MAX)?;
    let mut finder = Finder::new(&lines, budget);
    let mut placed: Vec<(Spot, &Hunk)> = Vec::with_capacity(hunks.len());
    let mut cursor = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let spot = place(&mut finder, hunk, cursor)
            .map_err(|miss| explain(path, index + 1, hunk, cursor, miss, &mut finder))?;
        cursor = spot.cursor;
        placed.push((spot, hunk));
    }
    // Only additions to the end are out of order; among equals the patch's order stays.
    placed.sort_by_key(|(spot, _)| spot.at);
    let mut writer = Writer::new(mark, &lines, bytes.len());
    for (spot, hunk) in &placed {
        writer.copy_until(spot.at);
        writer.hunk(hunk.lines.get(..spot.lines).unwrap_or(&hunk.lines));
    }
    writer.copy_until(lines.len());
    Ok(writer.finish())
}

struct Writer<'a> {
    lines: &'a [Line<'a>],
    /// The next line of the file.
    next: usize,
    out: Vec<u8>,
    /// The ending of the last line written, held back until it is known not to be the last.
    held: Held,
    /// What a line gets that must have an ending and has none of its own.
    usual: Ending,
}

enum Held {
    Nothing,
    /// The file's own.
    Own(Ending),
    Added(Ending),
}

impl<'a> Writer<'a> {
    fn new(mark: &[u8], lines: &'a [Line<'a>], bytes: usize) -> Self {
        let mut out = Vec::with_capacity(bytes);
        out.extend_from_slice(mark);
        let first = lines.first().map_or(Ending::None, |line| line.ending);
        let usual = if first == Ending::None { Ending::Lf } else { first };
        Self { lines, next: 0, out, held: Held::Nothing, usual }
    }

    fn copy_until(&mut self, end: usize) {
        while self.next < end {
            let Some(line) = self.skip() else { return };
            self.write(line.text, Held::Own(line.ending));
        }
    }

    fn skip(&mut self) -> Option<Line<'a>> {
        let line = self.lines.get(self.next).copied()?;
        self.next += 1;
        Some(line)
    }

    fn hunk(&mut self, hunk: &[HunkLine]) {
        // Endings of deleted lines, for the lines that replace them.
        let mut freed = std::collections::VecDeque::new();
        for line in hunk {
            match line.sign {
                Sign::Context => {
                    self.copy_until(self.next + 1);
                    freed.clear();
                }
                Sign::Delete => freed.extend(self.skip().map(|line| line.ending)),
                Sign::Add => {
                    let ending = line.ending.or_else(|| freed.pop_front());
                    let ending = ending.unwrap_or_else(|| self.neighbouring());
                    self.write(line.text.as_bytes(), Held::Added(ending));
                }
            }
        }
    }

    /// The ending of the file's line before this place, else of the one after.
    fn neighbouring(&self) -> Ending {
        let before = self.next.checked_sub(1).and_then(|index| self.lines.get(index));
        let line = before.or_else(|| self.lines.get(self.next));
        line.map_or(Ending::None, |line| line.ending)
    }

    fn write(&mut self, text: &[u8], held: Held) {
        let before = std::mem::replace(&mut self.held, held);
        match before {
            Held::Nothing => {}
            Held::Own(Ending::None) | Held::Added(Ending::None) => self.end_line(self.usual),
            Held::Own(ending) | Held::Added(ending) => self.end_line(ending),
        }
        self.out.extend_from_slice(text);
    }

    fn end_line(&mut self, ending: Ending) {
        self.out.extend_from_slice(ending.bytes());
    }

    fn finish(mut self) -> Vec<u8> {
        let was_open = self.lines.last().is_some_and(|line| line.ending == Ending::None);
        match self.held {
            Held::Nothing => {}
            Held::Own(ending) => self.end_line(ending),
            Held::Added(_) if was_open => {}
            Held::Added(Ending::None) => self.end_line(self.usual),
            Held::Added(ending) => self.end_line(ending),
        }
        self.out
    }
}

/// Turns a miss into a sentence that lets its reader write a better hunk.
fn explain(
    path: &str,
    number: usize,
    hunk: &Hunk,
    cursor: usize,
    miss: Miss,
    finder: &mut Finder<'_, '_>,
) -> PatchError {
    let which = format!("hunk {number} (patch line {})", hunk.line);
    let path = path.to_owned();
    match miss {
        Miss::Failed(error) => error,
        Miss::NoAnchor(anchor) => {
            let message = format!("{which}: no line of the file is the anchor `{anchor}`");
            PatchError::NotFound { path, message }
        }
        Miss::Ambiguous(places) => {
            let places: Vec<String> = places.iter().map(|at| (at + 1).to_string()).collect();
            let message = format!(
                "{which} fits in several places (lines {}…): give more context, or an anchor: \
                 `@@` and the line of the function or class around it",
                places.join(", ")
            );
            PatchError::Ambiguous { path, message }
        }
        Miss::NotFound if hunk.lines.iter().all(|line| line.sign == Sign::Add) => {
            let message = format!(
                "{which}: its anchor is before line {cursor}, where the hunk before it ends; hunks \
                 must be in the order of the file"
            );
            PatchError::NotFound { path, message }
        }
        Miss::NotFound => {
            let old = hunk.lines.iter().filter(|line| line.sign != Sign::Add);
            let old: Vec<&str> = old.map(|line| line.text.as_str()).collect();
            let behind = match cursor {
                0 => String::new(),
                line => format!(" after line {line}, where the hunk before it ends"),
            };
            let quoted = quoted(&old);
            let closest = closest(finder, hunk, &old, cursor);
            let message = format!("{which}: not in the file{behind}:\n{quoted}{closest}");
            PatchError::NotFound { path, message }
        }
    }
}

fn quoted(lines: &[&str]) -> String {
    let shown = lines.iter().take(QUOTED_LINES_MAX).map(|line| clipped(line));
    let mut quoted = shown.collect::<Vec<String>>().join("\n");
    if lines.len() > QUOTED_LINES_MAX {
        quoted.push_str(&format!("\n… ({} more lines)", lines.len() - QUOTED_LINES_MAX));
    }
    quoted
}

/// Where the hunk nearly fits, and which line is to blame.
fn closest(finder: &mut Finder<'_, '_>, hunk: &Hunk, old: &[&str], cursor: usize) -> String {
    let compared = old.get(..CLOSEST_LINES_MAX).unwrap_or(old);
    let (at, shared) = finder.closest(compared).unwrap_or_default();
    if shared == 0 {
        return String::new();
    }
    let first = at + 1;
    if shared == compared.len() {
        return if compared.len() < old.len() {
            format!("\nIt begins to fit at line {first}.")
        } else if at < cursor {
            format!("\nIt is at line {first}: hunks must be in the order of the file.")
        } else if hunk.anchors.is_empty() {
            String::new()
        } else {
            format!("\nIt is at line {first}, but not behind its anchor.")
        };
    }
    let differs = at + shared;
    let wanted = old.get(shared).map(|line| clipped(line)).unwrap_or_default();
    match finder.lines().get(differs) {
        Some(line) => format!(
            "\nThe nearest place begins at line {first}, but its line {} is `{}`, not `{wanted}`.",
            differs + 1,
            clipped(&String::from_utf8_lossy(line.text))
        ),
        None => format!("\nThe nearest place begins at line {first}, but the file ends there."),
    }
}

fn clipped(line: &str) -> String {
    line.chars().take(QUOTED_CHARS_MAX).collect()
}
