//! What is in force for a session, and what one run wants otherwise.

use serde::{Deserialize, Serialize};

use crate::id::Text;
use crate::policy::Mode;
use crate::strategy::bounds::Wanted;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub cwd: Text,
    pub model: Text,
    pub mode: Mode,
    /// Model calls one turn may make.
    pub calls_max: u32,
    /// The size of the model's window, where it is not the server's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Text>,
    /// A client's own data: JSON text, so that its numbers stay as they were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Text>,
}

/// One setting of a session. The mode has an event of its own: it is weighed at each verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Setting {
    Model { model: Text, tokens_max: u64 },
    Agent { agent: Agent },
    Title { title: Text },
    CallsMax { calls_max: u32 },
    Metadata { json: Text },
}

/// How a turn is worked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Agent {
    #[default]
    React,
    Dup,
    Tot,
    Got,
}

impl Agent {
    pub fn name(self) -> &'static str {
        match self {
            Agent::React => "react",
            Agent::Dup => "dup",
            Agent::Tot => "tot",
            Agent::Got => "got",
        }
    }
}

/// What one run wants otherwise than its session's settings say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adaptive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_max: Option<u32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verbose: bool,
    /// How far a search may go, where that is not the server's to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Box<Wanted>>,
    /// The run has a session to itself, which ends with it: nothing is remembered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
}
