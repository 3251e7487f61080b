//! A session's conversation as a text for people. A fold over the entries; outputs are bounded.

use std::collections::BTreeMap;
use std::sync::Arc;

use polyloop_agent::log::Summary;
use polyloop_dialects::time::iso;
use polyloop_session::event::{Adopted, Outcome, Purpose};
use polyloop_session::item::{End, ItemKind, Part};
use polyloop_session::wait::Answer;
use polyloop_session::{CallId, Event, ItemId, LogEntry, SessionId, Text};

/// Of a tool's output and of its arguments; more is said to be more.
const OUTPUT_BYTES_SHOWN_MAX: usize = 4 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// For reading at once.
    Terminal,
    Markdown,
}

pub(super) struct Teller {
    form: Form,
    id: Arc<SessionId>,
    /// Purposes of the open calls: a summary is no part of the conversation.
    calls: BTreeMap<CallId, Purpose>,
    items: BTreeMap<ItemId, Item>,
}

struct Item {
    call: CallId,
    kind: ItemKind,
    args: Option<Text>,
}

impl Teller {
    pub fn new(form: Form, id: Arc<SessionId>) -> Teller {
        Teller { form, id, calls: BTreeMap::new(), items: BTreeMap::new() }
    }

    pub fn head(&self, summary: &Summary) -> String {
        let title = summary.named.title.as_deref().unwrap_or(self.id.as_str());
        let (start, last) = (iso(summary.start), iso(summary.last));
        let about = format!("Session {}, from {start} to {last}.", self.id);
        match self.form {
            Form::Terminal => format!("{}\n{about}\n", self.safe(title)),
            Form::Markdown => format!("# {}\n\n{about}\n", one_line(&self.safe(title))),
        }
    }

    /// What an entry adds to the conversation.
    pub fn told(&mut self, entry: &LogEntry) -> String {
        match &entry.event {
            Event::MessageQueued { content, origin, .. } => {
                let name = origin.who.name.as_deref().unwrap_or("User");
                self.block(entry, name, &words(content))
            }
            Event::Adopted { piece } => self.adopted(entry, piece.as_ref()),
            Event::CallStarted { purpose, .. } => {
                self.calls.insert(CallId(entry.seq), *purpose);
                String::new()
            }
            Event::ItemStarted { call, item, .. } => {
                let item = Item { call: *call, kind: item.clone(), args: None };
                self.items.insert(ItemId(entry.seq), item);
                String::new()
            }
            Event::ToolProposed { item, args, .. } => {
                if let Some(open) = self.items.get_mut(item) {
                    open.args = Some(args.clone());
                }
                String::new()
            }
            Event::ItemCompleted { item, end, text, .. } => {
                self.completed(entry, *item, *end, text)
            }
            Event::WaitSettled { answer, by, .. } => {
                let who = by.name.as_deref().unwrap_or(&by.via);
                let said = match answer {
                    Answer::Approved { .. } => "allowed it".to_owned(),
                    Answer::Denied { message, .. } => format!("denied it: {message}"),
                    Answer::Answered { said: Some(said), .. } => format!("answered: {said}"),
                    Answer::Answered { answers, .. } => {
                        let chosen = answers.iter().flat_map(|a| a.selected.iter().chain(&a.text));
                        let chosen: Vec<&str> = chosen.map(|word| &**word).collect();
                        format!("answered: {}", chosen.join(", "))
                    }
                };
                self.line(&format!("{who} {said}"))
            }
            Event::TurnEnded { outcome, .. } => {
                self.calls.clear();
                self.items.clear();
                match outcome {
                    Outcome::Completed => String::new(),
                    Outcome::Failed { fault } => self.line(&format!("Failed: {}", fault.message)),
                    Outcome::Interrupted { reason } => self.line(&format!("Interrupted: {reason}")),
                }
            }
            Event::Compacted { summary, .. } => {
                self.block(entry, "Summary of what came before", summary)
            }
            Event::Noticed { text, .. } => self.line(text),
            _ => String::new(),
        }
    }

    fn adopted(&self, entry: &LogEntry, piece: Option<&Adopted>) -> String {
        match piece {
            Some(Adopted::User { content }) => self.block(entry, "User", &words(content)),
            Some(Adopted::Agent { text }) => self.block(entry, "Agent", text),
            Some(Adopted::ToolCall { name, args, .. }) => self.call(entry, name, args),
            Some(Adopted::ToolResult { output, .. }) => self.code("Output", output),
            None => String::new(),
        }
    }

    fn completed(&mut self, entry: &LogEntry, id: ItemId, end: End, text: &str) -> String {
        let Some(item) = self.items.remove(&id) else { return String::new() };
        let summarises = self.calls.get(&item.call) == Some(&Purpose::Summarise);
        if summarises || text.is_empty() && item.args.is_none() {
            return String::new();
        }
        match &item.kind {
            ItemKind::Text => {
                let name = match end {
                    End::Discarded => "Agent (of an attempt that failed)",
                    _ => "Agent",
                };
                self.block(entry, name, text)
            }
            ItemKind::Reasoning => self.block(entry, "Agent (thinking)", text),
            ItemKind::ToolCall { name, .. } => {
                let args = item.args.as_deref().unwrap_or_default();
                let output = match end {
                    End::Whole => "Output",
                    End::Denied => "Not run",
                    End::Failed => "Failed",
                    End::Cut | End::Discarded | End::Interrupted => "Stopped",
                };
                let call = self.call(entry, name, args);
                match text.is_empty() {
                    true => format!("{call}{}", self.line(&format!("{output}, nothing printed"))),
                    false => format!("{call}{}", self.code(output, text)),
                }
            }
        }
    }

    fn call(&self, entry: &LogEntry, name: &str, args: &str) -> String {
        let call = self.block(entry, &format!("Tool {name}"), "");
        format!("{call}{}", self.code("Arguments", args))
    }

    fn block(&self, entry: &LogEntry, name: &str, text: &str) -> String {
        let at = iso(entry.at);
        match self.form {
            Form::Terminal => {
                let end = if text.is_empty() { "" } else { "\n" };
                format!("\n[{}] {} at {at}\n{}{end}", entry.seq, self.safe(name), self.safe(text))
            }
            Form::Markdown => {
                let end = if text.is_empty() { "" } else { "\n" };
                let (name, text) = (one_line(&self.safe(name)), self.safe(text));
                format!("\n## {name}\n\n*{at}*\n\n{text}{end}")
            }
        }
    }

    fn code(&self, name: &str, text: &str) -> String {
        let (shown, more) = bounded(text);
        let more = match more {
            0 => String::new(),
            more => format!(" (and {more} bytes more)"),
        };
        match self.form {
            Form::Terminal => format!("{name}{more}:\n{}\n", self.safe(shown)),
            Form::Markdown => {
                let (fence, shown) = (fence(shown), self.safe(shown));
                format!("\n{name}{more}:\n\n{fence}\n{shown}\n{fence}\n")
            }
        }
    }

    fn line(&self, text: &str) -> String {
        match self.form {
            Form::Terminal => format!("-- {}\n", self.safe(text)),
            Form::Markdown => format!("\n> {}\n", self.safe(text).replace('\n', "\n> ")),
        }
    }

    /// Nothing in a conversation may speak to a terminal: control characters are shown as codes.
    fn safe(&self, text: &str) -> String {
        let shown = |c: char| match c {
            '\n' | '\t' => c.to_string(),
            c if c.is_control() => c.escape_debug().to_string(),
            c => c.to_string(),
        };
        text.chars().map(shown).collect()
    }
}

fn words(content: &[Part]) -> String {
    content.iter().map(|part| part.shown().to_string()).collect::<Vec<_>>().join("\n")
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// What is shown of it, and how many bytes are not.
fn bounded(text: &str) -> (&str, usize) {
    let mut end = text.len().min(OUTPUT_BYTES_SHOWN_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], text.len() - end)
}

/// Longer than any row of backticks in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        assert_eq!(fence("no ticks"), "```");
        assert_eq!(fence("a ```` b ``"), "`````");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = "ü".repeat(OUTPUT_BYTES_SHOWN_MAX);
        let (shown, more) = bounded(&text);
        assert_eq!((shown.len(), more), (OUTPUT_BYTES_SHOWN_MAX, OUTPUT_BYTES_SHOWN_MAX));
        let (shown, more) = bounded(&text[2..]);
        assert_eq!(shown.len() + more, text.len() - 2);
        assert_eq!(bounded("short"), ("short", 0));
    }
}
