//! `polyloop chat`: a client for terminals and for scripts.
//!
//! Speaks `unified.v1` and REST to a server, as any client could; knows no other crate of the
//! project.

mod address;
mod chat;
mod editor;
mod keys;
mod link;
mod markdown;
mod past;
mod pipe;
mod rest;
mod screen;
mod slash;
mod story;
mod style;
mod text;
mod tty;
mod wire;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use address::{Address, URL_DEFAULT, is_session_id};
use serde_json::Value;

/// What the command line says.
// No Debug: there is the token in it.
#[derive(Clone, Default)]
pub struct Options {
    pub session: Option<String>,
    /// Make the session that is named.
    pub new: bool,
    pub url: Option<String>,
    pub token: Option<String>,
    pub json: bool,
    pub reconnect: Duration,
    pub message: Vec<String>,
}

/// How the program ends, for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Done,
    Failed,
    Usage,
    Denied,
    Lost,
    Interrupted,
    Signal(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Denied => 3,
            Exit::Lost => 4,
            Exit::Interrupted => 5,
            Exit::Signal(number) => 128 + number,
        })
    }
}

/// What the number of a message adds to its frame.
const MESSAGE_BYTES_SPARE: u64 = 32;

const SIGINT: u8 = 2;
const SIGPIPE: u8 = 13;
const SIGHUP: u8 = 1;
const SIGTERM: u8 = 15;
const SIGCONT: i32 = rustix::process::Signal::CONT.as_raw();

/// Talks until the user leaves, or until the answer is there.
pub fn run(options: Options) -> ExitCode {
    let address = match address(&options) {
        Ok(address) => address,
        Err(problem) => return complain(Exit::Usage, &problem).into(),
    };
    if address.shows_token_openly() {
        tell("warning: the token goes over the network unencrypted; https:// would not show it");
    }
    if let Some(problem) = wrong_session(&options) {
        return complain(Exit::Usage, &problem).into();
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return complain(Exit::Failed, &format!("the runtime cannot start: {error}")).into();
        }
    };
    let interactive = tty::is_interactive() && !options.json;
    let exit = runtime.block_on(async {
        if interactive {
            chat::run(address, options).await
        } else {
            pipe::run(address, options).await
        }
    });
    // A thread may still wait for keys or a connection for its end.
    runtime.shutdown_background();
    exit.into()
}

fn address(options: &Options) -> Result<Address, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let url = options.url.clone().or_else(|| variable("POLYLOOP_URL"));
    let token = options.token.clone().or_else(|| variable("POLYLOOP_TOKEN"));
    Address::parse(url.as_deref().unwrap_or(URL_DEFAULT), token)
}

fn wrong_session(options: &Options) -> Option<String> {
    let id = options.session.as_ref()?;
    let says = "is no session id; use up to 128 letters, digits, dots, dashes and underscores, \
                without a dot at the beginning";
    (!is_session_id(id)).then(|| format!("--session: {id:?} {says}"))
}

fn complain(exit: Exit, problem: &str) -> Exit {
    text::lines(problem).for_each(|line| tell(&format!("error: {line}")));
    exit
}

/// A line on standard error. That nobody reads it is no reason to fail.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", text::clean(line));
}

/// Why a message is more than the server takes, if it is: it would close the connection.
fn too_long(text: &str, about: &Value) -> Option<String> {
    let most = about["limits"]["message_bytes"].as_u64()?;
    let fields = serde_json::json!({ "content": text });
    let bytes = wire::message("user_message", &own_name(), fields).len() as u64;
    let says = format!("the message has {bytes} bytes with its frame, and the server takes {most}");
    (bytes + MESSAGE_BYTES_SPARE > most).then(|| format!("{says} (its MAX_MESSAGE_BYTES)"))
}

/// An id for this client's messages that no other client has.
fn own_name() -> String {
    format!("term-{:08x}-", fastrand::u32(..))
}
