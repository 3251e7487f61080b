//! A state that is kept while no turn runs, and read again, is the same state: so the rest of the
//! log folded on top of it gives what the whole log gives.

use polyloop_session::State;
use proptest::test_runner::TestCaseError;

use super::generate::{runner, sessions};
use super::play::play;

#[test]
fn a_state_that_was_kept_is_the_same_at_every_rest() {
    let played = runner().run(&sessions(), |(start, actions)| {
        let sim = play(&start, &actions).map_err(TestCaseError::fail)?;
        let (mut whole, mut gone_on): (State, Vec<State>) = (State::default(), Vec::new());
        for entry in &sim.log {
            whole.apply(entry);
            gone_on.iter_mut().for_each(|state| state.apply(entry));
            if whole.turn().is_some() {
                continue;
            }
            for state in &gone_on {
                assert_eq!(*state, whole, "after entry {}", entry.seq);
            }
            let text = serde_json::to_string(&whole).unwrap();
            let read: State = serde_json::from_str(&text).unwrap();
            assert_eq!(read, whole, "kept after entry {}", entry.seq);
            if gone_on.len() < 3 {
                gone_on.push(read);
            }
        }
        Ok(())
    });
    if let Err(error) = played {
        panic!("{error}");
    }
}
