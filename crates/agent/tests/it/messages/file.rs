//! The file: whose it is, who may read it, and what happens when it cannot be written.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use polyloop_agent::messages::{Messages, MessagesError};
use rusqlite::Connection;

use super::super::make::id;
use super::super::rig::{in_time, memory};
use super::{Stage, adopted, all, page, texts};

async fn refused(path: &Path) -> MessagesError {
    let opened = in_time("an answer", Messages::open(path, memory())).await;
    let error = opened.err().expect("it was opened");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    error
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn conversations_are_their_users_own() {
    let stage = Stage::in_memory();
    let path = stage.dir.path().join("made/too/messages.db");
    adopted(&*stage.log, "s", ["a \0 and an ü".into()]).await;
    let messages = Messages::open(&path, stage.log.clone()).await.unwrap();
    assert_eq!(texts(&all(&messages, "s").await), [("user", "a \0 and an ü")]);
    let dir = path.parent().unwrap();
    let mut files = 0;
    for file in std::fs::read_dir(dir).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
        files += 1;
    }
    assert_eq!((files, mode(dir)), (3, 0o700));
}

#[tokio::test]
async fn what_is_not_ours_is_left_as_it_is() {
    let stage = Stage::in_memory();
    let path = stage.database();
    std::fs::write(&path, "my notes\n").unwrap();
    assert!(matches!(refused(&path).await, MessagesError::Foreign { .. }));
    assert_eq!(std::fs::read(&path).unwrap(), b"my notes\n");

    std::fs::remove_file(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    let sql = "CREATE TABLE user_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT);
               INSERT INTO user_messages (content) VALUES ('theirs');";
    other.execute_batch(sql).unwrap();
    other.close().unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(refused(&path).await, MessagesError::Foreign { .. }));
    assert_eq!(std::fs::read(&path).unwrap(), before);

    // Nor is what a folder cannot be, or a file cannot be made in.
    assert!(matches!(refused(stage.dir.path()).await, MessagesError::Unusable { .. }));
    assert!(matches!(refused(&path.join("below")).await, MessagesError::Unusable { .. }));
}

fn set_version(path: &Path, version: i64) {
    let file = Connection::open(path).unwrap();
    file.pragma_update(None, "user_version", version).unwrap();
    file.close().unwrap();
}

#[tokio::test]
async fn a_newer_version_is_refused_and_an_older_one_made_anew() {
    let stage = Stage::in_memory();
    adopted(&*stage.log, "s", ["one".into(), "two".into()]).await;
    let path = stage.database();
    let messages = stage.messages().await;
    let want = all(&messages, "s").await;
    messages.close().await;

    set_version(&path, 1_000);
    match refused(&path).await {
        MessagesError::Newer { found, .. } => assert_eq!(found, 1_000),
        other => panic!("{other}"),
    }
    set_version(&path, 0);
    let file = Connection::open(&path).unwrap();
    let sql = "UPDATE messages SET content = 'as an old server would have it';
               DROP TABLE progress; CREATE TABLE progress (session TEXT);";
    file.execute_batch(sql).unwrap();
    file.close().unwrap();
    let messages = stage.messages().await;
    assert_eq!(all(&messages, "s").await, want);
}

/// The header of a database can say that it is to be read only, which holds for everyone.
#[tokio::test]
async fn a_database_that_cannot_be_written_is_said_at_once() {
    const WRITE_VERSION_BYTE: usize = 18;
    let stage = Stage::in_memory();
    let path = stage.database();
    stage.messages().await.close().await;
    let mut bytes = std::fs::read(&path).unwrap();
    let version = std::mem::replace(&mut bytes[WRITE_VERSION_BYTE], 9);
    std::fs::write(&path, &bytes).unwrap();
    let error = refused(&path).await;
    assert!(matches!(error, MessagesError::Unusable { .. }), "{error}");
    bytes[WRITE_VERSION_BYTE] = version;
    std::fs::write(&path, &bytes).unwrap();
    stage.messages().await;
}

/// Writes fail, and then they do not: sessions go on all the while, and nothing is missing after.
#[tokio::test]
async fn a_failing_database_is_told_and_harms_nobody() {
    let stage = Stage::in_files();
    let messages = stage.messages().await;
    let mut client = stage.client("s").await;
    client.send("say: before").await.unwrap();
    client.until_idle().await.unwrap();
    let before = all(&messages, "s").await;
    let file = Connection::open(stage.database()).unwrap();
    let breaks = [
        ("BEGIN IMMEDIATE", "COMMIT", "locked"),
        (
            "CREATE TRIGGER full BEFORE INSERT ON messages
             BEGIN SELECT RAISE(ROLLBACK, 'the disk is full'); END",
            "DROP TRIGGER full",
            "full",
        ),
    ];
    for (break_it, mend_it, why) in breaks {
        file.execute_batch(break_it).unwrap();
        client.send(&format!("say: while {why}")).await.unwrap();
        client.until_idle().await.unwrap();
        messages.touch(&id("s"));
        let error = in_time("an answer", messages.page(&id("s"), None, 10)).await.unwrap_err();
        assert!(matches!(&error, MessagesError::Failed { .. }), "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert!(!error.to_string().contains("messages.db"), "clients see it: {error}");
        // Others are not held up for good: nothing is new there, so nothing is written.
        assert!(page(&messages, "nobody", None, 10).await.messages.is_empty());
        file.execute_batch(mend_it).unwrap();
        assert_eq!(all(&messages, "s").await, stage.said("s").await);
    }
    assert_eq!(all(&messages, "s").await.len(), before.len() + 4);
    messages.close().await;
    let closed = in_time("an answer", messages.page(&id("s"), None, 10)).await.unwrap_err();
    assert!(matches!(closed, MessagesError::Failed { .. }), "{closed}");
    client.send("say: after").await.unwrap();
    client.until_idle().await.unwrap();
}
