//! Looks over a store that may be damaged, and mends what can be mended without losing anything.
//!
//! Looking changes nothing, and may be done while a server uses the store. Mending takes its lock.
//! Lines that cannot be read stay where they are: whoever knows more may still read them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use polyloop_session::{SessionId, Timestamp};
use serde::Serialize;

use super::super::{Line, Log, LogError, Occasion, OpenMode};
use super::lines::Lines;
use super::load::{Pass, pass};
use super::{FILE_MODE, Files, LOCK_FILE, Store, file_time, free_name, index, journal};

/// What was found in one session's files.
#[derive(Debug, Serialize)]
pub struct Checked {
    pub id: SessionId,
    pub lines: u64,
    /// The number of the last entry.
    pub last_seq: u64,
    pub bytes: u64,
    pub findings: Vec<Finding>,
}

impl Checked {
    pub fn is_damaged(&self) -> bool {
        self.findings.iter().any(|finding| finding.weight == Weight::Damage)
    }
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub weight: Weight,
    /// Counted from 1, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Something is lost or cannot be read.
    Damage,
    /// Something a server takes care of when it opens the session.
    Note,
}

impl Finding {
    fn damage(line: Option<u64>, what: impl Into<String>) -> Finding {
        Finding { weight: Weight::Damage, line, what: what.into() }
    }

    fn note(what: impl Into<String>) -> Finding {
        Finding { weight: Weight::Note, line: None, what: what.into() }
    }
}

impl Files {
    /// The sessions that have a file here, in the order of their names.
    pub fn ids(&self) -> Result<Vec<SessionId>, LogError> {
        let mut all = self.store.ids()?;
        all.sort();
        Ok(all)
    }

    pub async fn check(&self, id: &SessionId) -> Result<Checked, LogError> {
        let work = |store: &std::sync::Arc<Store>, id: Option<&SessionId>| match id {
            Some(id) => store.check(id).map_err(|error| store.error(id, &error)),
            None => Err(LogError::store("session store", "no session was named")),
        };
        self.blocking(Some(id), work).await
    }

    /// Cuts a torn tail off, completes what a crash left half written and makes the index anew.
    /// Says what was done; what was cut off is kept in a file beside it.
    pub async fn repair(&self, id: &SessionId, at: Timestamp) -> Result<Vec<String>, LogError> {
        let error = |error: io::Error| self.store.error(id, &error);
        let path = self.store.path(id, "jsonl");
        let before = std::fs::metadata(&path).map_err(error)?.len();
        let mut done = self.store.keep_torn(id, at).map_err(error)?;
        let index = self.store.path(id, "index");
        let _ = std::fs::remove_file(&index);
        let Some(mut opened) = self.open(id, OpenMode::Existing).await? else {
            return Ok(done);
        };
        opened.writer.keep(&opened.folded.state, Occasion::Leaving).await;
        drop(opened);
        let after = std::fs::metadata(&path).map_err(error)?.len();
        if after > before && done.is_empty() {
            done.push("the end that a crash had left out was added".to_owned());
        }
        if index.exists() {
            done.push("the index was made anew".to_owned());
        }
        Ok(done)
    }
}

/// Whether a server has the store.
pub fn is_in_use(dir: &Path) -> bool {
    let Ok(lock) = File::open(dir.join(LOCK_FILE)) else { return false };
    lock.try_lock_shared().is_err()
}

impl Store {
    fn check(&self, id: &SessionId) -> io::Result<Checked> {
        let file = File::open(self.path(id, "jsonl"))?;
        let bytes = file.metadata()?.len();
        let whole = pass(self, id, &file, Pass::default())?;
        let mut findings: Vec<Finding> = Vec::new();
        let damage = whole.folded.damage.iter();
        findings.extend(damage.map(|damage| Finding::damage(Some(damage.line), &damage.why)));
        if self.is_marked(id) {
            let what = "a flush of it has failed; it is written anew when it is next opened";
            findings.push(Finding::note(what));
        }
        if whole.unended {
            findings.push(Finding::note("the last line lacks its end and is whole"));
        }
        self.check_index(id, &file, &whole, &mut findings);
        self.check_journal(id, &mut findings);
        self.check_blobs(id, &file, &mut findings)?;
        let (lines, last_seq) = (whole.lines, whole.folded.state.last_seq().0);
        Ok(Checked { id: id.clone(), lines, last_seq, bytes, findings })
    }

    fn check_index(&self, id: &SessionId, file: &File, whole: &Pass, found: &mut Vec<Finding>) {
        let path = self.path(id, "index");
        if !path.exists() {
            return;
        }
        let Some(index) = index::read(&path, file) else {
            found.push(Finding::note("the index does not fit the file and is not used"));
            return;
        };
        let places_fit = index.places.places.iter().all(|place| {
            let known = whole.places.iter().find(|known| known.seq == place.seq);
            known.is_none_or(|known| known == place)
        });
        let Some(begun) = Pass::after(index) else {
            if !places_fit {
                found.push(Finding::damage(None, "the index names wrong places"));
            }
            return;
        };
        let same = pass(self, id, file, begun).is_ok_and(|tail| {
            tail.folded.state == whole.folded.state
                && tail.folded.turns == whole.folded.turns
                && tail.lines == whole.lines
        });
        if !same || !places_fit {
            found.push(Finding::damage(None, "the index says other things than the file"));
        }
    }

    fn check_journal(&self, id: &SessionId, found: &mut Vec<Finding>) {
        let Ok(bytes) = std::fs::read(self.path(id, "live")) else { return };
        let (_, whole) = journal::read(&bytes);
        if !bytes.is_empty() {
            found.push(Finding::note(format!(
                "a live journal of {} bytes, {whole} of them whole: what was shown of items that \
                 were open, or had just ended",
                bytes.len()
            )));
        }
    }

    /// Files of their own that no line names.
    fn check_blobs(&self, id: &SessionId, file: &File, found: &mut Vec<Finding>) -> io::Result<()> {
        let Ok(there) = std::fs::read_dir(self.path(id, "blobs")) else { return Ok(()) };
        let mut unnamed: BTreeSet<String> =
            there.filter_map(|file| file.ok()?.file_name().into_string().ok()).collect();
        let named = RefCell::new(BTreeSet::new());
        let mut lines = Lines::from(file.try_clone()?, 0)?;
        while let Some(line) = lines.next()? {
            let Some(text) = line.text().filter(|text| text.contains("$blob")) else { continue };
            // Its texts are not wanted, only their names.
            let _: Line = self.codec.read(text, &|name| {
                named.borrow_mut().insert(name.to_owned());
                Some(String::new())
            });
            let _ = self.codec.restored(text, &|name| {
                named.borrow_mut().insert(name.to_owned());
                Some(String::new())
            });
        }
        unnamed.retain(|name| !named.borrow().contains(name));
        if !unnamed.is_empty() {
            let (count, shown) = (unnamed.len(), unnamed.into_iter().take(3).collect::<Vec<_>>());
            let what = format!("{count} long texts that no line names: {}", shown.join(", "));
            found.push(Finding::note(what));
        }
        Ok(())
    }

    /// Keeps what opening the session would cut off.
    fn keep_torn(&self, id: &SessionId, at: Timestamp) -> io::Result<Vec<String>> {
        let mut file = File::open(self.path(id, "jsonl"))?;
        let bytes = file.metadata()?.len();
        let whole = pass(self, id, &file, Pass::default())?.bytes;
        if whole == bytes {
            return Ok(Vec::new());
        }
        let name = free_name(&self.dir, &format!("{id}-{}", file_time(at)), "bak");
        let kept = self.dir.join(format!("{name}.bak"));
        file.seek(SeekFrom::Start(whole))?;
        let mut copy =
            OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&kept)?;
        io::copy(&mut file, &mut copy)?;
        copy.sync_all()?;
        Ok(vec![format!("{} torn bytes at the end were moved to {name}.bak", bytes - whole)])
    }
}
