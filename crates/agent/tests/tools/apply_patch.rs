//! What the patch tool says of a patch, and what comes of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use futures_util::StreamExt as _;
use polyloop_agent::memories::Memories;
use polyloop_agent::place::{Places, Recent};
use polyloop_agent::tool::apply_patch::ApplyPatch;
use polyloop_agent::tool::{Progress, Run, Tool as _, find};
use polyloop_session::SessionId;
use polyloop_session::item::{End, FileChange, Operation};
use polyloop_session::policy::{Effect, Mode, Risk, Verdict, verdict};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use crate::{Ground, Test, block_on};

pub const ALL: &[Test] = &[
    ("a_patch_is_judged_and_applied", applied),
    ("protected_files_are_asked_about", protected),
    ("outside_and_the_servers_own_files_are_refused", refused),
    ("a_root_that_another_session_may_choose_is_outside", other_root),
    ("a_patch_that_does_not_fit_the_files_is_refused_and_stays_so", unfit),
    ("a_patch_that_is_none_is_an_error", malformed),
    ("large_and_binary_contents_are_not_kept", contents),
    ("a_patch_that_is_stopped_before_it_starts_changes_nothing", stopped),
];

fn patch(body: &str) -> serde_json::Value {
    json!({ "patch": format!("*** Begin Patch\n{body}*** End Patch\n") })
}

fn hash(text: impl AsRef<[u8]>) -> Option<polyloop_session::Text> {
    Some(format!("{:x}", Sha256::digest(text)).into())
}

fn applied() {
    let ground = Ground::new();
    ground.write("m.txt", "one\ntwo\n");
    ground.write("d.txt", "gone\n");
    ground.write("r.txt", "moved\n");
    let args = patch(
        "*** Add File: sub/a.txt\n+new\n*** Update File: m.txt\n@@\n one\n-two\n+2\n\
         *** Delete File: d.txt\n*** Update File: r.txt\n*** Move to: sub/r.txt\n\
         @@\n-moved\n+kept\n",
    );
    let judged = ground.judge(&ApplyPatch, args.clone()).unwrap();
    assert_eq!((judged.effect, judged.risk), (Effect::Edit, Risk::Medium));
    assert!(judged.confined && !judged.safe && judged.refusal.is_none());
    assert_eq!(judged.patch.as_deref(), args["patch"].as_str());
    assert_eq!(judged.command.len(), 2);
    let mut keys: Vec<&str> = judged.keys.iter().map(|key| &*key.what).collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        ["edit:d.txt", "edit:m.txt", "edit:r.txt", "edit:sub/a.txt", "edit:sub/r.txt"]
    );
    for path in ["d.txt", "m.txt", "r.txt", "sub/a.txt", "sub/r.txt"] {
        assert!(judged.covers.contains(path) && judged.reason.contains(path));
    }
    assert_eq!(ground.read("m.txt"), "one\ntwo\n");

    let ended = ground.finish(&ApplyPatch, args);
    assert_eq!(ended.end, End::Whole);
    assert_eq!(ended.result.seen, None);
    let mut lines: Vec<&str> = ended.output.lines().collect();
    assert_eq!(lines.remove(0), "Done!");
    lines.sort_unstable();
    assert_eq!(lines, ["A sub/a.txt", "D d.txt", "M m.txt", "R r.txt -> sub/r.txt"]);
    assert_eq!(ground.read("m.txt") + &ground.read("sub/a.txt"), "one\n2\nnew\n");
    assert!(!ground.cwd().join("d.txt").exists() && !ground.cwd().join("r.txt").exists());

    let change = |path: &str, operation, before: Option<&str>, after| FileChange {
        diff: None,
        path: path.into(),
        operation,
        before: before.map(Into::into),
        after,
        ..FileChange::default()
    };
    let moved = Operation::Move { from: "r.txt".into() };
    for want in [
        change("sub/a.txt", Operation::Create, None, hash("new\n")),
        change("m.txt", Operation::Update, Some("one\ntwo\n"), hash("one\n2\n")),
        change("d.txt", Operation::Delete, Some("gone\n"), None),
        change("sub/r.txt", moved, Some("moved\n"), hash("kept\n")),
    ] {
        let bare = |file: &FileChange| FileChange { diff: None, ..file.clone() };
        let is_there = ended.result.files.iter().any(|file| bare(file) == want);
        assert!(is_there, "{want:?}: {:?}", ended.result.files);
    }
    assert_eq!(ended.result.files.len(), 4);
}

fn protected() {
    let ground = Ground::new();
    for path in [".git/hooks/pre-commit", ".env", "AGENTS.md", "sub/.vscode/tasks.json"] {
        let judged =
            ground.judge(&ApplyPatch, patch(&format!("*** Add File: {path}\n+x\n"))).unwrap();
        assert!(!judged.confined && judged.refusal.is_none(), "{path}");
        assert_eq!(judged.risk, Risk::High, "{path}");
        assert!(judged.reason.contains(path), "{}", judged.reason);
        for mode in [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto] {
            assert_eq!(verdict(&judged, mode, &[], true), Verdict::Ask, "{path} {mode:?}");
        }
    }
}

fn refused() {
    let ground = Ground::new();
    let out = ground.cwd().with_file_name("out");
    fs::write(out.join("victim"), "x\n").unwrap();
    symlink(&out, ground.cwd().join("link")).unwrap();
    symlink("store", ground.cwd().join("alias")).unwrap();
    let rows = [
        ("../out/new", out.join("new")),
        ("link/new", out.join("new")),
        ("/etc/cron.d/x", "/etc/cron.d/x".into()),
        ("store/log", ground.cwd().join("store/log")),
        ("alias/log", ground.cwd().join("store/log")),
    ];
    for (path, real) in rows {
        let args = patch(&format!("*** Add File: {path}\n+x\n"));
        let judged = ground.judge(&ApplyPatch, args.clone()).unwrap();
        let why = judged.refusal.clone().unwrap();
        assert!(why.contains(real.to_str().unwrap()), "{path}: {why}");
        assert!(judged.patch.is_none() && !judged.safe && !judged.confined);
        assert!(matches!(verdict(&judged, Mode::Bypass, &[], true), Verdict::Deny(_)));
        let ended = ground.finish(&ApplyPatch, args);
        assert_eq!((ended.end, ended.seen()), (End::Failed, &*why));
        assert!(!real.exists(), "{path}");
    }
}

/// A session writes where it works. Other folders that a client may choose to work in are no part
/// of that, though the server works there too.
fn other_root() {
    let ground = Ground::new();
    let other = ground.out();
    let places = Places {
        common: (*ground.place).clone(),
        roots: vec![ground.cwd().to_owned(), other.clone()],
        plans: None,
        outputs: None,
        todos: None,
        memories: Memories::unkept().unwrap(),
        recent: Recent::default(),
    };
    let session = SessionId::parse("s").unwrap();
    for (home, away) in [(ground.cwd(), other.as_path()), (&other, ground.cwd())] {
        let place = places.place(&session, home.to_str(), None);
        assert_eq!(place.cwd, home);
        let there = Ground { place: Arc::new(place), dir: tempfile::tempdir().unwrap() };
        let add =
            |folder: &Path| patch(&format!("*** Add File: {}\n+x\n", folder.join("new").display()));
        let judged = there.judge(&ApplyPatch, add(home)).unwrap();
        assert_eq!(verdict(&judged, Mode::AutoEdit, &[], true), Verdict::Allow);
        let judged = there.judge(&ApplyPatch, add(away)).unwrap();
        assert!(judged.refusal.unwrap().contains("outside the working directory"));
        let write = json!({ "path": away.join("new"), "content": "x" });
        let judged = there.judge(find("write_file").unwrap(), write).unwrap();
        for mode in [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto] {
            assert_eq!(verdict(&judged, mode, &[], true), Verdict::Ask, "{mode:?}");
        }
    }
}

/// A refusal and no error: whatever changes the files before the call runs, nobody gave leave.
fn unfit() {
    let ground = Ground::new();
    ground.write("m.txt", "one\n");
    for (body, part) in [
        ("*** Update File: m.txt\n@@\n-two\n+2\n", "two"),
        ("*** Update File: nosuch\n@@\n-two\n+2\n", "nosuch"),
        ("*** Add File: m.txt\n+x\n", "m.txt"),
    ] {
        let judged = ground.judge(&ApplyPatch, patch(body)).unwrap();
        assert!(judged.refusal.as_ref().unwrap().contains(part), "{:?}", judged.refusal);
        assert_eq!(judged.refusal.as_ref(), Some(&judged.reason));
        assert!(judged.patch.is_none() && !judged.safe);
        let ended = ground.finish(&ApplyPatch, patch(body));
        assert_eq!((ended.end, ended.seen()), (End::Failed, &*judged.reason));
        assert!(ended.output.is_empty() && ended.result.files.is_empty());
    }
    assert_eq!(ground.read("m.txt"), "one\n");
}

fn malformed() {
    let ground = Ground::new();
    let rows = [
        (json!([]), "not a JSON object"),
        (json!({}), "`patch` is missing"),
        (json!({ "patch": ["x"] }), "`patch` must be a string"),
        (json!({ "patch": "" }), "apply_patch: "),
        (
            json!({ "patch": "*** Begin Patch\n*** Frobnicate File: x\n*** End Patch" }),
            "Frobnicate",
        ),
        (json!({ "patch": "*** Begin Patch\n*** Add File: x\n+x\n" }), "End Patch"),
    ];
    for (args, part) in rows {
        let why = ground.judge(&ApplyPatch, args.clone()).unwrap_err();
        assert!(why.contains(part), "{why}");
        let ended = ground.finish(&ApplyPatch, args);
        assert_eq!((ended.end, ended.seen()), (End::Failed, why.as_str()));
    }
    assert!(!ground.cwd().join("x").exists());
}

fn contents() {
    let ground = Ground::new();
    let large = "x\n".repeat(600_000);
    ground.write("large", &large);
    fs::write(ground.cwd().join("latin"), b"a\n\xff\n").unwrap();
    let args = patch("*** Delete File: large\n*** Update File: latin\n@@\n-a\n+b\n");
    let ended = ground.finish(&ApplyPatch, args);
    assert_eq!(ended.end, End::Whole, "{}", ended.seen());
    assert_eq!(ended.result.files.len(), 2);
    assert!(ended.result.files.iter().all(|change| change.before.is_none()));
    assert_eq!(fs::read(ground.cwd().join("latin")).unwrap(), b"b\n\xff\n");
    let latin = ended.result.files.iter().find(|change| &*change.path == "latin").unwrap();
    assert_eq!(latin.after, hash(b"b\n\xff\n"));
}

fn stopped() {
    let ground = Ground::new();
    let stop = CancellationToken::new();
    stop.cancel();
    let args = patch("*** Add File: x\n+x\n").to_string().into();
    let run = Run { args, place: ground.place.clone(), sandboxed: false, unasked: None, stop };
    let progress = block_on(ApplyPatch.run(run).collect::<Vec<_>>());
    assert!(matches!(progress.as_slice(), [Progress::Ended { end: End::Interrupted, .. }]));
    assert!(!ground.cwd().join("x").exists());
}
