//! A graph of thoughts: the work is planned as sub-tasks, all that are ready run at once, each in
//! a loop of its own; where asked several answers are tried and the best kept, or an answer is
//! worked over; what they come to is put together at the end. A failed one fails only what needs
//! it.
//!
//! Adaptive: before a sub-task is worked on it is judged, and one that is too much becomes a graph
//! of its own, whose answer is its answer.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::event::{Event, LineId, NodeOutcome, Outcome, PlannedNode, Purpose};
use crate::id::{NodeId, Text};
use crate::item::Fault;
use crate::state::{Graph, Node, Phase, estimate_tokens};
use crate::strategy::Desk;
use crate::strategy::bounds::Bounds;
use crate::strategy::engine::{Came, Engine, ends_all};
use crate::strategy::read::{self, Plan, PlanBounds};

/// Of one result, where another is told of it.
const RESULT_BYTES_MAX: usize = 16 * 1024;
/// What is split becomes so many at least.
const SPLIT_MIN: u32 = 2;
/// What the note of a sub-task, and one about results, begin with.
pub const TASK_BEGINNING: &str = "Do not answer my message as a whole: it was split into sub-tasks";
pub const TASK_MARK: &str = "\n\nYour sub-task: ";
pub const RESULTS_BEGINNING: &str = "The work was split into sub-tasks. What they came to:";
pub const FAILED_CODE: &str = "subtasks_failed";
const EMPTY_CODE: &str = "empty_answer";

pub(crate) fn next(desk: &Desk<'_>, graph: &Graph) -> Vec<Event> {
    let mut engine = Engine::new(desk);
    if let Some(events) = engine.room() {
        return events;
    }
    match graph.graphs.get(&None) {
        None => plan(&mut engine, graph, None),
        Some(nodes) => {
            for node in nodes {
                work(&mut engine, graph, *node);
            }
            // An explanation that is asked for may outlive its sub-task.
            if engine.events.is_empty() && engine.is_idle() && all_ended(graph, None) {
                return vec![gathered(&engine, graph)];
            }
        }
    }
    settled(engine, graph)
}

fn all_ended(graph: &Graph, of: Option<NodeId>) -> bool {
    let nodes = graph.graphs.get(&of).into_iter().flatten();
    nodes.into_iter().all(|id| graph.nodes.get(id).is_none_or(|node| node.outcome.is_some()))
}

/// Wants a plan: of the whole, or of one that is too much for one.
fn plan(engine: &mut Engine<'_>, graph: &Graph, of: Option<NodeId>) {
    let bounds = plan_bounds(&engine.bounds, graph, of);
    match engine.errand(Purpose::Plan { node: of }) {
        Came::Nothing => {}
        Came::Answer { call, text, misread } => {
            let read = match misread {
                None => read::plan(&text, bounds),
                Some(_) => read::lenient_plan(&text, bounds),
            };
            let told = "it is worked on as one task";
            let whole = || Plan { nodes: vec![whole(graph, of)], repaired: Vec::new() };
            if let Some(Plan { nodes, repaired }) = engine.read((call, misread), read, told, whole)
            {
                if !repaired.is_empty() {
                    let text = format!("The plan was repaired: {}", repaired.join("; "));
                    engine.notice("plan_repaired", text);
                }
                engine.events.push(Event::Planned { call, parent: of, nodes });
            }
        }
        Came::Failed { call, fault } => match (of, call) {
            // It is worked on as it is.
            (Some(node), Some(call)) if !ends_all(&fault) => {
                engine.notice("plan_failed", format!("No plan was had: {}", fault.message));
                let (parent, nodes) = (Some(node), vec![whole(graph, of)]);
                engine.events.push(Event::Planned { call, parent, nodes });
            }
            _ => engine.fault = Some(fault),
        },
    }
}

pub(super) fn plan_bounds(bounds: &Bounds, graph: &Graph, of: Option<NodeId>) -> PlanBounds {
    PlanBounds {
        nodes: bounds.got_nodes.min(share(bounds, graph, of)).max(1),
        layers: bounds.got_layers,
        attempts: bounds.got_attempts,
        refine: bounds.got_refine,
    }
}

/// How many sub-tasks may be in a graph and all that are inside it. What a graph leaves of them is
/// shared by its nodes alike, so that none depends on which was planned first.
fn share(bounds: &Bounds, graph: &Graph, of: Option<NodeId>) -> u32 {
    let Some(node) = of.and_then(|of| graph.nodes.get(&of)) else { return bounds.got_nodes_total };
    let beside = graph.graphs.get(&node.parent).map_or(1, |nodes| nodes.len().max(1) as u32);
    share(bounds, graph, node.parent).saturating_sub(beside) / beside
}

fn whole(graph: &Graph, of: Option<NodeId>) -> PlannedNode {
    let task = of.and_then(|of| graph.nodes.get(&of)).map(|node| node.task.clone());
    let task = task.unwrap_or_else(|| "Do what was asked for.".into());
    PlannedNode { name: "task_1".into(), task, needs: Vec::new(), attempts: 1, refine: 0 }
}

/// Takes one sub-task as far as it goes now.
fn work(engine: &mut Engine<'_>, graph: &Graph, id: NodeId) {
    let Some(node) = graph.nodes.get(&id).filter(|node| node.outcome.is_none()) else { return };
    for need in &node.needs {
        match graph.nodes.get(need).and_then(|need| need.outcome.as_ref()) {
            Some(NodeOutcome::Done { .. }) => {}
            Some(NodeOutcome::Failed { .. } | NodeOutcome::Skipped { .. }) => {
                let outcome = NodeOutcome::Skipped { missing: *need };
                engine.events.push(Event::NodeEnded { node: id, outcome });
                return;
            }
            None => return,
        }
    }
    if node.notes.is_empty() {
        let note = task_note(graph, node);
        let tokens = estimate_tokens(note.len());
        engine.events.push(Event::NodeStarted { node: id, note, tokens });
        return;
    }
    if node.complex.is_none() && may_split(engine, graph, id) {
        judge(engine, id);
        return;
    }
    if node.complex == Some(true) && !node.gathered {
        nested(engine, graph, id);
        return;
    }
    answer(engine, node, id);
}

/// Whether it may become a graph of its own.
fn may_split(engine: &Engine<'_>, graph: &Graph, id: NodeId) -> bool {
    let bounds = &engine.bounds;
    let depth = graph.nodes.get(&id).map_or(u32::MAX, |node| node.depth);
    let is_room = || share(bounds, graph, Some(id)) >= SPLIT_MIN;
    bounds.got_adaptive && depth < bounds.got_depth && is_room()
}

fn judge(engine: &mut Engine<'_>, node: NodeId) {
    match engine.errand(Purpose::Judge { node }) {
        Came::Nothing => {}
        Came::Answer { call, text, misread } => {
            let told = "it is taken for simple";
            let read = read::complex(&text);
            if let Some(complex) = engine.read((call, misread), read, told, || false) {
                engine.events.push(Event::Judged { call, node, complex });
            }
        }
        Came::Failed { call: Some(call), fault } if !ends_all(&fault) => {
            engine.notice("judge_failed", format!("Taken for simple: {}", fault.message));
            engine.events.push(Event::Judged { call, node, complex: false });
        }
        Came::Failed { call: _, fault } => engine.fault = Some(fault),
    }
}

/// The graph inside one that is too much.
fn nested(engine: &mut Engine<'_>, graph: &Graph, id: NodeId) {
    let Some(nodes) = graph.graphs.get(&Some(id)) else {
        plan(engine, graph, Some(id));
        return;
    };
    for node in nodes {
        work(engine, graph, *node);
    }
    if !all_ended(graph, Some(id)) {
        return;
    }
    let sinks = graph.sinks(Some(id));
    let done: Vec<&Node> = sinks.iter().filter_map(|id| graph.nodes.get(id)).collect();
    let event = match done.as_slice() {
        [one] if one.is_done() => {
            let result = one.result().cloned().unwrap_or_default();
            let tokens = estimate_tokens(result.len());
            let outcome = NodeOutcome::Done { result, tokens };
            Event::NodeEnded { node: id, outcome }
        }
        all if all.iter().any(|node| node.is_done()) => {
            let note = results_note(all.iter().copied());
            let tokens = estimate_tokens(note.len());
            Event::Gathered { node: Some(id), note, tokens }
        }
        all => {
            let outcome = NodeOutcome::Failed { fault: all_failed(graph, all) };
            Event::NodeEnded { node: id, outcome }
        }
    };
    engine.events.push(event);
}

/// The loops of a sub-task, then the best of what they gave, worked over where asked.
fn answer(engine: &mut Engine<'_>, node: &Node, id: NodeId) {
    if let Some(best) = &node.best {
        refine(engine, node, id, best);
        return;
    }
    let attempts = if node.gathered { 1 } else { node.attempts.max(1) };
    let (mut answers, mut fault, mut open) = (Vec::new(), None, false);
    for attempt in 0..attempts {
        let on = LineId::Node { node: id, attempt };
        let steps = engine.desk.aside(on).filter(|desk| desk.looped.phase == Phase::Asking);
        let came = match steps {
            Some(desk) if desk.looped.steps >= engine.bounds.got_steps => {
                let most = engine.bounds.got_steps;
                let message = format!("Stopped after {most} steps, the limit for one sub-task");
                Came::Failed { call: None, fault: Fault::new("max_steps", message) }
            }
            _ => engine.aside(on, Purpose::Think),
        };
        match came {
            Came::Nothing => open = true,
            Came::Answer { text, .. } if text.trim().is_empty() => {
                fault = Some(Fault::new(EMPTY_CODE, "The sub-task was answered with nothing"));
            }
            Came::Answer { text, .. } => answers.push((attempt, text)),
            Came::Failed { fault: why, .. } if ends_all(&why) => engine.fault = Some(why),
            Came::Failed { fault: why, .. } => fault = Some(why),
        }
    }
    if open || engine.fault.is_some() {
        return;
    }
    let best = match (answers.as_slice(), fault) {
        ([], Some(fault)) => {
            let outcome = NodeOutcome::Failed { fault };
            engine.events.push(Event::NodeEnded { node: id, outcome });
            return;
        }
        ([], None) => return,
        ([(_, only)], _) => only.clone(),
        (several, _) => match keep_best(engine, node, id, several) {
            Some(best) => best,
            None => return,
        },
    };
    let event = match node.refine {
        0 => done(id, best),
        _ => Event::Kept { node: id, text: best },
    };
    engine.events.push(event);
}

fn done(node: NodeId, result: Text) -> Event {
    let tokens = estimate_tokens(result.len());
    Event::NodeEnded { node, outcome: NodeOutcome::Done { result, tokens } }
}

/// Scores each; the best is the first of those with the highest score.
fn keep_best(
    engine: &mut Engine<'_>,
    node: &Node,
    id: NodeId,
    answers: &[(u32, Text)],
) -> Option<Text> {
    let mut open = false;
    for (attempt, _) in answers {
        if node.answers.contains_key(attempt) {
            continue;
        }
        open = true;
        match engine.errand(Purpose::Score { node: id, attempt: *attempt }) {
            Came::Nothing => {}
            Came::Answer { call, text, misread } => {
                let read = read::value(&text).map(Some);
                let told = "this opinion does not count";
                if let Some(score) = engine.read((call, misread), read, told, || None) {
                    engine.events.push(Event::Scored { call, score, thought: None });
                }
            }
            Came::Failed { call: Some(call), fault } if !ends_all(&fault) => {
                engine
                    .notice("opinion_failed", format!("An opinion is missing: {}", fault.message));
                engine.events.push(Event::Scored { call, score: None, thought: None });
            }
            Came::Failed { call: _, fault } => engine.fault = Some(fault),
        }
    }
    if open {
        return None;
    }
    let score = |attempt: &u32| node.answers.get(attempt).copied().flatten().unwrap_or(0);
    let best = answers.iter().rev().max_by_key(|(attempt, _)| score(attempt))?;
    Some(best.1.clone())
}

fn refine(engine: &mut Engine<'_>, node: &Node, id: NodeId, best: &Text) {
    if node.refined >= node.refine {
        engine.events.push(done(id, best.clone()));
        return;
    }
    match engine.errand(Purpose::Refine { node: id, round: node.refined }) {
        Came::Nothing => {}
        Came::Answer { call, text, .. } => {
            let text = Some(text).filter(|text| !text.trim().is_empty());
            engine.events.push(Event::Refined { call, node: id, text });
        }
        Came::Failed { call: Some(call), fault } if !ends_all(&fault) => {
            engine
                .notice("refine_failed", format!("The answer stays as it was: {}", fault.message));
            engine.events.push(Event::Refined { call, node: id, text: None });
        }
        Came::Failed { call: _, fault } => engine.fault = Some(fault),
    }
}

/// The end: one result is the answer; several are put together by the model.
fn gathered(engine: &Engine<'_>, graph: &Graph) -> Event {
    let sinks = graph.sinks(None);
    let sinks: Vec<&Node> = sinks.iter().filter_map(|id| graph.nodes.get(id)).collect();
    match sinks.as_slice() {
        [one] if one.is_done() => {
            let text = one.result().cloned().unwrap_or_default();
            let tokens = estimate_tokens(text.len());
            Event::Concluded { text, tokens }
        }
        all if all.iter().any(|node| node.is_done()) => {
            let note = results_note(all.iter().copied());
            let tokens = estimate_tokens(note.len());
            Event::Gathered { node: None, note, tokens }
        }
        all => {
            let outcome = Outcome::Failed { fault: all_failed(graph, all) };
            Event::TurnEnded { outcome, usage: engine.desk.turn.usage }
        }
    }
}

fn all_failed(graph: &Graph, nodes: &[&Node]) -> Fault {
    let why = nodes.iter().find_map(|node| failure(graph, node));
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Fault::new(FAILED_CODE, format!("Every sub-task that the answer needs failed{why}"))
}

/// Why one failed, or what it needs; a plan has no cycles, so that comes to an end.
fn failure(graph: &Graph, node: &Node) -> Option<String> {
    let mut node = node;
    for _ in 0..=graph.nodes.len() {
        match node.outcome.as_ref()? {
            NodeOutcome::Failed { fault } => {
                return Some(format!("{}: {}", node.name, fault.message));
            }
            NodeOutcome::Skipped { missing } => node = graph.nodes.get(missing)?,
            NodeOutcome::Done { .. } => return None,
        }
    }
    None
}

/// What is recorded where the graph waits, or its end.
fn settled(engine: Engine<'_>, graph: &Graph) -> Vec<Event> {
    let told = "The graph made as many calls as it may, and ends with what it has";
    engine.settled(told, || {
        let is_done = |id: &NodeId| graph.nodes.get(id).is_some_and(Node::is_done);
        // What is part of another that is done is told with it.
        let own = |node: &&Node| node.is_done() && !node.parent.as_ref().is_some_and(is_done);
        let note = results_note(graph.nodes.values().filter(own));
        let tokens = estimate_tokens(note.len());
        let mut open: Vec<_> =
            graph.nodes.iter().filter(|(_, node)| node.outcome.is_none()).collect();
        // What is inside a sub-task ends before it does, and what it needs.
        let mut layers = BTreeMap::new();
        open.sort_by_cached_key(|(id, node)| {
            (Reverse(node.depth), layer(graph, **id, &mut layers))
        });
        let ended = open.into_iter().map(|(id, node)| {
            let missing = node.needs.iter().find(|need| !is_done(need)).copied();
            let outcome = match missing.filter(|_| node.notes.is_empty()) {
                Some(missing) => NodeOutcome::Skipped { missing },
                None => {
                    let why = "No model calls were left for it";
                    NodeOutcome::Failed { fault: Fault::new(super::react::CALLS_CODE, why) }
                }
            };
            Event::NodeEnded { node: *id, outcome }
        });
        ended.chain([Event::Gathered { node: None, note, tokens }]).collect()
    })
}

/// How many come one after the other up to this one.
fn layer(graph: &Graph, id: NodeId, known: &mut BTreeMap<NodeId, usize>) -> usize {
    if let Some(layer) = known.get(&id) {
        return *layer;
    }
    // A damaged log may have a cycle.
    known.insert(id, 0);
    let needs = graph.nodes.get(&id).map(|node| node.needs.as_slice()).unwrap_or_default();
    let before = needs.iter().map(|need| layer(graph, *need, known)).max();
    let layer = before.unwrap_or(0) + 1;
    known.insert(id, layer);
    layer
}

/// What a sub-task is told beside the conversation: what it is, what it is part of, and the results
/// that it needs, or that what it is part of needs.
fn task_note(graph: &Graph, node: &Node) -> Text {
    let mut note = format!(
        "{TASK_BEGINNING}, and this one is yours. Work on nothing else, use tools where they help, \
         and reply with its result alone."
    );
    let above = std::iter::successors(Some(node), |node| graph.nodes.get(&node.parent?));
    let above: Vec<&Node> = above.collect();
    for whole in above.iter().skip(1).rev() {
        note.push_str(&format!("\n\nIt is part of a larger one: {}", whole.task));
    }
    note.push_str(&format!("{TASK_MARK}{}", node.task));
    for node in above.iter().rev() {
        note.push_str(&needed(graph, node));
    }
    note.into()
}

/// The results that a sub-task needs.
fn needed(graph: &Graph, node: &Node) -> String {
    let mut told = String::new();
    for need in node.needs.iter().filter_map(|need| graph.nodes.get(need)) {
        let result = need.result().map(|result| shortened(result)).unwrap_or_default();
        told.push_str(&format!("\n\nResult of {} ({}):\n{result}", need.name, need.task));
    }
    told
}

/// Results that are to be put together.
fn results_note<'a>(nodes: impl Iterator<Item = &'a Node>) -> Text {
    let mut note = String::from(RESULTS_BEGINNING);
    let mut nodes = nodes.peekable();
    if nodes.peek().is_none() {
        note.push_str("\n\nNothing yet: there was no time for it. Answer what was asked for.");
        return note.into();
    }
    for node in nodes {
        match (&node.outcome, node.result()) {
            (_, Some(result)) => {
                let result = shortened(result);
                note.push_str(&format!("\n\n{} ({}):\n{result}", node.name, node.task));
            }
            (Some(NodeOutcome::Failed { fault }), None) => {
                let why = &fault.message;
                note.push_str(&format!("\n\n{} ({}) failed: {why}", node.name, node.task));
            }
            (Some(NodeOutcome::Skipped { .. } | NodeOutcome::Done { .. }) | None, None) => {
                note.push_str(&format!("\n\n{} ({}) was not done.", node.name, node.task));
            }
        }
    }
    note.push_str("\n\nPut the results together and answer what was asked for.");
    note.into()
}

fn shortened(text: &str) -> String {
    if text.len() <= RESULT_BYTES_MAX {
        return text.to_owned();
    }
    let mut end = RESULT_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… (shortened)", &text[..end])
}

/// The question for a plan.
pub(crate) fn plan_text(graph: &Graph, of: Option<NodeId>, bounds: PlanBounds) -> String {
    let what = match of.and_then(|of| graph.nodes.get(&of)) {
        None => "Do not answer my message yet: split it into sub-tasks first.".to_owned(),
        Some(node) => format!(
            "Do not answer my message yet. One of its sub-tasks is too much for one; split it \
             further: {}{}",
            node.task,
            needed(graph, node)
        ),
    };
    let PlanBounds { nodes, layers, attempts, refine } = bounds;
    format!(
        "{what}\n\nPlan at most {nodes} sub-tasks that can be worked on side by side where they \
         do not need one another, in at most {layers} layers. Reply with JSON alone: {{\"nodes\": \
         [{{\"id\": \"short_name\", \"task\": \"what to do, understood without the others\", \
         \"needs\": [\"ids whose results it needs\"]}}, …]}}. No cycles. Where several tries pay, \
         add \"attempts\" (up to {attempts}; the best is kept), where polish pays, \"refine\" (up \
         to {refine}). Something small is one node."
    )
}

pub(crate) fn judge_text(node: &Node) -> String {
    format!(
        "Do not answer my message yet. One of its sub-tasks is: {}\n\nCan it be done well in one \
         go, or is it so complex that it should be split into sub-tasks of its own? Reply with one \
         word: simple or complex.",
        node.task
    )
}

pub(crate) fn score_text(node: &Node, answer: &str) -> String {
    format!(
        "How good is this result of a sub-task?\n\nThe sub-task: {}\n\nThe result:\n{}\n\nJudge \
         whether it is right and whole. Think briefly, then reply on the last line with a number \
         from 0 to 10.",
        node.task,
        shortened(answer)
    )
}

pub(crate) fn refine_text(node: &Node, answer: &str) -> String {
    format!(
        "Improve this result of a sub-task: set right what is wrong, add what is missing, keep \
         what is good.\n\nThe sub-task: {}\n\nThe result:\n{}\n\nReply with the improved result \
         alone.",
        node.task,
        shortened(answer)
    )
}
