//! The session is forked, and its file edits are taken back.

use polyloop_session::event::Event;
use polyloop_session::item::FileChange;
use polyloop_session::undo::{self, Done, Which};
use polyloop_session::{ItemId, Refusal, Seq, SessionId, Text, TurnId};

use super::{Run, Sim};
use crate::it::make::who;

impl Sim {
    /// The log is copied, and the copy is opened: from here on the sim plays that one.
    pub fn fork(&mut self) -> Run {
        self.count("fork");
        if self.state.turn().is_some() {
            self.count("fork of a running turn");
        }
        if self.state.turn().is_some_and(|turn| !turn.waits.is_empty()) {
            self.count("fork with a wait");
        }
        if !self.state.queue().is_empty() {
            self.count("fork with a queue");
        }
        self.fuse = None;
        self.audit.crashed();
        let session = SessionId::parse("other").map_err(|_| "a bad id".to_string())?;
        let upto = self.state.last_seq();
        self.running.clear();
        self.record(vec![Event::Forked { session, upto, by: who() }])?;
        self.crash(None)
    }

    /// The newest, a turn, or a call; of a few that are there, or not.
    pub fn undo(&mut self, kind: u8, about: u16) -> Run {
        let edited = self.audit.edited();
        let any = Seq(u64::from(about) % (self.state.last_seq().0 + 2));
        let turn = self.state.edits().all().last().map_or(TurnId(any), |edit| edit.turn);
        self.take_back(match kind % 4 {
            0 => Which::Newest,
            1 => Which::Turn(turn),
            2 => Which::Item(ItemId(any)),
            _ if edited.is_empty() => Which::Item(ItemId(any)),
            _ => Which::Item(edited[usize::from(about) % edited.len()]),
        })
    }

    /// An edit, then its undo, then the undo of that: each if there is one by then.
    pub fn redo(&mut self) -> Run {
        let newest = |sim: &Sim| sim.state.edits().all().last().map(|edit| edit.id);
        for _ in 0..3 {
            match newest(self).filter(|id| self.is_undo(*id)) {
                Some(undo) => self.take_back(Which::Item(undo))?,
                None => self.take_back(Which::Newest)?,
            }
        }
        let gone = self.state.edits().all().find(|edit| edit.own && !edit.in_place);
        match gone.map(|edit| edit.id) {
            Some(gone) => self.take_back(Which::Item(gone)),
            None => Ok(()),
        }
    }

    fn take_back(&mut self, which: Which) -> Run {
        let chosen = match undo::choose(&self.state, which) {
            Ok(chosen) => chosen,
            Err(refusal) => {
                self.count(refusal.code());
                let right = (refusal == Refusal::TurnRunning) == self.state.turn().is_some();
                ensure!(right, "[20] refused as {refusal:?}");
                return Ok(());
            }
        };
        ensure!(self.state.turn().is_none(), "[20] a turn runs");
        let newest_first = chosen.entries.is_sorted_by(|one, other| one > other);
        ensure!(newest_first, "[20] {chosen:?} is out of order");
        if chosen.items.iter().any(|item| self.is_undo(*item)) {
            self.count("undo of an undo");
        }
        let path = format!("p{}", self.log.len()).into();
        let files = vec![FileChange { path, ..FileChange::default() }];
        let done = Done { files, ..Done::default() };
        // Where nothing is to be done, nothing needs to be said before.
        let number = self.log.len();
        if !number.is_multiple_of(5) {
            self.record(vec![undo::started(&chosen, done.clone(), who())])?;
            ensure!(undo::choose(&self.state, which).is_ok(), "[20] not in place any more");
            if number.is_multiple_of(7) {
                return self.end_undo(Err("no room".into()));
            }
        }
        self.record(vec![undo::undone(&chosen, done, who())])?;
        self.advance()
    }

    /// What was begun before a crash is ended: by chance it was done, or not.
    pub fn take_up_undo(&mut self) -> Run {
        let Some(at) = self.state.undoing() else { return Ok(()) };
        self.count("crash in an undo");
        let became =
            if at.0.is_multiple_of(2) { Ok(Done::default()) } else { Err("cut off".into()) };
        self.end_undo(became)
    }

    fn end_undo(&mut self, became: Result<Done, Text>) -> Run {
        let started = self.log.iter().find(|entry| Some(entry.seq) == self.state.undoing());
        let ended = started.and_then(|started| undo::ended(&started.event, became));
        self.record(vec![ended.ok_or_else(|| "[20] was not begun".to_string())?])?;
        ensure!(self.state.undoing().is_none(), "[20] does not end");
        Ok(())
    }

    fn is_undo(&self, item: ItemId) -> bool {
        self.log.iter().any(|e| e.seq == item.0 && matches!(e.event, Event::Undone { .. }))
    }
}
