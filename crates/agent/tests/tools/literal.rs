//! Literal words against bash itself: what we read as literal, bash must read the same way.

use polyloop_agent::shell::{literal_argv, quote};
use polyloop_agent::tool::bash::Bash;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::{Ground, Test};

pub const ALL: &[Test] = &[("literal_words_are_what_bash_makes_of_them", differential)];

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

fn differential() {
    let mut runner = TestRunner::deterministic();
    let mut literal = Vec::new();
    while literal.len() < 3000 {
        let script = script().new_tree(&mut runner).unwrap().current();
        if let Some(argv) = literal_argv(&script) {
            literal.push((script, argv));
        }
    }
    // The words become arguments of `printf`, so that none of them runs. What only a first word
    // can be (an assignment, a word of the grammar) is refused in the tables of `shell`.
    let mut test = String::from("HOME=/home-of-someone\n");
    for (script, argv) in &literal {
        test.push_str(&format!("printf '%s\\0' {script}\nprintf '\\n'\n"));
        test.push_str(&format!("printf '%s\\0' {}\nprintf '\\n'\n", quote(argv)));
    }
    let ground = Ground::new();
    ground.write("test.sh", &test);
    let ended = ground.finish(&Bash, serde_json::json!({ "command": "bash test.sh" }));
    let lines: Vec<&str> = ended.output.split_terminator('\n').collect();
    assert_eq!(lines.len(), 2 * literal.len(), "{}", ended.seen());
    for ((script, argv), got) in literal.iter().zip(lines.chunks(2)) {
        let want: String = argv.iter().map(|word| format!("{word}\0")).collect();
        assert_eq!(got, [want.as_str(), want.as_str()], "{script:?}");
    }
}
