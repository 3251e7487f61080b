//! Several calls as one: judged by all of them, run in order, and each still held to what it may.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use polyloop_agent::perform;
use polyloop_agent::rules::Rules;
use polyloop_agent::tool::{Place, Run, TEXT_BYTES_MAX, Unasked};
use polyloop_session::item::End;
use polyloop_session::policy::{Effect, Judgement, Leave, Mode, Risk, Verdict, verdict};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::paths::{call, tool};
use crate::{Call, Ended, Ground, Roll, Test, block_on, unasked};

pub const ALL: &[Test] = &[
    ("results_come_in_order_with_their_numbers", ordered),
    ("a_batch_that_does_not_fit_is_an_error", malformed),
    ("a_batch_is_judged_by_all_of_its_parts", judged),
    ("a_refused_part_refuses_the_batch", refused),
    ("edits_run_in_order_and_their_files_are_told", edits),
    ("a_part_that_fails_does_not_stop_the_others", failing),
    ("what_a_command_prints_is_streamed", streamed),
    ("long_results_are_cut_and_say_so", long),
    ("many_reads_come_in_their_order", together),
    ("a_stop_ends_all_parts", stops),
    ("a_part_that_is_not_harmless_any_more_does_not_run", changed),
    ("what_the_mode_lets_run_is_weighed_part_by_part", by_mode),
    ("what_the_sandbox_stopped_is_told_with_the_way_out", stopped),
    ("leave_for_the_tool_is_none_for_its_parts", rules),
    ("no_batch_runs_what_a_part_may_not", properties),
];

fn part(tool: &str, parameters: Value) -> Value {
    json!({ "tool": tool, "parameters": parameters })
}

fn bash(script: &str) -> Value {
    part("bash", json!({ "command": script }))
}

fn batch(parts: &[Value]) -> Value {
    json!({ "calls": parts })
}

fn judge(ground: &Ground, parts: &[Value]) -> Judgement {
    block_on(perform::judge("batch", &batch(parts).to_string(), &ground.place))
}

fn finish(ground: &Ground, parts: &[Value]) -> Ended {
    ground.finish(tool("batch"), batch(parts))
}

fn start(ground: &Ground, parts: &[Value], unasked: Option<Unasked>) -> Call {
    let stop = CancellationToken::new();
    let (args, place) = (batch(parts).to_string().into(), ground.place.clone());
    let run = Run { args, place, sandboxed: false, unasked, stop: stop.clone() };
    Call { stream: tool("batch").run(run), stop, output: String::new() }
}

fn ordered() {
    let ground = Ground::new();
    ground.write("f", "one\n");
    let parts = [part("read", json!({ "path": "f" })), bash("echo two"), part("ls", json!({}))];
    let ended = finish(&ground, &parts);
    assert_eq!(ended.end, End::Whole, "{}", ended.seen());
    let want = "[1] read:      1\tone\n[2] bash: two\n[3] ls: ";
    assert!(ended.seen().starts_with(want) && ended.seen().contains("f\n"), "{}", ended.seen());
    assert_eq!(ended.result.seen, None, "all of it was streamed");
}

fn malformed() {
    let ground = Ground::new();
    let many: Vec<Value> = (0..26).map(|_| part("ls", json!({}))).collect();
    let error = |args: Value| {
        let why = ground.judge(tool("batch"), args.clone()).unwrap_err();
        let ended = ground.finish(tool("batch"), args);
        assert_eq!((ended.end, ended.seen()), (End::Failed, why.as_str()));
        why
    };
    for (args, told) in [
        (json!({}), "`calls` are 0; give 1 to 25"),
        (json!({ "calls": [] }), "`calls` are 0; give 1 to 25"),
        (batch(&many), "`calls` are 26; give 1 to 25"),
        (json!({ "calls": "ls" }), "`calls` must be a list, not a string"),
        (json!({ "calls": [1] }), "call [1] must be an object, not 1"),
        (json!({ "calls": [{ "parameters": {} }] }), "call [1]: there is no tool named \"\""),
        (batch(&[part("rm", json!({}))]), "there is no tool named \"rm\"; use one of bash, read"),
        (batch(&[part("ls", json!("x"))]), "`parameters` must be an object, not a string"),
        (batch(&[part("ls", json!({})), part("batch", batch(&[]))]), "call [2]: batch cannot be"),
        (batch(&[part("ask_user", json!({}))]), "ask_user cannot be part of a batch"),
        (batch(&[part("exit_plan_mode", json!({}))]), "exit_plan_mode cannot be part of"),
    ] {
        let why = error(args.clone());
        assert!(why.starts_with("batch: ") && why.contains(told), "{args}: {why}");
    }
}

fn judged() {
    let ground = Ground::new();
    ground.write("f", "old\n");
    let (read, edit) = (part("read", call("read", "f")), part("edit", call("edit", "f")));
    let reads = judge(&ground, &[read.clone(), part("ls", json!({}))]);
    assert!(reads.effect == Effect::Read && reads.safe && reads.risk == Risk::Low);
    let safe = judge(&ground, &[read.clone(), bash("cat f")]);
    assert!(safe.effect == Effect::Execute && safe.safe);
    let edits = judge(&ground, &[read.clone(), edit.clone(), bash("cat f")]);
    assert!(edits.effect == Effect::Edit && edits.confined && !edits.safe);
    assert_eq!(&*edits.reason, "3 calls, the riskiest: edits f");
    assert!(edits.command[2].starts_with("[2] edit:\n*** Begin Patch\n"), "{:?}", edits.command);
    assert_eq!(&*edits.command[3], "[3] bash: cat f");
    for (mode, want) in [
        (Mode::Suggest, Verdict::Ask),
        (Mode::AutoEdit, Verdict::Allow),
        (Mode::FullAuto, Verdict::Allow),
        (Mode::Bypass, Verdict::Allow),
    ] {
        assert_eq!(verdict(&edits, mode, &[], true), want, "{mode:?}");
    }
    let commands = judge(&ground, &[edit.clone(), bash("touch a")]);
    assert_eq!((commands.effect, commands.sandbox), (Effect::Execute, false), "no sandbox here");
    assert_eq!(verdict(&commands, Mode::AutoEdit, &[], true), Verdict::Ask);
    assert_eq!(verdict(&commands, Mode::AutoEdit, &commands.keys, true), Verdict::Allow);
    let web = part("web_fetcher", json!({ "url": "https://example.org/" }));
    let network = judge(&ground, &[read.clone(), web]);
    assert_eq!((network.effect, network.risk), (Effect::Network, Risk::High));
    assert_eq!(&*network.reason, "2 calls, the riskiest: fetches from example.org");
    let outside = judge(&ground, &[read, part("read", call("read", "../out/f"))]);
    assert!(!outside.safe && outside.effect == Effect::Execute, "{outside:?}");
    let place = Place { sandbox: true, ..(*ground.place).clone() };
    let sandboxed = Ground { place: Arc::new(place), ..ground };
    let commands = judge(&sandboxed, &[edit, bash("touch a")]);
    assert_eq!(verdict(&commands, Mode::FullAuto, &[], true), Verdict::AllowSandboxed);
    let protected = part("write_file", json!({ "path": ".env", "content": "x" }));
    let commands = judge(&sandboxed, &[protected, bash("touch a")]);
    assert_eq!(verdict(&commands, Mode::FullAuto, &[], true), Verdict::Ask);
}

fn refused() {
    let ground = Ground::new();
    ground.write("f", "x");
    let good = part("read", json!({ "path": "f" }));
    for (bad, told) in [
        (part("read", json!({})), "[2] read: read: `path` is missing"),
        (part("read", json!({ "path": "store/x" })), "server's own files"),
        (part("edit", call("edit", "f")), "[2] edit: "),
        (part("web_fetcher", json!({ "url": "file:///x" })), "only http and https"),
    ] {
        let refusal = judge(&ground, &[good.clone(), bad]).refusal.unwrap();
        assert!(refusal.starts_with("batch: [2] ") && refusal.contains(told), "{refusal}");
    }
}

fn edits() {
    let ground = Ground::new();
    ground.write("f", "one\n");
    let edit = |from: &str, to: &str| {
        part("edit", json!({ "path": "f", "oldString": from, "newString": to }))
    };
    let parts = [
        edit("one", "two"),
        part("write_file", json!({ "path": "g", "content": "new\n" })),
        edit("two", "three"),
        part("read", json!({ "path": "f" })),
    ];
    let ended = finish(&ground, &parts);
    assert_eq!(ended.end, End::Whole, "{}", ended.seen());
    assert_eq!((ground.read("f").as_str(), ground.read("g").as_str()), ("three\n", "new\n"));
    let files: Vec<&str> = ended.result.files.iter().map(|file| &*file.path).collect();
    assert_eq!(files, ["f", "g", "f"]);
    assert!(ended.seen().contains("[4] read:      1\tthree\n"), "{}", ended.seen());
}

fn failing() {
    let ground = Ground::new();
    ground.write("f", "x\n");
    let read = |path: &str| part("read", json!({ "path": path }));
    let ended = finish(&ground, &[read("none"), read("f"), bash("exit 3"), read("gone")]);
    assert_eq!(ended.end, End::Whole);
    let none = "[1] read: error: read: none: there is no such file\n";
    let gone = "[4] read: error: read: gone: there is no such file\n";
    let want = format!("{none}[2] read:      1\tx\n[3] bash: Exit code 3.\n{gone}");
    assert_eq!(ended.seen(), format!("{want}(2 of 4 calls failed: [1] [4])\n"));
    let ended = finish(&ground, &[read("none"), read("gone")]);
    assert_eq!(ended.end, End::Failed);
    assert!(ended.seen().ends_with("(2 of 2 calls failed: [1] [2])\n"), "{}", ended.seen());
}

fn streamed() {
    let ground = Ground::new();
    ground.write("f", "x\n");
    let mut roll = Roll::new(&ground);
    block_on(async {
        let go = ground.cwd().join("go");
        let script = format!(
            "echo begun; until [ -e '{}' ]; do sleep 0.05; done; echo done; exit 3",
            go.display()
        );
        let mut call = start(
            &ground,
            &[part("read", json!({ "path": "f" })), bash(&roll.script(&script))],
            None,
        );
        call.until("[1] read:      1\tx\n[2] bash: begun\n").await;
        fs::write(go, "").unwrap();
        let ended = call.end().await;
        assert_eq!(ended.output, "[1] read:      1\tx\n[2] bash: begun\ndone\nExit code 3.\n");
        assert_eq!(ended.seen(), ended.output);
    });
    roll.await_empty();
}

fn long() {
    let ground = Ground::new();
    ground.write("f", &"0123456789abcde\n".repeat(20_000));
    let read = part("read", json!({ "path": "f" }));
    let ended = finish(&ground, &[read.clone(), bash("echo short"), read.clone(), read.clone()]);
    assert!(ended.seen().len() <= TEXT_BYTES_MAX, "{}", ended.seen().len());
    assert_eq!(ended.seen().matches("bytes are left out here; call read alone to see").count(), 3);
    assert!(ended.seen().contains("\n[2] bash: short\n"));
    // Each ends as its tool ends it.
    assert_eq!(ended.seen().matches("(more lines follow; read on with offset").count(), 3);
    let many: Vec<Value> = (0..25).map(|_| bash("yes | head -c 300000")).collect();
    let ended = finish(&ground, &many);
    assert!(ended.seen().len() <= TEXT_BYTES_MAX, "{}", ended.seen().len());
    assert!(ended.output.len() <= 300 * 1024, "{}", ended.output.len());
    assert!(ended.output.ends_with(" more bytes of output are not shown]\n"));
}

fn together() {
    let ground = Ground::new();
    for n in 0..25 {
        ground.write(&format!("f{n}"), &format!("text {n}\n"));
    }
    let parts: Vec<Value> =
        (0..25).map(|n| part("read", json!({ "path": format!("f{n}") }))).collect();
    let ended = finish(&ground, &parts);
    let want: String = (0..25).map(|n| format!("[{}] read:      1\ttext {n}\n", n + 1)).collect();
    assert_eq!(ended.seen(), want);
}

fn stops() {
    let ground = Ground::new();
    ground.write("f", "x\n");
    let mut roll = Roll::new(&ground);
    block_on(async {
        let parts = [
            part("read", json!({ "path": "f" })),
            bash(&roll.script("echo begun; sleep 1000")),
            part("write_file", json!({ "path": "never", "content": "x" })),
        ];
        let mut call = start(&ground, &parts, None);
        call.until("[1] read:      1\tx\n[2] bash: begun\n").await;
        call.stop.cancel();
        let ended = call.end().await;
        assert_eq!(ended.end, End::Interrupted);
        let want = "[1] read:      1\tx\n[2] bash: error: begun\nInterrupted.\n\
                    [3] write_file: error: not run: interrupted\n(2 of 3 calls failed: [2] [3])\n";
        assert_eq!(ended.seen(), want);
        let call = start(&ground, &parts, None);
        call.stop.cancel();
        let ended = call.end().await;
        assert_eq!((ended.end, ended.seen()), (End::Interrupted, "Interrupted."));
    });
    roll.await_empty();
    assert!(!ground.cwd().join("never").exists());
}

/// Between the judgement and the run, what was harmless becomes a way out.
fn changed() {
    let ground = Ground::new();
    ground.write("f", "inside\n");
    fs::write(ground.out().join("f"), "secret\n").unwrap();
    let read = |path: &str| part("read", json!({ "path": path }));
    let parts = [read("sub/f"), bash("cat sub/f"), read("f")];
    ground.write("sub/f", "inside\n");
    assert!(judge(&ground, &parts).safe);
    fs::remove_dir_all(ground.cwd().join("sub")).unwrap();
    symlink(ground.out(), ground.cwd().join("sub")).unwrap();
    for mode in [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto, Mode::Plan, Mode::DontAsk] {
        let unasked = unasked(Leave::Safe, mode);
        let ended = block_on(start(&ground, &parts, Some(unasked)).end());
        assert!(!ended.seen().contains("secret"), "{mode:?}: {}", ended.seen());
        assert!(ended.seen().contains("[2] bash: error: not run: when the batch was proposed"));
        assert!(ended.seen().contains("[3] read:      1\tinside\n"), "{}", ended.seen());
    }
}

fn by_mode() {
    let ground = Ground::new();
    ground.write("f", "old\n");
    let write = |path: &str| part("write_file", json!({ "path": path, "content": "x" }));
    let parts = [write("a"), bash("touch b"), write(".env"), write("../out/c"), bash("cat f")];
    let by = unasked(Leave::Mode { mode: Mode::AutoEdit }, Mode::AutoEdit);
    let ended = block_on(start(&ground, &parts, Some(by)).end());
    assert!(ended.seen().ends_with("(3 of 5 calls failed: [2] [3] [4])\n"), "{}", ended.seen());
    assert_eq!(ended.seen().matches("error: not run: when the batch was proposed").count(), 3);
    assert!(ended.seen().contains("[5] bash: old\n"));
    assert!(ground.cwd().join("a").exists() && !ground.cwd().join("b").exists());
    assert!(!ground.cwd().join(".env").exists() && !ground.out().join("c").exists());
    // A person said yes to all of it.
    let ended = block_on(start(&ground, &parts[1..], None).end());
    assert_eq!((ended.end, ended.seen().contains("failed")), (End::Whole, false));
    assert!(ground.cwd().join("b").exists() && ground.out().join("c").exists());
}

/// The others run, once; what could not is not run outside unasked.
fn stopped() {
    let ground = Ground::new();
    let place = Arc::new(Place { sandbox: true, ..(*ground.place).clone() });
    let ground = Ground { place, ..ground };
    let long = "seq 1 100000; touch /usr/polyloop-batch";
    let parts = [
        bash("echo first; touch /usr/polyloop-batch"),
        bash("echo second >> made"),
        bash("exec 3<>/dev/tcp/127.0.0.1/9"),
        bash(long),
    ];
    let judged = judge(&ground, &parts);
    assert_eq!(verdict(&judged, Mode::FullAuto, &[], true), Verdict::AllowSandboxed);
    let by = unasked(Leave::Mode { mode: Mode::FullAuto }, Mode::FullAuto);
    let ended = block_on(start(&ground, &parts, Some(by)).end());
    let seen = ended.seen();
    assert_eq!(ended.end, End::Whole, "{seen}");
    assert!(seen.ends_with("(3 of 4 calls failed: [1] [3] [4])\n"), "{seen}");
    let told: Vec<&str> = seen.split("\n[").collect();
    for (part, why) in
        [(told[0], "closed to it"), (told[2], "network"), (told[told.len() - 1], "closed to it")]
    {
        assert!(part.contains("The sandbox stopped it: ") && part.contains(why), "{part}");
        assert!(
            part.contains("call bash by itself, and the user can let it run outside"),
            "{part}"
        );
    }
    assert!(told[0].starts_with("[1] bash: error: ") && told[0].contains("first\n"), "{seen}");
    assert_eq!(ended.output.matches("call bash by itself").count(), 2, "{}", ended.output);
    assert_eq!(ground.read("made"), "second\n");
    assert!(!std::path::Path::new("/usr/polyloop-batch").exists());
}

fn rules() {
    let mut ground = Ground::new();
    ground.write("f", "x\n");
    let text = "allow tool batch\nallow command touch a\nask tool glob\ndeny path secrets\n";
    let rules = Arc::new(Rules::parse(text).unwrap());
    ground.place = Arc::new(Place { rules, ..(*ground.place).clone() });
    let said = |parts: &[Value], mode| verdict(&judge(&ground, parts), mode, &[], true);
    let glob = part("glob", json!({ "pattern": "*" }));
    let read = part("read", json!({ "path": "f" }));
    let denied = part("write_file", json!({ "path": "secrets/x", "content": "x" }));
    assert_eq!(said(&[bash("touch a"), read.clone()], Mode::Suggest), Verdict::Allow);
    assert_eq!(said(&[bash("touch a"), bash("touch b")], Mode::Suggest), Verdict::Ask);
    assert_eq!(said(&[bash("touch b")], Mode::Suggest), Verdict::Ask);
    assert_eq!(said(&[read.clone(), glob.clone()], Mode::Bypass), Verdict::Ask);
    assert_eq!(said(&[bash("touch a"), glob], Mode::Suggest), Verdict::Ask);
    assert!(matches!(said(&[read, denied], Mode::Bypass), Verdict::Deny(_)));
}

/// Whatever is put together, in whatever mode: what ran unasked may run unasked by itself.
fn properties() {
    use proptest::prelude::*;
    use proptest::strategy::ValueTree as _;
    let parts = vec![
        part("read", json!({ "path": "f" })),
        part("read", json!({ "path": "../out/f" })),
        part("read", json!({ "path": "store/x" })),
        part("write_file", json!({ "path": "new", "content": "x" })),
        part("write_file", json!({ "path": ".env", "content": "x" })),
        part("write_file", json!({ "path": "../out/new", "content": "x" })),
        part("delete_file", json!({ "path": "f" })),
        part("create_dir", json!({ "path": "dir" })),
        part("todo_read", json!({})),
        part("web_fetcher", json!({ "url": "https://example.org/" })),
        part("web_fetcher", json!({ "url": "http://10.0.0.1/" })),
        bash("cat f"),
        bash("touch b"),
        bash("curl https://example.org"),
        bash("rm -rf /"),
    ];
    let ground = Ground::new();
    ground.write("f", "x\n");
    let places = [false, true].map(|sandbox| Place { sandbox, ..(*ground.place).clone() });
    let modes =
        [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto, Mode::Bypass, Mode::Plan, Mode::DontAsk];
    let strictness = |verdict: &Verdict| match verdict {
        Verdict::Allow => 0,
        Verdict::AllowSandboxed => 1,
        Verdict::Ask => 2,
        Verdict::Deny(_) => 3,
    };
    let chosen = prop::collection::vec(prop::sample::select(parts.clone()), 1..5);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut unlike = 0;
    for round in 0..150 {
        let chosen = chosen.new_tree(&mut runner).unwrap().current();
        let place = &places[round % 2];
        let alone: Vec<Judgement> = chosen
            .iter()
            .map(|part| {
                let (name, args) = (part["tool"].as_str().unwrap(), part["parameters"].to_string());
                block_on(perform::judge(name, &args, place))
            })
            .collect();
        let whole = block_on(perform::judge("batch", &batch(&chosen).to_string(), place));
        // As if the keys of the first had been granted.
        for grants in [&[][..], &alone[0].keys] {
            for mode in modes {
                let of = |judged| strictness(&verdict(judged, mode, grants, true));
                let strictest = alone.iter().map(of).max().unwrap();
                assert!(of(&whole) >= strictest, "{mode:?}: {chosen:?}");
                unlike += usize::from(of(&whole) != of(&alone[0]));
            }
        }
    }
    assert!(unlike > 100, "the batches were all like their first part: {unlike}");
}
