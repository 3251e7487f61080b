//! Anthropic Messages: an answer is a list of content blocks.

use serde_json::{Value, json};

use super::{Job, set};
use crate::events::{Events, piece};
use crate::fault;
use crate::reply::{Block, Call, Stop};

pub fn whole(job: &Job<'_>) -> Value {
    let blocks = job.blocks();
    let content: Vec<Value> =
        blocks.iter().enumerate().map(|(at, block)| content(job, at, block)).collect();
    let mut message = message(job, usage(job, job.usage.output));
    set(&mut message, "content", content);
    let Value::Object(end) = end(job) else { return message };
    for (key, value) in end {
        set(&mut message, &key, value);
    }
    message
}

pub fn stream(job: &Job<'_>, events: &mut Events) {
    // The first event counts what the model had written when it was sent.
    let begun = usage(job, job.usage.output.min(1));
    events.event("message_start", json!({"message": message(job, begun)}));
    for (at, block) in job.blocks().iter().enumerate() {
        tell(job, at, block, events);
    }
    if let Some(error) = &job.reply.error {
        return fault::event(job, error, events);
    }
    if job.reply.no_final {
        return;
    }
    let usage = usage(job, job.usage.output);
    let names = [
        "input_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "output_tokens",
        "output_tokens_details",
    ];
    let totals: Value =
        names.iter().map(|name| ((*name).to_owned(), usage[*name].clone())).collect();
    events.event("message_delta", json!({"delta": end(job), "usage": totals}));
    events.last("message_stop", json!({}));
}

fn message(job: &Job<'_>, usage: Value) -> Value {
    json!({"id": job.id("msg_", 0), "type": "message", "role": "assistant",
        "model": job.ask.model, "content": [], "stop_reason": null, "stop_sequence": null,
        "stop_details": null, "usage": usage})
}

/// Here the prompt is counted in three parts: read from the cache, written to it, and the rest.
fn usage(job: &Job<'_>, output: u64) -> Value {
    let usage = job.usage;
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached + usage.cache_written),
        "cache_creation_input_tokens": usage.cache_written,
        "cache_read_input_tokens": usage.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": usage.cache_written,
            "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning.min(output)},
        "service_tier": "standard",
    })
}

fn end(job: &Job<'_>) -> Value {
    let reason = match job.reply.stop {
        Stop::Length => "max_tokens",
        Stop::Refusal | Stop::ContentFilter => "refusal",
        Stop::End if job.has_calls() => "tool_use",
        Stop::End => "end_turn",
    };
    let details = match reason {
        "refusal" => json!({"type": "refusal", "category": null, "explanation": null}),
        _ => Value::Null,
    };
    json!({"stop_reason": reason, "stop_sequence": null, "stop_details": details})
}

fn content(job: &Job<'_>, at: usize, block: &Block) -> Value {
    match block {
        Block::Think(think) => {
            let signature = job.opaque(think.signature.as_deref(), at);
            json!({"type": "thinking", "thinking": think.think, "signature": signature})
        }
        Block::Redacted(redacted) => {
            json!({"type": "redacted_thinking", "data": redacted.redacted})
        }
        Block::Say(say) => json!({"type": "text", "text": say.say, "citations": null}),
        Block::Call(call) => tool_use(job, at, call),
        Block::Shell(shell) => tool_use(job, at, &shell.as_call()),
        Block::Item(item) => Value::Object(item.item.clone()),
    }
}

fn tool_use(job: &Job<'_>, at: usize, call: &Call) -> Value {
    let mut tool_use = json!({"type": "tool_use", "name": call.call, "input": call.args.value});
    if let Some(id) = call.id.or_made(|| job.id("toolu_", at)) {
        set(&mut tool_use, "id", id);
    }
    tool_use
}

/// Tells of one content block from its start to its stop.
fn tell(job: &Job<'_>, at: usize, block: &Block, events: &mut Events) {
    let whole = content(job, at, block);
    let mut begun = whole.clone();
    match block {
        Block::Think(_) => {
            set(&mut begun, "thinking", "");
            set(&mut begun, "signature", "");
        }
        Block::Say(_) => set(&mut begun, "text", ""),
        Block::Call(_) | Block::Shell(_) => set(&mut begun, "input", json!({})),
        Block::Redacted(_) | Block::Item(_) => {}
    }
    events.event("content_block_start", json!({"index": at, "content_block": begun}));
    if at == 0 {
        events.event("ping", json!({}));
    }
    let delta = |kind: &str, key: &str, value: Value| {
        let delta = json!({"type": kind, key: value});
        json!({"index": at, "delta": delta})
    };
    let name = "content_block_delta";
    match block {
        Block::Think(think) => {
            let template = delta("thinking_delta", "thinking", piece());
            events.deltas(at, name, template, &think.think);
            let signature = whole["signature"].clone();
            events.event(name, delta("signature_delta", "signature", signature));
        }
        Block::Say(say) => {
            events.deltas(at, name, delta("text_delta", "text", piece()), &say.say);
        }
        Block::Call(call) => tell_input(at, call, events),
        Block::Shell(shell) => tell_input(at, &shell.as_call(), events),
        Block::Redacted(_) | Block::Item(_) => events.cut_behind(at),
    }
    events.event("content_block_stop", json!({"index": at}));
}

/// The input comes as pieces of its JSON; the first piece is empty, as the service has it.
fn tell_input(at: usize, call: &Call, events: &mut Events) {
    let delta = |json: Value| {
        let delta = json!({"type": "input_json_delta", "partial_json": json});
        json!({"index": at, "delta": delta})
    };
    events.event("content_block_delta", delta(Value::from("")));
    events.deltas(at, "content_block_delta", delta(piece()), &call.args.text);
}
