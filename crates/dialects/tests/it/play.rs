//! Plays actions on a session without I/O, and keeps what its subscribers would be sent.

use std::sync::Arc;

use polyloop_session::budget::Budget;
use polyloop_session::command::{Send, Target, WaitReply};
use polyloop_session::context::{Overhead, Strategy, WindowSize};
use polyloop_session::event::{Agent, Level, Purpose, RunOptions, Setting};
use polyloop_session::item::{End, Fault, ItemKind, Opaque, ToolResult};
use polyloop_session::policy::{Effect, Judgement, Mode, Rule, Says};
use polyloop_session::retry::TOO_LONG_CODE;
use polyloop_session::state::{Call, Item, ToolPhase};
use polyloop_session::strategy::bounds::{Bounds, Judge, Search, Wanted};
use polyloop_session::wait::Then;
use polyloop_session::{
    Answerable, CallId, Chance, Command, Delivery, Event, Growth, Heal, ItemId, Limits, LogEntry,
    MessageId, Next, Proposal, Report, Stream, Timestamp, Update, WaitRef, absorb, decide, next,
    recover,
};
use serde_json::json;

use super::action::{Action, Cancel, Kind, Pick, Reply, Start};
use super::make::{judgement, origin, parts, settings, tool, usage, who};
use super::world::Moment;

const LIMITS: Limits = Limits {
    queued_messages_max: 3,
    tokens_max: 1_000,
    window: WindowSize::Known,
    strategy: Strategy::Threshold,
    bypass_allowed: true,
    retries_max: 2,
    compact_at: 800,
    overhead: Overhead { instructions: 0, tools: 0 },
    budget: Budget { cost_micros_max: None, tokens_max: None },
    bounds: Bounds::DEFAULT,
};

/// What models say, of all lengths that make a difference.
const WORDS: [&str; 4] = ["yes", "no🦀", "perhaps\n\nso", "é"];

/// Stands in all that only providers may see.
pub const SEALED: &str = "sealed";

pub struct Play {
    pub updates: Vec<Update>,
    now: Moment,
}

/// All that subscribers are sent while the actions are played.
pub fn play(start: &Start, actions: &[Action]) -> Vec<Update> {
    let mut play = Play { updates: Vec::new(), now: Moment::default() };
    for piece in &start.adopted {
        play.record(vec![Event::Adopted { piece: piece.clone() }]);
    }
    play.record(vec![Event::SessionCreated { settings: settings(start.mode), by: who() }]);
    for action in actions {
        play.act(action);
        play.advance();
    }
    play.updates
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

    fn advance(&mut self) {
        while let Next::Record(events) = next(&self.now.state, &LIMITS) {
            self.record(events);
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
            Action::Send { text, answers, consents, run } => {
                let delivery = match answers {
                    true => Delivery::Answer { consents: *consents },
                    false => Delivery::Queue,
                };
                self.say_to(text, delivery, *run);
            }
            Action::Begin { call, kind } => self.begin(*call, *kind),
            Action::Grow { item, text } => self.grow(choose(&self.growing(), *item), text),
            Action::EndBlock(pick) => {
                let open: Vec<(CallId, u32)> = self.items(|_| true, |_, i| (i.call, i.block));
                if let Some((call, block)) = choose(&open, *pick) {
                    self.end_block(call, block);
                }
            }
            Action::Answer { call, judged } => self.answer(*call, judged),
            Action::Say { call, blocks, judged } => {
                self.write(*call, blocks);
                self.answer(*call, judged);
            }
            Action::Work { seed, rounds } => {
                for round in 0..*rounds {
                    self.advance();
                    self.work(usize::from(*seed) + usize::from(round));
                }
            }
            Action::Fail { call, blocks, heal } => {
                self.write(*call, blocks);
                let fault = match heal {
                    Heal::Shorter => Fault::new(TOO_LONG_CODE, "The conversation is too long."),
                    _ => Fault::new("529", "The provider is overloaded"),
                };
                if let Some(call) = choose(&self.calls(), *call) {
                    let (heal, chance) = (*heal, Chance(500));
                    self.report(Report::CallFailed { call, fault, heal, chance, usage: None });
                }
                if *heal == Heal::Shorter && blocks.len() != 1 {
                    self.summarise();
                }
            }
            Action::Stopped(call) => {
                if let Some(call) = choose(&self.calls(), *call) {
                    self.report(Report::CallStopped { call });
                }
            }
            Action::EndTool { item, end, seen } => self.end_tool(*item, *end, *seen),
            Action::StopTool { item, seen, answerable } => {
                self.stop_tool(*item, *seen, *answerable);
            }
            Action::Escape { text, seen, answerable, reply } => {
                self.escape(text, *seen, *answerable);
                self.advance();
                reply.iter().for_each(|reply| self.settle(reply));
            }
            Action::Settle(reply) => self.settle(reply),
            Action::Interrupt => self.interrupt(),
            Action::Again => {
                self.interrupt();
                self.advance();
                for call in self.calls() {
                    self.report(Report::CallStopped { call });
                }
                while let [_, ..] = self.items(|i| i.tool.is_some(), |id, _| id)[..] {
                    let before = self.now.state.last_seq();
                    self.end_tool(0, End::Interrupted, false);
                    self.advance();
                    if self.now.state.last_seq() == before {
                        break;
                    }
                }
                self.advance();
                self.command(Command::Resume { by: who() });
            }
            Action::Resume => self.command(Command::Resume { by: who() }),
            Action::Compact => self.command(Command::Compact { by: who() }),
            Action::Notice(text) => {
                let (level, code) = (Level::Warning, "slow".into());
                self.report(Report::Noticed { level, code, text: text.as_str().into() });
            }
            Action::Crash => {
                let events = recover(&self.now.state, &self.now.live);
                self.record(events);
            }
            Action::Cancel(what) => self.cancel(*what),
            Action::Mode(mode) => self.command(Command::SetMode { mode: *mode, by: who() }),
            Action::Title(title) => {
                let setting = Setting::Title { title: title.as_str().into() };
                self.command(Command::Set { setting, by: who() });
            }
            Action::Close => self.command(Command::Close { by: who() }),
            Action::Reopen => self.command(Command::Reopen { by: who() }),
        }
    }

    fn interrupt(&mut self) {
        let (turn, reason) = (None, "enough".into());
        self.command(Command::Interrupt { turn, reason, by: who() });
    }

    fn settle(&mut self, reply: &Reply) {
        let (wait, reply, by) = (WaitRef::Presented, wait_reply(reply), who());
        self.command(Command::Settle { wait, reply, by });
    }

    fn say_to(&mut self, text: &str, delivery: Delivery, run: bool) {
        let (content, origin) = (parts(text), origin());
        let (client_ref, tokens) = (Some("m".into()), 90);
        let run = run.then(|| Box::new(run_of(text)));
        let send = Send { content, origin, client_ref, delivery, tokens, run };
        self.command(Command::Send(Box::new(send)));
    }

    fn cancel(&mut self, what: Cancel) {
        let state = &self.now.state;
        let target = match what {
            Cancel::Message(pick) => {
                let queued: Vec<MessageId> = state.queue().iter().map(|q| q.id).collect();
                choose(&queued, pick).map(Target::Message)
            }
            Cancel::Wait => {
                let first = state.turn().and_then(|turn| turn.waits.keys().next());
                first.copied().map(Target::Wait)
            }
        };
        if let Some(target) = target {
            self.command(Command::Cancel { target, by: who() });
        }
    }

    fn begin(&mut self, call: Pick, kind: Kind) {
        let Some(call) = choose(&self.calls(), call) else { return };
        // The log's length names a block that was never there.
        let block = self.now.state.last_seq().0 as u32;
        let kind = match kind {
            Kind::Text => ItemKind::Text,
            Kind::Reasoning => ItemKind::Reasoning,
            Kind::Tool => tool(if block.is_multiple_of(2) { "bash" } else { "apply_patch" }),
            Kind::Question => tool("ask_user"),
            Kind::Plan => tool("exit_plan_mode"),
        };
        self.report(Report::BlockStarted { call, block, kind });
    }

    /// Blocks of a reply: some stay open, and what says nothing is whole at once.
    /// What makes room is short; random texts rarely are, and then it makes none.
    fn summarise(&mut self) {
        self.advance();
        let asked = self.now.state.turn().into_iter().flat_map(|turn| &turn.calls);
        let is_summary = |call: &Call| call.purpose == Purpose::Summarise;
        let at = asked.into_iter().position(|(_, call)| is_summary(call));
        let Some(at) = at.and_then(|at| Pick::try_from(at).ok()) else { return };
        self.write(at, &[(Kind::Text, "s".into())]);
        self.answer(at, &[]);
    }

    fn write(&mut self, call: Pick, blocks: &[(Kind, String)]) {
        let of = choose(&self.calls(), call);
        let turn = self.now.state.turn();
        let purpose = of.and_then(|of| turn?.calls.get(&of)).map(|call| call.purpose);
        for (number, (kind, text)) in blocks.iter().enumerate() {
            self.begin(call, *kind);
            let last = self.growing().last().copied();
            self.grow(last, &written(*kind, purpose, text));
            let open = self.items(|item| item.tool.is_none(), |_, item| (item.call, item.block));
            let whole = number == 1 || text.is_empty();
            if let Some((call, block)) = open.last().filter(|_| whole) {
                self.end_block(*call, *block);
            }
        }
    }

    /// All open calls are answered side by side, and running tools end.
    fn work(&mut self, seed: usize) {
        let turn = self.now.state.turn();
        let calls = turn.map(|turn| turn.calls.iter().map(|(id, call)| (*id, call.purpose)));
        let calls: Vec<(CallId, Purpose)> = calls.into_iter().flatten().collect();
        let mut open = Vec::new();
        for (at, (call, purpose)) in calls.iter().enumerate() {
            let looks = purpose.is_step() && (seed + at).is_multiple_of(3);
            let kind = if looks { tool("bash") } else { ItemKind::Text };
            let text =
                if looks { "{}".into() } else { fitting(Some(*purpose), WORDS[(seed + at) % 4]) };
            let block = self.now.state.last_seq().0 as u32;
            self.report(Report::BlockStarted { call: *call, block, kind });
            let item = self.now.state.turn().and_then(|turn| turn.item_of(*call, block));
            let stream = if looks { Stream::Args } else { Stream::Text };
            open.extend(item.map(|item| (item, stream, text)));
        }
        for second in [false, true] {
            for (item, stream, text) in &open {
                let (first, rest) = text.split_at(text.floor_char_boundary(text.len() / 2));
                self.grow(Some((*item, *stream)), if second { rest } else { first });
            }
        }
        let count = calls.len();
        for at in 0..count {
            let (call, _) = calls[(at + seed) % count];
            let at = self.calls().iter().position(|open| *open == call);
            if let Some(at) = at.and_then(|at| Pick::try_from(at).ok()) {
                self.answer(at, &[Effect::Read]);
                self.advance();
            }
        }
        let runs = |i: &Item| matches!(i.tool, Some(ToolPhase::Running { .. }));
        for item in self.items(runs, |id, _| id) {
            self.grow(Some((item, Stream::Output)), "out");
            let result = ToolResult { exit_code: Some(0), ..ToolResult::default() };
            let (end, result) = (End::Whole, Box::new(result));
            self.report(Report::ToolEnded { item, end, result });
            self.advance();
        }
    }

    /// Ends a block with what its provider wants back.
    fn end_block(&mut self, call: CallId, block: u32) {
        let json = format!("{{\"{SEALED}\":{block}}}").into();
        let opaque = Some(Opaque { provider: "p".into(), json });
        self.report(Report::BlockEnded { call, block, opaque });
    }

    fn grow(&mut self, open: Option<(ItemId, Stream)>, text: &str) {
        let Some((item, stream)) = open.filter(|_| !text.is_empty()) else { return };
        let offset = self.now.live.len(item, stream);
        self.send(Update::Grew(Growth { item, stream, offset, text: text.into() }));
    }

    fn answer(&mut self, call: Pick, judged: &[Effect]) {
        let Some(call) = choose(&self.calls(), call) else { return };
        let is_asked =
            |item: &Item| item.call == call && matches!(item.kind, ItemKind::ToolCall { .. });
        let asked: Vec<(ItemId, u32, Option<Effect>)> =
            self.items(is_asked, |id, item| (id, item.block, effect_of(item)));
        let proposals = asked.iter().zip(judged).map(|((id, block, own), effect)| {
            let judgement = Box::new(judged_as(own.unwrap_or(*effect), *block));
            let args = self.now.live.text(*id, Stream::Args).into();
            let json = format!("{{\"{SEALED}\":\"{block}\"}}").into();
            let opaque = Some(Opaque { provider: "p".into(), json });
            Proposal { block: *block, args, judgement, opaque }
        });
        let (proposals, usage) = (proposals.collect(), Some(usage()));
        let answerable = Answerable { approvals: true, questions: true };
        self.report(Report::Answered { call, usage, proposals, answerable });
    }

    fn end_tool(&mut self, item: Pick, end: End, seen: bool) {
        let runs = |i: &Item| matches!(i.tool, Some(ToolPhase::Running { .. }));
        let running: Vec<ItemId> = self.items(runs, |id, _| id);
        let Some(item) = choose(&running, item) else { return };
        let seen = seen.then(|| "as the model sees it".into());
        let result = Box::new(ToolResult { seen, exit_code: Some(0), ..ToolResult::default() });
        self.report(Report::ToolEnded { item, end, result });
    }

    /// A command runs in the sandbox, prints this, and is stopped.
    fn escape(&mut self, text: &str, seen: bool, approvals: bool) {
        self.command(Command::SetMode { mode: Mode::FullAuto, by: who() });
        let open = self.now.state.turn().into_iter().flat_map(|turn| turn.calls.values());
        let steps = open.enumerate().filter(|(_, call)| call.purpose == Purpose::Think);
        let Some(call) = steps.last().and_then(|(at, _)| Pick::try_from(at).ok()) else { return };
        self.write(call, &[(Kind::Tool, "{}".into())]);
        self.answer(call, &[Effect::Execute]);
        self.advance();
        let runs = |item: &Item| matches!(item.tool, Some(ToolPhase::Running { .. }));
        let running = self.items(runs, |id, _| (id, Stream::Output));
        self.grow(running.first().copied(), text);
        self.stop_tool(0, seen, approvals);
    }

    /// The sandbox stops what runs in it.
    fn stop_tool(&mut self, item: Pick, seen: bool, approvals: bool) {
        let inside = |i: &Item| match i.tool {
            Some(ToolPhase::Running { ref sandboxed, .. }) => sandboxed.is_some(),
            _ => false,
        };
        let running: Vec<ItemId> = self.items(inside, |id, _| id);
        let Some(item) = choose(&running, item) else { return };
        let seen = seen.then(|| "as far as the model sees it".into());
        let result = Box::new(ToolResult { seen, exit_code: Some(1), ..ToolResult::default() });
        let answerable = Answerable { approvals, questions: true };
        let reason = "it needs the network".into();
        self.report(Report::ToolStopped { item, reason, result, answerable });
    }

    fn calls(&self) -> Vec<CallId> {
        self.now.state.turn().map(|turn| turn.calls.keys().copied().collect()).unwrap_or_default()
    }

    fn items<T>(&self, of: impl Fn(&Item) -> bool, take: impl Fn(ItemId, &Item) -> T) -> Vec<T> {
        let items = self.now.state.turn().into_iter().flat_map(|turn| turn.items.iter());
        items.filter(|(_, item)| of(item)).map(|(id, item)| take(*id, item)).collect()
    }

    /// What a performer may add to right now.
    fn growing(&self) -> Vec<(ItemId, Stream)> {
        let stream = |item: &Item| match (&item.kind, &item.tool) {
            (ItemKind::Text | ItemKind::Reasoning, _) => Some(Stream::Text),
            (ItemKind::ToolCall { .. }, None) => Some(Stream::Args),
            (ItemKind::ToolCall { .. }, Some(ToolPhase::Running { .. })) => Some(Stream::Output),
            (ItemKind::ToolCall { .. }, Some(_)) => None,
        };
        let open = self.items(|_| true, |id, item| stream(item).map(|stream| (id, stream)));
        open.into_iter().flatten().collect()
    }
}

fn choose<T: Copy>(among: &[T], pick: Pick) -> Option<T> {
    let at = usize::from(pick).checked_rem(among.len())?;
    among.get(at).copied()
}

/// A command can run in the sandbox, and of some calls a rule says something.
fn judged_as(effect: Effect, block: u32) -> Judgement {
    let says = match block % 7 {
        0 => Some(Says::Deny),
        1 => Some(Says::Ask),
        2 => Some(Says::Allow),
        _ => None,
    };
    let rule = says.map(|says| Rule { says, line: "touch *".into() });
    let sandbox = effect == Effect::Execute;
    Judgement { sandbox, rule, ..judgement(effect, &["touch", "a"], None) }
}

/// A tool that only asks has its effect in its name.
fn effect_of(item: &Item) -> Option<Effect> {
    let ItemKind::ToolCall { name, .. } = &item.kind else { return None };
    match &**name {
        "ask_user" => Some(Effect::Question),
        "exit_plan_mode" => Some(Effect::Plan),
        _ => None,
    }
}

/// What a model writes in a block of that kind.
fn written(kind: Kind, purpose: Option<Purpose>, text: &str) -> String {
    match kind {
        // Not always what was asked for.
        Kind::Text if text.len() % 4 != 3 => fitting(purpose, text),
        Kind::Text | Kind::Reasoning | Kind::Tool => text.to_string(),
        Kind::Question => {
            let options = json!([{"label": "Red"}, {"label": "Blue", "description": "like sky"}]);
            json!({"questions": [{"question": text, "options": options}]}).to_string()
        }
        Kind::Plan => json!({ "plan": text }).to_string(),
    }
}

/// What answers a strategy's question.
fn fitting(purpose: Option<Purpose>, text: &str) -> String {
    let odd = !text.len().is_multiple_of(2);
    match purpose {
        Some(Purpose::Information) => json!({"constraints": [text], "context": text}).to_string(),
        Some(Purpose::Expand { .. }) => {
            let thought = |end: bool| json!({"thought": text, "final": end});
            json!({"thoughts": [thought(false), thought(odd)]}).to_string()
        }
        Some(Purpose::Value { .. } | Purpose::Score { .. }) => {
            format!("{text}\n{}/10", text.len() % 3 * 5)
        }
        Some(Purpose::Vote { .. }) => format!("{text}\n{}", 1 + text.len() % 2),
        Some(Purpose::Judge { .. }) => if odd { "complex" } else { "simple" }.to_string(),
        Some(Purpose::Plan { .. }) => {
            let needs = if odd { json!(["a"]) } else { json!([]) };
            let second = json!({"id": "b", "task": text, "needs": needs, "refine": 1});
            json!({"nodes": [{"id": "a", "task": text, "attempts": 2}, second]}).to_string()
        }
        _ => text.to_string(),
    }
}

/// A run of any agent, in small bounds.
fn run_of(text: &str) -> RunOptions {
    let size = text.len();
    let agents = [Agent::React, Agent::Tot, Agent::Got, Agent::React, Agent::Dup, Agent::Got];
    let agent = agents[size % agents.len()];
    let search = if size % 8 < 4 { Search::Breadth } else { Search::Depth };
    let judge = if size.is_multiple_of(3) { Judge::Vote } else { Judge::Value };
    let bounds = Wanted {
        tot_proposals: Some(2),
        tot_samples: Some(1 + size as u32 / 6 % 2),
        tot_beam: Some(1 + size as u32 / 4 % 2),
        tot_depth: Some(2),
        tot_search: Some(search),
        tot_judge: Some(judge),
        got_nodes_total: Some(12),
        ..Wanted::default()
    };
    RunOptions {
        agent: Some(agent),
        adaptive: size % 8 > 3,
        verbose: size.is_multiple_of(2),
        bounds: Some(Box::new(bounds)),
        ..RunOptions::default()
    }
}

fn wait_reply(reply: &Reply) -> WaitReply {
    match reply {
        Reply::Approve => WaitReply::Approve { message: None },
        Reply::Always => WaitReply::ApproveAlways,
        Reply::Instead(patch) => {
            let theirs = judgement(Effect::Edit, &["apply_patch", patch], Some(patch));
            let args = serde_json::json!({ "patch": patch }).to_string().into();
            let judgement = Box::new(theirs);
            WaitReply::ApproveInstead { args, judgement, always: patch.len() > 4 }
        }
        Reply::Deny { message, ends } => WaitReply::Deny {
            message: message.as_deref().map(Into::into),
            then: if *ends { Then::EndTurn } else { Then::Continue },
        },
        Reply::Explain => WaitReply::Explain,
        Reply::Choose(text) => {
            let word =
                if text.len().is_multiple_of(2) { "Blue".into() } else { text.as_str().into() };
            WaitReply::Answer { answers: vec![(0, vec![word])] }
        }
    }
}
