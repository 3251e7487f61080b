//! What becomes of a session after a flush of it has failed.
//!
//! The kernel tells of lost pages once and then calls them clean: whoever flushes again is told
//! that all is well, and reads what is not on the disk. So nothing is written to the session any
//! more while this server runs, and a mark beside it says why. Opened by the next server, its files
//! are written anew from what is found, under other names, flushed and put in place; then the mark
//! goes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use polyloop_session::SessionId;

use super::super::LogError;
use super::disk::Access;
use super::{Store, lock};

/// The ending of the mark.
pub(super) const MARK: &str = "unflushed";
const BESIDE: &str = "anew";
const PIECE_BYTES: usize = 256 * 1024;

impl Store {
    /// Whether a session may be written.
    pub(super) fn may_go_on(&self, id: &SessionId) -> Result<(), LogError> {
        match lock(&self.failed).get(id) {
            None => Ok(()),
            Some(why) => Err(LogError::store(
                format!("session {id}"),
                format!(
                    "a flush to disk failed: {why}. What was shown before can be read; the session \
                     goes on after the server was started again"
                ),
            )),
        }
    }

    pub(super) fn flush_failed(&self, id: &SessionId, error: &io::Error) {
        lock(&self.failed).entry(id.clone()).or_insert_with(|| error.to_string());
        let mark = self.disk.open(&self.path(id, MARK), Access::MakeAnew);
        // A disk that takes no mark keeps the session from nobody: its next server flushes it, and
        // may believe what it is told.
        if let Err(error) = mark.and_then(|_| self.disk.flush_names(&self.dir)) {
            tracing::warn!(session = %id, %error, "a failed flush could not be marked");
        }
    }

    pub(super) fn is_marked(&self, id: &SessionId) -> bool {
        self.path(id, MARK).exists()
    }

    /// Writes the files of a marked session anew.
    pub(super) fn write_anew(&self, id: &SessionId) -> io::Result<()> {
        if !self.is_marked(id) {
            return Ok(());
        }
        self.copy_in_place(&self.path(id, "jsonl"))?;
        let dir = self.path(id, "blobs");
        if dir.is_dir() {
            for file in std::fs::read_dir(&dir)? {
                let file = file?;
                if file.file_type()?.is_file() {
                    self.copy_in_place(&file.path())?;
                }
            }
            self.disk.flush_names(&dir)?;
        }
        self.disk.flush_names(&self.dir)?;
        std::fs::remove_file(self.path(id, MARK))
    }

    /// The same bytes in a new file, which are on the disk before it takes the old one's place.
    fn copy_in_place(&self, path: &Path) -> io::Result<()> {
        let mut from = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let beside = path.with_added_extension(BESIDE);
        let copy = self.disk.open(&beside, Access::MakeAnew)?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = from.read(&mut piece)?;
            match piece.get(..read) {
                None | Some([]) => break,
                Some(piece) => self.disk.write(&copy, piece)?,
            }
        }
        self.disk.flush(&copy)?;
        self.disk.rename(&beside, path)
    }
}
