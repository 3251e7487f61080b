//! Entries written to lines and read back.

use std::collections::BTreeMap;

use polyloop_dialects::agentloop::Agentloop;
use polyloop_dialects::agentloop::file::{
    FileEncoder, Line, Lines, audit_line, line_time, read_line, restored,
};
use polyloop_dialects::{Complaint, Dialect, Reply};
use polyloop_session::item::{End, ItemKind, Part, ToolResult};
use polyloop_session::policy::{Effect, Key};
use polyloop_session::wait::{Answer, Instead, Then};
use polyloop_session::{Event, LogEntry, Seq, Text, Timestamp, Update};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::action::sessions;
use super::asked;
use super::events::{Choices, KINDS};
use super::fixture::scenarios;
use super::make::{
    begun, client, completed, entries, item, judgement, proposed, queued, started, tool, wait,
    waits, who,
};
use super::play::play;
use super::runner::try_all;
use super::texts::{LONG_BYTES, related};
use super::world::session;

const CASES: u32 = 500;

fn blobs(lines: &Lines) -> BTreeMap<String, String> {
    lines.blobs.iter().map(|blob| (blob.name.clone(), blob.text.clone())).collect()
}

/// Writes an entry, checks its lines, and reads it back.
fn survives(encoder: &mut FileEncoder, entry: &LogEntry) -> Result<(), String> {
    let lines = encoder.lines(entry);
    let blobs = blobs(&lines);
    ensure!(blobs.len() == lines.blobs.len(), "two files of entry {} share a name", entry.seq);
    let blob = |name: &str| blobs.get(name).cloned();
    ensure!(!lines.lines.is_empty(), "{entry:?} is not written at all");
    for (at, line) in lines.lines.iter().enumerate() {
        is_well_formed(line, entry, at == 0)?;
        let read = read_line(line, &blob);
        let want = match at {
            0 => Line::Entry(entry.clone()),
            _ => Line::More { seq: entry.seq },
        };
        ensure!(read == want, "line {at} reads back as\n  {read:?}, not\n  {want:?}\n  {line}");
        let back = restored(line, &blob).ok_or("it cannot be shown")?;
        let left = |text: &str| text.contains("\"$blob\":\"");
        ensure!(lines.blobs.is_empty() || !left(&back) || left(&format!("{entry:?}")), "{back}");
    }
    Ok(())
}

/// The four fields that other readers know, and ours.
fn is_well_formed(line: &str, entry: &LogEntry, first: bool) -> Result<(), String> {
    let ended = line.strip_suffix('\n').ok_or("a line without an end")?;
    ensure!(!ended.contains('\n'), "a line inside a line: {line}");
    let fields: Value = serde_json::from_str(ended).map_err(|error| error.to_string())?;
    let fields = fields.as_object().ok_or("a line that is no object")?;
    let mut want = vec!["direction", "event_type", "message_data", "seq", "timestamp"];
    if first {
        want.insert(1, "event");
    }
    let names: Vec<&String> = fields.keys().collect();
    ensure!(names == want, "the fields are {names:?}");
    ensure!(fields["seq"] == json!(entry.seq), "the seq is {}", fields["seq"]);
    ensure!(line_time(line) == Some(entry.at), "the time is {}", fields["timestamp"]);
    let (kind, way) = (fields["event_type"].as_str(), fields["direction"].as_str());
    let known = match (kind, way) {
        (Some("websocket_message_received"), Some("incoming"))
        | (Some("websocket_message_sent"), Some("outgoing")) => !fields["message_data"].is_null(),
        (Some("session_event"), Some("outgoing")) => fields["message_data"].is_null() && first,
        _ => false,
    };
    ensure!(known, "{kind:?} {way:?} with {}", fields["message_data"]);
    Ok(())
}

/// A picture is one file beside the lines, and comes back as it was.
#[test]
fn a_picture_is_stored_once() {
    let data: Text = "iVBORw0KGgoA".repeat(20_000).into();
    let mut event = queued("Look");
    if let Event::MessageQueued { content, .. } = &mut event {
        content.push(Part::Image { media_type: "image/png".into(), data: data.clone() });
    }
    let entry = entries([event]).remove(0);
    let lines = FileEncoder::new(&session()).lines(&entry);
    let [line] = &lines.lines[..] else { panic!("{} lines", lines.lines.len()) };
    assert!(line.len() < 1_000, "{line}");
    let texts: Vec<&str> = lines.blobs.iter().map(|blob| blob.text.as_str()).collect();
    assert_eq!(texts, [&*data]);
    survives(&mut FileEncoder::new(&session()), &entry).unwrap();
}

#[test]
fn any_entry_is_read_back() {
    let numbers = vec(prop_oneof![3 => 0..64_u64, 1 => any::<u64>()], 40..80);
    let kinds = vec(0..KINDS, 1..8);
    try_all(CASES, (related(), numbers, kinds), |(texts, numbers, kinds)| {
        let mut encoder = FileEncoder::new(&session());
        let mut choices = Choices::new(&texts, &numbers);
        for (seq, kind) in (1..).zip(kinds) {
            survives(&mut encoder, &choices.entry(seq, kind))?;
        }
        Ok(())
    });
}

#[test]
fn sessions_are_read_back() {
    let check = |updates: &[Update]| {
        let mut encoder = FileEncoder::new(&session());
        updates.iter().try_for_each(|update| match update {
            Update::Logged(entry) => survives(&mut encoder, entry),
            Update::Grew(_) | Update::Raw(_) => Ok(()),
        })
    };
    for scenario in scenarios() {
        let updates = scenario.updates(scenario.steps.len());
        check(&updates).unwrap_or_else(|told| panic!("{}: {told}", scenario.name));
    }
    try_all(CASES, sessions(), |(start, actions)| check(&play(&start, &actions)));
}

/// The entries in which a text of any length can stand, after those they build on.
fn with_text(text: &str) -> Vec<(&'static str, Vec<Event>)> {
    let after = |more: Vec<Event>| begun().into_iter().chain(more).collect::<Vec<Event>>();
    let script = json!({ "command": text }).to_string();
    let patch = json!({ "patch": text }).to_string();
    let bash = judgement(Effect::Execute, &["bash", "-lc", text], None);
    let edit = judgement(Effect::Edit, &["apply_patch", text], Some(text));
    let result = || Some(ToolResult { exit_code: Some(0), ..ToolResult::default() });
    let denied = Answer::Denied { message: text.into(), then: Then::Continue };
    let asked = |name, args: &str, judged| vec![started(3, tool(name)), proposed(4, args, judged)];
    let with = |mut events: Vec<Event>, more: Event| {
        events.push(more);
        after(events)
    };
    let failed = Event::TurnEnded {
        outcome: polyloop_session::event::Outcome::Failed {
            fault: polyloop_session::item::Fault::new("500", text),
        },
        usage: Default::default(),
    };
    let touch = || judgement(Effect::Execute, &["touch", "a"], None);
    let waiting = with(asked("bash", "{}", touch()), waits(4));
    let settled = Event::WaitSettled { wait: wait(6), answer: denied, by: who() };
    let discarded = Event::ItemCompleted {
        item: item(4),
        end: End::Discarded,
        text: text.into(),
        opaque: None,
        result: None,
        tokens: 1,
    };
    vec![
        ("a message", vec![queued(text)]),
        ("an answer", with(vec![started(3, ItemKind::Text)], completed(4, text, None))),
        ("a thought", with(vec![started(3, ItemKind::Reasoning)], completed(4, text, None))),
        ("half an answer", with(vec![started(3, ItemKind::Text)], discarded)),
        (
            "an output",
            with(
                vec![
                    started(3, tool("bash")),
                    proposed(4, "{}", touch()),
                    Event::ToolStarted { item: item(4), sandboxed: false, leave: None },
                ],
                completed(4, text, result()),
            ),
        ),
        ("a proposed script", after(asked("bash", &script, bash.clone()))),
        ("a proposed patch", after(asked("apply_patch", &patch, edit.clone()))),
        ("a script to approve", with(asked("bash", &script, bash.clone()), waits(4))),
        (
            "a script that runs",
            with(
                asked("bash", &script, bash),
                Event::ToolStarted { item: item(4), sandboxed: false, leave: None },
            ),
        ),
        (
            "a patch that runs",
            with(
                asked("apply_patch", &patch, edit),
                Event::ToolStarted { item: item(4), sandboxed: false, leave: None },
            ),
        ),
        (
            "what the sandbox stopped",
            after(
                [
                    asked("bash", "{}", touch()),
                    vec![
                        Event::ToolStarted { item: item(4), sandboxed: true, leave: None },
                        Event::SandboxRefused {
                            item: item(4),
                            reason: "no network".into(),
                            text: text.into(),
                            result: Box::new(ToolResult {
                                seen: Some(text.into()),
                                ..ToolResult::default()
                            }),
                            answerable: true,
                        },
                    ],
                ]
                .concat(),
            ),
        ),
        ("a denial", waiting.into_iter().chain([settled]).collect()),
        ("a failure", with(Vec::new(), failed)),
    ]
}

/// The lines of the last entry.
fn last_lines(events: Vec<Event>) -> Lines {
    let mut encoder = FileEncoder::new(&session());
    let mut last = Lines::default();
    for entry in entries(events) {
        last = encoder.lines(&entry);
    }
    last
}

#[test]
fn a_long_text_stands_once_in_a_line() {
    let text = format!("needle {}", "hay ".repeat(100));
    for (name, events) in with_text(&text) {
        let lines = last_lines(events);
        let counts: Vec<usize> = lines.lines.iter().map(|l| l.matches("needle").count()).collect();
        assert!(counts.iter().all(|count| *count <= 1), "{name}: {counts:?}");
        assert!(counts.contains(&1), "{name}: it is lost");
        assert!(lines.blobs.is_empty(), "{name}: it became a file");
    }
}

#[test]
fn a_very_long_text_is_a_file_of_its_own_and_stored_once() {
    let text = format!("needle {}", "hay ".repeat(LONG_BYTES / 4));
    let edit = judgement(Effect::Edit, &["apply_patch", &text], Some(&text));
    let asked = [started(3, tool("apply_patch")), proposed(4, "{}", edit), waits(4)];
    // The protocol's message holds a patch twice: as a word of the command, and as the patch.
    let patch = ("a patch to approve", begun().into_iter().chain(asked).collect());
    for (name, events) in with_text(&text).into_iter().chain([patch]) {
        let lines = last_lines(events);
        let in_lines: usize = lines.lines.iter().map(|l| l.matches("needle").count()).sum();
        let in_files = lines.blobs.iter().filter(|blob| blob.text.contains("needle")).count();
        assert_eq!((in_lines, in_files), (0, 1), "{name}");
    }
}

/// What a client decided stands in the file as it could have sent it.
#[test]
fn decisions_are_written_as_clients_send_them() {
    let touch = judgement(Effect::Edit, &["apply_patch", "P"], Some("P"));
    let keys = touch.keys.clone();
    let theirs = || Some(Box::new(Instead { args: "{}".into(), judgement: touch.clone() }));
    let approved = |grants: Vec<Key>, instead| {
        let always = !grants.is_empty();
        Answer::Approved { grants, instead, message: None, always }
    };
    let denied = |then| Answer::Denied { message: "No.".into(), then };
    let settles = |reply: Value| json!({"settle": {"wait": "presented", "reply": reply}});
    let deny = |then: &str| settles(json!({"deny": {"message": "No.", "then": then}}));
    let patched = |always: bool| {
        let patch = json!({"wait": "presented", "patch": "P", "always": always});
        json!({ "settle_with_patch": patch })
    };
    let rows = [
        (approved(Vec::new(), None), settles(json!("approve"))),
        (approved(keys.clone(), None), settles(json!("always"))),
        (approved(Vec::new(), theirs()), patched(false)),
        (approved(keys, theirs()), patched(true)),
        (denied(Then::Continue), deny("continue")),
        (denied(Then::EndTurn), deny("end_turn")),
    ];
    for (answer, want) in rows {
        let lines = last_lines(vec![Event::WaitSettled { wait: wait(1), answer, by: who() }]);
        let line: Value = serde_json::from_str(&lines.lines[0]).unwrap();
        let ask = Agentloop.decode(&line["message_data"].to_string(), &client()).unwrap();
        assert_eq!(asked::told(&ask.ask), want, "{line}");
    }
}

#[test]
fn a_missing_file_is_damage_that_is_told() {
    let text = "x".repeat(LONG_BYTES);
    let lines = last_lines(vec![queued(&text)]);
    match read_line(&lines.lines[0], &|_| None) {
        Line::Damaged { seq: Some(Seq(1)), why } => assert!(why.contains("missing"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_one_client_was_told_is_never_replayed() {
    let complaint = Complaint::new("Invalid message format", "payload: no", "bad_payload");
    let (at, last) = (Timestamp(1_736_426_096_789), Seq(7));
    let line = audit_line(&session(), at, last, &Reply::Complaint(complaint));
    assert_eq!(read_line(&line, &|_| None), Line::Audit);
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["audit"], true);
    assert_eq!(line["seq"], 7);
    assert_eq!(line["event_type"], "websocket_message_sent");
    assert_eq!(line["timestamp"], "2025-01-09T12:34:56.789Z");
    assert_eq!(line["message_data"]["payload"]["details"]["code"], "bad_payload");
}
