//! Client frames into asks. Total: whatever comes in, an ask or a complaint comes out.
//!
//! Clients of this dialect are shown one text, so a complaint's `message` and `error` are the same.

use polyloop_session::command::Send;
use polyloop_session::event::Origin;
use polyloop_session::item::Part;
use polyloop_session::state::estimate_tokens;
use polyloop_session::{Command, Delivery, SessionId};
use serde_json::Value;

use super::wire::{CHAT, Chat};
use crate::{Ask, Asked, Client, Complaint, bounded};

/// What says yes to a plan, in lower case and without punctuation at its end. Anything else is
/// feedback, so a word belongs here only if it can mean nothing but consent.
const CONSENTS: &[&str] =
    &["yes", "y", "ok", "okay", "approve", "approved", "go ahead", "go", "sure", "proceed"];

pub(super) fn decode(frame: &str, client: &Client) -> Result<Asked, Complaint> {
    let frame: Value = serde_json::from_str(frame)
        .map_err(|error| complaint(format!("Invalid JSON: {error}"), "bad_message"))?;
    let Value::Object(fields) = &frame else {
        let told = "Invalid JSON: a message is an object with a `type`".to_string();
        return Err(complaint(told, "bad_message"));
    };
    match fields.get("type") {
        Some(Value::String(kind)) if kind == CHAT => {}
        other => {
            let kind = match other {
                Some(Value::String(kind)) => kind.clone(),
                Some(value) => value.to_string(),
                None => "None".to_string(),
            };
            return Err(complaint(format!("Unknown message type: {kind}"), "unknown_type"));
        }
    }
    if !matches!(fields.get("message"), Some(Value::String(_))) {
        return Err(complaint("Field 'message' must be a string".into(), "bad_message"));
    }
    // Only one field is left that can be wrong.
    let Chat { message, session_id } = serde_json::from_value(frame).map_err(|_| {
        complaint("Field 'session_id' must be a string or null".into(), "bad_session_id")
    })?;
    let message = message.trim();
    if message.is_empty() {
        return Err(complaint("Empty message received".into(), "empty_message"));
    }
    let session = match session_id.as_deref().map(str::trim) {
        None | Some("") => None,
        Some(id) => Some(SessionId::parse(id).map_err(|bad| {
            complaint(format!("Field 'session_id' is not valid. {bad}"), "bad_session_id")
        })?),
    };
    Ok(Asked::new(session, Ask::Command(Command::Send(Box::new(send(message, client))))))
}

fn send(message: &str, client: &Client) -> Send {
    Send {
        content: vec![Part::Text { text: message.into() }],
        origin: Origin { who: client.who.clone(), can_approve: false, can_answer: true },
        client_ref: None,
        delivery: Delivery::Answer { consents: consents(message) },
        tokens: estimate_tokens(message.len()),
        run: None,
    }
}

/// Whether a message says yes to a plan that it answers.
fn consents(message: &str) -> bool {
    // Not a question mark: that asks.
    let plain = message.trim_end_matches(|c: char| ".!,;:…)".contains(c) || c.is_whitespace());
    let words: Vec<String> = plain.split_whitespace().map(str::to_lowercase).collect();
    CONSENTS.contains(&words.join(" ").as_str())
}

fn complaint(text: String, code: &str) -> Complaint {
    let text = bounded(text);
    Complaint::new(&text, text.clone(), code)
}

#[cfg(test)]
mod tests {
    use super::consents;

    #[test]
    fn what_says_yes() {
        for yes in ["yes", "Yes.", "OK!", "okay", "y", "Approve", "approved.", "GO  ahead!!", "go"]
        {
            assert!(consents(yes), "{yes}");
        }
        for no in
            ["", ".", "no", "yes but use tabs", "ok?? no", "go away", "approve nothing", "ok?"]
        {
            assert!(!consents(no), "{no}");
        }
    }
}
