//! What a provider sent besides: shown in its place to those who watch, and not kept.

use std::sync::{Arc, Mutex};

use polyloop_agent::model::{Chunk, Stop};
use polyloop_session::item::ItemKind;
use polyloop_session::{CallId, Event, Raw, Seq, Update};

use super::client::Client;
use super::make::{id, interrupt, who};
use super::model::{Hand, Strings};
use super::rig::{Rig, Setup, files, read_all, stop, temp_dir};
use super::view::Kind;

const MARK: &str = "quite unmistakable";

fn raw(n: usize) -> Chunk {
    Chunk::Raw { provider: "acme".into(), json: json(n).into() }
}

fn json(n: usize) -> String {
    format!(r#"{{"n":{n},"mark":"{MARK}"}}"#)
}

fn call(client: &Client) -> CallId {
    let started = client.entries.iter().find(|e| matches!(e.event, Event::CallStarted { .. }));
    CallId(started.expect("no call was made").seq)
}

fn want(client: &Client, numbers: std::ops::Range<usize>) -> Vec<Raw> {
    let call = call(client);
    let raw = |n| Raw { call, provider: "acme".into(), json: json(n).into() };
    numbers.map(raw).collect()
}

/// Says two words, with something raw before, between and after them.
fn tell(hand: &Hand) {
    hand.give(raw(0));
    hand.begin();
    hand.give(raw(1));
    hand.say("a");
    hand.give(raw(2));
    hand.say("b");
    hand.give(raw(3));
    hand.give(Chunk::Ended { block: 0, opaque: None });
    hand.give(raw(4));
    hand.give(Chunk::Done(Stop::End));
}

#[tokio::test]
async fn it_is_sent_in_its_place_to_all_who_watch() {
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = order.clone();
    rig.kind.on_see(move |update| {
        let what = match update {
            Update::Raw(raw) => raw.json.to_string(),
            Update::Grew(growth) => growth.text.to_string(),
            Update::Logged(entry) => match &entry.event {
                Event::ItemStarted { .. } => "started".into(),
                Event::ItemCompleted { text, .. } => format!("completed {text}"),
                _ => return,
            },
        };
        noted.lock().unwrap().push(what);
    });
    let mut one = rig.client("s").await;
    let mut two = Client::attach(rig.handle("s"), Kind::new()).await.unwrap();
    // All of it lies ready when the model is asked, so that it is taken in at once.
    tell(&strings.hand());
    one.send("go").await.unwrap();
    for client in [&mut one, &mut two] {
        client.until("the end", |c| c.is_idle() && !c.texts().is_empty()).await.unwrap();
        assert_eq!(client.raws, want(client, 0..5));
        assert_eq!(client.texts(), ["ab"]);
    }
    let order = order.lock().unwrap();
    let [r0, r1, r2, r3, r4] = [0, 1, 2, 3, 4].map(json);
    assert_eq!(*order, [&r0, "started", &r1, "a", &r2, "b", &r3, "completed ab", &r4]);
}

#[tokio::test]
async fn it_is_not_kept() {
    let (work, store) = (temp_dir(), temp_dir());
    let log = files(store.path());
    let (model, strings) = Strings::new();
    let sessions = Setup::new(log.clone()).model(model).start(work.path());
    let handle = sessions.handle(id("s"), who());
    let mut client = Client::attach(handle.clone(), Kind::new()).await.unwrap();
    let hand = strings.hand();
    client.send("go").await.unwrap();
    hand.begin();
    hand.say("a");
    hand.give(raw(0));
    client.until("what is raw", |c| c.raws.len() == 1).await.unwrap();
    assert_eq!(client.growths, 1);
    assert!(!is_anywhere(store.path()), "the journal holds it");
    // Who comes later has not missed anything that counts.
    let mut late = Client::attach(handle, Kind::new()).await.unwrap();
    hand.say("b");
    hand.give(raw(1));
    hand.finish();
    for client in [&mut client, &mut late] {
        client.until("the end", |c| c.is_idle() && !c.texts().is_empty()).await.unwrap();
        assert_eq!(client.texts(), ["ab"]);
    }
    assert_eq!((client.raws.clone(), &late.raws), (want(&client, 0..2), &want(&late, 1..2)));
    let seqs: Vec<u64> = read_all(&*log, &id("s")).await.iter().map(|e| e.seq.0).collect();
    assert_eq!(seqs.len() as u64, client.last().0);
    assert_eq!(client.last(), Seq(*seqs.last().unwrap()));
    drop((client, late));
    stop(sessions, log).await;
    assert!(!is_anywhere(store.path()), "a file holds it");
}

fn is_anywhere(dir: &std::path::Path) -> bool {
    let files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty());
    files.iter().any(|path| match path.is_dir() {
        true => std::fs::read_dir(path).unwrap().count() > 0 && is_anywhere(path),
        false => String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains(MARK),
    })
}

/// Two items that grow by turns keep their places (the client minds), whatever comes between.
#[tokio::test]
async fn growth_keeps_its_order() {
    const PIECES: usize = 300;
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let mut client = rig.client("s").await;
    let hand = strings.hand();
    for block in [0, 1] {
        hand.give(Chunk::Started { block, kind: ItemKind::Text });
    }
    let mut whole = [String::new(), String::new()];
    for n in 0..PIECES {
        let block = u32::from(n % 3 == 0);
        let text = format!("{n}ä ");
        whole[block as usize].push_str(&text);
        hand.give(Chunk::Text { block, text: text.into() });
        if n % 2 == 0 {
            hand.give(raw(n / 2));
        }
    }
    for block in [0, 1] {
        hand.give(Chunk::Ended { block, opaque: None });
    }
    hand.give(Chunk::Done(Stop::End));
    client.send("go").await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(client.texts(), whole);
    assert_eq!(client.raws, want(&client, 0..PIECES / 2));
}

#[tokio::test]
async fn after_an_interruption_nothing_more_comes() {
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let mut client = rig.client("s").await;
    let hand = strings.hand();
    client.send("go").await.unwrap();
    hand.give(raw(0));
    client.until("what is raw", |c| c.raws.len() == 1).await.unwrap();
    client.command(interrupt()).await.unwrap();
    client.until_idle().await.unwrap();
    let gone = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hand.give(raw(1))));
    assert!(gone.is_err(), "the call is over");
    client.handle.look().await.unwrap();
    assert_eq!(client.raws.len(), 1);
}
