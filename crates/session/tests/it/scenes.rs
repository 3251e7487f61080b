//! Short ways to what random actions meet too rarely, from a session at rest.
//!
//! A scene ends early where the session does not let it happen: no calls are left, or the budget
//! is used up.

use polyloop_session::item::End;
use polyloop_session::policy::{Effect, Mode, Says};
use polyloop_session::{Command, Stream};

use super::action::{
    Action, Aim, Asker, Fate, Halted, Judged, Kind, Last, Reply, Scene, There, Wanted,
};
use super::generate::LONG;
use super::make::{ASKS_ONE, send, who};
use super::play::{calls, drain, say, tools};
use super::sim::{Run, Sim};
use super::speak;
use super::tools::{HALTED, end_tool, escape, harmless};

/// After this every wait has run out.
const LATER_MS: i64 = 1_000;

pub fn play(sim: &mut Sim, scene: Scene) -> Run {
    if matches!(scene, Scene::ClosedTwice) {
        sim.command(Command::Close { by: who() })?;
        return sim.command(Command::Close { by: who() });
    }
    sim.command(send("on with it"))?;
    match scene {
        Scene::Asked { by, there, then } => {
            asked(sim, by, there)?;
            follows(sim, then)
        }
        Scene::StoppedLate => {
            mode(sim, Mode::FullAuto)?;
            proposes(sim, "{}", runs(), There::All)?;
            drain(sim, &[Last::Refused])
        }
        Scene::BypassedLate => escape(sim, Halted { mode: Some(Mode::Bypass), ..HALTED }),
        Scene::RuleInBypass => {
            mode(sim, Mode::Bypass)?;
            let judged = Judged { rule: Some(Says::Ask), ..runs() };
            proposes(sim, "{}", judged, There::All)
        }
        Scene::LongOutput => {
            proposes(sim, "{}", harmless(), There::All)?;
            let Some(item) = tools(sim).first().copied() else { return Ok(()) };
            sim.grow(item, Stream::Output, LONG, 0);
            end_tool(sim, item, End::Whole, false)
        }
        Scene::ClosedTwice => Ok(()), // Played above.
    }
}

fn asked(sim: &mut Sim, by: Asker, there: There) -> Run {
    let effect = match by {
        Asker::Question => Effect::Question,
        Asker::Plan => Effect::Plan,
        Asker::Edit => Effect::Edit,
        Asker::Sandbox => return escape(sim, Halted { there, ..HALTED }),
    };
    if effect == Effect::Edit {
        mode(sim, Mode::Suggest)?;
    }
    let judged = Judged { effect, safe: false, confined: false, ..harmless() };
    proposes(sim, ASKS_ONE, judged, there)
}

fn follows(sim: &mut Sim, then: Fate) -> Run {
    if sim.state.turn().is_none_or(|turn| turn.waits.is_empty()) {
        return Ok(());
    }
    let settled = |reply| Action::Settle { wait: Wanted::Presented, reply };
    let action = match then {
        Fate::Cancelled => Action::Cancel(Aim::Wait(Wanted::Presented)),
        Fate::Expired => return speak::expire(sim, LATER_MS),
        Fate::Crashed => return sim.crash(None),
        Fate::Denied => settled(Reply::Deny { message: None, ends: true }),
        Fate::Approved => settled(Reply::Approve(None)),
        Fate::Replaced => settled(Reply::Instead(Judged { refused: true, ..runs() })),
        Fate::ModeSet(mode) => Action::SetMode(mode),
    };
    speak::command(sim, &action).unwrap_or(Ok(()))
}

fn mode(sim: &mut Sim, mode: Mode) -> Run {
    sim.command(Command::SetMode { mode, by: who() })
}

fn proposes(sim: &mut Sim, args: &'static str, judged: Judged, there: There) -> Run {
    let Some(call) = calls(sim).first().copied() else { return Ok(()) };
    say(sim, call, &[(Kind::Tool, args)], &[judged], there)
}

/// A command that is no danger in the sandbox.
fn runs() -> Judged {
    Judged { effect: Effect::Execute, safe: false, ..harmless() }
}
