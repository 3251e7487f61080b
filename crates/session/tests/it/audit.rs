//! Reads a log entry by entry, as an auditor who never saw `State`, and says what must not be.
//!
//! The numbers in brackets name the invariant:
//! 3 a wait ends once, 4 no tool without leave, 5 one turn at a time, 6 items end once,
//! 7 calls are bounded, 8 nothing shown is lost, 9 a stopping turn starts nothing, 11 questions and
//! plans are asked, never run, and told as answered, 12 an ended session rests, 13 what is in force
//! is what was set, 14 a failed call is made again as often as it may, and people are told, 15 what
//! does not fit is made shorter once, 16 what the sandbox stopped runs outside it with leave or not
//! again, 17 a rule holds in every mode, and the log says by what a tool ran, 18 room is made before
//! a window is full, never without gain, and what fails at it stops nothing, 19 in a fork nothing
//! goes on before somebody asks, and nothing is granted, 20 files are touched by tools that run,
//! and taken back between turns, once.

use std::collections::BTreeMap;

use polyloop_session::event::{CallOutcome, Event, Outcome, Purpose, RunOptions, Work};
use polyloop_session::item::{End, ItemKind, Usage};
use polyloop_session::policy::{Effect, Judgement, Key};
use polyloop_session::retry::TOO_LONG_CODE;
use polyloop_session::state::LEFT_OUT_TEXT;
use polyloop_session::{CallId, ItemId, Live, LogEntry, MessageId, Seq, Text, TurnId, WaitId};

use super::story::Story;

mod ask;
mod edits;
mod retry;
mod run;
mod session;

use ask::Wait;
use edits::Edits;
use retry::{Due, May};
use run::Runs;
use session::Session;

pub type Checked = Result<(), String>;

/// What one run wants otherwise than the settings say.
type Run = Option<Box<RunOptions>>;

#[derive(Default)]
pub struct Audit {
    pub session: Session,
    pub grants: Vec<Key>,
    pub story: Story,
    queue: BTreeMap<MessageId, Run>,
    interrupted: BTreeMap<TurnId, Run>,
    turn: Option<Turn>,
    calls: BTreeMap<CallId, Call>,
    items: BTreeMap<ItemId, Item>,
    waits: BTreeMap<WaitId, Wait>,
    retries_max: u32,
    /// A fork in which nobody has asked for anything.
    fresh_fork: bool,
    edits: Edits,
}

struct Turn {
    id: TurnId,
    work: Work,
    run: Run,
    stopping: bool,
    calls: u32,
    calls_max: u32,
    usage: Usage,
    due: Due,
}

struct Call {
    purpose: Purpose,
    end: Option<CallOutcome>,
}

struct Item {
    call: CallId,
    block: u32,
    kind: ItemKind,
    proposed: Option<Proposed>,
    wait: Option<WaitId>,
    runs: Runs,
    end: Option<End>,
}

struct Proposed {
    args: Text,
    judgement: Judgement,
    answerable: bool,
}

impl Item {
    fn reads(&self) -> bool {
        self.proposed.as_ref().is_some_and(|p| p.judgement.effect == Effect::Read)
    }
}

impl Audit {
    pub fn new(retries_max: u32, tokens_max: u64) -> Audit {
        let mut audit = Audit { retries_max, ..Audit::default() };
        audit.session.tokens_max = tokens_max;
        audit
    }

    /// `live` is what was shown of open items before this entry; a replay has none.
    pub fn entry(&mut self, entry: &LogEntry, live: Option<&Live>) -> Checked {
        self.structure(entry, live).map_err(|told| format!("{told}, in {entry:?}"))?;
        self.story.entry(entry)
    }

    pub fn open_turn(&self) -> Option<TurnId> {
        self.turn.as_ref().map(|turn| turn.id)
    }

    pub fn ended_wait(&self, wait: WaitId) -> bool {
        self.waits.get(&wait).is_some_and(|row| row.end.is_some())
    }

    fn structure(&mut self, entry: &LogEntry, live: Option<&Live>) -> Checked {
        let seq = entry.seq;
        self.notice_owed(&entry.event)?;
        self.edits.before(&entry.event)?;
        match &entry.event {
            Event::SessionCreated { settings, .. } => {
                self.session.created(settings);
            }
            Event::Adopted { .. } => {
                ensure!(self.turn.is_none(), "[5] adopted inside a turn");
            }
            Event::ModeSet { mode, .. } => self.session.mode_set(*mode)?,
            Event::SettingSet { setting, .. } => self.session.set(setting)?,
            Event::SessionClosed { .. } => {
                let goes_on = self.turn.as_ref().is_some_and(|turn| !turn.stopping);
                self.session.ended(goes_on, self.queue.len())?;
            }
            Event::SessionReopened { .. } => self.session.reopened()?,
            Event::Noticed { .. } => {}
            Event::Forked { upto, .. } => {
                ensure!(upto.next() == seq, "[19] a copy up to {upto}, and it goes on at {seq}");
                self.forked();
            }
            Event::FilesTouched { item, .. } => {
                let row = self.open_item(*item)?;
                ensure!(row.runs.now.is_some(), "[20] files are touched by what does not run");
                self.edits.touched(*item);
            }
            Event::UndoStarted { items, .. } => {
                ensure!(self.turn.is_none(), "[20] files are taken back in a turn");
                self.edits.undoing(items)?;
            }
            Event::UndoFailed { .. } => self.edits.failed()?,
            Event::Undone { items, .. } => {
                ensure!(self.turn.is_none(), "[20] files are taken back in a turn");
                self.edits.undone(ItemId(seq), items)?;
            }
            Event::MessageQueued { run, .. } => {
                self.fresh_fork = false;
                self.session.is_open()?;
                self.queue.insert(MessageId(seq), run.clone());
            }
            Event::MessageDropped { message, .. } => {
                let known = self.queue.remove(message).is_some();
                ensure!(known, "dropped a message that is not queued");
            }
            Event::TurnStarted { work, agent, cwd, .. } => {
                let run = self.turn_started(TurnId(seq), work)?;
                let (told, force) = ((*agent, cwd.clone()), self.session.in_force(run.as_deref()));
                ensure!(told == force, "[13] starts with {told:?}, in force is {force:?}");
            }
            Event::TurnStopping { .. } => {
                let turn = self.turn.as_mut().ok_or("[5] stopping without a turn")?;
                ensure!(!turn.stopping, "[9] stopping twice");
                turn.stopping = true;
            }
            Event::TurnEnded { outcome, usage } => self.turn_ended(outcome, *usage)?,
            Event::CallStarted { purpose, model, tokens_max, .. } => {
                self.session.asks(model, *tokens_max)?;
                self.call_started(CallId(seq), *purpose, *tokens_max)?;
            }
            Event::CallEnded { call, outcome, usage } => {
                self.call_ended(*call, outcome, usage.unwrap_or_default())?;
            }
            Event::ItemStarted { call, block, item } => {
                self.item_started(ItemId(seq), *call, *block, item)?;
            }
            Event::ToolProposed { item, args, judgement, answerable, .. } => {
                let (args, judgement) = (args.clone(), (**judgement).clone());
                let proposed = Proposed { args, judgement, answerable: *answerable };
                self.tool_proposed(*item, proposed)?;
            }
            event @ (Event::ToolStarted { .. }
            | Event::SandboxRefused { .. }
            | Event::ItemCompleted { .. }) => self.run_event(event, live)?,
            event @ (Event::WaitOpened { .. }
            | Event::WaitSettled { .. }
            | Event::WaitWithdrawn { .. }
            | Event::ExplainAsked { .. }) => self.wait_event(WaitId(seq), event)?,
            Event::Trimmed { items, tokens_before, tokens_after, .. } => {
                ensure!(!items.is_empty(), "[18] trims nothing");
                ensure!(tokens_after < tokens_before, "[18] trims without gain");
                let since = self.running_turn()?.id.0;
                let open = self.open_since(since);
                ensure!(open.is_empty(), "[18] trims with open {open:?}");
            }
            Event::Compacted { call, tokens_before, tokens_after, summary, .. } => {
                ensure!(tokens_after < tokens_before, "a compaction without gain");
                let row = self.calls.get(call).ok_or("compacted by an unknown call")?;
                ensure!(row.purpose == Purpose::Summarise, "compacted by another call");
                let mut later = self.calls.range(CallId(call.0.next())..);
                let is_newest = later.all(|(_, row)| row.purpose != Purpose::Summarise);
                ensure!(is_newest, "[18] compacted by a summary of before");
                let told = match &row.end {
                    Some(CallOutcome::Answered) => true,
                    // What does not even fit to be summarised is left out.
                    Some(CallOutcome::Failed { fault }) => {
                        &*fault.code == TOO_LONG_CODE && &**summary == LEFT_OUT_TEXT
                    }
                    _ => false,
                };
                ensure!(told, "compacted before its answer");
                let turn = self.running_turn()?;
                Audit::shortened(turn)?;
            }
            other => ensure!(false, "[7] {other:?} in a session of react"),
        }
        Ok(())
    }

    fn turn_started(&mut self, id: TurnId, work: &Work) -> Result<Run, String> {
        self.session.is_open()?;
        ensure!(self.turn.is_none(), "[5] a turn starts inside another");
        let run = match work {
            Work::Message { message } => {
                let oldest = self.queue.keys().next() == Some(message);
                ensure!(oldest, "[5] not the oldest queued message");
                self.queue.remove(message).flatten()
            }
            Work::Resume { turn, .. } => {
                let left = self.interrupted.remove(turn);
                left.ok_or("resumes a turn that was not interrupted, or was taken up before")?
            }
            Work::Compact { .. } => None,
        };
        if !matches!(work, Work::Message { .. }) {
            self.fresh_fork = false;
        }
        let (work, usage) = (work.clone(), Usage::default());
        let (stopping, calls, calls_max) = (false, 0, self.session.calls_max(run.as_deref()));
        let told = run.clone();
        let due = Due::default();
        self.turn = Some(Turn { id, work, run, stopping, calls, calls_max, usage, due });
        Ok(told)
    }

    fn turn_ended(&mut self, outcome: &Outcome, usage: Usage) -> Checked {
        let turn = self.turn.take().ok_or("[5] a turn ends that never started, or twice")?;
        let open = self.open_since(turn.id.0);
        ensure!(open.is_empty(), "[5] the turn ends with open {open:?}");
        ensure!(usage == turn.usage, "the turn's usage is {usage:?}, its calls' {:?}", turn.usage);
        Audit::ended_rightly(&turn, outcome)?;
        if matches!(outcome, Outcome::Interrupted { .. }) {
            self.interrupted.insert(turn.id, turn.run);
        }
        Ok(())
    }

    /// What has begun and not ended, for people.
    pub fn open_since(&self, seq: Seq) -> Vec<String> {
        let calls = self.calls.range(CallId(seq)..).filter(|(_, row)| row.end.is_none());
        let items = self.items.range(ItemId(seq)..).filter(|(_, row)| row.end.is_none());
        let waits = self.waits.range(WaitId(seq)..).filter(|(_, row)| row.end.is_none());
        let mut open: Vec<String> = calls.map(|(id, _)| format!("call {id}")).collect();
        open.extend(items.map(|(id, _)| format!("item {id}")));
        open.extend(waits.map(|(id, _)| format!("wait {id}")));
        open
    }

    fn running_turn(&mut self) -> Result<&mut Turn, String> {
        self.session.is_open()?;
        ensure!(!self.fresh_fork, "[19] begun in a fork before anybody asked");
        let turn = self.turn.as_mut().ok_or("[5] outside a turn")?;
        ensure!(!turn.stopping, "[9] begun while the turn stops");
        Ok(turn)
    }

    fn call_started(&mut self, id: CallId, purpose: Purpose, window: u64) -> Checked {
        let turn = self.running_turn()?;
        turn.calls += 1;
        let (since, work) = (turn.id.0, turn.work.clone());
        let calls_max = turn.calls_max;
        match purpose {
            Purpose::Explain { wait } => {
                let row = self.waits.get(&wait).ok_or("[3] explains an unknown wait")?;
                ensure!(row.end.is_none(), "[3] explains a wait that has ended");
            }
            Purpose::Think | Purpose::Summarise => {
                let open = self.open_since(since);
                ensure!(open.is_empty(), "[7] the strategy calls with open {open:?}");
                let retries_max = self.retries_max;
                Audit::attempt(self.running_turn()?, purpose, window, retries_max)?;
            }
            other => ensure!(false, "[7] {other:?} in a session of react"),
        }
        let made = self.running_turn()?.calls;
        match (purpose, work) {
            (Purpose::Summarise, Work::Compact { .. }) => {
                ensure!(made == 1, "[7] a second call for one summary");
            }
            (Purpose::Think | Purpose::Summarise, Work::Message { .. } | Work::Resume { .. }) => {
                ensure!(made <= calls_max, "[7] call {made} of {calls_max}");
            }
            // A person asks for each: they count, but the limit does not refuse them.
            (Purpose::Explain { .. }, Work::Message { .. } | Work::Resume { .. }) => {}
            (purpose, work) => {
                ensure!(false, "[7] {purpose:?} in {work:?}");
            }
        }
        self.calls.insert(id, Call { purpose, end: None });
        Ok(())
    }

    fn call_ended(&mut self, id: CallId, outcome: &CallOutcome, usage: Usage) -> Checked {
        let turn = self.turn.as_mut().ok_or("[5] a call ends outside a turn")?;
        turn.usage = retry::sum(turn.usage, usage);
        let row = self.calls.get_mut(&id).ok_or("an unknown call ends")?;
        ensure!(row.end.is_none(), "[6] a call ends twice");
        row.end = Some(outcome.clone());
        let (takes_turn, has_more) = (self.story.summary_takes_turn(), self.story.has_more(id));
        let may = May { retries_max: self.retries_max, takes_turn, has_more };
        Audit::attempted(turn, row.purpose, outcome, may)?;
        for (item, row) in self.items.range(ItemId(id.0)..).filter(|(_, row)| row.call == id) {
            let settled = row.end.is_some() || row.proposed.is_some();
            ensure!(settled, "[6] the call ends with item {item} open");
        }
        match outcome {
            CallOutcome::Failed { .. } | CallOutcome::Retried { .. } => self.discarded(id),
            CallOutcome::Answered | CallOutcome::Stopped | CallOutcome::Lost => Ok(()),
        }
    }

    fn open_call(&self, id: CallId) -> Result<&Call, String> {
        let row = self.calls.get(&id).ok_or("an unknown call")?;
        ensure!(row.end.is_none(), "[6] the call has ended");
        Ok(row)
    }

    fn item_started(&mut self, id: ItemId, call: CallId, block: u32, kind: &ItemKind) -> Checked {
        self.open_call(call)?;
        let open = self.items.range(ItemId(call.0)..).filter(|(_, row)| row.end.is_none());
        let twin = open.into_iter().any(|(_, row)| row.call == call && row.block == block);
        ensure!(!twin, "[6] block {block} of call {call} is open already");
        let (kind, proposed, wait) = (kind.clone(), None, None);
        let (runs, end) = (Runs::default(), None);
        let row = Item { call, block, kind, proposed, wait, runs, end };
        self.items.insert(id, row);
        Ok(())
    }

    fn open_item(&mut self, id: ItemId) -> Result<&mut Item, String> {
        let row = self.items.get_mut(&id).ok_or("an unknown item")?;
        ensure!(row.end.is_none(), "[6] item {id} was completed before");
        Ok(row)
    }

    fn tool_proposed(&mut self, id: ItemId, proposed: Proposed) -> Checked {
        let call = self.open_item(id)?.call;
        let purpose = self.open_call(call)?.purpose;
        ensure!(purpose == Purpose::Think, "[4] {purpose:?} proposes a tool");
        let row = self.open_item(id)?;
        ensure!(matches!(row.kind, ItemKind::ToolCall { .. }), "proposed, but no tool call");
        ensure!(row.proposed.is_none(), "[6] proposed twice");
        row.proposed = Some(proposed);
        Ok(())
    }
}
