//! Each scenario against its files.

use std::collections::BTreeMap;

use polyloop_dialects::agentloop::Agentloop;
use polyloop_dialects::agentloop::file::FileEncoder;
use polyloop_dialects::{Ask, Client, Complaint, Cursor, Dialect};
use polyloop_session::budget::Budget;
use polyloop_session::context::{Overhead, Strategy, WindowSize};
use polyloop_session::strategy::bounds::Bounds;
use polyloop_session::{Command, Event, Limits, Next, State, WaitRef, decide, next, recover};
use serde_json::Value;

use super::asked;
use super::compare::{self, Ids};
use super::fixture::{Scenario, Step, scenarios};
use super::make::{client_of, wait};
use super::speaks;
use super::world::{Moment, Sent, sent, session, values};

pub const LIMITS: Limits = Limits {
    queued_messages_max: 10,
    tokens_max: 128_000,
    window: WindowSize::Known,
    strategy: Strategy::Threshold,
    bypass_allowed: false,
    retries_max: 4,
    compact_at: 800,
    overhead: Overhead { instructions: 0, tools: 0 },
    budget: Budget { cost_micros_max: None, tokens_max: None },
    bounds: Bounds::DEFAULT,
};

fn each(check: impl Fn(&Scenario) -> Result<(), String>) {
    let broken: Vec<String> = scenarios()
        .iter()
        .filter_map(|one| check(one).err().map(|told| format!("{}: {told}", one.name)))
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The named ids of a scenario in a dialect, whose frames must be as written.
fn rendered(scenario: &Scenario, dialect: &dyn Dialect) -> Result<Ids, String> {
    let file = format!("{}.out.jsonl", dialect.name());
    let want = scenario.lines(&file).ok_or(format!("it has no {file}"))?;
    let got = values(&sent(dialect, &scenario.updates(scenario.steps.len())).concat());
    let mut ids = Ids::default();
    compare::frames(&want, &got, &mut ids).map_err(|told| format!("{file}: {told}"))?;
    Ok(ids)
}

#[test]
fn every_log_renders_as_written_in_every_dialect() {
    each(|scenario| {
        let all = speaks::all().iter().map(|dialect| rendered(scenario, *dialect));
        let broken: Vec<String> = all.filter_map(Result::err).collect();
        ensure!(broken.is_empty(), "{}", broken.join("\n"));
        Ok(())
    });
}

#[test]
fn equal_input_gives_equal_frames() {
    each(|scenario| {
        let updates = scenario.updates(scenario.steps.len());
        for dialect in speaks::all() {
            let same = sent(*dialect, &updates) == sent(*dialect, &updates);
            ensure!(same, "two views of it differ in {}", dialect.name());
        }
        Ok(())
    });
}

#[test]
fn attaching_gives_what_is_written() {
    for dialect in speaks::all() {
        let mut attached = 0;
        for scenario in scenarios() {
            let mut ids = rendered(&scenario, *dialect).unwrap_or_default();
            let file = format!("{}.attach.jsonl", dialect.name());
            for line in scenario.lines(&file).unwrap_or_default() {
                let lines = line["after_lines"].as_u64().unwrap() as usize;
                let since = line["since"].as_str().map(|text| Cursor::parse(text).unwrap());
                let moment = Moment::after(&scenario.updates(lines));
                let got = values(&moment.attach(*dialect, since.as_ref()));
                let place = format!("{}/{file} after {lines} since {since:?}", scenario.name);
                compare::frames(line["frames"].as_array().unwrap(), &got, &mut ids)
                    .unwrap_or_else(|told| panic!("{place}: {told}"));
                attached += 1;
            }
        }
        assert!(attached >= 30, "only {attached} were tried in {}", dialect.name());
    }
}

#[test]
fn every_client_frame_means_what_is_written() {
    for dialect in speaks::all() {
        let mut cases = 0;
        for scenario in scenarios() {
            let ids = rendered(&scenario, *dialect).unwrap_or_default();
            let file = format!("{}.in.jsonl", dialect.name());
            for line in scenario.lines(&file).unwrap_or_default() {
                asks(&scenario, *dialect, &line, &ids)
                    .unwrap_or_else(|told| panic!("{}/{file}: {told}\n  {line}", scenario.name));
                cases += 1;
            }
        }
        assert!(cases >= 15, "only {cases} were tried in {}", dialect.name());
    }
}

fn asks(scenario: &Scenario, dialect: &dyn Dialect, line: &Value, ids: &Ids) -> Result<(), String> {
    let mut frame = line["frame"].clone();
    ids.fill(&mut frame)?;
    let text = frame.as_str().map_or_else(|| frame.to_string(), str::to_string);
    let shown = line["shown"].as_u64().map(wait);
    let mut client = Client { shown, ..client_of(dialect) };
    client.who.name = line["name"].as_str().map(Into::into);
    let asked = match (dialect.decode(&text, &client), line["complaint"].as_str()) {
        (Err(Complaint { code, .. }), Some(want)) if code == want => return Ok(()),
        (Ok(ask), None) => ask,
        (got, want) => return Err(format!("gives {got:?}, not complaint {want:?}")),
    };
    let told = asked::told(&asked.ask);
    ensure!(told == line["ask"], "asks for {told}");
    let named = asked.session.as_ref().map(|id| id.as_str());
    ensure!(named == line["session"].as_str(), "of the session {named:?}");
    let by = asked::by(&asked.ask);
    ensure!(by.is_none_or(|by| *by == client.who), "asked by {by:?}");
    let Some(after) = line["after"].as_u64() else { return Ok(()) };
    let log = scenario.entries();
    let (past, coming) = log.split_at(after as usize);
    let mut state = State::default();
    past.iter().for_each(|entry| state.apply(entry));
    let command = asked::command(asked.ask, &log).ok_or("it is no command")?;
    match (decide(&state, command, &LIMITS), line["refused"].as_str()) {
        (Err(refusal), Some(want)) if refusal.code() == want => Ok(()),
        (Ok(made), None) => {
            let records = line["records"].as_u64().ok_or("how many entries?")? as usize;
            let coming: Vec<&Event> = coming.iter().take(records).map(|e| &e.event).collect();
            let own = coming.iter().all(|event| is_of(dialect, event));
            let recorded: Vec<&Event> = made.iter().collect();
            let (want, got) = (events(own, &coming), events(own, &recorded));
            ensure!(want == got, "records\n  {got:?}, the log has\n  {want:?}");
            Ok(())
        }
        (got, want) => Err(format!("gives {got:?}, not refusal {want:?}")),
    }
}

/// Events as they are compared: where the log says that a client of another dialect did it, who
/// did it does not matter, because the same is asked for in every dialect.
fn events(own: bool, events: &[&Event]) -> Vec<Value> {
    let mut events: Vec<Value> =
        events.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    if !own {
        events.iter_mut().for_each(anonymous);
    }
    events
}

/// Whether every client that an event names is one of the dialect.
fn is_of(dialect: &dyn Dialect, event: &Event) -> bool {
    let text = serde_json::to_string(event).unwrap();
    let vias = text.matches("\"via\":").count();
    text.matches(&format!("\"via\":\"{}\"", dialect.name())).count() == vias
}

fn anonymous(value: &mut Value) {
    let Some(fields) = value.as_object_mut() else { return };
    for who in ["by", "origin", "client_ref", "run"] {
        fields.remove(who);
    }
    fields.values_mut().for_each(anonymous);
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

/// A frame that asks a person says which wait it presents, and an answer to it finds that wait.
#[test]
fn requests_say_what_they_present() {
    for dialect in speaks::all() {
        let mut presented = 0;
        for scenario in scenarios() {
            let updates = scenario.updates(scenario.steps.len());
            let mut frames: Vec<Sent> = sent(*dialect, &updates).concat();
            let moments = Moment::all(&updates);
            frames.extend(moments.iter().flat_map(|moment| moment.attach(*dialect, None)));
            for frame in frames {
                let name = &scenario.name;
                let asks = speaks::may_ask(*dialect, &frame);
                assert!(asks || frame.presents.is_none(), "{name}: {}", frame.json);
                let Some(wait) = frame.presents else { continue };
                presented += 1;
                let Some(answer) = speaks::yes(*dialect, &frame) else { continue };
                let asked = dialect.decode(&answer.to_string(), &client_of(*dialect)).unwrap();
                let Ask::Command(Command::Settle { wait: found, .. }) = asked.ask else {
                    panic!("{name}: {answer} is {asked:?}");
                };
                let item = moments.iter().find_map(|moment| {
                    moment.state.turn().and_then(|turn| turn.waits.get(&wait)).map(|w| w.item)
                });
                let found = match found {
                    WaitRef::Id(found) => found == wait,
                    WaitRef::Item(about) => Some(about) == item,
                    WaitRef::Presented => false,
                };
                assert!(found, "{name}: {answer} does not answer {}", frame.json);
            }
        }
        assert!(presented >= 10, "only {presented} requests were met in {}", dialect.name());
    }
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
        for frame in sent(&Agentloop, &scenario.updates(scenario.steps.len())).concat() {
            if frame["payload"]["role"] != "assistant" {
                let found = written.get(frame["id"].as_str().unwrap());
                ensure!(
                    found == Some(&frame["payload"]),
                    "{} is in the file as {found:?}",
                    frame.json
                );
            }
        }
        Ok(())
    });
}
