//! Sentences about events.

use std::time::Duration;

use crate::style::{Colour, Line, Style};
use crate::text::{count, lines, one_line};
use crate::wire::{ContextInfo, Facts, Todo, TurnStarted, Usage};

const USER: Style = Style::coloured(Colour::Blue).bold();
/// Of a message that is only mentioned.
const MENTION_COLUMNS: usize = 60;

/// Something that happened beside the conversation.
pub fn remark(text: &str) -> Line {
    Line::of("∙ ", Style::DIM).and(text, Style::DIM).hang(2)
}

pub fn error(text: &str) -> Vec<Line> {
    marked("✗ ", Style::RED, text)
}

fn marked(mark: &str, style: Style, text: &str) -> Vec<Line> {
    let mut leads = std::iter::once(mark).chain(std::iter::repeat("  "));
    lines(text.trim_end())
        .map(|line| Line::of(leads.next().unwrap_or_default(), style).and(line, style).hang(2))
        .collect()
}

pub fn user(started: &TurnStarted, by: Option<&str>) -> Vec<Line> {
    let mut told = vec![Line::new()];
    match &started.message {
        Some(message) => told.extend(marked("› ", USER, message)),
        None if started.resumes => told.push(remark("goes on with what was interrupted")),
        None => return Vec::new(),
    }
    if let Some(by) = by {
        told.push(Line::of(&format!("  from {by}"), Style::DIM));
    }
    told
}

pub fn completed(usage: &Usage, time: Option<Duration>) -> Line {
    let mut parts = Vec::new();
    parts.extend(time.map(seconds));
    if usage.input_tokens + usage.output_tokens > 0 {
        parts.push(tokens(usage));
    }
    Line::of("✓ ", Style::GREEN).and(&parts.join(" · "), Style::DIM)
}

pub fn seconds(time: Duration) -> String {
    match time.as_secs() {
        secs @ 0..60 => format!("{secs} s"),
        secs @ 60..3600 => format!("{} min {} s", secs / 60, secs % 60),
        secs => format!("{} h {} min", secs / 3600, secs % 3600 / 60),
    }
}

fn tokens(usage: &Usage) -> String {
    let (input, output) = (count(usage.input_tokens), count(usage.output_tokens));
    let cost = usage.cost_usd.map(|cost| format!(" · ${cost:.4}")).unwrap_or_default();
    format!("{input} tokens in, {output} out{cost}")
}

pub fn failed(error: &str, code: &str) -> Vec<Line> {
    if code == "interrupted" || error.starts_with("Interrupted") {
        let mut told = marked("■ ", Style::YELLOW, error);
        told.push(Line::of("  /resume goes on with it; so does a new message", Style::DIM));
        return told;
    }
    self::error(error)
}

pub fn context(info: &ContextInfo) -> Vec<Line> {
    let warning = match info.warning_level.as_str() {
        "medium" => Style::YELLOW,
        "high" | "critical" => Style::RED,
        _ => Style::PLAIN,
    };
    let (used, all) = (count(info.token_count), count(info.max_tokens));
    let percent = format!("{:.0} %", info.usage_percent * 100.0);
    let filled =
        format!("{used} of {all} tokens ({percent}) in {} messages", info.transcript_length);
    let mut told = vec![Line::of("context  ", Style::DIM).and(&filled, warning)];
    let cost = format!("{} so far", tokens(&info.session_usage));
    told.push(Line::of("session  ", Style::DIM).and(&cost, Style::PLAIN));
    told
}

pub fn compaction(reason: &str, before: u64, after: u64) -> Vec<Line> {
    let (before, after) = (count(before), count(after));
    let text = format!("the conversation was made shorter: {before} → {after} tokens ({reason})");
    vec![remark(&text)]
}

pub fn notice(level: &str, text: &str, code: &str) -> Vec<Line> {
    match (level, code) {
        (_, "retry" | "compacting") => marked("↻ ", Style::YELLOW, text),
        ("warning", _) => marked("! ", Style::YELLOW, text),
        _ => lines(text).map(remark).collect(),
    }
}

pub fn todos(todos: &[Todo]) -> Vec<Line> {
    let mut told = vec![Line::of("Todos", Style::BOLD)];
    if todos.is_empty() {
        told.push(remark("none"));
    }
    told.extend(todos.iter().map(|todo| {
        let (mark, style) = match todo.status.as_str() {
            "completed" => ("  ☑ ", Style::GREEN),
            "in_progress" => ("  ◐ ", Style::YELLOW),
            "cancelled" => ("  ☒ ", Style { strike: true, ..Style::DIM }),
            _ => ("  ☐ ", Style::PLAIN),
        };
        Line::of(mark, style).and(&todo.content, style).hang(4)
    }));
    told
}

/// How a request ended, and by whom if not by this client.
pub fn settled(decision: &str, by: Option<&str>, message: Option<&str>) -> Line {
    let (mark, style, word) = match decision {
        "allow" => ("✓ ", Style::GREEN, "allowed"),
        "allow_always" => ("✓ ", Style::GREEN, "always allowed in this session"),
        "deny" => ("✗ ", Style::RED, "denied"),
        "deny_stop" => ("✗ ", Style::RED, "denied, and the turn stopped"),
        "answered" => ("✓ ", Style::GREEN, "answered"),
        "withdrawn" => ("∙ ", Style::DIM, "no longer asked"),
        other => ("∙ ", Style::DIM, other),
    };
    let by = by.map(|by| format!(" elsewhere, by {by}")).unwrap_or_default();
    let message = message.map(|said| format!(": {said}")).unwrap_or_default();
    Line::of(mark, style).and(&format!("{word}{by}{message}"), style).hang(2)
}

pub fn dropped(message: &str, by: Option<&str>) -> Line {
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    remark(&format!("taken out of the queue{by}: {}", one_line(message, MENTION_COLUMNS)))
}

pub fn operation(word: &str) -> &str {
    match word {
        "create" => "created",
        "update" => "changed",
        "delete" => "deleted",
        other => other,
    }
}

/// Settings that have changed.
pub fn changes(facts: &Facts) -> Vec<Line> {
    let settings =
        [("mode", &facts.permission_mode), ("model", &facts.model), ("agent", &facts.agent)];
    let mut told: Vec<Line> = settings
        .iter()
        .filter_map(|(name, value)| Some((name, value.as_ref()?)))
        .map(|(name, value)| remark(&format!("the {name} is {value} now")))
        .collect();
    if facts.status.as_deref() == Some("completed") {
        told.push(remark("the session was ended; a message opens it again"));
    }
    told
}
