//! The file of the audit log: only ever added to, and opened anew when somebody moved it away.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// It says who did what.
const FILE_MODE: u32 = 0o600;

pub(super) struct AuditFile {
    path: PathBuf,
    file: File,
    /// The last line did not get in whole.
    torn: bool,
    /// The last write failed, and people were told.
    failing: bool,
}

impl AuditFile {
    pub fn open(path: &Path) -> io::Result<AuditFile> {
        Ok(AuditFile { path: path.to_owned(), file: open(path)?, torn: false, failing: false })
    }

    /// Adds whole lines. Where that fails, people hear of it once until it goes well again.
    pub fn append(&mut self, lines: &str) -> io::Result<()> {
        let done = self.try_append(lines);
        let path = self.path.display();
        match &done {
            Ok(()) if self.failing => tracing::warn!(%path, "the audit log is written again"),
            Err(error) if !self.failing => {
                tracing::error!(%path, %error, "the audit log cannot be written; notes are lost");
            }
            Ok(()) | Err(_) => {}
        }
        self.failing = done.is_err();
        done
    }

    fn try_append(&mut self, lines: &str) -> io::Result<()> {
        if !self.is_in_place() {
            self.file = open(&self.path)?;
            self.torn = false;
        }
        if self.torn {
            self.file.write_all(b"\n")?;
            self.torn = false;
        }
        let mut rest = lines.as_bytes();
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    rest = rest.get(written..).unwrap_or_default();
                    self.torn = !rest.is_empty();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether the path still leads to the file that is open: whoever rotates logs moves it away.
    fn is_in_place(&self) -> bool {
        let (Ok(open), Ok(there)) = (self.file.metadata(), std::fs::metadata(&self.path)) else {
            return false;
        };
        (open.dev(), open.ino()) == (there.dev(), there.ino())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(path)
}
