//! The database follows the log: exactly once, from any point on, and from another log anew.

use std::sync::Arc;

use polyloop_agent::log::Log;
use polyloop_agent::messages::Messages;
use polyloop_agent::sessions::Archived;
use polyloop_session::{Event, LogEntry, Seq};
use rusqlite::Connection;
use serde_json::json;

use super::super::faults::Faulty;
use super::super::make::{id, queued};
use super::super::rig::{in_time, memory, read_all};
use super::super::story::{self, COUNTED};
use super::{Stage, adopted, all, append, page, said, texts};

async fn story(stage: &Stage) -> Vec<Arc<LogEntry>> {
    std::fs::write(stage.dir.path().join("work").join(COUNTED), "start\n").unwrap();
    let mut client = stage.client("s").await;
    story::tell(&mut client).await.unwrap();
    read_all(&*stage.log, &id("s")).await
}

fn remove(stage: &Stage) {
    std::fs::remove_file(stage.database()).unwrap();
    for ending in ["-wal", "-shm"] {
        let file = stage.dir.path().join(format!("messages.db{ending}"));
        assert!(!file.exists(), "the database was closed in good order");
    }
}

#[tokio::test]
async fn a_lost_database_is_made_again_and_says_the_same() {
    for stage in [Stage::in_memory(), Stage::in_files()] {
        let log = story(&stage).await;
        let messages = stage.messages().await;
        let before = all(&messages, "s").await;
        assert_eq!(before, said(&log));
        assert!(before.len() > 10, "{before:?}");
        let pages = [(None, 3), (Some(before[4].seq), 3), (Some(before[1].seq), 3)];
        let mut first = Vec::new();
        for (before, limit) in pages {
            first.push(page(&messages, "s", before, limit).await);
        }
        messages.close().await;
        remove(&stage);
        let messages = stage.messages().await;
        for ((before, limit), first) in pages.into_iter().zip(first) {
            assert_eq!(page(&messages, "s", before, limit).await, first);
        }
        assert_eq!(all(&messages, "s").await, before);
    }
}

/// Writes a whole story entry by entry into another log, and looks after each.
#[tokio::test]
async fn it_goes_on_from_any_point() {
    let stage = Stage::in_memory();
    let entries = story(&stage).await;
    let copy = memory();
    let database = |name: &str| stage.dir.path().join(name);
    let open = async |name: &str| Messages::open(&database(name), copy.clone()).await.unwrap();
    let following = open("following").await;
    for (place, entry) in entries.iter().enumerate() {
        append_entry(&copy, entry).await;
        let fresh = open(&format!("fresh-{place}")).await;
        let anew = all(&fresh, "s").await;
        fresh.close().await;
        assert_eq!(all(&following, "s").await, anew, "after {entry:?}");
        // One that is opened at this point alone and once more at the end.
        open("reopened").await.close().await;
        if place % 3 == 0 {
            let reopened = open("reopened").await;
            assert_eq!(all(&reopened, "s").await, anew, "after {entry:?}");
            reopened.close().await;
        }
    }
    assert_eq!(all(&following, "s").await, said(&entries));
    assert_eq!(all(&open("reopened").await, "s").await, said(&entries));
}

/// A page may end anywhere, also with what was read last.
#[tokio::test]
async fn it_goes_on_however_short_the_pages_of_the_log_are() {
    let stage = Stage::in_memory();
    let entries = story(&stage).await;
    for entries_max in [1, 2, 3] {
        let copy = memory();
        copy.cut_pages(entries_max);
        let database = stage.dir.path().join(format!("pages-{entries_max}"));
        let messages = Messages::open(&database, copy.clone()).await.unwrap();
        for (place, entry) in entries.iter().enumerate() {
            append_entry(&copy, entry).await;
            if place % 5 == 0 {
                messages.catch_up(&id("s")).await.unwrap();
            }
        }
        assert_eq!(all(&messages, "s").await, said(&entries), "{entries_max} a page");
    }
}

async fn append_entry(log: &Faulty, entry: &LogEntry) {
    append(log, &id("s"), entry.seq.before(), vec![entry.event.clone()]).await;
}

/// Many ask at once while the session goes on, through two servers on one database.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_message_is_there_once_however_many_ask() {
    for stage in [Stage::in_memory(), Stage::in_files()] {
        let servers = [stage.messages().await, stage.messages().await];
        let mut asking = Vec::new();
        for n in 0..8 {
            let messages = servers[n % 2].clone();
            asking.push(tokio::spawn(async move {
                let mut last = 0;
                while last < 60 {
                    messages.touch(&id("s"));
                    messages.catch_up(&id("s")).await.unwrap();
                    let found = all(&messages, "s").await.len();
                    assert!(found >= last, "{last} messages became {found}");
                    last = found;
                }
            }));
        }
        let mut client = stage.client("s").await;
        for n in 0..30 {
            client.send(&format!("say: {n}")).await.unwrap();
            client.until_idle().await.unwrap();
        }
        for asked in asking {
            in_time("everyone", asked).await.unwrap();
        }
        let want = stage.said("s").await;
        assert_eq!(want.len(), 60);
        for messages in &servers {
            assert_eq!(all(messages, "s").await, want);
        }
    }
}

/// Two servers make the same database, each from the beginning, and neither undoes the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_is_made_by_several_at_once() {
    const MESSAGES: usize = 3_000;
    for _ in 0..3 {
        let stage = Stage::in_memory();
        adopted(&*stage.log, "s", (0..MESSAGES).map(|n| format!("message {n}"))).await;
        let servers = [stage.messages().await, stage.messages().await, stage.messages().await];
        let asking = servers.clone().map(|messages| {
            tokio::spawn(async move { messages.catch_up(&id("s")).await.unwrap() })
        });
        for asked in asking {
            in_time("everyone", asked).await.unwrap();
        }
        let found = all(&servers[0], "s").await;
        assert_eq!(found, stage.said("s").await);
        assert_eq!(found.len(), MESSAGES);
    }
}

/// Conversations drawn by lot, looked at in moments drawn by lot.
#[tokio::test]
async fn it_says_what_the_log_says_of_any_conversation() {
    const STEPS: [&str; 7] = [
        "think: hm",
        "say: well",
        "say: two\\nlines",
        "stream: 6 9 0",
        "fail: 500",
        "fail: disconnect",
        "tool: no_such_tool {}",
    ];
    let mut dice = 1_u64;
    let mut roll = |sides: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) as usize % sides
    };
    for stage in [Stage::in_memory(), Stage::in_files()] {
        let messages = stage.messages().await;
        for name in (0..12).map(|n| format!("s{n}")) {
            let mut client = stage.client(&name).await;
            for _ in 0..roll(12) {
                let script: Vec<&str> = (0..=roll(5)).map(|_| STEPS[roll(STEPS.len())]).collect();
                client.send(&script.join("\n")).await.unwrap();
                match roll(4) {
                    0 => messages.touch(&id(&name)),
                    1 => messages.catch_up(&id(&name)).await.unwrap(),
                    2 => client.until_idle().await.unwrap(),
                    _ => {}
                }
            }
            client.until_idle().await.unwrap();
            let want = stage.said(&name).await;
            assert_eq!(all(&messages, &name).await, want);
        }
        messages.close().await;
        remove(&stage);
        let anew = stage.messages().await;
        for summary in stage.log.list().await.unwrap() {
            let name = summary.id.as_str();
            assert_eq!(all(&anew, name).await, stage.said(name).await);
        }
    }
}

/// Asks again and again for what another connection sees in the file.
async fn until_stored(stage: &Stage, want: &[(&str, i64)]) {
    let file = Connection::open(stage.database()).unwrap();
    let count = |name: &str| {
        let sql = "SELECT count(*) FROM messages WHERE session = ?1";
        file.query_row(sql, [name], |row| row.get::<_, i64>(0)).unwrap()
    };
    let stored = async {
        while !want.iter().all(|(name, stored)| count(name) == *stored) {
            tokio::task::yield_now().await;
        }
    };
    in_time("the messages to be stored", stored).await;
}

#[tokio::test]
async fn a_touch_and_a_sweep_store_what_nobody_asked_for() {
    let stage = Stage::in_files();
    let messages = stage.messages().await;
    for name in ["a", "b", "c"] {
        let mut client = stage.client(name).await;
        client.send("say: hello").await.unwrap();
        client.until_idle().await.unwrap();
    }
    messages.touch(&id("b"));
    until_stored(&stage, &[("a", 0), ("b", 2), ("c", 0)]).await;
    messages.sweep();
    until_stored(&stage, &[("a", 2), ("b", 2), ("c", 2)]).await;

    // What was put away is taken out, by whoever did it or by the next sweep.
    for name in ["a", "b"] {
        assert_eq!(stage.sessions.archive(&id(name)).await.unwrap(), Archived::Done);
    }
    messages.forget(&id("a")).await.unwrap();
    until_stored(&stage, &[("a", 0), ("b", 2), ("c", 2)]).await;
    messages.sweep();
    until_stored(&stage, &[("a", 0), ("b", 0), ("c", 2)]).await;
    assert!(all(&messages, "b").await.is_empty());
}

#[tokio::test]
async fn a_session_made_anew_has_none_of_the_old_words() {
    for stage in [Stage::in_memory(), Stage::in_files()] {
        let messages = stage.messages().await;
        for (life, turns) in [("old", 3), ("new", 1), ("newest", 4)] {
            let mut client = stage.client("s").await;
            for n in 0..turns {
                client.send(&format!("say: {life} {n}")).await.unwrap();
                client.until_idle().await.unwrap();
            }
            let found = all(&messages, "s").await;
            assert_eq!(found.len(), 2 * turns);
            assert!(found.iter().all(|message| message.content.contains(life)), "{found:?}");
            assert_eq!(found, stage.said("s").await);
            drop(client);
            assert_eq!(stage.sessions.archive(&id("s")).await.unwrap(), Archived::Done);
        }
        assert!(all(&messages, "s").await.is_empty());
    }
}

/// A server without a store has started again: other logs under the same names. Also one whose
/// last entries were lost with the machine: the log goes on otherwise from there.
#[tokio::test]
async fn the_messages_of_another_log_are_replaced() {
    let stage = Stage::in_memory();
    let logs = [
        vec!["one", "two", "three", "four"],
        vec!["one", "two", "other", "fourth", "fifth"],
        vec!["one", "two"],
        vec![],
        vec!["one", "two", "three", "four", "five", "six"],
    ];
    for words in logs {
        let log = memory();
        adopted(&*log, "s", words.iter().map(|text| text.to_string())).await;
        let messages = Messages::open(&stage.database(), log.clone()).await.unwrap();
        let found = all(&messages, "s").await;
        let want: Vec<(&str, &str)> = words.iter().map(|text| ("user", *text)).collect();
        assert_eq!(texts(&found), want);
        messages.close().await;
    }
}

/// A message that waited when the store was last looked at is found when its turn begins.
#[tokio::test]
async fn a_message_from_before_is_found_again() {
    let stage = Stage::in_files();
    let messages = stage.messages().await;
    // As the oldest logs have it.
    let turn = |message: Seq| -> Event {
        let work = json!({ "kind": "message", "message": message });
        serde_json::from_value(json!({ "type": "turn_started", "work": work })).unwrap()
    };
    append(&*stage.log, &id("s"), Seq(0), vec![queued("early"), queued("late")]).await;
    assert!(all(&messages, "s").await.is_empty());
    append(&*stage.log, &id("s"), Seq(2), vec![turn(Seq(1))]).await;
    assert_eq!(texts(&all(&messages, "s").await), [("user", "early")]);
    // An entry that is no message, and one that is not there.
    append(&*stage.log, &id("s"), Seq(3), vec![turn(Seq(3)), turn(Seq(99)), turn(Seq(2))]).await;
    let found = all(&messages, "s").await;
    assert_eq!(texts(&found), [("user", "early"), ("user", "late")]);
    assert_eq!((found[0].seq, found[1].seq), (3, 6));
    assert!(stage.log.list().await.unwrap().len() == 1);
}
