//! What a session's events come to on a screen: lines that are done, and what is still open.
//!
//! Does no I/O and reads no clock: `take` is given an event and the time, and returns the lines
//! that can go up into the terminal's history.

mod tell;
mod tool;
pub mod wait;

use std::time::{Duration, Instant};

use crate::markdown::{Markdown, OPEN_LINE_BYTES_MAX, cut};
use crate::style::{Line, Style};
use crate::text::lines;
use crate::wire::{Event, Facts, Todo, TurnStarted};
pub use tell::{seconds, todos as todo_lines};
use tool::ToolCall;
pub use tool::summary;
use wait::Wait;

/// Whether an event happens now, or is shown of what was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Now(Instant),
    Before,
}

/// A message that waits for its turn.
#[derive(Debug)]
pub struct Queued {
    pub id: String,
    pub message: String,
    pub by: Option<String>,
}

#[derive(Debug, Default)]
pub struct Story {
    text: Text,
    calls: Vec<ToolCall>,
    waits: Vec<Wait>,
    queue: Vec<Queued>,
    working: Option<Working>,
    pub mode: String,
    pub model: String,
    pub agent: String,
    pub title: Option<String>,
    pub cwd: String,
    todos: Vec<Todo>,
    /// The part of the model's window that is used.
    pub used: Option<f64>,
    /// What this client's own messages are called, before their number.
    own: String,
    /// Whether a blank line is wanted before the next block.
    gap: bool,
}

/// What the model writes, as far as it is not whole.
#[derive(Debug, Default)]
enum Text {
    #[default]
    None,
    Answer(Markdown),
    /// Reasoning: the line that is open.
    Thought(String),
}

#[derive(Debug)]
struct Working {
    /// Not known of a turn that began before this client came.
    since: Option<Instant>,
}

impl Story {
    pub fn new(own: &str) -> Story {
        Story { own: own.to_owned(), ..Story::default() }
    }

    pub fn is_working(&self) -> bool {
        self.working.is_some()
    }

    pub fn elapsed(&self, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.working.as_ref()?.since?))
    }

    pub fn queue(&self) -> &[Queued] {
        &self.queue
    }

    /// What is asked first of those that wait.
    pub fn asked(&mut self) -> Option<&mut Wait> {
        self.waits.first_mut()
    }

    pub fn is_asked(&self) -> bool {
        !self.waits.is_empty()
    }

    /// An answer that was on its way when the connection broke may not have come through.
    pub fn unanswer(&mut self) {
        self.waits.iter_mut().for_each(|wait| wait.answered = false);
    }

    pub fn take(&mut self, event: Event, moment: Moment) -> Vec<Line> {
        if self.working.is_none() && event.is_work() {
            // Its beginning is further back than what this client was shown.
            self.working = Some(Working { since: None });
        }
        match event {
            Event::AssistantMessage { text, is_final } => self.answer(&text, is_final),
            Event::AssistantReasoning { text } => self.thought(&text),
            Event::TurnStarted(started) => self.begin(&started, moment),
            Event::TurnCompleted { usage } => {
                let line = tell::completed(&usage, self.time(moment));
                self.end(vec![line])
            }
            Event::TurnFailed { error, code } => self.end(tell::failed(&error, &code)),
            Event::ToolStarted { tool_name, tool_id, arguments } => {
                let done = self.close_text();
                self.calls.retain(|call| call.id != tool_id);
                self.calls.push(ToolCall::new(tool_id, tool_name, arguments));
                done
            }
            Event::CommandOutput { tool_id, output, exit_code } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.id == tool_id) {
                    call.output(&output, exit_code);
                }
                Vec::new()
            }
            Event::ToolCompleted { tool_id, success, result, error } => {
                let at = self.calls.iter().position(|call| call.id == tool_id);
                let told = result.or(error).unwrap_or_default();
                match at.map(|at| self.calls.remove(at)) {
                    Some(call) => self.block(call.ended(success, &told)),
                    None => Vec::new(),
                }
            }
            Event::ControlRequest(request) => self.open(Wait::approval(request)),
            Event::AskUserQuestion { request_id, questions } => {
                self.open(Wait::question(request_id, questions))
            }
            Event::ExitPlanMode { request_id, plan, plan_file_path } => {
                self.open(Wait::plan(request_id, plan, plan_file_path))
            }
            Event::ApprovalSettled { request_id, decision, by, message } => {
                self.settle(&request_id, &decision, by.as_deref(), message.as_deref())
            }
            Event::TokenUsage { usage_percent, context_window, .. } => {
                self.used = context_window.map(|_| usage_percent);
                Vec::new()
            }
            Event::ContextInfo(info) => {
                self.used = (info.max_tokens > 0).then_some(info.usage_percent);
                self.block(tell::context(&info))
            }
            Event::MessageQueued { message_id, message, by, .. } => {
                self.queue.retain(|queued| queued.id != message_id);
                self.queue.push(Queued { id: message_id, message, by });
                Vec::new()
            }
            Event::MessageDropped { message_id, by } => self.dropped(&message_id, by.as_deref()),
            Event::SessionInit(facts) => self.greeted(facts),
            Event::SessionInfo(facts) => self.informed(facts),
            Event::TodosChanged { todos } => {
                self.todos = todos;
                let lines = tell::todos(&self.todos);
                self.block(lines)
            }
            other => self.said(other),
        }
    }

    /// Events that are one line, or nothing.
    fn said(&mut self, event: Event) -> Vec<Line> {
        match event {
            Event::FileChanged { path, operation } => {
                vec![tell::remark(&format!("{path}: {}", tell::operation(&operation)))]
            }
            Event::SessionRenamed { title } => {
                let line = tell::remark(&format!("the session's title is: {title}"));
                self.title = Some(title).filter(|title| !title.is_empty());
                self.block(vec![line])
            }
            Event::ContextCompaction { reason, tokens_before, tokens_after } => {
                let lines = tell::compaction(&reason, tokens_before, tokens_after);
                self.block(lines)
            }
            Event::Notice { level, text, code } => self.block(tell::notice(&level, &text, &code)),
            Event::Error { message, .. } => self.block(tell::error(&message)),
            _ => Vec::new(),
        }
    }

    /// A line of this client itself.
    pub fn note(&mut self, text: &str) -> Vec<Line> {
        self.block(text.lines().map(tell::remark).collect())
    }

    pub fn complain(&mut self, text: &str) -> Vec<Line> {
        self.block(tell::error(text))
    }

    fn answer(&mut self, text: &str, is_final: bool) -> Vec<Line> {
        let mut done = Vec::new();
        if !matches!(self.text, Text::Answer(_)) {
            done = self.close_text();
            if !text.is_empty() {
                done.push(Line::new());
                self.gap = false;
            }
            self.text = Text::Answer(Markdown::default());
        }
        if let Text::Answer(markdown) = &mut self.text {
            done.extend(markdown.push(text));
        }
        if is_final {
            done.extend(self.close_text());
        }
        done
    }

    fn thought(&mut self, text: &str) -> Vec<Line> {
        let mut done = Vec::new();
        if !matches!(self.text, Text::Thought(_)) {
            done = self.close_text();
            done.push(Line::new());
            self.gap = false;
            self.text = Text::Thought(String::new());
        }
        if let Text::Thought(open) = &mut self.text {
            open.push_str(text);
            if let Some(at) = open.rfind('\n') {
                let rest = open.split_off(at + 1);
                let whole = std::mem::replace(open, rest);
                let whole = whole.trim_end_matches('\n');
                done.extend(lines(whole).filter(|line| !line.is_empty()).map(thought_line));
            }
            if open.len() > OPEN_LINE_BYTES_MAX {
                let rest = open.split_off(cut(open));
                done.push(thought_line(&std::mem::replace(open, rest)));
            }
        }
        done
    }

    /// What was being written is over.
    fn close_text(&mut self) -> Vec<Line> {
        let done = match std::mem::take(&mut self.text) {
            Text::None => return Vec::new(),
            Text::Answer(mut markdown) => markdown.end(),
            Text::Thought(open) if open.is_empty() => Vec::new(),
            Text::Thought(open) => lines(&open).map(thought_line).collect(),
        };
        self.gap = true;
        done
    }

    /// Lines that belong together, apart from a text before them.
    fn block(&mut self, lines: Vec<Line>) -> Vec<Line> {
        let mut done = self.close_text();
        if std::mem::take(&mut self.gap) {
            done.push(Line::new());
        }
        done.extend(lines);
        done
    }

    fn begin(&mut self, started: &TurnStarted, moment: Moment) -> Vec<Line> {
        self.working = Some(Working { since: moment.instant() });
        if let Some(id) = &started.message_id {
            self.queue.retain(|queued| queued.id != *id);
        }
        let own = started.client_ref.as_ref().is_some_and(|id| id.starts_with(&self.own));
        let by = started.by.as_deref().filter(|_| !own && moment != Moment::Before);
        let mut done = self.close_text();
        done.extend(tell::user(started, by));
        self.gap = true;
        done
    }

    fn end(&mut self, lines: Vec<Line>) -> Vec<Line> {
        self.working = None;
        self.waits.clear();
        let mut done = self.close_text();
        for call in std::mem::take(&mut self.calls) {
            done.extend(call.ended(false, ""));
        }
        done.push(Line::new());
        done.extend(lines);
        self.gap = true;
        done
    }

    fn time(&self, moment: Moment) -> Option<Duration> {
        self.elapsed(moment.instant()?)
    }

    fn open(&mut self, wait: Wait) -> Vec<Line> {
        // What was explained, or is told again to who comes back, is the same request.
        if let Some(known) = self.waits.iter_mut().find(|known| known.id == wait.id) {
            known.answered = false;
            return self.close_text();
        }
        let lines = wait.lines(&self.cwd);
        self.waits.push(wait);
        self.gap = true;
        let mut done = self.block(lines);
        done.push(Line::new());
        done
    }

    fn settle(
        &mut self,
        id: &str,
        decision: &str,
        by: Option<&str>,
        message: Option<&str>,
    ) -> Vec<Line> {
        let Some(at) = self.waits.iter().position(|wait| wait.id == id) else { return Vec::new() };
        let wait = self.waits.remove(at);
        let by = by.filter(|_| !wait.answered);
        let done = self.block(vec![tell::settled(decision, by, message)]);
        self.gap = true;
        done
    }

    fn dropped(&mut self, id: &str, by: Option<&str>) -> Vec<Line> {
        let Some(at) = self.queue.iter().position(|queued| queued.id == id) else {
            return Vec::new();
        };
        let queued = self.queue.remove(at);
        let line = tell::dropped(&queued.message, by);
        self.block(vec![line])
    }

    fn greeted(&mut self, facts: Facts) -> Vec<Line> {
        self.learn(&facts);
        if let Some(title) = facts.title {
            self.title = Some(title);
        }
        if let Some(cwd) = facts.cwd {
            self.cwd = cwd;
        }
        if let Some(todos) = facts.todos {
            self.todos = todos;
        }
        match facts.error {
            Some(error) => self.complain(&error),
            None => Vec::new(),
        }
    }

    fn informed(&mut self, facts: Facts) -> Vec<Line> {
        let told = tell::changes(&facts);
        self.learn(&facts);
        if told.is_empty() { Vec::new() } else { self.block(told) }
    }

    fn learn(&mut self, facts: &Facts) {
        let pairs = [
            (&mut self.mode, &facts.permission_mode),
            (&mut self.model, &facts.model),
            (&mut self.agent, &facts.agent),
        ];
        for (known, fact) in pairs {
            if let Some(fact) = fact {
                known.clone_from(fact);
            }
        }
    }

    /// The todo list, for who wants to see it.
    pub fn todos(&self) -> &[Todo] {
        &self.todos
    }

    /// What is open: the end of a text, and the calls that run.
    pub fn open_lines(&self, lines_of_each: usize) -> Vec<Line> {
        let mut open = Vec::new();
        match &self.text {
            Text::None => {}
            Text::Answer(markdown) => open.extend(markdown.open()),
            Text::Thought(text) if text.is_empty() => {}
            Text::Thought(text) => open.extend(lines(text).last().map(thought_line)),
        }
        for call in &self.calls {
            open.extend(call.open_lines(lines_of_each));
        }
        open
    }
}

impl Moment {
    fn instant(self) -> Option<Instant> {
        match self {
            Moment::Now(instant) => Some(instant),
            Moment::Before => None,
        }
    }
}

fn thought_line(line: &str) -> Line {
    let style = Style { dim: true, italic: true, ..Style::PLAIN };
    Line::of("┊ ", Style::DIM).and(line, style).hang(2)
}

#[cfg(test)]
mod tests;
