//! Who may write, and what is found of what they wrote.

use std::sync::Arc;

use polyloop_session::{Growth, ItemId, Seq, Stream};

use super::super::super::conformance::{PlainCodec, all, created, entry, id, queued, turn};
use super::super::super::{Flush, Log, Occasion, OpenMode, Opened};
use super::super::Nats;
use super::Server;

async fn opened(log: &Nats, name: &str) -> Opened {
    log.open(&id(name), OpenMode::OrCreate).await.unwrap().unwrap()
}

fn growth(offset: u64, text: &str) -> Growth {
    Growth { item: ItemId(Seq(3)), stream: Stream::Text, offset, text: text.into() }
}

#[tokio::test]
async fn whoever_opened_last_writes_and_nobody_else() {
    let server = Server::start();
    let (here, there) =
        (server.connect(Arc::new(PlainCodec)).await, server.connect(Arc::new(PlainCodec)).await);
    let mut first = opened(&here, "s").await.writer;
    first.append(Seq::NONE, &[entry(1, created())], Flush::Disk).await.unwrap();
    first.grow(&[growth(0, "Hel")]).await.unwrap();
    first.confirmed().await.unwrap();

    let mut second = opened(&there, "s").await;
    assert_eq!(second.folded.state.last_seq(), Seq(1));
    assert_eq!(second.live.text(ItemId(Seq(3)), Stream::Text), "Hel");
    // The first one does not know yet, and is refused whatever it does.
    assert!(first.confirmed().await.unwrap_err().is_lost());
    let late = first.append(Seq(1), &[entry(2, queued("late"))], Flush::Disk).await.unwrap_err();
    assert!(late.to_string().contains("another server has opened it"), "{late}");
    assert!(late.is_lost(), "{late}");
    assert!(first.grow(&[growth(3, "lo")]).await.unwrap_err().is_lost());
    assert!(first.append(Seq(1), &[entry(2, queued("again"))], Flush::Disk).await.is_err());

    second.writer.append(Seq(1), &[entry(2, queued("mine"))], Flush::Disk).await.unwrap();
    for log in [&here, &there] {
        drop(log.summary(&id("s")).await.unwrap().unwrap());
        assert_eq!(all(log, &id("s"), 0, 9).await, [1, 2]);
    }
    // A growth that was refused is nowhere.
    drop((first, second));
    let third = opened(&here, "s").await;
    assert_eq!(third.live.text(ItemId(Seq(3)), Stream::Text), "Hel");
    let entries = there.read(&id("s"), Seq(1), Seq(2)).await.unwrap();
    assert_eq!(entries, [entry(2, queued("mine"))]);
}

/// Two writers take the session from each other all the time: whatever was acknowledged is there,
/// once and in order, and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_writers_never_interleave() {
    const ROUNDS: u64 = 40;
    let server = Server::start();
    let logs =
        [server.connect(Arc::new(PlainCodec)).await, server.connect(Arc::new(PlainCodec)).await];
    let mut first = opened(&logs[0], "s").await;
    first.writer.append(Seq::NONE, &[entry(1, created())], Flush::Disk).await.unwrap();
    let work = logs.into_iter().zip(["here", "there"]).map(|(log, name)| {
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for round in 0..ROUNDS {
                let Opened { mut writer, folded, .. } = opened(&log, "s").await;
                let mut last = folded.state.last_seq();
                // Until the other one takes it away.
                for n in 0..5 {
                    let text = format!("{name} {round} {n}");
                    let next = entry(last.0 + 1, queued(&text));
                    let one = std::slice::from_ref(&next);
                    match writer.append(last, one, Flush::Disk).await {
                        Ok(()) => acknowledged.push(next),
                        Err(error) if error.is_lost() => break,
                        Err(error) => panic!("{error}"),
                    }
                    last = Seq(last.0 + 1);
                }
            }
            (log, acknowledged)
        })
    });
    let mut acknowledged = Vec::new();
    let mut logs = Vec::new();
    for work in work.collect::<Vec<_>>() {
        let (log, part) = work.await.unwrap();
        acknowledged.extend(part);
        logs.push(log);
    }
    acknowledged.sort_by_key(|entry| entry.seq);
    let count = acknowledged.len() as u64;
    assert!(count > ROUNDS, "hardly anything was written: {count}");
    let mut found = Vec::new();
    while let page =
        logs[0].read(&id("s"), Seq(1 + found.len() as u64), Seq(u64::MAX)).await.unwrap()
        && !page.is_empty()
    {
        found.extend(page);
    }
    // Every answer came back, so what is there is what was acknowledged.
    assert_eq!(found, acknowledged);
}

#[tokio::test]
async fn what_was_acknowledged_outlives_the_server() {
    let mut server = Server::start();
    let log = server.connect(Arc::new(PlainCodec)).await;
    let mut session = opened(&log, "s").await;
    session.writer.append(Seq::NONE, &[entry(1, created())], Flush::Disk).await.unwrap();
    session.writer.grow(&[growth(0, "Hello")]).await.unwrap();
    server.kill_and_start();
    // The same writer goes on, without a word.
    session.writer.append(Seq(1), &[entry(2, queued("hi"))], Flush::Disk).await.unwrap();
    assert_eq!(all(&log, &id("s"), 0, 9).await, [1, 2]);
    drop(session);
    let again = opened(&log, "s").await;
    assert_eq!(again.live.text(ItemId(Seq(3)), Stream::Text), "Hello");
}

#[tokio::test]
async fn another_server_reads_what_one_writes() {
    let server = Server::start();
    let (here, there) =
        (server.connect(Arc::new(PlainCodec)).await, server.connect(Arc::new(PlainCodec)).await);
    // Other sessions between, so that places must be searched for.
    let mut sessions = [opened(&here, "a.b").await.writer, opened(&here, "a_b").await.writer];
    for writer in &mut sessions {
        writer.append(Seq::NONE, &[entry(1, created())], Flush::Disk).await.unwrap();
    }
    for seq in 1..300 {
        for writer in &mut sessions {
            let next = entry(seq + 1, queued(&format!("{seq}")));
            writer.append(Seq(seq), &[next], Flush::Process).await.unwrap();
        }
    }
    for name in ["a.b", "a_b"] {
        assert_eq!(all(&there, &id(name), 0, 300).await, (1..=300).collect::<Vec<_>>());
        assert_eq!(all(&there, &id(name), 250, 260).await, (251..=260).collect::<Vec<_>>());
        assert_eq!(there.read(&id(name), Seq(298), Seq(299)).await.unwrap().len(), 1);
        assert_eq!(there.summary(&id(name)).await.unwrap(), here.summary(&id(name)).await.unwrap());
        let (lines, next) = there
            .lines(&id(name), super::super::LinePlace(290), super::super::LinePlace::END)
            .await
            .unwrap();
        assert_eq!((lines.len(), next.0), (10, 300));
        assert_eq!(there.line_place(&id(name), 1_000).await.unwrap().0, 300);
    }
    // Stores of other names share nothing.
    let other = server.connect_to("other", Arc::new(PlainCodec)).await;
    assert!(other.list().await.unwrap().is_empty());
    assert!(other.open(&id("a.b"), OpenMode::Existing).await.unwrap().is_none());
}

/// A page of long texts ends before there are too many of them.
#[tokio::test]
async fn pages_are_bounded_by_their_bytes() {
    const EACH_BYTES: usize = 400_000;
    let server = Server::start();
    let log = server.connect(Arc::new(PlainCodec)).await;
    let mut session = opened(&log, "s").await;
    for seq in 0..8 {
        let next = [entry(seq + 1, queued(&"x".repeat(EACH_BYTES)))];
        session.writer.append(Seq(seq), &next, Flush::Disk).await.unwrap();
    }
    let page = log.read(&id("s"), Seq::NONE, Seq(8)).await.unwrap();
    assert!((1..5).contains(&page.len()), "{}", page.len());
    assert_eq!(all(&log, &id("s"), 0, 8).await, (1..=8).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_index_gives_what_the_whole_log_gives_or_is_not_used() {
    let server = Server::start();
    let log = server.connect(Arc::new(PlainCodec)).await;
    let mut session = opened(&log, "s").await;
    let many: Vec<_> = (1..=500).map(|n| entry(n, queued(&"x".repeat(400)))).collect();
    session.writer.append(Seq::NONE, &many, Flush::Disk).await.unwrap();
    drop(session);
    let (record, _) = log.store.record(&id("s")).await.unwrap().unwrap();
    let is_indexed = async || log.store.indexed(&record).await.is_some();

    let mut whole = opened(&log, "s").await;
    assert!(!is_indexed().await);
    whole.writer.keep(&whole.folded.state, Occasion::Leaving).await;
    assert!(is_indexed().await);
    whole.writer.append(Seq(500), &[entry(501, turn(1))], Flush::Disk).await.unwrap();
    whole.folded.take(&entry(501, turn(1)));
    let summary = log.summary(&id("s")).await.unwrap();
    let same = async || {
        let found = opened(&log, "s").await;
        assert_eq!(found.folded.state, whole.folded.state);
        assert_eq!(found.folded.turns, whole.folded.turns);
        assert_eq!(found.folded.last_at, whole.folded.last_at);
        assert_eq!(log.summary(&id("s")).await.unwrap(), summary);
        assert_eq!(all(&log, &id("s"), 0, 999).await, (1..=501).collect::<Vec<_>>());
    };
    same().await;
    // One that is damaged, or of another version, is none.
    let name = format!("{}/index", record.birth);
    let good = log.store.get(&name).await.unwrap().unwrap();
    let text = String::from_utf8(good.to_vec()).unwrap();
    let other = text.replacen("\"version\":1", "\"version\":0", 1);
    let elsewhere = text.replacen("\"lines\":500", "\"lines\":499", 1);
    assert!(other != text && elsewhere != text);
    for bad in [&good[..good.len() / 2], b"", other.as_bytes(), elsewhere.as_bytes()] {
        log.store.put(&name, bad).await.unwrap();
        assert!(!is_indexed().await);
        same().await;
    }
}

/// What changes while it is listed is listed once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_listed_once_while_its_record_is_written() {
    let server = Server::start();
    let (here, there) =
        (server.connect(Arc::new(PlainCodec)).await, server.connect(Arc::new(PlainCodec)).await);
    let mut session = opened(&here, "s").await;
    session.writer.append(Seq::NONE, &[entry(1, created())], Flush::Disk).await.unwrap();
    session.writer.keep(&session.folded.state, Occasion::Leaving).await;
    let writing = tokio::spawn(async move {
        for seq in 1..400 {
            // The newest message is shown by lists.
            let next = [entry(seq + 1, queued(&format!("{seq}")))];
            session.writer.append(Seq(seq), &next, Flush::Disk).await.unwrap();
        }
    });
    while !writing.is_finished() {
        assert_eq!(there.list().await.unwrap().len(), 1);
    }
    writing.await.unwrap();
}

#[tokio::test]
async fn a_batch_that_fits_in_no_message_is_still_one() {
    let server = Server::start();
    let log = server.connect(Arc::new(PlainCodec)).await;
    let mut session = opened(&log, "s").await;
    let many: Vec<_> = (1..=5_000).map(|n| entry(n, queued(&"x".repeat(400)))).collect();
    session.writer.append(Seq::NONE, &many, Flush::Disk).await.unwrap();
    session.writer.append(Seq(5_000), &[entry(5_001, turn(1))], Flush::Disk).await.unwrap();
    drop(session);
    assert_eq!(all(&log, &id("s"), 0, 9_999).await, (1..=5_001).collect::<Vec<_>>());
    assert_eq!(opened(&log, "s").await.folded.state.last_seq(), Seq(5_001));
}

/// Also where NATS takes little at once.
#[tokio::test]
async fn growth_that_fits_in_no_message_is_kept_whole() {
    let server = Server::with("max_payload: 65536\n");
    let (here, there) =
        (server.connect(Arc::new(PlainCodec)).await, server.connect(Arc::new(PlainCodec)).await);
    let mut session = opened(&here, "s").await;
    session.writer.append(Seq::NONE, &[entry(1, created())], Flush::Disk).await.unwrap();
    // Of several bytes each, so that pieces do not end where characters do.
    let long = "€".repeat(100_000);
    session.writer.grow(&[growth(0, "Hello "), growth(6, &long)]).await.unwrap();
    session.writer.grow(&[growth(6 + long.len() as u64, "!")]).await.unwrap();
    let whole = format!("Hello {long}!");
    let (_, live) = there.store.peek(&id("s")).await.unwrap().unwrap();
    assert_eq!(live.text(ItemId(Seq(3)), Stream::Text), whole);
    drop(session);
    assert_eq!(opened(&there, "s").await.live.text(ItemId(Seq(3)), Stream::Text), whole);
}
