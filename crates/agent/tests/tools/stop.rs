//! Whatever ends a call ends everything it started.

use std::sync::Arc;

use futures_util::StreamExt as _;
use polyloop_agent::tool::bash::Bash;
use polyloop_agent::tool::{Place, Progress, Run, Tool as _};
use polyloop_session::item::End;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{Ground, Roll, Test, block_on};

pub const ALL: &[Test] = &[
    ("an_interrupt_ends_the_tree_and_keeps_the_output", interrupt),
    ("a_command_that_never_stops_printing_can_be_stopped", flood),
    ("a_dropped_call_ends_the_tree", dropped),
    ("a_time_limit_ends_the_tree", time_limit),
    ("what_runs_on_in_the_background_ends_with_its_command", background),
    ("a_call_that_is_stopped_before_it_starts_does_not_start", stopped_before),
    ("a_frozen_helper_is_woken", frozen_helper),
    ("a_killed_helper_is_reported", killed_helper),
];

/// Processes that hide from a group, a session, a parent and a polite request.
const TREE: &str = "setsid sleep 600 &\nnohup sleep 600 >/dev/null &\n\
                    (trap '' TERM; (sleep 600; sleep 600) & )\ntrap '' TERM\necho ready\n";

fn interrupt() {
    let ground = Ground::new();
    let mut roll = Roll::new(&ground);
    let script = roll.script(&format!("{TREE}while :; do sleep 600; done"));
    let ended = block_on(async {
        let mut call = ground.start(&Bash, json!({ "command": script }));
        call.until("ready\n").await;
        assert!(!roll.is_empty());
        call.stop.cancel();
        call.end().await
    });
    assert!(roll.is_empty(), "{:?} {:?}", ended.end, ended.result);
    assert_eq!(ended.end, End::Interrupted);
    assert_eq!(ended.result.exit_code, None);
    assert_eq!(ended.output, "ready\n");
    assert_eq!(ended.seen(), "ready\nInterrupted.");
}

fn flood() {
    let ground = Ground::new();
    let mut roll = Roll::new(&ground);
    let ended = block_on(async {
        let script = roll.script("yes | cat");
        let mut call = ground.start(&Bash, json!({ "command": script }));
        call.stream.next().await.unwrap();
        call.stop.cancel();
        call.end().await
    });
    assert!(roll.is_empty(), "{:?} {:?}", ended.end, ended.result);
    assert_eq!(ended.end, End::Interrupted);
}

fn dropped() {
    let ground = Ground::new();
    let mut roll = Roll::new(&ground);
    let script = roll.script(&format!("{TREE}while :; do sleep 600; done"));
    block_on(async {
        let mut call = ground.start(&Bash, json!({ "command": script }));
        call.until("ready\n").await;
    });
    roll.await_empty();
}

fn time_limit() {
    let ground = Ground::new();
    let mut roll = Roll::new(&ground);
    let script = roll.script(&format!("{TREE}while :; do sleep 600; done"));
    let ended = ground.finish(&Bash, json!({ "command": script, "timeout_ms": 1500 }));
    assert!(roll.is_empty(), "{:?} {:?}", ended.end, ended.result);
    assert_eq!(ended.end, End::Failed);
    assert_eq!(ended.result.exit_code, None);
    assert!(ended.result.duration_ms >= 1500);
    assert!(ended.seen().contains("Ended after its time limit of 1500 ms"), "{}", ended.seen());

    // The server's own limit holds, whatever was asked for.
    let place = Place {
        command_time_max: std::time::Duration::from_millis(300),
        ..(*ground.place).clone()
    };
    let ground = Ground { place: Arc::new(place), ..ground };
    let ended = ground.finish(&Bash, json!({ "command": "sleep 600", "timeout_ms": u64::MAX }));
    assert!(ended.seen().contains("300 ms"), "{}", ended.seen());
}

fn background() {
    let ground = Ground::new();
    let mut roll = Roll::new(&ground);
    let ended = ground.finish(&Bash, json!({ "command": roll.script(TREE) }));
    assert!(roll.is_empty(), "{:?} {:?}", ended.end, ended.result);
    assert_eq!((ended.end, ended.result.exit_code), (End::Whole, Some(0)));
    assert_eq!((ended.output.as_str(), ended.result.seen), ("ready\n", None));
}

fn stopped_before() {
    let ground = Ground::new();
    let stop = CancellationToken::new();
    stop.cancel();
    let args = json!({ "command": "touch started" }).to_string().into();
    let run = Run { args, place: ground.place.clone(), sandboxed: false, unasked: None, stop };
    let progress = block_on(Bash.run(run).collect::<Vec<_>>());
    let [Progress::Ended { end: End::Interrupted, .. }] = progress.as_slice() else {
        panic!("{progress:?}");
    };
    assert!(!ground.cwd().join("started").exists());
}

/// A command of the same user can stop its helper, but not keep us from ending the command.
fn frozen_helper() {
    let ground = Ground::new();
    let mut roll = Roll::new(&ground);
    let script = roll.script("kill -STOP $PPID; echo ready; sleep 600; sleep 600");
    let ended = block_on(async {
        let mut call = ground.start(&Bash, json!({ "command": script }));
        call.until("ready\n").await;
        call.stop.cancel();
        call.end().await
    });
    assert!(roll.is_empty(), "{:?} {:?}", ended.end, ended.result);
    assert_eq!(ended.end, End::Interrupted);
}

fn killed_helper() {
    let ground = Ground::new();
    let ended =
        ground.finish(&Bash, json!({ "command": "echo hi; kill -KILL $PPID; exec sleep 80" }));
    assert_eq!((ended.end, ended.result.exit_code), (End::Failed, None));
    assert!(ended.seen().contains("How the command ended is not known"), "{}", ended.seen());
}
