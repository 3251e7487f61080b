//! The fold of the log: what a session is right now.
//!
//! `State::apply` is the only place that changes it, and it is total: an entry that does not fit
//! changes nothing but `last_seq`. Small by design: the prompt since the last compaction, the
//! queue, the open turn. Ended items, clients, clocks and running effects are not in it.

use std::collections::{BTreeMap, VecDeque};

use crate::event::{
    Adopted, CallOutcome, Event, LogEntry, Origin, Outcome, Purpose, Settings, Stop, Work,
};
use crate::id::{CallId, ItemId, MessageId, Seq, Text, Timestamp, TurnId, WaitId};
use crate::item::{End, Fault, ItemKind, Opaque, Part, Usage};
use crate::policy::{Effect, Judgement, Key, Mode};
use crate::wait::{Answer, Who};

mod line;
mod turn;

pub use line::{Line, LinePiece, Piece};
pub use turn::{Call, Explain, GRANTS_MAX, Item, OpenWait, Phase, Summary, ToolPhase, Turn};

/// Waits whose end is remembered, so that a late answer is told what became of them.
pub const CLOSED_WAITS_MAX: usize = 64;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    last_seq: Seq,
    settings: Option<Settings>,
    /// Beside the settings, which a file that another program wrote does not have.
    mode: Mode,
    grants: Vec<Key>,
    queue: VecDeque<Queued>,
    turn: Option<Turn>,
    interrupted: Option<Interrupted>,
    /// After an interruption nothing starts until a client speaks.
    paused: bool,
    line: Line,
    closed_waits: BTreeMap<WaitId, Fate>,
}

/// What became of a wait.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    Settled { by: Who },
    Withdrawn,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Queued {
    pub id: MessageId,
    pub content: Vec<Part>,
    pub origin: Origin,
    pub client_ref: Option<Text>,
    pub tokens: u64,
}

/// The one interrupted turn whose work can be taken up again.
#[derive(Clone, Debug, PartialEq)]
pub struct Interrupted {
    pub turn: TurnId,
    pub origin: Origin,
    /// Somebody wanted it so; otherwise the server stopped under it.
    pub by_person: bool,
}

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

    /// What became of a wait; only the last ones are remembered.
    pub fn fate(&self, wait: WaitId) -> Option<&Fate> {
        self.closed_waits.get(&wait)
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
                self.mode = *mode;
                if let Some(settings) = &mut self.settings {
                    settings.mode = *mode;
                }
            }
            Event::MessageQueued { content, origin, client_ref, tokens } => {
                self.paused = false;
                self.queue.push_back(Queued {
                    id: MessageId(entry.seq),
                    content: content.clone(),
                    origin: origin.clone(),
                    client_ref: client_ref.clone(),
                    tokens: *tokens,
                });
            }
            Event::MessageDropped { message, by: _ } => self.queue.retain(|q| q.id != *message),
            Event::TurnStarted { work } => self.start_turn(entry.seq, work),
            Event::TurnStopping { reason } => {
                if let Some(turn) = &mut self.turn {
                    turn.stopping.get_or_insert(reason.clone());
                }
            }
            Event::TurnEnded { outcome, usage: _ } => self.end_turn(outcome),
            Event::Compacted { call: _, upto, summary, summary_tokens, .. } => {
                self.line.compact(*upto, summary.clone(), *summary_tokens);
                if let Some(turn) = &mut self.turn {
                    turn.phase = Phase::Finished;
                }
            }
            Event::Noticed { .. } => {}
            Event::CallStarted { .. }
            | Event::CallEnded { .. }
            | Event::ItemStarted { .. }
            | Event::ToolProposed { .. }
            | Event::ToolStarted { .. }
            | Event::ItemCompleted { .. }
            | Event::WaitOpened { .. }
            | Event::WaitSettled { .. }
            | Event::WaitWithdrawn { .. }
            | Event::ExplainAsked { .. } => {
                self.close_wait(&entry.event);
                if let Some(turn) = &mut self.turn {
                    turn.apply(entry, &mut self.line, &mut self.grants);
                }
            }
        }
    }

    fn close_wait(&mut self, event: &Event) {
        let (wait, fate) = match event {
            Event::WaitSettled { wait, by, .. } => (*wait, Fate::Settled { by: by.clone() }),
            Event::WaitWithdrawn { wait, .. } => (*wait, Fate::Withdrawn),
            _ => return,
        };
        if !self.turn.as_ref().is_some_and(|turn| turn.waits.contains_key(&wait)) {
            return;
        }
        self.closed_waits.insert(wait, fate);
        if self.closed_waits.len() > CLOSED_WAITS_MAX {
            self.closed_waits.pop_first();
        }
    }

    fn adopt(&mut self, seq: Seq, piece: Option<&Adopted>) {
        let Some(piece) = piece else { return };
        let (piece, bytes) = match piece.clone() {
            Adopted::User { content } => {
                let bytes = content.iter().map(|Part::Text { text }| text.len()).sum();
                (Piece::User { content }, bytes)
            }
            Adopted::Agent { text } => {
                let bytes = text.len();
                (Piece::Agent { call: None, item: ItemId(seq), text }, bytes)
            }
            Adopted::ToolCall { call_ref, name, args } => {
                let bytes = name.len() + args.len();
                (Piece::ToolCall { call: None, item: ItemId(seq), name, call_ref, args }, bytes)
            }
            Adopted::ToolResult { call_ref, output } => {
                let bytes = output.len();
                let Some(item) = self.line.adopted_call(&call_ref) else { return };
                (Piece::ToolResult { item, output, is_error: false }, bytes)
            }
        };
        self.line.push(seq, estimate_tokens(bytes), piece);
    }

    fn start_turn(&mut self, seq: Seq, work: &Work) {
        let id = TurnId(seq);
        let settings = self.settings.as_ref();
        let calls_max = settings.map_or(CALLS_PER_TURN_MAX, |s| s.calls_max);
        let origin = match work {
            Work::Message { message } => {
                let Some(at) = self.queue.iter().position(|q| q.id == *message) else { return };
                let Some(queued) = self.queue.remove(at) else { return };
                self.line.push(seq, queued.tokens, Piece::User { content: queued.content });
                queued.origin
            }
            Work::Resume { by, .. } => {
                let text = Part::Text { text: RESUME_TEXT.into() };
                let tokens = estimate_tokens(RESUME_TEXT.len());
                self.line.push(seq, tokens, Piece::User { content: vec![text] });
                Origin { who: by.clone(), can_approve: true }
            }
            Work::Compact { by } => Origin { who: by.clone(), can_approve: true },
        };
        self.paused = false;
        // A compaction is no answer to what was interrupted.
        if !matches!(work, Work::Compact { .. }) {
            self.interrupted = None;
        }
        self.turn = Some(Turn::new(id, work.clone(), origin, calls_max));
    }

    fn end_turn(&mut self, outcome: &Outcome) {
        let Some(turn) = self.turn.take() else { return };
        if !matches!(outcome, Outcome::Interrupted { .. }) {
            return;
        }
        self.paused = true;
        // A compaction is no work to take up again.
        if !matches!(turn.work, Work::Compact { .. }) {
            let by_person = match &turn.stopping {
                Some(Stop::Interrupted { by, .. }) => &*by.via != SHUTDOWN_VIA,
                Some(Stop::Denied { .. }) => true,
                None => false,
            };
            let (turn, origin) = (turn.id, turn.origin);
            self.interrupted = Some(Interrupted { turn, origin, by_person });
        }
    }
}

/// Model calls a turn may make when nothing else was said.
pub const CALLS_PER_TURN_MAX: u32 = 100;

/// A rough count for texts that came without one: four bytes make a token.
pub fn estimate_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}
