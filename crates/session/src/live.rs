//! Open items and their characters so far, beside the state. Rebuilt from the journal after a
//! crash; never part of the fold.

use std::collections::BTreeMap;

use crate::growth::{Growth, Stream};
use crate::id::{ItemId, Text};
use crate::state::State;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    streams: BTreeMap<(ItemId, Stream), String>,
}

impl Live {
    /// What the log itself tells of open items: what a call printed in the sandbox that stopped it.
    pub fn of(state: &State) -> Live {
        let mut live = Live::default();
        for (item, open) in state.turn().into_iter().flat_map(|turn| &turn.items) {
            let Some(stopped) = &open.stopped else { continue };
            let (item, stream, text) = (*item, Stream::Output, stopped.text.clone());
            live.grow(&Growth { item, stream, offset: 0, text });
        }
        live
    }

    /// Adds growth. Growth that is there already, in whole or in part, is not added twice; growth
    /// with a gap before it (a damaged journal) is left out.
    pub fn grow(&mut self, growth: &Growth) {
        let have = self.streams.entry((growth.item, growth.stream)).or_default();
        let Some(known) = (have.len() as u64).checked_sub(growth.offset) else { return };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        if let Some(fresh) = growth.text.get(known..) {
            have.push_str(fresh);
        }
    }

    pub fn text(&self, item: ItemId, stream: Stream) -> &str {
        self.streams.get(&(item, stream)).map_or("", String::as_str)
    }

    pub fn len(&self, item: ItemId, stream: Stream) -> u64 {
        self.text(item, stream).len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    pub fn close(&mut self, item: ItemId) {
        for stream in [Stream::Text, Stream::Args, Stream::Output] {
            self.streams.remove(&(item, stream));
        }
    }

    /// What is open, each from its start.
    pub fn growths(&self) -> impl Iterator<Item = Growth> + '_ {
        self.streams.iter().filter(|(_, text)| !text.is_empty()).map(|((item, stream), text)| {
            Growth { item: *item, stream: *stream, offset: 0, text: Text::from(text.as_str()) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Seq;

    fn growth(offset: u64, text: &str) -> Growth {
        Growth { item: ItemId(Seq(3)), stream: Stream::Text, offset, text: text.into() }
    }

    #[test]
    fn overlap_is_added_once_and_a_gap_not_at_all() {
        let mut live = Live::default();
        for (offset, text) in [(0, "héllo"), (3, "llo wo"), (0, "hé"), (20, "gap"), (9, "rld")] {
            live.grow(&growth(offset, text));
        }
        assert_eq!(live.text(ItemId(Seq(3)), Stream::Text), "héllo world");
        assert_eq!(live.growths().count(), 1);
        live.close(ItemId(Seq(3)));
        assert!(live.is_empty());
    }
}
