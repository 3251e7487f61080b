//! Sessions in files: what stands there already is taken over, what was torn is completed, and
//! every page is right however it is read.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use polyloop_agent::log::files::Files;
use polyloop_agent::log::{DAMAGED_CODE, Flush, LinePlace, Log, OpenMode};
use polyloop_agent::model::Request;
use polyloop_agent::sessions::Handle;
use polyloop_session::history::Message;
use polyloop_session::{Event, LogEntry, Seq, SessionId};

use super::client::{APPROVE, CLIENT, Client};
use super::codec::{LONG_BYTES_MIN, Plain, has_two_lines};
use super::make::{entry, fold, id, queued, send, who};
use super::model::{Puppet, in_turn, said};
use super::rig::{Setup, check_at_rest, files, in_time, read_all, stop, temp_dir};
use super::view::{Kind, Seeing};

fn open(dir: &Path) -> Files {
    Files::open(dir, Arc::new(Plain)).unwrap()
}

/// Appends them in one batch.
async fn append(log: &dyn Log, name: &SessionId, batch: &[Arc<LogEntry>]) {
    let mut opened = log.open(name, OpenMode::OrCreate).await.unwrap().unwrap();
    let last = opened.folded.state.last_seq();
    opened.writer.append(last, batch, Flush::Process).await.unwrap();
}

fn batch(seqs: std::ops::RangeInclusive<u64>) -> Vec<Arc<LogEntry>> {
    seqs.map(|seq| Arc::new(entry(seq, queued(&format!("message {seq}"))))).collect()
}

async fn all_lines(log: &dyn Log, name: &SessionId) -> Vec<String> {
    let (mut all, mut place) = (Vec::new(), LinePlace::default());
    loop {
        let (page, next) = log.lines(name, place, LinePlace::END).await.unwrap();
        if next == place {
            return all;
        }
        all.extend(page);
        place = next;
    }
}

fn notices(entries: &[Arc<LogEntry>]) -> usize {
    let is_notice = |event: &Event| match event {
        Event::Noticed { code, .. } => &**code == DAMAGED_CODE,
        _ => false,
    };
    entries.iter().filter(|entry| is_notice(&entry.event)).count()
}

/// A file of another program gets numbers, and the beginning of a session of ours behind it.
#[tokio::test]
async fn another_programs_file_is_taken_over_as_it_stands() {
    let (work, store) = (temp_dir(), temp_dir());
    let theirs =
        "{\"user\":\"one\",\"at\":5}\n{\"note\":1,\"at\":6}\n{\"user\":\"two\",\"at\":7}\n";
    let path = store.path().join("s.jsonl");
    std::fs::write(&path, theirs).unwrap();
    let prompts: Arc<Mutex<Vec<Vec<Message>>>> = Arc::default();
    for life in 1..3 {
        let seen = prompts.clone();
        let model = Arc::new(Puppet(move |request: Request| {
            seen.lock().unwrap().push(request.prompt.messages.clone());
            in_turn(said("I see"))
        }));
        let log = files(store.path());
        let sessions = Setup::new(log.clone()).model(model).start(work.path());
        let kind = Kind::new();
        let mut client = Client::attach(sessions.handle(id("s"), who()), kind).await.unwrap();
        let events: Vec<&Event> = client.entries.iter().map(|entry| &entry.event).collect();
        assert!(events[..3].iter().all(|event| matches!(event, Event::Adopted { .. })));
        assert!(matches!(events[3], Event::SessionCreated { .. }));
        let created = events.iter().filter(|e| matches!(e, Event::SessionCreated { .. })).count();
        assert_eq!((created, notices(&client.entries)), (1, 0));
        client.send("three").await.unwrap();
        client.until_idle().await.unwrap();
        assert_eq!(client.texts().len(), life);
        drop(client);
        stop(sessions, log).await;
        check_at_rest(&open(store.path()), &id("s")).await;
    }
    let prompts = std::mem::take(&mut *prompts.lock().unwrap());
    // Both of theirs and ours; in the second life also what came of the first.
    assert_eq!((prompts[0].len(), prompts[1].len()), (3, 5));
    let file = std::fs::read_to_string(&path).unwrap();
    assert!(file.starts_with(theirs), "their lines were changed");
    let log = open(store.path());
    assert_eq!(all_lines(&log, &id("s")).await, file.lines().collect::<Vec<_>>());
}

/// Two entries of two lines each go out in one batch, which is cut at any byte: an entry whose
/// first line is there is there with all its lines, and nothing of the others is.
#[tokio::test]
async fn a_batch_that_was_torn_is_completed_or_cut() {
    let store = temp_dir();
    let path = store.path().join("s.jsonl");
    append(&open(store.path()), &id("s"), &batch(1..=2)).await;
    let before = std::fs::read(&path).unwrap().len();
    append(&open(store.path()), &id("s"), &batch(3..=4)).await;
    let whole = std::fs::read(&path).unwrap();
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    assert_eq!(ends.len(), 8);
    for cut in before..whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let log = open(store.path());
        let opened = log.open(&id("s"), OpenMode::Existing).await.unwrap().unwrap();
        // A line that only lacks its end is whole.
        let firsts = ends.iter().step_by(2).filter(|end| **end <= cut + 1).count();
        assert_eq!(opened.folded.state.last_seq(), Seq(firsts as u64), "cut at {cut}");
        let want = &whole[..ends[2 * firsts - 1]];
        let found = std::fs::read(&path).unwrap();
        assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(want), "at {cut}");
        let all = read_all(&log, &id("s")).await;
        assert_eq!(all, batch(1..=firsts as u64));
        let summary = log.summary(&id("s")).await.unwrap().unwrap();
        assert_eq!(summary.lines, 2 * firsts as u64, "cut at {cut}");
        drop(opened);
        // What follows is found again.
        let next = firsts as u64 + 1;
        append(&log, &id("s"), &batch(next..=next)).await;
        assert_eq!(read_all(&log, &id("s")).await, batch(1..=next));
    }
}

/// Reads all ranges of some lengths and compares them with the whole.
async fn check_pages(log: &dyn Log, name: &SessionId, whole: &[Arc<LogEntry>]) {
    let count = whole.len() as u64;
    for after in [0, 1, 63, 64, 70, 500, 1_000, count - 1, count] {
        for upto in [after, after + 1, after + 300, count + 9] {
            let mut found: Vec<Arc<LogEntry>> = Vec::new();
            loop {
                let place = found.last().map_or(Seq(after), |entry| entry.seq);
                let page = log.read(name, place, Seq(upto)).await.unwrap();
                if page.is_empty() {
                    break;
                }
                found.extend(page);
            }
            let (from, to) = (after.min(count) as usize, upto.min(count) as usize);
            assert_eq!(found, whole[from..to.max(from)], "after {after} up to {upto}");
        }
    }
}

#[tokio::test]
async fn every_page_of_a_long_session_is_right() {
    let (store, name) = (temp_dir(), id("s"));
    let foreign: String = (0..70).map(|n| format!("{{\"user\":\"{n}\",\"at\":{n}}}\n")).collect();
    std::fs::write(store.path().join("s.jsonl"), foreign).unwrap();
    let log = open(store.path());
    let mut opened = log.open(&name, OpenMode::Existing).await.unwrap().unwrap();
    let mut last = opened.folded.state.last_seq();
    assert_eq!(last, Seq(70));
    for size in (1..=17).cycle() {
        let next: Vec<_> = (1..=size)
            .map(|n| {
                let seq = last.0 + n;
                let long = if seq % 97 == 0 { LONG_BYTES_MIN } else { 0 };
                Arc::new(entry(seq, queued(&format!("message {seq}{}", "x".repeat(long)))))
            })
            .collect();
        opened.writer.append(last, &next, Flush::Process).await.unwrap();
        opened.writer.audit("{\"audit\":true,\"at\":1,\"seq\":9}\n").await.unwrap();
        last = Seq(last.0 + size);
        if last.0 > 1_500 {
            break;
        }
    }
    let whole = read_all(&log, &name).await;
    assert_eq!(whole.len() as u64, last.0);
    // With the index that was made while writing,
    check_pages(&log, &name, &whole).await;
    drop(opened);
    drop(log);
    // without any,
    let log = open(store.path());
    check_pages(&log, &name, &whole).await;
    // and with the one that opening makes.
    let mut opened = log.open(&name, OpenMode::Existing).await.unwrap().unwrap();
    check_pages(&log, &name, &whole).await;
    assert_eq!(opened.folded.state, fold(whole.iter().map(|entry| &**entry)));
    let next = batch(last.0 + 1..=last.0 + 100);
    opened.writer.append(last, &next, Flush::Process).await.unwrap();
    check_pages(&log, &name, &[whole, next].concat()).await;
}

/// Lists and reads come at any moment, also between a write and what is noted of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lists_made_during_writes_count_right() {
    let (store, name) = (temp_dir(), id("s"));
    let log = Arc::new(open(store.path()));
    let mut opened = log.open(&name, OpenMode::OrCreate).await.unwrap().unwrap();
    let (reader, own) = (log.clone(), name.clone());
    let reading = tokio::spawn(async move {
        let mut most = 0;
        while most < 4_000 {
            let summary = reader.summary(&own).await.unwrap().unwrap();
            assert!(summary.lines >= most, "it shrank");
            most = summary.lines;
            reader.list().await.unwrap();
        }
    });
    for seq in 1..=2_000 {
        let next = batch(seq..=seq);
        opened.writer.append(Seq(seq - 1), &next, Flush::Process).await.unwrap();
    }
    in_time("the reader", reading).await.unwrap();
    let summary = log.summary(&name).await.unwrap().unwrap();
    assert_eq!(summary.lines, 4_000);
    let lines = std::fs::read_to_string(store.path().join("s.jsonl")).unwrap().lines().count();
    assert_eq!(summary.lines, lines as u64);
}

/// A line of ours that cannot be read, with its number: the number is not given again, and the
/// session goes on behind it.
#[tokio::test]
async fn a_last_entry_that_nobody_understands_does_not_close_the_session() {
    let (work, store) = (temp_dir(), temp_dir());
    append(&open(store.path()), &id("s"), &batch(1..=3)).await;
    let path = store.path().join("s.jsonl");
    let mut file = std::fs::read_to_string(&path).unwrap();
    file.push_str("{\"seq\":4,\"at\":9,\"event\":{\"type\":\"from_the_future\"}}\n");
    std::fs::write(&path, &file).unwrap();
    for life in 1..4 {
        let log = files(store.path());
        let sessions = Setup::new(log.clone()).start(work.path());
        let handle = sessions.handle(id("s"), who());
        handle.command(send("say: hi")).await.unwrap();
        let mut client = attach(handle).await;
        client.until_idle().await.unwrap();
        assert_eq!(client.texts().last(), Some(&"hi"));
        assert_eq!(notices(&client.entries), 1, "people are told once");
        drop(client);
        stop(sessions, log).await;
        let all = read_all(&open(store.path()), &id("s")).await;
        let seqs: Vec<u64> = all.iter().map(|entry| entry.seq.0).collect();
        let last = *seqs.last().unwrap();
        assert_eq!(seqs, (1..=last).collect::<Vec<u64>>(), "life {life}");
        assert!(is_gap(&all[3]), "who reads on is told what stood there");
    }
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(&file));
}

/// Stands for an entry that cannot be read.
fn is_gap(entry: &LogEntry) -> bool {
    matches!(&entry.event, Event::Noticed { code, .. } if &**code == DAMAGED_CODE)
}

/// A client of a session whose log has a gap.
async fn attach(handle: Handle<Seeing>) -> Client {
    let attached = handle.attach(Kind::new(), None, APPROVE, CLIENT).await.unwrap();
    Client::catch_up(handle, attached, Seq(4)).await
}

/// Numbers that are given to another program's lines are the same for who opens and who reads.
#[tokio::test]
async fn lines_without_numbers_get_the_same_ones_from_every_reader() {
    let (store, name) = (temp_dir(), id("s"));
    let lines = [
        "{\"user\":\"a\",\"at\":1}",
        "{\"seq\":2,\"at\":2,\"event\":{\"type\":\"from_the_future\"}}",
        "{\"user\":\"b\",\"at\":3}",
        "nonsense",
        "{\"user\":\"c\",\"at\":4}",
        "{\"seq\":9,\"at\":5,\"event\":{\"type\":\"from_the_future\"}}",
        "{\"user\":\"d\",\"at\":6}",
    ];
    std::fs::write(store.path().join("s.jsonl"), lines.join("\n") + "\n").unwrap();
    let log = open(store.path());
    let read = read_all(&log, &name).await;
    let seqs: Vec<u64> = read.iter().map(|entry| entry.seq.0).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 9, 10]);
    assert!(is_gap(&read[1]) && is_gap(&read[4]));
    let opened = log.open(&name, OpenMode::Existing).await.unwrap().unwrap();
    assert_eq!(opened.folded.state, fold(read.iter().map(|entry| &**entry)));
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn long_texts_stand_in_files_of_their_own() {
    let (work, store) = (temp_dir(), temp_dir());
    let log = files(store.path());
    let sessions = Setup::new(log.clone()).start(work.path());
    let handle = sessions.handle(id("s"), who());
    let mut client = Client::attach(handle, Kind::new()).await.unwrap();
    let long = "ü".repeat(LONG_BYTES_MIN);
    client.send(&format!("say: {long}")).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(client.texts(), [&long]);
    let (entries, blobs) = (client.entries.clone(), store.path().join("s.blobs"));
    drop(client);
    stop(sessions, log).await;

    let path = store.path().join("s.jsonl");
    let file = std::fs::read_to_string(&path).unwrap();
    assert!(!file.contains(&long) && file.contains("$blob"));
    assert_eq!(std::fs::read_dir(&blobs).unwrap().count(), 2, "what was asked and answered");
    for blob in std::fs::read_dir(&blobs).unwrap() {
        assert_eq!(mode(&blob.unwrap().path()), 0o600, "conversations are their user's own");
    }
    assert_eq!(mode(&path), 0o600);
    let log = open(store.path());
    assert_eq!(read_all(&log, &id("s")).await, entries);
    let lines = all_lines(&log, &id("s")).await;
    assert_eq!(lines.iter().filter(|line| line.contains(&long)).count(), 2, "they are put back");
    let two = entries.iter().filter(|entry| has_two_lines(&entry.event)).count();
    assert_eq!(lines.len(), entries.len() + two);

    // One is lost: its entry is, and nothing else.
    let lost = std::fs::read_dir(&blobs).unwrap().next().unwrap().unwrap().path();
    let seq: u64 = lost.file_name().unwrap().to_str().unwrap().parse().unwrap();
    std::fs::remove_file(lost).unwrap();
    let left = read_all(&log, &id("s")).await;
    assert_eq!(left.len(), entries.len());
    for (read, was) in left.iter().zip(&entries) {
        assert_eq!((read.seq, is_gap(read)), (was.seq, was.seq.0 == seq));
        assert!(is_gap(read) || read == was);
    }
    // With its index the session needs nothing so old; whoever reads it all finds out.
    std::fs::remove_file(store.path().join("s.index")).unwrap();
    let opened = log.open(&id("s"), OpenMode::Existing).await.unwrap().unwrap();
    assert_eq!(opened.folded.state.last_seq(), entries.last().unwrap().seq);
    assert!(!opened.folded.damage.is_empty());
}

/// One file that cannot be read does not hide the others.
#[tokio::test]
async fn an_unreadable_file_does_not_hide_the_others() {
    let store = temp_dir();
    let log = open(store.path());
    append(&log, &id("good"), &batch(1..=1)).await;
    std::fs::create_dir(store.path().join("bad.jsonl")).unwrap();
    let listed = log.list().await.unwrap();
    let names: Vec<&str> = listed.iter().map(|summary| summary.id.as_str()).collect();
    assert_eq!(names, ["good"]);
    assert!(log.open(&id("bad"), OpenMode::OrCreate).await.is_err());
}
