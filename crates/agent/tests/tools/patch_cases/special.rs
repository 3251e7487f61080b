//! Cases that lines cannot tell: many patches, many hands, little room.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use polyloop_agent::tool::Place;
use polyloop_agent::tool::apply_patch::ApplyPatch;
use polyloop_sandbox::{Confinement, Exit, Helper, Job};
use polyloop_session::item::End;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use super::Home;
use crate::PATIENCE;

/// The first argument that makes this program one that applies [`LARGE`] in a directory.
pub const ROLE: &str = "__patch";

/// Patches of B9 that must be written, and swaps meanwhile; the soak run asks for more.
const WRITTEN: usize = 50;
const SWAPS_MIN: usize = 1_000;
const ATTEMPTS_MAX: usize = 500_000;

pub fn run(name: &str) {
    match name {
        "swapped_directory" => swapped_directory(),
        "linked_root" => linked_root(),
        "spare_names" => spare_names(),
        "every_prefix" => every_prefix(),
        "nothing_else_changes" => nothing_else_changes(),
        "equal_lines" => equal_lines(),
        "very_much" => very_much(),
        "full_disk" => full_disk(),
        "closed_directory" => closed_directory(),
        "two_at_a_time" => two_at_a_time(),
        other => panic!("there is no {other:?}"),
    }
}

/// A figure that the soak run may raise.
fn number(name: &str, preset: usize) -> usize {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(preset)
}

fn swapped_directory() {
    let home = Home::new();
    home.write("d/f", "0\n");
    home.write("OUT/f", "0\n");
    symlink(home.outside(), home.at("l")).unwrap();
    let written_min = number("POLYLOOP_PATCHES", WRITTEN);
    let swaps_min = number("POLYLOOP_SWAPS", SWAPS_MIN);
    let (swaps, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (mut attempts, mut written, mut updates) = (0, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (one, other) = (home.at("d"), home.at("l"));
            while !is_over.load(Ordering::Relaxed) || swaps.load(Ordering::Relaxed) < swaps_min {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                // Pauses of many lengths, to hit every moment of a patch.
                for _ in 0..swaps.fetch_add(1, Ordering::Relaxed) % 200 * 50 {
                    std::hint::spin_loop();
                }
            }
        });
        while written < written_min && attempts < ATTEMPTS_MAX {
            let ended = match attempts % 2 {
                0 => home.patch(&format!("*** Add File: d/s{attempts}/x\n+x")),
                _ => home.patch(&format!("*** Update File: d/f\n@@\n-{updates}\n+{}", updates + 1)),
            };
            if ended.end == End::Whole {
                written += 1;
                updates += attempts % 2;
            }
            attempts += 1;
        }
        is_over.store(true, Ordering::Relaxed);
    });
    println!("       {written} of {attempts} patches written, {} swaps", swaps.into_inner());
    assert_eq!(written, written_min);
    let outside: Vec<_> = fs::read_dir(home.outside()).unwrap().collect();
    assert_eq!(outside.len(), 1, "{outside:?}");
    assert_eq!(fs::read(home.at("OUT/f")).unwrap(), b"0\n");
    let real = if home.at("d").is_symlink() { home.at("l") } else { home.at("d") };
    assert_eq!(fs::read_to_string(real.join("f")).unwrap(), format!("{updates}\n"));
    let is_left = |path: &Path| path.extension().is_some_and(|end| end == "tmp");
    assert!(!home.picture().keys().any(|path| is_left(path)), "a spare file is left");
}

/// The root is named without its links once, when the session's place is made.
fn linked_root() {
    let home = Home::new();
    home.write("a", "1\n");
    let link = home.path().join("link-to-w");
    symlink(home.inside(), &link).unwrap();
    let cwd = link.canonicalize().unwrap();
    let place = Place { cwd, ..(*home.place).clone() };
    let home = Home { place: Arc::new(place), ..home };
    let ended = home.patch("*** Update File: a\n@@\n-1\n+2");
    assert_eq!((ended.end, ended.seen()), (End::Whole, "Done!\nM a\n"));
    assert_eq!(fs::read(home.at("a")).unwrap(), b"2\n");
}

/// Whatever is there, a spare file is a new file: a watcher that answers each one it sees with a
/// link of the same name comes too late, and the names of the next ones do not follow from it.
fn spare_names() {
    let home = Home::new();
    home.write("OUT/victim", "old\n");
    for count in 0..2_000_u32 {
        let guess = format!(".polyloop-{count:032x}.tmp");
        symlink(home.at("OUT/victim"), home.at(&guess)).unwrap();
    }
    home.write("f", "old\n");
    let before = fs::read_dir(home.inside()).unwrap().count();
    let ended = home.patch("*** Update File: f\n@@\n-old\n+new");
    assert_eq!(ended.end, End::Whole, "{}", ended.seen());
    assert_eq!(fs::read(home.at("OUT/victim")).unwrap(), b"old\n");
    assert!(!home.at("f").is_symlink());
    assert_eq!(fs::read_dir(home.inside()).unwrap().count(), before);
}

fn every_prefix() {
    let home = Home::new();
    home.write("f", "1\n");
    let whole = "*** Begin Patch\n*** Update File: f\n@@\n-1\n+2\n*** Add File: g\n+1\n\
                 *** End Patch";
    let before = home.picture();
    for cut in 0..whole.len() {
        let ended = home.run(&ApplyPatch, &json!({ "patch": &whole[..cut] }), false);
        assert_eq!(ended.end, End::Failed, "{:?}", &whole[..cut]);
        assert_eq!(home.picture(), before, "{:?}", &whole[..cut]);
    }
    assert_eq!(home.run(&ApplyPatch, &json!({ "patch": whole }), false).end, End::Whole);
}

/// Lines of which many are alike; a hunk from somewhere in the file, perhaps with other blanks.
fn nothing_else_changes() {
    let home = Home::new();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut roll = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    const WORDS: [&str; 8] = ["a", "a ", " a", "b", "b\t", "“c”", "\"c\"", ""];
    let mut applied = 0;
    for _ in 0..number("POLYLOOP_FILES", 200) {
        let lines: Vec<&str> = (0..=roll(12)).map(|_| WORDS[roll(WORDS.len())]).collect();
        let (from, length) = (roll(lines.len()), 1 + roll(3));
        let block: Vec<&str> = lines.iter().skip(from).take(length).copied().collect();
        let content: String = lines.iter().map(|line| format!("{line}\n")).collect();
        home.write("f", &content);
        let context: String = block.iter().skip(1).map(|line| format!(" {line}\n")).collect();
        let body = format!("*** Update File: f\n@@\n-{}\n+NEW\n{context}", block[0]);
        let ended = home.patch(body.trim_end_matches('\n'));
        let now = fs::read_to_string(home.at("f")).unwrap();
        if ended.end == End::Failed {
            assert_eq!(now, content, "{body}");
            continue;
        }
        applied += 1;
        // One line is another, and it is one that the hunk means.
        let after: Vec<&str> = now.lines().collect();
        let differ: Vec<usize> = (0..lines.len()).filter(|&at| after[at] != lines[at]).collect();
        assert_eq!((after.len(), differ.len()), (lines.len(), 1), "{body}\n{now}");
        let exact = lines.windows(block.len()).filter(|window| *window == block).count();
        assert!(exact != 1 || differ == [from], "{body}\n{now}");
    }
    assert!(applied > 20, "{applied}");
}

fn equal_lines() {
    let home = Home::new();
    home.write("f", "same\n".repeat(5_000));
    let many = |header: &dyn Fn(usize) -> String| {
        let hunk = |n: usize| format!("{}\n same\n-same\n+other {n}\n", header(n));
        format!("*** Update File: f\n{}", (0..2_000).map(hunk).collect::<String>())
    };
    let started = Instant::now();
    let ended = home.patch(many(&|_| "@@".to_owned()).trim_end());
    assert!(ended.seen().contains("fits in several places"), "{}", ended.seen());
    let ended = home.patch(many(&|n| format!("@@ -{} +1 @@", n * 2 + 1)).trim_end());
    assert_eq!(ended.end, End::Whole, "{}", ended.seen());
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    let now = fs::read_to_string(home.at("f")).unwrap();
    assert_eq!(now.lines().nth(3_999), Some("other 1999"));
}

fn very_much() {
    let home = Home::new();
    let line = format!("+{}\n", "x".repeat(99));
    let ended = home.patch(format!("*** Add File: big\n{}", line.repeat(200_000)).trim_end());
    assert_eq!(ended.end, End::Whole, "{}", ended.seen());
    assert_eq!(fs::metadata(home.at("big")).unwrap().len(), 20_000_000);
    let before = fs::read_dir(home.inside()).unwrap().count();
    let ended = home.patch(format!("*** Add File: huge\n{}", line.repeat(1_000_000)).trim_end());
    assert_eq!(ended.end, End::Failed);
    assert!(ended.seen().contains("over the limit"), "{}", ended.seen());
    assert_eq!(fs::read_dir(home.inside()).unwrap().count(), before);
}

/// What a process does that may write 64 KiB to a file and no more.
pub fn apply_in(directory: &str) {
    let home = Home::new();
    let place = Place { cwd: directory.into(), ..(*home.place).clone() };
    let home = Home { place: Arc::new(place), ..home };
    let lines = format!("+{}\n", "x".repeat(1023)).repeat(100);
    let ended = home.patch(&format!(
        "*** Update File: a\n@@\n-1\n+2\n*** Update File: b\n@@\n-1\n{lines}*** Add File: c/d\n+1"
    ));
    println!("{:?} {}", ended.end, ended.seen());
}

fn full_disk() {
    let home = Home::new();
    home.write("a", "1\n");
    home.write("b", "1\n");
    let before = home.picture();
    let program = std::env::current_exe().unwrap();
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
    let args = ["-c".into(), script.into(), program.into_os_string(), ROLE.into()];
    let job = Job {
        program: "/bin/bash".into(),
        args: args.into_iter().chain([home.inside().into()]).collect(),
        cwd: "/".into(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        time_limit: PATIENCE,
        stop_grace: PATIENCE,
        confinement: Confinement::None,
    };
    let mut output = Vec::new();
    let outcome = polyloop_sandbox::run(&Helper::this_program(), &job, &mut output).unwrap();
    let said = String::from_utf8(output).unwrap();
    assert_eq!(outcome.exit, Exit::Code(0), "{said}");
    assert!(
        said.starts_with("Failed ") && said.contains("b: cannot write its new content"),
        "{said}"
    );
    assert_eq!(home.picture(), before);
}

fn closed_directory() {
    let home = Home::new();
    home.write("d/a", "1\n");
    let closed =
        |mode| fs::set_permissions(home.at("d"), fs::Permissions::from_mode(mode)).unwrap();
    closed(0o555);
    // The superuser is not bound by permissions; but there is a place that takes no file at all.
    let is_bound = fs::write(home.at("d/probe"), "").is_err();
    let _ = fs::remove_file(home.at("d/probe"));
    let before = home.picture();
    for body in [
        "*** Update File: d/a\n@@\n-1\n+2",
        "*** Add File: d/b\n+1",
        "*** Add File: d/e/f\n+1",
        "*** Delete File: d/a",
    ] {
        if is_bound {
            let ended = home.patch(body);
            assert_eq!(ended.end, End::Failed, "{body}");
            let why = ended.seen();
            assert!(why.contains("d/") && why.contains("ermission denied"), "{why}");
            assert_eq!(home.picture(), before);
        }
    }
    closed(0o755);
    let place = Place { cwd: "/sys".into(), ..(*home.place).clone() };
    let home = Home { place: Arc::new(place), ..home };
    let ended = home.patch("*** Add File: kernel/polyloop\n+x");
    assert_eq!(ended.end, End::Failed);
    assert!(ended.seen().contains("kernel/polyloop: cannot "), "{}", ended.seen());
}

fn two_at_a_time() {
    let home = Home::new();
    home.write("f", "0\nrest\n");
    for round in 0..200 {
        let start = Barrier::new(2);
        let patch = |who: &str| {
            start.wait();
            home.patch(&format!("*** Update File: f\n@@\n-{round}\n+{}\n+{who}", round + 1))
        };
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| patch("other"));
            (patch("one"), other.join().unwrap())
        });
        let (winner, loser) = match (one.end, other.end) {
            (End::Whole, End::Failed) => ("one", other),
            (End::Failed, End::Whole) => ("other", one),
            ends => panic!("round {round}: {ends:?}"),
        };
        let why = loser.seen();
        assert!(why.contains("not in the file") || why.contains("changed since"), "{why}");
        let now = fs::read_to_string(home.at("f")).unwrap();
        assert_eq!(now, format!("{}\n{winner}\nrest\n", round + 1));
        home.write("f", format!("{}\nrest\n", round + 1));
    }
    assert_eq!(fs::read_dir(home.inside()).unwrap().count(), 1);
}
