//! Fails closed: whatever layer is missing, the command is not run, and the reason is told.
//!
//! The layers are taken away from outside, as a host would: the helper starts under a filter that
//! refuses the system calls that it needs.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use polyloop_sandbox::{Refusal, refusal};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use crate::ground::Ground;
use crate::{helper, read_to_end, server_path};

/// A system call that is refused, and the argument and bits that make it so, if not all are.
type Refused = (libc::c_long, Option<(u8, u64)>);

const LAYERS: &[(&str, Refused, i32)] = &[
    ("user namespaces", (libc::SYS_clone, Some((0, libc::CLONE_NEWUSER as u64))), libc::EPERM),
    ("user namespaces", (libc::SYS_clone, Some((0, libc::CLONE_NEWUSER as u64))), libc::ENOSPC),
    ("network namespaces", (libc::SYS_clone, Some((0, libc::CLONE_NEWNET as u64))), libc::EPERM),
    ("process namespaces", (libc::SYS_clone, Some((0, libc::CLONE_NEWPID as u64))), libc::EPERM),
    ("mount namespaces", (libc::SYS_unshare, Some((0, libc::CLONE_NEWNS as u64))), libc::EPERM),
    ("mounts", (libc::SYS_mount, None), libc::EPERM),
    ("mounts", (libc::SYS_open_tree, None), libc::ENOSYS),
    ("mounts", (libc::SYS_move_mount, None), libc::EPERM),
    ("mounts", (libc::SYS_mount_setattr, None), libc::ENOSYS),
    ("mounts", (libc::SYS_mount_setattr, None), libc::EPERM),
    ("mounts", (libc::SYS_fsopen, None), libc::EPERM),
    ("mounts", (libc::SYS_fsmount, None), libc::EPERM),
    ("paths", (libc::SYS_openat2, None), libc::ENOSYS),
    ("Landlock", (libc::SYS_landlock_create_ruleset, None), libc::ENOSYS),
    ("Landlock", (libc::SYS_landlock_create_ruleset, None), libc::EOPNOTSUPP),
    ("Landlock", (libc::SYS_landlock_add_rule, None), libc::EPERM),
    ("Landlock", (libc::SYS_landlock_restrict_self, None), libc::EPERM),
    ("seccomp", (libc::SYS_seccomp, None), libc::ENOSYS),
    ("seccomp", (libc::SYS_seccomp, None), libc::EINVAL),
    ("capabilities", (libc::SYS_capset, None), libc::EPERM),
    ("capabilities", (libc::SYS_prctl, Some((0, libc::PR_CAPBSET_DROP as u64))), libc::EPERM),
    (
        "no new privileges",
        (libc::SYS_prctl, Some((0, libc::PR_SET_NO_NEW_PRIVS as u64))),
        libc::EPERM,
    ),
    // Setting one, which has something in its third argument.
    ("limits", (libc::SYS_prlimit64, Some((2, 0))), libc::EPERM),
];

fn filter((call, argument): Refused, error: i32) -> BpfProgram {
    let rules = match argument {
        None => Vec::new(),
        Some((index, value)) => {
            let op = match call {
                libc::SYS_prctl => SeccompCmpOp::Eq,
                libc::SYS_prlimit64 => SeccompCmpOp::Ne,
                _ => SeccompCmpOp::MaskedEq(value),
            };
            let length = SeccompCmpArgLen::Dword;
            let condition = SeccompCondition::new(index, length, op, value).unwrap();
            vec![SeccompRule::new(vec![condition]).unwrap()]
        }
    };
    let refuse = SeccompAction::Errno(error.cast_unsigned());
    let machine = std::env::consts::ARCH.try_into().unwrap();
    SeccompFilter::new(BTreeMap::from([(call, rules)]), SeccompAction::Allow, refuse, machine)
        .unwrap()
        .try_into()
        .unwrap()
}

/// A command that is started without the layer.
fn without(mut command: Command, refused: Refused, error: i32) -> Command {
    let filter = filter(refused, error);
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            apply_filter(&filter).map_err(|_| std::io::Error::from_raw_os_error(libc::EDOM))
        })
    };
    command
}

#[test]
fn without_a_layer_nothing_runs() {
    let ground = Ground::new();
    for (layer, refused, error) in LAYERS {
        let job = ground.job("echo ran; echo ran > ran; echo ran > \"$OUT/ran\"");
        for command in [helper().command(), helper().command_for(&job.confinement)] {
            let mut helper = without(command, *refused, *error).spawn().unwrap();
            let mut control = helper.stdin.take().unwrap();
            control.write_all(&job.encode()).unwrap();
            let (output, outcome) = read_to_end(helper);
            drop(control);
            let told = refusal(&outcome, &output);
            let Some(Refusal::NotSetUp(why)) = told else {
                panic!("{layer} {refused:?} {error}: {outcome:?} {output}");
            };
            println!("{layer}: {why}");
            assert_eq!(output, "", "{layer}");
            assert!(!ground.work.join("ran").exists(), "{layer}");
            ground.assert_unchanged(layer);
        }
    }
}

#[test]
fn without_a_layer_the_probe_says_so() {
    for (layer, refused, error) in LAYERS {
        let mut probe = Command::new(server_path());
        probe.arg("--probe");
        let output = without(probe, *refused, *error).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{layer} {error}: {told}");
        assert!(told.contains("not available: "), "{layer}: {told}");
        assert_eq!(output.stdout, b"", "{layer}");
    }
}

/// Without confinement nothing of this is needed.
#[test]
fn an_unconfined_command_runs_without_the_layers() {
    for (layer, refused, error) in LAYERS.iter().filter(|(layer, ..)| *layer != "paths") {
        let mut helper = without(helper().command(), *refused, *error).spawn().unwrap();
        let mut control = helper.stdin.take().unwrap();
        control.write_all(&crate::script("echo ran").encode()).unwrap();
        let (output, _) = read_to_end(helper);
        drop(control);
        assert_eq!(output, "ran\n", "{layer}");
    }
}
