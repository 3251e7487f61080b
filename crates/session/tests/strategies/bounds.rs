//! A model that always wants more never gets more than the bounds say.

use polyloop_session::event::{Agent, Event, Outcome, Purpose};
use polyloop_session::strategy::bounds::Wanted;

use super::play::{Asked, Play, Reply, number, say};

fn greedy(asked: &Asked<'_>) -> Reply {
    match asked.purpose {
        Purpose::Expand { .. } => {
            let all: Vec<String> = (0..50).map(|n| format!("{n}. way {n}")).collect();
            say(&all.join("\n"))
        }
        Purpose::Plan { .. } => {
            let nodes: Vec<String> = (0..50)
                .map(|n| {
                    let needs = if n == 0 { String::new() } else { format!("\"n{}\"", n - 1) };
                    format!(
                        r#"{{"id": "n{n}", "task": "t{n}", "needs": [{needs}], "attempts": 99, "refine": 99}}"#
                    )
                })
                .collect();
            say(&format!("[{}]", nodes.join(",")))
        }
        Purpose::Judge { .. } => say("complex"),
        Purpose::Value { .. } | Purpose::Score { .. } => {
            say(&format!("{}", number(&asked.last) % 10))
        }
        Purpose::Think
            if asked.prompt.messages.len() < 400 && !number(&asked.last).is_multiple_of(3) =>
        {
            Reply::Call("look".into())
        }
        _ => say("an answer"),
    }
}

#[test]
fn no_turn_makes_more_calls_than_it_may() {
    for agent in [Agent::React, Agent::Dup, Agent::Tot, Agent::Got] {
        for calls_max in [1, 2, 3, 5, 8, 13, 40, 100] {
            for adaptive in [false, true] {
                let mut play = Play::new(calls_max, &greedy);
                play.send("More", agent, Wanted::default(), adaptive);
                play.finish();
                let made = play.calls();
                assert!(made <= calls_max as usize, "{agent:?} made {made} of {calls_max}");
                match play.outcome() {
                    Outcome::Completed => {}
                    Outcome::Failed { fault } => {
                        let code = &*fault.code;
                        assert!(["max_turns", "subtasks_failed"].contains(&code), "{fault:?}");
                    }
                    Outcome::Interrupted { .. } => panic!("nobody interrupted it"),
                }
            }
        }
    }
}

#[test]
fn a_search_keeps_within_its_own_bounds() {
    let mut play = Play::new(1_000, &greedy);
    play.send("More", Agent::Tot, Wanted::default(), false);
    play.finish();
    for event in play.events(|event| matches!(event, Event::Expanded { .. })) {
        let Event::Expanded { thoughts, .. } = event else { continue };
        assert!(thoughts.len() <= 3);
    }
    let mut play = Play::new(10_000, &greedy);
    play.send("More", Agent::Got, Wanted::default(), true);
    play.finish();
    let nodes = play.log.iter().map(|entry| match &entry.event {
        Event::Planned { nodes, .. } => nodes.len(),
        _ => 0,
    });
    assert!(nodes.sum::<usize>() <= 64);
    assert!(play.at_once <= 8, "{}", play.at_once);
}
