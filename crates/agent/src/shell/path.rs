//! Where the words of a command lead when they are taken as paths.
//!
//! Reads names and links only, never a file's content.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::Scope;
use super::secrets::secret_name;
use super::show::brief;
use crate::patch::path::normal;

/// Files that are no files: reading them shows the machine, or waits for ever.
const SYSTEM_ROOTS: &[&str] = &["/proc", "/sys", "/dev", "/run"];

/// Files outside the working directory that say nothing but what machine this is.
const PUBLIC_FILES: &[&str] = &[
    "/dev/null",
    "/etc/alpine-release",
    "/etc/debian_version",
    "/etc/fedora-release",
    "/etc/lsb-release",
    "/etc/os-release",
    "/etc/redhat-release",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/uptime",
    "/proc/version",
    "/usr/lib/os-release",
];

/// Directories of which every file came with the system, and is meant to be read.
const PUBLIC_TREES: &[&str] = &["/usr/include", "/usr/share/doc"];

/// Directories of which the names may be shown, but not what is in the files.
const LISTED_TREES: &[&str] = &["/bin", "/lib", "/lib64", "/sbin", "/usr"];

/// A path with more names is not resolved.
const COMPONENTS_MAX: usize = 64;

/// What is shown of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Content,
    /// The content of everything below it, too.
    Tree,
    /// That it is there, and what kind of thing it is.
    Name,
}

/// Whether looking at this path, from `cwd`, shows nothing but ordinary files of the working
/// directory, or what everybody may know; the error says, for people, why it may not.
pub(super) fn check(operand: &str, cwd: &Path, want: Want, scope: &Scope) -> Result<(), String> {
    let shown = brief(operand);
    let root = &scope.cwd;
    if operand.is_empty() {
        return Err("an empty word is no path".to_owned());
    }
    if root.parent().is_none() || !root.is_dir() {
        return Err("the working directory is the whole system, or is not there".to_owned());
    }
    let unclear = |error| format!("`{shown}` cannot be resolved: {error}");
    let path = cwd.join(operand);
    if path.components().count() > COMPONENTS_MAX {
        return Err(format!("`{shown}` has more than {COMPONENTS_MAX} parts"));
    }
    let real = real(&path).map_err(unclear)?;
    let inside = path.strip_prefix(root).ok().filter(|path| depth(path).is_some());
    let Some(named) = inside else {
        return match is_public(&real, want) {
            true => Ok(()),
            false => Err(format!("`{shown}` is outside the working directory")),
        };
    };
    let Ok(inside) = real.strip_prefix(root) else {
        return Err(format!("`{shown}` is really {}", brief(&real.display().to_string())));
    };
    if let Some(name) = secret_name(named).or_else(|| secret_name(inside)) {
        return Err(format!("`{}` may hold secrets", brief(&name)));
    }
    if scope.private().iter().any(|private| real.starts_with(private))
        || SYSTEM_ROOTS.iter().any(|system| real.starts_with(system))
    {
        return Err(format!("`{shown}` is not a file of the project"));
    }
    if scope.closed.as_ref().is_some_and(|closed| closed(&normal(&path)) || closed(&real)) {
        return Err(format!("`{shown}` is closed by a rule"));
    }
    if want == Want::Tree && scope.private().iter().any(|private| private.starts_with(&real)) {
        return Err(format!("the server's own files are below `{shown}`"));
    }
    match real.metadata() {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            Err(format!("`{shown}` is neither a file nor a directory"))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(unclear(error)),
    }
}

/// Whether what is outside is for everybody, once links are followed.
fn is_public(real: &Path, want: Want) -> bool {
    let below = |trees: &[&str]| trees.iter().any(|tree| real.starts_with(tree));
    let file = PUBLIC_FILES.iter().any(|file| real == Path::new(file));
    match want {
        Want::Content => file || below(PUBLIC_TREES),
        Want::Tree => below(PUBLIC_TREES),
        Want::Name => file || below(LISTED_TREES) || real.parent().is_none(),
    }
}

/// Where a path leads, also when its last names do not exist; an error when that is not certain.
pub(super) fn real(path: &Path) -> std::io::Result<PathBuf> {
    let error = match path.canonicalize() {
        Ok(real) => return Ok(real),
        Err(error) => error,
    };
    if error.kind() != ErrorKind::NotFound {
        return Err(error);
    }
    let mut there = PathBuf::new();
    let mut rest = path.components();
    for component in path.components() {
        // A dangling link is there, and leads nobody knows where: resolving it fails below.
        if there.join(component).symlink_metadata().is_err() {
            break;
        }
        there.push(component);
        rest.next();
    }
    if rest.clone().any(|component| !matches!(component, Component::Normal(_))) {
        return Err(error);
    }
    Ok(there.canonicalize()?.join(rest.as_path()))
}

/// How far below its start a relative path ends by its text; none if it ever leaves it.
fn depth(path: &Path) -> Option<usize> {
    path.components().try_fold(0usize, |depth, component| match component {
        Component::CurDir => Some(depth),
        Component::Normal(_) => Some(depth + 1),
        Component::ParentDir => depth.checked_sub(1),
        Component::RootDir | Component::Prefix(_) => None,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Below the working directory or a temporary directory, links followed.
    Inside,
    /// One of these directories itself.
    Top,
    /// Anywhere else, or unclear.
    Outside,
}

/// Where a word leads if it is a path. A word that bash would expand is unclear.
pub(super) fn reach(word: &str, scope: &Scope) -> Reach {
    let deep = Path::new(word).components().count() > COMPONENTS_MAX;
    if word.contains(['$', '`', '\0', '{']) || word.starts_with('~') || deep {
        return Reach::Outside;
    }
    let root = &scope.cwd;
    let (fixed, pattern) = before_pattern(word);
    let Ok(real) = real(&root.join(fixed)) else { return Reach::Outside };
    let tops = || scope.temporary().iter().chain(root.parent().is_some().then_some(root));
    let climbs = pattern.is_some_and(|pattern| pattern.contains(".."));
    if climbs || !tops().any(|top| real.starts_with(top)) {
        Reach::Outside
    } else if pattern.is_none() && tops().any(|top| real == *top) {
        Reach::Top
    } else {
        Reach::Inside
    }
}

/// The directory that is certain, and what is left of a word with a pattern in it.
fn before_pattern(word: &str) -> (&str, Option<&str>) {
    let Some(at) = word.find(['*', '?', '[']) else { return (word, None) };
    let (before, _) = word.split_at(at);
    let (fixed, pattern) = word.split_at(before.rfind('/').map_or(0, |slash| slash + 1));
    (fixed, Some(pattern))
}
