//! The user-message store: real databases on real logs, compared with what the whole log says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polyloop_agent::log::{Flush, Log, OpenMode};
use polyloop_agent::messages::{Message, Messages, PAGE_MESSAGES_MAX, Page, Role};
use polyloop_agent::sessions::Sessions;
use polyloop_session::event::{Adopted, CallOutcome, Purpose, Work};
use polyloop_session::item::{End, ItemKind, Part};
use polyloop_session::{Event, LogEntry, Seq, SessionId, Timestamp};
use tempfile::TempDir;

use super::client::Client;
use super::faults::Faulty;
use super::make::{id, who};
use super::rig::{Setup, files, in_time, memory, read_all, temp_dir};
use super::view::{Kind, Seeing};

mod file;
mod projection;
mod turns;

/// A log of either kind, sessions on it, and a place for the database.
struct Stage {
    dir: TempDir,
    log: Arc<Faulty>,
    sessions: Sessions<Seeing>,
}

impl Stage {
    fn new(log: impl FnOnce(&Path) -> Arc<Faulty>, change: impl FnOnce(Setup) -> Setup) -> Stage {
        let dir = temp_dir();
        let log = log(&dir.path().join("store"));
        let work = dir.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let sessions = change(Setup::new(log.clone())).start(&work);
        Stage { dir, log, sessions }
    }

    fn in_memory() -> Stage {
        Stage::new(|_| memory(), |setup| setup)
    }

    fn in_files() -> Stage {
        Stage::new(files, |setup| setup)
    }

    fn database(&self) -> PathBuf {
        self.dir.path().join("messages.db")
    }

    async fn messages(&self) -> Messages {
        Messages::open(&self.database(), self.log.clone()).await.unwrap()
    }

    async fn client(&self, name: &str) -> Client {
        Client::attach(self.sessions.handle(id(name), who()), Kind::new()).await.unwrap()
    }

    /// All messages that the log says a session has.
    async fn said(&self, name: &str) -> Vec<Message> {
        said(&read_all(&*self.log, &id(name)).await)
    }
}

async fn page(messages: &Messages, name: &str, before: Option<u64>, limit: u32) -> Page {
    in_time("a page", messages.page(&id(name), before, limit)).await.unwrap()
}

/// All messages of a session, from the newest page back.
async fn all(messages: &Messages, name: &str) -> Vec<Message> {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let page = page(messages, name, before, PAGE_MESSAGES_MAX).await;
        before = page.messages.first().map(|message| message.seq);
        all.splice(0..0, page.messages);
        if !page.has_more {
            return all;
        }
        assert!(before.is_some(), "more, but no place to go on from");
    }
}

fn texts(messages: &[Message]) -> Vec<(&str, &str)> {
    messages.iter().map(|message| (message.role.as_str(), &*message.content)).collect()
}

/// What a log says, found by looking back and forth in the whole of it.
fn said(log: &[Arc<LogEntry>]) -> Vec<Message> {
    let events: BTreeMap<Seq, &Event> = log.iter().map(|entry| (entry.seq, &entry.event)).collect();
    let words = |content: &[Part]| {
        let texts: Vec<polyloop_session::Text> = content.iter().map(Part::shown).collect();
        texts.join("\n")
    };
    let counts = |item: Seq| {
        let Some(Event::ItemStarted { call, item: ItemKind::Text, .. }) = events.get(&item) else {
            return false;
        };
        let is_end = |event: &&&Event| match event {
            Event::CallEnded { call: ended, outcome, .. } => {
                ended == call && !matches!(outcome, CallOutcome::Failed { .. })
            }
            _ => false,
        };
        let purpose = match events[&call.0] {
            Event::CallStarted { purpose, .. } => *purpose,
            other => panic!("{other:?} is no call"),
        };
        purpose != Purpose::Summarise && events.values().any(|event| is_end(&event))
    };
    let mut said = Vec::new();
    for entry in log {
        let (role, content) = match &entry.event {
            Event::TurnStarted { work: Work::Message { message }, .. } => {
                match events[&message.0] {
                    Event::MessageQueued { content, .. } => (Role::User, words(content)),
                    other => panic!("{other:?} is no message"),
                }
            }
            Event::ItemCompleted { item, end, text, .. } if counts(item.0) => match end {
                End::Discarded => continue,
                _ => (Role::Assistant, text.to_string()),
            },
            Event::Adopted { piece: Some(Adopted::User { content }) } => {
                (Role::User, words(content))
            }
            Event::Adopted { piece: Some(Adopted::Agent { text }) } => {
                (Role::Assistant, text.to_string())
            }
            _ => continue,
        };
        if !content.is_empty() {
            said.push(Message { seq: entry.seq.0, role, content });
        }
    }
    said
}

/// A log of another program's words, as many entries as texts.
async fn adopted(log: &dyn Log, name: &str, texts: impl IntoIterator<Item = String>) {
    let piece = |text: String| Adopted::User { content: vec![Part::Text { text: text.into() }] };
    let event = |text| Event::Adopted { piece: Some(piece(text)) };
    let events: Vec<Event> = texts.into_iter().map(event).collect();
    append(log, &id(name), Seq::NONE, events).await;
}

async fn append(log: &dyn Log, id: &SessionId, last: Seq, events: Vec<Event>) {
    let entries: Vec<Arc<LogEntry>> = (last.0 + 1..)
        .zip(events)
        .map(|(seq, event)| Arc::new(LogEntry { seq: Seq(seq), at: Timestamp(1), event }))
        .collect();
    let mut opened = log.open(id, OpenMode::OrCreate).await.unwrap().unwrap();
    opened.writer.append(last, &entries, Flush::Process).await.unwrap();
}

#[tokio::test]
async fn two_hundred_and_fifty_messages_are_paged_from_both_ends() {
    for stage in [Stage::in_memory(), Stage::in_files()] {
        let mut client = stage.client("s").await;
        for n in 0..125 {
            client.send(&format!("say: answer {n}")).await.unwrap();
            client.until_idle().await.unwrap();
        }
        let messages = stage.messages().await;
        let want = stage.said("s").await;
        assert_eq!(want.len(), 250);
        assert_eq!(texts(&want[248..]), [("user", "say: answer 124"), ("assistant", "answer 124")]);

        let (mut before, mut left) = (None, 250);
        for (size, more) in [(100, true), (100, true), (50, false)] {
            let page = page(&messages, "s", before, 100).await;
            assert_eq!(page.messages, want[left - size..left]);
            assert_eq!(page.has_more, more);
            left -= size;
            before = Some(page.messages[0].seq);
        }
        // Exactly the rest is no more than the rest.
        let page_of = |before, limit| page(&messages, "s", before, limit);
        let rest = page_of(Some(want[50].seq), 50).await;
        assert_eq!(rest, Page { messages: want[..50].to_vec(), has_more: false });
        let some = page_of(Some(want[50].seq), 49).await;
        assert_eq!(some, Page { messages: want[1..50].to_vec(), has_more: true });
        for seq in [0, 1, want[0].seq] {
            assert_eq!(page_of(Some(seq), 10).await, Page::default());
        }
        for before in [None, Some(u64::MAX), Some(want[249].seq + 1)] {
            let newest = page_of(before, 1).await;
            assert_eq!(newest, Page { messages: want[249..].to_vec(), has_more: true });
        }
        // A place between two messages will do.
        assert_eq!(page_of(Some(want[9].seq + 1), 1).await.messages, want[9..10]);
        assert_eq!(page_of(None, 0).await, Page { messages: vec![], has_more: true });
        assert_eq!(page_of(Some(want[0].seq), 0).await, Page::default());
        assert_eq!(all(&messages, "s").await, want);
        assert_eq!(page(&messages, "nobody", None, 10).await, Page::default());
    }
}

#[tokio::test]
async fn a_page_has_its_limits() {
    let stage = Stage::in_memory();
    let messages = stage.messages().await;
    let count = PAGE_MESSAGES_MAX as usize + 1;
    adopted(&*stage.log, "many", (0..count).map(|n| format!("message {n}"))).await;
    let first = page(&messages, "many", None, u32::MAX).await;
    assert_eq!((first.messages.len(), first.has_more), (count - 1, true));
    assert_eq!(first.messages[0].content, "message 1");

    // Three long ones are more than a page may hold; one that is longer still is a page.
    let sizes = [9, 3, 3, 3];
    adopted(&*stage.log, "long", sizes.map(|size| "x".repeat(size * 1024 * 1024))).await;
    let (mut before, mut pages) = (None, Vec::new());
    loop {
        let page = page(&messages, "long", before, 10).await;
        pages.push(page.messages.iter().map(|message| message.seq).collect::<Vec<_>>());
        before = page.messages.first().map(|message| message.seq);
        if !page.has_more {
            break;
        }
    }
    assert_eq!(pages, [vec![3, 4], vec![2], vec![1]]);
}
