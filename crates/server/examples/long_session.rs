//! Writes a long session into a store, as a server would have: `long_session DIR ID ENTRIES BYTES`,
//! where BYTES is how much its tools printed, all together. For measuring.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use polyloop_agent::log::files::Files;
use polyloop_agent::log::{Flush, Log, Occasion, OpenMode, Writer};
use polyloop_session::{Event, LogEntry, SessionId, State, Timestamp};
use serde_json::{Value, json};

#[allow(
    dead_code,
    unused_imports,
    reason = "it is the server's own, of which this needs the files' form alone"
)]
#[path = "../src/view.rs"]
mod view;

/// A turn of this maker has so many entries.
const TURN_ENTRIES: u64 = 13;
/// After so many turns the conversation is compacted.
const COMPACT_TURNS: u64 = 20;
const BEGAN_MS: i64 = 1_700_000_000_000;

struct Maker {
    writer: Box<dyn Writer>,
    state: State,
    text: String,
}

impl Maker {
    /// Records events in the form of the log; returns the number of the first.
    async fn record(&mut self, events: impl IntoIterator<Item = Value>) -> u64 {
        let last = self.state.last_seq();
        let mut seq = last;
        let made = events.into_iter().map(|event| {
            seq = seq.next();
            let event: Event = serde_json::from_value(event).unwrap();
            Arc::new(LogEntry { seq, at: Timestamp(BEGAN_MS + seq.0 as i64 * 100), event })
        });
        let entries: Vec<_> = made.collect();
        self.writer.append(last, &entries, Flush::Process).await.unwrap();
        entries.iter().for_each(|entry| self.state.apply(entry));
        last.next().0
    }

    async fn call(&mut self, purpose: &str) -> u64 {
        let call = json!({"type": "call_started", "purpose": {"kind": purpose},
                          "model": "offline", "tokens_max": 128_000});
        self.record([call]).await
    }

    async fn say(&mut self, call: u64, text: &str) {
        let item = json!({"type": "item_started", "call": call, "block": 0,
                          "item": {"kind": "text"}});
        let item = self.record([item]).await;
        let said = json!({"type": "item_completed", "item": item, "end": "whole", "text": text,
                          "tokens": text.len() / 4});
        self.record([said, answered(call)]).await;
    }

    async fn end(&mut self) {
        let usage = json!({"input_tokens": 200, "output_tokens": 20});
        let ended = json!({"type": "turn_ended", "outcome": {"kind": "completed"}, "usage": usage});
        self.record([ended]).await;
        self.writer.keep(&self.state, Occasion::TurnEnded).await;
    }

    /// A question, a command and its output, an answer.
    async fn turn(&mut self, n: u64, printed: usize) {
        let content = json!([{"type": "text", "text": format!("What does file {n} say?")}]);
        let origin = json!({"via": "maker", "can_approve": true, "can_answer": true});
        let message = json!({"type": "message_queued", "content": content, "origin": origin,
                             "tokens": 8});
        let message = self.record([message]).await;
        let work = json!({"kind": "message", "message": message});
        self.record([json!({"type": "turn_started", "work": work})]).await;
        let call = self.call("think").await;
        let kind = json!({"kind": "tool_call", "name": "bash", "call_ref": format!("call_{n}")});
        let item = json!({"type": "item_started", "call": call, "block": 0, "item": kind});
        let item = self.record([item]).await;
        let judgement = json!({"effect": "read", "safe": true, "confined": true, "sandbox": true,
            "risk": "low", "reason": "It only reads", "covers": "cat", "keys": [],
            "command": ["bash", "-lc", format!("cat {n}.txt")]});
        let proposed = json!({"type": "tool_proposed", "item": item, "answerable": true,
            "args": format!("{{\"command\":\"cat {n}.txt\"}}"), "judgement": judgement,
            "tokens": 12});
        self.record([answered(call), proposed]).await;
        let leave = json!({"kind": "reads"});
        let started =
            json!({"type": "tool_started", "item": item, "sandboxed": false, "leave": leave});
        self.record([started]).await;
        let output = format!("{n}: {}", &self.text[..printed]);
        // The model is shown the beginning.
        let seen = &output[..output.len().min(2_000)];
        let result = json!({"seen": seen, "duration_ms": 3});
        let done = json!({"type": "item_completed", "item": item, "end": "whole", "text": output,
                          "result": result, "tokens": 500});
        self.record([done]).await;
        let call = self.call("think").await;
        self.say(call, &format!("File {n} says nothing of interest.")).await;
        self.end().await;
    }

    async fn compact(&mut self) {
        let work = json!({"kind": "compact", "by": {"via": "maker"}});
        self.record([json!({"type": "turn_started", "work": work})]).await;
        let call = self.call("summarise").await;
        self.say(call, "Files were read; none of them was of interest.").await;
        let window = json!({"tokens_max": 128_000, "strategy": "threshold", "pieces": 2});
        let upto = self.state.last_seq();
        let compacted = json!({"type": "compacted", "call": call, "upto": upto,
            "summary": "Files were read.", "summary_tokens": 5, "tokens_before": 10_000,
            "tokens_after": 5, "window": window});
        self.record([compacted]).await;
        self.end().await;
    }
}

fn answered(call: u64) -> Value {
    json!({"type": "call_ended", "call": call, "outcome": {"kind": "answered"},
           "usage": {"input_tokens": 100, "output_tokens": 10}})
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [dir, id, entries, bytes] = words.as_slice() else {
        panic!("usage: long_session DIR ID ENTRIES BYTES");
    };
    let (entries, bytes): (u64, u64) = (entries.parse().unwrap(), bytes.parse().unwrap());
    let id = SessionId::parse(id).unwrap();
    let log = Files::open(Path::new(dir), view::FileCodec::shared()).unwrap();
    let opened = log.open(&id, OpenMode::OrCreate).await.unwrap().unwrap();
    // Texts of two sizes, so that some stand in the lines and some in files of their own.
    let each = (bytes * TURN_ENTRIES / entries.max(TURN_ENTRIES)) as usize;
    let text: String = ('!'..='~').cycle().take(each * 2).collect();
    let mut maker = Maker { writer: opened.writer, state: opened.folded.state, text };
    let settings = json!({"cwd": "/", "model": "offline", "mode": "suggest", "calls_max": 100});
    let created = json!({"type": "session_created", "settings": settings, "by": {"via": "maker"}});
    maker.record([created]).await;
    let mut turns = 0;
    while maker.state.last_seq().0 + TURN_ENTRIES <= entries {
        turns += 1;
        let printed = if turns % 2 == 0 { each * 2 - each / 4 } else { each / 4 };
        maker.turn(turns, printed).await;
        if turns % COMPACT_TURNS == 0 {
            maker.compact().await;
        }
    }
    maker.writer.keep(&maker.state, Occasion::Leaving).await;
    println!("{} entries in {turns} turns", maker.state.last_seq());
}
