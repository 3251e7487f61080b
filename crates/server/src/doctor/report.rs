//! What the doctor found, one line a thing.

use crate::config::{Held, one_line};

use super::model::Told;

/// Shorter ones would be found everywhere.
const HIDDEN_CHARS_MIN: usize = 4;
const HIDDEN: &str = "***";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    /// The server starts, but somebody should know.
    Warn,
    /// The server does not start, or cannot do what it is there for.
    Fail,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub status: Status,
    /// What was looked at.
    pub thing: &'static str,
    /// What was found, and what to do about it.
    pub text: String,
}

impl Check {
    pub fn ok(thing: &'static str, text: impl Into<String>) -> Self {
        Self { status: Status::Ok, thing, text: text.into() }
    }

    pub fn warn(thing: &'static str, text: impl Into<String>) -> Self {
        Self { status: Status::Warn, thing, text: text.into() }
    }

    pub fn fail(thing: &'static str, text: impl Into<String>) -> Self {
        Self { status: Status::Fail, thing, text: text.into() }
    }
}

pub(super) struct Report {
    pub settings: Vec<Held>,
    /// None if it cannot be told which model it would be.
    pub model: Option<Told>,
    pub checks: Vec<Check>,
}

impl Report {
    /// Every text becomes one line: what others have written may hold anything.
    pub fn new(settings: Vec<Held>, model: Option<Told>, mut checks: Vec<Check>) -> Self {
        for check in &mut checks {
            check.text = one_line(&check.text);
        }
        Self { settings, model, checks }
    }

    /// The same with stars in place of secrets.
    pub fn without(mut self, secrets: &[String]) -> Self {
        for secret in secrets.iter().filter(|secret| secret.len() >= HIDDEN_CHARS_MIN) {
            for check in &mut self.checks {
                check.text = check.text.replace(secret, HIDDEN);
            }
        }
        self
    }

    pub fn count(&self, status: Status) -> usize {
        self.checks.iter().filter(|check| check.status == status).count()
    }

    pub fn has_failed(&self) -> bool {
        self.count(Status::Fail) > 0
    }
}
