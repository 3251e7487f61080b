//! What holds for all memories, users and queries.

use std::collections::BTreeMap;

use polyloop_agent::memories::{Memories, QUERY_BYTES_MAX};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::memory::{fails, found, found_keys, listed, recalled, remember, with};
use crate::{Ground, Test};

pub const ALL: &[Test] = &[
    ("memories_of_random_users_are_as_in_a_plain_map", random_users),
    ("no_query_is_an_error", any_query),
];

fn random<S: Strategy>(runner: &mut TestRunner, strategy: &S) -> S::Value {
    strategy.new_tree(runner).unwrap().current()
}

/// Texts out of what is hard: operators of the index, quotes, NUL, all of Unicode.
fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => "[abÄß]{1,4}",
        2 => prop::sample::select(vec![
            "AND", "OR", "NOT", "NEAR(", ")", "\"", "''", "*", "^a", "key:", "{", "-", "+", "\0",
            "a\0b", "%", "_", "\\", "东京", "東", "Σς", "İi", "ẞ", "e\u{301}", "\u{202e}", "😀",
        ])
        .prop_map(str::to_owned),
        2 => any::<String>(),
        1 => prop::collection::vec(any::<char>(), 0..40).prop_map(|all| all.into_iter().collect()),
    ];
    (prop::collection::vec(word, 1..4), prop::sample::select(vec!["", " ", "\n"]))
        .prop_map(|(words, between)| words.join(between))
}

fn random_users() {
    let (ground, memories) = (Ground::new(), Memories::unkept().unwrap());
    let users = ["ada", "bob", "ada "].map(|user| with(&ground, &memories, user));
    let mut models: [BTreeMap<String, String>; 3] = Default::default();
    let mut runner = TestRunner::deterministic();
    let keys: Vec<String> = std::iter::repeat_with(|| random(&mut runner, &text()))
        .filter(|key| !key.trim().is_empty() && key.len() <= 256)
        .take(12)
        .collect();
    let mut found_any = 0;
    for round in 0..600 {
        let at = random(&mut runner, &(0..users.len()));
        let (ground, model) = (&users[at], &mut models[at]);
        let key = keys[random(&mut runner, &(0..keys.len()))].clone();
        match round % 3 {
            0 if random(&mut runner, &(0..4)) == 0 => {
                remember(ground, &key, Value::Null);
                model.remove(&key);
            }
            0 => {
                let value = random(&mut runner, &text());
                remember(ground, &key, json!(value));
                model.insert(key, value);
            }
            1 => match model.get(&key) {
                Some(value) => assert_eq!(recalled(ground, &key), json!(value)),
                None => {
                    fails(ground, "recall", json!({ "key": key }));
                }
            },
            _ => {
                let query = random(&mut runner, &text());
                if query.len() > QUERY_BYTES_MAX {
                    continue;
                }
                let query = query.as_str();
                let hits = found_keys(ground, query);
                let words: Vec<&str> =
                    query.split(|c: char| c.is_whitespace() || c == '\0').collect();
                let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
                for (key, value) in model.iter() {
                    let has = |word: &&str| key.contains(*word) || value.contains(*word);
                    if words.is_empty() || words.iter().any(has) {
                        assert!(hits.contains(key), "{query:?}: {key:?} {value:?} not in {hits:?}");
                        found_any += usize::from(!words.is_empty());
                    }
                }
                assert!(hits.iter().all(|key| model.contains_key(key)), "{query:?}: {hits:?}");
            }
        }
        assert_eq!(listed(ground), model.keys().cloned().collect::<Vec<_>>());
    }
    assert!(found_any > 50, "{found_any}");
}

fn any_query() {
    let ground = Ground::new();
    remember(&ground, "key", json!("value"));
    let mut queries: Vec<String> = [
        "\"",
        "\"\"",
        "\"a",
        "a\"b\"c",
        "*",
        "a*",
        "key : value",
        "-key",
        "NEAR(key value, 2)",
        "key AND",
        "OR OR OR",
        "NOT",
        "(",
        "((((((((",
        "{key} : x",
        "^key",
        "\0",
        "a\0\"",
        "'; --",
        "%",
        "_",
        "rowid:1",
        "words_1",
        "\u{fffd}",
        "\u{feff}\u{feff}\u{feff}",
        "٠١٢",
    ]
    .map(str::to_owned)
    .into();
    queries.push("(".repeat(QUERY_BYTES_MAX));
    queries.push("\"".repeat(QUERY_BYTES_MAX));
    queries.push("东".repeat(QUERY_BYTES_MAX / 3));
    queries.push("abc ".repeat(QUERY_BYTES_MAX / 4));
    let mut runner = TestRunner::deterministic();
    queries.extend((0..300).map(|_| random(&mut runner, &text())));
    for query in queries {
        if query.len() <= QUERY_BYTES_MAX {
            found(&ground, json!({ "query": query, "limit": 1 }));
        }
    }
}
