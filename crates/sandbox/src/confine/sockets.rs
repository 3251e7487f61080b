//! Finds the sockets with a name in the file system: other programs wait behind them (an agent
//! with keys, a container engine, a bus), and a read-only file system does not keep anybody from
//! talking to them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// All sockets that can be found now: those of the server's network namespace, and those that
/// somebody mounted as a single file, as into a container.
pub(super) fn outside() -> Result<Vec<PathBuf>, String> {
    let read = |path: &str| fs::read(path).map_err(|error| format!("{path}: {error}"));
    let mut paths = bound(&read("/proc/self/net/unix")?);
    paths.extend(mounted(&read("/proc/self/mountinfo")?));
    Ok(paths.into_iter().filter(|path| is_socket(path)).collect())
}

pub(super) fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

/// The paths in `/proc/net/unix`: the eighth field, to the end of the line. Abstract names begin
/// with `@`, and a relative one cannot be found.
fn bound(table: &[u8]) -> BTreeSet<PathBuf> {
    let lines = table.split(|byte| *byte == b'\n').skip(1);
    lines.filter_map(|line| path_after(line, 7)).filter(|path| path.is_absolute()).collect()
}

fn path_after(line: &[u8], fields: usize) -> Option<PathBuf> {
    let mut rest = line.trim_ascii_start();
    for _ in 0..fields {
        let end = rest.iter().position(|byte| *byte == b' ')?;
        rest = rest[end..].trim_ascii_start();
    }
    (!rest.is_empty()).then(|| PathBuf::from(OsString::from_vec(rest.to_vec())))
}

/// The mount points in `/proc/self/mountinfo`: the fifth field, with some bytes in octal.
fn mounted(table: &[u8]) -> Vec<PathBuf> {
    let lines = table.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4)).map(unescaped).collect()
}

fn unescaped(field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [byte, after @ ..] = rest {
        let octal = after.get(..3).filter(|_| *byte == b'\\');
        let code = octal.and_then(|digits| str::from_utf8(digits).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(code) => {
                path.push(code);
                rest = &after[3..];
            }
            None => {
                path.push(*byte);
                rest = after;
            }
        }
    }
    Path::new(std::ffi::OsStr::from_bytes(&path)).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_names_are_read() {
        let table = b"Num               RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 17406 /run/a b.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01  1740 @/tmp/.X11-unix/X0\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 17407 relative\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 17408\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 17406 /run/a b.sock\n";
        assert_eq!(bound(table), BTreeSet::from([PathBuf::from("/run/a b.sock")]));
        assert!(bound(b"").is_empty());
    }

    #[test]
    fn mount_points_are_read() {
        let table = b"22 27 0:21 / /proc rw - proc proc rw\n\
            23 27 0:22 /x /a\\040b\\134c rw shared:1 - ext4 /dev/vda rw\nbroken\n";
        assert_eq!(mounted(table), ["/proc", "/a b\\c"].map(PathBuf::from));
        assert_eq!(unescaped(b"/a\\04"), PathBuf::from("/a\\04"));
    }
}
