//! Takes file edits back, and notes what is needed for it before an edit is made.
//!
//! The files are changed first and the log tells of it afterwards; who is killed in between finds
//! them as they were before the edits, and asking again records it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use polyloop_session::event::Skipped;
use polyloop_session::item::FileChange;
use polyloop_session::undo::{self, Chosen, Which};
use polyloop_session::wait::Who;
use polyloop_session::{Event, ItemId, Refusal, Report, Seq, SessionId, Text};

use super::{Actor, CommandError};
use crate::log::{Log, LogError};
use crate::patch::PLAN_BYTES_MAX;
use crate::subscriber::View;
use crate::tool::revert::{self, Told};
use crate::tool::{Place, Touches};

/// What taking edits back did.
#[derive(Clone, Debug, PartialEq)]
pub struct Undone {
    /// The entry that tells of it, by which it can be taken back.
    pub seq: Seq,
    pub files: Vec<FileChange>,
    pub made: Vec<Text>,
    pub removed: Vec<Text>,
    pub skipped: Vec<Skipped>,
}

#[derive(Debug)]
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
        self.report(Report::ToolTouches { item, files, made, removed }).await
    }

    pub(super) async fn undo(&mut self, which: Which, by: Who) -> Result<Undone, UndoError> {
        let chosen = undo::choose(&self.state, which).map_err(UndoError::Refused)?;
        let place = Arc::new(self.place_of(&chosen)?);
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
        // What is in the files now is kept first, so that this can be taken back too.
        for (hash, content) in std::mem::take(&mut prepared.touches.contents) {
            self.writer.keep_content(&hash, &content).await?;
        }
        let done = blocking(move || prepared.apply(&place, place.journal.as_ref())).await?;
        let done = done.map_err(UndoError::Conflicts)?;
        let undone = undo::undone(&chosen, done.clone(), by);
        self.record(vec![undone]).await?;
        let undo::Done { files, made, removed, skipped } = done;
        Ok(Undone { seq: self.state.last_seq(), files, made, removed, skipped })
    }

    /// Where the edits were made, and nowhere else.
    fn place_of(&self, chosen: &Chosen) -> Result<Place, UndoError> {
        let settings = self.state.settings().unwrap_or(&self.kit.settings);
        let cwd = chosen.cwd.as_ref().unwrap_or(&settings.cwd);
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
            Some(Told { files, made, removed })
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
    let named = told.iter().flat_map(|told| &told.files).filter_map(|f| f.before_blob.as_ref());
    for hash in named {
        // More than a plan can hold: what is not found is not taken back.
        if contents.contains_key(hash) || bytes > PLAN_BYTES_MAX {
            continue;
        }
        if let Some(content) = log.kept_content(id, hash).await? {
            bytes += content.len();
            contents.insert(hash.clone(), content);
        }
    }
    Ok(contents)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, UndoError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| UndoError::Store(format!("taking edits back broke: {error}")))
}
