//! What was interrupted goes on as what it was, and what was found is not looked for again.

use polyloop_session::event::{Agent, Event, Purpose, Setting};

use super::play::{Asked, Play, Reply, say};

fn mind(asked: &Asked<'_>) -> Reply {
    match asked.purpose {
        Purpose::Question => say("Which?"),
        Purpose::Information => say("{\"constraints\": [], \"context\": \"here\"}"),
        Purpose::Expand { .. } => say("{\"thoughts\": [{\"thought\": \"a\", \"final\": true}]}"),
        Purpose::Value { .. } => say("sure"),
        Purpose::Plan { .. } => {
            say("{\"nodes\": [{\"id\": \"a\", \"task\": \"a\"}, {\"id\": \"b\", \"task\": \"b\"}]}")
        }
        Purpose::Think => say("Done."),
        other => panic!("{other:?}"),
    }
}

fn is_search(event: &Event) -> bool {
    matches!(event, Event::CallStarted { purpose, .. } if *purpose != Purpose::Think)
}

fn is_over(event: &Event) -> bool {
    use polyloop_session::event::Understanding::Information;
    match event {
        Event::Understood { part, .. } => matches!(part, Information { .. }),
        Event::PathTaken { .. } | Event::Gathered { node: None, .. } => true,
        _ => false,
    }
}

#[test]
fn a_search_that_was_over_is_not_made_again() {
    for agent in [Agent::Dup, Agent::Tot, Agent::Got] {
        let mut play = Play::new(50, &mind);
        play.send("Go", agent, Default::default(), false);
        while play.events(is_over).is_empty() {
            play.run(play.log.len() + 1, &mut |_| 0);
        }
        let searched = play.events(is_search).len();
        play.crash();
        play.finish();
        assert_eq!(play.answer(), "Done.");
        assert_eq!(play.events(is_search).len(), searched, "{agent:?}");
    }
}

#[test]
fn another_agent_is_for_the_next_message() {
    for agent in [Agent::Dup, Agent::Tot, Agent::Got] {
        let mut play = Play::new(50, &mind);
        play.set(Setting::Agent { agent });
        play.say("Go");
        play.run(4, &mut |_| 0);
        play.interrupt();
        play.set(Setting::Agent { agent: Agent::React });
        play.resume();
        play.finish();
        let begun = play.events(|event| matches!(event, Event::TurnStarted { .. }));
        let agents = begun.iter().map(|event| match event {
            Event::TurnStarted { agent, .. } => *agent,
            _ => None,
        });
        assert_eq!(agents.collect::<Vec<_>>(), [Some(agent), Some(agent)]);
        play.say("More");
        play.finish();
        assert!(play.state.turn().is_none());
        let last = play.events(|event| matches!(event, Event::TurnStarted { .. }));
        assert!(matches!(last.last(), Some(Event::TurnStarted { agent: None, .. })));
    }
}
