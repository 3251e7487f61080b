//! Keeps a long text from standing twice: the second place refers to the first, and a very long
//! text moves to a file of its own.
//!
//! A pointer is a JSON pointer into `message_data`, or with a leading `@` into the event itself; a
//! `#` steps into a text that is JSON itself.

use polyloop_session::Seq;
use serde_json::{Value, json};

use super::{Blob, TEXT_IN_LINE_BYTES_MAX};

/// Shorter texts are cheaper to repeat than to refer to.
const REFERRED_BYTES_MIN: usize = 128;

/// Replaces texts of the event that stand in the message, or earlier in the event.
pub(super) fn shorten(event: &mut Value, data: &Value) {
    // Most events have no long text, and whatever stands in the message changes nothing then.
    if !has_long_text(event) {
        return;
    }
    let mut known = Vec::new();
    collect(data, "", &mut known);
    let inside = event.clone();
    let mut own = Vec::new();
    collect(&inside, "@", &mut own);
    replace(event, "@", &known, &own);
}

fn has_long_text(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() >= REFERRED_BYTES_MIN,
        Value::Array(items) => items.iter().any(has_long_text),
        Value::Object(fields) => fields.values().any(has_long_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn collect(value: &Value, at: &str, known: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) if text.len() >= REFERRED_BYTES_MIN => {
            if text.starts_with('{')
                && let Ok(inner) = serde_json::from_str::<Value>(text)
            {
                collect(&inner, &format!("{at}#"), known);
            }
            known.push((text.clone(), at.to_string()));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &format!("{at}/{index}"), known);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                // A name with a pointer's own signs in it cannot be pointed to.
                if !name.contains(['/', '~', '#']) {
                    collect(field, &format!("{at}/{name}"), known);
                }
            }
        }
        _ => {}
    }
}

fn replace(value: &mut Value, at: &str, known: &[(String, String)], own: &[(String, String)]) {
    match value {
        Value::String(text) if text.len() >= REFERRED_BYTES_MIN => {
            let in_data = known.iter().find(|(other, _)| other == text);
            // Only what stands before this place is kept, so only that can be referred to.
            let mut before = own.iter().take_while(|(_, place)| place != at);
            let found = in_data.or_else(|| before.find(|(other, _)| other == text));
            if let Some((_, place)) = found {
                *value = json!({"$in": place});
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                replace(item, &format!("{at}/{index}"), known, own);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                replace(field, &format!("{at}/{name}"), known, own);
            }
        }
        _ => {}
    }
}

/// Puts the texts back that `shorten` took out.
pub(super) fn lengthen(event: &mut Value, data: &Value) {
    let shortened = event.clone();
    fill(event, data, &shortened);
}

fn fill(value: &mut Value, data: &Value, event: &Value) {
    let place = value.as_object().filter(|o| o.len() == 1).and_then(|o| o.get("$in"));
    if let Some(place) = place.and_then(Value::as_str) {
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
    let (root, place) = match place.strip_prefix('@') {
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
            *value = json!({"$blob": name, "bytes": bytes});
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
    Some((fields.get("$blob")?.as_str()?, fields.get("bytes")?))
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
