//! What was told of the folders of the last turns, and by what that still holds.
//!
//! What is told is read from a few names that most folders do not have. Looking for each of them
//! before every request takes longer than all else that is done with the disk there, so what was
//! read is kept with the state of what it was read from, and that alone is looked at.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::civil::Date;
use rustix::fs::{FileType, Stat};

use crate::patch::root::FileId;
use crate::tool::{Place, Words};

/// Folders that are remembered.
const FOLDERS_MAX: usize = 8;
/// What changed more lately may change again without another time: some file systems have no finer
/// ones.
const SETTLED: Duration = Duration::from_secs(2);

/// Cheap to ask; shared by all sessions.
#[derive(Debug, Default)]
pub struct Told(Mutex<VecDeque<Folder>>);

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    day: Date,
    words: Words,
    /// `None` where it must be read anew each time.
    holds_by: Option<Vec<Witness>>,
}

/// Something that was seen when a folder was read, and that would be another thing by now had what
/// was read changed.
#[derive(Debug)]
pub(super) enum Witness {
    /// The working directory: what is not in it stays out of it.
    Folder(Stamp),
    Nothing(PathBuf),
    File(PathBuf, Stamp),
}

/// Tells a file, or a directory, from what it was or will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    id: FileId,
    owner: u32,
    mode: u32,
    bytes: i64,
    written: (i64, i64),
    changed: (i64, i64),
}

/// What is looked at while a folder is read.
#[derive(Debug, Default)]
pub(super) struct Looks {
    seen: Vec<Witness>,
    /// Something was read that no witness speaks for.
    unproved: bool,
}

impl Told {
    /// What was told of a place, if it would be told again.
    pub(super) fn find(&self, place: &Place, day: Date) -> Option<Words> {
        let folders = self.lock();
        let told = folders.iter().find(|told| told.path == place.cwd && told.day == day)?;
        let holds = told.holds_by.as_ref()?.iter().all(|witness| witness.holds(place));
        holds.then(|| told.words.clone())
    }

    /// Keeps what was told, and gives it: sessions that are told the same share it.
    pub(super) fn keep(
        &self,
        place: &Place,
        day: Date,
        text: String,
        holds_by: Option<Vec<Witness>>,
    ) -> Words {
        let mut all = self.lock();
        let known = all.iter().find(|told| *told.words == *text).map(|told| told.words.clone());
        let words = known.unwrap_or_else(|| text.into());
        all.retain(|told| told.path != place.cwd);
        all.truncate(FOLDERS_MAX - 1);
        let path = place.cwd.clone();
        all.push_front(Folder { path, day, words: words.clone(), holds_by });
        words
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Folder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Looks {
    /// Begins with the working directory as it is now.
    pub(super) fn of(place: &Place) -> Looks {
        let mut looks = Looks::default();
        match folder(place) {
            Some(stamp) => looks.seen.push(Witness::Folder(stamp)),
            None => looks.unproved = true,
        }
        looks
    }

    pub(super) fn saw_nothing(&mut self, path: PathBuf) {
        self.seen.push(Witness::Nothing(path));
    }

    /// What is read of it must be read after this. What a link leads to may change without it.
    pub(super) fn saw(&mut self, path: &Path) {
        match stamp(path) {
            Ok(stamp) if !stamp.is_link() => self.seen.push(Witness::File(path.to_owned(), stamp)),
            Ok(_) | Err(_) => self.unproved = true,
        }
    }

    /// What was read must be read again the next time.
    pub(super) fn cannot_tell(&mut self) {
        self.unproved = true;
    }

    /// By what all that was read holds, if anything can say that.
    pub(super) fn witnesses(self, now: SystemTime) -> Option<Vec<Witness>> {
        let settled = self.seen.iter().all(|witness| match witness {
            Witness::Folder(stamp) | Witness::File(_, stamp) => stamp.is_settled(now),
            Witness::Nothing(_) => true,
        });
        (settled && !self.unproved).then_some(self.seen)
    }
}

impl Witness {
    fn holds(&self, place: &Place) -> bool {
        match self {
            Witness::Folder(before) => folder(place).as_ref() == Some(before),
            Witness::Nothing(path) => stamp(path).is_err(),
            Witness::File(path, before) => stamp(path).is_ok_and(|now| now == *before),
        }
    }
}

impl Stamp {
    fn of(stat: &Stat) -> Stamp {
        Stamp {
            id: FileId::of(stat),
            owner: stat.st_uid,
            mode: stat.st_mode,
            bytes: stat.st_size,
            written: (stat.st_mtime, stat.st_mtime_nsec.cast_signed()),
            changed: (stat.st_ctime, stat.st_ctime_nsec.cast_signed()),
        }
    }

    fn is_link(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Symlink
    }

    fn is_settled(&self, now: SystemTime) -> bool {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let latest = self.written.0.max(self.changed.0);
        u64::try_from(latest).is_ok_and(|latest| latest + SETTLED.as_secs() < since.as_secs())
    }
}

fn folder(place: &Place) -> Option<Stamp> {
    let root = place.root.as_ref().filter(|root| root.path() == place.cwd)?;
    root.stat().ok().map(|stat| Stamp::of(&stat))
}

/// Of what stands at a path itself; no link is followed at its end.
fn stamp(path: &Path) -> io::Result<Stamp> {
    Ok(Stamp::of(&rustix::fs::lstat(path)?))
}
