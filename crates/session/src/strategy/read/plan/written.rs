//! A plan as it stands in an answer: an object with nodes and edges, an array of nodes, nodes one
//! below the other, or a list of tasks.

use super::*;

pub struct Written {
    pub name: String,
    pub task: String,
    pub needs: Vec<String>,
    pub attempts: u32,
    pub refine: u32,
}

/// From one to another that needs it.
pub type Edges = Vec<(String, String)>;

type Graph = (Vec<Written>, Edges);

/// Graphs have this many names around them at most.
const WRAPPED_MAX: u32 = 2;

pub(super) fn written(text: &str, manner: Manner) -> Result<Graph, Text> {
    let (found, broken) = json::all(text);
    if let Some((graph, form)) = json::last(&found, |value| graph(value, broken, 0)) {
        let whole = matches!(form, Form::Strict | Form::Loose);
        return match whole || manner == Manner::Lenient {
            true => Ok(graph),
            false => Err("The answer ends before the plan does".into()),
        };
    }
    // What is left of a broken one is not all that was meant.
    let each = found.iter().filter(|found| !broken && found.form >= Form::Loose);
    let each = match manner {
        Manner::Strict => each.collect::<Vec<_>>(),
        Manner::Lenient => found.iter().collect(),
    };
    let each = each.into_iter().filter(|found| has_task(&found.value)).zip(1..);
    let each: Vec<Written> = each.filter_map(|(found, at)| node(&found.value, None, at)).collect();
    let nodes = if each.is_empty() { in_order(list(text)) } else { each };
    match nodes.is_empty() {
        true => Err("The answer holds no plan: neither JSON with \"nodes\" nor a list".into()),
        false => Ok((nodes, Vec::new())),
    }
}

/// A list is worked through in its order.
fn in_order(tasks: Vec<String>) -> Vec<Written> {
    let nodes = tasks.into_iter().zip(1..).map(|(task, count): (_, usize)| Written {
        name: format!("task_{count}"),
        task,
        needs: if count > 1 { vec![format!("task_{}", count - 1)] } else { Vec::new() },
        attempts: 1,
        refine: 0,
    });
    nodes.collect()
}

fn graph(value: &Value, broken: bool, wrapped: u32) -> Option<Graph> {
    let (nodes, edges) = match value {
        Value::Array(_) => {
            let words = value.as_array()?.iter().all(|one| !one.is_object());
            // It may be a part of something else.
            if words && broken {
                return None;
            }
            (value, Vec::new())
        }
        Value::Object(object) => {
            let names = ["nodes", "tasks", "subtasks", "sub_tasks", "steps", "plan", "graph"];
            let nodes = find(object, &names)?;
            if nodes.is_object() && wrapped < WRAPPED_MAX {
                let inner = graph(nodes, broken, wrapped + 1);
                if inner.is_some() {
                    return inner;
                }
            }
            (nodes, edges(find(object, &["edges", "dependencies", "links"])))
        }
        _ => return None,
    };
    let nodes: Vec<Written> = match nodes {
        Value::Array(nodes) => {
            nodes.iter().zip(1..).filter_map(|(one, count)| node(one, None, count)).collect()
        }
        // Names, with what they stand for.
        Value::Object(nodes) => {
            let nodes = nodes.iter().zip(1..);
            nodes.filter_map(|((name, one), count)| node(one, Some(name), count)).collect()
        }
        _ => return None,
    };
    (!nodes.is_empty()).then_some((nodes, edges))
}

const TASK_NAMES: [&str; 5] = ["task", "description", "text", "goal", "title"];

fn has_task(value: &Value) -> bool {
    value.as_object().is_some_and(|object| string(object, &TASK_NAMES).is_some())
}

fn node(value: &Value, named: Option<&str>, count: usize) -> Option<Written> {
    let numbered = || format!("task_{count}");
    let object = match value {
        Value::String(task) if !task.trim().is_empty() => {
            let (task, needs) = (task.trim().to_owned(), Vec::new());
            let name = named.map_or_else(numbered, name_of);
            return Some(Written { name, task, needs, attempts: 1, refine: 0 });
        }
        Value::Object(object) => object,
        _ => return None,
    };
    let id = ["id", "name"].iter().find_map(|name| plain(object.get(*name)?));
    let id = id.as_deref().or(named).map(name_of).filter(|name| !name.is_empty());
    let task = string(object, &TASK_NAMES).or_else(|| id.clone())?;
    let needs = ["needs", "depends_on", "dependencies", "deps", "after", "parents", "requires"];
    let needs = needed(find(object, &needs));
    let attempts = number(object, &["attempts", "samples", "candidates"]).unwrap_or(1);
    let refine = number(object, &["refine", "refinements", "improve"]).unwrap_or(0);
    Some(Written { name: id.unwrap_or_else(numbered), task, needs, attempts, refine })
}

/// As it is shown: short, on one line, and without the point that parts it from what it is in.
pub(super) fn name_of(text: &str) -> String {
    let plain = |c: char| match c {
        '.' => '_',
        c if c.is_control() => ' ',
        c => c,
    };
    let name: String = shortened_to(text.trim(), NAME_BYTES_MAX).chars().map(plain).collect();
    name.trim().to_owned()
}

fn number(object: &Map<String, Value>, names: &[&str]) -> Option<u32> {
    let number = match find(object, names)? {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().map(|n| n as u64))?,
        Value::String(text) => text.trim().parse::<u64>().ok()?,
        Value::Bool(wanted) => u64::from(*wanted),
        _ => return None,
    };
    Some(u32::try_from(number).unwrap_or(u32::MAX))
}

/// A name or a number.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The names of what is needed: in an array, or in one text with commas.
fn needed(value: Option<&Value>) -> Vec<String> {
    let one = |value: &Value| match value {
        Value::Object(object) => plain(find(object, &["id", "name", "task"])?),
        other => plain(other),
    };
    let names: Vec<String> = match value {
        Some(Value::Array(values)) => values.iter().filter_map(one).collect(),
        Some(Value::String(text)) => text.split(',').map(|name| name.trim().to_owned()).collect(),
        Some(value) => one(value).into_iter().collect(),
        None => Vec::new(),
    };
    let nothing = ["", "none", "null", "n/a", "-", "nothing"];
    let is_name = |name: &String| !nothing.contains(&name.to_lowercase().as_str());
    names.into_iter().filter(is_name).map(|name| name_of(&name)).collect()
}

/// Pairs `[from, to]` or `"from -> to"`, objects that say so, or what each needs by its name.
fn edges(value: Option<&Value>) -> Edges {
    let name = |value: &Value| plain(value).map(|name| name_of(&name));
    let edge = |edge: &Value| match edge {
        Value::Array(pair) => match pair.as_slice() {
            [from, to] => Some((name(from)?, name(to)?)),
            _ => None,
        },
        Value::String(text) => {
            let (from, to) = text.split_once("->").or_else(|| text.split_once('→'))?;
            Some((name_of(from), name_of(to)))
        }
        Value::Object(object) => {
            let from = find(object, &["from", "source"]).and_then(name)?;
            Some((from, find(object, &["to", "target"]).and_then(name)?))
        }
        _ => None,
    };
    match value {
        Some(Value::Array(edges)) => edges.iter().filter_map(edge).collect(),
        Some(Value::Object(needs)) => {
            let of = |(to, from): (&String, &Value)| {
                let to = name_of(to);
                needed(Some(from)).into_iter().map(move |from| (from, to.clone()))
            };
            needs.iter().flat_map(of).collect()
        }
        _ => Vec::new(),
    }
}
