//! What the servers that follow a session are told, beside its own clients and at the same moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use polyloop_session::{SessionId, Update};
use tokio::time::Instant;

use super::Power;
use crate::peers::wire::{self, Told, Watch};
use crate::peers::{Peers, ServerId};

/// A server that has not said for so long that somebody watches there is told no more.
const WATCH_TIME_MAX: Duration = Duration::from_secs(20);

pub(crate) struct Feed {
    peers: Arc<dyn Peers>,
    id: SessionId,
    watches: HashMap<ServerId, (Watch, Instant)>,
    gathered: Vec<Told>,
}

impl Feed {
    pub(crate) fn new(peers: Arc<dyn Peers>, id: SessionId) -> Feed {
        Feed { peers, id, watches: HashMap::new(), gathered: Vec::new() }
    }

    pub(crate) fn watch(&mut self, server: ServerId, watch: Watch) {
        self.watches.insert(server, (watch, Instant::now() + WATCH_TIME_MAX));
    }

    pub(crate) fn leave(&mut self, server: &ServerId) {
        self.watches.remove(server);
    }

    /// Forgets servers that went away without a word.
    pub(super) fn tidy(&mut self) {
        let now = Instant::now();
        self.watches.retain(|_, (_, until)| *until > now);
    }

    /// When the next one is forgotten, if it says nothing.
    pub(super) fn due(&self) -> Option<Instant> {
        self.watches.values().map(|(_, until)| *until).min()
    }

    pub(super) fn has_clients(&self) -> bool {
        self.watches.values().any(|(watch, _)| watch.clients)
    }

    pub(super) fn can(&self, power: Power) -> bool {
        self.watches.values().any(|(watch, _)| watch.power >= power)
    }

    /// What is to be told of an update, if anybody follows.
    pub(super) fn of(&self, update: &Update) -> Option<Told> {
        (!self.watches.is_empty()).then(|| Told::from(update))
    }

    pub(super) fn gather(&mut self, told: Told) {
        self.gathered.push(told);
    }

    pub(super) fn deliver(&mut self) {
        if self.gathered.is_empty() {
            return;
        }
        let gathered = std::mem::take(&mut self.gathered);
        let Some(told) = wire::written(&gathered) else { return };
        if told.len() <= self.peers.bytes_max() {
            return self.peers.tell(&self.id, told);
        }
        if let Some(look) = wire::written(&[Told::Look]) {
            self.peers.tell(&self.id, look);
        }
    }
}
