//! Plays the actor without I/O: one door to the log, steps that run until something reports, and
//! crashes at any entry. After every entry and every step it checks what must hold.

use std::collections::BTreeMap;

use polyloop_session::event::{Event, Level, Stop};
use polyloop_session::history::{Prompt, prompt};
use polyloop_session::policy::Mode;
use polyloop_session::state::ToolPhase;
use polyloop_session::{
    Answerable, CallId, Command, Growth, ItemId, Limits, Live, LogEntry, Next, Report, State, Step,
    Stream, Timestamp, absorb, decide, next,
};

use super::audit::Audit;
use super::heard::heard;
use super::names::named;

mod crash;
mod edits;
mod fail;
mod outside;
mod room;

pub enum Halt {
    /// The fuse burnt down: the process is gone, the log and the journal are not.
    Crashed,
    Broken(String),
}

impl From<String> for Halt {
    fn from(told: String) -> Halt {
        Halt::Broken(told)
    }
}

pub type Run<T = ()> = Result<T, Halt>;

pub struct Sim {
    pub state: State,
    pub live: Live,
    pub log: Vec<LogEntry>,
    pub limits: Limits,
    /// Steps that a performer works at.
    pub running: Vec<Step>,
    pub now: i64,
    /// Entries that may still be written before the process dies.
    pub fuse: Option<u32>,
    /// What happened how often, so that a test can tell whether anything did.
    pub tally: BTreeMap<String, u64>,
    audit: Audit,
    /// The fold of the same entries, each read back from its JSON.
    mirror: State,
    journal: Vec<Growth>,
    prompts: BTreeMap<CallId, Prompt>,
    /// When room was made by itself, and what came since.
    room: room::Made,
}

impl Sim {
    pub fn new(limits: Limits) -> Sim {
        Sim {
            state: State::default(),
            live: Live::default(),
            log: Vec::new(),
            limits,
            running: Vec::new(),
            now: 1_000,
            fuse: None,
            tally: BTreeMap::new(),
            audit: Audit::new(limits.retries_max, limits.tokens_max),
            mirror: State::default(),
            journal: Vec::new(),
            prompts: BTreeMap::new(),
            room: room::Made::default(),
        }
    }

    pub fn count(&mut self, what: &str) {
        *self.tally.entry(what.into()).or_default() += 1;
    }

    /// The one door: numbers, appends, applies.
    pub fn record(&mut self, events: Vec<Event>) -> Run {
        let first = self.state.last_seq().next();
        for event in events {
            match &mut self.fuse {
                Some(0) => return Err(Halt::Crashed),
                Some(left) => *left -= 1,
                None => {}
            }
            let own = named(&event).into_iter().find(|seq| *seq >= first);
            ensure!(own.is_none(), "{event:?} names a sibling of its batch, from {first} on");
            self.now += 1;
            let (seq, at) = (self.state.last_seq().next(), Timestamp(self.now));
            self.append(LogEntry { seq, at, event })?;
        }
        let turn = self.state.turn();
        self.journal.retain(|g| turn.is_some_and(|turn| turn.items.contains_key(&g.item)));
        self.agrees()
    }

    fn append(&mut self, entry: LogEntry) -> Run {
        if let Event::CallEnded { call, .. } = &entry.event {
            self.same_prompt(*call)?;
        }
        self.audit.entry(&entry, Some(&self.live))?;
        self.allowed(&entry.event)?;
        self.tell_run(&entry.event);
        let json = serde_json::to_string(&entry).map_err(|error| error.to_string())?;
        let read: LogEntry =
            serde_json::from_str(&json).map_err(|error| format!("{error} in {json}"))?;
        ensure!(read == entry, "[1] {entry:?} reads back as {read:?}");
        let mut untouched = self.state.clone();
        self.tell_end(&entry.event);
        self.state.apply(&entry);
        self.measured(&entry.event, untouched.line().used())?;
        self.makes_room(&entry.event, &untouched)?;
        self.mirror.apply(&read);
        let (state, mirror) = (&self.state, &self.mirror);
        ensure!(state == mirror, "[1] after {json} the fold differs:\n{state:?}\n{mirror:?}");
        let nothing = Event::Noticed { level: Level::Info, text: "".into(), code: "".into() };
        untouched.apply(&LogEntry { event: nothing, ..entry.clone() });
        ensure!(
            untouched != self.state || may_change_nothing(&entry.event, &untouched),
            "{json} was recorded and changed nothing"
        );
        self.finished(&entry)?;
        self.count(json.split('"').skip_while(|word| *word != "type").nth(2).unwrap_or(""));
        self.log.push(entry);
        Ok(())
    }

    /// What the log alone cannot tell.
    fn allowed(&self, event: &Event) -> Run {
        match event {
            Event::ModeSet { mode: Mode::Bypass, .. } => {
                ensure!(self.limits.bypass_allowed, "[4] bypass is set, and is not allowed");
            }
            Event::TurnStarted { earlier, .. } => {
                let pieces = self.state.line().pieces().len() as u64;
                ensure!(*earlier == Some(pieces), "[13] {earlier:?} pieces before, not {pieces}");
            }
            _ => {}
        }
        Ok(())
    }

    /// Keeps what stands beside the state in step with it.
    fn finished(&mut self, entry: &LogEntry) -> Run {
        match &entry.event {
            Event::CallStarted { purpose, .. } => {
                let call = CallId(entry.seq);
                self.waits(call, *purpose)?;
                let prompt = prompt(&self.state, call, &self.limits);
                let prompt = prompt.ok_or_else(|| "[10] an open call has no prompt".to_string())?;
                self.audit.story.check(call, &prompt)?;
                self.prompts.insert(call, prompt);
            }
            Event::CallEnded { call, .. } => {
                self.prompts.remove(call);
                self.running.retain(|step| *step != Step::Ask(*call));
            }
            Event::SandboxRefused { item, .. } => {
                self.running.retain(|step| *step != Step::Run(*item));
            }
            Event::ItemCompleted { item, .. } => {
                self.live.close(*item);
                self.running.retain(|step| *step != Step::Run(*item));
            }
            _ => {}
        }
        Ok(())
    }

    fn same_prompt(&self, call: CallId) -> Run {
        let (began, now) = (self.prompts.get(&call), prompt(&self.state, call, &self.limits));
        ensure!(
            began == now.as_ref(),
            "[10] the prompt of {call} changed\nfrom {began:?}\nto {now:?}"
        );
        Ok(())
    }

    /// The state and the auditor, who never saw it, agree.
    fn agrees(&self) -> Run {
        let state = &self.state;
        let turn = state.turn();
        let (theirs, ours) = (self.audit.open_turn(), turn.map(|turn| turn.id));
        ensure!(theirs == ours, "[5] the open turn is {ours:?}, the log says {theirs:?}");
        self.audit.batch_ended()?;
        let session = &self.audit.session;
        let (theirs, ours) = (session.mode, state.mode());
        ensure!(theirs == ours, "the mode is {ours:?}, the log says {theirs:?}");
        let (theirs, ours) = (session.settings.as_ref(), state.settings());
        ensure!(theirs == ours, "[13] settings are {ours:?}, the log says {theirs:?}");
        let (theirs, ours) = (session.closed, state.is_closed());
        ensure!(theirs == ours, "[12] ended: {ours}, the log says {theirs}");
        let (theirs, ours) = (self.audit.is_fresh_fork(), state.is_fresh_fork());
        ensure!(theirs == ours, "[19] a fresh fork: {ours}, the log says {theirs}");
        let goes_on = ours && state.interrupted().is_some_and(|left| !left.by_person);
        ensure!(!goes_on, "[19] a fork would be resumed by itself");
        ensure!(!ours || state.grants().is_empty(), "[19] a fork has grants of another session");
        let known = |key| state.grants().contains(key);
        ensure!(self.audit.grants.iter().all(known), "a grant was forgotten");
        let in_order = state.line().pieces().is_sorted_by_key(|piece| piece.seq);
        ensure!(in_order, "[15] pieces out of order: {:?}", state.line());
        let Some(turn) = turn else { return Ok(()) };
        let again = turn.waits.keys().find(|wait| self.audit.ended_wait(**wait));
        ensure!(again.is_none(), "[3] wait {again:?} is open again");
        let open = turn.calls.len() + turn.items.len() + turn.waits.len();
        let theirs = self.audit.open_since(turn.id.0);
        ensure!(open == theirs.len(), "[6] {open} things are open, the log says {theirs:?}");
        Ok(())
    }

    /// Asks `next` until it comes to rest, then starts the steps that do not run yet.
    pub fn advance(&mut self) -> Run {
        let rounds_max = self.rounds_max();
        for _ in 0..=rounds_max {
            match next(&self.state, &self.limits) {
                Next::Record(events) => {
                    ensure!(!events.is_empty(), "[7] next records nothing");
                    self.record(events)?;
                }
                Next::Steps(steps) => return self.perform(steps),
            }
        }
        Err(format!("[7] next did not come to rest in {rounds_max} rounds").into())
    }

    /// Nothing reports meanwhile, so each round starts, asks about or closes a tool (at most twice
    /// each), begins an explanation, or moves a turn on (begin, call, give up: for each message).
    fn rounds_max(&self) -> usize {
        let tools = self.state.turn().map_or(0, |turn| turn.items.len() + turn.waits.len());
        2 * tools + 3 * (self.state.queue().len() + 1) + 1
    }

    fn perform(&mut self, steps: Vec<Step>) -> Run {
        let stopping = self.state.turn().is_some_and(|turn| turn.stopping.is_some());
        for (at, step) in steps.iter().enumerate() {
            ensure!(!steps[..at].contains(step), "step {step:?} is given twice");
            ensure!(self.is_open(*step), "[9] step {step:?} names nothing that is open");
            let works_at = match *step {
                Step::Ask(_) | Step::Run(_) => {
                    ensure!(!stopping, "[9] step {step:?} while the turn stops");
                    if !self.running.contains(step) {
                        self.running.push(*step);
                    }
                    continue;
                }
                Step::StopCall(call) => Step::Ask(call),
                Step::StopTool(item) => Step::Run(item),
            };
            ensure!(stopping, "[9] step {step:?} though nothing stops");
            ensure!(self.running.contains(&works_at), "[9] {step:?} stops what does not run");
        }
        let (given, running) = (steps.len(), &self.running);
        ensure!(given == running.len(), "[9] steps are {steps:?}, running are {running:?}");
        Ok(())
    }

    fn is_open(&self, step: Step) -> bool {
        let Some(turn) = self.state.turn() else { return false };
        match step {
            Step::Ask(call) | Step::StopCall(call) => turn.calls.contains_key(&call),
            Step::Run(item) | Step::StopTool(item) => {
                let phase = turn.items.get(&item).and_then(|item| item.tool.as_ref());
                matches!(phase, Some(ToolPhase::Running { .. }))
            }
        }
    }

    pub fn command(&mut self, command: Command) -> Run {
        let (before, entries) = (self.state.clone(), self.log.len());
        match decide(&self.state, command.clone(), &self.limits) {
            Ok(events) => {
                for what in heard(&self.state, &command, &events)? {
                    self.count(what);
                }
                self.record(events)?;
                self.advance()
            }
            Err(refusal) => {
                ensure!(!refusal.to_string().is_empty(), "a refusal says nothing");
                self.count(refusal.code());
                self.advance()?;
                let same = before == self.state && entries == self.log.len();
                ensure!(same, "[2] refused with {refusal:?}, and yet something changed");
                Ok(())
            }
        }
    }

    pub fn report(&mut self, report: Report) -> Run {
        let (fits, told) = (self.fits(&report), format!("{report:?}"));
        let seen = match &report {
            Report::Answered { answerable, .. } | Report::ToolStopped { answerable, .. } => {
                *answerable
            }
            _ => Answerable::default(),
        };
        let ends = matches!(
            report,
            Report::Answered { .. }
                | Report::CallFailed { .. }
                | Report::CallStopped { .. }
                | Report::ToolEnded { .. }
                | Report::ToolStopped { .. }
                | Report::Noticed { .. }
        );
        let events = absorb(&self.state, &self.live, &self.limits, report.clone());
        self.fails(&report, &events)?;
        self.keeps(&report, &events)?;
        ensure!(fits || events.is_empty(), "stale {told} gives {events:?}");
        ensure!(!(fits && ends && events.is_empty()), "{told} was lost");
        for event in &events {
            self.addressed(event, seen)?;
        }
        self.count(if fits { "report" } else { "stale report" });
        if matches!(report, Report::ToolStopped { .. }) && !fits {
            self.count("stopped, and stale");
        }
        self.record(events)?;
        self.advance()
    }

    /// Leave is asked of those who can give it, anything else also of those who can answer.
    fn addressed(&mut self, event: &Event, seen: Answerable) -> Run {
        if let Event::SandboxRefused { answerable, .. } = event {
            ensure!(*answerable == seen.approvals, "[16] {event:?}, and there were {seen:?}");
        }
        let Event::ToolProposed { judgement, answerable, .. } = event else { return Ok(()) };
        let asks = judgement.effect.asks();
        let want = if asks { seen.approvals || seen.questions } else { seen.approvals };
        ensure!(*answerable == want, "[11] {event:?}, and there were {seen:?}");
        match (asks, seen.approvals, want) {
            (true, _, false) => self.count("asked nobody"),
            (true, false, true) => self.count("asked one who only answers"),
            _ => {}
        }
        Ok(())
    }

    fn fits(&self, report: &Report) -> bool {
        let step = match report {
            Report::BlockStarted { call, .. }
            | Report::BlockEnded { call, .. }
            | Report::Answered { call, .. }
            | Report::CallFailed { call, .. }
            | Report::CallStopped { call } => Step::Ask(*call),
            Report::ToolEnded { item, .. } => Step::Run(*item),
            Report::ToolStopped { item, .. } if !self.runs_inside(*item) => return false,
            Report::ToolStopped { item, .. } => Step::Run(*item),
            Report::Noticed { .. } => return true,
            Report::ToolTouches { item, .. } => Step::Run(*item),
        };
        self.running.contains(&step)
    }

    /// Shows more of an open item: journal first, then live. `again` bytes are sent twice.
    pub fn grow(&mut self, item: ItemId, stream: Stream, text: &str, again: usize) {
        let have = self.live.text(item, stream);
        let mut from = have.len().saturating_sub(again);
        while !have.is_char_boundary(from) {
            from -= 1;
        }
        let (offset, whole) = (from as u64, format!("{}{text}", &have[from..]));
        let want = format!("{have}{text}");
        let growth = Growth { item, stream, offset, text: whole.into() };
        self.live.grow(&growth);
        self.journal.push(growth);
        assert_eq!(self.live.text(item, stream), want);
    }

    /// Whether the open turn was stopped by a person.
    pub fn is_interrupted(&self) -> bool {
        let stopping = self.state.turn().and_then(|turn| turn.stopping.as_ref());
        matches!(stopping, Some(Stop::Interrupted { .. }))
    }
}

fn may_change_nothing(event: &Event, state: &State) -> bool {
    match event {
        Event::Noticed { .. } | Event::Adopted { .. } => true,
        // The same value again, or a file that another program left without settings.
        Event::SettingSet { .. } => true,
        // Twice in a row.
        Event::Forked { .. } => state.is_fresh_fork(),
        Event::ModeSet { mode, .. } => *mode == state.mode(),
        _ => false,
    }
}
