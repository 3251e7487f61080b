//! A model that always wants more never gets more than the bounds say.

use polyloop_session::event::{Agent, Event, Outcome, Purpose};
use polyloop_session::strategy::bounds::Wanted;

use super::play::{Asked, Dice, Play, Reply, number, say};

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
    assert!(nodes.sum::<usize>() <= 32);
    assert!(play.at_once <= 8, "{}", play.at_once);
}

/// Calls of the search itself: the answer is not one of them.
fn searched(play: &Play<'_>) -> usize {
    let of_search = |event: &Event| match event {
        Event::CallStarted { purpose, line, .. } => *purpose != Purpose::Think || line.is_some(),
        _ => false,
    };
    play.events(of_search).len()
}

#[test]
fn a_search_that_is_taken_up_has_the_calls_that_are_left() {
    let calls_max = 40;
    for agent in [Agent::Tot, Agent::Got] {
        for between in [7, 15, 40] {
            let mut play = Play::new(calls_max, &greedy);
            let wanted = Wanted {
                tot_proposals: Some(5),
                tot_beam: Some(5),
                tot_depth: Some(9),
                ..Wanted::default()
            };
            play.send("More", agent, wanted, true);
            for _ in 0..200 {
                play.run(play.log.len() + between, &mut |_| 0);
                if play.state.turn().is_none() {
                    break;
                }
                play.crash();
            }
            assert!(play.state.turn().is_none(), "{agent:?}: it has no end");
            let made = searched(&play);
            assert!(made <= calls_max as usize * 3 / 4, "{agent:?}, {between}: {made} calls");
        }
    }
}

#[test]
fn sub_tasks_of_all_graphs_together_are_bounded() {
    // All that are planned at first are split at the same time.
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Plan { .. } => {
            let nodes: Vec<String> =
                (0..6).map(|n| format!(r#"{{"id": "n{n}", "task": "t{n}"}}"#)).collect();
            say(&format!("[{}]", nodes.join(",")))
        }
        Purpose::Judge { .. } => say("complex"),
        _ => say("done"),
    };
    for total in 1..=20 {
        for order in 0..8_usize {
            let mut play = Play::new(1_000, &mind);
            let wanted = Wanted {
                got_nodes: Some(6),
                got_nodes_total: Some(total),
                got_depth: Some(3),
                ..Wanted::default()
            };
            play.send("More", Agent::Got, wanted, true);
            let mut dice = Dice(order as u64 + 1);
            play.run(usize::MAX, &mut |_| dice.next() as usize);
            assert_eq!(play.outcome(), &Outcome::Completed);
            let nodes = play.log.iter().map(|entry| match &entry.event {
                Event::Planned { nodes, .. } => nodes.len(),
                _ => 0,
            });
            let nodes = nodes.sum::<usize>();
            assert!(nodes <= total as usize, "{nodes} sub-tasks where {total} may be");
        }
    }
}

/// 200,000 opinions are wanted at once: each step costs what is under way, or this takes very long.
#[test]
fn the_widest_search_costs_what_is_under_way() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Expand { .. } => {
            let all: Vec<String> = (0..100).map(|n| format!("{n}. way {n}")).collect();
            say(&all.join("\n"))
        }
        Purpose::Value { .. } => say("likely"),
        _ => say("done"),
    };
    let mut play = Play::new(4_800, &mind);
    let most = Some(100);
    let wanted = Wanted {
        tot_proposals: most,
        tot_samples: Some(20),
        tot_beam: most,
        tot_depth: most,
        ..Wanted::default()
    };
    play.send("More", Agent::Tot, wanted, false);
    play.finish();
    assert_eq!(play.outcome(), &Outcome::Completed);
    assert_eq!(searched(&play), 3_600);
}
