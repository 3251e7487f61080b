//! The rules of the configuration, from the words a user types to what holds or is said.

mod model;
mod places;
mod secrets;

use std::os::unix::ffi::OsStringExt;

use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

const TOKEN: &str = "hunter2-hunter2-hunter2";
const KEY: &str = "sk-do-not-show-me";

/// A start directory, and what was given to the server there.
struct Start {
    dir: tempfile::TempDir,
    flags: Vec<String>,
    environment: Vec<(OsString, OsString)>,
}

impl Start {
    /// In an empty directory, with nothing given.
    fn bare() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir, flags: Vec::new(), environment: Vec::new() }
    }

    /// The same, with the one thing that every start needs.
    fn offline() -> Self {
        Self::bare().env("PROVIDER", "offline")
    }

    fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|&flag| flag.to_owned()));
        self
    }

    fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.path(name), text).unwrap();
        self
    }

    fn folder(self, name: &str) -> Self {
        std::fs::create_dir(self.path(name)).unwrap();
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn args(&self) -> ServeArgs {
        let words = ["polyloop", "serve"].into_iter().map(str::to_owned);
        let cli = Cli::try_parse_from(words.chain(self.flags.iter().cloned())).unwrap();
        let Command::Serve(args) = cli.command else { panic!("not serve") };
        args
    }

    fn load(&self) -> Result<Config, ConfigError> {
        Config::load(&self.args(), self.environment.clone(), &self.path(""))
    }

    fn examine(&self) -> Examined {
        Config::examine(&self.args(), self.environment.clone(), &self.path(""))
    }

    fn config(&self) -> Config {
        self.load().unwrap()
    }

    fn problems(&self) -> Vec<String> {
        let error = self.load().unwrap_err();
        assert_eq!(error.to_string(), error.problems.join("\n"));
        error.problems
    }

    /// What `describe` says of a setting.
    fn says(&self, name: &str) -> String {
        let rows = self.config().describe();
        rows.into_iter().find(|(row, _)| *row == name).map(|(_, value)| value).unwrap()
    }
}

#[test]
fn presets_hold_when_nothing_is_given() {
    let start = Start::offline();
    let config = start.config();
    let here = start.path("").canonicalize().unwrap().display().to_string();
    let expected = [
        ("HOST", "127.0.0.1"),
        ("PORT", "8080"),
        ("WORKING_DIRECTORY", &here),
        ("WORKSPACE_ROOTS", "(not set)"),
        ("PROVIDER", "offline"),
        ("MODEL", "offline"),
        ("OPENAI_API_KEY", "(not set)"),
        ("ANTHROPIC_API_KEY", "(not set)"),
        ("GOOGLE_API_KEY", "(not set)"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "(not set)"),
        ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
        ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
        ("GOOGLE_BASE_URL", "https://generativelanguage.googleapis.com"),
        ("OPENAI_WIRE_API", "responses"),
        ("MODELS_FILE", "(not set)"),
        ("MODEL_IDLE_TIMEOUT_SECS", "300"),
        ("MODEL_RETRIES", "4"),
        ("HTTPS_PROXY", "(not set)"),
        ("HTTP_PROXY", "(not set)"),
        ("NO_PROXY", "(not set)"),
        ("AGENT", "react"),
        ("TOOL_USE_APPROVAL_MODE", "suggest"),
        ("ALLOW_BYPASS", "false"),
        ("APPROVAL_TIMEOUT_SECS", "(not set)"),
        ("AUTO_RESUME", "false"),
        ("INSTRUCTIONS_FILE_PATH", "(not set)"),
        ("RULES_FILE", "(not set)"),
        ("COMMAND_TIMEOUT_SECS", "120"),
        ("WEB_PRIVATE_ADDRESSES", "false"),
        ("CHAT_BROADCAST", "all"),
        ("TOT_SEARCH", "breadth"),
        ("TOT_JUDGE", "value"),
        ("TOT_PROPOSALS", "3"),
        ("TOT_SAMPLES", "1"),
        ("TOT_BEAM", "2"),
        ("TOT_DEPTH", "3"),
        ("TOT_PRUNE", "0.2"),
        ("TOT_ACCEPT", "0.7"),
        ("TOT_STEPS", "4"),
        ("GOT_ADAPTIVE", "false"),
        ("GOT_NODES", "8"),
        ("GOT_NODES_TOTAL", "32"),
        ("GOT_LAYERS", "6"),
        ("GOT_DEPTH", "2"),
        ("GOT_ATTEMPTS", "3"),
        ("GOT_REFINE", "2"),
        ("GOT_STEPS", "20"),
        ("SESSION_STORE_PATH", "(not set)"),
        ("STORE", "(not set)"),
        ("STORE_REPLICAS", "(not set)"),
        ("TODOS_STORE_PATH", "(not set)"),
        ("USER_MESSAGE_DB", "(not set)"),
        ("MEMORY_DB", "(not set)"),
        ("CONTEXT_STRATEGY", "threshold"),
        ("CONTEXT_COMPACTION_THRESHOLD", "0.8"),
        ("MAX_SESSION_COST_USD", "(not set)"),
        ("MAX_SESSION_TOKENS", "(not set)"),
        ("POLYLOOP_TOKEN", "(not set)"),
        ("ALLOWED_ORIGINS", "(not set)"),
        ("ALLOWED_HOSTS", "(not set)"),
        ("LOG_LEVEL", "info"),
        ("LOG_FORMAT", "human"),
        ("AUDIT_LOG", "(not set)"),
        ("MAX_MESSAGE_BYTES", "8388608"),
        ("MAX_CONNECTIONS", "10000"),
        ("MAX_QUEUED_MESSAGES", "32"),
        ("MAX_TURNS", "200"),
        ("MAX_CALLS_AT_ONCE", "8"),
        ("MAX_MODEL_CALLS", "10000"),
        ("MAX_PROCESSES", "256"),
        ("MAX_WAITING", "10000"),
        ("MAX_AWAKE_SESSIONS", "20000"),
        ("RATE_MESSAGES_PER_SEC", "200"),
        ("RATE_TURNS_PER_MIN", "6000"),
        ("RATE_BYTES_PER_SEC", "16777216"),
        ("RATE_CLIENT_MESSAGES_PER_SEC", "2000"),
        ("RATE_CLIENT_TURNS_PER_MIN", "60000"),
        ("RATE_CLIENT_BYTES_PER_SEC", "67108864"),
        ("RATE_CLIENT_REQUESTS_PER_SEC", "500"),
    ];
    assert_eq!(config.describe(), expected.map(|(name, value)| (name, value.to_owned())));
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
}

/// Each variable with a value, and what is then said of it.
const GIVEN: &[(&str, &str, &str)] = &[
    ("HOST", "::1", "::1"),
    ("HOST", "localhost", "127.0.0.1"),
    ("PORT", " 0 ", "0"),
    ("WORKSPACE_ROOTS", "/usr, /", "/usr,/"),
    ("PROVIDER", "Offline", "offline"),
    ("OPENAI_API_KEY", KEY, "(set, hidden)"),
    ("ANTHROPIC_API_KEY", KEY, "(set, hidden)"),
    ("GOOGLE_API_KEY", KEY, "(set, hidden)"),
    ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/passwd", "(set, hidden)"),
    ("OPENAI_BASE_URL", "HTTP://LocalHost:11434/v1/", "http://localhost:11434/v1"),
    ("ANTHROPIC_BASE_URL", "https://a.example/x", "https://a.example/x"),
    ("GOOGLE_BASE_URL", "https://g.example", "https://g.example"),
    ("OPENAI_WIRE_API", "Chat", "chat"),
    ("MODEL_IDLE_TIMEOUT_SECS", "20", "20"),
    ("MODEL_RETRIES", "0", "0"),
    ("HTTPS_PROXY", "proxy.example:3128", "(set, hidden)"),
    ("HTTP_PROXY", "http://u:p@proxy.example", "(set, hidden)"),
    ("NO_PROXY", "localhost,.example", "localhost,.example"),
    ("AGENT", "React", "react"),
    ("AGENT", "tot", "tot"),
    ("TOT_SEARCH", "Depth", "depth"),
    ("TOT_JUDGE", "vote", "vote"),
    ("TOT_PROPOSALS", "5", "5"),
    ("TOT_SAMPLES", "2", "2"),
    ("TOT_BEAM", "100", "100"),
    ("TOT_DEPTH", "1", "1"),
    ("TOT_PRUNE", "0", "0"),
    ("TOT_ACCEPT", "0.95", "0.95"),
    ("TOT_STEPS", "0", "0"),
    ("GOT_ADAPTIVE", "true", "true"),
    ("GOT_NODES", "12", "12"),
    ("GOT_NODES_TOTAL", "99", "99"),
    ("GOT_LAYERS", "4", "4"),
    ("GOT_DEPTH", "3", "3"),
    ("GOT_ATTEMPTS", "1", "1"),
    ("GOT_REFINE", "0", "0"),
    ("GOT_STEPS", "7", "7"),
    ("TOOL_USE_APPROVAL_MODE", "auto-edit", "auto-edit"),
    ("TOOL_USE_APPROVAL_MODE", "full-auto", "full-auto"),
    ("ALLOW_BYPASS", "1", "true"),
    ("APPROVAL_TIMEOUT_SECS", "300", "300"),
    ("AUTO_RESUME", "yes", "true"),
    ("COMMAND_TIMEOUT_SECS", "7", "7"),
    ("WEB_PRIVATE_ADDRESSES", "true", "true"),
    ("CHAT_BROADCAST", "Session", "session"),
    ("STORE", "nats://a.example,b.example:4223/mine", "(set, hidden)"),
    ("STORE_REPLICAS", "3", "3"),
    ("USER_MESSAGE_DB", "/somewhere/messages.db", "/somewhere/messages.db"),
    ("MEMORY_DB", "/somewhere/memories.db", "/somewhere/memories.db"),
    ("CONTEXT_STRATEGY", "dummy", "dummy"),
    ("CONTEXT_STRATEGY", "none", "dummy"),
    ("CONTEXT_STRATEGY", "Threshold", "threshold"),
    ("CONTEXT_COMPACTION_THRESHOLD", "0.5", "0.5"),
    ("CONTEXT_COMPACTION_THRESHOLD", "1", "1"),
    ("MAX_SESSION_COST_USD", "2.50", "2.5"),
    ("MAX_SESSION_TOKENS", "1000", "1000"),
    ("POLYLOOP_TOKEN", TOKEN, "(set, hidden)"),
    ("ALLOWED_ORIGINS", "http://a.example, HTTP://B:80", "http://a.example,http://b"),
    ("ALLOWED_HOSTS", "Agent.example, ::1", "agent.example,[::1]"),
    ("LOG_LEVEL", "TRACE", "trace"),
    ("LOG_FORMAT", "json", "json"),
    ("AUDIT_LOG", "/somewhere/audit.log", "/somewhere/audit.log"),
    ("MAX_MESSAGE_BYTES", "1024", "1024"),
    ("MAX_CONNECTIONS", "1", "1"),
    ("MAX_QUEUED_MESSAGES", "10000", "10000"),
    ("MAX_TURNS", "30", "30"),
    ("MAX_CALLS_AT_ONCE", "1", "1"),
    ("MAX_MODEL_CALLS", "0", "0"),
    ("MAX_PROCESSES", "1", "1"),
    ("MAX_WAITING", "2", "2"),
    ("MAX_AWAKE_SESSIONS", "3", "3"),
    ("RATE_MESSAGES_PER_SEC", "4", "4"),
    ("RATE_TURNS_PER_MIN", "5", "5"),
    ("RATE_BYTES_PER_SEC", "6", "6"),
    ("RATE_CLIENT_MESSAGES_PER_SEC", "7", "7"),
    ("RATE_CLIENT_TURNS_PER_MIN", "8", "8"),
    ("RATE_CLIENT_BYTES_PER_SEC", "9", "9"),
    ("RATE_CLIENT_REQUESTS_PER_SEC", "10", "10"),
];

#[test]
fn a_value_counts_wherever_it_stands() {
    for (name, value, expected) in GIVEN {
        let flag = format!("--{}", name.to_ascii_lowercase().replace('_', "-"));
        let in_file = format!("PROVIDER=offline\n{name}='{value}'\n");
        let starts = [
            Start::bare().env("PROVIDER", "offline").env(name, *value),
            Start::bare().file(".env", &in_file),
            // The provider comes from the file here, because its flag may be given only once.
            Start::bare().file(".env", "PROVIDER=offline").flags(&[&flag, value]),
        ];
        for start in starts {
            assert_eq!(start.says(name), *expected, "{name}={value}");
        }
    }
}

#[test]
fn every_setting_is_tried_here() {
    let tried_elsewhere = [
        "ADDR",
        "WORKING_DIRECTORY",
        "MODEL",
        "MODELS_FILE",
        "INSTRUCTIONS_FILE_PATH",
        "RULES_FILE",
        "SESSION_STORE_PATH",
        "TODOS_STORE_PATH",
    ];
    for setting in settings::ALL {
        let is_given = GIVEN.iter().any(|(name, ..)| *name == setting.name);
        assert!(is_given || tried_elsewhere.contains(&setting.name), "{}", setting.name);
    }
}

#[test]
fn nothing_set_is_what_sessions_take_for_the_default() {
    use polyloop_session::state::CALLS_PER_TURN_MAX;
    use polyloop_session::strategy::bounds::Bounds;
    let config = Start::offline().config();
    assert_eq!((config.bounds, config.calls_max), (Bounds::DEFAULT, CALLS_PER_TURN_MAX));
}

#[test]
fn a_flag_wins_over_the_environment_which_wins_over_the_file() {
    let file = || Start::offline().file(".env", "PORT=3003\n");
    assert_eq!(file().says("PORT"), "3003");
    assert_eq!(file().env("PORT", "2002").says("PORT"), "2002");
    assert_eq!(file().env("PORT", "2002").flags(&["--port", "1001"]).says("PORT"), "1001");
}

#[test]
fn an_empty_value_is_none() {
    let file = || Start::offline().file(".env", "PORT=3003\nLOG_LEVEL=\n");
    assert_eq!(file().says("LOG_LEVEL"), "info");
    assert_eq!(file().env("PORT", "").says("PORT"), "3003");
    assert_eq!(file().env("PORT", " ").says("PORT"), "3003");
    assert_eq!(file().env("PORT", "2002").flags(&["--port="]).says("PORT"), "2002");
    assert_eq!(Start::offline().env("SESSION_STORE_PATH", "").config().session_store, None);
    assert!(Start::offline().env("POLYLOOP_TOKEN", "").config().access.token.is_none());
}

#[test]
fn a_switch_needs_no_value() {
    assert_eq!(Start::offline().flags(&["--allow-bypass"]).says("ALLOW_BYPASS"), "true");
    let both = Start::offline().flags(&["--allow-bypass", "--port", "1"]);
    assert_eq!(both.says("ALLOW_BYPASS"), "true");
    let off = Start::offline().env("ALLOW_BYPASS", "true").flags(&["--allow-bypass=false"]);
    assert_eq!(off.says("ALLOW_BYPASS"), "false");
}

#[test]
fn addr_wins_over_host_and_port() {
    let addr = |flags: &[&str]| Start::offline().flags(flags).config().addr().to_string();
    assert_eq!(addr(&["--addr", "[::1]:9000", "--host", "127.0.0.2", "--port", "1"]), "[::1]:9000");
    assert_eq!(addr(&["--host", "127.0.0.2", "--port", "1"]), "127.0.0.2:1");
    // A HOST that some shells export does not matter then.
    let start = Start::offline().env("HOST", "my-machine").flags(&["--addr", "localhost:0"]);
    assert_eq!(start.config().addr().to_string(), "127.0.0.1:0");
    // It is a flag and no variable.
    assert_eq!(Start::offline().env("ADDR", "127.0.0.1:9").says("PORT"), "8080");
}

/// `variable, value => what the error says after "variable: "`.
#[test]
fn a_bad_value_is_named_with_what_is_allowed() {
    let seconds = "is not a time limit; use a number of seconds from 1 to";
    let cases = [
        (
            "HOST",
            "my-machine",
            "\"my-machine\" is not an address; use an IP address such as 127.0.0.1 or ::1, or \
             localhost",
        ),
        ("PORT", "65536", r#""65536" is not a port; use a number from 0 to 65535"#),
        ("PORT", "-1", r#""-1" is not a port; use a number from 0 to 65535"#),
        (
            "PROVIDER",
            "mistral",
            r#""mistral" is not a provider; use openai, anthropic, google or offline"#,
        ),
        (
            "OPENAI_BASE_URL",
            "api.openai.com",
            "\"api.openai.com\" is not a base URL; use http:// or https://, a host and if needed \
             a port and a path, without user, query and fragment",
        ),
        (
            "GOOGLE_BASE_URL",
            "https://hunter2:hunter2@g.example",
            "the value is not a base URL; use http:// or https://, a host and if needed a port \
             and a path, without user, query and fragment",
        ),
        (
            "HTTPS_PROXY",
            "socks5://hunter2@p.example",
            "the value is not a proxy's URL; use http://host:port or https://host:port, with \
             user:password@ before the host if the proxy wants it",
        ),
        (
            "STORE",
            "redis://hunter2@a.example",
            "the value is not a store's URL; use nats://host:port,host:port or tls://…, with \
             user:password@ before a host and /NAME at the end if need be",
        ),
        (
            "OPENAI_WIRE_API",
            "completions",
            r#""completions" is not an interface; use responses or chat"#,
        ),
        ("MODEL_IDLE_TIMEOUT_SECS", "0", &format!(r#""0" {seconds} 86400"#)),
        ("MODEL_RETRIES", "11", r#""11" is not a number of retries; use a number from 0 to 10"#),
        (
            "ANTHROPIC_API_KEY",
            "sk hunter2",
            "the value is not a key; use letters, digits and signs without spaces",
        ),
        ("AGENT", "cot", r#""cot" is not an agent; use react, dup, tot or got"#),
        ("TOT_SEARCH", "wide", r#""wide" is not a search; use breadth or depth"#),
        ("TOT_JUDGE", "me", r#""me" is not a way to judge; use value or vote"#),
        ("TOT_BEAM", "0", r#""0" is not a number of thoughts; use a number from 1 to 100"#),
        ("TOT_DEPTH", "101", r#""101" is not a number of thoughts; use a number from 1 to 100"#),
        ("TOT_STEPS", "-1", r#""-1" is not a number of steps; use a number from 0 to 100"#),
        ("TOT_PRUNE", "1.1", r#""1.1" is not a fraction; use a number from 0 to 1, such as 0.2"#),
        ("GOT_ADAPTIVE", "deep", r#""deep" is not a switch; use true or false"#),
        ("GOT_NODES", "1e2", r#""1e2" is not a number of sub-tasks; use a number from 1 to 100"#),
        ("MAX_TURNS", "0", r#""0" is not a number of model calls; use a number from 1 to 1000000"#),
        (
            "MAX_CALLS_AT_ONCE",
            "101",
            r#""101" is not a number of model calls; use a number from 1 to 100"#,
        ),
        ("CHAT_BROADCAST", "none", r#""none" is not a scope; use all or session"#),
        (
            "WORKSPACE_ROOTS",
            "/nowhere/at/all",
            r#""/nowhere/at/all" is not a directory; use paths of directories that are there, separated by commas"#,
        ),
        ("ALLOW_BYPASS", "maybe", r#""maybe" is not a switch; use true or false"#),
        ("APPROVAL_TIMEOUT_SECS", "0", &format!(r#""0" {seconds} 2592000"#)),
        ("AUTO_RESUME", "2", r#""2" is not a switch; use true or false"#),
        ("COMMAND_TIMEOUT_SECS", "2m", &format!(r#""2m" {seconds} 86400"#)),
        ("CONTEXT_STRATEGY", "magic", r#""magic" is not a strategy; use threshold or dummy"#),
        (
            "CONTEXT_COMPACTION_THRESHOLD",
            "80",
            r#""80" is not a fraction; use a number above 0 and up to 1, such as 0.8"#,
        ),
        (
            "MAX_SESSION_COST_USD",
            "much",
            r#""much" is not an amount of dollars; use a number above 0 and up to 1000000, such as 2.50"#,
        ),
        (
            "MAX_SESSION_TOKENS",
            "0",
            r#""0" is not a number of tokens; use a number of tokens from 1 to 1000000000000"#,
        ),
        (
            "ALLOWED_ORIGINS",
            "http://a.example, *",
            "\"*\" is not an origin; use scheme://host or scheme://host:port without a path, \
             separated by commas",
        ),
        (
            "ALLOWED_HOSTS",
            "a.example:80",
            "\"a.example:80\" is not a host name; use names or addresses without a port, \
             separated by commas",
        ),
        ("LOG_LEVEL", "loud", r#""loud" is not a level; use trace, debug, info, warn or error"#),
        ("LOG_FORMAT", "xml", r#""xml" is not a format; use human or json"#),
        (
            "MAX_MESSAGE_BYTES",
            "8MB",
            r#""8MB" is not a size; use a number of bytes from 1024 to 268435456"#,
        ),
        (
            "MAX_CONNECTIONS",
            "0",
            r#""0" is not a number of connections; use a number from 1 to 1000000"#,
        ),
        (
            "MAX_QUEUED_MESSAGES",
            "x\ny",
            r#""x\ny" is not a number of messages; use a number from 1 to 10000"#,
        ),
    ];
    for (name, value, expected) in cases {
        let flag = format!("--{}", name.to_ascii_lowercase().replace('_', "-"));
        let file = format!("PROVIDER=offline\n{name}='{value}'\n");
        let provider = || Start::bare().file(".env", "PROVIDER=offline");
        let said = |from: &str| [format!("{name}: {expected} (from {from})")];
        assert_eq!(provider().env(name, value).problems(), said("the environment"));
        assert_eq!(Start::bare().file(".env", &file).problems(), said(".env"));
        assert_eq!(provider().flags(&[&flag, value]).problems(), said(&flag));
    }
    assert_eq!(
        Start::offline().flags(&["--addr", "9000"]).problems(),
        ["--addr: \"9000\" is not an address; use HOST:PORT, such as 127.0.0.1:9000 or \
             [::1]:9000"]
    );
}

#[test]
fn a_long_value_is_cut_and_a_broken_one_is_not_shown() {
    let start = Start::offline().env("LOG_FORMAT", "ö".repeat(500));
    let expected = format!(
        r#"LOG_FORMAT: "{}"… is not a format; use human or json (from the environment)"#,
        "ö".repeat(80)
    );
    assert_eq!(start.problems(), [expected]);
    let start = Start::offline().env("LOG_FORMAT", OsString::from_vec(vec![b'x', 0xff]));
    assert_eq!(start.problems(), ["LOG_FORMAT: the value is not UTF-8 (from the environment)"]);
}

#[test]
fn all_problems_are_told_at_once() {
    let start = Start::bare()
        .env("PORT", "x")
        .env("LOG_LEVEL", "y")
        .env("WORKING_DIRECTORY", "nowhere")
        .env("POLYLOOP_PORT", "1");
    let error = start.load().unwrap_err();
    let said = error.problems.iter().map(|problem| problem.split(' ').next().unwrap());
    assert_eq!(said.collect::<Vec<_>>(), ["PORT:", "Working", "OPENAI_API_KEY", "LOG_LEVEL:"]);
    assert_eq!(error.to_string().lines().count(), 4);
    assert_eq!(error.warnings.len(), 1, "{:?}", error.warnings);
    let examined = start.examine();
    assert_eq!((examined.problems, examined.warnings), (error.problems, error.warnings));
    assert!(examined.parts.addr.is_none() && examined.parts.model.is_some());
}

/// To examine is to go on where a start would have stopped.
#[test]
fn a_broken_file_does_not_hide_the_rest() {
    let start = Start::bare().file(".env", "PROVIDER=offline\nbroken line\n").env("PORT", "x");
    let examined = start.examine();
    assert_eq!(examined.env_file, Some(start.path(".env")));
    assert_eq!(examined.env_file_problems.len(), 1);
    let said = examined.problems.iter().map(|problem| problem.split(' ').next().unwrap());
    assert_eq!(said.collect::<Vec<_>>(), ["PORT:", "OPENAI_API_KEY"]);
    assert_eq!(Start::offline().examine().env_file, None);
}

#[test]
fn an_invalid_approval_mode_is_reported_and_means_suggest() {
    for value in ["yolo", "bypass", "Full-Auto", "plan"] {
        let config = Start::offline().env("TOOL_USE_APPROVAL_MODE", value).config();
        assert_eq!(config.approval.mode, ApprovalMode::Suggest);
        let expected = format!(
            "TOOL_USE_APPROVAL_MODE: \"{value}\" is not a mode; use suggest, auto-edit or \
             full-auto (from the environment); using suggest"
        );
        assert_eq!(config.warnings, [expected]);
    }
}
