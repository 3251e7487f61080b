//! Each scenario against its files.

use std::collections::BTreeMap;

use polyloop_dialects::agentloop::Agentloop;
use polyloop_dialects::agentloop::file::FileEncoder;
use polyloop_dialects::{Client, Complaint, Cursor, Dialect, Frame, View};
use polyloop_session::context::Strategy;
use polyloop_session::{Event, Limits, Next, State, decide, next, recover};
use serde_json::{Value, json as value};

use super::asked;
use super::compare::{self, Ids};
use super::fixture::{Scenario, Step, scenarios};
use super::make::{client, wait};
use super::world::{Moment, json, sent, session};

const LIMITS: Limits = Limits {
    queued_messages_max: 10,
    tokens_max: 128_000,
    strategy: Strategy::Threshold,
    bypass_allowed: false,
};

fn each(check: impl Fn(&Scenario) -> Result<(), String>) {
    let broken: Vec<String> = scenarios()
        .iter()
        .filter_map(|one| check(one).err().map(|told| format!("{}: {told}", one.name)))
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The named ids of a scenario, which its frames must have.
fn rendered(scenario: &Scenario) -> Result<Ids, String> {
    let want = scenario.lines("agentloop.out.jsonl").ok_or("it has no agentloop.out.jsonl")?;
    let got = sent(&scenario.updates(scenario.steps.len())).concat();
    let mut ids = Ids::default();
    compare::frames(&want, &got, &mut ids)?;
    Ok(ids)
}

#[test]
fn every_log_renders_as_written() {
    each(|scenario| rendered(scenario).map(|_| ()));
}

#[test]
fn equal_input_gives_equal_frames() {
    each(|scenario| {
        let updates = scenario.updates(scenario.steps.len());
        ensure!(sent(&updates) == sent(&updates), "two views of it differ");
        Ok(())
    });
}

#[test]
fn attaching_gives_what_is_written() {
    let mut attached = 0;
    for scenario in scenarios() {
        let mut ids = rendered(&scenario).unwrap_or_default();
        for line in scenario.lines("agentloop.attach.jsonl").unwrap_or_default() {
            let lines = line["after_lines"].as_u64().unwrap() as usize;
            let since = line["since"].as_str().map(|text| Cursor::parse(text).unwrap());
            let moment = Moment::after(&scenario.updates(lines));
            let got = moment.attach(since.as_ref());
            let place = format!("{} after {lines} lines since {since:?}", scenario.name);
            compare::frames(line["frames"].as_array().unwrap(), &got, &mut ids)
                .unwrap_or_else(|told| panic!("{place}: {told}"));
            attached += 1;
        }
    }
    assert!(attached >= 40, "only {attached} were tried");
}

#[test]
fn every_client_frame_means_what_is_written() {
    let mut cases = 0;
    for scenario in scenarios() {
        let ids = rendered(&scenario).unwrap_or_default();
        for line in scenario.lines("agentloop.in.jsonl").unwrap_or_default() {
            asks(&scenario, &line, &ids)
                .unwrap_or_else(|told| panic!("{}: {told}\n  {line}", scenario.name));
            cases += 1;
        }
    }
    assert!(cases >= 50, "only {cases} were tried");
}

fn asks(scenario: &Scenario, line: &Value, ids: &Ids) -> Result<(), String> {
    let mut frame = line["frame"].clone();
    if let Some(Value::String(id)) = frame.pointer_mut("/payload/requestId")
        && let Some(name) = id.strip_prefix('$')
    {
        *id = ids.get(name).ok_or(format!("no request was called ${name}"))?.to_string();
    }
    let text = frame.as_str().map_or_else(|| frame.to_string(), str::to_string);
    let shown = line["shown"].as_u64().map(wait);
    let client = Client { shown, ..client() };
    let ask = match (Agentloop.decode(&text, &client), line["complaint"].as_str()) {
        (Err(Complaint { code, .. }), Some(want)) if code == want => return Ok(()),
        (Ok(ask), None) => ask,
        (got, want) => return Err(format!("gives {got:?}, not complaint {want:?}")),
    };
    let told = asked::told(&ask);
    ensure!(told == line["ask"], "asks for {told}");
    let by = asked::by(&ask);
    ensure!(by.is_none_or(|by| *by == client.who), "asked by {by:?}");
    let Some(after) = line["after"].as_u64() else { return Ok(()) };
    let log = scenario.entries();
    let (past, coming) = log.split_at(after as usize);
    let mut state = State::default();
    past.iter().for_each(|entry| state.apply(entry));
    let command = asked::command(ask, &log).ok_or("it is no command")?;
    match (decide(&state, command, &LIMITS), line["refused"].as_str()) {
        (Err(refusal), Some(want)) if refusal.code() == want => Ok(()),
        (Ok(events), None) => {
            let records = line["records"].as_u64().ok_or("how many entries?")? as usize;
            let want: Vec<&Event> = coming.iter().take(records).map(|e| &e.event).collect();
            let got: Vec<&Event> = events.iter().collect();
            ensure!(want == got, "records\n  {got:?}, the log has\n  {want:?}");
            Ok(())
        }
        (got, want) => Err(format!("gives {got:?}, not refusal {want:?}")),
    }
}

#[test]
fn every_log_is_one_that_a_session_records() {
    each(|scenario| {
        let (mut moment, mut crashed) = (Moment::default(), false);
        let mut steps = scenario.steps.iter().enumerate().peekable();
        while let Some((at, step)) = steps.next() {
            match step {
                Step::Unreachable => return Ok(()),
                Step::Crash => crashed = true,
                Step::Grew(growth) => {
                    let have = moment.live.len(growth.item, growth.stream);
                    ensure!(growth.offset == have, "line {}: {have} bytes came before", at + 1);
                }
                Step::Logged(_) => {}
            }
            scenario.updates(at + 1)[scenario.updates(at).len()..]
                .iter()
                .for_each(|update| moment.take(update));
            let at_rest = match (step, steps.peek()) {
                (Step::Logged(this), Some((_, Step::Logged(next)))) => this.at != next.at,
                _ => true,
            };
            if at_rest {
                follows(&scenario.steps[at + 1..], &moment, crashed)?;
                crashed = false;
            }
        }
        Ok(())
    });
}

/// Where the session itself says what is recorded next, the log says the same.
fn follows(steps: &[Step], moment: &Moment, crashed: bool) -> Result<(), String> {
    let coming: Vec<&Event> = steps.iter().map_while(logged).collect();
    if coming.is_empty() {
        return Ok(());
    }
    let want = match crashed {
        true => recover(&moment.state, &moment.live),
        false => match next(&moment.state, &LIMITS) {
            Next::Record(events) => events,
            Next::Steps(_) => return Ok(()),
        },
    };
    let got = &coming[..want.len().min(coming.len())];
    let seq = moment.state.last_seq();
    ensure!(want.iter().eq(got.iter().copied()), "after {seq} comes {want:?},\n  not {got:?}");
    Ok(())
}

fn logged(step: &Step) -> Option<&Event> {
    match step {
        Step::Logged(entry) => Some(&entry.event),
        _ => None,
    }
}

#[test]
fn files_hold_what_is_written() {
    let mut files = 0;
    each(|scenario| {
        let Some(want) = scenario.lines("agentloop.file.jsonl") else { return Ok(()) };
        let mut encoder = FileEncoder::new(&session());
        let lines =
            scenario.entries().iter().flat_map(|entry| encoder.lines(entry).lines).collect();
        let lines: Vec<String> = lines;
        let got: Vec<Value> =
            lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (wanted, written) = (want.len(), got.len());
        ensure!(wanted == written, "{wanted} lines are wanted, {written} are written");
        let mut ids = Ids::default();
        for (want, got) in want.iter().zip(&got) {
            let ((want, want_data), (got, got_data)) = (parted(want), parted(got));
            ensure!(want == got, "not the same\n  wanted {want}\n  got    {got}");
            compare::frame(&want_data, &got_data, &mut ids)?;
        }
        Ok(())
    });
    for scenario in scenarios() {
        files += usize::from(scenario.lines("agentloop.file.jsonl").is_some());
    }
    assert!(files >= 3, "only {files} scenarios say what their file holds");
}

/// A line and its message, which has an id of its own.
fn parted(line: &Value) -> (Value, Value) {
    let mut line = line.clone();
    let data = line.as_object_mut().and_then(|fields| fields.remove("message_data"));
    (line, data.unwrap_or_else(|| panic!("a line without message_data")))
}

/// A frame that asks a person says which wait it presents, and its id names the same one.
#[test]
fn requests_say_what_they_present() {
    let mut presented = 0;
    for scenario in scenarios() {
        let updates = scenario.updates(scenario.steps.len());
        let mut view = View::new(&Agentloop, &session(), polyloop_session::Seq::NONE);
        let mut frames: Vec<Frame> = updates.iter().flat_map(|update| view.see(update)).collect();
        frames.extend(Moment::all(&updates).iter().flat_map(|moment| moment.frames(None)));
        for frame in frames {
            let (sent, name) = (json(&frame), &scenario.name);
            let asks = sent["type"] == "approval_request";
            assert_eq!(frame.presents.is_some(), asks, "{name}: {sent}");
            let Some(wait) = frame.presents else { continue };
            let answer = value!({"id": "1", "type": "approval_response", "payload":
                {"review": "yes", "requestId": sent["id"]}});
            let ask = Agentloop.decode(&answer.to_string(), &client()).unwrap();
            let want = value!({"settle": {"wait": wait, "reply": "approve"}});
            assert_eq!(asked::told(&ask), want, "{name}: {sent}");
            presented += 1;
        }
    }
    assert!(presented >= 50, "only {presented} requests were met");
}

/// What was sent as a message of its own has the same id in the file, so that people can find it.
#[test]
fn a_file_names_messages_as_clients_know_them() {
    each(|scenario| {
        let mut encoder = FileEncoder::new(&session());
        let mut written: BTreeMap<String, Value> = BTreeMap::new();
        for line in scenario.entries().iter().flat_map(|entry| encoder.lines(entry).lines) {
            let line: Value = serde_json::from_str(&line).unwrap();
            let data = &line["message_data"];
            if let Some(id) = data["id"].as_str() {
                written.insert(id.to_string(), data["payload"].clone());
            }
        }
        for frame in sent(&scenario.updates(scenario.steps.len())).concat() {
            if frame["payload"]["role"] != "assistant" {
                let found = written.get(frame["id"].as_str().unwrap());
                ensure!(found == Some(&frame["payload"]), "{frame} is in the file as {found:?}");
            }
        }
        Ok(())
    });
}
