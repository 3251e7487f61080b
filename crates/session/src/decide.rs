//! Decides what a command does to a session.
//!
//! Never performs anything: no I/O, no clock. A refused command yields no events.

use crate::command::{Command, Refusal, Send, WaitRef, WaitReply};
use crate::context::{self, Strategy};
use crate::event::{Event, Stop, Work};
use crate::id::{Text, Timestamp, WaitId};
use crate::item::Part;
use crate::policy::{Effect, Mode};
use crate::state::{Explain, Fate, State, ToolPhase};
use crate::wait::{Answer, Instead, Then, Who};

/// Bounds that the server sets, the same for every session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub queued_messages_max: usize,
    pub tokens_max: u64,
    pub strategy: Strategy,
    pub bypass_allowed: bool,
}

pub const DENY_CONTINUE_TEXT: &str =
    "The user did not allow this. Do not run it; go on with the rest another way.";
pub const DENY_STOP_TEXT: &str = "The user did not allow this and stopped the turn.";
pub const EXPIRED_TEXT: &str = "Nobody answered in time, so this was not allowed.";

pub fn decide(state: &State, command: Command, limits: &Limits) -> Result<Vec<Event>, Refusal> {
    match command {
        Command::Send(send) => queue(state, *send, limits),
        Command::Drop { message, by } => {
            let queued = state.queue().iter().any(|q| q.id == message);
            if queued {
                Ok(vec![Event::MessageDropped { message, by }])
            } else {
                Err(Refusal::UnknownMessage)
            }
        }
        Command::Settle { wait, reply, by } => settle(state, wait, reply, by),
        Command::Interrupt { reason, by } => match state.turn() {
            Some(turn) if turn.stopping.is_none() => {
                Ok(vec![Event::TurnStopping { reason: Stop::Interrupted { by, reason } }])
            }
            Some(_) => Ok(Vec::new()),
            None => Err(Refusal::NothingRunning),
        },
        Command::Resume { by } => match (state.turn(), state.interrupted()) {
            (None, Some(interrupted)) => {
                let work = Work::Resume { turn: interrupted.turn, by };
                Ok(vec![Event::TurnStarted { work }])
            }
            (Some(_), _) => Err(Refusal::TurnRunning),
            (None, None) => Err(Refusal::NothingToResume),
        },
        Command::Compact { by } => match state.turn() {
            Some(_) => Err(Refusal::TurnRunning),
            None if context::compaction_cut(state.line()).is_none() => {
                Err(Refusal::NothingToCompact)
            }
            None => Ok(vec![Event::TurnStarted { work: Work::Compact { by } }]),
        },
        Command::SetMode { mode: Mode::Bypass, .. } if !limits.bypass_allowed => {
            Err(Refusal::BypassNotAllowed)
        }
        Command::SetMode { mode, by } => Ok(vec![Event::ModeSet { mode, by }]),
    }
}

fn queue(state: &State, send: Send, limits: &Limits) -> Result<Vec<Event>, Refusal> {
    let blank = send.content.iter().all(|Part::Text { text }| text.trim().is_empty());
    if blank {
        return Err(Refusal::EmptyMessage);
    }
    // While paused nothing empties the queue until a client speaks, so one may speak.
    if state.queue().len() >= limits.queued_messages_max && !state.is_paused() {
        return Err(Refusal::QueueFull { limit: limits.queued_messages_max });
    }
    let Send { content, origin, client_ref, delivery: _, tokens } = send;
    Ok(vec![Event::MessageQueued { content, origin, client_ref, tokens }])
}

fn settle(state: &State, wait: WaitRef, reply: WaitReply, by: Who) -> Result<Vec<Event>, Refusal> {
    let id = find(state, wait)?;
    let turn = state.turn().ok_or(Refusal::NoPendingApproval)?;
    let open = turn.waits.get(&id).ok_or(Refusal::NoPendingApproval)?;
    let phase = turn.items.get(&open.item).and_then(|item| item.tool.as_ref());
    let Some(ToolPhase::Waiting { judgement, .. }) = phase else {
        return Err(Refusal::NoPendingApproval);
    };
    let answer = match reply {
        WaitReply::Approve => Answer::Approved { grants: Vec::new(), instead: None },
        WaitReply::ApproveAlways => {
            Answer::Approved { grants: judgement.keys.clone(), instead: None }
        }
        WaitReply::ApproveInstead { args, judgement: theirs, always } => {
            if judgement.effect != Effect::Edit {
                return Err(Refusal::NotAnEdit);
            }
            if let Some(reason) = theirs.refusal {
                return Err(Refusal::Refused { reason });
            }
            let grants = if always { theirs.keys.clone() } else { Vec::new() };
            let instead = Some(Box::new(Instead { args, judgement: *theirs }));
            Answer::Approved { grants, instead }
        }
        WaitReply::Deny { message, then } => {
            let default = match then {
                Then::Continue => DENY_CONTINUE_TEXT,
                Then::EndTurn => DENY_STOP_TEXT,
            };
            let told = message.filter(|m| !m.trim().is_empty());
            let message = told.map_or_else(|| default.into(), |m| Text::from(m.trim()));
            Answer::Denied { message, then }
        }
        WaitReply::Explain => {
            return match open.explain {
                Explain::No => Ok(vec![Event::ExplainAsked { wait: id, by }]),
                Explain::Asked | Explain::Calling(_) => Err(Refusal::AlreadyExplaining),
            };
        }
    };
    let ends = matches!(answer, Answer::Denied { then: Then::EndTurn, .. });
    let mut events = vec![Event::WaitSettled { wait: id, answer, by }];
    if ends {
        events.push(Event::TurnStopping { reason: Stop::Denied { wait: id } });
    }
    Ok(events)
}

fn find(state: &State, wait: WaitRef) -> Result<WaitId, Refusal> {
    let open = state.turn().map(|turn| &turn.waits);
    match wait {
        WaitRef::Presented => {
            let first = open.and_then(|waits| waits.keys().next());
            first.copied().ok_or(Refusal::NoPendingApproval)
        }
        WaitRef::Id(id) if open.is_some_and(|waits| waits.contains_key(&id)) => Ok(id),
        WaitRef::Id(id) => Err(match state.fate(id) {
            Some(Fate::Settled { by }) => Refusal::AlreadySettled { by: by.describe() },
            Some(Fate::Withdrawn) => Refusal::Withdrawn,
            None => Refusal::NoPendingApproval,
        }),
    }
}

/// When the oldest wait runs out, if waits do at all.
pub fn deadline(state: &State, timeout_ms: Option<i64>) -> Option<Timestamp> {
    let opened = state.turn()?.waits.values().map(|wait| wait.opened_at).min()?;
    timeout_ms.map(|timeout| Timestamp(opened.0.saturating_add(timeout)))
}

/// Denies what nobody answered in time; the turn goes on.
pub fn expire(state: &State, now: Timestamp, timeout_ms: Option<i64>) -> Vec<Event> {
    let (Some(turn), Some(timeout)) = (state.turn(), timeout_ms) else { return Vec::new() };
    let late = turn.waits.iter().filter(|(_, w)| w.opened_at.0.saturating_add(timeout) <= now.0);
    let denied = |wait: &WaitId| Event::WaitSettled {
        wait: *wait,
        answer: Answer::Denied { message: EXPIRED_TEXT.into(), then: Then::Continue },
        by: Who::via("timeout"),
    };
    late.map(|(wait, _)| denied(wait)).collect()
}
