//! File edits and forks, as the log tells of them.

use std::collections::BTreeMap;

use polyloop_session::ItemId;

use super::{Audit, Checked};

#[derive(Default)]
pub struct Edits {
    /// Whether an edit is in place, and what it took back.
    all: BTreeMap<ItemId, (bool, Vec<ItemId>)>,
}

impl Edits {
    pub fn touched(&mut self, item: ItemId) {
        self.all.insert(item, (true, Vec::new()));
    }

    pub fn undone(&mut self, id: ItemId, items: &[ItemId]) -> Checked {
        ensure!(!items.is_empty(), "[20] nothing is taken back");
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
