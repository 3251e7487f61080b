//! Memories, on real files and with several users.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;

use polyloop_agent::memories::{Memories, QUERY_BYTES_MAX};
use polyloop_agent::tool::{Place, TEXT_BYTES_MAX};
use polyloop_session::item::End;
use polyloop_session::policy::{Effect, Mode, Verdict, verdict};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::paths::tool;
use crate::{Ground, Test, block_on};

pub const ALL: &[Test] = &[
    ("what_is_remembered_is_recalled_found_and_listed", kept),
    ("values_come_back_as_they_were_written", written),
    ("remembering_is_an_edit_and_shows_all_it_keeps", judged),
    ("a_key_that_is_not_there_is_answered_with_similar_ones", unknown),
    ("arguments_that_are_no_memories_are_errors", malformed),
    ("an_answer_with_many_memories_is_cut_and_says_so", cut),
    ("memories_of_random_users_are_as_in_a_plain_map", random_users),
    ("no_query_is_an_error", any_query),
    ("memories_outlive_the_server", restarted),
    ("two_servers_and_many_sessions_share_a_file", shared),
    ("a_damaged_file_is_told_and_harms_nothing_else", damaged),
    ("a_stopped_call_keeps_nothing", stopped),
    ("a_person_may_put_a_patch_in_place_of_a_memory", patched),
];

/// The same ground for another user, on other memories.
fn with(ground: &Ground, memories: &Memories, user: &str) -> Ground {
    let memories = memories.of(Some(user));
    let dir = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    Ground { dir, place: Arc::new(Place { memories, ..(*ground.place).clone() }) }
}

fn ok(ground: &Ground, name: &str, args: Value) -> String {
    let ended = ground.finish(tool(name), args.clone());
    assert_eq!(ended.end, End::Whole, "{name} {args}: {}", ended.seen());
    ended.output
}

fn fails(ground: &Ground, name: &str, args: Value) -> String {
    let ended = ground.finish(tool(name), args.clone());
    assert_eq!(ended.end, End::Failed, "{name} {args}: {}", ended.seen());
    ended.seen().to_owned()
}

fn remember(ground: &Ground, key: &str, value: Value) {
    assert_eq!(ok(ground, "remember", json!({ "key": key, "value": value })), "ok\n");
}

fn recalled(ground: &Ground, key: &str) -> Value {
    serde_json::from_str(&ok(ground, "recall", json!({ "key": key }))).unwrap()
}

fn listed(ground: &Ground) -> Vec<String> {
    serde_json::from_str(&ok(ground, "list_memories", json!({}))).unwrap()
}

/// The list and the notes behind it.
fn found(ground: &Ground, args: Value) -> (Vec<Value>, String) {
    let text = ok(ground, "search_memories", args);
    assert!(text.len() <= TEXT_BYTES_MAX, "{} bytes", text.len());
    let mut values = serde_json::Deserializer::from_str(&text).into_iter();
    let list = values.next().unwrap().unwrap();
    (list, text[values.byte_offset()..].trim().to_owned())
}

fn found_keys(ground: &Ground, query: &str) -> Vec<String> {
    let (list, notes) = found(ground, json!({ "query": query, "limit": 100 }));
    assert_eq!(notes, "", "{query:?}");
    list.iter().map(|hit| hit["key"].as_str().unwrap().to_owned()).collect()
}

fn kept() {
    let ground = Ground::new();
    assert_eq!(listed(&ground), [""; 0]);
    assert_eq!(found(&ground, json!({ "query": "x" })), (vec![], String::new()));
    remember(&ground, "editor", json!("prefers Vim over Emacs"));
    remember(&ground, "timezone", json!("Europe/Berlin"));
    remember(&ground, "build", json!({ "tool": "cargo", "jobs": 2 }));
    assert_eq!(recalled(&ground, "editor"), json!("prefers Vim over Emacs"));
    assert_eq!(recalled(&ground, "build"), json!({ "tool": "cargo", "jobs": 2 }));
    assert_eq!(listed(&ground), ["build", "editor", "timezone"]);
    let (hits, _) = found(&ground, json!({ "query": "VIM berlin editor" }));
    assert_eq!(hits.len(), 2);
    assert_eq!(hits[0]["key"], "editor", "two words beat one");
    assert_eq!(hits[0]["value"], "prefers Vim over Emacs");
    assert!(hits[0]["score"].as_f64().unwrap() > hits[1]["score"].as_f64().unwrap());
    remember(&ground, "editor", json!("now uses Helix"));
    assert_eq!(recalled(&ground, "editor"), json!("now uses Helix"));
    assert_eq!(found_keys(&ground, "vim"), [""; 0], "what was replaced is not found");
    assert_eq!(found_keys(&ground, "helix"), ["editor"]);
    remember(&ground, "editor", Value::Null);
    assert_eq!(listed(&ground), ["build", "timezone"]);
    assert_eq!(found_keys(&ground, "helix"), [""; 0]);
    remember(&ground, "editor", Value::Null);
}

fn written() {
    let ground = Ground::new();
    for value in [
        r#""a\u0000b\u202e\ud83d\ude00""#,
        "12345678901234567890123456789",
        "1.500",
        r#"{"z": 1, "a": [true, null]}"#,
        "false",
        "[]",
        "\"\"",
    ] {
        let args = format!(r#"{{"key": "k", "value": {value}}}"#);
        let run = polyloop_agent::tool::Run {
            args: args.as_str().into(),
            place: ground.place.clone(),
            sandboxed: false,
            safe: false,
            stop: Default::default(),
        };
        let stop = Default::default();
        let call = crate::Call { stream: tool("remember").run(run), stop, output: String::new() };
        assert_eq!(block_on(call.end()).output, "ok\n", "{args}");
        assert_eq!(ok(&ground, "recall", json!({ "key": "k" })), format!("{value}\n"));
    }
}

fn judged() {
    let ground = Ground::new();
    let reads = [
        ("recall", json!({ "key": "a" })),
        ("search_memories", json!({ "query": "a" })),
        ("list_memories", json!({})),
        ("skill", json!({ "name": "a" })),
    ];
    for (name, args) in reads {
        let judged = ground.judge(tool(name), args).unwrap();
        assert_eq!(judged.effect, Effect::Read);
        for mode in [Mode::Suggest, Mode::Plan, Mode::DontAsk] {
            assert_eq!(verdict(&judged, mode, &[], false), Verdict::Allow, "{name} {mode:?}");
        }
    }
    let args = json!({ "key": "a\u{202e}b", "value": "x\u{200b}\u{7}y" });
    let judged = ground.judge(tool("remember"), args).unwrap();
    assert_eq!((judged.effect, judged.confined, judged.safe), (Effect::Edit, true, false));
    let shown: Vec<&str> = judged.command.iter().map(|word| &**word).collect();
    assert_eq!(shown, ["remember", "a\\u{202e}b", "\"x\\u{200b}\\u0007y\""]);
    assert!(judged.reason.contains("\"a\\u{202e}b\"") && judged.reason.contains("\"default\""));
    for (mode, want) in [
        (Mode::Suggest, "ask"),
        (Mode::AutoEdit, "allow"),
        (Mode::FullAuto, "allow"),
        (Mode::Bypass, "allow"),
        (Mode::Plan, "deny"),
        (Mode::DontAsk, "deny"),
    ] {
        let got = match verdict(&judged, mode, &[], true) {
            Verdict::Ask => "ask",
            Verdict::Allow => "allow",
            Verdict::Deny(_) => "deny",
            Verdict::AllowSandboxed => "sandbox",
        };
        assert_eq!(got, want, "{mode:?}");
    }
    // "Always" covers this key with any value, but no other key, and no forgetting.
    let again = |args: Value| {
        let call = ground.judge(tool("remember"), args).unwrap();
        verdict(&call, Mode::Suggest, &judged.keys, true)
    };
    assert_eq!(again(json!({ "key": "a\u{202e}b", "value": 2 })), Verdict::Allow);
    assert_eq!(again(json!({ "key": "ab", "value": 2 })), Verdict::Ask);
    assert_eq!(again(json!({ "key": "a\u{202e}b", "value": null })), Verdict::Ask);
}

fn unknown() {
    let ground = Ground::new();
    let why = fails(&ground, "recall", json!({ "key": "editor" }));
    assert_eq!(why, "recall: key not found: \"editor\"; nothing is remembered for this user yet");
    remember(&ground, "favourite_editor", json!(1));
    remember(&ground, "zzz", json!(1));
    let why = fails(&ground, "recall", json!({ "key": "Editor" }));
    assert_eq!(why, "recall: key not found: \"Editor\"; similar keys: \"favourite_editor\"");
    let why = fails(&ground, "recall", json!({ "key": "qqq" }));
    assert!(why.contains("2 others are remembered, list_memories names them"), "{why}");
}

fn malformed() {
    let ground = Ground::new();
    let long = "k".repeat(257);
    for (name, args, part) in [
        ("remember", json!({ "value": 1 }), "`key` is missing"),
        ("remember", json!({ "key": "a" }), "`value` is missing"),
        ("remember", json!({ "key": " \n", "value": 1 }), "`key` is blank"),
        ("remember", json!({ "key": 1, "value": 1 }), "`key` must be a string"),
        ("remember", json!({ "key": long, "value": 1 }), "257 bytes, the limit is 256"),
        ("remember", json!({ "key": "a", "value": "v".repeat(8191) }), "8193 bytes"),
        ("recall", json!({}), "`key` is missing"),
        ("recall", json!({ "key": "" }), "`key` is blank"),
        ("search_memories", json!({ "query": 1 }), "`query` must be a string"),
        ("search_memories", json!({ "limit": -1 }), "`limit` must be"),
        ("search_memories", json!({ "query": "q".repeat(1025) }), "the limit is 1024"),
        ("list_memories", json!([]), "not a JSON object"),
    ] {
        let why = ground.judge(tool(name), args.clone()).unwrap_err();
        assert!(why.starts_with(&format!("{name}: ")) && why.contains(part), "{args}: {why}");
        assert_eq!(fails(&ground, name, args), why);
    }
    assert_eq!(listed(&ground), [""; 0]);
    remember(&ground, &"k".repeat(256), json!("v".repeat(8190)));
}

fn cut() {
    let ground = Ground::new();
    for n in 0..30 {
        remember(&ground, &format!("long{n}"), json!(format!("needle {}", "x".repeat(8_000))));
    }
    let (hits, notes) = found(&ground, json!({ "query": "needle" }));
    assert!(hits.len() < 10, "{}", hits.len());
    assert!(notes.contains(&format!("{} more match", 30 - hits.len())), "{notes}");
    let words: Vec<String> = (0..40).map(|n| format!("w{n}")).collect();
    let (_, notes) = found(&ground, json!({ "query": words.join(" ") }));
    assert_eq!(notes, "(only the first 32 words were looked for)");
    for n in 0..300 {
        remember(&ground, &format!("{n}{}", "k".repeat(250)), json!(n));
    }
    let text = ok(&ground, "list_memories", json!({}));
    assert!(text.len() <= TEXT_BYTES_MAX);
    let (list, note) = text.rsplit_once("]\n").unwrap();
    let keys: Vec<String> = serde_json::from_str(&format!("{list}]")).unwrap();
    assert_eq!(note, format!("({} more; find them with search_memories)\n", 330 - keys.len()));
}

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

fn restarted() {
    let ground = Ground::new();
    let path = ground.out().join("memories.db");
    let memories = Memories::open(&path).unwrap();
    remember(&with(&ground, &memories, "ada"), "editor", json!("vim"));
    // Killed: nobody closes it.
    std::mem::forget(memories);
    let memories = Memories::open(&path).unwrap();
    let ada = with(&ground, &memories, "ada");
    assert_eq!(recalled(&ada, "editor"), json!("vim"));
    assert_eq!(found_keys(&ada, "vim"), ["editor"]);
    block_on(memories.close());
    assert!(fails(&ada, "recall", json!({ "key": "editor" })).contains("closed"));
}

fn shared() {
    let ground = Ground::new();
    let path = ground.out().join("memories.db");
    let servers = [Memories::open(&path).unwrap(), Memories::open(&path).unwrap()];
    const SESSIONS: usize = 16;
    const EACH: usize = 12;
    block_on(async {
        let mut working = tokio::task::JoinSet::new();
        for session in 0..SESSIONS {
            let user = format!("user{}", session % 4);
            let memories = servers[session % 2].of(Some(&user));
            working.spawn(async move {
                for n in 0..EACH {
                    let (own, all) = (format!("own-{session}-{n}"), format!("all-{n}"));
                    let value = format!("\"{user} {session} {n}\"");
                    memories.remember(&own, &value).await.unwrap();
                    memories.remember(&all, &value).await.unwrap();
                    assert_eq!(memories.recall(&own).await.unwrap(), Some(value.clone()));
                    let hits = memories.search(&own, 5).await.unwrap().hits;
                    assert!(hits.iter().any(|hit| hit.key == own && hit.value == value));
                }
            });
        }
        while let Some(done) = working.join_next().await {
            done.unwrap();
        }
        for user in 0..4 {
            let name = format!("user{user}");
            let memories = servers[user % 2].of(Some(&name));
            let keys = memories.keys().await.unwrap();
            assert_eq!(keys.len(), SESSIONS / 4 * EACH + EACH);
            for key in keys {
                let value = memories.recall(&key).await.unwrap().unwrap();
                assert!(value.starts_with(&format!("\"{name} ")), "{key}: {value}");
            }
        }
    });
}

/// Overwrites all pages but the first few, where it says what the file is.
fn damage(path: &Path) {
    let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let bytes = file.metadata().unwrap().len();
    file.seek(SeekFrom::Start(4096)).unwrap();
    file.write_all(&vec![0x5a; usize::try_from(bytes - 4096).unwrap()]).unwrap();
}

fn damaged() {
    let ground = Ground::new();
    let path = ground.out().join("memories.db");
    let memories = Memories::open(&path).unwrap();
    let ada = with(&ground, &memories, "ada");
    for n in 0..50 {
        remember(&ada, &format!("key{n}"), json!("text ".repeat(200)));
    }
    block_on(memories.close());
    damage(&path);
    let memories = Memories::open(&path).unwrap();
    let ada = with(&ground, &memories, "ada");
    for (name, args) in [
        ("recall", json!({ "key": "key1" })),
        ("search_memories", json!({ "query": "text" })),
        ("list_memories", json!({})),
        ("remember", json!({ "key": "new", "value": 1 })),
    ] {
        let why = fails(&ada, name, args);
        let told = format!("{name}: the memories cannot be reached: ");
        assert!(why.starts_with(&told) && why.contains("malformed"), "{why}");
    }
    ada.write("a", "other tools work\n");
    assert!(ok(&ada, "read", json!({ "path": "a" })).contains("other tools work"));
}

fn stopped() {
    let ground = Ground::new();
    let call = ground.start(tool("remember"), json!({ "key": "a", "value": 1 }));
    call.stop.cancel();
    assert_eq!(block_on(call.end()).end, End::Interrupted);
    assert_eq!(listed(&ground), [""; 0]);
}

fn patched() {
    let ground = Ground::new();
    let patch = "*** Begin Patch\n*** Add File: a\n+here\n*** End Patch\n";
    ok(&ground, "remember", json!({ "patch": patch }));
    assert_eq!(ground.read("a"), "here\n");
    assert_eq!(listed(&ground), [""; 0]);
}
