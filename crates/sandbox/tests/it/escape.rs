//! Ways out, each of which must fail and leave the outside as it was. The numbers are those of the
//! list of escapes in `docs/SANDBOX.md`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use polyloop_sandbox::{Confinement, Exit};

use crate::ground::{Ground, has_program};
use crate::{finish, make_fifo_in, server_path};

/// Each changes something below `$T`, in one way.
const WRITES: &[&str] = &[
    "echo x > $T/new",
    "echo x >> $T/canary",
    ": > $T/canary",
    "truncate -s 0 $T/canary",
    "rm -f $T/canary; [ ! -e $T/canary ]",
    "rmdir $T/directory || rm -r $T/directory",
    "mv $T/canary $T/moved",
    "mv $T/canary .",
    "echo x > mine; mv mine $T/canary",
    "mkdir $T/made",
    "ln -s x $T/link",
    "ln $T/canary $T/hard",
    "echo x > own; ln own $T/hard",
    "mkfifo $T/pipe",
    "chmod 777 $T/canary",
    "chmod 777 $T",
    "touch $T/canary",
    "touch -d 2001-01-01 $T/canary",
    "dd if=/dev/zero of=$T/canary count=1 conv=notrunc",
    "cp /bin/true $T/program",
    "tee $T/new < /dev/null",
    "perl -e 'open(F, \"+<\", \"$ENV{T}/canary\") or exit 1; print F \"x\"'",
    "sed -i s/a/b/ $T/canary",
    "tar c -C / bin | tar x -C $T",
];

#[test]
fn s1_nothing_outside_can_be_changed() {
    let ground = Ground::new();
    for write in WRITES {
        ground.refuses(&format!("export T=\"$OUT\"; {write}"));
    }
    for place in ["/etc", "/usr/bin", "/", "/root", "/home", "/var/lib", "/sys", "/proc", "/dev"] {
        ground.refuses(&format!("echo x > {place}/polyloop-canary"));
        ground.refuses(&format!("mkdir {place}/polyloop-canary"));
        assert!(!Path::new(place).join("polyloop-canary").exists(), "{place}");
    }
    for file in ["/etc/passwd", "/etc/hosts", "/bin/true"] {
        ground.refuses(&format!("chmod 777 {file}"));
        ground.refuses(&format!("touch {file}"));
        ground.refuses(&format!("echo >> {file}"));
    }
}

/// Else the test above would prove nothing.
#[test]
fn the_attacks_work_without_a_sandbox() {
    for write in WRITES {
        let ground = Ground::new();
        let mut job = ground.job(&format!("export T=\"$OUT\"; {write}"));
        job.confinement = Confinement::None;
        let (output, exit) = finish(&job);
        assert_eq!(exit, Exit::Code(0), "{write}: {output}");
        assert!(ground.is_changed(), "{write}");
    }
}

#[test]
fn s1_the_temporary_files_of_others_are_neither_seen_nor_changed() {
    let ground = Ground::new();
    let dir = tempfile::tempdir().unwrap();
    let canary = dir.path().join("canary");
    fs::write(&canary, "alive").unwrap();
    let script = "cat $T; rm -f $T; mkdir -p $(dirname $T); echo x > $T; cat $T";
    let (output, _) = ground.run(&format!("T={}; {script}", canary.display()));
    assert!(!output.contains("alive"), "{output}");
    assert_eq!(fs::read_to_string(&canary).unwrap(), "alive");
}

#[test]
fn s1_the_kernels_own_files_cannot_be_changed() {
    let ground = Ground::new();
    for file in [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/pid_max",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/kernel/hostname",
        "/proc/sysrq-trigger",
        "/proc/self/oom_score_adj",
        "/proc/self/uid_map",
        "/sys/kernel/uevent_helper",
        "/sys/fs/cgroup/cgroup.procs",
    ] {
        let before = fs::read(file).ok();
        ground.refuses(&format!("cat {file} > was 2>/dev/null; echo 1 > {file}"));
        ground.refuses(&format!("dd of={file} <<< 1"));
        assert_eq!(fs::read(file).ok(), before, "{file}");
    }
}

#[test]
fn s2_no_way_round_leads_out() {
    let ground = Ground::new();
    let ways: &[&str] = &[
        "ln -s \"$OUT\" way; T=way",
        "ln -s \"$OUT\" /tmp/way; T=/tmp/way",
        "T=/proc/self/root/$OUT",
        "T=/proc/1/root/$OUT",
        "T=/proc/$$/cwd/../outside",
        "T=/proc/self/cwd/../outside",
        "cd \"$OUT\" && T=/proc/self/cwd",
        "cd \"$OUT\" && T=.",
        "exec 5<\"$OUT\" && T=/proc/self/fd/5",
        "exec 5<\"$OUT\" && T=/dev/fd/5",
        "T=/tmp/../$OUT",
        "mkdir -p a/b; T=a/b/../../../outside",
    ];
    for way in ways {
        for write in
            ["echo x > $T/new", "echo x > $T/canary", "rm -f $T/canary && exit 0", "chmod 777 $T"]
        {
            // A way that does not even lead there is refused as well.
            let gone = "[ ! -e \"$OUT/canary\" ]";
            let write = write.replace("exit 0", gone);
            ground.refuses(&format!("rm -f way; {way}; export T; {write}"));
        }
    }
    for link in ["ln \"$OUT/canary\" hard", "cp -l \"$OUT/canary\" hard"] {
        ground.refuses(&format!("{link} && echo x > hard"));
    }
    ground.refuses("exec 5<\"$OUT/canary\" && echo x > /proc/self/fd/5");
    ground.refuses(
        "exec 5<\"$OUT/canary\"; perl -e 'open(F, \"+>&=5\") && truncate(F, 0) or exit 1'",
    );
}

#[test]
fn s2_a_file_that_the_server_left_open_is_not_inherited() {
    let ground = Ground::new();
    let canary = ground.outside.join("canary");
    let give = r#"exec 7>>"$1" 8<"$(dirname "$1")"
        exec "$0" --writable "$2" 90000 \
            bash -c 'ls /proc/self/fd; echo x >&7; echo x >/proc/self/fd/8/new'"#;
    let output = Command::new("bash")
        .args(["-c", give])
        .args([server_path(), canary, ground.work.clone()])
        .current_dir(&ground.work)
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    // The third is the directory that `ls` reads.
    assert!(output.starts_with("0\n1\n2\n3\n") && !output.starts_with("0\n1\n2\n3\n7"), "{output}");
    ground.assert_unchanged("inherited");
}

#[test]
fn s3_a_link_that_was_made_inside_leads_nobody_out() {
    let ground = Ground::new();
    assert_eq!(ground.run("ln -s \"$OUT\" out; ln -s / top").1, Exit::Code(0));
    for place in ["out", "top", "out/directory"] {
        let mut job = ground.job("echo x > new; echo x > canary; echo x > tmp/new; chmod 777 .");
        job.cwd = ground.work.join(place);
        let (output, exit) = finish(&job);
        assert_eq!(exit, Exit::Code(1), "{place}: {output}");
        ground.assert_unchanged(place);
    }
    // Where a directory for work was replaced by a link, nothing runs.
    let mut sandbox = ground.sandbox();
    sandbox.writable = vec![ground.work.join("out")];
    let (output, exit) = ground.run_in(sandbox, "echo x > \"$OUT/new\"");
    assert!(matches!(exit, Exit::NotStarted(_)), "{exit:?} {output}");
    ground.assert_unchanged("a link for a root");
}

#[test]
fn s6_no_right_can_be_gained_or_left_behind() {
    let ground = Ground::new();
    fs::copy("/usr/bin/id", ground.work.join("id")).unwrap();
    for mode in ["4755", "2755", "6755", "u+s", "g+s"] {
        ground.refuses(&format!("chmod {mode} id"));
        ground.refuses(&format!("cp id copy; chmod {mode} copy; exit $?"));
    }
    // The same by making such a file; without the bit, each of these works.
    for (way, call) in [
        ("syscall($ARGV[0], -100, $m, 0x41, 0MODE) < 0", libc::SYS_openat),
        ("!sysopen(F, $m, 0x41, 0MODE)", libc::SYS_openat),
        ("syscall($ARGV[0], -100, $m, 010MODE, 0) < 0", libc::SYS_mknodat),
    ] {
        let made = |mode: &str| {
            let way = way.replace("MODE", mode);
            format!("rm -f made; perl -e 'my $m = \"made\"; exit({way})' {call}")
        };
        assert_eq!(ground.run(&made("0755")).1, Exit::Code(0), "{way}");
        ground.refuses(&made("4755"));
        ground.refuses(&made("2755"));
        assert!(!ground.work.join("made").exists(), "{way}");
    }
    let mode = fs::metadata(ground.work.join("id")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    // A program that would give rights gives none.
    let user = rustix::process::geteuid().as_raw();
    let setuid = ground.work.join("setuid");
    fs::copy("/usr/bin/id", &setuid).unwrap();
    fs::set_permissions(&setuid, fs::Permissions::from_mode(0o4755)).unwrap();
    assert_eq!(ground.run("./setuid -u").0, format!("{user}\n"));
    for script in [
        "unshare -r true",
        "unshare -m true",
        "unshare -n true",
        "unshare -p -f true",
        "mount -t tmpfs none /mnt",
        "mount --bind . /mnt",
        "mount -o remount,rw /",
        "umount /tmp",
        "umount -l /proc",
        "chroot . true",
        "sudo -n true",
        "su -c true",
        "nsenter -t 1 -m true",
        "mknod device c 1 1",
        "mknod device b 8 0",
        "chown 1 .",
        "setpriv --reuid=1 true",
        "hostname other",
        "date -s 2001-01-01",
        "renice -n -5 $$",
        "insmod x",
        "dmesg",
    ] {
        ground.refuses(script);
    }
}

#[test]
fn s6_a_sandbox_inside_is_none() {
    let ground = Ground::new();
    let program = ground.work.join("server");
    fs::copy(server_path(), &program).unwrap();
    let output =
        ground.refuses("./server --writable \"$OUT\" 9000 bash -c 'echo x > \"$OUT/new\"'");
    assert!(output.contains("the sandbox could not be set up"), "{output}");
}

#[test]
fn s7_other_processes_cannot_be_reached() {
    let ground = Ground::new();
    // One of the same user, as the server is.
    let mut server = Command::new("sleep")
        .arg("80")
        .env("KEY", "top secret")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let pid = server.id();
    let script = format!(
        "for p in {pid} $(seq 3 40) {}; do kill -KILL $p; kill -STOP $p; done; kill -KILL -1; \
         cat /proc/{pid}/environ /proc/{pid}/mem; ls /proc/{pid}/fd; echo x > /proc/{pid}/mem; \
         gdb -p {pid}; strace -p {pid}; exit 1",
        std::process::id(),
    );
    let (output, _) = ground.run(&script);
    assert!(!output.contains("top secret"), "{output}");
    assert!(server.try_wait().unwrap().is_none(), "{output}");
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn s8_pipes_and_sockets_outside_are_out_of_reach() {
    let ground = Ground::new();
    let mut ground = ground;
    let listener = UnixListener::bind(ground.outside.join("agent.sock")).unwrap();
    let inside = UnixListener::bind(ground.work.join("engine.sock")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let temporary = UnixListener::bind(dir.path().join("ssh-agent")).unwrap();
    let listeners = [&listener, &inside, &temporary];
    for listener in listeners {
        listener.set_nonblocking(true).unwrap();
    }
    let fifo = make_fifo_in(&ground.outside);
    let mut end = fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
    ground.accept();

    let sockets = [
        ground.outside.join("agent.sock"),
        ground.work.join("engine.sock"),
        dir.path().join("ssh-agent"),
        "/run/docker.sock".into(),
        "/var/run/docker.sock".into(),
        "/run/dbus/system_bus_socket".into(),
    ];
    for socket in sockets {
        let connect = format!(
            "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or exit 2; \
             connect(S, sockaddr_un(\"{}\")) and exit 0; exit 1'",
            socket.display()
        );
        ground.refuses(&connect);
    }
    for listener in listeners {
        assert!(listener.accept().is_err(), "somebody came");
    }
    ground.refuses("echo x > \"$OUT/fifo\"");
    ground.refuses("perl -e 'open(F, \"+<\", \"$ENV{OUT}/fifo\") or exit 1; syswrite(F, \"x\")'");
    rustix::io::ioctl_fionbio(&end, true).unwrap();
    let read = std::io::Read::read(&mut end, &mut [0; 8]);
    assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    ground.refuses("cat /dev/sda /dev/vda /dev/mem /dev/kmsg");

    // Its own do work.
    let own = "perl -MSocket -e 'socket(L, AF_UNIX, SOCK_STREAM, 0); bind(L, sockaddr_un(\"own\")) \
               or die $!; listen(L, 1); socket(S, AF_UNIX, SOCK_STREAM, 0); \
               connect(S, sockaddr_un(\"own\")) or die $!; print \"connected\"'";
    assert_eq!(ground.run(own), ("connected".to_owned(), Exit::Code(0)));
}

/// Other programs take their sockets away whenever they like.
#[test]
fn s8_sockets_that_come_and_go_stop_no_command() {
    let ground = Ground::new();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (dir, done) = (&ground.outside, &done);
            scope.spawn(move || {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let paths: Vec<_> =
                        (0..50).map(|n| dir.join(format!("{thread}-{n}"))).collect();
                    let bound: Vec<_> = paths.iter().map(UnixListener::bind).collect();
                    paths.iter().for_each(|path| fs::remove_file(path).unwrap());
                    drop(bound);
                }
            });
        }
        let ran: Vec<_> = (0..60).map(|_| ground.run("true")).collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        for ran in ran {
            assert_eq!(ran, (String::new(), Exit::Code(0)));
        }
    });
}

#[test]
fn s8_an_abstract_socket_is_out_of_reach() {
    use std::os::linux::net::SocketAddrExt as _;
    let ground = Ground::new();
    let name = format!("polyloop-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    listener.set_nonblocking(true).unwrap();
    ground.refuses(&format!(
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or exit 2; \
         connect(S, pack(\"S a*\", AF_UNIX, \"\\0{name}\")) and exit 0; exit 1'"
    ));
    assert!(listener.accept().is_err());
}

#[test]
fn s9_the_servers_environment_is_out_of_reach() {
    let ground = Ground::new();
    let look = "env; cat /proc/*/environ; ls -l /proc/*/fd; ps auxe; echo looked";
    let output = Command::new(server_path())
        .arg("--writable")
        .arg(&ground.work)
        .args(["90000", "bash", "-c", look])
        .current_dir(&ground.work)
        .env("API_KEY", "very-secret")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.ends_with("looked\n"), "{output}");
    assert!(!output.contains("very-secret"), "{output}");
}

#[test]
fn s12_nobody_can_type_into_a_terminal() {
    let ground = Ground::new();
    for request in [libc::TIOCSTI, libc::TIOCLINUX] {
        let script = format!(
            "perl -e 'my $x = \"x\"; $! = 0; ioctl(STDIN, {request}, $x); exit($! == 1 ? 9 : 0)'"
        );
        assert_eq!(ground.run(&script).1, Exit::Code(9), "{request}");
    }
    ground.refuses("echo x > /dev/tty");
    ground.refuses("ls /dev/pts/[0-9]*");
}

#[test]
fn s13_where_a_command_runs_does_not_matter() {
    let ground = Ground::new();
    for place in [Path::new("/"), Path::new("/etc"), Path::new("/tmp"), &ground.outside] {
        let mut job = ground.job("touch /tmp/x; echo x > polyloop-canary && [ $PWD = /tmp ]");
        job.cwd = place.to_path_buf();
        let (output, exit) = finish(&job);
        let expected = if place == Path::new("/tmp") { 0 } else { 1 };
        assert_eq!(exit, Exit::Code(expected), "{output}");
        assert!(!place.join("polyloop-canary").exists());
    }
    ground.assert_unchanged("elsewhere");
}

#[test]
fn a_link_to_the_outside_that_was_there_before_helps_nobody() {
    let ground = Ground::new();
    symlink(&ground.outside, ground.work.join("there")).unwrap();
    symlink(ground.outside.join("canary"), ground.work.join("file")).unwrap();
    for script in ["echo x > there/new", "echo x > file", "rm there/canary", "chmod 777 file"] {
        ground.refuses(script);
    }
    assert!(has_program("perl"), "the escapes are tried with perl");
}
