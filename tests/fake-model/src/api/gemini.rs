//! Gemini: an answer is a list of parts, and a stream is a list of small answers.

use serde_json::{Value, json};

use super::{Job, set};
use crate::events::{Events, piece};
use crate::fault;
use crate::reply::{Block, Call, Id, Stop};

pub fn whole(job: &Job<'_>) -> Value {
    if is_blocked(job) {
        return blocked(job);
    }
    let blocks = job.blocks();
    let mut parts = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let mut part = part(job, at, block);
        if let Some(signature) = text_signature(block) {
            set(&mut part, "thoughtSignature", signature);
        }
        parts.push(part);
    }
    let content = json!({"role": "model", "parts": parts});
    let candidate = json!({"content": content, "finishReason": finish_reason(job), "index": 0});
    frame(job, candidate, end_usage(job))
}

pub fn stream(job: &Job<'_>, events: &mut Events) {
    if is_blocked(job) {
        return events.last("", blocked(job));
    }
    for (at, block) in job.blocks().iter().enumerate() {
        tell(job, at, block, events);
    }
    if let Some(error) = &job.reply.error {
        return fault::event(job, error, events);
    }
    if job.reply.no_final {
        return;
    }
    let content = json!({"role": "model", "parts": [{"text": ""}]});
    let candidate = json!({"content": content, "finishReason": finish_reason(job), "index": 0});
    events.last("", frame(job, candidate, end_usage(job)));
}

/// Texts come in pieces; a function call comes whole, in one part.
fn tell(job: &Job<'_>, at: usize, block: &Block, events: &mut Events) {
    let chunk = |part: Value| {
        let content = json!({"role": "model", "parts": [part]});
        frame(job, json!({"content": content, "index": 0}), usage(job))
    };
    let mut part = part(job, at, block);
    match block {
        Block::Think(_) | Block::Say(_) => {
            set(&mut part, "text", piece());
            events.deltas(at, "", chunk(part.clone()), block.text().unwrap_or_default());
            if let Some(signature) = text_signature(block) {
                set(&mut part, "text", "");
                set(&mut part, "thoughtSignature", signature);
                events.event("", chunk(part));
            }
        }
        Block::Call(call) => {
            events.whole_block(at, "", chunk(part), &call.args.value.to_string());
        }
        Block::Shell(_) | Block::Redacted(_) | Block::Item(_) => {
            events.event("", chunk(part));
            events.cut_behind(at);
        }
    }
}

fn part(job: &Job<'_>, at: usize, block: &Block) -> Value {
    match block {
        Block::Think(think) => json!({"text": think.think, "thought": true}),
        Block::Say(say) => json!({"text": say.say}),
        Block::Redacted(redacted) => json!({"text": "", "thoughtSignature": redacted.redacted}),
        Block::Call(call) => function_call(job, at, call),
        Block::Shell(shell) => function_call(job, at, &shell.as_call()),
        Block::Item(item) => Value::Object(item.item.clone()),
    }
}

fn text_signature(block: &Block) -> Option<&str> {
    match block {
        Block::Think(think) => think.signature.as_deref(),
        Block::Say(say) => say.signature.as_deref(),
        Block::Redacted(_) | Block::Call(_) | Block::Shell(_) | Block::Item(_) => None,
    }
}

/// A call has an id only if the script gives one. The first call of an answer is always signed.
fn function_call(job: &Job<'_>, at: usize, call: &Call) -> Value {
    let mut function = json!({"name": call.call, "args": call.args.value});
    if let Id::Given(id) = &call.id {
        set(&mut function, "id", &**id);
    }
    let mut part = json!({"functionCall": function});
    let is_call = |block: &Block| matches!(block, Block::Call(_) | Block::Shell(_));
    let is_first = !job.reply.blocks.iter().take(at).any(is_call);
    if is_first || call.signature.is_some() {
        set(&mut part, "thoughtSignature", job.opaque(call.signature.as_deref(), at));
    }
    part
}

fn finish_reason(job: &Job<'_>) -> &'static str {
    match job.reply.stop {
        Stop::End => "STOP",
        Stop::Length => "MAX_TOKENS",
        Stop::ContentFilter => "SAFETY",
        Stop::Refusal => "PROHIBITED_CONTENT",
    }
}

/// A refusal without a word is one of the prompt itself.
fn is_blocked(job: &Job<'_>) -> bool {
    matches!(job.reply.stop, Stop::ContentFilter | Stop::Refusal) && job.reply.blocks.is_empty()
}

fn blocked(job: &Job<'_>) -> Value {
    let mut answer = frame(job, Value::Null, usage(job));
    set(&mut answer, "promptFeedback", json!({"blockReason": finish_reason(job)}));
    if let Some(answer) = answer.as_object_mut() {
        answer.remove("candidates");
    }
    answer
}

fn frame(job: &Job<'_>, candidate: Value, usage: Value) -> Value {
    json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": job.ask.model,
        "responseId": job.id("", 0)})
}

/// What is known before the end.
fn usage(job: &Job<'_>) -> Value {
    let usage = job.usage;
    let mut metadata = json!({"promptTokenCount": usage.input, "totalTokenCount": usage.input,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.input}]});
    if usage.cached > 0 {
        set(&mut metadata, "cachedContentTokenCount", usage.cached);
        let details = json!([{"modality": "TEXT", "tokenCount": usage.cached}]);
        set(&mut metadata, "cacheTokensDetails", details);
    }
    metadata
}

/// Here the thoughts are counted beside the answer, not in it.
fn end_usage(job: &Job<'_>) -> Value {
    let counted = job.usage;
    let mut metadata = usage(job);
    set(&mut metadata, "candidatesTokenCount", counted.output.saturating_sub(counted.reasoning));
    set(&mut metadata, "totalTokenCount", counted.total());
    if counted.reasoning > 0 {
        set(&mut metadata, "thoughtsTokenCount", counted.reasoning);
    }
    metadata
}
