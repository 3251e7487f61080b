//! The system calls a confined command does without: seccomp.
//!
//! A list of what is refused, not of what is allowed: the namespaces and Landlock are the wall,
//! and this closes the doors in it that lead around them.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter, sock_filter,
};

use crate::Network;

/// The programs, in the order in which they are put on.
pub(super) struct Filter(Vec<BpfProgram>);

/// The last system call that was known when this list was made: `removexattrat`. From 424 on the
/// numbers are the same on all machines.
const KNOWN_MAX: u32 = 466;

/// Refused whatever the arguments.
const NEVER: &[libc::c_long] = &[
    // Into other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Around this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other mounts, other namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    // Parts of the kernel with a history, or with a memory of their own.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    libc::SYS_syslog,
    // The machine itself.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// As if the kernel were older: their arguments lie in memory, where no filter can look, and every
/// program that uses them has another way.
const UNKNOWN: &[libc::c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

const NEW_NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Typing into a terminal for its user.
const TERMINAL_INPUT: &[libc::Ioctl] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// A file with one of these would run with its owner's rights outside, for anybody.
const SET_ID: &[u32] = &[libc::S_ISUID, libc::S_ISGID];

/// Calls that set a file's mode, and the argument that holds it.
const SET_MODE: &[(libc::c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// Not every libc names it.
const FCHMODAT2: libc::c_long = 452;

/// Calls that may make a file, with the arguments that hold their flags and the mode.
const MAKE_FILE: &[(libc::c_long, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// The part of `O_TMPFILE` that is not `O_DIRECTORY`.
const TMPFILE: libc::c_int = libc::O_TMPFILE & !libc::O_DIRECTORY;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

impl Filter {
    pub(super) fn new(network: Network) -> Result<Filter, String> {
        let text = |error: seccompiler::BackendError| error.to_string();
        let not_permitted = compiled(refused(network).map_err(text)?, libc::EPERM).map_err(text)?;
        let unknown: Rules = UNKNOWN.iter().map(|call| (*call, Vec::new())).collect();
        let unknown = compiled(unknown, libc::ENOSYS).map_err(text)?;
        Ok(Filter(vec![newer(), unknown, not_permitted]))
    }

    /// For the process that calls it and its children; there is no way back.
    pub(super) fn apply(self) -> Result<(), String> {
        self.0.iter().try_for_each(|program| apply_filter(program).map_err(|e| e.to_string()))
    }
}

fn compiled(rules: Rules, error: libc::c_int) -> Result<BpfProgram, seccompiler::BackendError> {
    let refuse = SeccompAction::Errno(error.cast_unsigned());
    let machine = std::env::consts::ARCH.try_into()?;
    // A call in the numbering of another machine (32-bit programs) ends the process.
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, machine)?.try_into()
}

/// What is newer than this list is not there. Nor is the second numbering of x86-64, which lies far
/// above.
fn newer() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_GREATER: u16 = 0x25;
    const RETURN: u16 = 0x06;
    let op = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        op(LOAD_WORD, 0, 0, 0), // The number of the call is the first field.
        op(JUMP_IF_GREATER, 0, 1, KNOWN_MAX),
        op(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()),
        op(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

fn refused(network: Network) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = NEVER.iter().map(|call| (*call, Vec::new())).collect();
    let mut add = |call: libc::c_long, conditions: Vec<SeccompCondition>| {
        rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
        Ok::<(), seccompiler::BackendError>(())
    };
    for flag in NEW_NAMESPACES {
        add(libc::SYS_clone, vec![has(0, flag.cast_unsigned())?])?;
        add(libc::SYS_unshare, vec![has(0, flag.cast_unsigned())?])?;
    }
    add(libc::SYS_unshare, vec![has(0, CLONE_NEWTIME)?])?;
    for request in TERMINAL_INPUT {
        #[allow(clippy::unnecessary_cast, reason = "it is signed for other C libraries")]
        let request = *request as u64;
        add(libc::SYS_ioctl, vec![SeccompCondition::new(1, Len::Dword, Op::Eq, request)?])?;
    }
    for bit in SET_ID {
        for (call, mode) in SET_MODE {
            add(*call, vec![has(*mode, *bit)?])?;
        }
        for (call, flags, mode) in MAKE_FILE {
            for making in [libc::O_CREAT, TMPFILE] {
                add(*call, vec![has(*flags, making.cast_unsigned())?, has(*mode, *bit)?])?;
            }
        }
    }
    let families: &[libc::c_int] = match network {
        Network::Off => &[libc::AF_UNIX],
        Network::On => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let other = families.iter().map(|family| {
        SeccompCondition::new(0, Len::Dword, Op::Ne, u64::from(family.cast_unsigned()))
    });
    add(libc::SYS_socket, other.collect::<Result<_, _>>()?)?;
    Ok(rules)
}

/// A libc for other C libraries does not name it.
const CLONE_NEWTIME: u32 = 0x80;

/// That an argument has all these bits.
fn has(argument: u8, bits: u32) -> Result<SeccompCondition, seccompiler::BackendError> {
    let bits = u64::from(bits);
    SeccompCondition::new(argument, Len::Dword, Op::MaskedEq(bits), bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_filters_compile() {
        for network in [Network::Off, Network::On] {
            assert_eq!(Filter::new(network).unwrap().0.len(), 3);
        }
    }

    #[test]
    fn a_call_is_refused_in_one_way_only() {
        let by_argument = refused(Network::Off).unwrap();
        for call in NEVER {
            assert!(by_argument[call].is_empty(), "{call} is refused whatever its arguments");
            assert!(*call <= i64::from(KNOWN_MAX) && !UNKNOWN.contains(call), "{call}");
        }
    }
}
