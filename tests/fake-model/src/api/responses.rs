//! OpenAI Responses: an answer is a list of items, and a stream tells of each as it grows.

use serde_json::{Value, json};

use super::{Job, set};
use crate::events::{Events, piece};
use crate::fault;
use crate::reply::{Block, Call, ErrorForm, Shell, Stop};

/// An item that the model wrote, with what is needed to tell of its growth.
struct Item {
    /// The block of the reply it comes from.
    block: usize,
    value: Value,
    growth: Growth,
    is_encrypted: bool,
}

/// Tells drafts from final texts.
const DRAFT: usize = 1 << 20;

enum Growth {
    Text(String),
    Refusal(String),
    Summary(String),
    Arguments(String),
    /// It comes whole.
    None,
}

pub fn whole(job: &Job<'_>) -> Value {
    let items = items(job);
    let failed = job.reply.error.as_ref().filter(|error| error.form == ErrorForm::Failed);
    let mut response = response(job, end_status(job));
    set(&mut response, "output", items.into_iter().map(|item| item.value).collect::<Vec<_>>());
    if let Some(error) = failed {
        set(&mut response, "status", "failed");
        set(&mut response, "error", fault::response_error(error));
    }
    response
}

pub fn stream(job: &Job<'_>, events: &mut Events) {
    let begun = response(job, "in_progress");
    events.event("response.created", json!({"response": begun}));
    events.event("response.in_progress", json!({"response": begun}));
    let items = items(job);
    for (index, item) in items.iter().enumerate() {
        tell(job, item, index, events);
    }
    if let Some(error) = job.reply.error.as_ref().filter(|error| error.form != ErrorForm::Failed) {
        return fault::event(job, error, events);
    }
    if job.reply.no_final {
        return;
    }
    let last = whole(job);
    let name = match last["status"].as_str() {
        Some("failed") => "response.failed",
        Some("incomplete") => "response.incomplete",
        _ => "response.completed",
    };
    events.last(name, json!({"response": last}));
}

fn end_status(job: &Job<'_>) -> &'static str {
    match job.reply.stop {
        Stop::End | Stop::Refusal => "completed",
        Stop::Length | Stop::ContentFilter => "incomplete",
    }
}

/// The response object; one that is under way has no output and no usage yet.
fn response(job: &Job<'_>, status: &str) -> Value {
    let mut response = job.ask.settings.clone();
    let reason = match job.reply.stop {
        Stop::End | Stop::Refusal => Value::Null,
        Stop::Length => json!({"reason": "max_output_tokens"}),
        Stop::ContentFilter => json!({"reason": "content_filter"}),
    };
    let is_over = status != "in_progress";
    let usage = job.usage;
    let usage = json!({
        "input_tokens": usage.input,
        "input_tokens_details":
            {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    });
    set(&mut response, "id", job.id("resp_", 0));
    set(&mut response, "object", "response");
    set(&mut response, "created_at", job.created);
    set(&mut response, "completed_at", Some(job.created).filter(|_| status == "completed"));
    set(&mut response, "status", status);
    set(&mut response, "error", Value::Null);
    set(&mut response, "incomplete_details", if is_over { reason } else { Value::Null });
    set(&mut response, "model", &*job.ask.model);
    set(&mut response, "output", json!([]));
    set(&mut response, "usage", if is_over { usage } else { Value::Null });
    response
}

fn items(job: &Job<'_>) -> Vec<Item> {
    let blocks = job.blocks();
    let mut items: Vec<Item> =
        blocks.iter().enumerate().map(|(at, block)| item(job, at, block)).collect();
    if end_status(job) == "incomplete"
        && let Some(last) = items.last_mut()
        && last.value.get("status").is_some()
    {
        set(&mut last.value, "status", "incomplete");
    }
    items
}

fn item(job: &Job<'_>, block: usize, from: &Block) -> Item {
    let (value, growth) = match from {
        Block::Think(think) => {
            let summary = json!([{"type": "summary_text", "text": think.think}]);
            let value = reasoning(job, block, &summary, think.signature.as_deref());
            (value, Growth::Summary(think.think.clone()))
        }
        Block::Redacted(redacted) => {
            let value = reasoning(job, block, &json!([]), Some(&redacted.redacted));
            (value, Growth::None)
        }
        Block::Say(say) if job.refuses() => {
            let part = json!({"type": "refusal", "refusal": say.say});
            (message(job, block, &part), Growth::Refusal(say.say.clone()))
        }
        Block::Say(say) => {
            let part = output_text(&say.say);
            (message(job, block, &part), Growth::Text(say.say.clone()))
        }
        Block::Call(call) => function_call(job, block, call),
        Block::Shell(shell) if job.ask.local_shell => local_shell(job, block, shell),
        Block::Shell(shell) => function_call(job, block, &shell.as_call()),
        Block::Item(item) => (Value::Object(item.item.clone()), Growth::None),
    };
    let is_reasoning = matches!(from, Block::Think(_) | Block::Redacted(_));
    let is_encrypted = is_reasoning && job.ask.encrypted_reasoning;
    Item { block, value, growth, is_encrypted }
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn message(job: &Job<'_>, block: usize, part: &Value) -> Value {
    let id = job.id("msg_", block);
    json!({"id": id, "type": "message", "status": "completed", "role": "assistant",
        "content": [part]})
}

/// The encrypted content comes only to those who asked for it.
fn reasoning(job: &Job<'_>, block: usize, summary: &Value, opaque: Option<&str>) -> Value {
    let mut item = json!({"id": job.id("rs_", block), "type": "reasoning", "summary": summary});
    if job.ask.encrypted_reasoning {
        set(&mut item, "encrypted_content", job.opaque(opaque, block));
    }
    item
}

fn function_call(job: &Job<'_>, block: usize, call: &Call) -> (Value, Growth) {
    let local = call.call == "local_shell" && job.ask.local_shell;
    if let Some(command) = call.args.value["command"].as_array().filter(|_| local) {
        let words = command.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        return local_shell(job, block, &Shell { shell: words, id: call.id.clone() });
    }
    let mut item = json!({"id": job.id("fc_", block), "type": "function_call",
        "status": "completed", "name": call.call, "arguments": call.args.text});
    if let Some(id) = call.id.or_made(|| job.id("call_", block)) {
        set(&mut item, "call_id", id);
    }
    if call.args_object {
        set(&mut item, "arguments", call.args.value.clone());
        return (item, Growth::None);
    }
    (item, Growth::Arguments(call.args.text.clone()))
}

fn local_shell(job: &Job<'_>, block: usize, shell: &Shell) -> (Value, Growth) {
    let action = json!({"type": "exec", "command": shell.shell, "env": {}, "timeout_ms": null,
        "user": null, "working_directory": null});
    let mut item = json!({"id": job.id("lsh_", block), "type": "local_shell_call",
        "status": "completed", "action": action});
    if let Some(id) = shell.id.or_made(|| job.id("call_", block)) {
        set(&mut item, "call_id", id);
    }
    (item, Growth::None)
}

/// Tells of one item from its beginning to its end. What is encrypted at the beginning is a draft:
/// only the end has what may be sent back.
fn tell(job: &Job<'_>, item: &Item, index: usize, events: &mut Events) {
    let mut begun = item.value.clone();
    if item.is_encrypted {
        set(&mut begun, "encrypted_content", job.opaque(None, DRAFT + item.block));
    }
    if begun.get("status").is_some() {
        set(&mut begun, "status", "in_progress");
    }
    match &item.growth {
        Growth::Text(_) | Growth::Refusal(_) => set(&mut begun, "content", json!([])),
        Growth::Summary(_) => set(&mut begun, "summary", json!([])),
        Growth::Arguments(_) => set(&mut begun, "arguments", ""),
        Growth::None => {}
    }
    events.event("response.output_item.added", json!({"output_index": index, "item": begun}));
    match &item.growth {
        Growth::Text(text) => tell_text(item, index, text, events),
        Growth::Refusal(text) => tell_refusal(item, index, text, events),
        Growth::Summary(text) => tell_summary(item, index, text, events),
        Growth::Arguments(text) => tell_arguments(item, index, text, events),
        Growth::None => events.cut_behind(item.block),
    }
    let done = json!({"output_index": index, "item": item.value});
    events.event("response.output_item.done", done);
}

fn tell_text(item: &Item, index: usize, text: &str, events: &mut Events) {
    let place = json!({"item_id": item.value["id"], "output_index": index, "content_index": 0});
    let with = |key: &str, value: Value| with(&place, key, value);
    events.event("response.content_part.added", with("part", output_text("")));
    let mut template = with("delta", piece());
    set(&mut template, "logprobs", json!([]));
    events.deltas(item.block, "response.output_text.delta", template, text);
    let mut done = with("text", Value::from(text));
    set(&mut done, "logprobs", json!([]));
    events.event("response.output_text.done", done);
    events.event("response.content_part.done", with("part", item.value["content"][0].clone()));
}

fn tell_refusal(item: &Item, index: usize, text: &str, events: &mut Events) {
    let place = json!({"item_id": item.value["id"], "output_index": index, "content_index": 0});
    let with = |key: &str, value: Value| with(&place, key, value);
    let empty = json!({"type": "refusal", "refusal": ""});
    events.event("response.content_part.added", with("part", empty));
    let template = with("delta", piece());
    events.deltas(item.block, "response.refusal.delta", template, text);
    events.event("response.refusal.done", with("refusal", Value::from(text)));
    events.event("response.content_part.done", with("part", item.value["content"][0].clone()));
}

fn tell_summary(item: &Item, index: usize, text: &str, events: &mut Events) {
    let place = json!({"item_id": item.value["id"], "output_index": index, "summary_index": 0});
    let with = |key: &str, value: Value| with(&place, key, value);
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    events.event("response.reasoning_summary_part.added", with("part", part("")));
    let template = with("delta", piece());
    events.deltas(item.block, "response.reasoning_summary_text.delta", template, text);
    events.event("response.reasoning_summary_text.done", with("text", Value::from(text)));
    events.event("response.reasoning_summary_part.done", with("part", part(text)));
}

fn tell_arguments(item: &Item, index: usize, text: &str, events: &mut Events) {
    let place = json!({"item_id": item.value["id"], "output_index": index});
    let template = with(&place, "delta", piece());
    events.deltas(item.block, "response.function_call_arguments.delta", template, text);
    let mut done = with(&place, "arguments", Value::from(text));
    set(&mut done, "name", item.value["name"].clone());
    events.event("response.function_call_arguments.done", done);
}

fn with(place: &Value, key: &str, value: Value) -> Value {
    let mut event = place.clone();
    set(&mut event, key, value);
    event
}
