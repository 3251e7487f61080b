//! What a session's log holds, made up: turns of a question, a command with its output, and an
//! answer; a summary now and then.

use std::sync::Arc;

use polyloop_session::{Event, LogEntry, Seq, Timestamp};
use serde_json::{Value, json};

const BEGAN_MS: i64 = 1_700_000_000_000;
/// After so many turns the conversation is made shorter.
pub const COMPACT_TURNS: u64 = 20;
/// What a turn here has at most.
pub const TURN_ENTRIES_MAX: u64 = 21;

/// A log that is being written.
#[derive(Default)]
pub struct Story {
    last: u64,
    turns: u64,
    /// Batches as they would be appended.
    made: Vec<Vec<Arc<LogEntry>>>,
}

pub type Batches = Vec<Vec<Arc<LogEntry>>>;

impl Story {
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The first entry of every session.
    pub fn begin(&mut self) -> Batches {
        let settings = json!({"cwd": "/", "model": "scripted", "mode": "suggest",
                              "calls_max": 100, "tokens_max": 128_000});
        let by = json!({"via": "story"});
        self.record([json!({"type": "session_created", "settings": settings, "by": by})]);
        std::mem::take(&mut self.made)
    }

    /// The next turn, and what follows it.
    pub fn turn(&mut self) -> Batches {
        self.turns += 1;
        self.ask();
        self.act();
        let call = self.call("think");
        let text = format!("File {} says nothing of interest.", self.turns);
        self.say(call, &text);
        self.end();
        if self.turns.is_multiple_of(COMPACT_TURNS) {
            self.compact();
        }
        std::mem::take(&mut self.made)
    }

    /// A turn up to the first words of its answer; the number of the item that grows.
    pub fn open_turn(&mut self) -> (Batches, u64) {
        self.turns += 1;
        self.ask();
        let call = self.call("think");
        let item = self.start_text(call);
        (std::mem::take(&mut self.made), item)
    }

    /// A conversation of one summary.
    pub fn shorten(&mut self) -> Batches {
        self.compact();
        std::mem::take(&mut self.made)
    }

    /// Returns the number of the first.
    fn record(&mut self, events: impl IntoIterator<Item = Value>) -> u64 {
        let first = self.last + 1;
        let mut batch = Vec::new();
        for event in events {
            self.last += 1;
            let event: Event = serde_json::from_value(event).unwrap();
            let at = Timestamp(BEGAN_MS + self.last as i64 * 100);
            batch.push(Arc::new(LogEntry { seq: Seq(self.last), at, event }));
        }
        self.made.push(batch);
        first
    }

    fn ask(&mut self) {
        let text = format!("What does file {} say?", self.turns);
        let origin = json!({"via": "story", "can_approve": true, "can_answer": true});
        let message = self.record([json!({"type": "message_queued", "origin": origin,
            "content": [{"type": "text", "text": text}], "tokens": 8})]);
        let work = json!({"kind": "message", "message": message});
        self.record([json!({"type": "turn_started", "work": work})]);
    }

    fn act(&mut self) {
        let (call, n) = (self.call("think"), self.turns);
        let kind = json!({"kind": "tool_call", "name": "bash", "call_ref": format!("call_{n}")});
        let item =
            self.record([json!({"type": "item_started", "call": call, "block": 0, "item": kind})]);
        let judgement = json!({"effect": "read", "safe": true, "confined": true, "sandbox": true,
            "risk": "low", "reason": "It only reads", "covers": "cat", "keys": [],
            "command": ["bash", "-lc", format!("cat {n}.txt")]});
        let proposed = json!({"type": "tool_proposed", "item": item, "answerable": true,
            "args": format!("{{\"command\":\"cat {n}.txt\"}}"), "judgement": judgement,
            "tokens": 12});
        self.record([answered(call), proposed]);
        let leave = json!({"kind": "reads"});
        self.record([
            json!({"type": "tool_started", "item": item, "sandboxed": false, "leave": leave}),
        ]);
        let printed = "nothing of interest\n".repeat(20);
        let result = json!({"seen": printed, "duration_ms": 3, "exit_code": 0});
        self.record([json!({"type": "item_completed", "item": item, "end": "whole",
            "text": printed, "result": result, "tokens": 100})]);
    }

    fn call(&mut self, purpose: &str) -> u64 {
        self.record([json!({"type": "call_started", "purpose": {"kind": purpose},
            "model": "scripted", "tokens_max": 128_000})])
    }

    fn start_text(&mut self, call: u64) -> u64 {
        let kind = json!({"kind": "text"});
        self.record([json!({"type": "item_started", "call": call, "block": 0, "item": kind})])
    }

    fn say(&mut self, call: u64, text: &str) {
        let item = self.start_text(call);
        let said = json!({"type": "item_completed", "item": item, "end": "whole", "text": text,
                          "tokens": text.len() / 4});
        self.record([said, answered(call)]);
    }

    fn end(&mut self) {
        let usage = json!({"input_tokens": 200, "output_tokens": 20});
        let outcome = json!({"kind": "completed"});
        self.record([json!({"type": "turn_ended", "outcome": outcome, "usage": usage})]);
    }

    fn compact(&mut self) {
        let work = json!({"kind": "compact", "by": {"via": "story"}});
        self.record([json!({"type": "turn_started", "work": work})]);
        let call = self.call("summarise");
        self.say(call, "Files were read; none of them was of interest.");
        let window = json!({"tokens_max": 128_000, "strategy": "threshold", "pieces": 2});
        self.record([json!({"type": "compacted", "call": call, "upto": self.last,
            "summary": "Files were read.", "summary_tokens": 5, "tokens_before": 10_000,
            "tokens_after": 5, "window": window})]);
        self.end();
    }
}

fn answered(call: u64) -> Value {
    json!({"type": "call_ended", "call": call, "outcome": {"kind": "answered"},
           "usage": {"input_tokens": 100, "output_tokens": 10}})
}
