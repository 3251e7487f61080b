//! Where sessions work, and what the model is told about it.
//!
//! A session may work in any folder inside the allowed roots; links are followed before that is
//! judged. Never makes a folder, but for plans.

use std::collections::VecDeque;
use std::fs::{Metadata, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use polyloop_session::{SessionId, Text};
use rustix::fs::OFlags;

use crate::memories::Memories;
use crate::patch::Root;
use crate::tool::bash::is_forbidden;
use crate::tool::{Place, Words, skills};

mod checked_out;
mod told;

use told::Looks;
pub use told::Told;

/// Of a file that tells the model who it is or how to work here.
const TOLD_BYTES_MAX: u64 = 64 * 1024;
/// Folders that are kept open.
const RECENT_MAX: usize = 8;

/// The folders that sessions may work in.
#[derive(Clone, Debug)]
pub struct Places {
    /// What every place has in common; its folder is the one of sessions that named none.
    pub common: Place,
    /// Canonical; the common folder is one of them.
    pub roots: Vec<PathBuf>,
    /// Where plans are kept, a folder a session.
    pub plans: Option<PathBuf>,
    /// Where long outputs of commands are kept, a folder a session.
    pub outputs: Option<PathBuf>,
    /// Where todos files are kept, one a session.
    pub todos: Option<PathBuf>,
    pub memories: Memories,
    pub recent: Recent,
}

/// The folders that sessions worked in last, as they were named: most sessions share one, and what
/// is still where it was need not be looked up and judged again.
#[derive(Clone, Debug, Default)]
pub struct Recent(Arc<Mutex<VecDeque<(PathBuf, Root)>>>);

impl Recent {
    fn find(&self, wanted: &Path) -> Option<Root> {
        let known = self.lock().iter().find(|(named, _)| named == wanted)?.1.clone();
        known.is_still(wanted).then_some(known)
    }

    fn keep(&self, wanted: PathBuf, root: &Root) {
        let mut recent = self.lock();
        recent.retain(|(named, _)| *named != wanted);
        recent.truncate(RECENT_MAX - 1);
        recent.push_front((wanted, root.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(PathBuf, Root)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// The folder, links followed, if work is allowed there; else why not.
    pub fn folder(&self, wanted: &str) -> Result<PathBuf, String> {
        let shown: String = wanted.chars().take(200).flat_map(char::escape_debug).collect();
        // What is outside is told apart from what is not there for nobody.
        let outside = || {
            format!(
                "working folder {shown}: is not there, or outside the allowed roots \
                 (WORKING_DIRECTORY, WORKSPACE_ROOTS)"
            )
        };
        let real = self.common.cwd.join(wanted).canonicalize().map_err(|_| outside())?;
        if !self.roots.iter().any(|root| real.starts_with(root)) {
            return Err(outside());
        }
        if is_forbidden(&real, &self.common) {
            return Err(format!("working folder {shown}: holds the server's own files"));
        }
        if !real.is_dir() {
            return Err(format!("working folder {shown}: is not a directory"));
        }
        Ok(real)
    }

    /// The folder, opened, if work is allowed there.
    fn root(&self, wanted: &str) -> Result<Root, String> {
        let named = self.common.cwd.join(wanted);
        if let Some(root) = self.recent.find(&named) {
            return Ok(root);
        }
        let folder = self.folder(wanted)?;
        let root = Root::open(&folder).map_err(|error| error.to_string())?;
        self.recent.keep(named, &root);
        Ok(root)
    }

    /// Removes what is kept for a session that is gone.
    pub async fn forget(&self, session: &SessionId) {
        for kept in [&self.plans, &self.outputs].into_iter().flatten() {
            let folder = kept.join(session.as_str());
            let removed =
                tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
            match removed {
                Ok(Err(error)) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(%session, %error, "what was kept for it could not be removed");
                }
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Where a turn of a session works, and for whom: by the name that was given. A folder that is
    /// gone or not allowed any more is not entered: the server's own takes its place.
    pub fn place(&self, session: &SessionId, cwd: Option<&str>, user: Option<&str>) -> Place {
        let root = cwd.and_then(|cwd| match self.root(cwd) {
            Ok(root) => Some(root),
            Err(why) => {
                tracing::warn!(%session, "{why}; working in the server's own directory");
                None
            }
        });
        let root = root.or_else(|| Root::open(&self.common.cwd).ok());
        let plans = self.plans.as_ref().map(|plans| plans.join(session.as_str()));
        let outputs = self.outputs.as_ref().map(|outputs| outputs.join(session.as_str()));
        let todos = self.todos.as_ref().map(|todos| todos.join(format!("{session}.md")));
        let cwd = root.as_ref().map_or(&*self.common.cwd, Root::path).to_path_buf();
        let memories = self.memories.of(user);
        Place { cwd, root, plans, outputs, todos, memories, ..self.common.clone() }
    }
}

/// What the model is told before the conversation.
#[derive(Clone, Debug)]
pub struct Instructions {
    /// Who it is, unless the folder has a `SOUL.md`.
    pub role: Text,
    /// How to work, whoever it is.
    pub rules: Text,
    /// The operator's own.
    pub own: Option<Text>,
    /// What was told lately.
    pub kept: Arc<Told>,
}

impl Instructions {
    /// Looked at anew for each call, so that an edit of these files counts at once.
    pub fn for_turn(&self, place: &Place) -> Words {
        self.at(place, SystemTime::now())
    }

    /// The same, at a time: what has not changed for long is not read again.
    pub fn at(&self, place: &Place, now: SystemTime) -> Words {
        let today = jiff::Zoned::try_from(now).unwrap_or_else(|_| jiff::Zoned::now()).date();
        if let Some(words) = self.kept.find(place, today) {
            return words;
        }
        // What is looked at comes before what is read of it: a change in between is seen next time.
        let mut looks = Looks::of(place);
        let soul = told(place, "SOUL.md", &mut looks);
        let role = soul.as_deref().unwrap_or(&self.role);
        let mut parts = vec![role.trim().to_string(), self.rules.trim().to_string()];
        if let Some(agents) = told(place, "AGENTS.md", &mut looks) {
            parts.push(agents.trim().to_string());
        }
        parts.push(facts(place, today, &mut looks));
        if skills::DIRECTORIES.into_iter().any(|path| place.has_some_of(path)) {
            looks.cannot_tell();
            parts.extend(skills::told(place));
        }
        parts.extend(self.own.as_ref().map(|own| own.trim().to_string()));
        parts.retain(|part| !part.is_empty());
        let mut text = parts.join("\n\n");
        text.push('\n');
        self.kept.keep(place, today, text, looks.witnesses(now))
    }
}

/// What the model should know of where it works. Changes at most once a day, so that providers'
/// caches hold.
fn facts(place: &Place, today: jiff::civil::Date, looks: &mut Looks) -> String {
    let mut facts = vec![format!("Working directory: {}", place.cwd.display())];
    let checked_out = checked_out::checked_out(place, looks);
    facts.push(format!("Version control: {}", checked_out.as_deref().unwrap_or("none found")));
    facts.push(format!("System: {}, commands run in bash", std::env::consts::OS));
    facts.push(format!("Date: {today}"));
    facts.join("\n")
}

/// The text of a regular file of the folder; a long one is cut, a blank one is none. A link that
/// leads out of the folder, or to the server's own files, is not followed: what is told goes to
/// the provider.
fn told(place: &Place, name: &str, looks: &mut Looks) -> Option<String> {
    // Most folders have none, and where the name of nothing leads need not be found out.
    if !place.has_some_of(name) {
        return None;
    }
    let path = place.cwd.join(name);
    looks.saw(&path);
    path.metadata().ok().filter(Metadata::is_file)?;
    let path = path.canonicalize().ok()?;
    let closed = is_forbidden(&path, place) || place.rules.closes(&path, &place.cwd);
    if !path.starts_with(&place.cwd) || closed {
        return None;
    }
    let text = regular(&path, TOLD_BYTES_MAX)?;
    (!text.trim().is_empty()).then_some(text)
}

/// The beginning of a file, if it is one.
fn regular(path: &Path, bytes_max: u64) -> Option<String> {
    // Opening a pipe would wait for a writer.
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
