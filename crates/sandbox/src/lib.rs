//! Where commands run: the only place in the project where a process is started.
//!
//! Never knows sessions, and never lets a command outlive its job: when a job ends, by itself, by
//! its time limit, because it was stopped or because the server died, so does everything it
//! started.
//!
//! A command runs as it is, or in a [`Sandbox`]: no network, writes only where it may, no secrets,
//! limits. A sandbox is whole or there is none: see [`Confinement`] and [`probe`].
//!
//! # The helper
//!
//! A command is not a child of the server. The server starts *itself* again as a small
//! single-threaded helper, one for each job, and the helper starts the command:
//!
//! ```text
//! server ──stdin───▶ helper ──▶ command (own session) ──▶ whatever it starts
//!        ◀──stdout──   │  ◀── stdout and stderr of the command, in the order written
//!        ◀──stderr──   └───── how the job ended
//! ```
//!
//! The three standard streams of the helper are three pipes, and they are the whole protocol:
//!
//! - **stdin, the control pipe**, carries the job ([`Job::encode`]). After that, one more byte or
//!   the end of the pipe is the request to stop. The end also comes when the server is killed.
//! - **stdout, the output**, is what the command and its children write, stdout and stderr in one
//!   pipe. The helper itself never writes there.
//! - **stderr, the report**, stays empty until the job has ended, then carries one [`Outcome`]
//!   ([`Outcome::decode`]). The command has no descriptor of this pipe, so output cannot be
//!   mistaken for a report. When the report is whole ([`Outcome::is_whole`]), or the pipe has
//!   ended, all output is in the output pipe.
//!
//! The helper is the child subreaper of everything below it: a process whose parent has ended
//! (`nohup`, `setsid`, a double fork) becomes a child of the helper and can be found. When the
//! command itself ends, the rest is killed at once. A stop or the time limit sends `SIGTERM`
//! first, and `SIGKILL` to what is left after [`Job::stop_grace`]. Only then the helper reports.
//!
//! Above the helper stands its keeper, the process that the server started: it wakes a helper that
//! the command has frozen, and if the helper is killed, ends what that left.
//!
//! # One after the other
//!
//! To start a helper takes longer than most commands do. So there is one that takes job after job
//! ([`Helper::start`]): its control pipe is a socket, through which each job comes with the pipe for
//! its own output ([`Job::send`]). When a job has come to its end and nothing of it is left
//! ([`Outcome::takes_another`]), the keeper forks a new helper, which knows nothing of the last job;
//! in every other case the keeper ends, and the report pipe with it.
//!
//! The command gets exactly the environment, directory and arguments of its job, `/dev/null` as
//! stdin, default signal handling, and no open descriptor but 0, 1 and 2. The helper's own
//! environment is empty.
//!
//! # Using it
//!
//! [`run`] does it all and blocks. An asynchronous caller does the same with its own handles:
//!
//! 1. The program calls [`become_helper_if_asked`] first thing in `main`, before any thread.
//! 2. Start [`Helper::command`], with all three pipes. **Take stdin out of the child before
//!    waiting for it**: the usual `wait` closes stdin, and that is a stop request.
//! 3. Write [`Job::encode`] to stdin and keep it. An error here needs no care: the report tells.
//! 4. Read stdout and stderr side by side. When the report is whole or stderr ends, decode it. If
//!    then [`Outcome::all_ended`], stdout ends too and can be read to its end; if not, somebody may hold
//!    it open for long, so take what is there.
//!
//! # What it cannot do without confinement
//!
//! A command runs as the same user, so a hostile one can look for the helper and its keeper and
//! kill or freeze both. If both are killed, the command is killed with them, but what the command
//! had started lives on. If they are frozen, nobody watches the time: a caller that must be sure
//! has a deadline of its own, later than the job's, and kills the helper's group. A program that runs as another
//! user (`sudo`) cannot be killed; [`Outcome::left_behind`] counts it. There is no limit on memory
//! or on the number of processes.
//!
//! Linux only: it needs `/proc`.

#![allow(
    clippy::disallowed_methods,
    reason = "this crate is where std::process::Command may be used; all others come here"
)]

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

mod bash;
#[cfg(target_os = "linux")]
mod confine;
#[cfg(not(target_os = "linux"))]
#[path = "no_confine.rs"]
mod confine;
mod confinement;
mod helper;
mod keeper;
mod probe;
mod refusal;
mod run;
mod spawn;
mod tree;
mod wire;

pub use bash::bash_args;
pub use confinement::{
    Confinement, IfMissing, Limits, Network, ReadOnly, Sandbox, TEMPORARY_DIRECTORY,
};
pub use helper::become_helper_if_asked;
pub use probe::{Availability, probe};
pub use refusal::{Refusal, refusal};
pub use run::run;

/// The first argument that makes a program that calls [`become_helper_if_asked`] the helper.
const HELPER_ARG: &str = "__sandbox";

/// The second one if the job will be a confined one: what all sandboxes have in common is then made
/// before the job is there.
const PREPARED_ARG: &str = "prepared";

/// The last one if there will be a job after the first.
const AGAIN_ARG: &str = "again";

/// The first argument that makes it the check that runs inside a sandbox; see [`probe`].
const CHECK_ARG: &str = "__sandbox-check";

/// How the reason of [`Exit::NotStarted`] begins if it was the sandbox.
const SANDBOX_FAILED: &str = "the sandbox could not be set up: ";

/// The longest job the helper accepts, encoded.
pub const JOB_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The longest report a helper writes; a caller need not read more.
pub const REPORT_BYTES_MAX: usize = 64 * 1024;

/// Keeps other processes of the same user, commands above all, from looking into this one: its
/// memory and its environment hold keys. Root can still look.
pub fn hide_from_commands() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // It only fails for a behaviour that the kernel does not know.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// One command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// A path, relative to `cwd` if it has a slash, or a name that is looked up in the `PATH` of
    /// `env`.
    pub program: OsString,
    /// Linux takes at most 128 KiB in one argument; [`bash_args`] helps with long scripts.
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// The whole environment of the command; nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// Counted from the command's start.
    pub time_limit: Duration,
    /// How long a command that is stopped, or out of time, may take between `SIGTERM` and
    /// `SIGKILL`.
    pub stop_grace: Duration,
    pub confinement: Confinement,
}

/// How the command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this exit code.
    Code(i32),
    /// By this signal, which was not sent by the helper.
    Signal(i32),
    /// It was ended because its time was up.
    TimedOut,
    /// It was ended because the caller asked for it.
    Stopped,
    /// It never ran; the text says why, for people. [`refusal`] tells whether it was the sandbox.
    NotStarted(String),
    /// The helper ended without a report, so nobody knows; the text is what it said instead.
    Lost(String),
}

/// What the helper reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub exit: Exit,
    /// How many processes, at least, could not be ended, because they run as another user or hang
    /// in the kernel. They may still hold the output pipe open.
    pub left_behind: usize,
}

impl Outcome {
    /// Whether nothing of the job is left, as far as is known; so its output has an end.
    pub fn all_ended(&self) -> bool {
        match self.exit {
            Exit::Lost(_) => false,
            Exit::Code(_)
            | Exit::Signal(_)
            | Exit::TimedOut
            | Exit::Stopped
            | Exit::NotStarted(_) => self.left_behind == 0,
        }
    }
}

/// The program that becomes the helper.
#[derive(Clone, Debug)]
pub struct Helper {
    exe: PathBuf,
}

impl Helper {
    /// This very program, even if its file has been replaced or deleted since it was started:
    /// the link leads to what is running, not to a name.
    pub fn this_program() -> Helper {
        Helper { exe: PathBuf::from("/proc/self/exe") }
    }

    /// Another program whose `main` calls [`become_helper_if_asked`]: for tests, whose own `main`
    /// is not theirs.
    pub fn at(exe: impl Into<PathBuf>) -> Helper {
        Helper { exe: exe.into() }
    }

    /// The command that starts the helper for a job that may come later: it waits for it with as
    /// much done as can be. Any helper takes any job.
    pub fn command_for(&self, confinement: &Confinement) -> Command {
        let mut command = self.command();
        match confinement {
            Confinement::None => {}
            Confinement::Sandbox(_) => {
                command.arg(PREPARED_ARG);
            }
        }
        command
    }

    /// Starts a helper that takes one job after the other ([`Job::send`]), and gives the other end
    /// of its control socket. Each job brings its own output; the report pipe is the child's stderr.
    pub fn start(&self, confinement: &Confinement) -> io::Result<(Child, UnixStream)> {
        let (control, theirs) = UnixStream::pair()?;
        let mut command = self.command_for(confinement);
        command.arg(AGAIN_ARG).stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        Ok((command.spawn()?, control))
    }

    /// A command that starts the helper with its three pipes; the job goes into stdin.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.exe);
        command
            .arg0("polyloop")
            .arg(HELPER_ARG)
            // The server's environment holds keys; not even the helper gets it.
            .env_clear()
            // Ctrl-C in the server's terminal is for the server, which then stops its jobs.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}
