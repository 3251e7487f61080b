//! Who has which session and which servers live, as the changes of the bucket say it.
//!
//! No clock and no I/O. What time has passed is told by the order of the changes alone: a server has
//! fallen when this one was renewed so many times in a row without it. When nothing comes in,
//! because NATS is down or this server is cut off, nobody falls.

use std::collections::{HashMap, HashSet};

use polyloop_session::SessionId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::super::records::{id_of, key_of};
use crate::peers::{News, ServerId};

/// Renewals of this server without one of another's, until that one has fallen.
pub(super) const RENEWALS_UNTIL_FALLEN: u64 = 6;

const SESSION: &str = "session.";
const SERVER: &str = "server.";

pub(super) fn session_key(id: &SessionId) -> String {
    format!("{SESSION}{}", key_of(id))
}

pub(super) fn server_key(server: &ServerId) -> String {
    format!("{SERVER}{}", server.0)
}

/// Who has a session, as its key holds it.
#[derive(Serialize, Deserialize)]
pub(super) struct Owner {
    pub server: String,
}

/// One key of the bucket changed.
pub(super) enum Change {
    Session { id: SessionId, server: Option<ServerId> },
    Server { server: ServerId, is_there: bool },
}

/// `None` for what is not ours.
pub(super) fn change(key: &str, value: Option<&[u8]>) -> Option<Change> {
    if let Some(server) = key.strip_prefix(SERVER) {
        let server = ServerId(server.into());
        return Some(Change::Server { server, is_there: value.is_some() });
    }
    let id = id_of(key.strip_prefix(SESSION)?)?;
    let owner = value.map(serde_json::from_slice::<Owner>).transpose().ok()?;
    let server = owner.map(|owner| ServerId(owner.server.into()));
    Some(Change::Session { id, server })
}

/// What is there when a watch begins.
#[derive(Default)]
pub(super) struct Found {
    sessions: HashSet<SessionId>,
    servers: HashSet<ServerId>,
}

impl Found {
    pub fn note(&mut self, change: &Change) {
        match change {
            Change::Session { id, server: Some(_) } => {
                self.sessions.insert(id.clone());
            }
            Change::Server { server, is_there: true } => {
                self.servers.insert(server.clone());
            }
            // What is gone is not there.
            Change::Session { server: None, .. } | Change::Server { is_there: false, .. } => {}
        }
    }
}

struct Owned {
    server: ServerId,
    revision: u64,
}

struct Life {
    /// How often this server had been renewed when the other one last gave a sign.
    at: u64,
    has_fallen: bool,
    /// The number of its record, if it has one.
    record: Option<u64>,
    /// Sessions that name it.
    sessions: usize,
}

pub(super) struct View {
    here: ServerId,
    renewed: u64,
    /// The number of the newest change that came in.
    seen: u64,
    owners: HashMap<SessionId, Owned>,
    /// Other servers.
    servers: HashMap<ServerId, Life>,
}

impl View {
    pub fn new(here: ServerId) -> View {
        let (owners, servers) = Default::default();
        View { here, renewed: 0, seen: 0, owners, servers }
    }

    pub fn seen(&self) -> u64 {
        self.seen
    }

    pub fn owner(&self, id: &SessionId) -> Option<&ServerId> {
        let owner = &self.owners.get(id)?.server;
        Some(owner).filter(|owner| !self.has_fallen(owner))
    }

    /// One that was never heard of may live.
    pub fn has_fallen(&self, server: &ServerId) -> bool {
        self.servers.get(server).is_some_and(|life| life.has_fallen)
    }

    /// What this server wrote itself, before the watch says so.
    pub fn claimed(&mut self, id: &SessionId, revision: u64) {
        if revision > self.seen {
            self.own(id, Some((self.here.clone(), revision)));
        }
    }

    /// The one of the servers that live which this name falls to. All of them find the same.
    pub fn minder(&self, name: &str) -> ServerId {
        let weight = |server: &ServerId| {
            let hash = Sha256::new().chain_update(server.0.as_bytes()).chain_update([0]);
            hash.chain_update(name.as_bytes()).finalize()
        };
        self.living().max_by_key(|server| weight(server)).unwrap_or(&self.here).clone()
    }

    /// The servers that have not fallen, with this one.
    pub fn living(&self) -> impl Iterator<Item = &ServerId> {
        let others = self.servers.iter().filter(|(_, life)| !life.has_fallen);
        others.map(|(server, _)| server).chain([&self.here])
    }

    /// Records of servers that have fallen, and that this server is to put away.
    pub fn to_clear(&self) -> Vec<(ServerId, u64)> {
        let fallen = self.servers.iter().filter(|(_, life)| life.has_fallen);
        let records = fallen.filter_map(|(server, life)| Some((server.clone(), life.record?)));
        records.filter(|(server, _)| self.minder(&server.0) == self.here).collect()
    }

    /// A watch begins: nobody is to fall because it was not there for a while.
    pub fn begin(&mut self) {
        self.seen = 0;
        for life in self.servers.values_mut() {
            life.at = self.renewed;
        }
    }

    /// All that was there when the watch began has come in; what else was known is gone.
    pub fn settle(&mut self, found: &Found, news: &mut Vec<News>) {
        let gone = self.owners.iter().filter(|(id, owned)| {
            // What was claimed meanwhile is still to come in.
            let is_to_come = owned.server == self.here && owned.revision > self.seen;
            !found.sessions.contains(*id) && !is_to_come
        });
        for id in gone.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.own(&id, None);
            news.push(News::Free { id });
        }
        let gone = self
            .servers
            .iter()
            .filter(|(server, life)| life.record.is_some() && !found.servers.contains(*server));
        for server in gone.map(|(server, _)| server.clone()).collect::<Vec<_>>() {
            self.left(&server, news);
        }
    }

    pub fn take(&mut self, change: Change, revision: u64, news: &mut Vec<News>) {
        self.seen = self.seen.max(revision);
        match change {
            Change::Session { id, server } => self.take_session(id, server, revision, news),
            Change::Server { server, is_there } if server == self.here => {
                // Whoever thought this one had fallen sees it again with the next renewal.
                if is_there {
                    self.renewed += 1;
                    self.look_for_fallen(news);
                }
            }
            Change::Server { server, is_there: true } => {
                let known = self.servers.get(&server).and_then(|life| life.record);
                let life = self.life(&server);
                life.record = Some(revision);
                if known != Some(revision) {
                    life.has_fallen = false;
                }
            }
            Change::Server { server, is_there: false } => self.left(&server, news),
        }
    }

    fn take_session(
        &mut self,
        id: SessionId,
        server: Option<ServerId>,
        revision: u64,
        news: &mut Vec<News>,
    ) {
        let known = self.owners.get(&id).map(|owned| (owned.revision, owned.server.clone()));
        // What this server wrote itself is known before what came before it.
        if known.as_ref().is_some_and(|(at, _)| *at > revision) {
            return;
        }
        match (server, known) {
            (None, None) => {}
            (None, Some(_)) => {
                self.own(&id, None);
                news.push(News::Free { id });
            }
            (Some(server), known) => {
                // A claim replaces that of one who lives only when that was let go. The bucket
                // keeps one change a key, so this may be all that is heard of it.
                if known.as_ref().is_some_and(|(at, was)| *at < revision && !self.has_fallen(was)) {
                    news.push(News::Free { id: id.clone() });
                }
                self.own(&id, Some((server.clone(), revision)));
                if server != self.here {
                    if known == Some((revision, server.clone())) {
                        return;
                    }
                    // To take a session is a sign of life.
                    self.life(&server).has_fallen = false;
                }
                news.push(News::Taken { id, by: server });
            }
        }
    }

    fn own(&mut self, id: &SessionId, by: Option<(ServerId, u64)>) {
        if let Some((server, _)) = &by
            && *server != self.here
        {
            self.life(server).sessions += 1;
        }
        let before = match by {
            Some((server, revision)) => self.owners.insert(id.clone(), Owned { server, revision }),
            None => self.owners.remove(id),
        };
        if let Some(life) = before.and_then(|before| self.servers.get_mut(&before.server)) {
            life.sessions = life.sessions.saturating_sub(1);
        }
    }

    fn life(&mut self, server: &ServerId) -> &mut Life {
        let renewed = self.renewed;
        let life = self.servers.entry(server.clone()).or_insert(Life {
            at: renewed,
            has_fallen: false,
            record: None,
            sessions: 0,
        });
        life.at = renewed;
        life
    }

    fn left(&mut self, server: &ServerId, news: &mut Vec<News>) {
        if let Some(life) = self.servers.get_mut(server) {
            life.record = None;
            self.fall(server, news);
        }
    }

    fn look_for_fallen(&mut self, news: &mut Vec<News>) {
        // What nothing names any more need not be known.
        self.servers
            .retain(|_, life| !life.has_fallen || life.record.is_some() || life.sessions > 0);
        let silent = self.servers.iter().filter(|(_, life)| {
            !life.has_fallen && self.renewed - life.at >= RENEWALS_UNTIL_FALLEN
        });
        for server in silent.map(|(server, _)| server.clone()).collect::<Vec<_>>() {
            self.fall(&server, news);
        }
    }

    fn fall(&mut self, server: &ServerId, news: &mut Vec<News>) {
        let Some(life) = self.servers.get_mut(server) else { return };
        if std::mem::replace(&mut life.has_fallen, true) {
            return;
        }
        let sessions = self.owners.iter().filter(|(_, owned)| owned.server == *server);
        news.extend(sessions.map(|(id, _)| News::Fallen { id: id.clone(), was: server.clone() }));
    }
}

#[cfg(test)]
mod tests;
