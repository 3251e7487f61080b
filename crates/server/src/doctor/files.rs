//! Whether the server could keep what it is to keep, by really writing there.
//!
//! Makes no directory and leaves no file behind. A store that a server has is left to it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use super::report::Check;
use crate::config::settings::{self, Setting};

/// What a server locks in its session store.
const LOCK_NAME: &str = ".lock";
const NAMES_TRIED_MAX: u32 = 100;
/// How every SQLite file begins.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

pub(super) fn working_directory(path: &Path) -> Check {
    let thing = "working directory";
    match fs::read_dir(path) {
        Ok(_) => Check::ok(thing, path.display().to_string()),
        Err(error) => Check::fail(
            thing,
            format!("{} cannot be read: {error}; choose another or allow it", path.display()),
        ),
    }
}

/// The directories that the server writes to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Sessions,
    Todos,
}

impl Place {
    fn thing(self) -> &'static str {
        match self {
            Place::Sessions => "session store",
            Place::Todos => "todos store",
        }
    }

    fn setting(self) -> &'static Setting {
        match self {
            Place::Sessions => &settings::SESSION_STORE_PATH,
            Place::Todos => &settings::TODOS_STORE_PATH,
        }
    }

    fn without(self) -> Check {
        let name = self.setting().name;
        match self {
            Place::Sessions => Check::warn(
                self.thing(),
                format!("none: sessions are lost when the server stops; set {name} to keep them"),
            ),
            Place::Todos => Check::ok(self.thing(), format!("none, because {name} is not set")),
        }
    }
}

pub(super) fn store(place: Place, path: Option<&Path>) -> Check {
    let Some(path) = path else { return place.without() };
    let shown = path.display();
    if is_locked(&path.join(LOCK_NAME)) {
        let text = format!(
            "{shown} is in use by a server that runs; one server uses a store at a time, so stop \
             it before you start another with this one"
        );
        return Check::warn(place.thing(), text);
    }
    match can_be_had(path) {
        Ok(Found::There) => Check::ok(place.thing(), format!("{shown} can be written")),
        Ok(Found::NotYet) => {
            Check::ok(place.thing(), format!("{shown} is not there yet and can be made"))
        }
        Err(why) => {
            let text = format!("{why}; change {} or the permissions", place.setting().name);
            Check::fail(place.thing(), text)
        }
    }
}

pub(super) fn messages(path: Option<&Path>) -> Check {
    let (thing, name) = ("message database", settings::USER_MESSAGE_DB.name);
    match path {
        Some(path) => database(thing, name, path),
        None => Check::ok(thing, format!("none, because {name} is not set")),
    }
}

pub(super) fn memories(path: Option<&Path>, sessions: Option<&Path>) -> Check {
    let (thing, name) = ("memories", settings::MEMORY_DB.name);
    match (path, sessions) {
        (Some(path), _) => database(thing, name, path),
        (None, Some(_)) => Check::ok(thing, format!("in the session store; {name} is not set")),
        (None, None) => {
            let text =
                format!("none: they are lost when the server stops; set {name} to keep them");
            Check::warn(thing, text)
        }
    }
}

fn database(thing: &'static str, name: &str, path: &Path) -> Check {
    let parent = path.parent().unwrap_or(path);
    let shown = path.display();
    let usable = match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(format!("{shown} is a directory, not a file")),
        Ok(_) => own_database(path).and_then(|()| can_be_had(parent)),
        Err(error) if is_absent(&error, path) => can_be_had(parent).map(|_| Found::NotYet),
        Err(error) => Err(format!("{shown} cannot be used: {error}")),
    };
    match usable {
        Ok(Found::There) => Check::ok(thing, format!("{shown} can be written")),
        Ok(Found::NotYet) => Check::ok(thing, format!("{shown} is not there yet and can be made")),
        Err(why) => Check::fail(thing, format!("{why}; change {name} or the permissions")),
    }
}

/// Whether somebody has a lock on the file. Takes it for a moment if nobody has.
fn is_locked(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().read(true).write(true).open(path) else { return false };
    match file.try_lock() {
        Ok(()) => false,
        Err(fs::TryLockError::WouldBlock) => true,
        // What cannot be locked at all is found out by writing.
        Err(fs::TryLockError::Error(_)) => false,
    }
}

/// Only opened: a database is changed by nobody but its owner.
fn own_database(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| format!("{shown} cannot be written: {error}"))?;
    let mut start = Vec::new();
    let wanted = SQLITE_MAGIC.len() as u64;
    let read = Read::by_ref(&mut file).take(wanted).read_to_end(&mut start);
    read.map_err(|error| format!("{shown} cannot be read: {error}"))?;
    match start.is_empty() || start == SQLITE_MAGIC {
        true => Ok(()),
        false => Err(format!("{shown} is no SQLite database and is left as it is")),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    There,
    NotYet,
}

/// Whether files can be made in a directory, or in the one in which it would be made.
fn can_be_had(dir: &Path) -> Result<Found, String> {
    let shown = dir.display();
    match fs::metadata(dir) {
        Ok(found) if found.is_dir() => write_into(dir).map(|()| Found::There),
        Ok(_) => Err(format!("{shown} is not a directory")),
        Err(error) if is_absent(&error, dir) => {
            let above = dir.parent().ok_or_else(|| format!("{shown} cannot be made"))?;
            can_be_had(above).map(|_| Found::NotYet)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(format!("{shown} is a link that leads nowhere"))
        }
        Err(error) => Err(format!("{shown} cannot be used: {error}")),
    }
}

/// Nothing is there, not even a link.
fn is_absent(error: &io::Error, path: &Path) -> bool {
    error.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err()
}

fn write_into(dir: &Path) -> Result<(), String> {
    let cannot = |error: io::Error| format!("{} cannot be written: {error}", dir.display());
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let (path, file) = free_file(dir, &options).map_err(cannot)?;
    let written = write(file);
    fs::remove_file(&path).map_err(cannot)?;
    written.map_err(cannot)
}

/// A disk may take a file's name and not its content.
fn write(mut file: File) -> io::Result<()> {
    file.write_all(b"polyloop doctor\n")?;
    file.sync_all()
}

/// A file that was not there: one of the same name may be left of a doctor that was killed.
fn free_file(dir: &Path, options: &OpenOptions) -> io::Result<(PathBuf, File)> {
    for number in 0..NAMES_TRIED_MAX {
        let path = dir.join(format!(".polyloop-doctor-{}-{number}", std::process::id()));
        match options.open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (path, file)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}
