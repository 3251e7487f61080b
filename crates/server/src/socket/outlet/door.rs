//! The door of one session into one connection's outlet: writes what the session made, at once, if
//! nothing waits there.

use std::sync::Arc;

use polyloop_agent::subscriber::{Door, Passed};
use polyloop_session::SessionId;

use super::{Latest, Now, Outlet};
use crate::socket::outgoing::Sight;
use crate::view::Bundle;

/// A longer bundle is not kept for the sake of its stamp.
const KEPT_BYTES_MAX: usize = 1024;

pub(super) struct WayIn {
    pub(super) outlet: Arc<Outlet>,
    /// Of this connection's doors.
    pub(super) number: u32,
    pub(super) session: SessionId,
    pub(super) sight: Sight,
}

impl WayIn {
    /// The client has everything up to here.
    fn passed(&self, now: &mut Now, bundle: &Arc<Bundle>) {
        let Some(stamp) = bundle.stamp() else { return };
        match &mut now.latest {
            _ if bundle.text_bytes > KEPT_BYTES_MAX => {
                now.standing(|standing| standing.stamp(&self.session, stamp));
            }
            Some(latest) if latest.door == self.number => latest.bundle = bundle.clone(),
            Some(_) | None => {
                now.standing(|_| ());
                let (bundle, session) = (bundle.clone(), self.session.clone());
                now.latest = Some(Latest { bundle, door: self.number, session });
            }
        }
    }
}

impl Door<Arc<Bundle>> for WayIn {
    fn pass(&mut self, bundle: &Arc<Bundle>) -> Passed {
        let outlet = &*self.outlet;
        let mut now = outlet.now();
        if !now.is_free() {
            return Passed::Shut;
        }
        match (self.sight, &bundle.shared) {
            (Sight::All, Some(bytes)) => {
                self.passed(&mut now, bundle);
                outlet.count(&mut now, bundle.text_bytes);
                now.put(bytes);
            }
            (Sight::All | Sight::OwnRun(_), _) => {
                let bytes = outlet.own(&mut now, &self.session, self.sight, bundle);
                now.put(&bytes);
            }
        }
        now.call_for_help();
        Passed::Through
    }
}
