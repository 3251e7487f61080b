//! Ends what a killed server left in the middle: a patch whose files are all in place is kept,
//! any other is undone.
//!
//! Goes by what the files are now, told by inode and content, so it can itself be killed and begin
//! again. Never overwrites and never removes what somebody else changed since: that stays, with
//! what the patch had put aside, and is told.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use rustix::fs::{AtFlags, OFlags, unlinkat};

use super::line::{Begun, CallOf, Does, Facts, Named, RootId};
use super::there::{There, holds, remove_tree, there};
use super::{ENDING, Journal, Record};
use crate::patch::apply::{exchange, put_where_nothing_is, unmake_directories};
use crate::patch::error::PatchError;
use crate::patch::path::list;
use crate::patch::root::{Root, look};
use crate::patch::{halt, path, shown};

/// What became of a patch that was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    pub root: PathBuf,
    /// The files it names, relative to the root.
    pub paths: Vec<String>,
    pub said: Said,
    /// What was left as it is because somebody else changed it, one sentence each.
    pub left: Vec<String>,
    /// Whose it was, if a call of a session's.
    pub call: Option<CallOf>,
}

impl Replayed {
    /// For whoever reads the result of the call.
    pub(super) fn in_words(&self) -> String {
        let named = |path: &String| match self.root == Path::new("/") {
            true => format!("/{path}"),
            false => path.clone(),
        };
        let paths: Vec<String> = self.paths.iter().map(named).collect();
        let edit = format!("The edit it was making ({})", list(&paths));
        let mut words = match &self.said {
            Said::Applied => format!("{edit} is in place as a whole."),
            Said::Undone => format!("{edit} was undone: all is as it was before that edit."),
            Said::Kept { why } => format!("{edit} was cut off and could not be ended: {why}."),
        };
        for left in &self.left {
            words.push_str(&format!(" But {left}."));
        }
        words
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Everything was in place.
    Applied,
    /// Everything is as it was before.
    Undone,
    /// Nothing could be done; the journal stays for the next start.
    Kept { why: String },
}

impl Journal {
    /// Ends every patch that was cut off, and tells the log. To be called before anything else
    /// works on files. Journals of servers that are alive are passed by.
    pub fn replay(&self) -> Vec<Replayed> {
        let mut all = Vec::new();
        let entries = match std::fs::read_dir(self.directory()) {
            Ok(entries) => entries,
            Err(error) => {
                let directory = self.directory().display();
                tracing::warn!(%error, "the journal of patches {directory} cannot be read");
                return all;
            }
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.to_str().is_some_and(|path| path.ends_with(ENDING)));
        paths.sort();
        for path in paths {
            match replay_file(&path) {
                Ok(replayed) => all.extend(replayed),
                Err(error) => {
                    let path = path.display();
                    tracing::warn!(%error, "{path}: a patch was cut off, and its journal is kept");
                }
            }
        }
        let of_calls = all.iter().filter(|replayed| replayed.call.is_some()).cloned();
        let known = self.inner.replayed.lock();
        known.unwrap_or_else(PoisonError::into_inner).extend(of_calls);
        all
    }
}

fn replay_file(path: &Path) -> io::Result<Option<Replayed>> {
    let nofollow = OFlags::NOFOLLOW.bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(nofollow).open(path)?;
    if file.try_lock().is_err() {
        // Its server is alive.
        return Ok(None);
    }
    let record = Record::read(&mut file)?;
    let Some(begun) = &record.begun else {
        // Nothing was begun.
        std::fs::remove_file(path)?;
        return Ok(None);
    };
    let replayed = replay(begun, &record);
    tell(&replayed, path);
    if !matches!(replayed.said, Said::Kept { .. }) {
        halt::point();
        std::fs::remove_file(path)?;
    }
    Ok(Some(replayed))
}

fn tell(replayed: &Replayed, journal: &Path) {
    let (root, paths) = (replayed.root.display(), list(&replayed.paths));
    match &replayed.said {
        Said::Applied => tracing::warn!(%root, paths, "a patch was cut off; all of it is in place"),
        Said::Undone => tracing::warn!(%root, paths, "a patch was cut off; it was undone"),
        Said::Kept { why } => {
            let journal = journal.display();
            tracing::warn!(
                %root, paths, why,
                "a patch was cut off and cannot be ended; if that will not change, remove {journal}"
            );
        }
    }
    for left in &replayed.left {
        tracing::warn!(%root, "{left}");
    }
}

fn replay(begun: &Begun, record: &Record) -> Replayed {
    let paths = begun.steps.iter().map(|named| named.path.clone()).collect();
    let call = begun.call.clone();
    let mut replayed =
        Replayed { root: begun.root.path(), paths, said: Said::Undone, left: Vec::new(), call };
    let root = match open_root(&begun.root) {
        Ok(root) => root,
        Err(why) => {
            replayed.said = Said::Kept { why };
            return replayed;
        }
    };
    let mut ending = Ending { root: &root, left: Vec::new() };
    let steps: Vec<(&Named, &Facts)> = match &record.facts {
        Some(facts) => begun.steps.iter().zip(facts).collect(),
        None => {
            // No file has changed.
            begun.steps.iter().for_each(|named| ending.remove_spares(named));
            unmake_directories(&root, &begun.made);
            return replayed;
        }
    };
    let is_applied = record.done || steps.iter().all(|(named, facts)| ending.is_done(named, facts));
    if is_applied {
        replayed.said = Said::Applied;
        for (named, facts) in &steps {
            ending.tidy_applied(named, facts, record.done);
        }
    } else {
        for (named, facts) in steps.iter().rev() {
            ending.undo(named, facts);
        }
        unmake_directories(&root, &begun.made);
    }
    replayed.left = ending.left;
    replayed
}

/// The root, if it still is the same directory.
fn open_root(id: &RootId) -> Result<Root, String> {
    let wanted = id.path();
    let root = Root::open(&wanted).map_err(|error: PatchError| error.to_string())?;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let is_same_device = root.id().device == id.device || boot.trim() != id.boot;
    if root.path() != wanted || root.id().inode != id.inode || !is_same_device {
        return Err("its directory was removed or replaced".to_owned());
    }
    Ok(root)
}

struct Ending<'r> {
    root: &'r Root,
    left: Vec<String>,
}

impl Ending<'_> {
    /// The directory of a step's file; none where somebody took it away.
    fn directory(&self, named: &Named) -> Option<OwnedFd> {
        self.root.directory(path::split(&named.path).0).ok()
    }

    /// Whether a step's outcome is in place, and nothing of somebody else's was taken away for it.
    fn is_done(&self, named: &Named, facts: &Facts) -> bool {
        let Some(directory) = self.directory(named) else { return false };
        let target = there(&directory, path::split(&named.path).1, facts);
        let spare = there(&directory, &named.spare, facts);
        match named.does {
            Does::Create => target == There::New,
            Does::Replace => target == There::New && matches!(spare, There::Old | There::Nothing),
            Does::Remove => {
                spare == There::Old || (target, spare) == (There::Nothing, There::Nothing)
            }
            // What is begun can only be finished.
            Does::RemoveTree => target != There::Old,
        }
    }

    /// Gives up what was taken away. `is_said`: it was looked at before it was called done.
    fn tidy_applied(&mut self, named: &Named, facts: &Facts, is_said: bool) {
        let Some(directory) = self.directory(named) else { return };
        match (named.does, there(&directory, &named.spare, facts)) {
            (_, There::Nothing) => {}
            (Does::RemoveTree, There::Old) => {
                let spare = CString::new(named.spare.as_str()).unwrap_or_default();
                if remove_tree(&directory, &spare, 0).is_err() {
                    self.leave(named, &named.spare, "could not be deleted entirely");
                }
            }
            (Does::RemoveTree, There::New | There::Other) => {
                self.put_back(&directory, named);
            }
            (_, There::Old | There::New) => self.remove(&directory, &named.spare),
            (_, There::Other) if is_said => self.remove(&directory, &named.spare),
            (_, There::Other) => self.leave(
                named,
                &named.spare,
                "was written while it was put \
                                            aside",
            ),
        }
        if let Some(copy) = &named.copy {
            self.remove(&directory, copy);
        }
    }

    fn undo(&mut self, named: &Named, facts: &Facts) {
        let Some(directory) = self.directory(named) else {
            self.left.push(format!("{}: its directory is gone", shown(&named.path)));
            return;
        };
        let name = path::split(&named.path).1;
        let target = there(&directory, name, facts);
        let spare = there(&directory, &named.spare, facts);
        match named.does {
            Does::Create => self.undo_create(&directory, named, target, spare),
            Does::Replace => self.undo_replace(&directory, named, facts, (target, spare)),
            Does::Remove => self.undo_remove(&directory, named, target, spare),
            Does::RemoveTree => {}
        }
        match (named.does, there(&directory, &named.spare, facts)) {
            // What we wrote ourselves is of no use any more.
            (_, There::New) => self.remove(&directory, &named.spare),
            // It was changed in the very moment in which it was taken away.
            (Does::Create, There::Other) => self.put_back(&directory, named),
            (_, There::Nothing | There::Old | There::Other) => {}
        }
    }

    fn undo_create(&mut self, directory: &OwnedFd, named: &Named, target: There, spare: There) {
        let name = path::split(&named.path).1;
        match (target, spare) {
            // By way of the spare name: what is removed is looked at once more.
            (There::New, There::Nothing) => {
                let _ = put_where_nothing_is(directory, name, &named.spare);
            }
            // Two names of one file, where renaming was done by linking.
            (There::New, There::New) => self.remove(directory, name),
            (There::Other, There::Nothing) => {
                self.left.push(format!("{}: was changed since; it stays", shown(&named.path)));
            }
            (There::New | There::Other | There::Old | There::Nothing, _) => {}
        }
    }

    fn undo_replace(
        &mut self,
        directory: &OwnedFd,
        named: &Named,
        facts: &Facts,
        (target, spare): (There, There),
    ) {
        let name = path::split(&named.path).1;
        let copy = named.copy.as_deref().filter(|copy| look(directory, copy).is_ok());
        match (target, spare) {
            (There::New, There::Old | There::Other) => {
                if exchange(directory, &named.spare, name).is_err() {
                    self.leave(named, &named.spare, "could not be put back");
                }
            }
            (There::New, There::Nothing | There::New) => match copy {
                Some(copy) if holds(directory, copy, facts.old.as_ref()) => {
                    halt::point();
                    if rustix::fs::renameat(directory, copy, directory, name).is_err() {
                        self.leave(named, copy, "could not be put back");
                    }
                    return;
                }
                Some(_) | None => {
                    let path = shown(&named.path);
                    self.left.push(format!("{path}: its old content is gone; the new one stays"));
                }
            },
            (There::Other | There::Nothing, There::Old | There::Other) => {
                self.leave(named, &named.spare, "was changed since");
                return;
            }
            (There::Other | There::Nothing, There::Nothing) if copy.is_some() => {
                self.leave(named, copy.unwrap_or_default(), "was changed since");
                return;
            }
            (There::Old | There::Other | There::Nothing, _) => {}
        }
        if let Some(copy) = copy {
            self.remove(directory, copy);
        }
    }

    fn undo_remove(&mut self, directory: &OwnedFd, named: &Named, target: There, spare: There) {
        match (target, spare) {
            (There::Nothing, There::Old | There::Other) => self.put_back(directory, named),
            // Two names of one file, where renaming was done by linking.
            (There::Old, There::Old) => self.remove(directory, &named.spare),
            (There::Old | There::New | There::Other, There::Old | There::Other) => {
                self.leave(named, &named.spare, "was made anew since");
            }
            (_, There::Nothing | There::New) => {}
        }
    }

    fn put_back(&mut self, directory: &OwnedFd, named: &Named) {
        if put_where_nothing_is(directory, &named.spare, path::split(&named.path).1).is_err() {
            self.leave(named, &named.spare, "could not be put back");
        }
    }

    /// Before any file changed, whatever is under our names is ours.
    fn remove_spares(&self, named: &Named) {
        let Some(directory) = self.directory(named) else { return };
        self.remove(&directory, &named.spare);
        if let Some(copy) = &named.copy {
            self.remove(&directory, copy);
        }
    }

    fn remove(&self, directory: &OwnedFd, name: &str) {
        halt::point();
        let _ = unlinkat(directory, name, AtFlags::empty());
        halt::point();
    }

    fn leave(&mut self, named: &Named, spare: &str, why: &str) {
        let path = shown(&named.path);
        self.left.push(format!("{path}: {why}; what it was is kept beside it as {spare}"));
    }
}
