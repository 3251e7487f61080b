//! What an edit did, for the log; and what it would do, as a patch that people can read.

use std::fs::File;
use std::io::Read as _;
use std::time::Duration;

use bytes::Bytes;
use polyloop_session::Text;
use polyloop_session::item::{self, FileChange};
use sha2::{Digest as _, Sha256};
use similar::{ChangeTag, TextDiff};

use super::{Target, diff};
use crate::patch::{Change, FILE_BYTES_MAX, Operation, Plan};
use crate::tool::touches::Touches;

/// A longer content before is not kept for undo.
pub(crate) const BEFORE_BYTES_MAX: usize = 1024 * 1024;
/// A longer patch is not shown: nobody would read it.
const PATCH_BYTES_MAX: usize = 256 * 1024;
/// A longer content is not compared line by line.
const DIFF_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Then what was found so far is shown.
const DIFF_TIME_MAX: Duration = Duration::from_millis(500);
/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// The change as the log keeps it, under the path that people know.
pub(crate) fn file_change(path: &str, change: &Change) -> FileChange {
    let operation = match &change.operation {
        Operation::Create => item::Operation::Create,
        Operation::Update => item::Operation::Update,
        Operation::Delete => item::Operation::Delete,
        Operation::Move { from } => item::Operation::Move { from: from.as_str().into() },
    };
    FileChange {
        diff: Some(diff::of_change(path, change, diff::DIFF_BYTES_MAX).into()),
        path: path.into(),
        operation,
        before: change.before.as_ref().and_then(undoable),
        after: change.after.as_ref().map(hash),
        ..FileChange::default()
    }
}

/// What a plan is about to do. `path` is the one that people know, where there is one file.
pub(crate) fn touches_of(plan: &Plan, target: Option<&Target>) -> Touches {
    let mut touches = Touches::default();
    for change in plan.changes() {
        let path = target.map_or(change.path.as_str(), |target| target.path.as_str());
        let mut file = file_change(path, change);
        file.diff = None;
        let is_moved = matches!(change.operation, Operation::Move { .. });
        match &change.before {
            // It is moved as it is.
            Some(before) if is_moved && change.after.as_ref() == Some(before) => file.before = None,
            Some(before) => keep(&mut file, &mut touches.contents, before),
            None => {}
        }
        if change.operation == Operation::Delete {
            file.mode = change.before_mode;
        }
        touches.files.push(file);
    }
    let above = if target.is_some_and(|target| target.outside) { "/" } else { "" };
    let made = plan.missing_directories();
    touches.made = made.iter().map(|made| format!("{above}{made}").into()).collect();
    touches
}

/// Keeps a content beside the log where it does not fit into it.
pub(crate) fn keep(file: &mut FileChange, contents: &mut Vec<(Text, Bytes)>, before: &Bytes) {
    file.before = undoable(before);
    if file.before.is_none() {
        let hash = hash(before);
        file.before_blob = Some(hash.clone());
        contents.push((hash, before.clone()));
    }
}

/// A content as it is kept for undo and told apart from others; neither where it is too large.
pub(crate) fn kept(file: File) -> (Option<Text>, Option<Text>) {
    kept_bytes(read(file).as_ref())
}

pub(crate) fn kept_bytes(bytes: Option<&Bytes>) -> (Option<Text>, Option<Text>) {
    (bytes.and_then(undoable), bytes.map(hash))
}

/// A content, where it is not too large.
pub(crate) fn read(file: File) -> Option<Bytes> {
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
    (read.is_ok() && bytes.len() <= FILE_BYTES_MAX).then(|| Bytes::from(bytes))
}

fn undoable(bytes: &Bytes) -> Option<Text> {
    let fits = bytes.len() <= BEFORE_BYTES_MAX;
    std::str::from_utf8(bytes).ok().filter(|_| fits).map(Text::from)
}

fn hash(bytes: &Bytes) -> Text {
    format!("{:x}", Sha256::digest(bytes)).into()
}

/// The change as a patch; nothing where it is no text or too long to be read.
pub(crate) fn patch_of(target: &Target, change: &Change) -> Option<String> {
    let content = |bytes: &Option<Bytes>| match bytes {
        None => Some(String::new()),
        Some(bytes) if bytes.len() > DIFF_BYTES_MAX => None,
        Some(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
    };
    let path = &target.path;
    let body = match &change.operation {
        Operation::Create => {
            let after = content(&change.after)?;
            let lines: String = after.lines().map(|line| format!("+{line}\n")).collect();
            format!("*** Add File: {path}\n{lines}")
        }
        Operation::Update => {
            let hunks = hunks(&content(&change.before)?, &content(&change.after)?);
            format!("*** Update File: {path}\n{hunks}")
        }
        Operation::Delete => format!("*** Delete File: {path}\n"),
        Operation::Move { from } => format!("*** Update File: {from}\n*** Move to: {path}\n"),
    };
    let patch = format!("*** Begin Patch\n{body}*** End Patch\n");
    (patch.len() <= PATCH_BYTES_MAX).then_some(patch)
}

fn hunks(before: &str, after: &str) -> String {
    let diff = TextDiff::configure().timeout(DIFF_TIME_MAX).diff_lines(before, after);
    let mut text = String::new();
    for group in diff.grouped_ops(CONTEXT_LINES) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let (old, new) = (first.old_range().start..last.old_range().end, first.new_range().start);
        let news = last.new_range().end.saturating_sub(new);
        let (from, to) = (old.start + 1, new + 1);
        text.push_str(&format!("@@ -{from},{} +{to},{news} @@\n", old.len()));
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let line = change.value().trim_end_matches(['\n', '\r']);
            text.push_str(&format!("{sign}{line}\n"));
        }
    }
    text
}
