//! What a command may use up, and what it may never be: privileged.

use std::fs;
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
    set_no_new_privs,
};

use crate::Limits;

/// The first Linux in which each namespace of processes has a `pid_max` of its own. In an older one
/// it is the whole machine's, and root would change it.
const OWN_PID_MAX_SINCE: (u32, u32) = (6, 14);

/// The kernel takes no smaller one.
const PID_MAX_LEAST: u64 = 301;

const CAPABILITIES_MAX: u32 = 64;

/// Between the signal that says that processor time is up and the one that nobody survives.
const CPU_GRACE_SECONDS: u64 = 2;

/// Bounds the number of processes for root too, whom the ordinary limit does not concern. Needs a
/// `/proc` of the new namespace that is not read-only yet.
pub(super) fn bound_processes(limits: &Limits) -> io::Result<()> {
    if !has_own_pid_max() {
        return Ok(()); // The ordinary limit remains; `remarks` says for whom it does not hold.
    }
    let most = limits.processes.saturating_add(1).max(PID_MAX_LEAST);
    fs::write("/proc/sys/kernel/pid_max", most.min(u64::from(u16::MAX)).to_string())
}

/// Whether root's processes can be bounded.
pub(crate) fn has_own_pid_max() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    release_number(&release).is_some_and(|number| number >= OWN_PID_MAX_SINCE)
}

fn release_number(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Gives up all capabilities for good, in the own namespace too: neither being root there nor a
/// program with set-user-id brings one back.
pub(super) fn give_up_capabilities() -> io::Result<()> {
    for number in 0..CAPABILITIES_MAX {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            Err(rustix::io::Errno::INVAL) if number > 0 => break, // The kernel knows no more.
            Err(error) => return Err(error.into()),
        }
    }
    set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )?;
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    set_no_new_privs(true)?;
    Ok(())
}

/// Sets the limits of the process that calls it and of its children, each for itself.
pub(super) fn apply(limits: &Limits) -> io::Result<()> {
    set(Resource::Data, limits.memory_bytes, 0)?;
    // In a user namespace this counts what is in the namespace, whoever else is that user outside.
    set(Resource::Nproc, limits.processes, 0)?;
    set(Resource::Nofile, limits.open_files, 0)?;
    set(Resource::Fsize, limits.file_bytes, 0)?;
    set(Resource::Cpu, limits.cpu_time.as_secs().max(1), CPU_GRACE_SECONDS)?;
    set(Resource::Core, 0, 0)
}

/// Never above what the server itself may use, since that cannot be raised.
fn set(resource: Resource, most: u64, grace: u64) -> io::Result<()> {
    let ours = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let current = Some(most.min(ours));
    let maximum = Some(most.saturating_add(grace).min(ours));
    setrlimit(resource, Rlimit { current, maximum })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::release_number;

    #[test]
    fn a_release_has_two_numbers() {
        assert_eq!(release_number("6.18.44-fc"), Some((6, 18)));
        assert_eq!(release_number("6.14-rc1"), Some((6, 14)));
        assert_eq!(release_number("7.0"), Some((7, 0)));
        assert!(release_number("6.9.1") < Some((6, 14)));
        for other in ["", "x", "6", "v6.14", "6.x"] {
            assert_eq!(release_number(other), None, "{other}");
        }
    }
}
