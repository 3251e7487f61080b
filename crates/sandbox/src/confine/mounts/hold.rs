//! Holds things in place: what may not be changed inside the writable directories, and what may
//! not be seen anywhere.
//!
//! A mount point can be neither moved nor removed, so a read-only path is mounted over itself, and
//! so is every directory between it and the writable one.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, fstat};

use super::{READ_ONLY, TAME, attach, attach_on, copied, is_socket, itself, named, taken};
use crate::{IfMissing, ReadOnly, Sandbox};

/// How often what is to be covered may be replaced meanwhile.
const COVER_TRIES_MAX: usize = 1_000;

pub(super) fn everything(sandbox: &Sandbox, sockets: &[PathBuf]) -> Result<(), String> {
    let mut pinned = BTreeSet::new();
    for ReadOnly { path, if_missing } in &sandbox.read_only {
        let Some(root) = sandbox.root_of(path) else { continue };
        let there = existing(root, path).map_err(named(path))?;
        if there != *path && *if_missing == IfMissing::Ignore {
            continue;
        }
        pin_above(root, &there, &mut pinned).map_err(named(path))?;
        protect(&there).map_err(named(path))?;
    }
    let nothing = Nothing::make().map_err(named("/dev"))?;
    for path in hidden(sandbox) {
        if let Some(root) = sandbox.root_of(&path) {
            let there = existing(root, &path).map_err(named(&path))?;
            pin_above(root, &there, &mut pinned).map_err(named(&path))?;
            nothing.cover(&there).map_err(named(&path))?;
        } else {
            nothing.cover(&path).map_err(named(&path))?;
        }
    }
    for path in sockets.iter().filter(|path| is_socket(path)) {
        nothing.cover(path).map_err(named(path))?;
    }
    nothing.forget().map_err(named("/dev"))
}

/// What may not be seen. Where a link leads to is what that means; a missing file is where it would
/// be.
pub(super) fn hidden(sandbox: &Sandbox) -> Vec<PathBuf> {
    outermost(sandbox.hidden.iter().map(|path| real(path)).collect())
}

/// Without what lies below another of them: it is hidden with that, and nothing more can be put
/// over what is not to be seen there any more.
fn outermost(paths: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut kept: Vec<PathBuf> = Vec::new();
    // In order, so whatever is below a path follows it.
    for path in paths {
        if !kept.last().is_some_and(|above| path.starts_with(above)) {
            kept.push(path);
        }
    }
    kept
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(above), Some(name)) => real(above).join(name),
        _ => path.to_path_buf(),
    }
}

/// The path, or its first part that leads no further: a link, or the stand-in for what is missing.
fn existing(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut there = None;
    let below = path.strip_prefix(root).unwrap_or(Path::new(""));
    let mut at = root.to_path_buf();
    for part in below.components() {
        at.push(part);
        match fs::symlink_metadata(&at) {
            Ok(meta) => {
                there = Some(at.clone());
                if !meta.is_dir() {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        }
    }
    // Nothing at all is left to be held, so it is as if the path were not there.
    Ok(there.unwrap_or_else(|| path.to_path_buf()))
}

/// Makes every directory between the root and the path one that cannot be moved.
fn pin_above(root: &Path, path: &Path, pinned: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    let between = path.ancestors().skip(1).take_while(|above| *above != root);
    let mut between: Vec<&Path> = between.collect();
    between.reverse();
    for directory in between {
        if pinned.insert(directory.to_path_buf()) {
            attach(&taken(directory, TAME)?, directory)?;
        }
    }
    Ok(())
}

/// What cannot be found any more cannot be held, and then the command does not run.
fn protect(path: &Path) -> io::Result<()> {
    let place = itself(path)?;
    attach_on(&copied(&place, READ_ONLY)?, &place)
}

/// An empty file and an empty directory that nobody may open.
struct Nothing {
    file: &'static str,
    directory: &'static str,
}

impl Nothing {
    fn make() -> io::Result<Nothing> {
        let nothing = Nothing { file: "/dev/hidden-file", directory: "/dev/hidden-directory" };
        File::create_new(nothing.file)?;
        fs::create_dir(nothing.directory)?;
        for path in [nothing.file, nothing.directory] {
            fs::set_permissions(path, Permissions::from_mode(0o000))?;
        }
        Ok(nothing)
    }

    /// Puts it over a path, if that can be seen at all.
    fn cover(&self, path: &Path) -> io::Result<()> {
        for _ in 0..COVER_TRIES_MAX {
            let place = match itself(path) {
                Ok(place) => place,
                Err(error) if is_out_of_sight(&error) => return Ok(()),
                Err(error) => return Err(error),
            };
            let is_directory = FileType::from_raw_mode(fstat(&place)?.st_mode).is_dir();
            let nothing = if is_directory { self.directory } else { self.file };
            match attach_on(&taken(Path::new(nothing), READ_ONLY)?, &place) {
                // It was removed just now; there may be another one of the name.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                attached => return attached,
            }
        }
        Err(io::Error::other("it is another one each time"))
    }

    /// The mounts keep what they show; only the names go.
    fn forget(self) -> io::Result<()> {
        fs::remove_file(self.file)?;
        fs::remove_dir(self.directory)
    }
}

/// It does not exist, or the user may not even come near; the command has no more rights.
fn is_out_of_sight(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}
