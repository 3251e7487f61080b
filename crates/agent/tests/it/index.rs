//! The index of a session: with it a session is opened as if its whole file had been read, however
//! the file or the index was damaged; and it is really used.

use std::path::Path;
use std::sync::Arc;

use polyloop_agent::log::files::Files;
use polyloop_agent::log::{Flush, Folded, LinePlace, Log, Occasion, OpenMode, Summary};
use polyloop_session::event::{Agent, Outcome, Purpose, Settings, Thought, Work};
use polyloop_session::{CallId, Event, LogEntry, MessageId, Seq, State};
use tempfile::TempDir;

use super::client::Client;
use super::codec::Plain;
use super::faults::Faulty;
use super::make::{entry, fold, id, queued, who};
use super::rig::{Setup, read_all, stop, temp_dir};
use super::story::{self, COUNTED};
use super::view::Kind;

/// Every session gets an index, also a short one.
fn open(dir: &Path) -> Files {
    Files::open(dir, Arc::new(Plain)).unwrap().index_from(0)
}

/// The entries of a conversation with everything in it, and of some more talk.
async fn long_story() -> Vec<Arc<LogEntry>> {
    let (work, store) = (temp_dir(), temp_dir());
    std::fs::write(work.path().join(COUNTED), "start\n").unwrap();
    let log = Faulty::new(Arc::new(open(store.path())));
    let sessions = Setup::new(log.clone()).start(work.path());
    let mut client = Client::attach(sessions.handle(id("s"), who()), Kind::new()).await.unwrap();
    assert!(story::tell(&mut client).await.is_ok());
    for n in 0..10 {
        client.send(&format!("think: {n}\nsay: more {n}")).await.unwrap();
        client.until_idle().await.unwrap();
    }
    drop(client);
    stop(sessions, log).await;
    assert!(store.path().join("s.index").is_file(), "it is written when the session leaves");
    let log = open(store.path());
    read_all(&log, &id("s")).await
}

/// What opening finds.
#[derive(Debug, PartialEq)]
struct Found {
    state: State,
    turns: Vec<Seq>,
    damage: usize,
    told: bool,
    last_at: i64,
    summary: Summary,
}

async fn found(dir: &Path) -> Found {
    let log = open(dir);
    let opened = log.open(&id("s"), OpenMode::Existing).await.unwrap().unwrap();
    let Folded { state, turns, damage, damage_told, last_at } = opened.folded;
    let summary = log.summary(&id("s")).await.unwrap().unwrap();
    let (damage, told) = (damage.len(), damage_told.is_some());
    Found { state, turns, damage, told, last_at: last_at.0, summary }
}

/// The same without an index.
async fn found_anew(dir: &Path) -> Found {
    let _ = std::fs::remove_file(dir.join("s.index"));
    found(dir).await
}

/// A store with the entries, and the indexes that were made on the way: one at each rest.
async fn written(all: &[Arc<LogEntry>]) -> (TempDir, Vec<Vec<u8>>) {
    let dir = temp_dir();
    let log = open(dir.path());
    let mut opened = log.open(&id("s"), OpenMode::OrCreate).await.unwrap().unwrap();
    let (mut state, mut indexes) = (State::default(), Vec::new());
    let path = dir.path().join("s.index");
    for entry in all {
        let last = state.last_seq();
        opened.writer.append(last, std::slice::from_ref(entry), Flush::Process).await.unwrap();
        state.apply(entry);
        let _ = std::fs::remove_file(&path);
        opened.writer.keep(&state, Occasion::Leaving).await;
        assert_eq!(path.exists(), state.turn().is_none(), "only between turns");
        indexes.extend(std::fs::read(&path).ok());
    }
    drop(opened);
    drop(log);
    (dir, indexes)
}

#[tokio::test]
async fn every_index_gives_what_the_whole_file_gives() {
    let all = long_story().await;
    let (dir, indexes) = written(&all).await;
    let whole = found_anew(dir.path()).await;
    assert_eq!(whole.state, fold(all.iter().map(|entry| &**entry)));
    assert!(indexes.len() > 20, "{}", indexes.len());
    for (at, index) in indexes.iter().enumerate() {
        std::fs::write(dir.path().join("s.index"), index).unwrap();
        assert_eq!(found(dir.path()).await, whole, "index {at}");
    }
    // What came before its place is not read again: damage there is not seen with it, and is
    // without it.
    let file = std::fs::read(dir.path().join("s.jsonl")).unwrap();
    let mut damaged = file.clone();
    damaged[..200].fill(b'x');
    std::fs::write(dir.path().join("s.jsonl"), &damaged).unwrap();
    let middle = &indexes[indexes.len() / 2];
    std::fs::write(dir.path().join("s.index"), middle).unwrap();
    assert_eq!(found(dir.path()).await, whole, "the index was not used");
    assert!(found_anew(dir.path()).await.damage > 0);
}

#[tokio::test]
async fn an_index_that_does_not_fit_is_not_used() {
    let all = long_story().await;
    let (dir, indexes) = written(&all).await;
    let (path, index_path) = (dir.path().join("s.jsonl"), dir.path().join("s.index"));
    let file = std::fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = file.split_inclusive(|b| *b == b'\n').collect();
    let last = indexes.last().unwrap();
    let some = [&indexes[0], &indexes[indexes.len() / 3], &indexes[indexes.len() / 2], last];
    let changed: Vec<Vec<u8>> = vec![
        Vec::new(),
        lines[..1].concat(),
        lines[..lines.len() / 2].concat(),
        file[..file.len() - 1].to_vec(),
        file[..file.len() - 10].to_vec(),
        lines[1..].concat(),
        [lines[0], b"{\"user\":\"new\",\"at\":5}\n", &lines[1..].concat()].concat(),
        [&file[..], &[0; 300]].concat(),
        [&file[..], lines[3]].concat(),
        file.iter().map(|byte| if *byte == b'7' { b'8' } else { *byte }).collect(),
    ];
    for (n, changed) in changed.iter().enumerate() {
        for (m, index) in some.iter().enumerate() {
            std::fs::write(&path, changed).unwrap();
            let _ = std::fs::remove_file(&index_path);
            let want = found(dir.path()).await;
            // Opening may have mended the end.
            std::fs::write(&path, changed).unwrap();
            std::fs::write(&index_path, index).unwrap();
            assert_eq!(found(dir.path()).await, want, "file {n}, index {m}");
        }
    }
}

#[tokio::test]
async fn a_damaged_or_foreign_index_is_not_used() {
    let all = long_story().await;
    let (dir, indexes) = written(&all[..60]).await;
    let whole = found_anew(dir.path()).await;
    let path = dir.path().join("s.index");
    let index = indexes.last().unwrap();
    let check = async |bad: &[u8], what: &str| {
        std::fs::write(&path, bad).unwrap();
        assert_eq!(found(dir.path()).await, whole, "{what}");
    };
    for at in (0..600).chain((600..index.len()).step_by(13)) {
        let mut bad = index.clone();
        bad[at] ^= 1;
        check(&bad, &format!("byte {at}")).await;
    }
    for at in (0..index.len()).step_by(97) {
        check(&index[..at], &format!("cut at {at}")).await;
        let zeros = [&index[..at], &vec![0; index.len() - at]].concat();
        check(&zeros, &format!("zeros from {at}")).await;
    }
    let text = String::from_utf8(index.clone()).unwrap();
    let newer = text.replacen("polyloop-index 2 ", "polyloop-index 3 ", 1);
    check(newer.as_bytes(), "of a newer version").await;
    let other: Vec<_> = (1..=80).map(|n| Arc::new(entry(n, queued("another session")))).collect();
    let (_other, others) = written(&other).await;
    check(others.last().unwrap(), "of another session").await;
}

/// Lists, pages and lines come from the index alone, and are right.
#[tokio::test]
async fn lists_and_pages_use_the_index() {
    let name = id("s");
    let all: Vec<_> =
        (1..=2_000).map(|n| Arc::new(entry(n, queued(&format!("message {n}"))))).collect();
    let dir = temp_dir();
    let log = open(dir.path());
    let mut opened = log.open(&name, OpenMode::OrCreate).await.unwrap().unwrap();
    opened.writer.append(Seq::NONE, &all, Flush::Process).await.unwrap();
    let state = fold(all.iter().map(|entry| &**entry));
    opened.writer.keep(&state, Occasion::Leaving).await;
    drop(opened);
    let summary = log.summary(&name).await.unwrap().unwrap();
    let (lines, _) = log.lines(&name, LinePlace::default(), LinePlace::END).await.unwrap();
    drop(log);
    // The first half is gone; whoever reads it will know.
    let path = dir.path().join("s.jsonl");
    let mut file = std::fs::read(&path).unwrap();
    let half = file.len() / 2;
    file[..half].fill(b'x');
    let modified = path.metadata().unwrap().modified().unwrap();
    std::fs::write(&path, &file).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let log = open(dir.path());
    assert_eq!(log.summary(&name).await.unwrap().unwrap(), summary);
    assert_eq!(log.list().await.unwrap(), std::slice::from_ref(&summary));
    let page = log.read(&name, Seq(1_990), Seq(2_000)).await.unwrap();
    assert_eq!(page, all[1_990..]);
    let from = log.line_place(&name, summary.lines - 6).await.unwrap();
    let upto = log.line_place(&name, summary.lines - 3).await.unwrap();
    let (page, _) = log.lines(&name, from, upto).await.unwrap();
    let end = lines.len();
    assert_eq!(page.len(), 3);
    assert_eq!(page.last(), lines.get(end - 4));
}

/// While a session goes on, an index is written after a compaction, or when much came in.
#[tokio::test]
async fn a_turn_s_end_writes_an_index_when_it_is_worth_it() {
    let all = long_story().await;
    let dir = temp_dir();
    let log = open(dir.path());
    let mut opened = log.open(&id("s"), OpenMode::OrCreate).await.unwrap().unwrap();
    let (mut state, mut written) = (State::default(), Vec::new());
    let path = dir.path().join("s.index");
    for entry in &all {
        let last = state.last_seq();
        opened.writer.append(last, std::slice::from_ref(entry), Flush::Process).await.unwrap();
        state.apply(entry);
        if matches!(entry.event, Event::TurnEnded { .. }) {
            opened.writer.keep(&state, Occasion::TurnEnded).await;
            if path.exists() {
                written.push(entry.seq);
                std::fs::remove_file(&path).unwrap();
            }
        }
    }
    let compacted = all.iter().find(|entry| matches!(entry.event, Event::Compacted { .. }));
    let after = compacted.expect("the story has one").seq;
    assert_eq!(written.len(), 1, "{written:?}");
    assert!(written[0] > after);
}

/// What a search had come to is folded from the log, and stands in no index.
#[tokio::test]
async fn an_interrupted_search_is_not_lost_for_an_index() {
    let events = vec![
        Event::SessionCreated { settings: Settings::default(), by: who() },
        queued("weigh it"),
        Event::TurnStarted {
            work: Work::Message { message: MessageId(Seq(2)) },
            agent: Some(Agent::Tot),
            cwd: None,
            earlier: Some(0),
        },
        Event::CallStarted {
            purpose: Purpose::Expand { thought: None },
            model: "m".into(),
            tokens_max: 1_000,
            overhead_tokens: None,
            line: Some(polyloop_session::event::LineId::Branch { thought: None }),
        },
        Event::CallEnded {
            call: CallId(Seq(4)),
            outcome: polyloop_session::event::CallOutcome::Answered,
            usage: None,
        },
        Event::Expanded {
            call: CallId(Seq(4)),
            from: None,
            thoughts: vec![Thought { text: "left".into(), last: false }],
        },
        Event::TurnEnded {
            outcome: Outcome::Interrupted { reason: "enough".into() },
            usage: Default::default(),
        },
    ];
    let all = (1..).zip(events).map(|(seq, event)| Arc::new(entry(seq, event)));
    let all: Vec<Arc<LogEntry>> = all.collect();
    let dir = temp_dir();
    let log = open(dir.path());
    let mut opened = log.open(&id("s"), OpenMode::OrCreate).await.unwrap().unwrap();
    let mut state = State::default();
    for entry in &all {
        let last = state.last_seq();
        opened.writer.append(last, std::slice::from_ref(entry), Flush::Process).await.unwrap();
        state.apply(entry);
        opened.writer.keep(&state, Occasion::TurnEnded).await;
        opened.writer.keep(&state, Occasion::Leaving).await;
    }
    drop(opened);
    drop(log);
    assert!(state.interrupted().is_some_and(|left| left.left.is_some()));
    assert!(dir.path().join("s.index").exists(), "the one before it is there");
    let found = found(dir.path()).await;
    assert_eq!(found.state, state);
}
