//! The helper process: takes one job, runs it, ends everything it started, reports.
//!
//! Never returns to the program it was started as, never has a second thread, and never writes to
//! its stdout, which belongs to the command.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, getpid, getppid, set_child_subreaper, set_dumpable_behavior,
    set_parent_process_death_signal, setsid,
};

use crate::confine::{Confined, Prepared};
use crate::spawn::spawn;
use crate::tree::{Tree, signal_fd, timespec};
use crate::{
    AGAIN_ARG, CHECK_ARG, Confinement, Exit, HELPER_ARG, Job, Network, Outcome, PREPARED_ARG,
    keeper, probe,
};

/// Linux numbers its signals from 1 to this.
const SIGNAL_MAX: libc::c_int = 64;

/// If this process was started by [`Helper::command`](crate::Helper::command), does the helper's
/// work and never returns; otherwise does nothing.
///
/// To be called first thing in `main`, before the program starts a thread or opens a file.
pub fn become_helper_if_asked() {
    match std::env::args_os().nth(1) {
        Some(arg) if arg == HELPER_ARG => {}
        Some(arg) if arg == CHECK_ARG => probe::check_from_inside(),
        _ => return,
    }
    let is_told = |what: &str| std::env::args_os().skip(2).any(|arg| arg == what);
    let (prepared, again) = (is_told(PREPARED_ARG), is_told(AGAIN_ARG));
    let outcome = run_job(prepared, again).unwrap_or_else(Outcome::not_started);
    // If the server has gone there is nobody left to tell, and nothing left to do either.
    let told = io::stderr().write_all(&outcome.encode());
    let another = again && told.is_ok() && outcome.takes_another();
    std::process::exit(if another { keeper::ANOTHER } else { 0 });
}

/// The whole life of a job; the error says why it was not started.
fn run_job(prepared: bool, again: bool) -> Result<Outcome, String> {
    let no_helper = |error| format!("the helper process cannot be set up: {error}");
    let watch = Watch::set_up().map_err(no_helper)?;
    let control = own_copy(&io::stdin()).map_err(no_helper)?;
    // If it cannot be had, that is told when a job needs it.
    let prepared = prepared.then(|| Prepared::new(Network::Off)).and_then(Result::ok);
    let (job, control) = receive(control, again)?;
    let confined = match &job.confinement {
        Confinement::None => None,
        Confinement::Sandbox(sandbox) => Some(Confined::start(prepared, &job, sandbox)?),
    };
    let command = match &confined {
        None => start(&job)?,
        Some(confined) => confined.init(),
    };
    // If this fails, the output ends when the helper does.
    let _ = let_go_of_output();
    let tree = Tree::new(command, watch.ends);

    let exit = supervise(&job, &tree, &control, &watch.stop_signals);
    let left_behind = tree.kill();
    let exit = match confined {
        None => exit,
        Some(confined) => confined.end(exit),
    };
    Ok(Outcome { exit, left_behind })
}

/// The job; where it brings its output, that is our stdout then.
fn receive(control: OwnedFd, again: bool) -> Result<(Job, OwnedFd), String> {
    if !again {
        let mut control = File::from(control);
        return Ok((Job::receive(&mut control)?, control.into()));
    }
    let control = UnixStream::from(control);
    let (job, output) = Job::receive_with_output(&control)?;
    rustix::stdio::dup2_stdout(&output).map_err(|error| format!("the output: {error}"))?;
    Ok((job, control.into()))
}

/// What the helper waits for, besides the control pipe.
struct Watch {
    /// A child has ended.
    ends: OwnedFd,
    /// Somebody asks the helper itself to end: the same as a stop request.
    stop_signals: OwnedFd,
}

impl Watch {
    /// Makes this process fit for its task; nothing has been started yet.
    fn set_up() -> io::Result<Watch> {
        close_inherited_files()?;
        take_over_signals()?;
        // Keeps a command of the same user from writing into the report through /proc.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        keeper::split()?;
        set_child_subreaper(Some(getpid()))?;
        Ok(Watch {
            ends: signal_fd(&[libc::SIGCHLD])?,
            stop_signals: signal_fd(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])?,
        })
    }
}

/// Closes what the server may have got from whoever started it and passed on unknowingly.
fn close_inherited_files() -> io::Result<()> {
    let open: Vec<libc::c_int> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > libc::STDERR_FILENO)
        .collect();
    for fd in open {
        // SAFETY: this is the first thing the process does, so nothing in it owns a descriptor
        // above stderr. One of these was the directory's and is closed already, which is harmless.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

/// Blocks every signal, so that none ends the helper before its work is done, and undoes what the
/// command would inherit: signals that the server, or whoever started it, ignores.
fn take_over_signals() -> io::Result<()> {
    // SAFETY: the set is initialised by sigfillset before it is used. SIG_DFL is a valid handler;
    // the calls that are refused (SIGKILL, SIGSTOP, the C library's own two) change nothing.
    let result = unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        let result = libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        for signal in 1..=SIGNAL_MAX {
            libc::signal(signal, libc::SIG_DFL);
        }
        result
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A descriptor of our own for one of the standard streams, closed on exec.
fn own_copy(stream: &impl AsFd) -> io::Result<OwnedFd> {
    stream.as_fd().try_clone_to_owned()
}

/// Puts nothing in the place of our stdout, so that the output ends when the last of those has ended
/// who write to it.
pub(crate) fn let_go_of_output() -> io::Result<()> {
    let nothing = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(())
}

/// Starts the command; when this returns, it runs the new program in a session of its own.
fn start(job: &Job) -> Result<Pid, String> {
    // Entered by the helper itself, so that a missing directory is not taken for a missing program.
    std::env::set_current_dir(&job.cwd)
        .map_err(|error| format!("{}: cannot be entered: {error}", job.cwd.display()))?;
    let helper = getpid();
    spawn(job, &mut || before_exec(helper))
        .map_err(|error| format!("{}: cannot be run: {error}", job.program.display()))
}

/// Runs in the new process, before it becomes the command, or before it is confined.
pub(crate) fn before_exec(helper: Pid) -> io::Result<()> {
    setsid()?;
    // The second line: should the helper be killed, the command does not run on unwatched.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(helper) {
        return Err(io::ErrorKind::Interrupted.into()); // It was killed before the line above.
    }
    // SAFETY: the set is initialised by sigemptyset before it is used.
    let result = unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Waits until the command has ended; if it must not run any longer, asks it to.
fn supervise(job: &Job, tree: &Tree, control: &OwnedFd, stop_signals: &OwnedFd) -> Exit {
    // A limit beyond the end of time is no limit.
    let deadline = Instant::now().checked_add(job.time_limit);
    let cut = loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let wake = wait(tree.ends(), control, stop_signals, left);
        // A command that has ended by itself did so, even if a stop came at the same moment.
        if let Some(exit) = tree.command_exit() {
            return exit;
        }
        match wake {
            Wake::StopRequest => break Exit::Stopped,
            Wake::Other if left.is_some_and(|left| left.is_zero()) => break Exit::TimedOut,
            Wake::Other => {}
        }
    };
    tree.terminate(job.stop_grace);
    cut
}

enum Wake {
    StopRequest,
    /// A process has ended, or the time is up, or neither: the caller finds out which.
    Other,
}

fn wait(ends: &OwnedFd, control: &OwnedFd, signals: &OwnedFd, left: Option<Duration>) -> Wake {
    let mut fds = [ends.as_fd(), control.as_fd(), signals.as_fd()]
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    match poll(&mut fds, left.map(timespec).as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(_) => return Wake::StopRequest, // A job that cannot be watched is not run.
    }
    let [_ends, asked @ ..] = &fds;
    if asked.iter().any(|fd| !fd.revents().is_empty()) { Wake::StopRequest } else { Wake::Other }
}
