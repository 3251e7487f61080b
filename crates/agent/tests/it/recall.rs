//! A view that is opened amid a turn is given the messages from further back that the turn, or one
//! to come, was begun with.

use polyloop_session::event::{Agent, Setting, Work};
use polyloop_session::{Command, Event, LogEntry};

use super::client::Client;
use super::make::{interrupt, who};
use super::model::Strings;
use super::rig::Rig;
use super::view::Kind;

/// The texts of recalled messages, which nothing else must be.
fn recalled(kind: Kind) -> Vec<String> {
    let text = |entry: &LogEntry| match &entry.event {
        Event::MessageQueued { content, .. } => {
            content.iter().map(|part| part.shown().to_string()).collect::<String>()
        }
        other => panic!("no message: {other:?}"),
    };
    kind.recalled().iter().map(text).collect()
}

async fn attach(rig: &Rig) -> Kind {
    let kind = Kind::new();
    Client::attach(rig.handle("s"), kind).await.unwrap();
    kind
}

fn turns(client: &Client) -> usize {
    client.count(|event| matches!(event, Event::TurnStarted { .. }))
}

#[tokio::test]
async fn messages_from_before_the_running_turn_are_recalled() {
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let mut client = rig.client("s").await;
    assert_eq!(recalled(attach(&rig).await), [""; 0], "nothing has been said");
    let (first, second) = (strings.hand(), strings.hand());
    client.send("one").await.unwrap();
    client.send("two").await.unwrap();
    client.send("three").await.unwrap();
    client.until("the first turn", |c| turns(c) == 1).await.unwrap();
    // `two` and `three` came after its start, so the view sees them where they stand.
    assert_eq!(recalled(attach(&rig).await), ["one"]);

    first.begin();
    first.finish();
    second.begin();
    second.say("half");
    client.until("the second turn", |c| turns(c) == 2 && c.was_shown("half")).await.unwrap();
    client.send("four").await.unwrap();
    let begun = client.state.turn().unwrap();
    let Work::Message { message } = begun.work else { panic!("{:?}", begun.work) };
    let ended = client.entries.iter().find(|e| matches!(e.event, Event::TurnEnded { .. }));
    assert!(message.0 < ended.unwrap().seq, "it was sent while the first turn ran");

    let kind = attach(&rig).await;
    assert_eq!(recalled(kind), ["two", "three"]);
    assert_eq!(kind.recalled()[0].seq, message.0);
    // Besides, it is shown the running turn, and what has been said so far in it.
    let running = client.last().0 - begun.id.0.0 + 1;
    assert_eq!((kind.skipped() as u64, kind.seen()), (running, 1));
    // Clients of one kind share a view, which has been given them once.
    let (_one, _two) = (rig.client("s").await, rig.client("s").await);
    assert_eq!((rig.kind.opened(), recalled(rig.kind)), (1, vec![]));
}

/// After an interruption the queue waits: its messages are recalled for the turns to come.
#[tokio::test]
async fn a_queue_that_waits_is_recalled() {
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let mut client = rig.client("s").await;
    client.send("one").await.unwrap();
    client.send("two").await.unwrap();
    client.until("the turn", |c| turns(c) == 1).await.unwrap();
    client.command(interrupt()).await.unwrap();
    client.until("the end", |c| c.state.turn().is_none()).await.unwrap();
    let kind = attach(&rig).await;
    assert_eq!((recalled(kind), kind.skipped()), (vec!["two".into()], 0));
    // A turn that takes up what was interrupted was begun with no message.
    let hand = strings.hand();
    client.command(Command::Resume { by: who() }).await.unwrap();
    client.until("the turn", |c| turns(c) == 2).await.unwrap();
    assert_eq!(recalled(attach(&rig).await), ["two"]);
    hand.begin();
    hand.finish();
    client.until("the next turn", |c| turns(c) == 3).await.unwrap();
    assert_eq!(recalled(attach(&rig).await), ["two"]);
}

/// What takes up a search names what it found: whoever comes later is given it from its start.
#[tokio::test]
async fn a_search_is_followed_from_its_start() {
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let mut client = rig.client("s").await;
    let setting = Setting::Agent { agent: Agent::Dup };
    client.command(Command::Set { setting, by: who() }).await.unwrap();
    let (first, second) = (strings.hand(), strings.hand());
    client.send("one").await.unwrap();
    client.until("the turn", |c| turns(c) == 1).await.unwrap();
    first.begin();
    first.say("What is it?");
    first.finish();
    let understood = |event: &Event| matches!(event, Event::Understood { .. });
    client.until("the question", |c| c.count(understood) == 1).await.unwrap();
    second.begin();
    let begun = client.state.turn().unwrap().id.0;
    client.command(interrupt()).await.unwrap();
    client.until("the end", |c| c.state.turn().is_none()).await.unwrap();
    let since_begun = |client: &Client| client.last().0 - begun.0 + 1;
    let kind = attach(&rig).await;
    assert_eq!((recalled(kind), kind.skipped() as u64), (vec!["one".into()], since_begun(&client)));

    let third = strings.hand();
    client.command(Command::Resume { by: who() }).await.unwrap();
    client.until("the turn", |c| turns(c) == 2).await.unwrap();
    third.begin();
    third.say("half");
    client.until("what is said", |c| c.was_shown("half")).await.unwrap();
    let kind = attach(&rig).await;
    assert_eq!(kind.skipped() as u64, since_begun(&client));
}
