//! The first process of the sandbox: builds it, starts the command, reaps, and ends.
//!
//! Never returns to the helper's code, never becomes the command, and keeps no capability once the
//! command can run.

use std::fmt::Display;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Gid, Pid, Signal, Uid, WaitOptions, getpid, set_dumpable_behavior,
    set_parent_process_death_signal, setsid, wait,
};

use super::filter::Filter;
use super::reach::Reach;
use super::{explained, limits, mounts, tell, word};
use crate::helper::{before_exec, let_go_of_output};
use crate::tree::{forget_signals, signal_fd};
use crate::wire::Order;
use crate::{Confinement, Exit, Job, Sandbox};

/// The kernel takes those with the highest score first.
const OOM_SCORE_WORST: &str = "1000";

/// Why the command does not run.
pub(super) enum Failure {
    Sandbox(String),
    Command(String),
}

/// Who the helper runs as, which cannot be found out any more in a new namespace.
pub(super) struct User {
    pub(super) user: Uid,
    pub(super) group: Gid,
}

pub(super) fn run(user: &User, go: File, pipe: &OwnedFd) -> ! {
    let end = prepare(user).and_then(|()| work(go, pipe));
    // If the helper has gone there is nobody left to tell.
    let _ = match end {
        Ok(Some(Exit::Signal(signal))) => tell(pipe, word::SIGNAL, &signal.to_string()),
        Ok(Some(Exit::Code(code))) => tell(pipe, word::CODE, &code.to_string()),
        Ok(_) => Ok(()),
        Err(Failure::Sandbox(why)) => tell(pipe, word::NO_SANDBOX, &why),
        Err(Failure::Command(why)) => tell(pipe, word::NOT_STARTED, &why),
    };
    std::process::exit(0);
}

fn failed(what: &'static str) -> impl Fn(&dyn Display) -> Failure {
    move |error| Failure::Sandbox(format!("{what}: {error}"))
}

/// What needs no job.
fn prepare(user: &User) -> Result<(), Failure> {
    setsid().map_err(|error| failed("a session")(&error))?;
    // If the helper is gone already, no job comes.
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| failed("the helper")(&error))?;
    become_same_user(user).map_err(|error| failed("a user namespace")(&explained(&error)))
}

/// How the command ended; nothing if there was none to run.
fn work(mut go: File, pipe: &OwnedFd) -> Result<Option<Exit>, Failure> {
    let Some((job, sockets)) = Order::receive(&mut go) else { return Ok(None) };
    drop(go);
    let Confinement::Sandbox(sandbox) = &job.confinement else { return Ok(None) };
    let command = start(&job, sandbox, &sockets, pipe)?;
    // If this fails, the output ends when this process does.
    let _ = let_go_of_output();
    watch(command).map(Some).map_err(|error| failed("watching")(&error))
}

/// Sets everything up and starts the command.
fn start(
    job: &Job,
    sandbox: &Sandbox,
    sockets: &[PathBuf],
    pipe: &OwnedFd,
) -> Result<Pid, Failure> {
    let view = mounts::build(sandbox, sockets).map_err(Failure::Sandbox)?;
    limits::bound_processes(&sandbox.limits).map_err(|error| failed("process limit")(&error))?;
    mounts::close().map_err(Failure::Sandbox)?;
    let reach = Reach::new(sandbox, &view).map_err(|error| failed("Landlock")(&error))?;
    let filter = Filter::new(sandbox.network).map_err(|error| failed("seccomp")(&error))?;
    limits::give_up_capabilities().map_err(|error| failed("capabilities")(&error))?;
    // Cleared by some of the above. If the helper is gone already, nobody reads the pipe.
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| failed("the helper")(&error))?;
    tell(pipe, word::RUNS, "").map_err(|error| failed("the helper")(&error))?;
    spawn(job, sandbox, reach, filter, pipe)
}

/// The same user and group as outside, and no other. A fresh user namespace has none at all.
fn become_same_user(user: &User) -> io::Result<()> {
    let (uid, gid) = (user.user.as_raw(), user.group.as_raw());
    // What the helper hides from its command belongs to root in /proc, also for itself.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let write = |name: &str, text: String| fs::write(Path::new("/proc/self").join(name), text);
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{uid} {uid} 1"))?;
    write("gid_map", format!("{gid} {gid} 1"))?;
    // If memory runs out, the kernel is to take the command, not the server. Without this it
    // chooses by size, which is no harm.
    let _ = write("oom_score_adj", OOM_SCORE_WORST.to_owned());
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Starts the command. When this returns, it runs the new program with every layer on.
fn spawn(
    job: &Job,
    sandbox: &Sandbox,
    reach: Reach,
    filter: Filter,
    pipe: &OwnedFd,
) -> Result<Pid, Failure> {
    std::env::set_current_dir(&job.cwd).map_err(|error| {
        Failure::Command(format!("{}: cannot be entered: {error}", job.cwd.display()))
    })?;
    let not_run = |error: io::Error| {
        Failure::Command(format!("{}: cannot be run: {error}", job.program.display()))
    };
    let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(not_run)?;
    let stderr = io::stdout().as_fd().try_clone_to_owned().map_err(not_run)?;
    let mut command = Command::new(&job.program);
    command
        .args(&job.args)
        .env_clear()
        .envs(job.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr);

    let (init, bounds) = (getpid(), sandbox.limits);
    let told = pipe.try_clone().map_err(not_run)?;
    let mut layers = Some((reach, filter));
    let mut confine = move || -> Result<(), String> {
        let (reach, filter) = layers.take().ok_or("started twice")?;
        before_exec(init).map_err(|error| error.to_string())?;
        limits::apply(&bounds).map_err(|error| format!("limits: {error}"))?;
        reach.apply().map_err(|error| format!("Landlock: {error}"))?;
        filter.apply().map_err(|error| format!("seccomp: {error}"))
    };
    // SAFETY: init has one thread, so no lock is held by another, and the closure may allocate.
    unsafe {
        command.pre_exec(move || {
            confine().map_err(|why| {
                let _ = tell(&told, word::NO_SANDBOX, &why);
                io::Error::from_raw_os_error(NOT_CONFINED)
            })
        })
    };
    match command.spawn() {
        Ok(child) => i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| Failure::Sandbox("the command got no process id".to_owned())),
        // It has told the helper itself, which stops reading there.
        Err(error) if error.raw_os_error() == Some(NOT_CONFINED) => {
            std::process::exit(0);
        }
        Err(error) => Err(not_run(error)),
    }
}

/// No program start fails with this, so it tells one failure from the other.
const NOT_CONFINED: i32 = libc::EOWNERDEAD;

/// Reaps until the command has ended, which ends all others. If the helper asks for the end, all
/// are asked, and have the time that the helper gives them.
fn watch(command: Pid) -> io::Result<Exit> {
    let ends = signal_fd(&[libc::SIGCHLD])?;
    let stops = signal_fd(&[libc::SIGTERM])?;
    let (mut exit, mut asked) = (None, false);
    loop {
        let all_ended = reap(command, &mut exit);
        match exit.clone() {
            Some(exit) if all_ended || !asked => return Ok(exit),
            Some(_) => {}
            None if all_ended => return Err(Errno::CHILD.into()),
            None => {}
        }
        let mut fds = [&ends, &stops].map(|fd| PollFd::new(fd, PollFlags::IN));
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let stop = !fds[1].revents().is_empty();
        forget_signals(&ends);
        // The helper's is from outside. Where Landlock is too old to keep the command's away, a
        // command could ask, too.
        if stop && forget_signals(&stops) == Some(0) {
            asked = true;
            // SAFETY: a system call without pointers. From process 1, -1 is all in its namespace.
            unsafe { libc::kill(-1, libc::SIGTERM) };
        }
    }
}

/// Notes how the command ended; says whether nobody is left.
fn reap(command: Pid, exit: &mut Option<Exit>) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == command => {
                let code = status.exit_status().map(Exit::Code);
                *exit = code.or_else(|| status.terminating_signal().map(Exit::Signal));
            }
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_no_children) => return true,
        }
    }
}
