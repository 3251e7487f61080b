//! Deeply understanding the problem: first the core question, then what bears on it, then the
//! work as react does it, with both in mind.

use crate::event::{Event, Outcome, Purpose, Understanding};
use crate::id::Text;
use crate::state::{Dup, estimate_tokens};
use crate::strategy::Desk;
use crate::strategy::engine::{Came, Engine};
use crate::strategy::read;

pub const QUESTION_TEXT: &str = "Before working on my last message: what is its core question? \
    Look past the details to what must be answered or done in the end. Reply with the core \
    question alone, in one or two sentences. Do not answer it yet.";

pub const INFORMATION_TEXT: &str = "Which information bears on the core question? Go through my \
    last message and what we said before, leave out what does not matter, and do not answer it \
    yet. Reply with JSON alone: {\"constraints\": [\"what must hold\", …], \"context\": \"facts, \
    files, names and numbers that are needed\"}.";

/// What a note about it begins with.
pub const TOLD_BEGINNING: &str = "You have looked at the problem before you begin.";

pub(crate) fn next(desk: &Desk<'_>, dup: &Dup) -> Vec<Event> {
    let mut engine = Engine::new(desk);
    if let Some(events) = engine.room() {
        return events;
    }
    let purpose = if dup.goal.is_none() { Purpose::Question } else { Purpose::Information };
    match engine.errand(purpose) {
        Came::Answer { call, text, misread } => {
            let part = match purpose {
                Purpose::Question => engine.read(
                    (call, misread),
                    read::question(&text),
                    "going on without it",
                    || Understanding::Question { goal: "".into() },
                ),
                _ => engine.read(
                    (call, misread),
                    read::information(&text),
                    "its text is taken as it is",
                    || Understanding::Information {
                        constraints: Vec::new(),
                        context: text.trim().into(),
                    },
                ),
            };
            if let Some(part) = part {
                let tokens = match (&part, &dup.goal) {
                    (Understanding::Information { constraints, context }, goal) => {
                        let goal = goal.clone().unwrap_or_default();
                        estimate_tokens(told(&goal, constraints, context).len())
                    }
                    (Understanding::Question { .. }, _) => 0,
                };
                engine.events.push(Event::Understood { call, part, tokens });
            }
        }
        Came::Failed { call: _, fault } => engine.fault = Some(fault),
        Came::Nothing => {}
    }
    match engine.fault.take() {
        Some(fault) if engine.events.is_empty() && engine.is_idle() => {
            let outcome = Outcome::Failed { fault };
            vec![Event::TurnEnded { outcome, usage: desk.turn.usage }]
        }
        _ if engine.exhausted && engine.events.is_empty() && engine.is_idle() => {
            // So few calls may be made that all are kept for the answer.
            super::react::next(desk)
        }
        _ => engine.events,
    }
}

/// What the model is told of its own understanding before it goes on.
pub(crate) fn told(goal: &str, constraints: &[Text], context: &str) -> Text {
    let mut told = String::from(TOLD_BEGINNING);
    if !goal.is_empty() {
        told.push_str(&format!("\n\nThe core question: {goal}"));
    }
    if !constraints.is_empty() {
        told.push_str("\n\nWhat must hold:");
        constraints.iter().for_each(|one| told.push_str(&format!("\n- {one}")));
    }
    if !context.is_empty() {
        told.push_str(&format!("\n\nWhat bears on it: {context}"));
    }
    told.push_str("\n\nNow solve it, with tools where they help, and answer.");
    told.into()
}
