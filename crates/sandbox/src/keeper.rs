//! The keeper: a second process above the helper, for the case that the command kills or freezes
//! the one it can see.
//!
//! The helper ends everything below it, but a command of the same user can end the helper first
//! (`kill -9 $PPID`). What it had started then becomes the keeper's, which does nothing else: it
//! wakes a helper that was frozen, hands on what it is told, and ends what a killed helper left.
//! It never reads a job, so what it forks for the next one is as new as the first.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, waitpid,
};

use crate::helper;
use crate::tree::{arrived, kill_children, signal_fd};

/// Of what arrives these are handed on; to the helper they are requests to stop, or to go on.
const HANDED_ON: [(libc::c_int, Signal); 4] = [
    (libc::SIGTERM, Signal::TERM),
    (libc::SIGINT, Signal::INT),
    (libc::SIGHUP, Signal::HUP),
    (libc::SIGCONT, Signal::CONT),
];

/// With this code a helper ends whose keeper is to fork another one.
pub(crate) const ANOTHER: i32 = 3;

/// Splits this process in two: the new one returns and is the helper, this one watches over it and
/// never returns. All signals must be blocked.
pub(crate) fn split() -> io::Result<()> {
    let keeper = getpid();
    let told =
        signal_fd(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGCONT])?;
    set_child_subreaper(Some(keeper))?;
    let mut first = true;
    loop {
        // SAFETY: this process has one thread, so the new one has everything that it needs.
        let forked = unsafe { libc::fork() };
        match Pid::from_raw(forked.max(0)) {
            Some(helper) => {
                if std::mem::take(&mut first) {
                    // If this fails, the output ends when the keeper does.
                    let _ = helper::let_go_of_output();
                }
                keep(helper, &told);
            }
            None if forked < 0 => return Err(io::Error::last_os_error()),
            None => break,
        }
    }
    // A keeper that is killed does not take the helper with it: that ends its job.
    set_parent_process_death_signal(Some(Signal::TERM))?;
    match getppid() == Some(keeper) {
        true => Ok(()),
        false => Err(io::ErrorKind::Interrupted.into()),
    }
}

/// Returns when another helper is wanted; otherwise this process ends with the helper.
fn keep(helper: Pid, told: &OwnedFd) {
    let mut asked_to_end = false;
    loop {
        // If this is interrupted or fails, it only looks again sooner.
        let _ = poll(&mut [PollFd::new(told, PollFlags::IN)], None);
        while let Some(signal) = arrived(told) {
            if let Some((_, signal)) = HANDED_ON.iter().find(|(number, _)| *number == signal) {
                asked_to_end |= *signal != Signal::CONT;
                let _ = kill_process(helper, *signal);
            }
        }
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        let Ok(Some((_, status))) = waitpid(Some(helper), options) else { continue };
        if status.stopped() {
            let _ = kill_process(helper, Signal::CONT);
            continue;
        }
        let wants_another = status.exit_status() == Some(ANOTHER) && !asked_to_end;
        if status.exit_status().is_none() || wants_another {
            let left_behind = kill_children();
            if wants_another && left_behind == 0 {
                return;
            }
        }
        std::process::exit(status.exit_status().unwrap_or(1));
    }
}
