//! Decides what a command does to a session.
//!
//! Never performs anything: no I/O, no clock. A refused command yields no events.

use crate::budget::{self, Budget};
use crate::command::{Command, Delivery, Refusal, Send, Target, WaitRef, WaitReply};
use crate::context::{self, Overhead, Strategy, WindowSize};
use crate::event::{Event, Setting, Stop, Work};
use crate::id::{Text, Timestamp, WaitId};
use crate::item::Part;
use crate::next::turn_started;
use crate::policy::{Effect, Judgement, Mode, RULE_ADVICE, Says};
use crate::state::{Explain, Fate, OpenWait, State, ToolPhase};
use crate::strategy::bounds::Bounds;
use crate::wait::{self, Answer, Ask, Instead, Then, Who};

/// Bounds that the server sets, the same for every session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub queued_messages_max: usize,
    pub tokens_max: u64,
    /// Of the session's model.
    pub window: WindowSize,
    pub strategy: Strategy,
    pub bypass_allowed: bool,
    /// How often a model call that failed is made again.
    pub retries_max: u32,
    /// The part of the window beyond which the conversation is made shorter, in thousandths.
    pub compact_at: u64,
    /// What stands in every prompt beside the conversation, where it was counted.
    pub overhead: Overhead,
    pub budget: Budget,
    /// How far searches may go.
    pub bounds: Bounds,
}

pub const DENY_CONTINUE_TEXT: &str =
    "The user did not allow this. Do not run it; go on with the rest another way.";
pub const DENY_STOP_TEXT: &str = "The user did not allow this and stopped the turn.";
pub const PLAN_BACK_TEXT: &str = "The user did not agree to the plan. Ask what should change, or \
                                  revise it and propose it again.";
pub const NO_ANSWER_TEXT: &str = "The user does not want to answer that. Go on without it.";
pub const WITHDRAWN_BY_TEXT: &str = "Not run: the request for it was withdrawn.";
pub const CANCELLED_REASON: &str = "Cancelled";
pub const CLOSED_REASON: &str = "The session was ended";
pub const EXPIRED_TEXT: &str = "Nobody answered in time, so this was not allowed.";

pub fn decide(state: &State, command: Command, limits: &Limits) -> Result<Vec<Event>, Refusal> {
    match command {
        Command::Send(send) => queue(state, *send, limits),
        Command::Cancel { target, by } => cancel(state, target, by),
        Command::Settle { wait, reply, by } => settle(state, wait, reply, by, limits),
        Command::Interrupt { turn: Some(wanted), .. }
            if state.turn().is_none_or(|turn| turn.id != wanted) =>
        {
            Err(Refusal::NoSuchTurn)
        }
        Command::Interrupt { turn: _, reason, by } => match state.turn() {
            Some(turn) if turn.stopping.is_none() => {
                Ok(vec![Event::TurnStopping { reason: Stop::Interrupted { by, reason } }])
            }
            Some(_) => Ok(Vec::new()),
            None => Err(Refusal::NothingRunning),
        },
        Command::Resume { by } => match (state.turn(), state.interrupted()) {
            (None, Some(interrupted)) => {
                let work = Work::Resume { turn: interrupted.turn, by: by.clone() };
                Ok(begin(state, work, by))
            }
            (Some(_), _) => Err(Refusal::TurnRunning),
            (None, None) => Err(Refusal::NothingToResume),
        },
        Command::Compact { by } => match state.turn() {
            Some(_) => Err(Refusal::TurnRunning),
            None if context::compaction_cut(state.line()).is_none() => {
                Err(Refusal::NothingToCompact)
            }
            None => Ok(begin(state, Work::Compact { by: by.clone() }, by)),
        },
        Command::SetMode { mode: Mode::Bypass, .. } if !limits.bypass_allowed => {
            Err(Refusal::BypassNotAllowed)
        }
        Command::SetMode { mode, by } => Ok(vec![Event::ModeSet { mode, by }]),
        Command::Set { setting, by } => set(setting, by),
        Command::Close { by } => close(state, by),
        Command::Reopen { by } if state.is_closed() => Ok(vec![Event::SessionReopened { by }]),
        Command::Reopen { by: _ } => Ok(Vec::new()),
    }
}

/// A turn that somebody asks for; a session that was ended goes on with it.
fn begin(state: &State, work: Work, by: Who) -> Vec<Event> {
    let reopened = state.is_closed().then_some(Event::SessionReopened { by });
    reopened.into_iter().chain([turn_started(state, work)]).collect()
}

/// The newest of that name counts: clients may use one twice.
fn cancel(state: &State, target: Target, by: Who) -> Result<Vec<Event>, Refusal> {
    let queued = state.queue().iter().rev().find(|queued| match &target {
        Target::Message(id) => queued.id == *id,
        Target::ClientRef(name) => queued.client_ref.as_ref() == Some(name),
        Target::Wait(_) => false,
    });
    if let Some(queued) = queued {
        return Ok(vec![Event::MessageDropped { message: queued.id, by }]);
    }
    let Some(turn) = state.turn() else { return Err(Refusal::UnknownTarget) };
    let began = match target {
        Target::Wait(wait) if turn.waits.contains_key(&wait) => {
            let reason = WITHDRAWN_BY_TEXT.into();
            return Ok(vec![Event::WaitWithdrawn { wait, reason, by: Some(by) }]);
        }
        Target::Wait(_) => false,
        Target::Message(message) => turn.work == Work::Message { message },
        Target::ClientRef(name) => turn.client_ref.as_ref() == Some(&name),
    };
    match turn.stopping {
        _ if !began => Err(Refusal::UnknownTarget),
        Some(_) => Ok(Vec::new()),
        None => {
            let reason = Stop::Interrupted { by, reason: CANCELLED_REASON.into() };
            Ok(vec![Event::TurnStopping { reason }])
        }
    }
}

fn set(setting: Setting, by: Who) -> Result<Vec<Event>, Refusal> {
    match &setting {
        Setting::CallsMax { calls_max: 0 } => {
            return Err(Refusal::BadSetting { why: "max_turns: use at least 1".into() });
        }
        Setting::Title { title } if title.chars().count() > TITLE_CHARS_MAX => {
            let why = format!("title: at most {TITLE_CHARS_MAX} characters");
            return Err(Refusal::BadSetting { why });
        }
        Setting::Metadata { json } if json.len() > METADATA_BYTES_MAX => {
            let why = format!("metadata: at most {METADATA_BYTES_MAX} bytes");
            return Err(Refusal::BadSetting { why });
        }
        Setting::Title { .. }
        | Setting::Agent { .. }
        | Setting::CallsMax { .. }
        | Setting::Metadata { .. }
        | Setting::Model { .. } => {}
    }
    Ok(vec![Event::SettingSet { setting, by }])
}

pub const TITLE_CHARS_MAX: usize = 200;
pub const METADATA_BYTES_MAX: usize = 64 * 1024;

/// Whatever waits in the queue goes with the session.
fn close(state: &State, by: Who) -> Result<Vec<Event>, Refusal> {
    if state.is_closed() {
        return Err(Refusal::AlreadyClosed);
    }
    let drop = |queued: &crate::state::Queued| Event::MessageDropped {
        message: queued.id,
        by: by.clone(),
    };
    let mut events: Vec<Event> = state.queue().iter().map(drop).collect();
    if state.turn().is_some_and(|turn| turn.stopping.is_none()) {
        let reason = Stop::Interrupted { by: by.clone(), reason: CLOSED_REASON.into() };
        events.push(Event::TurnStopping { reason });
    }
    events.push(Event::SessionClosed { by });
    Ok(events)
}

fn queue(state: &State, send: Send, limits: &Limits) -> Result<Vec<Event>, Refusal> {
    let blank = send.content.iter().all(|part| match part {
        Part::Text { text } => text.trim().is_empty(),
        Part::Image { .. } => false,
    });
    if blank {
        return Err(Refusal::EmptyMessage);
    }
    if let Some(answered) = answer(state, &send, limits) {
        return answered;
    }
    // While paused nothing empties the queue until a client speaks, so one may speak.
    if state.queue().len() >= limits.queued_messages_max && !state.is_paused() {
        return Err(Refusal::QueueFull { limit: limits.queued_messages_max });
    }
    let Send { content, origin, client_ref, delivery: _, tokens, run } = send;
    let mut events = Vec::new();
    if state.is_closed() {
        events.push(Event::SessionReopened { by: origin.who.clone() });
    }
    let waits = state.turn().is_some() || !state.queue().is_empty();
    events.push(Event::MessageQueued { content, origin, client_ref, tokens, run, waits });
    Ok(events)
}

/// A message that answers what is open; `None` when it answers nothing.
fn answer(state: &State, send: &Send, limits: &Limits) -> Option<Result<Vec<Event>, Refusal>> {
    let (plans, consents) = match send.delivery {
        Delivery::Queue => return None,
        Delivery::AnswerQuestion => (false, false),
        Delivery::Answer { consents } => (true, consents),
    };
    let turn = state.turn().filter(|turn| turn.stopping.is_none())?;
    let (id, open) = turn.waits.iter().find(|(_, open)| match open.ask {
        Ask::Question { .. } => true,
        Ask::Plan { .. } => plans,
        Ask::Approval | Ask::Outside { .. } => false,
    })?;
    let texts: Vec<Text> = send.content.iter().map(Part::shown).collect();
    let said: Text = texts.join("\n").into();
    let reply = match &open.ask {
        Ask::Plan { .. } if !consents => {
            WaitReply::Deny { message: Some(said), then: Then::Continue }
        }
        Ask::Plan { .. } | Ask::Question { .. } | Ask::Approval | Ask::Outside { .. } => {
            WaitReply::Approve { message: Some(said) }
        }
    };
    let by = send.origin.who.clone();
    Some(settle(state, WaitRef::Id(*id), reply, by, limits))
}

fn settle(
    state: &State,
    wait: WaitRef,
    reply: WaitReply,
    by: Who,
    limits: &Limits,
) -> Result<Vec<Event>, Refusal> {
    let id = find(state, wait)?;
    let turn = state.turn().ok_or(Refusal::NoPendingApproval)?;
    let open = turn.waits.get(&id).ok_or(Refusal::NoPendingApproval)?;
    let phase = turn.items.get(&open.item).and_then(|item| item.tool.as_ref());
    let Some(ToolPhase::Waiting { judgement, .. }) = phase else {
        return Err(Refusal::NoPendingApproval);
    };
    if let WaitReply::Explain = reply {
        if let Some(fault) = budget::exceeded(&limits.budget, state.spent()) {
            return Err(Refusal::Refused { reason: fault.message });
        }
        return explain(id, open, by);
    }
    let answer = match &open.ask {
        Ask::Approval | Ask::Outside { .. } => decision(reply, judgement)?,
        Ask::Plan { .. } => consent(reply)?,
        Ask::Question { questions } => chosen(reply, questions)?,
    };
    let planned = matches!(open.ask, Ask::Plan { .. }) && state.mode() == Mode::Plan;
    let back = planned && matches!(answer, Answer::Approved { .. });
    let ends = matches!(answer, Answer::Denied { then: Then::EndTurn, .. });
    let mut events = vec![Event::WaitSettled { wait: id, answer, by: by.clone() }];
    if back {
        events.push(Event::ModeSet { mode: mode_after_plan(state, limits), by });
    }
    if ends {
        events.push(Event::TurnStopping { reason: Stop::Denied { wait: id } });
    }
    Ok(events)
}

/// The mode may date from a time when the server allowed bypass.
fn mode_after_plan(state: &State, limits: &Limits) -> Mode {
    match state.mode_before_plan() {
        Mode::Bypass if !limits.bypass_allowed => Mode::default(),
        before => before,
    }
}

fn explain(wait: WaitId, open: &OpenWait, by: Who) -> Result<Vec<Event>, Refusal> {
    match (&open.ask, open.explain) {
        (Ask::Question { .. }, _) => {
            Err(Refusal::BadAnswer { why: "That is a question; answer it".into() })
        }
        (_, Explain::No) => Ok(vec![Event::ExplainAsked { wait, by }]),
        (_, Explain::Asked | Explain::Calling(_)) => Err(Refusal::AlreadyExplaining),
    }
}

/// An answer to a request for approval.
fn decision(reply: WaitReply, judgement: &Judgement) -> Result<Answer, Refusal> {
    let approved = |grants, instead, message, always| {
        Ok(Answer::Approved { grants, instead, message, always })
    };
    match reply {
        WaitReply::Approve { message } => approved(Vec::new(), None, given(message), false),
        WaitReply::ApproveAlways => approved(judgement.keys.clone(), None, None, true),
        WaitReply::ApproveInstead { args, judgement: theirs, always } => {
            if judgement.effect != Effect::Edit {
                return Err(Refusal::NotAnEdit);
            }
            if let Some(reason) = theirs.refusal {
                return Err(Refusal::Refused { reason });
            }
            if let Some(rule) = theirs.rule.as_ref().filter(|rule| rule.says == Says::Deny) {
                let reason = format!("{RULE_ADVICE} {}", rule.line).into();
                return Err(Refusal::Refused { reason });
            }
            let grants = if always { theirs.keys.clone() } else { Vec::new() };
            let instead = Some(Box::new(Instead { args, judgement: *theirs }));
            approved(grants, instead, None, always)
        }
        WaitReply::Deny { message, then } => {
            let default = match then {
                Then::Continue => DENY_CONTINUE_TEXT,
                Then::EndTurn => DENY_STOP_TEXT,
            };
            Ok(denied(message, default, then))
        }
        WaitReply::Explain | WaitReply::Answer { .. } => {
            let why = "That request asks for approval; allow it or deny it";
            Err(Refusal::BadAnswer { why: why.into() })
        }
    }
}

fn consent(reply: WaitReply) -> Result<Answer, Refusal> {
    match reply {
        WaitReply::Approve { message } => Ok(Answer::Approved {
            grants: Vec::new(),
            instead: None,
            message: given(message),
            always: false,
        }),
        WaitReply::ApproveAlways => consent(WaitReply::Approve { message: None }),
        WaitReply::Deny { message, then } => Ok(denied(message, PLAN_BACK_TEXT, then)),
        WaitReply::ApproveInstead { .. } => Err(Refusal::NotAnEdit),
        WaitReply::Explain | WaitReply::Answer { .. } => {
            let why = "That is a plan; approve it, or send it back with feedback";
            Err(Refusal::BadAnswer { why: why.into() })
        }
    }
}

fn chosen(reply: WaitReply, questions: &[wait::Question]) -> Result<Answer, Refusal> {
    match reply {
        WaitReply::Answer { answers } => {
            let answers =
                wait::read(questions, &answers).map_err(|why| Refusal::BadAnswer { why })?;
            Ok(Answer::Answered { answers, said: None })
        }
        WaitReply::Approve { message: Some(said) } if !said.trim().is_empty() => {
            Ok(Answer::Answered { answers: wait::typed(questions, &said), said: Some(said) })
        }
        WaitReply::Deny { message, then } => Ok(denied(message, NO_ANSWER_TEXT, then)),
        WaitReply::Approve { .. }
        | WaitReply::ApproveAlways
        | WaitReply::ApproveInstead { .. }
        | WaitReply::Explain => {
            let why = "That is a question; say what the answer is";
            Err(Refusal::BadAnswer { why: why.into() })
        }
    }
}

fn given(message: Option<Text>) -> Option<Text> {
    message.filter(|text| !text.trim().is_empty()).map(|text| text.trim().into())
}

fn denied(message: Option<Text>, default: &str, then: Then) -> Answer {
    Answer::Denied { message: given(message).unwrap_or_else(|| default.into()), then }
}

fn find(state: &State, wait: WaitRef) -> Result<WaitId, Refusal> {
    let open = state.turn().map(|turn| &turn.waits);
    match wait {
        WaitRef::Presented => {
            let first = open.and_then(|waits| waits.keys().next());
            first.copied().ok_or(Refusal::NoPendingApproval)
        }
        WaitRef::Item(item) => {
            let about = open.and_then(|waits| waits.iter().find(|(_, open)| open.item == item));
            about.map(|(id, _)| *id).ok_or_else(|| closed(state.fate_of_item(item)))
        }
        WaitRef::Id(id) if open.is_some_and(|waits| waits.contains_key(&id)) => Ok(id),
        WaitRef::Id(id) => Err(closed(state.fate(id))),
    }
}

fn closed(fate: Option<&Fate>) -> Refusal {
    match fate {
        Some(Fate::Settled { by }) => Refusal::AlreadySettled { by: by.describe() },
        Some(Fate::Withdrawn) => Refusal::Withdrawn,
        None => Refusal::NoPendingApproval,
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
        by: Who::via(wait::TIMEOUT_VIA),
    };
    late.map(|(wait, _)| denied(wait)).collect()
}
