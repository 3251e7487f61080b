//! What every log must do, run against each of them.

use std::sync::Arc;

use polyloop_session::event::{Settings, Work};
use polyloop_session::item::Part;
use polyloop_session::wait::Who;
use polyloop_session::{
    Event, Growth, ItemId, LogEntry, MessageId, Seq, SessionId, Stream, Timestamp,
};

use super::files::Files;
use super::memory::Memory;
use super::*;

mod fork;

/// One line an entry, long texts in files of their own: as much as a log needs to know.
pub(super) struct PlainCodec;

struct PlainEncoder;

const LONG_BYTES_MIN: usize = 1000;

impl Codec for PlainCodec {
    fn encoder(&self, _: &SessionId) -> Box<dyn LineEncoder> {
        Box::new(PlainEncoder)
    }

    fn read(&self, line: &str, blob: &dyn Fn(&str) -> Option<String>) -> Line {
        let line = match line.strip_prefix("blob ") {
            Some(name) => blob(name),
            None => Some(line.to_string()),
        };
        let read = line.and_then(|line| serde_json::from_str(&line).ok());
        read.map_or(Line::Damaged { seq: None, why: "no entry".into() }, Line::Entry)
    }

    fn restored(&self, line: &str, _: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        Some(line.to_string())
    }

    fn line_time(&self, line: &str) -> Option<Timestamp> {
        let entry: Option<LogEntry> = serde_json::from_str(line).ok();
        Some(entry.map_or(Timestamp(1), |entry| entry.at))
    }
}

impl LineEncoder for PlainEncoder {
    fn lines(&mut self, entry: &LogEntry) -> Lines {
        let line = serde_json::to_string(entry).unwrap();
        if line.len() < LONG_BYTES_MIN {
            return Lines { lines: vec![format!("{line}\n")], blobs: Vec::new() };
        }
        let name = entry.seq.to_string();
        Lines { lines: vec![format!("blob {name}\n")], blobs: vec![(name, line)] }
    }
}

pub(super) fn id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

pub(super) fn entry(seq: u64, event: Event) -> Arc<LogEntry> {
    Arc::new(LogEntry { seq: Seq(seq), at: Timestamp(seq as i64), event })
}

pub(super) fn created() -> Event {
    let settings =
        Settings { cwd: "/w".into(), model: "m".into(), calls_max: 5, ..Settings::default() };
    Event::SessionCreated { settings, by: Who::via("test") }
}

pub(super) fn queued(text: &str) -> Event {
    let origin = polyloop_session::event::Origin {
        who: Who::via("test"),
        can_approve: true,
        can_answer: true,
    };
    let content = vec![Part::Text { text: text.into() }];
    Event::MessageQueued { content, origin, client_ref: None, tokens: 1, run: None, waits: false }
}

pub(super) fn turn(message: u64) -> Event {
    let work = Work::Message { message: MessageId(Seq(message)) };
    Event::TurnStarted { work, agent: None, cwd: None, earlier: None }
}

pub(super) async fn all(log: &dyn Log, id: &SessionId, after: u64, upto: u64) -> Vec<u64> {
    let mut found = Vec::new();
    let mut after = Seq(after);
    loop {
        let page = log.read(id, after, Seq(upto)).await.unwrap();
        let Some(last) = page.last() else { return found };
        after = last.seq;
        found.extend(page.iter().map(|entry| entry.seq.0));
    }
}

/// The test itself. `log` must be empty.
pub(super) async fn conforms(log: &dyn Log) {
    let one = id("one");
    assert!(log.open(&one, OpenMode::Existing).await.unwrap().is_none());
    assert_eq!(log.summary(&one).await.unwrap(), None);
    assert!(log.read(&one, Seq(0), Seq(9)).await.unwrap().is_empty());

    let mut opened = log.open(&one, OpenMode::OrCreate).await.unwrap().unwrap();
    assert_eq!(opened.folded.state.last_seq(), Seq::NONE);
    let first = [entry(1, created()), entry(2, queued("hi"))];
    opened.writer.append(Seq::NONE, &first, Flush::Disk).await.unwrap();
    // A read after an append sees it.
    assert_eq!(all(log, &one, 0, 9).await, [1, 2]);
    // The owner numbers: an append that does not follow the last is refused and changes nothing.
    for expected in [0, 1, 3] {
        let wrong = opened.writer.append(Seq(expected), &[entry(4, turn(2))], Flush::Process).await;
        assert!(matches!(wrong, Err(LogError::Conflict { .. })), "{expected}");
    }
    assert_eq!(all(log, &one, 0, 9).await, [1, 2]);

    // Enough for several pages, and one that is long.
    let mut seq = 2;
    while seq < 1000 {
        let batch: Vec<_> = (1..=10).map(|n| entry(seq + n, queued(&format!("{n}")))).collect();
        opened.writer.append(Seq(seq), &batch, Flush::Process).await.unwrap();
        seq += 10;
    }
    let long = entry(seq + 1, queued(&"x".repeat(200_000)));
    opened.writer.append(Seq(seq), std::slice::from_ref(&long), Flush::Process).await.unwrap();
    seq += 1;
    assert_eq!(all(log, &one, 0, seq).await, (1..=seq).collect::<Vec<_>>());
    assert_eq!(all(log, &one, 500, 520).await, (501..=520).collect::<Vec<_>>());
    assert_eq!(log.read(&one, Seq(seq - 1), Seq(seq)).await.unwrap(), [long]);

    let summary = log.summary(&one).await.unwrap().unwrap();
    assert_eq!(summary.lines, seq);
    assert_eq!(log.list().await.unwrap(), [summary]);
    let mut lines = 0;
    let mut place = LinePlace::default();
    loop {
        let (page, next) = log.lines(&one, place, LinePlace::END).await.unwrap();
        lines += page.len() as u64;
        if next == place {
            break;
        }
        place = next;
    }
    assert_eq!(lines, seq);

    // Growth outlives its writer until it is forgotten.
    let item = ItemId(Seq(3));
    let growth =
        |offset, text: &str| Growth { item, stream: Stream::Text, offset, text: text.into() };
    opened.writer.grow(&[growth(0, "Hel"), growth(3, "lo")]).await.unwrap();
    opened.writer.grow(&[growth(5, " wörld")]).await.unwrap();
    let want = opened.folded.state.clone();
    drop(opened);
    let mut opened = log.open(&one, OpenMode::Existing).await.unwrap().unwrap();
    assert_eq!(opened.live.text(item, Stream::Text), "Hello wörld");
    assert_ne!(opened.folded.state, want, "the state is folded from what was appended");
    assert_eq!(opened.folded.state.last_seq(), Seq(seq));
    opened.writer.forget_growth().await.unwrap();
    opened.writer.append(Seq(seq), &[entry(seq + 1, turn(2))], Flush::Disk).await.unwrap();
    drop(opened);
    let opened = log.open(&one, OpenMode::Existing).await.unwrap().unwrap();
    assert!(opened.live.is_empty());
    assert_eq!(opened.folded.turns, [Seq(seq + 1)]);
    assert!(opened.folded.damage.is_empty(), "{:?}", opened.folded.damage);
    drop(opened);

    // Other sessions are not touched by archiving one.
    let two = log.open(&id("two"), OpenMode::OrCreate).await.unwrap().unwrap();
    drop(two);
    assert!(log.archive(&one, Timestamp(7)).await.unwrap());
    assert!(!log.archive(&one, Timestamp(8)).await.unwrap());
    assert!(log.open(&one, OpenMode::Existing).await.unwrap().is_none());
    assert!(log.open(&id("two"), OpenMode::Existing).await.unwrap().is_some());
}

#[tokio::test]
async fn memory_conforms() {
    conforms(&Memory::new(Arc::new(PlainCodec))).await;
}

#[tokio::test]
async fn files_conform() {
    let dir = tempfile::tempdir().unwrap();
    conforms(&Files::open(dir.path(), Arc::new(PlainCodec)).unwrap()).await;
    let names = std::fs::read_dir(dir.path()).unwrap();
    let mut names: Vec<_> = names.map(|n| n.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let archived = ".one-1970-01-01T00-00-00.007Z";
    let (blobs, lines) = (format!("{archived}.blobs"), format!("{archived}.jsonl"));
    assert_eq!(names, [".lock", &blobs, &lines, "two.jsonl"]);
}

#[cfg(feature = "nats")]
#[tokio::test]
async fn nats_conforms() {
    let server = super::nats::tests::Server::start();
    conforms(&server.connect(Arc::new(PlainCodec)).await).await;
}

#[tokio::test]
async fn a_store_has_one_server() {
    let dir = tempfile::tempdir().unwrap();
    let _first = Files::open(dir.path(), Arc::new(PlainCodec)).unwrap();
    let second = Files::open(dir.path(), Arc::new(PlainCodec)).err().unwrap().to_string();
    assert!(second.contains("another server is using it"), "{second}");
}

async fn file_with(dir: &std::path::Path, entries: u64) -> Vec<u8> {
    let log = Files::open(dir, Arc::new(PlainCodec)).unwrap();
    let mut opened = log.open(&id("s"), OpenMode::OrCreate).await.unwrap().unwrap();
    let all: Vec<_> = (1..=entries).map(|n| entry(n, queued(&format!("message {n}")))).collect();
    opened.writer.append(Seq::NONE, &all, Flush::Process).await.unwrap();
    drop(opened);
    std::fs::read(dir.join("s.jsonl")).unwrap()
}

/// Opens, appends one more, and reads all back: the numbers that are there.
async fn open_and_append(dir: &std::path::Path) -> (Vec<u64>, usize) {
    let log = Files::open(dir, Arc::new(PlainCodec)).unwrap();
    let mut opened = log.open(&id("s"), OpenMode::Existing).await.unwrap().unwrap();
    let last = opened.folded.state.last_seq();
    let next = [entry(last.0 + 1, queued("after"))];
    opened.writer.append(last, &next, Flush::Process).await.unwrap();
    (all(&log, &id("s"), 0, 100).await, opened.folded.damage.len())
}

#[tokio::test]
async fn a_tail_cut_at_any_byte_keeps_every_whole_entry() {
    let dir = tempfile::tempdir().unwrap();
    let whole = file_with(dir.path(), 6).await;
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    for cut in ends[2]..whole.len() {
        std::fs::write(dir.path().join("s.jsonl"), &whole[..cut]).unwrap();
        let (found, damage) = open_and_append(dir.path()).await;
        // A last line that only lacks its newline is whole.
        let kept = ends.iter().filter(|end| **end <= cut + 1).count() as u64;
        assert_eq!(found, (1..=kept + 1).collect::<Vec<_>>(), "cut at {cut}");
        let torn = !ends.contains(&cut) && !ends.contains(&(cut + 1));
        assert_eq!(damage, usize::from(torn), "cut at {cut}");
    }
}

#[tokio::test]
async fn a_damaged_middle_hides_nothing_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let whole = file_with(dir.path(), 6).await;
    let lines: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
    let half = [&lines[2][..lines[2].len() / 2], b"\n"].concat();
    let long = [vec![b'x'; 33 * 1024 * 1024], b"\n".to_vec()].concat();
    for bad in [&[0u8; 512][..], b"\xff\xfe\n", &half, &long, lines[1], b"{}\n", b"\n"] {
        let mut file = lines[..3].concat();
        file.extend_from_slice(bad);
        file.extend_from_slice(&lines[3..].concat());
        // A byte order mark and Windows line ends do no harm.
        let file = [b"\xef\xbb\xbf".to_vec(), file].concat();
        std::fs::write(dir.path().join("s.jsonl"), &file).unwrap();
        let (found, damage) = open_and_append(dir.path()).await;
        let want: Vec<u64> = match bad.ends_with(b"\n") {
            true => (1..=7).collect(),
            // Without a line end of its own the damage takes the next line with it.
            false => vec![1, 2, 3, 5, 6, 7],
        };
        assert_eq!(found, want);
        assert!(damage >= 1);
    }
}
