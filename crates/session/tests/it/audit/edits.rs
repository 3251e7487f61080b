//! File edits and forks, as the log tells of them.

use std::collections::BTreeMap;

use polyloop_session::ItemId;
use polyloop_session::event::Event;

use super::{Audit, Checked};

#[derive(Default)]
pub struct Edits {
    /// Whether an edit is in place, and what it took back.
    all: BTreeMap<ItemId, (bool, Vec<ItemId>)>,
    /// What is being taken back.
    undoing: Option<Vec<ItemId>>,
}

impl Edits {
    pub fn touched(&mut self, item: ItemId) {
        self.all.insert(item, (true, Vec::new()));
    }

    /// Nothing happens in the middle, but that the session is copied there.
    pub fn before(&self, event: &Event) -> Checked {
        let fits =
            matches!(event, Event::Undone { .. } | Event::UndoFailed { .. } | Event::Forked { .. });
        ensure!(self.undoing.is_none() || fits, "[20] while files are taken back");
        Ok(())
    }

    pub fn undoing(&mut self, items: &[ItemId]) -> Checked {
        for item in items {
            let (in_place, _) = self.all.get(item).ok_or("[20] no edit of a tool")?;
            ensure!(*in_place, "[20] {item} is to be taken back twice");
        }
        self.undoing = Some(items.to_vec());
        Ok(())
    }

    pub fn failed(&mut self) -> Checked {
        ensure!(self.undoing.take().is_some(), "[20] fails, and was not begun");
        Ok(())
    }

    pub fn undone(&mut self, id: ItemId, items: &[ItemId]) -> Checked {
        ensure!(!items.is_empty(), "[20] nothing is taken back");
        let begun = self.undoing.take();
        ensure!(begun.as_deref().is_none_or(|begun| begun == items), "[20] not as it was begun");
        for item in items {
            let (in_place, undoes) = self.all.get_mut(item).ok_or("[20] no edit of a tool")?;
            ensure!(*in_place, "[20] {item} is taken back twice");
            *in_place = false;
            for again in undoes.clone() {
                if let Some((in_place, _)) = self.all.get_mut(&again) {
                    *in_place = true;
                }
            }
        }
        self.all.insert(id, (true, items.to_vec()));
        Ok(())
    }

    /// Numbers of all of them, in order.
    pub fn ids(&self) -> Vec<ItemId> {
        self.all.keys().copied().collect()
    }
}

impl Audit {
    /// The turn that was open is wound up, as one that is stopped.
    pub(super) fn forked(&mut self) {
        self.grants.clear();
        self.fresh_fork = true;
        if let Some(turn) = &mut self.turn {
            turn.stopping = true;
        }
    }

    pub fn is_fresh_fork(&self) -> bool {
        self.fresh_fork
    }

    pub fn edited(&self) -> Vec<ItemId> {
        self.edits.ids()
    }
}
