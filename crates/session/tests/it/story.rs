//! The conversation as the log tells it, kept beside `State` and compared with every prompt.
//!
//! Only what a provider would notice: the texts in order, the tool calls in order, and each
//! result right behind the message that holds its call.

use std::collections::{BTreeMap, BTreeSet};

use polyloop_session::event::{Adopted, CallOutcome, Event, Purpose, Work};
use polyloop_session::history::{
    AssistantPart, EXPLAINED_PREFIX, Message, Prompt, SUMMARISE_TEXT, SUMMARY_PREFIX,
};
use polyloop_session::item::{End, ItemKind};
use polyloop_session::state::RESUME_TEXT;
use polyloop_session::{CallId, ItemId, LogEntry, MessageId, Seq, Text, WaitId};

use super::audit::Checked;
use super::make::spoken;

#[derive(Default)]
pub struct Story {
    texts: Vec<Told>,
    tools: Vec<Tool>,
    queue: BTreeMap<MessageId, String>,
    calls: BTreeMap<CallId, Purpose>,
    items: BTreeMap<ItemId, (CallId, ItemKind)>,
    waits: BTreeMap<WaitId, ItemId>,
    done: BTreeSet<ItemId>,
    explained: BTreeMap<ItemId, Vec<String>>,
}

struct Told {
    seq: Seq,
    call: Option<CallId>,
    item: Option<ItemId>,
    line: Line,
}

#[derive(Clone, Debug, PartialEq)]
enum Line {
    User(String),
    Agent(String),
}

struct Tool {
    seq: Seq,
    item: ItemId,
    asked: [Text; 3],
    result: Option<(Seq, Text, bool)>,
}

impl Story {
    pub fn entry(&mut self, entry: &LogEntry) -> Checked {
        let seq = entry.seq;
        match &entry.event {
            Event::Adopted { piece: Some(piece) } => self.adopted(seq, piece),
            Event::MessageQueued { content, .. } => {
                self.queue.insert(MessageId(seq), spoken(content));
            }
            Event::TurnStarted { work: Work::Message { message }, .. } => {
                let text = self.queue.remove(message).ok_or("a turn without its message")?;
                self.told(seq, None, Line::User(text));
            }
            Event::TurnStarted { work: Work::Resume { .. }, .. } => {
                self.told(seq, None, Line::User(RESUME_TEXT.into()));
            }
            Event::CallStarted { purpose, .. } => {
                self.calls.insert(CallId(seq), *purpose);
            }
            Event::CallEnded { call, outcome: CallOutcome::Failed { .. }, .. } => {
                self.texts.retain(|told| told.call != Some(*call));
            }
            Event::ItemStarted { call, item, .. } => {
                self.items.insert(ItemId(seq), (*call, item.clone()));
            }
            Event::WaitOpened { item, .. } => {
                self.waits.insert(WaitId(seq), *item);
            }
            Event::ToolProposed { item, args, .. } => {
                if let Some((_, ItemKind::ToolCall { name, call_ref, .. })) = self.items.get(item) {
                    let asked = [call_ref.clone(), name.clone(), args.clone()];
                    self.tools.push(Tool { seq, item: *item, asked, result: None });
                }
            }
            Event::ItemCompleted { item, end, text, result, .. } => {
                self.done.insert(*item);
                let seen = result.as_ref().and_then(|r| r.seen.clone()).unwrap_or(text.clone());
                self.completed(seq, *item, *end, text, seen);
            }
            Event::Compacted { upto, summary, .. } => self.compacted(*upto, summary)?,
            _ => {}
        }
        Ok(())
    }

    fn told(&mut self, seq: Seq, call: Option<CallId>, line: Line) {
        self.texts.push(Told { seq, call, item: None, line });
    }

    fn adopted(&mut self, seq: Seq, piece: &Adopted) {
        match piece {
            Adopted::User { content } => self.told(seq, None, Line::User(spoken(content))),
            Adopted::Agent { text } => self.told(seq, None, Line::Agent(text.to_string())),
            Adopted::ToolCall { call_ref, name, args } => {
                let asked = [call_ref.clone(), name.clone(), args.clone()];
                self.tools.push(Tool { seq, item: ItemId(seq), asked, result: None });
            }
            Adopted::ToolResult { call_ref, output } => {
                let open = |tool: &&mut Tool| tool.asked[0] == *call_ref && tool.result.is_none();
                if let Some(tool) = self.tools.iter_mut().rev().find(open) {
                    tool.result = Some((seq, output.clone(), false));
                }
            }
        }
    }

    fn completed(&mut self, seq: Seq, item: ItemId, end: End, text: &str, seen: Text) {
        if let Some(tool) = self.tools.iter_mut().find(|tool| tool.item == item) {
            tool.result = Some((seq, seen, end != End::Whole));
            for text in self.explained.remove(&item).unwrap_or_default() {
                self.told(seq, None, Line::User(text));
            }
            return;
        }
        let Some((call, ItemKind::Text)) = self.items.get(&item).cloned() else { return };
        if end == End::Discarded || text.is_empty() {
            return;
        }
        match self.calls.get(&call) {
            Some(Purpose::Think) => self.said(seq, call, item, text),
            Some(Purpose::Explain { wait }) => {
                let told = format!("{EXPLAINED_PREFIX}{text}");
                match self.waits.get(wait) {
                    Some(about) if !self.done.contains(about) => {
                        self.explained.entry(*about).or_default().push(told);
                    }
                    _ => self.told(seq, None, Line::User(told)),
                }
            }
            Some(Purpose::Summarise) | None => {}
        }
    }

    /// Texts of one call stand in the order they began, whichever was finished first.
    fn said(&mut self, seq: Seq, call: CallId, item: ItemId, text: &str) {
        let later = |told: &Told| told.call == Some(call) && told.item > Some(item);
        let from_end = self.texts.iter().rev().take_while(|told| later(told)).count();
        let (call, item) = (Some(call), Some(item));
        let told = Told { seq, call, item, line: Line::Agent(text.into()) };
        self.texts.insert(self.texts.len() - from_end, told);
    }

    fn compacted(&mut self, upto: Seq, summary: &str) -> Checked {
        for tool in &self.tools {
            let Some((result, ..)) = tool.result else { continue };
            let together = (tool.seq <= upto) == (result <= upto);
            ensure!(together, "[6] compaction parts call {} from its result", tool.item);
        }
        self.tools.retain(|tool| tool.seq > upto);
        self.texts.retain(|told| told.seq > upto);
        let line = Line::User(format!("{SUMMARY_PREFIX}{summary}"));
        self.texts.insert(0, Told { seq: upto, call: None, item: None, line });
        Ok(())
    }

    /// Compares the prompt of an open call with what the log told before that call.
    pub fn check(&self, call: CallId, prompt: &Prompt) -> Checked {
        let mut messages = prompt.messages.clone();
        match prompt.purpose {
            Purpose::Think => {}
            Purpose::Explain { .. } => ensure!(
                matches!(messages.pop(), Some(Message::User(_))),
                "[6] an explanation that is not asked for"
            ),
            Purpose::Summarise => ensure!(
                matches!(messages.pop(), Some(Message::User(p)) if spoken(&p) == SUMMARISE_TEXT),
                "[6] a summary that is not asked for"
            ),
        }
        provider_accepts(&messages)?;
        let (texts, tools) = read(&messages);
        let older = self.texts.iter().filter(|told| told.seq < call.0);
        let want: Vec<Line> = older.map(|told| told.line.clone()).collect();
        ensure!(texts == want, "[6] the prompt says {texts:?}, the log {want:?}");
        let older = self.tools.iter().filter(|tool| tool.seq < call.0);
        let answered = older.filter_map(|tool| {
            let (seq, output, is_error) = tool.result.clone()?;
            (seq < call.0).then(|| (tool.asked.clone(), output, is_error))
        });
        let want: Vec<_> = answered.collect();
        ensure!(tools == want, "[6] the prompt has tools {tools:?}, the log {want:?}");
        Ok(())
    }
}

type Answered = ([Text; 3], Text, bool);

fn read(messages: &[Message]) -> (Vec<Line>, Vec<Answered>) {
    let (mut texts, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for message in messages {
        match message {
            Message::User(content) => texts.push(Line::User(spoken(content))),
            Message::ToolResult { output, is_error, .. } => {
                results.push((output.clone(), *is_error));
            }
            Message::Assistant(parts) => {
                for part in parts {
                    match part {
                        AssistantPart::Text(text) => texts.push(Line::Agent(text.to_string())),
                        AssistantPart::Reasoning { .. } => {}
                        AssistantPart::ToolCall { call_ref, name, args } => {
                            calls.push([call_ref.clone(), name.clone(), args.clone()]);
                        }
                    }
                }
            }
        }
    }
    let answered = calls.into_iter().zip(results).map(|(call, (text, bad))| (call, text, bad));
    (texts, answered.collect())
}

/// Orders that providers refuse: a call without its result right behind the message, a result
/// without its call, a message with nothing in it, reasoning that nothing follows.
pub fn provider_accepts(messages: &[Message]) -> Checked {
    let mut due: Vec<(Text, Text)> = Vec::new();
    for message in messages {
        if let Message::ToolResult { call_ref, name, .. } = message {
            let fits = due.first().is_some_and(|(r, n)| r == call_ref && n == name);
            ensure!(fits, "[6] result {call_ref} without its call in {messages:?}");
            due.remove(0);
            continue;
        }
        ensure!(due.is_empty(), "[6] calls {due:?} without a result in {messages:?}");
        let Message::Assistant(parts) = message else { continue };
        let last = parts.last();
        ensure!(last.is_some(), "[6] an empty message in {messages:?}");
        let dangling = matches!(last, Some(AssistantPart::Reasoning { .. }));
        ensure!(!dangling, "[6] reasoning that nothing follows in {messages:?}");
        due.extend(parts.iter().filter_map(|part| match part {
            AssistantPart::ToolCall { call_ref, name, .. } => {
                Some((call_ref.clone(), name.clone()))
            }
            AssistantPart::Text(_) | AssistantPart::Reasoning { .. } => None,
        }));
    }
    ensure!(due.is_empty(), "[6] calls {due:?} without a result in {messages:?}");
    Ok(())
}
