//! The tables, and the few things that are asked of them. Blocking; the store's thread calls it.
//!
//! A file that is not ours is left as it is. One of an older version is emptied, not converted: all
//! that it says can be read from the logs again.

use std::path::Path;

use polyloop_session::{LogEntry, Seq, SessionId};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use sha2::{Digest, Sha256};

use super::fold;
use super::{Message, MessagesError, PAGE_BYTES_MAX, Page, Role};
use crate::sqlite::{self, NotOpened, Older, Schema};

/// Says that a database is ours: "Pmsg".
const APPLICATION_ID: u32 = 0x506d_7367;
/// Counts up when the tables change, or when something else becomes a message.
const SCHEMA_VERSION: u32 = 1;

/// With row ids: texts are long, and a table without them would keep those in its inner pages.
const TABLES: &str = "
    DROP TABLE IF EXISTS messages;
    DROP TABLE IF EXISTS progress;
    CREATE TABLE messages (
        session TEXT NOT NULL,
        seq INTEGER NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
        content TEXT NOT NULL,
        PRIMARY KEY (session, seq)
    ) STRICT;
    CREATE TABLE progress (
        session TEXT NOT NULL PRIMARY KEY,
        upto INTEGER NOT NULL,
        mark BLOB NOT NULL
    ) STRICT;";

/// The last entry whose messages are stored, by which its log is known again: a log that has
/// another entry there, or none, is not the one they were taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub seq: Seq,
    hash: Vec<u8>,
}

impl Mark {
    pub fn of(entry: &LogEntry) -> Mark {
        let text = serde_json::to_vec(entry).unwrap_or_default();
        Mark { seq: entry.seq, hash: Sha256::digest(&text).to_vec() }
    }
}

const SCHEMA: Schema = Schema {
    owner: APPLICATION_ID,
    version: SCHEMA_VERSION,
    tables: TABLES,
    older: Older::Emptied,
};

/// Opens the database, which is made if there is none.
pub(super) fn open(path: &Path) -> Result<Connection, MessagesError> {
    let opened = sqlite::open(path, &SCHEMA).and_then(|connection| {
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if mode == "wal" {
            // A crash of the machine may then lose the last rows, which are read again.
            connection.pragma_update(None, "synchronous", "NORMAL")?;
        }
        Ok(connection)
    });
    opened.map_err(|why| match why {
        NotOpened::Foreign => MessagesError::Foreign { path: path.into() },
        NotOpened::Newer { found, known } => {
            MessagesError::Newer { path: path.into(), found, known }
        }
        NotOpened::Unusable { why } => MessagesError::unusable(path, &why),
    })
}

pub(super) fn mark(connection: &Connection, id: &SessionId) -> rusqlite::Result<Option<Mark>> {
    let sql = "SELECT upto, mark FROM progress WHERE session = ?1";
    let mark = |row: &Row<'_>| Ok(Mark { seq: Seq(row.get(0)?), hash: row.get(1)? });
    connection.query_row(sql, [id.as_str()], mark).optional()
}

/// Sessions of which something is stored.
pub(super) fn sessions(connection: &Connection) -> rusqlite::Result<Vec<SessionId>> {
    let mut names = connection.prepare("SELECT session FROM progress")?;
    let names = names.query_map([], |row| row.get::<_, String>(0))?;
    let names = names.collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(names.iter().filter_map(|name| SessionId::parse(name).ok()).collect())
}

pub(super) fn insert(
    at: &Transaction<'_>,
    id: &SessionId,
    rows: &[fold::Row],
    upto: &Mark,
) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO messages (session, seq, role, content)
               VALUES (?1, ?2, ?3, ?4)";
    let mut message = at.prepare(sql)?;
    for row in rows {
        let (role, content) = (row.role.as_str(), &*row.content);
        message.execute(params![id.as_str(), row.seq.0, role, content])?;
    }
    let sql = "INSERT OR REPLACE INTO progress (session, upto, mark) VALUES (?1, ?2, ?3)";
    at.execute(sql, params![id.as_str(), upto.seq.0, upto.hash])?;
    Ok(())
}

pub(super) fn delete(at: &Transaction<'_>, id: &SessionId) -> rusqlite::Result<()> {
    at.execute("DELETE FROM messages WHERE session = ?1", [id.as_str()])?;
    at.execute("DELETE FROM progress WHERE session = ?1", [id.as_str()])?;
    Ok(())
}

/// The newest messages before a place, as many as the limits allow but at least one where one is
/// wanted and there.
pub(super) fn page(
    connection: &Connection,
    id: &SessionId,
    before: Option<u64>,
    limit: u32,
) -> rusqlite::Result<Page> {
    let before = before.map_or(i64::MAX, |seq| i64::try_from(seq).unwrap_or(i64::MAX));
    let sql = "SELECT seq, role, content FROM messages WHERE session = ?1 AND seq < ?2
               ORDER BY seq DESC LIMIT ?3";
    let mut found = connection.prepare(sql)?;
    // One more than wanted, which tells whether there is more.
    let mut rows = found.query(params![id.as_str(), before, i64::from(limit) + 1])?;
    let mut page = Page::default();
    let (limit, mut bytes) = (usize::try_from(limit).unwrap_or(usize::MAX), 0);
    while let Some(row) = rows.next()? {
        let text = row.get_ref(2)?.as_str()?;
        bytes += text.len();
        let fits = page.messages.is_empty() || bytes <= PAGE_BYTES_MAX;
        if page.messages.len() >= limit || !fits {
            page.has_more = true;
            break;
        }
        let role = Role::parse(row.get_ref(1)?.as_str()?);
        page.messages.push(Message { seq: row.get(0)?, role, content: text.to_owned() });
    }
    page.messages.reverse();
    Ok(page)
}
