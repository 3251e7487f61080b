//! The report as text for people, and as JSON for programs.

use std::fmt::Write;
use std::io::IsTerminal;

use serde_json::json;

use super::report::{Check, Report, Status};

/// What stands in place of a secret.
const MASK: &str = "set";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colours {
    None,
    Ansi,
}

impl Colours {
    /// Only a person at a terminal who did not say no gets any.
    pub fn of_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|value| value == "dumb");
        match std::io::stdout().is_terminal() && !unwanted && !is_dumb {
            true => Colours::Ansi,
            false => Colours::None,
        }
    }

    fn paint(self, status: Status) -> String {
        // As wide as the longest, and the colour must not count.
        let (word, code) = match status {
            Status::Ok => ("ok  ", 32),
            Status::Warn => ("warn", 33),
            Status::Fail => ("FAIL", 31),
        };
        match self {
            Colours::None => word.to_owned(),
            Colours::Ansi => format!("\u{1b}[{code}m{word}\u{1b}[0m"),
        }
    }
}

pub(super) fn text(report: &Report, colours: Colours) -> String {
    let mut out = format!("Polyloop {}\n\nSettings\n", env!("CARGO_PKG_VERSION"));
    let labels = report.settings.iter().map(|held| held.setting.label().len());
    let label_chars = labels.max().unwrap_or_default();
    for held in &report.settings {
        let (label, from) = (held.setting.label(), held.source.word());
        let value = held.value.as_deref().unwrap_or(MASK);
        let _ = writeln!(out, "  {label:label_chars$}  {value} ({from})");
    }
    out.push_str("\nChecks\n");
    let thing_chars = report.checks.iter().map(|check| check.thing.len()).max().unwrap_or_default();
    for Check { status, thing, text } in &report.checks {
        let _ = writeln!(out, "{}  {thing:thing_chars$}  {text}", colours.paint(*status));
    }
    let counted = |count: usize, one: &str, many: &str| match count {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    let failures = counted(report.count(Status::Fail), "failure", "failures");
    let warnings = counted(report.count(Status::Warn), "warning", "warnings");
    let _ = writeln!(out, "\n{failures}, {warnings}");
    out
}

pub(super) fn json(report: &Report) -> String {
    let settings = report.settings.iter().map(|held| {
        json!({
            "name": held.setting.name,
            "value": held.value.as_deref().unwrap_or(MASK),
            "source": held.source.word(),
            "hidden": held.value.is_none(),
        })
    });
    let checks = report.checks.iter().map(|check| {
        let status = match check.status {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "fail",
        };
        json!({"status": status, "thing": check.thing, "text": check.text})
    });
    let whole = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "ok": !report.has_failed(),
        "settings": settings.collect::<Vec<_>>(),
        "model": report.model.as_ref().map(super::model::Told::json),
        "checks": checks.collect::<Vec<_>>(),
    });
    format!("{whole:#}\n")
}
