//! The auditor is no ornament: what it says must not be, it finds.

use polyloop_session::event::{
    CallOutcome, Event, LineId, LogEntry, NodeOutcome, Outcome, PlannedNode, Purpose, Thought,
};
use polyloop_session::item::{End, ItemKind};
use polyloop_session::policy::Effect;
use polyloop_session::{CallId, ItemId, Seq};

use super::audit::Audit;
use super::play::judgement;
use super::random::play;

/// Changes a log so that it holds what must not be; `None` where it has no place for that.
type Fault = fn(&mut Vec<LogEntry>) -> Option<()>;

/// A number that no entry has.
const FRESH: u64 = 1_000_000;

/// Puts an event behind the entry at that place.
fn after(log: &mut Vec<LogEntry>, at: usize, events: Vec<Event>) {
    for (number, event) in events.into_iter().enumerate() {
        let (seq, at_time) = (Seq(FRESH + number as u64), log[at].at);
        log.insert(at + 1 + number, LogEntry { seq, at: at_time, event });
    }
}

fn find(log: &[LogEntry], wanted: impl Fn(&Event) -> bool) -> Option<usize> {
    log.iter().position(|entry| wanted(&entry.event))
}

fn again(log: &mut Vec<LogEntry>, wanted: impl Fn(&Event) -> bool) -> Option<()> {
    let at = find(log, wanted)?;
    let event = log[at].event.clone();
    after(log, at, vec![event]);
    Some(())
}

fn call(purpose: Purpose, line: Option<LineId>) -> Event {
    let (model, tokens_max, overhead_tokens) = ("m".into(), 1, None);
    Event::CallStarted { purpose, model, tokens_max, overhead_tokens, line }
}

/// A call that is begun and answered at once, and so many of them.
fn calls(log: &mut Vec<LogEntry>, purpose: Purpose, count: u64, at: usize) {
    let mut entries = Vec::new();
    for number in 0..count {
        let seq = Seq(FRESH + 2 * number);
        let ended = CallOutcome::Answered;
        let ended = Event::CallEnded { call: CallId(seq), outcome: ended, usage: None };
        entries.extend([call(purpose, None), ended]);
    }
    after(log, at, entries);
}

/// A tool that is proposed by an open step on a line, and runs.
fn tool(log: &mut Vec<LogEntry>, at: usize, effects: &[Effect]) -> Option<()> {
    let call = CallId(log[at].seq);
    let mut events = Vec::new();
    for (place, effect) in effects.iter().enumerate() {
        let (item, native) = (ItemId(Seq(FRESH + 3 * place as u64)), false);
        let kind = ItemKind::ToolCall { name: "t".into(), call_ref: "c".into(), native };
        let (args, answerable, tokens, opaque) = ("{}".into(), true, 1, None);
        let judgement = Box::new(judgement(*effect, false));
        events.extend([
            Event::ItemStarted { call, block: 90 + place as u32, item: kind },
            Event::ToolProposed { item, args, judgement, answerable, tokens, opaque },
            Event::ToolStarted { item, sandboxed: false, leave: None },
        ]);
    }
    after(log, at, events);
    Some(())
}

fn is_step(event: &Event, branch: bool) -> bool {
    match event {
        Event::CallStarted { purpose, line, .. } => {
            purpose.is_step() && matches!(line, Some(LineId::Branch { .. })) == branch
        }
        _ => false,
    }
}

fn plan(log: &mut [LogEntry], change: impl Fn(&mut Vec<PlannedNode>)) -> Option<()> {
    let planned = log.iter_mut().find_map(|entry| match &mut entry.event {
        Event::Planned { nodes, .. } => Some(nodes),
        _ => None,
    })?;
    change(planned);
    Some(())
}

fn chain(nodes: &mut Vec<PlannedNode>, count: u32) {
    let needs = |at: u32| at.checked_sub(1).into_iter().collect();
    let node = |at: u32| PlannedNode {
        name: format!("c{at}").into(),
        task: "t".into(),
        needs: needs(at),
        attempts: 1,
        refine: 0,
    };
    *nodes = (0..count).map(node).collect();
}

const FAULTS: &[(&str, &str, Fault)] = &[
    ("[1]", "more calls than a turn may make", |log| {
        let at = find(log, |event| is_step(event, false))?;
        let ended = log.iter().position(|entry| match &entry.event {
            Event::CallEnded { call, .. } => call.0 == log[at].seq,
            _ => false,
        })?;
        calls(log, Purpose::Think, 200, ended);
        Some(())
    }),
    ("[2]", "more calls at once than are allowed", |log| {
        let at = find(log, |event| matches!(event, Event::TurnStarted { .. }))?;
        let many = (0..20).map(|round| Purpose::Vote { round, sample: 0 });
        after(log, at, many.map(|purpose| call(purpose, None)).collect());
        Some(())
    }),
    ("[3]", "what changes something runs beside another", |log| {
        let at = find(log, |event| is_step(event, false))?;
        tool(log, at, &[Effect::Read, Effect::Edit])
    }),
    ("[4]", "a branch changes something", |log| {
        let at = find(log, |event| is_step(event, true))?;
        tool(log, at, &[Effect::Edit])
    }),
    ("[5]", "an answer is misread twice", |log| {
        again(log, |event| matches!(event, Event::Misread { .. }))
    }),
    ("[5]", "a question is answered three times", |log| {
        let at = find(log, |event| matches!(event, Event::TurnStarted { agent: Some(_), .. }))?;
        calls(log, Purpose::Question, 3, at);
        Some(())
    }),
    ("[6]", "a node ends twice", |log| {
        again(log, |event| matches!(event, Event::NodeEnded { .. }))
    }),
    ("[6]", "a node begins before what it needs", |log| {
        let (planned, index) = log.iter().find_map(|entry| match &entry.event {
            Event::Planned { nodes, .. } => {
                let at = nodes.iter().position(|node| !node.needs.is_empty())?;
                Some((entry.seq, at as u32))
            }
            _ => None,
        })?;
        let at = log.iter().position(|entry| entry.seq == planned)?;
        let node = polyloop_session::id::NodeId { planned, index };
        after(log, at, vec![Event::NodeStarted { node, note: "".into(), tokens: 0 }]);
        Some(())
    }),
    ("[6]", "a node is skipped for nothing", |log| {
        let outcome = log.iter_mut().find_map(|entry| match &mut entry.event {
            Event::NodeEnded { node, outcome: outcome @ NodeOutcome::Done { .. } } => {
                Some((*node, outcome))
            }
            _ => None,
        });
        let (node, outcome) = outcome?;
        *outcome = NodeOutcome::Skipped { missing: node };
        Some(())
    }),
    ("[7]", "more thoughts than were asked for", |log| {
        let thoughts = log.iter_mut().find_map(|entry| match &mut entry.event {
            Event::Expanded { thoughts, .. } => Some(thoughts),
            _ => None,
        })?;
        *thoughts = vec![Thought { text: "t".into(), last: false }; 50];
        Some(())
    }),
    ("[7]", "a depth is left out", |log| {
        let depth = log.iter_mut().find_map(|entry| match &mut entry.event {
            Event::Chosen { depth, .. } => Some(depth),
            _ => None,
        })?;
        *depth += 1;
        Some(())
    }),
    ("[7]", "what was not weighed is followed", |log| {
        let weighed = log.iter_mut().find_map(|entry| match &mut entry.event {
            Event::Chosen { weighed, .. } if !weighed.is_empty() => Some(weighed),
            _ => None,
        })?;
        weighed.clear();
        Some(())
    }),
    ("[7]", "a search ends before what is worth following", |log| {
        let beam = log.iter_mut().find_map(|entry| match &mut entry.event {
            Event::Chosen { beam, weighed, .. } if !weighed.is_empty() => Some(beam),
            _ => None,
        })?;
        beam.clear();
        Some(())
    }),
    ("[7]", "a search goes back to what was tried", |log| {
        let at = find(log, |event| matches!(event, Event::Chosen { .. }))?;
        let Event::Chosen { depth, beam, .. } = log[at].event.clone() else { return None };
        let (reason, weighed) = ("".into(), Vec::new());
        after(log, at, vec![Event::Backtracked { to_depth: depth, beam, reason, weighed }]);
        Some(())
    }),
    ("[8]", "a graph is too large", |log| {
        plan(log, |nodes| {
            chain(nodes, 50);
            nodes.iter_mut().for_each(|node| node.needs.clear());
        })
    }),
    ("[9]", "a graph has a cycle", |log| {
        plan(log, |nodes| {
            chain(nodes, 1);
            nodes[0].needs.push(0);
        })
    }),
    ("[10]", "an item stays open", |log| {
        let ended = |event: &Event| {
            matches!(event, Event::ItemCompleted { end: End::Whole, result: Some(_), .. })
        };
        let at = find(log, ended)?;
        log.remove(at);
        Some(())
    }),
    ("[10]", "something comes after the end of a turn", |log| {
        let at = find(log, |event| matches!(event, Event::TurnEnded { .. }))?;
        after(log, at, vec![call(Purpose::Think, None)]);
        Some(())
    }),
    ("[11]", "a turn completes without an answer", |log| {
        let outcome = log.iter_mut().find_map(|entry| match &mut entry.event {
            Event::TurnEnded { outcome: outcome @ Outcome::Failed { .. }, .. } => Some(outcome),
            _ => None,
        })?;
        *outcome = Outcome::Completed;
        Some(())
    }),
    ("[12]", "what is simple is split", |log| {
        let complex = log.iter_mut().find_map(|entry| match &mut entry.event {
            Event::Judged { complex: complex @ true, .. } => Some(complex),
            _ => None,
        })?;
        *complex = false;
        Some(())
    }),
    ("[13]", "a search goes on behind its end", |log| {
        let at = find(log, |event| matches!(event, Event::PathTaken { .. }))?;
        let event = log[at].event.clone();
        after(log, at, vec![event]);
        Some(())
    }),
];

#[test]
fn the_auditor_finds_each_fault() {
    let sessions: Vec<_> = (1..60).map(|seed| play(seed).unwrap()).collect();
    for (number, what, fault) in FAULTS {
        let mut found = 0;
        let mut other = Vec::new();
        for session in &sessions {
            let mut log = session.log.clone();
            if fault(&mut log).is_none() {
                continue;
            }
            match Audit::all(session.limits, &log) {
                Err(told) if told.starts_with(number) => found += 1,
                told => other.push(format!("{told:?}").chars().take(200).collect::<String>()),
            }
        }
        println!("{number} {what}: found in {found}, otherwise in {}", other.len());
        assert!(found > 0, "{number} {what}: {:?}", other.first());
    }
}
