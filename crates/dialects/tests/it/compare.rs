//! Compares a frame with what a fixture says of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Ids that fixtures name, and those that were met.
#[derive(Default)]
pub struct Ids {
    named: BTreeMap<String, String>,
    met: BTreeSet<String>,
}

impl Ids {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.named.get(name).map(String::as_str)
    }

    /// A new list of frames: ids must be unique in it, names keep their meaning.
    pub fn another_list(&mut self) {
        self.met.clear();
    }

    fn is(&mut self, want: &str, got: &str) -> Result<(), String> {
        if let Some(name) = want.strip_prefix('$') {
            looks_like_a_uuid(got)?;
            let known = self.named.entry(name.to_string()).or_insert_with(|| got.to_string());
            ensure!(known == got, "${name} was {known} before, now {got}");
            return Ok(());
        }
        if want == "*" {
            looks_like_a_uuid(got)?;
            ensure!(self.met.insert(got.to_string()), "the id {got} stands twice");
            ensure!(!self.named.values().any(|id| id == got), "{got} is a named id");
            return Ok(());
        }
        ensure!(want == got, "the id is {got}, not {want}");
        Ok(())
    }
}

fn looks_like_a_uuid(id: &str) -> Result<(), String> {
    let lengths: Vec<usize> = id.split('-').map(str::len).collect();
    let hex = id.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    ensure!(hex && lengths == [8, 4, 4, 4, 12], "{id} does not look like a UUID");
    Ok(())
}

/// Whether a list of frames is what the fixture says.
pub fn frames(want: &[Value], got: &[Value], ids: &mut Ids) -> Result<(), String> {
    ids.another_list();
    for (at, (want, got)) in want.iter().zip(got).enumerate() {
        frame(want, got, ids).map_err(|told| format!("frame {}: {told}", at + 1))?;
    }
    let (wanted, sent) = (want.len(), got.len());
    ensure!(wanted == sent, "{wanted} frames are wanted, {sent} came:\n{}", listed(got));
    Ok(())
}

fn listed(frames: &[Value]) -> String {
    frames.iter().map(|frame| format!("  {frame}\n")).collect()
}

pub fn frame(want: &Value, got: &Value, ids: &mut Ids) -> Result<(), String> {
    let (mut want, mut got) = (want.clone(), got.clone());
    if let (Some(wanted), Some(sent)) = (take_id(&mut want), take_id(&mut got)) {
        ids.is(&wanted, &sent)?;
    }
    opened(&mut want);
    opened(&mut got);
    ensure!(want == got, "not the same\n  wanted {want}\n  got    {got}");
    Ok(())
}

fn take_id(frame: &mut Value) -> Option<String> {
    let id = frame.as_object_mut()?.get_mut("id")?;
    match std::mem::replace(id, Value::Bool(true)) {
        Value::String(id) => Some(id),
        _ => None,
    }
}

/// Puts what a text of JSON holds in the text's place, where the protocol has such texts.
pub fn opened(frame: &mut Value) {
    for field in ["arguments", "output"] {
        let Some(text) = frame.pointer_mut(&format!("/payload/{field}")) else { continue };
        if let Some(Ok(held)) = text.as_str().map(serde_json::from_str::<Value>) {
            *text = held;
        }
    }
}
