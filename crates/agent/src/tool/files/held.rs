//! What is in a directory that a call takes as a whole: each path in it counts as if the call had
//! named it.
//!
//! Looks by handles, through no link, at a bounded number of things. What cannot be looked through
//! is refused, whoever would allow it.

use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use polyloop_session::policy::Rule;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::{Target, name_of};
use crate::patch::{PATH_DEPTH_MAX, is_git_directory, is_protected, path};
use crate::rules;
use crate::tool::Place;

/// Things in a directory that one call may take.
pub(crate) const HELD_MAX: usize = 5_000;

#[derive(Default)]
pub(crate) struct Held {
    /// At any depth.
    pub count: usize,
    /// Of each path, in no order.
    rules: Vec<Option<Rule>>,
    /// The outermost ones.
    protected: Vec<String>,
}

impl Held {
    /// `directory` is what is, or was, at the target's path. The error says why it cannot be
    /// looked through.
    pub(crate) fn look(
        directory: &OwnedFd,
        target: &Target,
        place: &Place,
    ) -> Result<Held, String> {
        let mut held = Held::default();
        let here = Here { path: &target.real, protected: target.protected, depth: 0 };
        held.add(directory, &here, target, place)?;
        Ok(held)
    }

    fn add(
        &mut self,
        directory: &OwnedFd,
        here: &Here<'_>,
        target: &Target,
        place: &Place,
    ) -> Result<(), String> {
        if here.depth > PATH_DEPTH_MAX {
            return Err(format!("more than {PATH_DEPTH_MAX} directories deep; use bash"));
        }
        let entries = entries(directory)?;
        let is_git = is_git_directory(|name| entries.iter().any(|(n, _)| n.to_bytes() == name));
        for (name, kind) in &entries {
            self.count += 1;
            if self.count > HELD_MAX {
                return Err(too_many());
            }
            let text = OsStr::from_bytes(name.to_bytes());
            let path = here.path.join(text);
            if !place.rules.is_empty() {
                self.rules.push(place.rules.of_path(&path, &place.cwd));
            }
            let protected = here.protected || is_git || is_protected(&text.to_string_lossy());
            if protected && !here.protected {
                let below = path.strip_prefix(&target.real).unwrap_or(&path);
                self.protected.push(target.below(below));
            }
            if *kind == FileType::Directory {
                let inner = open(directory, name)
                    .map_err(|errno| format!("cannot look into {}: {errno}", name_of(text)))?;
                let inside = Here { path: &path, protected, depth: here.depth + 1 };
                self.add(&inner, &inside, target, place)?;
            }
        }
        Ok(())
    }

    /// The target as what it is together with all that is in it.
    pub(crate) fn with(&self, target: &Target) -> Target {
        let all = std::iter::once(&target.rule).chain(&self.rules);
        Target {
            protected: target.protected || !self.protected.is_empty(),
            rule: rules::of_all(all.cloned()),
            ..target.clone()
        }
    }

    /// The protected paths in it, for the end of a sentence about all of it.
    pub(crate) fn protected_in_words(&self) -> String {
        match self.protected.as_slice() {
            [] => String::new(),
            paths => format!(", also what is protected: {}", path::list(paths)),
        }
    }

    /// Tells one set of protected paths from another in the name of a grant: who was shown one of
    /// them agreed to that one.
    pub(crate) fn protected_as_key(&self) -> String {
        if self.protected.is_empty() {
            return String::new();
        }
        format!(":protected:{:x}", Sha256::digest(self.protected.join("\n")))
    }
}

/// A directory on the way.
struct Here<'a> {
    path: &'a Path,
    /// All that is in it is.
    protected: bool,
    depth: usize,
}

fn too_many() -> String {
    format!("holds more than {HELD_MAX} things, too many to look through; use bash")
}

/// A directory, to be read.
pub(crate) fn open(above: &OwnedFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(above, name, flags, Mode::empty())
}

/// What is in a directory, in the order of names.
pub(crate) fn entries(directory: &OwnedFd) -> Result<Vec<(CString, FileType)>, String> {
    let failed = |errno: Errno| errno.to_string();
    let mut entries = Vec::new();
    for entry in Dir::read_from(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let stat =
            rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        entries.push((name.to_owned(), FileType::from_raw_mode(stat.st_mode)));
        if entries.len() > HELD_MAX {
            return Err(too_many());
        }
    }
    entries.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    Ok(entries)
}
