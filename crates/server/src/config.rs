//! The configuration: what it is, where it comes from, and what is wrong with it.
//!
//! A flag wins over the environment, which wins over the `.env` file of the directory the server
//! is started in. Never reads the process environment itself (it is an argument), never writes
//! to it, never reads anything from the working directory, and never prints a secret.

mod capacity;
mod describe;
mod dotenv;
mod provider;
mod read;
#[cfg(test)]
mod readme;
mod search;
pub mod settings;
mod source;
#[cfg(test)]
mod tests;
pub mod url;
mod value;

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::rate::Rates;
use polyloop_agent::gate::Capacity;
use polyloop_agent::model::table::Table;
use polyloop_session::budget::Budget;
use polyloop_session::strategy::bounds::Bounds;
pub use provider::{detect, is_own_server};
pub use read::Parts;
use source::Reader;
pub use source::{Held, ServeArgs, one_line};
pub use value::{
    AgentKind, ApprovalMode, ChatBroadcast, ContextStrategy, LogFormat, LogLevel, Provider, Secret,
    WireApi,
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

/// The file of memories in a session store.
const MEMORIES_NAME: &str = "memories.db";

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
    /// How far a search may go.
    pub bounds: Bounds,
    /// Model calls that one turn may make.
    pub calls_max: u32,
    /// May be missing, and may come later: whoever reads it takes a missing file as none.
    pub instructions_file: Option<PathBuf>,
    /// It was read once and found good.
    pub rules_file: Option<PathBuf>,
    /// Files with secrets or power over the server.
    pub own_files: Vec<PathBuf>,
    pub approval: Approval,
    /// Go on at start with turns that a crash cut off.
    pub auto_resume: bool,
    /// Whether pages may be fetched from addresses that are not on the public internet.
    pub web_private_addresses: bool,
    /// Where session files are; without it sessions live in memory. Perhaps not yet there.
    pub session_store: Option<PathBuf>,
    /// Where sessions are that several servers share; they are nowhere else then.
    pub shared_store: Option<SharedStore>,
    pub store_replicas: Option<usize>,
    pub todos_store: Option<PathBuf>,
    pub user_message_db: Option<PathBuf>,
    /// Where memories are, if that was said; see `Config::memory_file`.
    pub memory_db: Option<PathBuf>,
    pub chat_broadcast: ChatBroadcast,
    pub context: Context,
    pub access: Access,
    pub log: Log,
    pub limits: Limits,
    /// What the user should hear at start, but what does not stop the server.
    pub warnings: Vec<String>,
}

/// Sessions on NATS.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "nats"), allow(dead_code, reason = "nothing can reach them then"))]
pub struct SharedStore {
    /// With their scheme, and a user and a password where they need one.
    pub servers: Vec<Secret>,
    /// Several stores have room on the same servers.
    pub name: String,
}

/// The model of sessions that name none, and how each provider is reached.
#[derive(Clone, Debug)]
pub struct Model {
    pub provider: Provider,
    /// Whether PROVIDER was set; otherwise it was told from the model's name.
    pub named: bool,
    pub name: String,
    /// For OpenAI, and for servers that speak like it.
    pub wire: WireApi,
    pub openai: ModelAccess,
    pub anthropic: ModelAccess,
    pub google: ModelAccess,
    /// Lines for the table of models. It was read once and found good.
    pub models_file: Option<PathBuf>,
    pub proxy: Proxy,
    /// How long a model may send nothing.
    pub idle_timeout: Duration,
    /// How often a model is asked again after a failure that may pass.
    pub retries_max: u32,
}

/// How one provider is reached.
#[derive(Clone, Debug)]
pub struct ModelAccess {
    /// None where no key is set.
    pub key: Option<ModelKey>,
    /// Without a slash at the end.
    pub base_url: String,
}

/// Through what models and web pages are reached.
#[derive(Clone, Debug, Default)]
pub struct Proxy {
    /// URLs, with user and password where the proxy wants them.
    pub https: Option<Secret>,
    pub http: Option<Secret>,
    /// Hosts that are reached directly, as the variable has them.
    pub no_proxy: Option<String>,
}

impl Model {
    /// How a provider is reached; the offline model is not.
    pub fn access(&self, provider: Provider) -> Option<&ModelAccess> {
        match provider {
            Provider::OpenAi => Some(&self.openai),
            Provider::Anthropic => Some(&self.anthropic),
            Provider::Google => Some(&self.google),
            Provider::Offline => None,
        }
    }

    /// Whether the chosen provider may want no key: a server that only speaks like OpenAI's.
    pub fn needs_no_key(&self) -> bool {
        self.provider == Provider::Offline
            || self.provider == Provider::OpenAi && provider::is_own_server(&self.openai.base_url)
    }

    /// What is known of models: what is built in, and before that what MODELS_FILE says.
    pub fn table(&self) -> Result<Table, String> {
        self.models_file.as_deref().map_or_else(|| Ok(Table::built_in()), provider::table)
    }
}

#[derive(Clone, Debug)]
pub struct ModelKey {
    /// Which variable it is from: GOOGLE_APPLICATION_CREDENTIALS is the path of a service
    /// account's file, all others are keys.
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
    /// Of each session.
    pub budget: Budget,
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
    /// Where it is told who came and who decided what.
    pub audit: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct Limits {
    pub message_bytes_max: usize,
    pub connections_max: usize,
    pub queued_messages_max: usize,
    pub command_timeout: Duration,
    pub capacity: Capacity,
    pub awake_sessions_max: usize,
    pub rates: Rates,
}

/// What the settings say, whether the server could start with them or not.
pub struct Examined {
    pub held: Vec<Held>,
    /// The `.env` file, if there is one.
    pub env_file: Option<PathBuf>,
    /// Why it could not be read.
    pub env_file_problems: Vec<String>,
    pub parts: Parts,
    pub problems: Vec<String>,
    pub warnings: Vec<String>,
}

impl Config {
    /// Where memories are kept, if they are.
    pub fn memory_file(&self) -> Option<PathBuf> {
        let beside = || self.session_store.as_ref().map(|store| store.join(MEMORIES_NAME));
        self.memory_db.clone().or_else(beside)
    }

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

    /// The same as `load`, for people who want to know: nothing stops at a problem.
    pub fn examine(
        args: &ServeArgs,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        start_dir: &Path,
    ) -> Examined {
        let mut reader = Reader::new(args, environment, start_dir);
        let parts = read::parts(&mut reader);
        Examined {
            held: reader.held(),
            env_file: reader.env_file(),
            env_file_problems: reader.file_problems,
            parts,
            problems: reader.problems,
            warnings: reader.warnings,
        }
    }

    /// Where to listen.
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::new(self.host, self.port)
    }
}

fn finish(mut reader: Reader<'_>) -> Result<Config, ConfigError> {
    if !reader.file_problems.is_empty() {
        // What else is wrong may only be missing from it.
        return Err(ConfigError::new(reader.file_problems));
    }
    let parts = read::parts(&mut reader);
    match parts.whole(reader.warnings.clone()) {
        Some(config) if reader.problems.is_empty() => Ok(config),
        Some(_) | None => Err(ConfigError { problems: reader.problems, warnings: reader.warnings }),
    }
}
