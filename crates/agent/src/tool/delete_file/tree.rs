//! Deletes what is in a directory, by handles: no link is followed.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::OwnedFd;

use polyloop_session::item::{FileChange, Operation};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, unlinkat};
use rustix::io::Errno;

use crate::tool::files::{entries, kept, name_of, open_directory};

/// Of all contents that are kept for undo together.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Deletes what is in it, and lists the files.
pub(super) fn delete(
    directory: &OwnedFd,
    path: &str,
    files: &mut Vec<FileChange>,
) -> Result<(), String> {
    for (name, kind) in entries(directory)? {
        let shown = name_of(std::os::unix::ffi::OsStrExt::from_bytes(name.as_bytes()));
        let below = format!("{path}/{shown}");
        let failed = |errno: Errno| format!("{below}: {errno}");
        if kind == FileType::Directory {
            let inner = open_directory(directory, &name).map_err(failed)?;
            delete(&inner, &below, files)?;
            unlinkat(directory, &name, AtFlags::REMOVEDIR).map_err(failed)?;
            continue;
        }
        let befores = files.iter().filter_map(|file| file.before.as_deref());
        let so_far: usize = befores.map(str::len).sum();
        let before = match kind {
            FileType::RegularFile if so_far < KEPT_BYTES_MAX => content(directory, &name),
            _ => None,
        };
        unlinkat(directory, &name, AtFlags::empty()).map_err(failed)?;
        let operation = Operation::Delete;
        files.push(FileChange { diff: None, path: below.into(), operation, before, after: None });
    }
    Ok(())
}

fn content(directory: &OwnedFd, name: &CString) -> Option<polyloop_session::Text> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?);
    let is_file = file.metadata().is_ok_and(|facts| facts.is_file());
    is_file.then(|| kept(file).0).flatten()
}
