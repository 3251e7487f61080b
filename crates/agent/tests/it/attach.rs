//! Attaching: head, what is live and the subscription belong to one moment, whatever happens.

use polyloop_agent::model::{Chunk, Stop};
use polyloop_session::item::ItemKind;
use polyloop_session::{Event, Seq};

use super::client::{APPROVE, CLIENT, Client};
use super::make::interrupt;
use super::model::Strings;
use super::rig::{Rig, in_time};

const WORDS: usize = 4_000;
const ATTACHMENTS: usize = 200;

fn word(n: usize) -> String {
    // Long and short ones, some beyond ASCII, so that offsets are bytes.
    format!("{n}{} ", ["", "ä", "日本", "🙂", "abcdefgh"][n % 5])
}

/// Attaches all the time while an answer streams; each ends up with the very same text.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_attaches_during_a_stream_ends_with_the_same_text() {
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let mut first = rig.client("s").await;
    let hand = strings.hand();
    first.send("go").await.unwrap();
    hand.begin();
    first.until("the item", |c| c.entries.len() == 5).await.unwrap();

    // Growth comes in pace with the attachments, and faster than each of them.
    let (pace, mut paced) = tokio::sync::mpsc::unbounded_channel::<()>();
    let streaming = tokio::spawn(async move {
        for n in 0..WORDS {
            if n % (WORDS / ATTACHMENTS) == 0 {
                paced.recv().await;
            }
            hand.say(&word(n));
            tokio::task::yield_now().await;
        }
        hand
    });
    let mut clients = Vec::new();
    let mut amid = 0;
    for n in 0..ATTACHMENTS {
        pace.send(()).unwrap();
        let since = [None, Some(Seq(0)), Some(Seq(3)), Some(Seq(5)), Some(Seq(99))][n % 5];
        let handle = rig.handle("s");
        let attached =
            in_time("the attachment", handle.attach(rig.kind, since, APPROVE, CLIENT)).await;
        let attached = attached.unwrap();
        assert_eq!(attached.head, Seq(5));
        // The turn that runs began with entry 3; before it there is only the beginning.
        let from = match since {
            Some(Seq(0)) => Seq(0),
            _ => Seq(2),
        };
        assert_eq!(attached.from, from, "{since:?}");
        amid += usize::from(attached.live.iter().any(|growth| !growth.text.is_empty()));
        let from = attached.from;
        clients.push(Client::catch_up(handle, attached, from).await);
    }
    assert!(amid > ATTACHMENTS / 2, "{amid} attached amid the text");
    let hand = in_time("the stream", streaming).await.unwrap();
    hand.finish();
    clients.push(first);

    let whole: String = (0..WORDS).map(word).collect();
    for client in &mut clients {
        let what = "the end of the turn";
        let ended = |c: &Client| matches!(last(c), Some(Event::TurnEnded { .. }));
        client.until(what, ended).await.unwrap();
        let shown: Vec<&String> = client.shown.values().collect();
        assert_eq!(shown, [&whole]);
        assert_eq!(client.texts(), [&whole]);
    }
}

fn last(client: &Client) -> Option<&Event> {
    client.entries.last().map(|entry| &entry.event)
}

/// `from` is the entry before the turn that ran at `since`, so that an encoder can be fed with it.
#[tokio::test]
async fn a_client_is_fed_from_the_start_of_the_turn_it_left() {
    let rig = Rig::offline();
    let mut client = rig.client("s").await;
    for _ in 0..3 {
        client.send("say: hm").await.unwrap();
        client.until_idle().await.unwrap();
    }
    client.send("fail: hang").await.unwrap();
    client.until("the call", |c| matches!(last(c), Some(Event::CallStarted { .. }))).await.unwrap();
    let starts: Vec<Seq> = client
        .entries
        .iter()
        .filter(|entry| matches!(entry.event, Event::TurnStarted { .. }))
        .map(|entry| entry.seq)
        .collect();
    let head = client.last();
    for since in 0..=head.0 + 2 {
        let attached =
            client.handle.attach(rig.kind, Some(Seq(since)), APPROVE, CLIENT).await.unwrap();
        let turn = starts.iter().rev().find(|start| start.0 <= since);
        assert_eq!(attached.from, turn.map_or(Seq::NONE, |turn| turn.before()), "{since}");
        assert_eq!(attached.head, head);
    }
    // Without a place, it begins with the running turn, or with nothing.
    let running = client.handle.attach(rig.kind, None, APPROVE, CLIENT).await.unwrap();
    assert_eq!(running.from, starts.last().unwrap().before());
    client.command(interrupt()).await.unwrap();
    client.until_idle().await.unwrap();
    let idle = client.handle.attach(rig.kind, None, APPROVE, CLIENT).await.unwrap();
    assert_eq!((idle.from, idle.head), (client.last(), client.last()));
    assert!(idle.live.is_empty());
}

/// Two items of one answer grow by turns, piece by piece and many pieces at once.
#[tokio::test]
async fn items_that_grow_by_turns_keep_their_places() {
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let mut client = rig.client("s").await;
    let hand = strings.hand();
    client.send("go").await.unwrap();
    for block in [0, 1] {
        hand.give(Chunk::Started { block, kind: ItemKind::Text });
    }
    for n in 0..300 {
        let block = u32::from(n % 3 == 0);
        hand.give(Chunk::Text { block, text: word(n).into() });
        if n % 100 == 99 {
            client.until("growth", |c| c.was_shown(&word(n))).await.unwrap();
        }
    }
    for block in [0, 1] {
        hand.give(Chunk::Ended { block, opaque: None });
    }
    hand.give(Chunk::Done(Stop::End));
    client.until_idle().await.unwrap();
    let whole = |is: fn(usize) -> bool| (0..300).filter(|n| is(*n)).map(word).collect::<String>();
    assert_eq!(client.texts(), [whole(|n| n % 3 != 0), whole(|n| n % 3 == 0)]);
    let shown: Vec<&String> = client.shown.values().collect();
    assert_eq!(shown, [&whole(|n| n % 3 != 0), &whole(|n| n % 3 == 0)]);
}
