//! Answers to one client.

use std::sync::Arc;

use polyloop_session::SessionId;
use serde_json::{Value, json};

use super::world::json as parsed;
use crate::loom::Loom;
use crate::reply::{Listed, ToolForm, ToolInfo};
use crate::{Complaint, Dialect, Reply};

fn told(reply: &Reply) -> Value {
    parsed(&Loom.reply(None, 1, reply))
}

fn tool() -> ToolInfo {
    ToolInfo {
        name: "recall".into(),
        description: "Read a value by key.\nThe key was given to remember.\n".into(),
        parameters: json!({"type": "object", "required": ["key"],
                           "properties": {"key": {"type": "string"}}}),
    }
}

#[test]
fn each_request_has_its_answer() {
    let spec = json!({"name": "recall", "input_schema": tool().parameters,
                      "description": "Read a value by key.\nThe key was given to remember.\n"});
    let tools: Arc<[ToolInfo]> = vec![tool()].into();
    let id = || "r1".into();
    assert_eq!(
        told(&Reply::Tools { id: id(), tools }),
        json!({"type": "tools_list", "id": "r1", "tools": [spec]})
    );
    assert_eq!(
        told(&Reply::Tool { id: id(), tool: tool(), form: ToolForm::Json }),
        json!({"type": "tool_show", "id": "r1", "tool": spec})
    );
    let messages = vec![Listed { seq: 7, role: "user", content: "Hello".into() }];
    let thread = SessionId::parse("t").unwrap();
    assert_eq!(
        told(&Reply::Messages { id: id(), thread, messages, has_more: true }),
        json!({"type": "user_messages", "id": "r1", "thread_id": "t", "has_more": true,
               "messages": [{"role": "user", "content": "Hello", "seq": 7}]})
    );
    assert_eq!(told(&Reply::Pong { id: id() }), json!({"type": "pong", "id": "r1"}));
}

#[test]
fn yaml_is_for_people() {
    let shown = told(&Reply::Tool { id: "r1".into(), tool: tool(), form: ToolForm::Yaml });
    let want = "name: recall\n\
                description: |\n  Read a value by key.\n  The key was given to remember.\n\
                input_schema:\n  properties:\n    key:\n      type: string\n  required:\n  - key\n  \
                type: object\n";
    assert_eq!(shown, json!({"type": "tool_show", "id": "r1", "tool_yaml": want}));
}

#[test]
fn errors() {
    let complaint = |about: Option<&str>| {
        let told = Complaint::new("Short", "At length", "code");
        Reply::Complaint(told.about(about.map(Into::into)))
    };
    assert_eq!(told(&complaint(None)), json!({"type": "error", "error": "At length"}));
    assert_eq!(
        told(&complaint(Some("r1"))),
        json!({"type": "error", "id": "r1", "error": "At length"})
    );
    let bare = Reply::Complaint(Complaint::new("Short", "", "code"));
    assert_eq!(told(&bare), json!({"type": "error", "error": "Short"}));
    assert_eq!(told(&Reply::SessionActive)["type"], "error");
}
