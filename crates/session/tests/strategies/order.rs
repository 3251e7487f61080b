//! What a search comes to depends on what the model said, not on what came first, and not on
//! whether the server stopped on the way.

use polyloop_session::Heal;
use polyloop_session::event::{Agent, Event, Outcome, Purpose, Setting};
use polyloop_session::strategy::bounds::{Judge, Search, Wanted};

use polyloop_session::wait::Who;

use super::play::{Asked, Dice, Play, Reply, number, say};

/// A model of which nothing is known but that equal prompts get equal answers.
fn moody(asked: &Asked<'_>) -> Reply {
    let mood = number(&format!("{:?}{:?}", asked.purpose_kind(), asked.plain()));
    match asked.purpose {
        Purpose::Question => say(&format!("Question {mood}?")),
        Purpose::Information => say(r#"{"constraints": ["c"], "context": "x"}"#),
        Purpose::Expand { .. } if asked.results() < (mood % 3) as usize => {
            Reply::Call("look".into())
        }
        Purpose::Expand { .. } => {
            let end = if mood.is_multiple_of(5) { " (final)" } else { "" };
            say(&format!("1. up {}\n2. down {}{end}\n3. on", mood % 97, mood % 89))
        }
        Purpose::Value { .. } | Purpose::Score { .. } => say(&format!("{}/10", mood % 11)),
        Purpose::Vote { .. } => say(&format!("{}", mood % 3 + 1)),
        Purpose::Plan { node: None } => {
            say(r#"{"nodes": [{"id": "a", "task": "a", "attempts": 2}, {"id": "b", "task": "b"},
                {"id": "c", "task": "c", "needs": ["a"], "refine": 1},
                {"id": "d", "task": "d", "needs": ["a", "b"]}]}"#)
        }
        Purpose::Plan { .. } => say(r#"[{"id": "p", "task": "p"}, {"id": "q", "task": "q"}]"#),
        Purpose::Judge { .. } => say(if mood.is_multiple_of(3) { "complex" } else { "simple" }),
        Purpose::Think if asked.results() < (mood % 3) as usize => Reply::Call("look".into()),
        Purpose::Think | Purpose::Refine { .. } => say(&format!("answer {}", mood % 1_000)),
        Purpose::Explain { .. } | Purpose::Summarise => say("in short"),
    }
}

impl Asked<'_> {
    fn purpose_kind(&self) -> String {
        let whole = format!("{:?}", self.purpose);
        whole.split([' ', '{']).next().unwrap_or_default().to_owned()
    }

    /// The prompt without the names of calls, which tell when they were made.
    fn plain(&self) -> String {
        use polyloop_session::history::{AssistantPart, Message};
        let part = |part: &AssistantPart| match part {
            AssistantPart::Text { text, .. } | AssistantPart::Reasoning { text, .. } => {
                text.to_string()
            }
            AssistantPart::ToolCall { name, args, .. } => format!("{name}{args}"),
        };
        let message = |message: &Message| match message {
            Message::User(parts) => super::play::spoken(parts),
            Message::Assistant(parts) => parts.iter().map(part).collect::<Vec<_>>().join("|"),
            Message::ToolResult { output, .. } => output.to_string(),
        };
        let all: Vec<String> = self.prompt.messages.iter().map(message).collect();
        all.join("\n")
    }
}

fn cases() -> Vec<(Agent, Wanted, bool)> {
    let deep =
        Wanted { tot_search: Some(Search::Depth), tot_samples: Some(2), ..Wanted::default() };
    let votes = Wanted { tot_judge: Some(Judge::Vote), tot_samples: Some(3), ..Wanted::default() };
    vec![
        (Agent::React, Wanted::default(), false),
        (Agent::Dup, Wanted::default(), false),
        (Agent::Tot, Wanted::default(), false),
        (Agent::Tot, deep, false),
        (Agent::Tot, votes, false),
        (Agent::Got, Wanted::default(), false),
        (Agent::Got, Wanted::default(), true),
    ]
}

fn played(case: &(Agent, Wanted, bool), message: &str) -> (String, usize) {
    let mut play = Play::new(200, &moody);
    play.send(message, case.0, case.1, case.2);
    play.finish();
    (play.answer(), play.log.len())
}

#[test]
fn any_order_of_arrival_gives_the_same_answer() {
    for case in cases() {
        for message in ["one", "two", "three", "four"] {
            let (want, _) = played(&case, message);
            for seed in 1..20 {
                let mut dice = Dice(seed * 7_919);
                let mut play = Play::new(200, &moody);
                play.send(message, case.0, case.1, case.2);
                play.run(usize::MAX, &mut |_| dice.next() as usize >> 8);
                assert_eq!(play.answer(), want, "{case:?} {message} {seed}");
            }
        }
    }
}

#[test]
fn a_stop_at_any_entry_changes_nothing() {
    let mut same = 0;
    for case in cases().into_iter().filter(|case| case.0 != Agent::React) {
        for message in ["one", "two"] {
            let (want, entries) = played(&case, message);
            for stop in 3..entries {
                let mut dice = Dice(stop as u64 * 31 + 7);
                let mut play = Play::new(200, &moody);
                play.send(message, case.0, case.1, case.2);
                play.run(stop, &mut |_| dice.next() as usize >> 8);
                // A tool that a stop cuts off is not run again, and the model is told so.
                let whole = play.state.turn().is_some_and(|turn| {
                    let runs = turn.items.values().any(|item| item.tool.is_some());
                    !turn.method.is_done() && !runs
                });
                same += usize::from(whole);
                play.crash();
                play.run(usize::MAX, &mut |_| dice.next() as usize >> 8);
                // Behind the search it is react, which is told that it was interrupted.
                if whole {
                    assert_eq!(play.answer(), want, "{case:?} {message} stopped at {stop}");
                }
            }
        }
    }
    assert!(same > 200, "only {same} stops could be compared");
}

#[test]
fn what_is_resumed_goes_on_as_it_was_begun_and_searches_once() {
    let mind = |asked: &Asked<'_>| match asked.purpose {
        Purpose::Plan { .. } => say(r#"["one", "two"]"#),
        Purpose::Think if asked.has("Put the results together") => say("all"),
        Purpose::Think => say("part"),
        other => panic!("{other:?}"),
    };
    let gathered = |play: &Play<'_>| {
        play.state.turn().is_some_and(|turn| turn.method.is_done() && !turn.calls.is_empty())
    };
    let mut play = Play::new(100, &mind);
    play.send("Do it", Agent::Got, Wanted::default(), false);
    let mut entries = 3;
    while !gathered(&play) {
        play.run(entries, &mut |_| 0);
        entries += 1;
    }
    play.record(vec![Event::SettingSet {
        setting: Setting::Agent { agent: Agent::Tot },
        by: Who::via("test"),
    }]);
    play.crash();
    play.finish();
    assert_eq!(play.answer(), "all");
    let planned = play.events(|event| matches!(event, Event::Planned { .. })).len();
    assert_eq!(planned, 1, "what was found is not looked for again");
    let agents =
        play.events(|event| matches!(event, Event::TurnStarted { agent: Some(Agent::Got), .. }));
    assert_eq!(agents.len(), 2, "whatever was set since");
}

#[test]
fn a_question_that_does_not_fit_is_asked_behind_a_summary() {
    for agent in [Agent::Dup, Agent::Tot, Agent::Got] {
        let mind = |asked: &Asked<'_>| match asked.purpose {
            Purpose::Summarise => say("in short"),
            purpose if purpose.is_errand() && !asked.has("in short") => Reply::Fail(Heal::Shorter),
            Purpose::Question => say("What?"),
            Purpose::Information => say(r#"{"constraints": ["c"], "context": "x"}"#),
            Purpose::Expand { .. } => say("1. this (final)\n2. that"),
            Purpose::Value { .. } => say("sure"),
            Purpose::Plan { .. } => say(r#"["one"]"#),
            _ => say("a long answer ".repeat(50).trim()),
        };
        let mut play = Play::new(100, &mind);
        play.send("First", Agent::React, Wanted::default(), false);
        play.finish();
        play.send("Second", agent, Wanted::default(), false);
        play.finish();
        assert_eq!(play.outcome(), &Outcome::Completed, "{agent:?}");
        let made = play.events(|event| matches!(event, Event::Compacted { .. })).len();
        assert_eq!(made, 1, "{agent:?}");
    }
}
