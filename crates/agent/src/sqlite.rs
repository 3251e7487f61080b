//! Opens the SQLite files that are the server's own.
//!
//! A file that is not ours is left as it is. What the tables hold, and what is asked of them, is
//! up to those whose file it is. Blocking.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

/// How long another program may keep a database locked.
const BUSY_MS_MAX: u64 = 2_000;
/// What is in them is their users' own.
const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;

/// Whose a database is, and what is in a new one.
pub(crate) struct Schema {
    /// `PRAGMA application_id`.
    pub owner: u32,
    /// `PRAGMA user_version`, which counts up when the tables change.
    pub version: u32,
    /// Makes the tables.
    pub tables: &'static str,
    pub older: Older,
}

/// What becomes of one of an older version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Older {
    /// Its tables are made anew: all that they say can be had again.
    Emptied,
    /// There is none, so it cannot be ours.
    Foreign,
}

/// Why a database was not opened.
#[derive(Debug)]
pub(crate) enum NotOpened {
    Foreign,
    Newer { found: i64, known: i64 },
    Unusable { why: String },
}

impl NotOpened {
    pub(crate) fn unusable(why: &dyn std::fmt::Display) -> NotOpened {
        NotOpened::Unusable { why: why.to_string() }
    }
}

impl From<rusqlite::Error> for NotOpened {
    fn from(error: rusqlite::Error) -> NotOpened {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => NotOpened::Foreign,
            _ => NotOpened::unusable(&error),
        }
    }
}

/// Opens a database, which is made if there is none. Others can read it while we write, where the
/// file system lets them.
pub(crate) fn open(path: &Path, schema: &Schema) -> Result<Connection, NotOpened> {
    if let Some(dir) = path.parent() {
        let made = DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir);
        made.map_err(|error| NotOpened::unusable(&error))?;
    }
    // SQLite would make it readable for everyone, and gives its own files the mode of this one. A
    // file that is there is not opened: closing it would take SQLite's locks away.
    match OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(NotOpened::unusable(&error));
        }
        Ok(_) | Err(_) => {}
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_millis(BUSY_MS_MAX))?;
    if connection.is_readonly("main")? {
        return Err(NotOpened::unusable(&"it cannot be written"));
    }
    prepare(&mut connection, schema)?;
    // Ours, so it may be closed to others if somebody made it otherwise.
    let mode = std::fs::metadata(path).map(|found| found.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o077 != 0) {
        let _ = std::fs::set_permissions(path, Permissions::from_mode(FILE_MODE));
    }
    // Where that is not possible (some network file systems) it stays as it is, which is as safe.
    let _: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    Ok(connection)
}

/// Finds out whose database it is before anything is changed.
fn prepare(connection: &mut Connection, schema: &Schema) -> Result<(), NotOpened> {
    let at = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let number = |name| at.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (owner, version) = (number("application_id")?, number("user_version")?);
    let things: i64 = at.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let (ours, known) = (i64::from(schema.owner), i64::from(schema.version));
    if owner == ours && version == known {
        return Ok(());
    }
    if owner == ours && version > known {
        return Err(NotOpened::Newer { found: version, known });
    }
    let is_new = (owner, version, things) == (0, 0, 0);
    let is_older = owner == ours && schema.older == Older::Emptied;
    if !is_new && !is_older {
        return Err(NotOpened::Foreign);
    }
    at.execute_batch(schema.tables)?;
    at.pragma_update(None, "application_id", ours)?;
    at.pragma_update(None, "user_version", known)?;
    Ok(at.commit()?)
}
