//! The first process of the sandbox: builds it, starts the command, reaps, and ends.
//!
//! Never returns to the helper's code, never becomes the command, and keeps no capability once the
//! command can run.

use std::fmt::Display;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

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
use crate::wire::Outside;
use crate::{Confinement, Exit, Job, Network, Sandbox};

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

pub(super) fn run(user: &User, network: Network, go: UnixStream, pipe: &OwnedFd) -> ! {
    let end = prepare(user, network).and_then(|filter| work(filter, go, pipe));
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
fn prepare(user: &User, network: Network) -> Result<Filter, Failure> {
    setsid().map_err(|error| failed("a session")(&error))?;
    // If the helper is gone already, no job comes.
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| failed("the helper")(&error))?;
    become_same_user(user).map_err(|error| failed("a user namespace")(&explained(&error)))?;
    Filter::new(network).map_err(|error| failed("seccomp")(&error))
}

/// How the command ended; nothing if there was none to run.
fn work(filter: Filter, mut go: UnixStream, pipe: &OwnedFd) -> Result<Option<Exit>, Failure> {
    let Ok((job, output)) = Job::receive_with_output(&go) else { return Ok(None) };
    rustix::stdio::dup2_stdout(&output).map_err(|error| failed("the output")(&error))?;
    drop(output);
    let Confinement::Sandbox(sandbox) = &job.confinement else { return Ok(None) };
    let reach = build(sandbox)?;
    let Some(Outside(sockets)) = Outside::receive(&mut go) else { return Ok(None) };
    drop(go);
    close(sandbox, &sockets)?;
    // Cleared by some of the above. If the helper is gone already, nobody reads the pipe.
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| failed("the helper")(&error))?;
    tell(pipe, word::RUNS, "").map_err(|error| failed("the helper")(&error))?;
    let command = spawn(&job, sandbox, reach, filter)?;
    // If this fails, the output ends when this process does.
    let _ = let_go_of_output();
    watch(command).map(Some).map_err(|error| failed("watching")(&error))
}

/// What needs nothing of the outside but its files.
fn build(sandbox: &Sandbox) -> Result<Reach, Failure> {
    let view = mounts::build(sandbox).map_err(Failure::Sandbox)?;
    limits::bound_processes(&sandbox.limits).map_err(|error| failed("process limit")(&error))?;
    Reach::new(sandbox, &view).map_err(|error| failed("Landlock")(&error))
}

/// What is done when the stand-ins are there; nothing can be built any more after that.
fn close(sandbox: &Sandbox, sockets: &[PathBuf]) -> Result<(), Failure> {
    mounts::hold(sandbox, sockets).map_err(Failure::Sandbox)?;
    mounts::close().map_err(Failure::Sandbox)?;
    limits::give_up_capabilities().map_err(|error| failed("capabilities")(&error))
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
fn spawn(job: &Job, sandbox: &Sandbox, reach: Reach, filter: Filter) -> Result<Pid, Failure> {
    std::env::set_current_dir(&job.cwd).map_err(|error| {
        Failure::Command(format!("{}: cannot be entered: {error}", job.cwd.display()))
    })?;
    let (init, bounds) = (getpid(), sandbox.limits);
    let mut layers = Some((reach, filter));
    let mut confine = || -> Result<(), String> {
        let (reach, filter) = layers.take().ok_or("started twice")?;
        before_exec(init).map_err(|error| error.to_string())?;
        limits::apply(&bounds).map_err(|error| format!("limits: {error}"))?;
        reach.apply().map_err(|error| format!("Landlock: {error}"))?;
        filter.apply().map_err(|error| format!("seccomp: {error}"))
    };
    let mut not_confined = None;
    let started = crate::spawn::spawn(job, &mut || {
        confine().map_err(|why| {
            not_confined = Some(why);
            io::Error::from_raw_os_error(NOT_CONFINED)
        })
    });
    started.map_err(|error| match not_confined {
        Some(why) => Failure::Sandbox(why),
        None => Failure::Command(format!("{}: cannot be run: {error}", job.program.display())),
    })
}

/// Never shown: what is told instead is why.
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
