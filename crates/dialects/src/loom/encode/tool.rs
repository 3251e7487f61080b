//! The items of a run, above all its tool calls: what is streamed of them, and what is asked about
//! them.

use polyloop_session::event::Event;
use polyloop_session::item::{End, ItemKind, ToolResult};
use polyloop_session::wait::{Answer, Ask, Who};
use polyloop_session::{CallId, ItemId, LogEntry, Stream, Text, WaitId};

use super::super::call_id;
use super::super::short::short;
use super::super::wire::{Arguments, Custom, Event as Told};
use super::frame::Node;
use super::run::{NOTICE_BYTES_MAX, Run};
use super::state::Pending;
use crate::RunPart;
use crate::conn::Out;
use crate::request;

const TOOL_RESULT_BYTES_MAX: usize = 16 * 1024;
/// Clients are promised a text.
const NO_OUTPUT: &str = "(no output)";

pub(super) struct Item {
    pub kind: ItemKind,
    pub call: CallId,
    /// Where its events are placed: its call, then the act.
    pub node: Node,
    call_id: String,
    voice: Voice,
    /// Of a loop beside the session's own.
    aside: bool,
    args: Option<Text>,
    started: bool,
}

/// How the texts of a call are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    Said,
    /// On the way to what is said.
    Thought,
    /// The same, when it is whole: others go on in the same node.
    Whole,
    /// Part of a summary, which clients are not shown.
    Quiet,
}

pub(super) struct Wait {
    item: ItemId,
    /// Why a call that ran in the sandbox is asked about.
    stopped: Option<Text>,
    /// It went out in a message that somebody read.
    read: bool,
}

impl Item {
    pub(super) fn new(
        id: ItemId,
        kind: ItemKind,
        call: CallId,
        node: Node,
        voice: Voice,
        aside: bool,
    ) -> Item {
        let (call_id, args, started) = (call_id(id), None, false);
        Item { kind, call, node, call_id, voice, aside, args, started }
    }

    fn name(&self) -> &str {
        match &self.kind {
            ItemKind::ToolCall { name, .. } => name,
            ItemKind::Text | ItemKind::Reasoning => "",
        }
    }

    /// As the state shows it, while it is proposed and not done.
    pub(super) fn pending(&self) -> Option<Pending<'_>> {
        let args = self.args.as_deref()?;
        Some(Pending { call_id: &self.call_id, name: self.name(), args })
    }

    pub(super) fn is_pending_of(&self, call: CallId) -> bool {
        self.call == call && self.args.is_some()
    }

    pub(super) fn shows(&self, stream: Stream) -> bool {
        let has = match (&self.kind, stream) {
            (ItemKind::Text | ItemKind::Reasoning, Stream::Text) => true,
            (ItemKind::ToolCall { .. }, Stream::Args) => true,
            (ItemKind::ToolCall { .. }, Stream::Output) => self.started,
            (ItemKind::Text | ItemKind::Reasoning, Stream::Args | Stream::Output)
            | (ItemKind::ToolCall { .. }, Stream::Text) => false,
        };
        has && self.voice != Voice::Quiet
    }

    /// On the way to what is said.
    pub(super) fn is_thought(&self) -> bool {
        matches!(self.voice, Voice::Thought | Voice::Whole)
    }

    /// Whether its characters are shown as they come. A chunk of arguments does not say whose they
    /// are, so beside others they are shown when they are whole.
    pub(super) fn streams(&self, stream: Stream) -> bool {
        let comes = match stream {
            Stream::Text => self.voice != Voice::Whole,
            Stream::Args => !self.aside,
            Stream::Output => true,
        };
        comes && self.shows(stream)
    }

    /// The event that carries characters of a stream.
    pub(super) fn chunk<'a>(&'a self, stream: Stream, text: &'a str, is_first: bool) -> Told<'a> {
        match (&self.kind, stream) {
            (ItemKind::Reasoning, _) => Told::ThoughtChunk { content: text, id: self.node.name },
            (ItemKind::Text, _) if self.voice != Voice::Said => {
                Told::ThoughtChunk { content: text, id: self.node.name }
            }
            (ItemKind::Text, _) => Told::MessageChunk { content: text, id: self.node.name },
            (ItemKind::ToolCall { .. }, Stream::Output) => {
                Told::ToolOutput { call_id: &self.call_id, name: self.name(), content: text }
            }
            (ItemKind::ToolCall { .. }, Stream::Text | Stream::Args) => Told::ToolCallChunk {
                call_id: is_first.then_some(&self.call_id),
                name: is_first.then_some(self.name()),
                arguments_delta: text,
            },
        }
    }

    fn tool_call<'a>(&'a self, args: &'a str) -> Told<'a> {
        let arguments = Arguments::of(args);
        Told::ToolCall { call_id: &self.call_id, name: self.name(), arguments }
    }

    fn tool_start(&self) -> Told<'_> {
        Told::ToolStart { call_id: &self.call_id, name: self.name() }
    }
}

impl Run {
    pub(super) fn proposed(&mut self, id: ItemId, args: &Text, out: &mut Out<'_>) {
        let Some(item) = self.items.get_mut(&id) else { return };
        if item.voice == Voice::Quiet || !matches!(item.kind, ItemKind::ToolCall { .. }) {
            return;
        }
        item.args = Some(args.clone());
        let Some(item) = self.items.get(&id) else { return };
        self.rest(id, item, Stream::Args, args, out);
        self.tell(Some(item.node), &item.tool_call(args), out);
    }

    pub(super) fn tool_started(&mut self, id: ItemId, out: &mut Out<'_>) {
        // One that runs again, outside the sandbox, started before.
        let waits = |item: &&mut Item| item.args.is_some() && !item.started;
        let Some(item) = self.items.get_mut(&id).filter(waits) else { return };
        item.started = true;
        if let Some(item) = self.items.get(&id) {
            self.tell(Some(item.node), &item.tool_start(), out);
        }
    }

    /// The sandbox stopped it, after it printed this: nobody is told so before they have seen it.
    pub(super) fn stopped(&mut self, id: ItemId, reason: &str, text: &str, out: &mut Out<'_>) {
        let Some(item) = self.items.get(&id) else { return };
        if item.shows(Stream::Output)
            && let Some(rest) = out.rest_so_far(id, Stream::Output, text)
        {
            self.stream(item.node, &item.chunk(Stream::Output, rest, false), out);
        }
        let text = &short(&crate::asks::stopped(reason), NOTICE_BYTES_MAX);
        let value = Custom::Notice { level: "warning", text, code: crate::asks::SANDBOX_CODE };
        self.tell(Some(item.node), &Told::Custom { value }, out);
    }

    /// What a client that comes late must know of an open call.
    pub(super) fn again(&self, item: &Item, out: &mut Out<'_>) {
        let Some(args) = &item.args else { return };
        self.tell(Some(item.node), &item.tool_call(args), out);
        if item.started {
            self.tell(Some(item.node), &item.tool_start(), out);
        }
    }

    pub(super) fn item_completed(&mut self, entry: &LogEntry, out: &mut Out<'_>) {
        let Event::ItemCompleted { item: id, end, text, result, .. } = &entry.event else { return };
        let Some(item) = self.items.remove(id) else { return };
        // Of a call that was cut inside its arguments, the text is those.
        let stream = match (&item.kind, &item.args) {
            (ItemKind::Text | ItemKind::Reasoning, _) => Stream::Text,
            (ItemKind::ToolCall { .. }, None) => Stream::Args,
            (ItemKind::ToolCall { .. }, Some(_)) => Stream::Output,
        };
        // Beside others a blank text would only be a gap.
        let is_gap = item.voice == Voice::Whole && text.trim().is_empty();
        if item.shows(stream) && !is_gap {
            self.rest(*id, &item, stream, text, out);
            if item.voice == Voice::Whole && stream == Stream::Text {
                self.part(item.node, out);
            }
        }
        self.said(*id, &item, text);
        if item.args.is_none() {
            return;
        }
        let result = result.as_deref();
        let shown = outcome(*end, text, result);
        let is_error = *end != End::Whole || result.and_then(|r| r.exit_code).unwrap_or(0) != 0;
        let event = Told::ToolEnd {
            call_id: &item.call_id,
            name: item.name(),
            result: &short(shown, TOOL_RESULT_BYTES_MAX),
            is_error,
        };
        self.tell(Some(item.node), &event, out);
        self.state.done(&item.call_id, item.name(), shown, is_error);
        self.acted(item.call, *end, entry.at, out);
    }

    pub(super) fn wait_opened(&mut self, wait: WaitId, item: ItemId, ask: &Ask, out: &mut Out<'_>) {
        let stopped = match ask {
            Ask::Outside { reason } => Some(reason.clone()),
            Ask::Approval | Ask::Question { .. } | Ask::Plan { .. } => None,
        };
        self.waits.insert(wait, Wait { item, stopped, read: !out.is_muted() });
        self.ask(wait, out);
    }

    /// Asks whoever said that they answer.
    fn ask(&self, id: WaitId, out: &mut Out<'_>) {
        let Some(wait) = self.waits.get(&id).filter(|_| self.begun.can_approve) else { return };
        let Some(item) = self.items.get(&wait.item) else { return };
        let Some(args) = &item.args else { return };
        let args = request::arguments(args);
        let why = |reason: &Text| short(&crate::asks::outside(reason), NOTICE_BYTES_MAX);
        let reason = wait.stopped.as_ref().map(why);
        let event = Told::ToolApproval {
            call_id: &item.call_id,
            name: item.name(),
            arguments: Arguments::of(&args),
            reason: reason.as_deref(),
        };
        let message = self.message(RunPart::Event, Some(item.node), &event, out);
        out.request(id, message);
    }

    pub(super) fn pending(&mut self, out: &mut Out<'_>) {
        let unread = self.waits.iter_mut().filter(|(_, wait)| !wait.read);
        let unread: Vec<WaitId> = unread
            .map(|(id, wait)| {
                wait.read = true;
                *id
            })
            .collect();
        for wait in unread {
            self.ask(wait, out);
        }
    }

    pub(super) fn settled(&mut self, wait: WaitId, answer: &Answer, by: &Who, out: &mut Out<'_>) {
        let Some(Wait { item, .. }) = self.waits.remove(&wait) else { return };
        let (decision, instead) = match answer {
            Answer::Approved { always: false, instead, .. } => ("approved", instead.as_ref()),
            Answer::Approved { always: true, instead, .. } => ("approved_always", instead.as_ref()),
            Answer::Denied { .. } => ("denied", None),
            Answer::Answered { .. } => ("answered", None),
        };
        let instead = instead.map(|instead| instead.args.clone());
        if let (Some(args), Some(item)) = (&instead, self.items.get_mut(&item)) {
            item.args = item.args.is_some().then(|| args.clone());
        }
        let by = by.describe();
        self.outcome(item, decision, Some(&by), instead.as_deref(), out);
    }

    pub(super) fn withdrawn(&mut self, wait: WaitId, by: Option<&Who>, out: &mut Out<'_>) {
        let Some(Wait { item, .. }) = self.waits.remove(&wait) else { return };
        let by = by.map(Who::describe);
        self.outcome(item, "withdrawn", by.as_deref(), None, out);
    }

    fn outcome(
        &self,
        item: ItemId,
        decision: &str,
        by: Option<&str>,
        instead: Option<&str>,
        out: &mut Out<'_>,
    ) {
        let Some(item) = self.items.get(&item) else { return };
        let arguments = instead.map(Arguments::of);
        let value = Custom::Approval { call_id: &item.call_id, decision, by, arguments };
        self.tell(Some(item.node), &Told::Custom { value }, out);
    }
}

/// What came of a call. What the model was told says why one that did not end by itself ended.
fn outcome<'a>(end: End, text: &'a str, result: Option<&'a ToolResult>) -> &'a str {
    let seen = result.and_then(|result| result.seen.as_deref());
    let shown = match (end, seen) {
        (End::Whole, Some(seen)) if text.is_empty() => seen,
        (End::Whole, _) | (_, None) => text,
        (_, Some(seen)) => seen,
    };
    if shown.is_empty() { NO_OUTPUT } else { shown }
}
