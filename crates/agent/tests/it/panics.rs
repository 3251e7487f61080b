//! What breaks is contained: a model's answer fails, or one session ends; everything else goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use polyloop_agent::actor::CommandError;
use polyloop_agent::model::{Chunk, Model, Request};
use polyloop_agent::subscriber::Ending;
use polyloop_session::event::Outcome;
use polyloop_session::item::{End, ItemKind};
use polyloop_session::{Event, Update};

use super::client::Client;
use super::make::{id, send};
use super::model::{Puppet, in_turn, said};
use super::rig::{Rig, check_at_rest};
use super::view::Kind;

/// Breaks in its first answer and gives others as it should.
fn breaking(
    first: impl Fn() -> BoxStream<'static, Chunk> + Send + Sync + 'static,
) -> Arc<dyn Model> {
    let calls = AtomicUsize::new(0);
    Arc::new(Puppet(move |_: Request| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => first(),
        _ => in_turn(said("well")),
    }))
}

fn half() -> Vec<Chunk> {
    let kind = ItemKind::Text;
    vec![Chunk::Started { block: 0, kind }, Chunk::Text { block: 0, text: "half".into() }]
}

fn outcomes(client: &Client) -> Vec<&Outcome> {
    let outcomes = client.entries.iter().filter_map(|entry| match &entry.event {
        Event::TurnEnded { outcome, .. } => Some(outcome),
        _ => None,
    });
    outcomes.collect()
}

/// The turn fails with that code, what was shown of it is kept, and the session lives on.
async fn check_failed_call(model: Arc<dyn Model>, code: &str, shown: &[&str]) {
    let rig = Rig::new(|setup| setup.model(model));
    let mut client = rig.client("s").await;
    client.send("a question").await.unwrap();
    client.until_idle().await.unwrap();
    match outcomes(&client)[..] {
        [Outcome::Failed { fault }] => assert_eq!(&*fault.code, code),
        ref other => panic!("{other:?}"),
    }
    assert_eq!(client.texts(), shown);
    let discarded = client
        .entries
        .iter()
        .filter(|entry| matches!(entry.event, Event::ItemCompleted { end: End::Discarded, .. }));
    assert_eq!(discarded.count(), shown.len());

    client.send("another").await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(client.texts().last(), Some(&"well"));
    assert_eq!(rig.log.opens(), 1, "the session was opened anew");
    rig.sessions.close().await;
    check_at_rest(&*rig.log, &id("s")).await;
}

#[tokio::test]
async fn a_model_that_panics_inside_its_answer_fails_the_call() {
    let model = breaking(|| {
        let boom = stream::poll_fn(|_| panic!("a bug in a model's client"));
        stream::iter(half()).chain(boom).boxed()
    });
    check_failed_call(model, "internal", &["half"]).await;
}

#[tokio::test]
async fn a_model_that_panics_when_it_is_asked_fails_the_call() {
    let model = breaking(|| panic!("a bug in a model's client"));
    check_failed_call(model, "internal", &[]).await;
}

#[tokio::test]
async fn an_answer_that_just_ends_fails_the_call() {
    check_failed_call(breaking(|| in_turn(half())), "stream_cut", &["half"]).await;
    check_failed_call(breaking(|| in_turn(Vec::new())), "stream_cut", &[]).await;
}

/// Chunks that do not fit together are passed over.
#[tokio::test]
async fn an_answer_out_of_order_does_no_harm() {
    let mut chunks = vec![
        Chunk::Text { block: 3, text: "of nothing".into() },
        Chunk::Args { block: 7, text: "{}".into() },
        Chunk::Ended { block: 5, opaque: None },
    ];
    chunks.extend(said("well"));
    chunks.push(Chunk::Text { block: 0, text: "after the end".into() });
    let rig =
        Rig::new(|setup| setup.model(Arc::new(Puppet(move |_: Request| in_turn(chunks.clone())))));
    let mut client = rig.client("s").await;
    for _ in 0..2 {
        client.send("a question").await.unwrap();
        client.until_idle().await.unwrap();
    }
    assert_eq!(client.texts(), ["well", "well"]);
    assert_eq!(outcomes(&client), [&Outcome::Completed, &Outcome::Completed]);
}

/// A view that breaks takes its session's actor along, and nothing else.
#[tokio::test]
async fn a_view_that_panics_ends_its_session_alone() {
    let rig = Rig::offline();
    let (mut client, mut other) = (rig.client("s").await, rig.client("other").await);
    let broken = Kind::new();
    broken.on_see(|update| {
        let is_turn = |event: &Event| matches!(event, Event::TurnStarted { .. });
        assert!(!matches!(update, Update::Logged(entry) if is_turn(&entry.event)), "a bug");
    });
    let mut unlucky = Client::attach(rig.handle("s"), broken).await.unwrap();
    // It was kept, but nobody is left to say so.
    assert!(matches!(client.try_command(send("say: lost")).await, Err(CommandError::Store(_))));
    assert!(matches!(client.until_end().await, Ending::Failed(_)));
    assert!(matches!(unlucky.until_end().await, Ending::Failed(_)));
    rig.log.until_writers(1).await;
    assert_eq!(broken.open(), 0);

    other.send("say: hi").await.unwrap();
    other.until_idle().await.unwrap();
    assert_eq!(other.texts(), ["hi"]);

    let mut again = rig.client("s").await;
    assert!(matches!(outcomes(&again)[..], [Outcome::Interrupted { .. }]));
    again.send("say: here again").await.unwrap();
    again.until_idle().await.unwrap();
    // What the model was about to say was written with the message, and none of it was shown.
    assert_eq!(again.texts(), ["", "here again"]);
    rig.sessions.close().await;
    check_at_rest(&*rig.log, &id("s")).await;
}

/// What the actor runs for others may break too.
#[tokio::test]
async fn a_request_that_panics_in_the_actor_ends_its_session_alone() {
    let rig = Rig::offline();
    let (mut client, mut other) = (rig.client("s").await, rig.client("other").await);
    client.handle.audit(|_, _| panic!("a bug in who asked")).await;
    // Behind it in the mailbox: it is answered, if only to say that nobody knows.
    match client.try_command(send("say: lost?")).await {
        Ok(_) | Err(CommandError::Store(_) | CommandError::Failed(_) | CommandError::Moved) => {}
        Err(CommandError::Refused(refusal)) => panic!("{refusal}"),
    }
    assert!(matches!(client.until_end().await, Ending::Failed(_)));
    for (mut client, name) in [(rig.client("s").await, "s"), (rig.client("other").await, "other")] {
        client.send(&format!("say: {name}")).await.unwrap();
        client.until_idle().await.unwrap();
        assert_eq!(client.texts().last(), Some(&name));
    }
    other.until_idle().await.unwrap();
}
