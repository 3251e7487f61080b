//! Takes file edits back, where a person asks for it: all files, or none.
//!
//! Goes the way that the tools go: by real paths below a root and through no link, never to the
//! server's own files, never past a rule that denies. Leaves a file alone that is not as the edits
//! left it, and all others with it; so does what cannot be taken back because it was not kept.
//! Blocks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use polyloop_session::Text;
use polyloop_session::event::Skipped;
use polyloop_session::item::{FileChange, Operation};
use polyloop_session::undo::Done;

use super::files::{file_change, keep, read_content};
use super::{Place, Touches};
use crate::patch::{
    Journal, PatchError, Plan, Revert, Reverted, Was, missing_directories, plan_reverts,
};

mod ends;
mod resolve;

use resolve::{Resolved, Wanted};

const BY_COMMAND: &str = "changed by a command; what commands do is not taken back";
const NOT_KEPT: &str =
    "its content before the edit was not kept, so this edit cannot be taken back";
const CHANGED: &str = "has changed since";
const THERE: &str = "something else is there since";

/// What one entry of the log tells of files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub files: Vec<FileChange>,
    pub made: Vec<Text>,
    pub removed: Vec<Text>,
    /// A tool of ours said it; otherwise it may be what a command did.
    pub own: bool,
}

/// The way back, not gone yet.
pub(crate) struct Prepared {
    resolved: Resolved,
    plan: Option<Plan>,
    /// What going it will do, and what must be kept first so that it can be taken back too.
    pub touches: Touches,
    skipped: Vec<Skipped>,
}

/// Paths, and what is in the way there.
pub(crate) type Conflicts = Vec<Skipped>;

/// `told` is newest first; `contents` are those that `before_blob` names.
pub(crate) fn prepare(
    place: &Place,
    told: &[Told],
    contents: &HashMap<Text, Bytes>,
) -> Result<Prepared, Conflicts> {
    let way = Way::of(told, contents)?;
    let mut wanted = Wanted::default();
    wanted.files(way.files.iter().map(|(file, _)| *file));
    wanted.links(way.links.keys().copied());
    wanted.directories(way.directories.keys().copied());
    let resolved = Resolved::new(place, wanted)?;
    let plan = match plan_reverts(&resolved.root, &reverts(way.files, &resolved)) {
        Ok(Reverted::Already) => None,
        Ok(Reverted::Plan(plan)) => Some(plan),
        Ok(Reverted::Conflicts(conflicts)) => {
            let told = |(path, reason): (String, String)| Skipped {
                path: resolved.shown(&path),
                reason: reason.into(),
            };
            return Err(conflicts.into_iter().map(told).collect());
        }
        Err(error) => return Err(vec![failed(place, &resolved, &error)]),
    };
    let mut touches = plan.as_ref().map(|plan| touches(plan, &resolved)).unwrap_or_default();
    touches.files.extend(links(&way.links, &resolved)?);
    directories(&way.directories, &resolved, &mut touches);
    Ok(Prepared { resolved, plan, touches, skipped: way.skipped })
}

impl Prepared {
    /// All is as it was already.
    pub(crate) fn does_nothing(&self) -> bool {
        let Touches { files, made, removed, .. } = &self.touches;
        files.is_empty() && made.is_empty() && removed.is_empty()
    }

    /// Nothing would change, and something stays that was to be taken back.
    pub(crate) fn is_in_vain(&self) -> bool {
        self.does_nothing() && !self.skipped.is_empty()
    }

    pub(crate) fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// What is to be done.
    pub(crate) fn wanted(&self) -> Done {
        let Touches { files, made, removed, .. } = self.touches.clone();
        Done { files, made, removed, skipped: self.skipped.clone() }
    }

    /// Goes the way back: files first, all or none; then links and directories, each if it can be.
    pub(crate) fn apply(self, place: &Place, journal: Option<&Journal>) -> Result<Done, Conflicts> {
        let wanted = self.wanted();
        if let Some(plan) = self.plan {
            plan.apply(journal).map_err(|error| vec![failed(place, &self.resolved, &error)])?;
        }
        Ok(ends::finish(&self.resolved, wanted))
    }
}

/// What became of one that was cut off, and is ended now if its files were taken back: what was
/// done, or nothing where they were not.
pub(crate) fn take_up(place: &Place, wanted: &Done) -> Result<Option<Done>, Conflicts> {
    let (links, files): (Vec<&FileChange>, Vec<&FileChange>) =
        wanted.files.iter().partition(|file| file.link.is_some());
    let mut paths = Wanted::default();
    paths.files(files.iter().copied());
    paths.links(links.iter().map(|file| &file.path));
    paths.directories(wanted.made.iter().chain(&wanted.removed));
    let resolved = Resolved::new(place, paths)?;
    let is_back = |file: &&&FileChange| ends::is_done(&resolved, file);
    let back = files.iter().filter(is_back).count();
    // All or none of them were: whatever is otherwise was changed since.
    if back == 0 && !files.is_empty() {
        return Ok(None);
    }
    let mut done = ends::finish(&resolved, wanted.clone());
    let other = files.iter().filter(|file| !is_back(file));
    done.skipped.extend(other.map(|file| skipped(&file.path, CHANGED)));
    Ok(Some(done))
}

/// What is to be there again, as far as the log knows it.
#[derive(Default)]
struct Way<'a> {
    /// Newest first.
    files: Vec<(&'a FileChange, Was)>,
    /// Where a link is to lead; nothing where none is to be.
    links: BTreeMap<&'a Text, Leads<'a>>,
    /// Whether a directory is to be there.
    directories: BTreeMap<&'a Text, bool>,
    skipped: Vec<Skipped>,
}

/// Where a link leads now if nobody changed it, and where it is to lead.
#[derive(Clone, Copy)]
struct Leads<'a> {
    now: Option<&'a Text>,
    back: Option<&'a Text>,
}

impl<'a> Way<'a> {
    fn of(told: &'a [Told], contents: &HashMap<Text, Bytes>) -> Result<Way<'a>, Conflicts> {
        let (mut way, mut lost) = (Way::default(), Vec::new());
        let mut by_command: BTreeSet<&Text> = BTreeSet::new();
        for told in told {
            for file in told.files.iter().rev() {
                if let Some(link) = &file.link {
                    way.link(file, link);
                    continue;
                }
                if !told.own && is_of_command(file) {
                    by_command.insert(&file.path);
                    continue;
                }
                match was(file, contents) {
                    Ok(was) => way.files.push((file, was)),
                    Err(reason) => lost.push(skipped(&file.path, reason)),
                }
            }
            // The oldest is what counts, and comes last.
            way.directories.extend(told.removed.iter().map(|dir| (dir, true)));
            way.directories.extend(told.made.iter().map(|dir| (dir, false)));
        }
        if !lost.is_empty() {
            lost.dedup_by(|one, other| one.path == other.path);
            return Err(lost);
        }
        // Of a file that a tool edited too, what is in it now says whether it can be taken back.
        let edited: BTreeSet<&Text> = way.files.iter().map(|(file, _)| &file.path).collect();
        let left = by_command.difference(&edited);
        way.skipped = left.map(|path| skipped(path, BY_COMMAND)).collect();
        Ok(way)
    }

    fn link(&mut self, file: &'a FileChange, link: &'a Text) {
        let (after, before) = match file.operation {
            Operation::Delete => (None, Some(link)),
            Operation::Create | Operation::Update | Operation::Move { .. } => (Some(link), None),
        };
        let leads = self.links.entry(&file.path).or_insert(Leads { now: after, back: before });
        leads.back = before;
    }
}

fn is_of_command(file: &FileChange) -> bool {
    let FileChange { before, before_blob, after, diff, .. } = file;
    before.is_none() && before_blob.is_none() && after.is_none() && diff.is_none()
}

fn was(file: &FileChange, contents: &HashMap<Text, Bytes>) -> Result<Was, &'static str> {
    let FileChange { operation, before, before_blob, after, mode, diff, .. } = file;
    let kept = match (before, before_blob) {
        (Some(before), _) => Some(Bytes::copy_from_slice(before.as_bytes())),
        (None, Some(hash)) => Some(contents.get(hash).cloned().ok_or(NOT_KEPT)?),
        (None, None) => None,
    };
    let file = kept.map(|bytes| Was::File { bytes, mode: *mode });
    match operation {
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

fn reverts(files: Vec<(&FileChange, Was)>, resolved: &Resolved) -> Vec<Revert> {
    let revert = |(file, before): (&FileChange, Was)| Revert {
        path: resolved.relative(&file.path),
        from: match &file.operation {
            Operation::Move { from } => Some(resolved.relative(from)),
            Operation::Create | Operation::Update | Operation::Delete => None,
        },
        before,
        after: file.after.as_ref().map(|hash| hash.to_string()),
    };
    files.into_iter().map(revert).collect()
}

/// What is to be done about links; those that lead where they should are left out.
fn links(
    wanted: &BTreeMap<&Text, Leads<'_>>,
    resolved: &Resolved,
) -> Result<Vec<FileChange>, Conflicts> {
    let (mut changes, mut conflicts) = (Vec::new(), Vec::new());
    for (path, Leads { now, back }) in wanted {
        let found = ends::Found::at(resolved, path);
        let leads = |to: &Option<&Text>| match (to, &found) {
            (None, ends::Found::Nothing) => true,
            (Some(to), ends::Found::Link(found)) => *found == ***to,
            _ => false,
        };
        let (operation, link) = match (now, back) {
            _ if leads(back) => continue,
            (_, Some(link)) => (Operation::Create, *link),
            (Some(link), None) => (Operation::Delete, *link),
            (None, None) => continue,
        };
        if !leads(now) {
            let why = if now.is_some() { CHANGED } else { THERE };
            conflicts.push(skipped(path, why));
            continue;
        }
        let (path, link) = ((*path).clone(), Some(link.clone()));
        changes.push(FileChange { path, operation, link, ..FileChange::default() });
    }
    if conflicts.is_empty() { Ok(changes) } else { Err(conflicts) }
}

/// Adds the directories that are to be made or removed, outermost first.
fn directories(wanted: &BTreeMap<&Text, bool>, resolved: &Resolved, touches: &mut Touches) {
    let mut made: BTreeSet<Text> = touches.made.drain(..).collect();
    for (dir, there) in wanted {
        let relative = resolved.relative(dir);
        let inside = format!("{relative}/.");
        match there {
            true => {
                let missing = missing_directories(&resolved.root, std::iter::once(&*inside));
                made.extend(missing.iter().map(|dir| resolved.shown(dir)));
            }
            false if resolved.root.directory(&relative).is_ok() => {
                touches.removed.push((*dir).clone());
            }
            false => {}
        }
    }
    touches.made = made.into_iter().collect();
}

fn touches(plan: &Plan, resolved: &Resolved) -> Touches {
    let mut touches = Touches::default();
    for change in plan.changes() {
        let mut file = file_change(&resolved.shown(&change.path), change);
        file.diff = None;
        if let Some(before) = &change.before {
            keep(&mut file, &mut touches.contents, before);
        }
        file.mode = change.before_mode.filter(|_| file.operation == Operation::Delete);
        touches.files.push(file);
    }
    touches.made = plan.missing_directories().iter().map(|dir| resolved.shown(dir)).collect();
    touches
}

fn skipped(path: &Text, reason: &str) -> Skipped {
    Skipped { path: path.clone(), reason: reason.into() }
}

fn failed(place: &Place, resolved: &Resolved, error: &PatchError) -> Skipped {
    let path = match error {
        PatchError::Changed { path } | PatchError::Unfit { path, .. } => resolved.shown(path),
        PatchError::Exists { path } | PatchError::Io { path, .. } => resolved.shown(path),
        _ => place.cwd.display().to_string().into(),
    };
    Skipped { path, reason: error.to_string().into() }
}
