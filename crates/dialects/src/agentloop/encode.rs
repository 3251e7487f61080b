//! A session's entries and growth into AgentLoop messages.
//!
//! Text is streamed: growth becomes `response_item` deltas that share the item's id, and an
//! item's completion sends only what was not sent. Fed entries alone, the same fold gives one
//! whole message an item, which is what the session files hold.

use std::collections::BTreeMap;

use polyloop_session::context::{ContextInfo, Filled};
use polyloop_session::event::{CallOutcome, Level, LineId, Outcome, Purpose, Work};
use polyloop_session::item::{End, Fault, ItemKind, ToolResult, Usage};
use polyloop_session::policy::Judgement;
use polyloop_session::shown;
use polyloop_session::wait::{Answer, Ask, Who};
use polyloop_session::{
    CallId, Event, Growth, ItemId, LogEntry, Seq, SessionId, Stream, Text, Timestamp, TurnId,
    WaitId,
};
use serde::Serialize;

use super::wire::{ApplyPatch, Message, Payload, ResponseItem, Settled, ShellAction};
use crate::conn::Out;
use crate::ids::{IdKind, Ids};
use crate::progress::{self, Manner, Progress};
use crate::{Encoder, Frame, Reply, is_asked, request, to_json};

mod parts;

use parts::{
    adopted, asking, asking_outside, assistant, call_output, context_info, decision, error,
    percent, reasoning, shown_call, strategy_name, system,
};

pub(super) struct AgentloopEncoder {
    ids: Ids,
    turn: Option<(TurnId, Work)>,
    calls: BTreeMap<CallId, (Purpose, Option<LineId>)>,
    items: BTreeMap<ItemId, Item>,
    /// Open waits in order; only the first is presented.
    waits: BTreeMap<WaitId, (ItemId, Ask)>,
    progress: Progress,
    /// The presented wait went out in a message that somebody read.
    presented: Option<(WaitId, bool)>,
}

struct Item {
    kind: ItemKind,
    call: CallId,
    started_at: Timestamp,
    proposal: Option<Proposal>,
    /// Its `function_call` was sent.
    called: bool,
}

struct Proposal {
    args: Text,
    judgement: Box<Judgement>,
    /// It is a question or a plan, which clients are shown as such and not as a call.
    asks: bool,
}

/// A message before it has an id, or characters of an item that streams.
pub(super) enum Made {
    Part(Payload),
    /// The same, which tells how a request was settled.
    Outcome(Payload, Settled),
    /// What belongs to an entry further back, and is sent again with its id.
    Again(Seq, Payload),
    Request(WaitId, Payload),
    Streamed {
        item: ItemId,
        offset: u64,
        payload: Payload,
    },
}

impl AgentloopEncoder {
    pub(super) fn new(session: &SessionId) -> AgentloopEncoder {
        AgentloopEncoder {
            ids: Ids::new(Some(session)),
            turn: None,
            calls: BTreeMap::new(),
            items: BTreeMap::new(),
            waits: BTreeMap::new(),
            progress: Progress::default(),
            presented: None,
        }
    }

    /// The messages an entry gives, ids included. `rest` says which part of a streamed item's
    /// whole text is still to be sent.
    pub(super) fn messages<'t>(
        &mut self,
        entry: &'t LogEntry,
        rest: impl FnOnce(ItemId, &'t str) -> Option<(u64, &'t str)>,
    ) -> Vec<Message> {
        let mut made = Vec::new();
        self.entry_into(entry, rest, &mut made);
        let mut part = 0;
        made.into_iter()
            .map(|made| {
                let mut settled = None;
                let (kind, place, payload, presents) = match made {
                    Made::Part(payload) => {
                        part += 1;
                        (IdKind::Entry(part - 1), entry.seq, payload, None)
                    }
                    Made::Outcome(payload, told) => {
                        part += 1;
                        settled = Some(told);
                        (IdKind::Entry(part - 1), entry.seq, payload, None)
                    }
                    Made::Again(place, payload) => (IdKind::Entry(0), place, payload, None),
                    Made::Request(wait, payload) => (IdKind::Request, wait.0, payload, Some(wait)),
                    Made::Streamed { item, offset, payload } => {
                        (IdKind::Growth(offset), item.0, payload, None)
                    }
                };
                Message { id: self.ids.id(kind, place), payload, presents, settled }
            })
            .collect()
    }

    fn entry_into<'t>(
        &mut self,
        entry: &'t LogEntry,
        rest: impl FnOnce(ItemId, &'t str) -> Option<(u64, &'t str)>,
        out: &mut Vec<Made>,
    ) {
        match &entry.event {
            Event::TurnStarted { work, .. } => {
                self.progress.turn_started(work);
                self.turn = Some((TurnId(entry.seq), work.clone()));
                out.push(Made::Part(Payload::LoadingState { loading: true }));
            }
            Event::TurnEnded { outcome, .. } => self.turn_ended(outcome, entry.seq, out),
            Event::CallStarted { purpose, line, .. } => {
                self.calls.insert(CallId(entry.seq), (*purpose, *line));
            }
            Event::CallEnded { call, outcome, .. } => self.call_ended(*call, outcome, entry, out),
            Event::ItemStarted { call, item, .. } => {
                let item = Item {
                    kind: item.clone(),
                    call: *call,
                    started_at: entry.at,
                    proposal: None,
                    called: false,
                };
                self.items.insert(ItemId(entry.seq), item);
            }
            Event::ToolProposed { item, args, judgement, answerable, .. } => {
                if let Some(open) = self.items.get_mut(item) {
                    let asks = is_asked(judgement, *answerable);
                    let judgement = judgement.clone();
                    open.proposal = Some(Proposal { args: args.clone(), judgement, asks });
                }
            }
            Event::ToolStarted { item, .. } => {
                out.extend(self.function_call(*item).map(Made::Part));
            }
            Event::SandboxRefused { reason, .. } => {
                let text = format!("⚠️ {}", crate::asks::stopped(reason));
                out.push(Made::Part(system(entry.seq, &text)));
            }
            Event::ItemCompleted { item, end, text, result, .. } => {
                let ended = (*end, &**text, result.as_deref());
                self.item_completed(*item, ended, entry.at, rest, out);
            }
            Event::WaitOpened { item, ask } => {
                self.waits.insert(WaitId(entry.seq), (*item, ask.clone()));
                self.present(out);
            }
            Event::WaitSettled { wait, answer, by } => {
                self.settled(*wait, answer, by, entry.seq, out);
                self.present(out);
            }
            Event::WaitWithdrawn { wait, by, .. } => {
                let open = self.waits.remove(wait);
                if let (Some((_, ask)), Some(by)) = (open, by)
                    && !ask.for_leave()
                {
                    let text = format!("ℹ️ {} withdrew what was asked", by.describe());
                    out.push(Made::Part(system(entry.seq, &text)));
                }
                self.present(out);
            }
            Event::Compacted { tokens_before, tokens_after, window, .. }
            | Event::Trimmed { tokens_before, tokens_after, window, .. } => {
                let strategy = strategy_name(window.strategy);
                out.push(Made::Part(Payload::ContextCompacted {
                    old_token_count: *tokens_before,
                    new_token_count: *tokens_after,
                    reduction_percent: percent(
                        tokens_before.saturating_sub(*tokens_after),
                        *tokens_before,
                    ),
                    strategy,
                }));
                out.push(Made::Part(context_info(&ContextInfo {
                    tokens: *tokens_after,
                    tokens_max: window.tokens_max,
                    pieces: window.pieces,
                    strategy: window.strategy,
                    spent: Usage::default(),
                    calls: 0,
                    filled: Filled::default(),
                })));
            }
            Event::Noticed { level, text, .. } => {
                let mark = match level {
                    Level::Info => "ℹ️ ",
                    Level::Warning => "⚠️ ",
                };
                out.push(Made::Part(system(entry.seq, &format!("{mark}{text}"))));
            }
            Event::Adopted { piece: Some(piece) } => adopted(entry.seq, piece, out),
            Event::Forked { session, upto, .. } => {
                let text = format!("ℹ️ {}", crate::edits::forked(session, *upto));
                out.push(Made::Part(system(entry.seq, &text)));
            }
            Event::Undone { files, skipped, by, .. } => {
                let text = format!("ℹ️ {}", crate::edits::undone(files, skipped, by));
                out.push(Made::Part(system(entry.seq, &text)));
            }
            Event::UndoFailed { reason } => {
                let text = format!("⚠️ {}", crate::edits::undo_failed(reason));
                out.push(Made::Part(system(entry.seq, &text)));
            }
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
            | Event::Gathered { .. } => {
                if let Some(told) = self.progress.told(entry) {
                    out.push(Made::Part(reasoning(entry.seq, &told, 0)));
                }
            }
            Event::Concluded { text, .. } => {
                out.push(Made::Part(assistant(ItemId(entry.seq), text)));
            }
            // Clients of this dialect have no message for these.
            Event::SessionCreated { .. }
            | Event::Adopted { piece: None }
            | Event::ModeSet { .. }
            | Event::SettingSet { .. }
            | Event::SessionClosed { .. }
            | Event::SessionReopened { .. }
            | Event::MessageQueued { .. }
            | Event::MessageDropped { .. }
            | Event::TurnStopping { .. }
            | Event::ExplainAsked { .. }
            | Event::FilesTouched { .. }
            | Event::UndoStarted { .. } => {}
        }
    }

    fn turn_ended(&mut self, outcome: &Outcome, seq: Seq, out: &mut Vec<Made>) {
        let turn = self.turn.take();
        self.calls.clear();
        self.items.clear();
        self.waits.clear();
        self.progress.turn_ended(outcome);
        self.presented = None;
        let id = turn.as_ref().map_or(seq, |(id, _)| id.0);
        match outcome {
            Outcome::Completed | Outcome::Interrupted { .. } => {
                out.push(Made::Part(Payload::LoadingState { loading: false }));
                let response_id = format!("resp_{id}");
                out.push(Made::Part(Payload::AgentFinished { response_id }));
            }
            Outcome::Failed { fault } => {
                let message = match turn {
                    Some((_, Work::Compact { .. })) => "Context compaction failed",
                    _ => "Failed to process user input",
                };
                out.push(Made::Part(error(message, &fault.message, &fault.code)));
                out.push(Made::Part(Payload::LoadingState { loading: false }));
            }
        }
    }

    fn call_ended(
        &mut self,
        call: CallId,
        outcome: &CallOutcome,
        entry: &LogEntry,
        out: &mut Vec<Made>,
    ) {
        let Some((Purpose::Explain { wait }, _)) = self.calls.remove(&call) else { return };
        if let CallOutcome::Failed { fault: Fault { message, .. } } = outcome {
            let text = format!("⚠️ The explanation failed: {message}");
            out.push(Made::Part(system(entry.seq, &text)));
        }
        if self.waits.contains_key(&wait) {
            self.presented = None;
            self.present(out);
        }
    }

    fn item_completed<'t>(
        &mut self,
        id: ItemId,
        (end, text, result): (End, &'t str, Option<&ToolResult>),
        at: Timestamp,
        rest: impl FnOnce(ItemId, &'t str) -> Option<(u64, &'t str)>,
        out: &mut Vec<Made>,
    ) {
        let manner = self.manner(id);
        let shows_text = manner != Manner::Nowhere;
        let Some(item) = self.items.get(&id) else { return };
        match &item.kind {
            ItemKind::Text if manner == Manner::Said => {
                if let Some((offset, text)) = rest(id, text) {
                    let payload = assistant(id, text);
                    out.push(Made::Streamed { item: id, offset, payload });
                }
            }
            // The summary of a compaction is no part of the conversation that clients see.
            ItemKind::Text | ItemKind::Reasoning => {
                if shows_text && !text.is_empty() {
                    let duration_ms = at.0.saturating_sub(item.started_at.0).max(0);
                    out.push(Made::Part(reasoning(id.0, text, duration_ms)));
                }
            }
            // Cut inside its arguments: it was never a call. What asks is shown when it asks.
            ItemKind::ToolCall { .. } if item.proposal.as_ref().is_none_or(|p| p.asks) => {}
            ItemKind::ToolCall { native, .. } => {
                let native = *native;
                out.extend(self.function_call(id).map(Made::Part));
                out.push(Made::Part(call_output(id, native, end, text, result)));
            }
        }
        self.items.remove(&id);
    }

    /// Sends the call once the decision is in, and only once.
    fn function_call(&mut self, id: ItemId) -> Option<Payload> {
        let item = self.items.get_mut(&id)?;
        let (ItemKind::ToolCall { name, native, .. }, Some(proposal)) =
            (&item.kind, &item.proposal)
        else {
            return None;
        };
        if item.called || proposal.asks {
            return None;
        }
        let call = if *native {
            let command = proposal.judgement.command.iter().map(|word| word.to_string()).collect();
            let action = ShellAction { command };
            ResponseItem::LocalShellCall { id: format!("shell_{id}"), action, status: "completed" }
        } else {
            let (name, arguments) = shown_call(name, proposal);
            let id = format!("call_{id}");
            ResponseItem::FunctionCall { call_id: id.clone(), id, name, arguments }
        };
        item.called = true;
        Some(Payload::ResponseItem(call))
    }

    fn settled(&mut self, wait: WaitId, answer: &Answer, by: &Who, seq: Seq, out: &mut Vec<Made>) {
        let Some((id, ask)) = self.waits.remove(&wait) else { return };
        let told = Settled {
            request_id: self.ids.id(IdKind::Request, wait.0),
            decision: decision(answer),
            by: by.describe(),
        };
        if ask != Ask::Approval {
            let text = format!("ℹ️ {}: {}", by.describe(), answer.describe());
            out.push(Made::Outcome(system(seq, &text), told));
            return;
        }
        if let Answer::Approved { instead: Some(instead), .. } = answer
            && let Some(item) = self.items.get_mut(&id)
        {
            let judgement = Box::new(instead.judgement.clone());
            let args = instead.args.clone();
            item.proposal = Some(Proposal { args, judgement, asks: false });
        }
        out.extend(self.function_call(id).map(|call| Made::Outcome(call, told)));
    }

    /// Presents the first open wait, if it was not presented yet.
    fn present(&mut self, out: &mut Vec<Made>) {
        let Some((wait, (item, ask))) = self.waits.first_key_value() else {
            self.presented = None;
            return;
        };
        let wait = *wait;
        if self.presented.is_some_and(|(presented, _)| presented == wait) {
            return;
        }
        match ask {
            Ask::Question { questions } => {
                self.presented = Some((wait, true));
                let item = asking(wait, &crate::asks::question(questions));
                out.push(Made::Request(wait, item));
                return;
            }
            Ask::Plan { plan, path: _ } => {
                out.push(Made::Again(wait.0, asking(wait, &shown::prose(plan))))
            }
            Ask::Outside { reason } => {
                out.push(Made::Again(wait.0, asking_outside(wait, reason)));
            }
            Ask::Approval => {}
        }
        let proposal = self.items.get(item).and_then(|item| item.proposal.as_ref());
        let Some(proposal) = proposal else { return };
        let judgement = &proposal.judgement;
        let apply_patch = judgement.patch.as_ref().map(|p| ApplyPatch { patch: shown::patch(p) });
        let command = request::command(judgement);
        self.presented = Some((wait, true));
        out.push(Made::Request(wait, Payload::ApprovalRequest { command, apply_patch }));
    }

    /// How its text is shown.
    fn manner(&self, id: ItemId) -> Manner {
        let Some(item) = self.items.get(&id) else { return Manner::Said };
        let call = self.calls.get(&item.call);
        call.map_or(Manner::Said, |(purpose, line)| progress::manner(&item.kind, *purpose, *line))
    }
}

impl Encoder for AgentloopEncoder {
    fn entry(&mut self, entry: &LogEntry, out: &mut Out<'_>) {
        let before = self.presented;
        let messages = self.messages(entry, |item, whole| {
            let fresh = out.rest(item, Stream::Text, whole)?;
            Some(((whole.len() - fresh.len()) as u64, fresh))
        });
        let streams = matches!(entry.event, Event::ItemCompleted { result: None, .. });
        for message in messages {
            let is_text = matches!(
                message.payload,
                Payload::ResponseItem(ResponseItem::Message { role: "assistant", .. })
            );
            match message.presents {
                Some(wait) => out.request(wait, body(&message)),
                None if streams && is_text => out.streamed(body(&message)),
                None => out.message(body(&message)),
            }
        }
        // What somebody has read is not unread by an entry that nobody does.
        if let Some((wait, read)) = &mut self.presented
            && out.is_muted()
        {
            *read = before == Some((*wait, true));
        }
    }

    fn growth(&mut self, growth: &Growth, out: &mut Out<'_>) {
        let is_text =
            matches!(self.items.get(&growth.item), Some(Item { kind: ItemKind::Text, .. }));
        if growth.stream != Stream::Text || !is_text || self.manner(growth.item) != Manner::Said {
            return;
        }
        if let Some(fresh) = out.fresh(growth) {
            let end = growth.offset + growth.text.len() as u64;
            let id = self.ids.id(IdKind::Growth(end - fresh.len() as u64), growth.item.0);
            let payload = assistant(growth.item, fresh);
            out.streamed(body(&Message::new(id, payload)));
        }
    }

    fn opening(&mut self, out: &mut Out<'_>) {
        if let Some((turn, _)) = &self.turn {
            let id = self.ids.id(IdKind::Entry(0), turn.0);
            let payload = Payload::LoadingState { loading: true };
            out.message(body(&Message::new(id, payload)));
        }
    }

    fn pending(&mut self, out: &mut Out<'_>) {
        if self.presented.is_none_or(|(_, read)| read) {
            return;
        }
        self.presented = None;
        let mut made = Vec::new();
        self.present(&mut made);
        for made in made {
            match made {
                Made::Request(wait, payload) => {
                    let id = self.ids.id(IdKind::Request, wait.0);
                    out.request(wait, body(&Message::new(id, payload)));
                }
                Made::Again(place, payload) => {
                    let id = self.ids.id(IdKind::Entry(0), place);
                    out.message(body(&Message::new(id, payload)));
                }
                Made::Part(_) | Made::Outcome(..) | Made::Streamed { .. } => {}
            }
        }
    }
}

#[derive(Serialize)]
struct Head<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    payload: &'a Payload,
    #[serde(skip_serializing_if = "Option::is_none")]
    settled: Option<&'a Settled>,
}

/// The message as JSON without its closing brace.
fn body(message: &Message) -> String {
    let Message { id, payload, presents: _, settled } = message;
    let settled = settled.as_ref();
    let mut text = to_json(&Head { id, kind: payload.kind(), payload, settled });
    text.pop();
    text
}

pub(super) fn reply(session: Option<&SessionId>, number: u64, reply: &Reply) -> Frame {
    let payload = reply_payload(reply);
    let id = Ids::new(session).id(IdKind::Reply, Seq(number));
    let head = Head { id: &id, kind: payload.kind(), payload: &payload, settled: None };
    Frame::unstamped(to_json(&head))
}

pub(super) fn reply_payload(reply: &Reply) -> Payload {
    match reply {
        Reply::Complaint(told) => error(&told.message, &told.error, &told.code),
        Reply::ContextInfo(info) => context_info(info),
        // No message of this dialect asks for these.
        Reply::SessionInit(_)
        | Reply::SessionActive
        | Reply::Tools { .. }
        | Reply::Tool { .. }
        | Reply::Messages { .. }
        | Reply::Pong { .. } => error("Not available", "not part of this dialect", "internal"),
    }
}
