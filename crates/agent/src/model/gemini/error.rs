//! What Google's errors mean: a status, and details in which the useful things stand.

use polyloop_session::Heal;
use serde_json::value::RawValue;

use super::PROVIDER;
use crate::model::Failure;
use crate::model::api::{Refused, Said};
use crate::model::fault::{self, Error};
use crate::model::json::{self, Object};

/// An error as far as it can be read.
#[derive(Default)]
struct Read {
    said: Said,
    /// The wait that it asks for.
    retry_after_ms: Option<u64>,
    /// The limits that were hit, where more is possible when a minute has passed.
    passing: Vec<String>,
    bad_key: bool,
}

pub(super) fn refusal(answer: &Refused<'_>) -> Failure {
    let Refused { status, body, model, retry_after_ms } = *answer;
    let json = serde_json::from_slice::<&RawValue>(body).ok();
    let mut read = json.and_then(find).map(|error| read(&error)).unwrap_or_default();
    if read.said == Said::default() {
        read.said.message = json::told(body).into();
    }
    if read.bad_key {
        let (code, message) = (read.said.code, json::words(&read.said.message));
        let message = format!("{PROVIDER} did not accept the key ({status}: {code}: {message})");
        return Failure::new(Heal::Never, "unauthorized", message);
    }
    let retry_after_ms = read.retry_after_ms.or(retry_after_ms);
    let (status, said) = (Some(status), read.heard());
    fault::failure(Error { provider: PROVIDER, model, status, said, retry_after_ms })
}

/// An error inside an answer.
pub(super) fn failure(answer: &RawValue) -> Failure {
    let read = find(answer).map(|error| read(&error)).unwrap_or_default();
    let retry_after_ms = read.retry_after_ms;
    let (model, said) = ("the model", read.heard());
    fault::failure(Error { provider: PROVIDER, model, status: None, said, retry_after_ms })
}

impl Read {
    /// Google says the same of a limit for a minute as of one for a month: "check your plan and
    /// billing". Where it names the limit, that is what is told.
    fn heard(self) -> Said {
        match self.passing.is_empty() {
            true => self.said,
            false => Said { code: self.said.code, message: self.passing.join(", ").into() },
        }
    }
}

/// The error in an answer, which may be a list of one.
fn find(answer: &RawValue) -> Option<Object<'_>> {
    match Object::read(answer.get()) {
        Some(fields) => fields.object("error").or(Some(fields)),
        None => json::list(answer).first().and_then(|first| {
            let fields = Object::read(first.get())?;
            fields.object("error").or(Some(fields))
        }),
    }
}

fn read(error: &Object<'_>) -> Read {
    let words = ["message", "error_description", "error"];
    let message = words.iter().find_map(|name| error.text(name)).unwrap_or_default();
    let code = error.text("status").or_else(|| error.count("code").map(|code| code.to_string()));
    let said = Said { code: code.unwrap_or_default(), message: message.into() };
    let mut read = Read { said, ..Read::default() };
    for detail in error.list("details") {
        let Some(detail) = Object::read(detail.get()) else { continue };
        let kind = detail.text("@type").unwrap_or_default();
        match kind.rsplit('.').next().unwrap_or_default() {
            "RetryInfo" => {
                read.retry_after_ms = detail.text("retryDelay").and_then(|delay| ms(&delay));
            }
            "QuotaFailure" => read.passing = passing(&detail),
            "ErrorInfo" => {
                let reason = detail.text("reason").unwrap_or_default();
                read.bad_key = matches!(&*reason, "API_KEY_INVALID" | "API_KEY_EXPIRED");
            }
            _ => {}
        }
    }
    read
}

/// The limits that were hit, if waiting helps with all of them: not if one is for a day, or
/// nothing at all.
fn passing(failure: &Object<'_>) -> Vec<String> {
    let mut limits = Vec::new();
    for violation in failure.list("violations") {
        let Some(violation) = Object::read(violation.get()) else { continue };
        let Some(limit) = violation.text("quotaId") else { continue };
        if limit.contains("PerDay") || violation.text("quotaValue").as_deref() == Some("0") {
            return Vec::new();
        }
        limits.push(limit);
    }
    limits
}

/// A duration like `3s` or `0.5s`; rounded up, since too early is refused again.
fn ms(delay: &str) -> Option<u64> {
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then(|| (seconds * 1_000.0).ceil() as u64)
}
