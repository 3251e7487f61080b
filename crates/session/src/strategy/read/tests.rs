#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

mod hostile;
mod plans;

fn texts(thoughts: &[Thought]) -> Vec<String> {
    let last = |thought: &Thought| if thought.last { "!" } else { "" };
    thoughts.iter().map(|one| format!("{}{}", one.text, last(one))).collect()
}

/// What is written, and the thoughts in it; a last one ends with `!`.
const THOUGHTS: &[(&str, &[&str])] = &[
    (
        r#"{"thoughts": [{"thought": "a", "final": false}, {"thought": "b", "final": true}]}"#,
        &["a", "b!"],
    ),
    ("```json\n{\"thoughts\": [{\"thought\": \"a\"}]}\n```", &["a"]),
    ("```\n[\"a\", \"b\"]\n```", &["a", "b"]),
    ("Sure! Here they are:\n\n```JSON\n[\"a\", \"b\",]\n```\nTell me more!", &["a", "b"]),
    // A draft, and what is meant.
    (r#"First I thought {"thoughts": ["x"]}. Better: {"thoughts": ["a", "b"]}"#, &["a", "b"]),
    (r#"{"note": "as you wish"} {"thoughts": ["a"]}"#, &["a"]),
    // The form that was asked for, told again.
    (
        r#"In the form {"thoughts": [{"thought": "the step", "final": false}, …]}:
        {"thoughts": [{"thought": "a", "final": false}]}"#,
        &["a"],
    ),
    ("{\"thoughts\": [\"a\", // the first\n \"b\" /* the second */]}", &["a", "b"]),
    ("{'thoughts': [{'thought': 'it\\'s a', 'final': True}]}", &["it's a!"]),
    ("{thoughts: [{thought: \"a\", final: true}]}", &["a!"]),
    (r#"{"thoughts": ["a" "b"]}"#, &["a", "b"]),
    ("{\"thoughts\": [\"two\nlines\"]}", &["two\nlines"]),
    (
        r#"{"thoughts": [{"thought": "a", "final": "yes"}, {"step": "b", "done": "no"}]}"#,
        &["a!", "b"],
    ),
    // Cut off: what is whole counts.
    (r#"{"thoughts": [{"thought": "a"}, {"thought": "b"}, {"thought": "half of wh"#, &["a", "b"]),
    (r#"{"thoughts": ["a", "b"#, &["a"]),
    (r#"{"thoughts": ["a", "b"]"#, &["a", "b"]),
    (r#"["a", "b", tru"#, &["a", "b"]),
    // Each by itself.
    ("{\"thought\": \"a\"}\n{\"thought\": \"b\", \"final\": true}", &["a", "b!"]),
    // Nothing follows.
    (r#"{"thoughts": []}"#, &[]),
    ("[]", &[]),
    (r#"["a", "a", " a ", "b"]"#, &["a", "b"]),
    (r#"["a", "b", "c", "d", "e"]"#, &["a", "b", "c", "d"]),
    // Lists.
    ("1. a\n2. b (final)", &["a", "b!"]),
    ("1) a\n2) b [FINAL].", &["a", "b!"]),
    ("(1) a\n(2) **b (Final)**", &["a", "**b!"]),
    ("**1. a**\n**2. b**", &["a", "b"]),
    ("**1.** a\n**2.** b", &["a", "b"]),
    ("- a\n- b", &["a", "b"]),
    ("* a\n* b", &["a", "b"]),
    ("• a\n• b", &["a", "b"]),
    ("Step 1: a\nStep 2: b", &["a", "b"]),
    ("**Option A:** a\n**Option B**: b", &["a", "b"]),
    ("### 1. a\n### 2. b", &["a", "b"]),
    ("1、读文件\n2、写文件 🦀", &["读文件", "写文件 🦀"]),
    ("1. a\n   goes on\n\n2. b", &["a goes on", "b"]),
    // Points below points are no thoughts of their own.
    ("1. a\n   - one\n   - two\n2. b\n   - three", &["a one two", "b three"]),
    ("1. **a**\n- one\n- two\n2. **b**\n- three", &["**a** one two", "**b** three"]),
    ("- a\n  - one\n- b", &["a one", "b"]),
    // Another list before it.
    ("What matters:\n1. x\n2. y\n\nProposals:\n1. a\n2. b", &["a", "b"]),
    ("What matters:\n- x\n- y\n\n1. a\n2. b", &["a", "b"]),
    ("1. a\n1. b\n1. c", &["a", "b", "c"]),
    ("1. at 10:30\n2. 1.5 times", &["at 10:30", "1.5 times"]),
    ("---\n- a\n***\n- b\n- - -", &["a", "b"]),
    ("<think>\n1. x\n2. y\n</think>\n1. a\n2. b", &["a", "b"]),
    (r#"{"result": {"thoughts": 3}, "steps": ["a"]}"#, &["a"]),
    (r#"Use `arr[0]` and {braces}. ["a", "b"]"#, &[]),
];

#[test]
fn thoughts_are_read_as_models_write_them() {
    for (text, want) in THOUGHTS {
        match thoughts(text, 4) {
            Ok(found) => assert_eq!(texts(&found), *want, "{text}"),
            Err(_) => assert!(want.is_empty(), "{text}"),
        }
    }
    for none in
        ["", "  \n ", "Let me think about it.", "no", "[1, 2]", "{}", "```\n```", "[", "{\""]
    {
        assert!(thoughts(none, 3).is_err(), "{none}");
    }
    assert_eq!(thoughts("[]", 3), Ok(Vec::new()), "nothing follows, and it is said so");
}

const VALUES: &[(&str, u32)] = &[
    ("sure", 1_000),
    ("sure.", 1_000),
    ("**likely**", 500),
    ("Impossible!", 0),
    ("unlikely", 100),
    ("Score: 8/10", 800),
    ("**Score:** 8/10", 800),
    ("Score: **8**/10 because 3 steps are left", 800),
    ("8", 800),
    ("8.", 800),
    ("10", 1_000),
    ("0", 0),
    // Of ten, as it was asked.
    ("1", 100),
    ("1/10", 100),
    ("0.8", 800),
    ("0.05", 50),
    ("7.5", 750),
    ("85%", 850),
    ("85", 850),
    ("4/5", 800),
    ("I think 2/3.", 667),
    ("8 out of 10", 800),
    ("I would give it a 7", 700),
    ("7 - the steps are right", 700),
    ("-3", 0),
    (r#"{"score": 8}"#, 800),
    (r#"{"score": 1}"#, 100),
    (r#"{"score": 0.9}"#, 900),
    (r#"{"probability": 1}"#, 1_000),
    (r#"{"value": "8/10"}"#, 800),
    (r#"{"value": "likely"}"#, 500),
    ("```json\n{\"score\": 6}\n```", 600),
    (r#"{"thinking": "3 of 4"} {"score": 6,}"#, 600),
    ("I am not sure.", 300),
    ("It isn't likely.", 100),
    ("That isn’t very likely", 100),
    ("It is not impossible", 300),
    ("This cannot be solved", 0),
    ("This can be solved", 1_000),
    ("It is not promising", 100),
    ("(10 - 4) * (10 - 6) = 24, sure", 1_000),
    ("8 / (1 - 2/3) = 24\nlikely", 500),
    ("10 13 13: impossible to reach 24", 0),
    ("Sure! Let me look.\nThe steps are right.\nIt ends there.\n6/10", 600),
    ("Sure, let me look.\n\nVerdict: unlikely", 100),
    (
        "likely\n\nOne.\nTwo.\nThree words here.\nThe reasons are many, and they are told above.",
        500,
    ),
    ("看起来不错。\n9/10 👍", 900),
    ("<think>impossible</think>\nsure", 1_000),
];

#[test]
fn values_are_read_as_models_write_them() {
    for (text, want) in VALUES {
        assert_eq!(value(text), Ok(*want), "{text}");
    }
    let none = ["", "hm", "看起来不错", "v2", "99999999999999999999", "{}", "{\"score\": null}"];
    for none in none.into_iter().chain(["Sure! Let me look.\nHm.", "1.2.3"]) {
        assert!(value(none).is_err(), "{none}: {:?}", value(none));
    }
}

/// Of three, counted from 1.
const VOTES: &[(&str, usize)] = &[
    ("2", 2),
    ("The best is choice 2", 2),
    ("The best is **choice 2**.", 2),
    ("Choice 2 (of 3)", 2),
    ("2/3", 2),
    ("Option #3", 3),
    ("Choice 1 is good, choice 2 is the best", 2),
    ("The best is choice 3, then choice 1", 3),
    ("Choice 2, as step 1 leads to 24", 2),
    ("1 is weak.\n3 is strong.\n\n3", 3),
    (r#"{"best": 2}"#, 2),
    (r#"{"choice": "Choice 3"}"#, 3),
    ("```json\n{\"best\": 1}\n```", 1),
    ("最好的是 2", 2),
];

#[test]
fn votes_are_read_as_models_write_them() {
    for (text, want) in VOTES {
        assert_eq!(vote(text, 3), Ok(want - 1), "{text}");
    }
    for none in ["", "none", "Choice 7", "0", "{\"best\": 4}", "choice 1 or choice 2", "-1", "1.5"]
    {
        assert!(vote(none, 3).is_err(), "{none}: {:?}", vote(none, 3));
    }
}

#[test]
fn simple_and_complex_are_told_apart() {
    let table = [
        ("simple", false),
        ("**Complex**", true),
        ("It is simple, not complex.", false),
        ("This is not complex", false),
        ("It isn't simple", true),
        ("Simple or complex?\n\nSimple.", false),
        (r#"{"complex": true}"#, true),
        (r#"{"complex": "no"}"#, false),
        (r#"{"complexity": "simple"}"#, false),
        (r#"{"answer": "complex", }"#, true),
        ("<think>complex?</think>simple", false),
    ];
    for (text, want) in table {
        assert_eq!(complex(text), Ok(want), "{text}");
    }
    for none in ["", "hard", "{}", "简单"] {
        assert!(complex(none).is_err(), "{none}");
    }
}

#[test]
fn questions_and_information_are_read_as_models_write_them() {
    let goal = |text| match question(text) {
        Ok(Understanding::Question { goal }) => goal.to_string(),
        other => panic!("{text}: {other:?}"),
    };
    for text in [
        "Which one?",
        "```\nWhich one?\n```",
        "The core question is: Which one?",
        "**Core question:** Which one?",
        "# The Core Question\n: Which one?",
        r#"{"core_question": "Which one?"}"#,
        r#"{"thinking": "hm"} {"goal": "Which one?",}"#,
        "<think>What?</think>\nWhich one?",
    ] {
        assert_eq!(goal(text), "Which one?", "{text}");
    }
    assert_eq!(goal("The core question is which one."), "The core question is which one.");
    assert!(question(" \n").is_err());
    let information = |text| match information(text) {
        Ok(Understanding::Information { constraints, context }) => {
            let constraints: Vec<String> = constraints.iter().map(|one| one.to_string()).collect();
            (constraints.join("|"), context.to_string())
        }
        other => panic!("{text}: {other:?}"),
    };
    let table = [
        (r#"{"constraints": ["a", "b"], "context": "x"}"#, ("a|b", "x")),
        (r#"{"constraints": "a", "facts": ["x", 3]}"#, ("a", "x\n3")),
        (r#"{"other": 1} {"constraints": ["a",], "context": null}"#, ("a", "")),
        (r#"{"constraints": ["a", "b"], "context": "cut of"#, ("a|b", "")),
        ("- a\n- b", ("a|b", "")),
    ];
    for (text, (constraints, context)) in table {
        assert_eq!(information(text), (constraints.to_owned(), context.to_owned()), "{text}");
    }
    for none in ["", "Nothing in particular", "{\"a\": 1}", "[1]"] {
        assert!(super::information(none).is_err(), "{none}");
    }
}

#[test]
fn texts_are_cut_at_a_character_and_lists_at_their_bound() {
    let long = format!("[\"{}\"]", "é🦀".repeat(TEXT_BYTES_MAX));
    let found = thoughts(&long, 1).unwrap();
    assert!(found[0].text.len() <= TEXT_BYTES_MAX + "…".len() && found[0].text.ends_with('…'));
    let many = serde_json::json!({"constraints": vec!["c"; 10_000]}).to_string();
    let Ok(Understanding::Information { constraints, .. }) = information(&many) else { panic!() };
    assert_eq!(constraints.len(), CONSTRAINTS_MAX);
}
