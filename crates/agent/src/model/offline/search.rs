//! Plays the parts that strategies ask for: understands, proposes, weighs, plans and judges, so that
//! each of them runs to its end with a script, or without one.
//!
//! A way to go is a line of the script, and the right one is the next that is left. A sub-task is
//! one reply of the script.

use polyloop_session::event::Purpose;
use polyloop_session::history::Message;
use serde_json::json;

use super::reply::{self, user_text};
use super::script::Step;
use super::talk::shortened;

const THOUGHT_BYTES_MAX: usize = 200;
/// Programs that a branch runs to look around: they only read.
const LOOKS: [&str; 6] = ["ls", "pwd", "cat", "head", "wc", "echo"];
const LOOKING_TOOLS: [&str; 4] = ["ls", "read", "glob", "grep"];

/// What to do about a question that is no conversation.
pub(super) fn part(purpose: Purpose, messages: &[Message]) -> Vec<Step> {
    let (question, before) = match messages.split_last() {
        Some((Message::User(parts), before)) => (user_text(parts), before),
        _ => (String::new(), messages),
    };
    let said = match purpose {
        Purpose::Question => goal(before),
        Purpose::Information => information(before),
        Purpose::Expand { .. } => match look(before) {
            Some(step) => return vec![step],
            None => thoughts(before, &question),
        },
        Purpose::Value { .. } => value(before, &question),
        Purpose::Vote { .. } => "The first follows what was asked.\n1".to_owned(),
        Purpose::Plan { node } => plan(before, &question, node.is_some()),
        Purpose::Judge { .. } => {
            let lines = task(&question).lines().count();
            if lines > 1 { "complex" } else { "simple" }.to_owned()
        }
        Purpose::Score { .. } => "It says what came of it: 7/10".to_owned(),
        Purpose::Refine { .. } => {
            let (_, result) = question.split_once("The result:\n").unwrap_or_default();
            result.split("\n\nReply with").next().unwrap_or_default().trim().to_owned()
        }
        Purpose::Think | Purpose::Explain { .. } | Purpose::Summarise => String::new(),
    };
    vec![Step::Say(said.into())]
}

/// The lines that are asked for, whatever was done of them.
fn lines(messages: &[Message]) -> Vec<String> {
    reply::all(messages).into_iter().flatten().collect()
}

fn goal(messages: &[Message]) -> String {
    match lines(messages).as_slice() {
        [] => "What can be tried here?".to_owned(),
        [one] => format!("What comes of \"{}\"?", shortened(one, THOUGHT_BYTES_MAX)),
        [first, .., last] => {
            let (first, last) =
                (shortened(first, THOUGHT_BYTES_MAX), shortened(last, THOUGHT_BYTES_MAX));
            format!("What comes of the steps from \"{first}\" to \"{last}\"?")
        }
    }
}

fn information(messages: &[Message]) -> String {
    let lines = lines(messages);
    let count = match lines.len() {
        1 => "one step".to_owned(),
        count => format!("{count} steps"),
    };
    let constraints = ["The steps are taken in their order", "Nothing else is done"];
    json!({ "constraints": constraints, "context": format!("A script of {count}") }).to_string()
}

/// A first look around, where the script begins with one.
fn look(messages: &[Message]) -> Option<Step> {
    if reply::last_result(messages).is_some() {
        return None;
    }
    let step = reply::due(messages).into_iter().next()?;
    let Step::Call { name, args } = &step else { return None };
    let looks = match &**name {
        "bash" => {
            let args = serde_json::from_str::<serde_json::Value>(args).ok()?;
            let command = args.get("command")?.as_str()?;
            let first = command.split_whitespace().next().unwrap_or_default();
            LOOKS.contains(&first) && !command.contains(['>', ';', '|', '&', '`', '$'])
        }
        name => LOOKING_TOOLS.contains(&name),
    };
    looks.then_some(step)
}

fn steps_so_far(question: &str) -> usize {
    let numbered = |line: &&str| {
        line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok())
    };
    question.lines().filter(numbered).count()
}

/// The next line of the script, and two that are not.
fn thoughts(messages: &[Message], question: &str) -> String {
    let (lines, taken) = (lines(messages), steps_so_far(question));
    let right = match lines.get(taken) {
        Some(line) => format!("Do as it says: {}", shortened(line, THOUGHT_BYTES_MAX)),
        None => "Say what came of it".to_owned(),
    };
    let last = taken + 1 >= lines.len();
    json!({ "thoughts": [
        { "thought": "Do nothing and wait", "final": false },
        { "thought": right, "final": last },
        { "thought": "Begin again from the start", "final": false },
    ] })
    .to_string()
}

/// Worth something as far as every step is the one that the script wants.
fn value(messages: &[Message], question: &str) -> String {
    let lines = lines(messages);
    let steps = question.lines().filter_map(|line| line.split_once(". "));
    let steps = steps.filter(|(number, _)| number.parse::<u32>().is_ok());
    let right = |(at, (_, step)): (usize, (&str, &str))| match lines.get(at) {
        Some(line) => step.ends_with(&*shortened(line, THOUGHT_BYTES_MAX)),
        None => step.starts_with("Say what came of it"),
    };
    match steps.enumerate().all(right) {
        true => "These are the steps that were asked for.\nsure".to_owned(),
        false => "That was not asked for.\nimpossible".to_owned(),
    }
}

/// One sub-task a reply of the script, side by side; of one that has several lines, one a line.
fn plan(messages: &[Message], question: &str, nested: bool) -> String {
    let tasks: Vec<String> = match nested {
        true => task(question).lines().map(str::to_owned).collect(),
        false => reply::all(messages).into_iter().map(|reply| reply.join("\n")).collect(),
    };
    let nodes: Vec<serde_json::Value> = match tasks.is_empty() {
        true => vec![json!({ "id": "answer", "task": "Answer what was said" })],
        false => (1..)
            .zip(&tasks)
            .map(|(number, task)| json!({ "id": format!("step_{number}"), "task": task }))
            .collect(),
    };
    json!({ "nodes": nodes }).to_string()
}

/// The sub-task that a question is about.
fn task(question: &str) -> &str {
    let task = question
        .split_once("One of its sub-tasks is: ")
        .or_else(|| question.split_once("split it further: "))
        .map_or("", |(_, task)| task);
    task.split("\n\n").next().unwrap_or_default()
}
