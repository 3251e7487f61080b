//! The processes below the helper: found, signalled, reaped.
//!
//! Never signals a process by a number that could have been given to another one meanwhile. Only
//! children of the helper are signalled, and the group of the command while the command is not
//! reaped: nobody but the helper can reap these, so their numbers stay taken. What is further down
//! becomes a child of the helper when its parent ends, and its turn comes then.

use std::collections::BTreeSet;
use std::io;
use std::mem::offset_of;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, wait, waitpid,
};

use crate::Exit;

/// How long killed processes may take to end before they count as left behind.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// How long to wait at most before looking for new children again: the helper is told when a child
/// ends, but not when it is given one.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The same where nobody is told.
const LOOK_SOON: Duration = Duration::from_millis(5);

/// The command and everything it has started.
pub(crate) struct Tree {
    command: Pid,
    ends: OwnedFd,
}

/// A living child of the helper.
struct Child {
    pid: Pid,
    /// Not a `Pid`: the kernel says -1 for a process that is about to vanish.
    group: i32,
}

impl Tree {
    /// `ends` becomes readable when a child ends; see [`signal_fd`].
    pub(crate) fn new(command: Pid, ends: OwnedFd) -> Tree {
        Tree { command, ends }
    }

    pub(crate) fn ends(&self) -> &OwnedFd {
        &self.ends
    }

    /// Reaps what has ended. If the command has, says how, and leaves it unreaped.
    pub(crate) fn command_exit(&self) -> Option<Exit> {
        self.forget_ends();
        while let Some((pid, exit)) = peek_ended() {
            if pid == self.command {
                return Some(exit);
            }
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
        None
    }

    /// Asks everything to end and waits until it has, at most for `grace`.
    pub(crate) fn terminate(&self, grace: Duration) {
        let deadline = Instant::now().checked_add(grace);
        let _ = kill_process_group(self.command, Signal::TERM);
        // Nothing is reaped here, so a number in this set stays with its process.
        let mut told = BTreeSet::new();
        loop {
            let living = for_each_child(|child| {
                let told_with_group = child.group == self.command.as_raw_pid();
                if !told_with_group && told.insert(child.pid.as_raw_nonzero()) {
                    let _ = kill_process(child.pid, Signal::TERM);
                }
            });
            if living == 0 || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return;
            }
            self.await_end(deadline);
        }
    }

    /// Kills and reaps until nothing is left; returns how many could not be ended.
    pub(crate) fn kill(self) -> usize {
        // For the group this is final: the kernel lets no member fork past it.
        let _ = kill_process_group(self.command, Signal::KILL);
        kill_all(|deadline| self.await_end(Some(deadline)))
    }

    /// Waits until a child has ended, or it is time to look again.
    fn await_end(&self, deadline: Option<Instant>) {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = timespec(left.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN));
        // If this is interrupted or fails, the caller only looks again sooner.
        let _ = poll(&mut [PollFd::new(&self.ends, PollFlags::IN)], Some(&timeout));
        self.forget_ends();
    }

    fn forget_ends(&self) {
        forget_signals(&self.ends);
    }
}

/// Kills and reaps every child; returns how many could not be ended.
pub(crate) fn kill_children() -> usize {
    kill_all(|deadline| std::thread::sleep(deadline.duration_since(Instant::now()).min(LOOK_SOON)))
}

fn kill_all(wait: impl Fn(Instant)) -> usize {
    let deadline = Instant::now() + KILL_WAIT;
    loop {
        if reap_all() == Reaped::NoneLeft {
            return 0;
        }
        let living = for_each_child(|child| {
            let _ = kill_process(child.pid, Signal::KILL);
        });
        if deadline <= Instant::now() {
            return living.max(1);
        }
        wait(deadline);
    }
}

/// The number of a signal that arrived at a descriptor of [`signal_fd`], if one has.
pub(crate) fn arrived(signals: &OwnedFd) -> Option<libc::c_int> {
    let mut record = [0_u8; size_of::<libc::signalfd_siginfo>()];
    let read = rustix::io::read(signals, &mut record).ok()?;
    let number = record[..read].get(offset_of!(libc::signalfd_siginfo, ssi_signo)..)?;
    let number = number.first_chunk().copied().map(u32::from_ne_bytes)?;
    libc::c_int::try_from(number).ok()
}

/// Makes a descriptor of [`signal_fd`] for one signal unreadable again. Returns the process that
/// sent it, or 0 if that lives outside the namespace of processes.
pub(crate) fn forget_signals(arrived: &OwnedFd) -> Option<u32> {
    // One record is all there is: a signal of this kind is pending once or not at all.
    let mut record = [0_u8; size_of::<libc::signalfd_siginfo>()];
    let read = rustix::io::read(arrived, &mut record).ok()?;
    let sender = record[..read].get(offset_of!(libc::signalfd_siginfo, ssi_pid)..)?;
    sender.first_chunk().copied().map(u32::from_ne_bytes)
}

/// A duration as poll takes it; one too long to express is as good as the longest.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    let longest = Timespec { tv_sec: i64::MAX, tv_nsec: 0 };
    Timespec::try_from(duration).unwrap_or(longest)
}

/// A descriptor that becomes readable when one of `signals` arrives; they must be blocked.
pub(crate) fn signal_fd(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before it is used, and the pointers are to a
    // local variable.
    let fd = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Any child that has ended, and how; it stays unreaped.
fn peek_ended() -> Option<(Pid, Exit)> {
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: zero is a valid siginfo_t; after a successful waitid it describes a child, or its
    // pid is still zero, so si_pid and si_status read initialised fields of the right kind.
    let (pid, code, status) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        if libc::waitid(libc::P_ALL, 0, &mut info, options) != 0 {
            return None;
        }
        (info.si_pid(), info.si_code, info.si_status())
    };
    let exit = if code == libc::CLD_EXITED { Exit::Code(status) } else { Exit::Signal(status) };
    Some((Pid::from_raw(pid)?, exit))
}

#[derive(PartialEq, Eq)]
enum Reaped {
    NoneLeft,
    SomeLeft,
}

fn reap_all() -> Reaped {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Reaped::SomeLeft,
            // Whatever lives below the helper has a child of the helper above it, so without
            // children there is nothing left at all.
            Err(_no_children) => return Reaped::NoneLeft,
        }
    }
}

/// Calls `visit` for each living child of this process as soon as it is found, since a process
/// that keeps forking and exiting is soon another one. Returns how many there were.
fn for_each_child(mut visit: impl FnMut(&Child)) -> usize {
    let helper = getpid();
    let mut living = 0;
    let Ok(processes) = std::fs::read_dir("/proc") else { return living };
    for process in processes.flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read(process.path().join("stat")) else { continue };
        if let Some(child) = living_child(helper, pid, &stat) {
            living += 1;
            visit(&child);
        }
    }
    living
}

/// The process of a `/proc/<pid>/stat`, if it is a child of `helper` and has not ended.
fn living_child(helper: Pid, pid: i32, stat: &[u8]) -> Option<Child> {
    // The name in parentheses is the process's own choice and may hold anything, also ')'.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = str::from_utf8(&stat[name_end + 1..]).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent: i32 = fields.next()?.parse().ok()?;
    let group: i32 = fields.next()?.parse().ok()?;
    if parent != helper.as_raw_pid() || matches!(state, "Z" | "X") {
        return None;
    }
    Some(Child { pid: Pid::from_raw(pid)?, group })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group_of(stat: &str) -> Option<i32> {
        let helper = Pid::from_raw(10).unwrap();
        living_child(helper, 7, stat.as_bytes()).map(|child| child.group)
    }

    #[test]
    fn only_living_children_count() {
        assert_eq!(group_of("7 (sleep) S 10 8 9 0 -1 0"), Some(8));
        assert_eq!(group_of("7 (a ) Z 10 1 (b) R 10 8 9 0 -1 0"), Some(8));
        assert_eq!(group_of("7 (sleep) S 11 8 9 0 -1 0"), None);
        assert_eq!(group_of("7 (sleep) Z 10 8 9 0 -1 0"), None);
        // This is how the kernel shows a process that is reaped at this moment.
        assert_eq!(group_of("7 (sleep) X 0 -1 -1 0 -1 0"), None);
        assert_eq!(group_of("7 (sleep) S 10 -1 -1 0 -1 0"), Some(-1));
        for cut in ["", "7", "7 (sleep", "7 (sleep)", "7 (sleep) S", "7 (sleep) S 10", "7 ) S x"] {
            assert_eq!(group_of(cut), None, "{cut:?}");
        }
    }
}
