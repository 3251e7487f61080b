//! A server that does not know yet that its session is another's.

use polyloop_agent::peers::Peers as _;
use polyloop_agent::subscriber::Ending;

use super::stage::{Replica, Stage, until};
use crate::it::client::{APPROVE, CLIENT, Client};
use crate::it::make::{id, who};
use crate::it::rig::in_time;

/// Whoever comes with a place that the old owner cannot know is shown the session where it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_heard_nothing_gives_way_to_who_knows_more() {
    let stage = Stage::start();
    let (was, is) = (stage.replica().await, stage.replica().await);
    let mut at_was = was.client("s").await;
    let mut at_is = is.client("s").await;
    was.peers.hold_news(true);
    was.peers.leave().await;
    is.until_it_has("s").await;
    at_is.send("say: there").await.unwrap();
    at_is.until_idle().await.unwrap();
    let place = at_is.last();
    let handle = was.handle("s");
    let coming = handle.attach(was.kind, Some(place), APPROVE, CLIENT);
    let attached = in_time("the attachment", coming).await.unwrap();
    assert_eq!(attached.head, place);
    assert_eq!(at_was.until_end().await, Ending::Moved);
    let mut client = Client::catch_up(was.handle("s"), attached, place).await;
    at_is.send("say: on").await.unwrap();
    client.until("the answer", |client| client.texts() == ["on"]).await.unwrap();
}

/// What it heard of the session while it opened it was not lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_loses_a_session_while_it_opens_it_follows() {
    let stage = Stage::start();
    let (was, is) = (stage.replica().await, stage.replica().await);
    let opening = was.log.hold();
    let (handle, kind) = (was.handle("s"), was.kind);
    let coming = tokio::spawn(Client::attach(handle, kind));
    let is_owner = |at: &Replica, owner: Option<&Replica>| {
        at.peers.owner(&id("s")).as_ref() == owner.map(|owner| owner.peers.here())
    };
    until("the claim to be heard of", || is_owner(&is, Some(&was))).await;
    was.peers.leave().await;
    until("the fall to be heard of", || is_owner(&is, None)).await;
    let mut at_is = is.client("s").await;
    until("its loss to be heard of", || is_owner(&was, Some(&is))).await;
    opening.add_permits(100);
    in_time("the attachment", coming).await.unwrap().unwrap();
    // It opened the session behind the one that has it, which takes it back as it goes on.
    assert!(at_is.send("say: fenced off").await.is_err());
    assert_eq!(at_is.until_end().await, Ending::Moved);
    let mut at_is = is.client("s").await;
    let mut client = was.client("s").await;
    at_is.send("say: there").await.unwrap();
    let shown = client.until("the answer", |client| client.texts() == ["there"]).await;
    if shown.is_err() {
        // Whoever was let in before it knew comes again, and then it follows.
        client = was.client("s").await;
        at_is.send("say: again").await.unwrap();
        client.until("the answer", |client| client.texts() == ["again"]).await.unwrap();
    }
}

/// It is nobody else's business, and no server claims it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_with_its_connection_is_not_lost_to_others() {
    let stage = Stage::start();
    let (here, _other) = (stage.replica().await, stage.replica().await);
    let mut client = Client::attach(here.sessions.passing(who()), here.kind).await.unwrap();
    for text in ["one", "two"] {
        client.send(&format!("say: {text}")).await.unwrap();
        client.until_idle().await.unwrap();
    }
    assert_eq!(client.texts(), ["one", "two"]);
}
