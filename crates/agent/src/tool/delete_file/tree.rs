//! Deletes what is in a directory, by handles: no link is followed.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use polyloop_session::item::{FileChange, Operation};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, readlinkat, unlinkat};
use rustix::io::Errno;

use crate::patch::PATH_DEPTH_MAX;
use crate::tool::Touches;
use crate::tool::files::{HELD_MAX, entries, keep, kept, name_of, open_directory, read_content};

/// Of all contents that are kept for undo together. Whoever takes it back needs them at once.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Of all contents that are shown in the result together.
const SHOWN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What deleting it will touch: all files with their contents, as far as those are kept, links with
/// where they lead, and the directory itself with those in it.
pub(super) fn touches(directory: &OwnedFd, path: &str) -> Result<Touches, String> {
    let mut touches = Touches { removed: vec![path.into()], ..Touches::default() };
    let mut kept_bytes = 0;
    add_touches(directory, (path, true), &mut touches, &mut kept_bytes, 0)?;
    Ok(touches)
}

fn add_touches(
    directory: &OwnedFd,
    (path, named): (&str, bool),
    touches: &mut Touches,
    kept_bytes: &mut usize,
    depth: usize,
) -> Result<(), String> {
    let all = touches.files.len() + touches.removed.len();
    if depth > PATH_DEPTH_MAX || all > HELD_MAX {
        return Err("deeper or larger than when it was looked at; use bash".to_owned());
    }
    for (name, kind) in entries(directory)? {
        let (exact, is_exact) = exact(&name);
        let (below, named) = (format!("{path}/{exact}"), named && is_exact);
        if kind == FileType::Directory {
            let inner =
                open_directory(directory, &name).map_err(|errno| format!("{below}: {errno}"))?;
            touches.removed.push(below.as_str().into());
            add_touches(&inner, (&below, named), touches, kept_bytes, depth + 1)?;
            continue;
        }
        let operation = Operation::Delete;
        let mut file = FileChange { path: below.into(), operation, ..FileChange::default() };
        if !named {
            touches.files.push(file);
            continue;
        }
        if kind == FileType::Symlink {
            let leads = readlinkat(directory, &name, Vec::new()).ok();
            file.link = leads.and_then(|to| to.into_string().ok()).map(Into::into);
        }
        if let Some((content, mode)) = file_of(directory, &name, kind)
            && *kept_bytes + content.len() <= KEPT_BYTES_MAX
        {
            *kept_bytes += content.len();
            file.mode = Some(mode);
            keep(&mut file, &mut touches.contents, &content);
        }
        touches.files.push(file);
    }
    Ok(())
}

/// What cannot be brought back by an undo.
pub(super) fn not_kept(touches: &Touches) -> usize {
    let lost = |file: &&FileChange| {
        file.before.is_none() && file.before_blob.is_none() && file.link.is_none()
    };
    touches.files.iter().filter(lost).count()
}

/// A name as it is, not as it is shown: an undo gives it again. One that is no text cannot be
/// given again, and is only told.
fn exact(name: &CString) -> (String, bool) {
    match name.to_str() {
        Ok(exact) => (exact.to_owned(), true),
        Err(_) => (name_of(std::os::unix::ffi::OsStrExt::from_bytes(name.as_bytes())), false),
    }
}

fn file_of(directory: &OwnedFd, name: &CString, kind: FileType) -> Option<(Bytes, u32)> {
    if kind != FileType::RegularFile {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?);
    let facts = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mode = std::os::unix::fs::PermissionsExt::mode(&facts.permissions()) & 0o7777;
    Some((read_content(file)?, mode))
}

/// Deletes what is in it, and lists the files.
pub(super) fn delete(
    directory: &OwnedFd,
    path: &str,
    files: &mut Vec<FileChange>,
) -> Result<(), String> {
    for (name, kind) in entries(directory)? {
        let below = format!("{path}/{}", exact(&name).0);
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
            FileType::RegularFile if so_far < SHOWN_BYTES_MAX => content(directory, &name),
            _ => None,
        };
        unlinkat(directory, &name, AtFlags::empty()).map_err(failed)?;
        let operation = Operation::Delete;
        let path = below.into();
        files.push(FileChange { path, operation, before, ..FileChange::default() });
    }
    Ok(())
}

fn content(directory: &OwnedFd, name: &CString) -> Option<polyloop_session::Text> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?);
    let is_file = file.metadata().is_ok_and(|facts| facts.is_file());
    is_file.then(|| kept(file).0).flatten()
}
