//! Compares a prompt with the story, and with what providers take.

use polyloop_session::event::Purpose;
use polyloop_session::history::{AssistantPart, Message, Prompt, SUMMARISE_TEXT};
use polyloop_session::item::{Opaque, Part};
use polyloop_session::{CallId, Text};

use super::{Asked, Line, Reason, Story, Tool};
use crate::it::audit::Checked;
use crate::it::make::spoken;

/// A prompt as it reads.
#[derive(Default)]
struct Read {
    texts: Vec<Line>,
    tools: Vec<Answered>,
    reasons: Vec<(Text, Option<Opaque>)>,
}

type Answered = (Asked, Text, bool);

impl Story {
    /// Compares the prompt of an open call with what the log told before that call.
    pub fn check(&mut self, call: CallId, prompt: &Prompt) -> Checked {
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
            other => ensure!(false, "[6] {other:?} in a session of react"),
        }
        provider_accepts(&messages)?;
        let Read { texts, tools, reasons } = read(&messages);
        let (mut lines, mut answered) = (self.lines(call), self.answered(call));
        if prompt.purpose == Purpose::Summarise {
            answered.iter_mut().zip(&tools).for_each(shorten);
            // A summary is told that there was a picture, not which.
            for line in &mut lines {
                let Line::User(content) = line else { continue };
                for part in content {
                    *part = Part::Text { text: part.shown() };
                }
            }
        }
        if prompt.purpose == Purpose::Summarise && !self.compacts {
            // Only what will go is told; that it is told whole is seen when it goes.
            ensure!(texts.len() <= lines.len(), "[6] {texts:?} are more than {lines:?}");
            ensure!(tools.len() <= answered.len(), "[6] {tools:?} are more than {answered:?}");
            // A file that another program left may begin with a call that has no result.
            let loose = self.tools.iter().any(|tool| tool.result.is_none());
            let told = texts.len() + tools.len();
            ensure!(loose || told > 0, "[15] nothing to summarise");
            lines.truncate(texts.len());
            answered.truncate(tools.len());
            self.summarised = Some((texts.len(), tools.len()));
            let known = self.reasons(call);
            let told = reasons.iter().all(|reason| known.contains(reason));
            ensure!(told, "[6] the prompt reasons {reasons:?}, the log {known:?}");
        } else {
            let want = self.reasons(call);
            ensure!(reasons == want, "[6] the prompt reasons {reasons:?}, the log {want:?}");
        }
        ensure!(texts == lines, "[6] the prompt says {texts:?}, the log {lines:?}");
        ensure!(tools == answered, "[6] the prompt has tools {tools:?}, the log {answered:?}");
        Ok(())
    }

    fn lines(&self, call: CallId) -> Vec<Line> {
        let older = self.texts.iter().filter(|told| told.seq < call.0);
        older.map(|told| told.line.clone()).collect()
    }

    fn answered(&self, call: CallId) -> Vec<Answered> {
        let older = self.tools.iter().filter(|tool| is_answered(tool, call));
        let answered = older.filter_map(|tool| {
            let (_, output, is_error) = tool.result.clone()?;
            Some((tool.asked.clone(), output, is_error))
        });
        answered.collect()
    }

    /// Reasoning goes back where something that it led to goes back, in the order it began.
    fn reasons(&self, call: CallId) -> Vec<(Text, Option<Opaque>)> {
        let leads = |reason: &&Reason| {
            let of = Some(reason.call);
            let said = |told: &super::Told| {
                let later = told.call == of && told.item > Some(reason.item) && told.seq < call.0;
                later && !self.parts(reason.call, reason.seq, told.seq)
            };
            let did =
                |tool: &Tool| tool.call == of && tool.item > reason.item && is_answered(tool, call);
            self.texts.iter().any(said) || self.tools.iter().any(did)
        };
        let older = self.reasons.iter().filter(|reason| reason.seq < call.0);
        let mut led: Vec<&Reason> = older.filter(leads).collect();
        led.sort_by_key(|reason| reason.item);
        led.into_iter().map(|reason| reason.thought.clone()).collect()
    }
}

/// Of a long output a summary is told the beginning and the end.
fn shorten(((_, whole, _), (_, told, _)): (&mut Answered, &Answered)) {
    let ends: Vec<&str> = told.split("\n[… ").collect();
    let fits = match ends[..] {
        [head, tail] => {
            let tail = tail.split_once(" …]\n").map_or("", |(_, tail)| tail);
            whole.starts_with(head) && whole.ends_with(tail) && head.len() + tail.len() <= 2_000
        }
        _ => false,
    };
    if fits && whole.len() > 2_000 {
        *whole = told.clone();
    }
}

/// Its result is there, and both were before the call.
fn is_answered(tool: &Tool, call: CallId) -> bool {
    tool.seq < call.0 && tool.result.as_ref().is_some_and(|(seq, ..)| *seq < call.0)
}

fn read(messages: &[Message]) -> Read {
    let (mut read, mut calls, mut results) = (Read::default(), Vec::new(), Vec::new());
    for message in messages {
        match message {
            Message::User(content) => read.texts.push(Line::User(content.clone())),
            Message::ToolResult { output, is_error, .. } => {
                results.push((output.clone(), *is_error));
            }
            Message::Assistant(parts) => {
                for part in parts {
                    match part.clone() {
                        AssistantPart::Text { text, opaque } => {
                            read.texts.push(Line::Agent(text, opaque));
                        }
                        AssistantPart::Reasoning { text, opaque } => {
                            read.reasons.push((text, opaque));
                        }
                        AssistantPart::ToolCall { call_ref, name, args, opaque } => {
                            calls.push(Asked([call_ref, name, args], opaque));
                        }
                    }
                }
            }
        }
    }
    let answered = calls.into_iter().zip(results).map(|(call, (text, bad))| (call, text, bad));
    read.tools = answered.collect();
    read
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
            AssistantPart::Text { .. } | AssistantPart::Reasoning { .. } => None,
        }));
    }
    ensure!(due.is_empty(), "[6] calls {due:?} without a result in {messages:?}");
    Ok(())
}
