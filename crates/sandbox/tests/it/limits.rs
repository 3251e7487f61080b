//! What a command may use up.

use std::fs;
use std::time::Duration;

use polyloop_sandbox::{Exit, Outcome, Refusal, Sandbox, refusal};

use crate::finish;
use crate::ground::Ground;

const MIB: u64 = 1024 * 1024;

fn small(ground: &Ground) -> Sandbox {
    let mut sandbox = ground.sandbox();
    sandbox.limits.memory_bytes = 256 * MIB;
    sandbox.limits.processes = 320;
    sandbox.limits.open_files = 64;
    sandbox.limits.file_bytes = MIB;
    sandbox.limits.temporary_bytes = 4 * MIB;
    sandbox
}

fn told(output: &str, exit: &Exit) -> Option<Refusal> {
    refusal(&Outcome { exit: exit.clone(), left_behind: 0 }, output)
}

#[test]
fn s11_a_fork_bomb_is_bounded() {
    let ground = Ground::new();
    // Counts how many it can have at one time.
    let script = r#"perl -e '
        my $n = 0;
        while ($n < 5000) { my $p = fork; last unless defined $p; if (!$p) { sleep 80; exit } $n++ }
        print "$n\n"; exit($n < 5000 ? 0 : 1)'"#;
    let (output, exit) = ground.run_in(small(&ground), script);
    assert_eq!(exit, Exit::Code(0), "{output}");
    let count: usize = output.trim().parse().unwrap();
    assert!((200..=320).contains(&count), "{count}");

    let mut job = ground.job_in(small(&ground), "bomb() { bomb | bomb & }; bomb; sleep 80");
    job.time_limit = Duration::from_secs(2);
    let (_, exit) = finish(&job);
    assert!(matches!(exit, Exit::TimedOut | Exit::Code(_)), "{exit:?}");
    assert_eq!(ground.run("echo fine"), ("fine\n".to_owned(), Exit::Code(0)));
}

#[test]
fn s11_the_machine_keeps_its_own_limit_of_processes() {
    let before = fs::read("/proc/sys/kernel/pid_max").unwrap();
    let ground = Ground::new();
    assert_eq!(ground.run_in(small(&ground), "true").1, Exit::Code(0));
    assert_eq!(fs::read("/proc/sys/kernel/pid_max").unwrap(), before);
}

#[test]
fn s11_memory_is_bounded() {
    let ground = Ground::new();
    // 64 GiB, with the ordinary limits.
    let script = "python3 -c 'x = bytearray(64 << 30)'";
    let (output, exit) = ground.run(script);
    assert_eq!(exit, Exit::Code(1), "{output}");
    assert_eq!(told(&output, &exit), Some(Refusal::Limit), "{output}");
    let (output, exit) = ground.run_in(small(&ground), "perl -e '$x = \"x\" x (1 << 30)'");
    assert!(!matches!(exit, Exit::Code(0)), "{output}");
    let fits = "perl -e '$x = \"x\" x (64 << 20); print length $x'";
    assert_eq!(ground.run_in(small(&ground), fits).0, (64 * MIB).to_string());
}

#[test]
fn s11_a_file_is_bounded() {
    let ground = Ground::new();
    let script = "head -c 8M /dev/zero > large";
    let (output, exit) = ground.run_in(small(&ground), script);
    assert!(!matches!(exit, Exit::Code(0)), "{output}");
    assert_eq!(told(&output, &exit), Some(Refusal::Limit), "{exit:?} {output}");
    assert!(fs::metadata(ground.work.join("large")).unwrap().len() <= MIB);
}

#[test]
fn s11_temporary_space_is_bounded() {
    let ground = Ground::new();
    let script = "for i in $(seq 100); do head -c 1M /dev/zero > /tmp/$i || exit 1; done";
    let (output, exit) = ground.run_in(small(&ground), script);
    assert_eq!(exit, Exit::Code(1), "{output}");
    assert_eq!(told(&output, &exit), Some(Refusal::Limit), "{output}");
    let many = "perl -e 'for (1..1000000) { open(F, \">\", \"/tmp/$_\") or exit 3 }'";
    assert_eq!(ground.run(many).1, Exit::Code(3));
}

#[test]
fn s11_open_files_are_bounded() {
    let ground = Ground::new();
    let script = "perl -e 'for (1..200) { open($f[$_], \"<\", \"/dev/null\") or exit 3 }'";
    assert_eq!(ground.run_in(small(&ground), script).1, Exit::Code(3));
    assert_eq!(ground.run(script).1, Exit::Code(0));
}

#[test]
fn s11_processor_time_is_bounded() {
    let ground = Ground::new();
    let mut sandbox = ground.sandbox();
    sandbox.limits.cpu_time = Duration::from_secs(1);
    let (output, exit) = ground.run_in(sandbox, "exec perl -e '1 while 1'");
    assert_eq!(exit, Exit::Signal(libc::SIGXCPU), "{output}");
    assert_eq!(told(&output, &exit), Some(Refusal::Limit));
}

#[test]
fn s11_much_output_passes_and_can_be_stopped() {
    let ground = Ground::new();
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            if self.0 > 50_000_000 {
                Err(std::io::ErrorKind::StorageFull.into())
            } else {
                Ok(bytes.len())
            }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let job = ground.job("cat /dev/zero");
    let stopped = polyloop_sandbox::run(&crate::helper(), &job, &mut Full(0));
    assert_eq!(stopped.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
}
