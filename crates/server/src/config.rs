//! The configuration: what it is, where it comes from, and what is wrong with it.
//!
//! A flag wins over the environment, which wins over the `.env` file of the directory the server
//! is started in. Never reads the process environment itself (it is an argument), never writes
//! to it, never reads anything from the working directory, and never prints a secret.

mod dotenv;
mod provider;
mod read;
#[cfg(test)]
mod readme;
pub mod settings;
mod source;
#[cfg(test)]
mod tests;
mod value;

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use settings::Setting;
use source::Reader;
pub use source::ServeArgs;
pub use value::{
    AgentKind, ApprovalMode, ChatBroadcast, ContextStrategy, LogFormat, LogLevel, Provider, Secret,
};

/// Why the server cannot start, in lines for people.
#[derive(Debug, thiserror::Error)]
#[error("{}", .problems.join("\n"))]
pub struct ConfigError {
    pub problems: Vec<String>,
    /// What else was noticed; it may explain a problem.
    pub warnings: Vec<String>,
}

impl ConfigError {
    pub fn new(problems: Vec<String>) -> Self {
        Self { problems, warnings: Vec::new() }
    }
}

/// Everything the server was told. `Debug` hides secrets.
#[derive(Clone, Debug)]
pub struct Config {
    pub host: IpAddr,
    /// 0 is any free port.
    pub port: u16,
    /// Absolute, without links.
    pub working_directory: PathBuf,
    /// Further ones that clients may choose; absolute, without links.
    pub workspace_roots: Vec<PathBuf>,
    pub model: Model,
    pub agent: AgentKind,
    /// May be missing, and may come later: whoever reads it takes a missing file as none.
    pub instructions_file: Option<PathBuf>,
    pub approval: Approval,
    /// Go on at start with turns that a crash cut off.
    pub auto_resume: bool,
    /// Where session files are; without it sessions live in memory. Perhaps not yet there.
    pub session_store: Option<PathBuf>,
    pub todos_store: Option<PathBuf>,
    pub user_message_db: Option<PathBuf>,
    pub chat_broadcast: ChatBroadcast,
    pub context: Context,
    pub access: Access,
    pub log: Log,
    pub limits: Limits,
    /// What the user should hear at start, but what does not stop the server.
    pub warnings: Vec<String>,
}

/// The model of sessions that name none, and what its provider needs.
#[derive(Clone, Debug)]
pub struct Model {
    pub provider: Provider,
    pub name: String,
    /// None for the offline model.
    pub key: Option<ModelKey>,
}

#[derive(Clone, Debug)]
pub struct ModelKey {
    /// Which variable it is from; a service account's file is no API key.
    pub variable: &'static str,
    pub value: Secret,
}

#[derive(Clone, Debug)]
pub struct Approval {
    pub mode: ApprovalMode,
    /// Whether clients may choose the mode that never asks.
    pub allow_bypass: bool,
    /// None: an approval waits for ever.
    pub timeout: Option<Duration>,
}

#[derive(Clone, Debug)]
pub struct Context {
    pub strategy: ContextStrategy,
    /// Above 0, up to 1.
    pub threshold: f64,
}

/// Who may connect.
#[derive(Clone, Debug)]
pub struct Access {
    pub token: Option<Secret>,
    /// As browsers send them: lower case, without the scheme's own port.
    pub allowed_origins: Vec<String>,
    /// As in a `Host` header, without the port: lower case, IPv6 in brackets.
    pub allowed_hosts: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Log {
    pub level: LogLevel,
    pub format: LogFormat,
}

#[derive(Clone, Debug)]
pub struct Limits {
    pub message_bytes_max: usize,
    pub connections_max: usize,
    pub queued_messages_max: usize,
    pub command_timeout: Duration,
}

impl Config {
    /// The configuration of `polyloop serve`. `environment` is usually `std::env::vars_os()`,
    /// `start_dir` the directory the server was started in.
    pub fn load(
        args: &ServeArgs,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        start_dir: &Path,
    ) -> Result<Self, ConfigError> {
        finish(Reader::new(args, environment, start_dir))
    }

    /// A configuration that flags alone decide, whatever the environment and `.env` say.
    pub fn of_flags(args: &ServeArgs, start_dir: &Path) -> Result<Self, ConfigError> {
        finish(Reader::of_flags(args, start_dir))
    }

    /// Where to listen.
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::new(self.host, self.port)
    }

    /// Each setting and what holds, in the table's order; secrets are hidden.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let word = |setting: &Setting, value: &str| (setting.name, value.to_owned());
        let secs = |limit: Option<Duration>| limit.map(|limit| limit.as_secs().to_string());
        let key = |key: &ModelKey| (key.variable, key.value.masked().to_owned());
        let roots: Vec<String> =
            self.workspace_roots.iter().map(|root| root.display().to_string()).collect();
        let mut rows = vec![
            (settings::HOST.name, self.host.to_string()),
            (settings::PORT.name, self.port.to_string()),
            (settings::WORKING_DIRECTORY.name, self.working_directory.display().to_string()),
            list(&settings::WORKSPACE_ROOTS, &roots),
            word(&settings::PROVIDER, self.model.provider.word()),
            word(&settings::MODEL, &self.model.name),
        ];
        rows.extend(self.model.key.as_ref().map(key));
        rows.extend([
            word(&settings::AGENT, self.agent.word()),
            word(&settings::TOOL_USE_APPROVAL_MODE, self.approval.mode.word()),
            (settings::ALLOW_BYPASS.name, self.approval.allow_bypass.to_string()),
            (settings::APPROVAL_TIMEOUT_SECS.name, or_unset(secs(self.approval.timeout))),
            (settings::AUTO_RESUME.name, self.auto_resume.to_string()),
            path(&settings::INSTRUCTIONS_FILE_PATH, self.instructions_file.as_deref()),
            (
                settings::COMMAND_TIMEOUT_SECS.name,
                or_unset(secs(Some(self.limits.command_timeout))),
            ),
            word(&settings::CHAT_BROADCAST, self.chat_broadcast.word()),
            path(&settings::SESSION_STORE_PATH, self.session_store.as_deref()),
            path(&settings::TODOS_STORE_PATH, self.todos_store.as_deref()),
            path(&settings::USER_MESSAGE_DB, self.user_message_db.as_deref()),
            word(&settings::CONTEXT_STRATEGY, self.context.strategy.word()),
            (settings::CONTEXT_COMPACTION_THRESHOLD.name, self.context.threshold.to_string()),
            (
                settings::POLYLOOP_TOKEN.name,
                or_unset(self.access.token.as_ref().map(|token| token.masked().to_owned())),
            ),
            list(&settings::ALLOWED_ORIGINS, &self.access.allowed_origins),
            list(&settings::ALLOWED_HOSTS, &self.access.allowed_hosts),
            word(&settings::LOG_LEVEL, self.log.level.word()),
            word(&settings::LOG_FORMAT, self.log.format.word()),
            (settings::MAX_MESSAGE_BYTES.name, self.limits.message_bytes_max.to_string()),
            (settings::MAX_CONNECTIONS.name, self.limits.connections_max.to_string()),
            (settings::MAX_QUEUED_MESSAGES.name, self.limits.queued_messages_max.to_string()),
        ]);
        rows
    }
}

fn or_unset(value: Option<String>) -> String {
    value.unwrap_or_else(|| "(not set)".to_owned())
}

fn path(setting: &Setting, path: Option<&Path>) -> (&'static str, String) {
    (setting.name, or_unset(path.map(|path| path.display().to_string())))
}

fn list(setting: &Setting, values: &[String]) -> (&'static str, String) {
    (setting.name, or_unset((!values.is_empty()).then(|| values.join(","))))
}

fn finish(reader: Result<Reader<'_>, Vec<String>>) -> Result<Config, ConfigError> {
    let mut reader = reader.map_err(ConfigError::new)?;
    match read::config(&mut reader) {
        Some(config) if reader.problems.is_empty() => {
            Ok(Config { warnings: reader.warnings, ..config })
        }
        Some(_) | None => Err(ConfigError { problems: reader.problems, warnings: reader.warnings }),
    }
}
