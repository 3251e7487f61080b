//! The tables, and the few things that are asked of them. Blocking; the memories' thread calls it.
//!
//! A file that is not ours is left as it is. Several servers may have the same file: whatever
//! depends on what is there is read in the transaction that writes.

use std::fs::{OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior,
    params,
};

use super::search::plain;
use super::{MEMORIES_PER_USER_MAX, MemoriesError, USERS_MAX};

/// `PRAGMA application_id`, which says that a database is ours: "Pmem".
pub(super) const APPLICATION_ID: u32 = 0x506d_656d;
/// Counts up when the tables change.
pub(super) const SCHEMA_VERSION: u32 = 1;
/// How long another program may keep the database locked.
const BUSY_MS_MAX: u64 = 2_000;
/// Memories are their user's own.
const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;
const PAGE_BYTES: u64 = 4_096;

/// Memories that are written again get a new id, so that ids tell which are newer. `words` is the
/// index, by their ids: it holds each three characters that stand together, so that a part of a
/// word finds it, in every language and in code; and no text, only where they are.
const SCHEMA: &str = "
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

/// Opens the database, which is made if there is none.
pub(super) fn open(path: &Path, bytes_max: u64) -> Result<Connection, MemoriesError> {
    let unusable = |why: &dyn std::fmt::Display| MemoriesError::Unusable {
        path: path.into(),
        why: why.to_string(),
    };
    if let Some(dir) = path.parent() {
        let made = std::fs::DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir);
        made.map_err(|error| unusable(&error))?;
    }
    // SQLite would make it readable for everyone, and gives its own files the mode of this one. A
    // file that is there is not opened: closing it would take SQLite's locks away.
    match OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(unusable(&error)),
        Ok(_) | Err(_) => {}
    }
    let prepared = || -> rusqlite::Result<Result<Connection, MemoriesError>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_millis(BUSY_MS_MAX))?;
        if connection.is_readonly("main")? {
            return Ok(Err(unusable(&"it cannot be written")));
        }
        if let Err(refused) = prepare(&mut connection, path)? {
            return Ok(Err(refused));
        }
        // Others can read it while we write. Where that is not possible (some network file
        // systems) it stays as it is, which is as safe.
        let _: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        bound(&connection, bytes_max)?;
        Ok(Ok(connection))
    };
    match prepared() {
        Ok(Ok(connection)) => {
            // Ours, so it may be closed to others if somebody made it otherwise.
            let mode = std::fs::metadata(path).map(|found| found.permissions().mode());
            if mode.is_ok_and(|mode| mode & 0o077 != 0) {
                let _ = std::fs::set_permissions(path, Permissions::from_mode(FILE_MODE));
            }
            Ok(connection)
        }
        Ok(Err(refused)) => Err(refused),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(MemoriesError::Foreign { path: path.into() })
        }
        Err(error) => Err(unusable(&error)),
    }
}

/// A database that is no file.
pub(super) fn unkept(bytes_max: u64) -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(SCHEMA)?;
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

/// Finds out whose database it is before anything is changed.
fn prepare(
    connection: &mut Connection,
    path: &Path,
) -> rusqlite::Result<Result<(), MemoriesError>> {
    let at = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let number = |name| at.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (owner, version) = (number("application_id")?, number("user_version")?);
    let things: i64 = at.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let (ours, known) = (i64::from(APPLICATION_ID), i64::from(SCHEMA_VERSION));
    if owner == ours && version > known {
        return Ok(Err(MemoriesError::Newer { path: path.into(), found: version, known }));
    }
    if owner == ours && version == known {
        return Ok(Ok(()));
    }
    if (owner, version, things) != (0, 0, 0) {
        return Ok(Err(MemoriesError::Foreign { path: path.into() }));
    }
    at.execute_batch(SCHEMA)?;
    at.pragma_update(None, "application_id", ours)?;
    at.pragma_update(None, "user_version", known)?;
    at.commit().map(Ok)
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
