//! The shapes of the REST interface.

use polyloop_session::context::{ContextInfo, Fullness, Strategy};
use polyloop_session::event::{Agent, Skipped};
use polyloop_session::item::{FileChange, Operation, Usage};
use polyloop_session::policy::Mode;
use polyloop_session::{Seq, SessionId, Text, Timestamp};
use serde::{Deserialize, Serialize};

use crate::time::iso;
use crate::{Start, bounded, shown};

pub mod about;

#[derive(Serialize)]
pub struct SessionInfo<'a> {
    id: &'a SessionId,
    start_time: String,
    last_update_time: String,
    event_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: &'a Option<Text>,
    /// What a turn is worked by, unless a run says otherwise; absent is react.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<Agent>,
    /// Absent as long as no model was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Cost>,
    status: &'static str,
    /// How many open requests wait for a person.
    waiting: usize,
    /// The beginning of the newest user message.
    preview: Option<&'a Text>,
}

/// Where a session stands.
pub struct Stand<'a> {
    /// A client ended it.
    pub closed: bool,
    /// Somebody works on its turn.
    pub running: bool,
    pub waiting: usize,
    pub preview: Option<&'a Text>,
}

impl Stand<'_> {
    fn status(&self) -> &'static str {
        match (self.closed, self.waiting, self.running) {
            (true, ..) => "ended",
            (false, 1.., _) => "waiting",
            (false, 0, true) => "running",
            (false, 0, false) => "idle",
        }
    }
}

impl<'a> SessionInfo<'a> {
    pub fn new(
        id: &'a SessionId,
        (start, last): (Timestamp, Timestamp),
        lines: u64,
        title: &'a Option<Text>,
        agent: Agent,
        usage: Option<Cost>,
        stand: Stand<'a>,
    ) -> Self {
        let (start_time, last_update_time) = (iso(start), iso(last));
        let agent = Some(agent).filter(|agent| *agent != Agent::React);
        SessionInfo {
            id,
            start_time,
            last_update_time,
            event_count: lines,
            title,
            agent,
            usage,
            status: stand.status(),
            waiting: stand.waiting,
            preview: stand.preview,
        }
    }
}

/// What all model calls of a session cost together.
#[derive(Serialize)]
pub struct Cost {
    model_calls: u64,
    /// All input, cached or not.
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
    cache_written_tokens: u64,
    reasoning_tokens: u64,
    /// Input and output.
    total_tokens: u64,
    /// Of the calls whose price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
}

impl Cost {
    /// `None` where no model was asked.
    pub fn of(calls: u64, usage: &Usage) -> Option<Cost> {
        (calls > 0).then(|| Cost {
            model_calls: calls,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            cache_written_tokens: usage.cache_written_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            total_tokens: usage.total_tokens(),
            cost_usd: usage.cost_micros.map(|micros| micros as f64 / 1_000_000.0),
        })
    }
}

/// How full a session's window is, and with what.
#[derive(Serialize)]
pub struct ContextTold<'a> {
    id: &'a SessionId,
    token_count: u64,
    max_tokens: u64,
    transcript_length: u64,
    strategy: Strategy,
    warning_level: &'static str,
    filled_by: FilledBy,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Cost>,
}

/// Tokens as they were counted here; a provider may count others.
#[derive(Serialize)]
struct FilledBy {
    instructions_and_tools: u64,
    summary: u64,
    user_messages: u64,
    answers: u64,
    reasoning: u64,
    tool_calls: u64,
    tool_results: u64,
}

impl<'a> ContextTold<'a> {
    pub fn new(id: &'a SessionId, info: &ContextInfo) -> ContextTold<'a> {
        let filled = &info.filled;
        ContextTold {
            id,
            token_count: info.tokens,
            max_tokens: info.tokens_max,
            transcript_length: info.pieces,
            strategy: info.strategy,
            warning_level: Fullness::of(info.tokens, info.tokens_max).name(),
            filled_by: FilledBy {
                instructions_and_tools: filled.overhead,
                summary: filled.summary,
                user_messages: filled.messages,
                answers: filled.answers,
                reasoning: filled.reasoning,
                tool_calls: filled.tool_calls,
                tool_results: filled.tool_results,
            },
            usage: Cost::of(info.calls, &info.spent),
        }
    }
}

#[derive(Serialize)]
pub struct SessionList<'a> {
    pub sessions: Vec<SessionInfo<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Switched<'a> {
    message: &'static str,
    session_id: &'a SessionId,
    todos_file: String,
    link_path: String,
}

impl<'a> Switched<'a> {
    pub fn new(session_id: &'a SessionId, todos_file: String, link_path: String) -> Self {
        Switched { message: "Session switched successfully", session_id, todos_file, link_path }
    }
}

/// What taking edits back did.
#[derive(Serialize)]
pub struct Undone<'a> {
    pub id: &'a SessionId,
    /// By this number it can be taken back itself.
    pub seq: Seq,
    pub files: Vec<Changed<'a>>,
    /// Directories that are there again.
    pub made: &'a [Text],
    /// Directories that are gone again.
    pub removed: &'a [Text],
    pub skipped: &'a [Skipped],
    pub note: &'static str,
}

pub const UNDO_NOTE: &str = "What commands changed is not taken back";

#[derive(Serialize)]
pub struct Changed<'a> {
    path: &'a str,
    operation: &'static str,
}

impl<'a> Changed<'a> {
    pub fn new(file: &'a FileChange) -> Changed<'a> {
        let operation = match file.operation {
            Operation::Create => "create",
            Operation::Update => "update",
            Operation::Delete => "delete",
            Operation::Move { .. } => "move",
        };
        Changed { path: &file.path, operation }
    }
}

/// Why nothing was taken back.
#[derive(Serialize)]
pub struct UndoConflicts<'a> {
    pub error: &'static str,
    pub conflicts: &'a [Skipped],
}

pub const CONFLICTS_ERROR: &str =
    "Nothing was taken back: these are not as the edits left them, or cannot be changed";

/// Every error of the REST interface.
#[derive(Serialize)]
pub struct RestError {
    pub error: String,
}

/// What a new session is to be like; an empty body says nothing. The error is for the client.
pub fn new_session(body: &[u8]) -> Result<Start, String> {
    #[derive(Deserialize)]
    struct NewSession {
        #[serde(default)]
        cwd: Option<Text>,
        #[serde(default)]
        model: Option<Text>,
        #[serde(default)]
        agent: Option<Agent>,
        #[serde(default)]
        permission_mode: Option<String>,
        #[serde(default)]
        title: Option<Text>,
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Start::default());
    }
    let wanted: NewSession = read(body)?;
    let mode = match wanted.permission_mode.as_deref() {
        None => None,
        Some(word) => Some(mode(word)?),
    };
    let NewSession { cwd, model, agent, title, .. } = wanted;
    Ok(Start { mode, cwd, model, agent, title, ..Start::default() })
}

/// The new title of a session.
pub fn title(body: &[u8]) -> Result<Text, String> {
    #[derive(Deserialize)]
    struct Renamed {
        title: Text,
    }
    let Renamed { title } = read(body)?;
    match title.trim() {
        "" => Err("title: use at least one character".into()),
        title => Ok(title.into()),
    }
}

/// The text that is to be shown as HTML.
pub fn markdown(body: &[u8]) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Render {
        markdown: String,
    }
    read(body).map(|Render { markdown }| markdown)
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    let mut json = serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let at = error.path().to_string();
        let place = if at == "." { "The body".to_string() } else { at };
        bounded(format!("{place}: {}", error.inner()))
    })
}

/// The words for modes, the canonical ones included.
pub(crate) fn mode(word: &str) -> Result<Mode, String> {
    Ok(match word {
        "suggest" | "manual" | "default" => Mode::Suggest,
        "auto-edit" | "acceptEdits" => Mode::AutoEdit,
        "full-auto" | "auto" => Mode::FullAuto,
        "bypass" | "bypassPermissions" => Mode::Bypass,
        "plan" => Mode::Plan,
        "dontAsk" => Mode::DontAsk,
        other => {
            let given = shown(other);
            return Err(format!(
                "permission_mode: \"{given}\" is not a mode; use manual, auto, bypass, plan, \
                 default, acceptEdits, bypassPermissions or dontAsk"
            ));
        }
    })
}
