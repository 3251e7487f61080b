//! What clients say to a simulated session: commands made of actions.

use polyloop_session::command::{Send, Target, WaitReply};
use polyloop_session::event::{Event, Origin, Work};
use polyloop_session::policy::{Judgement, Key, Risk, Rule};
use polyloop_session::wait::{Ask, Then};
use polyloop_session::{Command, ItemId, MessageId, Seq, Timestamp, WaitId, WaitRef};

use super::action::{Action, Aim, Judged, Pick, Reply, Said, Wanted};
use super::make::{image, judgement, parts, who};
use super::play::choose;
use super::sim::{Run, Sim};

/// After so long a wait runs out.
pub const TIMEOUT_MS: i64 = 20;

/// Plays an action that is a command; `None` when it is none.
pub fn command(sim: &mut Sim, action: &Action) -> Option<Run> {
    let command = match action {
        Action::Send(said) => send(said),
        Action::Cancel(aim) => Command::Cancel { target: target(sim, *aim), by: who() },
        Action::Settle { wait, reply } => settle(sim, *wait, reply),
        Action::Interrupt(pick) => interrupt(sim, *pick),
        Action::Resume => Command::Resume { by: who() },
        Action::Compact => Command::Compact { by: who() },
        Action::SetMode(mode) => Command::SetMode { mode: *mode, by: who() },
        Action::Set(setting) => Command::Set { setting: setting.clone(), by: who() },
        Action::Close => Command::Close { by: who() },
        Action::Reopen => Command::Reopen { by: who() },
        _ => return None,
    };
    Some(sim.command(command))
}

pub fn send(said: &Said) -> Command {
    let origin = Origin { who: who(), can_approve: said.can_approve, can_answer: false };
    let mut content = parts(said.text);
    content.extend(said.image.map(image));
    Command::Send(Box::new(Send {
        content,
        origin,
        client_ref: said.client_ref.map(Into::into),
        delivery: said.delivery,
        tokens: 3,
        run: said.run.clone().map(Box::new),
    }))
}

fn target(sim: &Sim, aim: Aim) -> Target {
    match aim {
        Aim::Queued(pick) => {
            let queued: Vec<MessageId> = sim.state.queue().iter().map(|q| q.id).collect();
            Target::Message(choose(&queued, pick).unwrap_or(MessageId(Seq(u64::from(pick)))))
        }
        Aim::Running => match sim.state.turn().map(|turn| &turn.work) {
            Some(Work::Message { message }) => Target::Message(*message),
            Some(Work::Resume { .. } | Work::Compact { .. }) | None => {
                Target::Message(MessageId(Seq::NONE))
            }
        },
        Aim::Named(name) => Target::ClientRef(name.into()),
        Aim::Wait(wanted) => match wanted_wait(sim, wanted) {
            WaitRef::Id(wait) => Target::Wait(wait),
            WaitRef::Presented | WaitRef::Item(_) => {
                Target::Wait(open(sim).first().map_or(WaitId(Seq::NONE), |(wait, _)| *wait))
            }
        },
    }
}

fn open(sim: &Sim) -> Vec<(WaitId, ItemId)> {
    let turn = sim.state.turn().into_iter();
    turn.flat_map(|turn| turn.waits.iter()).map(|(id, open)| (*id, open.item)).collect()
}

fn wanted_wait(sim: &Sim, wanted: Wanted) -> WaitRef {
    let recent = |back: u8| Seq(sim.state.last_seq().0.saturating_sub(u64::from(back)));
    let opened = |back: u8| {
        let waits = sim.log.iter().rev().filter(|e| matches!(e.event, Event::WaitOpened { .. }));
        waits.map(|entry| entry.seq).nth(usize::from(back))
    };
    match wanted {
        Wanted::Presented => WaitRef::Presented,
        Wanted::Open(pick) => {
            choose(&open(sim), pick).map_or(WaitRef::Presented, |(wait, _)| WaitRef::Id(wait))
        }
        Wanted::About(pick) => {
            let item = choose(&open(sim), pick).map(|(_, item)| item);
            WaitRef::Item(item.unwrap_or(ItemId(recent(pick))))
        }
        Wanted::Recent(back) => WaitRef::Id(WaitId(opened(back).unwrap_or_else(|| recent(back)))),
    }
}

pub fn settle(sim: &Sim, wanted: Wanted, reply: &Reply) -> Command {
    let reply = match reply {
        Reply::Approve(message) => WaitReply::Approve { message: message.map(Into::into) },
        Reply::Always => WaitReply::ApproveAlways,
        Reply::Instead(judged) => WaitReply::ApproveInstead {
            args: "{\"patch\":\"theirs\"}".into(),
            always: judged.sandbox,
            judgement: Box::new(judge(judged)),
        },
        Reply::Deny { message, ends } => WaitReply::Deny {
            message: message.map(Into::into),
            then: if *ends { Then::EndTurn } else { Then::Continue },
        },
        Reply::Explain => WaitReply::Explain,
        Reply::Form(rows) => {
            let row = |(at, words): &(u64, Vec<&str>)| {
                (*at, words.iter().map(|word| (*word).into()).collect())
            };
            WaitReply::Answer { answers: rows.iter().map(row).collect() }
        }
    };
    Command::Settle { wait: wanted_wait(sim, wanted), reply, by: who() }
}

pub fn interrupt(sim: &Sim, pick: Option<Pick>) -> Command {
    let running = sim.state.turn().map(|turn| turn.id);
    let turn = match pick {
        None => None,
        Some(pick) if !pick.is_multiple_of(3) => running,
        Some(pick) => Some(polyloop_session::TurnId(Seq(u64::from(pick)))),
    };
    Command::Interrupt { turn, reason: "enough".into(), by: who() }
}

pub fn judge(judged: &Judged) -> Judgement {
    let risk = if judged.risky { Risk::High } else { Risk::Medium };
    let key = |what: &&str| Key { what: (*what).into(), risk };
    Judgement {
        safe: judged.safe,
        confined: judged.confined,
        sandbox: judged.sandbox,
        refusal: judged.refused.then(|| "Never".into()),
        risk,
        diff: None,
        plan_file: judged.risky.then(|| "plan.md".into()),
        keys: judged.keys.iter().map(key).collect(),
        rule: judged.rule.map(|says| Rule { says, line: format!("{says:?} touch").into() }),
        ..judgement(judged.effect)
    }
}

/// Time passes, and nobody answered.
pub fn expire(sim: &mut Sim, after_ms: i64) -> Run {
    let now = Timestamp(sim.now + after_ms);
    let events = polyloop_session::decide::expire(&sim.state, now, Some(TIMEOUT_MS));
    for event in &events {
        let Event::WaitSettled { wait, .. } = event else {
            return Err(format!("[3] time passes and {event:?}").into());
        };
        let open = sim.state.turn().and_then(|turn| turn.waits.get(wait));
        let open = open.ok_or_else(|| "[3] what runs out was not open".to_string())?;
        ensure!(open.opened_at.0 + TIMEOUT_MS <= now.0, "[3] a wait runs out too early");
        match open.ask {
            Ask::Approval => {}
            Ask::Outside { .. } => sim.count("outside expired"),
            Ask::Question { .. } | Ask::Plan { .. } => sim.count("ask expired"),
        }
    }
    sim.record(events)?;
    sim.advance()
}
