use polyloop_session::Heal;
use polyloop_session::event::{Agent, Event, LineId, NodeOutcome, Outcome, Purpose};
use polyloop_session::strategy::bounds::Wanted;

use super::play::{Asked, Play, Reply, say};

fn plan(asked: &Asked<'_>) -> bool {
    matches!(asked.purpose, Purpose::Plan { .. })
}

const DIAMOND: &str = r#"Sure! {"nodes": [
    {"id": "a", "task": "read a"}, {"id": "b", "task": "read b"},
    {"id": "both", "task": "compare", "needs": ["a", "b"]}]}"#;

#[test]
fn ready_nodes_run_at_once_and_one_sink_is_the_answer() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        _ if plan(asked) => say(DIAMOND),
        Purpose::Think if asked.last.contains("compare") => {
            assert!(asked.has("Result of a (read a):\nA"), "{:?}", asked.prompt);
            assert!(asked.has("Result of b (read b):\nB"));
            say("A is not B")
        }
        Purpose::Think if asked.results() == 0 => Reply::Call("look".into()),
        Purpose::Think if asked.last.contains("read a") => say("A"),
        Purpose::Think => say("B"),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    play.send("Compare a and b", Agent::Got, Wanted::default(), false);
    play.finish();
    assert_eq!(play.answer(), "A is not B");
    assert_eq!(play.at_once, 2);
    assert_eq!(play.calls(), 1 + 2 + 2 + 1);
    assert_eq!(play.events(|event| matches!(event, Event::Concluded { .. })).len(), 1);
}

#[test]
fn several_sinks_are_put_together_by_one_call() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        _ if plan(asked) => say("1. first thing\n2. second thing"),
        Purpose::Think if asked.last.contains("Put the results together") => say("all"),
        Purpose::Think => say("part"),
        other => panic!("{other:?}"),
    };
    // A list is one after the other, so that there is one sink; two nodes without edges are two.
    let mut play = Play::new(100, &mind);
    play.send("Do both", Agent::Got, Wanted::default(), false);
    play.finish();
    assert_eq!((play.answer().as_str(), play.calls()), ("part", 3));
    let mind = |asked: &Asked<'_>| match asked.purpose {
        _ if plan(asked) => say(r#"[{"id": "x", "task": "x"}, {"id": "y", "task": "y"}]"#),
        _ => mind(asked),
    };
    let mut play = Play::new(100, &mind);
    play.send("Do both", Agent::Got, Wanted::default(), false);
    play.finish();
    assert_eq!((play.answer().as_str(), play.calls()), ("all", 4));
}

#[test]
fn a_failed_node_fails_only_what_needs_it() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        _ if plan(asked) => {
            say(r#"{"nodes": [{"id": "bad", "task": "bad"}, {"id": "good", "task": "good"},
                {"id": "after", "task": "after bad"}], "edges": [["bad", "after"]]}"#)
        }
        Purpose::Think if asked.last.contains("Put the results together") => {
            assert!(asked.has("after (after bad) was not done."));
            say("half")
        }
        Purpose::Think if asked.last.contains("Your sub-task: bad") => Reply::Fail(Heal::Never),
        Purpose::Think => say("fine"),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    play.send("Do all", Agent::Got, Wanted::default(), false);
    play.finish();
    assert_eq!(play.answer(), "half");
    let ended = play.log.iter().filter_map(|entry| match &entry.event {
        Event::NodeEnded { node, outcome } => Some((node.index, outcome.clone())),
        _ => None,
    });
    let mut ended: Vec<_> = ended.collect();
    ended.sort_by_key(|(index, _)| *index);
    assert!(matches!(ended[0].1, NodeOutcome::Failed { .. }), "{ended:?}");
    assert!(matches!(ended[1].1, NodeOutcome::Done { .. }));
    assert!(matches!(ended[2].1, NodeOutcome::Skipped { .. }));
}

#[test]
fn when_nothing_is_left_the_turn_says_why() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        _ if plan(asked) => say(DIAMOND),
        _ => Reply::Fail(Heal::Never),
    };
    let mut play = Play::new(100, &mind);
    play.send("Do it", Agent::Got, Wanted::default(), false);
    play.finish();
    let Outcome::Failed { fault } = play.outcome() else { panic!() };
    assert_eq!(&*fault.code, "subtasks_failed");
}

#[test]
fn a_cycle_is_told_once_and_then_cut_open() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        _ if plan(asked) => say(r#"{"nodes": [{"id": "a", "task": "a", "needs": ["b"]},
                {"id": "b", "task": "b", "needs": ["a"]}, {"id": "b", "task": "b again"}]}"#),
        Purpose::Think => say("done"),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    play.send("Do it", Agent::Got, Wanted::default(), false);
    play.finish();
    let misread = play.events(|event| matches!(event, Event::Misread { .. }));
    let [Event::Misread { why, .. }] = misread[..] else { panic!("{misread:?}") };
    assert_eq!(&**why, "The plan has a cycle: a -> b -> a");
    let notices = play.notices();
    assert!(notices[0].contains("the second \"b\" is called \"b_2\""), "{notices:?}");
    assert!(notices[0].contains("was cut open"), "{notices:?}");
    assert_eq!(play.outcome(), &Outcome::Completed);
}

#[test]
fn the_best_of_several_is_kept_and_worked_over() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        _ if plan(asked) => {
            say(r#"{"nodes": [{"id": "n", "task": "write", "attempts": 3, "refine": 1}]}"#)
        }
        Purpose::Think => say(&format!("draft {}", asked.before + 1)),
        Purpose::Score { attempt, .. } => say(if attempt == 1 { "9/10" } else { "4/10" }),
        Purpose::Refine { .. } => {
            let draft = asked.last.split("The result:\n").nth(1).unwrap();
            say(&format!("better {}", draft.lines().next().unwrap()))
        }
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    play.send("Write", Agent::Got, Wanted::default(), false);
    play.finish();
    assert_eq!(play.answer(), "better draft 2");
    assert_eq!(play.calls(), 1 + 3 + 3 + 1);
}

#[test]
fn a_complex_node_becomes_a_graph_of_its_own() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Plan { node: None } => say(DIAMOND),
        Purpose::Plan { node: Some(_) } => {
            assert!(asked.last.contains("split it further: compare"));
            say(r#"{"nodes": [{"id": "l", "task": "lengths"}, {"id": "w", "task": "words"}]}"#)
        }
        Purpose::Judge { .. } => {
            say(if asked.last.contains("compare") { "complex" } else { "simple" })
        }
        Purpose::Think if asked.last.contains("Put the results together") => {
            assert!(asked.has("both.l (lengths):"), "{:?}", asked.last);
            say("compared")
        }
        Purpose::Think if asked.last.contains("lengths") || asked.last.contains("words") => {
            assert!(asked.last.contains("It is part of a larger one: compare"), "{}", asked.last);
            assert!(asked.last.contains("Result of a (read a):\nok"), "{}", asked.last);
            say("ok")
        }
        Purpose::Think => say("ok"),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    play.send("Compare", Agent::Got, Wanted::default(), true);
    play.finish();
    assert_eq!(play.answer(), "compared");
    let nested = play.events(|event| matches!(event, Event::Planned { parent: Some(_), .. }));
    assert_eq!(nested.len(), 1);
    let lines = play.events(|event| {
        matches!(event, Event::CallStarted { line: Some(LineId::Node { .. }), .. })
    });
    assert_eq!(lines.len(), 5, "two readers, two inside, and the one that puts them together");
}

#[test]
fn what_is_left_of_the_nodes_is_shared_whoever_plans_first() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Plan { node: None } => say(r#"["one", "two", "three"]"#),
        Purpose::Plan { .. } => {
            assert!(asked.has("Plan at most 2 sub-tasks"), "{}", asked.last);
            say(r#"["x", "y", "z"]"#)
        }
        Purpose::Judge { .. } => say("complex"),
        Purpose::Think => say("ok"),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    let bounds = Wanted { got_nodes_total: Some(11), got_depth: Some(3), ..Wanted::default() };
    play.send("Do", Agent::Got, bounds, true);
    play.finish();
    let nodes = play.log.iter().map(|entry| match &entry.event {
        Event::Planned { nodes, .. } => nodes.len(),
        _ => 0,
    });
    assert_eq!(nodes.sum::<usize>(), 3 + 3 * 2, "two each, and nothing is left for more");
    assert_eq!(play.outcome(), &Outcome::Completed);
}

#[test]
fn an_empty_result_is_none() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        _ if plan(asked) => say(r#"[{"id": "a", "task": "empty"}, {"id": "b", "task": "full"}]"#),
        Purpose::Think if asked.last.contains("Put the results together") => {
            assert!(asked.has("a (empty) failed: The sub-task was answered with nothing"));
            say("half")
        }
        Purpose::Think => say(if asked.last.contains("full") { "ok" } else { " " }),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    play.send("Do", Agent::Got, Wanted::default(), false);
    play.finish();
    assert_eq!(play.answer(), "half");
}
