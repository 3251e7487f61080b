//! Random sessions, played through the core, so that their logs are ones that can be.

use std::sync::Arc;

use polyloop_session::budget::Budget;
use polyloop_session::command::{Send, WaitReply};
use polyloop_session::context::{Overhead, Strategy as Compaction, WindowSize};
use polyloop_session::event::{Level, Origin, RunOptions, Settings};
use polyloop_session::item::{End, ItemKind, Part, ToolResult};
use polyloop_session::policy::{Effect, Mode};
use polyloop_session::state::{Item, ToolPhase};
use polyloop_session::strategy::bounds::Bounds;
use polyloop_session::wait::Then;
use polyloop_session::{
    Answerable, CallId, Chance, Command, Delivery, Event, Growth, Heal, ItemId, Limits, LogEntry,
    Next, Proposal, Report, Stream, Timestamp, Update, WaitRef, absorb, decide, next, recover,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::make::{fault, judgement, tool, usage, who};
use super::world::Moment;

const LIMITS: Limits = Limits {
    queued_messages_max: 3,
    tokens_max: 1_000,
    window: WindowSize::Known,
    strategy: Compaction::Threshold,
    bypass_allowed: true,
    retries_max: 2,
    compact_at: 800,
    overhead: Overhead { instructions: 0, tools: 0 },
    budget: Budget { cost_micros_max: None, tokens_max: None },
    bounds: Bounds::DEFAULT,
};

#[derive(Clone, Debug)]
pub enum Action {
    Send {
        approvals: bool,
        verbose: bool,
    },
    /// A block of the open call, after the one before has ended.
    Block(&'static str, Vec<String>),
    Answer(Vec<Effect>),
    /// Calls of tools, and the end of the call.
    Round(Vec<String>, Vec<Effect>),
    Fail(Heal),
    Stopped,
    /// Output of a running tool.
    Output(u8, String),
    EndTool(u8, End),
    Settle(u8),
    Interrupt,
    Resume,
    Compact,
    Notice,
    Crash,
}

pub fn actions() -> impl Strategy<Value = Vec<Action>> {
    let text = || "[a-zäß🙂\"\n]{1,8}";
    let effect = || {
        select(vec![Effect::Read, Effect::Read, Effect::Read, Effect::Execute, Effect::Question])
    };
    let end = select(vec![End::Whole, End::Whole, End::Failed]);
    let action = prop_oneof![
        3 => any::<(bool, bool)>()
            .prop_map(|(approvals, verbose)| Action::Send { approvals, verbose }),
        12 => (select(vec!["text", "text", "reasoning", "tool"]), vec(text(), 0..4))
            .prop_map(|(kind, texts)| Action::Block(kind, texts)),
        6 => vec(effect(), 3).prop_map(Action::Answer),
        12 => (vec(text(), 1..3), vec(effect(), 3))
            .prop_map(|(texts, effects)| Action::Round(texts, effects)),
        2 => heal().prop_map(Action::Fail),
        1 => Just(Action::Stopped),
        14 => (any::<u8>(), text()).prop_map(|(pick, text)| Action::Output(pick, text)),
        10 => (any::<u8>(), end).prop_map(|(pick, end)| Action::EndTool(pick, end)),
        6 => any::<u8>().prop_map(Action::Settle),
        1 => Just(Action::Interrupt),
        1 => Just(Action::Resume),
        1 => Just(Action::Compact),
        1 => Just(Action::Notice),
        1 => Just(Action::Crash),
    ];
    vec(action, 4..26).prop_map(|mut actions| {
        actions.insert(0, Action::Send { approvals: true, verbose: false });
        actions
    })
}

fn heal() -> impl Strategy<Value = Heal> {
    let later = |after_ms| Heal::Later { after_ms };
    select(vec![Heal::Never, later(None), later(Some(3_000)), Heal::Once, Heal::Shorter])
}

/// All that subscribers are sent while the actions are played.
pub fn play(actions: &[Action]) -> Vec<Update> {
    let mut play = Play { updates: Vec::new(), now: Moment::default() };
    let settings = Settings { mode: Mode::Suggest, calls_max: 50, ..Settings::default() };
    play.record(vec![Event::SessionCreated { settings, by: who() }]);
    for action in actions {
        play.act(action);
        while let Next::Record(events) = next(&play.now.state, &LIMITS) {
            play.record(events);
        }
    }
    play.updates
}

struct Play {
    updates: Vec<Update>,
    now: Moment,
}

impl Play {
    fn send(&mut self, update: Update) {
        self.now.take(&update);
        self.updates.push(update);
    }

    fn record(&mut self, events: Vec<Event>) {
        for event in events {
            let seq = self.now.state.last_seq().next();
            let at = Timestamp(1_736_426_096_000 + 7 * seq.0 as i64);
            self.send(Update::Logged(Arc::new(LogEntry { seq, at, event })));
        }
    }

    fn command(&mut self, command: Command) {
        let events = decide(&self.now.state, command, &LIMITS).unwrap_or_default();
        self.record(events);
    }

    fn report(&mut self, report: Report) {
        let events = absorb(&self.now.state, &self.now.live, &LIMITS, report);
        self.record(events);
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Send { approvals, verbose } => self.say(*approvals, *verbose),
            Action::Block(kind, texts) => self.block(kind, texts),
            Action::Answer(effects) => self.answer(effects),
            Action::Round(texts, effects) => {
                texts.iter().for_each(|text| self.block("tool", std::slice::from_ref(text)));
                self.answer(effects);
            }
            Action::Fail(heal) => {
                if let Some(call) = self.call() {
                    let (heal, chance) = (*heal, Chance(500));
                    self.report(Report::CallFailed {
                        call,
                        fault: fault(),
                        heal,
                        chance,
                        usage: None,
                    });
                }
            }
            Action::Stopped => {
                if let Some(call) = self.call() {
                    self.report(Report::CallStopped { call });
                }
            }
            Action::Output(pick, text) => {
                if let Some(item) = self.running(*pick) {
                    self.grow(item, Stream::Output, text);
                }
            }
            Action::EndTool(pick, end) => {
                if let Some(item) = self.running(*pick) {
                    let result = Box::new(ToolResult::default());
                    self.report(Report::ToolEnded { item, end: *end, result });
                }
            }
            Action::Settle(which) => self.settle(*which),
            Action::Interrupt => {
                let reason = "enough".into();
                self.command(Command::Interrupt { turn: None, reason, by: who() });
            }
            Action::Resume => self.command(Command::Resume { by: who() }),
            Action::Compact => self.command(Command::Compact { by: who() }),
            Action::Notice => {
                let (level, code, text) = (Level::Warning, "slow".into(), "Slow".into());
                self.report(Report::Noticed { level, code, text });
            }
            Action::Crash => {
                let events = recover(&self.now.state, &self.now.live);
                self.record(events);
            }
        }
    }

    fn say(&mut self, approvals: bool, verbose: bool) {
        let run = RunOptions { verbose, ..RunOptions::default() };
        self.command(Command::Send(Box::new(Send {
            content: vec![Part::Text { text: "Go".into() }],
            origin: Origin { who: who(), can_approve: approvals, can_answer: approvals },
            client_ref: None,
            delivery: Delivery::Queue,
            tokens: 90,
            run: Some(Box::new(run)),
        })));
    }

    fn call(&self) -> Option<CallId> {
        self.now.state.turn().and_then(|turn| turn.calls.keys().next().copied())
    }

    fn items(&self) -> Vec<(ItemId, Item)> {
        let turn = self.now.state.turn();
        let items = turn.into_iter().flat_map(|turn| turn.items.iter());
        items.map(|(id, item)| (*id, item.clone())).collect()
    }

    fn running(&self, pick: u8) -> Option<ItemId> {
        let runs = |item: &Item| matches!(item.tool, Some(ToolPhase::Running { .. }));
        let items = self.items();
        let running: Vec<ItemId> =
            items.iter().filter(|(_, item)| runs(item)).map(|(id, _)| *id).collect();
        let at = usize::from(pick).checked_rem(running.len())?;
        running.get(at).copied()
    }

    fn grow(&mut self, item: ItemId, stream: Stream, text: &str) {
        let offset = self.now.live.len(item, stream);
        self.send(Update::Grew(Growth { item, stream, offset, text: text.into() }));
    }

    /// A model writes one block after the other.
    fn block(&mut self, kind: &str, texts: &[String]) {
        let Some(call) = self.call() else { return };
        for (_, item) in self.items().into_iter().filter(|(_, item)| item.call == call) {
            self.report(Report::BlockEnded { call, block: item.block, opaque: None });
        }
        // The log's length names a block that was never there.
        let block = self.now.state.last_seq().0 as u32;
        let (kind, stream) = match kind {
            "text" => (ItemKind::Text, Stream::Text),
            "reasoning" => (ItemKind::Reasoning, Stream::Text),
            _ => (tool("bash"), Stream::Args),
        };
        self.report(Report::BlockStarted { call, block, kind });
        let item = ItemId(self.now.state.last_seq());
        texts.iter().for_each(|text| self.grow(item, stream, text));
    }

    fn answer(&mut self, effects: &[Effect]) {
        let Some(call) = self.call() else { return };
        let calls = |item: &Item| matches!(item.kind, ItemKind::ToolCall { .. });
        let asked = self.items().into_iter().filter(|(_, i)| i.call == call && calls(i));
        let proposals = asked.zip(effects).map(|((id, item), effect)| Proposal {
            block: item.block,
            args: self.now.live.text(id, Stream::Args).into(),
            judgement: Box::new(judgement(*effect)),
            opaque: None,
        });
        let (proposals, usage) = (proposals.collect(), Some(usage(20, 3)));
        let answerable = Answerable { approvals: true, questions: true };
        self.report(Report::Answered { call, usage, proposals, answerable });
    }

    fn settle(&mut self, which: u8) {
        let reply = match which % 5 {
            0 => WaitReply::Approve { message: Some("yes".into()) },
            1 => WaitReply::ApproveAlways,
            2 => WaitReply::Deny { message: None, then: Then::Continue },
            3 => WaitReply::Deny { message: None, then: Then::EndTurn },
            _ => WaitReply::Explain,
        };
        self.command(Command::Settle { wait: WaitRef::Presented, reply, by: who() });
    }
}
