//! Computes what a patch would make of the files it names.
//!
//! Reads, never writes. The sections are played in order on a picture of the files; what differs
//! between the picture and the disk at the end becomes the steps that `apply.rs` performs.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::apply;
use super::edit::edit;
use super::error::PatchError;
use super::journal::{Fact, Facts, Journal};
use super::matching::Budget;
use super::parse::{Action, Hunk, Patch, Section};
use super::report::{Change, Operation, Touched, touched};
use super::root::{FileId, Found, Root};
use super::{MATCH_STEPS_MAX, PLAN_BYTES_MAX, path};

mod content;
mod revert;

pub(crate) use content::plan_content;
pub(crate) use revert::{Revert, Reverted, Was, plan_reverts};

/// The outcome of a patch, computed but not yet written.
#[derive(Debug)]
pub struct Plan {
    root: Root,
    touched: Vec<Touched>,
    changes: Vec<Change>,
    steps: Vec<Step>,
}

/// One file to write or remove.
#[derive(Debug)]
pub(super) enum Step {
    Create { path: String, content: Content },
    Replace { path: String, content: Content, old: Found },
    Remove { path: String, old: Found },
}

impl Step {
    /// The path of a file that is new.
    pub(super) fn created(&self) -> Option<&str> {
        match self {
            Step::Create { path, .. } => Some(path),
            Step::Replace { .. } | Step::Remove { .. } => None,
        }
    }

    /// What it takes away and puts in place; `made` is the file that holds the new content.
    pub(super) fn facts(&self, made: Option<FileId>) -> Facts {
        let fact = |bytes: &Bytes, id: FileId| Fact::new(bytes, id.inode);
        let (old, content) = match self {
            Step::Create { content, .. } => (None, Some(content)),
            Step::Replace { content, old, .. } => (Some(old), Some(content)),
            Step::Remove { old, .. } => (Some(old), None),
        };
        let old = old.map(|old| fact(&old.bytes, FileId::of(&old.stat)));
        let new = content.zip(made).map(|(content, made)| fact(&content.bytes, made));
        Facts { old, new }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) bytes: Bytes,
    /// The file whose mode and owner it takes; a new file has the process's own.
    pub(super) like: Option<Found>,
    /// The mode of a file that was gone and comes back.
    pub(super) mode: Option<u32>,
}

impl Content {
    fn is_as(&self, file: &Found) -> bool {
        let mode = self.like.as_ref().map(Found::mode);
        self.bytes == file.bytes && mode == Some(file.mode())
    }
}

/// Reads what the patch needs and computes the outcome; nothing is written.
pub fn plan(root: &Root, patch: &Patch) -> Result<Plan, PatchError> {
    root.check()?;
    let mut picture = Picture::new(root);
    for section in &patch.sections {
        picture.play(section)?;
    }
    picture.into_plan(touched(root, patch))
}

impl Plan {
    /// Every path the patch names.
    pub fn touched(&self) -> &[Touched] {
        &self.touched
    }

    /// What applying it would do, to show before it is done.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Directories that are not there and will be, outermost first.
    pub(crate) fn missing_directories(&self) -> Vec<String> {
        apply::missing_directories(&self.root, self.steps.iter().filter_map(Step::created))
    }

    /// Writes the outcome: all files, or none. With a journal that also holds if the server is
    /// killed meanwhile.
    pub fn apply(self, journal: Option<&Journal>) -> Result<Vec<Change>, PatchError> {
        apply::apply(&self.root, &self.steps, journal)?;
        Ok(self.changes)
    }
}

/// A file named by the patch.
struct Pictured {
    disk: Option<Found>,
    now: Option<Content>,
    /// It is there because this patch put it there, where it had left nothing.
    is_made_here: bool,
}

impl Pictured {
    fn into_step(self, path: String) -> Option<Step> {
        match (self.disk, self.now) {
            (None, None) => None,
            (None, Some(content)) => Some(Step::Create { path, content }),
            (Some(old), None) => Some(Step::Remove { path, old }),
            (Some(old), Some(content)) if content.is_as(&old) => None,
            (Some(old), Some(content)) => Some(Step::Replace { path, content, old }),
        }
    }
}

struct Picture<'r> {
    root: &'r Root,
    files: BTreeMap<String, Pictured>,
    changes: Vec<Change>,
    budget: Budget,
    bytes: usize,
}

impl<'r> Picture<'r> {
    fn new(root: &'r Root) -> Self {
        Self {
            root,
            files: BTreeMap::new(),
            changes: Vec::new(),
            budget: Budget::new(MATCH_STEPS_MAX),
            bytes: 0,
        }
    }

    fn into_plan(self, touched: Vec<Touched>) -> Result<Plan, PatchError> {
        let Picture { root, files, mut changes, .. } = self;
        check_directories(&files)?;
        changes.retain(|change| {
            change.operation != Operation::Update || change.before != change.after
        });
        let steps: Vec<Step> =
            files.into_iter().filter_map(|(path, file)| file.into_step(path)).collect();
        if steps.is_empty() {
            return Err(PatchError::Unchanged);
        }
        Ok(Plan { root: root.clone(), touched, changes, steps })
    }

    fn play(&mut self, section: &Section) -> Result<(), PatchError> {
        let path = self.root.relative(&section.path)?;
        match &section.action {
            Action::Add { content } => self.add(path, content.clone()),
            Action::Delete => self.delete(&path),
            Action::Update { move_to, hunks } => {
                let target = match move_to {
                    Some(named) => Some(self.root.relative(named)?).filter(|to| *to != path),
                    None => None,
                };
                self.update(path, target, hunks)
            }
        }
    }

    fn add(&mut self, path: String, bytes: Bytes) -> Result<(), PatchError> {
        self.hold(bytes.len())?;
        let file = self.vacant(&path)?;
        // Deleted and added again is a new content of the old file.
        let before = file.disk.clone().filter(|_| !file.is_made_here);
        file.is_made_here = before.is_none();
        file.now = Some(Content { bytes: bytes.clone(), like: before, mode: None });
        self.record(path, Operation::Create, None, Some(bytes));
        Ok(())
    }

    fn delete(&mut self, path: &str) -> Result<(), PatchError> {
        let file = self.occupied(path)?;
        if file.is_made_here {
            return Err(PatchError::conflict(path, "this patch both makes and deletes it"));
        }
        let before = file.now.take();
        self.record(path.to_owned(), Operation::Delete, before, None);
        Ok(())
    }

    fn update(
        &mut self,
        path: String,
        target: Option<String>,
        hunks: &[Hunk],
    ) -> Result<(), PatchError> {
        let file = self.occupied(&path)?;
        if target.is_some() && file.is_made_here {
            return Err(PatchError::conflict(&path, "this patch both makes and moves it"));
        }
        let Some(before) = file.now.clone() else {
            return Err(PatchError::Missing { path });
        };
        let bytes = match hunks {
            [] => before.bytes.clone(),
            hunks => Bytes::from(edit(&path, &before.bytes, hunks, &mut self.budget)?),
        };
        self.hold(bytes.len())?;
        let after = Content { bytes: bytes.clone(), like: before.like.clone(), mode: None };
        let Some(target) = target else {
            self.occupied(&path)?.now = Some(after);
            self.record(path, Operation::Update, Some(before), Some(bytes));
            return Ok(());
        };
        let there = self.vacant(&target)?;
        there.now = Some(after);
        there.is_made_here = true;
        self.occupied(&path)?.now = None;
        self.record(target, Operation::Move { from: path }, Some(before), Some(bytes));
        Ok(())
    }

    /// The file at a path, which must be there and writable.
    fn occupied(&mut self, path: &str) -> Result<&mut Pictured, PatchError> {
        let file = self.look(path)?;
        if file.now.is_none() {
            return Err(match file.disk {
                None => PatchError::Missing { path: path.to_owned() },
                Some(_) => PatchError::conflict(path, "this patch has removed it already"),
            });
        }
        if let Some(disk) = file.disk.as_ref().filter(|disk| !disk.is_writable) {
            let mode = disk.mode();
            let reason = format!("read-only (mode {mode:04o}); make it writable to edit it");
            return Err(PatchError::unfit(path, reason));
        }
        Ok(file)
    }

    /// The path of a file that must not be there.
    fn vacant(&mut self, path: &str) -> Result<&mut Pictured, PatchError> {
        let file = self.look(path)?;
        if file.now.is_some() {
            return Err(if file.is_made_here {
                PatchError::conflict(path, "this patch makes it twice")
            } else {
                PatchError::Exists { path: path.to_owned() }
            });
        }
        Ok(file)
    }

    fn look(&mut self, path: &str) -> Result<&mut Pictured, PatchError> {
        if !self.files.contains_key(path) {
            let disk = self.root.read(path)?;
            self.hold(disk.as_ref().map_or(0, |found| found.bytes.len()))?;
            let now = disk.as_ref().map(Found::to_content);
            let file = Pictured { disk, now, is_made_here: false };
            self.files.insert(path.to_owned(), file);
        }
        self.files.get_mut(path).ok_or_else(|| PatchError::Missing { path: path.to_owned() })
    }

    fn hold(&mut self, bytes: usize) -> Result<(), PatchError> {
        self.bytes += bytes;
        PatchError::limit("the bytes of all files before and after", self.bytes, PLAN_BYTES_MAX)
    }

    /// Adds to the list of changes; what happened to one file in two sections becomes one change.
    fn record(
        &mut self,
        path: String,
        operation: Operation,
        before: Option<Content>,
        after: Option<Bytes>,
    ) {
        let earlier = self.changes.iter().rposition(|change| change.path == path);
        if let Some(index) = earlier
            && let Some(change) = self.changes.get_mut(index)
            && let Some(merged) = merged(&change.operation, &operation)
        {
            change.operation = merged;
            change.after = after;
            return;
        }
        let before_mode =
            before.as_ref().and_then(|content| content.like.as_ref()).map(Found::mode);
        let before = before.map(|content| content.bytes);
        self.changes.push(Change { path, operation, before, before_mode, after });
    }
}

/// What two changes of one file, one after the other, come to; nothing if they stay two.
fn merged(first: &Operation, second: &Operation) -> Option<Operation> {
    use Operation::{Create, Delete, Move, Update};
    match (first, second) {
        (Create | Update | Move { .. }, Update) => Some(first.clone()),
        (Update, Delete) => Some(Delete),
        (Delete, Create) => Some(Update),
        (Create | Update | Move { .. }, Create | Move { .. })
        | (Create | Delete | Move { .. }, Delete)
        | (Delete, Update | Move { .. }) => None,
    }
}

/// No new file may lie below another file of the patch.
fn check_directories(files: &BTreeMap<String, Pictured>) -> Result<(), PatchError> {
    for (path, _) in files.iter().filter(|(_, file)| file.now.is_some()) {
        let mut above = path::split(path).0;
        while !above.is_empty() {
            if files.get(above).is_some_and(|file| file.now.is_some()) {
                let message = "this patch makes it a file and a directory";
                return Err(PatchError::conflict(above, message));
            }
            above = path::split(above).0;
        }
    }
    Ok(())
}
