//! Whoever moves things between the judgement and the run, or during the run, gets nothing.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use polyloop_session::item::End;
use serde_json::{Value, json};

use super::paths::{EDITING, READING, call, snapshot, tool};
use crate::{Ground, Test};

pub const ALL: &[Test] = &[
    ("a_directory_swapped_for_a_link_after_the_judgement_stops_the_call", swapped_directory),
    ("a_file_swapped_for_a_link_after_the_judgement_stops_the_call", swapped_file),
    ("a_working_directory_that_was_replaced_is_not_written_to", replaced_root),
    ("a_swapping_link_never_lets_a_call_out", swapping),
    ("edits_of_one_file_at_the_same_time_never_tear_it", together),
    ("a_read_that_nobody_was_asked_about_does_not_go_outside", asked_inside),
];

fn set(ground: &Ground) {
    fs::create_dir_all(ground.cwd().join("d")).unwrap();
    ground.write("d/f", "old\n");
    ground.write("f", "old\n");
    fs::create_dir_all(ground.out().join("d")).unwrap();
    fs::write(ground.out().join("f"), "old secret\n").unwrap();
}

fn args(name: &str, file: &str) -> Value {
    match name {
        "create_dir" => call(name, &format!("{}/new", Path::new(file).parent().unwrap().display())),
        "ls" | "glob" => call(name, Path::new(file).parent().unwrap().to_str().unwrap()),
        _ => call(name, file),
    }
}

fn swapped_directory() {
    for name in READING.into_iter().chain(EDITING) {
        let ground = Ground::new();
        set(&ground);
        let args = args(name, "d/f");
        assert!(ground.judge(tool(name), args.clone()).unwrap().refusal.is_none(), "{name}");
        fs::rename(ground.cwd().join("d"), ground.cwd().join("was")).unwrap();
        symlink(ground.out(), ground.cwd().join("d")).unwrap();
        let before = (snapshot(ground.cwd()), snapshot(&ground.out()));
        let ended = ground.finish(tool(name), args);
        assert_eq!(ended.end, End::Failed, "{name}: {}", ended.seen());
        assert!(ended.result.files.is_empty() && !ended.seen().contains("secret"), "{name}");
        assert_eq!(before, (snapshot(ground.cwd()), snapshot(&ground.out())), "{name}");
    }
}

fn swapped_file() {
    let names = ["read", "grep", "write_file", "edit", "multiedit", "move_file", "delete_file"];
    for name in names {
        let ground = Ground::new();
        set(&ground);
        assert!(ground.judge(tool(name), call(name, "f")).unwrap().refusal.is_none(), "{name}");
        fs::remove_file(ground.cwd().join("f")).unwrap();
        symlink(ground.out().join("f"), ground.cwd().join("f")).unwrap();
        let before = (snapshot(ground.cwd()), snapshot(&ground.out()));
        let ended = ground.finish(tool(name), call(name, "f"));
        assert_eq!(ended.end, End::Failed, "{name}: {}", ended.seen());
        assert!(!ended.seen().contains("secret"), "{name}");
        assert_eq!(before, (snapshot(ground.cwd()), snapshot(&ground.out())), "{name}");
    }
}

/// The path of the working directory was canonical; a link in its place leads elsewhere.
fn replaced_root() {
    for name in EDITING {
        let ground = Ground::new();
        set(&ground);
        let args = args(name, "d/f");
        assert!(ground.judge(tool(name), args.clone()).unwrap().refusal.is_none());
        fs::write(ground.out().join("d/f"), "old\n").unwrap();
        fs::rename(ground.cwd(), ground.cwd().with_file_name("was")).unwrap();
        symlink(ground.out(), ground.cwd()).unwrap();
        let before = snapshot(&ground.out());
        let ended = ground.finish(tool(name), args);
        assert_eq!(ended.end, End::Failed, "{name}: {}", ended.seen());
        assert_eq!(before, snapshot(&ground.out()), "{name}");
    }
}

fn swapping() {
    let ground = Ground::new();
    set(&ground);
    let (cwd, out) = (ground.cwd().to_owned(), ground.out());
    fs::rename(cwd.join("d"), cwd.join("real")).unwrap();
    symlink(&out, cwd.join("link")).unwrap();
    fs::rename(cwd.join("real"), cwd.join("d")).unwrap();
    let before = snapshot(&out);
    let over = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let (over, cwd) = (over.clone(), cwd.clone());
        move || {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            let mut swaps = 0;
            while !over.load(Ordering::Relaxed) {
                let (one, other) = (cwd.join("d"), cwd.join("link"));
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        }
    });
    let (mut done, mut not) = (0, 0);
    for round in 0..150 {
        for (name, args) in [
            ("write_file", json!({ "path": "d/w", "content": format!("{round}\n") })),
            ("edit", json!({ "path": "d/w", "oldString": "\n", "newString": " x\n" })),
            ("create_dir", json!({ "path": format!("d/n{round}/m") })),
            ("move_file", json!({ "source": "d/w", "target": format!("d/m{round}") })),
            ("delete_file", json!({ "path": format!("d/n{round}"), "recursive": true })),
            ("read", json!({ "path": "d/f" })),
            ("grep", json!({ "pattern": "secret" })),
            ("grep", json!({ "pattern": "secret", "path": "d" })),
        ] {
            let ended = ground.finish(tool(name), args);
            let said = ended.seen();
            assert!(!said.contains("old secret"), "{name}: {said}");
            if ended.end == End::Whole { done += 1 } else { not += 1 }
        }
    }
    over.store(true, Ordering::Relaxed);
    let swaps: u64 = swapper.join().unwrap();
    assert_eq!(before, snapshot(&out));
    // Otherwise nothing was tried.
    assert!(swaps > 1_000 && done > 10 && not > 10, "{swaps} swaps, {done} done, {not} not");
}

fn together() {
    let ground = Ground::new();
    ground.write("f", "count: 0\n");
    let place = ground.place.clone();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let place = place.clone();
            std::thread::spawn(move || {
                let mut done = 0_u32;
                for _ in 0..40 {
                    let text = fs::read_to_string(place.cwd.join("f")).unwrap();
                    let count: u32 = text.trim_end()["count: ".len()..].parse().unwrap();
                    let args = json!({
                        "path": "f",
                        "oldString": format!("count: {count}\n"),
                        "newString": format!("count: {}\n", count + 1),
                    });
                    let run = polyloop_agent::tool::Run {
                        args: args.to_string().into(),
                        place: place.clone(),
                        sandboxed: false,
                        unasked: None,
                        stop: tokio_util::sync::CancellationToken::new(),
                    };
                    let progress = crate::block_on(futures_util::StreamExt::collect::<Vec<_>>(
                        tool("edit").run(run),
                    ));
                    let ended = progress.last().unwrap();
                    let whole = |end| matches!(end, End::Whole);
                    if let polyloop_agent::tool::Progress::Ended { end, .. } = ended {
                        done += u32::from(whole(*end));
                    }
                }
                done
            })
        })
        .collect();
    let done: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    // Each that was done counted one up, from the number it saw.
    assert_eq!(ground.read("f"), format!("count: {done}\n"));
    assert!(done > 0);
    assert_eq!(fs::read_dir(ground.cwd()).unwrap().count(), 3, "nothing is left lying about");
}

fn asked_inside() {
    let ground = Ground::new();
    fs::write(ground.out().join("f"), "secret\n").unwrap();
    for name in READING {
        let path = if matches!(name, "ls" | "glob") { "../out" } else { "../out/f" };
        let run = polyloop_agent::tool::Run {
            args: call(name, path).to_string().into(),
            place: ground.place.clone(),
            sandboxed: false,
            unasked: Some(crate::safe()),
            stop: tokio_util::sync::CancellationToken::new(),
        };
        let progress =
            crate::block_on(futures_util::StreamExt::collect::<Vec<_>>(tool(name).run(run)));
        let [polyloop_agent::tool::Progress::Ended { end: End::Failed, .. }] = progress.as_slice()
        else {
            panic!("{name}: {progress:?}");
        };
    }
}
