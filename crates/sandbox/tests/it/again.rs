//! A helper that takes one job after the other: each is as alone as if it were the only one.

use std::io::{PipeReader, Read as _, pipe};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr};
use std::time::{Duration, Instant};

use polyloop_sandbox::{Confinement, Exit, Job, Outcome, TEMPORARY_DIRECTORY};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::ground::Ground;
use crate::waiting::child_of;
use crate::{LONG, helper, script};

struct Again {
    helper: Child,
    control: UnixStream,
    report: ChildStderr,
}

impl Again {
    fn new(confinement: &Confinement) -> Again {
        let (mut helper, control) = helper().start(confinement).unwrap();
        let report = helper.stderr.take().unwrap();
        Again { helper, control, report }
    }

    fn begin(&self, job: &Job) -> PipeReader {
        let (output, end) = pipe().unwrap();
        job.send(&self.control, &end, || ()).unwrap();
        output
    }

    /// The output ends with the job although the helper lives on.
    fn run(&mut self, job: &Job) -> (String, Outcome) {
        let (mut output, mut report) = (String::new(), Vec::new());
        self.begin(job).read_to_string(&mut output).unwrap();
        while !Outcome::is_whole(&report) {
            let mut part = [0; 256];
            let read = self.report.read(&mut part).unwrap();
            assert_ne!(read, 0, "{}", String::from_utf8_lossy(&report));
            report.extend_from_slice(&part[..read]);
        }
        (output, Outcome::decode(&report))
    }

    fn keeper(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.helper.id()).unwrap()).unwrap()
    }

    /// What it still says, to its very end.
    fn last_words(mut self) -> Outcome {
        let (mut report, mut part) = (Vec::new(), [0; 256]);
        let patience = Timespec::try_from(LONG).unwrap();
        loop {
            let mut fds = [PollFd::new(&self.report, PollFlags::IN)];
            assert_ne!(poll(&mut fds, Some(&patience)).unwrap(), 0, "it lives on");
            match self.report.read(&mut part).unwrap() {
                0 => break,
                read => report.extend_from_slice(&part[..read]),
            }
        }
        self.helper.wait().unwrap();
        Outcome::decode(&report)
    }
}

fn code(code: i32) -> Outcome {
    Outcome { exit: Exit::Code(code), left_behind: 0 }
}

#[test]
fn each_job_has_its_own_output_and_nothing_of_the_last() {
    let mut again = Again::new(&Confinement::None);
    let dir = tempfile::tempdir().unwrap();
    let mut first = script("export LEFT=1; ulimit -n 64; umask 077; pwd; echo one >&2; exit 3");
    first.cwd = dir.path().to_owned();
    first.env.push(("GIVEN".into(), "1".into()));
    let (output, outcome) = again.run(&first);
    assert_eq!(output, format!("{}\none\n", dir.path().display()));
    assert_eq!(outcome, code(3));
    let state = "pwd; env | grep -c -e GIVEN -e LEFT; umask; ls /proc/self/fd | wc -l; ulimit -n";
    let (alone, _) = crate::finish(&script(state));
    assert_eq!(again.run(&script(state)), (alone, code(0)));
    let killed = Outcome { exit: Exit::Signal(9), left_behind: 0 };
    assert_eq!(again.run(&script("kill -9 $$")), (String::new(), killed));
    let long = script(&format!("echo {}", "x".repeat(100_000)));
    assert_eq!(again.run(&long).0.len(), 100_001);
}

#[test]
fn what_a_job_started_ends_before_the_next() {
    let mut again = Again::new(&Confinement::None);
    let (output, _) = again.run(&script("setsid sleep 1000 & echo $!"));
    let left: i32 = output.trim().parse().unwrap();
    let gone = format!("kill -0 {left} 2>/dev/null && echo lives || echo gone");
    assert_eq!(again.run(&script(&gone)).0, "gone\n");
}

#[test]
fn each_helper_is_a_new_process_below_the_same_keeper() {
    let mut again = Again::new(&Confinement::None);
    let parent = script("echo $PPID; ps -o ppid= -p $PPID");
    let (one, other) = (again.run(&parent).0, again.run(&parent).0);
    let numbers = |text: &str| -> Vec<u32> {
        text.split_whitespace().map(|number| number.parse().unwrap()).collect()
    };
    let (one, other) = (numbers(&one), numbers(&other));
    assert_ne!(one[0], other[0]);
    assert_eq!((one[1], other[1]), (again.helper.id(), again.helper.id()));
}

#[test]
fn sandboxes_one_after_the_other() {
    let ground = Ground::new();
    let left = format!("{TEMPORARY_DIRECTORY}/left");
    let program = format!("test $$ -lt 10 && test ! -e {left} && touch {left} && echo in");
    let job = ground.job(&program);
    let mut again = Again::new(&job.confinement);
    for _ in 0..3 {
        assert_eq!(again.run(&job), ("in\n".to_owned(), code(0)));
    }
    assert_eq!(again.run(&script("test $$ -gt 10 && echo out")), ("out\n".to_owned(), code(0)));
}

#[test]
fn it_ends_with_a_job_that_did_not_end_by_itself() {
    let mut late = script("echo begun; sleep 1000");
    late.time_limit = Duration::from_millis(50);
    let mut again = Again::new(&Confinement::None);
    let (output, outcome) = again.run(&late);
    assert_eq!((output.as_str(), outcome.exit), ("begun\n", Exit::TimedOut));
    assert_eq!(again.last_words().exit, Exit::Lost(String::new()));
    let again = Again::new(&Confinement::None);
    again.begin(&crate::job("/no/such/program", &[]));
    assert!(matches!(again.last_words().exit, Exit::NotStarted(_)));
}

#[test]
fn to_let_go_of_its_control_stops_the_job_or_the_wait() {
    let mut again = Again::new(&Confinement::None);
    let mut output = again.begin(&script("echo begun; sleep 1000"));
    output.read_exact(&mut [0; 6]).unwrap();
    again.control.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(again.last_words().exit, Exit::Stopped);

    again = Again::new(&Confinement::None);
    assert_eq!(again.run(&script("true")).1, code(0));
    again.control.shutdown(std::net::Shutdown::Both).unwrap();
    assert!(matches!(again.last_words().exit, Exit::NotStarted(_)));
}

#[test]
fn a_keeper_that_is_asked_to_end_makes_no_other_helper() {
    let mut again = Again::new(&Confinement::None);
    let keeper = again.keeper();
    child_of(keeper.as_raw_pid());
    // So that it hears of both at once: its helper has ended, and it is to end.
    kill_process(keeper, Signal::STOP).unwrap();
    assert_eq!(again.run(&script("true")).1, code(0));
    kill_process(keeper, Signal::TERM).unwrap();
    kill_process(keeper, Signal::CONT).unwrap();
    let until = Instant::now() + LONG;
    while again.helper.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "it lives on");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn one_that_was_frozen_while_it_waited_takes_its_job_when_woken() {
    let mut again = Again::new(&Confinement::None);
    assert_eq!(again.run(&script("true")).1, code(0));
    kill_process_group(again.keeper(), Signal::STOP).unwrap();
    let mut output = again.begin(&script("echo woken"));
    kill_process_group(again.keeper(), Signal::CONT).unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    assert_eq!(text, "woken\n");
}
