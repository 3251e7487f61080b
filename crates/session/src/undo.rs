//! Takes file edits back: which ones are meant, and what the model is told of it.
//!
//! Pure: the files themselves are the agent's business. Nothing is taken back while a turn runs.

use serde::{Deserialize, Serialize};

use crate::command::Refusal;
use crate::event::{Event, Skipped};
use crate::id::{ItemId, Seq, Text, TurnId};
use crate::item::{FileChange, Operation};
use crate::state::{Edit, State, estimate_tokens};
use crate::wait::Who;

/// Paths that the model is told of before they are only counted.
pub const PATHS_TOLD_MAX: usize = 50;

/// What is to be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Which {
    /// The edits of the newest turn that has some in place.
    Newest,
    Turn(TurnId),
    /// Those of one call, or an undo.
    Item(ItemId),
}

/// The edits that are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Newest first.
    pub items: Vec<ItemId>,
    /// The entries that tell of their files, and of those that commands of the same turn changed,
    /// newest first.
    pub entries: Vec<Seq>,
    /// What their paths are relative to.
    pub cwd: Option<Text>,
}

/// What was done about it, or is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub files: Vec<FileChange>,
    pub made: Vec<Text>,
    pub removed: Vec<Text>,
    pub skipped: Vec<Skipped>,
}

pub fn choose(state: &State, which: Which) -> Result<Chosen, Refusal> {
    if state.turn().is_some() {
        return Err(Refusal::TurnRunning);
    }
    let edits = state.edits();
    match which {
        Which::Item(id) => match edits.get(id) {
            Some(edit) if !edit.own => Err(Refusal::NothingToUndo),
            Some(edit) if !edit.in_place => Err(Refusal::AlreadyUndone),
            Some(edit) => Ok(chosen([edit].into_iter())),
            None => Err(Refusal::NoSuchEdit),
        },
        Which::Turn(turn) => {
            let mut of_turn = edits.all().filter(|edit| edit.turn == turn && is_first(edit));
            let known = of_turn.clone().next().is_some();
            match of_turn.any(|edit| edit.own && edit.in_place) {
                true => Ok(of_whole_turn(state, turn)),
                false if known => Err(Refusal::AlreadyUndone),
                false => Err(Refusal::NoSuchEdit),
            }
        }
        Which::Newest => {
            let mut open = edits.all().filter(|edit| edit.own && edit.in_place && is_first(edit));
            match open.next_back() {
                Some(edit) => Ok(of_whole_turn(state, edit.turn)),
                None => Err(Refusal::NothingToUndo),
            }
        }
    }
}

/// What is recorded before it is done.
pub fn started(chosen: &Chosen, wanted: Done, by: Who) -> Event {
    let Done { files, made, removed, skipped } = wanted;
    let (items, cwd) = (chosen.items.clone(), chosen.cwd.clone());
    Event::UndoStarted { items, files, made, removed, skipped, cwd, by }
}

/// What is recorded of it.
pub fn undone(chosen: &Chosen, done: Done, by: Who) -> Event {
    let Done { files, made, removed, skipped } = done;
    let tokens = estimate_tokens(told(&files, &skipped).len());
    let (items, cwd) = (chosen.items.clone(), chosen.cwd.clone());
    Event::Undone { items, files, made, removed, skipped, cwd, by, tokens }
}

/// What is recorded of one that was cut off, once it is known what became of it: what was done, or
/// why nothing was.
pub fn ended(started: &Event, became: Result<Done, Text>) -> Option<Event> {
    let Event::UndoStarted { items, cwd, by, .. } = started else { return None };
    Some(match became {
        Ok(done) => {
            let (items, cwd) = (items.clone(), cwd.clone());
            undone(&Chosen { items, entries: Vec::new(), cwd }, done, by.clone())
        }
        Err(reason) => Event::UndoFailed { reason },
    })
}

/// What the model is told with its next call.
pub fn told(files: &[FileChange], skipped: &[Skipped]) -> String {
    let change = |file: &FileChange| {
        let path = &file.path;
        match &file.operation {
            Operation::Create => format!("{path} restored"),
            Operation::Update => format!("{path} changed back"),
            Operation::Delete => format!("{path} removed"),
            Operation::Move { from } => format!("{from} moved back to {path}"),
        }
    };
    let mut lines: Vec<String> = files.iter().take(PATHS_TOLD_MAX).map(change).collect();
    let more = files.len().saturating_sub(PATHS_TOLD_MAX);
    lines.extend((more > 0).then(|| format!("and {more} more files")));
    let left = skipped.iter().map(|s| format!("{} stays: {}", s.path, s.reason));
    lines.extend(left.take(PATHS_TOLD_MAX));
    let lines: String = lines.iter().map(|line| format!("\n- {line}")).collect();
    format!("[The user took back changes of files. Read a file again before you edit it.{lines}]")
}

/// Whether it changed files by itself, and did not take changes back.
fn is_first(edit: &Edit) -> bool {
    edit.undoes.is_empty()
}

fn of_whole_turn(state: &State, turn: TurnId) -> Chosen {
    let all = state.edits().all();
    chosen(all.filter(|edit| edit.turn == turn && edit.in_place && is_first(edit)))
}

fn chosen<'a>(edits: impl DoubleEndedIterator<Item = &'a Edit>) -> Chosen {
    let mut chosen = Chosen { items: Vec::new(), entries: Vec::new(), cwd: None };
    for edit in edits.rev() {
        chosen.cwd = edit.cwd.clone();
        chosen.entries.extend(&edit.entries);
        if edit.own {
            chosen.items.push(edit.id);
        }
    }
    chosen.entries.sort_unstable_by(|one, other| other.cmp(one));
    chosen
}
