//! Memories, on real files and with several users.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;

use polyloop_agent::memories::Memories;
use polyloop_agent::tool::{Place, TEXT_BYTES_MAX};
use polyloop_session::item::End;
use polyloop_session::policy::{Effect, Mode, Verdict, verdict};
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
    ("memories_outlive_the_server", restarted),
    ("two_servers_and_many_sessions_share_a_file", shared),
    ("a_damaged_file_is_told_and_harms_nothing_else", damaged),
    ("a_stopped_call_keeps_nothing", stopped),
    ("a_person_may_put_a_patch_in_place_of_a_memory", patched),
];

/// The same ground for another user, on other memories.
pub(super) fn with(ground: &Ground, memories: &Memories, user: &str) -> Ground {
    let memories = memories.of(Some(user));
    let dir = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    Ground { dir, place: Arc::new(Place { memories, ..(*ground.place).clone() }) }
}

fn ok(ground: &Ground, name: &str, args: Value) -> String {
    let ended = ground.finish(tool(name), args.clone());
    assert_eq!(ended.end, End::Whole, "{name} {args}: {}", ended.seen());
    ended.output
}

pub(super) fn fails(ground: &Ground, name: &str, args: Value) -> String {
    let ended = ground.finish(tool(name), args.clone());
    assert_eq!(ended.end, End::Failed, "{name} {args}: {}", ended.seen());
    ended.seen().to_owned()
}

pub(super) fn remember(ground: &Ground, key: &str, value: Value) {
    assert_eq!(ok(ground, "remember", json!({ "key": key, "value": value })), "ok\n");
}

pub(super) fn recalled(ground: &Ground, key: &str) -> Value {
    serde_json::from_str(&ok(ground, "recall", json!({ "key": key }))).unwrap()
}

pub(super) fn listed(ground: &Ground) -> Vec<String> {
    serde_json::from_str(&ok(ground, "list_memories", json!({}))).unwrap()
}

/// The list and the notes behind it.
pub(super) fn found(ground: &Ground, args: Value) -> (Vec<Value>, String) {
    let text = ok(ground, "search_memories", args);
    assert!(text.len() <= TEXT_BYTES_MAX, "{} bytes", text.len());
    let mut values = serde_json::Deserializer::from_str(&text).into_iter();
    let list = values.next().unwrap().unwrap();
    (list, text[values.byte_offset()..].trim().to_owned())
}

pub(super) fn found_keys(ground: &Ground, query: &str) -> Vec<String> {
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
            unasked: None,
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
    // Requests are worded by the dialects, which write codes for what is hidden.
    assert_eq!(shown, ["remember", "a\u{202e}b", "\"x\u{200b}\\u0007y\""]);
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
