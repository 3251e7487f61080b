//! The directories a patch writes in, opened once each and held until it is done.
//!
//! What is made here is removed again if the patch fails, unless something else came into it.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::patch::error::PatchError;
use crate::patch::halt;
use crate::patch::path;
use crate::patch::root::Root;

pub(in crate::patch) struct Directories<'a> {
    root: &'a Root,
    open: HashMap<String, OwnedFd>,
    /// Outermost first.
    made: Vec<String>,
}

impl<'a> Directories<'a> {
    pub(in crate::patch) fn new(root: &'a Root) -> Self {
        Self { root, open: HashMap::new(), made: Vec::new() }
    }

    /// What was made, outermost first.
    pub(in crate::patch) fn into_made(self) -> Vec<String> {
        self.made
    }

    /// Directories that files at these paths need and that are not there, outermost first.
    pub(in crate::patch) fn missing<'p>(
        &self,
        paths: impl Iterator<Item = &'p str>,
    ) -> Vec<String> {
        let mut missing: Vec<String> = Vec::new();
        for path in paths {
            let above = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
            for directory in above {
                let is_known = missing.iter().any(|known| known == directory);
                if !is_known && matches!(self.root.directory(directory), Err(Errno::NOENT)) {
                    missing.push(directory.to_owned());
                }
            }
        }
        missing
    }

    /// Opens the directory of a file that was there when the patch was planned.
    pub(in crate::patch) fn open(&mut self, path: &str) -> Result<(), PatchError> {
        let parent = path::split(path).0;
        if self.open.contains_key(parent) {
            return Ok(());
        }
        match self.root.directory(parent) {
            Ok(handle) => {
                self.open.insert(parent.to_owned(), handle);
                Ok(())
            }
            Err(Errno::NOENT) => Err(PatchError::Changed { path: path.to_owned() }),
            Err(errno) => Err(self.root.no_directory(path, errno)),
        }
    }

    /// Opens the directory of a new file, and makes what is missing of it.
    pub(in crate::patch) fn open_or_make(&mut self, path: &str) -> Result<(), PatchError> {
        let parent = path::split(path).0;
        if self.open.contains_key(parent) {
            return Ok(());
        }
        let handle = match self.root.directory(parent) {
            Ok(handle) => handle,
            Err(Errno::NOENT) if !parent.is_empty() => self.make(parent)?,
            Err(errno) => return Err(self.root.no_directory(path, errno)),
        };
        self.open.insert(parent.to_owned(), handle);
        Ok(())
    }

    fn make(&mut self, directory: &str) -> Result<OwnedFd, PatchError> {
        self.open_or_make(directory)?;
        let above = self.of(directory)?;
        let name = path::split(directory).1;
        halt::point();
        let made = rustix::fs::mkdirat(above, name, Mode::from_raw_mode(0o777));
        halt::point();
        let is_made = match made {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(PatchError::io(directory, "make this directory", errno)),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(above, name, flags, Mode::empty());
        if is_made {
            self.made.push(directory.to_owned());
        }
        handle.map_err(|errno| self.root.no_directory(directory, errno))
    }

    /// The directory of a path, which must have been opened.
    pub(in crate::patch) fn of(&self, path: &str) -> Result<&OwnedFd, PatchError> {
        self.open
            .get(path::split(path).0)
            .ok_or_else(|| PatchError::io(path, "use its directory", Errno::BADF))
    }

    pub(in crate::patch) fn remove_made(&mut self) {
        while let Some(directory) = self.made.pop() {
            if let Ok(above) = self.of(&directory) {
                // One that is not empty is no longer ours alone.
                let name = path::split(&directory).1;
                halt::point();
                let _ = rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR);
            }
        }
    }

    /// Makes the new names last through a power cut, as far as the file system can.
    pub(in crate::patch) fn flush(&self) {
        for handle in self.open.values() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            halt::point();
            if let Ok(readable) = rustix::fs::openat(handle, ".", flags, Mode::empty()) {
                let _ = rustix::fs::fsync(readable);
            }
        }
    }
}
