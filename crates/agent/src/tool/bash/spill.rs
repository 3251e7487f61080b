//! Keeps the whole output of a command that prints more than the model is shown, in a file of the
//! session that the reading tools may open.
//!
//! A comfort: if the file cannot be written, the output is as it would be without. A session keeps
//! so much and no more: what is asked for again is what was printed last, so the oldest go first.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

/// A longer name would not fit into the note.
const PATH_BYTES_MAX: usize = 370;

/// Of one command; what comes after is left out.
pub const OUTPUT_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Of all commands of a session together.
pub const OUTPUTS_BYTES_MAX: u64 = 128 * 1024 * 1024;

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
        let kept = outputs.to_owned();
        tokio::task::spawn_blocking(move || make_room(&kept)).await.ok()?.ok()?;
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
        let which = match usize::try_from(kept).is_ok_and(|kept| kept >= total_bytes) {
            true => "the whole output is".to_owned(),
            false => format!("the first {kept} bytes of the output are"),
        };
        Some(format!("{which} kept until newer ones need the room: {path}"))
    }
}

/// Removes the oldest outputs until one more has room. Blocks.
fn make_room(outputs: &Path) -> io::Result<()> {
    let mut kept: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
    for entry in std::fs::read_dir(outputs)? {
        let entry = entry?;
        let facts = entry.metadata()?;
        kept.push((facts.modified()?, entry.path(), facts.len()));
    }
    kept.sort_unstable();
    let mut bytes: u64 = kept.iter().map(|(_, _, bytes)| bytes).sum();
    for (_, path, freed) in kept {
        if bytes <= OUTPUTS_BYTES_MAX - OUTPUT_FILE_BYTES_MAX {
            break;
        }
        std::fs::remove_file(path)?;
        bytes -= freed;
    }
    Ok(())
}
