//! Takes file edits back, where a person asks for it: all files, or none.
//!
//! Goes the way that the tools go: by real paths below a root and through no link, never to the
//! server's own files, never past a rule that denies. Leaves a file alone that is not as the edits
//! left it, and all others with it. Blocks.

use std::collections::{BTreeSet, HashMap, HashSet};

use bytes::Bytes;
use polyloop_session::Text;
use polyloop_session::event::Skipped;
use polyloop_session::item::{FileChange, Operation};
use polyloop_session::undo::Done;
use rustix::io::Errno;

use super::files::{Links, Names, Target, file_change, keep};
use super::{Place, Touches};
use crate::patch::{
    Journal, PatchError, Plan, Revert, Reverted, Root, Was, make_directory, plan_reverts,
    remove_directory,
};

const BY_COMMAND: &str = "changed by a command; what commands do is not taken back";
const NOT_KEPT: &str = "its content before the edit was not kept";
const LATER_STAYS: &str = "a later change of it is not taken back";
const NOT_EMPTY: &str = "a directory that is not empty";

/// What one entry of the log tells of files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub files: Vec<FileChange>,
    pub made: Vec<Text>,
    pub removed: Vec<Text>,
}

/// The way back, not gone yet.
pub(crate) struct Prepared {
    root: Root,
    plan: Option<Plan>,
    paths: Paths,
    /// What going it will do, and what must be kept first so that it can be taken back too.
    pub touches: Touches,
    skipped: Vec<Skipped>,
    make: Vec<String>,
    /// Innermost first.
    remove: Vec<String>,
}

/// As the log has them, by how the root has them.
type Paths = HashMap<String, Text>;

/// Paths, and what is in the way there.
pub(crate) type Conflicts = Vec<Skipped>;

/// `told` is newest first; `contents` are those that `before_blob` names.
pub(crate) fn prepare(
    place: &Place,
    told: &[Told],
    contents: &HashMap<Text, Bytes>,
) -> Result<Prepared, Conflicts> {
    let mut way = Way { stuck: HashSet::new(), skipped: Vec::new(), contents };
    let mut wanted: Vec<(&FileChange, Was)> = Vec::new();
    for file in told.iter().flat_map(|told| told.files.iter().rev()) {
        wanted.extend(way.before(file).map(|was| (file, was)));
    }
    let Way { skipped, .. } = way;
    let dirs = told.iter().flat_map(|told| told.made.iter().chain(&told.removed));
    let resolved = Resolved::new(place, wanted.iter().map(|(file, _)| *file), dirs)?;
    let reverts: Vec<Revert> = wanted
        .into_iter()
        .map(|(file, before)| Revert {
            path: resolved.relative(&file.path),
            from: match &file.operation {
                Operation::Move { from } => Some(resolved.relative(from)),
                Operation::Create | Operation::Update | Operation::Delete => None,
            },
            before,
            after: file.after.as_ref().map(|hash| hash.to_string()),
        })
        .collect();
    let paths = resolved.paths();
    let plan = match plan_reverts(&resolved.root, &reverts) {
        Ok(Reverted::Already) => None,
        Ok(Reverted::Plan(plan)) => Some(plan),
        Ok(Reverted::Conflicts(conflicts)) => {
            let told = |(path, reason): (String, String)| Skipped {
                path: shown(&paths, &path),
                reason: reason.into(),
            };
            return Err(conflicts.into_iter().map(told).collect());
        }
        Err(error) => return Err(vec![failed(place, &paths, &error)]),
    };
    let touches = plan.as_ref().map(|plan| touches(plan, &paths)).unwrap_or_default();
    let relative = |dir: &Text| resolved.relative(dir);
    let make = told.iter().flat_map(|told| &told.removed).map(relative).collect();
    let remove = told.iter().flat_map(|told| told.made.iter().rev()).map(relative).collect();
    Ok(Prepared { root: resolved.root.clone(), plan, paths, touches, skipped, make, remove })
}

impl Prepared {
    /// Nothing would change, and something stays that was to be taken back.
    pub(crate) fn is_in_vain(&self) -> bool {
        let nothing = self.plan.is_none() && self.make.is_empty() && self.remove.is_empty();
        nothing && !self.skipped.is_empty()
    }

    pub(crate) fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Goes the way back: files first, all or none; then directories, each if it can be.
    pub(crate) fn apply(self, place: &Place, journal: Option<&Journal>) -> Result<Done, Conflicts> {
        let Prepared { root, plan, paths, touches, skipped, make, remove } = self;
        let Touches { files, made, .. } = touches;
        let mut done = Done { files, made, removed: Vec::new(), skipped };
        if let Some(plan) = plan {
            plan.apply(journal).map_err(|error| vec![failed(place, &paths, &error)])?;
        }
        for dir in make {
            match make_directory(&root, &dir) {
                Ok(new) => done.made.extend(new.iter().map(|dir| shown(&paths, dir))),
                Err(error) => done.skipped.push(failed(place, &paths, &error)),
            }
        }
        for dir in remove {
            let path = shown(&paths, &dir);
            match remove_directory(&root, &dir) {
                Ok(()) => done.removed.insert(0, path),
                Err(Errno::NOENT) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => {
                    done.skipped.push(Skipped { path, reason: NOT_EMPTY.into() });
                }
                Err(errno) => {
                    done.skipped.push(Skipped { path, reason: errno.to_string().into() });
                }
            }
        }
        Ok(done)
    }
}

/// Finds out what can be taken back at all.
struct Way<'a> {
    /// Paths of which a later change stays.
    stuck: HashSet<Text>,
    skipped: Vec<Skipped>,
    contents: &'a HashMap<Text, Bytes>,
}

impl Way<'_> {
    /// What was there; nothing where the change stays, for a reason that is noted.
    fn before(&mut self, file: &FileChange) -> Option<Was> {
        let from = match &file.operation {
            Operation::Move { from } => Some(from),
            Operation::Create | Operation::Update | Operation::Delete => None,
        };
        let is_stuck = |path: &Text| self.stuck.contains(path);
        let found = match is_stuck(&file.path) || from.is_some_and(is_stuck) {
            true => Err(LATER_STAYS),
            false => self.was(file),
        };
        found.map_err(|reason| self.skip(file, from, reason)).ok()
    }

    fn skip(&mut self, file: &FileChange, from: Option<&Text>, reason: &str) {
        self.stuck.extend(from.cloned());
        if self.stuck.insert(file.path.clone()) {
            self.skipped.push(Skipped { path: file.path.clone(), reason: reason.into() });
        }
    }

    fn was(&self, file: &FileChange) -> Result<Was, &'static str> {
        let FileChange { operation, before, before_blob, after, mode, diff, .. } = file;
        let kept = match (before, before_blob) {
            (Some(before), _) => Some(Bytes::copy_from_slice(before.as_bytes())),
            (None, Some(hash)) => Some(self.contents.get(hash).cloned().ok_or(NOT_KEPT)?),
            (None, None) => None,
        };
        let is_command = kept.is_none() && after.is_none() && diff.is_none();
        let file = kept.map(|bytes| Was::File { bytes, mode: *mode });
        match operation {
            Operation::Create | Operation::Update if is_command => Err(BY_COMMAND),
            _ if after.is_none() && *operation != Operation::Delete => Err(NOT_KEPT),
            Operation::Create => Ok(Was::Nothing),
            Operation::Update | Operation::Delete => file.ok_or(NOT_KEPT),
            // Moved and changed in one.
            Operation::Move { .. } if diff.as_ref().is_some_and(|diff| diff.contains("\n@@ ")) => {
                file.ok_or(NOT_KEPT)
            }
            Operation::Move { .. } => Ok(file.unwrap_or(Was::Moved)),
        }
    }
}

/// Where paths of the log lead, all below one root.
struct Resolved {
    root: Root,
    by_path: HashMap<Text, String>,
}

impl Resolved {
    fn new<'a>(
        place: &Place,
        files: impl Iterator<Item = &'a FileChange>,
        dirs: impl Iterator<Item = &'a Text>,
    ) -> Result<Resolved, Conflicts> {
        let mut wanted: BTreeSet<(&Text, bool)> = BTreeSet::new();
        for file in files {
            wanted.insert((&file.path, false));
            if let Operation::Move { from } = &file.operation {
                wanted.insert((from, false));
            }
        }
        wanted.extend(dirs.map(|dir| (dir, true)));
        let (mut found, mut conflicts) = (Vec::new(), Vec::new());
        for (path, is_dir) in wanted {
            let names = if is_dir { Names::Any } else { Names::File };
            match find(path, place, names) {
                Ok(target) => found.push((path.clone(), target)),
                Err(reason) => {
                    conflicts.push(Skipped { path: path.clone(), reason: reason.into() });
                }
            }
        }
        if !conflicts.is_empty() {
            return Err(conflicts);
        }
        let outside = found.iter().any(|(_, target)| target.outside);
        let root = match outside {
            true => Root::open(std::path::Path::new("/")),
            false => place.root(),
        };
        let root = root.map_err(|error| vec![failed(place, &Paths::new(), &error)])?;
        let relative = |target: &Target| match outside {
            true => target.real.to_string_lossy().trim_start_matches('/').to_owned(),
            false => target.relative.clone(),
        };
        let by_path = found.iter().map(|(path, target)| (path.clone(), relative(target)));
        Ok(Resolved { by_path: by_path.collect(), root })
    }

    fn relative(&self, path: &Text) -> String {
        self.by_path.get(path).cloned().unwrap_or_else(|| path.to_string())
    }

    fn paths(&self) -> Paths {
        self.by_path.iter().map(|(path, relative)| (relative.clone(), path.clone())).collect()
    }
}

fn find(path: &str, place: &Place, names: Names) -> Result<Target, String> {
    let target = Target::find(path, place, names, Links::Refuse)?;
    match target.denied() {
        Some(line) => Err(format!("a rule of this server denies it: {line}")),
        None => Ok(target),
    }
}

fn touches(plan: &Plan, paths: &Paths) -> Touches {
    let mut touches = Touches::default();
    for change in plan.changes() {
        let mut file = file_change(&shown(paths, &change.path), change);
        file.diff = None;
        if let Some(before) = &change.before {
            keep(&mut file, &mut touches.contents, before);
        }
        file.mode = change.before_mode.filter(|_| file.operation == Operation::Delete);
        touches.files.push(file);
    }
    touches.made = plan.missing_directories().iter().map(|dir| shown(paths, dir)).collect();
    touches
}

fn shown(paths: &Paths, relative: &str) -> Text {
    paths.get(relative).cloned().unwrap_or_else(|| relative.into())
}

fn failed(place: &Place, paths: &Paths, error: &PatchError) -> Skipped {
    let path = match error {
        PatchError::Changed { path } | PatchError::Unfit { path, .. } => shown(paths, path),
        PatchError::Exists { path } | PatchError::Io { path, .. } => shown(paths, path),
        _ => place.cwd.display().to_string().into(),
    };
    Skipped { path, reason: error.to_string().into() }
}
