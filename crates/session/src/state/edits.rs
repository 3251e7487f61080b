//! The session's file edits: where the log tells of them, and which are still in place.
//!
//! Only numbers of entries: what an edit changed is read from the log when it is taken back.

use serde::{Deserialize, Serialize};

use super::*;

/// Of more, the oldest are forgotten, and cannot be taken back any more.
pub const EDITS_MAX: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edit {
    /// The call that changed files, or the `Undone` entry.
    pub id: ItemId,
    /// The turn in which the files were changed first.
    pub turn: TurnId,
    /// What its paths are relative to.
    pub cwd: Option<Text>,
    /// The entries that tell of files, in order.
    pub entries: Vec<Seq>,
    /// A tool of ours changed files, not only a command.
    pub own: bool,
    pub in_place: bool,
    /// What it took back, if it is an undo.
    pub undoes: Vec<ItemId>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Edits {
    /// Oldest first.
    all: VecDeque<Edit>,
}

impl Edits {
    /// Oldest first.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Edit> + Clone {
        self.all.iter()
    }

    pub fn get(&self, id: ItemId) -> Option<&Edit> {
        self.all.iter().rev().find(|edit| edit.id == id)
    }

    pub(super) fn touched(&mut self, id: ItemId, turn: &Turn, at: Seq, own: bool) {
        if let Some(edit) = self.all.iter_mut().rev().find(|edit| edit.id == id) {
            edit.entries.push(at);
            edit.own |= own;
            return;
        }
        let (turn, cwd) = (turn.id, turn.cwd.clone());
        let (entries, in_place, undoes) = (vec![at], true, Vec::new());
        self.push(Edit { id, turn, cwd, entries, own, in_place, undoes });
    }

    /// Taking an undo back puts in place what it took back.
    pub(super) fn undone(&mut self, at: Seq, items: &[ItemId]) {
        let mut again = Vec::new();
        let mut first = None;
        for edit in self.all.iter_mut().filter(|edit| items.contains(&edit.id)) {
            edit.in_place = false;
            again.extend(edit.undoes.iter().copied());
            first.get_or_insert((edit.turn, edit.cwd.clone()));
        }
        for edit in self.all.iter_mut().filter(|edit| again.contains(&edit.id)) {
            edit.in_place = true;
        }
        let Some((turn, cwd)) = first else { return };
        let (entries, own, in_place) = (vec![at], true, true);
        let undoes = items.to_vec();
        self.push(Edit { id: ItemId(at), turn, cwd, entries, own, in_place, undoes });
    }

    fn push(&mut self, edit: Edit) {
        self.all.push_back(edit);
        if self.all.len() > EDITS_MAX {
            self.all.pop_front();
        }
    }
}
