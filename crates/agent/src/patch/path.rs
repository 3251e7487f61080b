//! The names a patch uses for files: which are usable, how they are shown, where they lead.
//!
//! Nothing is expanded or decoded: `~`, `$HOME` and `%2e` are names. What is found out here is for
//! refusing and for people; writing goes by directory handle alone (`root.rs`).

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use polyloop_session::shown::is_deceptive;

use super::{NAME_BYTES_MAX, PATH_BYTES_MAX, PATH_DEPTH_MAX};

/// Paths that a sentence names before it only counts.
const PATHS_NAMED_MAX: usize = 8;

/// Links followed before a path is taken as it is: a circle must end.
const LINKS_MAX: usize = 40;

/// Why a name cannot be that of a file, if it cannot.
pub(crate) fn check(path: &str) -> Result<(), String> {
    if path.is_empty() {
        return Err("it is empty".to_owned());
    }
    if path.len() > PATH_BYTES_MAX {
        return Err(format!("it has {} bytes, the limit is {PATH_BYTES_MAX}", path.len()));
    }
    if let Some(control) = path.chars().find(|c| c.is_control()) {
        return Err(format!("it holds the control character {}", control.escape_default()));
    }
    let names: Vec<&str> = path.split('/').collect();
    if names.len() > PATH_DEPTH_MAX {
        return Err(format!("it is {} names deep, the limit is {PATH_DEPTH_MAX}", names.len()));
    }
    if let Some(name) = names.iter().find(|name| name.len() > NAME_BYTES_MAX) {
        let bytes = name.len();
        return Err(format!("one name in it has {bytes} bytes, the limit is {NAME_BYTES_MAX}"));
    }
    match names.last() {
        None | Some(&"") => Err("it ends with a slash, so it names a directory".to_owned()),
        Some(&"." | &"..") => Err("it names a directory".to_owned()),
        Some(_) => Ok(()),
    }
}

/// The path as a person should see it: what is invisible or controls the terminal is escaped.
pub fn shown(path: &str) -> String {
    let mut shown = String::with_capacity(path.len());
    for c in path.chars() {
        if is_deceptive(c) || matches!(c, '\n' | '\t') {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Several of them in a sentence.
pub(crate) fn list<P: AsRef<str>>(paths: &[P]) -> String {
    let named: Vec<String> =
        paths.iter().take(PATHS_NAMED_MAX).map(|path| shown(path.as_ref())).collect();
    match paths.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Removes `.` and `..` by their text alone.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                normal.push(component);
            }
        }
    }
    normal
}

/// Where an absolute path leads when its links are followed, also when its end does not exist.
pub(crate) fn real(path: &Path) -> PathBuf {
    let mut done = PathBuf::from("/");
    let mut todo = names_reversed(path);
    let mut links = 0;
    while let Some(name) = todo.pop() {
        if name == ".." {
            done.pop();
            continue;
        }
        done.push(&name);
        match fs::read_link(&done) {
            Ok(target) if links < LINKS_MAX => {
                links += 1;
                done.pop();
                if target.is_absolute() {
                    done = PathBuf::from("/");
                }
                todo.extend(names_reversed(&target));
            }
            // Not a link, not there, or a circle.
            Ok(_) | Err(_) => {}
        }
    }
    done
}

fn names_reversed(path: &Path) -> Vec<OsString> {
    let mut names: Vec<OsString> = path
        .components()
        .filter(|component| matches!(component, Component::Normal(_) | Component::ParentDir))
        .map(|component| component.as_os_str().to_owned())
        .collect();
    names.reverse();
    names
}

/// The directory of a relative path (empty for the root itself) and the name in it.
pub(crate) fn split(relative: &str) -> (&str, &str) {
    relative.rsplit_once('/').unwrap_or(("", relative))
}
