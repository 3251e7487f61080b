//! Looks at the file system for one judgement, and no more than it may.
//!
//! Reads names and links, never what is in a file. Everything it looks up is counted: a judgement
//! that needs too much of it ends with a question.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::expand::{Arg, Found, Kind};
use super::filter::Entry;
use super::path::{Want, check, real};
use super::repository::{self, Looks};
use super::secrets::{is_secret, secret_name};
use super::show::brief;
use super::walk::Names;
use super::{Scope, WORDS_MAX};
use crate::patch::path::normal;

/// Paths that are resolved for one judgement.
const PATHS_MAX: usize = 400;

/// Names that are read from directories for one judgement.
const NAMES_MAX: usize = 12_000;

/// Places from which git repositories are looked at for one judgement.
const REPOSITORIES_MAX: usize = 4;

/// What one word costs beside its text, and what all words may cost.
const WORD_BYTES: usize = 16;
const BYTES_MAX: usize = 1024 * 1024;

pub(super) struct Look<'a> {
    pub(super) scope: &'a Scope,
    bytes: Cell<usize>,
    paths: Cell<usize>,
    names: Cell<usize>,
    programs: RefCell<HashMap<String, Result<(), String>>>,
    checked: RefCell<HashMap<(PathBuf, String), Want>>,
    listed: RefCell<HashMap<PathBuf, Rc<Vec<String>>>>,
    trees: RefCell<HashMap<PathBuf, Rc<Tree>>>,
    repositories: RefCell<HashMap<(PathBuf, Looks), Result<(), String>>>,
}

/// What there is below a directory.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// A link that leads out of the working directory.
    pub(super) leads_out: Option<String>,
    /// What nobody may hand on unseen: links that lead out, things that are no files, and names
    /// that some programs take apart or for an option, with all that is below them.
    odd: Vec<Odd>,
    /// What has a name that people use for secrets, is below one, or is a link to one.
    secrets: Vec<(String, Entry)>,
}

#[derive(Clone, Debug)]
struct Odd {
    name: String,
    entry: Entry,
    /// For people.
    shown: String,
}

impl<'a> Look<'a> {
    pub(super) fn new(scope: &'a Scope) -> Look<'a> {
        Look {
            scope,
            bytes: Cell::new(0),
            paths: Cell::new(0),
            names: Cell::new(0),
            programs: RefCell::default(),
            checked: RefCell::default(),
            listed: RefCell::default(),
            trees: RefCell::default(),
            repositories: RefCell::default(),
        }
    }

    fn count(counter: &Cell<usize>, more: usize, limit: usize) -> Result<(), String> {
        counter.set(counter.get() + more);
        match counter.get() <= limit {
            true => Ok(()),
            false => Err("it names more files than are looked up".to_owned()),
        }
    }

    /// Names that are looked up beside those that are read.
    pub(super) fn count_names(&self, names: usize) -> Result<(), String> {
        Self::count(&self.names, names, NAMES_MAX)
    }

    /// Every command, also each time in a loop, costs what is in its words.
    pub(super) fn count_words(&self, words: &[Arg]) -> Result<(), String> {
        if words.len() > WORDS_MAX {
            return Err(format!("a command has more than {WORDS_MAX} words, too many to look up"));
        }
        let bytes: usize = words.iter().map(|word| word.text.len() + WORD_BYTES).sum();
        self.bytes.set(self.bytes.get() + bytes);
        match self.bytes.get() <= BYTES_MAX {
            true => Ok(()),
            false => Err("its commands have more words than are looked into".to_owned()),
        }
    }

    /// Whether a path may be looked at without asking.
    pub(super) fn path(&self, cwd: &Path, operand: &str, want: Want) -> Result<(), String> {
        let key = (cwd.to_owned(), operand.to_owned());
        if self.checked.borrow().get(&key) == Some(&want) {
            return Ok(());
        }
        Self::count(&self.paths, 1, PATHS_MAX)?;
        check(operand, cwd, want, self.scope)?;
        if want == Want::Tree {
            self.check_below(&cwd.join(operand))?;
        }
        self.checked.borrow_mut().insert(key, want);
        Ok(())
    }

    /// Whether anything below a directory is closed, where anything is closed at all.
    fn check_below(&self, root: &Path) -> Result<(), String> {
        let Some(closed) = &self.scope.closed else { return Ok(()) };
        let mut open = vec![normal(root)];
        while let Some(directory) = open.pop() {
            let Ok(entries) = directory.read_dir() else { continue };
            for found in entries.flatten() {
                Self::count(&self.names, 1, NAMES_MAX)?;
                let path = found.path();
                let kind = found.file_type().ok();
                let is_link = kind.is_some_and(|kind| kind.is_symlink());
                let leads = is_link.then(|| path.canonicalize().ok()).flatten();
                if closed(&path) || leads.is_some_and(|real| closed(&real)) {
                    return Err(format!("`{}` is closed by a rule", self.shown(&path)));
                }
                if kind.is_some_and(|kind| kind.is_dir()) {
                    open.push(path);
                }
            }
        }
        Ok(())
    }

    /// Where a directory inside the working directory really is; an error if it is elsewhere, or
    /// if a link leads there.
    pub(super) fn directory(&self, cwd: &Path, operand: &str) -> Result<PathBuf, String> {
        self.path(cwd, operand, Want::Content)?;
        let plain = normal(&cwd.join(operand));
        let real = real(&plain).map_err(|error| format!("`{}`: {error}", brief(operand)))?;
        match real == plain && real.starts_with(&self.scope.cwd) {
            true => Ok(real),
            false => Err(format!("`{}` is a link, or leads elsewhere", brief(operand))),
        }
    }

    /// The names in a directory that may be read; none if it is not there.
    pub(super) fn names(&self, cwd: &Path, directory: &str) -> Result<Rc<Vec<String>>, String> {
        let operand = if directory.is_empty() { "." } else { directory };
        if !cwd.join(operand).is_dir() {
            return Ok(Rc::default());
        }
        self.path(cwd, operand, Want::Content)?;
        let directory = cwd.join(operand);
        if let Some(names) = self.listed.borrow().get(&directory) {
            return Ok(names.clone());
        }
        let mut names = Vec::new();
        let Ok(entries) = directory.read_dir() else { return Ok(Rc::default()) };
        for entry in entries.flatten() {
            Self::count(&self.names, 1, NAMES_MAX)?;
            let name = entry.file_name().into_string();
            names.push(name.map_err(|name| {
                format!("the name `{}` is no text", brief(&name.to_string_lossy()))
            })?);
        }
        let names = Rc::new(names);
        self.listed.borrow_mut().insert(directory, names.clone());
        Ok(names)
    }

    /// Whether git may read here.
    pub(super) fn repository(&self, cwd: &Path, looks: Looks) -> Result<(), String> {
        let key = (cwd.to_owned(), looks);
        if let Some(known) = self.repositories.borrow().get(&key) {
            return known.clone();
        }
        if self.repositories.borrow().len() >= REPOSITORIES_MAX {
            return Err("it looks at git repositories from too many places".to_owned());
        }
        let checked = repository::check(cwd, looks, self.scope);
        self.repositories.borrow_mut().insert(key, checked.clone());
        checked
    }

    /// What is below a path.
    pub(super) fn tree(&self, cwd: &Path, operand: &str) -> Result<Rc<Tree>, String> {
        self.path(cwd, operand, Want::Tree)?;
        let root = cwd.join(operand);
        if let Some(tree) = self.trees.borrow().get(&root) {
            return Ok(tree.clone());
        }
        let tree = Rc::new(self.walk_tree(&root)?);
        self.trees.borrow_mut().insert(root, tree.clone());
        Ok(tree)
    }

    fn walk_tree(&self, root: &Path) -> Result<Tree, String> {
        let mut tree = Tree::default();
        let mut open = vec![(root.to_owned(), false, false)];
        while let Some((directory, below_odd, below_secret)) = open.pop() {
            let Ok(entries) = directory.read_dir() else { continue };
            for found in entries.flatten() {
                Self::count(&self.names, 1, NAMES_MAX)?;
                let path = found.path();
                let Ok(kind) = found.file_type() else { continue };
                let name = found.file_name().to_string_lossy().into_owned();
                let mut odd = below_odd || is_odd(&name);
                let mut secret = below_secret || is_secret(&name);
                let entry = if kind.is_dir() {
                    open.push((path.clone(), odd, secret));
                    Entry::Directory
                } else if kind.is_symlink() {
                    Self::count(&self.paths, 1, PATHS_MAX)?;
                    let real = path.canonicalize().ok();
                    match real.as_ref().and_then(|real| real.strip_prefix(&self.scope.cwd).ok()) {
                        Some(inside) => secret |= secret_name(inside).is_some(),
                        None => {
                            tree.leads_out = Some(self.shown(&path));
                            odd = true;
                        }
                    }
                    Entry::Link
                } else if kind.is_file() {
                    Entry::File
                } else {
                    odd = true;
                    Entry::Other
                };
                if secret {
                    tree.secrets.push((name.clone(), entry));
                }
                if odd {
                    tree.odd.push(Odd { name, entry, shown: self.shown(&path) });
                }
            }
        }
        Ok(tree)
    }

    fn shown(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.scope.cwd).unwrap_or(path);
        brief(&path.display().to_string())
    }

    /// What can be said of names that were printed, if nothing can be said against them.
    pub(super) fn found(&self, cwd: &Path, names: &Names) -> Result<Rc<Found>, String> {
        if names.cwd != cwd {
            return Err("names of files in another directory".to_owned());
        }
        let mut secrets = Vec::new();
        for root in &names.roots {
            let operand = match root.kind {
                Kind::Literal | Kind::Matched => root.text.as_str(),
                Kind::Unknown | Kind::AnyWords | Kind::Pipe | Kind::Found(_) => {
                    return Err("where names come from is not known".to_owned());
                }
            };
            if operand.split('/').any(is_odd) {
                return Err(format!("`{}` is among the names", brief(operand)));
            }
            let tree = self.tree(cwd, operand)?;
            let taken = |odd: &&Odd| names.filter.may_take(&odd.name, odd.entry);
            if let Some(odd) = tree.odd.iter().find(taken) {
                return Err(format!("`{}` is among the names", odd.shown));
            }
            secrets.extend(tree.secrets.iter().cloned());
        }
        let taken = |(name, entry): &(String, Entry)| names.filter.may_take(name, *entry);
        let secret = secrets.into_iter().find(taken).map(|(name, _)| name);
        Ok(Rc::new(Found { cwd: cwd.to_owned(), secret }))
    }

    /// What is found out about a program, once for each name.
    pub(super) fn program(
        &self,
        name: &str,
        find: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        if let Some(known) = self.programs.borrow().get(name) {
            return known.clone();
        }
        let found = find();
        self.programs.borrow_mut().insert(name.to_owned(), found.clone());
        found
    }
}

/// Whether some program takes a name apart, or for an option.
fn is_odd(name: &str) -> bool {
    let split = |c: char| c.is_whitespace() || c.is_control() || "'\"\\*?[\u{fffd}".contains(c);
    name.contains(split) || name.starts_with(['-', '(', ')', '!', ','])
}
