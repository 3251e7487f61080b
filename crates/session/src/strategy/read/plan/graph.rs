//! What nodes need of one another: each name once, no cycles, within the bounds.
//!
//! All of it is linear in nodes and edges.

use std::collections::{BTreeMap, BTreeSet};

use super::written::{Edges, Written};

/// Gives every node a name of its own; what is needed by a doubled one is the first of them.
pub fn unique(nodes: &mut [Written], repaired: &mut Vec<String>) -> BTreeMap<String, usize> {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for (at, node) in nodes.iter_mut().enumerate() {
        if names.contains_key(&node.name) {
            let first = node.name.clone();
            let count = counts.entry(first.clone()).or_insert(1);
            loop {
                *count += 1;
                node.name = format!("{first}_{count}");
                if !names.contains_key(&node.name) {
                    break;
                }
            }
            repaired.push(format!("the second {first:?} is called {:?}", node.name));
        }
        names.insert(node.name.clone(), at);
    }
    names
}

/// What each needs, by place.
pub fn needs(
    nodes: &[Written],
    edges: &Edges,
    names: &BTreeMap<String, usize>,
    repaired: &mut Vec<String>,
) -> Vec<Vec<usize>> {
    let folded = |name: &str| name.to_lowercase().replace([' ', '-'], "_");
    let mut alike: BTreeMap<String, usize> = BTreeMap::new();
    for (name, at) in names {
        alike.entry(folded(name)).or_insert(*at);
    }
    // Written otherwise, or by its number where it has no name.
    let known = |name: &str| {
        let exact = names.get(name).or_else(|| alike.get(&folded(name)));
        exact.or_else(|| names.get(&format!("task_{name}"))).copied()
    };
    let mut needs: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); nodes.len()];
    let mut dropped = 0_usize;
    let of_nodes = nodes.iter().enumerate();
    let of_nodes = of_nodes.flat_map(|(at, node)| node.needs.iter().map(move |n| (n, Some(at))));
    let of_edges = edges.iter().map(|(from, to)| (from, known(to)));
    for (from, to) in of_nodes.chain(of_edges) {
        match (known(from), to) {
            (Some(from), Some(to)) if from != to => {
                needs[to].insert(from);
            }
            _ => dropped += 1,
        }
    }
    if dropped > 0 {
        repaired.push(format!("{dropped} edges to themselves or to unknown nodes are left out"));
    }
    needs.into_iter().map(|needs| needs.into_iter().collect()).collect()
}

/// Takes out what closes a cycle, and nothing else. Each cycle from a node to itself.
pub fn cut_cycles(needs: &mut [Vec<usize>]) -> Vec<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        Open,
        Done,
    }
    let mut seen = vec![Seen::No; needs.len()];
    let mut cycles: Vec<Vec<usize>> = Vec::new();
    for first in 0..needs.len() {
        if seen[first] != Seen::No {
            continue;
        }
        seen[first] = Seen::Open;
        // With how many of its needs were gone through.
        let mut path: Vec<(usize, usize)> = vec![(first, 0)];
        while let Some((at, place)) = path.last_mut() {
            let at = *at;
            let Some(need) = needs[at].get(*place).copied() else {
                seen[at] = Seen::Done;
                path.pop();
                continue;
            };
            match seen[need] {
                Seen::Done => *place += 1,
                Seen::No => {
                    *place += 1;
                    seen[need] = Seen::Open;
                    path.push((need, 0));
                }
                Seen::Open => {
                    let place = *place;
                    needs[at].remove(place);
                    cycles.push(round(&path, need, cycles.is_empty()));
                }
            }
        }
    }
    cycles
}

/// In the order of the work: each needs the one before it. Only the first is told.
fn round(path: &[(usize, usize)], from: usize, told: bool) -> Vec<usize> {
    if !told {
        return Vec::new();
    }
    let start = path.iter().position(|(at, _)| *at == from).unwrap_or(0);
    let mut round: Vec<usize> = path[start..].iter().map(|(at, _)| *at).collect();
    round.push(from);
    round.reverse();
    round
}

/// Which layer each is in, from 1, where there is no cycle.
pub fn layers(needs: &[Vec<usize>]) -> Vec<u32> {
    let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    for (at, of) in needs.iter().enumerate() {
        of.iter().for_each(|need| needed_by[*need].push(at));
    }
    let mut open: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut layers = vec![1_u32; needs.len()];
    let mut ready: Vec<usize> = (0..needs.len()).filter(|at| open[*at] == 0).collect();
    while let Some(at) = ready.pop() {
        for after in &needed_by[at] {
            layers[*after] = layers[*after].max(layers[at] + 1);
            open[*after] -= 1;
            if open[*after] == 0 {
                ready.push(*after);
            }
        }
    }
    layers
}

/// Keeps what is within the bounds; all that is beyond becomes one, which is worked on last. How
/// many that are.
pub fn merged(
    nodes: Vec<Written>,
    needs: &[Vec<usize>],
    most: usize,
    layers_max: u32,
) -> (Vec<Written>, Vec<Vec<usize>>, usize) {
    let layers = layers(needs);
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|at| (layers[*at], *at));
    // What is too deep, and what it needs in the last layer.
    let deep = order.iter().filter(|at| layers[**at] > layers_max);
    let mut beyond: BTreeSet<usize> = deep.copied().collect();
    let last: Vec<usize> = beyond.iter().flat_map(|at| &needs[*at]).copied().collect();
    beyond.extend(last.into_iter().filter(|at| layers[*at] == layers_max));
    let kept = order.iter().filter(|at| !beyond.contains(at)).copied();
    let kept: Vec<usize> = kept.collect();
    // One place is for what is beyond.
    let room = if beyond.is_empty() { most } else { most.saturating_sub(1) };
    if kept.len() > room {
        beyond.extend(&kept[most.saturating_sub(1)..]);
    }
    let mut place: BTreeMap<usize, usize> = BTreeMap::new();
    for at in (0..nodes.len()).filter(|at| !beyond.contains(at)) {
        place.insert(at, place.len());
    }
    let places = |of: &[usize]| -> Vec<usize> {
        of.iter().filter_map(|need| place.get(need).copied()).collect()
    };
    let mut new_needs: Vec<Vec<usize>> = place.keys().map(|at| places(&needs[*at])).collect();
    let of_beyond: BTreeSet<usize> = beyond.iter().flat_map(|at| places(&needs[*at])).collect();
    new_needs.push(of_beyond.into_iter().collect());
    let mut tasks = String::from("Do these, one after the other:");
    let (mut count, mut name) = (0_usize, String::new());
    for at in order.iter().filter(|at| beyond.contains(at)) {
        count += 1;
        tasks.push_str(&format!("\n{count}. {}", nodes[*at].task));
        name.clone_from(&nodes[*at].name);
    }
    let whole = Written { name, task: tasks, needs: Vec::new(), attempts: 1, refine: 0 };
    let nodes = nodes.into_iter().enumerate().filter(|(at, _)| !beyond.contains(at));
    let nodes = nodes.map(|(_, node)| node).chain([whole]).collect();
    (nodes, new_needs, count)
}
