//! A graph of sub-tasks as a model writes it, made sound.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// What a plan may be at most.
#[derive(Clone, Copy, Debug)]
pub struct PlanBounds {
    pub nodes: u32,
    pub layers: u32,
    pub attempts: u32,
    pub refine: u32,
}

/// A sound plan, with what had to be changed for that.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub nodes: Vec<PlannedNode>,
    pub repaired: Vec<String>,
}

/// Whether what is wrong is told or repaired.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Strict,
    Lenient,
}

/// A plan with nothing wrong that could not be set right without a doubt.
pub fn plan(text: &str, bounds: PlanBounds) -> Result<Plan, Text> {
    sound(text, bounds, Manner::Strict)
}

/// The same for a model that was told once: whatever can be used is used.
pub(crate) fn lenient_plan(text: &str, bounds: PlanBounds) -> Result<Plan, Text> {
    sound(text, bounds, Manner::Lenient)
}

struct Written {
    name: String,
    task: String,
    needs: Vec<String>,
    attempts: u32,
    refine: u32,
}

fn sound(text: &str, bounds: PlanBounds, manner: Manner) -> Result<Plan, Text> {
    let (mut written, edges) = written(text)?;
    let mut repaired = Vec::new();
    let most = bounds.nodes as usize;
    if written.len() > most {
        if manner == Manner::Strict {
            let count = written.len();
            return Err(format!("The plan has {count} nodes; at most {most} are allowed").into());
        }
        repaired.push(format!("only the first {most} of {} nodes are kept", written.len()));
        written.truncate(most);
    }
    let names = unique(&mut written, &mut repaired);
    let mut needs = edges_of(&written, &edges, &names, &mut repaired);
    if let Some(cycle) = cycle(&needs) {
        let told = cycle.iter().map(|at| written[*at].name.as_str()).collect::<Vec<_>>();
        let told = told.join(" -> ");
        if manner == Manner::Strict {
            return Err(format!("The plan has a cycle: {told}").into());
        }
        repaired.push(format!("the cycle {told} was cut open"));
        // What is told later may need what was told before, and not the other way round.
        for (at, needs) in needs.iter_mut().enumerate() {
            needs.retain(|need| *need < at);
        }
    }
    let layers = layers(&needs);
    if layers > bounds.layers {
        let most = bounds.layers;
        if manner == Manner::Strict {
            return Err(format!("The plan has {layers} layers; at most {most} are allowed").into());
        }
        repaired.push(format!("only nodes of the first {most} layers are kept"));
        (written, needs) = first_layers(written, &needs, most);
    }
    let nodes = written.into_iter().zip(needs).map(|(node, needs)| PlannedNode {
        name: shortened(&node.name),
        task: shortened(&node.task),
        needs: needs.into_iter().map(|need| need as u32).collect(),
        attempts: node.attempts.clamp(1, bounds.attempts.max(1)),
        refine: node.refine.min(bounds.refine),
    });
    Ok(Plan { nodes: nodes.collect(), repaired })
}

type Edges = Vec<(String, String)>;

/// As it stands: an object with nodes and edges, an array of nodes, or a list of tasks.
fn written(text: &str) -> Result<(Vec<Written>, Edges), Text> {
    let found = json(text, |value| match value {
        Value::Object(object) => {
            let nodes = find(&object, &["nodes", "tasks", "subtasks", "sub_tasks", "steps"])?;
            let nodes = nodes.as_array()?.clone();
            Some((nodes, edges(find(&object, &["edges", "dependencies", "links"]))))
        }
        Value::Array(nodes) => {
            let usable = nodes.iter().any(|node| node.is_object() || node.is_string());
            usable.then_some((nodes, Vec::new()))
        }
        _ => None,
    });
    let (nodes, edges) = match found {
        Some((nodes, edges)) => {
            let nodes = nodes.iter().zip(1..).filter_map(|(node, count)| node_of(node, count));
            (nodes.collect::<Vec<_>>(), edges)
        }
        None => {
            // A list is worked through in its order.
            let tasks = list(text);
            let nodes = tasks.into_iter().zip(1..).map(|(task, count): (_, usize)| Written {
                name: format!("task_{count}"),
                task,
                needs: if count > 1 { vec![format!("task_{}", count - 1)] } else { Vec::new() },
                attempts: 1,
                refine: 0,
            });
            (nodes.collect(), Vec::new())
        }
    };
    match nodes.is_empty() {
        true => Err("The answer holds no plan: neither JSON with \"nodes\" nor a list".into()),
        false => Ok((nodes, edges)),
    }
}

fn node_of(node: &Value, count: usize) -> Option<Written> {
    let named = format!("task_{count}");
    let object = match node {
        Value::String(task) => {
            let (task, needs) = (task.trim().to_owned(), Vec::new());
            return Some(Written { name: named, task, needs, attempts: 1, refine: 0 });
        }
        Value::Object(object) => object,
        _ => return None,
    };
    let id = match find(object, &["id", "name"]) {
        Some(Value::String(id)) if !id.trim().is_empty() => Some(id.trim().to_owned()),
        Some(Value::Number(id)) => Some(id.to_string()),
        _ => None,
    };
    let task = string(object, &["task", "description", "text", "goal", "title"]);
    let task = task.or_else(|| id.clone())?;
    let needs = ["needs", "depends_on", "dependencies", "deps", "after", "parents", "requires"];
    let needs = strings(find(object, &needs));
    let number = |names: &[&str]| {
        let number = find(object, names).and_then(Value::as_u64);
        number.map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    };
    let attempts = number(&["attempts", "samples", "candidates"]).unwrap_or(1);
    let refine = number(&["refine", "refinements", "improve"]).unwrap_or(0);
    Some(Written { name: id.unwrap_or(named), task, needs, attempts, refine })
}

/// Pairs `[from, to]`, or objects that say so.
fn edges(value: Option<&Value>) -> Edges {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let edge = |edge: &Value| match edge {
        Value::Array(pair) => match pair.as_slice() {
            [from, to] => Some((text(from)?, text(to)?)),
            _ => None,
        },
        Value::Object(object) => {
            let from = find(object, &["from", "source"]).and_then(text)?;
            Some((from, find(object, &["to", "target"]).and_then(text)?))
        }
        _ => None,
    };
    let edges = value.and_then(Value::as_array);
    edges.into_iter().flatten().filter_map(edge).collect()
}

/// Gives every node a name of its own; what is needed by a doubled one is the first of them.
fn unique(nodes: &mut [Written], repaired: &mut Vec<String>) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for (at, node) in nodes.iter_mut().enumerate() {
        if names.contains_key(&node.name) {
            let first = node.name.clone();
            let mut count = 2;
            while names.contains_key(&format!("{first}_{count}")) {
                count += 1;
            }
            node.name = format!("{first}_{count}");
            repaired.push(format!("the second {first:?} is called {:?}", node.name));
        }
        names.insert(node.name.clone(), at);
    }
    names
}

fn edges_of(
    nodes: &[Written],
    edges: &Edges,
    names: &BTreeMap<String, usize>,
    repaired: &mut Vec<String>,
) -> Vec<Vec<usize>> {
    let mut needs: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); nodes.len()];
    let of_nodes = nodes
        .iter()
        .enumerate()
        .flat_map(|(at, node)| node.needs.iter().map(move |need| (need.clone(), at)));
    let of_edges =
        edges.iter().filter_map(|(from, to)| names.get(to).map(|to| (from.clone(), *to)));
    let unknown = edges.iter().filter(|(_, to)| !names.contains_key(to)).count();
    let mut dropped = unknown;
    for (from, to) in of_nodes.chain(of_edges) {
        match names.get(&from) {
            Some(from) if *from != to => {
                needs[to].insert(*from);
            }
            Some(_) | None => dropped += 1,
        }
    }
    if dropped > 0 {
        repaired.push(format!("{dropped} edges to themselves or to unknown nodes are left out"));
    }
    needs.into_iter().map(|needs| needs.into_iter().collect()).collect()
}

/// One cycle, from a node to itself.
fn cycle(needs: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut open: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut ready: Vec<usize> = (0..needs.len()).filter(|at| open[*at] == 0).collect();
    let mut done = BTreeSet::new();
    while let Some(at) = ready.pop() {
        done.insert(at);
        for (other, of_other) in needs.iter().enumerate() {
            if of_other.contains(&at) {
                open[other] -= 1;
                if open[other] == 0 {
                    ready.push(other);
                }
            }
        }
    }
    // Each that is left needs another that is left, so that going back comes round.
    let mut at = (0..needs.len()).find(|at| !done.contains(at))?;
    let mut seen = Vec::new();
    while !seen.contains(&at) {
        seen.push(at);
        at = *needs[at].iter().find(|need| !done.contains(need))?;
    }
    let start = seen.iter().position(|one| *one == at)?;
    let mut round: Vec<usize> = seen.split_off(start);
    round.push(at);
    round.reverse();
    Some(round)
}

/// Which layer each is in, from 1, where there is no cycle.
fn layer_of(needs: &[Vec<usize>]) -> Vec<u32> {
    let mut layers = vec![1_u32; needs.len()];
    for _ in 0..needs.len() {
        for (at, of) in needs.iter().enumerate() {
            let after = of.iter().map(|need| layers[*need] + 1).max().unwrap_or(1);
            layers[at] = layers[at].max(after);
        }
    }
    layers
}

fn layers(needs: &[Vec<usize>]) -> u32 {
    layer_of(needs).into_iter().max().unwrap_or(0)
}

fn first_layers(
    nodes: Vec<Written>,
    needs: &[Vec<usize>],
    most: u32,
) -> (Vec<Written>, Vec<Vec<usize>>) {
    let layers = layer_of(needs);
    let mut place = BTreeMap::new();
    for at in (0..nodes.len()).filter(|at| layers[*at] <= most) {
        place.insert(at, place.len());
    }
    let moved = |needs: &Vec<usize>| needs.iter().filter_map(|n| place.get(n).copied()).collect();
    let kept = |at: &usize| place.contains_key(at);
    let new_needs = (0..needs.len()).filter(kept).map(|at| moved(&needs[at])).collect();
    let nodes = nodes.into_iter().enumerate().filter(|(at, _)| kept(at)).map(|(_, node)| node);
    (nodes.collect(), new_needs)
}
