//! Sessions that nobody uses go to sleep and come back, and no request is lost on the way.

use std::sync::Arc;
use std::time::Duration;

use polyloop_agent::subscriber::Ending;
use tokio::sync::Barrier;

use super::client::{APPROVE, CLIENT};
use super::make::{id, interrupt, send};
use super::rig::{Rig, Setup, check_at_rest, in_time};

const SHORT: Duration = Duration::from_millis(10);

fn sleepy() -> Rig {
    Rig::new(|setup| Setup { sleep_after: SHORT, ..setup })
}

/// Another session falls asleep this many times: time enough for the first to do so, too.
async fn others_sleep(rig: &Rig, awake: usize) {
    for n in 0..5 {
        rig.handle("other").command(send(&format!("say: {n}"))).await.unwrap();
        rig.log.until_writers(awake).await;
    }
}

#[tokio::test]
async fn an_idle_session_sleeps_and_comes_back() {
    let rig = sleepy();
    for n in 1..4 {
        rig.handle("s").command(send("say: hi")).await.unwrap();
        rig.log.until_writers(0).await;
        assert_eq!(rig.log.opens(), n);
    }
    check_at_rest(&*rig.log, &id("s")).await;
    let client = rig.client("s").await;
    assert_eq!(client.texts(), ["hi", "hi", "hi"]);
}

#[tokio::test]
async fn a_session_sleeps_after_its_last_client_has_left() {
    let rig = sleepy();
    let (one, mut two) = (rig.client("s").await, rig.client("s").await);
    drop(one);
    two.send("say: hi").await.unwrap();
    two.until_idle().await.unwrap();
    others_sleep(&rig, 1).await;
    assert_eq!(rig.kind.open(), 1);
    drop(two);
    rig.log.until_writers(0).await;
    assert_eq!(rig.kind.open(), 0);
}

#[tokio::test]
async fn who_watches_keeps_a_session_awake() {
    let rig = sleepy();
    let mut client = rig.client("s").await;
    let opens = rig.log.opens();
    others_sleep(&rig, 1).await;
    assert_eq!(rig.log.opens(), opens + 5);
    client.send("say: still awake").await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(client.texts(), ["still awake"]);
}

#[tokio::test]
async fn a_running_turn_keeps_a_session_awake() {
    let rig = sleepy();
    let handle = rig.handle("s");
    handle.command(send("say: at work\nfail: hang")).await.unwrap();
    others_sleep(&rig, 1).await;
    let mut client = rig.client("s").await;
    client.until("the words", |c| c.texts() == ["at work"]).await.unwrap();
    assert!(client.state.turn().is_some_and(|turn| !turn.calls.is_empty()));
    client.command(interrupt()).await.unwrap();
    client.until_idle().await.unwrap();
    drop(client);
    rig.log.until_writers(0).await;
}

/// Requests that come at the very moment when the session falls asleep.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_that_race_with_sleep_are_answered() {
    const AFTER: Duration = Duration::from_millis(20);
    const ASKERS: u64 = 4;
    const ROUNDS: u64 = 90;
    let rig = Rig::new(|setup| Setup { sleep_after: AFTER, ..setup });
    let together = Arc::new(Barrier::new(ASKERS as usize));
    let mut asking = Vec::new();
    for asker in 0..ASKERS {
        let (handle, kind, together) = (rig.handle("s"), rig.kind, together.clone());
        asking.push(tokio::spawn(async move {
            for n in 0..ROUNDS {
                together.wait().await;
                // Around the moment, now a little early, now a little late.
                let spread = Duration::from_micros((asker * 137 + n * 61) % 2_000);
                tokio::time::sleep(AFTER + spread).await;
                match n % 3 {
                    0 => _ = handle.command(send("say: hi")).await.unwrap(),
                    1 => _ = handle.context_info().await.unwrap(),
                    _ => _ = handle.attach(kind, None, APPROVE, CLIENT).await.unwrap(),
                }
            }
        }));
    }
    for asked in asking {
        in_time("all answers", asked).await.unwrap();
    }
    rig.log.until_writers(0).await;
    assert!(rig.log.opens() > 3, "it hardly slept: {}", rig.log.opens());
    check_at_rest(&*rig.log, &id("s")).await;
    let client = rig.client("s").await;
    let answered = client.texts().iter().filter(|text| **text == "hi").count();
    assert_eq!(answered as u64, ASKERS * ROUNDS / 3);
}

/// A subscription that outlives its session says that it was closed.
#[tokio::test]
async fn closing_ends_subscriptions_in_good_order() {
    let rig = Rig::offline();
    let mut client = rig.client("s").await;
    rig.sessions.close().await;
    assert_eq!(client.until_end().await, Ending::Closed);
}
