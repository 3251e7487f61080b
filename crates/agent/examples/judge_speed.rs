//! How long the judge takes for scripts that were made to make it slow.
//!
//! A part of `cargo xtask soak --only judge`. Prints the slowest ones, and the average of the
//! corpora; it fails if one takes longer than it may. The times are those on a processor.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a tool for developers")]

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use polyloop_agent::shell::{SCRIPT_BYTES_MAX, Scope, quote};

const TIME_MAX: Duration = Duration::from_millis(50);
const AVERAGE_MAX: Duration = Duration::from_millis(1);
const TIMES: usize = 3;

/// Files and links in the directory, so that looking through it takes long.
const DIRECTORIES: usize = 150;
const FILES: usize = 60;
const LINKS: usize = 2;

fn main() -> ExitCode {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let scope = Scope::new(dir.path(), &[]).with_path(&path);
    let corpus = corpus();
    let average = corpus.iter().map(|script| time(&scope, script)).sum::<Duration>()
        / u32::try_from(corpus.len()).unwrap();
    let mut times: Vec<(Duration, String)> = hostile()
        .into_iter()
        .map(|(name, script)| (time(&scope, &script), format!("{name}, {} bytes", script.len())))
        .collect();
    times.sort();
    times.reverse();
    for (time, name) in times.iter().take(10) {
        println!("{time:>12?}  {name}");
    }
    println!("{average:>12?}  on average, of {} ordinary ones", corpus.len());
    let slow = average > AVERAGE_MAX || times.iter().any(|(time, _)| *time > TIME_MAX);
    if slow { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The shortest of some times, when the files are in memory.
fn time(scope: &Scope, script: &str) -> Duration {
    let times = (0..TIMES).map(|_| {
        let (start, worked) = (Instant::now(), worked());
        scope.judge(script);
        // Where others work too, only the time on a processor is ours.
        match (worked, self::worked()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => start.elapsed(),
        }
    });
    times.min().unwrap_or_default()
}

/// How long this thread was on a processor, where the system says so.
fn worked() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

fn fill(dir: &Path) {
    fs::create_dir(dir.join("src")).unwrap();
    fs::write(dir.join("src/main.rs"), "").unwrap();
    fs::write(dir.join("a.txt"), "").unwrap();
    for number in 0..DIRECTORIES {
        let below = dir.join(format!("d{number}"));
        fs::create_dir(&below).unwrap();
        for file in 0..FILES {
            fs::write(below.join(format!("f{file}")), "").unwrap();
        }
        for link in 0..LINKS {
            std::os::unix::fs::symlink("f0", below.join(format!("l{link}"))).unwrap();
        }
    }
}

fn corpus() -> Vec<String> {
    let script = |line: &str| {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        match &case["cmd"] {
            serde_json::Value::String(script) => script.clone(),
            words => quote(&serde_json::from_value::<Vec<String>>(words.clone()).unwrap()),
        }
    };
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let lines = |file| fs::read_to_string(dir.join(file)).unwrap();
    let texts = ["commands_public.jsonl", "own.jsonl"].map(lines);
    texts.iter().flat_map(|text| text.lines()).map(script).collect()
}

const PARTS: &[(&str, &str)] = &[
    ("true", " && "),
    ("ls", "; "),
    ("cat a.txt", "\n"),
    ("cat", " | "),
    ("cat src/*.rs", ";"),
    ("touch x", ";"),
    ("grep -R x .", ";"),
    ("find . -name x -exec cat {} +", ";"),
    ("git status", ";"),
    ("cd src", ";"),
    ("if ls; then cd src; fi", ";"),
    ("find . \\( -name '*.rs' -o -type f \\) ! -name x | xargs cat", ";"),
    ("cat */f1", ";"),
    ("ls */* | xargs head", ";"),
];

const NESTED: &[(&str, &str)] = &[
    ("(", ")"),
    ("$(", ")"),
    ("\"$(", ")\""),
    ("{ ", "; }"),
    ("if ", "; then ls; fi"),
    ("`", "`"),
    ("<(", ")"),
    ("${", "}"),
    ("for x in a b c d; do ", "\ndone"),
    ("bash -c '", "'"),
];

const REPEATED: &[&str] = &[
    "env ",
    "rm a ",
    "rm a;",
    "xargs rm a ",
    "bash -c '",
    "env git ",
    "\"$(",
    "\"`",
    "ls a ",
    "$(",
    "cat ../",
    "'\"",
    "a/",
    "../",
    "cat */*/*/* ",
    "cat d*/f1;",
    "{a,b}",
    "{a,b}{a,b}{a,b} ",
    "*",
    "[",
    "cat <<E\n",
    "cat [a]* ",
    "sed -n '",
    "awk '",
    "x=1;",
    "if a;then x=1;fi;",
    "rm /a/b/c ;",
    "for x in {1..200}; do for y in {1..200}; do ls $x; done; done;",
    "curl $(",
    "sh -c 'rm /x' ;",
];

fn hostile() -> Vec<(String, String)> {
    let mut scripts = Vec::new();
    for parts in [1, 50, 51, 500, 5000] {
        for (part, joint) in PARTS {
            scripts.push((format!("{parts} × {part:?}"), vec![*part; parts].join(joint)));
        }
    }
    for depth in [16, 17, 100, 1000, 20_000] {
        for (open, close) in NESTED {
            let script = format!("{}ls{}", open.repeat(depth), close.repeat(depth));
            scripts.push((format!("{depth} deep in {open:?}"), script));
        }
    }
    for piece in REPEATED {
        let script = piece.repeat(SCRIPT_BYTES_MAX / piece.len());
        scripts.push((format!("full of {piece:?}"), script));
    }
    let names = (0..1000).map(|number| format!("cat {}x{number};", "a/".repeat(28)));
    scripts.push(("a thousand deep paths".to_owned(), names.collect()));
    let loops = format!("for x in {{1..200}}; do cat {}; done;", "a ".repeat(250)).repeat(100);
    scripts.push(("many words many times".to_owned(), loops));
    let text = format!("for x in {{1..200}}; do sed -n '{}' a; done", "p;".repeat(30_000));
    scripts.push(("a long text many times".to_owned(), text));
    scripts.push(("doubled".to_owned(), format!("x=ab; {}", "x=$x$x; ".repeat(8000))));
    scripts.push(("long paths".to_owned(), format!("rm {}x;", "a/".repeat(2000)).repeat(16)));
    scripts
}
