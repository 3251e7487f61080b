//! Keeps a long text from standing twice: the second place refers to the first, and a very long
//! text moves to a file of its own.
//!
//! A pointer is a JSON pointer into `message_data`, or with a leading `@` into the event itself; a
//! `#` steps into a text that is JSON itself.

use std::fmt::Write;

use polyloop_session::Seq;
use serde_json::{Value, json};

use super::{Blob, TEXT_IN_LINE_BYTES_MAX};

/// Refers to the same text elsewhere.
pub(super) const IN: &str = "$in";
/// Names the file that a text stands in.
pub(super) const BLOB: &str = "$blob";
/// How a pointer into the event itself begins.
const OWN: &str = "@";

/// Shorter texts are cheaper to repeat than to refer to.
const REFERRED_BYTES_MIN: usize = 128;

/// Replaces texts of the event that stand in the message, or earlier in the event.
pub(super) fn shorten(event: &mut Value, data: &Value) {
    if !holds_long(event) {
        return;
    }
    let (mut known, mut own) = (Vec::new(), Vec::new());
    collect(data, &mut String::new(), &mut known);
    collect(event, &mut OWN.to_string(), &mut own);
    replace(event, &mut OWN.to_string(), &known, &own);
}

/// Whether a JSON text has such a long string in it, or one that might be.
pub(super) fn holds_long_text(json: &str) -> bool {
    let (mut begun, mut escaped) = (None, false);
    for (at, byte) in json.bytes().enumerate() {
        match (byte, begun) {
            _ if escaped => escaped = false,
            (b'\\', _) => escaped = true,
            (b'"', Some(begun)) if at - begun > REFERRED_BYTES_MIN => return true,
            (b'"', Some(_)) => begun = None,
            (b'"', None) => begun = Some(at),
            _ => {}
        }
    }
    false
}

/// Whether there is anything to shorten; in most events there is not.
fn holds_long(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() >= REFERRED_BYTES_MIN,
        Value::Array(items) => items.iter().any(holds_long),
        Value::Object(fields) => fields.values().any(holds_long),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Goes one step further into a value; the place is as before when that is done.
fn inside(at: &mut String, step: std::fmt::Arguments<'_>, go: impl FnOnce(&mut String)) {
    let before = at.len();
    let _ = at.write_fmt(step);
    go(at);
    at.truncate(before);
}

fn collect(value: &Value, at: &mut String, known: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) if text.len() >= REFERRED_BYTES_MIN => {
            if text.starts_with('{')
                && let Ok(inner) = serde_json::from_str::<Value>(text)
            {
                inside(at, format_args!("#"), |at| collect(&inner, at, known));
            }
            known.push((text.clone(), at.clone()));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                inside(at, format_args!("/{index}"), |at| collect(item, at, known));
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                // A name with a pointer's own signs in it cannot be pointed to.
                if !name.contains(['/', '~', '#']) {
                    inside(at, format_args!("/{name}"), |at| collect(field, at, known));
                }
            }
        }
        _ => {}
    }
}

fn replace(
    value: &mut Value,
    at: &mut String,
    known: &[(String, String)],
    own: &[(String, String)],
) {
    match value {
        Value::String(text) if text.len() >= REFERRED_BYTES_MIN => {
            let in_data = known.iter().find(|(other, _)| other == text);
            // Only what stands before this place is kept, so only that can be referred to.
            let mut before = own.iter().take_while(|(_, place)| place != at);
            let found = in_data.or_else(|| before.find(|(other, _)| other == text));
            if let Some((_, place)) = found {
                *value = json!({IN: place});
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                inside(at, format_args!("/{index}"), |at| replace(item, at, known, own));
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                inside(at, format_args!("/{name}"), |at| replace(field, at, known, own));
            }
        }
        _ => {}
    }
}

/// Puts the texts back that `shorten` took out.
pub(super) fn lengthen(event: &mut Value, data: &Value) {
    // What it refers to in itself must be found where it stood.
    let shortened = if refers_to_itself(event) { event.clone() } else { Value::Null };
    fill(event, data, &shortened);
}

/// Where a shortened text stands.
fn place_of(value: &Value) -> Option<&str> {
    value.as_object().filter(|fields| fields.len() == 1)?.get(IN)?.as_str()
}

fn refers_to_itself(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(refers_to_itself),
        Value::Object(fields) => {
            place_of(value).is_some_and(|place| place.starts_with(OWN))
                || fields.values().any(refers_to_itself)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn fill(value: &mut Value, data: &Value, event: &Value) {
    if let Some(place) = place_of(value) {
        if let Some(text) = look(place, data, event) {
            *value = Value::String(text);
        }
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, data, event)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill(field, data, event)),
        _ => {}
    }
}

fn look(place: &str, data: &Value, event: &Value) -> Option<String> {
    let (root, place) = match place.strip_prefix(OWN) {
        Some(place) => (event, place),
        None => (data, place),
    };
    let mut steps = place.split('#');
    let mut found = root.pointer(steps.next()?)?.as_str()?.to_string();
    for inner in steps {
        let parsed: Value = serde_json::from_str(&found).ok()?;
        found = parsed.pointer(inner)?.as_str()?.to_string();
    }
    Some(found)
}

/// Moves very long texts out.
pub(super) fn extract(value: &mut Value, seq: Seq, blobs: &mut Vec<Blob>) {
    match value {
        Value::String(text) if text.len() > TEXT_IN_LINE_BYTES_MAX => {
            let bytes = text.len();
            // A patch stands twice in the message that asks about it; it is stored once.
            let name = match blobs.iter().find(|blob| blob.text == *text) {
                Some(known) => known.name.clone(),
                None => {
                    let name = format!("{seq}-{}", blobs.len());
                    blobs.push(Blob { name: name.clone(), text: std::mem::take(text) });
                    name
                }
            };
            *value = json!({BLOB: name, "bytes": bytes});
        }
        Value::Array(items) => items.iter_mut().for_each(|item| extract(item, seq, blobs)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| extract(field, seq, blobs));
        }
        _ => {}
    }
}

/// The name of the file that a value stands for, and how long its text is.
fn blob_name(value: &Value) -> Option<(&str, &Value)> {
    let fields = value.as_object()?;
    Some((fields.get(BLOB)?.as_str()?, fields.get("bytes")?))
}

/// Puts very long texts back; false when one cannot be found, and the others are there.
pub(super) fn restore(value: &mut Value, blob: &dyn Fn(&str) -> Option<String>) -> bool {
    if let Some((name, _)) = blob_name(value) {
        let found = blob(name);
        let is_found = found.is_some();
        if let Some(text) = found {
            *value = Value::String(text);
        }
        return is_found;
    }
    let all = |found: bool, part: &mut Value| restore(part, blob) && found;
    match value {
        Value::Array(items) => items.iter_mut().fold(true, all),
        Value::Object(fields) => fields.values_mut().fold(true, all),
        _ => true,
    }
}

/// Says of texts that could not be put back that they are missing.
pub(super) fn tell_missing(value: &mut Value) {
    if let Some((name, bytes)) = blob_name(value) {
        let told = format!("[{bytes} bytes are missing here: the file {name:?} that held them]");
        *value = Value::String(told);
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(tell_missing),
        Value::Object(fields) => fields.values_mut().for_each(tell_missing),
        _ => {}
    }
}
