//! Takes file edits back, and notes what is needed for it before an edit is made.
//!
//! What will be done is recorded first, then the files are changed, then the log tells of it; who is
//! killed in between finds out at the next opening which of it was done.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use polyloop_session::event::Skipped;
use polyloop_session::item::FileChange;
use polyloop_session::recover::Found;
use polyloop_session::undo::{self, Chosen, Which};
use polyloop_session::wait::Who;
use polyloop_session::{Event, ItemId, Refusal, Report, Seq, SessionId, Text};

use serde::{Deserialize, Serialize};

use super::{Actor, CommandError, MOVED};
use crate::log::{Log, LogError};
use crate::patch::PLAN_BYTES_MAX;
use crate::subscriber::View;
use crate::tool::revert::{self, Told};
use crate::tool::{Place, Touches};

const STOPPED: &str = "the server stopped in the middle of it, and nothing was changed";
const FORKED: &str =
    "the session was forked in the middle of it; the other one says what came of it";
const TOO_MUCH: &str = "all together is too much to be taken back at once; take back one call at a \
                        time (`item`)";

/// What taking edits back did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Undone {
    /// The entry that tells of it, by which it can be taken back.
    pub seq: Seq,
    pub files: Vec<FileChange>,
    pub made: Vec<Text>,
    pub removed: Vec<Text>,
    pub skipped: Vec<Skipped>,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum UndoError {
    Refused(Refusal),
    /// Paths, and what is in the way there; nothing was changed.
    Conflicts(Vec<Skipped>),
    Store(String),
}

impl From<LogError> for UndoError {
    fn from(error: LogError) -> UndoError {
        UndoError::Store(error.to_string())
    }
}

impl From<CommandError> for UndoError {
    fn from(error: CommandError) -> UndoError {
        match error {
            CommandError::Refused(refusal) => UndoError::Refused(refusal),
            CommandError::Store(why) | CommandError::Failed(why) => UndoError::Store(why),
            CommandError::Moved => UndoError::Store(MOVED.into()),
        }
    }
}

impl<V: View> Actor<V> {
    /// A tool waits with its edit until this is recorded.
    pub(super) async fn touches(&mut self, item: ItemId, touches: Touches) -> Result<(), LogError> {
        let Touches { files, made, removed, contents } = touches;
        for (hash, content) in &contents {
            if !self.writer.keep_content(hash, content).await? {
                tracing::warn!(session = %self.id, "no room to keep a file's content for undo");
            }
        }
        self.report(Report::ToolTouches { item, files, made, removed }).await?;
        self.flushed().await
    }

    pub(super) async fn undo(&mut self, which: Which, by: Who) -> Result<Undone, UndoError> {
        let chosen = undo::choose(&self.state, which).map_err(UndoError::Refused)?;
        let mut place = self.place_of(chosen.cwd.as_ref())?;
        let (kit, id) = (self.kit.clone(), self.id.clone());
        let log = kit.log_of(self.kept);
        let told = told(log, &id, &chosen).await?;
        let contents = contents(log, &id, &told).await?;
        let preparing = place.clone();
        let prepared = blocking(move || revert::prepare(&preparing, &told, &contents)).await?;
        let mut prepared = prepared.map_err(UndoError::Conflicts)?;
        if prepared.is_in_vain() {
            return Err(UndoError::Conflicts(prepared.skipped().to_vec()));
        }
        if !prepared.does_nothing() {
            // What is in the files now is kept first, so that this can be taken back too.
            for (hash, content) in std::mem::take(&mut prepared.touches.contents) {
                self.writer.keep_content(&hash, &content).await?;
            }
            self.record(vec![undo::started(&chosen, prepared.wanted(), by.clone())]).await?;
            self.flushed().await?;
        }
        let begun = ItemId(self.state.last_seq());
        place.journal = place.journal.map(|journal| journal.of_call(&id, begun));
        let done = blocking(move || prepared.apply(&place, place.journal.as_ref())).await?;
        let done = match done {
            Ok(done) => done,
            Err(conflicts) => {
                if self.state.undoing().is_some() {
                    let reason = in_words(&conflicts);
                    self.record(vec![Event::UndoFailed { reason }]).await?;
                    self.flushed().await?;
                }
                return Err(UndoError::Conflicts(conflicts));
            }
        };
        let undone = undo::undone(&chosen, done.clone(), by);
        self.record(vec![undone]).await?;
        self.flushed().await?;
        let undo::Done { files, made, removed, skipped } = done;
        Ok(Undone { seq: self.state.last_seq(), files, made, removed, skipped })
    }

    /// Finds out what became of files that were being taken back when the server stopped, ends it
    /// if they were, and records it.
    pub(super) async fn take_up_undo(&mut self, found: &Found) -> Result<(), LogError> {
        let Some(at) = self.state.undoing() else { return Ok(()) };
        let (kit, id) = (self.kit.clone(), self.id.clone());
        let entries = kit.log_of(self.kept).read(&id, at.before(), at).await?;
        let became = match entries.first().map(|entry| &entry.event) {
            Some(Event::UndoStarted { files, made, removed, skipped, cwd, .. }) => {
                let (files, made) = (files.clone(), made.clone());
                let (removed, skipped) = (removed.clone(), skipped.clone());
                let wanted = undo::Done { files, made, removed, skipped };
                self.became(cwd.as_ref(), wanted, found.get(&ItemId(at))).await
            }
            Some(_) | None => Err("what was to be done cannot be read".into()),
        };
        let started = entries.first().map(|entry| &entry.event);
        let ended = match started.and_then(|started| undo::ended(started, became)) {
            Some(ended) => ended,
            None => Event::UndoFailed { reason: "the server stopped".into() },
        };
        self.record(vec![ended]).await
    }

    async fn became(
        &mut self,
        cwd: Option<&Text>,
        wanted: undo::Done,
        found: Option<&Text>,
    ) -> Result<undo::Done, Text> {
        if self.state.is_fresh_fork() {
            return Err(FORKED.into());
        }
        let why = |error: UndoError| match error {
            UndoError::Conflicts(conflicts) => format!("{STOPPED}. {}", in_words(&conflicts)),
            UndoError::Refused(_) | UndoError::Store(_) => STOPPED.to_owned(),
        };
        let place = self.place_of(cwd).map_err(|error| Text::from(why(error)))?;
        let taken_up = blocking(move || revert::take_up(&place, &wanted)).await;
        let taken_up = taken_up.and_then(|done| done.map_err(UndoError::Conflicts));
        let told = found.map_or_else(String::new, |found| format!(". {found}"));
        match taken_up {
            Ok(Some(done)) => Ok(done),
            Ok(None) => Err(format!("{STOPPED}{told}").into()),
            Err(error) => Err(format!("{}{told}", why(error)).into()),
        }
    }

    /// Where the edits were made, and nowhere else.
    fn place_of(&self, cwd: Option<&Text>) -> Result<Place, UndoError> {
        let settings = self.state.settings().unwrap_or(&self.kit.settings);
        let cwd = cwd.unwrap_or(&settings.cwd);
        let places = &self.kit.places;
        if let Err(why) = places.folder(cwd) {
            let conflict = Skipped { path: cwd.clone(), reason: why.into() };
            return Err(UndoError::Conflicts(vec![conflict]));
        }
        Ok(places.place(&self.id, Some(cwd), None))
    }
}

/// What the log tells of the edits, newest first.
async fn told(log: &dyn Log, id: &SessionId, chosen: &Chosen) -> Result<Vec<Told>, UndoError> {
    let mut entries = Vec::new();
    for seq in &chosen.entries {
        let page = log.read(id, seq.before(), *seq).await?;
        entries.extend(page.first().cloned());
    }
    // What was noted before an edit is more than what was told after it.
    let mut noted: HashSet<(ItemId, &Text)> = HashSet::new();
    for entry in &entries {
        if let Event::FilesTouched { item, files, .. } = &entry.event {
            noted.extend(files.iter().map(|file| (*item, &file.path)));
        }
    }
    let told = entries.iter().filter_map(|entry| match &entry.event {
        Event::FilesTouched { files, made, removed, .. }
        | Event::Undone { files, made, removed, .. } => {
            let (files, made, removed) = (files.clone(), made.clone(), removed.clone());
            Some(Told { files, made, removed, own: true })
        }
        Event::ItemCompleted { item, result: Some(result), .. } => {
            let unknown = |file: &&FileChange| !noted.contains(&(*item, &file.path));
            let files = result.files.iter().filter(unknown).cloned().collect();
            Some(Told { files, ..Told::default() })
        }
        _ => None,
    });
    Ok(told.collect())
}

async fn contents(
    log: &dyn Log,
    id: &SessionId,
    told: &[Told],
) -> Result<HashMap<Text, Bytes>, UndoError> {
    let (mut contents, mut bytes) = (HashMap::new(), 0);
    for file in told.iter().flat_map(|told| &told.files) {
        let Some(hash) = file.before_blob.as_ref().filter(|hash| !contents.contains_key(*hash))
        else {
            continue;
        };
        if let Some(content) = log.kept_content(id, hash).await? {
            bytes += content.len();
            contents.insert(hash.clone(), content);
        }
        if bytes > PLAN_BYTES_MAX {
            let (path, reason) = (file.path.clone(), TOO_MUCH.into());
            return Err(UndoError::Conflicts(vec![Skipped { path, reason }]));
        }
    }
    Ok(contents)
}

fn in_words(conflicts: &[Skipped]) -> Text {
    let all: Vec<String> = conflicts.iter().map(|c| format!("{}: {}", c.path, c.reason)).collect();
    all.join("; ").into()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, UndoError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| UndoError::Store(format!("taking edits back broke: {error}")))
}
