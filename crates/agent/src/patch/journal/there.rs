//! What lies under a name now, told by inode and content; and how a directory is deleted.
//!
//! By the handle of the directory it is in, and through no link.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, unlinkat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::line::{Fact, Facts};
use crate::patch::root::look;
use crate::patch::{PATH_DEPTH_MAX, halt};

/// What is under a name, compared with what a step knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum There {
    Nothing,
    Old,
    New,
    Other,
}

pub(super) fn there(directory: &OwnedFd, name: &str, facts: &Facts) -> There {
    match look(directory, name) {
        Err(_) => There::Nothing,
        Ok(_) if is(directory, name, facts.new.as_ref()) => There::New,
        Ok(_) if is(directory, name, facts.old.as_ref()) => There::Old,
        Ok(_) => There::Other,
    }
}

/// Whether a name means this very file with this very content.
fn is(directory: &OwnedFd, name: &str, fact: Option<&Fact>) -> bool {
    let Some(fact) = fact else { return false };
    let Ok(stat) = look(directory, name) else { return false };
    if stat.st_ino != fact.inode {
        return false;
    }
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => true,
        _ => holds(directory, name, Some(fact)),
    }
}

/// Whether a name means a file with this content.
pub(super) fn holds(directory: &OwnedFd, name: &str, fact: Option<&Fact>) -> bool {
    let Some(fact) = fact else { return false };
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(directory, name, flags, Mode::empty());
    let Ok(file) = opened.map(File::from) else { return false };
    let is_alike = file.metadata().is_ok_and(|now| now.is_file() && now.len() == fact.bytes);
    if !is_alike {
        return false;
    }
    // One byte more than it had tells a file that grew meanwhile.
    let mut reader = file.take(fact.bytes + 1);
    if fact.hash.is_empty() {
        return true;
    }
    let mut hash = Sha256::new();
    io::copy(&mut reader, &mut hash).is_ok() && format!("{:x}", hash.finalize()) == fact.hash
}

/// Deletes a directory and what is in it, by handles: no link is followed.
pub(super) fn remove_tree(above: &OwnedFd, name: &CStr, depth: usize) -> Result<(), Errno> {
    if depth > PATH_DEPTH_MAX + 1 {
        return Err(Errno::NAMETOOLONG);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(above, name, flags, Mode::empty())?;
    let entries = Dir::read_from(directory.as_fd())?;
    // All names first: a directory that shrinks while it is read may skip some.
    let names: Result<Vec<CString>, Errno> =
        entries.map(|entry| entry.map(|entry| entry.file_name().to_owned())).collect();
    let is_inner = |inner: &&CString| !matches!(inner.to_bytes(), b"." | b"..");
    for inner in names?.iter().filter(is_inner) {
        halt::point();
        match unlinkat(&directory, inner, AtFlags::empty()) {
            Err(Errno::ISDIR) => remove_tree(&directory, inner, depth + 1)?,
            other => other?,
        }
    }
    halt::point();
    unlinkat(above, name, AtFlags::REMOVEDIR)
}
