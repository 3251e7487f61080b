//! Those who watch: frames are made once, and one who is too slow is cut off alone.

use polyloop_agent::actor::Attached;
use polyloop_agent::subscriber::{Ending, QUEUED_BUNDLES_MAX, QUEUED_BYTES_MAX, Subscription};
use polyloop_session::policy::Mode;
use polyloop_session::{Command, Update};

use super::client::{APPROVE, CLIENT, Client};
use super::make::who;
use super::model::{Hand, Strings};
use super::rig::{Rig, in_time};
use super::view::{Frame, Kind, Seeing};

async fn attached(rig: &Rig, kind: Kind) -> Subscription<Vec<Frame>> {
    let attached: Attached<Seeing> =
        in_time("the attachment", rig.handle("s").attach(kind, None, APPROVE, CLIENT))
            .await
            .unwrap();
    attached.subscription
}

/// All that is still to be had.
async fn rest(mut subscription: Subscription<Vec<Frame>>) -> (Vec<Update>, Ending) {
    let mut updates = Vec::new();
    loop {
        match in_time("a frame", subscription.next()).await {
            Ok(bundle) => updates.extend(bundle.into_iter().map(|Frame(update)| update)),
            Err(ending) => return (updates, ending),
        }
    }
}

fn one_entry() -> Command {
    Command::SetMode { mode: Mode::Plan, by: who() }
}

#[tokio::test]
async fn who_lags_too_many_frames_behind_is_cut_off() {
    let rig = Rig::offline();
    let mut fast = rig.client("s").await;
    let slow = attached(&rig, rig.kind).await;
    let elsewhere = attached(&rig, Kind::new()).await;
    for _ in 0..QUEUED_BUNDLES_MAX {
        fast.command(one_entry()).await.unwrap();
    }
    // So far nobody has lagged too far behind: one who comes back now misses nothing.
    let patient = attached(&rig, rig.kind).await;
    fast.command(one_entry()).await.unwrap();
    for subscription in [slow, elsewhere] {
        let (updates, ending) = rest(subscription).await;
        assert_eq!(updates.len(), QUEUED_BUNDLES_MAX, "what was queued is still given");
        assert_eq!(ending, Ending::Behind);
    }
    assert_eq!(fast.entries.len(), 1 + QUEUED_BUNDLES_MAX + 1);
    rig.sessions.close().await;
    let (updates, ending) = rest(patient).await;
    assert_eq!((updates.len(), ending), (1, Ending::Closed));
    assert_eq!(fast.until_end().await, Ending::Closed);
}

/// A client in the middle of an answer, and the hand that gives it.
async fn amid(rig: &Rig, strings: &Strings) -> (Client, Hand) {
    let mut client = rig.client("s").await;
    let hand = strings.hand();
    client.send("go").await.unwrap();
    hand.begin();
    hand.say("a");
    client.until("the first letter", |c| c.growths == 1).await.unwrap();
    (client, hand)
}

async fn grow(client: &mut Client, hand: &Hand, bytes: usize) {
    let grown = client.growths + 1;
    hand.say(&"x".repeat(bytes));
    client.until("growth", |c| c.growths == grown).await.unwrap();
}

#[tokio::test]
async fn who_lags_too_many_bytes_behind_is_cut_off() {
    const PIECES: usize = 16;
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let (mut fast, hand) = amid(&rig, &strings).await;
    let (slow, mut behind) = (attached(&rig, rig.kind).await, attached(&rig, rig.kind).await);
    for _ in 0..PIECES {
        grow(&mut fast, &hand, QUEUED_BYTES_MAX / PIECES).await;
    }
    // One who has taken a piece in the meantime has room for one more byte.
    behind.next().await.unwrap();
    grow(&mut fast, &hand, 1).await;
    hand.finish();
    fast.until_idle().await.unwrap();
    rig.sessions.close().await;

    let (updates, ending) = rest(slow).await;
    assert_eq!((updates.len(), ending), (PIECES, Ending::Behind));
    let (updates, ending) = rest(behind).await;
    let grown = updates.iter().filter(|update| matches!(update, Update::Grew(_))).count();
    assert_eq!((grown, ending), (PIECES, Ending::Closed));
    assert_eq!(fast.texts().last().unwrap().len(), 1 + QUEUED_BYTES_MAX + 1);
}

#[tokio::test]
async fn one_frame_is_taken_however_long() {
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let (mut fast, hand) = amid(&rig, &strings).await;
    let slow = attached(&rig, rig.kind).await;
    grow(&mut fast, &hand, QUEUED_BYTES_MAX + 1).await;
    grow(&mut fast, &hand, 1).await;
    let (updates, ending) = rest(slow).await;
    assert_eq!((updates.len(), ending), (1, Ending::Behind));
    assert_eq!(fast.until("nothing", |_| true).await.ok(), Some(()));
}

#[tokio::test]
async fn a_frame_is_made_once_for_all_of_a_kind() {
    let mut seen = Vec::new();
    for watchers in [1, 50] {
        let (model, strings) = Strings::new();
        let rig = Rig::new(|setup| setup.model(model));
        let mut clients = Vec::new();
        for _ in 0..watchers {
            clients.push(rig.client("s").await);
        }
        let hand = strings.hand();
        clients[0].send("go").await.unwrap();
        hand.begin();
        for word in ["one ", "two ", "three"] {
            hand.say(word);
            for client in &mut clients {
                client.until("a word", |c| c.was_shown(word)).await.unwrap();
            }
        }
        hand.finish();
        for client in &mut clients {
            client.until("the end", |c| c.is_idle() && c.entries.len() > 2).await.unwrap();
            assert_eq!(client.texts(), ["one two three"]);
        }
        assert_eq!(rig.kind.opened(), 1);
        seen.push(rig.kind.seen());
    }
    assert_eq!(seen[0], seen[1], "with 1 and with 50 subscribers");
}

#[tokio::test]
async fn a_view_that_nobody_looks_through_is_dropped() {
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let (mut client, hand) = amid(&rig, &strings).await;
    let kind = Kind::new();
    let (one, two) = (attached(&rig, kind).await, attached(&rig, kind).await);
    assert_eq!((kind.opened(), kind.open()), (1, 1));
    // It was shown the running turn, and what was open in it.
    assert_eq!((kind.skipped(), kind.seen()), (3, 1));
    grow(&mut client, &hand, 1).await;
    assert_eq!(kind.seen(), 2);

    drop(one);
    grow(&mut client, &hand, 1).await;
    assert_eq!((kind.open(), kind.seen()), (1, 3));
    drop(two);
    // The second request is taken after the first was done with.
    for _ in 0..2 {
        client.handle.context_info().await.unwrap();
    }
    assert_eq!(kind.open(), 0);
    grow(&mut client, &hand, 1).await;
    assert_eq!(kind.seen(), 3);

    let mut third = Client::attach(rig.handle("s"), kind).await.unwrap();
    assert_eq!((kind.opened(), kind.open()), (2, 1));
    hand.finish();
    third.until_idle().await.unwrap();
    assert_eq!(third.texts(), ["axxx"]);
}
