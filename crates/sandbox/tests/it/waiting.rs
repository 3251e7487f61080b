//! A helper that waits for its job: it is there before the job, and knows nothing of what comes.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::process::{Child, ChildStdin};
use std::time::{Duration, Instant};

use polyloop_sandbox::{Exit, Job, Outcome};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::ground::Ground;
use crate::{LONG, helper, read_to_end, script};

/// A helper for a confined job, and the first process of the sandbox that it has made.
struct Waiting {
    helper: Child,
    control: ChildStdin,
    init: Pid,
}

impl Waiting {
    fn new(job: &Job) -> Waiting {
        let mut helper = helper().command_for(&job.confinement).spawn().unwrap();
        let control = helper.stdin.take().unwrap();
        let keeper = i32::try_from(helper.id()).unwrap();
        let init = child_of(child_of(keeper));
        Waiting { helper, control, init: Pid::from_raw(init).unwrap() }
    }

    fn finish(mut self, job: &Job) -> (String, Outcome) {
        self.control.write_all(&job.encode()).unwrap();
        let ended = read_to_end(self.helper);
        drop(self.control);
        ended
    }
}

/// The one child of a process, once it has one.
pub fn child_of(pid: i32) -> i32 {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let until = Instant::now() + LONG;
    while Instant::now() < until {
        let children = fs::read_to_string(&path).unwrap();
        if let Some(child) = children.split_whitespace().next() {
            return child.parse().unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{pid} has no child");
}

fn code(code: i32) -> Outcome {
    Outcome { exit: Exit::Code(code), left_behind: 0 }
}

#[test]
fn what_came_while_it_waited_counts() {
    let ground = Ground::new();
    let secret = ground.outside.join("secret");
    let mut sandbox = ground.sandbox();
    sandbox.hidden.push(secret.clone());
    let program = r#"
        cat late || exit 1
        cat "$OUT/late" || exit 2
        cat "$OUT/secret" && exit 3
        perl -MIO::Socket::UNIX -e 'exit !IO::Socket::UNIX->new(Peer => $ARGV[0])' "$OUT/s" &&
            exit 4
        exit 0"#;
    let job = ground.job_in(sandbox, program);
    let waiting = Waiting::new(&job);
    fs::write(ground.work.join("late"), "work ").unwrap();
    fs::write(ground.outside.join("late"), "outside").unwrap();
    fs::write(secret, "secret").unwrap();
    let _listener = UnixListener::bind(ground.outside.join("s")).unwrap();
    let (output, outcome) = waiting.finish(&job);
    assert_eq!(outcome, code(0), "{output}");
    assert!(output.contains("work outside") && !output.contains("secret\n"), "{output}");
}

#[test]
fn it_takes_a_job_of_the_other_kind() {
    let confined = Ground::new().job("echo confined");
    let (output, outcome) = Waiting::new(&confined).finish(&script("echo free; exit 3"));
    assert_eq!((output.as_str(), outcome), ("free\n", code(3)));
}

#[test]
fn it_makes_another_sandbox_if_the_first_was_killed() {
    let ground = Ground::new();
    let job = ground.job("test $$ -lt 10 && echo confined");
    let waiting = Waiting::new(&job);
    let init = pidfd_open(waiting.init, PidfdFlags::empty()).unwrap();
    kill_process(waiting.init, Signal::KILL).unwrap();
    poll(&mut [PollFd::new(&init, PollFlags::IN)], None).unwrap();
    let (output, outcome) = waiting.finish(&job);
    assert_eq!((output.as_str(), outcome), ("confined\n", code(0)));
}

#[test]
fn it_ends_with_the_server() {
    let ground = Ground::new();
    let Waiting { helper, control, init } = Waiting::new(&ground.job("true"));
    let init = pidfd_open(init, PidfdFlags::empty()).unwrap();
    drop(control);
    let (output, outcome) = read_to_end(helper);
    assert_eq!(output, "");
    assert!(matches!(&outcome.exit, Exit::NotStarted(why) if why.contains("ended early")));
    // Readable when it has ended.
    poll(&mut [PollFd::new(&init, PollFlags::IN)], None).unwrap();
}
