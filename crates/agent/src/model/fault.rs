//! What a provider's error means: what people are told, and what could help.
//!
//! By status, by the provider's own word, and by what its sentence says where neither tells.

use polyloop_session::Heal;
use polyloop_session::retry::TOO_LONG_CODE;

use super::Failure;
use super::api::Said;

/// Of a provider's own words in a fault.
const SAID_CHARS_MAX: usize = 500;

/// An error, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Error<'a> {
    pub provider: &'a str,
    pub model: &'a str,
    /// None for an error inside a stream that had begun well.
    pub status: Option<u16>,
    pub said: Said,
    pub retry_after_ms: Option<u64>,
}

const TOO_LONG: [&str; 9] = [
    "context length",
    "context window",
    "context size",
    "prompt is too long",
    "input token count",
    "input is too long",
    "maximum number of tokens",
    "exceed context limit",
    "reduce the length",
];
const NO_QUOTA: [&str; 5] =
    ["current quota", "credit balance", "billing hard limit", "spend limit", "insufficient funds"];
const BUSY: [&str; 4] = ["overloaded", "rate limit", "slow_down", "try again"];

pub fn failure(error: Error<'_>) -> Failure {
    let Error { provider, model, status, said, retry_after_ms } = error;
    let code = said.code.to_lowercase();
    let text = said.message.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word) || code.contains(word));
    let words = words(&said);
    let told = match status {
        Some(status) => format!("{status}{words}"),
        None => words.trim_start_matches(": ").to_owned(),
    };

    let malformed = matches!(status, None | Some(400 | 413 | 422));
    if code.contains("context_length") || malformed && has(&TOO_LONG) {
        let message = format!("The conversation is too long for {model} ({told})");
        return Failure::new(Heal::Shorter, TOO_LONG_CODE, message);
    }
    if code.contains("invalid_encrypted_content") {
        // Another key or organisation: what was thought cannot be read any more. A summary can.
        let message = format!("{model} cannot read its earlier reasoning ({told})");
        return Failure::new(Heal::Shorter, TOO_LONG_CODE, message);
    }
    // A rate limit's sentence may name the page of bills too.
    let limited = code.contains("rate_limit");
    let no_quota = code.contains("quota") || code.contains("billing");
    if status == Some(402) || no_quota || !limited && has(&NO_QUOTA) {
        let message =
            format!("{provider} says that the quota is used up; check plan and billing ({told})");
        return Failure::new(Heal::Never, "insufficient_quota", message);
    }
    if matches!(&*code, "content_filter" | "invalid_prompt") || code.contains("safety") {
        let message = format!("{provider} refused the request ({told})");
        return Failure::new(Heal::Never, "refused", message);
    }
    let later = Heal::Later { after_ms: retry_after_ms.or_else(|| asked_ms(&said.message)) };
    match status {
        Some(429) => {
            let message = format!("{provider} is rate limiting {model} ({told})");
            Failure::new(later, "rate_limited", message)
        }
        Some(401 | 403) => {
            let message = format!("{provider} did not accept the key ({told})");
            Failure::new(Heal::Never, "unauthorized", message)
        }
        Some(404) => {
            let message = format!("{provider} does not know {model}, or not at this URL ({told})");
            Failure::new(Heal::Never, "not_found", message)
        }
        Some(300..=399) => {
            let message = format!("{provider} redirects elsewhere, which is not followed ({told})");
            Failure::new(Heal::Never, "redirected", message)
        }
        Some(407) => {
            let message = format!("The proxy wants to know who asks ({told})");
            Failure::new(later, "proxy", message)
        }
        Some(408 | 409 | 425 | 500..=599) => {
            let message = format!("{provider} has trouble ({told})");
            Failure::new(later, "provider_error", message)
        }
        Some(_) => {
            let message = format!("{provider} did not accept the request ({told})");
            Failure::new(Heal::Never, "invalid_request", message)
        }
        None if code.contains("rate_limit") || code.contains("exhausted") => {
            let message = format!("{provider} is rate limiting {model} ({told})");
            Failure::new(later, "rate_limited", message)
        }
        None if code.contains("invalid") || code.contains("authentication") => {
            let message = format!("{provider} did not accept the request ({told})");
            Failure::new(Heal::Never, "invalid_request", message)
        }
        None if code.contains("overloaded") || has(&BUSY) => {
            let message = format!("{provider} is overloaded ({told})");
            Failure::new(later, "overloaded", message)
        }
        None => Failure::new(later, "provider_error", format!("{provider} has trouble ({told})")),
    }
}

/// `: word: sentence`, as much of it as there is.
fn words(said: &Said) -> String {
    let line: String = said
        .message
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(SAID_CHARS_MAX)
        .filter(|c| !c.is_control())
        .collect();
    match (said.code.trim(), &*line) {
        ("", "") => String::new(),
        ("", line) => format!(": {line}"),
        (code, "") => format!(": {code}"),
        (code, line) => format!(": {code}: {line}"),
    }
}

/// The time in "try again in 11.054s" or "retry after 20 seconds".
fn asked_ms(message: &str) -> Option<u64> {
    let lower = message.to_lowercase();
    let behind = ["again in ", "retry in ", "retry after "].iter().find_map(|lead| {
        lower.find(lead).map(|at| lower[at + lead.len()..].trim_start().to_owned())
    })?;
    let number: String = behind.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let amount: f64 = number.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0)?;
    let unit = behind[number.len()..].trim_start();
    let ms = match unit {
        _ if unit.starts_with("ms") || unit.starts_with("milli") => amount,
        _ if unit.starts_with('s') => amount * 1_000.0,
        _ if unit.starts_with('m') => amount * 60_000.0,
        _ if unit.starts_with('h') => amount * 3_600_000.0,
        _ => return None,
    };
    // Rounded up: too early is refused again.
    Some(ms.ceil() as u64)
}

#[cfg(test)]
mod tests;
