//! What the editing tools do to files, byte by byte, and what they tell of it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use futures_util::StreamExt as _;
use polyloop_agent::tool::{Progress, Run};
use polyloop_session::item::{End, FileChange, Operation};
use polyloop_session::policy::{Mode, Risk, Verdict, verdict};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::paths::{EDITING, call, snapshot, tool};
use crate::{Ground, Test, block_on};

pub const ALL: &[Test] = &[
    ("a_file_is_written_with_the_directories_above_it", written),
    ("a_file_is_replaced_or_added_to", replaced),
    ("an_edit_replaces_exactly_one_piece", edited),
    ("an_edit_says_how_often_and_where_it_matched", ambiguous),
    ("an_edit_that_is_not_there_says_what_is_near", not_found),
    ("an_edit_keeps_line_endings", endings),
    ("an_edit_keeps_what_is_no_text_and_a_missing_final_newline", bytes),
    ("several_edits_are_all_made_or_none", several),
    ("a_mode_is_kept_and_a_read_only_file_is_left_alone", modes),
    ("a_hard_link_elsewhere_keeps_its_content", hard_link),
    ("a_file_is_moved_and_nothing_is_ever_replaced", moved),
    ("files_and_empty_directories_are_deleted", deleted),
    ("a_whole_directory_is_deleted_only_if_told_to", deleted_all),
    ("directories_are_made", directories),
    ("a_shown_patch_is_one_that_can_be_applied", shown_patch),
    ("contents_too_large_or_binary_are_not_kept", not_kept),
    ("a_call_that_is_stopped_before_it_starts_changes_nothing", stopped),
];

fn hash(text: impl AsRef<[u8]>) -> Option<polyloop_session::Text> {
    Some(format!("{:x}", Sha256::digest(text)).into())
}

fn change(
    path: &str,
    operation: Operation,
    before: Option<&str>,
    after: Option<&str>,
) -> FileChange {
    let (before, after) = (before.map(Into::into), after.and_then(hash));
    FileChange { path: path.into(), operation, before, after, ..FileChange::default() }
}

fn done(ground: &Ground, name: &str, args: Value) -> Vec<FileChange> {
    let ended = ground.finish(tool(name), args.clone());
    assert_eq!(ended.end, End::Whole, "{name} {args}: {}", ended.seen());
    assert!(!ended.output.is_empty() && ended.result.seen.is_none());
    // What the diffs say is tested on its own.
    let bare = |file: FileChange| FileChange { diff: None, ..file };
    ended.result.files.into_iter().map(bare).collect()
}

/// Why a call cannot be done: judged and run it is the same, and nothing is changed.
fn why_not(ground: &Ground, name: &str, args: Value) -> String {
    let before = snapshot(ground.cwd());
    let judged = ground.judge(tool(name), args.clone()).unwrap();
    let why = judged.refusal.unwrap_or_else(|| panic!("{name} {args}")).to_string();
    let ended = ground.finish(tool(name), args);
    assert_eq!((ended.end, ended.seen()), (End::Failed, why.as_str()));
    assert!(ended.result.files.is_empty());
    assert_eq!(before, snapshot(ground.cwd()));
    why
}

fn edit(old: &str, new: &str) -> Value {
    json!({ "path": "f", "oldString": old, "newString": new })
}

fn written() {
    let ground = Ground::new();
    let args = json!({ "path": "a/b/c.txt", "content": "no newline" });
    let judged = ground.judge(tool("write_file"), args.clone()).unwrap();
    assert_eq!(&*judged.reason, "writes the new file a/b/c.txt");
    assert_eq!(&*judged.keys[0].what, "edit:a/b/c.txt");
    assert!(!ground.cwd().join("a").exists());
    let files = done(&ground, "write_file", args);
    assert_eq!(files, [change("a/b/c.txt", Operation::Create, None, Some("no newline"))]);
    assert_eq!(ground.read("a/b/c.txt"), "no newline");
    done(&ground, "write_file", json!({ "path": "empty", "content": "" }));
    assert_eq!(ground.read("empty"), "");
    done(&ground, "edit", json!({ "path": "n/new", "oldString": "", "newString": "x\n" }));
    assert_eq!(ground.read("n/new"), "x\n");
    ground.write("file", "x");
    assert!(why_not(&ground, "write_file", call("write_file", "file/x")).contains("directory"));
}

fn replaced() {
    let ground = Ground::new();
    ground.write("f", "one\n");
    let args = json!({ "path": "f", "content": "two\n" });
    let judged = ground.judge(tool("write_file"), args.clone()).unwrap();
    assert_eq!(&*judged.reason, "replaces the whole content of f");
    let files = done(&ground, "write_file", args.clone());
    assert_eq!(files, [change("f", Operation::Update, Some("one\n"), Some("two\n"))]);
    assert!(why_not(&ground, "write_file", args).contains("has this content already"));
    let more = json!({ "path": "f", "content": "three", "append": true });
    assert!(ground.judge(tool("write_file"), more.clone()).unwrap().reason.contains("end of f"));
    done(&ground, "write_file", more.clone());
    done(&ground, "write_file", more);
    assert_eq!(ground.read("f"), "two\nthreethree");
}

fn edited() {
    let ground = Ground::new();
    ground.write("f", "one two three\nfour\n");
    let judged = ground.judge(tool("edit"), edit("two", "2")).unwrap();
    assert_eq!(&*judged.reason, "edits f");
    let patch = judged.patch.unwrap();
    assert!(patch.contains("\n-one two three\n+one 2 three\n four\n"), "{patch}");
    let files = done(&ground, "edit", edit("two", "2"));
    let (before, after) = ("one two three\nfour\n", "one 2 three\nfour\n");
    assert_eq!(files, [change("f", Operation::Update, Some(before), Some(after))]);
    assert_eq!(ground.read("f"), after);
    done(&ground, "edit", edit("one 2 three\n", ""));
    assert_eq!(ground.read("f"), "four\n");
    // The names that other clients use do as well.
    let alike = json!({ "file_path": "f", "old_string": "four", "new_string": "4" });
    done(&ground, "edit", alike);
    assert_eq!(ground.read("f"), "4\n");
    let why = why_not(&ground, "edit", edit("", "x"));
    assert!(why.contains("`oldString` is empty") && why.contains("write_file"), "{why}");
    let missing = json!({ "path": "nosuch", "oldString": "a", "newString": "b" });
    assert!(why_not(&ground, "edit", missing).contains("no such file"));
}

fn ambiguous() {
    let ground = Ground::new();
    ground.write("f", "x = 1\ny\nx = 1\n\nx = 1\n");
    let why = why_not(&ground, "edit", edit("x = 1", "x = 2"));
    assert!(why.contains("3 times (lines 1, 3, 5)") && why.contains("replaceAll"), "{why}");
    let all =
        json!({ "path": "f", "oldString": "x = 1", "newString": "x = 2", "replaceAll": true });
    let judged = ground.judge(tool("edit"), all.clone()).unwrap();
    assert!(judged.reason.contains("3 places"), "{}", judged.reason);
    done(&ground, "edit", all);
    assert_eq!(ground.read("f"), "x = 2\ny\nx = 2\n\nx = 2\n");
    ground.write("f", &"a\n".repeat(1000));
    let why = why_not(&ground, "edit", edit("a", "b"));
    assert!(why.contains("1000 times") && why.contains("and 992 more"), "{why}");
    ground.write("f", "-aaa-");
    assert!(why_not(&ground, "edit", edit("aa", "b")).contains("2 times"));
    let all = json!({ "path": "f", "oldString": "aa", "newString": "b", "replaceAll": true });
    done(&ground, "edit", all);
    assert_eq!(ground.read("f"), "-ba-");
}

fn not_found() {
    let ground = Ground::new();
    ground.write("f", "fn a() {\n    one();\n}\n");
    let why = why_not(&ground, "edit", edit("two();", "2"));
    assert!(why.contains("not in the file") && why.contains("no line"), "{why}");
    let why = why_not(&ground, "edit", edit("\tone();", "2"));
    assert!(why.contains("line 2 differs from it in blanks alone"), "{why}");
    let why = why_not(&ground, "edit", edit("fn a() {\n  one();", "2"));
    assert!(why.contains("first line is at line 1"), "{why}");
    let long = "y".repeat(100_000);
    assert!(why_not(&ground, "edit", edit(&long, "2")).len() < 1_000);
    ground.write("f", "");
    assert!(why_not(&ground, "edit", edit("a", "b")).contains("not in the file"));
}

fn endings() {
    let ground = Ground::new();
    for (before, old, new, after) in [
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n"),
        ("a\r\nb", "b", "b\nc\n", "a\r\nb\r\nc\r\n"),
        ("a\r\nb\r\n", "\nb", "", "a\r\n"),
        ("a\r\nb\r\n", "a\n", "", "b\r\n"),
        // Mixed: what is replaced says which, and the rest stays as it is.
        ("a\r\nb\nc\rd\n", "a\nb\n", "x\ny\n", "x\r\ny\nc\rd\n"),
        ("a\nb\r\nc\n", "c", "c\nd", "a\nb\r\nc\nd\n"),
        // Who writes CR means CR.
        ("a\r\nb\r\n", "a\r\nb", "x\ny", "x\ny\r\n"),
        ("a\nb\n", "a", "x\r\ny", "x\r\ny\nb\n"),
        ("a\nb", "b", "c", "a\nc"),
    ] {
        ground.write("f", before);
        done(&ground, "edit", edit(old, new));
        assert_eq!(ground.read("f"), after, "{before:?} {old:?} {new:?}");
    }
}

fn bytes() {
    let ground = Ground::new();
    let file = ground.cwd().join("f");
    fs::write(&file, b"\xef\xbb\xbfone\n\xff\xfe latin\nlast").unwrap();
    done(&ground, "edit", edit("one", "two"));
    done(&ground, "edit", edit("last", "end"));
    assert_eq!(fs::read(&file).unwrap(), b"\xef\xbb\xbftwo\n\xff\xfe latin\nend");
    fs::write(&file, b"a\0b").unwrap();
    assert!(why_not(&ground, "edit", edit("a", "b")).contains("binary"));
    let nul = json!({ "path": "g", "content": "a\0b" });
    done(&ground, "write_file", nul);
    assert_eq!(fs::read(ground.cwd().join("g")).unwrap(), b"a\0b");
}

fn several() {
    let ground = Ground::new();
    ground.write("f", "one\ntwo\nthree\n");
    let edits = |edits: &[(&str, &str)]| {
        let edits: Vec<Value> =
            edits.iter().map(|(old, new)| json!({ "oldString": old, "newString": new })).collect();
        json!({ "path": "f", "edits": edits })
    };
    let why = why_not(&ground, "multiedit", edits(&[("one", "1"), ("nosuch", "x")]));
    assert!(why.contains("edit 2:") && why.contains("nothing was changed"), "{why}");
    // Each sees what the one before it made.
    let files = done(&ground, "multiedit", edits(&[("one", "uno"), ("uno\ntwo", "1\n2")]));
    assert_eq!(ground.read("f"), "1\n2\nthree\n");
    let (before, after) = ("one\ntwo\nthree\n", "1\n2\nthree\n");
    assert_eq!(files, [change("f", Operation::Update, Some(before), Some(after))]);
    let why = why_not(&ground, "multiedit", edits(&[("1", "x"), ("x", "1")]));
    assert!(why.contains("has this content already"), "{why}");
}

fn modes() {
    let ground = Ground::new();
    for mode in [0o755, 0o600, 0o664] {
        ground.write("f", "old\n");
        fs::set_permissions(ground.cwd().join("f"), fs::Permissions::from_mode(mode)).unwrap();
        for name in ["edit", "write_file", "multiedit"] {
            ground.write("f", "old\n");
            done(&ground, name, call(name, "f"));
            let found = fs::metadata(ground.cwd().join("f")).unwrap().permissions().mode();
            assert_eq!(found & 0o7777, mode, "{name}");
        }
    }
    ground.write("r", "old\n");
    fs::set_permissions(ground.cwd().join("r"), fs::Permissions::from_mode(0o444)).unwrap();
    for name in EDITING.into_iter().filter(|name| *name != "create_dir") {
        let why = why_not(&ground, name, call(name, "r"));
        assert!(why.contains("read-only (mode 0444)"), "{name}: {why}");
    }
}

fn hard_link() {
    let ground = Ground::new();
    let victim = ground.out().join("victim");
    for name in ["edit", "write_file", "multiedit"] {
        fs::write(&victim, "old\n").unwrap();
        fs::hard_link(&victim, ground.cwd().join("h")).unwrap();
        done(&ground, name, call(name, "h"));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "old\n");
        assert_eq!(ground.read("h"), "new\n");
        fs::remove_file(ground.cwd().join("h")).unwrap();
    }
}

fn moved() {
    let ground = Ground::new();
    ground.write("a", "one\n");
    ground.write("taken", "two\n");
    symlink("nowhere", ground.cwd().join("dangling")).unwrap();
    let args = |source: &str, target: &str| json!({ "source": source, "target": target });
    for target in ["taken", "sub", "dangling"] {
        why_not(&ground, "move_file", args("a", target));
    }
    assert!(why_not(&ground, "move_file", args("a", "./a")).contains("source and the target"));
    assert!(why_not(&ground, "move_file", args("nosuch", "b")).contains("no such file"));
    assert!(why_not(&ground, "move_file", args("sub", "b")).contains("a directory"));
    let inode = fs::metadata(ground.cwd().join("a")).unwrap().ino();
    let judged = ground.judge(tool("move_file"), args("a", "new/dir/b")).unwrap();
    assert_eq!(&*judged.reason, "moves a to new/dir/b");
    let files = done(&ground, "move_file", args("a", "new/dir/b"));
    let operation = Operation::Move { from: "a".into() };
    assert_eq!(files, [change("new/dir/b", operation, Some("one\n"), Some("one\n"))]);
    assert_eq!(fs::metadata(ground.cwd().join("new/dir/b")).unwrap().ino(), inode);
    assert!(!ground.cwd().join("a").exists());
    // A failure leaves no directories behind.
    let why = ground.finish(tool("move_file"), args("taken", "x/y/taken/../../../taken/z"));
    assert_eq!(why.end, End::Failed);
    assert!(!ground.cwd().join("x").exists());
}

fn deleted() {
    let ground = Ground::new();
    ground.write("a", "one\n");
    symlink("a", ground.cwd().join("link")).unwrap();
    let path = |path: &str| json!({ "path": path });
    why_not(&ground, "delete_file", path("link"));
    let judged = ground.judge(tool("delete_file"), path("a")).unwrap();
    assert_eq!((&*judged.reason, judged.risk), ("deletes a", Risk::Medium));
    // Leave to edit a file is none to delete it.
    let edits =
        ground.judge(tool("edit"), json!({ "path": "a", "oldString": "one", "newString": "" }));
    assert_eq!(verdict(&judged, Mode::Suggest, &edits.unwrap().keys, true), Verdict::Ask);
    let files = done(&ground, "delete_file", path("a"));
    assert_eq!(files, [change("a", Operation::Delete, Some("one\n"), None)]);
    assert!(why_not(&ground, "delete_file", path("a")).contains("no such file"));
    assert!(done(&ground, "delete_file", path("sub/")).is_empty());
    assert!(!ground.cwd().join("sub").exists());
}

fn deleted_all() {
    let ground = Ground::new();
    fs::create_dir_all(ground.cwd().join("sub/deep/er")).unwrap();
    ground.write("sub/a", "one\n");
    ground.write("sub/deep/b", "two\n");
    fs::write(ground.out().join("victim"), "x").unwrap();
    symlink(ground.out(), ground.cwd().join("sub/link")).unwrap();
    use std::os::unix::ffi::OsStrExt as _;
    let odd = std::ffi::OsStr::from_bytes(b"odd\xff");
    fs::write(ground.cwd().join("sub").join(odd), "three\n").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, ground.cwd().join("sub/fifo"), rustix::fs::Mode::RWXU)
        .unwrap();
    let why = why_not(&ground, "delete_file", json!({ "path": "sub" }));
    assert!(why.contains("not empty") && why.contains("recursive"), "{why}");
    let all = json!({ "path": "sub", "recursive": true });
    let judged = ground.judge(tool("delete_file"), all.clone()).unwrap();
    assert_eq!((judged.risk, judged.confined), (Risk::High, false));
    assert!(judged.reason.contains("all 7 things in it"), "{}", judged.reason);
    for mode in [Mode::AutoEdit, Mode::FullAuto] {
        assert_eq!(verdict(&judged, mode, &[], true), Verdict::Ask);
    }
    let one = ground.judge(tool("delete_file"), json!({ "path": "sub/a" })).unwrap();
    assert_eq!(verdict(&judged, Mode::Suggest, &one.keys, true), Verdict::Ask);
    let files = done(&ground, "delete_file", all);
    assert!(!ground.cwd().join("sub").exists());
    assert!(ground.out().join("victim").exists(), "the link is deleted, not what it leads to");
    let paths: Vec<&str> = files.iter().map(|file| &*file.path).collect();
    assert_eq!(paths, ["sub/a", "sub/deep/b", "sub/fifo", "sub/link", "sub/odd\\xff"]);
    assert_eq!(files[1].before.as_deref(), Some("two\n"));
    assert_eq!(fs::read_dir(ground.cwd()).unwrap().count(), 1, "nothing but the store is left");

    fs::create_dir(ground.cwd().join("many")).unwrap();
    for number in 0..5_001 {
        fs::write(ground.cwd().join(format!("many/{number}")), "").unwrap();
    }
    let many = json!({ "path": "many", "recursive": true });
    let why = ground.finish(tool("delete_file"), many);
    assert!(why.seen().contains("more than 5000 things"), "{}", why.seen());
    assert_eq!(fs::read_dir(ground.cwd().join("many")).unwrap().count(), 5_001);
}

fn directories() {
    let ground = Ground::new();
    let args = json!({ "path": "x/y/z/" });
    let judged = ground.judge(tool("create_dir"), args.clone()).unwrap();
    assert_eq!(&*judged.reason, "makes the directory x/y/z");
    assert!(done(&ground, "create_dir", args.clone()).is_empty());
    assert!(ground.cwd().join("x/y/z").is_dir());
    let again = ground.finish(tool("create_dir"), args);
    assert!(again.end == End::Whole && again.seen().contains("already"), "{}", again.seen());
    let strict = json!({ "path": "x/y", "exist_ok": false });
    assert!(why_not(&ground, "create_dir", strict).contains("exists already"));
    ground.write("file", "x");
    assert!(why_not(&ground, "create_dir", json!({ "path": "file" })).contains("not a directory"));
    why_not(&ground, "create_dir", json!({ "path": "file/below" }));
}

fn shown_patch() {
    let ground = Ground::new();
    let text: String = (0..200).map(|n| format!("line {n}\r\n")).collect();
    let edits: Vec<Value> = [3, 4, 90, 199]
        .iter()
        .map(|n| json!({ "oldString": format!("line {n}\n"), "newString": format!("LINE {n}\nx\n") }))
        .collect();
    for (name, args) in [
        ("multiedit", json!({ "path": "f", "edits": edits })),
        ("write_file", json!({ "path": "f", "content": "only\r\n" })),
        ("write_file", json!({ "path": "new", "content": "one\n\ntwo\n" })),
        ("move_file", json!({ "source": "f", "target": "g" })),
        ("delete_file", json!({ "path": "f" })),
    ] {
        ground.write("f", &text);
        let patch = ground.judge(tool(name), args.clone()).unwrap().patch.unwrap();
        done(&ground, name, args);
        let by_tool = snapshot(ground.cwd());
        let _ = fs::remove_file(ground.cwd().join("new"));
        let _ = fs::remove_file(ground.cwd().join("g"));
        ground.write("f", &text);
        done(&ground, "apply_patch", json!({ "patch": patch }));
        assert_eq!(by_tool, snapshot(ground.cwd()), "{name}: {patch}");
        let _ = fs::remove_file(ground.cwd().join("new"));
        let _ = fs::remove_file(ground.cwd().join("g"));
    }
    let huge = json!({ "path": "huge", "content": "x\n".repeat(1_000_000) });
    let judged = ground.judge(tool("write_file"), huge).unwrap();
    assert!(judged.patch.is_none());
    assert_eq!(judged.command, ["write_file".into(), polyloop_session::Text::from("huge")]);
}

fn not_kept() {
    let ground = Ground::new();
    let large = "x\n".repeat(600_000);
    ground.write("large", &large);
    let files = done(&ground, "write_file", json!({ "path": "large", "content": "y\n" }));
    assert_eq!(files, [change("large", Operation::Update, None, Some("y\n"))]);
    fs::write(ground.cwd().join("bin"), b"\xff\0").unwrap();
    let files = done(&ground, "delete_file", json!({ "path": "bin" }));
    assert_eq!(files, [change("bin", Operation::Delete, None, None)]);
    // A file larger than is ever read can still be moved and deleted.
    let huge = fs::File::create(ground.cwd().join("huge")).unwrap();
    huge.set_len(10 * 1024 * 1024 * 1024).unwrap();
    let files = done(&ground, "move_file", json!({ "source": "huge", "target": "h" }));
    assert_eq!((files[0].before.as_ref(), files[0].after.as_ref()), (None, None));
    done(&ground, "delete_file", json!({ "path": "h" }));
    assert!(!ground.cwd().join("h").exists());
    let over = fs::File::create(ground.cwd().join("over")).unwrap();
    over.set_len(10 * 1024 * 1024 * 1024).unwrap();
    for name in ["edit", "write_file"] {
        let why = why_not_quick(&ground, name, call(name, "over"));
        assert!(why.contains("over the limit"), "{why}");
    }
}

/// As `why_not`, for files that are too large to compare.
fn why_not_quick(ground: &Ground, name: &str, args: Value) -> String {
    let judged = ground.judge(tool(name), args.clone()).unwrap();
    assert_eq!(ground.finish(tool(name), args).seen(), judged.refusal.as_deref().unwrap());
    judged.reason.to_string()
}

fn stopped() {
    let ground = Ground::new();
    ground.write("f", "old\n");
    let before = snapshot(ground.cwd());
    for name in EDITING {
        let stop = CancellationToken::new();
        stop.cancel();
        let path = if name == "create_dir" { "new" } else { "f" };
        let args = call(name, path).to_string().into();
        let run = Run { args, place: ground.place.clone(), sandboxed: false, unasked: None, stop };
        let progress = block_on(tool(name).run(run).collect::<Vec<_>>());
        assert!(matches!(progress.as_slice(), [Progress::Ended { end: End::Interrupted, .. }]));
    }
    assert_eq!(before, snapshot(ground.cwd()));
}
