//! What the file tools share: where a path leads, what policy and people are told of it, and how
//! a call ends.
//!
//! A path's text decides whether it is inside the working directory, and the kernel then follows
//! it through no link. So a call does when it runs what was judged of it, or nothing: whoever puts
//! a link in its way in between only makes it fail. Whether a call may run is never decided here.

use std::path::{Path, PathBuf};

use polyloop_session::Text;
use polyloop_session::policy::{Effect, Judgement, Key, Risk, Rule, Says};

use super::bash::is_forbidden;
use super::{Place, Run};
use crate::patch::root::Place as Lies;
use crate::patch::{PatchError, Root, missing_directories, path, shown, touched_at};
use crate::rules;

mod args;
mod changes;
pub(super) mod diff;
mod held;
mod perform;
mod reading;
mod walk;

pub(super) use args::Args;
pub(super) use changes::{
    file_change, keep, kept, kept_bytes, patch_of, read as read_content, touches_of,
};
pub(super) use held::{HELD_MAX, Held, entries, open as open_directory};
pub(super) use perform::{Done, Watch, edit, judge_blocking, look, noted, wait};
pub(super) use reading::{Reading, judge_reading, run_reading};
pub(super) use walk::{Entry, Kind, Order, Tree, name_of};

/// What a reading tool gives at most; a longer text says how to get the rest.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// What every file tool's path may be.
pub(super) const PATH_HELP: &str =
    "Relative to the working directory, or absolute. Outside of it the user is asked.";

/// Of a path in a list.
const NAME_BYTES_MAX: usize = 8 * 1024;

/// Where the kernel shows itself as files: reading there tells of the server, writing changes it.
const SYSTEM_DIRECTORIES: &[&str] = &["/proc", "/sys", "/dev"];

/// Whether a path may also name a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    File,
    Any,
}

/// What happens to a link on the way. One that leads out of the working directory is never
/// followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    Refuse,
    FollowInside,
}

/// A path of a call, resolved.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The working directory, or the root of all for a path outside of it.
    pub root: Root,
    /// Relative to `root` and without links; empty for `root` itself.
    pub relative: String,
    /// As people and logs see it: relative to the working directory, or absolute outside of it.
    pub path: String,
    pub outside: bool,
    /// An edit there needs consent in every mode.
    pub protected: bool,
    pub real: PathBuf,
    /// What the rules say of it.
    rule: Option<Rule>,
}

impl Target {
    /// The error is for the model. It depends on the files, so for a judgement it is a refusal.
    pub(super) fn find(
        named: &str,
        place: &Place,
        names: Names,
        links: Links,
    ) -> Result<Target, String> {
        let named = usable(named, names)?;
        let root = place.root().map_err(|error| error.to_string())?;
        let (absolute, outside) = match root.place(named) {
            Lies::Inside(relative) if relative.is_empty() => (root.path().to_owned(), false),
            Lies::Inside(relative) => (root.path().join(relative), false),
            Lies::Outside(absolute) => (absolute, true),
        };
        let real = path::real(&absolute);
        // What the session's own commands printed is its to read, and nobody's to change.
        let printed = place.outputs.as_ref().filter(|_| links == Links::FollowInside);
        let printed = printed.is_some_and(|dir| real == absolute && real.starts_with(dir));
        if !printed {
            check_allowed(named, [&absolute, &real], place)?;
        }
        if real != absolute {
            let inside = real.starts_with(root.path());
            if outside || !inside || links == Links::Refuse {
                return Err(astray(named, &real, inside));
            }
        }
        let root = if outside {
            Root::open(Path::new("/")).map_err(|error| error.to_string())?
        } else {
            root
        };
        let relative = real.strip_prefix(root.path()).ok().and_then(Path::to_str);
        let relative = relative
            .ok_or_else(|| format!("{}: leads to a name that is not UTF-8", shown(named)))?
            .to_owned();
        let path = match (outside, relative.as_str()) {
            (true, _) => real.to_string_lossy().into_owned(),
            (false, "") => ".".to_owned(),
            (false, relative) => relative.to_owned(),
        };
        let protected = touched_at(&root, &relative).protected;
        // What is closed under a link's name is closed to whoever goes by that name.
        let closing = place.rules.of_path(&absolute, &place.cwd);
        let closing = closing.filter(|rule| rule.says != Says::Allow);
        let rule = rules::stricter(place.rules.of_path(&real, &place.cwd), closing);
        let outside = outside && !printed;
        Ok(Target { root, relative, path, outside, protected, real, rule })
    }

    /// An error if nobody was asked about what was inside when it was judged and is not any more.
    pub(super) fn check_asked(&self, run: &Run) -> Result<(), String> {
        if run.is_safe() && self.outside {
            let (path, real) = (self.shown(), shown(&self.real.to_string_lossy()));
            return Err(format!("{path}: outside the working directory by now (really {real})"));
        }
        let strict = self.rule.as_ref().filter(|rule| match rule.says {
            Says::Deny => true,
            Says::Ask => run.unasked.is_some(),
            Says::Allow => false,
        });
        match strict {
            Some(rule) => {
                Err(format!("{}: leads by now to what a rule closes: {}", self.shown(), rule.line))
            }
            None => Ok(()),
        }
    }

    /// The line of the rules file that closes it, if one does.
    pub(super) fn denied(&self) -> Option<&Text> {
        self.rule.as_ref().filter(|rule| rule.says == Says::Deny).map(|rule| &rule.line)
    }

    /// The path in a sentence.
    pub(super) fn shown(&self) -> String {
        shown(&self.path)
    }

    /// An error of the patch engine in words that fit a single file.
    pub(super) fn explain(&self, error: PatchError) -> String {
        let path = self.shown();
        match error {
            PatchError::Outside { real, .. } => astray(&self.path, &real, false),
            PatchError::Link { real, .. } => astray(&self.path, &real, true),
            PatchError::Unchanged => format!("{path}: has this content already"),
            PatchError::Changed { .. } => {
                format!("{path}: was changed by another program meanwhile; read it again")
            }
            PatchError::TooLarge { found, limit, .. } => {
                format!("{path}: {found} bytes are over the limit of {limit}; use bash")
            }
            PatchError::Exists { .. } => format!("{path}: exists already"),
            PatchError::Missing { .. } => self.missing(),
            PatchError::Unfit { reason, .. } => format!("{path}: {reason}"),
            PatchError::Io { doing, source, .. } => format!("{path}: cannot {doing}: {source}"),
            other => other.to_string(),
        }
    }

    /// How something below it is called in a list.
    pub(super) fn below(&self, path: &Path) -> String {
        let mut below = name_of(path.as_os_str());
        if below.len() > NAME_BYTES_MAX {
            below.truncate(below.floor_char_boundary(NAME_BYTES_MAX));
            below.push('…');
        }
        match self.path.as_str() {
            "." => below,
            "/" => format!("/{below}"),
            _ => format!("{}/{below}", self.shown()),
        }
    }

    /// Directories that are not there on the way to a directory below the same root, as logs see
    /// them, outermost first.
    pub(super) fn missing_above(&self, directory: &str) -> Vec<Text> {
        let above = if self.outside { "/" } else { "" };
        let inside = format!("{directory}/.");
        let missing = missing_directories(&self.root, std::iter::once(inside.as_str()));
        missing.iter().map(|made| format!("{above}{made}").into()).collect()
    }

    pub(super) fn missing(&self) -> String {
        format!("{}: there is no such file", self.shown())
    }
}

/// The path without the slashes that only say "directory".
fn usable(named: &str, names: Names) -> Result<&str, String> {
    let unfit = |why: String| format!("`{}` is not a usable path: {why}", shown(named));
    match names {
        Names::File => path::check(named).map(|()| named).map_err(unfit),
        Names::Any => {
            let trimmed = named.trim_end_matches('/');
            let trimmed = if trimmed.is_empty() && named.starts_with('/') { "/" } else { trimmed };
            // Of a name in it the path is the directory, so it may end like one.
            path::check(&format!("{trimmed}/x")).map_err(unfit)?;
            Ok(trimmed)
        }
    }
}

/// Refuses what is refused in every mode, by its text and by where it leads.
fn check_allowed(named: &str, paths: [&Path; 2], place: &Place) -> Result<(), String> {
    let really = shown(&paths[1].to_string_lossy());
    if paths.iter().any(|path| is_forbidden(path, place)) {
        let named = shown(named);
        return Err(format!("{named}: one of the server's own files (really {really})"));
    }
    let is_system =
        |path: &&Path| SYSTEM_DIRECTORIES.iter().any(|directory| path.starts_with(directory));
    if paths.iter().any(is_system) {
        let named = shown(named);
        return Err(format!("{named}: not a place for file tools (really {really}); use bash"));
    }
    Ok(())
}

fn astray(named: &str, real: &Path, inside: bool) -> String {
    let (named, real) = (shown(named), shown(&real.to_string_lossy()));
    if inside {
        format!("{named}: reached through a symbolic link; use the real path {real}")
    } else {
        format!(
            "{named}: a symbolic link leads outside the working directory (really {real}); to ask \
             for that, use the real path"
        )
    }
}

/// The judgement of a call that reads: below `target` as a whole, for a directory.
fn reads(name: &'static str, target: &Target, does: &str) -> Judgement {
    let path = target.shown();
    let key = Key { what: format!("{name}:{}", target.path).into(), risk: Risk::Medium };
    let inside = Judgement {
        effect: Effect::Read,
        safe: true,
        confined: true,
        sandbox: false,
        refusal: None,
        risk: Risk::Low,
        reason: does.into(),
        command: vec![name.into(), target.path.as_str().into()],
        patch: None,
        diff: None,
        plan_file: None,
        covers: format!("{name} of {path}, for this session").into(),
        keys: vec![key],
        rule: target.rule.clone(),
    };
    if !target.outside {
        return inside;
    }
    // Policy lets every call run that only reads; about this one a person must be asked.
    Judgement {
        effect: Effect::Execute,
        safe: false,
        confined: false,
        risk: Risk::Medium,
        reason: format!("outside the working directory: {does}").into(),
        ..inside
    }
}

/// An edit as its tool describes it.
pub(super) struct Edit<'a> {
    pub name: &'static str,
    pub targets: &'a [&'a Target],
    /// What it does, with the paths.
    pub does: String,
    /// What a grant of it is called, and covers, in words.
    pub key: String,
    pub covers: String,
    /// The least risk of it.
    pub risk: Risk,
    /// Asked about even inside the working directory.
    pub always_asks: bool,
    /// The same edit as a patch, where there is one.
    pub patch: Option<String>,
    /// And as a unified diff.
    pub diff: Option<String>,
}

impl Edit<'_> {
    pub(super) fn judgement(self) -> Judgement {
        let outside = self.targets.iter().any(|target| target.outside);
        let protected = self.targets.iter().any(|target| target.protected);
        let reason = match (outside, protected) {
            (true, true) => {
                format!("a protected path outside the working directory: {}", self.does)
            }
            (true, false) => format!("outside the working directory: {}", self.does),
            (false, true) => format!("a protected path: {}", self.does),
            (false, false) => self.does,
        };
        let risk = if outside || protected { Risk::High } else { self.risk };
        let patch: Option<Text> = self.patch.map(Text::from);
        let rule = rules::of_all(self.targets.iter().map(|target| target.rule.clone()));
        // A protected path is asked about whatever the rules allow.
        let rule = rule.filter(|rule| !protected || rule.says != Says::Allow);
        let command = match &patch {
            Some(patch) => vec!["apply_patch".into(), patch.clone()],
            None => {
                let paths = self.targets.iter().map(|target| target.path.as_str().into());
                std::iter::once(self.name.into()).chain(paths).collect()
            }
        };
        Judgement {
            effect: Effect::Edit,
            safe: false,
            confined: !outside && !protected && !self.always_asks,
            sandbox: false,
            refusal: None,
            risk,
            reason: reason.into(),
            command,
            patch,
            diff: self.diff.map(Text::from),
            plan_file: None,
            covers: format!("{}, for this session", self.covers).into(),
            keys: vec![Key { what: self.key.into(), risk }],
            rule,
        }
    }
}
