//! A session told step by step, on the checking simulator; and prompts as text to compare with.

use polyloop_session::command::WaitReply;
use polyloop_session::event::Event;
use polyloop_session::history::{AssistantPart, Message, SUMMARY_END, SUMMARY_PREFIX, prompt};
use polyloop_session::item::{End, Fault, ItemKind, Opaque, ToolResult};
use polyloop_session::policy::{Judgement, Mode};
use polyloop_session::wait::Then;
use polyloop_session::{
    Answerable, CallId, Chance, Command, Heal, ItemId, Proposal, Report, Seq, Step, Stream, WaitId,
    WaitRef,
};

use super::make::{LIMITS, created, interrupt, send, spoken, tool, who};
use super::sim::{Halt, Run, Sim};

pub struct Script {
    pub sim: Sim,
}

pub const DENY: WaitReply = WaitReply::Deny { message: None, then: Then::Continue };
pub const DENY_AND_END: WaitReply = WaitReply::Deny { message: None, then: Then::EndTurn };

fn fine(run: Run) {
    match run {
        Ok(()) => {}
        Err(Halt::Crashed) => panic!("no fuse was set"),
        Err(Halt::Broken(told)) => panic!("{told}"),
    }
}

impl Script {
    pub fn new(mode: Mode) -> Script {
        Script::after(vec![created(mode, 50)])
    }

    /// A session that begins with these events.
    pub fn after(events: Vec<Event>) -> Script {
        let mut sim = Sim::new(LIMITS);
        fine(sim.record(events));
        Script { sim }
    }

    pub fn send(&mut self, text: &str) -> &mut Script {
        self.command(send(text))
    }

    pub fn command(&mut self, command: Command) -> &mut Script {
        fine(self.sim.command(command));
        self
    }

    pub fn report(&mut self, report: Report) -> &mut Script {
        fine(self.sim.report(report));
        self
    }

    pub fn close(&mut self) -> &mut Script {
        self.command(Command::Close { by: who() })
    }

    pub fn interrupt(&mut self) -> &mut Script {
        self.command(interrupt())
    }

    pub fn resume(&mut self) -> &mut Script {
        self.command(Command::Resume { by: who() })
    }

    pub fn compact(&mut self) -> &mut Script {
        self.command(Command::Compact { by: who() })
    }

    pub fn settle(&mut self, reply: WaitReply) -> &mut Script {
        self.command(Command::Settle { wait: WaitRef::Presented, reply, by: who() })
    }

    pub fn crash(&mut self) -> &mut Script {
        fine(self.sim.crash(None));
        self
    }

    /// The call that was begun last.
    pub fn call(&self) -> CallId {
        let calls = self.sim.running.iter().rev().find_map(|step| match step {
            Step::Ask(call) => Some(*call),
            _ => None,
        });
        calls.expect("a call is open")
    }

    pub fn wait(&self) -> WaitId {
        let turn = self.sim.state.turn().expect("a turn is open");
        *turn.waits.keys().next().expect("a wait is open")
    }

    /// Tools that run, in the order they were started.
    pub fn tools(&self) -> Vec<ItemId> {
        let run = self.sim.running.iter().filter_map(|step| match step {
            Step::Run(item) => Some(*item),
            _ => None,
        });
        run.collect()
    }

    /// A block of the open call begins and grows.
    pub fn block(&mut self, kind: ItemKind, text: &str) -> ItemId {
        let (call, before) = (self.call(), self.sim.state.last_seq());
        let stream = match kind {
            ItemKind::Text | ItemKind::Reasoning => Stream::Text,
            ItemKind::ToolCall { .. } => Stream::Args,
        };
        let block = before.0 as u32;
        self.report(Report::BlockStarted { call, block, kind });
        let item = ItemId(before.next());
        self.sim.grow(item, stream, text, 0);
        item
    }

    pub fn text(&mut self, text: &str) -> &mut Script {
        self.block(ItemKind::Text, text);
        self
    }

    pub fn reason(&mut self, text: &str) -> &mut Script {
        self.block(ItemKind::Reasoning, text);
        self
    }

    /// A tool call whose reference is `name`.
    pub fn tool(&mut self, name: &str) -> &mut Script {
        self.block(tool(name, name), &format!("{{{name}}}"));
        self
    }

    /// A tool call of these arguments.
    pub fn asks(&mut self, name: &str, args: &str) -> &mut Script {
        self.block(tool(name, name), args);
        self
    }

    /// The newest block is whole.
    pub fn end_block(&mut self, opaque: Option<Opaque>) -> &mut Script {
        let turn = self.sim.state.turn().expect("a turn is open");
        let item = turn.items.values().next_back().expect("an item is open");
        let (call, block) = (item.call, item.block);
        self.report(Report::BlockEnded { call, block, opaque })
    }

    /// The open call ends well; its tool calls were judged so, in order.
    pub fn answer(&mut self, judged: &[Judgement]) -> &mut Script {
        self.answer_seen(judged, true)
    }

    pub fn answer_seen(&mut self, judged: &[Judgement], answerable: bool) -> &mut Script {
        let call = self.call();
        let turn = self.sim.state.turn().expect("a turn is open");
        let asked = turn.items.iter().filter(|(_, item)| item.call == call);
        let asked = asked.filter(|(_, item)| matches!(item.kind, ItemKind::ToolCall { .. }));
        let proposals = asked.zip(judged).map(|((id, item), judgement)| Proposal {
            block: item.block,
            args: self.sim.live.text(*id, Stream::Args).into(),
            judgement: Box::new(judgement.clone()),
            opaque: None,
        });
        let proposals = proposals.collect();
        let answerable = Answerable { approvals: answerable, questions: answerable };
        self.report(Report::Answered { call, usage: None, proposals, answerable })
    }

    /// The open call fails for good.
    pub fn fail(&mut self) -> &mut Script {
        self.fails(Heal::Never, "broken", "It is broken")
    }

    pub fn fails(&mut self, heal: Heal, code: &str, message: &str) -> &mut Script {
        let (call, fault, chance) = (self.call(), Fault::new(code, message), Chance(700));
        self.report(Report::CallFailed { call, fault, heal, chance, usage: None })
    }

    pub fn stopped(&mut self) -> &mut Script {
        let call = self.call();
        self.report(Report::CallStopped { call })
    }

    pub fn output(&mut self, item: ItemId, text: &str) -> &mut Script {
        self.sim.grow(item, Stream::Output, text, 0);
        self
    }

    pub fn end_tool(&mut self, item: ItemId, end: End, seen: Option<&str>) -> &mut Script {
        let result = ToolResult { seen: seen.map(Into::into), ..ToolResult::default() };
        self.report(Report::ToolEnded { item, end, result: Box::new(result) })
    }

    /// The sandbox stops a tool that runs in it.
    pub fn stop_tool(&mut self, item: ItemId, answerable: bool) -> &mut Script {
        let result = Box::new(ToolResult { exit_code: Some(1), ..ToolResult::default() });
        let answerable = Answerable { approvals: answerable, questions: answerable };
        self.report(Report::ToolStopped { item, reason: "no network".into(), result, answerable })
    }

    /// Every running tool says its own number and ends well.
    pub fn end_tools(&mut self) -> &mut Script {
        for item in self.tools() {
            let name = match self.sim.state.turn().and_then(|turn| turn.items.get(&item)) {
                Some(item) => match &item.kind {
                    ItemKind::ToolCall { name, .. } => name.clone(),
                    ItemKind::Text | ItemKind::Reasoning => "".into(),
                },
                None => "".into(),
            };
            self.output(item, &format!("{name} done")).end_tool(item, End::Whole, None);
        }
        self
    }

    /// Entries after `seq`, for a closer look.
    pub fn since(&self, seq: Seq) -> Vec<Event> {
        let later = self.sim.log.iter().filter(|entry| entry.seq > seq);
        later.map(|entry| entry.event.clone()).collect()
    }

    pub fn last_seq(&self) -> Seq {
        self.sim.state.last_seq()
    }

    /// The prompt of the call that was begun last, one line a part.
    pub fn prompt(&self) -> String {
        let prompt = prompt(&self.sim.state, self.call(), &LIMITS).expect("the call is open");
        let mut lines = Vec::new();
        for message in &prompt.messages {
            match message {
                Message::User(content) => {
                    let said = spoken(content);
                    let ended = said.strip_suffix(SUMMARY_END);
                    let summary = said.starts_with(SUMMARY_PREFIX);
                    assert_eq!(summary, ended.is_some(), "a summary says where it ends: {said}");
                    lines.push(format!("user: {}", ended.unwrap_or(&said)));
                }
                Message::Assistant(parts) => {
                    let parts: Vec<String> = parts.iter().map(part).collect();
                    lines.push(format!("assistant: {}", parts.join(" + ")));
                }
                Message::ToolResult { call_ref, name, output, is_error } => {
                    assert_eq!(call_ref, name, "scripts name a call after its tool");
                    let mark = if *is_error { "error" } else { "result" };
                    lines.push(format!("{mark} {name}: {output}"));
                }
            }
        }
        lines.join("\n")
    }
}

fn part(part: &AssistantPart) -> String {
    match part {
        AssistantPart::Text { text, opaque } => format!("{text}{}", sealed(opaque)),
        AssistantPart::Reasoning { text, opaque } => format!("({text}{})", sealed(opaque)),
        AssistantPart::ToolCall { name, args, opaque, .. } => {
            format!("call {name}{args}{}", sealed(opaque))
        }
    }
}

fn sealed(opaque: &Option<Opaque>) -> String {
    let told = |seal: &Opaque| format!(" {}:{}", seal.provider, seal.json);
    opaque.as_ref().map(told).unwrap_or_default()
}
