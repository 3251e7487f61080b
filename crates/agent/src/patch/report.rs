//! What a patch would touch, and what it did.

use std::path::PathBuf;

use bytes::Bytes;

use super::parse::Patch;
use super::path;
use super::protected::{is_in_git_directory, is_protected};
use super::root::{Place, Root};

/// A path a patch names, for the judgement of the patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Relative to the root, with `/`; as it stands in the patch when it is outside.
    pub path: String,
    /// Whether it is inside the root, links followed.
    pub inside: bool,
    /// Whether an edit there needs consent in every mode.
    pub protected: bool,
    /// Where the path leads, links followed.
    pub real: PathBuf,
}

/// What happened to one file. In order; undoing them in reverse restores everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Relative to the root, with `/`.
    pub path: String,
    pub operation: Operation,
    /// The content before: of this file, or of the one it was moved from.
    pub before: Option<Bytes>,
    /// The permission bits before.
    pub before_mode: Option<u32>,
    /// The content now; nothing when it was deleted.
    pub after: Option<Bytes>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Move { from: String },
}

/// Every path the patch names, once, whether or not the patch can be applied.
pub fn touched(root: &Root, patch: &Patch) -> Vec<Touched> {
    let mut all: Vec<Touched> = Vec::new();
    for named in patch.paths() {
        let touched = touched_at(root, named);
        if !all.contains(&touched) {
            all.push(touched);
        }
    }
    all
}

/// What is to be known of one path before it is touched.
pub(crate) fn touched_at(root: &Root, named: &str) -> Touched {
    match root.place(named) {
        Place::Inside(relative) => inside(root, relative),
        Place::Outside(absolute) => {
            let real = path::real(&absolute);
            let protected = is_protected(&real.to_string_lossy());
            Touched { path: named.to_owned(), inside: false, protected, real }
        }
    }
}

fn inside(root: &Root, relative: String) -> Touched {
    let real = path::real(&root.path().join(&relative));
    let real_relative = real.strip_prefix(root.path()).map(|path| path.to_string_lossy());
    let really = real_relative.as_deref().unwrap_or(&relative);
    let protected = [relative.as_str(), really]
        .iter()
        .any(|path| is_protected(path) || is_in_git_directory(root.path(), path));
    Touched { inside: real_relative.is_ok(), protected, path: relative, real }
}
