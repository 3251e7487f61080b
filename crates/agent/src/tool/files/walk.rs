//! Walks below a directory, by handles and in the order of names.
//!
//! Never follows a link, never enters the server's own files, and reads ignore files only if they
//! are regular ones. What they ignore is said, not left out: that is for the caller to decide.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{SYSTEM_DIRECTORIES, Target, Watch};
use crate::patch::{PATH_DEPTH_MAX, Root, shown};
use crate::tool::Place;

/// Names seen before a walk gives up.
const ENTRIES_MAX: usize = 1_000_000;
/// Of one ignore file; the rest does not count.
const RULES_BYTES_MAX: u64 = 1024 * 1024;
/// The later one wins.
const RULES_NAMES: [&str; 2] = [".gitignore", ".ignore"];
/// Git's own; nobody looks for a text in it.
const GIT: &str = ".git";

const READ_DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    File,
    Directory,
    Link,
    /// A pipe, a socket or a device.
    Other,
}

pub(crate) struct Entry<'a> {
    /// Below the directory where the walk began.
    pub path: &'a Path,
    pub kind: Kind,
    pub ignored: bool,
    /// 1 for what is in that directory itself.
    pub depth: usize,
    directory: &'a OwnedFd,
    name: &'a OsStr,
}

impl Entry<'_> {
    /// The regular file, if it still is one.
    pub(crate) fn open(&self) -> Option<File> {
        open_regular(self.directory, self.name)
    }

    /// Where a link says it leads.
    pub(crate) fn link_text(&self) -> Option<String> {
        let target = rustix::fs::readlinkat(self.directory, self.name, Vec::new()).ok()?;
        Some(name_of(OsStr::from_bytes(target.as_bytes())))
    }
}

/// What to do after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Go on, into it if it is a directory.
    Enter,
    /// Go on behind it.
    Pass,
    End,
}

/// A name as people and models see it; bytes that are no text are shown as such.
pub(crate) fn name_of(name: &OsStr) -> String {
    match name.to_str() {
        Some(name) => shown(name),
        None => name.as_bytes().escape_ascii().to_string(),
    }
}

pub(crate) struct Tree<'a> {
    /// Absolute, without links.
    start: PathBuf,
    target: &'a Target,
    /// Not entered and not mentioned.
    closed: Vec<PathBuf>,
    place: &'a Place,
    watch: &'a Watch,
    rules: Vec<Rules>,
    entries: usize,
}

/// The ignore files of one directory.
struct Rules {
    base: PathBuf,
    set: Gitignore,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(target: &'a Target, place: &'a Place, watch: &'a Watch) -> Tree<'a> {
        let start = target.real.clone();
        let mut closed: Vec<PathBuf> = SYSTEM_DIRECTORIES.iter().map(PathBuf::from).collect();
        for own in place.forbidden.iter() {
            closed.extend(own.canonicalize().ok());
            closed.push(own.clone());
        }
        let rules = rules_above(target, &place.cwd);
        Tree { start, target, closed, place, watch, rules, entries: 0 }
    }

    /// Calls `visit` for everything below, a directory before what is in it. The text says why the
    /// walk ended early, if it was not `visit` that ended it.
    pub(crate) fn walk(
        &mut self,
        visit: &mut dyn FnMut(&Entry<'_>) -> Order,
    ) -> Result<Option<String>, String> {
        let opened = self
            .target
            .root
            .directory(&self.target.relative)
            .and_then(|held| rustix::fs::openat(&held, ".", READ_DIRECTORY, Mode::empty()));
        let directory = opened.map_err(|errno| self.no_directory(errno))?;
        self.entries = 0;
        self.level(&directory, Path::new(""), 1, visit);
        if let Some(why) = self.watch.why_over() {
            return Ok(Some(why));
        }
        let is_full = self.entries >= ENTRIES_MAX;
        Ok(is_full.then(|| format!("(stopped after {ENTRIES_MAX} names; narrow `path`)")))
    }

    fn no_directory(&self, errno: Errno) -> String {
        let path = self.target.shown();
        match errno {
            Errno::NOENT => format!("{path}: there is no such directory"),
            Errno::NOTDIR => format!("{path}: is not a directory"),
            errno => {
                self.target.explain(self.target.root.no_directory(&self.target.relative, errno))
            }
        }
    }

    /// Whether to go on.
    fn level(
        &mut self,
        directory: &OwnedFd,
        above: &Path,
        depth: usize,
        visit: &mut dyn FnMut(&Entry<'_>) -> Order,
    ) -> bool {
        let here = self.start.join(above);
        let rules = rules_in(directory, here.clone());
        let has_rules = rules.is_some();
        self.rules.extend(rules);
        let mut goes_on = true;
        for (name, kind) in self.names(directory) {
            if self.watch.is_over() || self.entries >= ENTRIES_MAX {
                goes_on = false;
                break;
            }
            self.entries += 1;
            let absolute = here.join(&name);
            if self.is_closed(&absolute) {
                continue;
            }
            let ignored = name == GIT || self.is_ignored(&absolute, kind == Kind::Directory);
            let path = above.join(&name);
            let entry = Entry { path: &path, kind, ignored, depth, directory, name: &name };
            let enters = match visit(&entry) {
                Order::Enter => kind == Kind::Directory && depth < PATH_DEPTH_MAX,
                Order::Pass => false,
                Order::End => {
                    goes_on = false;
                    break;
                }
            };
            if enters
                && let Ok(inner) =
                    rustix::fs::openat(directory, &name, READ_DIRECTORY, Mode::empty())
                && !self.level(&inner, &path, depth + 1, visit)
            {
                goes_on = false;
                break;
            }
        }
        if has_rules {
            self.rules.pop();
        }
        goes_on
    }

    /// The server's own, or what the operator's rules keep from being read unasked.
    fn is_closed(&self, absolute: &Path) -> bool {
        let place = self.place;
        self.closed.iter().any(|closed| absolute.starts_with(closed))
            || place.rules.closes(absolute, &place.cwd)
    }

    /// In order; a directory that cannot be read has none.
    fn names(&self, directory: &OwnedFd) -> Vec<(OsString, Kind)> {
        let mut names = Vec::new();
        let Ok(entries) = Dir::read_from(directory) else { return names };
        for entry in entries {
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            if names.len() >= ENTRIES_MAX || self.watch.is_over() {
                break;
            }
            let kind = kind_of(directory, name, entry.file_type());
            names.push((OsStr::from_bytes(name.to_bytes()).to_owned(), kind));
        }
        names.sort_unstable();
        names
    }

    /// The nearest rule decides.
    fn is_ignored(&self, absolute: &Path, is_directory: bool) -> bool {
        for rules in self.rules.iter().rev() {
            let Ok(relative) = absolute.strip_prefix(&rules.base) else { continue };
            match rules.set.matched(relative, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn kind_of(directory: &OwnedFd, name: &CStr, listed: FileType) -> Kind {
    let found = match listed {
        // Some file systems do not say.
        FileType::Unknown => rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
        listed => listed,
    };
    match found {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Kind::Other,
    }
}

fn open_regular(directory: &OwnedFd, name: impl rustix::path::Arg) -> Option<File> {
    // A pipe must not keep us waiting for its other end.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?);
    file.metadata().ok()?.is_file().then_some(file)
}

/// The rules of a directory, if it has any. A line that is no rule is none.
fn rules_in(directory: &OwnedFd, base: PathBuf) -> Option<Rules> {
    let texts = RULES_NAMES.iter().filter_map(|name| rules_text(directory, name));
    rules_of(texts, base)
}

fn rules_of(texts: impl Iterator<Item = String>, base: PathBuf) -> Option<Rules> {
    let mut builder = GitignoreBuilder::new("");
    for text in texts {
        for line in text.lines() {
            let _ = builder.add_line(None, line);
        }
    }
    let set = builder.build().ok().filter(|set| !set.is_empty())?;
    Some(Rules { base, set })
}

fn rules_text(directory: &OwnedFd, name: &str) -> Option<String> {
    let mut bytes = Vec::new();
    open_regular(directory, name)?.take(RULES_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The rules of the directories above: up to the root of the Git work tree if there is one, else
/// up to the working directory. The outermost come first.
fn rules_above(target: &Target, cwd: &Path) -> Vec<Rules> {
    let Ok(top) = Root::open(Path::new("/")) else { return Vec::new() };
    let above: Vec<&Path> = target.real.ancestors().skip(1).collect();
    let has_git = |directory: &Path| directory.join(GIT).symlink_metadata().is_ok();
    let work_tree = target.real.ancestors().find(|directory| has_git(directory));
    let last = match work_tree {
        Some(directory) => directory,
        None if target.real.starts_with(cwd) => cwd,
        None => return Vec::new(),
    };
    let open = |directory: &Path| {
        let relative = directory.strip_prefix("/").ok()?.to_str()?;
        top.directory(relative).ok()
    };
    let mut rules = Vec::new();
    let exclude = open(&last.join(GIT).join("info")).and_then(|info| rules_text(&info, "exclude"));
    rules.extend(rules_of(exclude.into_iter(), last.to_owned()));
    for directory in above.into_iter().rev().filter(|directory| directory.starts_with(last)) {
        rules.extend(open(directory).and_then(|held| rules_in(&held, directory.to_owned())));
    }
    rules
}
