use polyloop_session::Heal;
use polyloop_session::event::{Agent, Event, Outcome, Purpose};
use polyloop_session::next::BRANCH_TEXT;
use polyloop_session::strategy::bounds::{Judge, Search, Wanted};

use super::play::{Asked, Play, Reply, say};

/// How many steps a question tells of, and the last of them.
fn steps(asked: &Asked<'_>) -> Vec<String> {
    let lines = asked.last.lines().filter_map(|line| line.split_once(". "));
    let numbered = lines.filter(|(number, _)| number.parse::<u32>().is_ok());
    numbered.map(|(_, step)| step.to_owned()).collect()
}

fn beams(play: &Play<'_>) -> Vec<(u32, usize)> {
    let events = play.log.iter().filter_map(|entry| match &entry.event {
        Event::Chosen { depth, beam, .. } => Some((*depth, beam.len())),
        _ => None,
    });
    events.collect()
}

fn wanted() -> Wanted {
    Wanted { tot_proposals: Some(2), tot_beam: Some(2), tot_depth: Some(3), ..Wanted::default() }
}

#[test]
fn the_best_path_is_followed_to_its_depth_and_told_before_the_answer() {
    // Letters: only paths of the letter b are worth anything.
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Expand { .. } => say(r#"{"thoughts": [{"thought": "a"}, {"thought": "b"}]}"#),
        Purpose::Value { .. } => {
            let good = steps(asked).iter().filter(|step| *step == "b").count();
            say(&format!("I think {}/{}", good, steps(asked).len()))
        }
        Purpose::Think => {
            assert!(asked.has("1. b\n2. b\n3. b"), "{:?}", asked.prompt);
            say("bbb")
        }
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    play.send("Spell it", Agent::Tot, wanted(), false);
    play.finish();
    assert_eq!(play.answer(), "bbb");
    // At the last depth the best is taken alone.
    assert_eq!(beams(&play), [(1, 1), (2, 2), (3, 1)]);
    // What is worth nothing is not followed: one state, one state, two states; then the answer.
    assert_eq!(play.calls(), (1 + 2) + (1 + 2) + (2 + 4) + 1);
    assert_eq!(play.at_once, 4);
}

#[test]
fn a_branch_that_leads_nowhere_is_left_for_its_sibling() {
    // Whatever follows from "left" is impossible; it looks better than "right" at first.
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Expand { thought: None } => say("1. left\n2. right"),
        Purpose::Expand { .. } => say("1. on\n2. further (final)"),
        Purpose::Value { .. } => {
            let steps = steps(asked);
            match (steps[0].as_str(), steps.len()) {
                ("left", 1) => say("sure"),
                ("left", _) => say("impossible"),
                ("right", 1) => say("likely"),
                _ => say("9"),
            }
        }
        Purpose::Think => say("done"),
        other => panic!("{other:?}"),
    };
    for search in [Search::Breadth, Search::Depth] {
        let mut play = Play::new(100, &mind);
        let bounds = Wanted { tot_beam: Some(1), tot_search: Some(search), ..wanted() };
        play.send("Find it", Agent::Tot, bounds, false);
        play.finish();
        let back = play.events(|event| matches!(event, Event::Backtracked { .. }));
        assert!(matches!(back[..], [Event::Backtracked { to_depth: 1, .. }]), "{back:?}");
        let taken = play.events(|event| matches!(event, Event::PathTaken { .. }));
        let [Event::PathTaken { note, .. }] = taken[..] else { panic!("{taken:?}") };
        assert!(note.contains("1. right\n2. "), "{note}");
        assert_eq!(play.outcome(), &Outcome::Completed);
    }
}

#[test]
fn that_nothing_is_good_enough_is_recorded_before_the_search_ends() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Expand { .. } => say("1. left\n2. right"),
        Purpose::Value { .. } => say("impossible"),
        Purpose::Think => say("I do not know"),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    play.send("Find it", Agent::Tot, wanted(), false);
    play.finish();
    let found = play.events(|e| matches!(e, Event::Chosen { .. } | Event::PathTaken { .. }));
    let [Event::Chosen { beam, weighed, .. }, Event::PathTaken { note, .. }] = found[..] else {
        panic!("{found:?}")
    };
    assert!(beam.is_empty() && weighed.len() == 2, "{found:?}");
    assert!(note.contains("not thought to be sure"), "{note}");
    assert_eq!(play.calls(), 1 + 2 + 1);
}

#[test]
fn votes_choose_and_one_alone_needs_none() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Expand { thought: None } => say(r#"["one", "two", "three"]"#),
        Purpose::Expand { .. } => say(r#"{"thoughts": [{"thought": "end", "final": true}]}"#),
        Purpose::Vote { sample, .. } => say(&format!("Choice {}", if sample < 2 { 2 } else { 3 })),
        Purpose::Think => say("ok"),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    let bounds = Wanted {
        tot_judge: Some(Judge::Vote),
        tot_samples: Some(3),
        tot_proposals: Some(3),
        tot_beam: Some(1),
        ..wanted()
    };
    play.send("Choose", Agent::Tot, bounds, false);
    play.finish();
    let chosen = play.events(|event| matches!(event, Event::Chosen { depth: 1, .. }));
    let [Event::Chosen { weighed, .. }] = chosen[..] else { panic!("{chosen:?}") };
    assert_eq!(weighed.iter().map(|one| one.score).collect::<Vec<_>>(), [0, 666, 333]);
    assert!(
        play.events(|e| matches!(e, Event::PathTaken { note, .. } if note.contains("two"))).len()
            == 1
    );
    assert_eq!(play.calls(), 1 + 3 + 1 + 1);
}

#[test]
fn in_a_branch_only_reading_tools_run_and_what_they_found_stays() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Expand { thought: None } => match asked.results() {
            0 => Reply::Call("look".into()),
            1 => Reply::Call("change".into()),
            _ => {
                assert!(asked.has(BRANCH_TEXT));
                say("1. do it (final)")
            }
        },
        Purpose::Value { .. } => say("sure"),
        Purpose::Think => match asked.results() {
            2 => {
                assert!(asked.has("looked"));
                Reply::Call("change".into())
            }
            _ => say("changed"),
        },
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    play.send("Change it", Agent::Tot, wanted(), false);
    play.finish();
    assert_eq!(play.answer(), "changed");
    let ran = play.events(|event| matches!(event, Event::ToolStarted { .. })).len();
    assert_eq!(ran, 2, "one look in the branch, one change on the chosen path");
}

#[test]
fn a_branch_that_fails_is_given_up_and_the_first_ends_the_turn() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Expand { thought: None } => say("1. left\n2. right"),
        Purpose::Expand { .. } => match steps(asked)[0].as_str() {
            "left" => Reply::Fail(Heal::Never),
            _ => say("1. there (final)"),
        },
        Purpose::Value { .. } => say("likely"),
        Purpose::Think => say("right"),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    play.send("Go", Agent::Tot, wanted(), false);
    play.finish();
    assert_eq!(play.answer(), "right");
    assert!(play.notices().contains(&"A branch was given up: It broke".to_owned()));
    let first = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Expand { .. } => Reply::Fail(Heal::Never),
        _ => say("Never asked."),
    };
    let mut play = Play::new(100, &first);
    play.send("Go", Agent::Tot, wanted(), false);
    play.finish();
    assert!(matches!(play.outcome(), Outcome::Failed { .. }));
    assert_eq!(play.calls(), 1, "nothing else is asked");
}

#[test]
fn thoughts_that_cannot_be_read_are_asked_for_once_more() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Expand { .. } => say("Let me think about it."),
        Purpose::Value { .. } => say("hm"),
        Purpose::Think => say("fine"),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    let bounds = Wanted { tot_depth: Some(1), ..wanted() };
    play.send("Go", Agent::Tot, bounds, false);
    play.finish();
    assert_eq!(play.answer(), "fine");
    // Twice asked for thoughts, twice for an opinion of the one that was taken, and the answer.
    assert_eq!(play.calls(), 5);
    assert_eq!(play.notices().len(), 2, "{:?}", play.notices());
}

/// The path that a search took, step by step.
fn path(play: &Play<'_>) -> String {
    let taken = play.events(|event| matches!(event, Event::PathTaken { .. }));
    let [Event::PathTaken { note, .. }] = taken[..] else { panic!("{taken:?}") };
    let steps = note.lines().filter_map(|line| line.split_once(". "));
    let steps = steps.filter(|(number, _)| number.parse::<u32>().is_ok());
    steps.map(|(_, step)| step).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_path_that_led_nowhere_is_not_taken_for_its_beginning() {
    // "left" looks best and leads nowhere; "right" ends, and is worth less than it takes.
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Expand { thought: None } => say("1. left\n2. right"),
        Purpose::Expand { .. } => say("1. on (final)"),
        Purpose::Value { .. } => {
            let steps = steps(asked);
            match (steps[0].as_str(), steps.len()) {
                ("left", 1) => say("10"),
                ("left", _) => say("0"),
                ("right", 1) => say("5"),
                _ => say("4"),
            }
        }
        Purpose::Think => say("done"),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    let bounds = Wanted { tot_search: Some(Search::Depth), ..wanted() };
    play.send("Find it", Agent::Tot, bounds, false);
    play.finish();
    assert_eq!(path(&play), "right on");
}

#[test]
fn a_thought_without_votes_is_still_a_way_back() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Expand { thought: None } => say("1. left\n2. right"),
        Purpose::Expand { .. } if steps(asked)[0] == "left" => say("[]"),
        Purpose::Expand { .. } => say("1. on (final)"),
        Purpose::Vote { .. } => say("1"),
        Purpose::Think => say("done"),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    let bounds = Wanted { tot_judge: Some(Judge::Vote), tot_beam: Some(1), ..wanted() };
    play.send("Find it", Agent::Tot, bounds, false);
    play.finish();
    assert_eq!(path(&play), "right on");
    assert_eq!(play.events(|event| matches!(event, Event::Backtracked { .. })).len(), 1);
}

#[test]
fn a_branch_that_says_nothing_is_a_dead_end() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Expand { .. } => say(""),
        Purpose::Think => say("at once"),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(100, &mind);
    play.send("Find it", Agent::Tot, wanted(), false);
    play.finish();
    assert_eq!((play.answer().as_str(), path(&play).as_str()), ("at once", ""));
}
