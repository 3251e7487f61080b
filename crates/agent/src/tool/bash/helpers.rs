//! Starts helpers, and keeps those that have done their job for the next one, so that the time a
//! start takes is no part of a call.
//!
//! Never more than a few of each kind: for commands in the sandbox, and for others. What waits was
//! forked after the last job, and knows nothing of it, nor of what it will run. It is let go when
//! nothing came for a while: letting go of its control socket ends it, and so does the end of the
//! server. A server that ran no command has none.

use std::io::{self, PipeReader, pipe};
use std::mem::replace;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use polyloop_sandbox::{Confinement, Helper, Job};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, sleep_until};

/// How long one waits. A model that works on something calls again sooner.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How many of a kind wait at most. Each is two processes that do nothing.
const WAITING_MAX: usize = 4;

/// How soon it is looked again whether one has ended that is about to.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// The program that starts commands, with those of its processes that wait for one.
#[derive(Clone, Debug)]
pub struct Helpers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    helper: Helper,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    bare: Vec<Waits>,
    confined: Vec<Waits>,
    /// Somebody looks after those that wait too long.
    watched: bool,
}

#[derive(Debug)]
struct Waits {
    helper: Started,
    until: Instant,
}

/// What a helper is made ready for. Any takes any job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bare,
    Confined,
}

impl Waiting {
    fn of(&mut self, kind: Kind) -> &mut Vec<Waits> {
        match kind {
            Kind::Bare => &mut self.bare,
            Kind::Confined => &mut self.confined,
        }
    }

    /// Takes out those that have waited long enough; says when the next one has.
    fn tidy(&mut self, now: Instant) -> (Vec<Waits>, Option<Instant>) {
        let mut done = Vec::new();
        for waiting in [&mut self.bare, &mut self.confined] {
            done.extend(waiting.extract_if(.., |one| one.until <= now));
        }
        let next = self.bare.iter().chain(&self.confined).map(|one| one.until).min();
        (done, next)
    }
}

impl From<Helper> for Helpers {
    fn from(helper: Helper) -> Helpers {
        Helpers(Arc::new(Shared { helper, waiting: Mutex::default() }))
    }
}

impl Helpers {
    /// Has one that waits, or else a new one, begin a job. Blocks until it has the job, at most for
    /// `patience`.
    pub(super) fn begin(&self, job: &Job, patience: Duration) -> io::Result<(Started, Output)> {
        let kind = match &job.confinement {
            Confinement::None => Kind::Bare,
            Confinement::Sandbox(_) => Kind::Confined,
        };
        let helper = match self.waiting(kind) {
            Some(helper) => helper,
            None => Started::new(&self.0.helper, kind, &job.confinement, patience)?,
        };
        let output = helper.begin(job)?;
        Ok((helper, output))
    }

    fn waiting(&self, kind: Kind) -> Option<Started> {
        loop {
            // The newest: the others may be let go the sooner.
            let mut helper = self.0.waiting().of(kind).pop()?.helper;
            // A command that is not confined may have ended what waits for the next one.
            if helper.is_waiting() {
                return Some(helper);
            }
        }
    }

    /// One that has done its job, and takes another.
    pub(super) fn give_back(&self, helper: Started) {
        let mut waiting = self.0.waiting();
        let others = waiting.of(helper.kind);
        if others.len() >= WAITING_MAX {
            drop(waiting);
            return;
        }
        others.push(Waits { helper, until: Instant::now() + WAIT_MAX });
        if !replace(&mut waiting.watched, true) {
            tokio::spawn(watch(Arc::downgrade(&self.0)));
        }
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets go of those that have waited long enough, until none waits.
async fn watch(shared: Weak<Shared>) {
    loop {
        let next = {
            let Some(shared) = shared.upgrade() else { return };
            let mut waiting = shared.waiting();
            let (done, next) = waiting.tidy(Instant::now());
            waiting.watched = next.is_some();
            drop(waiting);
            drop(done);
            next
        };
        match next {
            Some(next) => sleep_until(next).await,
            None => return,
        }
    }
}

/// What a command prints.
pub(super) type Output = PipeReader;

/// A helper, waiting or at work. It is reaped when it has ended, and nobody waits for that. Belongs
/// to no runtime.
#[derive(Debug)]
pub(super) struct Started {
    child: Option<Child>,
    kind: Kind,
    /// Letting go of it is the request to stop.
    control: Option<UnixStream>,
    report: Option<OwnedFd>,
}

impl Started {
    fn new(
        helper: &Helper,
        kind: Kind,
        confinement: &Confinement,
        patience: Duration,
    ) -> io::Result<Started> {
        let (mut child, control) = helper.start(confinement)?;
        control.set_write_timeout(Some(patience))?;
        let report = child.stderr.take().map(OwnedFd::from);
        Ok(Started { child: Some(child), kind, control: Some(control), report })
    }

    /// Whether it can be given a job: it lives, as does its keeper, and has said nothing since the
    /// last one.
    fn is_waiting(&mut self) -> bool {
        let ended = self.has_ended();
        let Some(report) = self.report.as_ref().filter(|_| !ended) else { return false };
        let mut fds = [PollFd::new(report, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready == 0)
    }

    fn begin(&self, job: &Job) -> io::Result<Output> {
        let none = || io::Error::other("the helper was let go");
        let control = self.control.as_ref().ok_or_else(none)?;
        let (output, end) = pipe()?;
        // If the helper takes no job, its report, or that there is none, tells. One that was frozen
        // is woken when it has the job, so that nobody waits for that who is not.
        let _ = job.send(control, &end, || self.wake());
        Ok(output)
    }

    /// Its report, for the runtime that asks; it can be had once.
    pub(super) fn report(&mut self) -> io::Result<Receiver> {
        let none = || io::Error::other("the helper has no report");
        Receiver::from_owned_fd(self.report.take().ok_or_else(none)?)
    }

    /// Its report, back from the runtime.
    pub(super) fn take_back(&mut self, report: Receiver) {
        self.report = report.into_nonblocking_fd().ok();
    }

    /// Whether it was not asked to stop.
    pub(super) fn has_control(&self) -> bool {
        self.control.is_some()
    }

    pub(super) fn stop(&mut self) {
        self.control = None;
        self.wake();
    }

    /// The helper and its keeper; it does no harm to those who are awake.
    pub(super) fn wake(&self) {
        self.signal(Signal::CONT);
    }

    /// The helper and its keeper; the command is killed with them.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        // Nobody else can be of this group while its first process is not reaped.
        let child = self.child.as_ref().map(Child::id);
        let group = child.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
    }

    /// Whether it ends in this time.
    pub(super) async fn ends_within(&mut self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while !self.has_ended() {
            if deadline <= Instant::now() {
                return false;
            }
            sleep(LOOK_AGAIN).await;
        }
        true
    }

    /// Its number may soon be another's, and is forgotten.
    fn has_ended(&mut self) -> bool {
        let ended = self.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)));
        if ended {
            self.child = None;
        }
        ended
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.control = None;
        if self.has_ended() {
            return;
        }
        // One that was frozen would never end.
        self.wake();
        // Without a runtime the server itself is ending.
        if let (Some(mut child), Ok(runtime)) = (self.child.take(), Handle::try_current()) {
            runtime.spawn_blocking(move || child.wait());
        }
    }
}
