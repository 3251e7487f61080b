//! Reads what models write where they were asked for something definite: JSON with or without
//! fences and prose around it, lists, words and numbers.
//!
//! Total and bounded, and linear in the text. An error is one sentence that the model is told, so
//! that it can do better.

use serde_json::{Map, Value};

use crate::event::{PlannedNode, Thought, Understanding};
use crate::id::Text;

mod json;
mod list;
mod plan;
mod words;

use json::Form;
use list::list;
pub(crate) use plan::lenient_plan;
pub use plan::{NAME_BYTES_MAX, Plan, PlanBounds, plan};

/// Of one thought, task or constraint.
pub const TEXT_BYTES_MAX: usize = 4 * 1024;
/// What must hold, in one problem.
pub const CONSTRAINTS_MAX: usize = 64;
/// Where some models end what they say to themselves.
const THOUGHT_END: &str = "</think>";

/// The core question: whatever was said, without what stands around it.
pub fn question(text: &str) -> Result<Understanding, Text> {
    let text = said(text);
    let names = ["question", "core_question", "goal", "core_goal"];
    let named = json::last(&json::all(text).0, |value| string(value.as_object()?, &names));
    let goal = match &named {
        Some((goal, _)) => goal,
        None => unfenced(text),
    };
    let goal = unlabelled(goal);
    match goal {
        "" => Err("The answer holds no core question".into()),
        goal => Ok(Understanding::Question { goal: shortened(goal) }),
    }
}

/// Without `**The core question is:**` before it.
fn unlabelled(goal: &str) -> &str {
    let is_mark = |c: char| c.is_whitespace() || matches!(c, '*' | '#' | ':' | '_');
    let begins = |text: &str, word: &str| {
        text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    let mut rest = goal.trim_start_matches(is_mark);
    if begins(rest, "the ") {
        rest = &rest["the ".len()..];
    }
    if !begins(rest, "core question") {
        return goal.trim();
    }
    rest = &rest["core question".len()..];
    if begins(rest, " is") {
        rest = &rest[" is".len()..];
    }
    let bare = rest.trim_start_matches(is_mark);
    // Without a colon it is part of a sentence.
    let label = &rest[..rest.len() - bare.len()];
    if label.contains(':') { bare.trim() } else { goal.trim() }
}

pub fn information(text: &str) -> Result<Understanding, Text> {
    let text = said(text);
    let (found, _) = json::all(text);
    let parts = |object: &Map<String, Value>| {
        let constraints = ["constraints", "key_constraints", "conditions", "requirements"];
        let constraints = strings(find(object, &constraints));
        let context = find(object, &["context", "relevant_context", "information", "facts"]);
        let context = strings(context).join("\n");
        (!constraints.is_empty() || !context.is_empty()).then_some((constraints, context))
    };
    let (constraints, context) = match json::last(&found, |value| parts(value.as_object()?)) {
        Some((parts, _)) => parts,
        None if found.iter().any(|found| found.value.is_object()) => {
            return Err("The JSON object has neither \"constraints\" nor \"context\"".into());
        }
        None => match list(text) {
            listed if listed.is_empty() => return Err("The answer holds no JSON object".into()),
            listed => (listed, String::new()),
        },
    };
    let constraints = constraints.iter().take(CONSTRAINTS_MAX).map(|one| shortened(one)).collect();
    Ok(Understanding::Information { constraints, context: shortened(&context) })
}

/// Thoughts that may follow, no more than so many, none twice. None at all where the answer says
/// so.
pub fn thoughts(text: &str, most: u32) -> Result<Vec<Thought>, Text> {
    let text = said(text);
    let (found, broken) = json::all(text);
    let found = match json::last(&found, |value| proposals(value, broken)) {
        Some((thoughts, Form::Strict | Form::Loose)) if thoughts.is_empty() => return Ok(thoughts),
        Some((thoughts, _)) => thoughts,
        None => {
            // Each by itself, one below the other.
            let each = found.iter().filter(|found| found.value.is_object());
            let each: Vec<Thought> = each.filter_map(|found| thought(&found.value)).collect();
            match each.is_empty() {
                true => list(text).iter().map(|line| marked(line)).collect(),
                false => each,
            }
        }
    };
    let mut thoughts: Vec<Thought> = Vec::new();
    for one in found {
        if thoughts.len() >= most as usize {
            break;
        }
        if !one.text.is_empty() && !thoughts.iter().any(|known| known.text == one.text) {
            thoughts.push(one);
        }
    }
    match thoughts.is_empty() {
        true => Err("The answer proposes no thoughts: neither a JSON array nor a list".into()),
        false => Ok(thoughts),
    }
}

/// An answer that proposes nothing, as it stands.
pub(crate) fn whole_thought(text: &str) -> Option<Thought> {
    let text = said(text).trim();
    (!text.is_empty()).then(|| Thought { text: shortened(text), last: false })
}

/// An array of its own, or the first in an object. In a broken text an array of words may be a
/// part of something else.
fn proposals(value: &Value, broken: bool) -> Option<Vec<Thought>> {
    let values = match value {
        Value::Array(values) if broken && !values.iter().any(Value::is_object) => return None,
        Value::Array(values) => values,
        Value::Object(object) => {
            let names = ["thoughts", "candidates", "proposals", "steps", "options", "next"];
            match find(object, &names) {
                Some(Value::Array(values)) => values,
                // One that has a name of its own is a thought, not some.
                _ if thought(value).is_some() => return None,
                _ => object.values().find_map(Value::as_array)?,
            }
        }
        _ => return None,
    };
    let thoughts: Vec<Thought> = values.iter().filter_map(thought).collect();
    (values.is_empty() || !thoughts.is_empty()).then_some(thoughts)
}

fn thought(value: &Value) -> Option<Thought> {
    match value {
        Value::String(text) => Some(marked(text)),
        Value::Object(object) => {
            let names = ["thought", "text", "step", "content", "description", "action", "idea"];
            let thought = marked(&string(object, &names)?);
            let last = ["final", "last", "done", "is_final", "complete"];
            let last = find(object, &last).and_then(truth).unwrap_or(false);
            Some(Thought { last: last || thought.last, ..thought })
        }
        _ => None,
    }
}

/// In a list, a last thought says so at its end, or before all.
fn marked(text: &str) -> Thought {
    let is_mark = |c: char| c.is_whitespace() || matches!(c, '*' | '.' | ':' | '_');
    let text = text.trim();
    let (head, tail) = (text.trim_start_matches(is_mark), text.trim_end_matches(is_mark));
    let bare = ["(final)", "[final]"].iter().find_map(|mark| {
        let is = |part: Option<&str>| part.is_some_and(|part| part.eq_ignore_ascii_case(mark));
        let end = tail.len().saturating_sub(mark.len());
        match () {
            () if is(tail.get(end..)) => Some(&tail[..end]),
            () if is(head.get(..mark.len())) => {
                Some(head[mark.len()..].trim_start_matches(is_mark))
            }
            () => None,
        }
    });
    Thought { text: shortened(bare.unwrap_or(text).trim()), last: bare.is_some() }
}

/// What something is worth, in thousandths.
pub fn value(text: &str) -> Result<u32, Text> {
    let text = said(text);
    let named = json::last(&json::all(text).0, |value| {
        let object = value.as_object()?;
        let part = ["probability", "confidence"];
        let names = ["value", "score", "rating", "probability", "confidence", "verdict"];
        match find(object, &names)? {
            Value::Number(number) => {
                let is_part = number.is_f64() || find(object, &part).is_some();
                words::scaled(number.as_f64()?.max(0.0), is_part)
            }
            Value::String(text) => words::worth(text),
            _ => None,
        }
    });
    let found = named.map(|(value, _)| value).or_else(|| words::worth(unfenced(text)));
    found.ok_or_else(|| "The answer holds no value: neither a word nor a number".into())
}

/// Which of so many is the best, counted from 0; people count from 1.
pub fn vote(text: &str, of: usize) -> Result<usize, Text> {
    let text = said(text);
    let none = || Text::from(format!("The answer names none of the {of} choices by its number"));
    let named = json::last(&json::all(text).0, |value| {
        match find(value.as_object()?, &["best", "choice", "vote", "chosen", "best_choice"])? {
            Value::Number(number) => number.as_u64().and_then(|said| usize::try_from(said).ok()),
            Value::String(text) => words::choice(text, of),
            _ => None,
        }
    });
    let said = match named {
        Some((said, _)) => Some(said),
        None => words::choice(unfenced(text), of),
    };
    said.and_then(|said| said.checked_sub(1)).filter(|at| *at < of).ok_or_else(none)
}

/// Whether a sub-task is too much for one.
pub fn complex(text: &str) -> Result<bool, Text> {
    let text = said(text);
    let named = json::last(&json::all(text).0, |value| {
        let object = value.as_object()?;
        match find(object, &["complex", "is_complex"]) {
            Some(complex) => truth(complex),
            None => {
                let word = string(object, &["complexity", "answer", "verdict"])?;
                words::complex(&word)
            }
        }
    });
    let found = named.map(|(complex, _)| complex).or_else(|| words::complex(unfenced(text)));
    found.ok_or_else(|| "The answer says neither \"simple\" nor \"complex\"".into())
}

fn find<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| object.get(*name))
}

/// The first of these that is a text.
fn string(object: &Map<String, Value>, names: &[&str]) -> Option<String> {
    let texts = names.iter().filter_map(|name| object.get(*name)?.as_str());
    texts.map(str::trim).find(|text| !text.is_empty()).map(str::to_owned)
}

fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" => Some(true),
            "false" | "no" => Some(false),
            word => words::complex(word),
        },
        _ => None,
    }
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

/// What was said, behind what was thought.
fn said(text: &str) -> &str {
    text.rfind(THOUGHT_END).map_or(text, |at| &text[at + THOUGHT_END.len()..])
}

/// Without the fence around it, if there is one.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return text;
    };
    inner.split_once('\n').map_or(inner, |(_, inner)| inner).trim()
}

fn shortened(text: &str) -> Text {
    shortened_to(text, TEXT_BYTES_MAX)
}

/// Cut at a character's end.
fn shortened_to(text: &str, bytes_max: usize) -> Text {
    if text.len() <= bytes_max {
        return text.into();
    }
    format!("{}…", &text[..text.floor_char_boundary(bytes_max)]).into()
}

#[cfg(test)]
mod tests;
