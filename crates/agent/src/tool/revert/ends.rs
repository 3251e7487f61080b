//! What comes after the files: links and directories, each if it can be. Doing it twice does no
//! more than once, so a server that starts after a kill can go on with it.

use polyloop_session::Text;
use polyloop_session::event::Skipped;
use polyloop_session::item::{FileChange, Operation};
use polyloop_session::undo::Done;
use rustix::fs::{AtFlags, FileType, readlinkat, symlinkat, unlinkat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::resolve::Resolved;
use super::{CHANGED, THERE, read_content, skipped};
use crate::patch::root::look;
use crate::patch::{make_directory, path, remove_directory};

const NOT_EMPTY: &str = "a directory that is not empty";

/// What is at the place of a link.
#[derive(PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Link(String),
    Other,
}

impl Found {
    pub(super) fn at(resolved: &Resolved, path: &Text) -> Found {
        let relative = resolved.relative(path);
        let (above, name) = path::split(&relative);
        let above = match resolved.root.directory(above) {
            Ok(above) => above,
            Err(Errno::NOENT) => return Found::Nothing,
            Err(_) => return Found::Other,
        };
        match look(&above, name).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Err(Errno::NOENT) => Found::Nothing,
            Ok(FileType::Symlink) => match readlinkat(&above, name, Vec::new()) {
                Ok(to) => to.into_string().map_or(Found::Other, Found::Link),
                Err(_) => Found::Other,
            },
            Ok(_) | Err(_) => Found::Other,
        }
    }
}

/// Whether a file is as it was to become.
pub(super) fn is_done(resolved: &Resolved, file: &FileChange) -> bool {
    let found = resolved.root.open_file(&resolved.relative(&file.path));
    match (&file.after, found) {
        (None, Ok(None)) => true,
        (Some(after), Ok(Some((found, _)))) => read_content(found)
            .is_some_and(|bytes| format!("{:x}", Sha256::digest(&bytes)) == **after),
        (None | Some(_), _) => false,
    }
}

/// Directories are made, links made or removed, directories removed: and what came of it.
pub(super) fn finish(resolved: &Resolved, wanted: Done) -> Done {
    let Done { mut files, made, removed, mut skipped } = wanted;
    let no = |path: &Text, reason: String| Skipped { path: path.clone(), reason: reason.into() };
    let mut done = Done::default();
    for dir in made {
        match make_directory(&resolved.root, &resolved.relative(&dir)) {
            Ok(_) => done.made.push(dir),
            Err(error) => skipped.push(no(&dir, error.to_string())),
        }
    }
    files.retain(|file| match link(resolved, file) {
        Ok(()) => true,
        Err(stays) => {
            skipped.push(stays);
            false
        }
    });
    for dir in removed.into_iter().rev() {
        match remove_directory(&resolved.root, &resolved.relative(&dir)) {
            Ok(()) | Err(Errno::NOENT) => done.removed.insert(0, dir),
            Err(Errno::NOTEMPTY | Errno::EXIST) => skipped.push(no(&dir, NOT_EMPTY.to_owned())),
            Err(errno) => skipped.push(no(&dir, errno.to_string())),
        }
    }
    Done { files, skipped, ..done }
}

/// Nothing is done about what is no link.
fn link(resolved: &Resolved, file: &FileChange) -> Result<(), Skipped> {
    let Some(to) = &file.link else { return Ok(()) };
    let relative = resolved.relative(&file.path);
    let (above, name) = path::split(&relative);
    let failed = |errno: Errno| skipped(&file.path, &errno.to_string());
    match (&file.operation, Found::at(resolved, &file.path)) {
        (Operation::Delete, Found::Nothing) => Ok(()),
        (Operation::Delete, Found::Link(found)) if *found == **to => {
            let above = resolved.root.directory(above).map_err(failed)?;
            unlinkat(above, name, AtFlags::empty()).map_err(failed)
        }
        (Operation::Delete, Found::Link(_) | Found::Other) => Err(skipped(&file.path, CHANGED)),
        (_, Found::Nothing) => {
            let above = resolved.root.directory(above).map_err(failed)?;
            symlinkat(&**to, above, name).map_err(failed)
        }
        (_, Found::Link(found)) if *found == **to => Ok(()),
        (_, Found::Link(_) | Found::Other) => Err(skipped(&file.path, THERE)),
    }
}
