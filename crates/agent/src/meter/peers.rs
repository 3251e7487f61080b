//! What is counted of several servers on one store. A server that is alone counts nothing here.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::{By, Meter};
use crate::peers::{Before, Unanswered};

const ANSWERED: &str = "answered";
const UNHEARD: &str = "unheard";
const SILENT: &str = "silent";

#[derive(Default)]
pub(super) struct OfPeers {
    pub owned: Gauge,
    pub followed: Gauge,
    pub taken_over: Family<By<1>, Counter>,
    pub questions: Family<By<1>, Counter>,
}

impl OfPeers {
    /// What has not happened yet is told as 0, so that its first time is a change.
    pub fn begin(&self) {
        for before in [Before::Fallen, Before::Nobodys] {
            let _ = self.taken_over.get_or_create(&[("why", why(before))]);
        }
        for outcome in [ANSWERED, UNHEARD, SILENT] {
            let _ = self.questions.get_or_create(&[("outcome", outcome)]);
        }
    }
}

/// Counts as one as long as there is it.
pub(crate) struct OneMore(Gauge);

impl OneMore {
    fn of(gauge: &Gauge) -> OneMore {
        gauge.inc();
        OneMore(gauge.clone())
    }
}

impl Drop for OneMore {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A question to another server. Given up, it got no answer.
pub(crate) struct Questioned {
    meter: Arc<Meter>,
    outcome: &'static str,
}

impl Questioned {
    pub(crate) fn came_to<T>(mut self, answer: &Result<T, Unanswered>) {
        self.outcome = match answer {
            Ok(_) => ANSWERED,
            Err(Unanswered::Unheard) => UNHEARD,
            Err(Unanswered::Silent) => SILENT,
        };
    }
}

impl Drop for Questioned {
    fn drop(&mut self) {
        self.meter.of_peers.questions.get_or_create(&[("outcome", self.outcome)]).inc();
    }
}

impl Meter {
    /// A session is this server's among others.
    pub(crate) fn owns(&self) -> OneMore {
        OneMore::of(&self.of_peers.owned)
    }

    /// A session is shown here that another server has.
    pub(crate) fn follows(&self) -> OneMore {
        OneMore::of(&self.of_peers.followed)
    }

    pub(crate) fn took_over(&self, before: Before) {
        self.of_peers.taken_over.get_or_create(&[("why", why(before))]).inc();
    }

    pub(crate) fn asks_peer(self: &Arc<Meter>) -> Questioned {
        Questioned { meter: self.clone(), outcome: SILENT }
    }
}

fn why(before: Before) -> &'static str {
    match before {
        Before::Fallen => "fallen",
        Before::Nobodys => "let_go",
    }
}
