//! Keeps the whole output of a command that prints more than the model is shown, in a file of the
//! session that the reading tools may open.
//!
//! A comfort: if the file cannot be written, the output is as it would be without.

use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

/// A longer name would not fit into the note.
const PATH_BYTES_MAX: usize = 400;

/// Of one command; what comes after is left out.
pub const OUTPUT_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

pub(super) struct Spill {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Spill {
    /// Begins with what was printed before.
    pub(super) async fn begin(outputs: &Path, before: &str) -> Option<Spill> {
        let path = outputs.join(format!("{}.txt", uuid::Uuid::new_v4()));
        if path.as_os_str().len() > PATH_BYTES_MAX {
            return None;
        }
        // Nobody's but the server's, like the session's log.
        let mut make = tokio::fs::DirBuilder::new();
        make.recursive(true).mode(0o700).create(outputs).await.ok()?;
        let mut make = File::options();
        let file = make.write(true).create_new(true).mode(0o600).open(&path).await.ok()?;
        let mut spill = Spill { path, file, bytes: 0 };
        spill.push(before).await;
        Some(spill)
    }

    pub(super) async fn push(&mut self, text: &str) {
        let room = usize::try_from(OUTPUT_FILE_BYTES_MAX.saturating_sub(self.bytes));
        let end = text.floor_char_boundary(room.unwrap_or(usize::MAX));
        let part = text.get(..end).unwrap_or_default();
        self.bytes += part.len() as u64;
        if self.file.write_all(part.as_bytes()).await.is_err() {
            // A file with a gap would lie; one that ends early is told as such.
            self.bytes = OUTPUT_FILE_BYTES_MAX;
        }
    }

    /// Where the output is, in words.
    pub(super) async fn end(mut self, total_bytes: usize) -> Option<String> {
        self.file.flush().await.ok()?;
        let path = self.path.display();
        let kept = self.file.metadata().await.ok()?.len();
        Some(match usize::try_from(kept).is_ok_and(|kept| kept >= total_bytes) {
            true => format!("the whole output is in {path}"),
            false => format!("the first {kept} bytes of the output are in {path}"),
        })
    }
}
