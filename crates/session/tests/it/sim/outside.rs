//! Runs, by what they may, and what the sandbox stops: what is met, told from the log.

use polyloop_session::event::Event;
use polyloop_session::item::End;
use polyloop_session::policy::{Judgement, Leave, Mode, RULE_ADVICE, Says};
use polyloop_session::state::ToolPhase;
use polyloop_session::wait::Ask;
use polyloop_session::{ItemId, Text};

use super::Sim;

impl Sim {
    /// The journal is lost with the machine.
    pub fn lose_journal(&mut self) {
        self.journal.clear();
        self.count("lost the journal");
    }

    /// Whether the log says that it runs, and in the sandbox.
    pub fn runs_inside(&self, id: ItemId) -> bool {
        let last = self.log.iter().rev().find_map(|entry| match &entry.event {
            Event::ToolStarted { item, sandboxed, .. } if *item == id => Some(*sandboxed),
            Event::SandboxRefused { item, .. } | Event::ItemCompleted { item, .. }
                if *item == id =>
            {
                Some(false)
            }
            _ => None,
        });
        last == Some(true)
    }

    /// What the sandbox stopped of an open item.
    fn stopped(&self, id: ItemId) -> Option<Text> {
        self.log.iter().rev().find_map(|entry| match &entry.event {
            Event::SandboxRefused { item, text, .. } if *item == id => Some(text.clone()),
            _ => None,
        })
    }

    fn asks_outside(&self) -> bool {
        let mut waits = self.state.turn().into_iter().flat_map(|turn| turn.waits.values());
        waits.any(|open| matches!(open.ask, Ask::Outside { .. }))
    }

    fn proposed(&self, id: ItemId) -> Option<&Judgement> {
        match self.state.turn()?.items.get(&id)?.tool.as_ref()? {
            ToolPhase::Proposed { judgement, .. } => Some(judgement),
            _ => None,
        }
    }

    /// Called with every event before it is applied.
    pub(super) fn tell_run(&mut self, event: &Event) {
        let stopping = self.state.turn().is_some_and(|turn| turn.stopping.is_some());
        match event {
            Event::ToolStarted { item, sandboxed, leave } => {
                let again = self.stopped(*item).is_some();
                self.count(match (leave, again) {
                    (Some(Leave::Reads), _) => "ran, as it only reads",
                    (Some(Leave::Safe), _) => "ran, as it is safe",
                    (Some(Leave::Granted), _) => "ran by a grant",
                    (Some(Leave::Rule { .. }), _) => "ran by a rule",
                    (Some(Leave::Mode { .. }), false) => "ran by the mode",
                    (Some(Leave::Person), false) => "ran by a person's leave",
                    (Some(Leave::Mode { .. }), true) => "ran outside by the mode",
                    (Some(Leave::Person), true) => "ran outside by a person's leave",
                    (None, _) => "ran by nothing",
                });
                if *sandboxed {
                    self.count("ran in the sandbox");
                }
                let sandbox = self.proposed(*item).is_some_and(|judgement| judgement.sandbox);
                let full_auto = self.state.mode() == Mode::FullAuto;
                if *leave == Some(Leave::Granted) && sandbox && full_auto {
                    self.count("granted, so outside the sandbox");
                }
            }
            Event::SandboxRefused { text, answerable, .. } => {
                self.count(if text.is_empty() {
                    "stopped at once"
                } else {
                    "stopped after output"
                });
                match (stopping, answerable) {
                    (true, _) => self.count("stopped in a turn that stops"),
                    (false, false) => self.count("stopped, and nobody there"),
                    (false, true) => {}
                }
            }
            Event::WaitOpened { item, ask: Ask::Approval } => {
                let rule = self.proposed(*item).and_then(|judgement| judgement.rule.as_ref());
                if rule.is_some_and(|rule| rule.says == Says::Ask) {
                    let bypass = self.state.mode() == Mode::Bypass;
                    self.count(if bypass {
                        "asked by a rule in bypass"
                    } else {
                        "asked by a rule"
                    });
                }
            }
            Event::ItemCompleted { item, end, text, .. } => self.tell_end_of(*item, *end, text),
            Event::ModeSet { .. } if self.asks_outside() => {
                self.count("mode set while asked about outside");
            }
            Event::TurnStopping { .. } if self.asks_outside() => {
                self.count("interrupted while asked about outside");
            }
            _ => {}
        }
    }

    fn tell_end_of(&mut self, item: ItemId, end: End, text: &str) {
        if text.starts_with(RULE_ADVICE) {
            self.count("denied by a rule");
        }
        let proposed = self.proposed(item);
        let rule = proposed.and_then(|judgement| judgement.rule.as_ref());
        if end == End::Denied && rule.is_some_and(|rule| rule.says == Says::Ask) {
            self.count("a rule asks, and nobody is");
        }
        if self.stopped(item).is_none() {
            return;
        }
        let phase = self.state.turn().and_then(|turn| turn.items.get(&item)?.tool.as_ref());
        let runs = matches!(phase, Some(ToolPhase::Running { .. }));
        let approved = matches!(phase, Some(ToolPhase::Approved { .. }));
        self.count(match (end, runs) {
            (End::Interrupted, true) => "the second run was interrupted",
            (_, true) => "the second run ended",
            (End::Interrupted, false) if approved => "left inside, though approved",
            (End::Interrupted, false) => "left inside as the turn ended",
            (End::Denied, false) => "left inside by a denial",
            (_, false) => "left inside unasked",
        });
    }
}
