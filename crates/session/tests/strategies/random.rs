//! Random sessions: whatever the model writes, in whatever order answers come, and whatever happens
//! on the way, the auditor finds nothing, and a session comes to rest.
//!
//! `POLYLOOP_FIRST` is the first session that is played: 1539 of seed 7 is session 7001560.

use std::collections::BTreeMap;

use polyloop_session::command::WaitReply;
use polyloop_session::event::{
    Agent, Event, LogEntry, Origin, Purpose, RunOptions, Setting, Settings,
};
use polyloop_session::history::prompt;
use polyloop_session::item::{End, Fault, ItemKind, Part, ToolResult, Usage};
use polyloop_session::policy::{Effect, Mode};
use polyloop_session::retry::TOO_LONG_CODE;
use polyloop_session::strategy::bounds::{Bounds, Judge, Search, Wanted};
use polyloop_session::wait::{Then, Who};
use polyloop_session::{
    Answerable, CallId, Chance, Command, Growth, Heal, Limits, Live, Next, Proposal, Report,
    SessionId, State, Step, Stream, Text, Timestamp, WaitRef, absorb, decide, next, recover,
};

use super::audit::Audit;
use super::names::named;
use super::play::{Dice, LIMITS, accepts, judgement};

/// Entries of one session, and what `next` may record before something is reported.
const ENTRIES_MAX: usize = 20_000;
const ROUNDS_MAX: usize = 400;
const ACTIONS: usize = 120;

pub struct Session {
    dice: Dice,
    pub limits: Limits,
    state: State,
    live: Live,
    pub log: Vec<LogEntry>,
    audit: Audit,
    /// Blocks of calls that have begun to answer.
    begun: BTreeMap<CallId, u32>,
    /// What happened.
    pub met: BTreeMap<String, u32>,
}

type Played<T = ()> = Result<T, String>;

pub fn play(seed: u64) -> Played<Session> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..8).for_each(|_| {
        dice.next();
    });
    let mut session = Session::new(dice);
    for _ in 0..ACTIONS {
        session.act()?;
    }
    session.rest()?;
    Ok(session)
}

impl Session {
    fn new(mut dice: Dice) -> Session {
        let bounds = Bounds { calls_at_once: 1 + dice.below(5) as u32, ..Bounds::DEFAULT };
        let tokens_max = dice.of(&[100_000, 100_000, 600, 250]);
        let mut limits = Limits { bounds, tokens_max, ..LIMITS };
        limits.retries_max = dice.below(3) as u32;
        if dice.one_in(8) {
            limits.budget.tokens_max = Some(100 + dice.below(2_000));
        }
        let mut session = Session {
            dice,
            limits,
            state: State::default(),
            live: Live::default(),
            log: Vec::new(),
            audit: Audit::new(limits),
            begun: BTreeMap::new(),
            met: BTreeMap::new(),
        };
        let mode = session.dice.of(&[Mode::FullAuto, Mode::Suggest, Mode::Bypass, Mode::Plan]);
        let calls_max = session.dice.of(&[1, 2, 3, 5, 12, 30, 60]);
        let settings = Settings {
            cwd: "/w".into(),
            model: "m".into(),
            mode,
            calls_max,
            ..Settings::default()
        };
        let created = Event::SessionCreated { settings, by: Who::via("test") };
        let opened = session.record(vec![created]);
        assert!(opened.is_ok(), "{opened:?}");
        session
    }

    fn count(&mut self, what: &str) {
        *self.met.entry(what.to_owned()).or_default() += 1;
    }

    fn record(&mut self, events: Vec<Event>) -> Played {
        let first = self.state.last_seq().next();
        for event in events {
            if let Some(own) = named(&event).into_iter().find(|seq| *seq >= first) {
                return Err(format!("{event:?} names {own}, a sibling of its batch"));
            }
            let entry = LogEntry { seq: self.state.last_seq().next(), at: Timestamp(0), event };
            self.audit.entry(&entry)?;
            let written = serde_json::to_string(&entry).map_err(|error| error.to_string())?;
            let read: LogEntry = serde_json::from_str(&written).map_err(|e| e.to_string())?;
            if read != entry {
                return Err(format!("{entry:?} reads back as {read:?}"));
            }
            self.state.apply(&entry);
            if let Event::ItemCompleted { item, .. } = &entry.event {
                self.live.close(*item);
            }
            let kind = written.split('"').skip_while(|word| *word != "type").nth(2);
            self.count(kind.unwrap_or_default());
            if let Event::Noticed { code, .. } = &entry.event {
                self.count(&format!("noticed {code}"));
            }
            self.log.push(entry);
            if self.log.len() > ENTRIES_MAX {
                return Err("it has no end".into());
            }
        }
        Ok(())
    }

    fn advance(&mut self) -> Played<Vec<Step>> {
        for _ in 0..ROUNDS_MAX {
            match next(&self.state, &self.limits) {
                Next::Record(events) if events.is_empty() => return Err("records nothing".into()),
                Next::Record(events) => self.record(events)?,
                Next::Steps(steps) => {
                    let waits = self.state.turn().is_some_and(|turn| !turn.waits.is_empty());
                    if steps.is_empty() && self.state.turn().is_some() && !waits {
                        return Err(format!("[10] the turn is stuck: {:?}", self.state.turn()));
                    }
                    return Ok(steps);
                }
            }
        }
        Err("next does not come to rest".into())
    }

    fn report(&mut self, report: Report) -> Played {
        let events = absorb(&self.state, &self.live, &self.limits, report);
        self.record(events)
    }

    fn command(&mut self, command: Command) -> Played {
        match decide(&self.state, command, &self.limits) {
            Ok(events) => self.record(events),
            Err(refusal) => {
                self.count(refusal.code());
                Ok(())
            }
        }
    }

    fn act(&mut self) -> Played {
        let steps = self.advance()?;
        let waits: Vec<_> = match self.state.turn() {
            Some(turn) => turn.waits.keys().copied().collect(),
            None => Vec::new(),
        };
        match self.dice.below(60) {
            0 => self.crash(),
            1 => self.fork(),
            2 => {
                let (turn, reason, by) = (None, "enough".into(), Who::via("test"));
                self.command(Command::Interrupt { turn, reason, by })
            }
            3 => self.command(Command::Compact { by: Who::via("test") }),
            4 => {
                let agent = self.dice.of(&AGENTS);
                let setting = Setting::Agent { agent };
                self.command(Command::Set { setting, by: Who::via("test") })
            }
            5 => {
                let mode =
                    self.dice.of(&[Mode::FullAuto, Mode::Suggest, Mode::Plan, Mode::DontAsk]);
                self.command(Command::SetMode { mode, by: Who::via("test") })
            }
            6..=8 => self.command(Command::Resume { by: Who::via("test") }),
            9..=16 if !waits.is_empty() => {
                let wait = waits[self.dice.below(waits.len() as u64) as usize];
                let reply = match self.dice.below(6) {
                    0 => WaitReply::Deny { message: None, then: Then::Continue },
                    1 => WaitReply::Deny { message: None, then: Then::EndTurn },
                    2 => WaitReply::Explain,
                    _ => WaitReply::Approve { message: None },
                };
                let (wait, by) = (WaitRef::Id(wait), Who::via("test"));
                self.command(Command::Settle { wait, reply, by })
            }
            _ if self.state.turn().is_none() => match self.dice.below(4) {
                0 if self.state.interrupted().is_some() => {
                    self.count("resumed");
                    self.command(Command::Resume { by: Who::via("test") })
                }
                _ => self.send(),
            },
            _ if steps.is_empty() => Ok(()),
            _ => {
                let step = steps[self.dice.below(steps.len() as u64) as usize];
                self.perform(step)
            }
        }
    }

    fn send(&mut self) -> Played {
        let dice = &mut self.dice;
        let some = |dice: &mut Dice, most| (!dice.one_in(3)).then(|| 1 + dice.below(most) as u32);
        let bounds = Wanted {
            tot_proposals: some(dice, 4),
            tot_samples: some(dice, 3),
            tot_beam: some(dice, 3),
            tot_depth: some(dice, 3),
            tot_search: Some(dice.of(&[Search::Breadth, Search::Depth])),
            tot_judge: Some(dice.of(&[Judge::Value, Judge::Vote])),
            tot_prune: Some(dice.of(&[0, 200, 600])),
            tot_accept: Some(dice.of(&[0, 700, 1_000])),
            tot_steps: Some(dice.below(3) as u32),
            got_nodes: some(dice, 6),
            got_nodes_total: Some(1 + dice.below(20) as u32),
            got_layers: some(dice, 4),
            got_depth: some(dice, 3),
            got_attempts: some(dice, 3),
            got_refine: Some(dice.below(3) as u32),
            got_steps: some(dice, 3),
            got_adaptive: dice.one_in(4).then(|| dice.one_in(2)),
        };
        let agent = (!dice.one_in(6)).then(|| dice.of(&AGENTS));
        let adaptive = dice.one_in(2);
        let run =
            RunOptions { agent, adaptive, bounds: Some(Box::new(bounds)), ..RunOptions::default() };
        let origin = Origin { who: Who::via("test"), can_approve: true, can_answer: true };
        let content = vec![Part::Text { text: "Do all of it".into() }];
        let (client_ref, tokens, run) = (None, 10, Some(Box::new(run)));
        let queued =
            Event::MessageQueued { content, origin, client_ref, tokens, run, waits: false };
        if self.state.queue().len() >= 3 {
            return Ok(());
        }
        self.record(vec![queued])
    }

    fn perform(&mut self, step: Step) -> Played {
        match step {
            Step::Ask(call) => self.answer(call),
            Step::Run(item) => {
                let (end, seen) = match self.dice.below(6) {
                    0 => (End::Failed, "failed".to_owned()),
                    1 => (End::Whole, "a long line of it ".repeat(60)),
                    _ => (End::Whole, "looked".to_owned()),
                };
                let result = ToolResult { seen: Some(seen.into()), ..ToolResult::default() };
                self.report(Report::ToolEnded { item, end, result: Box::new(result) })
            }
            Step::StopCall(call) => self.report(Report::CallStopped { call }),
            Step::StopTool(item) => {
                let result = Box::new(ToolResult::default());
                self.report(Report::ToolEnded { item, end: End::Interrupted, result })
            }
        }
    }

    fn answer(&mut self, call: CallId) -> Played {
        let asked = prompt(&self.state, call, &self.limits).ok_or("an open call has no prompt")?;
        accepts(&asked);
        let begun = self.begun.get(&call).copied();
        if begun.is_none() && self.dice.one_in(10) {
            let (fault, heal) = match self.dice.below(6) {
                0 => (Fault::new("refused", "It refuses"), Heal::Never),
                1 => (Fault::new("empty", "It said nothing"), Heal::Once),
                2 => (Fault::new(TOO_LONG_CODE, "It is too long"), Heal::Shorter),
                3 => (Fault::new("broken", "It broke"), Heal::Never),
                _ => (Fault::new("busy", "It is busy"), Heal::Later { after_ms: None }),
            };
            self.count(&format!("failed {}", kind(asked.purpose)));
            let chance = Chance(0);
            return self.report(Report::CallFailed { call, fault, heal, chance, usage: None });
        }
        let block = begun.unwrap_or(0);
        if begun.is_none() {
            self.report(Report::BlockStarted { call, block, kind: ItemKind::Text })?;
            let text = self.writes(asked.purpose);
            if let Some(item) = self.state.turn().and_then(|turn| turn.item_of(call, block)) {
                let text = Text::from(text.as_str());
                self.live.grow(&Growth { item, stream: Stream::Text, offset: 0, text });
            }
            self.begun.insert(call, block);
            if self.dice.one_in(4) {
                return Ok(());
            }
        }
        self.report(Report::BlockEnded { call, block, opaque: None })?;
        self.begun.remove(&call);
        let tools = match asked.purpose {
            Purpose::Think if self.dice.one_in(2) => 1 + self.dice.below(2),
            Purpose::Expand { .. } if self.dice.one_in(4) => 1 + self.dice.below(2),
            // They have no tools, and some models call one all the same.
            _ => u64::from(self.dice.one_in(20)),
        };
        let mut proposals = Vec::new();
        for tool in 0..tools as u32 {
            let block = 1 + tool;
            let call_ref = format!("c{}-{tool}", call.0.0).into();
            let effect = self.dice.of(&[Effect::Read, Effect::Read, Effect::Edit, Effect::Execute]);
            let kind = ItemKind::ToolCall { name: "tool".into(), call_ref, native: false };
            self.report(Report::BlockStarted { call, block, kind })?;
            let judgement = Box::new(judgement(effect, effect == Effect::Read));
            let (args, opaque) = ("{}".into(), None);
            proposals.push(Proposal { block, args, judgement, opaque });
        }
        let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
        let usage = (!self.dice.one_in(4)).then_some(usage);
        let answerable = Answerable { approvals: !self.dice.one_in(5), questions: true };
        self.report(Report::Answered { call, usage, proposals, answerable })
    }

    /// Good and bad answers to each question.
    fn writes(&mut self, purpose: Purpose) -> String {
        let dice = &mut self.dice;
        if dice.one_in(12) {
            return dice.of(&["", "  ", "Hm.", "{\"", "[[[[", "🦀 1. 2.", "no"]).to_owned();
        }
        match purpose {
            Purpose::Expand { .. } => match dice.below(4) {
                0 => "[]".to_owned(),
                1 => "1. left (final)\n2. right\n3. up\n4. down\n5. on".to_owned(),
                _ => format!("{{\"thoughts\": [\"a{}\", \"b\", \"c (final)\"]}}", dice.below(9)),
            },
            Purpose::Value { .. } | Purpose::Score { .. } => {
                format!("{}/10", dice.below(11))
            }
            Purpose::Vote { .. } => format!("Choice {}", 1 + dice.below(4)),
            Purpose::Judge { .. } => dice.of(&["simple", "complex", "complex"]).to_owned(),
            Purpose::Plan { .. } => {
                let count = 1 + dice.below(6);
                let nodes = (0..count).map(|at| {
                    let needs =
                        if dice.one_in(3) { dice.below(count) } else { at.saturating_sub(1) };
                    let needs =
                        if dice.one_in(2) { String::new() } else { format!("\"n{needs}\"") };
                    let (attempts, refine) = (dice.below(4), dice.below(3));
                    format!(
                        "{{\"id\": \"n{at}\", \"task\": \"t{at}\", \"needs\": [{needs}], \
                         \"attempts\": {attempts}, \"refine\": {refine}}}"
                    )
                });
                format!("{{\"nodes\": [{}]}}", nodes.collect::<Vec<_>>().join(", "))
            }
            Purpose::Information => "{\"constraints\": [\"c\"], \"context\": \"x\"}".to_owned(),
            _ => format!("said {}", dice.below(100)),
        }
    }

    fn folded(&self) -> State {
        let mut state = State::default();
        self.log.iter().for_each(|entry| state.apply(entry));
        state
    }

    /// The server stops here, and comes back.
    fn crash(&mut self) -> Played {
        if let Some(turn) = self.state.turn() {
            let searches = !turn.method.is_done();
            self.count(if searches { "crash in a search" } else { "crash in a turn" });
        }
        if self.folded() != self.state {
            return Err("[10] the state is not the fold of its log".into());
        }
        self.live = if self.dice.one_in(2) { Live::default() } else { self.live.clone() };
        self.record(recover(&self.state, &self.live))?;
        self.live = Live::of(&self.state);
        self.begun.clear();
        let again = recover(&self.state, &self.live);
        if !again.is_empty() {
            return Err(format!("recovering twice gives {again:?}"));
        }
        self.kept()
    }

    fn fork(&mut self) -> Played {
        if self.state.turn().is_some() {
            self.count("fork of a running turn");
        }
        let session = SessionId::parse("other").map_err(|_| "a bad id")?;
        let (upto, by) = (self.state.last_seq(), Who::via("test"));
        self.record(vec![Event::Forked { session, upto, by }])?;
        self.crash()
    }

    /// What may be kept beside the log says all.
    fn kept(&self) -> Played {
        if self.state.turn().is_some() || !self.state.may_be_kept() {
            return Ok(());
        }
        let text = serde_json::to_string(&self.state).map_err(|error| error.to_string())?;
        let read: State = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        if read != self.state {
            return Err("[10] a kept state is another".into());
        }
        Ok(())
    }

    /// All comes to its end: whoever is asked agrees, and nothing else happens.
    fn rest(&mut self) -> Played {
        loop {
            let steps = self.advance()?;
            let wait = self.state.turn().and_then(|turn| turn.waits.keys().next().copied());
            match (steps.first(), wait) {
                (Some(step), _) => self.perform(*step)?,
                (None, Some(wait)) => {
                    let reply = WaitReply::Approve { message: None };
                    let (wait, by) = (WaitRef::Id(wait), Who::via("test"));
                    self.command(Command::Settle { wait, reply, by })?;
                }
                (None, None) => break,
            }
        }
        if self.state.turn().is_some() {
            return Err("[10] it does not come to rest".into());
        }
        self.kept()
    }
}

const AGENTS: [Agent; 5] = [Agent::React, Agent::Dup, Agent::Tot, Agent::Got, Agent::Got];

fn kind(purpose: Purpose) -> String {
    let whole = format!("{purpose:?}");
    whole.split([' ', '{']).next().unwrap_or_default().to_lowercase()
}

impl Dice {
    pub fn below(&mut self, most: u64) -> u64 {
        (self.next() >> 16) % most.max(1)
    }

    pub fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    pub fn of<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len() as u64) as usize]
    }
}

/// What a run must have met, or its silence says nothing.
const MET: &[&str] = &[
    "misread",
    "understood",
    "expanded",
    "scored",
    "chosen",
    "backtracked",
    "path_taken",
    "planned",
    "judged",
    "node_started",
    "kept",
    "refined",
    "node_ended",
    "gathered",
    "concluded",
    "compacted",
    "trimmed",
    "wait_opened",
    "forked",
    "crash in a search",
    "fork of a running turn",
    "resumed",
    "failed expand",
    "failed value",
    "failed vote",
    "failed plan",
    "failed judge",
    "failed score",
    "failed refine",
    "failed question",
    "failed information",
    "failed think",
    "failed summarise",
    "noticed misread",
    "noticed branch_failed",
    "noticed opinion_failed",
    "noticed plan_failed",
    "noticed judge_failed",
    "noticed refine_failed",
    "noticed search_ended",
    "noticed plan_repaired",
];

const CASES: u64 = 150;

pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn every_invariant_holds_in_every_session() {
    let (cases, seed) = (number("POLYLOOP_CASES"), number("POLYLOOP_SEED").unwrap_or(7));
    let mut met: BTreeMap<String, u32> = BTreeMap::new();
    // Where to begin, so that one session can be played again.
    let first = number("POLYLOOP_FIRST").unwrap_or(0);
    for case in first..first + cases.unwrap_or(CASES) {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(case);
        match play(seed) {
            Ok(session) => {
                for (what, count) in session.met {
                    *met.entry(what).or_default() += count;
                }
            }
            Err(told) => panic!("session {seed}: {told}"),
        }
    }
    println!("{met:#?}");
    let missed: Vec<_> = MET.iter().filter(|what| !met.contains_key(**what)).collect();
    assert!(cases.is_some_and(|cases| cases < CASES) || missed.is_empty(), "never met: {missed:?}");
}
