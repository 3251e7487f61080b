//! OpenAI Chat Completions, with `reasoning_content` as the servers that reason send it.

use serde_json::{Value, json};

use super::{Job, set};
use crate::events::{Events, piece};
use crate::fault;
use crate::reply::{Block, Call, Stop};

pub fn whole(job: &Job<'_>) -> Value {
    let (mut content, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
    for (at, block) in job.blocks().iter().enumerate() {
        match block {
            Block::Think(think) => thoughts += &think.think,
            Block::Say(say) => content += &say.say,
            Block::Call(call) => calls.push(tool_call(job, at, call)),
            Block::Shell(shell) => calls.push(tool_call(job, at, &shell.as_call())),
            Block::Redacted(_) | Block::Item(_) => {} // This API has no place for them.
        }
    }
    let said = Some(content).filter(|content| !content.is_empty());
    let (content, refusal) = if job.refuses() { (None, said) } else { (said, None) };
    let mut message = json!({"role": "assistant", "content": content, "refusal": refusal,
        "annotations": []});
    if !thoughts.is_empty() {
        set(&mut message, "reasoning_content", thoughts);
    }
    if !calls.is_empty() {
        set(&mut message, "tool_calls", calls);
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null,
        "finish_reason": finish_reason(job)});
    let mut whole = frame(job, "chat.completion", json!([choice]));
    set(&mut whole, "usage", usage(job));
    whole
}

pub fn stream(job: &Job<'_>, events: &mut Events) {
    let blocks = job.blocks();
    let says = blocks.iter().any(|block| matches!(block, Block::Say(_))) && !job.refuses();
    let content = if says { Value::from("") } else { Value::Null };
    events.event("", delta(job, json!({"role": "assistant", "content": content, "refusal": null})));
    let mut calls = 0;
    for (at, block) in blocks.iter().enumerate() {
        match block {
            Block::Think(think) => {
                let template = delta(job, json!({"reasoning_content": piece()}));
                events.deltas(at, "", template, &think.think);
            }
            Block::Say(say) => {
                let key = if job.refuses() { "refusal" } else { "content" };
                events.deltas(at, "", delta(job, json!({key: piece()})), &say.say);
            }
            Block::Call(call) => {
                tell_call(job, at, calls, call, events);
                calls += 1;
            }
            Block::Shell(shell) => {
                tell_call(job, at, calls, &shell.as_call(), events);
                calls += 1;
            }
            // This API has no place for them.
            Block::Redacted(_) | Block::Item(_) => events.cut_behind(at),
        }
    }
    if let Some(error) = &job.reply.error {
        return fault::event(job, error, events);
    }
    if job.reply.no_final {
        return;
    }
    let end = json!([{"index": 0, "delta": {}, "logprobs": null,
        "finish_reason": finish_reason(job)}]);
    events.event("", chunk(job, end));
    if job.ask.include_usage {
        let mut last = chunk(job, json!([]));
        set(&mut last, "usage", usage(job));
        events.event("", last);
    }
    events.done();
}

fn tell_call(job: &Job<'_>, block: usize, index: usize, call: &Call, events: &mut Events) {
    let mut begun = tool_call(job, block, call);
    set(&mut begun, "index", index);
    if !call.args_object {
        set(&mut begun["function"], "arguments", "");
    }
    events.event("", delta(job, json!({"tool_calls": [begun]})));
    if call.args_object {
        return events.cut_behind(block);
    }
    let template = json!({"tool_calls": [{"index": index, "function": {"arguments": piece()}}]});
    events.deltas(block, "", delta(job, template), &call.args.text);
}

fn tool_call(job: &Job<'_>, block: usize, call: &Call) -> Value {
    let args =
        if call.args_object { call.args.value.clone() } else { Value::from(&*call.args.text) };
    let function = json!({"name": call.call, "arguments": args});
    let mut tool_call = json!({"type": "function", "function": function});
    if let Some(id) = call.id.or_made(|| job.id("call_", block)) {
        set(&mut tool_call, "id", id);
    }
    tool_call
}

fn finish_reason(job: &Job<'_>) -> &'static str {
    match job.reply.stop {
        Stop::Length => "length",
        Stop::ContentFilter => "content_filter",
        Stop::End if job.has_calls() => "tool_calls",
        Stop::End | Stop::Refusal => "stop",
    }
}

fn usage(job: &Job<'_>) -> Value {
    let usage = job.usage;
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
    })
}

fn delta(job: &Job<'_>, delta: Value) -> Value {
    let choice = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]);
    chunk(job, choice)
}

/// A chunk; where usage was asked for, all but the last say that there is none yet.
fn chunk(job: &Job<'_>, choices: Value) -> Value {
    let mut chunk = frame(job, "chat.completion.chunk", choices);
    if job.ask.include_usage {
        set(&mut chunk, "usage", Value::Null);
    }
    chunk
}

fn frame(job: &Job<'_>, object: &str, choices: Value) -> Value {
    json!({"id": job.id("chatcmpl-", 0), "object": object, "created": job.created,
        "model": job.ask.model, "service_tier": "default", "system_fingerprint": "fp_fake",
        "choices": choices})
}
