//! What every log must do about forks and kept contents.

use sha2::{Digest as _, Sha256};

use super::*;

const LONG_BYTES: usize = 200_000;

fn fork(from: &str, to: &str, upto: Option<u64>) -> Fork {
    Fork {
        from: id(from),
        to: id(to),
        upto: upto.map(Seq),
        growth: TakenGrowth::Left,
        at: Timestamp(99),
        by: Who::via("test"),
    }
}

async fn entries(log: &dyn Log, name: &str) -> Vec<Arc<LogEntry>> {
    let mut all = Vec::new();
    let mut after = Seq::NONE;
    loop {
        let page = log.read(&id(name), after, Seq(u64::MAX)).await.unwrap();
        let Some(last) = page.last() else { return all };
        after = last.seq;
        all.extend(page);
    }
}

/// The copied entries, and one that says so.
async fn is_fork(log: &dyn Log, name: &str, of: &[Arc<LogEntry>]) {
    let all = entries(log, name).await;
    let (last, copied) = all.split_last().unwrap();
    assert_eq!(copied, of);
    let upto = of.last().unwrap().seq;
    assert_eq!(last.seq, upto.next());
    let want = Event::Forked { session: id("s"), upto, by: Who::via("test") };
    assert_eq!(last.event, want);
}

async fn forks(log: &dyn Log) {
    let long = "x".repeat(LONG_BYTES);
    let first: Vec<_> = vec![
        entry(1, created()),
        entry(2, queued("hi")),
        entry(3, turn(2)),
        entry(4, queued(&long)),
        entry(5, queued("last")),
    ];
    let mut opened = log.open(&id("s"), OpenMode::OrCreate).await.unwrap().unwrap();
    opened.writer.append(Seq::NONE, &first, Flush::Disk).await.unwrap();
    let content = Bytes::from_static(b"\xff\x00 content");
    let hash = format!("{:x}", Sha256::digest(&content));
    assert!(opened.writer.keep_content(&hash, &content).await.unwrap());
    let item = ItemId(Seq(3));
    let growth = Growth { item, stream: Stream::Text, offset: 0, text: "Hello".into() };
    opened.writer.grow(std::slice::from_ref(&growth)).await.unwrap();

    // While somebody writes it, who says what is shown.
    let growths = vec![Growth { text: "Hel".into(), ..growth.clone() }];
    let told = TakenGrowth::Told { at: Seq(5), growths };
    let running = Fork { growth: told.clone(), ..fork("s", "running", Some(5)) };
    assert_eq!(log.fork(&running).await.unwrap(), ForkedAt::Done { upto: Seq(5) });
    is_fork(log, "running", &first).await;
    let early = Fork { growth: told, ..fork("s", "early", Some(3)) };
    assert_eq!(log.fork(&early).await.unwrap(), ForkedAt::Done { upto: Seq(3) });
    is_fork(log, "early", &first[..3]).await;
    for (name, shown) in [("running", "Hel"), ("early", "")] {
        let opened = log.open(&id(name), OpenMode::Existing).await.unwrap().unwrap();
        assert_eq!(opened.live.text(item, Stream::Text), shown);
        assert!(opened.folded.state.is_fresh_fork() && opened.folded.damage.is_empty());
    }

    // What nobody writes is copied with what was left of it.
    drop(opened);
    assert_eq!(log.fork(&fork("s", "all", None)).await.unwrap(), ForkedAt::Done { upto: Seq(5) });
    is_fork(log, "all", &first).await;
    let mut copy = log.open(&id("all"), OpenMode::Existing).await.unwrap().unwrap();
    assert_eq!(copy.live.text(item, Stream::Text), "Hello");

    let beyond = ForkedAt::Beyond { last: Seq(5) };
    assert_eq!(log.fork(&fork("s", "no", Some(6))).await.unwrap(), beyond);
    assert_eq!(log.fork(&fork("nobody", "no", None)).await.unwrap(), ForkedAt::NotFound);
    assert!(log.summary(&id("no")).await.unwrap().is_none(), "nothing is left of it");
    assert_eq!(entries(log, "s").await, first, "the other one is as it was");

    // Each goes its own way, also where both write long texts at the same place.
    let mut opened = log.open(&id("s"), OpenMode::Existing).await.unwrap().unwrap();
    let (here, there) = ("h".repeat(LONG_BYTES), "t".repeat(LONG_BYTES));
    opened.writer.append(Seq(5), &[entry(6, queued("x"))], Flush::Disk).await.unwrap();
    opened.writer.append(Seq(6), &[entry(7, queued(&here))], Flush::Disk).await.unwrap();
    copy.writer.append(Seq(6), &[entry(7, queued(&there))], Flush::Disk).await.unwrap();
    assert_eq!(entries(log, "s").await.last(), Some(&entry(7, queued(&here))));
    assert_eq!(entries(log, "all").await.last(), Some(&entry(7, queued(&there))));
    drop((opened, copy));

    // And outlives the other.
    assert!(log.archive(&id("s"), Timestamp(7)).await.unwrap());
    assert_eq!(entries(log, "all").await[..5], first);
    for name in ["all", "running", "early"] {
        let kept = log.kept_content(&id(name), &hash).await.unwrap();
        assert_eq!(kept.as_ref(), Some(&content), "{name}");
    }
    let other = format!("{:x}", Sha256::digest("other"));
    assert_eq!(log.kept_content(&id("all"), &other).await.unwrap(), None);
}

#[tokio::test]
async fn memory_forks() {
    forks(&Memory::new(Arc::new(PlainCodec))).await;
}

#[tokio::test]
async fn files_fork() {
    let dir = tempfile::tempdir().unwrap();
    forks(&Files::open(dir.path(), Arc::new(PlainCodec)).unwrap()).await;
}

#[cfg(feature = "nats")]
#[tokio::test]
async fn nats_forks() {
    let server = crate::log::nats::tests::Server::start();
    forks(&server.connect(Arc::new(PlainCodec)).await).await;
}
