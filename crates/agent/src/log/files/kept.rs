//! Contents of files before they were edited, in the session's `.blobs` folder by their hash.
//!
//! Written once, under a name beside and then renamed; one whose bytes are not what its name says
//! is none.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use bytes::Bytes;
use polyloop_session::SessionId;
use sha2::{Digest as _, Sha256};

use super::super::KEPT_BYTES_MAX;
use super::{FILE_MODE, Store, make_dir};

const BEGINNING: &str = "kept-";

/// Gives the files to flush; nothing where there is no room.
pub(super) fn keep(
    store: &Store,
    id: &SessionId,
    hash: &str,
    content: &[u8],
) -> io::Result<Option<Vec<File>>> {
    let dir = store.path(id, "blobs");
    make_dir(&dir)?;
    let name = dir.join(format!("{BEGINNING}{hash}"));
    if name.exists() {
        return Ok(Some(Vec::new()));
    }
    if kept_bytes(&dir)? + content.len() as u64 > KEPT_BYTES_MAX {
        return Ok(None);
    }
    let beside = dir.join(format!("{BEGINNING}{hash}.tmp"));
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(FILE_MODE);
    let mut file = options.open(&beside)?;
    if let Err(error) = file.write_all(content) {
        let _ = std::fs::remove_file(&beside);
        return Err(error);
    }
    std::fs::rename(&beside, &name)?;
    Ok(Some(vec![file, File::open(&dir)?, File::open(&store.dir)?]))
}

fn kept_bytes(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for file in std::fs::read_dir(dir)? {
        let file = file?;
        if file.file_name().to_str().is_some_and(|name| name.starts_with(BEGINNING)) {
            bytes += file.metadata()?.len();
        }
    }
    Ok(bytes)
}

pub(super) fn read(store: &Store, id: &SessionId, hash: &str) -> io::Result<Option<Bytes>> {
    let ours = hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    if !ours {
        return Ok(None);
    }
    let bytes = match std::fs::read(store.path(id, "blobs").join(format!("{BEGINNING}{hash}"))) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_whole = format!("{:x}", Sha256::digest(&bytes)) == hash;
    Ok(is_whole.then(|| Bytes::from(bytes)))
}
