//! The fold of the log: what a session is right now.
//!
//! `State::apply` is the only place that changes it, and it is total: an entry that does not fit
//! changes nothing but `last_seq`. Small by design: the prompt since the last compaction, the
//! queue, the open turn. Ended items, clients, clocks and running effects are not in it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::budget::UNPRICED_CODE;
use crate::context;
use crate::decide::Limits;
use crate::event::{
    Adopted, Agent, CallOutcome, Event, LineId, LogEntry, Origin, Outcome, Purpose, RunOptions,
    Setting, Settings, Stop, Window, Work,
};
use crate::id::{CallId, ItemId, MessageId, Seq, Text, Timestamp, TurnId, WaitId};
use crate::item::{End, Fault, ItemKind, Opaque, Part, ToolResult, Usage};
use crate::policy::{Effect, Judgement, Key, Leave, Mode};
use crate::retry::TOO_LONG_CODE;
use crate::room::FLOOR_CODE;
use crate::todos::{self, TODOS_TOOL, Todo};
use crate::wait::{Answer, Ask, Who};

mod edits;
mod line;
mod method;
mod turn;

pub use edits::{EDITS_MAX, Edit, Edits};
pub use line::{LEFT_OUT_TEXT, Line, LinePiece, Piece};
pub use method::{Branch, Dup, Graph, Left, Method, Node, Tree};
pub use turn::{
    Aside, Call, Errand, Explain, GRANTS_MAX, Item, Loop, Misread, OpenWait, Phase, Shorten,
    Stopped, Summary, ToolPhase, Turn,
};

/// Waits whose end is remembered, so that a late answer is told what became of them.
pub const CLOSED_WAITS_MAX: usize = 64;

/// Of further ones people are told again.
const UNPRICED_MODELS_MAX: usize = 100;

/// Names this version of the fold: a state that was kept by another may mean something else.
pub const FOLD_ID: &str = env!("POLYLOOP_FOLD_ID");

/// May be kept while no turn runs, so that a long log need not be folded again from its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    last_seq: Seq,
    settings: Option<Settings>,
    /// Beside the settings, which a file that another program wrote does not have.
    mode: Mode,
    mode_before_plan: Mode,
    /// A client ended it; whoever speaks or starts it opens it again.
    closed: bool,
    grants: Vec<Key>,
    queue: VecDeque<Queued>,
    /// Never kept: what runs is folded from the log.
    #[serde(skip)]
    turn: Option<Turn>,
    interrupted: Option<Interrupted>,
    /// After an interruption nothing starts until a client speaks.
    paused: bool,
    line: Line,
    /// What all model calls cost, of every purpose.
    spent: Usage,
    /// How many they were.
    calls: u64,
    /// Models of which people were told that their price is not known.
    unpriced: BTreeSet<Text>,
    closed_waits: BTreeMap<WaitId, (ItemId, Fate)>,
    edits: Edits,
    /// The list of todos as it was written last.
    todos: Vec<Todo>,
    /// Files are being taken back.
    undoing: Option<Seq>,
    /// A fork in which nobody has asked for anything yet: nothing of what was open goes on.
    fresh_fork: bool,
}

/// What became of a wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fate {
    Settled { by: Who },
    Withdrawn,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    pub id: MessageId,
    pub content: Vec<Part>,
    pub origin: Origin,
    pub client_ref: Option<Text>,
    pub tokens: u64,
    pub run: Option<Box<RunOptions>>,
}

/// The one interrupted turn whose work can be taken up again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interrupted {
    pub turn: TurnId,
    pub origin: Origin,
    /// Somebody wanted it so; otherwise the server stopped under it.
    pub by_person: bool,
    /// How it was worked; so is what takes it up, whatever was set since.
    pub agent: Agent,
    /// Its search was over, and what it found is in the conversation.
    pub searched: bool,
    /// What it was to do otherwise than the settings say; so does what takes it up.
    pub run: Option<Box<RunOptions>>,
    /// How far its search had come. Never kept: it is folded from the log.
    #[serde(skip)]
    pub left: Option<Box<Left>>,
}

/// Who resumes when the server does so by itself.
pub const AUTO_RESUME_VIA: &str = "auto_resume";

/// Who interrupts when the server stops in good order.
pub const SHUTDOWN_VIA: &str = "shutdown";

pub const RESUME_TEXT: &str = "Go on with the work that was interrupted.";

impl State {
    pub fn last_seq(&self) -> Seq {
        self.last_seq
    }

    /// `None` until the session was created, and for files that another program wrote.
    pub fn settings(&self) -> Option<&Settings> {
        self.settings.as_ref()
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The mode that an approved plan goes back to.
    pub fn mode_before_plan(&self) -> Mode {
        self.mode_before_plan
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The size of the session's model's window.
    pub fn tokens_max(&self, limits: &Limits) -> u64 {
        self.settings.as_ref().and_then(|s| s.tokens_max).unwrap_or(limits.tokens_max)
    }

    pub fn grants(&self) -> &[Key] {
        &self.grants
    }

    pub fn queue(&self) -> &VecDeque<Queued> {
        &self.queue
    }

    pub fn turn(&self) -> Option<&Turn> {
        self.turn.as_ref()
    }

    pub fn interrupted(&self) -> Option<&Interrupted> {
        self.interrupted.as_ref()
    }

    pub fn is_paused(&self) -> bool {
        self.paused
    }

    pub fn line(&self) -> &Line {
        &self.line
    }

    /// The session's own line, or one beside it.
    pub fn line_of(&self, line: Option<LineId>) -> Option<&Line> {
        match line {
            None => Some(&self.line),
            Some(line) => {
                let aside = self.turn.as_ref().and_then(|turn| turn.asides.get(&line));
                aside.map(|aside| &aside.line)
            }
        }
    }

    /// Whether it says all: a search that was interrupted is not kept with it.
    pub fn may_be_kept(&self) -> bool {
        self.interrupted.as_ref().is_none_or(|interrupted| interrupted.left.is_none())
    }

    /// The entry that says how files are being taken back; after a crash, whether they were is to
    /// be found out.
    pub fn undoing(&self) -> Option<Seq> {
        self.undoing
    }

    /// File edits that may be taken back.
    pub fn edits(&self) -> &Edits {
        &self.edits
    }

    pub fn todos(&self) -> &[Todo] {
        &self.todos
    }

    pub fn is_fresh_fork(&self) -> bool {
        self.fresh_fork
    }

    /// What the session's model calls cost so far, where providers said.
    pub fn spent(&self) -> &Usage {
        &self.spent
    }

    /// How many model calls that were, of every purpose; one that was made again counts again.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Whether people were told that the price of a model is not known.
    pub fn is_told_unpriced(&self, model: &str) -> bool {
        self.unpriced.contains(model)
    }

    /// What became of a wait; only the last ones are remembered.
    pub fn fate(&self, wait: WaitId) -> Option<&Fate> {
        self.closed_waits.get(&wait).map(|(_, fate)| fate)
    }

    /// What became of the last wait about an item.
    pub fn fate_of_item(&self, item: ItemId) -> Option<&Fate> {
        let about = self.closed_waits.values().rev().find(|(about, _)| *about == item);
        about.map(|(_, fate)| fate)
    }

    /// The only fold.
    pub fn apply(&mut self, entry: &LogEntry) {
        self.last_seq = entry.seq;
        match &entry.event {
            Event::SessionCreated { settings, by: _ } => {
                self.mode = settings.mode;
                self.settings = Some(settings.clone());
            }
            Event::Adopted { piece } => self.adopt(entry.seq, piece.as_ref()),
            Event::ModeSet { mode, by: _ } => {
                if self.mode != Mode::Plan {
                    self.mode_before_plan = self.mode;
                }
                self.mode = *mode;
                if let Some(settings) = &mut self.settings {
                    settings.mode = *mode;
                }
            }
            Event::SettingSet { setting, by: _ } => self.set(setting),
            Event::SessionClosed { by: _ } => {
                self.closed = true;
                // Whoever ends a session wants nothing of it taken up by itself.
                if let Some(left) = &mut self.interrupted {
                    left.by_person = true;
                }
            }
            Event::SessionReopened { by: _ } => self.closed = false,
            Event::MessageQueued { content, origin, client_ref, tokens, run, waits: _ } => {
                self.paused = false;
                self.fresh_fork = false;
                if let Some(turn) = &mut self.turn {
                    turn.spoken_to = turn.stopping.is_some();
                }
                self.queue.push_back(Queued {
                    id: MessageId(entry.seq),
                    content: content.clone(),
                    origin: origin.clone(),
                    client_ref: client_ref.clone(),
                    tokens: *tokens,
                    run: run.clone(),
                });
            }
            Event::MessageDropped { message, by: _ } => self.queue.retain(|q| q.id != *message),
            Event::TurnStarted { work, agent, cwd, earlier: _ } => {
                self.start_turn(entry.seq, work, *agent, cwd.clone());
            }
            Event::TurnStopping { reason } => {
                if let Some(turn) = &mut self.turn {
                    turn.stopping.get_or_insert(reason.clone());
                }
            }
            Event::TurnEnded { outcome, usage: _ } => self.end_turn(outcome),
            Event::Compacted {
                upto, summary, summary_tokens, tokens_after, window, line, ..
            } => {
                let turn = self.turn.as_ref().map(|turn| turn.id);
                if let Some(own) = self.line_mut(*line) {
                    own.compact(*upto, turn, summary.clone(), *summary_tokens);
                    own.left(entry.seq, *tokens_after, window);
                    own.try_made(window.tokens_max);
                }
                if let Some(turn) = &mut self.turn {
                    turn.compacted(*line);
                }
            }
            Event::Trimmed { items, stub, stub_tokens, tokens_after, window, line, .. } => {
                if let Some(own) = self.line_mut(*line) {
                    own.trim(items, stub, *stub_tokens);
                    own.left(entry.seq, *tokens_after, window);
                }
            }
            Event::Noticed { code, .. } => {
                // It is about the model in force.
                let model = self.settings.as_ref().map(|settings| settings.model.clone());
                if &**code == UNPRICED_CODE && self.unpriced.len() < UNPRICED_MODELS_MAX {
                    self.unpriced.extend(model);
                }
            }
            Event::Forked { .. } => self.forked(),
            Event::FilesTouched { item, .. } => {
                if let Some(turn) = self.turn.as_ref().filter(|turn| turn.runs(*item)) {
                    self.edits.touched(*item, turn, entry.seq, true);
                }
            }
            Event::UndoStarted { .. } => self.undoing = Some(entry.seq),
            Event::UndoFailed { .. } => self.undoing = None,
            Event::Undone { items, files, skipped, tokens, .. } => {
                self.undoing = None;
                self.edits.undone(entry.seq, items);
                let text = crate::undo::told(files, skipped).into();
                let piece = Piece::User { content: vec![Part::Text { text }] };
                self.line.push(entry.seq, *tokens, piece);
            }
            Event::CallStarted { .. }
            | Event::CallEnded { .. }
            | Event::ItemStarted { .. }
            | Event::ToolProposed { .. }
            | Event::ToolStarted { .. }
            | Event::SandboxRefused { .. }
            | Event::ItemCompleted { .. }
            | Event::WaitOpened { .. }
            | Event::WaitSettled { .. }
            | Event::WaitWithdrawn { .. }
            | Event::ExplainAsked { .. }
            | Event::Misread { .. }
            | Event::Understood { .. }
            | Event::Expanded { .. }
            | Event::Scored { .. }
            | Event::Chosen { .. }
            | Event::Backtracked { .. }
            | Event::PathTaken { .. }
            | Event::Planned { .. }
            | Event::Judged { .. }
            | Event::NodeStarted { .. }
            | Event::Kept { .. }
            | Event::Refined { .. }
            | Event::NodeEnded { .. }
            | Event::Gathered { .. }
            | Event::Concluded { .. } => {
                self.close_wait(&entry.event);
                self.note_edit(entry);
                if let Event::CallEnded { call, usage, .. } = &entry.event
                    && self.turn.as_ref().is_some_and(|turn| turn.calls.contains_key(call))
                {
                    self.calls = self.calls.saturating_add(1);
                    self.spent.add(usage.unwrap_or_default());
                }
                if let Some(turn) = &mut self.turn {
                    turn.apply(entry, &mut self.line, &mut self.grants);
                }
            }
        }
    }

    /// One of the lines that there are.
    fn line_mut(&mut self, line: Option<LineId>) -> Option<&mut Line> {
        match line {
            None => Some(&mut self.line),
            Some(line) => {
                let aside = self.turn.as_mut().and_then(|turn| turn.asides.get_mut(&line));
                aside.map(|aside| &mut aside.line)
            }
        }
    }

    /// What somebody allowed there is not allowed here, and nothing goes on by itself.
    fn forked(&mut self) {
        self.grants.clear();
        self.fresh_fork = true;
        if let Some(left) = &mut self.interrupted {
            left.by_person = true;
        }
    }

    /// Files that a call changed without saying so before: a command's, or an older log's.
    fn note_edit(&mut self, entry: &LogEntry) {
        let Event::ItemCompleted { item, result: Some(result), .. } = &entry.event else { return };
        let Some(turn) = self.turn.as_ref().filter(|turn| turn.items.contains_key(item)) else {
            return;
        };
        if let Some(list) = &result.todo_list {
            self.todos.clone_from(list);
        }
        if !result.files.is_empty() {
            let own = result.files.iter().any(|file| file.before.is_some() || file.after.is_some());
            self.edits.touched(*item, turn, entry.seq, own);
        }
    }

    fn close_wait(&mut self, event: &Event) {
        let (wait, fate) = match event {
            Event::WaitSettled { wait, by, .. } => (*wait, Fate::Settled { by: by.clone() }),
            Event::WaitWithdrawn { wait, .. } => (*wait, Fate::Withdrawn),
            _ => return,
        };
        let open = self.turn.as_ref().and_then(|turn| turn.waits.get(&wait));
        let Some(item) = open.map(|open| open.item) else { return };
        self.closed_waits.insert(wait, (item, fate));
        if self.closed_waits.len() > CLOSED_WAITS_MAX {
            self.closed_waits.pop_first();
        }
    }

    fn set(&mut self, setting: &Setting) {
        let Some(settings) = &mut self.settings else { return };
        match setting {
            Setting::Model { model, tokens_max } => {
                settings.model = model.clone();
                settings.tokens_max = Some(*tokens_max);
            }
            Setting::Agent { agent } => settings.agent = Some(*agent),
            Setting::Title { title } => settings.title = Some(title.clone()),
            Setting::CallsMax { calls_max } => settings.calls_max = *calls_max,
            Setting::Metadata { json } => settings.metadata = Some(json.clone()),
        }
    }

    fn adopt(&mut self, seq: Seq, piece: Option<&Adopted>) {
        let Some(piece) = piece else { return };
        let (piece, tokens) = match piece.clone() {
            Adopted::User { content } => {
                let tokens = content.iter().map(Part::tokens).sum();
                (Piece::User { content }, tokens)
            }
            Adopted::Agent { text } => {
                let tokens = estimate_tokens(text.len());
                (Piece::Agent { call: None, item: ItemId(seq), text, opaque: None }, tokens)
            }
            Adopted::ToolCall { call_ref, name, args } => {
                let tokens = estimate_tokens(name.len() + args.len());
                let (call, item, opaque) = (None, ItemId(seq), None);
                (Piece::ToolCall { call, item, name, call_ref, args, opaque }, tokens)
            }
            Adopted::ToolResult { call_ref, output } => {
                let tokens = estimate_tokens(output.len());
                let Some(item) = self.line.adopted_call(&call_ref) else { return };
                (Piece::ToolResult { item, output, is_error: false }, tokens)
            }
        };
        self.line.push(seq, tokens, piece);
    }

    fn start_turn(&mut self, seq: Seq, work: &Work, agent: Option<Agent>, cwd: Option<Text>) {
        let id = TurnId(seq);
        let settings = self.settings.as_ref();
        let calls_max = settings.map_or(CALLS_PER_TURN_MAX, |s| s.calls_max);
        let (mut client_ref, mut run, mut search, mut searched) = (None, None, None, false);
        let origin = match work {
            Work::Message { message } => {
                let Some(at) = self.queue.iter().position(|q| q.id == *message) else { return };
                let Some(queued) = self.queue.remove(at) else { return };
                self.line.push(seq, queued.tokens, Piece::User { content: queued.content });
                client_ref = queued.client_ref;
                run = queued.run;
                queued.origin
            }
            Work::Resume { by, .. } => {
                let mut left = self.interrupted.take();
                search = left.as_mut().and_then(|left| left.left.take());
                // A search that goes on where it was needs no word about that, unless the model was
                // answering all the same.
                let last = self.line.pieces().last().map(|piece| &piece.piece);
                let half = matches!(last, Some(Piece::Agent { .. } | Piece::Reasoning { .. }));
                if search.is_none() || half {
                    let text = Part::Text { text: RESUME_TEXT.into() };
                    let tokens = estimate_tokens(RESUME_TEXT.len());
                    self.line.push(seq, tokens, Piece::User { content: vec![text] });
                }
                run = left.as_ref().and_then(|left| left.run.clone());
                searched = left.as_ref().is_some_and(|left| left.searched);
                match left {
                    // Nobody asked for it, so whoever began it is who can answer.
                    Some(left) if &*by.via == AUTO_RESUME_VIA => left.origin,
                    _ => Origin { who: by.clone(), can_approve: true, can_answer: true },
                }
            }
            Work::Compact { by } => Origin { who: by.clone(), can_approve: true, can_answer: true },
        };
        self.paused = false;
        if !matches!(work, Work::Message { .. }) {
            self.fresh_fork = false;
        }
        // A compaction is no answer to what was interrupted.
        if !matches!(work, Work::Compact { .. }) {
            self.interrupted = None;
        }
        let calls_max = run.as_ref().and_then(|run| run.calls_max).unwrap_or(calls_max);
        let begun = turn::Begun { id, work: work.clone(), origin, client_ref, agent, cwd, run };
        let mut turn = Turn::new(begun, calls_max);
        if let Some(search) = search {
            turn.take_up(*search);
        } else if searched {
            turn.method.finish();
        }
        self.turn = Some(turn);
    }

    fn end_turn(&mut self, outcome: &Outcome) {
        let Some(mut turn) = self.turn.take() else { return };
        // What was interrupted was not tried: whoever takes it up may.
        if !matches!(outcome, Outcome::Interrupted { .. }) {
            turn.gave_up(None, &mut self.line);
        }
        if matches!(outcome, Outcome::Failed { fault } if turn.is_hopeless(fault)) {
            // With it every later call would fail the same way.
            self.line.leave_out(turn.id.0, self.last_seq);
        }
        if !matches!(outcome, Outcome::Interrupted { .. }) {
            return;
        }
        // Whoever spoke while it was stopping wants to go on.
        self.paused = !turn.spoken_to;
        // A compaction is no work to take up again.
        if !matches!(turn.work, Work::Compact { .. }) {
            let by_person = match &turn.stopping {
                _ if self.closed || self.fresh_fork => true,
                Some(Stop::Interrupted { by, .. }) => &*by.via != SHUTDOWN_VIA,
                Some(Stop::Denied { .. }) => true,
                None => false,
            };
            let (id, origin, run) = (turn.id, turn.origin.clone(), turn.run.clone());
            let (agent, searched) = (turn.agent, turn.method.is_done());
            let left = turn.left();
            let left = Interrupted { turn: id, origin, by_person, run, agent, searched, left };
            self.interrupted = Some(left);
        }
    }
}

/// Model calls a turn may make when nothing else was said.
pub const CALLS_PER_TURN_MAX: u32 = 200;

/// A rough count for texts that came without one: four bytes make a token.
pub fn estimate_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}
