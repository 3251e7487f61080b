//! What was begun comes to an end, also where a graph is broken off.

use polyloop_session::event::{Agent, Event, Outcome, Purpose};

use super::play::{Asked, Play, Reply, say};

fn mind(asked: &Asked<'_>) -> Reply {
    match asked.purpose {
        Purpose::Plan { .. } => say("{\"nodes\": [{\"id\": \"a\", \"task\": \"a\"}, \
             {\"id\": \"b\", \"task\": \"b\"}, {\"id\": \"c\", \"task\": \"c\", \"needs\": [\"a\"]}]}"),
        Purpose::Judge { .. } => say("complex"),
        Purpose::Think if asked.last.contains("Put the results together") => say("Half."),
        Purpose::Think if asked.results() < 3 => Reply::Call("look".into()),
        _ => say("One."),
    }
}

#[test]
fn every_sub_task_that_began_ends_when_no_calls_are_left() {
    for adaptive in [false, true] {
        for calls_max in 1..40 {
            let mut play = Play::new(calls_max, &mind);
            play.send("Go", Agent::Got, Default::default(), adaptive);
            play.finish();
            let begun = play.events(|event| matches!(event, Event::NodeStarted { .. })).len();
            let ended = |event: &&Event| {
                matches!(event, Event::NodeEnded { outcome, .. }
                if !matches!(outcome, polyloop_session::event::NodeOutcome::Skipped { .. }))
            };
            let ended = play.log.iter().map(|entry| &entry.event).filter(ended).count();
            if play.outcome() == &Outcome::Completed {
                assert_eq!(ended, begun, "{calls_max} calls, adaptive {adaptive}");
            }
        }
    }
}
