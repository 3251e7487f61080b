//! Random sessions: whatever happens, in whatever order, the invariants hold.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::test_runner::TestCaseError;

use super::generate::{CASES, runner, sessions};
use super::play::play;

/// What a run must have met, or its silence says nothing.
const MET: &[&str] = &[
    "session_created",
    "adopted",
    "mode_set",
    "message_queued",
    "message_dropped",
    "turn_started",
    "turn_stopping",
    "turn_ended",
    "call_started",
    "call_ended",
    "item_started",
    "tool_proposed",
    "tool_started",
    "item_completed",
    "wait_opened",
    "wait_settled",
    "wait_withdrawn",
    "explain_asked",
    "compacted",
    "noticed",
    "empty_message",
    "queue_full",
    "no_pending_approval",
    "already_settled",
    "already_explaining",
    "not_an_edit",
    "refused",
    "unknown_message",
    "nothing_running",
    "nothing_to_resume",
    "turn_running",
    "nothing_to_compact",
    "bypass_not_allowed",
    "report",
    "stale report",
    "crash",
    "crash with a wait",
    "drained",
];

#[test]
fn every_invariant_holds_in_every_session() {
    let met: RefCell<BTreeMap<String, u64>> = RefCell::default();
    let played = runner().run(&sessions(), |(start, actions)| {
        let sim = play(&start, &actions).map_err(TestCaseError::fail)?;
        for (what, count) in sim.tally {
            *met.borrow_mut().entry(what).or_default() += count;
        }
        Ok(())
    });
    if let Err(error) = played {
        panic!("{error}");
    }
    let met = met.into_inner();
    println!("{met:#?}");
    if runner().config().cases < CASES {
        return;
    }
    let missed: Vec<_> = MET.iter().filter(|what| !met.contains_key(**what)).collect();
    assert!(missed.is_empty(), "never met: {missed:?}");
}
