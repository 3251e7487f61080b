//! Which entries an event names; none may be of its own batch.

use polyloop_session::Seq;
use polyloop_session::event::{Event, LineId, NodeOutcome, Purpose, Stop, Work};

/// Every entry that an event names.
pub fn named(event: &Event) -> Vec<Seq> {
    match event {
        Event::SessionCreated { .. }
        | Event::Adopted { .. }
        | Event::ModeSet { .. }
        | Event::SettingSet { .. }
        | Event::SessionClosed { .. }
        | Event::SessionReopened { .. }
        | Event::MessageQueued { .. }
        | Event::Noticed { .. }
        | Event::TurnStopping { reason: Stop::Interrupted { .. } }
        | Event::TurnEnded { .. } => Vec::new(),
        Event::TurnStopping { reason: Stop::Denied { wait } } => vec![wait.0],
        Event::MessageDropped { message, .. } => vec![message.0],
        Event::TurnStarted { work: Work::Message { message }, .. } => vec![message.0],
        Event::TurnStarted { work: Work::Resume { turn, .. }, .. } => vec![turn.0],
        Event::TurnStarted { work: Work::Compact { .. }, .. } => Vec::new(),
        Event::CallStarted { purpose, line, .. } => {
            line.map(of_line).into_iter().flatten().chain(of_purpose(*purpose)).collect()
        }
        Event::CallEnded { call, .. } | Event::ItemStarted { call, .. } => vec![call.0],
        Event::ToolProposed { item, .. }
        | Event::ToolStarted { item, .. }
        | Event::SandboxRefused { item, .. }
        | Event::ItemCompleted { item, .. }
        | Event::WaitOpened { item, .. } => vec![item.0],
        Event::WaitSettled { wait, .. }
        | Event::WaitWithdrawn { wait, .. }
        | Event::ExplainAsked { wait, .. } => vec![wait.0],
        Event::Trimmed { items, .. } => items.iter().map(|item| item.0).collect(),
        Event::Compacted { call, upto, .. } => vec![call.0, *upto],
        Event::Misread { call, .. } | Event::Understood { call, .. } => vec![call.0],
        Event::Expanded { call, from, .. } => {
            from.iter().map(|from| from.expanded).chain([call.0]).collect()
        }
        Event::Scored { call, thought, .. } => {
            thought.iter().map(|thought| thought.expanded).chain([call.0]).collect()
        }
        Event::Chosen { beam, weighed, .. } | Event::Backtracked { beam, weighed, .. } => {
            let weighed = weighed.iter().map(|one| one.thought.expanded);
            beam.iter().map(|thought| thought.expanded).chain(weighed).collect()
        }
        Event::PathTaken { thought, .. } => thought.iter().map(|one| one.expanded).collect(),
        Event::Planned { call, parent, .. } => {
            parent.iter().map(|parent| parent.planned).chain([call.0]).collect()
        }
        Event::Judged { call, node, .. } | Event::Refined { call, node, .. } => {
            vec![call.0, node.planned]
        }
        Event::NodeStarted { node, .. } | Event::Kept { node, .. } => vec![node.planned],
        Event::NodeEnded { node, outcome: NodeOutcome::Skipped { missing } } => {
            vec![node.planned, missing.planned]
        }
        Event::NodeEnded { node, .. } => vec![node.planned],
        Event::Gathered { node, .. } => node.iter().map(|node| node.planned).collect(),
        Event::Concluded { .. } => Vec::new(),
        Event::Forked { upto, .. } => vec![*upto],
        Event::FilesTouched { item, .. } => vec![item.0],
        Event::UndoFailed { .. } => Vec::new(),
        Event::UndoStarted { items, .. } | Event::Undone { items, .. } => {
            items.iter().map(|item| item.0).collect()
        }
    }
}

fn of_line(line: LineId) -> Vec<Seq> {
    match line {
        LineId::Node { node, .. } => vec![node.planned],
        LineId::Branch { thought } => thought.iter().map(|thought| thought.expanded).collect(),
    }
}

fn of_purpose(purpose: Purpose) -> Vec<Seq> {
    match purpose {
        Purpose::Think
        | Purpose::Summarise
        | Purpose::Question
        | Purpose::Information
        | Purpose::Vote { .. } => Vec::new(),
        Purpose::Explain { wait } => vec![wait.0],
        Purpose::Expand { thought } => thought.iter().map(|thought| thought.expanded).collect(),
        Purpose::Value { thought, .. } => vec![thought.expanded],
        Purpose::Plan { node } => node.iter().map(|node| node.planned).collect(),
        Purpose::Judge { node } | Purpose::Score { node, .. } | Purpose::Refine { node, .. } => {
            vec![node.planned]
        }
    }
}
