//! Where paths of the log lead, all below one root and through no link.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use polyloop_session::Text;
use polyloop_session::event::Skipped;
use polyloop_session::item::{FileChange, Operation};
use polyloop_session::policy::Says;

use super::Conflicts;
use crate::patch::{Root, path};
use crate::tool::Place;
use crate::tool::bash::is_forbidden;
use crate::tool::files::{Links, Names, Target};

/// Paths of the log, by what they name.
#[derive(Default)]
pub(super) struct Wanted<'a>(BTreeSet<(&'a Text, Kind)>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    File,
    Directory,
    /// The link itself is meant, and what it leads to never.
    Link,
}

impl<'a> Wanted<'a> {
    pub(super) fn files(&mut self, files: impl Iterator<Item = &'a FileChange>) {
        for file in files {
            self.0.insert((&file.path, Kind::File));
            if let Operation::Move { from } = &file.operation {
                self.0.insert((from, Kind::File));
            }
        }
    }

    pub(super) fn links(&mut self, paths: impl Iterator<Item = &'a Text>) {
        self.0.extend(paths.map(|path| (path, Kind::Link)));
    }

    pub(super) fn directories(&mut self, paths: impl Iterator<Item = &'a Text>) {
        self.0.extend(paths.map(|path| (path, Kind::Directory)));
    }
}

pub(super) struct Resolved {
    pub(super) root: Root,
    by_path: HashMap<Text, String>,
    by_relative: HashMap<String, Text>,
    outside: bool,
}

impl Resolved {
    pub(super) fn new(place: &Place, wanted: Wanted<'_>) -> Result<Resolved, Conflicts> {
        let (mut found, mut conflicts) = (Vec::new(), Vec::new());
        for (path, kind) in wanted.0 {
            let target = match kind {
                Kind::File => find(path, place, Names::File).map(Leads::of),
                Kind::Directory => find(path, place, Names::Any).map(Leads::of),
                Kind::Link => find_link(path, place),
            };
            match target {
                Ok(leads) => found.push((path.clone(), leads)),
                Err(reason) => {
                    conflicts.push(Skipped { path: path.clone(), reason: reason.into() });
                }
            }
        }
        if !conflicts.is_empty() {
            return Err(conflicts);
        }
        let outside = found.iter().any(|(_, leads)| leads.outside);
        let root = match outside {
            true => Root::open(Path::new("/")),
            false => place.root(),
        };
        let root = root.map_err(|error| {
            let path = place.cwd.display().to_string().into();
            vec![Skipped { path, reason: error.to_string().into() }]
        })?;
        let relative = |leads: Leads| match outside {
            true => leads.real.trim_start_matches('/').to_owned(),
            false => leads.relative,
        };
        let by_path: HashMap<Text, String> =
            found.into_iter().map(|(path, leads)| (path, relative(leads))).collect();
        let by_relative =
            by_path.iter().map(|(path, relative)| (relative.clone(), path.clone())).collect();
        Ok(Resolved { root, by_path, by_relative, outside })
    }

    /// Below the root.
    pub(super) fn relative(&self, path: &Text) -> String {
        match self.by_path.get(path) {
            Some(relative) => relative.clone(),
            None => path.trim_start_matches('/').to_owned(),
        }
    }

    /// As the log has it.
    pub(super) fn shown(&self, relative: &str) -> Text {
        match self.by_relative.get(relative) {
            Some(path) => path.clone(),
            None if self.outside => format!("/{relative}").into(),
            None => relative.into(),
        }
    }
}

struct Leads {
    /// Below the working directory.
    relative: String,
    real: String,
    outside: bool,
}

impl Leads {
    fn of(target: Target) -> Leads {
        let real = target.real.to_string_lossy().into_owned();
        Leads { relative: target.relative, real, outside: target.outside }
    }
}

fn find(path: &str, place: &Place, names: Names) -> Result<Target, String> {
    let target = Target::find(path, place, names, Links::Refuse)?;
    match target.denied() {
        Some(line) => Err(denied(line)),
        None => Ok(target),
    }
}

/// Goes by the directory that it is in: no link may be on the way there.
fn find_link(path: &str, place: &Place) -> Result<Leads, String> {
    path::check(path)?;
    let (above, name) = path::split(path);
    let above = find(if above.is_empty() { "." } else { above }, place, Names::Any)?;
    let real = above.real.join(name);
    if is_forbidden(&real, place) {
        return Err("one of the server's own files".to_owned());
    }
    let rule = place.rules.of_path(&real, &place.cwd).filter(|rule| rule.says == Says::Deny);
    if let Some(rule) = rule {
        return Err(denied(&rule.line));
    }
    let relative = match above.relative.as_str() {
        "" => name.to_owned(),
        above => format!("{above}/{name}"),
    };
    let real = real.to_string_lossy().into_owned();
    Ok(Leads { relative, real, outside: above.outside })
}

fn denied(line: &str) -> String {
    format!("a rule of this server denies it: {line}")
}
