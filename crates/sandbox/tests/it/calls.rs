//! System calls that a confined command does without, tried one by one.

use polyloop_sandbox::Exit;

use crate::ground::Ground;

/// Each with harmless arguments that the kernel would not refuse with "not permitted" by itself,
/// where there are such; the others need rights that the command does not have either.
const NOT_PERMITTED: &[(&str, libc::c_long, &str)] = &[
    ("ptrace", libc::SYS_ptrace, "0, 0, 0, 0"),
    ("process_vm_readv", libc::SYS_process_vm_readv, "0+$$, 0, 0, 0, 0, 0"),
    ("process_vm_writev", libc::SYS_process_vm_writev, "0+$$, 0, 0, 0, 0, 0"),
    ("pidfd_getfd", libc::SYS_pidfd_getfd, "0, 0, 0"),
    ("kcmp", libc::SYS_kcmp, "0+$$, 0+$$, 0, 0, 0"),
    ("io_uring_setup", libc::SYS_io_uring_setup, "1, 0"),
    ("io_uring_enter", libc::SYS_io_uring_enter, "0, 0, 0, 0, 0, 0"),
    ("io_uring_register", libc::SYS_io_uring_register, "0, 0, 0, 0"),
    ("mount", libc::SYS_mount, "0, 0, 0, 0, 0"),
    ("umount2", libc::SYS_umount2, "0, 0"),
    ("fsopen", libc::SYS_fsopen, "0, 0"),
    ("open_tree", libc::SYS_open_tree, "-100, 0, 0"),
    ("setns", libc::SYS_setns, "0, 0"),
    ("unshare user", libc::SYS_unshare, "0x10000000"),
    ("unshare mounts", libc::SYS_unshare, "0x20000"),
    ("unshare time", libc::SYS_unshare, "0x80"),
    ("clone user", libc::SYS_clone, "0x10000011, 0, 0, 0, 0"),
    ("clone network", libc::SYS_clone, "0x40000011, 0, 0, 0, 0"),
    ("bpf", libc::SYS_bpf, "0, 0, 0"),
    ("perf_event_open", libc::SYS_perf_event_open, "0, 0, 0, 0, 0"),
    ("userfaultfd", libc::SYS_userfaultfd, "1"),
    ("keyctl", libc::SYS_keyctl, "0, -3, 0"),
    ("add_key", libc::SYS_add_key, "0, 0, 0, 0, 0"),
    ("request_key", libc::SYS_request_key, "0, 0, 0, 0"),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, "-100, 0, 0"),
    ("syslog", libc::SYS_syslog, "10, 0, 0"),
    ("reboot", libc::SYS_reboot, "0, 0, 0, 0"),
    ("socket inet", libc::SYS_socket, "2, 1, 0"),
    ("socket inet6", libc::SYS_socket, "10, 2, 0"),
    ("socket netlink", libc::SYS_socket, "16, 3, 0"),
    ("socket vsock", libc::SYS_socket, "40, 1, 0"),
    ("socket alg", libc::SYS_socket, "38, 5, 0"),
    // The kernel looks at the lower half only, and so must the filter.
    ("socket inet, high bits", libc::SYS_socket, "0x100000002, 1, 0"),
    ("chmod set-id, high bits", libc::SYS_fchmodat, "-100, $dot, 0x1000004755"),
];

/// Not there at all, as in an older kernel: new ones, and the second numbering of x86-64.
const UNKNOWN: &[(&str, libc::c_long, &str)] = &[
    ("clone3", libc::SYS_clone3, "0, 0"),
    ("openat2", libc::SYS_openat2, "-100, 0, 0, 0"),
    ("open_tree_attr", 467, "-100, 0, 0, 0, 0"),
    ("a later one", 500, "0"),
    ("x32 getpid", 0x4000_0000 + 39, "0"),
    ("x32 ptrace", 0x4000_0000 + 521, "0, 0, 0, 0"),
];

/// Prints the number of the error, or that there was none.
fn tried(ground: &Ground, number: libc::c_long, args: &str) -> String {
    let call = format!(
        "my ($dot, $x) = (\".\", \"x\"); $! = 0; my $r = syscall({number}, {args}); \
         print $r == -1 ? 0+$! : \"ok\""
    );
    let (output, exit) = ground.run(&format!("perl -e '{call}'"));
    assert_eq!(exit, Exit::Code(0), "{output}");
    output
}

#[test]
fn refused_calls_are_refused() {
    let ground = Ground::new();
    for (name, number, args) in NOT_PERMITTED {
        assert_eq!(tried(&ground, *number, args), libc::EPERM.to_string(), "{name}");
    }
    for (name, number, args) in UNKNOWN {
        assert_eq!(tried(&ground, *number, args), libc::ENOSYS.to_string(), "{name}");
    }
}

#[test]
fn ordinary_calls_are_not() {
    let ground = Ground::new();
    for (name, number, args) in [
        ("getpid", libc::SYS_getpid, "0"),
        ("unshare nothing", libc::SYS_unshare, "0"),
        ("socket unix", libc::SYS_socket, "1, 1, 0"),
        ("fchmodat", libc::SYS_fchmodat, "-100, $dot, 0755"),
        ("memfd_create", libc::SYS_memfd_create, "$x, 0"),
        ("pidfd_open", libc::SYS_pidfd_open, "0+$$, 0"),
    ] {
        assert_eq!(tried(&ground, number, args), "ok", "{name}");
    }
}

/// A 32-bit call on a 64-bit machine is another call; it ends whoever makes it.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_calls_of_32_bit_programs_end_them() {
    let ground = Ground::new();
    // int 0x80 with getpid, in a page of its own: mmap, write, jump, by way of a small program.
    let source = "int main(void) { int r; __asm__ volatile (\"int $0x80\" : \"=a\"(r) : \
                  \"a\"(20) : \"memory\"); return r <= 0; }";
    if !crate::ground::has_program("cc") {
        return;
    }
    let script = format!("echo '{source}' > x.c && cc -o x x.c && exec ./x");
    let (output, exit) = ground.run(&script);
    assert_eq!(exit, Exit::Signal(libc::SIGSYS), "{output}");
}
