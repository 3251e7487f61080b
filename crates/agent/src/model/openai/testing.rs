//! What the tests of both interfaces share: prompts made of parts, golden files, and what holds
//! for the chunks of every answer. `POLYLOOP_BLESS=1` rewrites the files; read them then.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use polyloop_session::event::Purpose;
use polyloop_session::history::{AssistantPart, Message, Prompt};
use polyloop_session::item::{ItemKind, Opaque, Part};
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::api::Api;
use crate::model::json::Object;
use crate::model::sse::{Event, Parser};
use crate::model::table::Card;
use crate::model::{Chunk, Request};
use crate::tool::ToolSpec;

pub const MODEL: &str = "test-model";

pub fn card() -> Card {
    Card {
        tokens_max: 400_000,
        output_tokens_max: 128_000,
        price: None,
        images: true,
        reasoning: true,
        native_shell: false,
    }
}

pub fn tools() -> Arc<[ToolSpec]> {
    let schema = |name: &str| {
        serde_json::json!({
            "type": "object",
            "properties": { name: { "type": "string" } },
            "required": [name],
        })
    };
    let bash =
        ToolSpec { name: "bash", description: "Runs a script.", parameters: schema("command") };
    let patch =
        ToolSpec { name: "apply_patch", description: "Patches.", parameters: schema("patch") };
    [bash, patch].into()
}

pub fn request(messages: Vec<Message>) -> Request {
    let prompt = Prompt { purpose: Purpose::Think, messages };
    Request { prompt, instructions: "You are a careful agent.".into(), tools: tools() }
}

pub fn text(text: &str) -> Part {
    Part::Text { text: text.into() }
}

pub fn image() -> Part {
    Part::Image { media_type: "image/png".into(), data: "iVBORw0KGgo=".into() }
}

pub fn user(said: &str) -> Message {
    Message::User(vec![text(said)])
}

pub fn opaque(provider: &str, json: &str) -> Option<Opaque> {
    Some(Opaque { provider: provider.into(), json: json.into() })
}

pub fn says(text: &str, opaque: Option<Opaque>) -> AssistantPart {
    AssistantPart::Text { text: text.into(), opaque }
}

pub fn thinks(text: &str, opaque: Option<Opaque>) -> AssistantPart {
    AssistantPart::Reasoning { text: text.into(), opaque }
}

pub fn calls(call_ref: &str, name: &str, args: &str, opaque: Option<Opaque>) -> AssistantPart {
    let (call_ref, name, args) = (call_ref.into(), name.into(), args.into());
    AssistantPart::ToolCall { call_ref, name, args, opaque }
}

pub fn result(call_ref: &str, name: &str, output: &str, is_error: bool) -> Message {
    let (call_ref, name, output) = (call_ref.into(), name.into(), output.into());
    Message::ToolResult { call_ref, name, output, is_error }
}

/// Reads an answer whole: the events of these bytes, and the stream's end.
pub fn answer(api: &dyn Api, stream: &[u8]) -> Vec<Chunk> {
    chunks(api, &events(&[stream]))
}

pub fn events(pieces: &[&[u8]]) -> Vec<Event> {
    let mut parser = Parser::new();
    pieces.iter().flat_map(|piece| parser.push(piece).unwrap()).collect()
}

pub fn chunks(api: &dyn Api, events: &[Event]) -> Vec<Chunk> {
    let mut decoder = api.decoder();
    let mut chunks: Vec<Chunk> = events.iter().flat_map(|event| decoder.event(event)).collect();
    chunks.extend(decoder.end());
    holds(api, &chunks);
    chunks
}

/// What whoever reads chunks relies on.
fn holds(api: &dyn Api, chunks: &[Chunk]) {
    let mut open: Vec<(ItemKind, bool)> = Vec::new();
    for (at, chunk) in chunks.iter().enumerate() {
        let last = at + 1 == chunks.len();
        let grows = |block: &u32, text: &str, calls: bool| {
            let (kind, is_open) = &open[*block as usize];
            assert!(is_open, "block {block} has ended: {chunk:?}");
            assert_eq!(matches!(kind, ItemKind::ToolCall { .. }), calls, "{chunk:?}");
            assert!(!text.is_empty(), "{chunk:?}");
        };
        match chunk {
            Chunk::Started { block, kind } => {
                assert_eq!(*block as usize, open.len(), "{chunk:?}");
                open.push((kind.clone(), true));
            }
            Chunk::Text { block, text } => grows(block, text, false),
            Chunk::Args { block, text } => grows(block, text, true),
            Chunk::Ended { block, opaque } => {
                assert!(std::mem::take(&mut open[*block as usize].1), "ended twice: {chunk:?}");
                if let Some(Opaque { provider, json }) = opaque {
                    assert_eq!(&**provider, api.name());
                    assert!(Object::read(json).is_some(), "{chunk:?}");
                }
            }
            Chunk::Raw { provider, json } => {
                assert_eq!(&**provider, api.name());
                assert!(serde_json::from_str::<&RawValue>(json).is_ok(), "{chunk:?}");
            }
            Chunk::Usage(_) => {}
            Chunk::Failed(failure) => {
                assert!(last, "more after {chunk:?}");
                assert!(!failure.fault.code.is_empty() && !failure.fault.message.is_empty());
            }
            Chunk::Done(_) => {
                assert!(last, "more after {chunk:?}");
                assert!(open.iter().all(|(_, is_open)| !is_open), "blocks are open: {chunks:?}");
            }
        }
    }
}

pub struct Golden(PathBuf);

impl Golden {
    pub fn new(name: &str) -> Golden {
        Golden(Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/models").join(name))
    }

    /// The answers, by name.
    pub fn answers(&self) -> Vec<(String, Vec<u8>)> {
        let mut found: Vec<(String, Vec<u8>)> = Vec::new();
        for file in std::fs::read_dir(self.0.join("answers")).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "sse") {
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                found.push((name, std::fs::read(path).unwrap()));
            }
        }
        found.sort();
        found
    }

    pub fn answer(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join("answers").join(format!("{name}.sse"))).unwrap()
    }

    pub fn compare(&self, file: &str, actual: &str) {
        let path = self.0.join(file);
        if std::env::var_os("POLYLOOP_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            return std::fs::write(path, actual).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(expected == actual, "{} is not:\n{actual}", path.display());
    }

    pub fn check_request(&self, api: &dyn Api, name: &str, request: &Request, card: &Card) {
        let body = String::from_utf8(api.encode(request, MODEL, card)).unwrap();
        self.compare(&format!("requests/{name}.json"), &pretty(&body));
    }

    pub fn check_answers(&self, api: &dyn Api) {
        let answers = self.answers();
        assert!(answers.len() >= 6);
        for (name, stream) in answers {
            let chunks = answer(api, &stream);
            let lines: String = chunks.iter().map(|chunk| format!("{chunk:?}\n")).collect();
            self.compare(&format!("answers/{name}.chunks"), &lines);
        }
    }

    /// Where the bytes of a stream are split makes no difference.
    pub fn check_splits(&self, api: &dyn Api) {
        for (name, stream) in self.answers() {
            let whole = events(&[&stream]);
            for at in 0..stream.len() {
                let (head, tail) = stream.split_at(at);
                assert!(events(&[head, tail]) == whole, "{name} at {at}");
            }
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            assert_eq!(chunks(api, &events(&bytes)), chunks(api, &whole), "{name}");
        }
    }
}

/// JSON in lines, with its fields in their own order.
fn pretty(json: &str) -> String {
    let mut out = String::new();
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let mut before = ' ';
    for c in json.chars() {
        let line = |depth: usize| format!("\n{}", "  ".repeat(depth));
        match c {
            _ if quoted => {}
            ' ' => continue,
            '}' | ']' => {
                depth -= 1;
                out.push_str(&if matches!(before, '{' | '[') {
                    String::new()
                } else {
                    line(depth)
                });
            }
            _ if matches!(before, '{' | '[' | ',') => out.push_str(&line(depth)),
            _ => {}
        }
        out.push(c);
        match c {
            '"' if !escaped => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            ':' if !quoted => out.push(' '),
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
        before = if quoted { '"' } else { c };
    }
    out.push('\n');
    out
}

/// Any JSON, with names and words that mean something here more often than not.
pub fn any_json(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let word = proptest::sample::select(words);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..3_u8).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        let name = prop_oneof![6 => word.clone().prop_map(str::to_owned), 1 => ".{0,4}"];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name, inner, 0..7)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A change to a stream of events.
#[derive(Clone, Debug)]
pub enum Change {
    Drop(usize),
    Repeat(usize),
    Swap(usize, usize),
    /// Goes down into an event by these steps and puts something else there, or nothing.
    Put {
        event: usize,
        path: Vec<usize>,
        value: Option<Value>,
    },
    Cut {
        event: usize,
        bytes: usize,
    },
}

pub fn any_change(words: &'static [&'static str]) -> impl Strategy<Value = Change> {
    let at = 0..1_000_usize;
    let path = proptest::collection::vec(at.clone(), 1..6);
    let value = proptest::option::of(any_json(words));
    let put = (at.clone(), path, value);
    prop_oneof![
        1 => at.clone().prop_map(Change::Drop),
        1 => at.clone().prop_map(Change::Repeat),
        1 => (at.clone(), at.clone()).prop_map(|(one, two)| Change::Swap(one, two)),
        8 => put.prop_map(|(event, path, value)| Change::Put { event, path, value }),
        1 => (at.clone(), at).prop_map(|(event, bytes)| Change::Cut { event, bytes }),
    ]
}

pub fn change(events: &mut Vec<Event>, change: Change) {
    let Some(count) = std::num::NonZeroUsize::new(events.len()) else { return };
    match change {
        Change::Drop(at) => {
            events.remove(at % count);
        }
        Change::Repeat(at) => events.insert(at % count, events[at % count].clone()),
        Change::Swap(one, two) => events.swap(one % count, two % count),
        Change::Put { event, path, value } => {
            let data = &mut events[event % count].data;
            if let Ok(mut json) = serde_json::from_slice(data) {
                put(&mut json, &path, value);
                *data = json.to_string().into_bytes();
            }
        }
        Change::Cut { event, bytes } => events[event % count].data.truncate(bytes),
    }
}

fn put(json: &mut Value, path: &[usize], value: Option<Value>) {
    let Some((step, rest)) = path.split_first() else { return };
    let count = match json {
        Value::Object(map) => map.len(),
        Value::Array(list) => list.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    if count == 0 || (rest.is_empty() && value.is_some()) {
        *json = value.unwrap_or_default();
        return;
    }
    match json {
        Value::Object(map) => {
            let name = map.keys().nth(step % count).unwrap().clone();
            match (rest.is_empty(), map.get_mut(&name)) {
                (false, Some(inner)) => put(inner, rest, value),
                _ => drop(map.remove(&name)),
            }
        }
        Value::Array(list) if rest.is_empty() => drop(list.remove(step % count)),
        Value::Array(list) => put(&mut list[step % count], rest, value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
