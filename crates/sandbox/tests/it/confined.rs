//! What a confined command still can do, and what it is.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;

use polyloop_sandbox::{Availability, Exit, Refusal, probe, refusal};
use rustix::io::{FdFlags, fcntl_setfd};

use crate::ground::Ground;
use crate::{Running, finish, helper};

fn ok(text: &str) -> (String, Exit) {
    (text.to_owned(), Exit::Code(0))
}

#[test]
fn the_sandbox_is_available_here() {
    assert_eq!(probe(&helper()), Availability::Available { remarks: Vec::new() });
}

#[test]
fn a_program_that_is_no_helper_is_no_sandbox() {
    let nothing = probe(&polyloop_sandbox::Helper::at("/bin/true"));
    let Availability::NotAvailable(why) = nothing else { panic!("{nothing:?}") };
    assert!(why.contains("Lost"), "{why}");
    assert!(!probe(&polyloop_sandbox::Helper::at("/nonexistent")).is_available());
}

#[test]
fn work_can_be_done() {
    let ground = Ground::new();
    let script = "mkdir -p a/b && echo text > a/b/file && mv a/b/file a/ && ln a/file hard && \
                  ln -s a/file soft && cat hard soft && chmod 600 a/file && truncate -s 2 hard && \
                  mkfifo pipe && rm -r a/b pipe && cat a/file && touch -d 2001-01-01 a/file";
    assert_eq!(ground.run(script), ok("text\ntext\nte"));
    assert_eq!(fs::read_to_string(ground.work.join("soft")).unwrap(), "te");
}

#[test]
fn the_outside_can_be_read() {
    let ground = Ground::new();
    assert_eq!(ground.run("cat \"$OUT/canary\" && ls \"$OUT\""), ok("alivecanary\ndirectory\n"));
}

#[test]
fn usual_devices_and_tools_work() {
    let ground = Ground::new();
    let script = r#"echo x >/dev/null && head -c 3 /dev/zero | wc -c &&
        [ -n "$(head -c 8 /dev/urandom | od -An -tx1)" ] && echo y >/dev/stdout &&
        echo "$(echo substituted)" && cat <(echo process) && cat <<<here &&
        [ "$(ls /proc | grep -c '^[0-9]')" -lt 9 ] && seq 3 | xargs -n1 -P3 echo | sort"#;
    assert_eq!(ground.run(script), ok("3\ny\nsubstituted\nprocess\nhere\n1\n2\n3\n"));
}

#[test]
fn a_terminal_can_be_made() {
    let ground = Ground::new();
    let script = r#"perl -e 'use Fcntl;
        sysopen(my $t, "/dev/ptmx", O_RDWR | O_NOCTTY) or die $!;
        my $n = pack("i", 0); ioctl($t, 0x40045431, $n) // die $!;
        ioctl($t, 0x80045430, $n) // die $!; my $s = "/dev/pts/" . unpack("i", $n);
        sysopen(my $p, $s, O_RDWR | O_NOCTTY) or die $!; print -t $p ? "terminal\n" : "none\n"'"#;
    assert_eq!(ground.run(script), ok("terminal\n"));
}

#[test]
fn temporary_files_are_its_own_and_gone_afterwards() {
    let ground = Ground::new();
    let name = format!("polyloop-test-{}", std::process::id());
    let script = format!(
        "for d in /tmp /var/tmp /dev/shm; do echo $d > $d/{name} && cat $d/{name} || exit 1; done"
    );
    assert_eq!(ground.run(&script), ok("/tmp\n/var/tmp\n/dev/shm\n"));
    for directory in ["/tmp", "/var/tmp", "/dev/shm"] {
        assert!(!std::path::Path::new(directory).join(&name).exists(), "{directory}");
    }
    assert_eq!(ground.run(&format!("ls /tmp | grep -c {name}")), ("0\n".into(), Exit::Code(1)));
}

#[test]
fn a_directory_for_work_below_the_temporary_one_is_there() {
    let ground = Ground::new();
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().canonicalize().unwrap();
    let mut sandbox = ground.sandbox();
    sandbox.writable.push(work.clone());
    let script = format!("cd '{}' && echo made > file && ls -A /tmp | wc -l", work.display());
    assert_eq!(ground.run_in(sandbox, &script), ok("1\n"));
    assert_eq!(fs::read_to_string(work.join("file")).unwrap(), "made\n");
}

#[test]
fn it_is_the_same_user_without_any_right() {
    let ground = Ground::new();
    let user = format!("{}\n", rustix::process::getuid().as_raw());
    assert_eq!(ground.run("id -u"), ok(&user));
    let script = "grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status";
    let none = "0000000000000000";
    let expected = format!(
        "CapInh:\t{none}\nCapPrm:\t{none}\nCapEff:\t{none}\nCapBnd:\t{none}\nCapAmb:\t{none}\n\
         NoNewPrivs:\t1\nSeccomp:\t2\n"
    );
    assert_eq!(ground.run(script), ok(&expected));
    // If memory runs out, it goes before the server.
    assert_eq!(ground.run("cat /proc/self/oom_score_adj"), ok("1000\n"));
}

#[test]
fn it_has_namespaces_of_its_own() {
    let ground = Ground::new();
    for name in ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"] {
        let path = format!("/proc/self/ns/{name}");
        let (inside, exit) = ground.run(&format!("readlink {path}"));
        let outside = fs::read_link(&path).unwrap();
        assert!(inside.starts_with(name), "{inside}");
        assert_ne!(inside.trim_end(), outside.to_str().unwrap());
        assert_eq!(exit, Exit::Code(0));
    }
    // No interface but its own loopback, which is down.
    let (interfaces, _) = ground.run("tail -n +3 /proc/net/dev | cut -d: -f1");
    assert_eq!(interfaces.trim(), "lo");
    // Only what may be written to is mounted so.
    let script = "awk '$4 ~ /^rw/ && $2 !~ /^\\/dev\\/(full|null|random|tty|urandom|zero|pts)$/ \
                  {print $2}' /proc/mounts | sort -u";
    let expected = format!("/dev/shm\n{}\n/tmp\n/var/tmp\n", ground.work.display());
    let mut lines: Vec<&str> = expected.lines().collect();
    lines.sort_unstable();
    assert_eq!(ground.run(script), ok(&format!("{}\n", lines.join("\n"))));
}

#[test]
fn only_the_standard_streams_are_open() {
    let leak = File::open("/etc/passwd").unwrap();
    fcntl_setfd(&leak, FdFlags::empty()).unwrap();
    assert!(leak.as_raw_fd() > 2);
    let ground = Ground::new();
    let script = "ls /proc/$$/fd; readlink /proc/$$/fd/0; true";
    assert_eq!(ground.run(script), ok("0\n1\n2\n/dev/null\n"));
}

#[test]
fn the_environment_is_exactly_what_was_given() {
    let ground = Ground::new();
    let mut job = ground.job("");
    (job.program, job.args) = ("/usr/bin/env".into(), Vec::new());
    job.env = vec![("ONE".into(), "1".into())];
    assert_eq!(finish(&job), ok("ONE=1\n"));
}

#[test]
fn how_it_ends_is_reported() {
    let ground = Ground::new();
    assert_eq!(ground.run("exit 3").1, Exit::Code(3));
    assert_eq!(ground.run("exit 255").1, Exit::Code(255));
    assert_eq!(ground.run("kill -SEGV $$").1, Exit::Signal(11));
    assert_eq!(ground.run("kill -KILL $$").1, Exit::Signal(9));
    let mut job = ground.job("sleep 80");
    job.time_limit = std::time::Duration::from_millis(300);
    assert_eq!(finish(&job).1, Exit::TimedOut);
    let (output, outcome) = Running::start(&ground.job("echo started; sleep 80")).stop();
    assert!(matches!(outcome.exit, Exit::Stopped), "{outcome:?} {output}");
}

#[test]
fn what_cannot_start_says_why() {
    let ground = Ground::new();
    let mut job = ground.job("");
    job.program = "no-such-program".into();
    job.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let missing = "no-such-program: cannot be run: No such file or directory (os error 2)";
    assert_eq!(finish(&job).1, Exit::NotStarted(missing.to_owned()));
    let mut job = ground.job("true");
    job.cwd = "/no/such/directory".into();
    let (_, Exit::NotStarted(why)) = finish(&job) else { panic!() };
    assert!(why.starts_with("/no/such/directory: cannot be entered: "), "{why}");
}

#[test]
fn a_bad_description_is_refused_and_nothing_runs() {
    let ground = Ground::new();
    let link = ground.work.with_file_name("link");
    std::os::unix::fs::symlink(&ground.work, &link).unwrap();
    for root in ["/".into(), "/etc".into(), ground.outside.join("missing"), link, "work".into()] {
        let mut sandbox = ground.sandbox();
        sandbox.writable = vec![root.clone()];
        let mut output = Vec::new();
        let job = ground.job_in(sandbox, "echo ran");
        let outcome = polyloop_sandbox::run(&helper(), &job, &mut output).unwrap();
        let Some(Refusal::NotSetUp(why)) = refusal(&outcome, "") else { panic!("{outcome:?}") };
        assert!(why.contains(root.to_str().unwrap()), "{why}");
        assert!(output.is_empty());
    }
}

#[test]
fn several_directories_can_be_writable() {
    let ground = Ground::new();
    let mut sandbox = ground.sandbox();
    sandbox.writable.extend([ground.outside.join("directory"), ground.work.join(".")]);
    let script = "echo x > \"$OUT/directory/new\" && echo y > new && ! echo z > \"$OUT/new\"";
    let (output, exit) = ground.run_in(sandbox, script);
    assert_eq!(exit, Exit::Code(0), "{output}");
    assert!(ground.outside.join("directory/new").exists() && !ground.outside.join("new").exists());
}
