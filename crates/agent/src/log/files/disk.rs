//! The few things that the store does to files, in one place, so that a test can let each of them
//! fail as a disk does. Decides nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Conversations are their user's own.
const FILE_MODE: u32 = 0o600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read and to add to its end.
    Append,
    /// The same; it is made if it is not there.
    AppendOrMake,
    /// Whatever it held is gone.
    MakeAnew,
}

/// Each does what its default does, or fails.
pub trait Disk: Send + Sync + 'static {
    fn open(&self, path: &Path, access: Access) -> io::Result<File> {
        let mut options = OpenOptions::new();
        match access {
            Access::Append => options.read(true).append(true),
            Access::AppendOrMake => options.read(true).append(true).create(true),
            Access::MakeAnew => options.write(true).create(true).truncate(true),
        };
        options.mode(FILE_MODE).open(path)
    }

    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    /// Leaves that many bytes of it.
    fn cut(&self, file: &File, bytes: u64) -> io::Result<()> {
        file.set_len(bytes)
    }

    /// Its content reaches the disk.
    fn flush(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    /// A folder's names reach the disk.
    fn flush_names(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }
}

/// The disk itself.
pub struct RealDisk;

impl Disk for RealDisk {}
