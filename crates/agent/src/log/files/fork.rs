//! Copies a session's files up to an entry: first beside, under a name that no session has, then
//! in place by one renaming. Whoever is killed meanwhile leaves what `sweep` removes.
//!
//! Lines are copied as they stand, in a stream, also damaged ones; those about one client alone
//! are left out. Long texts are linked, so they cost nothing and outlive the other session.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use polyloop_session::{Seq, SessionId, Timestamp};

use super::super::fork::{Fork, ForkedAt, TakenGrowth};
use super::super::{Line, LogError};
use super::lines::Lines;
use super::{FILE_MODE, Store, journal, make_dir};

const BEGINNING: &str = ".fork-";
const ENDING: &str = ".tmp";

pub(super) fn fork(store: &Store, fork: &Fork) -> Result<ForkedAt, LogError> {
    let source = match File::open(store.path(&fork.from, "jsonl")) {
        Ok(source) => source,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ForkedAt::NotFound),
        Err(error) => return Err(store.error(&fork.from, &error)),
    };
    let made = make(store, fork, source);
    if !matches!(made, Ok(ForkedAt::Done { .. })) {
        remove(&store.dir, &fork.to);
    }
    made.map_err(|error| store.error(&fork.to, &error))
}

fn make(store: &Store, fork: &Fork, source: File) -> io::Result<ForkedAt> {
    let beside = store.dir.join(format!("{BEGINNING}{}{ENDING}", fork.to));
    let options = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).to_owned();
    let mut copy = BufWriter::new(options.open(&beside)?);
    let copied = copy_lines(store, fork, source, &mut copy)?;
    let Copied { last, is_newest, last_at } = copied;
    let upto = fork.upto.unwrap_or(last);
    if upto == Seq::NONE || (is_newest && upto > last) {
        return Ok(ForkedAt::Beyond { last });
    }
    for line in store.codec.encoder(&fork.to).lines(&fork.entry(upto, last_at)).lines {
        copy.write_all(line.as_bytes())?;
    }
    copy.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    link_blobs(store, fork, upto)?;
    let live = store.path(&fork.to, "live");
    match &fork.growth {
        TakenGrowth::Left if is_newest => {
            match std::fs::copy(store.path(&fork.from, "live"), &live) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        TakenGrowth::Told { at, growths } if *at == upto => {
            journal::Journal::open(store.disk.clone(), &live)?.0.grow(growths)?;
        }
        TakenGrowth::Left | TakenGrowth::Told { .. } => {}
    }
    std::fs::rename(&beside, store.path(&fork.to, "jsonl"))?;
    File::open(&store.dir)?.sync_all()?;
    Ok(ForkedAt::Done { upto })
}

/// What was copied.
#[derive(Default)]
struct Copied {
    last: Seq,
    /// Nothing was left uncopied.
    is_newest: bool,
    last_at: Timestamp,
}

fn copy_lines(
    store: &Store,
    fork: &Fork,
    source: File,
    copy: &mut impl Write,
) -> io::Result<Copied> {
    let upto = fork.upto.unwrap_or(Seq(u64::MAX));
    let mut copied = Copied { is_newest: true, ..Copied::default() };
    let mut lines = Lines::from(source, 0)?;
    while let Some(line) = lines.next()? {
        // What long texts say makes no difference here.
        let read = match line.text() {
            Some(text) => match store.codec.read(text, &|_| Some(String::new())) {
                // Or all the difference.
                Line::Damaged { seq: None, .. } => {
                    store.codec.read(text, &|name| store.blob(&fork.from, name))
                }
                read => read,
            },
            None => Line::Damaged { seq: None, why: String::new() },
        };
        let seq = match &read {
            Line::Entry(entry) => {
                copied.last_at = copied.last_at.max(entry.at);
                Some(entry.seq)
            }
            Line::Foreign { at, .. } => {
                copied.last_at = copied.last_at.max(*at);
                Some(copied.last.next())
            }
            Line::Damaged { .. } if !line.whole => break,
            Line::Damaged { seq, .. } => *seq,
            Line::More { .. } => None,
            Line::Audit => continue,
        };
        if seq.is_some_and(|seq| seq > upto) {
            copied.is_newest = false;
            break;
        }
        copied.last = copied.last.max(seq.unwrap_or_default());
        copy.write_all(line.bytes)?;
        if !line.whole {
            copy.write_all(b"\n")?;
        }
    }
    Ok(copied)
}

/// Links the files that entries up to this one name, or that are kept by their hash.
fn link_blobs(store: &Store, fork: &Fork, upto: Seq) -> io::Result<()> {
    let files = match std::fs::read_dir(store.path(&fork.from, "blobs")) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let dir = store.path(&fork.to, "blobs");
    make_dir(&dir)?;
    for file in files {
        let file = file?;
        let name = file.file_name();
        let name = name.to_str().unwrap_or_default();
        if !is_wanted(name, upto) || !file.file_type()?.is_file() {
            continue;
        }
        let link = dir.join(name);
        if std::fs::hard_link(file.path(), &link).is_err() {
            // Another file system, or one without links.
            std::fs::copy(file.path(), &link)?;
            File::open(&link)?.sync_all()?;
        }
    }
    File::open(&dir)?.sync_all()
}

/// One that a later entry names may still be written, and would be written in both sessions.
fn is_wanted(name: &str, upto: Seq) -> bool {
    if name.is_empty() || name.starts_with('.') || name.ends_with(ENDING) {
        return false;
    }
    let of_entry = name.split('-').next().and_then(|seq| seq.parse::<u64>().ok());
    of_entry.is_none_or(|seq| seq <= upto.0)
}

/// Removes what forks left that were never finished. For a store that nobody else uses.
pub(super) fn sweep(dir: &Path) -> io::Result<()> {
    for file in std::fs::read_dir(dir)? {
        let name = file?.file_name();
        let name = name.to_str().unwrap_or_default();
        let id = name.strip_prefix(BEGINNING).and_then(|name| name.strip_suffix(ENDING));
        if let Some(id) = id.and_then(|id| SessionId::parse(id).ok()) {
            remove(dir, &id);
        }
    }
    Ok(())
}

/// The name under which it was made goes last: as long as it is there, this can be done again.
fn remove(dir: &Path, id: &SessionId) {
    let beside = dir.join(format!("{BEGINNING}{id}{ENDING}"));
    if !dir.join(format!("{id}.jsonl")).exists() {
        let _ = std::fs::remove_dir_all(dir.join(format!("{id}.blobs")));
        let _ = std::fs::remove_file(dir.join(format!("{id}.live")));
    }
    let _ = std::fs::remove_file(beside);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_copied_entries_and_kept_contents_are_linked() {
        let wanted = ["7-0", "12-3", "12", "kept-ab12", "ab12"];
        let unwanted = ["13-0", "13", "99999999-1", "", ".x", "kept-ab.tmp"];
        assert!(wanted.iter().all(|name| is_wanted(name, Seq(12))));
        assert!(!unwanted.iter().any(|name| is_wanted(name, Seq(12))));
    }
}
