//! Forks and kept contents of sessions that live in memory.

use polyloop_session::{Live, Seq};

use super::super::fork::{Fork, ForkedAt, TakenGrowth};
use super::{Kept, Memory, MemoryWriter, Session, lock};
use crate::log::LogError;
use std::sync::{Arc, Mutex};

impl Memory {
    pub(super) fn forked(&self, fork: &Fork) -> Result<ForkedAt, LogError> {
        let Some(source) = self.get(&fork.from) else { return Ok(ForkedAt::NotFound) };
        let (mut entries, live, kept) = {
            let source = lock(&source);
            (source.entries.clone(), source.live.clone(), source.kept.clone())
        };
        let last = entries.last().map_or(Seq::NONE, |entry| entry.seq);
        let upto = fork.upto.unwrap_or(last);
        if upto > last || upto == Seq::NONE {
            return Ok(ForkedAt::Beyond { last });
        }
        entries.retain(|entry| entry.seq <= upto);
        let last_at = entries.iter().map(|entry| entry.at).max().unwrap_or_default();
        entries.push(Arc::new(fork.entry(upto, last_at)));
        let live = match &fork.growth {
            TakenGrowth::Left if upto == last => live,
            TakenGrowth::Told { at, growths } if upto == *at => {
                let mut live = Live::default();
                growths.iter().for_each(|growth| live.grow(growth));
                live
            }
            TakenGrowth::Left | TakenGrowth::Told { .. } => Live::default(),
        };
        let session: Kept = Arc::new(Mutex::new(Session { live, kept, ..Session::default() }));
        let (codec, encoder) = (self.codec.clone(), self.codec.encoder(&fork.to));
        let mut writer = MemoryWriter { session: session.clone(), codec, encoder };
        entries.into_iter().for_each(|entry| writer.add(&entry));
        lock(&self.sessions).insert(fork.to.clone(), session);
        Ok(ForkedAt::Done { upto })
    }
}
