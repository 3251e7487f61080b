//! The server's own files, which no tool may touch, whatever name they are reached by.
//!
//! They are known by what they are and not by where their names lead: a link that is laid anew, a
//! directory that is moved or a second name changes nothing. Always asks the file system, so that
//! nothing it said earlier counts; and asks little, since every turn comes by here.

use std::path::{Path, PathBuf};

use crate::patch::root::FileId;

/// Whether a path, links followed, is one of them or lies below one.
pub(super) fn holds(own: &[PathBuf], real: &Path) -> bool {
    if own.iter().any(|own| real.starts_with(own)) {
        return true;
    }
    let own: Vec<FileId> = own.iter().filter_map(|own| id(own)).collect();
    !own.is_empty() && real.ancestors().filter_map(id).any(|id| own.contains(&id))
}

/// None of what is not there.
fn id(path: &Path) -> Option<FileId> {
    rustix::fs::stat(path).ok().map(|stat| FileId::of(&stat))
}
