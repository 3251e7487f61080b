//! What asks a person, how requests and calls are named, and how a request ended.

use polyloop_session::policy::Risk;
use polyloop_session::wait::Question;
use polyloop_session::{ItemId, WaitId};
use serde::Serialize;

use super::number::Json;

/// `req-<wait>`: a request that waits for an answer.
#[derive(Clone, Copy)]
pub(in crate::unified) struct RequestId(pub WaitId);

/// `tool-<item>`: a tool call.
#[derive(Clone, Copy)]
pub(in crate::unified) struct ToolId(pub ItemId);

impl Serialize for RequestId {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("req-{}", self.0))
    }
}

impl Serialize for ToolId {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("tool-{}", self.0))
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct ControlRequest<'a> {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub request_id: RequestId,
    pub tool_name: &'a str,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub tool_use_id: ToolId,
    pub input: Json,
    pub context: RequestContext,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct RequestContext {
    pub description: String,
    pub risk_level: RiskLevel,
    /// What `allow_always` would allow.
    pub covers: String,
    /// What would run, word by word.
    pub command: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) enum RiskLevel {
    Low,
    Medium,
    High,
}

impl RiskLevel {
    pub(in crate::unified) fn of(risk: Risk) -> RiskLevel {
        match risk {
            Risk::Low => RiskLevel::Low,
            Risk::Medium => RiskLevel::Medium,
            Risk::High => RiskLevel::High,
        }
    }
}

/// A request is no longer pending.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct ApprovalSettled {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub request_id: RequestId,
    pub decision: Decision,
    /// Null when its turn was stopped.
    pub by: Option<String>,
    /// What was said with the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What runs in place of the request's `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) enum Decision {
    Allow,
    AllowAlways,
    Deny,
    DenyStop,
    Answered,
    Withdrawn,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct AskUserQuestion<'a> {
    /// The same as `request_id`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub tool_id: RequestId,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub request_id: RequestId,
    pub questions: Vec<AskedQuestion<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct AskedQuestion<'a> {
    pub header: &'a str,
    pub question: &'a str,
    pub options: Vec<AskedOption<'a>>,
    #[serde(rename = "multiSelect")]
    pub multi_select: bool,
}

impl AskedQuestion<'_> {
    pub(in crate::unified) fn of(question: &Question) -> AskedQuestion<'_> {
        let options = question.options.iter().map(|choice| AskedOption {
            label: &choice.label,
            description: choice.description.as_deref().unwrap_or(""),
        });
        AskedQuestion {
            header: question.header.as_deref().unwrap_or(""),
            question: &question.question,
            options: options.collect(),
            multi_select: question.multi,
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct AskedOption<'a> {
    pub label: &'a str,
    pub description: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::unified) struct ExitPlanMode {
    /// The same as `request_id`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub tool_id: RequestId,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub request_id: RequestId,
    pub plan_file_path: Option<String>,
    pub plan: String,
}
