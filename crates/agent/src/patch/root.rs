//! The directory a patch is confined to, held open from the session's start.
//!
//! Paths below it are resolved by the kernel from this handle and through no link, when they are
//! read and again when they are written: what a name meant earlier never counts. Never trusts a
//! path's text for where it leads.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::error::PatchError;
use super::path;
use super::plan::Content;
use super::{FILE_BYTES_MAX, PATH_DEPTH_MAX};

/// How a directory is held: to name files in it, not to read it.
const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A working directory. Cheap to clone; all clones hold the same directory.
#[derive(Clone, Debug)]
pub struct Root(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Without links.
    path: PathBuf,
    /// As it was named, made absolute: paths in patches may use that name too.
    named: PathBuf,
    handle: OwnedFd,
    id: FileId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileId {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// Where a path of a patch lies, by its text.
pub(crate) enum Place {
    /// Relative to the root, with `/`, without `.` and `..`.
    Inside(String),
    Outside(PathBuf),
}

/// A regular file as it was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) bytes: Bytes,
    pub(super) stat: Stat,
    /// A file can be replaced without this, but someone took it away on purpose.
    pub(super) is_writable: bool,
}

impl Found {
    pub(super) fn mode(&self) -> u32 {
        self.stat.st_mode & 0o7777
    }

    pub(super) fn to_content(&self) -> Content {
        Content { bytes: self.bytes.clone(), like: Some(self.clone()), mode: None }
    }

    /// Whether the other is the same file with the same content. Times are no evidence: two writes
    /// can share one.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        FileId::of(&self.stat) == FileId::of(&other.stat)
            && self.mode() == other.mode()
            && self.bytes == other.bytes
    }
}

impl Root {
    /// Opens a working directory, whose own path may lead through links; they are resolved here,
    /// once.
    pub fn open(path: &Path) -> Result<Self, PatchError> {
        let text = path.to_string_lossy();
        let failed = |source| PatchError::io(&text, "open the working directory", source);
        let named = path::normal(&std::path::absolute(path).map_err(failed)?);
        let path = path.canonicalize().map_err(failed)?;
        let handle = rustix::fs::openat(rustix::fs::CWD, &path, DIRECTORY, Mode::empty())
            .map_err(|errno| failed(errno.into()))?;
        let stat = rustix::fs::fstat(&handle).map_err(|errno| failed(errno.into()))?;
        Ok(Self(Arc::new(Inner { path, named, handle, id: FileId::of(&stat) })))
    }

    /// Whether it has this name, whatever that leads to.
    pub(crate) fn has(&self, name: &str) -> bool {
        look(&self.0.handle, name).is_ok()
    }

    /// The directory as it is now.
    pub(crate) fn stat(&self) -> Result<Stat, Errno> {
        rustix::fs::fstat(&self.0.handle)
    }

    /// Its path without links, as it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    pub(super) fn id(&self) -> FileId {
        self.0.id
    }

    /// Whether a path still leads to this directory, and that is still where it was opened.
    pub(crate) fn is_still(&self, wanted: &Path) -> bool {
        if wanted == self.0.path {
            return self.stays();
        }
        wanted.canonicalize().is_ok_and(|path| path == self.0.path) && self.check().is_ok()
    }

    /// Whether its path leads to it through no link.
    fn stays(&self) -> bool {
        let flags = OFlags::PATH.union(DIRECTORY);
        let cwd = rustix::fs::CWD;
        let resolve = ResolveFlags::NO_SYMLINKS;
        match rustix::fs::openat2(cwd, &self.0.path, flags, Mode::empty(), resolve) {
            Ok(found) => rustix::fs::fstat(&found).is_ok_and(|stat| FileId::of(&stat) == self.0.id),
            // Old kernels lack the call, and some containers forbid it.
            Err(Errno::NOSYS | Errno::PERM) => {
                let path = self.0.path.canonicalize();
                path.is_ok_and(|path| path == self.0.path) && self.check().is_ok()
            }
            Err(_) => false,
        }
    }

    /// An error if its path has come to mean another directory, or none.
    pub(crate) fn check(&self) -> Result<(), PatchError> {
        match rustix::fs::lstat(&self.0.path) {
            Ok(stat) if FileId::of(&stat) == self.0.id => Ok(()),
            Ok(_) | Err(_) => Err(PatchError::RootChanged { root: self.0.path.clone() }),
        }
    }

    pub(crate) fn place(&self, named: &str) -> Place {
        let absolute = path::normal(&self.0.path.join(named));
        let relative = absolute
            .strip_prefix(&self.0.path)
            .or_else(|_| absolute.strip_prefix(&self.0.named))
            .ok()
            .and_then(Path::to_str);
        match relative {
            Some(relative) => Place::Inside(relative.to_owned()),
            None => Place::Outside(absolute),
        }
    }

    /// The path relative to the root, or an error that says where it really leads.
    pub(super) fn relative(&self, named: &str) -> Result<String, PatchError> {
        match self.place(named) {
            Place::Inside(relative) if relative.is_empty() => {
                Err(PatchError::unfit(named, "the working directory itself, not a file"))
            }
            Place::Inside(relative) => Ok(relative),
            Place::Outside(absolute) => Err(self.led_astray(named, &absolute)),
        }
    }

    /// A directory below the root; the empty path is the root itself.
    pub(crate) fn directory(&self, relative: &str) -> Result<OwnedFd, Errno> {
        if relative.is_empty() {
            return rustix::fs::openat(&self.0.handle, ".", DIRECTORY, Mode::empty());
        }
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.0.handle, relative, DIRECTORY, Mode::empty(), resolve) {
            // Old kernels lack the call, and some containers forbid it.
            Err(Errno::NOSYS | Errno::PERM) => self.directory_by_walking(relative),
            other => other,
        }
    }

    /// The same, one name at a time: no name is `..`, and none may be a link.
    pub(super) fn directory_by_walking(&self, relative: &str) -> Result<OwnedFd, Errno> {
        let mut directory = self.directory("")?;
        for name in relative.split('/').take(PATH_DEPTH_MAX) {
            directory = rustix::fs::openat(&directory, name, DIRECTORY, Mode::empty())?;
        }
        Ok(directory)
    }

    /// The regular file at a path, or nothing if there is none. Everything else is an error.
    pub(super) fn read(&self, relative: &str) -> Result<Option<Found>, PatchError> {
        let (parent, name) = path::split(relative);
        match self.directory(parent) {
            Ok(directory) => self.read_in(&directory, name, relative),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.no_directory(relative, errno)),
        }
    }

    /// The same, in a directory that is open already.
    pub(super) fn read_in(
        &self,
        directory: &OwnedFd,
        name: &str,
        relative: &str,
    ) -> Result<Option<Found>, PatchError> {
        let Some((handle, stat)) = self.open_in(directory, name, relative)? else {
            return Ok(None);
        };
        let size = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
        PatchError::limit(&format!("{relative}: its bytes"), size, FILE_BYTES_MAX)?;
        let mut bytes = Vec::with_capacity(size);
        // One byte more than allowed tells a file that grew meanwhile.
        let mut reader = handle.take(FILE_BYTES_MAX as u64 + 1);
        reader
            .read_to_end(&mut bytes)
            .map_err(|source| PatchError::io(relative, "read it", source))?;
        PatchError::limit(&format!("{relative}: its bytes"), bytes.len(), FILE_BYTES_MAX)?;
        let access = rustix::fs::accessat(directory, name, Access::WRITE_OK, AtFlags::EACCESS);
        // To the superuser every file is accessible, so the mode counts too.
        let is_writable = stat.st_mode & 0o222 != 0 && access.is_ok();
        Ok(Some(Found { bytes: Bytes::from(bytes), stat, is_writable }))
    }

    /// The regular file at a path, open for reading, or nothing if there is none.
    pub(crate) fn open_file(&self, relative: &str) -> Result<Option<(File, Stat)>, PatchError> {
        let (parent, name) = path::split(relative);
        match self.directory(parent) {
            Ok(directory) => self.open_in(&directory, name, relative),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.no_directory(relative, errno)),
        }
    }

    fn open_in(
        &self,
        directory: &OwnedFd,
        name: &str,
        relative: &str,
    ) -> Result<Option<(File, Stat)>, PatchError> {
        let failed = |errno: Errno| PatchError::io(relative, "read it", errno);
        let stat = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(failed(errno)),
        };
        self.check_regular(relative, &stat)?;
        // Should it have become a pipe since, opening it must not wait for the other end.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let handle = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::LOOP) => return Err(self.led_astray(relative, &self.path().join(relative))),
            Err(errno) => return Err(failed(errno)),
        };
        let stat = rustix::fs::fstat(&handle).map_err(failed)?;
        self.check_regular(relative, &stat)?;
        Ok(Some((File::from(handle), stat)))
    }

    pub(crate) fn check_regular(&self, relative: &str, stat: &Stat) -> Result<(), PatchError> {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => return Ok(()),
            FileType::Symlink => {
                return Err(self.led_astray(relative, &self.path().join(relative)));
            }
            FileType::Directory => "a directory",
            FileType::Fifo => "a named pipe",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            FileType::Unknown => "of an unknown kind",
        };
        Err(PatchError::unfit(relative, format!("{kind}, not a regular file")))
    }

    /// Why the directory of a path could not be opened.
    pub(crate) fn no_directory(&self, relative: &str, errno: Errno) -> PatchError {
        match errno {
            Errno::LOOP | Errno::NOTDIR | Errno::XDEV => {
                let absolute = self.path().join(relative);
                if path::real(&absolute) != absolute {
                    return self.led_astray(relative, &absolute);
                }
                PatchError::unfit(relative, "a part of this path is not a directory")
            }
            _ => PatchError::io(relative, "open its directory", errno),
        }
    }

    /// The refusal of a path that does not lie where its text says.
    fn led_astray(&self, named: &str, absolute: &Path) -> PatchError {
        let path = named.to_owned();
        let real = path::real(absolute);
        if real.starts_with(self.path()) {
            PatchError::Link { path, real }
        } else {
            PatchError::Outside { path, real }
        }
    }
}

/// Whether two looks at a name saw the same file, unwritten in between. Renaming is not writing.
pub(super) fn is_untouched(before: &Stat, after: &Stat) -> bool {
    FileId::of(before) == FileId::of(after)
        && (before.st_size, before.st_mtime, before.st_mtime_nsec)
            == (after.st_size, after.st_mtime, after.st_mtime_nsec)
}

/// The file's facts by name, in an open directory, no link followed.
pub(crate) fn look(directory: impl AsFd, name: &str) -> Result<Stat, Errno> {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}
