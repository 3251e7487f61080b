//! The table of settings: one row each, and nothing about a setting stands anywhere else.
//!
//! From it come the flags of `polyloop serve`, what is read from the environment and `.env`,
//! the texts of errors, what is hidden, and the table in the README. To add a setting, add its
//! row, a field of `Config`, and the line of `Config` that reads it. A row is here only while
//! the setting has an effect.

use super::value::{
    AgentKind, ApprovalMode, ChatBroadcast, ContextStrategy, LogFormat, LogLevel, Provider,
    TotJudge, TotSearch, WireApi,
};
use polyloop_session::strategy::bounds::BOUND_MAX;

/// The one model that PROVIDER=offline has.
pub const OFFLINE_MODEL: &str = "offline";
/// A token this short can be guessed.
pub(super) const TOKEN_CHARS_MIN: usize = 16;
pub(super) const TOKEN_CHARS_MAX: usize = 512;
const PORT_MAX: u64 = u16::MAX as u64;
const MINUTE_SECS: u64 = 60;
const DAY_SECS: u64 = 24 * 60 * MINUTE_SECS;

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// The environment variable; for a setting that is only a flag, the field's name.
    pub name: &'static str,
    /// The same in kebab case, without the leading dashes.
    pub flag: &'static str,
    pub group: Group,
    pub kind: Kind,
    pub preset: Preset,
    /// One line, without a full stop.
    pub help: &'static str,
}

/// What holds when nobody sets it.
#[derive(Clone, Copy, Debug)]
pub enum Preset {
    /// This value, read like any other.
    Is(&'static str),
    /// Nothing; the text says what then happens, if that is not plain.
    Unset(&'static str),
}

/// What a value looks like.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Word {
        what: &'static str,
        words: &'static [&'static str],
    },
    Number {
        what: &'static str,
        unit: &'static str,
        min: u64,
        max: u64,
    },
    /// More than 0 and at most 1.
    Fraction,
    /// From 0 to 1.
    Part,
    /// An amount of money above 0.
    Dollars,
    Switch,
    /// An IP address to listen on.
    Host,
    /// Host and port in one; only a flag.
    HostAndPort,
    Text,
    Secret,
    /// A secret that must be hard to guess and fit into a header, a URL and a cookie.
    Token,
    /// Where a provider's interface begins.
    BaseUrl,
    /// A proxy's URL, which may hold a password: a secret.
    ProxyUrl,
    /// Where NATS servers are, which may hold a password: a secret.
    StoreUrl,
    File,
    Directory,
    Origins,
    HostNames,
    Directories,
}

/// Defines the rows and the list of them all.
macro_rules! settings {
    ($($group:ident { $($name:ident $flag:literal, $kind:expr, $preset:expr, $help:literal;)+ })+)
    => {
        /// Where a setting stands in the help and in the README.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Group { $($group,)+ }

        $($(pub static $name: Setting = Setting {
            name: stringify!($name),
            flag: $flag,
            group: Group::$group,
            kind: $kind,
            preset: $preset,
            help: $help,
        };)+)+

        /// Every setting, in the order of the help and the README.
        pub static ALL: &[&Setting] = &[$($(&$name,)+)+];
    };
}

use Kind::{BaseUrl, Directories, Directory, Dollars, File, Fraction, Host, HostAndPort};
use Kind::{HostNames, Origins, Part, ProxyUrl, Secret, StoreUrl, Switch, Text, Token};
use Preset::{Is, Unset};

settings! {
    Server {
        HOST "host", Host, Is("127.0.0.1"),
            "Address to listen on; beyond loopback a token is needed";
        PORT "port", number("a port", "", 0, PORT_MAX), Is("8080"),
            "Port to listen on; 0 takes any free one";
        ADDR "addr", HostAndPort, Unset("`HOST` and `PORT`"),
            "Both in one; wins over HOST and PORT";
        WORKING_DIRECTORY "working-directory", Directory, Unset("where the server is started"),
            "The directory the agent works in; must exist";
        WORKSPACE_ROOTS "workspace-roots", Directories, Unset("none"),
            "Further directories that clients may choose to work in";
    }
    Model {
        PROVIDER "provider", word("a provider", Provider::WORDS), Unset("told from `MODEL`"),
            "Who runs the model";
        MODEL "model", Text,
            Unset("by provider: `codex-mini-latest`, `claude-sonnet-5-5`, `gemini-3.8-flash`"),
            "The model's name; claude-… is Anthropic's, gemini-… Google's, others OpenAI's";
        OPENAI_API_KEY "openai-api-key", Secret, Unset(""),
            "Key for PROVIDER=openai; with another OPENAI_BASE_URL only if that wants one";
        ANTHROPIC_API_KEY "anthropic-api-key", Secret, Unset(""),
            "Key for PROVIDER=anthropic";
        GOOGLE_API_KEY "google-api-key", Secret, Unset(""),
            "Key for PROVIDER=google";
        GOOGLE_APPLICATION_CREDENTIALS "google-application-credentials", File, Unset(""),
            "Service account file for PROVIDER=google, if there is no GOOGLE_API_KEY";
        OPENAI_BASE_URL "openai-base-url", BaseUrl, Is("https://api.openai.com/v1"),
            "Where OpenAI's interface is, with its version; also for servers that speak it";
        ANTHROPIC_BASE_URL "anthropic-base-url", BaseUrl, Is("https://api.anthropic.com"),
            "Where Anthropic's interface is, without its version";
        GOOGLE_BASE_URL "google-base-url", BaseUrl,
            Is("https://generativelanguage.googleapis.com"),
            "Where Google's interface is, without its version";
        OPENAI_WIRE_API "openai-wire-api", word("an interface", WireApi::WORDS), Is("responses"),
            "Which of OpenAI's interfaces is spoken; most other servers have chat only";
        MODELS_FILE "models-file", File, Unset("what is built in"),
            "A JSON file with windows, limits and prices of models; see docs/MODELS.md";
        MODEL_IDLE_TIMEOUT_SECS "model-idle-timeout-secs",
            number("a time limit", "seconds", 1, DAY_SECS), Is("300"),
            "How long a model may send nothing";
        MODEL_RETRIES "model-retries", number("a number of retries", "", 0, 10), Is("4"),
            "How often a model is asked again after a failure that may pass";
        HTTPS_PROXY "https-proxy", ProxyUrl, Unset(""),
            "Proxy for https URLs of models and web pages; https_proxy counts too";
        HTTP_PROXY "http-proxy", ProxyUrl, Unset(""),
            "Proxy for http URLs of models and web pages; http_proxy counts too";
        NO_PROXY "no-proxy", Text, Unset(""),
            "Hosts that are reached without a proxy, comma-separated; no_proxy counts too";
    }
    Agent {
        AGENT "agent", word("an agent", AgentKind::WORDS), Is("react"),
            "How a turn is worked, where neither session nor run says; see Agents";
        TOOL_USE_APPROVAL_MODE "tool-use-approval-mode",
            word("a mode", ApprovalMode::WORDS), Is("suggest"),
            "What runs without asking; an invalid value is reported and means suggest";
        ALLOW_BYPASS "allow-bypass", Switch, Is("false"),
            "Let clients choose the mode that never asks";
        APPROVAL_TIMEOUT_SECS "approval-timeout-secs",
            number("a time limit", "seconds", 1, 30 * DAY_SECS), Unset("no limit"),
            "Deny what nobody has approved after this time";
        AUTO_RESUME "auto-resume", Switch, Is("false"),
            "Go on at start with turns that a crash cut off";
        INSTRUCTIONS_FILE_PATH "instructions-file-path", File, Unset(""),
            "A file of instructions for the model; a missing one is reported";
        RULES_FILE "rules-file", File, Unset("no rules"),
            "A file of rules about tools, commands and paths; see docs/APPROVALS.md";
        COMMAND_TIMEOUT_SECS "command-timeout-secs",
            number("a time limit", "seconds", 1, DAY_SECS), Is("120"),
            "How long a command of the agent may run";
        WEB_PRIVATE_ADDRESSES "web-private-addresses", Switch, Is("false"),
            "Let web_fetcher reach addresses that are not on the public internet";
        CHAT_BROADCAST "chat-broadcast", word("a scope", ChatBroadcast::WORDS), Is("all"),
            "Who of the chat clients is told what: all of them everything, or each its sessions";
    }
    Search {
        TOT_SEARCH "tot-search", word("a search", TotSearch::WORDS), Is("breadth"),
            "The best few of each depth, or the best one first and down to its end";
        TOT_JUDGE "tot-judge", word("a way to judge", TotJudge::WORDS), Is("value"),
            "Each thought is judged by itself, or all of a round together";
        TOT_PROPOSALS "tot-proposals", count("a number of thoughts", 1), Is("3"),
            "Thoughts that are proposed to follow one";
        TOT_SAMPLES "tot-samples", count("a number of opinions", 1), Is("1"),
            "Opinions that are asked of each thought, or votes of each round";
        TOT_BEAM "tot-beam", count("a number of thoughts", 1), Is("2"),
            "Thoughts that a breadth-first search goes on from";
        TOT_DEPTH "tot-depth", count("a number of thoughts", 1), Is("3"),
            "Thoughts from the first to the last";
        TOT_PRUNE "tot-prune", Part, Is("0.2"),
            "What is worth less is not followed";
        TOT_ACCEPT "tot-accept", Part, Is("0.7"),
            "What ends a depth-first search";
        TOT_STEPS "tot-steps", count("a number of steps", 0), Is("4"),
            "Steps with tools that read before a branch must propose";
        GOT_ADAPTIVE "got-adaptive", Switch, Is("false"),
            "Judge each sub-task first, and split what is too much for one";
        GOT_NODES "got-nodes", count("a number of sub-tasks", 1), Is("8"),
            "Sub-tasks in one graph";
        GOT_NODES_TOTAL "got-nodes-total", count("a number of sub-tasks", 1), Is("32"),
            "Sub-tasks in all graphs of a turn";
        GOT_LAYERS "got-layers", count("a number of layers", 1), Is("6"),
            "Sub-tasks that wait for one another, one after the other";
        GOT_DEPTH "got-depth", count("a depth", 1), Is("2"),
            "Graphs inside one another";
        GOT_ATTEMPTS "got-attempts", count("a number of answers", 1), Is("3"),
            "Answers that a sub-task may try";
        GOT_REFINE "got-refine", count("a number of rounds", 0), Is("2"),
            "How often an answer may be worked over";
        GOT_STEPS "got-steps", count("a number of steps", 1), Is("20"),
            "Steps of one sub-task";
    }
    Storage {
        SESSION_STORE_PATH "session-store-path", Directory, Unset("sessions live in memory"),
            "The directory of session files";
        STORE "store", StoreUrl, Unset("sessions are this server's own"),
            "NATS servers on which several servers keep sessions together; see docs/SCALE.md";
        STORE_REPLICAS "store-replicas", number("a number of replicas", "", 1, 5),
            Unset("3 where `STORE` names three servers or more, else 1"),
            "How many NATS servers keep each session";
        TODOS_STORE_PATH "todos-store-path", Directory, Unset("no todos files"),
            "The directory of the sessions' todos files";
        USER_MESSAGE_DB "user-message-db", File, Unset("no message lists"),
            "The SQLite file in which users' and agents' messages are listed for Loom clients";
        MEMORY_DB "memory-db", File,
            Unset("`memories.db` in `SESSION_STORE_PATH`, or else in memory"),
            "The SQLite file of what agents remember, user by user";
    }
    Context {
        CONTEXT_STRATEGY "context-strategy",
            word("a strategy", ContextStrategy::WORDS), Is("threshold"),
            "Whether a conversation is made shorter before it fills the model's window; see docs/CONTEXT.md";
        CONTEXT_COMPACTION_THRESHOLD "context-compaction-threshold", Fraction, Is("0.8"),
            "The part of the window beyond which that happens";
        MAX_SESSION_COST_USD "max-session-cost-usd", Dollars, Unset("no limit"),
            "What the model calls of one session may cost, where the price is known; checked before each call";
        MAX_SESSION_TOKENS "max-session-tokens",
            number("a number of tokens", "tokens", 1, 1_000_000_000_000), Unset("no limit"),
            "Tokens that the model calls of one session may use, input and output; checked before each call";
    }
    Access {
        POLYLOOP_TOKEN "polyloop-token", Token, Unset("none; loopback only"),
            "What clients must show; 16 characters or more";
        ALLOWED_ORIGINS "allowed-origins", Origins, Unset("the server's own"),
            "Web pages that may connect, besides the server's own";
        ALLOWED_HOSTS "allowed-hosts", HostNames, Unset("loopback names"),
            "Names under which the server may be called, besides loopback names";
    }
    Logging {
        LOG_LEVEL "log-level", word("a level", LogLevel::WORDS), Is("info"),
            "What is logged";
        LOG_FORMAT "log-format", word("a format", LogFormat::WORDS), Is("human"),
            "How it is logged";
        AUDIT_LOG "audit-log", File, Unset("none"),
            "A file for who came from where and who decided what, one JSON object a line";
    }
    Limits {
        MAX_MESSAGE_BYTES "max-message-bytes",
            number("a size", "bytes", 1024, 256 * 1024 * 1024), Is("8388608"),
            "The largest message a client may send";
        MAX_CONNECTIONS "max-connections",
            number("a number of connections", "", 1, 1_000_000), Is("10000"),
            "Connections open at once; further ones are refused";
        MAX_QUEUED_MESSAGES "max-queued-messages",
            number("a number of messages", "", 1, 10_000), Is("32"),
            "User messages that may wait in a session; further ones are refused";
        MAX_TURNS "max-turns", number("a number of model calls", "", 1, 1_000_000), Is("200"),
            "Model calls that one turn may make; a search keeps a quarter of them for the answer";
        MAX_CALLS_AT_ONCE "max-calls-at-once",
            count("a number of model calls", 1), Is("8"),
            "Model calls of one turn that are open at the same time";
        MAX_MODEL_CALLS "max-model-calls",
            number("a number of model calls", "", 0, 1_000_000), Is("10000"),
            "Model calls of all sessions at once; further ones wait their turn; 0: any number";
        MAX_PROCESSES "max-processes",
            number("a number of commands", "", 0, 1_000_000), Is("256"),
            "Commands of all sessions at once; further ones wait their turn; 0: any number";
        MAX_WAITING "max-waiting",
            number("a number of places", "", 0, 1_000_000), Is("10000"),
            "Model calls, and commands, that may wait so; further ones fail; 0: any number";
        MAX_AWAKE_SESSIONS "max-awake-sessions",
            number("a number of sessions", "", 0, 10_000_000), Is("20000"),
            "Sessions in memory at once; further ones are refused until others rest; 0: any number";
        RATE_MESSAGES_PER_SEC "rate-messages-per-sec",
            number("a number of messages", "", 0, 1_000_000), Is("200"),
            "Messages a second on one connection, ten seconds' worth at once; further ones are refused; 0: any number";
        RATE_TURNS_PER_MIN "rate-turns-per-min",
            number("a number of turns", "", 0, 1_000_000), Is("6000"),
            "Turns a minute that one connection may begin, a minute's worth at once; further ones are refused; 0: any number";
        RATE_BYTES_PER_SEC "rate-bytes-per-sec",
            number("a number of bytes", "bytes", 0, 1_000_000_000_000), Is("16777216"),
            "Bytes a second on one connection, four seconds' worth at once; beyond that it is read more slowly; 0: any number";
        RATE_CLIENT_MESSAGES_PER_SEC "rate-client-messages-per-sec",
            number("a number of messages", "", 0, 1_000_000), Is("2000"),
            "The same for all connections of a client: whoever has the token, or without one an address";
        RATE_CLIENT_TURNS_PER_MIN "rate-client-turns-per-min",
            number("a number of turns", "", 0, 1_000_000), Is("60000"),
            "The same for turns";
        RATE_CLIENT_BYTES_PER_SEC "rate-client-bytes-per-sec",
            number("a number of bytes", "bytes", 0, 1_000_000_000_000), Is("67108864"),
            "The same for bytes; bodies of requests are among them, and wait, or get 429 beyond ten seconds";
        RATE_CLIENT_REQUESTS_PER_SEC "rate-client-requests-per-sec",
            number("a number of requests", "", 0, 1_000_000), Is("500"),
            "HTTP requests a second of one client, ten seconds' worth at once; further ones get 429; 0: any number";
    }
}

const fn word(what: &'static str, words: &'static [&'static str]) -> Kind {
    Kind::Word { what, words }
}

const fn number(what: &'static str, unit: &'static str, min: u64, max: u64) -> Kind {
    Kind::Number { what, unit, min, max }
}

/// A bound of a search.
const fn count(what: &'static str, min: u64) -> Kind {
    number(what, "", min, BOUND_MAX as u64)
}

impl Setting {
    /// The variable that sets it, unless it is only a flag.
    pub fn variable(&self) -> Option<&'static str> {
        match self.kind {
            HostAndPort => None,
            _ => Some(self.name),
        }
    }

    /// How people call it.
    pub fn label(&self) -> String {
        match self.variable() {
            Some(variable) => variable.to_owned(),
            None => format!("--{}", self.flag),
        }
    }

    /// What the variable is also called: other programs read these in lower case too.
    pub fn alias(&self) -> Option<&'static str> {
        match self.name {
            "HTTPS_PROXY" => Some("https_proxy"),
            "HTTP_PROXY" => Some("http_proxy"),
            "NO_PROXY" => Some("no_proxy"),
            _ => None,
        }
    }

    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Secret | Token | ProxyUrl | StoreUrl)
    }

    /// Whether a value must not be shown: a secret, or what somebody has put a secret into.
    pub fn hides(&self, value: &str) -> bool {
        self.is_secret() || matches!(self.kind, BaseUrl) && value.contains(['@', '?', '#'])
    }
}

impl Kind {
    /// What a value is called, as in "… is not a port".
    pub fn what(self) -> &'static str {
        match self {
            Kind::Word { what, .. } | Kind::Number { what, .. } => what,
            Fraction | Part => "a fraction",
            Dollars => "an amount of dollars",
            Switch => "a switch",
            Host | HostAndPort => "an address",
            Text => "a text",
            Secret => "a key",
            Token => "a token",
            BaseUrl => "a base URL",
            ProxyUrl => "a proxy's URL",
            StoreUrl => "a store's URL",
            File => "a file",
            Directory => "a directory",
            Origins => "an origin",
            HostNames => "a host name",
            Directories => "a directory",
        }
    }

    /// What may be given, as in "use …".
    pub fn allowed(self) -> String {
        match self {
            Kind::Word { words, .. } => one_of(words),
            Kind::Number { unit: "", min, max, .. } => format!("a number from {min} to {max}"),
            Kind::Number { unit, min, max, .. } => {
                format!("a number of {unit} from {min} to {max}")
            }
            Fraction => "a number above 0 and up to 1, such as 0.8".to_owned(),
            Part => "a number from 0 to 1, such as 0.2".to_owned(),
            Dollars => "a number above 0 and up to 1000000, such as 2.50".to_owned(),
            Switch => one_of(&["true", "false"]),
            Host => "an IP address such as 127.0.0.1 or ::1, or localhost".to_owned(),
            HostAndPort => "HOST:PORT, such as 127.0.0.1:9000 or [::1]:9000".to_owned(),
            Text => "text".to_owned(),
            Secret => "letters, digits and signs without spaces".to_owned(),
            BaseUrl => "http:// or https://, a host and if needed a port and a path, without \
                        user, query and fragment"
                .to_owned(),
            ProxyUrl => "http://host:port or https://host:port, with user:password@ before the \
                         host if the proxy wants it"
                .to_owned(),
            StoreUrl => "nats://host:port,host:port or tls://…, with user:password@ before a host \
                         and /NAME at the end if need be"
                .to_owned(),
            Token => format!(
                "{TOKEN_CHARS_MIN} to {TOKEN_CHARS_MAX} letters, digits and signs other than \
                 space, comma, semicolon, backslash and double quote, such as the output of \
                 `openssl rand -hex 32`"
            ),
            File => "a path".to_owned(),
            Directory => "the path of a directory".to_owned(),
            Origins => {
                "scheme://host or scheme://host:port without a path, separated by commas".to_owned()
            }
            HostNames => "names or addresses without a port, separated by commas".to_owned(),
            Directories => "paths of directories that are there, separated by commas".to_owned(),
        }
    }

    /// What stands for the value in the help.
    pub fn placeholder(self) -> &'static str {
        match self {
            Kind::Word { .. } => "WORD",
            Kind::Number { unit: "seconds", .. } => "SECONDS",
            Kind::Number { unit: "bytes", .. } => "BYTES",
            Kind::Number { .. } => "NUMBER",
            Fraction | Part => "FRACTION",
            Dollars => "DOLLARS",
            Switch => "BOOL",
            Host => "ADDRESS",
            HostAndPort => "HOST:PORT",
            Text => "NAME",
            Secret => "KEY",
            Token => "TOKEN",
            BaseUrl | ProxyUrl | StoreUrl => "URL",
            File => "FILE",
            Directory => "DIR",
            Origins => "ORIGIN,…",
            HostNames => "NAME,…",
            Directories => "DIR,…",
        }
    }

    /// Whether spaces around the value belong to it.
    pub(super) fn is_path(self) -> bool {
        matches!(self, File | Directory)
    }
}

/// `a, b or c`.
fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [word] => (*word).to_owned(),
        [words @ .., last] => format!("{} or {last}", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_flag_is_its_variable_in_kebab_case() {
        for setting in ALL {
            assert_eq!(setting.flag, setting.name.to_ascii_lowercase().replace('_', "-"));
        }
    }

    #[test]
    fn every_row_is_there_once_and_says_what_it_is() {
        let names = ALL.iter().map(|setting| setting.name).collect::<HashSet<_>>();
        assert_eq!(names.len(), ALL.len());
        for setting in ALL {
            assert!(!setting.help.is_empty() && !setting.help.ends_with('.'), "{}", setting.name);
            assert!(!setting.help.contains('\n'), "{}", setting.name);
        }
    }

    #[test]
    fn an_alias_is_the_variable_in_lower_case() {
        let aliases = ALL.iter().filter_map(|setting| Some((setting.name, setting.alias()?)));
        let aliases = aliases.collect::<Vec<_>>();
        assert_eq!(aliases.len(), 3);
        for (name, alias) in aliases {
            assert_eq!(alias, name.to_ascii_lowercase());
        }
    }

    #[test]
    fn the_help_of_the_token_knows_the_limit() {
        assert!(POLYLOOP_TOKEN.help.contains(&format!("{TOKEN_CHARS_MIN} characters or more")));
    }
}
