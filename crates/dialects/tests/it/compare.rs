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
        looks_like_an_id(got)?;
        if let Some(name) = named(want) {
            let known = self.named.entry(name.to_string()).or_insert_with(|| got.to_string());
            ensure!(known == got, "${name} was {known} before, now {got}");
            return Ok(());
        }
        ensure!(self.met.insert(got.to_string()), "the id {got} stands twice");
        ensure!(!self.named.values().any(|id| id == got), "{got} is a named id");
        Ok(())
    }

    /// Puts ids in the place of their names, anywhere in a frame.
    pub fn fill(&self, frame: &mut Value) -> Result<(), String> {
        match frame {
            Value::String(text) => {
                if let Some(name) = named(text) {
                    *text = self.get(name).ok_or(format!("nothing was called ${name}"))?.into();
                }
                Ok(())
            }
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.fill(item)),
            Value::Object(fields) => fields.values_mut().try_for_each(|field| self.fill(field)),
            _ => Ok(()),
        }
    }
}

/// The name in `$name`.
fn named(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

/// A UUID, perhaps with a word before it.
fn looks_like_an_id(id: &str) -> Result<(), String> {
    let uuid = id.strip_prefix("evt-").or(id.strip_prefix("run-")).unwrap_or(id);
    let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
    let hex = uuid.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    ensure!(hex && lengths == [8, 4, 4, 4, 12], "{id} does not look like an id");
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
    opened(&mut want);
    opened(&mut got);
    same_ids(&mut want, &got, ids)?;
    ensure!(want == got, "not the same\n  wanted {want}\n  got    {got}");
    Ok(())
}

/// Wherever the fixture has `*` or a name, there is an id that fits.
fn same_ids(want: &mut Value, got: &Value, ids: &mut Ids) -> Result<(), String> {
    match (want, got) {
        (Value::String(want), Value::String(got)) if want == "*" || named(want).is_some() => {
            ids.is(want, got)?;
            *want = got.clone();
            Ok(())
        }
        (Value::Array(want), Value::Array(got)) => {
            want.iter_mut().zip(got).try_for_each(|(want, got)| same_ids(want, got, ids))
        }
        (Value::Object(want), Value::Object(got)) => want
            .iter_mut()
            .filter_map(|(name, want)| got.get(name).map(|got| (want, got)))
            .try_for_each(|(want, got)| same_ids(want, got, ids)),
        _ => Ok(()),
    }
}

/// Puts what a text of JSON holds in the text's place, where a protocol has such texts.
pub fn opened(frame: &mut Value) {
    for place in ["/payload/arguments", "/payload/output", "/tool_args"] {
        let Some(text) = frame.pointer_mut(place) else { continue };
        if let Some(Ok(held)) = text.as_str().map(serde_json::from_str::<Value>) {
            *text = held;
        }
    }
}
