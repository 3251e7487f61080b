//! Puts a command into its sandbox: namespaces, Landlock and seccomp, all three or none.
//!
//! Never runs a command with a layer missing: whatever fails on the way is the end of the job, and
//! the report says what it was.
//!
//! ```text
//! helper ──clone──▶ init, process 1 of its own namespaces ──▶ command ──▶ whatever it starts
//!        ────────────▶ a socket: what to do, and where the output goes
//!        ◀──────────── a pipe: why not, or how it ended
//! ```
//!
//! Init lives in new namespaces of users, mounts, processes, network, IPC, host name and control
//! groups. It rebuilds the mounts, gives up every capability, and starts the command, which puts
//! Landlock and seccomp on itself just before it becomes the program. When init ends, or is killed
//! with the helper, the kernel kills all that lives in its namespace of processes; so nothing can
//! stay, whatever it does.

use std::fs::File;
use std::io::{self, Read as _, Write as _, stdout};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, getegid, geteuid};

use crate::wire::Outside;
use crate::{Exit, Job, Network, SANDBOX_FAILED, Sandbox};

mod filter;
mod init;
mod limits;
mod mounts;
mod reach;
mod sockets;
mod stand_in;

use init::User;
pub(crate) use limits::has_own_pid_max;
use stand_in::StandIns;

/// What init tells the helper, as the first byte of a message.
mod word {
    /// The sandbox could not be set up; the text says why.
    pub const NO_SANDBOX: u8 = b'S';
    /// The command could not be started; the text says why.
    pub const NOT_STARTED: u8 = b'N';
    /// The command runs.
    pub const RUNS: u8 = b'R';
    /// It ended with this exit code, in digits.
    pub const CODE: u8 = b'C';
    /// It ended by this signal, in digits.
    pub const SIGNAL: u8 = b'X';
}

/// What all sandboxes have in common, made before the job is there: the first process, in namespaces
/// of its own, but for the mounts. It waits for its job, and ends if none comes.
pub(crate) struct Prepared {
    init: Pid,
    network: Network,
    /// Here it gets its job.
    go: UnixStream,
    told: File,
}

impl Prepared {
    /// The error is for people.
    pub(crate) fn new(network: Network) -> Result<Prepared, String> {
        let pipe =
            || pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(format!("a pipe: {error}")));
        let socket = UnixStream::pair().map_err(|error| failed(format!("a socket: {error}")))?;
        let ((wait, go), (told, tell)) = (socket, pipe()?);
        let user = User { user: geteuid(), group: getegid() };
        match clone(namespaces(network)) {
            Ok(None) => {
                drop((go, told));
                init::run(&user, network, wait, &tell)
            }
            Ok(Some(init)) => Ok(Prepared { init, network, go, told: told.into() }),
            Err(error) => Err(failed(format!("new namespaces: {}", explained(&error)))),
        }
    }
}

/// A job in its sandbox.
pub(crate) struct Confined {
    init: Pid,
    told: File,
    stand_ins: StandIns,
}

impl Confined {
    /// Starts the command; what becomes of it, [`Confined::end`] tells. The error is for people.
    pub(crate) fn start(
        prepared: Option<Prepared>,
        job: &Job,
        sandbox: &Sandbox,
    ) -> Result<Confined, String> {
        sandbox.check().map_err(failed)?;
        let fit = prepared.filter(|prepared| prepared.network == sandbox.network);
        // One that was killed while it waited has not got the whole job, so it did nothing.
        let taken = fit.and_then(|fit| job.send(&fit.go, stdout(), || ()).is_ok().then_some(fit));
        let taken = taken.map_or_else(|| started(sandbox.network, job), Ok)?;
        // Meanwhile it builds what does not need these; without them it ends.
        let outside = Outside(sockets::outside().map_err(failed)?).encode();
        let stand_ins = StandIns::make(sandbox).map_err(failed)?;
        let Prepared { init, mut go, told, .. } = taken;
        // If it does not take this, it tells why.
        let _ = go.write_all(&outside);
        Ok(Confined { init, told, stand_ins })
    }

    /// The one child of the helper.
    pub(crate) fn init(&self) -> Pid {
        self.init
    }

    /// Cleans up after init has ended. `exit` is how the helper saw it end.
    pub(crate) fn end(self, exit: Exit) -> Exit {
        let told = read_all(self.told);
        self.stand_ins.remove();
        match exit {
            Exit::Stopped | Exit::TimedOut => exit,
            Exit::Code(_) => heard(&told).unwrap_or_else(|| {
                Exit::Lost("the first process of the sandbox ended without a word".to_owned())
            }),
            // The kernel kills init when memory runs out, and the command with it.
            Exit::Signal(_) | Exit::NotStarted(_) | Exit::Lost(_) => heard(&told).unwrap_or(exit),
        }
    }
}

fn failed(why: String) -> String {
    format!("{SANDBOX_FAILED}{why}")
}

/// With nothing prepared.
fn started(network: Network, job: &Job) -> Result<Prepared, String> {
    let prepared = Prepared::new(network)?;
    // If it does not take its job, it tells why.
    let _ = job.send(&prepared.go, stdout(), || ());
    Ok(prepared)
}

/// Nobody writes any more, unless init could not be killed; then what is there must do.
fn read_all(mut told: File) -> Vec<u8> {
    let mut text = Vec::new();
    if rustix::io::ioctl_fionbio(&told, true).is_ok() {
        let _ = told.read_to_end(&mut text);
    }
    text
}

/// How init says it ended.
fn heard(told: &[u8]) -> Option<Exit> {
    let (word, text) = match told {
        [word::RUNS, word, text @ ..] | [word, text @ ..] => (*word, text),
        [] => return None,
    };
    let text = String::from_utf8_lossy(text).into_owned();
    match word {
        word::NO_SANDBOX => Some(Exit::NotStarted(format!("{SANDBOX_FAILED}{text}"))),
        word::NOT_STARTED => Some(Exit::NotStarted(text)),
        word::CODE => text.parse().ok().map(Exit::Code),
        word::SIGNAL => text.parse().ok().map(Exit::Signal),
        _ => None,
    }
}

/// Not that of mounts: it is a copy, so it is made when the job is there.
fn namespaces(network: Network) -> libc::c_int {
    let always = libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    match network {
        Network::Off => always | libc::CLONE_NEWNET,
        Network::On => always,
    }
}

/// Like fork, into new namespaces; `None` in the new process.
fn clone(namespaces: libc::c_int) -> io::Result<Option<Pid>> {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    let zero: libc::c_long = 0;
    // SAFETY: without CLONE_VM and without a stack this is fork: the child goes on with a copy of
    // this process. The helper has one thread, so no lock is held by a thread that is not copied.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, zero, zero, zero, zero) };
    match i32::try_from(pid) {
        Ok(0) => Ok(None),
        Ok(pid) if pid > 0 => Ok(Pid::from_raw(pid)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An error of making namespaces, with what may be done about it.
fn explained(error: &io::Error) -> String {
    let advice = match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EUSERS) => {
            "; user namespaces are switched off: set the sysctl user.max_user_namespaces above 0"
        }
        Some(libc::EPERM | libc::EACCES) => {
            "; user namespaces are not allowed here: by a container's rules, by the sysctl \
             kernel.unprivileged_userns_clone=0, or by \
             kernel.apparmor_restrict_unprivileged_userns=1"
        }
        Some(libc::EINVAL | libc::ENOSYS) => "; this kernel has no user namespaces",
        _ => "",
    };
    format!("{error}{advice}")
}

/// Says something to the helper, which may have gone.
fn tell(pipe: &OwnedFd, word: u8, text: &str) -> io::Result<()> {
    let mut message = vec![word];
    message.extend_from_slice(text.as_bytes());
    // A message of this length is written at once: the pipe is empty, and larger.
    message.truncate(4096);
    rustix::io::write(pipe, &message)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_init_says_is_how_it_ended() {
        assert_eq!(heard(b"RC7"), Some(Exit::Code(7)));
        assert_eq!(heard(b"RX11"), Some(Exit::Signal(11)));
        assert_eq!(heard(b"RNx: cannot be run"), Some(Exit::NotStarted("x: cannot be run".into())));
        let failed = Exit::NotStarted("the sandbox could not be set up: no proc".into());
        assert_eq!(heard(b"Sno proc"), Some(failed.clone()));
        assert_eq!(heard(b"RSno proc"), Some(failed));
        for nothing in ["", "R", "RC", "RCx", "?"] {
            assert_eq!(heard(nothing.as_bytes()), None, "{nothing:?}");
        }
    }
}
