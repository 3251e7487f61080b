//! What the listing and searching tools find, and what they leave out.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use futures_util::StreamExt as _;
use polyloop_agent::tool::{Progress, TEXT_BYTES_MAX};
use polyloop_session::item::End;
use serde_json::{Value, json};

use super::paths::tool;
use crate::{Ground, Test, block_on};

pub const ALL: &[Test] = &[
    ("a_listing_is_a_tree_of_levels_that_fit", listed),
    ("files_are_found_by_name_in_order", found),
    ("lines_are_found_with_their_files", grepped),
    ("ignore_files_are_honoured_also_from_above", ignored),
    ("long_answers_can_be_paged_through", paged),
    ("long_lines_and_contexts_are_shown_in_part", contexts),
    ("names_that_are_no_text_are_shown_and_searched", odd_names),
    ("pipes_and_links_and_binaries_are_passed_by", hostile),
    ("a_search_that_is_stopped_ends_as_interrupted", stopped),
];

fn whole(ground: &Ground, name: &str, args: Value) -> String {
    let ended = ground.finish(tool(name), args.clone());
    assert_eq!(ended.end, End::Whole, "{name} {args}: {}", ended.seen());
    assert!(ended.output.len() <= TEXT_BYTES_MAX, "{}", ended.output.len());
    ended.output
}

fn tree(ground: &Ground, files: &[&str]) {
    for file in files {
        fs::create_dir_all(ground.cwd().join(file).parent().unwrap()).unwrap();
        ground.write(file, &format!("in {file}\n"));
    }
}

fn listed() {
    let ground = Ground::new();
    tree(&ground, &["b.txt", "a/x", "a/deep/er/y", ".hidden", "node_modules/m/index.js"]);
    ground.write(".gitignore", "node_modules\n");
    symlink("a/x", ground.cwd().join("link")).unwrap();
    let want = "./\n  .gitignore\n  .hidden\n  a/\n    deep/\n      er/\n    x\n  b.txt\n  \
                link -> a/x\n  node_modules/\n  sub/\n";
    assert_eq!(whole(&ground, "ls", json!({})), want);
    let one = whole(&ground, "ls", json!({ "path": "a/", "depth": 1 }));
    assert_eq!(one, "a/\n  deep/\n  x\n");
    // A level is shown whole or not at all.
    let few = whole(&ground, "ls", json!({ "limit": 8 }));
    assert!(few.contains("  a/\n  b.txt\n") && !few.contains("deep"), "{few}");
    let less = whole(&ground, "ls", json!({ "ignore": [".*", "a"] }));
    assert_eq!(less, "./\n  b.txt\n  link -> a/x\n  node_modules/\n  sub/\n");
    assert_eq!(whole(&ground, "ls", json!({ "path": "sub" })), "sub/\n(the directory is empty)\n");
    for (path, part) in [("nosuch", "no such directory"), ("b.txt", "not a directory")] {
        let ended = ground.finish(tool("ls"), json!({ "path": path }));
        assert!(ended.end == End::Failed && ended.seen().contains(part), "{}", ended.seen());
    }
}

fn found() {
    let ground = Ground::new();
    tree(&ground, &["z.rs", "src/b.rs", "src/a.rs", "src/deep/c.rs", "src/d.txt", "src/e.tsx"]);
    for (args, want) in [
        (json!({ "pattern": "*.rs" }), "z.rs\n"),
        (json!({ "pattern": "**/*.rs" }), "src/a.rs\nsrc/b.rs\nsrc/deep/c.rs\nz.rs\n"),
        (json!({ "pattern": "./src/*.{txt,tsx}" }), "src/d.txt\nsrc/e.tsx\n"),
        (json!({ "pattern": "*.rs", "path": "src" }), "src/a.rs\nsrc/b.rs\n"),
        (json!({ "pattern": "**", "include": ["*.txt", "c.*"] }), "src/d.txt\nsrc/deep/c.rs\n"),
        (json!({ "pattern": "*.nosuch" }), "No files found.\n"),
    ] {
        let got = whole(&ground, "glob", args.clone());
        let mut want: Vec<&str> = want.lines().collect();
        want.sort_unstable();
        let mut lines: Vec<&str> = got.lines().collect();
        let in_order = lines.clone();
        lines.sort_unstable();
        assert_eq!(lines, want, "{args}");
        if want.len() < 3 || !args.to_string().contains("include") {
            assert_eq!(in_order, lines, "{args}");
        }
    }
}

fn grepped() {
    let ground = Ground::new();
    ground.write("a.rs", "fn one() {}\nfn two() {}\r\n");
    ground.write("sub/b.txt", "no\nFN one\n");
    let all = whole(&ground, "grep", json!({ "pattern": r"fn \w+" }));
    assert_eq!(all, "Found 2 matches.\na.rs:\n  Line 1: fn one() {}\n  Line 2: fn two() {}\n");
    let any = whole(&ground, "grep", json!({ "pattern": "fn one", "ignore_case": true }));
    assert_eq!(
        any,
        "Found 2 matches.\na.rs:\n  Line 1: fn one() {}\nsub/b.txt:\n  Line 2: FN one\n"
    );
    let some = json!({ "pattern": "one", "include": "*.{txt,md}" });
    assert_eq!(whole(&ground, "grep", some), "Found 1 match.\nsub/b.txt:\n  Line 2: FN one\n");
    let one = json!({ "pattern": r"\}$", "path": "a.rs" });
    assert!(whole(&ground, "grep", one).starts_with("Found 2 matches."));
    let none = whole(&ground, "grep", json!({ "pattern": "nosuch" }));
    assert_eq!(none, "No matches found.\n");
    let ended = ground.finish(tool("grep"), json!({ "pattern": "x", "path": "nosuch" }));
    assert_eq!(ended.end, End::Failed);
}

fn ignored() {
    let ground = Ground::new();
    // The working directory is inside a work tree whose rules count too.
    let above = ground.cwd().parent().unwrap();
    fs::create_dir_all(above.join(".git/info")).unwrap();
    fs::write(above.join(".git/info/exclude"), "*.excluded\n").unwrap();
    fs::write(above.join(".gitignore"), "*.log\n/work/only-here\n").unwrap();
    tree(
        &ground,
        &[
            "a.txt",
            "a.log",
            "a.excluded",
            "only-here",
            "sub/only-here",
            "sub/b.txt",
            "sub/keep.log",
            "sub/c.tmp",
            "build/x.txt",
            "deep/.git/config",
            "deep/build/y.txt",
        ],
    );
    ground.write(".gitignore", "/build/\n");
    ground.write("sub/.gitignore", "!keep.log\n*.tmp\n");
    ground.write("sub/.ignore", "b.txt\n");
    let want = [
        ".gitignore",
        "a.txt",
        "deep/build/y.txt",
        "sub/.gitignore",
        "sub/.ignore",
        "sub/keep.log",
        "sub/only-here",
    ];
    let got = whole(&ground, "glob", json!({ "pattern": "**" }));
    assert_eq!(got.lines().collect::<Vec<_>>(), want);
    let got = whole(&ground, "grep", json!({ "pattern": "^in " }));
    let files: Vec<&str> = got.lines().filter_map(|line| line.strip_suffix(':')).collect();
    assert_eq!(files, ["a.txt", "deep/build/y.txt", "sub/keep.log", "sub/only-here"]);
    // Who names a directory that is ignored means it.
    let inside = whole(&ground, "glob", json!({ "pattern": "*", "path": "build" }));
    assert_eq!(inside, "build/x.txt\n");
    let below = whole(&ground, "glob", json!({ "pattern": "**", "path": "sub" }));
    assert!(!below.contains("c.tmp") && !below.contains("b.txt"), "{below}");
}

/// Reads on as each answer says, until one says nothing more.
fn all_pages(ground: &Ground, name: &str, mut args: Value) -> (Vec<String>, usize) {
    let (mut lines, mut pages) = (Vec::new(), 0);
    loop {
        let text = whole(ground, name, args.clone());
        pages += 1;
        let next = text.lines().find_map(|line| {
            let (_, next) = line.strip_suffix(')')?.rsplit_once("offset ")?;
            next.parse::<u64>().ok()
        });
        lines.extend(text.lines().filter(|line| !line.starts_with('(')).map(str::to_owned));
        match next {
            Some(next) => args["offset"] = next.into(),
            None => return (lines, pages),
        }
    }
}

fn paged() {
    let ground = Ground::new();
    let names: Vec<String> = (0..450).map(|n| format!("many/{n:04}-{}", "n".repeat(150))).collect();
    tree(&ground, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let (found, pages) = all_pages(&ground, "glob", json!({ "pattern": "**", "limit": 1000 }));
    assert!(pages > 1 && found == names, "{pages} {}", found.len());
    let (found, pages) = all_pages(&ground, "glob", json!({ "pattern": "**" }));
    assert!(pages == 5 && found == names, "{pages} {}", found.len());
    let (found, pages) = all_pages(&ground, "ls", json!({ "path": "many", "limit": 200 }));
    let found: Vec<String> = found
        .iter()
        .filter_map(|line| line.strip_prefix("  "))
        .map(|name| format!("many/{name}"))
        .collect();
    assert!(pages >= 3 && found == names, "{pages} {}", found.len());
    let (found, pages) = all_pages(&ground, "grep", json!({ "pattern": "^in " }));
    let files: Vec<&str> = found.iter().filter_map(|line| line.strip_suffix(':')).collect();
    let files: Vec<&str> = files.into_iter().filter(|line| line.starts_with("many/")).collect();
    assert!(pages >= 5 && files == names, "{pages} {}", files.len());
}

fn contexts() {
    let ground = Ground::new();
    let text: String = (1..=30).map(|n| format!("line {n}\n")).collect();
    ground.write("f", &text);
    let got = whole(&ground, "grep", json!({ "pattern": "line (5|20)$", "context": 1 }));
    assert_eq!(
        got,
        "Found 2 matches.\nf:\n  Line 4- line 4\n  Line 5: line 5\n  Line 6- line 6\n  --\n  \
         Line 19- line 19\n  Line 20: line 20\n  Line 21- line 21\n"
    );
    ground.write("f", &format!("{}needle{}\n", "é".repeat(5_000), "ü".repeat(5_000)));
    let got = whole(&ground, "grep", json!({ "pattern": "needle" }));
    let line = got.lines().last().unwrap();
    assert!(line.contains("éneedleü") && line.len() < 500, "{line}");
    assert!(line.contains(": …é") && line.ends_with("ü…") && !line.contains('\u{fffd}'), "{line}");
}

fn odd_names() {
    let ground = Ground::new();
    let odd = OsStr::from_bytes(b"odd\xff\n.txt");
    fs::write(ground.cwd().join(odd), "needle\n").unwrap();
    for (name, args) in [
        ("ls", json!({})),
        ("glob", json!({ "pattern": "*.txt" })),
        ("grep", json!({ "pattern": "needle" })),
    ] {
        let got = whole(&ground, name, args);
        assert!(got.contains(r"odd\xff\n.txt"), "{name}: {got:?}");
    }
}

fn hostile() {
    let ground = Ground::new();
    let mode = rustix::fs::Mode::RWXU;
    for fifo in [".gitignore", "sub/.ignore", "fifo", "sub/fifo"] {
        rustix::fs::mkfifoat(rustix::fs::CWD, ground.cwd().join(fifo), mode).unwrap();
    }
    fs::write(ground.out().join("secret"), "needle\n").unwrap();
    symlink(ground.out(), ground.cwd().join("link")).unwrap();
    symlink("/", ground.cwd().join("sub/all")).unwrap();
    symlink(".", ground.cwd().join("circle")).unwrap();
    symlink(ground.out().join("secret"), ground.cwd().join("leaf")).unwrap();
    fs::write(ground.cwd().join("binary"), b"\0needle\n").unwrap();
    ground.write("f", "needle\n");
    fs::create_dir(ground.cwd().join("rules")).unwrap();
    // No rule, and one that is a link to what nobody may read.
    ground.write("rules/.gitignore", "[\n**\u{0}\n{\n");
    symlink(ground.out().join("secret"), ground.cwd().join("rules/.ignore")).unwrap();
    let got = whole(&ground, "grep", json!({ "pattern": "needle" }));
    assert_eq!(got, "Found 1 match.\nf:\n  Line 1: needle\n");
    let got = whole(&ground, "glob", json!({ "pattern": "**" }));
    let want = ["binary", "circle", "f", "leaf", "link", "rules/.gitignore", "rules/.ignore"];
    assert_eq!(got.lines().collect::<Vec<_>>(), [&want[..], &["sub/all"]].concat());
    let got = whole(&ground, "ls", json!({}));
    assert!(got.contains("  fifo (not a file)\n") && got.contains("    all -> /\n"), "{got}");
    assert!(!got.contains("secret\n    "), "{got}");
}

fn stopped() {
    let ground = Ground::new();
    ground.write("f", &"no match here\n".repeat(200_000));
    // Its second line has 40 GiB of nothing: nobody is through with it before the stop.
    let mut endless = fs::File::create(ground.cwd().join("endless")).unwrap();
    endless.write_all("first line\n".repeat(10_000).as_bytes()).unwrap();
    endless.set_len(40 * 1024 * 1024 * 1024).unwrap();
    for (name, args, can_be_quicker) in [
        ("read", json!({ "path": "endless", "offset": 50_000 }), false),
        ("grep", json!({ "pattern": "needle", "path": "f" }), true),
        ("glob", json!({ "pattern": "**" }), true),
        ("ls", json!({}), true),
    ] {
        let (was_quicker, progress) = block_on(async {
            let mut call = ground.start(tool(name), args);
            let mut next = call.stream.next();
            // It has begun when it was asked once.
            let first = tokio::select! {
                biased;
                first = &mut next => Some(first),
                () = std::future::ready(()) => None,
            };
            call.stop.cancel();
            let was_quicker = first.is_some();
            let first = match first {
                Some(first) => first,
                None => next.await,
            };
            let mut all: Vec<Progress> = first.into_iter().collect();
            all.extend(call.stream.collect::<Vec<_>>().await);
            (was_quicker, all)
        });
        let Some(Progress::Ended { end, result }) = progress.last() else { panic!("{name}") };
        if was_quicker {
            assert!(can_be_quicker && *end == End::Whole, "{name}: {progress:?}");
            continue;
        }
        assert_eq!(*end, End::Interrupted, "{name}");
        assert!(result.seen.as_deref().unwrap().trim_end().ends_with("Interrupted."), "{name}");
    }
}
