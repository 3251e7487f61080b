//! Reads what models write where they were asked for something definite: JSON with or without
//! fences and prose around it, numbered lists, words and numbers.
//!
//! Total and bounded. An error is one sentence that the model is told, so that it can do better.

use serde_json::{Map, Value};

use crate::event::{PlannedNode, Thought, Understanding};
use crate::id::Text;

mod plan;

pub(crate) use plan::lenient_plan;
pub use plan::{Plan, PlanBounds, plan};

/// Of one thought, task, name or constraint.
pub const TEXT_BYTES_MAX: usize = 4 * 1024;
/// Places in an answer at which JSON is looked for.
const STARTS_MAX: usize = 64;
const THOUSANDTHS: f64 = 1_000.0;

/// The core question: whatever was said, without what stands around it.
pub fn question(text: &str) -> Result<Understanding, Text> {
    let named = object(text)
        .and_then(|object| string(&object, &["question", "core_question", "goal", "core_goal"]));
    let goal = named.unwrap_or_else(|| unfenced(text).trim().to_owned());
    let goal = goal.strip_prefix("The core question is:").unwrap_or(&goal).trim();
    match goal {
        "" => Err("The answer holds no core question".into()),
        goal => Ok(Understanding::Question { goal: shortened(goal) }),
    }
}

pub fn information(text: &str) -> Result<Understanding, Text> {
    let Some(object) = object(text) else {
        let listed = list(text);
        if listed.is_empty() {
            return Err("The answer holds no JSON object".into());
        }
        let constraints = listed.iter().map(|one| shortened(one)).collect();
        return Ok(Understanding::Information { constraints, context: "".into() });
    };
    let constraints = ["constraints", "key_constraints", "conditions", "requirements"];
    let constraints = strings(find(&object, &constraints));
    let context = find(&object, &["context", "relevant_context", "information", "facts"]);
    let context = strings(context).join("\n");
    if constraints.is_empty() && context.is_empty() {
        return Err("The JSON object has neither \"constraints\" nor \"context\"".into());
    }
    let constraints = constraints.iter().map(|one| shortened(one)).collect();
    Ok(Understanding::Information { constraints, context: shortened(&context) })
}

/// Thoughts that may follow, no more than so many, none twice.
pub fn thoughts(text: &str, most: u32) -> Result<Vec<Thought>, Text> {
    let mut thoughts: Vec<Thought> = Vec::new();
    let found = match values(text) {
        Some(values) => values.iter().filter_map(thought).collect(),
        None => {
            let lines = list(text);
            lines.iter().map(|line| marked(line)).collect::<Vec<_>>()
        }
    };
    for one in found {
        let known = thoughts.iter().any(|known| known.text == one.text);
        if !one.text.is_empty() && !known && thoughts.len() < most as usize {
            thoughts.push(one);
        }
    }
    match thoughts.is_empty() {
        true => Err("The answer proposes no thoughts: neither a JSON array nor a list".into()),
        false => Ok(thoughts),
    }
}

/// An answer that proposes nothing, as it stands.
pub(crate) fn whole_thought(text: &str) -> Thought {
    let text = match text.trim() {
        "" => "(nothing)",
        text => text,
    };
    Thought { text: shortened(text), last: false }
}

/// An array of its own, or the first in an object.
fn values(text: &str) -> Option<Vec<Value>> {
    let of_object = |object: &Map<String, Value>| {
        let names = ["thoughts", "candidates", "proposals", "steps", "options", "next"];
        match find(object, &names) {
            Some(Value::Array(values)) => Some(values.clone()),
            _ => object.values().find_map(|value| value.as_array().cloned()),
        }
    };
    json(text, |value| match value {
        Value::Array(values) => {
            let usable = values.iter().all(|v| v.is_string() || v.is_object());
            (usable && !values.is_empty()).then_some(values)
        }
        Value::Object(object) => of_object(&object).filter(|values| !values.is_empty()),
        _ => None,
    })
}

fn thought(value: &Value) -> Option<Thought> {
    match value {
        Value::String(text) => Some(marked(text)),
        Value::Object(object) => {
            let text = string(object, &["thought", "text", "step", "content", "description"])?;
            let last = ["final", "last", "done", "is_final", "complete"];
            let last = find(object, &last).and_then(Value::as_bool).unwrap_or(false);
            let thought = marked(&text);
            Some(Thought { last: last || thought.last, ..thought })
        }
        _ => None,
    }
}

/// In a list, a last thought says so at its end.
fn marked(text: &str) -> Thought {
    let text = text.trim();
    let bare = ["(final)", "[final]", "(FINAL)", "[FINAL]"]
        .iter()
        .find_map(|mark| text.strip_suffix(mark).or_else(|| text.strip_prefix(mark)));
    Thought { text: shortened(bare.unwrap_or(text).trim()), last: bare.is_some() }
}

/// What something is worth, in thousandths.
pub fn value(text: &str) -> Result<u32, Text> {
    let named = object(text).and_then(|object| {
        let value = find(&object, &["value", "score", "rating", "probability"])?.clone();
        match value {
            Value::Number(number) => number.as_f64().and_then(|number| scaled(number, None)),
            Value::String(text) => worth(&text),
            _ => None,
        }
    });
    let found = named.or_else(|| worth(text));
    found.ok_or_else(|| "The answer holds no value: neither a word nor a number".into())
}

/// The last word or number that says it.
fn worth(text: &str) -> Option<u32> {
    let lower = unfenced(text).to_lowercase();
    let lines: Vec<&str> = lower.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // The verdict comes last, or stands alone on a line.
    lines.iter().rev().find_map(|line| word(line).or_else(|| number(line)))
}

fn word(line: &str) -> Option<u32> {
    let words = line.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    let mut found = None;
    let mut negated = false;
    for word in words {
        let value = match word {
            "sure" | "certain" | "solved" | "correct" | "excellent" => Some(1_000),
            "likely" | "promising" | "good" | "probable" => Some(if negated { 100 } else { 500 }),
            "possible" | "maybe" | "unsure" => Some(300),
            "unlikely" | "poor" | "weak" => Some(100),
            "impossible" | "wrong" | "incorrect" | "hopeless" => Some(0),
            _ => None,
        };
        let value = match (word, negated) {
            ("sure" | "certain", true) => Some(300),
            ("correct" | "possible" | "promising" | "good", true) => Some(0),
            _ => value,
        };
        found = value.or(found);
        negated = matches!(word, "not" | "no" | "never" | "isn" | "hardly");
    }
    found
}

/// `8/10`, `80%`, `0.8`, `8`: the last number of a line.
fn number(line: &str) -> Option<u32> {
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    let mut numbers: Vec<(f64, usize)> = Vec::new();
    let mut rest = line;
    let mut at = 0;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let tail = &rest[start..];
        let end = tail.find(|c: char| !digits(c)).unwrap_or(tail.len());
        let written = tail[..end].trim_end_matches('.');
        if let Ok(number) = written.parse::<f64>() {
            numbers.push((number, at + start + end));
        }
        at += start + end;
        rest = &tail[end..];
        if numbers.len() > STARTS_MAX {
            break;
        }
    }
    let (last, end) = *numbers.last()?;
    if line[end..].trim_start().starts_with('%') {
        return scaled(last, Some(100.0));
    }
    if let [.., (number, before), (of, _)] = numbers[..] {
        let between = line[before..end].trim_start();
        if between.starts_with('/') || between.starts_with("out of") {
            return scaled(number, Some(of));
        }
    }
    scaled(last, None)
}

fn scaled(number: f64, of: Option<f64>) -> Option<u32> {
    let of = of.unwrap_or(match number {
        n if n <= 1.0 => 1.0,
        n if n <= 10.0 => 10.0,
        n if n <= 100.0 => 100.0,
        _ => THOUSANDTHS,
    });
    if !number.is_finite() || number < 0.0 || of <= 0.0 || !of.is_finite() {
        return None;
    }
    // Between 0 and 1,000.
    Some((number / of * THOUSANDTHS).clamp(0.0, THOUSANDTHS).round() as u32)
}

/// Which of so many is the best, counted from 0; people count from 1.
pub fn vote(text: &str, of: usize) -> Result<usize, Text> {
    let none = || Text::from(format!("The answer names none of the {of} choices by its number"));
    let named = object(text).and_then(|object| {
        find(&object, &["best", "choice", "vote", "chosen"]).and_then(Value::as_u64)
    });
    let lower = unfenced(text).to_lowercase();
    let lines = lower.lines().rev().filter(|line| !line.trim().is_empty());
    let last = |line: &str| {
        let numbers = line.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        numbers.filter_map(|part| part.parse::<u64>().ok()).next_back()
    };
    let said = named.or_else(|| lines.into_iter().find_map(last)).ok_or_else(none)?;
    let at = usize::try_from(said).ok().and_then(|said| said.checked_sub(1));
    at.filter(|at| *at < of).ok_or_else(none)
}

/// Whether a sub-task is too much for one.
pub fn complex(text: &str) -> Result<bool, Text> {
    let named = object(text).and_then(|object| {
        match find(&object, &["complex", "complexity", "answer", "verdict"])? {
            Value::Bool(complex) => Some(*complex),
            Value::String(word) => simple_or_complex(word),
            _ => None,
        }
    });
    let found = named.or_else(|| simple_or_complex(text));
    found.ok_or_else(|| "The answer says neither \"simple\" nor \"complex\"".into())
}

fn simple_or_complex(text: &str) -> Option<bool> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphabetic());
    let said = words.filter_map(|word| match word {
        "simple" => Some(false),
        "complex" => Some(true),
        _ => None,
    });
    said.into_iter().next_back()
}

/// The first value in a text that is wanted. A comma too many is forgiven.
fn json<T>(text: &str, wanted: impl Fn(Value) -> Option<T>) -> Option<T> {
    let starts = text.char_indices().filter(|(_, c)| matches!(c, '{' | '['));
    let mut skip_to = 0;
    for (start, _) in starts.take(STARTS_MAX) {
        if start < skip_to {
            continue;
        }
        let tail = &text[start..];
        let whole = extent(tail);
        let parsed = serde_json::from_str::<Value>(whole)
            .or_else(|_| serde_json::from_str::<Value>(&without_spare_commas(whole)));
        if let Ok(value) = parsed {
            if let Some(found) = wanted(value) {
                return Some(found);
            }
            skip_to = start + whole.len();
        }
    }
    None
}

/// Up to the bracket that closes the first one.
fn extent(text: &str) -> &str {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return &text[..at + 1];
                }
            }
            _ => {}
        }
    }
    text
}

fn without_spare_commas(json: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::with_capacity(json.len()), false, false);
    for c in json.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '}' | ']' if !quoted => {
                let kept = out.trim_end();
                if kept.ends_with(',') {
                    out.truncate(kept.len() - 1);
                }
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

fn object(text: &str) -> Option<Map<String, Value>> {
    json(text, |value| match value {
        Value::Object(object) => Some(object),
        _ => None,
    })
}

fn find<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| object.get(*name))
}

fn string(object: &Map<String, Value>, names: &[&str]) -> Option<String> {
    let text = find(object, names)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A text, or the texts of an array; other values as they are written.
fn strings(value: Option<&Value>) -> Vec<String> {
    let one = |value: &Value| match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let all = match value {
        Some(Value::Array(values)) => values.iter().map(one).collect(),
        Some(value) => vec![one(value)],
        None => Vec::new(),
    };
    all.into_iter().filter(|text| !text.is_empty()).collect()
}

/// The entries of a numbered or dashed list, each with the lines that go on with it.
pub(crate) fn list(text: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            continue;
        }
        match entry(line) {
            Some(entry) => entries.push(entry.to_owned()),
            None if line.trim().is_empty() => {}
            // Only what is set in goes on with what is above.
            None if line.starts_with([' ', '\t']) => {
                if let Some(last) = entries.last_mut() {
                    last.push(' ');
                    last.push_str(line.trim());
                }
            }
            None => {}
        }
    }
    entries.retain(|entry| !entry.trim().is_empty());
    entries
}

/// What stands behind `1.`, `1)`, `(1)`, `-`, `*`, `•` or a word and a number with a colon.
fn entry(line: &str) -> Option<&str> {
    let line = line.trim().trim_start_matches("**");
    if let Some(rest) = line.strip_prefix(['-', '*', '•']) {
        return rest.starts_with([' ', '\t']).then(|| rest.trim());
    }
    let numbered = line.strip_prefix('(').unwrap_or(line);
    let digits = numbered.len() - numbered.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if (1..=3).contains(&digits) {
        let rest = &numbered[digits..];
        let rest = rest.strip_prefix(['.', ')', ':'])?;
        // `1.5` and `10:30` are no numbers of a list.
        let rest = rest.trim_start_matches("**");
        return (!rest.starts_with(|c: char| c.is_ascii_digit())).then(|| rest.trim());
    }
    let (name, rest) = line.split_once(':')?;
    let (word, number) = name.trim_end_matches("**").split_once(' ')?;
    let kinds = ["candidate", "thought", "option", "step", "proposal", "choice"];
    let named = kinds.contains(&word.to_lowercase().as_str());
    let numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (named && numbered).then(|| rest.trim_start_matches("**").trim())
}

/// Without the fence around it, if there is one.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return text;
    };
    inner.split_once('\n').map_or(inner, |(_, inner)| inner).trim()
}

/// Cut at a character's end.
fn shortened(text: &str) -> Text {
    if text.len() <= TEXT_BYTES_MAX {
        return text.into();
    }
    let mut end = TEXT_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end]).into()
}

#[cfg(test)]
mod tests;
