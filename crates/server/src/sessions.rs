//! `polyloop sessions`: looks at a session store without a server, and mends it.
//!
//! All but `repair` and `rebuild-messages` only read, also while a server uses the store.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueEnum};
use polyloop_agent::clock;
use polyloop_agent::log::files::Files;
use polyloop_agent::log::files::check::{Checked, Weight, is_in_use};
use polyloop_agent::log::{LinePlace, Log};
use polyloop_dialects::rest::SessionList;
use polyloop_dialects::time::iso;
use polyloop_session::{LogEntry, Seq, SessionId};
use serde_json::json;

use crate::config::settings::SESSION_STORE_PATH;
use crate::config::{Config, ServeArgs, one_line};
use crate::rest::{Awake, told};
use crate::view::FileCodec;

mod messages;
mod tell;

use tell::{Form, Teller};

/// How often people are told how far a long look has come.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// For words that make no sense, as the parser of the command line has it.
const USAGE: u8 = 2;

pub const EXAMPLES: &str = "\
Examples:
  polyloop sessions list
  polyloop sessions check --session-store-path ./sessions
  polyloop sessions show 4f1c
  polyloop sessions export 4f1c --format markdown > talk.md
  polyloop sessions repair";

#[derive(Clone, Debug, Args)]
pub struct SessionsArgs {
    /// The directory of session files [otherwise: SESSION_STORE_PATH, also from .env]
    #[arg(long, value_name = "DIR", global = true)]
    pub session_store_path: Option<PathBuf>,
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// List all sessions, newest first
    List {
        /// Print one JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Look for damage in all sessions or some; ends with 1 if there is any
    Check {
        /// The sessions to look at [otherwise: all]
        ids: Vec<String>,
        /// Print one JSON object a session
        #[arg(long)]
        json: bool,
    },
    /// Cut torn ends off and make indexes anew; no server may use the store
    #[command(long_about = "Cut torn ends off and make indexes anew; no server may use the \
                             store.\n\nWhat is cut off is kept beside the session's file, with \
                             the time in its name and the ending .bak. Lines that cannot be read \
                             stay where they are.")]
    Repair {
        /// The sessions to mend [otherwise: all]
        ids: Vec<String>,
    },
    /// Print a session's conversation for reading
    Show {
        /// The session, or as much of its id as names one
        id: String,
    },
    /// Print a whole session for other programs or for keeping
    #[command(
        long_about = "Print a whole session for other programs or for keeping.\n\nThe lines of \
                      jsonl hold everything, also long texts; saved as <id>.jsonl in a session \
                      store they are that session."
    )]
    Export {
        /// The session, or as much of its id as names one
        id: String,
        #[arg(long, value_enum, default_value = "jsonl")]
        format: Format,
    },
    /// Make the user message store anew from the sessions; no server may use the store
    RebuildMessages {
        /// The file of the store [otherwise: USER_MESSAGE_DB, also from .env]
        #[arg(long, value_name = "FILE")]
        user_message_db: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Jsonl,
    Markdown,
}

/// What ends a command before its work is done.
enum Halt {
    /// The words make no sense.
    Usage(String),
    Failed(String),
    /// Whoever read the output has seen enough.
    Unread,
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Halt {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Halt::Unread,
            _ => Halt::Failed(format!("standard output: {error}")),
        }
    }
}

impl From<polyloop_agent::log::LogError> for Halt {
    fn from(error: polyloop_agent::log::LogError) -> Halt {
        Halt::Failed(error.to_string())
    }
}

pub fn run(args: &SessionsArgs, start_dir: &Path) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the runtime cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(act(args, start_dir)) {
        Ok(code) => code,
        Err(Halt::Unread) => ExitCode::SUCCESS,
        Err(Halt::Failed(why)) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
        Err(Halt::Usage(why)) => {
            eprintln!("error: {why}");
            ExitCode::from(USAGE)
        }
    }
}

async fn act(args: &SessionsArgs, start_dir: &Path) -> Result<ExitCode, Halt> {
    let dir = store_dir(args, start_dir)?;
    match &args.action {
        Action::List { json } => list(&dir, *json).await?,
        Action::Check { ids, json } => return check(&dir, ids, *json).await,
        Action::Repair { ids } => repair(&dir, ids).await?,
        Action::Show { id } => tell(&dir, id, Form::Terminal).await?,
        Action::Export { id, format: Format::Markdown } => tell(&dir, id, Form::Markdown).await?,
        Action::Export { id, format: Format::Jsonl } => lines(&dir, id).await?,
        Action::RebuildMessages { user_message_db } => {
            messages::rebuild(&dir, user_message_db.as_deref(), start_dir).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// As `serve` would find it.
fn store_dir(args: &SessionsArgs, start_dir: &Path) -> Result<PathBuf, Halt> {
    let mut flags = ServeArgs::default();
    if let Some(dir) = &args.session_store_path {
        flags.set(&SESSION_STORE_PATH, dir);
    }
    let parts = Config::examine(&flags, std::env::vars_os(), start_dir).parts;
    if parts.shared_store.is_some() && args.session_store_path.is_none() {
        let why = "STORE is set, so sessions are on NATS, and this command looks at session files \
                   only: ask a server (GET /sessions, GET /sessions/{id}), or name a directory of \
                   files with --session-store-path";
        return Err(Halt::Usage(why.to_owned()));
    }
    parts.session_store.ok_or_else(|| {
        let how = "set SESSION_STORE_PATH or give --session-store-path";
        Halt::Usage(format!("there is no session store: {how}"))
    })
}

fn to_read(dir: &Path) -> Result<Files, Halt> {
    Ok(Files::open_to_read(dir, FileCodec::shared())?)
}

async fn list(dir: &Path, as_json: bool) -> Result<(), Halt> {
    let mut all = to_read(dir)?.list().await?;
    all.sort_by(|a, b| b.start.cmp(&a.start).then_with(|| a.id.cmp(&b.id)));
    let mut out = io::stdout().lock();
    if as_json {
        // Which sessions a server has in memory cannot be seen from here.
        let awake = if is_in_use(dir) { Awake::Yes } else { Awake::No };
        let sessions = all.iter().map(|summary| told(summary, awake)).collect();
        return Ok(writeln!(out, "{}", json!(SessionList { sessions }))?);
    }
    let wide = all.iter().map(|s| s.id.as_str().len()).max().unwrap_or(0).max("id".len());
    writeln!(out, "{:wide$}  {:24}  {:24}  {:>8}  title", "id", "began", "last", "events")?;
    for s in &all {
        let title = s.named.title.as_deref().map(one_line).unwrap_or_default();
        let (start, last) = (iso(s.start), iso(s.last));
        let line = format!("{:wide$}  {start:24}  {last:24}  {:>8}  {title}", s.id, s.lines);
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// The sessions that are meant; all if none is named.
fn wanted(store: &Files, ids: &[String]) -> Result<Vec<SessionId>, Halt> {
    if ids.is_empty() {
        return Ok(store.ids()?);
    }
    ids.iter().map(|id| one(store, id)).collect()
}

/// A session by its id, or by a beginning that only one has.
fn one(store: &Files, id: &str) -> Result<SessionId, Halt> {
    let all = store.ids()?;
    if let Some(whole) = all.iter().find(|known| known.as_str() == id) {
        return Ok(whole.clone());
    }
    let mut begin =
        all.into_iter().filter(|known| !id.is_empty() && known.as_str().starts_with(id));
    match (begin.next(), begin.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(Halt::Usage(format!("{id:?} begins several sessions' ids"))),
        (None, _) => Err(Halt::Usage(format!("no session's id is {id:?} or begins with it"))),
    }
}

/// Says on standard error how far a long piece of work has come, if a person looks on.
struct Progress {
    all: usize,
    told: Instant,
    is_seen: bool,
}

impl Progress {
    fn new(all: usize) -> Progress {
        Progress { all, told: Instant::now(), is_seen: io::stderr().is_terminal() }
    }

    fn at(&mut self, done: usize) {
        if self.is_seen && self.told.elapsed() >= PROGRESS_EVERY {
            self.told = Instant::now();
            eprintln!("{done} of {} sessions", self.all);
        }
    }
}

async fn check(dir: &Path, ids: &[String], as_json: bool) -> Result<ExitCode, Halt> {
    let store = to_read(dir)?;
    let in_use = is_in_use(dir);
    let ids = wanted(&store, ids)?;
    let (mut progress, mut damaged) = (Progress::new(ids.len()), 0);
    let mut out = io::stdout().lock();
    for (at, id) in ids.iter().enumerate() {
        progress.at(at);
        let checked = store.check(id).await?;
        damaged += usize::from(checked.is_damaged());
        match as_json {
            true => writeln!(out, "{}", serde_json::to_value(&checked).unwrap_or_default())?,
            false => print(&mut out, &checked)?,
        }
    }
    if !as_json {
        let note = match in_use {
            true => "; a server uses the store, so an end may just be written",
            false => "",
        };
        writeln!(out, "{} sessions looked at, {damaged} damaged{note}", ids.len())?;
    }
    Ok(if damaged == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(out: &mut impl Write, checked: &Checked) -> io::Result<()> {
    let Checked { id, lines, last_seq, bytes, findings } = checked;
    let word = match (checked.is_damaged(), findings.is_empty()) {
        (true, _) => "DAMAGED",
        (false, false) => "ok, with notes",
        (false, true) => "ok",
    };
    writeln!(out, "{id}: {word} ({lines} lines, {last_seq} entries, {bytes} bytes)")?;
    for finding in findings {
        let word = match finding.weight {
            Weight::Damage => "damage",
            Weight::Note => "note",
        };
        let place = finding.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        writeln!(out, "  {word}: {place}{}", one_line(&finding.what))?;
    }
    Ok(())
}

async fn repair(dir: &Path, ids: &[String]) -> Result<(), Halt> {
    if !dir.is_dir() {
        return Err(Halt::Usage(format!("{} is not a directory", dir.display())));
    }
    let store = Files::open(dir, FileCodec::shared())?;
    let ids = wanted(&store, ids)?;
    let mut progress = Progress::new(ids.len());
    let mut out = io::stdout().lock();
    for (at, id) in ids.iter().enumerate() {
        progress.at(at);
        let done = store.repair(id, clock::now()).await?;
        let told = if done.is_empty() { "nothing to do".to_owned() } else { done.join("; ") };
        writeln!(out, "{id}: {told}")?;
    }
    Ok(())
}

async fn lines(dir: &Path, id: &str) -> Result<(), Halt> {
    let store = to_read(dir)?;
    let id = one(&store, id)?;
    let (mut place, mut out) = (LinePlace::default(), io::stdout().lock());
    loop {
        let (page, next) = store.lines(&id, place, LinePlace::END).await?;
        if next == place {
            return Ok(out.flush()?);
        }
        for line in page {
            writeln!(out, "{line}")?;
        }
        place = next;
    }
}

async fn tell(dir: &Path, id: &str, form: Form) -> Result<(), Halt> {
    let store = to_read(dir)?;
    let id = one(&store, id)?;
    let summary = store.summary(&id).await?;
    let mut teller = Teller::new(form, Arc::new(id.clone()));
    let mut out = io::stdout().lock();
    if let Some(summary) = summary {
        out.write_all(teller.head(&summary).as_bytes())?;
    }
    let mut after = Seq::NONE;
    loop {
        let page: Vec<Arc<LogEntry>> = store.read(&id, after, Seq(u64::MAX)).await?;
        let Some(last) = page.last() else { return Ok(out.flush()?) };
        after = last.seq;
        for entry in &page {
            out.write_all(teller.told(entry).as_bytes())?;
        }
    }
}
