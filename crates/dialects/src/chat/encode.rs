//! A session's entries into chat messages.
//!
//! Nothing is streamed: an item is shown when it is whole, and what was said is kept until its
//! call proposes a tool or ends, because only then is it known whether it was the answer or a
//! remark on the way to a tool. What a user said is shown when its turn begins, so that messages which had to wait
//! stand where they were taken up.

use std::borrow::Cow;
use std::collections::BTreeMap;

use polyloop_session::event::{Adopted, CallOutcome, LineId, Outcome, Purpose, Stop, Work};
use polyloop_session::item::{End, ItemKind, Part, ToolResult};
use polyloop_session::shown;
use polyloop_session::wait::{Answer, Ask, Who};
use polyloop_session::{CallId, Event, Growth, ItemId, LogEntry, MessageId, Text, WaitId};
use serde::de::IgnoredAny;

use super::wire::Told;
use crate::conn::Out;
use crate::progress::{self, Manner, Progress};
use crate::{Encoder, Frame, Reply, bounded, is_asked, to_json};

mod asked;

/// What a turn that completed without a word is answered with: a chat always gets an answer.
pub(super) const NOTHING_SAID: &str = "(The agent ended its turn without an answer.)";
/// The same for a turn that a denial ended.
pub(super) const DENIED: &str =
    "(The turn was ended: what the agent wanted to do was not allowed.)";
/// Between two texts of one reply.
const BETWEEN_TEXTS: &str = "\n\n";

#[derive(Default)]
pub(super) struct ChatEncoder {
    /// What was said and waits for its turn; as long as the session's queue.
    queued: BTreeMap<MessageId, String>,
    turn: Option<Turn>,
    progress: Progress,
}

/// What is open in a turn.
struct Turn {
    work: Work,
    /// The message that it answers.
    said: Option<String>,
    calls: BTreeMap<CallId, Call>,
    items: BTreeMap<ItemId, Item>,
    /// Open waits in order; of questions and plans only the first is shown.
    waits: BTreeMap<WaitId, (ItemId, Ask)>,
    /// The question or plan that is shown, and whether somebody read it.
    presented: Option<(WaitId, bool)>,
    /// What the last call for the next step said, if it wanted no tool.
    answer: Option<String>,
    denied: bool,
}

struct Call {
    purpose: Purpose,
    line: Option<LineId>,
    /// In the order of the reply's blocks.
    texts: BTreeMap<ItemId, Text>,
    proposed: bool,
}

struct Item {
    kind: ItemKind,
    call: CallId,
    proposal: Option<Proposal>,
}

struct Proposal {
    /// One line that says what would run.
    command: String,
    /// It is a question or a plan, which clients are shown as such and not as a call.
    asks: bool,
}

impl Call {
    fn is_explanation(&self) -> bool {
        matches!(self.purpose, Purpose::Explain { .. })
    }

    /// All that was said and not shown yet.
    fn take_texts(&mut self) -> Option<String> {
        let texts = std::mem::take(&mut self.texts);
        let texts: Vec<&str> = texts.values().map(|text| &**text).collect();
        (!texts.is_empty()).then(|| texts.join(BETWEEN_TEXTS))
    }
}

impl Encoder for ChatEncoder {
    fn entry(&mut self, entry: &LogEntry, out: &mut Out<'_>) {
        let before = self.turn.as_ref().and_then(|turn| turn.presented);
        match &entry.event {
            Event::MessageQueued { content, .. } => {
                self.queued.insert(MessageId(entry.seq), joined(content));
            }
            Event::MessageDropped { message, by } => {
                // Its sender waits for an answer, and this is the only one it will get.
                self.queued.remove(message);
                let error = format!("A message that waited was cancelled by {}", by.describe());
                tell(out, Told::Error { error: &error });
            }
            Event::TurnStarted { work, .. } => self.turn_started(work, out),
            Event::TurnEnded { outcome, .. } => self.turn_ended(outcome, out),
            Event::Adopted { piece: Some(piece) } => adopted(piece, out),
            Event::Forked { session, upto, .. } => {
                let reasoning = &crate::edits::forked(session, *upto);
                tell(out, Told::AgentThinking { reasoning });
            }
            Event::Undone { files, skipped, by, .. } => {
                let reasoning = &crate::edits::undone(files, skipped, by);
                tell(out, Told::AgentThinking { reasoning });
            }
            Event::UndoFailed { reason } => {
                let reasoning = &crate::edits::undo_failed(reason);
                tell(out, Told::AgentThinking { reasoning });
            }
            event => {
                let told = self.progress.told(entry);
                if let Some(turn) = &mut self.turn {
                    told.iter().for_each(|reasoning| tell(out, Told::AgentThinking { reasoning }));
                    turn.event(entry, event, out);
                }
            }
        }
        // What somebody has read is not unread by an entry that nobody does.
        if let Some(Turn { presented: Some((wait, read)), .. }) = &mut self.turn
            && out.is_muted()
        {
            *read = before == Some((*wait, true));
        }
    }

    fn growth(&mut self, _growth: &Growth, _out: &mut Out<'_>) {
        // Nothing is streamed.
    }

    fn opening(&mut self, out: &mut Out<'_>) {
        if let Some(Turn { said: Some(message), .. }) = &self.turn {
            tell(out, Told::UserMessage { message });
        }
    }

    fn pending(&mut self, out: &mut Out<'_>) {
        if let Some(turn) = &mut self.turn
            && turn.presented.is_some_and(|(_, read)| !read)
        {
            turn.presented = None;
            turn.present(out);
        }
    }
}

impl ChatEncoder {
    fn turn_started(&mut self, work: &Work, out: &mut Out<'_>) {
        let said = match work {
            Work::Message { message } => self.queued.remove(message),
            // Nobody said anything.
            Work::Resume { .. } | Work::Compact { .. } => None,
        };
        self.progress.turn_started(work);
        if let Some(message) = &said {
            tell(out, Told::UserMessage { message });
        }
        self.turn = Some(Turn::new(work.clone(), said));
    }

    fn turn_ended(&mut self, outcome: &Outcome, out: &mut Out<'_>) {
        self.progress.turn_ended(outcome);
        let Some(turn) = self.turn.take() else { return };
        match outcome {
            // No chat asked for a compaction, so none waits for its end.
            Outcome::Completed | Outcome::Interrupted { .. } if turn.compacts() => {}
            Outcome::Completed => {
                let fallback = if turn.denied { DENIED } else { NOTHING_SAID };
                let message = turn.answer.as_deref().unwrap_or(fallback);
                tell(out, Told::AgentMessage { message });
            }
            Outcome::Failed { fault } => tell(out, Told::Error { error: &fault.message }),
            Outcome::Interrupted { reason } => {
                tell(out, Told::Error { error: &format!("Interrupted: {reason}") });
            }
        }
    }
}

impl Turn {
    fn new(work: Work, said: Option<String>) -> Turn {
        Turn {
            work,
            said,
            calls: BTreeMap::new(),
            items: BTreeMap::new(),
            waits: BTreeMap::new(),
            presented: None,
            answer: None,
            denied: false,
        }
    }

    fn compacts(&self) -> bool {
        matches!(self.work, Work::Compact { .. })
    }

    fn event(&mut self, entry: &LogEntry, event: &Event, out: &mut Out<'_>) {
        match event {
            Event::TurnStopping { reason } => {
                self.denied = matches!(reason, Stop::Denied { .. });
            }
            Event::CallStarted { purpose, line, .. } => {
                let (purpose, texts) = (*purpose, BTreeMap::new());
                let call = Call { purpose, line: *line, texts, proposed: false };
                self.calls.insert(CallId(entry.seq), call);
            }
            Event::CallEnded { call, outcome, .. } => self.call_ended(*call, outcome, out),
            Event::ItemStarted { call, item, .. } => {
                let item = Item { kind: item.clone(), call: *call, proposal: None };
                self.items.insert(ItemId(entry.seq), item);
            }
            Event::ToolProposed { item, args, judgement, answerable, .. } => {
                let asks = is_asked(judgement, *answerable);
                let command = asked::one_line(&judgement.command.join(" "), shown::command);
                self.proposed(*item, args, Proposal { command, asks }, out);
            }
            Event::ItemCompleted { item, end, text, result, .. } => {
                self.completed(*item, *end, text, result.as_deref(), out);
            }
            Event::WaitOpened { item, ask } => {
                self.waits.insert(WaitId(entry.seq), (*item, ask.clone()));
                self.present(out);
            }
            Event::WaitSettled { wait, answer, by } => {
                self.settled(*wait, answer, by, out);
                self.present(out);
            }
            Event::WaitWithdrawn { wait, .. } => {
                self.waits.remove(wait);
                self.present(out);
            }
            // These are the session's, and taken in above.
            Event::MessageQueued { .. }
            | Event::MessageDropped { .. }
            | Event::TurnStarted { .. }
            | Event::TurnEnded { .. }
            | Event::Adopted { .. }
            | Event::Forked { .. }
            | Event::UndoFailed { .. }
            | Event::Undone { .. } => {}
            Event::SandboxRefused { reason, .. } => {
                tell(out, Told::AgentThinking { reasoning: &crate::asks::stopped(reason) });
            }
            // A search is told of in sentences, above.
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
            | Event::Gathered { .. } => {}
            Event::Concluded { text, .. } => self.answer = Some(text.to_string()),
            // A running tool was shown when it was proposed.
            Event::ToolStarted { .. } => {}
            // Clients of this dialect have no message for these.
            Event::SessionCreated { .. }
            | Event::ModeSet { .. }
            | Event::SettingSet { .. }
            | Event::SessionClosed { .. }
            | Event::SessionReopened { .. }
            | Event::ExplainAsked { .. }
            | Event::Compacted { .. }
            | Event::FilesTouched { .. }
            | Event::UndoStarted { .. }
            | Event::Trimmed { .. } => {}
            // No chat asked for a compaction, so none is told how it goes.
            Event::Noticed { .. } if self.compacts() => {}
            // What is told in a turn is about it: a retry, an answer cut short.
            Event::Noticed { text, .. } => {
                tell(out, Told::AgentThinking { reasoning: text });
            }
        }
    }

    fn proposed(&mut self, id: ItemId, args: &str, proposal: Proposal, out: &mut Out<'_>) {
        let Some(item) = self.items.get_mut(&id) else { return };
        let ItemKind::ToolCall { name, .. } = &item.kind else { return };
        if let Some(call) = self.calls.get_mut(&item.call) {
            call.proposed = true;
            if let Some(reasoning) = call.take_texts() {
                tell(out, Told::AgentThinking { reasoning: &reasoning });
            }
        }
        if !proposal.asks {
            tell(out, Told::ToolCall { tool_name: name, tool_args: &json_of(args) });
        }
        item.proposal = Some(proposal);
    }

    fn completed(
        &mut self,
        id: ItemId,
        end: End,
        text: &Text,
        result: Option<&ToolResult>,
        out: &mut Out<'_>,
    ) {
        let Some(item) = self.items.remove(&id) else { return };
        let call = self.calls.get_mut(&item.call);
        let shown_as =
            call.as_ref().map(|call| progress::manner(&item.kind, call.purpose, call.line));
        let explains = call.as_ref().is_some_and(|call| call.is_explanation());
        match (&item.kind, shown_as) {
            (ItemKind::ToolCall { name, .. }, _) => {
                // Cut inside its arguments: it was never a call. What asks is shown when it asks.
                if item.proposal.is_some_and(|proposal| !proposal.asks) {
                    let success = is_success(end, result);
                    let result = shown(end, text, result);
                    tell(out, Told::ToolResult { tool_name: name, result, success });
                }
            }
            // The summary of a compaction is no part of the conversation that clients see, and
            // what a failed call said will be said again or not at all.
            (_, Some(Manner::Nowhere)) => {}
            (_, _) if end == End::Discarded || text.trim().is_empty() => {}
            (ItemKind::Reasoning, _)
            | (ItemKind::Text, Some(Manner::Thought | Manner::ThoughtWhole)) => {
                tell(out, Told::AgentThinking { reasoning: text });
            }
            (ItemKind::Text, Some(Manner::Said)) if explains => {
                tell(out, Told::AgentThinking { reasoning: text });
            }
            (ItemKind::Text, Some(Manner::Said)) => {
                if let Some(call) = call {
                    call.texts.insert(id, text.clone());
                }
            }
            // Of a call that this log does not have.
            (ItemKind::Text, None) => {}
        }
    }

    fn call_ended(&mut self, id: CallId, outcome: &CallOutcome, out: &mut Out<'_>) {
        let Some(mut call) = self.calls.remove(&id) else { return };
        if call.purpose != Purpose::Think || call.line.is_some() {
            return;
        }
        let said = call.take_texts();
        self.answer = match outcome {
            CallOutcome::Answered if call.proposed => {
                if let Some(reasoning) = &said {
                    tell(out, Told::AgentThinking { reasoning });
                }
                None
            }
            CallOutcome::Answered => said,
            // The turn does not end with what it had begun to say.
            CallOutcome::Failed { .. }
            | CallOutcome::Retried { .. }
            | CallOutcome::Stopped
            | CallOutcome::Lost => None,
        };
    }

    fn settled(&mut self, wait: WaitId, answer: &Answer, by: &Who, out: &mut Out<'_>) {
        let Some((item, ask)) = self.waits.remove(&wait) else { return };
        match ask {
            Ask::Approval | Ask::Outside { .. } => {
                let outside = ask != Ask::Approval;
                let proposal = self.items.get(&item).and_then(|item| item.proposal.as_ref());
                let Some(Proposal { command, .. }) = proposal else { return };
                let place = if outside { " outside the sandbox" } else { "" };
                let reasoning = asked::decision(&format!("{command}{place}"), answer, by);
                tell(out, Told::AgentThinking { reasoning: &reasoning });
            }
            Ask::Question { .. } | Ask::Plan { .. } => {
                tell(out, Told::UserMessage { message: &asked::answer(answer) });
            }
        }
    }

    /// Shows the first question or plan that is open, if it was not shown yet.
    fn present(&mut self, out: &mut Out<'_>) {
        let first = self.waits.iter().find_map(|(wait, (_, ask))| match ask {
            // Not for clients of this dialect to answer.
            Ask::Approval | Ask::Outside { .. } => None,
            Ask::Question { questions } => Some((*wait, crate::asks::question(questions))),
            Ask::Plan { plan, path: _ } => Some((*wait, shown::prose(plan))),
        });
        let Some((wait, message)) = first else {
            self.presented = None;
            return;
        };
        if self.presented.is_some_and(|(presented, _)| presented == wait) {
            return;
        }
        self.presented = Some((wait, true));
        let body = body(out, Told::AgentMessage { message: &message });
        out.request(wait, body);
    }
}

fn tell(out: &mut Out<'_>, told: Told<'_>) {
    let body = body(out, told);
    out.message(body);
}

/// The message as JSON without its closing brace.
fn body(out: &Out<'_>, told: Told<'_>) -> String {
    if out.is_muted() {
        return String::new();
    }
    let mut text = to_json(&told);
    text.pop();
    text
}

pub(super) fn reply(reply: &Reply) -> Frame {
    let error = match reply {
        Reply::Complaint(complaint) => complaint.error.as_str(),
        // No message of this dialect asks for these.
        Reply::ContextInfo(_)
        | Reply::SessionInit(_)
        | Reply::SessionActive
        | Reply::Tools { .. }
        | Reply::Tool { .. }
        | Reply::Messages { .. }
        | Reply::Pong { .. } => "Internal error: that answer is not part of this dialect",
    };
    Frame::unstamped(to_json(&Told::Error { error: &bounded(error.to_string()) }))
}

fn joined(content: &[Part]) -> String {
    let texts: Vec<Text> = content.iter().map(Part::shown).collect();
    texts.join("\n").trim().to_string()
}

/// The arguments as JSON, whatever a model wrote: what is none goes quoted.
fn json_of(args: &str) -> Cow<'_, str> {
    match serde_json::from_str::<IgnoredAny>(args) {
        Ok(_) => Cow::Borrowed(args),
        Err(_) if args.trim().is_empty() => Cow::Borrowed("{}"),
        Err(_) => Cow::Owned(to_json(&args)),
    }
}

fn adopted(piece: &Adopted, out: &mut Out<'_>) {
    match piece {
        Adopted::User { content } => tell(out, Told::UserMessage { message: &joined(content) }),
        Adopted::Agent { text } => tell(out, Told::AgentMessage { message: text }),
        // A result does not say which tool gave it, so neither half is shown.
        Adopted::ToolCall { .. } | Adopted::ToolResult { .. } => {}
    }
}

fn is_success(end: End, result: Option<&ToolResult>) -> bool {
    end == End::Whole && result.and_then(|result| result.exit_code).unwrap_or(0) == 0
}

/// What the model was told says why a call that did not end by itself ended.
fn shown<'t>(end: End, text: &'t str, result: Option<&'t ToolResult>) -> &'t str {
    let seen = result.and_then(|result| result.seen.as_deref());
    match (end, seen) {
        (End::Whole, Some(seen)) if text.is_empty() => seen,
        (End::Whole, _) | (_, None) => text,
        (_, Some(seen)) => seen,
    }
}
