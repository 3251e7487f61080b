//! How far a command reaches: Landlock, the second line behind the mounts.
//!
//! It also holds where mounts do not: a pipe or a device is written to on a read-only file system
//! as anywhere else, and a secret that appears after the start has nothing mounted over it.

use std::fmt::Display;
use std::fs::{self, DirEntry};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use super::mounts::View;
use crate::{Network, Sandbox};

/// The oldest Landlock that will do; before it, no file could be moved between directories.
const OLDEST: ABI = ABI::V2;
/// The newest one whose rights are used where the kernel has them.
const NEWEST: ABI = ABI::V7;

/// What to do about it if there is none.
const NEEDED: &str = "it is not there, or too old: it needs Linux 5.19, and `landlock` among the \
                      kernel's security modules (the boot option lsm=)";

/// Rules that are ready to be put on.
pub(super) struct Reach {
    rules: RulesetCreated,
    /// The same, for rules about reading: there are hundreds, so each takes as little as can be.
    file: OwnedFd,
}

impl Reach {
    /// Looks at the file system as the command will see it. The error is for people.
    pub(super) fn new(sandbox: &Sandbox, view: &View) -> Result<Reach, String> {
        let rules = handled(sandbox.network).map_err(|error| format!("{NEEDED}; {error}"))?;
        let file = Option::<OwnedFd>::from(rules.try_clone().map_err(text)?).ok_or(NEEDED)?;
        let mut reach = Reach { rules, file };
        for path in &view.writable {
            reach.allow(path, writing())?;
        }
        for device in &view.devices {
            reach.allow(device, AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev)?;
        }
        reach.allow_reading(Path::new("/"), &view.hidden)?;
        Ok(reach)
    }

    /// Puts the rules on the process that calls it and its children; there is no way back.
    pub(super) fn apply(self) -> Result<(), String> {
        let status = self.rules.restrict_self().map_err(text)?;
        match status.ruleset {
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced
                if status.no_new_privs =>
            {
                Ok(())
            }
            other => Err(format!("the rules are not in force ({other:?})")),
        }
    }

    /// Lets everything below a directory be read but what is hidden: a right is given to a whole
    /// tree, so where something is hidden it is given to each of the other entries instead.
    fn allow_reading(&mut self, directory: &Path, hidden: &[PathBuf]) -> Result<(), String> {
        if !hidden.iter().any(|path| path.starts_with(directory)) {
            return self.allow_reading_all(directory);
        }
        // A directory that cannot be listed can still be passed through. A link gives nothing.
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let is_link = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let mut entries: Vec<PathBuf> =
            entries.filter(|entry| !is_link(entry)).map(|entry| entry.path()).collect();
        let below = hidden.iter().filter_map(|path| {
            let next = path.strip_prefix(directory).ok()?.components().next()?;
            Some(directory.join(next))
        });
        entries.extend(below);
        entries.sort();
        entries.dedup();
        for entry in entries.iter().filter(|entry| !hidden.contains(*entry)) {
            self.allow_reading(entry, hidden)?;
        }
        Ok(())
    }

    /// What is gone meanwhile needs no rule.
    fn allow_reading_all(&self, path: &Path) -> Result<(), String> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(beneath) = openat(CWD, path, flags, Mode::empty()) else { return Ok(()) };
        let rule = PathBeneathAttr {
            allowed_access: BitFlags::from(AccessFs::ReadFile).bits(),
            parent_fd: beneath.as_raw_fd(),
        };
        // SAFETY: the rule is valid for reading during the call, and of the kind that is named.
        let result = unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                self.file.as_raw_fd(),
                RULE_PATH_BENEATH,
                &raw const rule,
                0,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(format!("{}: {}", path.display(), io::Error::last_os_error())),
        }
    }

    /// What is gone meanwhile, or a link, which gives nothing by itself, needs no rule.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), String> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(file) = openat(CWD, path, flags, Mode::empty()) else { return Ok(()) };
        let kind = FileType::from_raw_mode(fstat(&file).map_err(text)?.st_mode);
        if kind != FileType::Symlink {
            self.add(file, access).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    fn add(&mut self, file: OwnedFd, access: BitFlags<AccessFs>) -> Result<(), String> {
        (&mut self.rules).add_rule(PathBeneath::new(file.as_fd(), access)).map(drop).map_err(text)
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}

/// As the kernel takes it.
#[repr(C, packed)]
struct PathBeneathAttr {
    allowed_access: u64,
    parent_fd: libc::c_int,
}

const RULE_PATH_BENEATH: libc::c_int = 1;

/// What is refused unless a rule allows it.
fn handled(network: Network) -> Result<RulesetCreated, landlock::RulesetError> {
    let oldest = AccessFs::from_write(OLDEST) | AccessFs::ReadFile;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(oldest)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(NEWEST) | oldest)?
        .scope(Scope::from_all(NEWEST))?;
    match network {
        Network::Off => rules = rules.handle_access(AccessNet::from_all(NEWEST))?,
        Network::On => {}
    }
    rules.create()
}

/// All that one does with files, and nothing with devices.
fn writing() -> BitFlags<AccessFs> {
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    AccessFs::from_write(NEWEST) & !devices
}
