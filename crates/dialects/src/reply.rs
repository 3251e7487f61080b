//! What one client alone is told.

use std::sync::Arc;

use polyloop_session::context::ContextInfo;
use polyloop_session::event::Agent;
use polyloop_session::policy::Mode;
use polyloop_session::todos::Todo;
use polyloop_session::{SessionId, Text};

use crate::ask::Complaint;

#[derive(Clone, Debug)]
pub enum Reply {
    Complaint(Complaint),
    ContextInfo(ContextInfo),
    SessionInit(Box<SessionInit>),
    /// The session is there and open.
    SessionActive,
    Tools {
        id: Text,
        tools: Arc<[ToolInfo]>,
    },
    Tool {
        id: Text,
        tool: ToolInfo,
        form: ToolForm,
    },
    Messages {
        id: Text,
        thread: SessionId,
        messages: Vec<Listed>,
        has_more: bool,
    },
    Pong {
        id: Text,
    },
}

/// A session as it is when a client comes to it.
#[derive(Clone, Debug)]
pub struct SessionInit {
    pub model: Text,
    pub cwd: Text,
    pub tools: Arc<[ToolInfo]>,
    pub mode: Mode,
    /// The client's own word for the mode.
    pub mode_word: &'static str,
    pub agent: Agent,
    pub title: Option<Text>,
    pub todos: Vec<Todo>,
    /// Why it could not be begun as asked.
    pub error: Option<Complaint>,
}

/// A tool under its canonical name.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInfo {
    pub name: Text,
    pub description: Text,
    /// JSON Schema of the arguments.
    pub parameters: serde_json::Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolForm {
    Yaml,
    Json,
}

/// A message of a thread, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub seq: u64,
    pub role: &'static str,
    pub content: String,
}
