//! Whether random sessions meet what is worth watching: every kind of message, places inside open
//! items, and what a client could stumble over.

use std::collections::BTreeMap;

use polyloop_session::event::{CallOutcome, Work};
use polyloop_session::item::End;
use polyloop_session::policy::RULE_ADVICE;
use polyloop_session::wait::Ask;
use polyloop_session::{Event, Update};

use super::action::sessions;
use super::kinds;
use super::play::play;
use super::runner::try_all;
use super::speaks;
use super::world::sent;

const CASES: u32 = 1_200;
const HAPPENS: [&str; 13] = [
    "made again",
    "made again after a text",
    "compacted inside a turn",
    "stopped by the sandbox",
    "stopped after output",
    "asked about outside",
    "run outside",
    "denied after it ran",
    "denied by a rule",
    "a path is taken",
    "a sub-task is split",
    "an answer is improved",
    "a search is taken up",
];

/// What a client could stumble over: an attempt whose text was shown, a summary on the way.
fn happened(updates: &[Update]) -> Vec<&'static str> {
    let (mut shown, mut compacts, mut met) = (false, false, Vec::new());
    let mut stopped = None;
    for update in updates {
        let Update::Logged(entry) = update else { continue };
        match &entry.event {
            Event::TurnStarted { work, agent, .. } => {
                compacts = matches!(work, Work::Compact { .. });
                if matches!(work, Work::Resume { .. }) && agent.is_some() {
                    met.push(HAPPENS[12]);
                }
            }
            Event::PathTaken { .. } => met.push(HAPPENS[9]),
            Event::Planned { parent: Some(_), .. } => met.push(HAPPENS[10]),
            Event::Refined { text: Some(_), .. } => met.push(HAPPENS[11]),
            Event::CallStarted { .. } => shown = false,
            Event::ItemCompleted { end: End::Discarded, text, .. } => shown |= !text.is_empty(),
            Event::CallEnded { outcome: CallOutcome::Retried { .. }, .. } => {
                met.push(HAPPENS[usize::from(shown)]);
            }
            Event::Compacted { .. } if !compacts => met.push(HAPPENS[2]),
            Event::SandboxRefused { item, text, .. } => {
                stopped = Some(*item);
                met.extend(&HAPPENS[3..4 + usize::from(!text.is_empty())]);
            }
            Event::WaitOpened { ask: Ask::Outside { .. }, .. } => met.push(HAPPENS[5]),
            Event::ToolStarted { item, .. } if stopped == Some(*item) => met.push(HAPPENS[6]),
            Event::ItemCompleted { item, end: End::Denied, .. } if stopped == Some(*item) => {
                met.push(HAPPENS[7]);
            }
            Event::ItemCompleted { end: End::Denied, text, .. }
                if text.starts_with(RULE_ADVICE) =>
            {
                met.push(HAPPENS[8]);
            }
            _ => {}
        }
    }
    met
}

/// What is tried on random sessions would hold for a dialect that sends nothing.
#[test]
fn random_sessions_are_worth_watching() {
    type Met = BTreeMap<(&'static str, String), usize>;
    let met = std::cell::RefCell::new(Met::new());
    try_all(CASES, sessions(), |(start, actions)| {
        let (updates, mut met) = (play(&start, &actions), met.borrow_mut());
        for what in happened(&updates) {
            *met.entry(("log", what.to_string())).or_default() += 1;
        }
        for dialect in speaks::all() {
            let mut count =
                |what: &str| *met.entry((dialect.name(), what.to_string())).or_default() += 1;
            for frame in sent(*dialect, &updates).concat() {
                count(&kinds::kind(*dialect, &frame));
                let cursor = frame["cursor"].as_str().unwrap_or_default();
                if cursor.contains('~') {
                    count("inside an item");
                }
                if cursor.contains(',') {
                    count("inside two items");
                }
                if frame.presents.is_some() {
                    count("asks");
                }
            }
        }
        Ok(())
    });
    let met = met.into_inner();
    for what in HAPPENS {
        let times = met.get(&("log", what.to_string())).copied().unwrap_or(0);
        assert!(times >= 5, "{what}: only {times} times");
    }
    for dialect in speaks::all() {
        let inside: &[&str] = match speaks::streams(*dialect) {
            true => &["inside an item", "inside two items", "asks"],
            false => &["asks"],
        };
        for kind in kinds::kinds(*dialect).iter().chain(inside) {
            let times = met.get(&(dialect.name(), kind.to_string())).copied().unwrap_or(0);
            assert!(times >= 5, "{kind} is too rare in {}: {met:?}", dialect.name());
        }
    }
}
