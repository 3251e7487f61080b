use polyloop_session::event::{Agent, Event, Outcome, Purpose, Understanding};

use super::play::{Play, Reply, say};

#[test]
fn the_question_and_what_bears_on_it_come_before_the_work() {
    let mind = |asked: &super::play::Asked<'_>| match asked.purpose {
        Purpose::Question => say("How many files are there?"),
        Purpose::Information => {
            assert!(asked.last.contains("How many files are there?"));
            say(
                "Here it is:\n```json\n{\"constraints\": [\"only here\",], \"context\": \"/w\"}\n```",
            )
        }
        Purpose::Think if asked.results() == 0 => {
            assert!(asked.has("The core question: How many files are there?"));
            assert!(asked.has("- only here"));
            Reply::Call("look".into())
        }
        Purpose::Think => say("Three."),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(20, &mind);
    play.send("Count the files", Agent::Dup, Default::default(), false);
    play.finish();
    assert_eq!(play.answer(), "Three.");
    assert_eq!(play.outcome(), &Outcome::Completed);
    assert_eq!(play.calls(), 4);
    let parts = play.events(|event| matches!(event, Event::Understood { .. }));
    let want =
        Understanding::Information { constraints: vec!["only here".into()], context: "/w".into() };
    assert!(matches!(parts[1], Event::Understood { part, .. } if *part == want), "{parts:?}");
}

#[test]
fn what_cannot_be_read_is_asked_once_more_then_taken_as_it_is() {
    let mind = |asked: &super::play::Asked<'_>| match asked.purpose {
        Purpose::Question => say("Which?"),
        Purpose::Information => say("Nothing in particular"),
        Purpose::Think => say("This."),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(20, &mind);
    play.send("Which one?", Agent::Dup, Default::default(), false);
    play.finish();
    assert_eq!(play.answer(), "This.");
    assert_eq!(play.events(|event| matches!(event, Event::Misread { .. })).len(), 1);
    assert_eq!(play.notices(), ["The answer holds no JSON object; its text is taken as it is"]);
    assert_eq!(play.calls(), 4);
}

#[test]
fn with_one_call_it_answers() {
    let mind = |asked: &super::play::Asked<'_>| match asked.purpose {
        Purpose::Think => say("At once."),
        other => panic!("{other:?}"),
    };
    let mut play = Play::new(1, &mind);
    play.send("Quick", Agent::Dup, Default::default(), false);
    play.finish();
    assert_eq!((play.answer().as_str(), play.calls()), ("At once.", 1));
}
