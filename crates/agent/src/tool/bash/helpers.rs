//! Starts helpers, and keeps one waiting for the next command, so that the time this takes is no
//! part of a call.
//!
//! Never more than one of each kind: for commands in the sandbox, and for others. One is made when
//! a command of its kind has been started, knows nothing of what it will run, and is let go when
//! nothing came for a while. Letting go of its control pipe ends it; so does the end of the server.

use std::io;
use std::mem::{replace, take};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use polyloop_sandbox::{Confinement, Helper};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, sleep_until};

/// How long one waits. A model that works on something calls again sooner.
const WAIT_MAX: Duration = Duration::from_secs(60);

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
    bare: Slot,
    confined: Slot,
    /// Somebody looks after those that wait too long.
    watched: bool,
}

#[derive(Debug, Default)]
enum Slot {
    #[default]
    Empty,
    Coming,
    Full {
        helper: Started,
        until: Instant,
    },
}

impl Slot {
    /// What is in it, which is then empty.
    fn taken(&mut self) -> Slot {
        match self {
            Slot::Full { .. } => take(self),
            Slot::Empty | Slot::Coming => Slot::Empty,
        }
    }
}

impl Waiting {
    fn slot(&mut self, confinement: &Confinement) -> &mut Slot {
        match confinement {
            Confinement::None => &mut self.bare,
            Confinement::Sandbox(_) => &mut self.confined,
        }
    }

    /// When the next one has waited long enough; those that have are let go.
    fn tidy(&mut self, now: Instant) -> Option<Instant> {
        let next = [&mut self.bare, &mut self.confined].into_iter().filter_map(|slot| match slot {
            Slot::Full { until, .. } if *until <= now => {
                *slot = Slot::Empty;
                None
            }
            Slot::Full { until, .. } => Some(*until),
            Slot::Empty | Slot::Coming => None,
        });
        next.min()
    }
}

impl From<Helper> for Helpers {
    fn from(helper: Helper) -> Helpers {
        Helpers(Arc::new(Shared { helper, waiting: Mutex::default() }))
    }
}

impl Helpers {
    /// The one that waits, or else a new one.
    pub(super) fn take(&self, confinement: &Confinement) -> io::Result<Started> {
        let mut waiting = self.0.waiting();
        let slot = waiting.slot(confinement);
        // One that is coming still comes.
        if let Slot::Full { mut helper, .. } = slot.taken() {
            drop(waiting);
            // A command that is not confined may have ended or frozen what waits for the next one.
            if helper.id().is_some() {
                helper.wake();
                return Ok(helper);
            }
        }
        self.0.start(confinement)
    }

    /// Has one wait for the next job, and does not wait for that.
    pub(super) fn refill(&self, confinement: &Confinement) {
        let mut waiting = self.0.waiting();
        let slot = waiting.slot(confinement);
        if !matches!(slot, Slot::Empty) {
            return;
        }
        *slot = Slot::Coming;
        drop(waiting);
        let coming = Coming { shared: self.0.clone(), confinement: confinement.clone() };
        tokio::task::spawn_blocking(move || {
            // If it cannot be started, neither can that of the next job, which will tell.
            if let Ok(helper) = coming.shared.start(&coming.confinement) {
                coming.arrived(helper);
            }
        });
    }
}

/// One that is being started. If nothing comes of it, another may be.
struct Coming {
    shared: Arc<Shared>,
    confinement: Confinement,
}

impl Coming {
    fn arrived(&self, helper: Started) {
        let mut waiting = self.shared.waiting();
        *waiting.slot(&self.confinement) = Slot::Full { helper, until: Instant::now() + WAIT_MAX };
        if !replace(&mut waiting.watched, true) {
            tokio::spawn(watch(Arc::downgrade(&self.shared)));
        }
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        let mut waiting = self.shared.waiting();
        let slot = waiting.slot(&self.confinement);
        if matches!(slot, Slot::Coming) {
            *slot = Slot::Empty;
        }
    }
}

impl Shared {
    fn start(&self, confinement: &Confinement) -> io::Result<Started> {
        self.helper.command_for(confinement).spawn().map(|child| Started(Some(child)))
    }

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
            let next = waiting.tidy(Instant::now());
            waiting.watched = next.is_some();
            next
        };
        match next {
            Some(next) => sleep_until(next).await,
            None => return,
        }
    }
}

/// A helper, waiting or at work. Whoever drops it must have let go of its control pipe, and need not
/// wait for it: it is reaped when it has ended. Belongs to no runtime.
#[derive(Debug)]
pub(super) struct Started(Option<Child>);

/// Of the runtime that asks for them.
pub(super) type Pipes = (ChildStdin, ChildStdout, ChildStderr);

impl Started {
    /// Its control pipe, its output, its report; they can be had once.
    pub(super) fn pipes(&mut self) -> io::Result<Pipes> {
        let none = || io::Error::other("the helper was started without pipes");
        let child = self.0.as_mut().ok_or_else(none)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(control), Some(output), Some(report)) = pipes else { return Err(none()) };
        Ok((
            ChildStdin::from_std(control)?,
            ChildStdout::from_std(output)?,
            ChildStderr::from_std(report)?,
        ))
    }

    /// The helper and its keeper; it does no harm to those who are awake.
    pub(super) fn wake(&mut self) {
        if let Some(id) = self.id() {
            let _ = kill_process_group(id, Signal::CONT);
        }
    }

    /// The helper and its keeper; the command is killed with them.
    pub(super) fn kill(&mut self) {
        if let Some(id) = self.id() {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }

    /// Whether it ends in this time.
    pub(super) async fn ends_within(&mut self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while self.id().is_some() {
            if deadline <= Instant::now() {
                return false;
            }
            sleep(LOOK_AGAIN).await;
        }
        true
    }

    /// Also that of the group. None if it has ended: then the number may soon be another's.
    fn id(&mut self) -> Option<Pid> {
        let child = self.0.as_mut()?;
        match child.try_wait() {
            Ok(None) => i32::try_from(child.id()).ok().and_then(Pid::from_raw),
            Ok(Some(_)) | Err(_) => None,
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.id().is_none() {
            return;
        }
        // One that was frozen would never end.
        self.wake();
        // Without a runtime the server itself is ending.
        if let (Some(mut child), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn_blocking(move || child.wait());
        }
    }
}
