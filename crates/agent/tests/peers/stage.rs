//! Sets the stage: a NATS server, and servers on it with a working directory that they share.

use std::sync::Arc;
use std::time::Duration;

use polyloop_agent::actor::{CommandError, Kit};
use polyloop_agent::log::nats::{Nats, Place};
use polyloop_agent::peers::Peers as _;
use polyloop_agent::sessions::{Handle, Sessions};
use tempfile::TempDir;

use super::between::Between;
use crate::it::client::Client;
use crate::it::codec::Plain;
use crate::it::faults::Faulty;
use crate::it::make::{id, who};
use crate::it::rig::{Setup, in_time, read_all, temp_dir};
use crate::it::view::{Kind, Seeing};
use crate::server::Server;

const LOOK_EVERY: Duration = Duration::from_millis(10);

pub struct Stage {
    nats: Server,
    dir: TempDir,
}

/// One server.
pub struct Replica {
    pub sessions: Sessions<Seeing>,
    pub peers: Arc<Between>,
    pub log: Arc<Faulty>,
    pub kind: Kind,
}

impl Stage {
    pub fn start() -> Stage {
        Stage::with("")
    }

    /// `more` is for the configuration of NATS.
    pub fn with(more: &str) -> Stage {
        Stage { nats: Server::with(more), dir: temp_dir() }
    }

    pub async fn replica(&self) -> Replica {
        self.replica_with(|setup| setup).await
    }

    pub async fn replica_with(&self, change: impl FnOnce(Setup) -> Setup) -> Replica {
        let (servers, name) = (vec![self.nats.url.clone()], "test".to_owned());
        let place = Place { servers, name, replicas: None };
        let nats = Nats::connect(&place, Arc::new(Plain)).await.unwrap();
        let peers = Between::new(nats.peers().await.unwrap());
        let log = Faulty::new(Arc::new(nats));
        let kit = change(Setup::new(log.clone())).kit(self.dir.path());
        let sessions = Sessions::new(Kit { peers: Some(peers.clone()), ..kit }, None);
        sessions.serve_peers();
        Replica { sessions, peers, log, kind: Kind::new() }
    }
}

impl Replica {
    pub fn handle(&self, name: &str) -> Handle<Seeing> {
        self.sessions.handle(id(name), who())
    }

    pub async fn client(&self, name: &str) -> Client {
        Client::attach(self.handle(name), self.kind).await.unwrap()
    }

    /// As far as this one has heard.
    pub fn has(&self, name: &str) -> bool {
        self.peers.owner(&id(name)).as_ref() == Some(self.peers.here())
    }

    pub async fn until_it_has(&self, name: &str) {
        until("the session to be taken", || self.has(name)).await;
    }

    /// It does nothing for a session any more.
    pub async fn until_asleep(&self, name: &str) {
        until("the session's end", || !self.sessions.is_awake(&id(name))).await;
    }

    /// What agents have said, as this one's log has it.
    pub async fn said(&self, name: &str) -> Vec<String> {
        let all = read_all(&*self.log, &id(name)).await;
        let texts = all.iter().filter_map(|entry| match &entry.event {
            polyloop_session::Event::ItemCompleted { text, .. } => Some(text.to_string()),
            _ => None,
        });
        texts.collect()
    }
}

pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let looking = async {
        while !holds() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    in_time(what, looking).await;
}

/// Why something was not done, or not known to be.
pub fn why<T: std::fmt::Debug>(done: Result<T, CommandError>) -> String {
    match done {
        Err(CommandError::Store(why) | CommandError::Failed(why)) => why,
        other => panic!("{other:?}"),
    }
}
