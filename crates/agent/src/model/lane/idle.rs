//! Lanes that nobody uses, kept for whoever asks next.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::{Lane, Lanes, Shared};
use crate::rails::Slot;

/// How long one is kept.
const IDLE_TIME_MAX: Duration = Duration::from_secs(90);
/// How often somebody looks whether they are still wanted.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// Of one thread; who comes back later is let go.
const IDLE_LANES_MAX: usize = 1_024;

#[derive(Default)]
pub(super) struct Idle {
    /// The one that was used last is at the end.
    kept: Mutex<Vec<Kept>>,
    is_looked_after: AtomicBool,
}

struct Kept {
    to: Arc<str>,
    lane: Lane,
    since: Instant,
}

impl Idle {
    /// One that leads there, if it still does.
    pub(super) fn take(&self, to: &str) -> Option<Lane> {
        loop {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let at = kept.iter().rposition(|kept| &*kept.to == to)?;
            let mut found = kept.remove(at);
            drop(kept);
            if found.since.elapsed() <= IDLE_TIME_MAX && found.lane.is_silent() {
                return Some(found.lane);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Lets go of those that are old or closed; true when there are none.
    pub(super) fn tidy(&self) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain_mut(|kept| kept.since.elapsed() <= IDLE_TIME_MAX && kept.lane.is_silent());
        if kept.is_empty() {
            // Whoever comes next begins to look again.
            self.is_looked_after.store(false, Ordering::Relaxed);
            *kept = Vec::new();
        }
        kept.is_empty()
    }
}

pub(super) fn keep(lanes: &Lanes, slot: Slot, to: Arc<str>, lane: Lane) {
    let Some(idle) = lanes.0.idle.get(slot) else { return };
    let mut kept = idle.kept.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() >= IDLE_LANES_MAX {
        return;
    }
    kept.push(Kept { to, lane, since: Instant::now() });
    if !idle.is_looked_after.swap(true, Ordering::Relaxed) {
        tokio::spawn(look_after(Arc::downgrade(&lanes.0), slot));
    }
}

async fn look_after(shared: Weak<Shared>, slot: Slot) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(shared) = shared.upgrade() else { return };
        if shared.idle.get(slot).is_none_or(Idle::tidy) {
            return;
        }
    }
}
