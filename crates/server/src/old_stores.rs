//! Stores that earlier versions wrote, one folder a version: every version opens them all.
//!
//! `POLYLOOP_WRITE_STORE=<version> cargo test -p polyloop old_stores` writes that of this version
//! from the dialects' logs; a folder that is there is never written again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polyloop_agent::log::files::Files;
use polyloop_agent::log::{Flush, Log, OpenMode};
use polyloop_session::item::Part;
use polyloop_session::{Event, LogEntry, Seq, SessionId, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::view::FileCodec;

const EXPECTED: &str = "expected.json";
/// Logs with every kind of event in them.
const LOGS: &[&str] = &[
    "approve-patch",
    "cancelled",
    "closed-and-reopened",
    "compact",
    "crash-wait-open",
    "explain-then-yes",
    "files-changed",
    "image",
    "interrupt-approval",
    "notices",
    "plan-approved",
    "question-form",
    "retry-after-text",
    "sandbox-refused-approved",
    "sealed",
    "settings-and-modes",
    "two-waits-open",
];
/// Another program's file.
const ADOPTED: &str = concat!(
    r#"{"timestamp":"2025-01-09T12:35:01.456Z","event_type":"websocket_message_received","#,
    r#""direction":"incoming","message_data":{"id":"m","type":"user_input","payload":"#,
    r#"{"input":[{"type":"input_text","text":"Hello, can you help me?"}]}}}"#,
    "\n"
);

/// What a session must be read as.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Expected {
    types: Vec<String>,
    /// What people and agents said.
    said: Vec<String>,
    /// Open requests.
    waits: usize,
}

fn stores() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/stores")
}

fn expected(entries: &[Arc<LogEntry>], state: &State) -> Expected {
    let mut expected = Expected::default();
    for entry in entries {
        let event = serde_json::to_value(&entry.event).unwrap();
        expected.types.push(event["type"].as_str().unwrap().to_owned());
        match &entry.event {
            Event::MessageQueued { content, .. } => {
                expected.said.extend(content.iter().map(|part| match part {
                    Part::Text { text } => text.chars().take(80).collect(),
                    Part::Image { data, .. } => format!("image of {} bytes", data.len()),
                }));
            }
            Event::ItemCompleted { text, .. } => {
                expected.said.push(text.chars().take(80).collect());
            }
            _ => {}
        }
    }
    expected.waits = state.turn().map_or(0, |turn| turn.waits.len());
    expected
}

async fn read_all(log: &Files, id: &SessionId) -> Vec<Arc<LogEntry>> {
    let mut all: Vec<Arc<LogEntry>> = Vec::new();
    loop {
        let after = all.last().map_or(Seq::NONE, |entry| entry.seq);
        let page = log.read(id, after, Seq(u64::MAX)).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// What this version finds in a store; nothing in it may be damaged.
async fn found(dir: &Path) -> BTreeMap<String, Expected> {
    let log = Files::open(dir, FileCodec::shared()).unwrap();
    let mut all = BTreeMap::new();
    for id in log.ids().unwrap() {
        let checked = log.check(&id).await.unwrap();
        assert!(!checked.is_damaged(), "{checked:?}");
        let entries = read_all(&log, &id).await;
        let opened = log.open(&id, OpenMode::Existing).await.unwrap().unwrap();
        assert!(opened.folded.damage.is_empty(), "{id}: {:?}", opened.folded.damage);
        let mut state = State::default();
        entries.iter().for_each(|entry| state.apply(entry));
        assert_eq!(opened.folded.state, state, "{id}");
        all.insert(id.to_string(), expected(&entries, &state));
    }
    all
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let to = to.join(file.file_name());
        match file.path().is_dir() {
            true => copy(&file.path(), &to),
            false => _ = std::fs::copy(file.path(), to).unwrap(),
        }
    }
}

#[tokio::test]
async fn every_store_that_was_ever_written_opens() {
    if let Ok(version) = std::env::var("POLYLOOP_WRITE_STORE") {
        write(&stores().join(version)).await;
    }
    let mut versions = 0;
    for store in std::fs::read_dir(stores()).unwrap() {
        let store = store.unwrap().path();
        let own = tempfile::tempdir().unwrap();
        copy(&store, own.path());
        let text = std::fs::read_to_string(store.join(EXPECTED)).unwrap();
        let want: BTreeMap<String, Expected> = serde_json::from_str(&text).unwrap();
        let found = found(own.path()).await;
        assert_eq!(found.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>());
        for (id, session) in &want {
            assert_eq!(found.get(id), Some(session), "{} in {}", id, store.display());
        }
        versions += 1;
    }
    assert!(versions > 0);
}

async fn write(dir: &Path) {
    std::fs::create_dir(dir).expect("it is written once");
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/golden");
    {
        let log = Files::open(dir, FileCodec::shared()).unwrap().index_from(0);
        for name in LOGS {
            let text = std::fs::read_to_string(goldens.join(name).join("log.jsonl")).unwrap();
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let entries = lines.filter(|line| line.get("event").is_some());
            put(&log, name, entries.map(|entry| serde_json::from_value(entry).unwrap())).await;
        }
        let origin = json!({"via": "agentloop", "can_approve": true});
        let content = json!([{"type": "text", "text": "long ".repeat(14_000)}]);
        let long = json!({"seq": 1, "at": 1_736_426_096_789_i64, "event": {"type":
            "message_queued", "content": content, "origin": origin, "tokens": 1}});
        put(&log, "long-text", [serde_json::from_value(long).unwrap()]).await;
        std::fs::write(dir.join("adopted.jsonl"), ADOPTED).unwrap();
    }
    let all = serde_json::to_string_pretty(&found(dir).await).unwrap();
    std::fs::write(dir.join(EXPECTED), all + "\n").unwrap();
    std::fs::remove_file(dir.join(".lock")).unwrap();
}

async fn put(log: &Files, name: &str, entries: impl IntoIterator<Item = LogEntry>) {
    let id = SessionId::parse(name).unwrap();
    let mut opened = log.open(&id, OpenMode::OrCreate).await.unwrap().unwrap();
    let mut state = State::default();
    for entry in entries {
        let last = state.last_seq();
        let entry = [Arc::new(entry)];
        opened.writer.append(last, &entry, Flush::Process).await.unwrap();
        state.apply(&entry[0]);
    }
    opened.writer.keep(&state, polyloop_agent::log::Occasion::Leaving).await;
}
