//! The tools an agent may use: one file each, one line in `ALL`.
//!
//! A tool declares what a call would do (`judge`) apart from doing it (`run`); whether it may run
//! is decided by `session::policy` and by people, never here.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::item::{End, ToolResult};
use polyloop_session::policy::{Judgement, Key, Leave, Mode, Verdict, weigh};
use tokio_util::sync::CancellationToken;

use crate::memories::UserMemories;
use crate::patch::{Journal, PatchError, Root};
use crate::rules::Rules;

pub mod apply_patch;
pub mod ask_user;
pub mod bash;
pub mod batch;
pub mod create_dir;
pub mod delete_file;
pub mod edit;
pub mod exit_plan_mode;
mod files;
pub mod glob;
pub mod grep;
mod list;
pub mod list_memories;
pub mod ls;
mod memory;
pub mod move_file;
pub mod multiedit;
mod own;
pub mod read;
pub mod recall;
pub mod remember;
pub(crate) mod revert;
mod schema;
pub mod search_memories;
pub mod skill;
pub(crate) mod skills;
mod todo_list;
pub mod todo_read;
pub mod todo_write;
mod touches;
pub mod web_fetcher;
pub mod write_file;

pub use files::TEXT_BYTES_MAX;
pub use list::ToolList;
pub(crate) use schema::Written;
pub use schema::{Schema, Words};
pub use touches::Touches;

/// What a tool tells the model about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: &'static str,
    pub description: Words,
    /// JSON Schema of the arguments.
    pub parameters: Schema,
}

pub trait Tool: Send + Sync + 'static {
    fn spec(&self) -> ToolSpec;

    /// Whether it is of use where nothing may be changed: some of its calls only read.
    fn may_read(&self) -> bool {
        false
    }

    /// Whether a call may start processes, of which the server runs only so many at once.
    fn starts_processes(&self, _args: &str) -> bool {
        false
    }

    /// Finds out what a call would do. Reads at most; changes nothing. `Err` is a text for the
    /// model: the arguments do not fit.
    fn judge<'a>(
        &'a self,
        args: &'a str,
        place: &'a Place,
    ) -> BoxFuture<'a, Result<Judgement, Text>>;

    /// Does it. The stream ends with `Ended` or `Stopped`; when `stop` is cancelled it ends soon, with what it
    /// had.
    fn run(&self, run: Run) -> BoxStream<'static, Progress>;
}

pub struct Run {
    pub args: Text,
    pub place: Arc<Place>,
    pub sandboxed: bool,
    /// None if a person said yes to this very call.
    pub unasked: Option<Unasked>,
    pub stop: CancellationToken,
}

impl Run {
    /// Nobody was asked, because it was judged safe: if it is not any more, it must not run.
    pub fn is_safe(&self) -> bool {
        self.unasked.as_ref().is_some_and(|unasked| match unasked.leave {
            Leave::Reads | Leave::Safe => true,
            Leave::Mode { .. } | Leave::Granted | Leave::Rule { .. } | Leave::Person => false,
        })
    }
}

/// By what a call runs that nobody was asked about, and what else the session lets run unasked.
#[derive(Clone, Debug)]
pub struct Unasked {
    pub leave: Leave,
    pub mode: Mode,
    pub grants: Arc<[Key]>,
}

impl Unasked {
    /// Whether the sandbox holds a call that is judged anew when it runs, and by what it runs; none
    /// if somebody must be asked by now.
    pub(crate) fn lets(&self, judged: &Judgement) -> Option<(bool, Leave)> {
        let weighed = weigh(judged, self.mode, &self.grants, false);
        let sandboxed = match weighed.verdict {
            Verdict::Allow => false,
            Verdict::AllowSandboxed => true,
            Verdict::Ask | Verdict::Deny(_) => return None,
        };
        Some((sandboxed, weighed.leave?))
    }
}

/// Where a session works, and what it must keep its hands off.
#[derive(Clone, Debug)]
pub struct Place {
    /// Canonical.
    pub cwd: PathBuf,
    /// The same, held open since the turn began: what takes its place later is not written to.
    pub root: Option<Root>,
    /// Where the session's plans are kept, if anything is.
    pub plans: Option<PathBuf>,
    /// Where long outputs of its commands are kept, if anything is; only the session reads there.
    pub outputs: Option<PathBuf>,
    /// The session's todos file, if it has one.
    pub todos: Option<PathBuf>,
    /// Those of the user who began the turn.
    pub memories: UserMemories,
    /// The server's own files: refused in every mode, by whatever name.
    pub forbidden: Arc<[PathBuf]>,
    /// What the operator always allows, asks about or denies.
    pub rules: Arc<Rules>,
    /// Where patches are written down before they are applied, so that a kill cannot tear one.
    pub journal: Option<Journal>,
    /// How long one command may run.
    pub command_time_max: std::time::Duration,
    /// Whether commands can be run in a sandbox, as tried at start.
    pub sandbox: bool,
    /// The program that starts commands.
    pub helper: bash::Helpers,
    /// The way to the web.
    pub web: web_fetcher::Reach,
}

impl Place {
    /// Whether the first name of a path in the working directory is there, whatever it leads to:
    /// where it is not, the directory alone says that nothing of it is.
    pub(crate) fn has_some_of(&self, path: &str) -> bool {
        let first = path.split('/').next().unwrap_or(path);
        match self.root.as_ref().filter(|root| root.path() == self.cwd) {
            Some(root) => root.has(first),
            None => self.cwd.join(first).symlink_metadata().is_ok(),
        }
    }

    /// The working directory, if it still is the one in which the turn began.
    pub(crate) fn root(&self) -> Result<Root, PatchError> {
        if let Some(root) = self.root.as_ref().filter(|root| root.path() == self.cwd) {
            return root.check().map(|()| root.clone());
        }
        let root = Root::open(&self.cwd)?;
        match root.path() == self.cwd {
            true => Ok(root),
            // It was without links when it was named.
            false => Err(PatchError::RootChanged { root: self.cwd.clone() }),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    Output(Text),
    Ended {
        end: End,
        result: ToolResult,
    },
    /// It ran in the sandbox, which stopped it: whoever may decides whether it runs outside. The
    /// last word of the run, like `Ended`.
    Stopped {
        /// What the sandbox did not let it do, for people.
        reason: Text,
        result: ToolResult,
    },
    /// It is about to change files: recorded before the stream is asked for more, and only then
    /// done.
    Touches(Touches),
}

/// All tools, in the order clients see them.
pub static ALL: &[&dyn Tool] = &[
    &bash::Bash,
    &read::Read,
    &write_file::WriteFile,
    &edit::Edit,
    &multiedit::MultiEdit,
    &apply_patch::ApplyPatch,
    &ls::Ls,
    &glob::Glob,
    &grep::Grep,
    &move_file::MoveFile,
    &delete_file::DeleteFile,
    &create_dir::CreateDir,
    &web_fetcher::WebFetcher,
    &todo_read::TodoRead,
    &todo_write::TodoWrite,
    &ask_user::AskUser,
    &exit_plan_mode::ExitPlanMode,
    &batch::Batch,
    &skill::Skill,
    &remember::Remember,
    &recall::Recall,
    &search_memories::SearchMemories,
    &list_memories::ListMemories,
];

/// Models that call a tool without arguments may send nothing at all.
pub fn given(args: &str) -> &str {
    if args.trim().is_empty() { "{}" } else { args }
}

pub fn find(name: &str) -> Option<&'static dyn Tool> {
    let named = || ALL.iter().map(|tool| (tool.spec().name, *tool)).collect();
    static NAMED: OnceLock<HashMap<&str, &dyn Tool>> = OnceLock::new();
    NAMED.get_or_init(named).get(name).copied()
}
