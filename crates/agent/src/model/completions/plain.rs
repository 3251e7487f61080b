//! What nearly every event of an answer is: a piece of text and nothing else.
//!
//! Read in one pass, without a map of fields; and where it differs from the last one in its text
//! alone, by that. Whatever has anything more in it, in whatever form, is left to the decoder,
//! which reads everything.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::model::sse::Event;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plain<'a> {
    #[serde(borrow)]
    pub choices: [Choice<'a>; 1],
    #[serde(borrow, default)]
    pub model: Cow<'a, str>,
    #[serde(borrow, default)]
    object: Cow<'a, str>,
    #[serde(rename = "id", default)]
    _id: IgnoredAny,
    #[serde(rename = "created", default)]
    _created: IgnoredAny,
    #[serde(rename = "system_fingerprint", default)]
    _fingerprint: IgnoredAny,
    #[serde(rename = "service_tier", default)]
    _tier: IgnoredAny,
    #[serde(rename = "obfuscation", default)]
    _padding: IgnoredAny,
    /// Nothing but null is plain.
    #[serde(rename = "usage", default)]
    _usage: (),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    pub delta: Delta<'a>,
    #[serde(default)]
    index: u64,
    #[serde(rename = "finish_reason", default)]
    _finish: (),
    #[serde(rename = "logprobs", default)]
    _logprobs: (),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub content: Cow<'a, str>,
    #[serde(rename = "role", default)]
    _role: IgnoredAny,
    #[serde(rename = "refusal", default)]
    _refusal: (),
    #[serde(rename = "reasoning", default)]
    _reasoning: (),
    #[serde(rename = "reasoning_content", default)]
    _reasoning_content: (),
    #[serde(rename = "tool_calls", default)]
    _calls: (),
    #[serde(rename = "function_call", default)]
    _function: (),
}

impl Plain<'_> {
    pub(super) fn read(event: &Event) -> Option<Plain<'_>> {
        if !event.name.is_empty() {
            return None;
        }
        let plain: Plain<'_> = serde_json::from_slice(&event.data).ok()?;
        let is_first = plain.choices[0].index == 0;
        (is_first && plain.object != "error").then_some(plain)
    }
}

/// What stood around the text of the last plain event.
#[derive(Default)]
pub(super) struct Around {
    before: Vec<u8>,
    after: Vec<u8>,
}

/// More is not kept.
const AROUND_BYTES_MAX: usize = 2 * 1024;

impl Around {
    /// The text of an event that is the same around it.
    pub(super) fn text<'e>(&self, event: &'e Event) -> Option<&'e str> {
        if self.before.is_empty() || !event.name.is_empty() {
            return None;
        }
        let text = event.data.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        // Nothing in it ends the string, or stands for something else.
        let stands = |byte: &u8| *byte >= b' ' && !matches!(byte, b'"' | b'\\');
        std::str::from_utf8(text.iter().all(stands).then_some(text)?).ok()
    }

    pub(super) fn keep(&mut self, event: &Event, plain: &Plain<'_>) {
        self.before.clear();
        self.after.clear();
        let [Choice { delta: Delta { content: Cow::Borrowed(text), .. }, .. }] = &plain.choices
        else {
            return;
        };
        // It lies in the event's own bytes.
        let at = text.as_ptr().addr().wrapping_sub(event.data.as_ptr().addr());
        let found = event.data.split_at_checked(at);
        let Some((before, rest)) = found else { return };
        let Some(after) = rest.strip_prefix(text.as_bytes()) else { return };
        if before.len() + after.len() <= AROUND_BYTES_MAX {
            self.before.extend_from_slice(before);
            self.after.extend_from_slice(after);
        }
    }
}
