//! What a command is kept from: the description, without the means.
//!
//! Never touches the system: whether a path exists, and what it is, shows when the sandbox is set
//! up, and what does not fit then is a reason not to run the command.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Where a confined command may keep what it needs only for itself: a memory file system of its
/// own, empty at the start and gone at the end. The caller names it in `TMPDIR`.
pub const TEMPORARY_DIRECTORY: &str = "/tmp";

/// Directories that are the system's, or that the sandbox replaces by its own.
const SYSTEM: &[&str] =
    &["/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr"];

/// Where nothing at all is a place to work in.
const KERNEL: &[&str] = &["/dev", "/proc", "/sys"];

/// What the command is kept from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// Nothing: the command may do what the server's user may do.
    None,
    /// All that the sandbox forbids; or the command is not run.
    Sandbox(Box<Sandbox>),
}

/// What a confined command may do. It sees the whole file system, but for what is hidden, and may
/// change nothing but what is named here and [`TEMPORARY_DIRECTORY`].
///
/// All paths are absolute, and no directory on the way to one is a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// Directories in which everything may be changed. Each must exist.
    pub writable: Vec<PathBuf>,
    /// What may not be changed inside the writable directories.
    pub read_only: Vec<ReadOnly>,
    /// Files and directories that cannot be read, listed or changed: an empty thing without any
    /// permission stands in their place. What does not exist yet and appears while the command
    /// runs cannot be read either.
    pub hidden: Vec<PathBuf>,
    pub network: Network,
    pub limits: Limits,
}

/// A path inside a writable directory that may not be changed. Nor can a directory above it be
/// moved away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOnly {
    pub path: PathBuf,
    pub if_missing: IfMissing,
}

/// What is done about a read-only path that does not exist.
///
/// The kernel can protect only what there is. So an empty stand-in holds the place while the
/// command runs, and is removed afterwards if it is still empty; others can see it, and use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    /// The command may make it.
    Ignore,
    HoldFile,
    HoldDirectory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// None, not even the machine's own: the command is alone on a network without interfaces.
    Off,
    /// The server's own network, with TCP and UDP.
    On,
}

/// What a command may use up. Time and output are the caller's to limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Private memory of one process.
    pub memory_bytes: u64,
    /// Processes and threads at one time, together.
    pub processes: u64,
    /// Open files of one process.
    pub open_files: u64,
    /// The longest file.
    pub file_bytes: u64,
    /// Processor time of one process.
    pub cpu_time: Duration,
    /// What fits into [`TEMPORARY_DIRECTORY`], and into each of `/var/tmp` and `/dev/shm`; all
    /// three are memory.
    pub temporary_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        const MIB: u64 = 1024 * 1024;
        Limits {
            memory_bytes: 8192 * MIB,
            processes: 1024,
            open_files: 8192,
            file_bytes: 4096 * MIB,
            cpu_time: Duration::from_secs(60 * 60),
            temporary_bytes: 1024 * MIB,
        }
    }
}

impl Sandbox {
    /// No network, the usual limits, and nothing protected inside the writable directories.
    pub fn new(writable: Vec<PathBuf>) -> Sandbox {
        Sandbox {
            writable,
            read_only: Vec::new(),
            hidden: Vec::new(),
            network: Network::Off,
            limits: Limits::default(),
        }
    }

    /// What is wrong with the description itself.
    pub(crate) fn check(&self) -> Result<(), String> {
        let all = self.writable.iter().chain(&self.hidden);
        for path in all.chain(self.read_only.iter().map(|read_only| &read_only.path)) {
            if !is_plain(path) {
                return Err(format!("{}: give an absolute path without `..`", path.display()));
            }
        }
        let whole = self.read_only.iter().find(|read_only| self.writable.contains(&read_only.path));
        if let Some(ReadOnly { path, .. }) = whole {
            return Err(format!("{}: is to be both writable and read-only", path.display()));
        }
        for root in &self.writable {
            let root_shown = root.display();
            if is_system(root) {
                return Err(format!(
                    "{root_shown}: is the system's, so it cannot be writable; use a directory for \
                     work"
                ));
            }
            if let Some(hidden) = self.hidden.iter().find(|hidden| root.starts_with(hidden)) {
                let hidden = hidden.display();
                return Err(format!(
                    "{root_shown}: lies in {hidden}, which is hidden, so it cannot be writable"
                ));
            }
        }
        Ok(())
    }

    /// The writable directory that holds a path, if one does.
    pub(crate) fn root_of(&self, path: &Path) -> Option<&Path> {
        self.roots().into_iter().find(|root| path.starts_with(root) && path != *root)
    }

    /// The writable directories, without those inside others.
    pub(crate) fn roots(&self) -> Vec<&Path> {
        let mut roots: Vec<&Path> = self.writable.iter().map(PathBuf::as_path).collect();
        roots.sort();
        roots.dedup();
        let all = roots.clone();
        roots.retain(|root| !all.iter().any(|other| root != other && root.starts_with(other)));
        roots
    }
}

fn is_plain(path: &Path) -> bool {
    path.is_absolute()
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

fn is_system(root: &Path) -> bool {
    SYSTEM.iter().any(|system| Path::new(system).starts_with(root))
        || KERNEL.iter().any(|kernel| root.starts_with(kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(root: &str) -> Result<(), String> {
        Sandbox::new(vec![root.into()]).check()
    }

    #[test]
    fn the_system_is_no_place_to_work_in() {
        for root in ["/", "/etc", "/usr", "/usr/", "/dev/shm", "/proc/self/cwd", "/sys/fs"] {
            assert!(check(root).unwrap_err().contains("is the system's"), "{root}");
        }
        for root in ["/home/u/work", "/usr/local/src/x", "/tmp", "/srv", "/etcetera", "/run/x"] {
            assert_eq!(check(root), Ok(()), "{root}");
        }
    }

    #[test]
    fn only_plain_paths_are_taken() {
        for root in ["", "work", "./work", "/home/../etc", "/home/u/.."] {
            assert!(check(root).is_err(), "{root}");
        }
        let mut sandbox = Sandbox::new(vec!["/work".into()]);
        sandbox.hidden.push("secret".into());
        assert!(sandbox.check().unwrap_err().contains("secret"));
        sandbox.hidden = vec!["/work/secret".into()];
        assert_eq!(sandbox.check(), Ok(()));
        let whole = ReadOnly { path: "/work".into(), if_missing: IfMissing::Ignore };
        sandbox.read_only.push(whole);
        assert!(sandbox.check().unwrap_err().contains("both writable and read-only"));
        sandbox.read_only.clear();
        for above in ["/", "/work"] {
            sandbox.hidden = vec![above.into()];
            assert!(sandbox.check().unwrap_err().contains("which is hidden"), "{above}");
        }
    }

    #[test]
    fn a_directory_inside_another_is_part_of_it() {
        let roots = ["/b/c", "/a", "/b", "/ab", "/b/c/d", "/a"].map(PathBuf::from).to_vec();
        let sandbox = Sandbox::new(roots);
        assert_eq!(sandbox.roots(), ["/a", "/ab", "/b"].map(Path::new));
        assert_eq!(sandbox.root_of(Path::new("/b/c/.git")), Some(Path::new("/b")));
        assert_eq!(sandbox.root_of(Path::new("/b")), None);
        assert_eq!(sandbox.root_of(Path::new("/c")), None);
    }
}
