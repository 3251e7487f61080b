//! Sessions of all agents, played with the strategies themselves and a model that is a function of
//! what it is asked: the golden folders that are called `agent-…` hold what these give.
//!
//! `POLYLOOP_BLESS=1` writes the folders anew; every line that changed is then to be read.

use std::fs;
use std::sync::Arc;

use polyloop_session::command::{Send, WaitReply};
use polyloop_session::event::{Purpose, RunOptions};
use polyloop_session::history::{Message, prompt};
use polyloop_session::item::{End, Fault, ItemKind, Part, ToolResult, Usage};
use polyloop_session::policy::{Effect, Judgement, Mode};
use polyloop_session::wait::Who;
use polyloop_session::{
    Answerable, CallId, Chance, Command, Delivery, Event, Growth, Heal, ItemId, LogEntry, Next,
    Proposal, Report, Step, Stream, Timestamp, Update, WaitRef, absorb, decide, next,
};

use super::fixture::{golden, scenarios};
use super::golden::LIMITS;
use super::make::{judgement, origin, parts, settings};
use super::speaks;
use super::world::{Moment, Sent, sent};

mod stories;

/// One session: what is asked for, and how the model answers.
pub struct Story {
    pub name: &'static str,
    pub message: &'static str,
    pub run: RunOptions,
    pub model: fn(&Asked) -> Reply,
    /// After so many rounds somebody interrupts it, and then resumes.
    pub interrupted: Option<usize>,
}

/// What the model is asked.
pub struct Asked {
    pub purpose: Purpose,
    /// The last thing that a user said.
    pub last: String,
    /// Results of tools that it was told.
    pub results: usize,
}

impl Asked {
    pub fn about(&self, text: &str) -> bool {
        self.last.contains(text)
    }
}

pub enum Reply {
    Say(&'static str),
    /// Reasoning before it is said.
    Muse(&'static str, &'static str),
    /// A command that only reads.
    Look(&'static str),
    /// A command that a person is asked about.
    Change(&'static str),
    Fail,
}

struct Play {
    now: Moment,
    updates: Vec<Update>,
    at: i64,
}

/// A call that is being answered.
struct Answer {
    call: CallId,
    /// Blocks with what is written in each.
    blocks: Vec<(ItemKind, String)>,
    proposals: Vec<Proposal>,
    fails: bool,
}

const ROUNDS_MAX: usize = 60;

pub fn play(story: &Story) -> Vec<Update> {
    let mut play = Play { now: Moment::default(), updates: Vec::new(), at: 1_736_426_096_789 };
    let settings = settings(Mode::Suggest);
    play.record(vec![Event::SessionCreated { settings, by: Who::via("loom") }]);
    let send = Send {
        content: parts(story.message),
        origin: polyloop_session::event::Origin { who: Who::via("loom"), ..origin() },
        client_ref: Some("r1".into()),
        delivery: Delivery::Queue,
        tokens: 4,
        run: Some(Box::new(story.run.clone())),
    };
    play.command(Command::Send(Box::new(send)));
    for round in 0..ROUNDS_MAX {
        let steps = play.advance();
        if play.now.state.turn().is_none() {
            return play.updates;
        }
        if story.interrupted == Some(round) {
            play.interrupt(steps);
            continue;
        }
        play.round(story, steps);
    }
    panic!("{} has no end", story.name);
}

impl Play {
    fn record(&mut self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        self.at += 500;
        for event in events {
            let (seq, at) = (self.now.state.last_seq().next(), Timestamp(self.at));
            self.send(Update::Logged(Arc::new(LogEntry { seq, at, event })));
        }
    }

    fn send(&mut self, update: Update) {
        self.now.take(&update);
        self.updates.push(update);
    }

    fn command(&mut self, command: Command) {
        let events = decide(&self.now.state, command, &LIMITS).unwrap();
        self.record(events);
    }

    fn report(&mut self, report: Report) {
        let events = absorb(&self.now.state, &self.now.live, &LIMITS, report);
        self.record(events);
    }

    fn advance(&mut self) -> Vec<Step> {
        loop {
            match next(&self.now.state, &LIMITS) {
                Next::Record(events) => self.record(events),
                Next::Steps(steps) => return steps,
            }
        }
    }

    fn grow(&mut self, item: ItemId, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        let offset = self.now.live.len(item, stream);
        self.send(Update::Grew(Growth { item, stream, offset, text: text.into() }));
    }

    /// All that is open goes on at the same time, and ends in another order than it began.
    fn round(&mut self, story: &Story, steps: Vec<Step>) {
        let asks = steps.iter().filter_map(|step| match step {
            Step::Ask(call) => Some(*call),
            _ => None,
        });
        let mut answers: Vec<Answer> = asks.map(|call| self.answer(story, call)).collect();
        let blocks_max = answers.iter().map(|answer| answer.blocks.len()).max().unwrap_or(0);
        for block in 0..blocks_max {
            self.write(&answers, block);
        }
        answers.reverse();
        for answer in answers {
            self.end(answer);
            self.advance();
        }
        for step in steps {
            if let Step::Run(item) = step {
                self.grow(item, Stream::Output, "a.txt\n");
                let result = ToolResult { exit_code: Some(0), ..ToolResult::default() };
                let (end, result) = (End::Whole, Box::new(result));
                self.report(Report::ToolEnded { item, end, result });
                self.advance();
            }
        }
        while self.now.state.turn().is_some_and(|turn| !turn.waits.is_empty()) {
            let (wait, by) = (WaitRef::Presented, Who::via("unified"));
            let reply = WaitReply::Approve { message: None };
            self.command(Command::Settle { wait, reply, by });
            self.advance();
        }
    }

    fn asked(&self, call: CallId) -> Asked {
        let prompt = prompt(&self.now.state, call, &LIMITS).unwrap();
        let last = prompt.messages.iter().rev().find_map(|message| match message {
            Message::User(said) => {
                let texts: Vec<_> = said.iter().map(Part::shown).collect();
                Some(texts.join("\n"))
            }
            _ => None,
        });
        let is_result = |message: &&Message| matches!(message, Message::ToolResult { .. });
        let results = prompt.messages.iter().filter(is_result).count();
        Asked { purpose: prompt.purpose, last: last.unwrap_or_default(), results }
    }

    fn answer(&self, story: &Story, call: CallId) -> Answer {
        let reply = (story.model)(&self.asked(call));
        let (mut proposals, mut fails) = (Vec::new(), false);
        let blocks = match reply {
            Reply::Say(text) => vec![(ItemKind::Text, text.to_owned())],
            Reply::Muse(thought, text) => {
                vec![(ItemKind::Reasoning, thought.to_owned()), (ItemKind::Text, text.to_owned())]
            }
            Reply::Fail => {
                fails = true;
                vec![(ItemKind::Text, "Well".to_owned())]
            }
            Reply::Look(command) | Reply::Change(command) => {
                let safe = matches!(reply, Reply::Look(_));
                let effect = if safe { Effect::Read } else { Effect::Execute };
                let args = serde_json::json!({ "command": command }).to_string();
                let words: Vec<&str> = command.split(' ').collect();
                let judgement = Judgement { safe, ..judgement(effect, &words, None) };
                let (judgement, opaque) = (Box::new(judgement), None);
                let block = 0;
                proposals.push(Proposal { block, args: args.as_str().into(), judgement, opaque });
                let call_ref = format!("c{}", call.0).into();
                vec![(ItemKind::ToolCall { name: "bash".into(), call_ref, native: false }, args)]
            }
        };
        Answer { call, blocks, proposals, fails }
    }

    /// One block of all answers, side by side.
    fn write(&mut self, answers: &[Answer], block: usize) {
        let mut open = Vec::new();
        for answer in answers {
            let Some((kind, text)) = answer.blocks.get(block) else { continue };
            let stream = match kind {
                ItemKind::Text | ItemKind::Reasoning => Stream::Text,
                ItemKind::ToolCall { .. } => Stream::Args,
            };
            let item = self.block(answer.call, block as u32, kind.clone());
            open.push((answer.call, item, stream, text));
        }
        for half in 0..2 {
            for (_, item, stream, text) in &open {
                let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
                self.grow(*item, *stream, if half == 0 { first } else { second });
            }
        }
        for (call, _, stream, _) in open {
            if stream == Stream::Text {
                let (block, opaque) = (block as u32, None);
                self.report(Report::BlockEnded { call, block, opaque });
            }
        }
    }

    fn block(&mut self, call: CallId, block: u32, kind: ItemKind) -> ItemId {
        self.report(Report::BlockStarted { call, block, kind });
        self.now.state.turn().unwrap().item_of(call, block).unwrap()
    }

    fn end(&mut self, answer: Answer) {
        let Answer { call, proposals, fails, .. } = answer;
        let usage = Some(Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() });
        if fails {
            let (fault, chance) = (Fault::new("broken", "The model broke"), Chance(0));
            let heal = Heal::Never;
            return self.report(Report::CallFailed { call, fault, heal, chance, usage });
        }
        let answerable = Answerable { approvals: true, questions: true };
        self.report(Report::Answered { call, usage, proposals, answerable });
    }

    /// Somebody stops it amid what is open, and has it taken up again.
    fn interrupt(&mut self, steps: Vec<Step>) {
        if let Some(Step::Ask(call)) = steps.first() {
            let item = self.block(*call, 0, ItemKind::Text);
            self.grow(item, Stream::Text, "Well, ");
        }
        let (turn, reason, by) = (None, "enough".into(), Who::via("loom"));
        self.command(Command::Interrupt { turn, reason, by });
        for step in self.advance() {
            match step {
                Step::StopCall(call) => self.report(Report::CallStopped { call }),
                Step::StopTool(item) => {
                    let (end, result) = (End::Interrupted, Box::new(ToolResult::default()));
                    self.report(Report::ToolEnded { item, end, result });
                }
                Step::Ask(_) | Step::Run(_) => {}
            }
        }
        self.advance();
        self.command(Command::Resume { by: Who::via("loom") });
    }
}

/// What the golden folders of agents hold is what the strategies give.
#[test]
fn golden_searches_are_what_strategies_record() {
    let blesses = std::env::var_os("POLYLOOP_BLESS").is_some();
    if blesses {
        stories::all().iter().for_each(bless);
    }
    let scenarios = scenarios();
    let mut known = Vec::new();
    for story in stories::all() {
        let scenario = scenarios.iter().find(|scenario| scenario.name == story.name);
        let scenario = scenario.unwrap_or_else(|| panic!("no golden folder {}", story.name));
        let (want, got) = (scenario.updates(scenario.steps.len()), play(&story));
        let (want, got) = (want.iter().map(line), got.iter().map(line));
        for (at, (want, got)) in want.clone().zip(got.clone()).enumerate() {
            assert_eq!(want, got, "{} line {}", story.name, at + 1);
        }
        assert_eq!(want.count(), got.count(), "{}", story.name);
        known.push(story.name);
    }
    let others = scenarios.iter().filter(|scenario| scenario.name.starts_with("agent-"));
    for scenario in others {
        assert!(known.contains(&scenario.name.as_str()), "{} is nobody's", scenario.name);
    }
}

fn line(update: &Update) -> String {
    let text = match update {
        Update::Logged(entry) => serde_json::to_string(&**entry).unwrap(),
        Update::Grew(growth) => format!("{{\"grew\":{}}}", serde_json::to_string(growth).unwrap()),
        Update::Raw(_) => panic!("nothing raw is played"),
    };
    spaced(&text)
}

fn bless(story: &Story) {
    let folder = golden().join(story.name);
    fs::create_dir_all(&folder).unwrap();
    let write = |file: String, lines: Vec<String>| {
        fs::write(folder.join(file), lines.join("\n") + "\n").unwrap();
    };
    let updates = play(story);
    write("log.jsonl".into(), updates.iter().map(line).collect());
    for dialect in speaks::all() {
        let by_update = sent(*dialect, &updates);
        let frames: Vec<Sent> = by_update.concat();
        let names = Names::of(dialect.name(), &frames);
        let out = frames.iter().map(|frame| names.put(frame)).collect();
        write(format!("{}.out.jsonl", dialect.name()), out);
        let all = updates.len();
        let mut attached = Vec::new();
        let left = by_update[..all / 4].iter().rev().find_map(|frames| frames.last());
        let cursor = left.map(|frame| speaks::cursor_of(frame));
        for (lines, since) in
            [(all / 3, None), (all / 2, None), (all * 2 / 3, None), (all / 2, cursor)]
        {
            let moment = Moment::after(&updates[..lines]);
            let frames = moment.attach(*dialect, since.as_ref());
            let frames: Vec<String> = frames.iter().map(|frame| names.put(frame)).collect();
            let since = since.map_or("null".to_string(), |cursor| format!("\"{cursor}\""));
            attached.push(format!(
                "{{\"after_lines\": {lines}, \"since\": {since}, \"frames\": [{}]}}",
                frames.join(", ")
            ));
        }
        write(format!("{}.attach.jsonl", dialect.name()), attached);
    }
}

/// Ids that no file spells out.
struct Names(Vec<(String, String)>);

impl Names {
    fn of(dialect: &str, frames: &[Sent]) -> Names {
        let mut names: Vec<(String, String)> = Vec::new();
        let runs = |id: &str| id.starts_with("run-") && dialect == "loom";
        for id in frames.iter().filter_map(|frame| frame["id"].as_str()).filter(|id| runs(id)) {
            if !names.iter().any(|(known, _)| known == id) {
                let number = names.len() + 1;
                let name = if number == 1 { "$run".into() } else { format!("$run{number}") };
                names.push((id.to_string(), name));
            }
        }
        Names(names)
    }

    fn put(&self, frame: &Sent) -> String {
        let mut text = frame.text.clone();
        for (id, name) in &self.0 {
            text = text.replace(&format!("\"{id}\""), &format!("\"{name}\""));
        }
        let own = frame["event"]["checkpoint_id"].as_str();
        let theirs = frame["id"].as_str().filter(|_| frame.json.get("payload").is_some());
        for id in own.into_iter().chain(theirs) {
            text = text.replacen(&format!("\"{id}\""), "\"*\"", 1);
        }
        spaced(&text)
    }
}

/// JSON with a blank behind each colon and comma, which reads better.
fn spaced(json: &str) -> String {
    let (mut text, mut quoted, mut escaped) = (String::new(), false, false);
    for letter in json.chars() {
        text.push(letter);
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            ':' | ',' if !quoted => text.push(' '),
            _ => {}
        }
    }
    text
}
