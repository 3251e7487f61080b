//! What is read from answers: what holds for all of them, and for the golden ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use polyloop_session::history::{AssistantPart, Message};
use polyloop_session::item::{ItemKind, Opaque};
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use super::arbitrary::{any_change, any_json, change, word};
use super::{Interface, card, result, user};
use crate::model::Chunk;
use crate::model::api::Decode;
use crate::model::json::Object;
use crate::model::sse::{Event, Parser};

/// The events of a stream that comes in these pieces.
pub fn events(pieces: &[&[u8]]) -> Vec<Event> {
    let mut parser = Parser::new();
    pieces.iter().flat_map(|piece| parser.push(piece).unwrap()).collect()
}

pub fn event(data: &Value) -> Event {
    Event { name: String::new(), data: data.to_string().into_bytes() }
}

/// What a decoder makes of these events and the end of the stream.
fn all(decoder: &mut dyn Decode, events: &[Event]) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = events.iter().flat_map(|event| decoder.event(event)).collect();
    chunks.extend(decoder.end());
    chunks
}

/// What an answer becomes in the session: the parts of a message, and a result for each call.
pub fn history(chunks: &[Chunk]) -> Vec<Message> {
    let mut parts: Vec<AssistantPart> = Vec::new();
    let mut messages = Vec::new();
    for chunk in chunks {
        match chunk {
            Chunk::Started { block, kind } => {
                let (text, opaque) = ("".into(), None);
                parts.push(match kind.clone() {
                    ItemKind::Text => AssistantPart::Text { text, opaque },
                    ItemKind::Reasoning => AssistantPart::Reasoning { text, opaque },
                    ItemKind::ToolCall { name, call_ref, .. } => {
                        let made = format!("made-{block}").into();
                        let call_ref = if call_ref.is_empty() { made } else { call_ref };
                        messages.push(result(&call_ref, &name, "done", false));
                        AssistantPart::ToolCall { call_ref, name, args: text, opaque }
                    }
                });
            }
            Chunk::Text { block, text: more } | Chunk::Args { block, text: more } => {
                let (text, _) = inside(&mut parts[*block as usize]);
                *text = format!("{text}{more}").into();
            }
            Chunk::Ended { block, opaque: came } => {
                inside(&mut parts[*block as usize]).1.clone_from(came);
            }
            Chunk::Usage(_) | Chunk::Raw { .. } | Chunk::Done(_) | Chunk::Failed(_) => {}
        }
    }
    messages.insert(0, Message::Assistant(parts));
    messages
}

fn inside(part: &mut AssistantPart) -> (&mut Arc<str>, &mut Option<Opaque>) {
    match part {
        AssistantPart::Text { text, opaque }
        | AssistantPart::Reasoning { text, opaque }
        | AssistantPart::ToolCall { args: text, opaque, .. } => (text, opaque),
    }
}

/// What whoever reads chunks relies on, whatever the provider sent.
fn holds(interface: &Interface, chunks: &[Chunk]) {
    let name = interface.api.name();
    // The blocks that have not ended, and whether they are calls.
    let mut open: BTreeMap<u32, bool> = BTreeMap::new();
    let mut begun = 0;
    for (at, chunk) in chunks.iter().enumerate() {
        let is_last = at + 1 == chunks.len();
        match chunk {
            Chunk::Started { block, kind } => {
                assert_eq!(*block, begun, "blocks are counted in order: {chunk:?}");
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
                assert!(open.remove(block).is_some(), "is not open: {chunk:?}");
                if let Some(Opaque { provider, json }) = opaque {
                    assert_eq!(&**provider, name);
                    assert!(is_json(json), "{chunk:?}");
                    let is_object = Object::read(json).is_some();
                    assert!(is_object || !interface.keeps_objects, "{chunk:?}");
                }
            }
            Chunk::Raw { provider, json } => {
                assert_eq!(&**provider, name);
                assert!(is_json(json), "{chunk:?}");
            }
            Chunk::Usage(usage) => assert_eq!(usage.cost_micros, None),
            Chunk::Failed(failure) => {
                assert!(is_last, "more after {chunk:?}");
                assert!(!failure.fault.code.is_empty() && !failure.fault.message.is_empty());
            }
            Chunk::Done(_) => {
                assert!(is_last, "more after {chunk:?}");
                assert!(open.is_empty(), "blocks are open: {chunks:?}");
            }
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

impl Interface {
    /// What is read from these events and the end of the stream.
    pub fn chunks(&self, events: &[Event]) -> Vec<Chunk> {
        let chunks = all(&mut *self.api.decoder(), events);
        holds(self, &chunks);
        chunks
    }

    pub fn answer(&self, stream: &[u8]) -> Vec<Chunk> {
        self.chunks(&events(&[stream]))
    }

    pub fn check_answers(&self) {
        for (name, stream) in self.streams() {
            let chunks = self.answer(&stream);
            let lines: String = chunks.iter().map(|chunk| format!("{chunk:?}\n")).collect();
            self.compare(&format!("answers/{name}.chunks"), &lines);
        }
    }

    /// What goes back of every answer that ended well.
    pub fn check_ways_back(&self) {
        for (name, stream) in self.streams() {
            let chunks = self.answer(&stream);
            if matches!(chunks.last(), Some(Chunk::Done(_))) {
                let mut messages = vec![user("Go.")];
                messages.extend(history(&chunks));
                self.check_request(&format!("back-{name}"), &self.request(messages), &card());
            }
        }
    }

    /// Where the bytes of a stream are split makes no difference.
    pub fn check_splits(&self) {
        for (name, stream) in self.streams() {
            let whole = events(&[&stream]);
            for at in 0..=stream.len() {
                let (head, tail) = stream.split_at(at);
                assert!(events(&[head, tail]) == whole, "{name} at {at}");
            }
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            assert_eq!(self.chunks(&events(&bytes)), self.chunks(&whole), "{name}");
        }
    }

    /// Whatever comes after an answer's end.
    pub fn check_ends(&self) {
        let mut ended = 0;
        for (name, stream) in self.streams() {
            let events = events(&[&stream]);
            let mut decoder = self.api.decoder();
            let chunks = all(&mut *decoder, &events);
            if let Some(Chunk::Done(_) | Chunk::Failed(_)) = chunks.last() {
                ended += 1;
                assert_eq!(all(&mut *decoder, &events), [], "{name}");
            }
        }
        assert!(ended > 0, "no answer of {} ended", self.folder);
    }

    pub fn check_any_events(&self) {
        proptest!(|(values in prop::collection::vec(any_json(self.words), 0..12))| {
            let events: Vec<Event> = values.iter().map(event).collect();
            self.chunks(&events);
        });
    }

    pub fn check_any_bytes(&self) {
        let name = prop_oneof![".{0,8}", word(self.words)];
        proptest!(|(data in prop::collection::vec(any::<u8>(), 0..64), name in name)| {
            self.chunks(&[Event { name, data }]);
        });
    }

    pub fn check_changed_answers(&self) {
        let streams = self.streams();
        let changes = prop::collection::vec(any_change(self.words), 1..8);
        proptest!(|(which in any::<prop::sample::Index>(), changes in changes)| {
            let (_, stream) = which.get(&streams);
            let mut events = events(&[stream]);
            for one in changes {
                change(&mut events, one);
            }
            self.chunks(&events);
        });
    }
}
