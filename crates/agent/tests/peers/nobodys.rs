//! Sessions that nobody has, or that somebody has without knowing.

use polyloop_agent::peers::Peers as _;
use polyloop_session::Event;

use super::stage::{Stage, until, why};
use crate::it::client::Client;
use crate::it::make::{id, send};
use crate::it::model::{Puppet, in_turn, said};
use crate::it::rig::{Setup, in_time, read_all};

/// A server whose claim was answered into the void has the session, and nobody runs it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_of_which_its_server_does_not_know_is_let_go() {
    let stage = Stage::start();
    let (here, unknowing) = (stage.replica().await, stage.replica().await);
    let mut before = here.client("s").await;
    before.send("say: before").await.unwrap();
    before.until_idle().await.unwrap();
    in_time("its end", here.sessions.close()).await;
    unknowing.peers.lose_claim();
    let coming = Client::attach(unknowing.handle("s"), unknowing.kind).await;
    assert!(why(coming.map(drop)).contains("the answer was lost"));
    let there = stage.replica().await;
    until("the claim to be known", || {
        there.peers.owner(&id("s")).as_ref() == Some(unknowing.peers.here())
    })
    .await;
    // It waits for whoever has it, and has it then.
    let mut client = there.client("s").await;
    client.try_command(send("say: after")).await.unwrap();
    client.until("the answer", |client| client.texts().last() == Some(&"after")).await.unwrap();
    assert!(there.has("s"));
}

/// Nobody is attached anywhere: a follower is left, and the turn is its server's to look after.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_is_followed_for_nobody_is_ended_when_its_server_falls() {
    let stage = Stage::start();
    let (owner, follower) = (stage.replica().await, stage.replica().await);
    owner.handle("s").command(send("say: at work\nfail: hang")).await.unwrap();
    let mut client = follower.client("s").await;
    client.until("the words", |client| client.texts() == ["at work"]).await.unwrap();
    drop(client);
    owner.peers.leave().await;
    let ended = async {
        loop {
            let all = read_all(&*follower.log, &id("s")).await;
            if all.iter().any(|entry| matches!(entry.event, Event::TurnEnded { .. })) {
                return;
            }
        }
    };
    in_time("the end of the turn", ended).await;
    assert!(follower.has("s"));
}

/// A server that starts goes on with whatever nobody has, whoever would look after it else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_starts_resumes_what_was_left_in_order() {
    const SESSIONS: usize = 12;
    let stage = Stage::start();
    let (drained, _other) = (stage.replica().await, stage.replica().await);
    let names: Vec<String> = (0..SESSIONS).map(|n| format!("s{n}")).collect();
    for name in &names {
        let mut client = drained.client(name).await;
        client.send("fail: hang").await.unwrap();
        let asked =
            |client: &Client| client.state.turn().is_some_and(|turn| !turn.calls.is_empty());
        client.until("the call", asked).await.unwrap();
    }
    in_time("its end", drained.sessions.close()).await;
    drained.sessions.leave_peers().await;
    let model = std::sync::Arc::new(Puppet(|_| in_turn(said("gone on"))));
    let started =
        stage.replica_with(|setup| Setup { auto_resume: true, ..setup }.model(model)).await;
    in_time("all to be opened", started.sessions.resume_unfinished()).await;
    let gone_on = async {
        for name in &names {
            // Nobody asks for it: then it would go on in any case.
            while started.said(name).await.last().map(String::as_str) != Some("gone on") {}
        }
    };
    in_time("all to go on", gone_on).await;
}
