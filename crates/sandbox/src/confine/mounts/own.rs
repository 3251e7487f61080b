//! What the sandbox has of its own: `/proc` with its own processes alone, and `/dev` with the
//! devices that are none.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::{Attr, TAME, attach, file_system, symlink, taken, tmpfs};
use crate::Limits;

/// Devices that do no harm.
const DEVICES: &[&str] = &["full", "null", "random", "tty", "urandom", "zero"];

const LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Shows the processes of this namespace alone. Becomes read-only when the sandbox is closed: its
/// files for changing the system look at who one is, not at what one may do.
pub(super) fn processes() -> io::Result<()> {
    let proc = file_system("proc", &[], TAME | Attr::MOUNT_ATTR_NOEXEC)?;
    attach(&proc, Path::new("/proc"))
}

/// The machine's devices, taken before it loses them.
pub(super) struct Devices(Vec<(PathBuf, OwnedFd)>);

impl Devices {
    pub(super) fn take() -> io::Result<Devices> {
        let attributes = Attr::MOUNT_ATTR_NOSUID | Attr::MOUNT_ATTR_NOEXEC;
        let mut devices = Vec::new();
        for path in DEVICES.iter().map(|name| Path::new("/dev").join(name)) {
            match taken(&path, attributes) {
                Ok(device) => devices.push((path, device)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Devices(devices))
    }

    /// Makes a new `/dev` with them. Returns what in it may be written to, besides its own memory
    /// file system.
    pub(super) fn put(self, limits: &Limits) -> io::Result<Vec<PathBuf>> {
        let dev = tmpfs(&[("mode", "0755"), ("size", "1m")], TAME | Attr::MOUNT_ATTR_NOEXEC)?;
        attach(&dev, Path::new("/dev"))?;
        for (path, device) in &self.0 {
            File::create_new(path)?;
            attach(device, path)?;
        }
        for (name, target) in LINKS {
            symlink(target, Path::new("/dev").join(name))?;
        }
        fs::create_dir("/dev/pts")?;
        let options = [("mode", "0620"), ("ptmxmode", "0666")];
        let terminals = Attr::MOUNT_ATTR_NOSUID | Attr::MOUNT_ATTR_NOEXEC;
        attach(&file_system("devpts", &options, terminals)?, Path::new("/dev/pts"))?;
        fs::create_dir("/dev/shm")?;
        let bytes = limits.temporary_bytes.to_string();
        let shared = tmpfs(&[("mode", "1777"), ("size", &bytes)], TAME)?;
        attach(&shared, Path::new("/dev/shm"))?;
        Ok(self.0.into_iter().map(|(path, _)| path).chain(["/dev/pts".into()]).collect())
    }
}
