//! Three NATS servers, of which one may be lost.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use polyloop_session::{Growth, ItemId, Seq, Stream};

use super::super::super::conformance::{PlainCodec, all, conforms, created, entry, id, queued};
use super::super::super::{Flush, Log, LogError, OpenMode};
use super::super::{Nats, Place, TRY_EVERY};
use super::Server;
use crate::peers::{Claim, News};

const SERVERS: usize = 3;
/// Generous: silence counts after five seconds.
const REACH_TIME_MAX: Duration = Duration::from_secs(60);

struct Cluster {
    servers: Vec<Server>,
}

impl Cluster {
    fn start() -> Cluster {
        // They must know each other's ports before they begin.
        let taken: Vec<TcpListener> =
            (0..SERVERS).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> = taken.iter().map(|one| one.local_addr().unwrap().port()).collect();
        drop(taken);
        let routes: Vec<String> =
            ports.iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
        let begin = |(at, port): (usize, &u16)| {
            let more = format!(
                "server_name: n{at}\n\
                 cluster {{ name: test, listen: \"127.0.0.1:{port}\", routes: [{}] }}\n",
                routes.join(", ")
            );
            Server::with(&more)
        };
        Cluster { servers: ports.iter().enumerate().map(begin).collect() }
    }

    /// As soon as they have found a leader.
    async fn connect(&self) -> Nats {
        let servers = self.servers.iter().map(|server| server.url.clone()).collect();
        let place = Place { servers, name: "test".into(), replicas: None };
        let mut tries = 0;
        loop {
            match Nats::connect(&place, Arc::new(PlainCodec)).await {
                Ok(log) => return log,
                Err(error) if tries > 100 => panic!("{error}"),
                Err(_) => tries += 1,
            }
        }
    }
}

#[tokio::test]
async fn a_log_on_three_servers_conforms() {
    let cluster = Cluster::start();
    let log = cluster.connect().await;
    assert_eq!(log.store.streams.log.cached_info().config.num_replicas, SERVERS);
    conforms(&log).await;
}

#[tokio::test]
async fn one_of_three_servers_may_be_lost() {
    let mut cluster = Cluster::start();
    let log = cluster.connect().await;
    let mut session = log.open(&id("s"), OpenMode::OrCreate).await.unwrap().unwrap();
    session.writer.append(Seq::NONE, &[entry(1, created())], Flush::Disk).await.unwrap();
    let growth = |offset, text: &str| {
        let (item, stream) = (ItemId(Seq(3)), Stream::Text);
        [Growth { item, stream, offset, text: text.into() }]
    };
    session.writer.grow(&growth(0, "Hel")).await.unwrap();
    // The one that leads, so that the others must find another.
    let info = log.store.streams.log.get_info().await.unwrap();
    let leader = info.cluster.and_then(|cluster| cluster.leader).unwrap();
    let at: usize = leader.trim_start_matches('n').parse().unwrap();
    drop(cluster.servers.remove(at));
    for seq in 1..20 {
        let next = [entry(seq + 1, queued(&format!("{seq}")))];
        session.writer.append(Seq(seq), &next, Flush::Disk).await.unwrap();
    }
    session.writer.grow(&growth(3, "lo")).await.unwrap();
    assert_eq!(all(&log, &id("s"), 0, 99).await, (1..=20).collect::<Vec<_>>());
    // Whoever comes later finds it all.
    drop(session);
    let other = cluster.connect().await;
    let session = other.open(&id("s"), OpenMode::Existing).await.unwrap().unwrap();
    assert_eq!(session.folded.state.last_seq(), Seq(20));
    assert_eq!(session.live.text(ItemId(Seq(3)), Stream::Text), "Hello");
}

/// Also of an answer that still grew.
#[tokio::test]
async fn what_was_shown_outlives_all_three_servers() {
    let mut cluster = Cluster::start();
    let log = cluster.connect().await;
    let mut session = log.open(&id("s"), OpenMode::OrCreate).await.unwrap().unwrap();
    session.writer.append(Seq::NONE, &[entry(1, created())], Flush::Disk).await.unwrap();
    let growth =
        Growth { item: ItemId(Seq(3)), stream: Stream::Text, offset: 0, text: "Hel".into() };
    session.writer.grow(&[growth]).await.unwrap();
    cluster.servers.iter_mut().for_each(Server::kill);
    drop((session, log));
    cluster.servers.iter_mut().for_each(Server::start_again);
    let log = cluster.connect().await;
    let session = log.open(&id("s"), OpenMode::Existing).await.unwrap().unwrap();
    assert_eq!(session.folded.state.last_seq(), Seq(1));
    assert_eq!(session.live.text(ItemId(Seq(3)), Stream::Text), "Hel");
}

/// Whoever was connected to it, or led by it, is still there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_server_falls_because_nats_lost_one() {
    let mut cluster = Cluster::start();
    let mut members = Vec::new();
    for _ in 0..3 {
        let log = cluster.connect().await;
        let peers = log.peers().await.unwrap();
        members.push((log, peers));
    }
    let mut news = members[0].1.news().unwrap();
    let mut leases = Vec::new();
    for (at, (_, peers)) in members.iter().enumerate() {
        let Claim::Ours(lease) = peers.claim(&id(&format!("before{at}"))).await.unwrap() else {
            panic!("somebody has it");
        };
        leases.push(lease);
    }
    let owners = members[0].0.store.streams.owners().await.unwrap();
    let leader = owners.stream.get_info().await.unwrap().cluster.and_then(|c| c.leader).unwrap();
    let at: usize = leader.trim_start_matches('n').parse().unwrap();
    drop(cluster.servers.remove(at));
    // One that says nothing from then on: when it has fallen, so would whoever did not come back.
    let (_, silent) = members.pop().unwrap();
    let was = silent.here().clone();
    std::mem::forget(leases.pop());
    drop(silent);
    let mut taken = Vec::new();
    let mut round = 0;
    let mut has_fallen = false;
    while !has_fallen || !taken.is_empty() {
        let name = id(&format!("{round}"));
        let Claim::Ours(lease) = members[round % 2].1.claim(&name).await.unwrap() else {
            panic!("somebody has it");
        };
        leases.push(lease);
        taken.push(name);
        round += 1;
        let heard = async {
            // Whoever claims is heard of, and then claims again.
            while !taken.is_empty() {
                match news.recv().await.unwrap() {
                    News::Taken { id, .. } => taken.retain(|name| *name != id),
                    News::Fallen { was: who, .. } if who == was => has_fallen = true,
                    news @ (News::Free { .. } | News::Fallen { .. }) => panic!("{news:?}"),
                }
            }
        };
        tokio::time::timeout(REACH_TIME_MAX, heard).await.expect("no news");
    }
}

/// One that is left answers, and can store nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_most_servers_it_is_out_of_reach() {
    let mut cluster = Cluster::start();
    let log = cluster.connect().await;
    let _peers = log.peers().await.unwrap();
    assert_eq!(log.out_of_reach(), None);
    cluster.servers.truncate(1);
    let wanted = Some("NATS is connected, but its streams do not answer");
    let told = async {
        while log.out_of_reach() != wanted {
            tokio::time::sleep(TRY_EVERY).await;
        }
    };
    tokio::time::timeout(REACH_TIME_MAX, told).await.expect("it says that it can be reached");
    // Each stream's leader notices for itself that the others are gone.
    let told = async {
        while !matches!(log.summary(&id("s")).await, Err(LogError::Unreachable { .. })) {
            tokio::time::sleep(TRY_EVERY).await;
        }
    };
    tokio::time::timeout(REACH_TIME_MAX, told).await.expect("it can be read");
    // The last one is gone as well.
    cluster.servers.clear();
    let told = async {
        while log.out_of_reach() != Some("there is no connection to NATS") {
            tokio::time::sleep(TRY_EVERY).await;
        }
    };
    tokio::time::timeout(REACH_TIME_MAX, told).await.expect("it says that it is connected");
}
