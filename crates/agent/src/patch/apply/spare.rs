//! Files under random names, beside the files they are for: contents not yet in place, and old ones
//! not yet given up.
//!
//! A name is never one that exists: someone may have put a link there.

use std::fs::File;
use std::io::Write;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::directories::Directories;
use crate::patch::error::PatchError;
use crate::patch::halt;
use crate::patch::journal::{Does, Named};
use crate::patch::plan::{Content, Step};
use crate::patch::root::{FileId, Found};

const BEGINNING: &str = ".polyloop-";
const ENDING: &str = ".tmp";
const DIGITS: usize = 32;

/// A name that nobody can foresee.
pub(crate) fn spare_name() -> String {
    format!("{BEGINNING}{}{ENDING}", uuid::Uuid::new_v4().simple())
}

/// Whether a name is of this kind.
pub(in crate::patch) fn is_spare(name: &str) -> bool {
    let digits = name.strip_prefix(BEGINNING).and_then(|rest| rest.strip_suffix(ENDING));
    digits.is_some_and(|digits| {
        digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

#[derive(Default)]
pub(super) struct Spares {
    spares: Vec<Spare>,
}

struct Spare {
    name: String,
    /// The file it is for, in the same directory.
    path: String,
}

impl Spares {
    /// Names for a step.
    pub(super) fn reserve(&mut self, step: &Step) -> Named {
        let (does, path) = match step {
            Step::Create { path, .. } => (Does::Create, path),
            Step::Replace { path, .. } => (Does::Replace, path),
            Step::Remove { path, .. } => (Does::Remove, path),
        };
        let spare = self.name(path);
        let copy = (does == Does::Replace).then(|| self.name(path));
        Named { does, path: path.clone(), spare, copy }
    }

    fn name(&mut self, path: &str) -> String {
        let name = spare_name();
        self.spares.push(Spare { name: name.clone(), path: path.to_owned() });
        name
    }

    /// Leaves a spare file where it is: it holds what could not be put back.
    pub(super) fn keep(&mut self, name: &str) {
        self.spares.retain(|spare| spare.name != name);
    }

    pub(super) fn remove_all(&mut self, directories: &Directories<'_>) {
        for spare in self.spares.drain(..) {
            if let Ok(directory) = directories.of(&spare.path) {
                // Most are in place by now, so there is nothing to remove.
                halt::point();
                let _ = rustix::fs::unlinkat(directory, &spare.name, AtFlags::empty());
            }
        }
    }
}

/// Writes a content under a name so that it survives a crash.
pub(super) fn write(
    directories: &Directories<'_>,
    path: &str,
    name: &str,
    content: &Content,
) -> Result<FileId, PatchError> {
    let directory = directories.of(path)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Nobody else may read what a private file will hold.
    let mode = if content.like.is_some() || content.mode.is_some() { 0o600 } else { 0o666 };
    halt::point();
    let handle = rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(mode))
        .map_err(|errno| PatchError::io(path, "write in its directory", errno))?;
    halt::point();
    let mut file = File::from(handle);
    let failed = |source| PatchError::io(path, "write its new content", source);
    file.write_all(&content.bytes).map_err(failed)?;
    halt::point();
    if let Some(mode) = content.mode {
        let set = rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o777));
        set.map_err(|errno| PatchError::io(path, "set its mode", errno))?;
    }
    if let Some(like) = &content.like {
        imitate(&file, like).map_err(|errno| PatchError::io(path, "set its mode", errno))?;
    }
    file.sync_all().map_err(failed)?;
    halt::point();
    let stat = rustix::fs::fstat(&file).map_err(|errno| failed(errno.into()))?;
    Ok(FileId::of(&stat))
}

/// Gives a file the owner and mode of another. The owner only if we may; then without the bits that
/// would lend the new owner's rights.
fn imitate(file: &File, like: &Found) -> Result<(), Errno> {
    let now = rustix::fs::fstat(file)?;
    let (owner, group) = (like.stat.st_uid, like.stat.st_gid);
    let is_owned_alike = (now.st_uid, now.st_gid) == (owner, group)
        || rustix::fs::fchown(file, Some(Uid::from_raw(owner)), Some(Gid::from_raw(group))).is_ok();
    let mode = if is_owned_alike { like.mode() } else { like.mode() & 0o777 };
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode))
}
