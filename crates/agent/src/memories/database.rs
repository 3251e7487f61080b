//! The tables, and the few things that are asked of them. Blocking; the memories' thread calls it.
//!
//! A file that is not ours is left as it is. Several servers may have the same file: whatever
//! depends on what is there is read in the transaction that writes.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::search::plain;
use super::{MEMORIES_PER_USER_MAX, MemoriesError, USERS_MAX};
use crate::sqlite::{self, NotOpened, Older, Schema};

/// Says that a database is ours: "Pmem".
const APPLICATION_ID: u32 = 0x506d_656d;
/// Counts up when the tables change.
const SCHEMA_VERSION: u32 = 1;
const PAGE_BYTES: u64 = 4_096;

/// Memories that are written again get a new id, so that ids tell which are newer. `words` is the
/// index, by their ids: it holds each three characters that stand together, so that a part of a
/// word finds it, in every language and in code; and no text, only where they are.
const TABLES: &str = "
    CREATE TABLE users (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE
    ) STRICT;
    CREATE TABLE memories (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        user INTEGER NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        UNIQUE (user, key)
    ) STRICT;
    CREATE VIRTUAL TABLE words
        USING fts5(key, value, content = '', contentless_delete = 1, tokenize = 'trigram');";

const SCHEMA: Schema = Schema {
    owner: APPLICATION_ID,
    version: SCHEMA_VERSION,
    tables: TABLES,
    older: Older::Foreign,
};

/// Opens the database, which is made if there is none.
pub(super) fn open(path: &Path, bytes_max: u64) -> Result<Connection, MemoriesError> {
    let bounded = sqlite::open(path, &SCHEMA).and_then(|connection| {
        bound(&connection, bytes_max)?;
        Ok(connection)
    });
    bounded.map_err(|why| match why {
        NotOpened::Foreign => MemoriesError::Foreign { path: path.into() },
        NotOpened::Newer { found, known } => {
            MemoriesError::Newer { path: path.into(), found, known }
        }
        NotOpened::Unusable { why } => MemoriesError::Unusable { path: path.into(), why },
    })
}

/// A database that is no file.
pub(super) fn unkept(bytes_max: u64) -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    bound(&connection, bytes_max)?;
    Ok(connection)
}

fn bound(connection: &Connection, bytes_max: u64) -> rusqlite::Result<()> {
    // A memory that was said to be kept is kept, also when the power fails.
    connection.pragma_update(None, "synchronous", "FULL")?;
    let pages = i64::try_from(bytes_max / PAGE_BYTES).unwrap_or(i64::MAX);
    let set = format!("PRAGMA max_page_count = {pages}");
    connection.query_row(&set, [], |_| Ok(()))
}

/// The id of a user who has memories.
pub(super) fn user(at: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    at.query_row("SELECT id FROM users WHERE name = ?1", [name], |row| row.get(0)).optional()
}

fn memories_of(at: &Connection, user: i64) -> rusqlite::Result<usize> {
    at.query_row("SELECT count(*) FROM memories WHERE user = ?1", [user], |row| row.get(0))
}

pub(super) fn remember(
    connection: &mut Connection,
    name: &str,
    key: &str,
    value: &str,
) -> Result<(), MemoriesError> {
    let at = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let id = match user(&at, name)? {
        Some(id) => id,
        None => new_user(&at, name)?,
    };
    let replaced = take_out(&at, id, key)?;
    if !replaced && memories_of(&at, id)? >= MEMORIES_PER_USER_MAX {
        return Err(MemoriesError::Full);
    }
    let sql = "INSERT INTO memories (user, key, value) VALUES (?1, ?2, ?3)";
    at.execute(sql, params![id, key, value])?;
    let sql = "INSERT INTO words (rowid, key, value) VALUES (?1, ?2, ?3)";
    at.execute(sql, params![at.last_insert_rowid(), plain(key), plain(&spoken(value))])?;
    at.commit()?;
    Ok(())
}

fn new_user(at: &Transaction<'_>, name: &str) -> Result<i64, MemoriesError> {
    let users: usize = at.query_row("SELECT count(*) FROM users", [], |row| row.get(0))?;
    if users >= USERS_MAX {
        return Err(MemoriesError::TooManyUsers);
    }
    at.execute("INSERT INTO users (name) VALUES (?1)", [name])?;
    Ok(at.last_insert_rowid())
}

/// Whether it was there.
fn take_out(at: &Transaction<'_>, user: i64, key: &str) -> rusqlite::Result<bool> {
    let sql = "DELETE FROM memories WHERE user = ?1 AND key = ?2 RETURNING id";
    let gone: Option<i64> = at.query_row(sql, params![user, key], |row| row.get(0)).optional()?;
    if let Some(gone) = gone {
        at.execute("DELETE FROM words WHERE rowid = ?1", [gone])?;
    }
    Ok(gone.is_some())
}

/// With the last memory of a user the user is forgotten too.
pub(super) fn forget(
    connection: &mut Connection,
    name: &str,
    key: &str,
) -> Result<bool, MemoriesError> {
    let at = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(id) = user(&at, name)? else { return Ok(false) };
    let was_there = take_out(&at, id, key)?;
    if memories_of(&at, id)? == 0 {
        at.execute("DELETE FROM users WHERE id = ?1", [id])?;
    }
    at.commit()?;
    Ok(was_there)
}

pub(super) fn recall(at: &Connection, name: &str, key: &str) -> rusqlite::Result<Option<String>> {
    let sql =
        "SELECT value FROM memories JOIN users ON users.id = user WHERE name = ?1 AND key = ?2";
    at.query_row(sql, [name, key], |row| row.get(0)).optional()
}

pub(super) fn keys(at: &Connection, name: &str) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT key FROM memories JOIN users ON users.id = user WHERE name = ?1 ORDER BY key";
    at.prepare(sql)?.query_map([name], |row| row.get(0))?.collect()
}

/// What a value says: of a string its text, of anything else its JSON without escapes.
pub(super) fn spoken(json: &str) -> String {
    match serde_json::from_str(json) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(other) => other.to_string(),
        Err(_) => json.to_owned(),
    }
}
