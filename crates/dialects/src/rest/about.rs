//! What a client may want to know of a server before it speaks: `GET /about` and `GET /models`.

use std::path::PathBuf;

use polyloop_session::event::Agent;
use polyloop_session::policy::Mode;
use serde::Serialize;

use crate::frame::default_word;

const MODES: [Mode; 6] =
    [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto, Mode::Plan, Mode::DontAsk, Mode::Bypass];
const AGENTS: [Agent; 4] = [Agent::React, Agent::Dup, Agent::Tot, Agent::Got];

#[derive(Serialize)]
pub struct About<'a> {
    name: &'static str,
    version: &'static str,
    /// Who runs the model of sessions that name none.
    provider: &'a str,
    model: &'a str,
    agent: Agent,
    permission_mode: &'static str,
    modes: Vec<ModeTold>,
    agents: Vec<AgentTold>,
    working_directory: &'a str,
    workspace_roots: &'a [PathBuf],
    sandbox: bool,
    /// Whether sessions outlive the server.
    keeps_sessions: bool,
    dialects: Vec<&'static str>,
    limits: LimitsTold,
}

/// What of a server is told.
pub struct Facts<'a> {
    pub provider: &'a str,
    pub model: &'a str,
    pub agent: Agent,
    pub mode: Mode,
    pub bypass_allowed: bool,
    pub working_directory: &'a str,
    /// Besides the working directory.
    pub workspace_roots: &'a [PathBuf],
    pub sandbox: bool,
    pub keeps_sessions: bool,
    pub message_bytes_max: usize,
    pub queued_messages_max: usize,
}

#[derive(Serialize)]
struct ModeTold {
    mode: &'static str,
    says: &'static str,
}

#[derive(Serialize)]
struct AgentTold {
    agent: Agent,
    says: &'static str,
}

#[derive(Serialize)]
struct LimitsTold {
    message_bytes: usize,
    queued_messages: usize,
}

impl<'a> About<'a> {
    pub fn new(facts: Facts<'a>) -> About<'a> {
        let offered = |mode: &Mode| *mode != Mode::Bypass || facts.bypass_allowed;
        let told = |mode: Mode| ModeTold { mode: default_word(mode), says: mode_says(mode) };
        About {
            name: "polyloop",
            version: env!("CARGO_PKG_VERSION"),
            provider: facts.provider,
            model: facts.model,
            agent: facts.agent,
            permission_mode: default_word(facts.mode),
            modes: MODES.into_iter().filter(offered).map(told).collect(),
            agents: AGENTS.map(|agent| AgentTold { agent, says: agent_says(agent) }).into(),
            working_directory: facts.working_directory,
            workspace_roots: facts.workspace_roots,
            sandbox: facts.sandbox,
            keeps_sessions: facts.keeps_sessions,
            dialects: crate::detect::ALL.iter().map(|dialect| dialect.name()).collect(),
            limits: LimitsTold {
                message_bytes: facts.message_bytes_max,
                queued_messages: facts.queued_messages_max,
            },
        }
    }
}

fn mode_says(mode: Mode) -> &'static str {
    match mode {
        Mode::Suggest => "asks before anything but reading",
        Mode::AutoEdit => "edits files in the working directory unasked, asks before commands",
        Mode::FullAuto => "runs commands in the sandbox, asks where there is none or it stops one",
        Mode::Bypass => "never asks, and runs everything outside the sandbox",
        Mode::Plan => "only looks, and proposes a plan",
        Mode::DontAsk => "denies whatever it would have to ask about",
    }
}

fn agent_says(agent: Agent) -> &'static str {
    match agent {
        Agent::React => "thinks and acts step by step",
        Agent::Dup => "makes sure that it understood, then acts step by step",
        Agent::Tot => "weighs several ways and follows the best",
        Agent::Got => "splits the work into sub-tasks and joins their results",
    }
}

#[derive(Serialize)]
pub struct ModelList<'a> {
    pub default: &'a str,
    pub models: Vec<ModelTold<'a>>,
}

#[derive(Serialize)]
pub struct ModelTold<'a> {
    pub model: &'a str,
    pub provider: &'a str,
    /// In tokens.
    pub context_window: u64,
}
