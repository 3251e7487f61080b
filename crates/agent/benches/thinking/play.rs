//! Plays puzzles through real sessions: the actor, the strategies, and the simulated model.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use polyloop_agent::sessions::Sessions;
use polyloop_session::command::Send;
use polyloop_session::event::{Agent, Outcome, RunOptions};
use polyloop_session::strategy::bounds::{Judge, Search, Wanted};
use polyloop_session::{Command, Event, Update};

use super::client::{APPROVE, CLIENT};
use super::make::{message, who};
use super::mind::{self, ANSWER_MARK, Mind, Plan, Skill};
use super::puzzle::{self, Left, STEPS, Solver};
use super::rig::{Setup, in_time, memory, temp_dir};
use super::theory::{Game, Tree};
use super::view::{Frame, Kind, Seeing};

/// Enough that no search is cut short by it.
const CALLS_MAX: u32 = 10_000;
const AT_ONCE: usize = 4;

/// What one puzzle came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Played {
    pub solved: bool,
    pub calls: u32,
    pub events: u32,
}

/// The agent that plays a game, and how it is asked to.
pub fn asked(game: Game) -> (Agent, Wanted, Plan) {
    let plain = Plan::Whole { attempts: 1 };
    let count = |count: usize| Some(u32::try_from(count).unwrap());
    match game {
        Game::Chain => (Agent::React, Wanted::default(), plain),
        Game::Tree(Tree { proposals, beam, samples, vote, deep, prunes }) => {
            let wanted = Wanted {
                tot_proposals: count(proposals),
                tot_beam: count(beam),
                tot_samples: count(samples),
                tot_depth: count(STEPS),
                tot_judge: Some(if vote { Judge::Vote } else { Judge::Value }),
                tot_search: Some(if deep { Search::Depth } else { Search::Breadth }),
                tot_prune: (!prunes).then_some(0),
                ..Wanted::default()
            };
            (Agent::Tot, wanted, plain)
        }
        Game::Chains { attempts } => {
            let wanted = Wanted { got_attempts: count(attempts), ..Wanted::default() };
            (Agent::Got, wanted, Plan::Whole { attempts: count(attempts).unwrap() })
        }
        Game::Links { attempts } => {
            let wanted = Wanted { got_attempts: count(attempts), ..Wanted::default() };
            (Agent::Got, wanted, Plan::Steps { attempts: count(attempts).unwrap() })
        }
    }
}

/// All puzzles with one skill, a few at a time.
pub async fn play_all(
    game: Game,
    (accuracy, error, seed): (f64, f64, u64),
    puzzles: &[Left],
    solver: &Arc<Solver>,
) -> Vec<Played> {
    let (agent, wanted, plan) = asked(game);
    let mind = Mind::new(Skill { accuracy, error, plan, seed }, solver.clone());
    let (dir, log) = (temp_dir(), memory());
    let mut kit = Setup::new(log).model(Arc::new(mind)).kit(dir.path());
    kit.settings.calls_max = CALLS_MAX;
    let (sessions, kind): (Sessions<Seeing>, _) = (Sessions::new(kit, None), Kind::new());
    let run =
        RunOptions { agent: Some(agent), bounds: Some(Box::new(wanted)), ..Default::default() };
    let each = puzzles.iter().map(|numbers| play(&sessions, kind, numbers, run.clone()));
    let played = stream::iter(each).buffered(AT_ONCE).collect().await;
    in_time("the sessions' end", sessions.close()).await;
    played
}

async fn play(sessions: &Sessions<Seeing>, kind: Kind, numbers: &Left, run: RunOptions) -> Played {
    let handle = sessions.passing(who());
    let attached = handle.attach(kind, None, APPROVE, CLIENT).await.unwrap();
    let mut subscription = attached.subscription;
    let said = Send { run: Some(Box::new(run)), ..message(&mind::message(numbers)) };
    handle.command(Command::Send(Box::new(said))).await.unwrap();
    let (mut answer, mut played) = (String::new(), Played { solved: false, calls: 0, events: 0 });
    let mut coming = Vec::new().into_iter();
    loop {
        let Some(Frame(update)) = coming.next() else {
            let bundle = in_time("the end of a puzzle", subscription.next()).await.unwrap();
            coming = bundle.into_iter();
            continue;
        };
        let Update::Logged(entry) = update else { continue };
        played.events += 1;
        match &entry.event {
            Event::CallStarted { .. } => played.calls += 1,
            Event::ItemCompleted { text, .. } | Event::Concluded { text, .. } => {
                answer = text.to_string();
            }
            Event::TurnEnded { outcome, .. } => {
                assert_eq!(outcome, &Outcome::Completed, "{numbers:?}");
                break;
            }
            _ => {}
        }
    }
    sessions.discard(handle.id()).await;
    let (_, said) = answer.rsplit_once(ANSWER_MARK).expect("an answer says what it is");
    Played { solved: puzzle::solves(numbers, said), ..played }
}
