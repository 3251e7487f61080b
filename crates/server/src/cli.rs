//! The command line of `polyloop`.
//!
//! Only takes words apart: the flags of `serve` come from the table of settings and are judged
//! with the environment and `.env` by `Config`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Args, FromArgMatches, Parser, Subcommand};

use crate::config::settings::{self, Group, Kind, Preset, Setting};
use crate::config::{Config, ConfigError, ServeArgs};
use crate::sessions::{self, SessionsArgs};

const DEMO_DIR: &str = "polyloop-demo";

const EXAMPLES: &str = "\
Examples:
  polyloop demo                            Try it: no key, no network, nothing to set up
  polyloop serve --provider offline        Serve the directory you are in
  polyloop serve --help                    Every setting
  polyloop chat                            Talk to it in this terminal
  polyloop doctor                          What is wrong, before you start
  polyloop check-command 'ls | wc -l'      Whether a command would run without asking
  polyloop sessions check                  Whether the sessions that are kept are whole";

const SERVE_ABOUT: &str = "\
Serve agents to every client, with the model and the directory you choose.

Every flag but --addr is also an environment variable (--session-store-path is \
SESSION_STORE_PATH), and may stand in a .env file where you start the server. A flag wins over \
the environment, which wins over .env; an empty value counts as none. Keep secrets out of flags: \
every user of the machine can list them.";

const SERVE_EXAMPLES: &str = "\
Examples:
  polyloop serve --provider offline --working-directory ~/project
  polyloop serve --provider offline --session-store-path ./sessions
  PROVIDER=offline PORT=9000 polyloop serve
  POLYLOOP_TOKEN=$(openssl rand -hex 32) polyloop serve --provider offline \\
      --host 0.0.0.0 --allowed-hosts agent.example.org";

const DEMO_EXAMPLES: &str = "\
Examples:
  polyloop demo
  polyloop demo --port 9000 --dir /tmp/polyloop";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  polyloop doctor
  polyloop doctor --model claude-sonnet-4-5 --session-store-path ./sessions
  polyloop doctor --json";

const CHECK_EXAMPLES: &str = "\
Examples:
  polyloop check-command 'grep -rn TODO src | head'
  polyloop check-command --cwd ~/project 'git status'
  polyloop check-command --jsonl < commands.jsonl";

const CHECK_RULES_EXAMPLES: &str = "\
Each line of the file is a rule:
  allow command cargo test      alone or beside harmless commands
  ask   tool    web_fetcher     every call of the tool
  deny  command git push        wherever it stands in a script
  deny  path    secrets         the path and everything below it
The strictest rule that is about a call counts.";

const CHAT_ABOUT: &str = "\
Talk to a server in this terminal, or from a script.

In a terminal it is a conversation: /help lists what can be said. Without one the message comes \
from the arguments, or from standard input if there are none; with - among them from both. The \
answer goes to standard output and everything else to standard error. Nobody is asked then: what \
needs leave is denied, and the model is told so; a message that would wait for somebody's answer \
is taken back.

Exit status: 0 done, 1 the turn failed, 2 wrong usage, 3 something was denied because nobody could \
be asked, 4 no server was reached or the connection is lost for good, 5 interrupted elsewhere, 130 \
by Ctrl-C.";

const CHAT_EXAMPLES: &str = "\
Examples:
  polyloop chat
  polyloop chat --session demo
  polyloop chat 'What does this project do?' > answer.txt
  git diff | polyloop chat 'Review this' -
  POLYLOOP_TOKEN=… polyloop chat --url https://agent.example.org";

/// One agent server that every client can talk to.
#[derive(Debug, Parser)]
#[command(name = "polyloop", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve agents to every client
    #[command(long_about = SERVE_ABOUT, after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Try it with the offline model: no key, no network
    #[command(
        long_about = "Try it with the offline model: no key, no network.\n\nOnly this machine can \
                      connect. The environment and .env have no say here.",
        after_help = DEMO_EXAMPLES
    )]
    Demo(DemoArgs),
    /// Talk to a server in this terminal, or from a script
    #[command(long_about = CHAT_ABOUT, after_help = CHAT_EXAMPLES)]
    Chat(ChatArgs),
    /// Say what is wrong with the settings, before you start
    #[command(
        long_about = "Say what is wrong with the settings, before you start.\n\nTakes every flag \
                      of serve, and the same environment and .env. Asks the model's provider for \
                      its list of models; changes nothing. Ends with 1 if something has failed.",
        after_help = DOCTOR_EXAMPLES
    )]
    Doctor(DoctorArgs),
    /// Say whether a command would run without asking, and why
    #[command(
        name = "check-command",
        long_about = "Say whether a command would run without asking, and why.\n\nJudges as a \
                      session does; runs nothing. Ends with 0 if it would run at once and with 1 \
                      if it would be asked about. With --jsonl each line is {\"id\", \"cmd\"}, \
                      where cmd is a script or a list of words, and each answer is {\"id\", \
                      \"decision\", \"reason\"}.",
        after_help = CHECK_EXAMPLES
    )]
    Check(CheckArgs),
    /// Say what each rule of a rules file means, or what is wrong with it
    #[command(name = "check-rules", after_help = CHECK_RULES_EXAMPLES)]
    CheckRules(CheckRulesArgs),
    /// List, read, check, mend and export the sessions of a store
    #[command(
        long_about = "List, read, check, mend and export the sessions of a store.\n\nNeeds no \
                      server; all but repair may be used while one runs.",
        after_help = sessions::EXAMPLES
    )]
    Sessions(SessionsArgs),
}

#[derive(Clone, clap::Args)]
pub struct ChatArgs {
    /// What to say; without a terminal - stands for standard input
    pub message: Vec<String>,
    /// Go on with this session [otherwise: a new one]
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Make the session that --session names; it must not be there yet
    #[arg(long, requires = "session")]
    pub new: bool,
    /// Where the server is; also POLYLOOP_URL [otherwise: http://127.0.0.1:8080]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// What the server wants to be shown; safer in POLYLOOP_TOKEN, which other users cannot list
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// Print each event as a line of JSON, as it comes
    #[arg(long)]
    pub json: bool,
    /// Without a terminal: how long a lost connection is tried again
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub reconnect_secs: u32,
}

/// Without the token.
impl std::fmt::Debug for ChatArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatArgs").field("session", &self.session).finish_non_exhaustive()
    }
}

impl From<ChatArgs> for polyloop_terminal::Options {
    fn from(args: ChatArgs) -> Self {
        let ChatArgs { message, session, new, url, token, json, reconnect_secs } = args;
        let reconnect = std::time::Duration::from_secs(reconnect_secs.into());
        Self { session, new, url, token, json, reconnect, message }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub struct CheckRulesArgs {
    /// The file, as for RULES_FILE
    pub file: PathBuf,
}

#[derive(Clone, Debug, clap::Args)]
pub struct CheckArgs {
    /// The script, as for bash -lc
    #[arg(required_unless_present = "jsonl", conflicts_with = "jsonl")]
    pub script: Option<String>,
    /// Where it would run [default: the directory you are in]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Read commands from standard input, one JSON object a line
    #[arg(long)]
    pub jsonl: bool,
    /// Say what a session with this rules file would do [modes: as for TOOL_USE_APPROVAL_MODE]
    #[arg(long, value_name = "FILE", conflicts_with = "jsonl")]
    pub rules: Option<PathBuf>,
}

#[derive(Clone, Debug, clap::Args)]
pub struct DoctorArgs {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub serve: ServeArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub struct DemoArgs {
    /// Port to listen on; 0 takes any free one [default: 8080, or a free one if that is taken]
    #[arg(long)]
    pub port: Option<u16>,
    /// Where sessions, todos and the agent's workspace are kept; made if it is not there
    #[arg(long, value_name = "DIR", default_value = DEMO_DIR)]
    pub dir: PathBuf,
}

/// The configuration of `polyloop demo`; makes the workspace.
///
/// If the port is taken and `args.port` is none, the caller tries a free one.
pub fn demo_config(args: &DemoArgs, start_dir: &Path) -> Result<Config, ConfigError> {
    let dir = start_dir.join(&args.dir);
    let workspace = dir.join("workspace");
    std::fs::create_dir_all(&workspace).map_err(|error| {
        let problem = format!("--dir: cannot make {}: {error}", workspace.display());
        ConfigError::new(vec![problem])
    })?;
    let mut flags = ServeArgs::default();
    flags.set(&settings::PROVIDER, "offline");
    flags.set(&settings::SESSION_STORE_PATH, dir.join("sessions"));
    flags.set(&settings::TODOS_STORE_PATH, dir.join("todos"));
    flags.set(&settings::USER_MESSAGE_DB, dir.join("messages.db"));
    flags.set(&settings::MEMORY_DB, dir.join("memories.db"));
    flags.set(&settings::WORKING_DIRECTORY, workspace);
    if let Some(port) = args.port {
        flags.set(&settings::PORT, port.to_string());
    }
    Config::of_flags(&flags, start_dir)
}

impl Args for ServeArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        settings::ALL.iter().fold(command, |command, setting| command.arg(flag(setting)))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in settings::ALL {
            if let Some(value) = matches.get_one::<OsString>(setting.flag) {
                self.set(setting, value);
            }
        }
        Ok(())
    }
}

/// Takes any value: it is judged later, like one from the environment, and with the same words.
fn flag(setting: &'static Setting) -> Arg {
    let flag = Arg::new(setting.flag)
        .long(setting.flag)
        .value_name(setting.kind.placeholder())
        .value_parser(clap::value_parser!(OsString))
        .allow_negative_numbers(true)
        .help_heading(heading(setting.group))
        .help(help(setting));
    match setting.kind {
        Kind::Switch => flag.num_args(0..=1).default_missing_value("true"),
        _ => flag,
    }
}

fn help(setting: &Setting) -> String {
    let values = match setting.kind {
        Kind::Word { words, .. } => format!(" [{}]", words.join("|")),
        _ => String::new(),
    };
    let preset = match setting.preset {
        Preset::Is(value) => format!(" [default: {value}]"),
        Preset::Unset("") => String::new(),
        Preset::Unset(otherwise) => format!(" [otherwise: {}]", otherwise.replace('`', "")),
    };
    format!("{}{values}{preset}", setting.help)
}

fn heading(group: Group) -> &'static str {
    match group {
        Group::Server => "Server",
        Group::Model => "Model",
        Group::Agent => "Agent",
        Group::Search => "How far a search of tot or got may go",
        Group::Storage => "Storage",
        Group::Context => "Context",
        Group::Access => "Who may connect",
        Group::Logging => "Logging",
        Group::Limits => "Limits",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Provider;
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    fn demo(words: &[&str]) -> DemoArgs {
        match Cli::try_parse_from([&["polyloop", "demo"], words].concat()).unwrap().command {
            Command::Demo(args) => args,
            other => panic!("{other:?}"),
        }
    }

    fn help_of(words: &[&str]) -> String {
        Cli::try_parse_from([&["polyloop"], words].concat()).unwrap_err().to_string()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_words_show_the_help() {
        let error = Cli::try_parse_from(["polyloop"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
        let help = error.to_string();
        let words = [
            "Usage: polyloop",
            "serve",
            "demo",
            "chat",
            "doctor",
            "check-command",
            "sessions",
            "Examples:",
            "--version",
        ];
        for word in words {
            assert!(help.contains(word), "{word}\n{help}");
        }
    }

    #[test]
    fn the_version_is_the_package_s() {
        let error = Cli::try_parse_from(["polyloop", "--version"]).unwrap_err();
        assert_eq!(error.to_string(), format!("polyloop {}\n", env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn the_help_of_serve_has_every_setting() {
        let help = help_of(&["serve", "--help"]);
        for setting in settings::ALL {
            assert!(help.contains(&format!("--{}", setting.flag)), "{}", setting.flag);
            assert!(help.contains(&format!("{}:", heading(setting.group))), "{:?}", setting.group);
        }
        assert!(help.contains("[default: 8080]"), "{help}");
        assert!(help.contains("[otherwise: HOST and PORT]"), "{help}");
        assert!(help.contains("[suggest|auto-edit|full-auto]"), "{help}");
    }

    #[test]
    fn the_doctor_takes_the_flags_of_serve() {
        let words = ["polyloop", "doctor", "--json", "--port", "9"];
        let cli = Cli::try_parse_from(words).unwrap();
        let Command::Doctor(args) = cli.command else { panic!("not doctor") };
        assert!(args.json);
        assert_eq!(format!("{:?}", args.serve), r#"{"port"}"#);
        let help = help_of(&["doctor", "--help"]);
        for setting in settings::ALL {
            assert!(help.contains(&format!("--{}", setting.flag)), "{}", setting.flag);
        }
    }

    #[test]
    fn flags_are_shown_without_their_values() {
        let words = ["polyloop", "serve", "--port", "9", "--polyloop-token", "hunter2"];
        let cli = Cli::try_parse_from(words).unwrap();
        let expected = r#"Cli { command: Serve({"polyloop-token", "port"}) }"#;
        assert_eq!(format!("{cli:?}"), expected);
    }

    #[test]
    fn a_chat_has_its_words_and_shows_no_token() {
        let words = ["polyloop", "chat", "--session", "s", "--new", "--token", "hunter2", "a", "b"];
        let cli = Cli::try_parse_from(words).unwrap();
        assert!(!format!("{cli:?}").contains("hunter2"), "{cli:?}");
        let Command::Chat(args) = cli.command else { panic!("not chat") };
        let options = polyloop_terminal::Options::from(args);
        assert_eq!(options.message, ["a", "b"]);
        assert_eq!(options.session.as_deref(), Some("s"));
        assert_eq!(options.token.as_deref(), Some("hunter2"));
        assert!(options.new && !options.json);
        assert!(Cli::try_parse_from(["polyloop", "chat", "--new"]).is_err());
    }

    #[test]
    fn wrong_words_are_refused() {
        let cases: [(&[&str], ErrorKind); 6] = [
            (&["sevre"], ErrorKind::InvalidSubcommand),
            (&["serve", "--prot", "1"], ErrorKind::UnknownArgument),
            (&["serve", "--port"], ErrorKind::InvalidValue),
            (&["serve", "--port", "1", "--port", "2"], ErrorKind::ArgumentConflict),
            (&["serve", "now"], ErrorKind::UnknownArgument),
            (&["demo", "--port", "70000"], ErrorKind::ValueValidation),
        ];
        for (words, kind) in cases {
            let error = Cli::try_parse_from([&["polyloop"], words].concat()).unwrap_err();
            assert_eq!(error.kind(), kind, "{words:?}");
        }
    }

    #[test]
    fn the_demo_needs_nothing_and_makes_its_workspace() {
        let start = tempfile::tempdir().unwrap();
        let root = start.path().canonicalize().unwrap();
        // Neither of these may count.
        std::fs::write(root.join(".env"), "PORT=1\nbroken line here\n").unwrap();

        let args = demo(&[]);
        assert!(args.port.is_none());
        let config = demo_config(&args, &root).unwrap();
        let dir = root.join("polyloop-demo");
        assert!(dir.join("workspace").is_dir());
        assert_eq!(config.working_directory, dir.join("workspace"));
        assert_eq!(config.session_store, Some(dir.join("sessions")));
        assert_eq!(config.todos_store, Some(dir.join("todos")));
        assert_eq!(config.model.provider, Provider::Offline);
        assert_eq!(config.model.name, "offline");
        assert_eq!(config.addr().to_string(), "127.0.0.1:8080");
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);

        demo_config(&args, &root).expect("a second time");
    }

    #[test]
    fn the_demo_takes_a_port_and_a_directory() {
        let start = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let dir = elsewhere.path().canonicalize().unwrap().join("a b");
        let args = demo(&["--port", "0", "--dir", dir.to_str().unwrap()]);
        let config = demo_config(&args, start.path()).unwrap();
        assert_eq!(config.port, 0);
        assert_eq!(config.session_store, Some(dir.join("sessions")));
    }

    #[test]
    fn the_demo_says_why_it_cannot_make_its_workspace() {
        let start = tempfile::tempdir().unwrap();
        std::fs::write(start.path().join("file"), "").unwrap();
        let error = demo_config(&demo(&["--dir", "file"]), start.path()).unwrap_err();
        let path = start.path().join("file/workspace");
        let expected = format!("--dir: cannot make {}: ", path.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}
