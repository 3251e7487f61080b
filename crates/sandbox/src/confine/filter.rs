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

/// One program: the kernel goes through it once for every call it knows when it is put on, and only
/// then remembers the answer. So a call's place in it is searched for, not come upon.
pub(super) struct Filter(BpfProgram);

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

/// So many calls are compared one after the other.
const BLOCK_CALLS: usize = 4;

/// A program for a few calls whose numbers follow on each other.
struct Block {
    first: i64,
    program: BpfProgram,
}

impl Filter {
    pub(super) fn new(network: Network) -> Result<Filter, String> {
        let text = |error: seccompiler::BackendError| error.to_string();
        let mut blocks = blocks(refused(network).map_err(text)?, libc::EPERM).map_err(text)?;
        let unknown: Rules = UNKNOWN.iter().map(|call| (*call, Vec::new())).collect();
        // Each of its own, since between them may be what is refused in another way.
        for (call, rules) in unknown {
            let block = compiled([(call, rules)].into(), libc::ENOSYS).map_err(text)?;
            blocks.push(Block { first: call, program: block });
        }
        blocks.sort_by_key(|block| block.first);
        Ok(Filter(whole(&blocks)?))
    }

    /// For the process that calls it and its children; there is no way back.
    pub(super) fn apply(self) -> Result<(), String> {
        apply_filter(&self.0).map_err(|error| error.to_string())
    }
}

fn blocks(rules: Rules, error: libc::c_int) -> Result<Vec<Block>, seccompiler::BackendError> {
    let mut blocks = Vec::new();
    let mut rules = rules.into_iter().peekable();
    while let Some((first, _)) = rules.peek() {
        let first = *first;
        let is_apart = |call: &i64| UNKNOWN.iter().any(|apart| (first..*call).contains(apart));
        let mut few = Rules::new();
        while few.len() < BLOCK_CALLS
            && let Some((call, rule)) = rules.next_if(|(call, _)| !is_apart(call))
        {
            few.insert(call, rule);
        }
        blocks.push(Block { first, program: compiled(few, error)? });
    }
    Ok(blocks)
}

/// What is in no rule is allowed.
fn compiled(rules: Rules, error: libc::c_int) -> Result<BpfProgram, seccompiler::BackendError> {
    let refuse = SeccompAction::Errno(error.cast_unsigned());
    let machine = std::env::consts::ARCH.try_into()?;
    // A call in the numbering of another machine (32-bit programs) ends the process.
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, machine)?.try_into()
}

const LOAD_WORD: u16 = 0x20;
const JUMP: u16 = 0x05;
const JUMP_IF_GREATER: u16 = 0x25;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

fn op(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// What is newer than the list is not there. Nor is the second numbering of x86-64, which lies far
/// above.
fn whole(blocks: &[Block]) -> Result<BpfProgram, String> {
    // The beginning of each block ends a process that calls in the numbering of another machine.
    let [first, ..] = blocks else { return Err("nothing is refused".to_owned()) };
    let mut program = first.program.get(..MACHINE_OPS).ok_or("a block is cut")?.to_vec();
    program.extend([
        op(LOAD_WORD, 0, 0, 0), // The number of the call is the first field.
        op(JUMP_IF_GREATER, 0, 1, KNOWN_MAX),
        op(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()),
    ]);
    program.extend(search(blocks)?);
    Ok(program)
}

/// Load the machine, compare, end.
const MACHINE_OPS: usize = 3;

/// Goes to the block of a call; its number has been loaded.
fn search(blocks: &[Block]) -> Result<BpfProgram, String> {
    if let [block] = blocks {
        return Ok(block.program.clone());
    }
    let (low, high) = blocks.split_at(blocks.len() / 2);
    let from = high.first().map_or(0, |block| block.first);
    let from = u32::try_from(from).map_err(|_| format!("{from}: no number of a call"))?;
    let (mut low, mut high) = (search(low)?, search(high)?);
    let over = u32::try_from(low.len()).map_err(|_| "too long".to_owned())?;
    let mut program = vec![op(JUMP_IF_AT_LEAST, 0, 1, from), op(JUMP, 0, 0, over)];
    program.append(&mut low);
    program.append(&mut high);
    Ok(program)
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

    /// What the kernel would make of a call, in this machine's numbering or another's.
    fn answer(program: &[sock_filter], machine: u32, call: u32, args: [u32; 6]) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let op = &program[at];
            at += 1;
            let jump = |holds: bool| usize::from(if holds { op.jt } else { op.jf });
            match op.code {
                LOAD_WORD => {
                    value = match op.k {
                        0 => call,
                        4 => machine,
                        // The lower half of an argument; the upper one is zero.
                        offset if offset % 8 == 0 => args[(offset as usize - 16) / 8],
                        _ => 0,
                    }
                }
                0x54 => value &= op.k,
                JUMP => at += op.k as usize,
                0x15 => at += jump(value == op.k),
                JUMP_IF_GREATER => at += jump(value > op.k),
                JUMP_IF_AT_LEAST => at += jump(value >= op.k),
                RETURN => return op.k,
                other => panic!("{other:#x}"),
            }
        }
    }

    /// The machine that the programs were made for.
    fn machine(program: &[sock_filter]) -> u32 {
        program[1].k
    }

    #[test]
    fn a_search_finds_what_a_walk_through_all_rules_finds() {
        let not_there = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
        let bits = [0, 1, 2, 3, 0x80, 0o4000, 0o2000, 0o777, 0x5412, 0x541c, u32::MAX]
            .into_iter()
            .chain(NEW_NAMESPACES.iter().map(|flag| flag.cast_unsigned()))
            .chain([libc::O_CREAT, TMPFILE, libc::O_RDWR].map(i32::cast_unsigned));
        let bits: Vec<u32> = bits.collect();
        for network in [Network::Off, Network::On] {
            let Filter(searched) = Filter::new(network).unwrap();
            let walked = compiled(refused(network).unwrap(), libc::EPERM).unwrap();
            let machine = machine(&walked);
            for call in (0..KNOWN_MAX + 100).chain([0x4000_0000, u32::MAX]) {
                for one in &bits {
                    for two in &bits {
                        let args = [*one, *two, *two, *one, *two, *one];
                        let expected = match i64::from(call) {
                            gone if gone > i64::from(KNOWN_MAX) => not_there,
                            gone if UNKNOWN.contains(&gone) => not_there,
                            _ => answer(&walked, machine, call, args),
                        };
                        let found = answer(&searched, machine, call, args);
                        assert_eq!(found, expected, "{call} {args:x?}");
                    }
                }
                let other = answer(&searched, machine ^ 1, call, [0; 6]);
                assert_eq!(other, libc::SECCOMP_RET_KILL_PROCESS, "{call}");
            }
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
