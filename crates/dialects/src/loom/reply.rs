//! Answers to one client alone.

use serde::Serialize;

use super::wire::{Error, Pong, StoredMessage, ToolShow, ToolSpec, ToolsList, UserMessages};
use crate::reply::{Listed, ToolForm, ToolInfo};
use crate::{Frame, Reply, bounded, to_json};

pub(super) fn reply(reply: &Reply) -> Frame {
    Frame::unstamped(match reply {
        Reply::Complaint(told) => {
            let text = if told.error.is_empty() { &told.message } else { &told.error };
            to_json(&Error {
                id: told.about.as_deref(),
                request_id: told.request.as_deref(),
                error: &bounded(text.clone()),
            })
        }
        Reply::Tools { id, tools } => {
            to_json(&ToolsList { id, tools: tools.iter().map(spec).collect() })
        }
        Reply::Tool { id, tool, form } => tool_show(id, tool, *form),
        Reply::Messages { id, thread, messages, has_more } => to_json(&UserMessages {
            id,
            thread_id: thread.as_str(),
            messages: messages.iter().map(stored).collect(),
            has_more: *has_more,
        }),
        Reply::Pong { id } => to_json(&Pong { id }),
        // No message of this dialect asks for these.
        Reply::ContextInfo(_) | Reply::SessionInit(_) | Reply::SessionActive => {
            to_json(&Error { id: None, request_id: None, error: "not part of this dialect" })
        }
    })
}

fn spec(tool: &ToolInfo) -> ToolSpec<'_> {
    let ToolInfo { name, description, parameters } = tool;
    ToolSpec { name, description, input_schema: parameters }
}

fn tool_show(id: &str, tool: &ToolInfo, form: ToolForm) -> String {
    let tool = spec(tool);
    match form {
        ToolForm::Json => to_json(&ToolShow { id, tool: Some(tool), tool_yaml: None }),
        ToolForm::Yaml => match yaml(&tool) {
            Some(yaml) => to_json(&ToolShow { id, tool: None, tool_yaml: Some(yaml) }),
            None => to_json(&Error {
                id: Some(id),
                request_id: None,
                error: "The tool cannot be written as YAML; ask with output \"json\"",
            }),
        },
    }
}

/// Texts of several lines become blocks, so that people can read them.
fn yaml(value: &impl Serialize) -> Option<String> {
    serde_saphyr::to_string(value).ok()
}

fn stored(message: &Listed) -> StoredMessage<'_> {
    StoredMessage { role: message.role, content: &message.content, seq: message.seq }
}
