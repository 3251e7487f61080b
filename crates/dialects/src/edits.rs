//! What is told of a fork and of edits that were taken back, in dialects that have only words for
//! it.

use polyloop_session::event::Skipped;
use polyloop_session::item::{FileChange, Operation};
use polyloop_session::wait::Who;
use polyloop_session::{Seq, SessionId, shown};

/// The codes of the notices that say so.
pub(crate) const FORKED_CODE: &str = "forked";
pub(crate) const UNDONE_CODE: &str = "undone";
pub(crate) const UNDO_FAILED_CODE: &str = "undo_failed";

/// Files that are named before they are only counted.
const FILES_NAMED_MAX: usize = 20;

pub(crate) fn forked(session: &SessionId, upto: Seq) -> String {
    format!(
        "This session is a fork of {session}, up to its entry {upto}. What was allowed there for \
         the rest of the session is asked about again here."
    )
}

pub(crate) fn undone(files: &[FileChange], skipped: &[Skipped], by: &Who) -> String {
    let change = |file: &FileChange| {
        let path = shown::sentence(&file.path);
        match &file.operation {
            Operation::Create => format!("{path} restored"),
            Operation::Update => format!("{path} changed back"),
            Operation::Delete => format!("{path} removed"),
            Operation::Move { from } => format!("{} moved back to {path}", shown::sentence(from)),
        }
    };
    let stays = |skipped: &Skipped| {
        let (path, reason) = (shown::sentence(&skipped.path), shown::sentence(&skipped.reason));
        format!("{path} stays: {reason}")
    };
    let changes = files.iter().map(change).chain(skipped.iter().map(stays));
    let mut named: Vec<String> = changes.take(FILES_NAMED_MAX).collect();
    let more = (files.len() + skipped.len()).saturating_sub(FILES_NAMED_MAX);
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    if named.is_empty() {
        named.push("all were as before already".into());
    }
    format!("{} took back changes of files: {}", by.describe(), named.join("; "))
}

pub(crate) fn undo_failed(reason: &str) -> String {
    format!("Changes of files were to be taken back and are in place still: {reason}")
}
