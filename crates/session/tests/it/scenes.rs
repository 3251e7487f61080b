//! Short ways to what random actions meet too rarely, from a session at rest.
//!
//! A scene ends early where the session does not let it happen: no calls are left, or the budget
//! is used up.

use polyloop_session::Command;
use polyloop_session::policy::{Effect, Mode};

use super::action::{Action, Aim, Judged, Kind, Last, Scene, There, Wanted};
use super::make::{ASKS_ONE, send, who};
use super::play::{calls, drain, say};
use super::sim::{Run, Sim};
use super::speak;
use super::tools::{HALTED, escape, harmless};

pub fn play(sim: &mut Sim, scene: Scene) -> Run {
    sim.command(send("on with it"))?;
    let Some(call) = calls(sim).first().copied() else { return Ok(()) };
    match scene {
        Scene::QuestionCancelled => {
            let judged = Judged { effect: Effect::Question, ..harmless() };
            say(sim, call, &[(Kind::Tool, ASKS_ONE)], &[judged], There::All)?;
            cancel(sim)
        }
        Scene::OutsideCancelled => {
            escape(sim, HALTED)?;
            cancel(sim)
        }
        Scene::StoppedLate => {
            sim.command(Command::SetMode { mode: Mode::FullAuto, by: who() })?;
            let judged = Judged { effect: Effect::Execute, safe: false, ..harmless() };
            say(sim, call, &[(Kind::Tool, "{}")], &[judged], There::All)?;
            drain(sim, &[Last::Refused])
        }
    }
}

fn cancel(sim: &mut Sim) -> Run {
    if sim.state.turn().is_none_or(|turn| turn.waits.is_empty()) {
        return Ok(());
    }
    let cancel = Action::Cancel(Aim::Wait(Wanted::Presented));
    speak::command(sim, &cancel).unwrap_or(Ok(()))
}
