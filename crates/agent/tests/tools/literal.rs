//! Two readers of one script: what we read, bash must read the same way.

use std::path::Path;

use polyloop_agent::shell::{certain_argv, literal_argv, quote};
use polyloop_agent::tool::bash::Bash;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::{Ground, Test};

pub const ALL: &[Test] = &[
    ("literal_words_are_what_bash_makes_of_them", literal),
    ("expanded_words_are_what_bash_makes_of_them", expanded),
];

const SCRIPTS: usize = 3000;

/// Scripts in which quotes and special characters are frequent, and many are literal.
fn script() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[a-z]{1,3}",
        3 => " {1,2}",
        1 => "\t",
        2 => "'[^']{0,4}'",
        2 => "\"[^\"]{0,4}\"",
        2 => "[-_./:=@%+,^~#]",
        1 => "[\\\\$`*?{}!\\[\\]'\"]",
        1 => "[äß€ \u{a0}]",
    ];
    prop::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat())
}

/// What bash expands, and what only looks like it.
const EXPANSIONS: &[&str] = &[
    "$x",
    "\"$x\"",
    "${x}",
    "$y",
    "\"$y\"",
    "$z",
    "'$x'",
    "\\$x",
    "{a,b}",
    "{1..3}",
    "a{,b}c",
    "{}",
    "\\{a,b}",
    "{a}",
    "sub/*",
    "*.txt",
    "[a-b]*",
    "?.txt",
    "nosuch*",
    "'*'",
    "\\*",
    "$PWD",
    "$(pwd)",
    "\"$(pwd)\"",
    "$'a\\n\\x41'",
    "$",
    "\\",
    "\\\n",
    " # c\n",
    "\n",
    ";",
];

/// The same with what bash expands.
fn expansions() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => script(),
        2 => Just(" ".to_owned()),
        4 => prop::sample::select(EXPANSIONS).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat())
}

fn literal() {
    compare("", script(), |script, _| literal_argv(script));
}

fn expanded() {
    let before = "x='a.txt b'; y=; z='s* a'; ";
    compare(before, expansions(), |words, cwd| {
        let mut argv = certain_argv(&format!("{before}printf {words}"), cwd)?;
        argv.remove(0);
        Some(argv)
    });
}

/// Gives bash what `read` reads, and expects the same words.
fn compare(
    before: &str,
    scripts: impl Strategy<Value = String>,
    read: impl Fn(&str, &Path) -> Option<Vec<String>>,
) {
    let ground = Ground::new();
    for file in ["a.txt", "b.txt", "sub/c", "sub/d"] {
        ground.write(file, "");
    }
    let mut runner = TestRunner::deterministic();
    let mut taken = Vec::new();
    while taken.len() < SCRIPTS {
        let script = scripts.new_tree(&mut runner).unwrap().current();
        if let Some(argv) = read(&script, ground.cwd()) {
            taken.push((script, argv));
        }
    }
    // The words become arguments of `printf`, so that none of them runs. What only a first word
    // can be (an assignment, a word of the grammar) is refused in the tables of `shell`.
    let mut test = format!("HOME=/home-of-someone\n{before}\n");
    for (script, argv) in &taken {
        test.push_str(&format!("printf '%s\\0' {script}\nprintf '\\1'\n"));
        test.push_str(&format!("printf '%s\\0' {}\nprintf '\\1'\n", quote(argv)));
    }
    ground.write("test.sh", &test);
    let ended = ground.finish(&Bash, serde_json::json!({ "command": "bash test.sh" }));
    let lines: Vec<&str> = ended.output.split_terminator('\u{1}').collect();
    assert_eq!(lines.len(), 2 * taken.len(), "{}", ended.seen());
    for ((script, argv), got) in taken.iter().zip(lines.chunks(2)) {
        // Without words `printf` still prints its format once.
        let want = match argv.as_slice() {
            [] => "\0".to_owned(),
            words => words.iter().map(|word| format!("{word}\0")).collect(),
        };
        assert_eq!(got, [want.as_str(), want.as_str()], "{script:?}");
    }
}
