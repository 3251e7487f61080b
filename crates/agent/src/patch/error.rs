//! Why a patch was not applied.
//!
//! Every sentence names the thing and says what to do. Whatever the error, no file was changed;
//! [`PatchError::Torn`] is the one exception, and it lists what was left.

use std::io;
use std::path::PathBuf;

use super::path::shown;

#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    #[error("patch line {line}: {message}")]
    Syntax { line: usize, message: String },
    #[error("patch line {line}: `{}` is not a usable file name: {reason}", shown(path))]
    BadPath { line: usize, path: String, reason: String },
    #[error("no files were modified: the patch leaves everything as it is")]
    Unchanged,
    #[error("{what}: {found} is over the limit of {limit}; split the patch")]
    TooLarge { what: String, found: usize, limit: usize },
    #[error("{}: outside the working directory (really {})", shown(path), real.display())]
    Outside { path: String, real: PathBuf },
    #[error(
        "{}: reached through a symbolic link, which a patch never follows; use the real path {}",
        shown(path), real.display()
    )]
    Link { path: String, real: PathBuf },
    /// The context of a hunk is not in the file.
    #[error("{}: {message}", shown(path))]
    NotFound { path: String, message: String },
    /// The context of a hunk is in the file more than once.
    #[error("{}: {message}", shown(path))]
    Ambiguous { path: String, message: String },
    #[error("{}: exists already; update it, or delete it first", shown(path))]
    Exists { path: String },
    #[error("{}: there is no such file", shown(path))]
    Missing { path: String },
    /// The file is there, but a patch cannot edit it.
    #[error("{}: {reason}", shown(path))]
    Unfit { path: String, reason: String },
    /// Two sections of the patch contradict each other.
    #[error("{}: {message}", shown(path))]
    Conflict { path: String, message: String },
    /// The file is no longer the one that was planned with; planning again may succeed.
    #[error("{}: changed since the patch was prepared; read it again", shown(path))]
    Changed { path: String },
    #[error(
        "{}: the working directory was removed or replaced; open the session again",
        root.display()
    )]
    RootChanged { root: PathBuf },
    #[error("{}: cannot {doing}: {source}", shown(path))]
    Io { path: String, doing: &'static str, source: io::Error },
    /// Writing failed, and so did undoing a part of it.
    #[error("{cause}; and these could not be put back: {}", left.join(", "))]
    Torn { cause: Box<PatchError>, left: Vec<String> },
}

impl PatchError {
    /// Takes whatever error type the system call's wrapper has.
    pub(super) fn io(path: &str, doing: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.to_owned(), doing, source: source.into() }
    }

    pub(super) fn unfit(path: &str, reason: impl Into<String>) -> Self {
        Self::Unfit { path: path.to_owned(), reason: reason.into() }
    }

    pub(super) fn conflict(path: &str, message: &str) -> Self {
        Self::Conflict { path: path.to_owned(), message: message.to_owned() }
    }

    /// An error unless `found` is within `limit`.
    pub(super) fn limit(what: &str, found: usize, limit: usize) -> Result<(), Self> {
        if found <= limit {
            return Ok(());
        }
        Err(Self::TooLarge { what: what.to_owned(), found, limit })
    }
}
