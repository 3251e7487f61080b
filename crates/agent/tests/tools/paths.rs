//! Where a file tool may go: the same rules for all of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use polyloop_agent::rules::Rules;
use polyloop_agent::tool::{self, Place, Tool};
use polyloop_session::item::End;
use polyloop_session::policy::{Effect, Judgement, Mode, Risk, Verdict, verdict};
use serde_json::{Value, json};

use crate::{Ground, Test};

pub const ALL: &[Test] = &[
    ("inside_reading_runs_and_editing_is_confined", inside),
    ("outside_is_asked_about_by_its_real_path_and_then_done", outside),
    ("a_link_that_leads_outside_is_refused", links_outside),
    ("a_link_inside_is_followed_for_reading_alone", links_inside),
    ("a_rule_about_a_links_name_holds_for_who_goes_by_it", ruled_links),
    ("the_servers_own_files_are_refused_in_every_mode", forbidden),
    ("the_servers_own_files_are_refused_by_every_name", forbidden_names),
    ("protected_paths_are_asked_about_also_before_they_exist", protected),
    ("names_that_are_none_are_refused", bad_names),
    ("nothing_is_expanded_or_decoded", literal_names),
    ("what_the_kernel_shows_as_files_is_refused", system),
    ("pipes_and_sockets_and_directories_are_no_files", special),
    ("an_absolute_path_inside_is_reported_as_a_relative_one", absolute_inside),
    ("arguments_that_do_not_fit_are_errors_by_name", malformed),
    ("a_person_may_put_a_patch_in_place_of_an_edit", patch_instead),
];

const ASKING: [Mode; 3] = [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto];
pub const EDITING: [&str; 6] =
    ["write_file", "edit", "multiedit", "move_file", "delete_file", "create_dir"];
pub const READING: [&str; 4] = ["read", "ls", "glob", "grep"];

pub fn tool(name: &str) -> &'static dyn Tool {
    tool::find(name).unwrap()
}

/// A call of a tool that fits a file at `path` with the content `old\n`.
pub fn call(name: &str, path: &str) -> Value {
    let edit = json!({ "oldString": "old", "newString": "new" });
    match name {
        "read" | "ls" | "delete_file" | "create_dir" => json!({ "path": path }),
        "glob" => json!({ "path": path, "pattern": "**" }),
        "grep" => json!({ "path": path, "pattern": "." }),
        "write_file" => json!({ "path": path, "content": "new\n" }),
        "edit" => json!({ "path": path, "oldString": "old", "newString": "new" }),
        "multiedit" => json!({ "path": path, "edits": [edit] }),
        "move_file" => json!({ "source": path, "target": format!("{path}.moved") }),
        other => panic!("{other}"),
    }
}

fn is_directory_tool(name: &str) -> bool {
    matches!(name, "ls" | "glob")
}

/// Everything below a directory, with contents and modes, no link followed.
pub fn snapshot(dir: &Path) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let facts = fs::symlink_metadata(&path).unwrap();
        let content = match facts.is_file() {
            true => format!("{:?}", fs::read(&path).unwrap()),
            false => format!("{:?}", fs::read_link(&path).ok()),
        };
        all.push(format!("{path:?} {:o} {content}", facts.permissions().mode()));
        if facts.is_dir() {
            all.extend(snapshot(&path));
        }
    }
    all.sort();
    all
}

fn asks_everywhere(judged: &Judgement, what: &str) {
    for mode in ASKING {
        assert_eq!(verdict(judged, mode, &[], true), Verdict::Ask, "{what} {mode:?}");
        assert_eq!(verdict(judged, mode, &judged.keys, true), Verdict::Allow, "{what} {mode:?}");
    }
    assert_eq!(verdict(judged, Mode::Bypass, &[], true), Verdict::Allow, "{what}");
    assert!(matches!(verdict(judged, Mode::DontAsk, &[], true), Verdict::Deny(_)), "{what}");
    assert!(matches!(verdict(judged, Mode::Plan, &[], true), Verdict::Deny(_)), "{what}");
}

/// A refusal in every mode, and nothing comes of it either if it is run all the same.
fn refused(ground: &Ground, name: &str, args: Value) -> String {
    let before = (snapshot(ground.cwd()), snapshot(&ground.out()));
    let judged = ground.judge(tool(name), args.clone()).unwrap();
    let why = judged.refusal.clone().unwrap_or_else(|| panic!("{name} {args}: {judged:?}"));
    assert!(!judged.safe && !judged.confined && judged.patch.is_none(), "{name} {args}");
    assert!(matches!(verdict(&judged, Mode::Bypass, &judged.keys, true), Verdict::Deny(_)));
    let ended = ground.finish(tool(name), args.clone());
    assert_eq!((ended.end, ended.seen()), (End::Failed, &*why), "{name} {args}");
    assert!(ended.output.is_empty() && ended.result.files.is_empty());
    assert_eq!(before, (snapshot(ground.cwd()), snapshot(&ground.out())), "{name} {args}");
    why.to_string()
}

fn inside() {
    let ground = Ground::new();
    ground.write("sub/f", "old\n");
    for name in READING {
        let path = if is_directory_tool(name) { "sub" } else { "sub/f" };
        let judged = ground.judge(tool(name), call(name, path)).unwrap();
        assert_eq!((judged.effect, judged.risk), (Effect::Read, Risk::Low), "{name}");
        assert!(judged.safe && judged.refusal.is_none(), "{name}");
        for mode in [Mode::Suggest, Mode::Plan, Mode::DontAsk] {
            assert_eq!(verdict(&judged, mode, &[], true), Verdict::Allow, "{name} {mode:?}");
        }
        assert!(judged.reason.contains(path), "{}", judged.reason);
    }
    for name in EDITING {
        let path = if name == "create_dir" { "sub/new" } else { "sub/f" };
        let judged = ground.judge(tool(name), call(name, path)).unwrap();
        assert_eq!((judged.effect, judged.risk), (Effect::Edit, Risk::Medium), "{name}");
        assert!(judged.confined && !judged.safe && judged.refusal.is_none(), "{name}");
        assert_eq!(verdict(&judged, Mode::Suggest, &[], true), Verdict::Ask, "{name}");
        assert_eq!(verdict(&judged, Mode::AutoEdit, &[], true), Verdict::Allow, "{name}");
        assert!(matches!(verdict(&judged, Mode::Plan, &[], true), Verdict::Deny(_)), "{name}");
        assert!(judged.reason.contains(path), "{}", judged.reason);
        assert_eq!(judged.patch.is_some(), name != "create_dir", "{name}");
        if let Some(patch) = &judged.patch {
            assert_eq!(judged.command, ["apply_patch".into(), patch.clone()], "{name}");
        }
    }
}

fn outside() {
    for name in READING.into_iter().chain(EDITING) {
        let ground = Ground::new();
        let out = ground.out();
        let victim = if is_directory_tool(name) { out.clone() } else { out.join("f") };
        if name != "create_dir" {
            fs::write(out.join("f"), "old\n").unwrap();
        }
        let absolute = victim.to_str().unwrap().to_owned();
        let relative = match is_directory_tool(name) {
            true => "sub/../../out",
            false => "../out/f",
        };
        for path in [relative, &absolute] {
            let before = snapshot(&out);
            let judged = ground.judge(tool(name), call(name, path)).unwrap();
            assert!(judged.refusal.is_none(), "{name} {path}: {:?}", judged.refusal);
            assert!(judged.reason.contains(&absolute), "{name} {path}: {}", judged.reason);
            assert!(judged.risk >= Risk::Medium && !judged.safe && !judged.confined);
            asks_everywhere(&judged, name);
            assert_eq!(before, snapshot(&out), "{name}");
        }
        let ended = ground.finish(tool(name), call(name, relative));
        assert_eq!(ended.end, End::Whole, "{name}: {}", ended.seen());
        for file in &ended.result.files {
            assert!(file.path.starts_with(out.to_str().unwrap()), "{name}: {file:?}");
        }
    }
}

fn links_outside() {
    let ground = Ground::new();
    let out = ground.out();
    fs::write(out.join("victim"), "old\n").unwrap();
    symlink(&out, ground.cwd().join("linked")).unwrap();
    symlink("../out/victim", ground.cwd().join("leaf")).unwrap();
    symlink(out.join("not-there"), ground.cwd().join("dangling")).unwrap();
    ground.write("f", "old\n");
    for name in READING.into_iter().chain(EDITING) {
        for (path, real) in [
            ("linked/victim", "victim"),
            ("linked/new", "new"),
            ("linked/new/deep", "new/deep"),
            ("leaf", "victim"),
            ("dangling", "not-there"),
        ] {
            let why = refused(&ground, name, call(name, path));
            assert!(why.contains(out.join(real).to_str().unwrap()), "{name} {path}: {why}");
        }
    }
    for target in ["linked/f", "leaf", "dangling", "linked/new/f"] {
        refused(&ground, "move_file", json!({ "source": "f", "target": target }));
    }
    // Also by a link outside that leads elsewhere, and by one that leads back.
    symlink(&out, out.with_file_name("other")).unwrap();
    symlink(ground.cwd(), out.with_file_name("back")).unwrap();
    for path in ["../other/victim", "../back/f"] {
        for name in READING.into_iter().chain(EDITING) {
            let why = refused(&ground, name, call(name, path));
            assert!(why.contains("real path"), "{why}");
        }
    }
}

fn links_inside() {
    let ground = Ground::new();
    ground.write("sub/f", "old\n");
    symlink("sub", ground.cwd().join("alias")).unwrap();
    for name in READING {
        let path = if is_directory_tool(name) { "alias" } else { "alias/f" };
        let judged = ground.judge(tool(name), call(name, path)).unwrap();
        assert!(judged.safe, "{name}: {judged:?}");
        assert!(judged.reason.contains("sub"), "{}", judged.reason);
        let ended = ground.finish(tool(name), call(name, path));
        assert_eq!(ended.end, End::Whole, "{name}: {}", ended.seen());
    }
    for name in EDITING {
        let why = refused(&ground, name, call(name, "alias/f"));
        assert!(why.contains("sub/f") && why.contains("symbolic link"), "{why}");
    }
}

fn ruled_links() {
    let mut ground = Ground::new();
    ground.write("sub/f", "old\n");
    symlink("sub", ground.cwd().join("alias")).unwrap();
    let mut read_by = |rule: &str| {
        let rules = Arc::new(Rules::parse(rule).unwrap());
        ground.place = Arc::new(Place { rules, ..(*ground.place).clone() });
        ground.judge(tool("read"), json!({ "path": "alias/f" })).unwrap()
    };
    let denied = read_by("deny path alias");
    assert!(matches!(verdict(&denied, Mode::Bypass, &[], true), Verdict::Deny(_)));
    let asked = read_by("ask path alias/f");
    assert_eq!(verdict(&asked, Mode::Bypass, &[], true), Verdict::Ask);
    // Leave for the name is none for where it leads.
    assert_eq!(read_by("allow path alias").rule, None);
}

fn forbidden() {
    let ground = Ground::new();
    ground.write("store/log", "old\n");
    symlink("store", ground.cwd().join("alias")).unwrap();
    for name in READING.into_iter().chain(EDITING) {
        for path in ["store/log", "alias/log", "store", "./sub/../store/new"] {
            let why = refused(&ground, name, call(name, path));
            assert!(why.contains("server's own files"), "{name} {path}: {why}");
        }
    }
    ground.write("f", "old\n");
    let onto = json!({ "source": "f", "target": "store/f" });
    refused(&ground, "move_file", onto);
    // What holds them is not deleted either, and what walks past them does not see them.
    let above = ground.cwd().to_str().unwrap().to_owned();
    for path in [".", &above, "..", "/"] {
        refused(&ground, "delete_file", json!({ "path": path, "recursive": true }));
    }
    for (name, args) in [
        ("ls", json!({})),
        ("glob", json!({ "pattern": "**/*" })),
        ("grep", json!({ "pattern": "." })),
    ] {
        let ended = ground.finish(tool(name), args);
        assert_eq!(ended.end, End::Whole);
        assert!(ended.output.contains('f') && !ended.output.contains("log"), "{}", ended.output);
        assert!(!ended.output.contains("  store"), "{}", ended.output);
    }
}

/// Whatever was done to the way that leads to them since the turn began.
fn forbidden_names() {
    let mut ground = Ground::new();
    fs::create_dir_all(ground.cwd().join("kept/deep")).unwrap();
    ground.write("kept/key", "old\n");
    ground.write("kept/deep/f", "old\n");
    symlink("kept", ground.cwd().join("way")).unwrap();
    let forbidden = ["way/key", "way/deep"].map(|own| ground.cwd().join(own)).into();
    ground.place = Arc::new(Place { forbidden, ..(*ground.place).clone() });
    let refuses = |path: &&str| {
        let why = refused(&ground, "read", call("read", path));
        assert!(why.contains("server's own files"), "{path}: {why}");
    };
    ["way/key", "kept/key", "kept/deep/f"].iter().for_each(refuses);
    let (kept, moved) = (ground.cwd().join("kept"), ground.cwd().join("moved"));
    fs::rename(&kept, &moved).unwrap();
    fs::remove_file(ground.cwd().join("way")).unwrap();
    symlink("moved", ground.cwd().join("way")).unwrap();
    ["way/key", "moved/key", "moved/deep/f", "moved/deep/new"].iter().for_each(refuses);
    // The way is a directory now, and where it was is a link to it.
    fs::remove_file(ground.cwd().join("way")).unwrap();
    fs::rename(&moved, ground.cwd().join("way")).unwrap();
    symlink("way", &moved).unwrap();
    ["way/key", "moved/key", "moved/deep/f"].iter().for_each(refuses);
    fs::hard_link(ground.cwd().join("way/key"), ground.cwd().join("second")).unwrap();
    refuses(&"second");
    ground.write("way/other", "old\n");
    assert_eq!(ground.finish(tool("read"), call("read", "way/other")).end, End::Whole);
}

fn protected() {
    let ground = Ground::new();
    let paths = [
        ".git/config",
        ".git/hooks/pre-commit",
        ".gitmodules",
        ".env",
        "sub/.env.local",
        ".envrc",
        "AGENTS.md",
        "SOUL.md",
        ".vscode/tasks.json",
        ".idea/workspace.xml",
        ".bashrc",
        "sub/.GIT/config",
        ".git./config",
    ];
    for path in paths {
        for name in ["write_file", "create_dir"] {
            let judged = ground.judge(tool(name), call(name, path)).unwrap();
            assert_eq!((judged.risk, judged.confined), (Risk::High, false), "{name} {path}");
            assert!(judged.reason.contains(path), "{}", judged.reason);
            asks_everywhere(&judged, path);
        }
        let created = json!({ "path": path, "oldString": "", "newString": "x" });
        asks_everywhere(&ground.judge(tool("edit"), created).unwrap(), path);
        assert!(!ground.cwd().join(path).exists());
        fs::create_dir_all(ground.cwd().join(path).parent().unwrap()).unwrap();
        ground.write(path, "old\n");
        for name in EDITING.into_iter().filter(|name| *name != "create_dir") {
            asks_everywhere(&ground.judge(tool(name), call(name, path)).unwrap(), path);
        }
        ground.write("f", "old\n");
        let onto = json!({ "source": "f", "target": format!("{path}.d/.env") });
        asks_everywhere(
            &ground.judge(tool("move_file"), onto).unwrap_or_else(|w| panic!("{w}")),
            path,
        );
        fs::remove_file(ground.cwd().join(path)).unwrap();
    }
}

fn bad_names() {
    let ground = Ground::new();
    ground.write("f", "old\n");
    let long = "x".repeat(256);
    let (deep, huge) = ("d/".repeat(300) + "f", "x/".repeat(2_500) + "f");
    for path in
        ["", ".", "..", "/", "sub/", "a\0b", "a\nb", "a\rb", "\u{1b}[31m", &long, &deep, &huge]
    {
        for name in ["read", "write_file", "edit", "multiedit", "move_file"] {
            refused(&ground, name, call(name, path));
        }
        refused(&ground, "move_file", json!({ "source": "f", "target": path }));
    }
    for path in ["a\0b", "a\nb", &long, &deep, &huge] {
        for name in ["delete_file", "create_dir", "ls", "glob", "grep"] {
            refused(&ground, name, call(name, path));
        }
    }
    for path in ["", ".", "..", "/"] {
        refused(&ground, "delete_file", call("delete_file", path));
    }
}

fn literal_names() {
    let ground = Ground::new();
    let names =
        ["~/.x", "$HOME", "%2e%2e", "file:x", "C:\\x", "a\u{202e}b", "z\u{200b}w", "a\u{2215}b"];
    for name in names {
        let ended = ground.finish(tool("write_file"), call("write_file", name));
        assert_eq!(ended.end, End::Whole, "{name}: {}", ended.seen());
        assert_eq!(ground.read(name), "new\n");
        assert!(!ended.seen().contains(['\u{202e}', '\u{200b}']), "{:?}", ended.seen());
    }
    let listed = ground.finish(tool("ls"), json!({})).output;
    assert!(listed.contains("a\\u{202e}b") && !listed.contains('\u{202e}'), "{listed:?}");
}

fn system() {
    let ground = Ground::new();
    for path in [
        "/proc/self/environ",
        "/proc/self/cwd/../x",
        "/proc/self/root/etc/x",
        "/proc/1/environ",
        "/dev/fd/3",
        "/dev/null",
        "/dev/stdin",
        "/sys/kernel/x",
    ] {
        for name in READING.into_iter().chain(EDITING) {
            refused(&ground, name, call(name, path));
        }
    }
}

fn special() {
    let ground = Ground::new();
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mkfifoat(rustix::fs::CWD, ground.cwd().join("fifo"), mode).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(ground.cwd().join("socket")).unwrap();
    for path in ["fifo", "socket"] {
        for name in ["read", "grep", "ls"] {
            let ended = ground.finish(tool(name), call(name, path));
            assert_eq!(ended.end, End::Failed, "{name} {path}: {}", ended.seen());
        }
        for name in EDITING {
            refused(&ground, name, call(name, path));
        }
    }
    drop(socket);
    for name in ["write_file", "edit", "multiedit", "move_file"] {
        let why = refused(&ground, name, call(name, "sub"));
        assert!(why.contains("a directory"), "{why}");
    }
    let ended = ground.finish(tool("read"), call("read", "sub"));
    assert!(ended.seen().contains("use ls"), "{}", ended.seen());
}

fn absolute_inside() {
    let ground = Ground::new();
    ground.write("sub/f", "old\n");
    let absolute = ground.cwd().join("sub/f").to_str().unwrap().to_owned();
    let judged = ground.judge(tool("edit"), call("edit", &absolute)).unwrap();
    assert!(judged.confined && !judged.reason.contains(&absolute), "{}", judged.reason);
    let ended = ground.finish(tool("edit"), call("edit", &absolute));
    assert_eq!(&*ended.result.files[0].path, "sub/f");
    // Names that only begin alike are not inside.
    let beside = format!("{}-evil", ground.cwd().display());
    fs::create_dir(&beside).unwrap();
    let judged = ground.judge(tool("write_file"), call("write_file", &format!("{beside}/x")));
    assert!(!judged.unwrap().confined);
}

fn malformed() {
    let ground = Ground::new();
    for name in READING.into_iter().chain(EDITING) {
        for (args, part) in [
            ("[]".to_owned(), "not a JSON object"),
            ("{".to_owned(), "not a JSON object"),
            (json!({ "path": 7, "source": 7, "pattern": 7 }).to_string(), "must be a string"),
        ] {
            let why = crate::block_on(tool(name).judge(&args, &ground.place)).unwrap_err();
            assert!(why.starts_with(&format!("{name}: ")) && why.contains(part), "{name}: {why}");
        }
    }
    for (name, args, part) in [
        ("read", json!({ "path": "f", "offset": -1 }), "`offset`"),
        ("read", json!({ "path": "f", "limit": "x" }), "`limit`"),
        ("read", json!({}), "`path` is missing"),
        ("write_file", json!({ "path": "f" }), "`content` is missing"),
        ("edit", json!({ "path": "f", "oldString": "a" }), "`newString` is missing"),
        ("edit", json!({ "path": "f", "oldString": "a", "newString": "a" }), "the same"),
        (
            "edit",
            json!({ "path": "f", "oldString": "a", "newString": "b", "replaceAll": 1 }),
            "All",
        ),
        ("multiedit", json!({ "path": "f", "edits": [] }), "`edits`"),
        ("multiedit", json!({ "path": "f", "edits": [1] }), "edit 1"),
        (
            "multiedit",
            json!({ "path": "f", "edits": [{ "oldString": "a" }] }),
            "edit 1: `newString`",
        ),
        ("move_file", json!({ "source": "f" }), "`target` is missing"),
        ("delete_file", json!({ "path": "f", "recursive": "yes" }), "`recursive`"),
        ("glob", json!({ "pattern": "../*" }), "`pattern`"),
        ("glob", json!({ "pattern": "/etc/*" }), "`pattern`"),
        ("glob", json!({ "pattern": "{a" }), "`pattern`"),
        ("grep", json!({ "pattern": "(" }), "`pattern`"),
        ("grep", json!({ "pattern": "a\nb" }), "`pattern`"),
        ("grep", json!({ "pattern": "(((x{1000}){1000}){1000}){1000}" }), "`pattern`"),
        ("ls", json!({ "ignore": [1] }), "`ignore`"),
    ] {
        let why = ground.judge(tool(name), args.clone()).unwrap_err();
        assert!(why.contains(part), "{name} {args}: {why}");
        let ended = ground.finish(tool(name), args);
        assert_eq!((ended.end, ended.seen()), (End::Failed, why.as_str()));
    }
}

fn patch_instead() {
    let ground = Ground::new();
    let patch = "*** Begin Patch\n*** Add File: theirs\n+x\n*** End Patch\n";
    for name in EDITING {
        // Nobody but a person can: a model's call with a patch is none.
        assert!(ground.judge(tool(name), json!({ "patch": patch })).is_err(), "{name}");
        let ended = ground.finish(tool(name), json!({ "patch": patch }));
        assert_eq!(ended.end, End::Whole, "{name}: {}", ended.seen());
        assert_eq!(&*ended.result.files[0].path, "theirs");
        fs::remove_file(ground.cwd().join("theirs")).unwrap();
    }
}
