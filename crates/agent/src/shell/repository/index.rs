//! The entries of git's index that are repositories themselves.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::config::Hash;

/// What a repository inside of a repository is marked with.
const GITLINK: u32 = 0o160_000;

/// Bytes of an entry before the name of its object, and where in them its mode is.
const STAT_BYTES: usize = 40;
const MODE_AT: usize = 24;

/// Marks an entry with two more bytes of flags.
const EXTENDED: u16 = 0x4000;

/// The paths of repositories inside of this one; none if the index is not understood.
pub(super) fn repositories(index: &[u8], hash: Hash) -> Option<Vec<PathBuf>> {
    let mut rest = index.strip_prefix(b"DIRC")?;
    let version = number(&mut rest)?;
    let count = number(&mut rest)?;
    let name_bytes = match hash {
        Hash::Sha1 => 20,
        Hash::Sha256 => 32,
    };
    let mut found = Vec::new();
    let mut path: Vec<u8> = Vec::new();
    for _ in 0..count {
        let start = rest.len();
        let stat = take(&mut rest, STAT_BYTES)?;
        let mode = u32::from_be_bytes(stat.get(MODE_AT..MODE_AT + 4)?.try_into().ok()?);
        take(&mut rest, name_bytes)?;
        let flags = u16::from_be_bytes(take(&mut rest, 2)?.try_into().ok()?);
        if flags & EXTENDED != 0 {
            take(&mut rest, 2)?;
        }
        match version {
            2 | 3 => path.clear(),
            4 => {
                let removed = varint(&mut rest)?;
                path.truncate(path.len().checked_sub(removed)?);
            }
            _ => return None,
        }
        let end = rest.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(take(&mut rest, end)?);
        match version {
            // One to eight NUL, so that the next entry begins at a multiple of eight.
            2 | 3 => {
                let read = start - rest.len();
                take(&mut rest, 8 - read % 8)?
            }
            _ => take(&mut rest, 1)?,
        };
        if mode & 0o170_000 == GITLINK {
            found.push(PathBuf::from(OsStr::from_bytes(&path)));
        }
    }
    // More entries in another file are not looked for.
    let shared = rest.windows(4).any(|bytes| bytes == b"link");
    (!shared).then_some(found)
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(bytes)?;
    *rest = after;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(take(rest, 4)?.try_into().ok()?))
}

/// As in git's packs: each byte but the last is marked, and adds one to what came before.
fn varint(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0usize;
    loop {
        let [byte] = take(rest, 1)? else { return None };
        value = value.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?.checked_mul(128)?;
    }
}
