//! The lines of a journal file, and which of what they say can be trusted.
//!
//! Only the server writes them, in its own files; still nothing in them is used that a patch could
//! not have written, so that a line that is wrong can do no more harm than a patch.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use polyloop_session::{ItemId, SessionId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::super::apply::is_spare;
use super::super::path;

/// Every line in order; what follows the first one that is not whole never happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub(super) enum Line {
    /// Before anything is written beside the files.
    Begun(Begun),
    /// Every new content is written; before the first file changes.
    Ready { facts: Vec<Facts> },
    /// Every file is in place; before the old contents are given up.
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begun {
    pub(super) root: RootId,
    pub(super) steps: Vec<Named>,
    /// Directories that are made for new files, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) made: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<CallOf>,
}

/// The call that a patch belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallOf {
    pub session: SessionId,
    pub item: ItemId,
}

/// The directory that all paths are below.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RootId {
    pub(super) path: String,
    /// The path's bytes where they are no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<Vec<u8>>,
    /// Holds until the machine starts again: some file systems then have another.
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) boot: String,
}

/// One file to change, and the names beside it that are ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) does: Does,
    pub(crate) path: String,
    /// Holds the new content before it is in place, and the old one after.
    pub(crate) spare: String,
    /// Holds a copy of the old content where names cannot be exchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) copy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Does {
    Create,
    Replace,
    Remove,
    /// Removes a directory with all that is in it; it cannot be undone half-way, only finished.
    RemoveTree,
}

/// What a step takes away and what it puts in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<Fact>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) new: Option<Fact>,
}

/// What tells one state of one file from everything else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fact {
    pub(crate) inode: u64,
    pub(crate) bytes: u64,
    /// SHA-256 in hex; empty for a directory, and for a file that is too large to be read.
    pub(crate) hash: String,
}

impl Fact {
    pub(crate) fn new(content: &[u8], inode: u64) -> Fact {
        let hash = format!("{:x}", Sha256::digest(content));
        Fact { inode, bytes: content.len() as u64, hash }
    }
}

impl Begun {
    /// Whether every name in it is one that a patch could have written.
    pub(super) fn is_usable(&self) -> bool {
        let usable = |named: &Named| {
            is_relative(&named.path)
                && is_spare(&named.spare)
                && named.copy.as_deref().is_none_or(is_spare)
        };
        self.steps.iter().all(usable) && self.made.iter().all(|made| is_relative(made))
    }
}

impl RootId {
    pub(super) fn new(path: &Path, device: u64, inode: u64, boot: String) -> RootId {
        let raw = path.to_str().is_none().then(|| path.as_os_str().as_bytes().to_vec());
        RootId { path: path.to_string_lossy().into_owned(), raw, device, inode, boot }
    }

    pub(super) fn path(&self) -> PathBuf {
        match &self.raw {
            Some(raw) => PathBuf::from(OsString::from_vec(raw.clone())),
            None => PathBuf::from(&self.path),
        }
    }
}

fn is_relative(relative: &str) -> bool {
    path::check(relative).is_ok()
        && relative.split('/').all(|name| !matches!(name, "" | "." | ".."))
}
