//! What the tools of memories share: keys, what people are told, and JSON that fits an answer.

use polyloop_session::Text;
use polyloop_session::policy::{Effect, Judgement};
use polyloop_session::shown::visible;

use super::TEXT_BYTES_MAX;
use super::files::Args;
use super::todo_write::own;
use crate::memories::KEY_BYTES_MAX;

pub(super) const KEY_HELP: &str = "The memory's name, as short and plain as a file's.";

/// Room for the notes at the end.
const NOTES_BYTES: usize = 512;

pub(super) fn key(args: &Args, tool: &'static str) -> Result<String, Text> {
    let key = args.required(&["key"], "the memory's name")?;
    match key.len() {
        _ if key.trim().is_empty() => Err(format!("{tool}: `key` is blank").into()),
        bytes if bytes > KEY_BYTES_MAX => {
            Err(format!("{tool}: `key` has {bytes} bytes, the limit is {KEY_BYTES_MAX}").into())
        }
        _ => Ok(key),
    }
}

/// The judgement of a call that reads memories.
pub(super) fn reads(tool: &'static str, reason: &str, about: &[&str]) -> Judgement {
    let about = about.iter().map(|text| Text::from(*text));
    let command = std::iter::once(tool.into()).chain(about).collect();
    Judgement { command, ..own(tool, Effect::Read, reason) }
}

/// A key in a sentence.
pub(super) fn named(key: &str) -> String {
    visible(&format!("{key:?}"))
}

/// The values as a JSON list, and how many of them it holds.
pub(super) fn list(values: impl IntoIterator<Item = String>) -> (String, usize) {
    let (mut text, mut count) = ("[".to_owned(), 0);
    for value in values {
        if text.len() + value.len() + NOTES_BYTES > TEXT_BYTES_MAX {
            break;
        }
        if count > 0 {
            text.push_str(",\n ");
        }
        text.push_str(&value);
        count += 1;
    }
    text.push_str("]\n");
    (text, count)
}

/// Any value as JSON.
pub(super) fn json(value: impl serde::Serialize) -> String {
    serde_json::to_string(&value).unwrap_or_default()
}
