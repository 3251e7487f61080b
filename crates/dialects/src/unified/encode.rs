//! A session's entries and growth into unified events.
//!
//! Text and output are increments: growth is sent as it comes, and an item's completion sends only
//! what was not sent. How many messages an entry gives never depends on what was streamed before,
//! but for the increments themselves. Requests are presented all at once; each keeps its ids
//! however often it is sent.

use std::collections::BTreeMap;

use polyloop_session::event::{
    Adopted, CallOutcome, Level, LineId, Outcome, Purpose, Setting, Window, Work,
};
use polyloop_session::item::{Part, Usage};
use polyloop_session::{CallId, Event, Growth, ItemId, LogEntry, MessageId, Raw, Text, WaitId};

use super::wire::{
    AssistantMessage, CallName, ContextCompaction, Json, MessageName, Notice, NoticeLevel, RawTold,
    SessionInfo, SessionRenamed, Status, TodoTold, TodosChanged, TokenUsage, Tokens, ToolCompleted,
    ToolStarted, TurnCompleted, TurnFailed, TurnStarted,
};
use crate::Encoder;
use crate::conn::Out;
use crate::progress::{self, Progress};
use crate::tools::unified_name;

mod items;
mod parts;
mod queue;
mod reply;
mod waits;

use items::{Ended, Item, Proposal};
use parts::{Parts, body};
use queue::Queued;
pub(super) use reply::{heartbeat, reply};
use waits::Wait;

const REQUESTED_REASON: &str = "Requested by the user";
const LIMIT_REASON: &str = "Context window approaching limit";

#[derive(Default)]
pub(super) struct UnifiedEncoder {
    queued: BTreeMap<MessageId, Queued>,
    turn: Option<Turn>,
    calls: BTreeMap<CallId, Call>,
    items: BTreeMap<ItemId, Item>,
    waits: BTreeMap<WaitId, Wait>,
    progress: Progress,
    /// What was passed through in this turn.
    raws: u64,
}

struct Turn {
    /// The id that its `turn_started` has.
    id: String,
    /// The message, if it had to wait.
    waited: Option<MessageId>,
    said: Option<Vec<Part>>,
    by: Option<String>,
    client_ref: Option<Text>,
    resumes: bool,
    compacts: bool,
    cwd: Option<Text>,
    /// The session was ended while it ran, which clients are told when it has.
    closing: bool,
}

#[derive(Clone, Copy)]
struct Call {
    purpose: Purpose,
    line: Option<LineId>,
    tokens_max: u64,
}

impl UnifiedEncoder {
    fn entry_into(&mut self, entry: &LogEntry, out: &mut Parts<'_, '_>) {
        match &entry.event {
            Event::ModeSet { mode, .. } => out.tell_mode(*mode),
            Event::SettingSet { setting, .. } => setting_set(setting, out),
            Event::SessionClosed { .. } => self.session_closed(out),
            Event::SessionReopened { .. } => self.session_reopened(out),
            Event::Noticed { level, text, code } => noticed(*level, text, code, out),
            Event::Adopted { piece: Some(piece) } => adopted(piece, out),
            Event::MessageQueued { content, origin, client_ref, waits, .. } => {
                let queued = Queued::new(content, origin, client_ref.as_ref(), *waits);
                self.message_queued(MessageId(entry.seq), queued, out);
            }
            Event::MessageDropped { message, by } => self.message_dropped(*message, by, out),
            Event::TurnStarted { work, cwd, .. } => self.turn_started(work, cwd.clone(), out),
            Event::TurnEnded { outcome, usage } => self.turn_ended(outcome, usage, out),
            Event::CallStarted { purpose, tokens_max, line, .. } => {
                let call = Call { purpose: *purpose, line: *line, tokens_max: *tokens_max };
                self.calls.insert(CallId(entry.seq), call);
            }
            Event::CallEnded { call, outcome, usage } => {
                self.call_ended(*call, outcome, usage.as_ref(), out);
            }
            Event::ItemStarted { call, item, .. } => {
                let call = self.calls.get(call);
                let manner = call.map(|call| progress::manner(item, call.purpose, call.line));
                self.items.insert(ItemId(entry.seq), Item::new(item, manner));
            }
            Event::ToolProposed { item, args, judgement, answerable, .. } => {
                if let Some(Item::Tool { name, proposal }) = self.items.get_mut(item) {
                    let made = Proposal::new(entry.seq, name, args, judgement, *answerable);
                    made.tell_started(*item, name, out);
                    *proposal = Some(made);
                }
            }
            Event::ToolStarted { item, .. } => {
                if let Some(Item::Tool { proposal: Some(proposal), .. }) = self.items.get_mut(item)
                {
                    proposal.ran = true;
                }
            }
            Event::SandboxRefused { item, reason, text, .. } => {
                if let Some(open) = self.items.get(item) {
                    open.stopped(*item, text, out);
                }
                let text = crate::asks::stopped(reason);
                noticed(Level::Warning, &text, crate::asks::SANDBOX_CODE, out);
            }
            Event::ItemCompleted { item, end, text, result, .. } => {
                let ended = Ended { end: *end, text, result: result.as_deref() };
                let cwd = self.turn.as_ref().and_then(|turn| turn.cwd.as_deref());
                if let Some(open) = self.items.remove(item) {
                    open.completed(*item, &ended, cwd, out);
                }
                let list = result.as_ref().and_then(|result| result.todo_list.as_ref());
                if let Some(list) = list {
                    out.tell(&TodosChanged { todos: TodoTold::all(list) });
                }
            }
            Event::WaitOpened { item, ask } => {
                self.wait_opened(WaitId(entry.seq), *item, ask.clone(), out);
            }
            Event::WaitSettled { wait, answer, by } => self.wait_settled(*wait, answer, by, out),
            Event::WaitWithdrawn { wait, reason, by } => {
                self.wait_withdrawn(*wait, reason, by.as_ref(), out);
            }
            Event::Compacted { tokens_before, tokens_after, window, .. }
            | Event::Trimmed { tokens_before, tokens_after, window, .. } => {
                self.compacted(*tokens_before, *tokens_after, window, out);
            }
            Event::Forked { session, upto, .. } => {
                let text = crate::edits::forked(session, *upto);
                noticed(Level::Info, &text, crate::edits::FORKED_CODE, out);
            }
            Event::Undone { files, skipped, by, cwd, .. } => {
                files.iter().for_each(|file| items::file_changed(file, cwd.as_deref(), out));
                let text = crate::edits::undone(files, skipped, by);
                noticed(Level::Info, &text, crate::edits::UNDONE_CODE, out);
            }
            Event::UndoFailed { reason } => {
                let text = crate::edits::undo_failed(reason);
                noticed(Level::Warning, &text, crate::edits::UNDO_FAILED_CODE, out);
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
                    items::thought(&told, out);
                }
            }
            Event::Concluded { text, .. } => {
                out.tell(&AssistantMessage { text, is_final: true });
            }
            // A client learns of a session from `session_init`, of the rest from what follows:
            // the explanation, the turn's end.
            Event::SessionCreated { .. }
            | Event::Adopted { piece: None }
            | Event::TurnStopping { .. }
            | Event::ExplainAsked { .. }
            | Event::FilesTouched { .. }
            | Event::UndoStarted { .. } => {}
        }
    }

    fn session_closed(&mut self, out: &mut Parts<'_, '_>) {
        match &mut self.turn {
            Some(turn) => turn.closing = true,
            None => out.tell(&SessionInfo::new(Status::Completed)),
        }
    }

    fn session_reopened(&mut self, out: &mut Parts<'_, '_>) {
        if let Some(turn) = &mut self.turn {
            turn.closing = false;
        }
        out.tell(&SessionInfo::new(Status::Active));
    }

    fn turn_started(&mut self, work: &Work, cwd: Option<Text>, out: &mut Parts<'_, '_>) {
        self.forget_turn();
        self.progress.turn_started(work);
        let resumes = matches!(work, Work::Resume { .. });
        if resumes {
            out.tell(&SessionInfo::new(Status::Active));
        }
        let (waited, said, by, client_ref) = match work {
            Work::Message { message } => match self.queued.remove(message) {
                Some(Queued { content, by, client_ref, waits, .. }) => {
                    (waits.then_some(*message), Some(content), Some(by), client_ref)
                }
                None => (None, None, None, None),
            },
            Work::Resume { by, .. } | Work::Compact { by } => {
                (None, None, Some(by.describe()), None)
            }
        };
        let compacts = matches!(work, Work::Compact { .. });
        let (id, closing) = (out.next_id(), false);
        let turn = Turn { id, waited, said, by, client_ref, resumes, compacts, cwd, closing };
        out.tell(&turn.told());
        self.turn = Some(turn);
    }

    fn turn_ended(&mut self, outcome: &Outcome, usage: &Usage, out: &mut Parts<'_, '_>) {
        let closing = self.turn.as_ref().is_some_and(|turn| turn.closing);
        self.progress.turn_ended(outcome);
        match outcome {
            Outcome::Completed => out.tell(&TurnCompleted { usage: Tokens::of(usage) }),
            Outcome::Failed { fault } => {
                out.tell(&TurnFailed { error: fault.message.to_string(), code: &fault.code });
            }
            Outcome::Interrupted { reason } => {
                out.tell(&TurnFailed {
                    error: format!("Interrupted: {reason}"),
                    code: "interrupted",
                });
                if !closing {
                    out.tell(&SessionInfo::new(Status::Paused));
                }
            }
        }
        if closing {
            out.tell(&SessionInfo::new(Status::Completed));
        }
        self.forget_turn();
    }

    fn forget_turn(&mut self) {
        self.turn = None;
        self.calls.clear();
        self.items.clear();
        self.waits.clear();
        self.raws = 0;
    }

    fn call_ended(
        &mut self,
        id: CallId,
        outcome: &CallOutcome,
        usage: Option<&Usage>,
        out: &mut Parts<'_, '_>,
    ) {
        let call = self.calls.remove(&id);
        if let Some(usage) = usage {
            out.tell(&TokenUsage::new(usage, call.map_or(0, |call| call.tokens_max)));
        }
        let Some(Purpose::Explain { wait }) = call.map(|call| call.purpose) else { return };
        if let CallOutcome::Failed { fault } = outcome {
            out.tell(&Notice {
                level: NoticeLevel::Warning,
                text: format!("The explanation failed: {}", fault.message).into(),
                code: "explanation_failed",
            });
        }
        // Whoever asked has put the request aside; it is still to be decided.
        self.present(wait, out.out);
    }

    fn compacted(&self, before: u64, after: u64, window: &Window, out: &mut Parts<'_, '_>) {
        let requested = self.turn.as_ref().is_some_and(|turn| turn.compacts);
        let reason = if requested { REQUESTED_REASON } else { LIMIT_REASON };
        out.tell(&ContextCompaction { reason, tokens_before: before, tokens_after: after });
        let usage = Usage { input_tokens: after, ..Usage::default() };
        out.tell(&TokenUsage::new(&usage, window.tokens_max));
    }
}

impl Turn {
    fn told(&self) -> TurnStarted<'_> {
        TurnStarted {
            message_id: self.waited.map(MessageName),
            message: self.said.as_deref().map(said),
            by: self.by.as_deref(),
            client_ref: self.client_ref.as_deref(),
            resumes: self.resumes,
        }
    }
}

impl Encoder for UnifiedEncoder {
    fn entry(&mut self, entry: &LogEntry, out: &mut Out<'_>) {
        self.entry_into(entry, &mut Parts::new(entry.seq, out));
    }

    fn growth(&mut self, growth: &Growth, out: &mut Out<'_>) {
        if let Some(item) = self.items.get(&growth.item) {
            item.grew(growth, out);
        }
    }

    fn raw(&mut self, raw: &Raw, out: &mut Out<'_>) {
        let id = format!("evt-{}r{}", raw.call, self.raws);
        self.raws += 1;
        let told = RawTold { data: Json::new(&raw.json), provider: &raw.provider };
        let text = body(id, &told, out);
        out.streamed(text);
    }

    fn opening(&mut self, out: &mut Out<'_>) {
        let Some(turn) = &self.turn else { return };
        let text = body(turn.id.clone(), &turn.told(), out);
        out.message(text);
        // The end of a call is no surprise to whoever knows that it began.
        let proposed = self.items.iter().filter_map(|(id, item)| match item {
            Item::Tool { name, proposal: Some(proposal) } => Some((*id, name, proposal)),
            Item::Tool { .. } | Item::Text { .. } => None,
        });
        let mut proposed: Vec<_> = proposed.collect();
        // In the order in which others were told.
        proposed.sort_by_key(|(.., proposal)| proposal.at);
        for (id, name, proposal) in proposed {
            proposal.tell_started(id, name, &mut Parts::new(proposal.at, out));
        }
    }

    fn pending(&mut self, out: &mut Out<'_>) {
        let unread = self.waits.iter().filter(|(_, wait)| !wait.read);
        let unread: Vec<WaitId> = unread.map(|(id, _)| *id).collect();
        for wait in unread {
            self.present(wait, out);
        }
        self.tell_queue(out);
    }
}

fn setting_set(setting: &Setting, out: &mut Parts<'_, '_>) {
    let active = SessionInfo::new(Status::Active);
    match setting {
        Setting::Model { model, .. } => {
            out.tell(&SessionInfo { model: Some(model), ..active });
        }
        Setting::Agent { agent } => {
            out.tell(&SessionInfo { agent: Some(agent.name()), ..active });
        }
        Setting::CallsMax { calls_max } => {
            out.tell(&SessionInfo { max_turns: Some(*calls_max), ..active });
        }
        Setting::Metadata { json } => {
            out.tell(&SessionInfo { metadata: Some(Json::new(json)), ..active });
        }
        Setting::Title { title } => out.tell(&SessionRenamed { title }),
    }
}

fn noticed(level: Level, text: &str, code: &str, out: &mut Parts<'_, '_>) {
    let level = match level {
        Level::Info => NoticeLevel::Info,
        Level::Warning => NoticeLevel::Warning,
    };
    out.tell(&Notice { level, text: text.into(), code });
}

/// A piece of another program's file belongs to no turn of ours.
fn adopted(piece: &Adopted, out: &mut Parts<'_, '_>) {
    match piece {
        // What users say stands in `turn_started`, and there is none here.
        Adopted::User { content } => out.tell(&Notice {
            level: NoticeLevel::Info,
            text: said(content).into(),
            code: "adopted_user_message",
        }),
        Adopted::Agent { text } => out.tell(&AssistantMessage { text, is_final: true }),
        Adopted::ToolCall { call_ref, name, args } => out.tell(&ToolStarted {
            tool_name: unified_name(name),
            tool_id: CallName::Theirs(call_ref),
            arguments: Json::new(args),
        }),
        // The file does not say whether it went well; its output does, to who reads it.
        Adopted::ToolResult { call_ref, output } => out.tell(&ToolCompleted {
            tool_id: CallName::Theirs(call_ref),
            success: true,
            result: Some(output),
            error: None,
        }),
    }
}

fn said(content: &[Part]) -> String {
    let texts: Vec<Text> = content.iter().map(Part::shown).collect();
    texts.join("\n")
}
