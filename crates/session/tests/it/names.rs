//! Which entries an event names; none may be of its own batch.

use polyloop_session::Seq;
use polyloop_session::event::{Event, Purpose, Stop, Work};

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
        Event::CallStarted { purpose: Purpose::Explain { wait }, .. } => vec![wait.0],
        Event::CallStarted { .. } => Vec::new(),
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
        Event::Forked { upto, .. } => vec![*upto],
        Event::FilesTouched { item, .. } => vec![item.0],
        Event::UndoFailed { .. } => Vec::new(),
        Event::UndoStarted { items, .. } | Event::Undone { items, .. } => {
            items.iter().map(|item| item.0).collect()
        }
        _ => Vec::new(),
    }
}
