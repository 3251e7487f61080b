//! Reads every setting into its place, and checks what several of them mean together.
//!
//! Looks at files and directories, but makes none.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::settings::{self, Kind, Setting};
use super::source::{Reader, shown};
use super::value::{
    self, AgentKind, ApprovalMode, ChatBroadcast, ContextStrategy, LogFormat, LogLevel,
};
use super::{
    Access, Approval, Bounds, Budget, Config, Context, Limits, Log, Model, SharedStore, capacity,
    provider, search, url,
};

/// What could be read; a part is missing where a problem was noted.
pub struct Parts {
    pub addr: Option<SocketAddr>,
    pub working_directory: Option<PathBuf>,
    workspace_roots: Vec<PathBuf>,
    pub model: Option<Model>,
    agent: Option<AgentKind>,
    bounds: Option<Bounds>,
    calls_max: Option<u32>,
    approval: Option<Approval>,
    auto_resume: Option<bool>,
    web_private_addresses: Option<bool>,
    instructions_file: Option<PathBuf>,
    rules_file: Option<PathBuf>,
    own_files: Vec<PathBuf>,
    pub session_store: Option<PathBuf>,
    pub shared_store: Option<SharedStore>,
    pub store_replicas: Option<usize>,
    pub todos_store: Option<PathBuf>,
    pub user_message_db: Option<PathBuf>,
    pub memory_db: Option<PathBuf>,
    chat_broadcast: Option<ChatBroadcast>,
    context: Option<Context>,
    pub access: Access,
    log: Option<Log>,
    limits: Option<Limits>,
}

/// Reads every setting, so that all problems are noted.
pub(super) fn parts(reader: &mut Reader<'_>) -> Parts {
    let addr = read_addr(reader);
    let start_dir = reader.start_dir().to_owned();
    let root = |text: &str| value::directory(&start_dir.join(text));
    Parts {
        addr,
        working_directory: read_working_directory(reader),
        workspace_roots: reader.list(&settings::WORKSPACE_ROOTS, root),
        model: provider::read(reader),
        agent: reader.required(&settings::AGENT, |text| AgentKind::parse(&lower(text))),
        bounds: search::read(reader),
        calls_max: required_number(reader, &settings::MAX_TURNS),
        approval: read_approval(reader),
        auto_resume: reader.required(&settings::AUTO_RESUME, value::switch),
        web_private_addresses: reader.required(&settings::WEB_PRIVATE_ADDRESSES, value::switch),
        instructions_file: read_instructions_file(reader),
        rules_file: read_rules_file(reader),
        own_files: own_files(reader),
        session_store: read_store(reader, &settings::SESSION_STORE_PATH),
        shared_store: reader.optional(&settings::STORE, url::store),
        store_replicas: reader
            .optional(&settings::STORE_REPLICAS, |text| bounded(&settings::STORE_REPLICAS, text)),
        todos_store: read_store(reader, &settings::TODOS_STORE_PATH),
        user_message_db: reader.path(&settings::USER_MESSAGE_DB),
        memory_db: reader.path(&settings::MEMORY_DB),
        chat_broadcast: reader
            .required(&settings::CHAT_BROADCAST, |text| ChatBroadcast::parse(&lower(text))),
        context: read_context(reader),
        access: read_access(reader, addr),
        log: read_log(reader),
        limits: read_limits(reader),
    }
}

impl Parts {
    /// The configuration, if nothing is missing.
    pub(super) fn whole(self, warnings: Vec<String>) -> Option<Config> {
        let addr = self.addr?;
        Some(Config {
            host: addr.ip(),
            port: addr.port(),
            working_directory: self.working_directory?,
            workspace_roots: self.workspace_roots,
            model: self.model?,
            agent: self.agent?,
            bounds: self.bounds?,
            calls_max: self.calls_max?,
            instructions_file: self.instructions_file,
            rules_file: self.rules_file,
            own_files: self.own_files,
            approval: self.approval?,
            auto_resume: self.auto_resume?,
            web_private_addresses: self.web_private_addresses?,
            session_store: self.session_store,
            shared_store: self.shared_store,
            store_replicas: self.store_replicas,
            todos_store: self.todos_store,
            user_message_db: self.user_message_db,
            memory_db: self.memory_db,
            chat_broadcast: self.chat_broadcast?,
            context: self.context?,
            access: self.access,
            log: self.log?,
            limits: self.limits?,
            warnings,
        })
    }
}

pub(super) fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}

fn read_addr(reader: &mut Reader<'_>) -> Option<SocketAddr> {
    if reader.is_set(&settings::ADDR) {
        return reader.optional(&settings::ADDR, value::address);
    }
    let host = reader.required(&settings::HOST, value::host);
    let port = required_number(reader, &settings::PORT);
    Some(SocketAddr::new(host?, port?))
}

fn read_working_directory(reader: &mut Reader<'_>) -> Option<PathBuf> {
    let start_dir = || reader.start_dir().to_owned();
    let path = reader.path(&settings::WORKING_DIRECTORY).unwrap_or_else(start_dir);
    let problem = match path.canonicalize() {
        Ok(real) if real.is_dir() => return Some(real),
        Ok(_) => format!("Working directory is not a directory: {}", path.display()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            format!("Working directory does not exist: {}", path.display())
        }
        Err(error) => format!("Working directory cannot be used: {}: {error}", path.display()),
    };
    reader.problems.push(problem);
    None
}

fn read_approval(reader: &mut Reader<'_>) -> Option<Approval> {
    // The published server takes these words only as they are written.
    let fallback = ApprovalMode::Suggest;
    let setting = &settings::TOOL_USE_APPROVAL_MODE;
    let mode = reader.lenient(setting, ApprovalMode::parse, fallback, fallback.word());
    let allow_bypass = reader.required(&settings::ALLOW_BYPASS, value::switch);
    let setting = &settings::APPROVAL_TIMEOUT_SECS;
    let timeout = reader.optional(setting, |text| bounded(setting, text)).map(Duration::from_secs);
    Some(Approval { mode, allow_bypass: allow_bypass?, timeout })
}

fn read_instructions_file(reader: &mut Reader<'_>) -> Option<PathBuf> {
    let path = reader.path(&settings::INSTRUCTIONS_FILE_PATH)?;
    let shown_path = path.display();
    match std::fs::File::open(&path).and_then(|file| file.metadata()) {
        Ok(metadata) if metadata.is_dir() => {
            reader.warnings.push(format!("Instructions file is a directory: {shown_path}"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            reader.warnings.push(format!("Instructions file not found: {shown_path}"));
        }
        Err(error) => {
            reader.warnings.push(format!("Error reading instructions file: {shown_path}: {error}"));
        }
    }
    Some(path)
}

/// It must be there and be right: whoever wrote it counts on it.
fn read_rules_file(reader: &mut Reader<'_>) -> Option<PathBuf> {
    let path = reader.path(&settings::RULES_FILE)?;
    if let Err(problems) = crate::rules::load(&path) {
        let name = settings::RULES_FILE.label();
        reader.problems.extend(problems.iter().map(|problem| format!("{name}: {problem}")));
    }
    Some(path)
}

/// Files with secrets or power over the server, which the agent must keep its hands off.
fn own_files(reader: &Reader<'_>) -> Vec<PathBuf> {
    let named =
        [&settings::RULES_FILE, &settings::GOOGLE_APPLICATION_CREDENTIALS, &settings::AUDIT_LOG];
    let named = named.into_iter().filter_map(|setting| reader.path(setting));
    named.chain(reader.env_file()).collect()
}

/// A store that is not there yet will be made; one that is a file cannot be.
fn read_store(reader: &mut Reader<'_>, setting: &Setting) -> Option<PathBuf> {
    let path = reader.path(setting)?;
    if path.exists() && !path.is_dir() {
        let (path, kind) = (shown(&path.to_string_lossy()), setting.kind);
        reader.problems.push(format!(
            "{}: {path} is not {}; use {}",
            setting.label(),
            kind.what(),
            kind.allowed()
        ));
    }
    Some(path)
}

fn read_context(reader: &mut Reader<'_>) -> Option<Context> {
    let strategy =
        reader.required(&settings::CONTEXT_STRATEGY, |text| ContextStrategy::parse(&lower(text)));
    let threshold = reader.required(&settings::CONTEXT_COMPACTION_THRESHOLD, value::fraction);
    let cost_micros_max = reader.optional(&settings::MAX_SESSION_COST_USD, value::dollars);
    let setting = &settings::MAX_SESSION_TOKENS;
    let tokens_max = reader.optional(setting, |text| bounded(setting, text));
    let budget = Budget { cost_micros_max, tokens_max };
    Some(Context { strategy: strategy?, threshold: threshold?, budget })
}

fn read_access(reader: &mut Reader<'_>, addr: Option<SocketAddr>) -> Access {
    let problems_before = reader.problems.len();
    let token = reader.optional(&settings::POLYLOOP_TOKEN, value::token);
    let token_is_bad = reader.problems.len() > problems_before;
    let allowed_origins = reader.list(&settings::ALLOWED_ORIGINS, value::origin);
    let allowed_hosts = reader.list(&settings::ALLOWED_HOSTS, value::host_name);

    let outside = addr.filter(|addr| !addr.ip().to_canonical().is_loopback());
    match (outside, &token) {
        (Some(addr), None) if !token_is_bad => reader.problems.push(format!(
            "{addr} can be reached from other machines, which needs a token; set {} (`openssl \
             rand -hex 32` makes one) or listen on 127.0.0.1",
            settings::POLYLOOP_TOKEN.name
        )),
        (Some(addr), Some(_)) if allowed_hosts.is_empty() => reader.warnings.push(format!(
            "{addr} can be reached from other machines, but only loopback names are answered; set \
             {} to the names that clients use",
            settings::ALLOWED_HOSTS.name
        )),
        (Some(_), None | Some(_)) | (None, _) => {}
    }
    Access { token, allowed_origins, allowed_hosts }
}

fn read_log(reader: &mut Reader<'_>) -> Option<Log> {
    let level = reader.required(&settings::LOG_LEVEL, |text| LogLevel::parse(&lower(text)));
    let format = reader.required(&settings::LOG_FORMAT, |text| LogFormat::parse(&lower(text)));
    let audit = reader.path(&settings::AUDIT_LOG);
    Some(Log { level: level?, format: format?, audit })
}

fn read_limits(reader: &mut Reader<'_>) -> Option<Limits> {
    let message_bytes_max = required_number(reader, &settings::MAX_MESSAGE_BYTES);
    let connections_max = required_number(reader, &settings::MAX_CONNECTIONS);
    let queued_messages_max = required_number(reader, &settings::MAX_QUEUED_MESSAGES);
    let command_timeout = required_number(reader, &settings::COMMAND_TIMEOUT_SECS);
    let capacity = capacity::read(reader);
    let awake_sessions_max = required_number(reader, &settings::MAX_AWAKE_SESSIONS);
    let rates = capacity::read_rates(reader);
    Some(Limits {
        message_bytes_max: message_bytes_max?,
        connections_max: connections_max?,
        queued_messages_max: queued_messages_max?,
        command_timeout: Duration::from_secs(command_timeout?),
        capacity: capacity?,
        awake_sessions_max: awake_sessions_max?,
        rates: rates?,
    })
}

/// A number within the bounds of its row.
pub(super) fn required_number<T: TryFrom<u64>>(
    reader: &mut Reader<'_>,
    setting: &Setting,
) -> Option<T> {
    reader.required(setting, |text| bounded(setting, text))
}

fn bounded<T: TryFrom<u64>>(setting: &Setting, text: &str) -> Option<T> {
    match setting.kind {
        Kind::Number { min, max, .. } => value::number(text, min, max),
        _ => None, // Only rows of numbers are read as numbers.
    }
}
