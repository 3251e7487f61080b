//! What is asked of another server is done once or not at all, and whoever asked is not told that
//! nothing was done when something may have been.

use polyloop_agent::actor::{CommandError, Recorded};
use polyloop_agent::peers::Peers as _;
use polyloop_agent::sessions::Archived;
use tokio::task::JoinHandle;

use super::stage::{Replica, Stage, why};
use crate::it::make::{id, send};
use crate::it::rig::in_time;

const IN_DOUBT: &str = "look before you repeat";

/// Says something in a session of another server, which does it, and whose answer is lost.
async fn said_without_answer(
    at: &Replica,
    text: &str,
) -> JoinHandle<Result<Recorded, CommandError>> {
    at.peers.lose_answer("Command");
    let (handle, command) = (at.handle("s"), send(text));
    let saying = tokio::spawn(async move { handle.command(command).await });
    at.peers.until_lost().await;
    saying
}

/// Two followers want a session whose owner has fallen. What one of them had asked of the owner is
/// not asked of the other, who was faster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_last_owner_may_have_done_is_not_asked_of_the_next() {
    let stage = Stage::start();
    let (owner, loser, winner) =
        (stage.replica().await, stage.replica().await, stage.replica().await);
    let _at_owner = owner.client("s").await;
    let (mut here, mut there) = (loser.client("s").await, winner.client("s").await);
    let saying = said_without_answer(&loser, "say: once").await;
    there.until("the answer", |client| client.texts() == ["once"]).await.unwrap();
    there.until_idle().await.unwrap();
    loser.peers.hold_claims(true);
    owner.peers.leave().await;
    winner.until_it_has("s").await;
    loser.peers.hold_claims(false);
    let done = in_time("an answer", saying).await.unwrap();
    assert!(why(done).contains(IN_DOUBT));
    // What is said later is behind whatever was said again.
    here.send("say: later").await.unwrap();
    here.until("the answer", |client| client.texts().last() == Some(&"later")).await.unwrap();
    assert_eq!(here.texts(), ["once", "later"]);
}

/// A follower that ends in good order, as one does that nobody needs, has not done nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_follower_asked_is_not_asked_again_when_it_ends() {
    let stage = Stage::start();
    let (owner, follower) = (stage.replica().await, stage.replica().await);
    let mut at_owner = owner.client("s").await;
    let saying = said_without_answer(&follower, "say: once").await;
    // Somebody waits for it, so it is in use.
    let archived = in_time("the archiving", follower.sessions.archive(&id("s"))).await;
    assert_eq!(archived.unwrap(), Archived::Active);
    assert!(!saying.is_finished(), "{:?}", saying.await);
    in_time("its end", follower.sessions.close()).await;
    let done = in_time("an answer", saying).await.unwrap();
    assert!(why(done).contains(IN_DOUBT));
    at_owner.send("say: later").await.unwrap();
    at_owner.until("the answer", |client| client.texts().last() == Some(&"later")).await.unwrap();
    assert_eq!(at_owner.texts(), ["once", "later"]);
}
