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
    "setting_set",
    "session_closed",
    "session_reopened",
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
    "forked",
    "files_touched",
    "undo_started",
    "undo_failed",
    "undone",
    "crash in an undo",
    "nothing_to_undo",
    "no_such_edit",
    "already_undone",
    "undo of an undo",
    "fork",
    "fork of a running turn",
    "fork with a wait",
    "fork with a queue",
    "empty_message",
    "queue_full",
    "no_pending_approval",
    "already_settled",
    "already_explaining",
    "not_an_edit",
    "refused",
    "withdrawn",
    "bad_answer",
    "unknown_target",
    "no_such_turn",
    "already_closed",
    "bad_setting",
    "nothing_running",
    "nothing_to_resume",
    "turn_running",
    "nothing_to_compact",
    "bypass_not_allowed",
    "report",
    "stale report",
    "crash",
    "crash with a wait",
    "crash with a question",
    "crash with a plan",
    "drained",
    "question answered by form",
    "question answered by message",
    "question answered with words",
    "question denied",
    "plan approved in plan mode",
    "plan approved outside plan mode",
    "plan sent back",
    "plan answered by message",
    "ask expired",
    "asked nobody",
    "asked one who only answers",
    "cancelled a message",
    "cancelled a turn",
    "cancelled an approval",
    "cancelled a question",
    "cancelled a plan",
    "ended with a turn",
    "ended without a turn",
    "ended with a queue",
    "spoke to an ended session",
    "began in an ended session",
    "run with options",
    "made again",
    "summary made again",
    "gave up after retries",
    "failed at once",
    "not waited for",
    "explanation not made again",
    "not made again in a stopping turn",
    "too long",
    "too long again",
    "no summary made room",
    "compacted inside a turn",
    "compacted on request",
    "sandbox_refused",
    "ran, as it only reads",
    "ran, as it is safe",
    "ran by a grant",
    "ran by a rule",
    "ran by the mode",
    "ran by a person's leave",
    "ran in the sandbox",
    "denied by a rule",
    "asked by a rule",
    "asked by a rule in bypass",
    "a rule asks, and nobody is",
    "stopped at once",
    "stopped after output",
    "stopped, and nobody there",
    "stopped, and stale",
    "stopped in a turn that stops",
    "ran outside by the mode",
    "ran outside by a person's leave",
    "the second run ended",
    "the second run was interrupted",
    "left inside unasked",
    "left inside by a denial",
    "left inside as the turn ended",
    "outside approved",
    "outside approved always",
    "outside denied",
    "outside denied, turn ended",
    "outside explained",
    "outside withdrawn",
    "outside expired",
    "mode set while asked about outside",
    "interrupted while asked about outside",
    "crash while asked about outside",
    "lost the journal",
    "granted, so outside the sandbox",
    "trimmed",
    "made room early",
    "made room early again",
    "a floor that does not fit",
    "over its budget",
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
