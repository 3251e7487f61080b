//! What holds for all files and all arguments.

use std::fs;
use std::path::Path;

use polyloop_agent::tool::TEXT_BYTES_MAX;
use polyloop_session::item::End;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::paths::tool;
use crate::{Ground, Test};

pub const ALL: &[Test] = &[
    ("an_edit_and_its_reverse_leave_the_same_bytes", reversed),
    ("an_edit_changes_the_one_piece_and_nothing_else", exact),
    ("a_search_finds_what_a_naive_search_finds", grepped),
    ("the_pages_of_a_file_are_the_file", pages),
    ("no_answer_is_over_its_limit", bounded),
];

fn random<S: Strategy>(runner: &mut TestRunner, strategy: &S) -> S::Value {
    strategy.new_tree(runner).unwrap().current()
}

/// Lines of few different words, so that pieces often occur more than once.
fn text(ending: &'static str) -> impl Strategy<Value = String> {
    let word = prop_oneof!["[ab]{1,2}", "x = 1", "é", " ", "\t", ""];
    let line = prop::collection::vec(word, 0..4).prop_map(|words| words.concat());
    (prop::collection::vec(line, 0..12), any::<bool>()).prop_map(move |(lines, is_ended)| {
        let end = if is_ended { ending } else { "" };
        lines.join(ending) + end
    })
}

fn edit(old: &str, new: &str) -> Value {
    json!({ "path": "f", "oldString": old, "newString": new })
}

fn reversed() {
    let ground = Ground::new();
    let mut runner = TestRunner::deterministic();
    let mut tried = 0;
    for round in 0..400 {
        let ending = if round % 2 == 0 { "\n" } else { "\r\n" };
        // A line that no edit touches says which line ending the file has.
        let before = format!("first{ending}{}", random(&mut runner, &text(ending)));
        let new = format!("<{}>", random(&mut runner, &text("\n")));
        let normal = before.replace("\r\n", "\n");
        let places: Vec<usize> =
            normal.char_indices().map(|(at, _)| at).filter(|at| *at > 5).collect();
        let (Some(from), Some(to)) = (
            places.get(random(&mut runner, &(0..places.len().max(1)))),
            places.get(random(&mut runner, &(0..places.len().max(1)))),
        ) else {
            continue;
        };
        let old = &normal[*from.min(to)..*from.max(to)];
        ground.write("f", &before);
        if old.is_empty() || ground.finish(tool("edit"), edit(old, &new)).end != End::Whole {
            assert_eq!(ground.read("f"), before);
            continue;
        }
        assert_ne!(ground.read("f"), before);
        let back = ground.finish(tool("edit"), edit(&new, old));
        assert_eq!(back.end, End::Whole, "{}", back.seen());
        assert_eq!(ground.read("f"), before, "{old:?} {new:?}");
        tried += 1;
    }
    assert!(tried > 50, "{tried}");
}

fn exact() {
    let ground = Ground::new();
    let mut runner = TestRunner::deterministic();
    let (mut done, mut refused) = (0, 0);
    for _ in 0..400 {
        let before = random(&mut runner, &text("\n"));
        let (old, new) = (random(&mut runner, &"[ab =1\n]{1,3}"), random(&mut runner, &text("\n")));
        if old == new {
            continue;
        }
        ground.write("f", &before);
        let ended = ground.finish(tool("edit"), edit(&old, &new));
        let count = (0..before.len())
            .filter(|at| before.as_bytes()[*at..].starts_with(old.as_bytes()))
            .count();
        match count {
            1 => {
                assert_eq!(ended.end, End::Whole, "{}", ended.seen());
                assert_eq!(ground.read("f"), before.replacen(&old, &new, 1));
                done += 1;
            }
            _ => {
                assert_eq!(ended.end, End::Failed, "{old:?} in {before:?}");
                assert_eq!(ground.read("f"), before);
                refused += 1;
                let mut all = edit(&old, &new);
                all["replaceAll"] = true.into();
                let ended = ground.finish(tool("edit"), all);
                assert_eq!(ended.end == End::Whole, count > 0, "{}", ended.seen());
                assert_eq!(ground.read("f"), before.replace(&old, &new));
            }
        }
    }
    assert!(done > 20 && refused > 20, "{done} {refused}");
}

/// Path and line number of every line that holds a text, in order.
fn naive(root: &Path, needle: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut paths = Vec::new();
    let mut todo = vec![root.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { todo.push(path) } else { paths.push(path) }
        }
    }
    for path in paths {
        let relative = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let content = fs::read_to_string(&path).unwrap();
        let lines = content.split_inclusive('\n').enumerate();
        found.extend(
            lines.filter(|(_, line)| line.contains(needle)).map(|(n, _)| (relative.clone(), n + 1)),
        );
    }
    found.sort();
    found
}

fn grepped() {
    let mut runner = TestRunner::deterministic();
    let mut all = 0;
    for _ in 0..25 {
        let ground = Ground::new();
        for _ in 0..12 {
            let name = random(&mut runner, &"[a-c]{1,2}(/[a-c]{1,2}){0,2}\\.txt");
            let path = ground.cwd().join(&name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            ground.write(&name, &random(&mut runner, &text("\n")));
        }
        for needle in ["a", "x = 1", "é", "ab", "b a"] {
            let ended = ground.finish(tool("grep"), json!({ "pattern": needle, "limit": 1000 }));
            let (mut found, mut file) = (Vec::new(), String::new());
            for line in ended.output.lines().skip(1) {
                match line.strip_prefix("  Line ") {
                    Some(rest) => {
                        let number = rest.split(':').next().unwrap().parse().unwrap();
                        found.push((file.clone(), number));
                    }
                    None => file = line.strip_suffix(':').unwrap().to_owned(),
                }
            }
            found.sort();
            assert_eq!(found, naive(ground.cwd(), needle), "{needle}");
            all += found.len();
        }
    }
    assert!(all > 100, "{all}");
}

fn pages() {
    let ground = Ground::new();
    let mut runner = TestRunner::deterministic();
    let line = "[a-zé ]{0,40}";
    for _ in 0..20 {
        let lines = random(&mut runner, &prop::collection::vec(line, 1..3_000));
        ground.write("f", &(lines.join("\n") + "\n"));
        let limit = random(&mut runner, &(200_usize..5_000));
        let (mut read, mut offset) = (Vec::new(), 0);
        loop {
            let args = json!({ "path": "f", "offset": offset, "limit": limit });
            let ended = ground.finish(tool("read"), args);
            assert!(ended.end == End::Whole && ended.output.len() <= TEXT_BYTES_MAX);
            let mut next = None;
            for row in ended.output.lines() {
                match row.split_once('\t') {
                    Some((number, text)) => {
                        read.push(text.to_owned());
                        assert_eq!(number.trim().parse(), Ok(read.len()));
                    }
                    None => {
                        let number = row.trim_end_matches(')').rsplit(' ').next().unwrap();
                        next = Some(number.parse::<usize>().unwrap());
                    }
                }
            }
            match next {
                Some(next) => offset = next,
                None => break,
            }
        }
        assert_eq!(read, lines);
    }
}

fn bounded() {
    let ground = Ground::new();
    let mut runner = TestRunner::deterministic();
    for number in 0..40 {
        let dir = ground.cwd().join(format!("d{number}/{}", "n".repeat(200)));
        fs::create_dir_all(&dir).unwrap();
        for file in 0..30 {
            let name = format!("{file}{}", "\u{202e}".repeat(60));
            fs::write(dir.join(name), "needle \u{0} x\n".repeat(2).replace('\0', "é")).unwrap();
        }
    }
    ground.write("long", &"needle ".repeat(300_000));
    ground.write("lines", &"needle\n".repeat(50_000));
    for _ in 0..60 {
        let (limit, offset, context) =
            random(&mut runner, &(1_usize..2_000, 0_usize..900, 0_usize..30));
        for (name, args) in [
            (
                "grep",
                json!({ "pattern": "needle", "limit": limit, "offset": offset, "context": context }),
            ),
            ("glob", json!({ "pattern": "**", "limit": limit, "offset": offset })),
            ("ls", json!({ "limit": limit, "depth": context, "offset": offset % 50 })),
            ("read", json!({ "path": "lines", "limit": limit * 40, "offset": offset })),
            ("read", json!({ "path": "long", "limit": limit })),
        ] {
            let ended = ground.finish(tool(name), args.clone());
            assert_eq!(ended.end, End::Whole, "{name} {args}: {}", ended.seen());
            assert!(ended.seen().len() <= TEXT_BYTES_MAX, "{name} {args}: {}", ended.seen().len());
        }
    }
}
