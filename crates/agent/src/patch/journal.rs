//! What a patch is about to do, written down in the server's own files before it does it: so that
//! whoever starts after a kill can undo what was begun, and remove what was left.
//!
//! A file a patch, a line a moment (`journal/line.rs`), locked by the server that works on it and
//! removed when it is done. Before the first file changes the journal of a patch of several files
//! is flushed; one of a single file needs no flush, because its one renaming is whole by itself.
//! Never trusted further than a patch: what it says is done below the same root, by handles.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use polyloop_session::recover::Found;
use polyloop_session::{ItemId, SessionId};
use rustix::fs::{Mode, OFlags};

use super::STEPS_MAX;
use super::error::PatchError;
use super::halt;
use super::root::Root;

mod line;
mod replay;
mod there;

pub use line::CallOf;
pub(crate) use line::{Does, Fact, Facts, Named};
pub use replay::{Replayed, Said};

use line::{Begun, Line, RootId};

const ENDING: &str = ".patch";
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
/// A longer file is none of ours.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How often another name is tried when a server that starts was quicker.
const TRIES_MAX: usize = 5;

/// The journals of one server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Journal {
    inner: Arc<Inner>,
    /// Whose patches are written down.
    call: Option<CallOf>,
}

#[derive(Debug)]
struct Inner {
    directory: PathBuf,
    /// To flush the names in it.
    handle: File,
    boot: String,
    /// Of calls whose sessions may not have been opened since.
    replayed: Mutex<Vec<Replayed>>,
}

impl Journal {
    /// Opens the folder of journals, and makes it if it is not there. Nobody else may write in it.
    pub fn open(directory: &Path) -> io::Result<Journal> {
        std::fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory)?;
        let directory = directory.canonicalize()?;
        let handle = File::from(rustix::fs::openat(
            rustix::fs::CWD,
            &directory,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?);
        let facts = handle.metadata()?;
        if facts.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("belongs to another user"));
        }
        if facts.mode() & 0o077 != 0 {
            handle.set_permissions(std::fs::Permissions::from_mode(DIRECTORY_MODE))?;
        }
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot = boot.trim().to_owned();
        let inner = Inner { directory, handle, boot, replayed: Mutex::default() };
        Ok(Journal { inner: Arc::new(inner), call: None })
    }

    /// The same journals, for what one call writes.
    pub(crate) fn of_call(&self, session: &SessionId, item: ItemId) -> Journal {
        let call = Some(CallOf { session: session.clone(), item });
        Journal { inner: self.inner.clone(), call }
    }

    /// What became of patches of this session that were cut off, as far as this server's start has
    /// ended them: by the call, in words for whoever reads its result.
    pub(crate) fn found(&self, session: &SessionId) -> Found {
        let mut found = Found::new();
        let replayed = self.inner.replayed.lock().unwrap_or_else(PoisonError::into_inner);
        for one in replayed.iter() {
            let Some(call) = one.call.as_ref().filter(|call| call.session == *session) else {
                continue;
            };
            let words = one.in_words();
            let all = match found.get(&call.item) {
                Some(before) => format!("{before} {words}"),
                None => words,
            };
            found.insert(call.item, all.into());
        }
        found
    }

    /// Where the journals are.
    pub fn directory(&self) -> &Path {
        &self.inner.directory
    }

    /// Writes down the names that will be used. Nothing may have been made under them yet.
    pub(crate) fn begin(
        &self,
        root: &Root,
        steps: Vec<Named>,
        made: Vec<String>,
    ) -> Result<Open, PatchError> {
        let id = root.id();
        let root = RootId::new(root.path(), id.device, id.inode, self.inner.boot.clone());
        let line = Line::Begun(Begun { root, steps, made, call: self.call.clone() });
        let begun = || -> io::Result<Open> {
            halt::point();
            let (file, path) = self.create()?;
            halt::point();
            let mut open = Open { file, path, journal: self.clone() };
            if let Err(error) = open.write(&line) {
                open.remove();
                return Err(error);
            }
            Ok(open)
        };
        begun().map_err(|error| self.failed(error))
    }

    /// A new file that is locked. A server that starts may lock it first and remove it.
    fn create(&self) -> io::Result<(File, PathBuf)> {
        for _ in 0..TRIES_MAX {
            let name = format!("{}{ENDING}", uuid::Uuid::new_v4().simple());
            let path = self.inner.directory.join(name);
            let mut options = OpenOptions::new();
            let file = options.append(true).create_new(true).mode(FILE_MODE).open(&path)?;
            if file.try_lock().is_ok() && file.metadata()?.nlink() == 1 {
                return Ok((file, path));
            }
        }
        Err(io::Error::other("another server takes every file in it"))
    }

    fn failed(&self, error: io::Error) -> PatchError {
        let directory = self.inner.directory.to_string_lossy();
        PatchError::io(&directory, "write the journal of patches there", error)
    }
}

/// The journal of one patch under way. Dropped without `remove` it stays, for the next start.
#[derive(Debug)]
pub(crate) struct Open {
    file: File,
    path: PathBuf,
    journal: Journal,
}

impl Open {
    /// Writes down what is old and what is new. If it is to outlast the machine, it does when this
    /// returns.
    pub(crate) fn ready(&mut self, facts: Vec<Facts>, flush: Flush) -> Result<(), PatchError> {
        let ready = self.write(&Line::Ready { facts }).and_then(|()| match flush {
            Flush::No => Ok(()),
            Flush::Yes => {
                self.file.sync_data()?;
                halt::point();
                self.journal.inner.handle.sync_all()?;
                halt::point();
                Ok(())
            }
        });
        ready.map_err(|error| self.journal.failed(error))
    }

    /// Says that all is in place. If it cannot be said, the files tell.
    pub(crate) fn done(&mut self) {
        let _ = self.write(&Line::Done);
    }

    pub(crate) fn remove(self) {
        halt::point();
        if let Err(error) = std::fs::remove_file(&self.path) {
            let path = self.path.display();
            tracing::warn!(%error, "the journal {path} of an ended patch cannot be removed");
        }
        halt::point();
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        halt::point();
        self.file.write_all(&bytes)?;
        halt::point();
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    Yes,
    No,
}

/// What is left of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
struct Record {
    begun: Option<Begun>,
    facts: Option<Vec<Facts>>,
    done: bool,
}

impl Record {
    /// Whole lines in order; an error for a file that is none of ours.
    fn read(file: &mut File) -> io::Result<Record> {
        let facts = file.metadata()?;
        let is_own = facts.is_file()
            && facts.uid() == rustix::process::geteuid().as_raw()
            && facts.mode() & 0o022 == 0;
        if !is_own || facts.len() > FILE_BYTES_MAX {
            return Err(io::Error::other("not a journal of this server"));
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        Record::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> io::Result<Record> {
        let mut record = Record::default();
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let Some(line) = line.strip_suffix(b"\n") else { break };
            match serde_json::from_slice(line)? {
                Line::Begun(begun) if record.begun.is_none() && begun.is_usable() => {
                    record.begun = Some(begun);
                }
                Line::Ready { facts } if record.begun.is_some() => record.facts = Some(facts),
                Line::Done if record.facts.is_some() => record.done = true,
                Line::Begun(_) | Line::Ready { .. } | Line::Done => {
                    return Err(io::Error::other("its lines make no sense"));
                }
            }
        }
        let steps = record.begun.as_ref().map_or(0, |begun| begun.steps.len());
        let facts = record.facts.as_ref().map_or(steps, Vec::len);
        // A section may move a file, which is two steps.
        if facts != steps || steps > STEPS_MAX {
            return Err(io::Error::other("its lines do not fit together"));
        }
        Ok(record)
    }
}
