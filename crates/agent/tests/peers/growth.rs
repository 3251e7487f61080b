//! What is shown of an answer while it comes, at a server that does not make it.

use polyloop_session::ItemId;

use super::stage::Stage;
use crate::it::client::Client;
use crate::it::model::Strings;

fn are_open(client: &Client) -> bool {
    let open =
        |item: &ItemId| client.state.turn().is_some_and(|turn| turn.items.contains_key(item));
    client.shown.keys().all(|(item, _)| open(item))
}

/// What grows may be known before what it belongs to, which is then shown from its beginning.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_as_an_answer_begins_sees_all_of_it_once() {
    let stage = Stage::start();
    let (model, strings) = Strings::new();
    let hand = strings.hand();
    let owner = stage.replica_with(|setup| setup.model(model)).await;
    let follower = stage.replica().await;
    let mut at_owner = owner.client("s").await;
    at_owner.send("go").await.unwrap();
    let asked = |client: &Client| client.state.turn().is_some_and(|turn| !turn.calls.is_empty());
    at_owner.until("the call", asked).await.unwrap();
    follower.peers.hold_peeks(true);
    let (handle, kind) = (follower.handle("s"), follower.kind);
    let coming = tokio::spawn(Client::attach(handle, kind));
    follower.peers.until_peeked().await;
    hand.begin();
    hand.say("Hel");
    at_owner.until("the first characters", |client| client.was_shown("Hel")).await.unwrap();
    follower.peers.hold_peeks(false);
    let mut client = coming.await.unwrap().unwrap();
    assert!(are_open(&client), "{:?}", client.shown);
    client.until("the first characters", |client| client.was_shown("Hel")).await.unwrap();
    hand.say("lo");
    client.until("more", |client| client.was_shown("Hello")).await.unwrap();
    hand.finish();
    client.until_idle().await.unwrap();
    assert_eq!(client.texts(), ["Hello"]);
}

/// What stands at the owner may be more than NATS takes at once. It is still followed, and what is
/// said there is heard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_fits_in_no_message_is_followed() {
    const PIECE_BYTES: usize = 40_000;
    let stage = Stage::with("max_payload: 65536\n");
    let (model, strings) = Strings::new();
    let (hand, next) = (strings.hand(), strings.hand());
    let owner = stage.replica_with(|setup| setup.model(model)).await;
    let follower = stage.replica().await;
    let mut at_owner = owner.client("s").await;
    at_owner.send("go").await.unwrap();
    hand.begin();
    let pieces = ["a", "b", "c"].map(|letter| letter.repeat(PIECE_BYTES));
    for piece in &pieces {
        hand.say(piece);
        at_owner.until("a piece", |client| client.was_shown(piece)).await.unwrap();
    }
    let mut client = follower.client("s").await;
    client.send("and then").await.unwrap();
    hand.say(" and an end");
    hand.finish();
    client.until("the answer", |client| !client.texts().is_empty()).await.unwrap();
    assert_eq!(client.texts(), [format!("{} and an end", pieces.concat())]);
    next.begin();
    next.say("then");
    next.finish();
    client.until_idle().await.unwrap();
    assert_eq!(client.texts()[1..], ["then"]);
}
