//! The helper that waits for the next command: it is used, missed by nobody if it is gone, and let
//! go with the server's last place.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use polyloop_agent::tool::bash::Bash;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::time::sleep;

use crate::{Ground, Test, block_on};

pub const ALL: &[Test] = &[
    ("the_next_command_takes_the_helper_that_waits", taken),
    ("a_helper_that_was_killed_while_it_waited_is_replaced", killed),
    ("a_helper_that_was_frozen_while_it_waited_is_woken", frozen),
    ("a_helper_that_waits_is_let_go_with_its_place", let_go),
];

/// The helpers of this process, each with its keeper. Those that are ending may be among them.
fn helpers() -> BTreeMap<i32, i32> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let keepers = tasks.flat_map(|task| children(&task.path().join("children")));
    let below = |keeper| children(format!("/proc/{keeper}/task/{keeper}/children").as_ref());
    keepers.flat_map(|keeper| below(keeper).map(move |helper| (helper, keeper))).collect()
}

fn children(list: &std::path::Path) -> impl Iterator<Item = i32> + use<> {
    let list = fs::read_to_string(list).unwrap_or_default();
    list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>().into_iter()
}

/// Runs a command; the helper that started it, and the one that waits after it.
async fn run(ground: &Ground) -> (i32, i32) {
    let ended = ground.start(&Bash, json!({ "command": "echo $PPID" })).end().await;
    let used = ended.output.trim().parse().unwrap_or_else(|_| panic!("{:?}", ended.output));
    loop {
        let helpers = helpers();
        match helpers.keys().collect::<Vec<_>>().as_slice() {
            [only] if **only != used => return (used, **only),
            _ => sleep(Duration::from_millis(5)).await,
        }
    }
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

fn taken() {
    let ground = Ground::new();
    block_on(async {
        let (_, mut waiting) = run(&ground).await;
        for _ in 0..3 {
            let (used, next) = run(&ground).await;
            assert_eq!(used, waiting);
            waiting = next;
        }
    });
}

fn killed() {
    let ground = Ground::new();
    block_on(async {
        for helper_too in [true, false] {
            let (_, waiting) = run(&ground).await;
            signal(helpers()[&waiting], Signal::KILL);
            if helper_too {
                signal(waiting, Signal::KILL);
            }
            while helpers().contains_key(&waiting) {
                sleep(Duration::from_millis(5)).await;
            }
            assert_ne!(run(&ground).await.0, waiting);
        }
    });
}

fn frozen() {
    let ground = Ground::new();
    block_on(async {
        let (_, waiting) = run(&ground).await;
        // The keeper first, who would wake the other.
        signal(helpers()[&waiting], Signal::STOP);
        signal(waiting, Signal::STOP);
        assert_eq!(run(&ground).await.0, waiting);
    });
}

fn let_go() {
    let ground = Ground::new();
    block_on(async {
        run(&ground).await;
        drop(ground);
        while !helpers().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    });
}
