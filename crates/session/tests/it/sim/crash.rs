//! The process dies at any entry, and a new one takes the session up.

use std::collections::BTreeMap;

use polyloop_session::state::{Item, OpenWait, ToolPhase};
use polyloop_session::wait::Ask;
use polyloop_session::{Live, Text, WaitId, recover};

use super::{Halt, Run, Sim};
use crate::it::make::fold;

impl Sim {
    /// The process dies, and a new one opens the session. `again`: it dies once more after so
    /// many entries of its recovery. What the journal held is there, unless the sim lost it.
    pub fn crash(&mut self, again: Option<u32>) -> Run {
        self.count("crash");
        self.fuse = again;
        self.audit.crashed();
        self.running.clear();
        let folded = fold(&self.log);
        ensure!(folded == self.state, "[1] the state is not the fold of its log");
        self.state = folded;
        self.live = Live::default();
        let turn = self.state.turn();
        for growth in &self.journal {
            if turn.is_some_and(|turn| turn.items.contains_key(&growth.item)) {
                self.live.grow(growth);
            }
        }
        let asked = turn.map(|turn| turn.waits.clone());
        let stays = turn.is_some_and(|turn| !turn.waits.is_empty() && turn.stopping.is_none());
        let stays = stays && !self.state.is_fresh_fork();
        let ended = self.take_up_undo();
        match ended.and_then(|()| self.record(recover(&self.state, &self.live))) {
            Err(Halt::Crashed) => return self.crash(None),
            other => other?,
        }
        self.fuse = None;
        self.live = Live::of(&self.state);
        self.journal = self.live.growths().collect();
        self.rests(stays)?;
        if stays {
            self.still_asks(asked)?;
        }
        self.advance()?;
        ensure!(stays || self.running.is_empty(), "[5] something runs before a client asks");
        Ok(())
    }

    /// What was open is open still, and asks the same.
    fn still_asks(&mut self, before: Option<BTreeMap<WaitId, OpenWait>>) -> Run {
        let asks = |waits: &BTreeMap<WaitId, OpenWait>| -> Vec<(WaitId, Ask)> {
            waits.iter().map(|(id, open)| (*id, open.ask.clone())).collect()
        };
        let before = before.as_ref().map(asks);
        let after = self.state.turn().map(|turn| asks(&turn.waits));
        ensure!(before == after, "[3] {before:?} was open, after the crash {after:?}");
        for (_, ask) in after.into_iter().flatten() {
            match ask {
                Ask::Approval => {}
                Ask::Outside { .. } => self.count("crash while asked about outside"),
                Ask::Question { .. } => self.count("crash with a question"),
                Ask::Plan { .. } => self.count("crash with a plan"),
            }
        }
        Ok(())
    }

    fn rests(&mut self, stays: bool) -> Run {
        let open = self.state.turn();
        ensure!(stays == open.is_some(), "[5] after a crash the turn is {open:?}");
        let again = recover(&self.state, &self.live);
        ensure!(again.is_empty(), "[5] recovering twice gives {again:?}");
        let stopped = |item: &Item| item.stopped.as_ref().map(|stopped| stopped.text.clone());
        let open_texts = open.into_iter().flat_map(|turn| turn.items.values()).filter_map(stopped);
        let texts: Vec<Text> = open_texts.filter(|text| !text.is_empty()).collect();
        let live: Vec<Text> = self.live.growths().map(|growth| growth.text).collect();
        ensure!(texts == live, "[8] after a crash {live:?} is live, the log says {texts:?}");
        let Some(turn) = open else { return Ok(()) };
        ensure!(turn.calls.is_empty(), "[5] calls are open after a crash");
        let waits = turn
            .items
            .values()
            .all(|item| !matches!(item.tool, None | Some(ToolPhase::Running { .. })));
        ensure!(waits, "[5] items are open after a crash");
        self.count("crash with a wait");
        Ok(())
    }
}
