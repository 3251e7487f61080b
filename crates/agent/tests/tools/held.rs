//! A directory that is deleted as a whole: it is as closed as the most closed thing in it.

use std::fs;
use std::sync::Arc;

use polyloop_agent::perform;
use polyloop_agent::rules::Rules;
use polyloop_agent::tool::{Place, Run, Unasked};
use polyloop_session::item::End;
use polyloop_session::policy::{Judgement, Key, Leave, Mode, Verdict, verdict};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::paths::{snapshot, tool};
use crate::{Call, Ended, Ground, Test, block_on, unasked};

pub const ALL: &[Test] = &[
    ("what_a_rule_denies_keeps_all_directories_above_it", denied),
    ("what_a_rule_asks_about_is_asked_about_with_its_directory", asked),
    ("what_is_protected_is_asked_about_with_its_directory", protected),
    ("the_servers_own_files_keep_all_directories_above_them", forbidden),
    ("leave_for_all_of_a_directory_is_leave_for_each_thing_in_it", allowed),
    ("what_came_into_a_directory_since_counts_when_it_is_deleted", changed),
    ("a_directory_that_cannot_be_looked_through_is_refused", too_many),
    ("a_directory_is_never_moved", moved),
];

const MODES: [Mode; 6] =
    [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto, Mode::Bypass, Mode::Plan, Mode::DontAsk];

fn ground(rules: &str) -> Ground {
    let mut ground = Ground::new();
    let rules = Arc::new(Rules::parse(rules).unwrap());
    ground.place = Arc::new(Place { rules, ..(*ground.place).clone() });
    fs::create_dir_all(ground.cwd().join("sub/deep/er")).unwrap();
    ground.write("sub/a", "one\n");
    ground.write("sub/deep/b", "two\n");
    ground
}

fn all() -> Value {
    json!({ "path": "sub", "recursive": true })
}

fn judge(ground: &Ground) -> Judgement {
    block_on(perform::judge("delete_file", &all().to_string(), &ground.place))
}

fn said(ground: &Ground, mode: Mode, grants: &[Key]) -> Verdict {
    verdict(&judge(ground), mode, grants, true)
}

fn run(ground: &Ground, unasked: Option<Unasked>) -> Ended {
    let stop = CancellationToken::new();
    let (args, place) = (all().to_string().into(), ground.place.clone());
    let run = Run { args, place, sandboxed: false, unasked, stop: stop.clone() };
    let stream = tool("delete_file").run(run);
    block_on(Call { stream, stop, output: String::new() }.end())
}

/// It does not run, and all is as it was.
fn stays(ground: &Ground, unasked: Option<Unasked>) -> String {
    let before = snapshot(ground.cwd());
    let ended = run(ground, unasked);
    assert_eq!((ended.end, ended.result.files.len()), (End::Failed, 0), "{}", ended.seen());
    assert_eq!(before, snapshot(ground.cwd()));
    ended.seen().to_owned()
}

fn denied() {
    for rule in
        ["deny path sub/deep/b", "deny path sub/deep/er", "deny path sub/*/?", "deny path **/b"]
    {
        let ground = ground(&format!("allow path sub\nallow tool delete_file\n{rule}\n"));
        for mode in MODES {
            let keys = judge(&ground).keys;
            let Verdict::Deny(why) = said(&ground, mode, &keys) else { panic!("{rule} {mode:?}") };
            assert!(why.contains(rule), "{why}");
        }
        assert!(stays(&ground, None).contains(rule), "a person's yes does not help");
    }
    // Below another directory, or nowhere, it is no reason.
    for rule in ["deny path other/b", "deny path sub/none"] {
        assert_eq!(said(&ground(rule), Mode::Bypass, &[]), Verdict::Allow, "{rule}");
    }
}

fn asked() {
    let ground = ground("allow path sub\nask path sub/deep/b\n");
    let keys = judge(&ground).keys;
    for mode in [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto, Mode::Bypass] {
        assert_eq!(said(&ground, mode, &keys), Verdict::Ask, "{mode:?}");
    }
    let bypass = unasked(Leave::Mode { mode: Mode::Bypass }, Mode::Bypass);
    stays(&ground, Some(bypass));
    assert_eq!(run(&ground, None).end, End::Whole, "a person said yes");
}

fn protected() {
    for path in ["sub/.git/hooks/pre-commit", "sub/deep/.env.local", "sub/deep/AGENTS.md"] {
        let ground = ground("allow path sub\n");
        let before = judge(&ground);
        assert_eq!(verdict(&before, Mode::Suggest, &[], true), Verdict::Allow);
        fs::create_dir_all(ground.cwd().join(path).parent().unwrap()).unwrap();
        ground.write(path, "x");
        let judged = judge(&ground);
        for grants in [&[][..], &before.keys] {
            assert_eq!(verdict(&judged, Mode::Suggest, grants, true), Verdict::Ask, "{path}");
            assert_eq!(verdict(&judged, Mode::FullAuto, grants, true), Verdict::Ask, "{path}");
        }
        assert_eq!(verdict(&judged, Mode::Suggest, &judged.keys, true), Verdict::Allow);
        let name = path.split('/').find(|name| name.starts_with(['.', 'A'])).unwrap();
        assert!(judged.reason.starts_with("a protected path: "), "{}", judged.reason);
        assert!(judged.reason.contains(name) && judged.covers.contains(name), "{judged:?}");
        stays(&ground, Some(unasked(Leave::Rule { line: "".into() }, Mode::Suggest)));
    }
    // A repository under any name.
    let ground = ground("allow path sub\n");
    fs::create_dir_all(ground.cwd().join("sub/deep/objects")).unwrap();
    fs::create_dir_all(ground.cwd().join("sub/deep/refs")).unwrap();
    assert_eq!(said(&ground, Mode::Suggest, &[]), Verdict::Allow);
    ground.write("sub/deep/HEAD", "ref: refs/heads/main\n");
    assert_eq!(said(&ground, Mode::Suggest, &[]), Verdict::Ask);
    // Leave for one set of them is none for another.
    let granted = judge(&ground).keys;
    ground.write("sub/.env", "x");
    assert_eq!(said(&ground, Mode::FullAuto, &granted), Verdict::Ask);
}

fn forbidden() {
    let mut ground = ground("allow path sub\n");
    let own = ground.cwd().join("sub/deep/own.db");
    let forbidden = [own.clone()].into();
    ground.place = Arc::new(Place { forbidden, ..(*ground.place).clone() });
    for there in [false, true] {
        if there {
            fs::write(&own, "x").unwrap();
        }
        let why = judge(&ground).refusal.unwrap();
        assert!(why.contains("server's own files"), "{why}");
        assert!(stays(&ground, None).contains("server's own files"));
    }
}

fn allowed() {
    let some = ground("allow path sub/deep\nallow path sub/a\n");
    assert_eq!(said(&some, Mode::Suggest, &[]), Verdict::Ask);
    let whole = ground("allow path sub\n");
    assert_eq!(said(&whole, Mode::Suggest, &[]), Verdict::Allow);
    let leave = Leave::Rule { line: "allow path sub".into() };
    assert_eq!(run(&whole, Some(unasked(leave, Mode::Suggest))).end, End::Whole);
    let granted = ground("");
    let grants: Arc<[Key]> = judge(&granted).keys.into();
    let by = Unasked { leave: Leave::Granted, mode: Mode::Suggest, grants };
    assert_eq!(run(&granted, Some(by)).end, End::Whole);
    // By the mode alone only bypass lets it run.
    for mode in [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto] {
        let by = unasked(Leave::Mode { mode }, mode);
        stays(&ground(""), Some(by));
    }
    let bypass = unasked(Leave::Mode { mode: Mode::Bypass }, Mode::Bypass);
    assert_eq!(run(&ground(""), Some(bypass)).end, End::Whole);
}

fn changed() {
    let granted = ground("deny path **/*.pem\nask path **/*.key\n");
    let grants: Arc<[Key]> = judge(&granted).keys.into();
    for new in ["sub/deep/x.pem", "sub/deep/x.key", "sub/.envrc"] {
        let leave = Leave::Granted;
        let by = Unasked { leave, mode: Mode::Suggest, grants: grants.clone() };
        granted.write(new, "x");
        stays(&granted, Some(by));
        fs::remove_file(granted.cwd().join(new)).unwrap();
    }
    granted.write("sub/deep/x.pem", "x");
    assert!(stays(&granted, None).contains("deny path **/*.pem"));
}

fn too_many() {
    let ground = ground("allow path sub\n");
    for number in 0..5_000 {
        ground.write(&format!("sub/deep/er/{number}"), "");
    }
    let why = judge(&ground).refusal.unwrap();
    assert!(why.contains("more than 5000 things, too many to look through"), "{why}");
    assert!(matches!(said(&ground, Mode::Bypass, &[]), Verdict::Deny(_)));
    assert!(stays(&ground, None).contains("more than 5000 things"));
}

/// So nothing in one needs to be looked at.
fn moved() {
    let ground = ground("allow path sub\nallow path moved\n");
    let args = json!({ "source": "sub", "target": "moved" });
    let judged = ground.judge(tool("move_file"), args.clone()).unwrap();
    assert!(judged.refusal.unwrap().contains("a directory, not a regular file"));
    assert_eq!(ground.finish(tool("move_file"), args).end, End::Failed);
    assert!(ground.cwd().join("sub/deep/b").exists());
}
