//! The labelled corpus, and what must hold for every script.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::super::*;
use super::{Ground, ground};

pub(super) struct Case {
    pub(super) line: String,
    command: Command,
    pub(super) dangerous: bool,
    core: bool,
}

#[derive(Clone)]
enum Command {
    Script(String),
    Words(Vec<String>),
}

impl Case {
    fn judge(&self, ground: &Ground) -> Judged {
        match &self.command {
            Command::Script(script) => ground.judge(script),
            Command::Words(words) => ground.scope().judge_argv(words),
        }
    }

    /// As bash would be given it.
    pub(super) fn script(&self) -> String {
        match &self.command {
            Command::Script(script) => script.clone(),
            Command::Words(words) => quote(words),
        }
    }
}

pub(super) fn corpus() -> Vec<Case> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/commands_public.jsonl");
    let case = |line: &str| {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let command = match &case["cmd"] {
            serde_json::Value::String(script) => Command::Script(script.clone()),
            words => Command::Words(serde_json::from_value(words.clone()).unwrap()),
        };
        let dangerous = case["safe"] == false;
        let core = !dangerous && case.get("debatable").is_none() && case.get("tier").is_none();
        Case { line: line.to_owned(), command, dangerous, core }
    };
    fs::read_to_string(file).unwrap().lines().map(case).collect()
}

#[test]
fn no_dangerous_line_is_safe_and_nearly_all_harmless_ones_are() {
    let ground = ground();
    let (mut dangerous, mut core, mut asked) = (0, 0, Vec::new());
    for case in corpus() {
        let judged = case.judge(&ground);
        if case.dangerous {
            dangerous += 1;
            assert!(!judged.safe, "{}: {}", case.line, judged.reason);
        } else if case.core {
            core += 1;
            if !judged.safe {
                asked.push((case.line, judged.reason));
            }
        }
    }
    assert!(dangerous > 100 && core > 100, "the corpus is not whole");
    assert!(asked.len() * 20 <= core, "{} of {core} are asked about: {asked:#?}", asked.len());
}

#[test]
fn words_and_the_script_of_these_words_are_judged_alike() {
    let ground = ground();
    for case in corpus() {
        let by_words = case.judge(&ground).safe;
        assert_eq!(by_words, ground.judge(&case.script()).safe, "{}", case.line);
    }
}

/// Whatever stands before or behind it, or around it.
#[test]
fn nothing_makes_a_dangerous_line_safe() {
    let ground = ground();
    let around = [
        ("", "; ls"),
        ("", " | cat"),
        ("", " && ls"),
        ("", "\nls"),
        ("", " # ls"),
        ("", " >/dev/null"),
        ("ls; ", ""),
        ("ls && ", ""),
        ("true || ", ""),
        ("# x\n", ""),
        ("( ", " )"),
        ("( ", "\n)"),
        ("{ ", "\n}"),
        ("! ", ""),
        ("time ", ""),
        ("if true; then ", "\nfi"),
        ("for x in a; do ", "\ndone"),
        ("echo \"$(", "\n)\""),
        ("cat <(", "\n)"),
    ];
    for case in corpus().iter().filter(|case| case.dangerous) {
        for (before, after) in around {
            let script = format!("{before}{}{after}", case.script());
            assert!(!ground.judge(&script).safe, "{script:?}");
        }
        let inner = quote(&["bash".to_owned(), "-c".to_owned(), case.script()]);
        for outer in ["", "timeout 5 ", "env ", "command ", "nice "] {
            assert!(!ground.judge(&format!("{outer}{inner}")).safe, "{outer}{inner}");
        }
    }
}

#[test]
fn harmless_lines_stay_so_together() {
    let ground = ground();
    let safe: Vec<String> =
        corpus().iter().filter(|case| case.judge(&ground).safe).map(Case::script).collect();
    for pair in safe.windows(2) {
        for joint in ["; ", " && ", " || ", "\n"] {
            let script = pair.join(joint);
            // What is judged after a `cd` is judged from there.
            let moves = pair[0].starts_with("cd ");
            let judged = ground.judge(&script);
            assert!(judged.safe || moves, "{script:?}: {}", judged.reason);
        }
    }
    for script in &safe {
        for wrapped in [format!("( {script}\n)"), format!("{{ {script}\n}}")] {
            let judged = ground.judge(&wrapped);
            assert!(judged.safe, "{wrapped:?}: {}", judged.reason);
        }
    }
}

/// Ways to write the same word.
fn quotings(word: &str) -> Vec<String> {
    let split = word.chars().next().map_or(0, char::len_utf8);
    let (first, rest) = word.split_at(split);
    let escaped: String = word.chars().map(|c| format!("\\{c}")).collect();
    let coded: String = word.bytes().map(|b| format!("\\x{b:02x}")).collect();
    vec![
        format!("'{word}'"),
        format!("\"{word}\""),
        format!("'{first}'{rest}"),
        format!("\"{first}\"'{rest}'"),
        format!("{first}''{rest}"),
        escaped,
        format!("$'{coded}'"),
    ]
}

#[test]
fn how_a_word_is_quoted_changes_nothing() {
    let ground = ground();
    let plain =
        |word: &String| word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-./".contains(&b));
    for case in corpus() {
        let Command::Words(words) = &case.command else { continue };
        if !words.iter().all(|word| !word.is_empty() && plain(word)) {
            continue;
        }
        let safe = case.judge(&ground).safe;
        for (at, word) in words.iter().enumerate() {
            for quoted in quotings(word) {
                let mut written: Vec<String> =
                    words.iter().map(|word| quote(std::slice::from_ref(word))).collect();
                written[at] = quoted;
                let script = written.join(" ");
                assert_eq!(ground.judge(&script).safe, safe, "{script:?}");
            }
        }
    }
}

/// Neither many parts nor deep ones make a judgement weaker, slow, or end the program.
#[test]
fn length_and_depth_never_help() {
    let ground = ground();
    for parts in [1, 50, 51, 500, 5000] {
        for (part, joint) in [("true", " && "), ("ls", "; "), ("cat a.txt", "\n"), ("cat", " | ")] {
            let script = vec![part; parts].join(joint);
            assert!(!ground.judge(&format!("{script}{joint}touch x")).safe, "{parts} {part}");
            assert!(!ground.judge(&format!("touch x{joint}{script}")).safe, "{parts} {part}");
            if script.len() <= SCRIPT_BYTES_MAX {
                assert!(ground.judge(&script).safe, "{parts} {part}");
            }
        }
    }
    let doubled = format!("x=ab; {}echo $x", "x=$x$x; ".repeat(60));
    assert!(!ground.judge(&doubled).safe);
    for depth in [5, 17, 100, 20_000] {
        for (open, close) in [
            ("(", ")"),
            ("{ ", ";}"),
            ("echo $(", ")"),
            ("\"$(", ")\""),
            ("<(", ")"),
            ("if ", ";then ls;fi"),
        ] {
            let script = format!("{}ls{}", open.repeat(depth), close.repeat(depth));
            let dangerous = format!("{}touch x{}", open.repeat(depth), close.repeat(depth));
            assert!(!ground.judge(&dangerous).safe, "{open} {depth}");
            assert!(depth < 16 || !ground.judge(&script).safe, "{open} {depth}");
        }
    }
}

proptest! {
    #[test]
    fn judging_never_panics_and_literal_words_survive_quoting(script in ".{0,60}") {
        let judged = judge(&script, Path::new("/nosuch"));
        prop_assert!(!judged.reason.is_empty());
        if let Some(argv) = literal_argv(&script) {
            prop_assert_eq!(literal_argv(&quote(&argv)), Some(argv));
        }
    }

    #[test]
    fn pieces_of_grammar_never_panic(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "ls", " ", "\n", ";", "&", "&&", "|", "(", ")", "{", "}", "<", ">", "<<E", "E\n",
                "$(", "`", "${", "x", "=", "'", "\"", "\\", "$", "[[", "]]", "if", "then", "fi",
                "for", "in", "do", "done", "while", "*", "?", "[", "]", "~", "#", "!", "1", "-",
                "a.txt", "$'", "\\x41", "<(", "é", "..", ",", "find", "xargs", "sed", "awk", "git",
            ]),
            0..40,
        ),
    ) {
        let script = pieces.concat();
        let judged = judge(&script, Path::new("/usr/share"));
        prop_assert!(!judged.reason.is_empty());
    }

    #[test]
    fn what_is_appended_never_makes_a_dangerous_script_safe(more in ".{0,40}") {
        for dangerous in ["touch x;", "touch x\n", "ls >x;", "echo $(touch x);"] {
            let script = format!("{dangerous}{more}");
            prop_assert!(!judge(&script, Path::new("/usr/share")).safe, "{:?}", script);
        }
    }
}
