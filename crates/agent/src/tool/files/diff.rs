//! What an edit does, as a unified diff in Git's form, for people and programs that know it.
//!
//! Whole hunks or none: where not all can be shown, the last line says how much is missing. Never
//! shows bytes that are no text.

use std::time::Duration;

use bytes::Bytes;
use similar::{ChangeTag, DiffOp, TextDiff};

use crate::patch::{Change, Operation, shown};

/// Of one file's diff in the log.
pub(crate) const DIFF_BYTES_MAX: usize = 64 * 1024;
/// Of the diffs of all files that a person is asked about together.
pub(crate) const DIFFS_BYTES_MAX: usize = 256 * 1024;
/// A longer content is not compared.
const COMPARED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Then what was found so far is shown.
const TIME_MAX: Duration = Duration::from_millis(500);
/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;
/// A new file's mode is the server's; this is what it usually is.
const MODE: u32 = 0o644;

/// One side of a change.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    pub path: &'a str,
    pub mode: Option<u32>,
    pub content: Content<'a>,
}

#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    /// There is no file.
    Nothing,
    Bytes(&'a [u8]),
    /// Too large to be read.
    Unread,
}

/// The diff of one change, under the path that people know.
pub(crate) fn of_change(path: &str, change: &Change, bytes_max: usize) -> String {
    let from = match &change.operation {
        Operation::Move { from } => from,
        Operation::Create | Operation::Update | Operation::Delete => path,
    };
    let content = |bytes: Option<_>| bytes.map_or(Content::Nothing, Content::Bytes);
    let (before, after) = (change.before.as_deref(), change.after.as_deref());
    let old = Side { path: from, mode: change.before_mode, content: content(before) };
    let new = Side { path, mode: None, content: content(after) };
    diff(old, new, bytes_max)
}

/// The diff of one change that a person is asked about.
pub(crate) fn of_shown(path: &str, change: &Change) -> String {
    of_change(path, change, DIFFS_BYTES_MAX)
}

/// A file with another name.
pub(crate) fn of_move(from: &str, to: &str) -> String {
    let side = |path| Side { path, mode: None, content: Content::Bytes(b"") };
    diff(side(from), side(to), DIFF_BYTES_MAX)
}

/// A file that is deleted; nothing is shown of one that is too large.
pub(crate) fn of_deletion(path: &str, mode: u32, content: Option<&Bytes>) -> String {
    let content = content.map_or(Content::Unread, |bytes| Content::Bytes(bytes));
    let old = Side { path, mode: Some(mode), content };
    diff(old, Side { path, mode: None, content: Content::Nothing }, DIFF_BYTES_MAX)
}

/// The diffs of several changes, one after the other.
pub(crate) fn of_changes(changes: &[Change]) -> String {
    let mut text = String::new();
    for (index, change) in changes.iter().enumerate() {
        let left = DIFFS_BYTES_MAX.saturating_sub(text.len());
        let next = of_change(&change.path, change, left.min(DIFF_BYTES_MAX));
        if next.len() > left {
            let more = changes.len() - index;
            text.push_str(&format!("[{more} more files are not shown]\n"));
            break;
        }
        text.push_str(&next);
    }
    text
}

pub(crate) fn diff(old: Side<'_>, new: Side<'_>, bytes_max: usize) -> String {
    let mut text = head(&old, &new);
    let lines = |content| match content {
        Content::Nothing => Some(Vec::new()),
        Content::Bytes(bytes) => lines(bytes),
        Content::Unread => None,
    };
    let (Some(before), Some(after)) = (lines(old.content), lines(new.content)) else {
        text.push_str("[its content is too large, or no text, and is not shown]\n");
        return text;
    };
    let diff = TextDiff::configure().timeout(TIME_MAX).diff_slices(&before, &after);
    let hunks = diff.grouped_ops(CONTEXT_LINES);
    if hunks.is_empty() {
        return text;
    }
    let name = |side: &Side<'_>, letter| match side.content {
        Content::Nothing => "/dev/null".to_owned(),
        // A name with blanks ends at the tab.
        Content::Bytes(_) | Content::Unread if side.path.contains(' ') => {
            format!("{letter}/{}\t", shown(side.path))
        }
        Content::Bytes(_) | Content::Unread => format!("{letter}/{}", shown(side.path)),
    };
    text.push_str(&format!("--- {}\n+++ {}\n", name(&old, 'a'), name(&new, 'b')));
    for (index, hunk) in hunks.iter().enumerate() {
        let hunk = one_hunk(&diff, hunk);
        if text.len() + hunk.len() > bytes_max {
            let more = hunks.len() - index;
            let s = if more == 1 { "" } else { "s" };
            text.push_str(&format!("[{more} more hunk{s} of this file not shown]\n"));
            break;
        }
        text.push_str(&hunk);
    }
    text
}

fn one_hunk(diff: &TextDiff<'_, '_, str>, ops: &[DiffOp]) -> String {
    let (Some(first), Some(last)) = (ops.first(), ops.last()) else { return String::new() };
    let range = |start: usize, end: usize| match end - start {
        // What is empty is behind the line before it.
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        count => format!("{},{count}", start + 1),
    };
    let old = range(first.old_range().start, last.old_range().end);
    let new = range(first.new_range().start, last.new_range().end);
    let mut text = format!("@@ -{old} +{new} @@\n");
    for change in ops.iter().flat_map(|op| diff.iter_changes(op)) {
        text.push(match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        });
        text.push_str(change.value());
        if !change.value().ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
    text
}

/// What Git says of a file before its hunks.
fn head(old: &Side<'_>, new: &Side<'_>) -> String {
    let (from, to) = (shown(old.path), shown(new.path));
    let mode = old.mode.unwrap_or(MODE) & 0o777;
    // Git knows two.
    let mode = if mode & 0o100 != 0 { "100755" } else { "100644" };
    let said = match (old.content, new.content) {
        (Content::Nothing, _) => format!("new file mode {mode}\n"),
        (_, Content::Nothing) => format!("deleted file mode {mode}\n"),
        _ if from != to => format!("rename from {from}\nrename to {to}\n"),
        _ => String::new(),
    };
    format!("diff --git a/{from} b/{to}\n{said}")
}

/// Lines with their ends, if it is a text that can be compared.
fn lines(bytes: &[u8]) -> Option<Vec<&str>> {
    if bytes.len() > COMPARED_BYTES_MAX || bytes.contains(&0) {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text.split_inclusive('\n').collect())
}

#[cfg(test)]
mod tests;
