//! One model call or tool, as it is counted: it runs from its beginning on, unless a gate holds it
//! up. Where nothing is held up nobody says anything.

use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use prometheus_client::metrics::gauge::Gauge;

use super::lock;

/// Counts as one of those that run, for as long as it runs and there is it.
pub(crate) struct Running {
    level: Gauge,
    begun: Instant,
    at: Mutex<At>,
}

#[derive(Clone, Copy, PartialEq)]
enum At {
    Runs { since: Instant },
    Held,
    Refused,
}

impl Running {
    pub(super) fn begin(level: &Gauge) -> Arc<Running> {
        level.inc();
        let begun = Instant::now();
        Arc::new(Running { level: level.clone(), begun, at: Mutex::new(At::Runs { since: begun }) })
    }

    /// How long it has run; nothing that was never let through has.
    pub(super) fn took(&self) -> Option<Duration> {
        match *lock(&self.at) {
            At::Runs { since } => Some(since.elapsed()),
            At::Held | At::Refused => None,
        }
    }

    /// How long it was held up before it ran, or is: at a gate, or until it is tried again.
    pub(crate) fn waited(&self) -> Duration {
        match *lock(&self.at) {
            At::Runs { since } => since - self.begun,
            At::Held | At::Refused => self.begun.elapsed(),
        }
    }

    /// The server itself had no room for it.
    pub(crate) fn was_refused(&self) -> bool {
        *lock(&self.at) == At::Refused
    }

    fn set(&self, now: At) {
        let was = std::mem::replace(&mut *lock(&self.at), now);
        let runs = |at| i64::from(matches!(at, At::Runs { .. }));
        super::tally::shift(&self.level, runs(was), runs(now));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.set(At::Held);
    }
}

/// How a gate says what it does with one step. When the step has ended nobody listens any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passage(Weak<Running>);

impl Passage {
    pub(super) fn of(running: &Arc<Running>) -> Passage {
        Passage(Arc::downgrade(running))
    }

    /// It waits.
    pub(crate) fn held(&self) {
        self.now(At::Held);
    }

    /// It has waited, and begins now.
    pub(crate) fn let_through(&self) {
        self.now(At::Runs { since: Instant::now() });
    }

    /// It does not fit in, and never begins.
    pub(crate) fn refused(&self) {
        self.now(At::Refused);
    }

    fn now(&self, at: At) {
        if let Some(running) = self.0.upgrade() {
            running.set(at);
        }
    }
}
