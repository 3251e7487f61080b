//! Plans the way back: files become what they were before a list of changes.
//!
//! The same picture, limits and steps as a patch, so all files or none, also if the server is
//! killed. A file that is neither what the changes left nor what it was before them is a conflict.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::super::STEPS_MAX;
use super::super::error::PatchError;
use super::super::report::{Change, Operation};
use super::super::root::{Found, Root};
use super::{Content, Picture, Plan, Step};

/// One change of one file, to be taken back.
#[derive(Clone, Debug)]
pub(crate) struct Revert {
    /// Relative to the root.
    pub path: String,
    /// Where it was before, if it was moved.
    pub from: Option<String>,
    pub before: Was,
    /// SHA-256 of the content after, in hex; nothing if it was deleted.
    pub after: Option<String>,
}

/// What was there before a change.
#[derive(Clone, Debug)]
pub(crate) enum Was {
    Nothing,
    File {
        bytes: Bytes,
        /// Where the file is gone.
        mode: Option<u32>,
    },
    /// The same content, under another name.
    Moved,
}

#[derive(Debug)]
pub(crate) enum Reverted {
    /// All is as it was already.
    Already,
    Plan(Plan),
    /// Paths, and what is in the way.
    Conflicts(Vec<(String, String)>),
}

const CHANGED: &str = "has changed since";
const GONE: &str = "is gone since";
const THERE: &str = "something else is there since";

/// `reverts` are taken back in their order, so the newest comes first.
pub(crate) fn plan_reverts(root: &Root, reverts: &[Revert]) -> Result<Reverted, PatchError> {
    root.check()?;
    let mut picture = Picture::new(root);
    if picture.is_back(reverts) {
        return Ok(Reverted::Already);
    }
    let back = picture.back_alone(reverts);
    let mut conflicts: Vec<(String, String)> = Vec::new();
    for revert in reverts.iter().filter(|revert| !back.contains(revert.path.as_str())) {
        let in_the_way = match picture.take_back(revert) {
            Ok(in_the_way) => in_the_way,
            Err(PatchError::Unfit { path, reason }) => Some((path, reason)),
            Err(error @ (PatchError::Link { .. } | PatchError::Outside { .. })) => {
                Some((revert.path.clone(), error.to_string()))
            }
            Err(error) => return Err(error),
        };
        let known =
            |(path, _): &&(String, String)| conflicts.iter().any(|(other, _)| other == path);
        if let Some(conflict) = in_the_way.as_ref().filter(|new| !known(new)).cloned() {
            conflicts.push(conflict);
        }
    }
    if !conflicts.is_empty() {
        return Ok(Reverted::Conflicts(conflicts));
    }
    let (mut changes, mut steps) = (Vec::new(), Vec::new());
    for (path, file) in std::mem::take(&mut picture.files) {
        let Some(step) = file.into_step(path) else { continue };
        changes.push(step.change());
        steps.push(step);
    }
    PatchError::limit("the files to be taken back", steps.len(), STEPS_MAX)?;
    match steps.is_empty() {
        true => Ok(Reverted::Already),
        false => {
            Ok(Reverted::Plan(Plan { root: root.clone(), touched: Vec::new(), changes, steps }))
        }
    }
}

impl Step {
    fn change(&self) -> Change {
        let mode = |found: &Found| Some(found.mode());
        match self {
            Step::Create { path, content } => Change {
                path: path.clone(),
                operation: Operation::Create,
                before: None,
                before_mode: None,
                after: Some(content.bytes.clone()),
            },
            Step::Replace { path, content, old } => Change {
                path: path.clone(),
                operation: Operation::Update,
                before: Some(old.bytes.clone()),
                before_mode: mode(old),
                after: Some(content.bytes.clone()),
            },
            Step::Remove { path, old } => Change {
                path: path.clone(),
                operation: Operation::Delete,
                before: Some(old.bytes.clone()),
                before_mode: mode(old),
                after: None,
            },
        }
    }
}

fn is(content: &Content, hash: &str) -> bool {
    format!("{:x}", Sha256::digest(&content.bytes)) == hash
}

impl Picture<'_> {
    /// Whether all is as it was before the oldest of the changes: somebody, or a server that was
    /// killed before it could say so, took them back.
    fn is_back(&mut self, reverts: &[Revert]) -> bool {
        let mut first: BTreeMap<&str, Option<String>> = BTreeMap::new();
        for Revert { path, from, before, after } in reverts {
            let hash = match before {
                Was::Nothing => None,
                Was::File { bytes, .. } => Some(format!("{:x}", Sha256::digest(bytes))),
                Was::Moved => after.clone(),
            };
            first.insert(path, None);
            first.insert(from.as_ref().unwrap_or(path), hash);
        }
        for (path, hash) in first {
            // What cannot be looked at is told when it is taken back.
            let Ok(now) = self.pictured(path) else { return false };
            let same = match (&now, &hash) {
                (None, None) => true,
                (Some(now), Some(hash)) => is(now, hash),
                (None, Some(_)) | (Some(_), None) => false,
            };
            if !same {
                return false;
            }
        }
        true
    }

    /// Files that were edited where they are, and that somebody made again what they were before
    /// all of it.
    fn back_alone<'r>(&mut self, reverts: &'r [Revert]) -> BTreeSet<&'r str> {
        let moves = reverts.iter().filter(|revert| revert.from.is_some());
        let moved: BTreeSet<&str> = moves
            .flat_map(|revert| [Some(revert.path.as_str()), revert.from.as_deref()])
            .flatten()
            .collect();
        let mut alone: BTreeMap<&str, Vec<Revert>> = BTreeMap::new();
        for revert in reverts.iter().filter(|revert| !moved.contains(revert.path.as_str())) {
            alone.entry(&revert.path).or_default().push(revert.clone());
        }
        alone.retain(|_, reverts| self.is_back(reverts));
        alone.into_keys().collect()
    }

    /// What is in the way, if anything is.
    fn take_back(&mut self, revert: &Revert) -> Result<Option<(String, String)>, PatchError> {
        let Revert { path, from, before, after } = revert;
        let conflict = |path: &str, why: &str| Ok(Some((path.to_owned(), why.to_owned())));
        let now = self.pictured(path)?;
        let there = match from {
            Some(from) => self.pictured(from)?,
            None => None,
        };
        let left = match after {
            // It was deleted: there should be nothing.
            None => match (now, before) {
                (None, _) => None,
                (Some(now), Was::File { bytes, .. }) if now.bytes == *bytes => return Ok(None),
                (Some(_), _) => return conflict(path, THERE),
            },
            Some(hash) => match now {
                Some(now) if is(&now, hash) => Some(now),
                Some(now) => match before {
                    Was::File { bytes, .. } if from.is_none() && now.bytes == *bytes => {
                        return Ok(None);
                    }
                    Was::File { .. } | Was::Nothing | Was::Moved => return conflict(path, CHANGED),
                },
                None => {
                    let is_back = match (from, before, &there) {
                        (None, Was::Nothing, _) => true,
                        (Some(_), Was::Moved, Some(there)) => is(there, hash),
                        (Some(_), Was::File { bytes, .. }, Some(there)) => there.bytes == *bytes,
                        _ => false,
                    };
                    return if is_back { Ok(None) } else { conflict(path, GONE) };
                }
            },
        };
        if there.is_some() {
            return conflict(from.as_deref().unwrap_or(path), THERE);
        }
        let like = left.as_ref().and_then(|left| left.like.clone());
        let back = match before {
            Was::Nothing => None,
            Was::Moved => left,
            Was::File { bytes, mode } => {
                self.hold(bytes.len())?;
                let mode = mode.filter(|_| like.is_none());
                Some(Content { bytes: bytes.clone(), like, mode })
            }
        };
        if after.is_some() {
            // Read-only files are left alone, as by every edit.
            self.occupied(path)?.now = None;
        }
        let place = from.as_deref().unwrap_or(path);
        self.look(place)?.now = back;
        Ok(None)
    }

    fn pictured(&mut self, path: &str) -> Result<Option<Content>, PatchError> {
        Ok(self.look(path)?.now.clone())
    }
}
