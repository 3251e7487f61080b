//! Stand-ins for read-only paths that do not exist: an empty file or directory that is there while
//! the command runs, so that the kernel has something to protect.
//!
//! Made and removed by the helper, outside the sandbox. Several jobs may share one: each holds a
//! lock on it, and the last one removes it. Never removes what somebody else has put something
//! into, and finds again what a killed helper left.

use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, ResolveFlags, Stat, fchmod, flock, fstat,
    mkdirat, openat, openat2, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{getuid, umask};

use crate::{IfMissing, Sandbox};

/// Tells a stand-in that was left behind from a file of the user's: nobody else sets the sticky bit
/// on an empty file.
const FILE_MODE: u32 = 0o1644;
const DIRECTORY_MODE: u32 = 0o1755;
/// What becomes of one that somebody has put something into.
const KEPT_FILE_MODE: u32 = 0o644;
const KEPT_DIRECTORY_MODE: u32 = 0o755;

/// How often another job may remove one just when it is taken.
const TRIES_MAX: usize = 100;

pub(super) struct StandIns(Vec<StandIn>);

struct StandIn {
    directory: OwnedFd,
    name: PathBuf,
    kind: Kind,
    /// Open, and locked.
    file: OwnedFd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
}

impl StandIns {
    /// The error is for people.
    pub(super) fn make(sandbox: &Sandbox) -> Result<StandIns, String> {
        let held = sandbox.read_only.iter().filter_map(|read_only| {
            let kind = match read_only.if_missing {
                IfMissing::Ignore => return None,
                IfMissing::HoldFile => Kind::File,
                IfMissing::HoldDirectory => Kind::Directory,
            };
            Some((&read_only.path, kind))
        });
        // What is hidden as a whole needs none inside.
        let is_inside = |path: &&PathBuf| {
            sandbox.hidden.iter().any(|other| other != *path && path.starts_with(other))
        };
        let hidden = sandbox.hidden.iter().filter(|path| !is_inside(path));
        let hidden = hidden.map(|path| (path, Kind::File));
        let mut made = StandIns(Vec::new());
        for (path, kind) in held.chain(hidden) {
            let Some(root) = sandbox.root_of(path) else { continue };
            match StandIn::make(root, path, kind) {
                Ok(stand_in) => made.0.extend(stand_in),
                // Where the server may not write, the command may not either.
                Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {}
                Err(error) => {
                    made.remove();
                    return Err(format!("{}: cannot be held: {error}", path.display()));
                }
            }
        }
        Ok(made)
    }

    /// Removes those that are empty and that no other job uses.
    pub(super) fn remove(self) {
        for stand_in in &self.0 {
            // One that cannot be removed is found again by the next job.
            let _ = stand_in.remove();
        }
    }
}

impl StandIn {
    /// None if the path exists, and is none that was left behind.
    fn make(root: &Path, path: &Path, kind: Kind) -> rustix::io::Result<Option<StandIn>> {
        let Some((directory, name, kind)) = first_missing(root, path, kind)? else {
            return Ok(None);
        };
        for _ in 0..TRIES_MAX {
            match create(&directory, &name, kind) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            let file = match open(&directory, &name) {
                Ok(file) => file,
                Err(Errno::NOENT) => continue, // Removed by another job just now.
                // Somebody else's, since one of ours can be opened.
                Err(Errno::LOOP | Errno::ACCESS | Errno::NXIO) => return Ok(None),
                Err(error) => return Err(error),
            };
            if !is_left_alone(&fstat(&file)?, kind) {
                return Ok(None);
            }
            flock(&file, FlockOperation::LockShared)?;
            let stand_in = StandIn { directory, name, kind, file };
            if stand_in.is_in_place()? {
                return Ok(Some(stand_in));
            }
            return StandIn::make(root, path, kind); // Removed before it was locked.
        }
        Err(Errno::AGAIN)
    }

    fn is_in_place(&self) -> rustix::io::Result<bool> {
        let (ours, there) = (fstat(&self.file)?, stat(&self.directory, &self.name));
        Ok(there.is_ok_and(|there| (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)))
    }

    fn remove(&self) -> rustix::io::Result<()> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(()), // Another job needs it.
            Err(error) => return Err(error),
        }
        if !self.is_in_place()? {
            return Ok(());
        }
        if !is_left_alone(&fstat(&self.file)?, self.kind) {
            return self.keep();
        }
        let flags = match self.kind {
            Kind::File => AtFlags::empty(),
            Kind::Directory => AtFlags::REMOVEDIR,
        };
        match unlinkat(&self.directory, &self.name, flags) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => self.keep(),
            result => result,
        }
    }

    /// It is somebody's now, and looks like it.
    fn keep(&self) -> rustix::io::Result<()> {
        let (ours, kept) = match self.kind {
            Kind::File => (FILE_MODE, KEPT_FILE_MODE),
            Kind::Directory => (DIRECTORY_MODE, KEPT_DIRECTORY_MODE),
        };
        if fstat(&self.file)?.st_mode & 0o7777 == ours {
            fchmod(&self.file, Mode::from_raw_mode(kept))?;
        }
        Ok(())
    }
}

/// The directory of the first part of the path that is missing, or a stand-in itself, and what to
/// make there. None if all is there, or the way leads through something else.
fn first_missing(
    root: &Path,
    path: &Path,
    kind: Kind,
) -> rustix::io::Result<Option<(OwnedFd, PathBuf, Kind)>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = openat2(rustix::fs::CWD, root, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let below = path.strip_prefix(root).unwrap_or(Path::new(""));
    let mut parts = below.components().filter(|part| matches!(part, Component::Normal(_)));
    let mut next = parts.next();
    while let Some(part) = next {
        next = parts.next();
        let name = PathBuf::from(part.as_os_str());
        let kind = if next.is_some() { Kind::Directory } else { kind };
        match stat(&at, &name) {
            Err(Errno::NOENT) => return Ok(Some((at, name, kind))),
            Err(error) => return Err(error),
            Ok(there) if is_left_alone(&there, kind) => return Ok(Some((at, name, kind))),
            Ok(_) if next.is_none() => return Ok(None),
            Ok(_) => match openat(&at, &name, flags, Mode::empty()) {
                Ok(below) => at = below,
                Err(Errno::LOOP | Errno::NOTDIR) => return Ok(None),
                Err(error) => return Err(error),
            },
        }
    }
    Ok(None)
}

fn stat(directory: &OwnedFd, name: &Path) -> rustix::io::Result<Stat> {
    statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Whether this is a stand-in of ours into which nobody has put anything; for a directory, its
/// removal tells.
fn is_left_alone(stat: &Stat, kind: Kind) -> bool {
    let is = FileType::from_raw_mode(stat.st_mode);
    stat.st_uid == getuid().as_raw()
        && match kind {
            Kind::File => is.is_file() && stat.st_mode & 0o7777 == FILE_MODE && stat.st_size == 0,
            Kind::Directory => is.is_dir() && stat.st_mode & 0o7777 == DIRECTORY_MODE,
        }
}

/// The mode is right from the first moment on, because another job may look at that moment.
fn create(directory: &OwnedFd, name: &Path, kind: Kind) -> rustix::io::Result<()> {
    let before = umask(Mode::empty());
    let created = create_unmasked(directory, name, kind);
    umask(before);
    created
}

fn create_unmasked(directory: &OwnedFd, name: &Path, kind: Kind) -> rustix::io::Result<()> {
    match kind {
        Kind::File => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let file = openat(directory, name, flags, Mode::from_raw_mode(FILE_MODE))?;
            fchmod(&file, Mode::from_raw_mode(FILE_MODE))
        }
        Kind::Directory => {
            mkdirat(directory, name, Mode::from_raw_mode(DIRECTORY_MODE))?;
            fchmod(open(directory, name)?, Mode::from_raw_mode(DIRECTORY_MODE))
        }
    }
}

fn open(directory: &OwnedFd, name: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty())
}
