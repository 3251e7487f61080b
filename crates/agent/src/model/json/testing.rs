//! What the tests of interfaces share: prompts, golden files, and what holds for the chunks of any
//! answer. `POLYLOOP_BLESS=1` writes the golden files anew; read them then.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polyloop_session::event::Purpose;
use polyloop_session::history::{AssistantPart, Message, Prompt};
use polyloop_session::item::{ItemKind, Opaque, Part};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::model::api::Api;
use crate::model::sse::{Event, Parser};
use crate::model::table::Card;
use crate::model::{Chunk, Request};
use crate::tool::ToolSpec;

pub fn card() -> Card {
    Card {
        tokens_max: 200_000,
        output_tokens_max: 64_000,
        price: None,
        images: true,
        reasoning: true,
        native_shell: false,
    }
}

pub fn tools() -> Arc<[ToolSpec]> {
    let schema = |field: &str| {
        let properties = json!({field: {"type": "string"}});
        json!({"type": "object", "properties": properties, "required": [field]})
    };
    let spec = |name, description, field| ToolSpec { name, description, parameters: schema(field) };
    let bash = spec("bash", "Runs a command.", "command");
    Arc::new([bash, spec("apply_patch", "Changes files.", "patch")])
}

pub fn request(messages: Vec<Message>) -> Request {
    let prompt = Prompt { purpose: Purpose::Think, messages };
    Request { prompt, instructions: "You help with code.".into(), tools: tools() }
}

pub fn user(text: &str) -> Message {
    Message::User(vec![Part::Text { text: text.into() }])
}

pub fn says(text: &str) -> AssistantPart {
    AssistantPart::Text { text: text.into(), opaque: None }
}

pub fn thought(text: &str, opaque: Option<Opaque>) -> AssistantPart {
    AssistantPart::Reasoning { text: text.into(), opaque }
}

pub fn call(call_ref: &str, name: &str, args: &str, opaque: Option<Opaque>) -> AssistantPart {
    let (call_ref, name, args) = (call_ref.into(), name.into(), args.into());
    AssistantPart::ToolCall { call_ref, name, args, opaque }
}

pub fn result(call_ref: &str, name: &str, output: &str, is_error: bool) -> Message {
    let (call_ref, name, output) = (call_ref.into(), name.into(), output.into());
    Message::ToolResult { call_ref, name, output, is_error }
}

pub fn opaque(provider: &str, json: &str) -> Option<Opaque> {
    Some(Opaque { provider: provider.into(), json: json.into() })
}

/// What an answer becomes in the session: the parts of a message, and a result for each call.
pub fn history(chunks: &[Chunk]) -> Vec<Message> {
    let mut parts: BTreeMap<u32, AssistantPart> = BTreeMap::new();
    let mut results = Vec::new();
    let grow = |text: &mut Arc<str>, more: &str| *text = format!("{text}{more}").into();
    for chunk in chunks {
        match chunk {
            Chunk::Started { block, kind } => {
                let (text, opaque) = ("".into(), None);
                let part = match kind.clone() {
                    ItemKind::Text => AssistantPart::Text { text, opaque },
                    ItemKind::Reasoning => AssistantPart::Reasoning { text, opaque },
                    ItemKind::ToolCall { name, call_ref, .. } => {
                        let made = format!("made-{block}").into();
                        let call_ref = if call_ref.is_empty() { made } else { call_ref };
                        results.push(result(&call_ref, &name, "done", false));
                        AssistantPart::ToolCall { call_ref, name, args: text, opaque }
                    }
                };
                parts.insert(*block, part);
            }
            Chunk::Text { block, text: more } | Chunk::Args { block, text: more } => {
                match parts.get_mut(block).unwrap() {
                    AssistantPart::Text { text, .. }
                    | AssistantPart::Reasoning { text, .. }
                    | AssistantPart::ToolCall { args: text, .. } => grow(text, more),
                }
            }
            Chunk::Ended { block, opaque: kept } => match parts.get_mut(block).unwrap() {
                AssistantPart::Text { opaque, .. }
                | AssistantPart::Reasoning { opaque, .. }
                | AssistantPart::ToolCall { opaque, .. } => opaque.clone_from(kept),
            },
            Chunk::Usage(_) | Chunk::Raw { .. } | Chunk::Done(_) | Chunk::Failed(_) => {}
        }
    }
    let mut messages = vec![Message::Assistant(parts.into_values().collect())];
    messages.extend(results);
    messages
}

pub fn events(bytes: &[u8]) -> Vec<Event> {
    Parser::new().push(bytes).unwrap()
}

pub fn chunks(api: &dyn Api, events: &[Event]) -> Vec<Chunk> {
    let mut decoder = api.decoder();
    let mut chunks: Vec<Chunk> = events.iter().flat_map(|event| decoder.event(event)).collect();
    chunks.extend(decoder.end());
    holds(api, &chunks);
    chunks
}

/// What whoever reads chunks relies on, whatever the provider sent.
pub fn holds(api: &dyn Api, chunks: &[Chunk]) {
    let mut open: BTreeMap<u32, bool> = BTreeMap::new();
    let mut begun = 0;
    for (at, chunk) in chunks.iter().enumerate() {
        let is_last = at + 1 == chunks.len();
        match chunk {
            Chunk::Started { block, kind } => {
                assert_eq!(*block, begun, "blocks are counted in order");
                open.insert(*block, matches!(kind, ItemKind::ToolCall { .. }));
                begun += 1;
            }
            Chunk::Text { block, text } => {
                assert!(open.get(block) == Some(&false) && !text.is_empty(), "{chunk:?}");
            }
            Chunk::Args { block, text } => {
                assert!(open.get(block) == Some(&true) && !text.is_empty(), "{chunk:?}");
            }
            Chunk::Ended { block, opaque } => {
                assert!(open.remove(block).is_some(), "{chunk:?}");
                let kept = opaque.iter().map(|opaque| (&opaque.provider, &opaque.json));
                kept.for_each(|(provider, json)| is_own(api, provider, json));
            }
            Chunk::Raw { provider, json } => is_own(api, provider, json),
            Chunk::Usage(usage) => assert_eq!(usage.cost_micros, None),
            Chunk::Done(_) => assert!(is_last && open.is_empty(), "{chunks:?}"),
            Chunk::Failed(_) => assert!(is_last, "{chunks:?}"),
        }
    }
}

fn is_own(api: &dyn Api, provider: &str, json: &str) {
    assert_eq!(provider, api.name());
    assert!(serde_json::from_str::<&serde_json::value::RawValue>(json).is_ok(), "{json}");
}

/// The golden files of one interface.
pub struct Golden(PathBuf);

impl Golden {
    pub fn new(name: &str) -> Golden {
        Golden(Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/models").join(name))
    }

    fn check(&self, file: &str, actual: &str) {
        let path = self.0.join(file);
        if std::env::var_os("POLYLOOP_BLESS").is_some() {
            std::fs::write(&path, actual).unwrap();
        }
        let wanted = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(wanted, actual, "{}", path.display());
    }

    pub fn check_request(&self, api: &dyn Api, name: &str, request: &Request, model: &str) {
        let body = String::from_utf8(api.encode(request, model, &card())).unwrap();
        assert!(serde_json::from_str::<Value>(&body).is_ok());
        self.check(&format!("requests/{name}.json"), &pretty(&body));
    }

    /// Every answer, with its name and bytes.
    pub fn answers(&self) -> Vec<(String, Vec<u8>)> {
        let files = std::fs::read_dir(self.0.join("answers")).unwrap();
        let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|kind| kind == "sse"));
        paths.sort();
        let name = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        paths.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
    }

    pub fn check_answers(&self, api: &dyn Api) {
        for (name, bytes) in self.answers() {
            let chunks = chunks(api, &events(&bytes));
            let lines: String = chunks.iter().map(|chunk| format!("{chunk:?}\n")).collect();
            self.check(&format!("answers/{name}.chunks"), &lines);
        }
    }

    /// What goes back of every answer that ended well.
    pub fn check_ways_back(&self, api: &dyn Api, model: &str) {
        for (name, bytes) in self.answers() {
            let chunks = chunks(api, &events(&bytes));
            if !matches!(chunks.last(), Some(Chunk::Done(_))) {
                continue;
            }
            let mut messages = vec![user("Go.")];
            messages.extend(history(&chunks));
            self.check_request(api, &format!("back-{name}"), &request(messages), model);
        }
    }

    /// Where a stream is cut into pieces makes no difference.
    pub fn check_splits(&self, api: &dyn Api) {
        for (name, bytes) in self.answers() {
            let whole = events(&bytes);
            let wanted = chunks(api, &whole);
            let pieces = |cuts: &[usize]| {
                let (mut parser, mut events, mut from) = (Parser::new(), Vec::new(), 0);
                for cut in cuts.iter().copied().chain([bytes.len()]) {
                    events.extend(parser.push(&bytes[from..cut]).unwrap());
                    from = cut;
                }
                events
            };
            for at in 0..=bytes.len() {
                assert_eq!(pieces(&[at]), whole, "{name} at {at}");
            }
            let single: Vec<usize> = (0..bytes.len()).collect();
            assert_eq!(chunks(api, &pieces(&single)), wanted, "{name}");
        }
    }
}

/// JSON for people, its fields in their order and its numbers as they are.
fn pretty(json: &str) -> String {
    let (mut out, mut depth, mut quoted, mut escaped) = (String::new(), 0_usize, false, false);
    let mut rest = json.chars().peekable();
    while let Some(c) = rest.next() {
        let line = |depth: usize| format!("\n{}", "  ".repeat(depth));
        let closes = |next: Option<&char>| matches!(next, Some('}' | ']'));
        match c {
            _ if quoted => out.push(c),
            '{' | '[' if closes(rest.peek()) => out.extend([c, rest.next().unwrap()]),
            '{' | '[' => {
                depth += 1;
                out.push(c);
                out.push_str(&line(depth));
            }
            '}' | ']' => {
                depth -= 1;
                out.push_str(&line(depth));
                out.push(c);
            }
            ',' => out.push_str(&format!(",{}", line(depth))),
            ':' => out.push_str(": "),
            _ => out.push(c),
        }
        if c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = quoted && c == '\\' && !escaped;
    }
    out.push('\n');
    out
}

/// Any JSON, with the words that mean something here in it.
pub fn any_json(words: &'static [&'static str]) -> impl Strategy<Value = Value> + Clone {
    let word = prop_oneof![
        4 => proptest::sample::select(words).prop_map(str::to_owned),
        1 => ".{0,6}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0_u64..4).prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let field = (word.clone(), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            prop::collection::vec(field, 0..6)
                .prop_map(|all| Value::Object(all.into_iter().collect())),
        ]
    })
}

/// A stream that was good once: one place in one event is changed, or events are left out, doubled
/// or swapped.
pub fn changed(mut events: Vec<Event>, how: (u8, usize, usize), value: &Value) -> Vec<Event> {
    let (kind, one, two) = how;
    let count = events.len();
    match kind % 4 {
        0 => drop(events.remove(one % count)),
        1 => events.insert(one % count, events[two % count].clone()),
        2 => events.swap(one % count, two % count),
        _ => {
            let data = &mut events[one % count].data;
            if let Ok(mut json) = serde_json::from_slice::<Value>(data) {
                let places = places(&json);
                *json.pointer_mut(&places[two % places.len()]).unwrap() = value.clone();
                *data = json.to_string().into_bytes();
            }
        }
    }
    events
}

/// Pointers to everything in a value, itself first.
fn places(value: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let escape = |name: &str| name.replace('~', "~0").replace('/', "~1");
    let inner: Vec<(String, &Value)> = match value {
        Value::Array(list) => list.iter().enumerate().map(|(n, v)| (n.to_string(), v)).collect(),
        Value::Object(map) => map.iter().map(|(name, v)| (escape(name), v)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (name, value) in inner {
        found.extend(places(value).into_iter().map(|place| format!("/{name}{place}")));
    }
    found
}
