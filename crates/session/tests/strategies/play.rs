//! Plays a session without I/O: the model is a function of the prompt, calls end in any order, and
//! the server may stop at any moment.

use std::collections::BTreeMap;

use polyloop_session::budget::Budget;
use polyloop_session::context::{Overhead, Strategy, WindowSize};
use polyloop_session::event::{
    Agent, CallOutcome, Event, LogEntry, Origin, Outcome, Purpose, RunOptions, Setting, Settings,
};
use polyloop_session::history::{AssistantPart, Message, Prompt, prompt};
use polyloop_session::item::{End, Fault, ItemKind, Part, ToolResult, Usage};
use polyloop_session::policy::{Effect, Judgement, Mode, Risk};
use polyloop_session::strategy::bounds::{Bounds, Wanted};
use polyloop_session::wait::Who;
use polyloop_session::{
    Answerable, CallId, Chance, Command, Growth, Heal, Limits, Live, Next, Proposal, Report, Seq,
    State, Step, Stream, Text, Timestamp, absorb, decide, next, recover,
};

pub const LIMITS: Limits = Limits {
    queued_messages_max: 3,
    tokens_max: 100_000,
    strategy: Strategy::Threshold,
    bypass_allowed: true,
    retries_max: 2,
    compact_at: 800,
    overhead: Overhead { instructions: 0, tools: 0 },
    budget: Budget { cost_micros_max: None, tokens_max: None },
    bounds: Bounds::DEFAULT,
    window: WindowSize::Known,
};

/// More entries than any of these sessions has.
const ENTRIES_MAX: u64 = 20_000;

/// What the model does.
#[derive(Clone, Debug)]
pub enum Reply {
    Say(String),
    /// A call of `look`, which reads, or of anything else, which does not.
    Call(String),
    Fail(Heal),
}

pub fn say(text: &str) -> Reply {
    Reply::Say(text.to_owned())
}

/// What the model is asked: the purpose, and the last thing that a user said.
pub struct Asked<'a> {
    pub prompt: &'a Prompt,
    pub purpose: Purpose,
    pub last: String,
    /// How often this very thing was asked before.
    pub before: u32,
}

impl Asked<'_> {
    /// What the tools gave that this line knows.
    pub fn results(&self) -> usize {
        let is_result = |message: &&Message| matches!(message, Message::ToolResult { .. });
        self.prompt.messages.iter().filter(is_result).count()
    }

    pub fn has(&self, text: &str) -> bool {
        self.prompt.messages.iter().any(|message| match message {
            Message::User(parts) => spoken(parts).contains(text),
            Message::Assistant(parts) => parts.iter().any(
                |part| matches!(part, AssistantPart::Text { text: said, .. } if said.contains(text)),
            ),
            Message::ToolResult { output, .. } => output.contains(text),
        })
    }
}

pub struct Play<'a> {
    pub state: State,
    pub live: Live,
    pub log: Vec<LogEntry>,
    pub limits: Limits,
    pub mind: &'a dyn Fn(&Asked<'_>) -> Reply,
    running: Vec<Step>,
    asked: BTreeMap<String, u32>,
    /// Most calls that were open at once.
    pub at_once: usize,
}

impl<'a> Play<'a> {
    pub fn new(calls_max: u32, mind: &'a dyn Fn(&Asked<'_>) -> Reply) -> Play<'a> {
        let mut play = Play {
            state: State::default(),
            live: Live::default(),
            log: Vec::new(),
            limits: LIMITS,
            mind,
            running: Vec::new(),
            asked: BTreeMap::new(),
            at_once: 0,
        };
        let mode = Mode::FullAuto;
        let settings = Settings {
            cwd: "/w".into(),
            model: "m".into(),
            mode,
            calls_max,
            ..Settings::default()
        };
        play.record(vec![Event::SessionCreated { settings, by: Who::via("test") }]);
        play
    }

    pub fn send(&mut self, text: &str, agent: Agent, wanted: Wanted, adaptive: bool) {
        let origin = Origin { who: Who::via("test"), can_approve: true, can_answer: true };
        let run = RunOptions {
            agent: Some(agent),
            adaptive,
            bounds: Some(Box::new(wanted)),
            ..RunOptions::default()
        };
        self.record(vec![Event::MessageQueued {
            content: vec![Part::Text { text: text.into() }],
            origin,
            client_ref: None,
            tokens: 10,
            run: Some(Box::new(run)),
            waits: false,
        }]);
    }

    /// A message that leaves how it is worked to the session.
    pub fn say(&mut self, text: &str) {
        let origin = Origin { who: Who::via("test"), can_approve: true, can_answer: true };
        let content = vec![Part::Text { text: text.into() }];
        let (client_ref, tokens, run) = (None, 10, None);
        self.record(vec![Event::MessageQueued {
            content,
            origin,
            client_ref,
            tokens,
            run,
            waits: false,
        }]);
    }

    pub fn set(&mut self, setting: Setting) {
        self.command(Command::Set { setting, by: Who::via("test") });
    }

    /// Somebody stops it, and all of it comes to rest.
    pub fn interrupt(&mut self) {
        let (turn, reason, by) = (None, "enough".into(), Who::via("test"));
        self.command(Command::Interrupt { turn, reason, by });
        self.finish();
        assert!(self.state.turn().is_none());
    }

    pub fn resume(&mut self) {
        self.command(Command::Resume { by: Who::via("test") });
    }

    fn command(&mut self, command: Command) {
        let events = decide(&self.state, command, &self.limits).unwrap();
        self.record(events);
    }

    pub fn record(&mut self, events: Vec<Event>) {
        for event in events {
            let entry = LogEntry { seq: self.state.last_seq().next(), at: Timestamp(0), event };
            // As it would come back from a file.
            let written = serde_json::to_string(&entry).unwrap();
            assert_eq!(serde_json::from_str::<LogEntry>(&written).unwrap(), entry);
            self.state.apply(&entry);
            if let Event::ItemCompleted { item, .. } = &entry.event {
                self.live.close(*item);
            }
            self.log.push(entry);
            assert!(self.log.len() as u64 <= ENTRIES_MAX, "it has no end");
        }
    }

    /// Records what follows; gives what is open.
    pub fn advance(&mut self) -> Vec<Step> {
        loop {
            match next(&self.state, &self.limits) {
                Next::Record(events) => {
                    assert!(!events.is_empty());
                    self.record(events);
                }
                Next::Steps(steps) => {
                    self.at_once = self.at_once.max(steps.len());
                    return steps;
                }
            }
        }
    }

    /// Plays on, taking what is open in the order that `pick` says, until nothing is or so many
    /// entries are written.
    pub fn run(&mut self, entries_max: usize, pick: &mut dyn FnMut(usize) -> usize) {
        loop {
            let steps = self.advance();
            if steps.is_empty() || self.log.len() >= entries_max {
                return;
            }
            let step = steps[pick(steps.len()) % steps.len()];
            self.perform(step);
        }
    }

    pub fn finish(&mut self) {
        self.run(usize::MAX, &mut |_| 0);
    }

    pub fn report(&mut self, report: Report) {
        let events = absorb(&self.state, &self.live, &self.limits, report);
        self.record(events);
    }

    pub fn perform(&mut self, step: Step) {
        match step {
            Step::Ask(call) => self.ask(call),
            Step::Run(item) => {
                let text: Text = format!("found {}", item.0.0).into();
                let _ = text;
                let result = ToolResult { seen: Some("looked".into()), ..ToolResult::default() };
                self.report(Report::ToolEnded { item, end: End::Whole, result: Box::new(result) });
            }
            Step::StopCall(call) => self.report(Report::CallStopped { call }),
            Step::StopTool(item) => {
                let result = Box::new(ToolResult::default());
                self.report(Report::ToolEnded { item, end: End::Interrupted, result });
            }
        }
        self.running.clear();
    }

    fn ask(&mut self, call: CallId) {
        let prompt = prompt(&self.state, call, &self.limits).expect("an open call has a prompt");
        accepts(&prompt);
        let last = prompt.messages.iter().rev().find_map(|message| match message {
            Message::User(parts) => Some(spoken(parts)),
            _ => None,
        });
        let last = last.unwrap_or_default();
        let known = self.asked.entry(format!("{:?}", prompt.messages)).or_default();
        let before = *known;
        *known += 1;
        let asked = Asked { purpose: prompt.purpose, prompt: &prompt, last, before };
        let reply = (self.mind)(&asked);
        let usage = Some(Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() });
        match reply {
            Reply::Say(text) => {
                let (block, kind) = (0, ItemKind::Text);
                self.report(Report::BlockStarted { call, block, kind });
                let item = self.state.turn().unwrap().item_of(call, block).unwrap();
                let text = Text::from(text.as_str());
                self.live.grow(&Growth { item, stream: Stream::Text, offset: 0, text });
                self.report(Report::BlockEnded { call, block, opaque: None });
                let (proposals, answerable) = (Vec::new(), Answerable::default());
                self.report(Report::Answered { call, usage, proposals, answerable });
            }
            Reply::Call(name) => {
                let call_ref = format!("c{}", call.0.0).into();
                let name: Text = name.into();
                let kind = ItemKind::ToolCall { name: name.clone(), call_ref, native: false };
                self.report(Report::BlockStarted { call, block: 0, kind });
                let reads = &*name == "look";
                let effect = if reads { Effect::Read } else { Effect::Edit };
                let judgement = Box::new(judgement(effect, reads));
                let (args, opaque) = ("{}".into(), None);
                let proposals = vec![Proposal { block: 0, args, judgement, opaque }];
                let answerable = Answerable { approvals: true, questions: true };
                self.report(Report::Answered { call, usage, proposals, answerable });
            }
            Reply::Fail(heal) => {
                let (fault, chance) = (Fault::new("broken", "It broke"), Chance(0));
                self.report(Report::CallFailed { call, fault, heal, chance, usage: None });
            }
        }
    }

    /// The server stops here, comes back, and somebody resumes.
    pub fn crash(&mut self) {
        let mut state = State::default();
        for entry in &self.log {
            state.apply(entry);
        }
        assert_eq!(state, self.state, "the state is the fold of the log");
        self.record(recover(&self.state, &self.live));
        assert!(self.state.turn().is_none());
        self.live = Live::default();
        if self.state.interrupted().is_some() {
            self.resume();
        }
    }

    /// What the session's own line ends with.
    pub fn answer(&self) -> String {
        use polyloop_session::state::Piece;
        let last = self.state.line().pieces().last();
        match last.map(|piece| &piece.piece) {
            Some(Piece::Agent { text, .. }) => text.to_string(),
            other => panic!("no answer but {other:?}"),
        }
    }

    pub fn outcome(&self) -> &Outcome {
        let ended = self.log.iter().rev().find_map(|entry| match &entry.event {
            Event::TurnEnded { outcome, .. } => Some(outcome),
            _ => None,
        });
        ended.expect("the turn ended")
    }

    /// Calls that were made, those made again counted once.
    pub fn calls(&self) -> usize {
        let started =
            self.log.iter().filter(|e| matches!(e.event, Event::CallStarted { .. })).count();
        let again = |entry: &&LogEntry| match &entry.event {
            Event::CallEnded { outcome, .. } => matches!(outcome, CallOutcome::Retried { .. }),
            _ => false,
        };
        started - self.log.iter().filter(again).count()
    }

    pub fn events(&self, wanted: impl Fn(&Event) -> bool) -> Vec<&Event> {
        self.log.iter().map(|entry| &entry.event).filter(|event| wanted(event)).collect()
    }

    pub fn notices(&self) -> Vec<String> {
        let notice = |entry: &LogEntry| match &entry.event {
            Event::Noticed { text, .. } => Some(text.to_string()),
            _ => None,
        };
        self.log.iter().filter_map(notice).collect()
    }
}

pub fn spoken(parts: &[Part]) -> String {
    parts.iter().map(Part::shown).collect::<Vec<_>>().join("\n")
}

/// What every provider wants: results behind their calls, and a user's word at the end.
pub fn accepts(prompt: &Prompt) {
    let mut open: Vec<Text> = Vec::new();
    for message in &prompt.messages {
        match message {
            Message::Assistant(parts) => {
                assert!(open.is_empty(), "calls without results: {open:?}");
                open.extend(parts.iter().filter_map(|part| match part {
                    AssistantPart::ToolCall { call_ref, .. } => Some(call_ref.clone()),
                    _ => None,
                }));
            }
            Message::ToolResult { call_ref, .. } => {
                let at = open.iter().position(|one| one == call_ref).expect("a result of a call");
                open.remove(at);
            }
            Message::User(_) => assert!(open.is_empty(), "calls without results: {open:?}"),
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
    assert!(!matches!(prompt.messages.last(), Some(Message::Assistant(_)) | None));
}

pub fn judgement(effect: Effect, safe: bool) -> Judgement {
    Judgement {
        effect,
        safe,
        confined: true,
        sandbox: false,
        refusal: None,
        risk: Risk::Low,
        reason: "why".into(),
        command: vec!["look".into()],
        patch: None,
        diff: None,
        plan_file: None,
        covers: "look".into(),
        keys: Vec::new(),
        rule: None,
    }
}

/// Numbers that look random and are always the same.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

pub fn number(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[allow(dead_code)]
pub const NONE: Seq = Seq::NONE;
