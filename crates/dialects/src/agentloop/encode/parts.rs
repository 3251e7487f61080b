//! The messages of the AgentLoop dialect, each made from what it tells.

use polyloop_session::context::{ContextInfo, Strategy};
use polyloop_session::event::Adopted;
use polyloop_session::item::{End, ToolResult};
use polyloop_session::wait::Answer;
use polyloop_session::{ItemId, Seq, Text, WaitId};
use serde::Serialize;

use super::super::wire::{
    Code, ErrorDetails, Payload, ResponseItem, TextPart, ToolMetadata, ToolOutput,
};
use super::{Made, Proposal};
use crate::to_json;

pub(super) fn error(message: &str, error: &str, code: &str) -> Payload {
    let code = match code.parse() {
        Ok(status) => Code::Status(status),
        Err(_) => Code::Word(code.to_string()),
    };
    let details = ErrorDetails { error: error.to_string(), code };
    Payload::Error { message: message.to_string(), details }
}

pub(super) fn context_info(info: &ContextInfo) -> Payload {
    Payload::ContextInfo {
        token_count: info.tokens,
        usage_percent: percent(info.tokens, info.tokens_max),
        transcript_length: info.pieces,
        max_tokens: info.tokens_max,
        strategy: strategy_name(info.strategy),
    }
}

pub(super) fn strategy_name(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Threshold => "ThresholdContextManager",
        Strategy::Dummy => "DummyContextManager",
    }
}

/// A share in percent, to one decimal place.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    // More than all of it is all of it: clients draw bars with this.
    let part = part.min(whole);
    let thousandths = u128::from(part) * 1000 + u128::from(whole) / 2;
    (thousandths / u128::from(whole)) as f64 / 10.0
}

pub(super) fn assistant(item: ItemId, text: &str) -> Payload {
    let content = [TextPart::new(text)];
    let id = format!("msg_{item}");
    Payload::ResponseItem(ResponseItem::Message { id, role: "assistant", content })
}

pub(super) fn reasoning(place: Seq, text: &str, duration_ms: i64) -> Payload {
    let (id, content) = (format!("reasoning_{place}"), [TextPart::new(text)]);
    Payload::ResponseItem(ResponseItem::Reasoning { id, content, duration_ms })
}

/// A question or a plan as an item, which clients show like any text.
pub(super) fn asking(wait: WaitId, text: &str) -> Payload {
    let content = [TextPart::new(text)];
    let id = format!("ask_{wait}");
    Payload::ResponseItem(ResponseItem::Message { id, role: "assistant", content })
}

/// The server's own words before a request which alone does not say what is wanted.
pub(super) fn asking_outside(wait: WaitId, reason: &str) -> Payload {
    let content = [TextPart::new(&crate::asks::outside(reason))];
    let id = format!("ask_{wait}");
    Payload::ResponseItem(ResponseItem::Message { id, role: "system", content })
}

pub(super) fn decision(answer: &Answer) -> &'static str {
    match answer {
        Answer::Approved { always: false, .. } => "approved",
        Answer::Approved { always: true, .. } => "approved_always",
        Answer::Denied { .. } => "denied",
        Answer::Answered { .. } => "answered",
    }
}

pub(super) fn system(seq: Seq, text: &str) -> Payload {
    let content = [TextPart::new(text)];
    let id = format!("sys_{seq}");
    Payload::ResponseItem(ResponseItem::Message { id, role: "system", content })
}

/// The name and arguments that this dialect's clients know: the shell takes a list of words.
pub(super) fn shown_call(name: &str, proposal: &Proposal) -> (String, String) {
    if name != "bash" {
        return (name.to_string(), proposal.args.to_string());
    }
    #[derive(Serialize)]
    struct Shell<'a> {
        command: &'a [Text],
    }
    ("shell".to_string(), to_json(&Shell { command: &proposal.judgement.command }))
}

pub(super) fn call_output(
    id: ItemId,
    native: bool,
    end: End,
    text: &str,
    result: Option<&ToolResult>,
) -> Payload {
    let failed = i32::from(end != End::Whole);
    let metadata = ToolMetadata {
        exit_code: result.and_then(|r| r.exit_code).unwrap_or(failed),
        duration_seconds: result.map_or(0, |r| r.duration_ms) as f64 / 1000.0,
    };
    // What the model was told says why a call that did not end by itself ended.
    let seen = result.and_then(|r| r.seen.as_deref());
    let shown = match (end, seen) {
        (End::Whole, Some(seen)) if text.is_empty() => seen,
        (End::Whole, _) | (_, None) => text,
        (_, Some(seen)) => seen,
    };
    let output = to_json(&ToolOutput { output: shown, metadata });
    let item = if native {
        ResponseItem::LocalShellCallOutput { id: format!("shell_output_{id}"), output }
    } else {
        let call_id = format!("call_{id}");
        ResponseItem::FunctionCallOutput { id: format!("output_{id}"), call_id, output }
    };
    Payload::ResponseItem(item)
}

pub(super) fn adopted(seq: Seq, piece: &Adopted, out: &mut Vec<Made>) {
    let item = match piece {
        Adopted::User { .. } => return, // Clients are not sent what users said.
        Adopted::Agent { text } => ResponseItem::Message {
            id: format!("msg_{seq}"),
            role: "assistant",
            content: [TextPart::new(text)],
        },
        Adopted::ToolCall { call_ref, name, args } => ResponseItem::FunctionCall {
            id: call_ref.to_string(),
            call_id: call_ref.to_string(),
            name: name.to_string(),
            arguments: args.to_string(),
        },
        Adopted::ToolResult { call_ref, output } => ResponseItem::FunctionCallOutput {
            id: format!("output_{seq}"),
            call_id: call_ref.to_string(),
            output: output.to_string(),
        },
    };
    out.push(Made::Part(Payload::ResponseItem(item)));
}
