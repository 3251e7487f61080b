//! Models that a test holds the strings of.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use polyloop_agent::model::table::Card;
use polyloop_agent::model::{Chunk, Model, Request, Stop};
use polyloop_session::Text;
use polyloop_session::history::{Message, Prompt};
use polyloop_session::item::ItemKind;
use serde_json::json;
use tokio::sync::mpsc;

static CARD: Card = Card {
    tokens_max: 100_000,
    window_known: true,
    output_tokens_max: 10_000,
    price: None,
    images: true,
    reasoning: true,
    native_shell: false,
};

/// Answers as a function says.
pub struct Puppet<F>(pub F);

impl<F> Model for Puppet<F>
where
    F: Fn(Request) -> BoxStream<'static, Chunk> + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        "offline"
    }

    fn card(&self) -> &Card {
        &CARD
    }

    fn ask(&self, request: Request) -> BoxStream<'static, Chunk> {
        (self.0)(request)
    }
}

/// What a model was asked, call by call.
#[derive(Clone, Default)]
pub struct Noted(Arc<Mutex<Vec<Request>>>);

impl Noted {
    /// Leaves the answers to another model.
    pub fn around(inner: Arc<dyn Model>) -> (Arc<dyn Model>, Noted) {
        let noted = Noted::default();
        let asked = noted.clone();
        let model = Puppet(move |request: Request| {
            let Request { prompt, instructions, tools } = &request;
            let (prompt, tools) = (prompt.clone(), tools.clone());
            let copy = Request { prompt, instructions: instructions.clone(), tools };
            asked.0.lock().unwrap().push(copy);
            inner.ask(request)
        });
        (Arc::new(model), noted)
    }

    pub fn calls(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn prompts(&self) -> Vec<Prompt> {
        self.0.lock().unwrap().iter().map(|request| request.prompt.clone()).collect()
    }

    pub fn last_prompt(&self) -> Prompt {
        self.prompts().pop().expect("it was never asked")
    }

    /// What the last call was told before the conversation.
    pub fn instructions(&self) -> Text {
        self.0.lock().unwrap().last().expect("it was never asked").instructions.text().clone()
    }

    /// What the last call's prompt ends with: a tool's result, and whether it is an error.
    pub fn told(&self) -> (String, bool) {
        let asked = self.0.lock().unwrap();
        match asked.last().expect("it was never asked").prompt.messages.last() {
            Some(Message::ToolResult { output, is_error, .. }) => (output.to_string(), *is_error),
            other => panic!("no result: {other:?}"),
        }
    }
}

/// The other end of a model that says what a test hands it, chunk by chunk. Each call takes the
/// next `Hand` that was made for it.
pub struct Strings {
    waiting: Arc<Mutex<Vec<mpsc::UnboundedReceiver<Chunk>>>>,
}

/// What one call says; dropping it cuts the call's stream.
pub struct Hand(mpsc::UnboundedSender<Chunk>);

impl Strings {
    /// Calls for which no hand was made say nothing at all until they are stopped.
    pub fn new() -> (Arc<dyn Model>, Strings) {
        let waiting: Arc<Mutex<Vec<mpsc::UnboundedReceiver<Chunk>>>> = Arc::default();
        let hands = waiting.clone();
        let model = Puppet(move |_| {
            let mut hands = hands.lock().unwrap();
            if hands.is_empty() {
                return stream::pending().boxed();
            }
            let chunks = hands.remove(0);
            stream::unfold(chunks, |mut chunks| async move { Some((chunks.recv().await?, chunks)) })
                .boxed()
        });
        (Arc::new(model), Strings { waiting })
    }

    pub fn hand(&self) -> Hand {
        let (sender, chunks) = mpsc::unbounded_channel();
        self.waiting.lock().unwrap().push(chunks);
        Hand(sender)
    }
}

impl Hand {
    pub fn give(&self, chunk: Chunk) {
        self.0.send(chunk).expect("the call is over");
    }

    pub fn begin(&self) {
        self.give(Chunk::Started { block: 0, kind: ItemKind::Text });
    }

    pub fn say(&self, text: &str) {
        self.give(Chunk::Text { block: 0, text: text.into() });
    }

    pub fn finish(&self) {
        self.give(Chunk::Ended { block: 0, opaque: None });
        self.give(Chunk::Done(Stop::End));
    }
}

/// The chunks of a whole answer in one text.
pub fn said(text: &str) -> Vec<Chunk> {
    vec![
        Chunk::Started { block: 0, kind: ItemKind::Text },
        Chunk::Text { block: 0, text: text.into() },
        Chunk::Ended { block: 0, opaque: None },
        Chunk::Done(Stop::End),
    ]
}

/// The chunks of an answer that calls tools, one block each.
pub fn called(calls: &[(&str, String)]) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    for (block, (name, args)) in (0..).zip(calls) {
        let call_ref = format!("call_{block}").into();
        let kind = ItemKind::ToolCall { name: (*name).into(), call_ref, native: false };
        chunks.push(Chunk::Started { block, kind });
        chunks.push(Chunk::Args { block, text: args.as_str().into() });
        chunks.push(Chunk::Ended { block, opaque: None });
    }
    chunks.push(Chunk::Done(Stop::End));
    chunks
}

pub fn in_turn(chunks: Vec<Chunk>) -> BoxStream<'static, Chunk> {
    stream::iter(chunks).boxed()
}

/// Proposes these calls for a message, and says "done" to their results.
pub fn acting(calls: Vec<(&'static str, String)>) -> Arc<dyn Model> {
    Arc::new(Puppet(move |request: Request| match request.prompt.messages.last() {
        Some(Message::ToolResult { .. }) => in_turn(said("done")),
        _ => in_turn(called(&calls)),
    }))
}

/// The arguments of an `apply_patch` that adds a line to a file that begins with `start`: how
/// often it ran can be counted.
pub fn adding(file: &str, line: &str) -> String {
    let patch =
        format!("*** Begin Patch\n*** Update File: {file}\n@@\n start\n+{line}\n*** End Patch\n");
    json!({ "patch": patch }).to_string()
}
