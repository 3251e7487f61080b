//! Any event at all, made of a few texts that recur in it.

use polyloop_session::context::Strategy as Context;
use polyloop_session::event::{
    Adopted, Agent, CallOutcome, Level, Origin, Outcome, RunOptions, Setting, Settings, Skipped,
    Stop, Window, Work,
};
use polyloop_session::item::{
    End, Fault, FileChange, ItemKind, Opaque, Operation, Part, ToolResult, Usage,
};
use polyloop_session::policy::{Effect, Judgement, Key, Leave, Mode, Risk, Rule, Says};
use polyloop_session::todos::{Priority, Status, Todo};
use polyloop_session::wait::{Answer, Ask, Choice, Given, Instead, Question, Then, Who};
use polyloop_session::{
    CallId, Event, ItemId, LogEntry, MessageId, Seq, SessionId, Text, Timestamp, TurnId, WaitId,
};

/// A source of choices: texts from a pool, numbers from a list, both over and over.
pub struct Choices<'a> {
    texts: &'a [String],
    numbers: &'a [u64],
    at: usize,
}

mod search;

pub const KINDS: u64 = 34 + search::KINDS;

impl<'a> Choices<'a> {
    pub fn new(texts: &'a [String], numbers: &'a [u64]) -> Choices<'a> {
        Choices { texts, numbers, at: 0 }
    }

    fn number(&mut self) -> u64 {
        self.at += 1;
        self.numbers[self.at % self.numbers.len()].wrapping_add(self.at as u64 / 7)
    }

    fn one<T: Clone>(&mut self, among: &[T]) -> T {
        among[(self.number() % among.len() as u64) as usize].clone()
    }

    fn maybe(&mut self) -> bool {
        self.number().is_multiple_of(2)
    }

    fn text(&mut self) -> Text {
        self.one(self.texts).into()
    }

    fn maybe_text(&mut self) -> Option<Text> {
        self.maybe().then(|| self.text())
    }

    /// A place that is often one of the few entries before.
    fn seq(&mut self) -> Seq {
        let near = 1 + self.number() % 8;
        self.one(&[Seq(near), Seq(near), Seq(near), Seq(u64::MAX)])
    }

    fn who(&mut self) -> Who {
        Who { via: "agentloop".into(), name: self.maybe_text(), from: None }
    }

    fn texts(&mut self) -> Vec<Text> {
        (0..self.number() % 4).map(|_| self.text()).collect()
    }

    fn content(&mut self) -> Vec<Part> {
        let texts = self.texts().into_iter();
        texts
            .map(|text| match self.number() % 4 {
                0 => Part::Image { media_type: "image/png".into(), data: text },
                _ => Part::Text { text },
            })
            .collect()
    }

    fn keys(&mut self) -> Vec<Key> {
        let risk = self.one(&[Risk::Low, Risk::Medium, Risk::High]);
        self.texts().into_iter().map(|what| Key { what, risk }).collect()
    }

    fn mode(&mut self) -> Mode {
        use Mode::{AutoEdit, Bypass, DontAsk, FullAuto, Plan, Suggest};
        self.one(&[Suggest, AutoEdit, FullAuto, Bypass, Plan, DontAsk])
    }

    fn fault(&mut self) -> Fault {
        let code = self.one(&["429", "disconnected", ""]);
        Fault { message: self.text(), code: code.into() }
    }

    fn usage(&mut self) -> Usage {
        let (input_tokens, output_tokens) = (self.number(), self.number());
        Usage {
            input_tokens,
            output_tokens,
            cached_tokens: self.number(),
            cache_written_tokens: self.one(&[0, 1, u64::MAX]),
            reasoning_tokens: self.one(&[0, 7]),
            cost_micros: self.maybe().then(|| self.number()),
        }
    }

    fn judgement(&mut self) -> Judgement {
        Judgement {
            effect: self.effect(),
            safe: self.maybe(),
            confined: self.maybe(),
            sandbox: self.maybe(),
            refusal: self.maybe_text(),
            risk: self.one(&[Risk::Low, Risk::Medium, Risk::High]),
            reason: self.text(),
            command: self.texts(),
            patch: self.maybe_text(),
            diff: None,
            plan_file: self.maybe_text(),
            covers: self.text(),
            keys: self.keys(),
            rule: self.rule(),
        }
    }

    fn rule(&mut self) -> Option<Rule> {
        let says = self.one(&[Says::Allow, Says::Ask, Says::Deny]);
        self.maybe().then(|| Rule { says, line: self.text() })
    }

    fn leave(&mut self) -> Option<Leave> {
        match self.number() % 7 {
            0 => None,
            1 => Some(Leave::Reads),
            2 => Some(Leave::Safe),
            3 => Some(Leave::Mode { mode: self.mode() }),
            4 => Some(Leave::Granted),
            5 => Some(Leave::Rule { line: self.text() }),
            _ => Some(Leave::Person),
        }
    }

    fn refused(&mut self) -> Event {
        Event::SandboxRefused {
            item: ItemId(self.seq()),
            reason: self.text(),
            text: self.text(),
            result: Box::new(self.result()),
            answerable: self.maybe(),
        }
    }

    fn effect(&mut self) -> Effect {
        use Effect::{Edit, Execute, Network, Plan, Question, Read};
        self.one(&[Read, Edit, Execute, Network, Question, Plan])
    }

    fn ask(&mut self) -> Ask {
        match self.number() % 4 {
            0 => Ask::Approval,
            3 => Ask::Outside { reason: self.text() },
            1 => Ask::Plan { plan: self.text(), path: self.maybe_text() },
            _ => Ask::Question { questions: vec![self.question()] },
        }
    }

    fn question(&mut self) -> Question {
        let (header, multi) = (self.maybe_text(), self.maybe());
        let labels = self.texts();
        let option = |label| Choice { label, description: self.maybe_text() };
        let options = labels.into_iter().map(option).collect();
        Question { header, question: self.text(), options, multi }
    }

    fn answer(&mut self) -> Answer {
        match self.number() % 3 {
            0 => {
                let then = self.one(&[Then::Continue, Then::EndTurn]);
                Answer::Denied { message: self.text(), then }
            }
            1 => {
                let given = Given { selected: self.texts(), text: self.maybe_text() };
                Answer::Answered { answers: vec![given], said: self.maybe_text() }
            }
            _ => {
                let instead = self.maybe().then(|| {
                    let args = self.text();
                    Box::new(Instead { args, judgement: self.judgement() })
                });
                let (message, always) = (self.maybe_text(), self.maybe());
                Answer::Approved { grants: self.keys(), instead, message, always }
            }
        }
    }

    fn agent(&mut self) -> Option<Agent> {
        self.one(&[None, Some(Agent::React), Some(Agent::Dup), Some(Agent::Tot), Some(Agent::Got)])
    }

    fn settings(&mut self) -> Settings {
        Settings {
            cwd: self.text(),
            model: self.text(),
            mode: self.mode(),
            calls_max: self.number() as u32,
            tokens_max: self.maybe().then(|| self.number()),
            agent: self.agent(),
            title: self.maybe_text(),
            metadata: self.maybe_text(),
        }
    }

    fn setting(&mut self) -> Setting {
        match self.number() % 5 {
            0 => Setting::Model { model: self.text(), tokens_max: self.number() },
            1 => Setting::Agent { agent: self.agent().unwrap_or_default() },
            2 => Setting::Title { title: self.text() },
            3 => Setting::CallsMax { calls_max: self.number() as u32 },
            _ => Setting::Metadata { json: self.text() },
        }
    }

    fn run(&mut self) -> Option<Box<RunOptions>> {
        let run = RunOptions {
            agent: self.agent(),
            adaptive: self.maybe(),
            bounds: None,
            cwd: self.maybe_text(),
            calls_max: self.maybe().then(|| self.number() as u32),
            verbose: self.maybe(),
            alone: self.maybe(),
        };
        self.maybe().then(|| Box::new(run))
    }

    fn result(&mut self) -> ToolResult {
        let operation = match self.number() % 4 {
            0 => Operation::Create,
            1 => Operation::Update,
            2 => Operation::Delete,
            _ => Operation::Move { from: self.text() },
        };
        let change = FileChange {
            diff: None,
            path: self.text(),
            operation,
            before: self.maybe_text(),
            after: self.maybe_text(),
            mode: self.maybe().then_some(0o640),
            before_blob: self.maybe_text(),
            link: self.maybe_text(),
        };
        ToolResult {
            seen: self.maybe_text(),
            exit_code: self.one(&[None, Some(0), Some(-1), Some(i32::MAX)]),
            duration_ms: self.number(),
            files: if self.maybe() { vec![change] } else { Vec::new() },
            todos: self.maybe_text(),
            todo_list: self.maybe().then(|| vec![self.todo()]),
        }
    }

    fn todo(&mut self) -> Todo {
        let (status, priority) = (Status::Cancelled, Priority::Low);
        Todo { content: self.text(), status, priority }
    }

    fn adopted(&mut self) -> Option<Adopted> {
        match self.number() % 5 {
            0 => None,
            1 => Some(Adopted::User { content: self.content() }),
            2 => Some(Adopted::Agent { text: self.text() }),
            3 => Some(Adopted::ToolCall {
                call_ref: self.text(),
                name: self.text(),
                args: self.text(),
            }),
            _ => Some(Adopted::ToolResult { call_ref: self.text(), output: self.text() }),
        }
    }

    fn completed(&mut self) -> Event {
        use End::{Cut, Denied, Discarded, Failed, Interrupted, Whole};
        let opaque = self.opaque();
        Event::ItemCompleted {
            item: ItemId(self.seq()),
            end: self.one(&[Whole, Cut, Discarded, Denied, Failed, Interrupted]),
            text: self.text(),
            opaque,
            result: self.maybe().then(|| Box::new(self.result())),
            tokens: self.number(),
        }
    }

    fn opaque(&mut self) -> Option<Opaque> {
        self.maybe().then(|| Opaque { provider: self.text(), json: self.text() })
    }

    fn work(&mut self) -> Work {
        match self.number() % 3 {
            0 => Work::Message { message: MessageId(self.seq()) },
            1 => Work::Resume { turn: TurnId(self.seq()), by: self.who() },
            _ => Work::Compact { by: self.who() },
        }
    }

    fn outcome(&mut self) -> Outcome {
        match self.number() % 3 {
            0 => Outcome::Completed,
            1 => Outcome::Failed { fault: self.fault() },
            _ => Outcome::Interrupted { reason: self.text() },
        }
    }

    fn call_outcome(&mut self) -> CallOutcome {
        match self.number() % 5 {
            0 => CallOutcome::Answered,
            1 => CallOutcome::Failed { fault: self.fault() },
            2 => CallOutcome::Stopped,
            3 => CallOutcome::Retried { fault: self.fault(), after_ms: self.number() },
            _ => CallOutcome::Lost,
        }
    }

    fn item(&mut self) -> ItemKind {
        let name = self.one(&["bash", "apply_patch"]).into();
        let call = ItemKind::ToolCall { name, call_ref: self.text(), native: false };
        self.one(&[ItemKind::Text, ItemKind::Reasoning, call])
    }

    /// Items and what follows on them come often, so that some fit each other.
    pub fn event(&mut self, kind: u64) -> Event {
        match kind % KINDS {
            0 => {
                let settings = self.settings();
                Event::SessionCreated { settings, by: self.who() }
            }
            1 => Event::Adopted { piece: self.adopted() },
            2 => Event::ModeSet { mode: self.mode(), by: self.who() },
            3 => Event::MessageQueued {
                content: self.content(),
                origin: Origin {
                    who: self.who(),
                    can_approve: self.maybe(),
                    can_answer: self.maybe(),
                },
                client_ref: self.maybe_text(),
                tokens: self.number(),
                run: self.run(),
                waits: self.maybe(),
            },
            4 => Event::MessageDropped { message: MessageId(self.seq()), by: self.who() },
            5 => Event::TurnStarted {
                work: self.work(),
                agent: self.agent(),
                cwd: self.maybe_text(),
                earlier: self.maybe().then(|| self.number()),
            },
            6 => Event::TurnStopping { reason: Stop::Denied { wait: WaitId(self.seq()) } },
            7 => {
                let reason = Stop::Interrupted { by: self.who(), reason: self.text() };
                Event::TurnStopping { reason }
            }
            8 => Event::TurnEnded { outcome: self.outcome(), usage: self.usage() },
            9 => {
                let (purpose, line) = (self.purpose(), self.line());
                let (model, tokens_max) = (self.text(), self.number());
                let overhead_tokens = self.maybe().then(|| self.number());
                Event::CallStarted { purpose, model, tokens_max, overhead_tokens, line }
            }
            10 => Event::CallEnded {
                call: CallId(self.seq()),
                outcome: self.call_outcome(),
                usage: self.maybe().then(|| self.usage()),
            },
            11 | 12 => {
                let (call, block) = (CallId(self.seq()), self.number() as u32);
                Event::ItemStarted { call, block, item: self.item() }
            }
            13 | 14 => Event::ToolProposed {
                item: ItemId(self.seq()),
                args: self.text(),
                judgement: Box::new(self.judgement()),
                answerable: self.maybe(),
                tokens: self.number(),
                opaque: self.opaque(),
            },
            15 => Event::ToolStarted {
                item: ItemId(self.seq()),
                sandboxed: self.maybe(),
                leave: self.leave(),
            },
            16 | 17 => self.completed(),
            18 => Event::WaitOpened { item: ItemId(self.seq()), ask: self.ask() },
            19 => {
                let (wait, answer) = (WaitId(self.seq()), self.answer());
                Event::WaitSettled { wait, answer, by: self.who() }
            }
            20 => Event::WaitWithdrawn {
                wait: WaitId(self.seq()),
                reason: self.text(),
                by: self.maybe().then(|| self.who()),
            },
            21 => Event::ExplainAsked { wait: WaitId(self.seq()), by: self.who() },
            22 => self.compacted(),
            23 => Event::SettingSet { setting: self.setting(), by: self.who() },
            24 => Event::SessionClosed { by: self.who() },
            25 => Event::SessionReopened { by: self.who() },
            26 | 27 => self.refused(),
            28 => {
                let session = SessionId::parse("other").unwrap();
                Event::Forked { session, upto: self.seq(), by: self.who() }
            }
            29 => {
                let (item, files) = (ItemId(self.seq()), self.result().files);
                let (made, removed) = (vec![self.text()], vec![self.text()]);
                Event::FilesTouched { item, files, made, removed }
            }
            30 => self.undone(),
            31 => match self.undone() {
                Event::Undone { items, files, made, removed, skipped, cwd, by, .. } => {
                    Event::UndoStarted { items, files, made, removed, skipped, cwd, by }
                }
                other => other,
            },
            32 => Event::UndoFailed { reason: self.text() },
            34.. => self.search(kind),
            33 => {
                let level = self.one(&[Level::Info, Level::Warning]);
                Event::Noticed { level, text: self.text(), code: self.text() }
            }
        }
    }

    fn undone(&mut self) -> Event {
        Event::Undone {
            items: vec![ItemId(self.seq())],
            files: self.result().files,
            made: vec![self.text()],
            removed: vec![self.text()],
            skipped: vec![Skipped { path: self.text(), reason: self.text() }],
            cwd: self.maybe_text(),
            by: self.who(),
            tokens: self.number(),
        }
    }

    fn compacted(&mut self) -> Event {
        let strategy = self.one(&[Context::Threshold, Context::Dummy]);
        let overhead_tokens = self.maybe().then(|| self.number());
        let (tokens_max, pieces) = (self.number(), self.number());
        let window = Window { tokens_max, strategy, pieces, overhead_tokens };
        if self.maybe() {
            return Event::Trimmed {
                items: vec![ItemId(self.seq())],
                stub: self.text(),
                stub_tokens: self.number(),
                tokens_before: self.number(),
                tokens_after: self.number(),
                window,
                line: self.line(),
            };
        }
        Event::Compacted {
            call: CallId(self.seq()),
            upto: self.seq(),
            summary: self.text(),
            summary_tokens: self.number(),
            tokens_before: self.number(),
            tokens_after: self.number(),
            window,
            line: self.line(),
        }
    }

    pub fn entry(&mut self, seq: u64, kind: u64) -> LogEntry {
        let at = Timestamp((self.number() % 4_000_000_000_000) as i64);
        LogEntry { seq: Seq(seq), at, event: self.event(kind) }
    }
}
