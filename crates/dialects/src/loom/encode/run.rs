//! One run: its nodes, and what is open in it.
//!
//! A model call is a node, and so is the act that carries out what it proposed; after an act comes
//! `observe`, which takes no time of its own; `compress` comes when room is made. Nodes may overlap
//! (an explanation is asked for while its call waits, branches and sub-tasks run side by
//! side), so every event is placed by its item.

use std::collections::BTreeMap;

use polyloop_session::event::{Agent, CallOutcome, Event, Level, LineId, Purpose, Stop};
use polyloop_session::item::{End, ItemKind, Usage};
use polyloop_session::{
    CallId, Growth, ItemId, LogEntry, SessionId, Stream, Text, Timestamp, WaitId,
};

use self::search::{Place, Search};
use super::super::short::short;
use super::super::wire::{self, Custom, Event as Told, Exit};
use super::frame::{Head, Node};
use super::state::{Changed, Pending, Shown, State};
use super::tool::{Item, Voice, Wait};
use crate::RunPart;
use crate::conn::{Message, Out};
use crate::progress::Progress;

mod edges;
mod search;

const ERROR_BYTES_MAX: usize = 4 * 1024;
pub(super) const NOTICE_BYTES_MAX: usize = 4 * 1024;
const INTERRUPTED: &str = "Interrupted";

/// What a run is from its start.
pub(super) struct Begun {
    pub head: Head,
    /// The thread it is part of, if it is.
    pub thread: Option<SessionId>,
    pub text: Option<Text>,
    pub agent: Agent,
    pub compacts: bool,
    pub verbose: bool,
    pub can_approve: bool,
    pub earlier: Option<u64>,
}

pub(super) struct Run {
    pub(super) begun: Begun,
    nodes: u32,
    last: Option<Node>,
    calls: BTreeMap<CallId, Call>,
    /// By the call that proposed what is carried out.
    acts: BTreeMap<CallId, Act>,
    pub(super) items: BTreeMap<ItemId, Item>,
    pub(super) waits: BTreeMap<WaitId, Wait>,
    stopping: Stopping,
    /// What the last call that said something said.
    reply: Vec<Text>,
    search: Search,
    pub(super) state: State,
}

/// What an interrupted run leaves of its search.
pub(super) struct Left {
    names: Progress,
    strategy: Shown,
}

/// Why nothing new begins in it.
enum Stopping {
    No,
    Interrupted,
    /// A denial ends it, as a run that completed.
    Denied,
}

/// A node that is open.
#[derive(Clone, Copy)]
struct Span {
    node: Node,
    since: Timestamp,
}

struct Call {
    span: Span,
    purpose: Purpose,
    /// Whose loop asks; nothing is the session's own.
    line: Option<LineId>,
    /// The span is its own, and ends with it.
    owns: bool,
    /// Its texts, in the order in which they began.
    said: BTreeMap<ItemId, Text>,
}

struct Act {
    span: Span,
    /// It is one of the session's own loop, whose results are messages of the run.
    main: bool,
    /// A crash ended what it was carrying out.
    crashed: bool,
}

impl Run {
    pub(super) fn new(begun: Begun) -> Run {
        let state = State::new(begun.earlier, begun.text.as_deref(), begun.agent);
        Run {
            begun,
            nodes: 0,
            last: None,
            calls: BTreeMap::new(),
            acts: BTreeMap::new(),
            items: BTreeMap::new(),
            waits: BTreeMap::new(),
            stopping: Stopping::No,
            reply: Vec::new(),
            search: Search::default(),
            state,
        }
    }

    /// Goes on with what another run left, and has the names of what it will tell of.
    pub(super) fn take_up(&mut self, left: Left) {
        let Left { names, strategy } = left;
        self.search.names = names;
        self.state.take_up(strategy);
    }

    /// What the run that takes it up goes on with.
    pub(super) fn leave(&mut self) -> Left {
        let names = std::mem::take(&mut self.search.names);
        Left { names, strategy: self.state.leave() }
    }

    /// Puts an event out that is there whether or not anything was streamed.
    pub(super) fn tell(&self, node: Option<Node>, event: &Told<'_>, out: &mut Out<'_>) {
        out.message(self.message(RunPart::Event, node, event, out));
    }

    /// Puts characters of an item out.
    pub(super) fn stream(&self, node: Node, event: &Told<'_>, out: &mut Out<'_>) {
        out.streamed(self.message(RunPart::Event, Some(node), event, out));
    }

    pub(super) fn message(
        &self,
        part: RunPart,
        node: Option<Node>,
        event: &Told<'_>,
        out: &Out<'_>,
    ) -> Message {
        let head = &self.begun.head;
        if out.is_muted() { head.unread(part) } else { head.event(part, node, event) }
    }

    pub(super) fn entry(&mut self, entry: &LogEntry, out: &mut Out<'_>) {
        match &entry.event {
            Event::TurnStopping { reason } => {
                self.stopping = match reason {
                    Stop::Interrupted { .. } => Stopping::Interrupted,
                    Stop::Denied { .. } => Stopping::Denied,
                };
            }
            Event::CallStarted { purpose, line, .. } => {
                self.call_started(entry, *purpose, *line, out);
            }
            Event::CallEnded { call, outcome, usage } => {
                self.call_ended(*call, outcome, *usage, entry.at, out);
            }
            Event::ItemStarted { call, item, block: _ } => {
                self.item_started(ItemId(entry.seq), *call, item.clone(), out);
            }
            Event::ToolProposed { item, args, .. } => self.proposed(*item, args, out),
            Event::ToolStarted { item, .. } => self.tool_started(*item, out),
            Event::SandboxRefused { item, reason, text, .. } => {
                self.stopped(*item, reason, text, out);
            }
            Event::ItemCompleted { .. } => self.item_completed(entry, out),
            Event::WaitOpened { item, ask } => {
                self.wait_opened(WaitId(entry.seq), *item, ask, out);
            }
            Event::WaitSettled { wait, answer, by } => self.settled(*wait, answer, by, out),
            Event::WaitWithdrawn { wait, by, .. } => self.withdrawn(*wait, by.as_ref(), out),
            Event::Noticed { level, text, code } => {
                let level = match level {
                    Level::Info => "info",
                    Level::Warning => "warning",
                };
                let text = &short(text, NOTICE_BYTES_MAX);
                let code = &short(code, NOTICE_BYTES_MAX);
                let value = Custom::Notice { level, text, code };
                self.tell(self.last, &Told::Custom { value }, out);
            }
            Event::Forked { session, upto, .. } => {
                let text = &crate::edits::forked(session, *upto);
                let value = Custom::Notice { level: "info", text, code: crate::edits::FORKED_CODE };
                self.tell(self.last, &Told::Custom { value }, out);
            }
            // Never in a run.
            Event::UndoStarted { .. } | Event::UndoFailed { .. } | Event::Undone { .. } => {}
            Event::Misread { .. }
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
            | Event::Concluded { .. } => self.searched(entry, out),
            // Clients of this dialect have no message for these; a compaction is its own node.
            Event::SessionCreated { .. }
            | Event::Adopted { .. }
            | Event::ModeSet { .. }
            | Event::SettingSet { .. }
            | Event::SessionClosed { .. }
            | Event::SessionReopened { .. }
            | Event::ExplainAsked { .. }
            | Event::Compacted { .. }
            | Event::FilesTouched { .. }
            | Event::Trimmed { .. } => {}
            // These begin and end runs: the encoder's own.
            Event::MessageQueued { .. }
            | Event::MessageDropped { .. }
            | Event::TurnStarted { .. }
            | Event::TurnEnded { .. } => {}
        }
    }

    fn enter(&mut self, name: &'static str, at: Timestamp, out: &mut Out<'_>) -> Span {
        self.enter_node(name, None, at, out)
    }

    /// Enters a node that works on a sub-task.
    fn enter_task(&mut self, task: &str, at: Timestamp, out: &mut Out<'_>) -> Span {
        self.enter_node("execute_graph", Some(task), at, out)
    }

    fn enter_node(
        &mut self,
        id: &'static str,
        got_node: Option<&str>,
        at: Timestamp,
        out: &mut Out<'_>,
    ) -> Span {
        let node = Node { number: self.nodes, name: id };
        self.nodes = self.nodes.saturating_add(1);
        self.last = Some(node);
        self.tell(Some(node), &Told::NodeEnter { id, got_node }, out);
        Span { node, since: at }
    }

    fn item_started(&mut self, id: ItemId, call: CallId, kind: ItemKind, out: &mut Out<'_>) {
        let Some(open) = self.calls.get(&call) else { return };
        let node = open.span.node;
        let voice = match open.purpose {
            Purpose::Summarise => Voice::Quiet,
            Purpose::Explain { .. } => Voice::Said,
            Purpose::Think if open.line.is_none() => Voice::Said,
            Purpose::Value { .. } | Purpose::Vote { .. } => Voice::Whole,
            _ => Voice::Thought,
        };
        let aside = open.line.is_some();
        let item = Item::new(id, kind, call, node, voice, aside);
        if voice == Voice::Thought && item.shows(Stream::Text) && self.search.has_spoken(node) {
            self.part(node, out);
        }
        self.items.insert(id, item);
    }

    /// One text of a node stands apart from the next.
    pub(super) fn part(&self, node: Node, out: &mut Out<'_>) {
        let event = Told::ThoughtChunk { content: search::BETWEEN_TEXTS, id: node.name };
        self.tell(Some(node), &event, out);
    }

    fn exit(&self, span: Span, result: Exit<'_>, at: Timestamp, out: &mut Out<'_>) {
        let Span { node, since } = span;
        if self.begun.verbose {
            let duration_ms = at.0.saturating_sub(since.0).max(0);
            let value = Custom::Timing { node: node.name, duration_ms };
            self.tell(Some(node), &Told::Custom { value }, out);
        }
        self.tell(Some(node), &Told::NodeExit { id: node.name, result }, out);
    }

    /// The state after a node that ended well.
    fn changed(&self, node: Node, changed: Changed, out: &mut Out<'_>) {
        if out.is_muted() {
            out.message(self.begun.head.unread(RunPart::Event));
            out.message(self.begun.head.unread(RunPart::Event));
            return;
        }
        let state = self.state.values(self.pending_calls());
        self.tell(Some(node), &Told::Values { state }, out);
        let state = self.state.update(changed, self.pending_calls());
        self.tell(Some(node), &Told::Updates { id: node.name, state }, out);
    }

    fn pending_calls(&self) -> impl Iterator<Item = Pending<'_>> {
        self.items.values().filter_map(Item::pending)
    }

    fn call_started(
        &mut self,
        entry: &LogEntry,
        purpose: Purpose,
        line: Option<LineId>,
        out: &mut Out<'_>,
    ) {
        let (span, owns) = match self.place(purpose, line, entry.at, out) {
            Place::Own(name) => (self.enter(name, entry.at, out), true),
            Place::Shared(span) => (span, false),
        };
        let call = Call { span, purpose, line, owns, said: BTreeMap::new() };
        self.calls.insert(CallId(entry.seq), call);
    }

    fn call_ended(
        &mut self,
        id: CallId,
        outcome: &CallOutcome,
        usage: Option<Usage>,
        at: Timestamp,
        out: &mut Out<'_>,
    ) {
        let Some(Call { span, purpose, line, owns, said }) = self.calls.remove(&id) else { return };
        self.state.used(usage);
        if let Some(wire::Usage { prompt_tokens, completion_tokens, total_tokens }) =
            usage.map(wire::Usage::from)
        {
            let event = Told::Usage { prompt_tokens, completion_tokens, total_tokens };
            self.tell(Some(span.node), &event, out);
        }
        let span = match (outcome, owns) {
            (_, true) => span,
            (CallOutcome::Answered, false) => return self.search.read_shared(id, span.node),
            // Others go on in the same node.
            (_, false) => match self.search.misunderstood(span) {
                Some(span) => span,
                None => return,
            },
        };
        match outcome {
            CallOutcome::Answered => {}
            CallOutcome::Failed { fault } | CallOutcome::Retried { fault, after_ms: _ } => {
                let why = short(&fault.message, ERROR_BYTES_MAX);
                return self.exit(span, Exit::Err(&why), at, out);
            }
            CallOutcome::Stopped | CallOutcome::Lost => {
                return self.exit(span, Exit::Err(INTERRUPTED), at, out);
            }
        }
        let mut changed = Changed { usage: usage.is_some(), ..Changed::default() };
        let mut acts = false;
        match purpose {
            Purpose::Think if line.is_none() => {
                let said: Vec<Text> = said.into_values().filter(|text| !text.is_empty()).collect();
                self.state.thought(&said.concat());
                acts = self.items.values().any(|item| item.is_pending_of(id));
                changed = Changed {
                    messages: !said.is_empty(),
                    calls: acts,
                    after_last_think: true,
                    ..changed
                };
                if !said.is_empty() {
                    self.reply = said;
                }
            }
            // What was proposed is carried out before it is asked again.
            Purpose::Expand { .. } => {
                acts = self.items.values().any(|item| item.is_pending_of(id));
                changed.calls = acts;
            }
            // What they told is no part of the conversation that the state shows.
            _ => {}
        }
        // What it means is read next, and belongs into the same node.
        if !acts && search::is_read(purpose) {
            self.search.read_next(id, span, changed);
            return;
        }
        self.exit(span, Exit::Ok, at, out);
        self.changed(span.node, changed, out);
        if acts {
            self.act(id, line.is_none(), at, out);
        }
    }

    fn act(&mut self, call: CallId, main: bool, at: Timestamp, out: &mut Out<'_>) {
        if self.acts.is_empty() {
            self.state.act_began();
        }
        let span = self.enter("act", at, out);
        for item in self.items.values_mut().filter(|item| item.is_pending_of(call)) {
            item.node = span.node;
        }
        self.acts.insert(call, Act { span, main, crashed: false });
    }

    /// A call that was proposed is done; the last one ends its act.
    pub(super) fn acted(&mut self, call: CallId, end: End, at: Timestamp, out: &mut Out<'_>) {
        let crashed = end == End::Interrupted && self.waits.is_empty();
        let Some(act) = self.acts.get_mut(&call) else { return };
        act.crashed |= crashed;
        if self.items.values().any(|item| item.is_pending_of(call)) {
            return;
        }
        let Some(Act { span, main, crashed }) = self.acts.remove(&call) else { return };
        let cut = match self.stopping {
            Stopping::No => crashed,
            Stopping::Interrupted => true,
            Stopping::Denied => false,
        };
        if cut {
            return self.exit(span, Exit::Err(INTERRUPTED), at, out);
        }
        self.exit(span, Exit::Ok, at, out);
        let changed = Changed { calls: true, results: true, ..Changed::default() };
        self.changed(span.node, changed, out);

        let span = self.enter("observe", at, out);
        self.state.observed(main);
        self.exit(span, Exit::Ok, at, out);
        let changed = Changed { messages: main, turn_count: true, ..Changed::default() };
        self.changed(span.node, changed, out);
    }

    /// A text or a piece of reasoning is complete; what was said in a think is remembered.
    pub(super) fn said(&mut self, id: ItemId, item: &Item, text: &Text) {
        if item.shows(Stream::Text) && item.is_thought() && !text.is_empty() {
            self.search.speaks(item.node);
        }
        if let (ItemKind::Text, Some(call)) = (&item.kind, self.calls.get_mut(&item.call))
            && call.purpose == Purpose::Think
            && call.line.is_none()
        {
            call.said.insert(id, text.clone());
        }
    }

    pub(super) fn growth(&mut self, growth: &Growth, out: &mut Out<'_>) {
        let Some(item) = self.items.get(&growth.item) else { return };
        if !item.streams(growth.stream) {
            return;
        }
        let Some(fresh) = out.fresh(growth) else { return };
        let end = growth.offset.saturating_add(growth.text.len() as u64);
        let is_first = end == fresh.len() as u64;
        self.stream(item.node, &item.chunk(growth.stream, fresh, is_first), out);
    }

    /// The part of a stream that was not sent, now that it is whole.
    pub(super) fn rest(
        &self,
        id: ItemId,
        item: &Item,
        stream: Stream,
        whole: &str,
        out: &mut Out<'_>,
    ) {
        if let Some(rest) = out.rest(id, stream, whole) {
            let is_first = rest.len() == whole.len();
            self.stream(item.node, &item.chunk(stream, rest, is_first), out);
        }
    }
}
