//! What was refused because of a limit, by the limit. The names are these; nobody else's word
//! becomes one.

use std::sync::atomic::Ordering;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::{By, Meter};

/// What there was too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Messages of clients in a time.
    Messages,
    /// Turns that clients begin in a time.
    Turns,
    /// HTTP requests in a time.
    Requests,
    /// Messages that wait for their turn in one session.
    QueuedMessages,
    /// Sessions in memory.
    Sessions,
    /// Model calls that wait at their gate.
    ModelCalls,
    /// Commands that wait at theirs.
    Processes,
}

impl Limit {
    const ALL: [Limit; 7] = [
        Limit::Messages,
        Limit::Turns,
        Limit::Requests,
        Limit::QueuedMessages,
        Limit::Sessions,
        Limit::ModelCalls,
        Limit::Processes,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Limit::Messages => "messages",
            Limit::Turns => "turns",
            Limit::Requests => "requests",
            Limit::QueuedMessages => "queued_messages",
            Limit::Sessions => "sessions",
            Limit::ModelCalls => "model_calls",
            Limit::Processes => "processes",
        }
    }
}

#[derive(Default)]
pub(super) struct Refused(pub Family<By<1>, Counter>);

impl Refused {
    /// What has not happened yet is told as 0, so that its first time is a change.
    pub fn begin(&self) {
        for limit in Limit::ALL {
            let _ = self.0.get_or_create(&labels(limit));
        }
    }
}

impl Meter {
    /// Something was refused.
    pub fn refuses(&self, limit: Limit) {
        self.refused.0.get_or_create(&labels(limit)).inc();
    }

    /// So much was refused since the server began, where somebody else counts it. Whoever asks with
    /// an older count, because two asked at once, changes nothing.
    pub fn refused_so_far(&self, limit: Limit, count: u64) {
        let counter = self.refused.0.get_or_create(&labels(limit));
        counter.inner().fetch_max(count, Ordering::Relaxed);
    }
}

fn labels(limit: Limit) -> By<1> {
    [("limit", limit.name())]
}
