//! The file system as the command sees it: the machine's, read-only, with a few things replaced.
//!
//! Never follows a link that somebody could have put there, and works on open files rather than on
//! names where a name could change.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags as Attr, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount,
    open_tree,
};

use super::sockets::is_socket;
use crate::{Sandbox, TEMPORARY_DIRECTORY};

mod hold;
mod own;

/// What a writable file system may not bring in.
const TAME: Attr = Attr::MOUNT_ATTR_NOSUID.union(Attr::MOUNT_ATTR_NODEV);
const READ_ONLY: Attr = TAME.union(Attr::MOUNT_ATTR_RDONLY);

/// Replaced by empty directories: sockets and files of other programs live there.
const EMPTIED: &[&str] = &["/run", "/var/run"];

/// What programs need of them, as far as it is there: names of name servers, and the programs
/// themselves on systems that keep them here.
const KEPT: &[&str] = &[
    "/run/current-system",
    "/run/booted-system",
    "/run/opengl-driver",
    "/run/systemd/resolve/resolv.conf",
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/NetworkManager/resolv.conf",
    "/run/resolvconf/resolv.conf",
];

/// How many files fit into a temporary directory.
const TEMPORARY_FILES_MAX: &str = "262144";

/// What there is in the end, for the layers that come next.
pub(super) struct View {
    /// Directories that can be written to.
    pub(super) writable: Vec<PathBuf>,
    pub(super) devices: Vec<PathBuf>,
    /// What will not be readable, outside the writable directories.
    pub(super) hidden: Vec<PathBuf>,
}

/// Builds it in a mount namespace of its own, but for what is held. The error is for people.
pub(super) fn build(sandbox: &Sandbox) -> Result<View, String> {
    // What is mounted on the machine from now on is not mounted here.
    // SAFETY: a system call without pointers; this process has one thread.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(format!("a mount namespace: {}", io::Error::last_os_error()));
    }
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(named("/"))?;

    // Taken before everything becomes read-only, put back after.
    let roots: Vec<(&Path, OwnedFd)> = sandbox
        .roots()
        .into_iter()
        .map(|root| Ok((root, root_taken(root).map_err(named(root))?)))
        .collect::<Result<_, String>>()?;
    let kept: Vec<(&Path, OwnedFd)> = KEPT
        .iter()
        .map(Path::new)
        .filter_map(|path| Some((path, taken(path, READ_ONLY).ok()?)))
        .collect();
    let devices = own::Devices::take().map_err(named("/dev"))?;

    set_attributes(&CWD, "/", READ_ONLY, libc::AT_RECURSIVE).map_err(named("/"))?;

    let mut writable = temporary(sandbox)?;
    for path in EMPTIED.iter().map(Path::new).filter(|path| is_real_directory(path)) {
        let empty = tmpfs(&[("mode", "0755"), ("size", "1m")], TAME).map_err(named(path))?;
        attach(&empty, path).map_err(named(path))?;
    }
    own::processes().map_err(named("/proc"))?;
    let devices = devices.put(&sandbox.limits).map_err(named("/dev"))?;
    writable.push("/dev/shm".into());
    for (path, tree) in kept.iter().chain(&roots) {
        put_back(tree, path).map_err(named(path))?;
    }
    writable.extend(sandbox.roots().into_iter().map(Path::to_path_buf));

    let hidden = hold::hidden(sandbox).into_iter().filter(|path| sandbox.root_of(path).is_none());
    Ok(View { writable, devices, hidden: hidden.collect() })
}

/// Holds in place what may not be changed, and covers what may not be seen.
pub(super) fn hold(sandbox: &Sandbox, sockets: &[PathBuf]) -> Result<(), String> {
    hold::everything(sandbox, sockets)
}

/// The last touch: what was needed for building is closed.
pub(super) fn close() -> Result<(), String> {
    for path in ["/proc", "/dev"].into_iter().chain(EMPTIED.iter().copied()) {
        if is_real_directory(Path::new(path)) {
            // Not what is mounted below: the directories for work may be there.
            set_attributes(&CWD, path, Attr::MOUNT_ATTR_RDONLY, 0).map_err(named(path))?;
        }
    }
    Ok(())
}

/// The temporary directories, each a memory file system, unless a directory for work holds it.
fn temporary(sandbox: &Sandbox) -> Result<Vec<PathBuf>, String> {
    let bytes = sandbox.limits.temporary_bytes.to_string();
    let options = [("mode", "1777"), ("size", &bytes), ("nr_inodes", TEMPORARY_FILES_MAX)];
    let mut made = Vec::new();
    for path in [TEMPORARY_DIRECTORY, "/var/tmp"].map(Path::new) {
        // One may be a link to the other, or missing.
        let is_own = is_real_directory(path);
        let is_work = sandbox.roots().iter().any(|root| path.starts_with(root));
        if is_own && !is_work {
            let empty = tmpfs(&options, TAME).map_err(named(path))?;
            attach(&empty, path).map_err(named(path))?;
            made.push(path.to_path_buf());
        }
    }
    Ok(made)
}

fn is_real_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// Puts a tree where it was, making the way to it where that was emptied.
fn put_back(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    let is_directory = fstat(tree).map(|stat| FileType::from_raw_mode(stat.st_mode))?.is_dir();
    if is_directory {
        fs::create_dir_all(path)?;
    } else if fs::symlink_metadata(path).is_err() {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::File::create_new(path)?;
    }
    attach(tree, path)
}

/// A copy of a directory for work.
fn root_taken(root: &Path) -> io::Result<OwnedFd> {
    let place = itself(root)?;
    if !FileType::from_raw_mode(fstat(&place)?.st_mode).is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    copied(&place, TAME)
}

/// A copy of what is mounted at a path and below, attached nowhere.
fn taken(path: &Path, attributes: Attr) -> io::Result<OwnedFd> {
    copied(&itself(path)?, attributes)
}

/// The same of something open.
fn copied(place: &OwnedFd, attributes: Attr) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = open_tree(place, "", flags)?;
    set_attributes(&tree, "", attributes, libc::AT_RECURSIVE | libc::AT_EMPTY_PATH)?;
    Ok(tree)
}

/// Opens what has this name, be it a link; but no directory on the way may be one.
fn itself(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(CWD, path, flags, Mode::empty(), resolve)?)
}

fn attach(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    attach_on(tree, &itself(path)?)
}

fn attach_on(tree: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, "", place, "", flags)?)
}

fn tmpfs(options: &[(&str, &str)], attributes: Attr) -> io::Result<OwnedFd> {
    file_system("tmpfs", options, attributes)
}

/// A new file system, attached nowhere.
fn file_system(kind: &str, options: &[(&str, &str)], attributes: Attr) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&context, *name, *value)?;
    }
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

fn set_attributes(
    place: &impl AsFd,
    path: &str,
    attributes: Attr,
    flags: libc::c_int,
) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let path = std::ffi::CString::new(path)?;
    let wanted = libc::mount_attr {
        attr_set: u64::from(attributes.bits()),
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the path and the structure are valid for reading during the call, and the size is
    // that of the structure.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            place.as_fd().as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Errors for people: the path, and what the system says.
fn named<E: std::fmt::Display>(path: impl AsRef<Path>) -> impl Fn(E) -> String {
    move |error| format!("{}: cannot be mounted: {error}", path.as_ref().display())
}
