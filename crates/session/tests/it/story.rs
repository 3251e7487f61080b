//! The conversation as the log tells it, kept beside `State` and compared with every prompt.
//!
//! Only what a provider would notice: the texts in order, the tool calls in order, each result
//! right behind the message that holds its call, and what must go back as it came.

use std::collections::{BTreeMap, BTreeSet};

use polyloop_session::event::{Adopted, CallOutcome, Event, Outcome, Purpose, Work};
use polyloop_session::history::{EXPLAINED_PREFIX, SUMMARY_END, SUMMARY_PREFIX};
use polyloop_session::item::{End, ItemKind, Opaque, Part};
use polyloop_session::retry::TOO_LONG_CODE;
use polyloop_session::room::FLOOR_CODE;
use polyloop_session::state::{LEFT_OUT_TEXT, RESUME_TEXT};
use polyloop_session::{CallId, ItemId, LogEntry, MessageId, Seq, Text, WaitId};

use super::audit::Checked;
use super::make::{parts, spoken};

mod told;

pub use told::provider_accepts;

/// What a provider says of a message that it would refuse with every later call.
const HOPELESS: [&str; 4] = [TOO_LONG_CODE, FLOOR_CODE, "invalid_request", "refused"];

#[derive(Default)]
pub struct Story {
    texts: Vec<Told>,
    tools: Vec<Tool>,
    reasons: Vec<Reason>,
    queue: BTreeMap<MessageId, Vec<Part>>,
    calls: BTreeMap<CallId, Purpose>,
    items: BTreeMap<ItemId, (CallId, ItemKind)>,
    waits: BTreeMap<WaitId, ItemId>,
    done: BTreeSet<ItemId>,
    explained: BTreeMap<ItemId, Vec<String>>,
    /// Where the last turn began.
    began: Seq,
    /// A step of its work was answered.
    answered: bool,
    /// The turn has no work but to compact.
    compacts: bool,
    /// How much of the story a call for a summary was told: texts and tools.
    summarised: Option<(usize, usize)>,
}

struct Told {
    seq: Seq,
    call: Option<CallId>,
    item: Option<ItemId>,
    line: Line,
}

#[derive(Clone, Debug, PartialEq)]
enum Line {
    User(Vec<Part>),
    Agent(Text, Option<Opaque>),
}

/// A tool call as the model asked for it: reference, name, arguments.
#[derive(Clone, Debug, PartialEq)]
struct Asked([Text; 3], Option<Opaque>);

struct Tool {
    seq: Seq,
    call: Option<CallId>,
    item: ItemId,
    asked: Asked,
    result: Option<(Seq, Text, bool)>,
}

struct Reason {
    seq: Seq,
    call: CallId,
    item: ItemId,
    thought: (Text, Option<Opaque>),
}

impl Story {
    pub fn entry(&mut self, entry: &LogEntry) -> Checked {
        let seq = entry.seq;
        match &entry.event {
            Event::Adopted { piece: Some(piece) } => self.adopted(seq, piece),
            Event::MessageQueued { content, .. } => {
                self.queue.insert(MessageId(seq), content.clone());
            }
            Event::TurnStarted { work, .. } => self.turn_started(seq, work)?,
            Event::CallStarted { purpose, .. } => {
                self.calls.insert(CallId(seq), *purpose);
            }
            Event::CallEnded { call, outcome, .. } => match outcome {
                CallOutcome::Failed { .. } | CallOutcome::Retried { .. } => {
                    self.texts.retain(|told| told.call != Some(*call));
                    self.reasons.retain(|reason| reason.call != *call);
                }
                CallOutcome::Answered => {
                    self.answered |= self.calls.get(call) == Some(&Purpose::Think);
                }
                CallOutcome::Stopped | CallOutcome::Lost => {}
            },
            Event::ItemStarted { call, item, .. } => {
                self.items.insert(ItemId(seq), (*call, item.clone()));
            }
            Event::WaitOpened { item, .. } => {
                self.waits.insert(WaitId(seq), *item);
            }
            Event::ToolProposed { item, args, opaque, .. } => {
                if let Some((call, ItemKind::ToolCall { name, call_ref, .. })) =
                    self.items.get(item)
                {
                    let asked = [call_ref.clone(), name.clone(), args.clone()];
                    let asked = Asked(asked, opaque.clone());
                    let (call, item, result) = (Some(*call), *item, None);
                    self.tools.push(Tool { seq, call, item, asked, result });
                }
            }
            Event::ItemCompleted { item, end, text, opaque, result, .. } => {
                self.done.insert(*item);
                match result.as_ref().and_then(|result| result.seen.as_ref()) {
                    Some(seen) => self.completed(seq, *item, *end, seen, opaque),
                    None => self.completed(seq, *item, *end, text, opaque),
                }
            }
            Event::Compacted { upto, summary, .. } => self.compacted(*upto, summary)?,
            Event::Undone { files, skipped, .. } => {
                self.told(seq, Line::User(parts(&polyloop_session::undo::told(files, skipped))));
            }
            Event::Trimmed { items, stub, .. } => {
                for item in items {
                    let tool = self.tools.iter_mut().find(|tool| tool.item == *item);
                    let result = tool.and_then(|tool| tool.result.as_mut());
                    let (_, output, _) = result.ok_or("[18] trims what is not there")?;
                    ensure!(output != stub, "[18] trims {item} twice");
                    *output = stub.clone();
                }
            }
            Event::TurnEnded { outcome: Outcome::Failed { fault }, .. }
                if HOPELESS.contains(&&*fault.code) && !self.answered && !self.compacts =>
            {
                self.left_out(seq);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether there is more to tell of than the message that began the turn.
    pub fn has_more(&self, failed: CallId) -> bool {
        let said = self.texts.iter().filter(|told| told.call != Some(failed)).count();
        said + self.tools.len() > 1
    }

    /// Whether the summary that is asked for would take the place of the turn's own message.
    pub fn summary_takes_turn(&self) -> bool {
        let told = self.summarised.map_or(0, |(texts, _)| texts);
        let last = told.checked_sub(1).and_then(|at| self.texts.get(at));
        last.is_some_and(|last| last.seq >= self.began)
    }

    /// A turn that did not fit is no part of the story any more.
    fn left_out(&mut self, seq: Seq) {
        let from = self.began;
        self.tools.retain(|tool| tool.seq < from);
        let tells_of_before = |told: &Told| {
            let Line::User(content) = &told.line else { return false };
            spoken(content).starts_with(SUMMARY_PREFIX)
        };
        self.texts.retain(|told| told.seq < from || tells_of_before(told));
        self.reasons.retain(|reason| reason.seq < from);
        self.told(seq, Line::User(parts(LEFT_OUT_TEXT)));
    }

    fn turn_started(&mut self, seq: Seq, work: &Work) -> Checked {
        self.began = seq;
        self.answered = false;
        self.compacts = matches!(work, Work::Compact { .. });
        match work {
            Work::Message { message } => {
                let content = self.queue.remove(message).ok_or("a turn without its message")?;
                self.told(seq, Line::User(content));
            }
            Work::Resume { .. } => self.told(seq, Line::User(parts(RESUME_TEXT))),
            Work::Compact { .. } => {}
        }
        Ok(())
    }

    fn told(&mut self, seq: Seq, line: Line) {
        self.texts.push(Told { seq, call: None, item: None, line });
    }

    fn adopted(&mut self, seq: Seq, piece: &Adopted) {
        match piece {
            Adopted::User { content } => self.told(seq, Line::User(content.clone())),
            Adopted::Agent { text } => self.told(seq, Line::Agent(text.clone(), None)),
            Adopted::ToolCall { call_ref, name, args } => {
                let asked = Asked([call_ref.clone(), name.clone(), args.clone()], None);
                let (call, item, result) = (None, ItemId(seq), None);
                self.tools.push(Tool { seq, call, item, asked, result });
            }
            Adopted::ToolResult { call_ref, output } => {
                let open = |tool: &&mut Tool| tool.asked.0[0] == *call_ref && tool.result.is_none();
                if let Some(tool) = self.tools.iter_mut().rev().find(open) {
                    tool.result = Some((seq, output.clone(), false));
                }
            }
        }
    }

    fn completed(
        &mut self,
        seq: Seq,
        item: ItemId,
        end: End,
        seen: &Text,
        opaque: &Option<Opaque>,
    ) {
        if let Some(tool) = self.tools.iter_mut().find(|tool| tool.item == item) {
            tool.result = Some((seq, seen.clone(), end != End::Whole));
            for text in self.explained.remove(&item).unwrap_or_default() {
                self.told(seq, Line::User(parts(&text)));
            }
            return;
        }
        let Some((call, kind)) = self.items.get(&item).cloned() else { return };
        let purpose = self.calls.get(&call);
        if (&kind, purpose, end) == (&ItemKind::Reasoning, Some(&Purpose::Think), End::Whole) {
            let thought = (seen.clone(), opaque.clone());
            self.reasons.push(Reason { seq, call, item, thought });
        }
        if kind != ItemKind::Text || end == End::Discarded || seen.is_empty() {
            return;
        }
        match purpose {
            Some(Purpose::Think) => self.said(seq, call, item, seen, opaque),
            Some(Purpose::Explain { wait }) => {
                let told = format!("{EXPLAINED_PREFIX}{seen}");
                match self.waits.get(wait) {
                    Some(about) if !self.done.contains(about) => {
                        self.explained.entry(*about).or_default().push(told);
                    }
                    _ => self.told(seq, Line::User(parts(&told))),
                }
            }
            Some(_) | None => {}
        }
    }

    /// Texts of one call stand in the order they began, whichever was finished first; but a result
    /// that a crash put before one stays before it.
    fn said(&mut self, seq: Seq, call: CallId, item: ItemId, text: &Text, opaque: &Option<Opaque>) {
        let later = |told: &Told| {
            let of_call = told.call == Some(call) && told.item > Some(item);
            of_call && !self.parts(call, told.seq, seq)
        };
        let from_end = self.texts.iter().rev().take_while(|told| later(told)).count();
        let (call, item) = (Some(call), Some(item));
        let line = Line::Agent(text.clone(), opaque.clone());
        let told = Told { seq, call, item, line };
        self.texts.insert(self.texts.len() - from_end, told);
    }

    /// Whether a result of the call stands between the two.
    fn parts(&self, call: CallId, from: Seq, to: Seq) -> bool {
        let results = self.tools.iter().filter(|tool| tool.call == Some(call));
        let mut results = results.filter_map(|tool| tool.result.as_ref());
        results.any(|(seq, ..)| (from..to).contains(seq))
    }

    fn compacted(&mut self, upto: Seq, summary: &str) -> Checked {
        for tool in &self.tools {
            let Some((result, ..)) = tool.result else { continue };
            let together = (tool.seq <= upto) == (result <= upto);
            ensure!(together, "[6] compaction parts call {} from its result", tool.item);
        }
        if let Some(told) = self.summarised.take().filter(|_| !self.compacts) {
            let texts = self.texts.iter().filter(|told| told.seq <= upto).count();
            let gone = |tool: &&Tool| tool.seq <= upto && tool.result.is_some();
            let goes = (texts, self.tools.iter().filter(gone).count());
            ensure!(told == goes, "[15] the summary was told {told:?}, and {goes:?} go");
        }
        let own = if self.compacts { Seq::NONE } else { self.began };
        let asked = |told: &Told| told.seq == own && matches!(told.line, Line::User(_));
        self.tools.retain(|tool| tool.seq > upto);
        self.texts.retain(|told| told.seq > upto || asked(told));
        let kept = self.texts.first().map_or(upto, |told| Seq(told.seq.0 - 1));
        self.reasons.retain(|reason| reason.seq > upto);
        let (text, tool) = (self.texts.first(), self.tools.first().map(|tool| tool.seq));
        let begins = text.is_none_or(|told| matches!(told.line, Line::User(_)));
        let begins = begins && tool.is_none_or(|seq| text.is_some_and(|told| told.seq < seq));
        ensure!(begins, "[15] what stays does not begin with what a user said");
        let line = Line::User(parts(&format!("{SUMMARY_PREFIX}{summary}{SUMMARY_END}")));
        let seq = upto.min(kept);
        self.texts.insert(0, Told { seq, call: None, item: None, line });
        Ok(())
    }
}
