//! A graph of sub-tasks as a model writes it, made sound.

use super::*;

mod graph;
mod written;

use written::written;

/// Of the name of a sub-task, which stands in the names of those inside it.
pub const NAME_BYTES_MAX: usize = 80;
/// Names, or repairs, that people are told; of further ones how many there are.
const TOLD_MAX: usize = 8;

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
    sound(said(text), bounds, Manner::Strict)
}

/// The same for a model that was told once: whatever can be used is used.
pub(crate) fn lenient_plan(text: &str, bounds: PlanBounds) -> Result<Plan, Text> {
    sound(said(text), bounds, Manner::Lenient)
}

fn sound(text: &str, bounds: PlanBounds, manner: Manner) -> Result<Plan, Text> {
    let (mut written, edges) = written(text, manner)?;
    let mut repaired = Vec::new();
    let (most, layers_max) = (bounds.nodes.max(1) as usize, bounds.layers.max(1));
    let count = written.len();
    if manner == Manner::Strict && count > most {
        return Err(format!("The plan has {count} nodes; at most {most} are allowed").into());
    }
    let names = graph::unique(&mut written, &mut repaired);
    let mut needs = graph::needs(&written, &edges, &names, &mut repaired);
    let cycles = graph::cut_cycles(&mut needs);
    if let Some(cycle) = cycles.first() {
        let cycle = cycle.iter().map(|at| written[*at].name.clone());
        let told = few(cycle.collect(), " -> ");
        if manner == Manner::Strict {
            return Err(format!("The plan has a cycle: {told}").into());
        }
        let more = match cycles.len() {
            1 => String::new(),
            many => format!(", and {} more", many - 1),
        };
        repaired.push(format!("the cycle {told} was cut open{more}"));
    }
    let layers = graph::layers(&needs).into_iter().max().unwrap_or(0);
    if manner == Manner::Strict && layers > layers_max {
        let most = layers_max;
        return Err(format!("The plan has {layers} layers; at most {most} are allowed").into());
    }
    if count > most || layers > layers_max {
        let merged;
        (written, needs, merged) = graph::merged(written, &needs, most, layers_max);
        repaired.push(format!(
            "{merged} nodes are worked on as one: at most {most} in {layers_max} layers are allowed"
        ));
    }
    let nodes = written.into_iter().zip(needs).map(|(node, needs)| PlannedNode {
        name: node.name.into(),
        task: shortened(&node.task),
        needs: needs.into_iter().map(|need| need as u32).collect(),
        attempts: node.attempts.clamp(1, bounds.attempts.max(1)),
        refine: node.refine.min(bounds.refine),
    });
    let nodes = nodes.collect();
    if repaired.len() > TOLD_MAX {
        repaired = vec![few(repaired, "; ")];
    }
    Ok(Plan { nodes, repaired })
}

/// The first of many, for people.
fn few(all: Vec<String>, between: &str) -> String {
    let told = all.iter().take(TOLD_MAX).map(String::as_str).collect::<Vec<_>>().join(between);
    match all.len().saturating_sub(TOLD_MAX) {
        0 => told,
        more => format!("{told}{between}… ({more} more)"),
    }
}
