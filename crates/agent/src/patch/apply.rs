//! Writes a plan: all its files, or none.
//!
//! First every new content is written beside its place under a random name; then, under one lock,
//! each file is compared with what was planned and put in place by renaming. Whatever fails, what
//! was done is undone in reverse; whoever kills the server leaves a journal, and the next start
//! undoes it (`journal.rs`). A reader sees each file old or new, never in between. Never writes
//! into an existing file, and never by a path: only by the handle of a directory.

use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;

use super::error::PatchError;
use super::halt;
use super::journal::{Flush, Journal, Named, Open};
use super::path;
use super::plan::Step;
use super::root::{FileId, Found, Root, is_untouched, look};

mod directories;
mod spare;
mod swap;
#[cfg(test)]
mod tests;

pub(super) use directories::Directories;
pub(super) use spare::is_spare;
pub(crate) use spare::spare_name;
pub(super) use swap::exchange;
pub(crate) use swap::{is_unsupported, put_where_nothing_is};

use spare::Spares;

/// Between the comparison and the renaming no other patch may write: the second of two patches of
/// one file sees the first one's outcome, or is refused.
static COMMIT: Mutex<()> = Mutex::new(());

pub(super) fn apply(
    root: &Root,
    steps: &[Step],
    journal: Option<&Journal>,
) -> Result<(), PatchError> {
    root.check()?;
    let mut work = Work::new(root);
    let names: Vec<Named> = steps.iter().map(|step| work.spares.reserve(step)).collect();
    let mut open = match journal {
        Some(journal) => {
            let made = work.directories.missing(steps.iter().filter_map(Step::created));
            Some(journal.begin(root, names.clone(), made)?)
        }
        None => None,
    };
    let outcome = work
        .prepare(steps, &names)
        .and_then(|ids| work.ready(steps, &ids, open.as_mut()))
        .and_then(|()| work.commit(steps, &names));
    let ended = match outcome {
        Ok(()) => {
            // The new names must outlast a power cut before the old contents may be gone.
            work.directories.flush();
            if let Some(open) = &mut open {
                open.done();
            }
            work.spares.remove_all(&work.directories);
            Ok(())
        }
        Err(cause) => {
            let left = work.undo();
            work.spares.remove_all(&work.directories);
            work.directories.remove_made();
            if left.is_empty() { Err(cause) } else { Err(torn(cause, left)) }
        }
    };
    if let Some(open) = open {
        open.remove();
    }
    ended
}

/// Directories that files at these paths need and that are not there, outermost first.
pub(crate) fn missing_directories<'p>(
    root: &Root,
    paths: impl Iterator<Item = &'p str>,
) -> Vec<String> {
    Directories::new(root).missing(paths)
}

/// Makes a directory and what is missing above it, or nothing; lists what was made, outermost
/// first.
pub(crate) fn make_directory(root: &Root, relative: &str) -> Result<Vec<String>, PatchError> {
    root.check()?;
    let mut directories = Directories::new(root);
    // Of a file in it, whatever its name, it is the directory.
    match directories.open_or_make(&format!("{relative}/.")) {
        Ok(()) => {
            directories.flush();
            Ok(directories.into_made())
        }
        Err(error) => {
            directories.remove_made();
            Err(error)
        }
    }
}

/// Removes a directory that is empty.
pub(crate) fn remove_directory(root: &Root, relative: &str) -> Result<(), Errno> {
    let (above, name) = path::split(relative);
    let above = root.directory(above)?;
    rustix::fs::unlinkat(above, name, rustix::fs::AtFlags::REMOVEDIR)
}

/// Removes again what [`make_directory`] made, unless something else came into it.
pub(crate) fn unmake_directories(root: &Root, made: &[String]) {
    for directory in made.iter().rev() {
        let (above, name) = path::split(directory);
        if let Ok(above) = root.directory(above) {
            halt::point();
            let _ = rustix::fs::unlinkat(above, name, rustix::fs::AtFlags::REMOVEDIR);
        }
    }
}

fn torn(cause: PatchError, left: Vec<String>) -> PatchError {
    PatchError::Torn { cause: Box::new(cause), left }
}

struct Work<'a> {
    root: &'a Root,
    directories: Directories<'a>,
    spares: Spares,
    done: Vec<Done>,
}

/// What was done, with the name under which its opposite is kept.
enum Done {
    Created { path: String, spare: String, id: Option<FileId> },
    Replaced { path: String, spare: String },
    Removed { path: String, spare: String },
}

impl<'a> Work<'a> {
    fn new(root: &'a Root) -> Work<'a> {
        let directories = Directories::new(root);
        Work { root, directories, spares: Spares::default(), done: Vec::new() }
    }

    /// Makes directories and writes contents under spare names; gives the files it made.
    fn prepare(
        &mut self,
        steps: &[Step],
        names: &[Named],
    ) -> Result<Vec<Option<FileId>>, PatchError> {
        let mut ids = Vec::with_capacity(steps.len());
        for (step, name) in steps.iter().zip(names) {
            let id = match step {
                Step::Create { path, content } => {
                    self.directories.open_or_make(path)?;
                    Some(spare::write(&self.directories, path, &name.spare, content)?)
                }
                Step::Replace { path, content, .. } => {
                    self.directories.open(path)?;
                    Some(spare::write(&self.directories, path, &name.spare, content)?)
                }
                Step::Remove { path, .. } => {
                    self.directories.open(path)?;
                    None
                }
            };
            ids.push(id);
        }
        Ok(ids)
    }

    /// Writes down what is old and what is new, before anything changes.
    fn ready(
        &self,
        steps: &[Step],
        ids: &[Option<FileId>],
        open: Option<&mut Open>,
    ) -> Result<(), PatchError> {
        let Some(open) = open else { return Ok(()) };
        let facts = steps.iter().zip(ids).map(|(step, id)| step.facts(*id)).collect();
        // One renaming is whole by itself, with or without a power cut.
        let flush = if steps.len() > 1 { Flush::Yes } else { Flush::No };
        open.ready(facts, flush)
    }

    fn commit(&mut self, steps: &[Step], names: &[Named]) -> Result<(), PatchError> {
        let _guard = COMMIT.lock().unwrap_or_else(PoisonError::into_inner);
        self.root.check()?;
        // All comparisons come first, so that the usual refusal has nothing to undo.
        let mut compared = Vec::with_capacity(steps.len());
        for step in steps {
            compared.push(match step {
                Step::Create { .. } => None,
                Step::Replace { path, old, .. } | Step::Remove { path, old } => {
                    Some(self.compare(path, old)?)
                }
            });
        }
        for ((step, name), old) in steps.iter().zip(names).zip(&compared) {
            match (step, old) {
                (Step::Create { path, .. }, _) => self.create(path, &name.spare)?,
                (Step::Replace { path, .. }, Some(old)) => self.replace(path, name, old)?,
                (Step::Remove { path, .. }, Some(old)) => self.remove(path, &name.spare, old)?,
                (Step::Replace { path, .. } | Step::Remove { path, .. }, None) => {
                    return Err(PatchError::Changed { path: path.clone() });
                }
            }
        }
        Ok(())
    }

    /// The file as it is now, if it is what was planned with.
    fn compare(&self, path: &str, planned: &Found) -> Result<Found, PatchError> {
        let directory = self.directories.of(path)?;
        let found = self.root.read_in(directory, path::split(path).1, path)?;
        match found {
            Some(found) if found.is_same(planned) => Ok(found),
            Some(_) | None => Err(PatchError::Changed { path: path.to_owned() }),
        }
    }

    fn create(&mut self, path: &str, spare: &str) -> Result<(), PatchError> {
        let directory = self.directories.of(path)?;
        let id = look(directory, spare).ok().map(|stat| FileId::of(&stat));
        match swap::put_where_nothing_is(directory, spare, path::split(path).1) {
            Ok(()) => {
                let (path, spare) = (path.to_owned(), spare.to_owned());
                self.done.push(Done::Created { path, spare, id });
                Ok(())
            }
            Err(Errno::EXIST) => Err(PatchError::Exists { path: path.to_owned() }),
            Err(errno) => Err(PatchError::io(path, "put the new file in place", errno)),
        }
    }

    fn replace(&mut self, path: &str, names: &Named, old: &Found) -> Result<(), PatchError> {
        let (spare, name) = (names.spare.as_str(), path::split(path).1);
        let directory = self.directories.of(path)?;
        match swap::exchange(directory, spare, name) {
            Ok(()) => {
                let (path, spare) = (path.to_owned(), spare.to_owned());
                self.done.push(Done::Replaced { path, spare });
            }
            Err(errno) if swap::is_unsupported(errno) => {
                return self.replace_by_copy(path, names, old);
            }
            Err(Errno::NOENT) => return Err(PatchError::Changed { path: path.to_owned() }),
            Err(errno) => return Err(PatchError::io(path, "replace it", errno)),
        }
        self.check_taken(path, spare, old)
    }

    /// For file systems that cannot exchange two names: the old content is kept as a copy.
    fn replace_by_copy(
        &mut self,
        path: &str,
        names: &Named,
        old: &Found,
    ) -> Result<(), PatchError> {
        let Some(copy) = &names.copy else {
            return Err(PatchError::io(path, "keep a copy of it", Errno::INVAL));
        };
        spare::write(&self.directories, path, copy, &old.to_content())?;
        let directory = self.directories.of(path)?;
        swap::put_over(directory, &names.spare, path::split(path).1)
            .map_err(|errno| PatchError::io(path, "replace it", errno))?;
        self.done.push(Done::Replaced { path: path.to_owned(), spare: copy.clone() });
        Ok(())
    }

    fn remove(&mut self, path: &str, spare: &str, old: &Found) -> Result<(), PatchError> {
        let directory = self.directories.of(path)?;
        match swap::put_over(directory, path::split(path).1, spare) {
            Ok(()) => {
                let (path, spare) = (path.to_owned(), spare.to_owned());
                self.done.push(Done::Removed { path, spare });
            }
            Err(Errno::NOENT) => return Err(PatchError::Changed { path: path.to_owned() }),
            Err(errno) => return Err(PatchError::io(path, "remove it", errno)),
        }
        self.check_taken(path, spare, old)
    }

    /// Whether what was taken away is what was compared: another program may have been quicker.
    fn check_taken(&self, path: &str, spare: &str, old: &Found) -> Result<(), PatchError> {
        match look(self.directories.of(path)?, spare) {
            Ok(stat) if is_untouched(&old.stat, &stat) => Ok(()),
            Ok(_) | Err(_) => Err(PatchError::Changed { path: path.to_owned() }),
        }
    }

    /// Undoes what was done, last first; lists what could not be undone, and where it is kept.
    fn undo(&mut self) -> Vec<String> {
        let mut left = Vec::new();
        while let Some(done) = self.done.pop() {
            let (path, spare) = match &done {
                Done::Created { path, spare, .. }
                | Done::Replaced { path, spare }
                | Done::Removed { path, spare } => (path.clone(), spare.clone()),
            };
            if let Err(error) = self.undo_one(&done) {
                self.spares.keep(&spare);
                let kept = path::shown(&path);
                left.push(format!("{kept} (kept in its directory as {spare}: {error})"));
            }
        }
        left
    }

    fn undo_one(&self, done: &Done) -> Result<(), PatchError> {
        let failed = |path: &str, errno| PatchError::io(path, "put it back", errno);
        match done {
            Done::Created { path, spare, id } => {
                let (directory, name) = (self.directories.of(path)?, path::split(path).1);
                let now = look(directory, name).ok().map(|stat| FileId::of(&stat));
                if now != *id {
                    // Another program's file by now; ours is gone.
                    return Ok(());
                }
                swap::put_over(directory, name, spare).map_err(|errno| failed(path, errno))
            }
            Done::Replaced { path, spare } => {
                let (directory, name) = (self.directories.of(path)?, path::split(path).1);
                swap::exchange(directory, spare, name)
                    .or_else(|_| swap::put_over(directory, spare, name))
                    .map_err(|errno| failed(path, errno))
            }
            Done::Removed { path, spare } => {
                let (directory, name) = (self.directories.of(path)?, path::split(path).1);
                swap::put_where_nothing_is(directory, spare, name)
                    .map_err(|errno| failed(path, errno))
            }
        }
    }
}
