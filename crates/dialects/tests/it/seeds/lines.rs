//! The examples of session files and of the REST interface.

use polyloop_dialects::agentloop::file::{FileEncoder, Line, read_line};
use polyloop_dialects::rest::{SessionInfo, SessionList, Stand};
use polyloop_dialects::time::parse_iso;
use polyloop_session::event::{Adopted, Agent, Outcome};
use polyloop_session::item::{Fault, ItemKind};
use polyloop_session::policy::Effect;
use polyloop_session::wait::Answer;
use polyloop_session::{Event, SessionId};
use serde_json::{Value, json};

use super::super::make::{
    begun, completed, entries, judgement, parts, proposed, queued, settings, started, tool, wait,
    waits, who,
};
use super::super::world::session;
use super::{after, parse};

/// The example is read as another program's line.
pub fn adopts(text: &str, want: Option<Adopted>) {
    let line = parse(text);
    let at = parse_iso(line["timestamp"].as_str().unwrap()).unwrap();
    let read = read_line(&line.to_string(), &|_| None);
    assert_eq!(read, Line::Foreign { at, piece: want });
}

/// The line that we write for the same: the example's fields, with ours added and with ids of
/// our own. `null` and a field that is not there say the same.
fn writes(text: &str, events: Vec<Event>) {
    let mut example = parse(text);
    let (mut encoder, mut lines) = (FileEncoder::new(&session()), Vec::new());
    for mut entry in entries(events) {
        entry.at = parse_iso(example["timestamp"].as_str().unwrap()).unwrap();
        lines.extend(encoder.lines(&entry).lines);
    }
    let like = |line: &Value| {
        let kind = |line: &Value| line["message_data"]["type"].clone();
        kind(line) == kind(&example) && line["event_type"] == example["event_type"]
    };
    let lines: Vec<Value> = lines.iter().map(|line| parse(line)).collect();
    let mut line = lines.into_iter().find(like).expect("such a line");
    for ours in ["seq", "event"] {
        line.as_object_mut().unwrap().remove(ours);
    }
    for value in [&mut line, &mut example] {
        let data = value["message_data"].as_object_mut().unwrap();
        if let Some(id) = data.get_mut("id") {
            assert!(id.is_string());
            *id = "".into();
        }
        if let Some(payload) = data.get_mut("payload").and_then(Value::as_object_mut) {
            payload.remove("id");
            payload.retain(|_, field| !field.is_null());
        }
    }
    assert_eq!(line, example);
}

pub fn line_started(text: &str) {
    adopts(text, None);
    let settings = settings(Default::default());
    writes(text, vec![Event::SessionCreated { settings, by: who() }]);
}

/// The example's input is a bare part; ours stands in a message, as the protocol shows it.
pub fn line_user_input(text: &str) {
    let said = "Hello, can you help me?";
    adopts(text, Some(Adopted::User { content: parts(said) }));
    let mut wrapped = parse(text);
    let content = wrapped["message_data"]["payload"]["input"].take();
    wrapped["message_data"]["payload"]["input"] =
        json!([{"type": "message", "role": "user", "content": content}]);
    writes(&wrapped.to_string(), vec![queued(said)]);
}

pub fn line_response_item(text: &str) {
    let said = "Hello! I'd be happy to help you.";
    adopts(text, Some(Adopted::Agent { text: said.into() }));
    writes(text, after([started(3, ItemKind::Text), completed(4, said, None)]));
}

fn asked_for(command: &[&str]) -> Vec<Event> {
    let judged = judgement(Effect::Execute, command, None);
    after([started(3, tool("bash")), proposed(4, "{}", judged), waits(4)])
}

pub fn line_request(text: &str) {
    adopts(text, None);
    writes(text, asked_for(&["git", "status"]));
}

/// The example has the other document's word for the same decision.
pub fn line_response(text: &str) {
    adopts(text, None);
    let mut events = asked_for(&["git", "status"]);
    let answer =
        Answer::Approved { grants: Vec::new(), instead: None, message: None, always: false };
    events.push(Event::WaitSettled { wait: wait(6), answer, by: who() });
    writes(&text.replace("YES", "yes"), events);
}

pub fn line_loading(text: &str) {
    adopts(text, None);
    writes(text, begun());
}

/// Ours says more than the example's details, and under the protocol's own names.
pub fn line_error(text: &str) {
    adopts(text, None);
    let mut example = parse(text);
    let fault = Fault::new("exit", "Command execution failed");
    example["message_data"]["payload"] = json!({
        "message": "Failed to process user input",
        "details": {"error": "Command execution failed", "code": "exit"},
    });
    let outcome = Outcome::Failed { fault };
    let ended = Event::TurnEnded { outcome, usage: Default::default() };
    writes(&example.to_string(), after([ended]));
}

// REST.

fn info<T>(example: &Value, made: impl FnOnce(SessionInfo<'_>) -> T) -> T {
    let id = SessionId::parse(example["id"].as_str().unwrap()).unwrap();
    let time = |field: &str| parse_iso(example[field].as_str().unwrap()).unwrap();
    let (start, last) = (time("start_time"), time("last_update_time"));
    let lines = example["event_count"].as_u64().unwrap();
    let stand = Stand { closed: false, running: false, waiting: 0, preview: None };
    made(SessionInfo::new(&id, (start, last), lines, &None, Agent::React, None, stand))
}

pub fn rest_list(text: &str) {
    let example = parse(text);
    let mut list = info(&example["sessions"][0], |one| {
        serde_json::to_value(SessionList { sessions: vec![one] }).unwrap()
    });
    without_additions(&mut list["sessions"][0]);
    assert_eq!(list, example);
}

pub fn rest_created(text: &str) {
    let example = parse(text);
    let mut made = info(&example, |one| serde_json::to_value(one).unwrap());
    without_additions(&mut made);
    assert_eq!(made, example);
}

/// Where a session stands is told too.
fn without_additions(info: &mut Value) {
    let info = info.as_object_mut().unwrap();
    for (name, value) in
        [("status", json!("idle")), ("waiting", json!(0)), ("preview", json!(null))]
    {
        assert_eq!(info.remove(name), Some(value), "{name}");
    }
}
