//! Sessions that nobody uses any more end at every server, and what comes under their name later is
//! another one.

use std::time::Duration;

use polyloop_agent::peers::Peers as _;
use polyloop_agent::sessions::Archived;

use super::stage::{Replica, Stage, until};
use crate::it::client::Client;
use crate::it::make::{id, send};
use crate::it::rig::{Setup, in_time};

/// Longer than it takes a follower to say again who is there: what is said so often keeps nobody
/// awake.
const NAP: Duration = Duration::from_millis(1_500);

fn sleepy(setup: Setup) -> Setup {
    Setup { sleep_after: NAP, ..setup }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_nobody_needs_sleeps() {
    let stage = Stage::start();
    let (owner, follower) = (stage.replica().await, stage.replica_with(sleepy).await);
    let _at_owner = owner.client("s").await;
    drop(follower.client("s").await);
    follower.until_asleep("s").await;
    assert!(owner.has("s") && owner.sessions.is_awake(&id("s")));
}

/// A follower without clients says so again and again, and ends with its owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_sleeps_though_it_is_followed() {
    let stage = Stage::start();
    let (owner, follower) = (stage.replica_with(sleepy).await, stage.replica().await);
    owner.handle("s").command(send("say: hi")).await.unwrap();
    let mut client = follower.client("s").await;
    client.until("the answer", |client| client.texts() == ["hi"]).await.unwrap();
    client.until_idle().await.unwrap();
    drop(client);
    owner.until_asleep("s").await;
    follower.until_asleep("s").await;
    assert_eq!(follower.client("s").await.texts(), ["hi"]);
}

/// Says something in a session and puts it away, while another server follows it for nobody.
async fn told_and_put_away(owner: &Replica, follower: &Replica) {
    let mut at_owner = owner.client("s").await;
    at_owner.send("say: old").await.unwrap();
    at_owner.until_idle().await.unwrap();
    let at_follower = follower.client("s").await;
    assert_eq!(at_follower.texts(), ["old"]);
    drop((at_owner, at_follower));
    let archived = async {
        // Until the owner has heard that the client has left.
        while owner.sessions.archive(&id("s")).await.unwrap() != Archived::Done {}
    };
    in_time("the archiving", archived).await;
}

async fn made_anew(at: &Replica) -> Client {
    let mut anew = at.client("s").await;
    anew.send("say: new").await.unwrap();
    anew.until_idle().await.unwrap();
    anew
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_made_anew_is_not_the_one_that_was_followed() {
    let stage = Stage::start();
    let (owner, follower) = (stage.replica().await, stage.replica().await);
    told_and_put_away(&owner, &follower).await;
    follower.until_asleep("s").await;
    let _anew = made_anew(&owner).await;
    assert_eq!(follower.client("s").await.texts(), ["new"]);
}

/// The follower hears that the session was let go when its owner has it again, under its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_made_anew_at_once_is_not_the_one_that_was_followed() {
    let stage = Stage::start();
    let (owner, follower) = (stage.replica().await, stage.replica().await);
    follower.peers.hold_news(true);
    told_and_put_away(&owner, &follower).await;
    let _anew = made_anew(&owner).await;
    // What is claimed later is known later.
    let _later = owner.client("later").await;
    until("it to be known there", || follower.peers.owner(&id("later")).is_some()).await;
    follower.peers.hold_news(false);
    follower.until_asleep("s").await;
    assert_eq!(follower.client("s").await.texts(), ["new"]);
}
