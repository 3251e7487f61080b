//! Which entries of a log are messages of the conversation, and where a fold of it may be left and
//! taken up again.
//!
//! Pure, and one pass. A message is what a user said, at the place where its turn began (so that
//! queued ones stand in the order of the conversation), or a text the model said to the user, at
//! the place of its completion. Reasoning, summaries, tools and their output are none, nor is the
//! text of a call that failed: it was shown, but it is no part of the conversation.

use std::collections::BTreeMap;
use std::sync::Arc;

use polyloop_session::event::{Adopted, CallOutcome, Purpose, Work};
use polyloop_session::item::{End, ItemKind, Part};
use polyloop_session::{CallId, Event, ItemId, LogEntry, MessageId, Seq, Text};

use super::Role;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub seq: Seq,
    pub role: Role,
    pub content: Text,
}

/// Rows that are final, and the entry they go up to.
#[derive(Debug)]
pub(super) struct Batch {
    pub rows: Vec<Row>,
    pub upto: Arc<LogEntry>,
}

/// A fold may begin anew behind any entry with which no call was open: nothing before it can change
/// any more, and all that is needed of what came before is the words of queued messages.
#[derive(Default)]
pub(super) struct Fold {
    /// What open calls have said so far; a call that says nothing to the user has none.
    calls: BTreeMap<CallId, Option<Vec<Row>>>,
    /// Texts that are not complete.
    items: BTreeMap<ItemId, CallId>,
    /// Messages whose turn has not begun, as far as this fold has seen them.
    queued: BTreeMap<MessageId, Text>,
    /// Final, but beside a call that is still open.
    held: Vec<Row>,
    rows: Vec<Row>,
    upto: Option<Arc<LogEntry>>,
}

impl Fold {
    /// Takes the next entry. Returns the message whose turn begins with it, when this fold has not
    /// seen that message: `begun` is to be told its words.
    #[must_use]
    pub fn take(&mut self, entry: &Arc<LogEntry>) -> Option<MessageId> {
        let unseen = self.apply(entry.seq, &entry.event);
        // The output of a tool can be long, which makes it a poor mark; another entry follows it.
        let is_mark = !matches!(entry.event, Event::ItemCompleted { .. });
        if self.calls.is_empty() && is_mark {
            self.rows.append(&mut self.held);
            self.upto = Some(entry.clone());
        }
        unseen
    }

    /// The words of the message whose turn began with the entry `turn`.
    pub fn begun(&mut self, turn: Seq, content: Text) {
        push(&mut self.rows, turn, Role::User, content);
    }

    /// What can be kept since the last time; nothing while a call is open.
    pub fn batch(&mut self) -> Option<Batch> {
        let upto = self.upto.take()?;
        Some(Batch { rows: std::mem::take(&mut self.rows), upto })
    }

    fn apply(&mut self, seq: Seq, event: &Event) -> Option<MessageId> {
        match event {
            Event::Adopted { piece } => self.adopted(seq, piece.as_ref()),
            Event::MessageQueued { content, .. } => {
                self.queued.insert(MessageId(seq), words(content));
            }
            Event::MessageDropped { message, by: _ } => {
                self.queued.remove(message);
            }
            Event::TurnStarted { work, .. } => {
                self.end_calls();
                match work {
                    Work::Message { message } => match self.queued.remove(message) {
                        Some(content) => push(&mut self.held, seq, Role::User, content),
                        None => return Some(*message),
                    },
                    // Nobody said anything.
                    Work::Resume { .. } | Work::Compact { .. } => {}
                }
            }
            Event::TurnEnded { .. } => self.end_calls(),
            Event::CallStarted { purpose, line, .. } => {
                let said = match (purpose, line) {
                    (Purpose::Think, None) | (Purpose::Explain { .. }, _) => Some(Vec::new()),
                    // What is said on the way to an answer is none.
                    _ => None,
                };
                self.calls.insert(CallId(seq), said);
            }
            Event::CallEnded { call, outcome, usage: _ } => {
                let said = self.calls.remove(call).flatten().unwrap_or_default();
                match outcome {
                    // A text that was cut was read all the same, and the model sees it too.
                    CallOutcome::Answered | CallOutcome::Stopped | CallOutcome::Lost => {
                        self.held.extend(said);
                    }
                    CallOutcome::Failed { .. } | CallOutcome::Retried { .. } => {}
                }
            }
            Event::ItemStarted { call, block: _, item } => match item {
                ItemKind::Text => {
                    self.items.insert(ItemId(seq), *call);
                }
                ItemKind::Reasoning | ItemKind::ToolCall { .. } => {}
            },
            Event::ItemCompleted { item, end, text, .. } => self.completed(seq, *item, *end, text),
            Event::Concluded { text, .. } => {
                push(&mut self.held, seq, Role::Assistant, text.clone());
            }
            // No words of the conversation. What a person answers to a question is none either:
            // it is shown with the question.
            Event::SessionCreated { .. }
            | Event::ModeSet { .. }
            | Event::SettingSet { .. }
            | Event::SessionClosed { .. }
            | Event::SessionReopened { .. }
            | Event::TurnStopping { .. }
            | Event::ToolProposed { .. }
            | Event::ToolStarted { .. }
            | Event::SandboxRefused { .. }
            | Event::WaitOpened { .. }
            | Event::WaitSettled { .. }
            | Event::WaitWithdrawn { .. }
            | Event::ExplainAsked { .. }
            | Event::Compacted { .. }
            | Event::Trimmed { .. }
            | Event::Noticed { .. }
            | Event::Forked { .. }
            | Event::FilesTouched { .. }
            | Event::UndoStarted { .. }
            | Event::UndoFailed { .. }
            | Event::Undone { .. }
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
            | Event::Gathered { .. } => {}
        }
        None
    }

    fn adopted(&mut self, seq: Seq, piece: Option<&Adopted>) {
        match piece {
            Some(Adopted::User { content }) => {
                push(&mut self.held, seq, Role::User, words(content));
            }
            Some(Adopted::Agent { text }) => {
                push(&mut self.held, seq, Role::Assistant, text.clone());
            }
            Some(Adopted::ToolCall { .. } | Adopted::ToolResult { .. }) | None => {}
        }
    }

    fn completed(&mut self, seq: Seq, item: ItemId, end: End, text: &Text) {
        let call = self.items.remove(&item).and_then(|call| self.calls.get_mut(&call));
        let Some(Some(said)) = call else { return };
        match end {
            End::Whole | End::Cut => push(said, seq, Role::Assistant, text.clone()),
            // Of a call that failed; the rest are ends of tools.
            End::Discarded | End::Denied | End::Failed | End::Interrupted => {}
        }
    }

    /// With its turn every call is over, also one whose end a damaged file has lost.
    fn end_calls(&mut self) {
        let said = std::mem::take(&mut self.calls).into_values().flatten().flatten();
        self.held.extend(said);
        self.items.clear();
    }
}

/// Nobody said nothing.
fn push(rows: &mut Vec<Row>, seq: Seq, role: Role, content: Text) {
    if !content.is_empty() {
        rows.push(Row { seq, role, content });
    }
}

/// The words of what a user sent.
pub(super) fn words(content: &[Part]) -> Text {
    match content {
        [Part::Text { text }] => text.clone(),
        parts => {
            let texts: Vec<Text> = parts.iter().map(Part::shown).collect();
            texts.join("\n").into()
        }
    }
}
