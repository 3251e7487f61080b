//! Renamings that replace nothing unseen, each with what to do where a file system lacks it.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, RenameFlags, linkat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::patch::halt;
use crate::patch::root::look;

/// Exchanges what two names of one directory mean, in one step.
pub(crate) fn exchange(directory: &OwnedFd, one: &str, other: &str) -> Result<(), Errno> {
    if halt::is_plain() {
        return Err(Errno::INVAL);
    }
    halt::point();
    let exchanged = renameat_with(directory, one, directory, other, RenameFlags::EXCHANGE);
    halt::point();
    exchanged
}

/// Renames over whatever is there: a spare name, or a file that is known.
pub(super) fn put_over(directory: &OwnedFd, from: &str, to: &str) -> Result<(), Errno> {
    halt::point();
    let put = renameat(directory, from, directory, to);
    halt::point();
    put
}

/// Renames, but only to a name that is free.
pub(crate) fn put_where_nothing_is(directory: &OwnedFd, from: &str, to: &str) -> Result<(), Errno> {
    halt::point();
    let renamed = match halt::is_plain() {
        true => Err(Errno::INVAL),
        false => renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE),
    };
    let put = match renamed {
        Err(errno) if is_unsupported(errno) => link_where_nothing_is(directory, from, to),
        other => other,
    };
    halt::point();
    put
}

/// A link replaces nothing either, and is older.
pub(super) fn link_where_nothing_is(
    directory: &OwnedFd,
    from: &str,
    to: &str,
) -> Result<(), Errno> {
    match linkat(directory, from, directory, to, AtFlags::empty()) {
        Ok(()) => {
            halt::point();
            unlinkat(directory, from, AtFlags::empty())
        }
        Err(Errno::EXIST) => Err(Errno::EXIST),
        // Some network file systems have neither; looking first is all that is left.
        Err(_) => match look(directory, to) {
            Err(Errno::NOENT) => renameat(directory, from, directory, to),
            Ok(_) => Err(Errno::EXIST),
            Err(errno) => Err(errno),
        },
    }
}

/// Whether the file system, or the kernel, does not know this kind of renaming.
pub(crate) fn is_unsupported(errno: Errno) -> bool {
    errno == Errno::INVAL || errno == Errno::NOSYS || errno == Errno::OPNOTSUPP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_name_stays_taken_also_by_link() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("new"), "new").unwrap();
        std::fs::write(directory.path().join("taken"), "old").unwrap();
        let handle = OwnedFd::from(std::fs::File::open(directory.path()).unwrap());
        for put in [put_where_nothing_is, link_where_nothing_is] {
            assert_eq!(put(&handle, "new", "taken"), Err(Errno::EXIST));
            assert_eq!(put(&handle, "new", "free"), Ok(()));
            assert_eq!(put(&handle, "free", "new"), Ok(()));
            assert!(!directory.path().join("free").exists());
        }
        assert_eq!(std::fs::read(directory.path().join("taken")).unwrap(), b"old");
        assert_eq!(std::fs::read(directory.path().join("new")).unwrap(), b"new");
    }
}
