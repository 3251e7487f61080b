//! Plays actions on a simulated session.

use polyloop_session::budget::Budget;
use polyloop_session::event::{Event, Level};
use polyloop_session::item::{End, ItemKind, Opaque, Usage};
use polyloop_session::state::{Item, ToolPhase};
use polyloop_session::{
    Answerable, CallId, Chance, ItemId, Limits, Proposal, Report, Seq, Step, Stream,
};

use super::action::{
    Action, Failure, Go, Halted, Judged, Kind, Last, Pick, Start, Stray, There, Wanted,
};
use super::flaw::Flaw;
use super::make::{LIMITS, created, tool};
use super::scenes;
use super::sim::{Halt, Run, Sim};
use super::speak;
use super::tools::{HALTED, end_tool, escape, harmless, stop_tool, touch};

/// Plays a whole session and leaves it interrupted and at rest.
pub fn play(start: &Start, actions: &[Action]) -> Result<Sim, String> {
    let Start { bypass_allowed, retries_max, tokens_max, .. } = *start;
    let budget = Budget { tokens_max: start.budget, ..Budget::default() };
    let limits = Limits { bypass_allowed, retries_max, tokens_max, budget, ..LIMITS };
    let mut sim = Sim::new(limits);
    let mut events: Vec<Event> = Vec::new();
    events.extend(start.adopted.iter().map(|p| Event::Adopted { piece: Some(p.clone()) }));
    if start.created {
        events.push(created(start.mode, start.calls_max));
    }
    let opened = sim.record(events);
    survive(&mut sim, opened)?;
    for action in actions {
        let played = act(&mut sim, action);
        survive(&mut sim, played)?;
    }
    sim.fuse = None;
    let rested = rest(&mut sim);
    survive(&mut sim, rested)?;
    Ok(sim)
}

/// A turn that a denial ended gives way to the next message, so more than one may be left.
fn rest(sim: &mut Sim) -> Run {
    while sim.state.turn().is_some() {
        drain(sim, &[])?;
    }
    Ok(())
}

fn survive(sim: &mut Sim, played: Run) -> Result<(), String> {
    let survived = match played {
        Err(Halt::Crashed) => sim.crash(None),
        other => other,
    };
    survived.map_err(|halt| match halt {
        Halt::Crashed => "crashed again without a fuse".into(),
        Halt::Broken(told) => told,
    })
}

fn act(sim: &mut Sim, action: &Action) -> Run {
    if let Some(played) = speak::command(sim, action) {
        return played;
    }
    match action {
        Action::Send(_)
        | Action::Cancel(_)
        | Action::Settle { .. }
        | Action::Interrupt(_)
        | Action::Resume
        | Action::Compact
        | Action::SetMode(_)
        | Action::Set(_)
        | Action::Close
        | Action::Reopen => Ok(()), // Played above.
        Action::Go(go) => bring_on(sim, go),
        Action::Begin { call, kind, block } => begin(sim, *call, *kind, *block),
        Action::Grow { item, text, again } => {
            if let Some((item, stream)) = choose(&growing(sim), *item) {
                sim.grow(item, stream, text, usize::from(*again));
            }
            Ok(())
        }
        Action::EndBlock { item, signed } => end_block(sim, *item, *signed),
        Action::Answer { call, judged, there } => match choose(&calls(sim), *call) {
            Some(call) => answer(sim, call, judged, *there),
            None => Ok(()),
        },
        Action::Say { call, blocks, judged, there } => match choose(&calls(sim), *call) {
            Some(call) => say(sim, call, blocks, judged, *there),
            None => Ok(()),
        },
        Action::Fail { call, blocks, failures } => {
            for failure in failures {
                let Some(call) = choose(&calls(sim), *call) else { break };
                write(sim, call, blocks)?;
                sim.report(failed(call, *failure))?;
            }
            Ok(())
        }
        Action::Overflow { summary, again } => overflow(sim, summary, *again),
        Action::Stopped(call) => match choose(&calls(sim), *call) {
            Some(call) => sim.report(Report::CallStopped { call }),
            None => Ok(()),
        },
        Action::EndTool { item, end, seen } => match choose(&tools(sim), *item) {
            Some(item) => end_tool(sim, item, *end, *seen),
            None => Ok(()),
        },
        Action::StopTool { item, halt } => match choose(&tools(sim), *item) {
            Some(item) => stop_tool(sim, item, *halt),
            None => Ok(()),
        },
        Action::Escape(halt) => escape(sim, *halt),
        Action::Stray { about, report } => stray(sim, *about, *report),
        Action::Notice => {
            let (code, text) = ("slow".into(), "The provider is slow".into());
            sim.report(Report::Noticed { level: Level::Warning, code, text })
        }
        Action::Expire { after_ms } => speak::expire(sim, *after_ms),
        Action::Fuse(entries) => {
            sim.fuse = Some(u32::from(*entries));
            Ok(())
        }
        Action::Crash { again, lost } => {
            if *lost {
                sim.lose_journal();
            }
            sim.crash(again.map(u32::from))
        }
        Action::Touch(item) => match choose(&tools(sim), *item) {
            Some(item) => touch(sim, item),
            None => Ok(()),
        },
        Action::Undo { kind, about } => sim.undo(*kind, *about),
        Action::Redo(fuse) => {
            rest(sim)?;
            sim.fuse = fuse.map(u32::from);
            sim.redo()
        }
        Action::Fork => sim.fork(),
        Action::Scene(scene) => {
            rest(sim)?;
            scenes::play(sim, *scene)
        }
        Action::Drain(last) => drain(sim, last),
    }
}

pub fn choose<T: Copy>(among: &[T], pick: Pick) -> Option<T> {
    let at = usize::from(pick).checked_rem(among.len())?;
    among.get(at).copied()
}

/// Some entry of the log, or one just beyond it.
fn any_seq(sim: &Sim, about: u16) -> Seq {
    Seq(u64::from(about) % (sim.state.last_seq().0 + 3))
}

fn failed(call: CallId, Failure { flaw, chance }: Failure) -> Report {
    let (fault, heal, chance) = (flaw.fault(), flaw.heal(), Chance(chance));
    Report::CallFailed { call, fault, heal, chance, usage: None }
}

/// What must go back to the provider; no two are alike.
fn seal(of: CallId, block: u32) -> Opaque {
    Opaque { provider: "p".into(), json: format!("{{\"signature\" :\"{of}/{block}\"}}").into() }
}

pub fn calls(sim: &Sim) -> Vec<CallId> {
    let asked = sim.running.iter().filter_map(|step| match step {
        Step::Ask(call) => Some(*call),
        _ => None,
    });
    asked.collect()
}

pub fn tools(sim: &Sim) -> Vec<ItemId> {
    let run = sim.running.iter().filter_map(|step| match step {
        Step::Run(item) => Some(*item),
        _ => None,
    });
    run.collect()
}

fn items(sim: &Sim) -> impl Iterator<Item = (ItemId, &Item)> {
    sim.state.turn().into_iter().flat_map(|turn| turn.items.iter()).map(|(id, item)| (*id, item))
}

/// What a performer may add to right now.
fn growing(sim: &Sim) -> Vec<(ItemId, Stream)> {
    let streams = items(sim).filter_map(|(id, item)| match (&item.kind, &item.tool) {
        (ItemKind::Text | ItemKind::Reasoning, _) => Some((id, Stream::Text)),
        (ItemKind::ToolCall { .. }, None) => Some((id, Stream::Args)),
        (ItemKind::ToolCall { .. }, Some(ToolPhase::Running { .. })) => Some((id, Stream::Output)),
        (ItemKind::ToolCall { .. }, Some(_)) => None,
    });
    streams.collect()
}

fn bring_on(sim: &mut Sim, go: &Go) -> Run {
    let said = speak::send(&go.said);
    let Some(turn) = sim.state.turn() else { return sim.command(said) };
    let waits = !turn.waits.is_empty();
    let asks = turn.waits.values().any(|open| !open.ask.for_leave());
    match choose(&sim.running, go.pick) {
        Some(Step::Ask(call)) if !waits || go.pick.is_multiple_of(2) => {
            say(sim, call, &go.blocks, &go.judged, There::All)
        }
        Some(Step::Run(item)) if go.stopped && sim.runs_inside(item) => {
            stop_tool(sim, item, Halted { printed: go.said.text, ..HALTED })
        }
        Some(Step::Run(item)) => {
            if go.pick.is_multiple_of(3) {
                touch(sim, item)?;
            }
            end_tool(sim, item, go.end, go.pick.is_multiple_of(2))
        }
        _ if asks && go.pick.is_multiple_of(3) => sim.command(said),
        _ => {
            let command = speak::settle(sim, Wanted::Presented, &go.reply);
            sim.command(command)
        }
    }
}

fn begin(sim: &mut Sim, call: Pick, kind: Kind, block: Option<u8>) -> Run {
    let Some(call) = choose(&calls(sim), call) else { return Ok(()) };
    // The log's length names a block that was never there.
    let fresh = sim.state.last_seq().0 as u32 + 10;
    let block = block.map_or(fresh, u32::from);
    let kind = match kind {
        Kind::Text => ItemKind::Text,
        Kind::Reasoning => ItemKind::Reasoning,
        Kind::Tool => tool("bash", &format!("call-{}", sim.state.last_seq().next())),
    };
    sim.report(Report::BlockStarted { call, block, kind })
}

fn end_block(sim: &mut Sim, item: Pick, signed: bool) -> Run {
    let streaming: Vec<(CallId, u32)> = items(sim).map(|(_, i)| (i.call, i.block)).collect();
    let Some((call, block)) = choose(&streaming, item) else { return Ok(()) };
    sim.report(Report::BlockEnded { call, block, opaque: signed.then(|| seal(call, block)) })
}

fn answer(sim: &mut Sim, call: CallId, judged: &[Judged], there: There) -> Run {
    let asked = items(sim).filter(|(_, item)| item.call == call);
    let asked = asked.filter(|(_, item)| matches!(item.kind, ItemKind::ToolCall { .. }));
    let proposals = asked.zip(judged).map(|((id, item), judged)| {
        let args = sim.live.text(id, Stream::Args).into();
        Proposal {
            block: item.block,
            args,
            judgement: Box::new(speak::judge(judged)),
            opaque: judged.sandbox.then(|| seal(call, item.block)),
        }
    });
    let (proposals, answerable) = (proposals.collect(), answerable(there));
    let usage = usage(call);
    sim.report(Report::Answered { call, usage, proposals, answerable })
}

pub fn answerable(there: There) -> Answerable {
    let (approvals, questions) = (there == There::All, there != There::Nobody);
    Answerable { approvals, questions }
}

/// Not every call says what it cost, and not every price is known.
fn usage(call: CallId) -> Option<Usage> {
    let number = call.0.0;
    let usage = Usage {
        input_tokens: 20 + number,
        output_tokens: 3,
        cached_tokens: 10,
        cache_written_tokens: number % 3,
        reasoning_tokens: number % 2,
        cost_micros: (!number.is_multiple_of(3)).then_some(number),
    };
    (!number.is_multiple_of(5)).then_some(usage)
}

pub fn say(
    sim: &mut Sim,
    call: CallId,
    blocks: &[(Kind, &'static str)],
    judged: &[Judged],
    there: There,
) -> Run {
    write(sim, call, blocks)?;
    answer(sim, call, judged, there)
}

fn overflow(sim: &mut Sim, summary: &'static str, again: bool) -> Run {
    let too_long = Failure { flaw: Flaw::TooLong, chance: 0 };
    let Some(call) = calls(sim).first().copied() else { return Ok(()) };
    sim.report(failed(call, too_long))?;
    let Some(call) = calls(sim).first().copied() else { return Ok(()) };
    say(sim, call, &[(Kind::Text, summary)], &[], There::All)?;
    match calls(sim).first().copied().filter(|_| again) {
        Some(call) => sim.report(failed(call, too_long)),
        None => Ok(()),
    }
}

/// Blocks of a reply, each second one whole and signed.
fn write(sim: &mut Sim, call: CallId, blocks: &[(Kind, &'static str)]) -> Run {
    let at = calls(sim).iter().position(|open| *open == call).unwrap_or_default();
    for (number, (kind, text)) in blocks.iter().enumerate() {
        begin(sim, at as Pick, *kind, None)?;
        if let Some((item, stream)) = growing(sim).last().copied() {
            sim.grow(item, stream, text, 0);
        }
        let last = items(sim).filter(|(_, item)| item.call == call).last();
        let block = last.map(|(_, item)| item.block).filter(|_| number.is_multiple_of(2));
        if let Some(block) = block {
            sim.report(Report::BlockEnded { call, block, opaque: Some(seal(call, block)) })?;
        }
    }
    Ok(())
}

fn stray(sim: &mut Sim, about: u16, report: Stray) -> Run {
    let seq = any_seq(sim, about);
    let (call, item, block) = (CallId(seq), ItemId(seq), u32::from(about % 4));
    sim.report(match report {
        Stray::BlockStarted => Report::BlockStarted { call, block, kind: ItemKind::Text },
        Stray::BlockEnded => Report::BlockEnded { call, block, opaque: None },
        Stray::Answered => {
            let (usage, proposals) = (None, Vec::new());
            Report::Answered { call, usage, proposals, answerable: answerable(There::All) }
        }
        Stray::Failed(failure) => failed(call, failure),
        Stray::Stopped => Report::CallStopped { call },
        Stray::ToolStopped => {
            let (reason, result) = ("stray".into(), Box::default());
            let answerable = answerable(There::All);
            Report::ToolStopped { item, reason, result, answerable }
        }
        Stray::ToolTouches => {
            let (files, made, removed) = (Vec::new(), Vec::new(), Vec::new());
            Report::ToolTouches { item, files, made, removed }
        }
        Stray::ToolEnded => Report::ToolEnded { item, end: End::Whole, result: Box::default() },
    })
}

/// Interrupts, lets every performer report, and checks that the turn is over then.
pub fn drain(sim: &mut Sim, last: &[Last]) -> Run {
    let Some(turn) = sim.state.turn().map(|turn| turn.id) else { return Ok(()) };
    sim.command(speak::interrupt(sim, None))?;
    let interrupted = sim.is_interrupted();
    let spoken_to = sim.state.turn().is_some_and(|turn| turn.spoken_to);
    let mut last = last.iter().copied().chain(std::iter::repeat(Last::Stopped));
    for step in sim.running.clone() {
        let word = last.next().unwrap_or(Last::Stopped);
        match (step, word) {
            (Step::Ask(call), Last::Stopped | Last::Refused) => {
                sim.report(Report::CallStopped { call })?
            }
            (Step::Ask(call), Last::Finished) => {
                answer(sim, call, &[harmless(), harmless()], There::All)?;
            }
            (Step::Ask(call), Last::Failed(failure)) => {
                sim.report(failed(call, failure))?;
            }
            (Step::Run(item), Last::Refused) if sim.runs_inside(item) => {
                stop_tool(sim, item, HALTED)?;
            }
            (Step::Run(item), Last::Stopped | Last::Refused) => {
                end_tool(sim, item, End::Interrupted, false)?
            }
            (Step::Run(item), Last::Finished) => end_tool(sim, item, End::Whole, true)?,
            (Step::Run(item), Last::Failed(_)) => end_tool(sim, item, End::Failed, false)?,
            (Step::StopCall(_) | Step::StopTool(_), _) => {}
        }
    }
    let open = sim.state.turn();
    let over = open.is_none_or(|open| open.id != turn);
    ensure!(over, "[9] everything reported, yet {open:?} is open");
    let rests = interrupted && !spoken_to;
    ensure!(!rests || open.is_none(), "[9] a turn began after an interrupt");
    let waits = interrupted && spoken_to && !sim.state.queue().is_empty();
    ensure!(!waits || open.is_some(), "[9] whoever spoke during the stop is kept waiting");
    sim.count("drained");
    Ok(())
}
