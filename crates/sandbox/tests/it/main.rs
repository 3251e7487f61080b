//! Real jobs through the real helper: how commands start, how they end, and that nothing stays.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

mod again;
mod calls;
mod closed;
mod confined;
mod end;
mod escape;
mod ground;
mod held;
mod limits;
mod network;
mod roll;
mod start;
mod stay;
mod user;
mod waiting;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command};
use std::time::Duration;

use polyloop_sandbox::{Confinement, Exit, Helper, Job, Outcome, run};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

/// The program that becomes the helper, and that is a small server of its own.
const SERVER: &str = env!("CARGO_BIN_EXE_polyloop-sandbox-run");

/// Where it is instead, for a user who cannot reach it there.
const SERVER_VARIABLE: &str = "POLYLOOP_SANDBOX_RUN";

/// Longer than any test takes; a job that reaches it has failed its test.
const LONG: Duration = Duration::from_secs(90);

fn helper() -> Helper {
    Helper::at(server_path())
}

fn server_path() -> PathBuf {
    std::env::var_os(SERVER_VARIABLE).map_or(SERVER.into(), PathBuf::from)
}

fn job(program: &str, args: &[&str]) -> Job {
    Job {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        cwd: "/".into(),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        time_limit: LONG,
        stop_grace: Duration::from_millis(200),
        confinement: Confinement::None,
    }
}

fn script(script: &str) -> Job {
    job("bash", &["-c", script])
}

/// Runs a job that must leave nobody behind.
fn finish(job: &Job) -> (String, Exit) {
    let mut output = Vec::new();
    let outcome = run(&helper(), job, &mut output).unwrap();
    assert_eq!(outcome.left_behind, 0);
    (String::from_utf8(output).unwrap(), outcome.exit)
}

/// The small server with a command to run, not yet started.
fn server(args: &[&str]) -> Command {
    let mut command = Command::new(server_path());
    command.arg(LONG.as_millis().to_string()).args(args);
    command
}

fn make_fifo(dir: &TempDir) -> PathBuf {
    make_fifo_in(dir.path())
}

fn make_fifo_in(dir: &Path) -> PathBuf {
    let path = dir.join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

/// A job that is under way, in the hands of a caller that does not wait for it.
struct Running {
    helper: Child,
    control: ChildStdin,
}

impl Running {
    fn start(job: &Job) -> Running {
        let mut helper = helper().command().spawn().unwrap();
        let mut control = helper.stdin.take().unwrap();
        control.write_all(&job.encode()).unwrap();
        Running { helper, control }
    }

    /// Lets go of the control pipe, as a server that dies does, and reads what comes of it.
    fn stop(self) -> (String, Outcome) {
        let Running { helper, control } = self;
        drop(control);
        read_to_end(helper)
    }

    /// Asks for the end with a byte.
    fn stop_by_byte(mut self) -> (String, Outcome) {
        self.control.write_all(b"!").unwrap();
        let ended = read_to_end(self.helper);
        drop(self.control);
        ended
    }
}

fn read_to_end(mut helper: Child) -> (String, Outcome) {
    let (mut output, mut report) = (String::new(), Vec::new());
    helper.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    helper.stderr.take().unwrap().read_to_end(&mut report).unwrap();
    helper.wait().unwrap();
    (output, Outcome::decode(&report))
}
