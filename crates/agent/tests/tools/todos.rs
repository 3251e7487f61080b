//! The session's todos and the file they are kept in.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;

use polyloop_agent::tool::Place;
use polyloop_session::item::End;
use polyloop_session::policy::{Mode, Verdict, verdict};
use serde_json::json;

use super::paths::tool;
use crate::{Ground, Test};

pub const ALL: &[Test] = &[
    ("todos_are_kept_in_the_file_of_the_session", kept),
    ("without_a_file_todos_stand_in_the_conversation", not_kept),
    ("todos_that_are_none_are_errors", malformed),
    ("a_link_in_place_of_the_todos_file_is_not_followed", linked),
];

fn file(ground: &Ground) -> PathBuf {
    ground.place.todos.clone().unwrap()
}

fn kept() {
    let ground = Ground::new();
    let template = "# Terraine Session Todos\n\nMine.\n\n## Current Tasks\n\n- [ ] No tasks yet - \
                    add your goals here\n\n## Completed Tasks\n\n(Tasks will be moved here when \
                    completed)\n";
    fs::write(file(&ground), template).unwrap();
    let todos = json!({ "todos": [
        { "id": "1", "content": "look", "status": "completed", "priority": "low" },
        { "id": "2", "content": "do", "status": "in_progress", "priority": "high" },
        { "content": "check" },
    ]});
    for name in ["todo_write", "todo_read"] {
        let judged = ground.judge(tool(name), todos.clone()).unwrap();
        for mode in [Mode::Suggest, Mode::Plan, Mode::DontAsk] {
            assert_eq!(verdict(&judged, mode, &[], true), Verdict::Allow, "{name} {mode:?}");
        }
    }
    let ended = ground.finish(tool("todo_write"), todos);
    assert_eq!(ended.end, End::Whole, "{}", ended.seen());
    assert!(ended.output.starts_with("2 todos\n["), "{}", ended.output);
    let text = fs::read_to_string(file(&ground)).unwrap();
    assert!(text.contains("Mine.") && text.contains("- [ ] do "), "{text}");
    assert!(text.contains("## Completed Tasks\n\n- [x] look "), "{text}");
    // A person ticks one off.
    fs::write(file(&ground), text.replace("- [ ] do", "- [x] do")).unwrap();
    let read = ground.finish(tool("todo_read"), json!({})).output;
    let (open, list) = read.split_once('\n').unwrap();
    assert_eq!(open, "1 todos");
    let list: serde_json::Value = serde_json::from_str(list).unwrap();
    let done = json!({ "id": "2", "content": "do", "status": "completed", "priority": "high" });
    assert!(list.as_array().unwrap().contains(&done), "{list}");
    let emptied = ground.finish(tool("todo_write"), json!({ "todos": [] }));
    assert_eq!(emptied.end, End::Whole);
    assert_eq!(fs::read_to_string(file(&ground)).unwrap(), template);
}

fn not_kept() {
    let ground = Ground::new();
    let place = Place { todos: None, ..(*ground.place).clone() };
    let ground = Ground { place: Arc::new(place), ..ground };
    let ended = ground.finish(tool("todo_write"), json!({ "todos": [{ "content": "a" }] }));
    assert_eq!(ended.end, End::Whole);
    assert!(ended.output.contains("1 todos") && ended.output.contains("no todos file"));
    assert!(ground.finish(tool("todo_read"), json!({})).output.contains("no todos file"));
}

fn malformed() {
    let ground = Ground::new();
    let many: Vec<_> = (0..201).map(|n| json!({ "content": n.to_string() })).collect();
    for (args, part) in [
        (json!({}), "`todos` is missing"),
        (json!({ "todos": "x" }), "`todos` must be a list"),
        (json!({ "todos": ["x"] }), "todo 1"),
        (json!({ "todos": [{ "content": " " }] }), "`content`"),
        (json!({ "todos": [{ "content": "a", "status": "later" }] }), "\"later\""),
        (json!({ "todos": many }), "the limit is 200"),
    ] {
        let why = ground.judge(tool("todo_write"), args.clone()).unwrap_err();
        assert!(why.starts_with("todo_write: ") && why.contains(part), "{args}: {why}");
        let ended = ground.finish(tool("todo_write"), args);
        assert_eq!((ended.end, ended.seen()), (End::Failed, why.as_str()));
    }
    assert!(!file(&ground).exists());
}

fn linked() {
    let ground = Ground::new();
    let victim = ground.out().join("victim");
    fs::write(&victim, "- [ ] secret\n").unwrap();
    symlink(&victim, file(&ground)).unwrap();
    let ended = ground.finish(tool("todo_write"), json!({ "todos": [{ "content": "a" }] }));
    assert_eq!(ended.end, End::Failed, "{}", ended.seen());
    let ended = ground.finish(tool("todo_read"), json!({}));
    assert!(ended.end == End::Failed && !ended.seen().contains("secret"), "{}", ended.seen());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "- [ ] secret\n");
}
