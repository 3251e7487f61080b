//! Nothing stays: whatever a confined command does, it ends, with all that it started.

use std::process::{Command, Stdio};
use std::time::Duration;

use polyloop_sandbox::{Exit, Job};

use crate::ground::Ground;
use crate::roll::Roll;
use crate::{Running, finish, make_fifo_in, server_path};

/// Ways to stay; each leaves somebody behind who holds the roll open, and ends at once.
const WAYS: &[&str] = &[
    "nohup sleep 80 >/dev/null 2>&1 &",
    "setsid sleep 80 &",
    "(setsid sleep 80 &) &",
    "(trap '' TERM HUP INT; sleep 80) &",
    "setsid bash -c \"trap '' TERM HUP; (setsid sleep 80 &) & sleep 80\" &",
    "perl -MPOSIX -e 'exit if fork; setsid; exit if fork; $SIG{$_} = \"IGNORE\" for keys %SIG; \
     sleep 80'",
    "nohup setsid bash -c 'while :; do sleep 80 & wait; done' >/dev/null 2>&1 & disown",
    "bash -c 'kill -STOP $$' & sleep 0.01",
    "perl -MPOSIX -e 'for (1..2000) { exit if fork; setsid }; sleep 80' &",
    "trap '' TERM HUP; coproc sleep 80",
];

const COMMANDS: usize = 200;

/// A new one for each job: a roll has one end.
fn roll(ground: &Ground) -> Roll {
    let _ = std::fs::remove_file(ground.work.join("fifo"));
    Roll::at(make_fifo_in(&ground.work))
}

fn job(ground: &Ground, roll: &Roll, script: &str) -> Job {
    ground.job(&roll.signed(script))
}

#[test]
fn two_hundred_commands_leave_nobody() {
    let ground = Ground::new();
    let mut roll = roll(&ground);
    for way in WAYS.iter().cycle().take(COMMANDS) {
        let (output, exit) = finish(&job(&ground, &roll, way));
        assert_eq!(exit, Exit::Code(0), "{way}: {output}");
        assert!(roll.is_empty(), "{way}");
    }
}

#[test]
fn a_stop_or_the_time_limit_leaves_nobody() {
    let ground = Ground::new();
    for way in WAYS {
        let mut roll = roll(&ground);
        let stay = format!("{way}\necho ready >&9; trap '' TERM; while :; do sleep 80; done");
        let running = Running::start(&job(&ground, &roll, &stay));
        roll.lines(1);
        let (output, outcome) = running.stop();
        assert_eq!((outcome.exit, outcome.left_behind), (Exit::Stopped, 0), "{way}: {output}");
        assert!(roll.is_empty(), "{way}");
    }
    let mut roll = roll(&ground);
    let mut job = job(&ground, &roll, "trap '' TERM; setsid sleep 80 & sleep 80");
    job.time_limit = Duration::from_millis(500);
    assert_eq!(finish(&job).1, Exit::TimedOut);
    assert!(roll.is_empty());
}

#[test]
fn everything_may_say_good_bye() {
    let ground = Ground::new();
    let mut roll = roll(&ground);
    let polite = r#"
        trap 'echo command; exit 0' TERM
        setsid bash -c 'trap "echo session; exit 0" TERM
            echo ready >&9; while :; do sleep 0.05; done' &
        echo ready >&9
        while :; do sleep 0.05; done
    "#;
    let mut job = job(&ground, &roll, polite);
    job.stop_grace = Duration::from_secs(60);
    let running = Running::start(&job);
    roll.lines(2);
    let (output, outcome) = running.stop();
    assert_eq!(outcome.exit, Exit::Stopped);
    let said = |word| output.lines().any(|line| line == word);
    assert!(said("command") && said("session"), "{output}");
    assert!(roll.is_empty());
}

#[test]
fn a_helper_that_is_killed_takes_everything_with_it() {
    let ground = Ground::new();
    for way in WAYS {
        let mut roll = roll(&ground);
        let stay = format!("{way}\necho ready >&9; sleep 80");
        let Running { mut helper, control } = Running::start(&job(&ground, &roll, &stay));
        roll.lines(1);
        helper.kill().unwrap();
        helper.wait().unwrap();
        drop(control);
        roll.await_empty();
    }
}

#[test]
fn a_server_that_is_killed_takes_everything_with_it() {
    let ground = Ground::new();
    let mut roll = roll(&ground);
    let stay = roll.signed("setsid sleep 80 & echo ready >&9; trap '' TERM; sleep 80");
    let mut server = Command::new(server_path());
    server.arg("--writable").arg(&ground.work).args(["90000", "bash", "-c", &stay]);
    server.current_dir(&ground.work);
    let mut server = server.stdout(Stdio::null()).spawn().unwrap();
    roll.lines(1);
    server.kill().unwrap();
    server.wait().unwrap();
    roll.await_empty();
}

#[test]
fn the_first_process_cannot_be_harmed_from_inside() {
    let ground = Ground::new();
    let script = "for s in KILL STOP TERM INT HUP SEGV USR1; do kill -$s 1; done; \
                  ls -l /proc/1/fd /proc/1/cwd; cat /proc/1/environ /proc/1/mem; \
                  echo x > /proc/1/oom_score_adj; echo alive; exit 7";
    let (output, exit) = ground.run(script);
    assert_eq!(exit, Exit::Code(7), "{output}");
    assert!(output.ends_with("alive\n"), "{output}");
    assert!(!output.contains(" -> "), "{output}");
}
