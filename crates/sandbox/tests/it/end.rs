//! How a command ends: with everything it has started, whoever asks for it.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use polyloop_sandbox::{Exit, Outcome};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::roll::Roll;
use crate::{Running, finish, helper, make_fifo, read_to_end, script, server};

/// Seven processes that try to stay, in the ways programs have; each says `ready`.
const CLINGING: &str = r#"
    stay='echo ready >&9; exec sleep 80'
    bash -c "$stay" &
    nohup bash -c "$stay" >/dev/null 2>&1 &
    setsid bash -c "$stay" &
    (setsid bash -c "$stay" &) &
    setsid bash -c "trap '' TERM HUP; (setsid bash -c '$stay' &) & $stay" &
    trap '' TERM HUP INT
    eval "$stay"
"#;
const CLINGING_COUNT: usize = 7;

fn stopped() -> Outcome {
    Outcome { exit: Exit::Stopped, left_behind: 0 }
}

#[test]
fn a_deadly_signal_is_reported() {
    assert_eq!(finish(&script("kill -SEGV $$")), (String::new(), Exit::Signal(11)));
    assert_eq!(finish(&script("kill -KILL $$")), (String::new(), Exit::Signal(9)));
}

#[test]
fn the_time_limit_ends_everything() {
    let mut roll = Roll::new();
    let mut job = roll.script(CLINGING);
    job.time_limit = Duration::from_secs(1);
    assert_eq!(finish(&job).1, Exit::TimedOut);
    assert!(roll.is_empty());
}

#[test]
fn no_time_is_a_time_limit_too() {
    let mut job = script("sleep 80");
    job.time_limit = Duration::ZERO;
    assert_eq!(finish(&job).1, Exit::TimedOut);
}

#[test]
fn the_longest_time_limit_is_none() {
    let mut job = script("echo done");
    (job.time_limit, job.stop_grace) = (Duration::MAX, Duration::MAX);
    assert_eq!(finish(&job), ("done\n".to_owned(), Exit::Code(0)));
}

#[test]
fn letting_go_of_the_control_pipe_ends_everything() {
    let mut roll = Roll::new();
    let running = Running::start(&roll.script(CLINGING));
    roll.lines(CLINGING_COUNT);
    assert_eq!(running.stop(), (String::new(), stopped()));
    assert!(roll.is_empty());
}

#[test]
fn a_byte_on_the_control_pipe_ends_everything() {
    let mut roll = Roll::new();
    let running = Running::start(&roll.script(CLINGING));
    roll.lines(CLINGING_COUNT);
    assert_eq!(running.stop_by_byte(), (String::new(), stopped()));
    assert!(roll.is_empty());
}

#[test]
fn what_the_command_leaves_behind_ends_with_it() {
    let mut roll = Roll::new();
    // The last process of the list is the command itself here, and it ends when all are there.
    let leave = CLINGING.replace("eval \"$stay\"", "echo ready >&9; read -r all <\"$0\"; exit 4");
    let dir = tempfile::tempdir().unwrap();
    let gate = make_fifo(&dir);
    let mut job = roll.script(&leave);
    job.args.push(gate.clone().into());
    let running = Running::start(&job);
    roll.lines(CLINGING_COUNT);
    std::fs::write(&gate, "all there\n").unwrap();

    // Nobody stops it, and its time limit is far away: what is left must not delay the end.
    let Running { helper, control } = running;
    let outcome = read_to_end(helper).1;
    drop(control);
    assert_eq!(outcome, Outcome { exit: Exit::Code(4), left_behind: 0 });
    assert!(roll.is_empty());
}

#[test]
fn a_process_that_is_always_another_one_is_caught() {
    let mut roll = Roll::new();
    let dir = tempfile::tempdir().unwrap();
    // Each parent exits as soon as it has a child, and each child has a session of its own. The
    // command ends, and the hunt begins, when this is well under way.
    let mut job = roll.script(
        r#"perl -MPOSIX -e '
            for my $hop (1..50000) {
                exit if fork;
                setsid;
                if ($hop == 100) { open(my $gate, ">", $ARGV[0]); print $gate "go\n" }
            }' "$0" &
        read -r go <"$0"; echo "$go""#,
    );
    job.args.push(make_fifo(&dir).into());
    assert_eq!(finish(&job), ("go\n".to_owned(), Exit::Code(0)));
    assert!(roll.is_empty());
}

#[test]
fn processes_that_multiply_are_caught() {
    let mut roll = Roll::new();
    let multiply = "many() { if [ $1 -gt 0 ]; then many $(($1 - 1)) & many $(($1 - 1)) & fi; \
                    sleep 80; }; many 8 & sleep 0.1";
    assert_eq!(finish(&roll.script(multiply)), (String::new(), Exit::Code(0)));
    assert!(roll.is_empty());
}

#[test]
fn everything_may_say_good_bye() {
    let mut roll = Roll::new();
    let polite = r#"
        trap 'echo command; exit 0' TERM
        setsid bash -c 'trap "echo session; exit 0" TERM
            echo ready >&9; while :; do sleep 0.05; done' &
        echo ready >&9
        while :; do sleep 0.05; done
    "#;
    let mut job = roll.script(polite);
    job.stop_grace = Duration::from_secs(60);
    let running = Running::start(&job);
    roll.lines(2);
    let (output, outcome) = running.stop();
    assert_eq!(outcome, stopped());
    // Bash may also say that its sleep was terminated.
    let said = |word| output.lines().any(|line| line == word);
    assert!(said("command") && said("session"), "{output}");
    assert!(roll.is_empty());
}

#[test]
fn a_server_that_is_killed_takes_everything_with_it() {
    let mut roll = Roll::new();
    let tell_helper = format!("echo $PPID >&9; {CLINGING}");
    let mut server =
        server(&["bash", "-c", &roll.signed(&tell_helper)]).stdout(Stdio::null()).spawn().unwrap();
    let lines = roll.lines(CLINGING_COUNT + 1);
    let helper = Pid::from_raw(lines[0].parse().unwrap()).unwrap();
    let helper = pidfd_open(helper, PidfdFlags::empty()).unwrap();

    server.kill().unwrap();
    server.wait().unwrap();
    roll.await_empty();
    // Readable when the helper has ended, too.
    poll(&mut [PollFd::new(&helper, PollFlags::IN)], None).unwrap();
}

#[test]
fn a_server_that_dies_before_the_job_is_whole_starts_nothing() {
    let job = script("echo started").encode();
    let mut helper = helper().command().spawn().unwrap();
    let mut control = helper.stdin.take().unwrap();
    control.write_all(&job[..job.len() - 1]).unwrap();
    drop(control);
    let (output, outcome) = read_to_end(helper);
    assert_eq!(output, "");
    assert!(
        matches!(&outcome.exit, Exit::NotStarted(reason) if reason.contains("ended early")),
        "{outcome:?}"
    );
}

#[test]
fn a_signal_to_the_helper_is_a_stop_request() {
    let mut roll = Roll::new();
    for signal in ["TERM", "INT", "HUP"] {
        let ask = roll.script(&format!("kill -{signal} $PPID; sleep 80 & setsid sleep 80"));
        assert_eq!(finish(&ask), (String::new(), Exit::Stopped), "{signal}");
        assert!(roll.is_empty());
    }
}

#[test]
fn nothing_outlives_a_helper_that_is_killed_by_its_command() {
    let mut roll = Roll::new();
    let stays =
        "setsid sleep 80 & (setsid nohup sleep 80 &) ; sleep 80 & kill -KILL $PPID; sleep 80";
    let (output, exit) = finish(&roll.script(stays));
    assert_eq!((output, exit), (String::new(), Exit::Lost(String::new())));
    assert!(roll.is_empty(), "when it is told that the helper was killed, all has ended");
}

#[test]
fn a_helper_that_was_frozen_goes_on() {
    let mut roll = Roll::new();
    let (output, exit) = finish(&roll.script("kill -STOP $PPID; echo a; setsid sleep 80 & exit 3"));
    assert_eq!((output.as_str(), exit), ("a\n", Exit::Code(3)));
    assert!(roll.is_empty());
}

#[test]
fn a_keeper_that_is_killed_ends_the_job() {
    let mut roll = Roll::new();
    // The last word stays: one that ends at once may end before the keeper is missed.
    let find = "read -r _ _ _ keeper _ < /proc/$PPID/stat; kill -KILL $keeper; \
                setsid sleep 80 & exec sleep 80";
    let (_, exit) = finish(&roll.script(find));
    assert_eq!(exit, Exit::Stopped);
    roll.await_empty();
}

#[test]
fn a_command_does_not_outlive_a_helper_that_is_killed() {
    let mut roll = Roll::new();
    let (output, exit) = finish(&roll.script("kill -KILL $PPID; exec sleep 80"));
    assert_eq!((output, exit), (String::new(), Exit::Lost(String::new())));
    roll.await_empty();
}
