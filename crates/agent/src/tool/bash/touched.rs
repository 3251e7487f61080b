//! Which files a script changed, where that can be known: those that its own words name.
//!
//! Looks at the named paths before and after, and at nothing else: a script that finds its files
//! by itself is not followed. Only regular files inside the session's directory are told of.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use polyloop_session::item::{FileChange, Operation};

/// Paths that are looked at.
const PATHS_MAX: usize = 64;

/// What separates words, whatever the grammar.
pub(super) const BETWEEN: &[char] =
    &[' ', '\t', '\n', ';', '&', '|', '(', ')', '<', '>', '=', '\'', '"', '`', '{', '}', ','];

/// The named files as they were before the script ran.
pub(super) struct Touched {
    root: PathBuf,
    before: Vec<(PathBuf, Option<Look>)>,
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Look {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Touched {
    /// Blocks while it looks. `root` is the session's directory, `cwd` where the script runs.
    pub(super) fn before(script: &str, cwd: &Path, root: &Path) -> Touched {
        let words = script.split(BETWEEN).filter(|word| is_path(word));
        let paths: BTreeSet<PathBuf> = words
            .filter_map(|word| plain(&cwd.join(word)))
            .filter(|p| p.starts_with(root))
            .collect();
        let before =
            paths.into_iter().take(PATHS_MAX).map(|path| (path.clone(), look(&path))).collect();
        Touched { root: root.to_path_buf(), before }
    }

    /// Blocks while it looks again.
    pub(super) fn changes(&self) -> Vec<FileChange> {
        let changes = self.before.iter().filter_map(|(path, before)| {
            let operation = match (before, look(path)) {
                (None, Some(_)) => Operation::Create,
                (Some(_), None) => Operation::Delete,
                (Some(before), Some(after)) if *before != after => Operation::Update,
                (Some(_), Some(_)) | (None, None) => return None,
            };
            let path = path.strip_prefix(&self.root).unwrap_or(path).display().to_string();
            Some(FileChange { path: path.into(), operation, ..FileChange::default() })
        });
        changes.collect()
    }
}

fn is_path(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with('-')
        && !word.contains(['$', '*', '?', '[', '~', '\\', '#', '!', '\0'])
}

/// The path without `.` and `..`; links are not followed, since one of them may be what changes.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            other => plain.push(other),
        }
    }
    Some(plain)
}

fn look(path: &Path) -> Option<Look> {
    let meta = path.symlink_metadata().ok().filter(|meta| meta.is_file())?;
    Some(Look { inode: meta.ino(), bytes: meta.len(), changed: (meta.mtime(), meta.mtime_nsec()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_names_is_told_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
        for name in ["old", "gone", "same", "elsewhere"] {
            write(name, "1");
        }
        std::fs::create_dir(root.join("sub")).unwrap();
        let script = "rm ./gone; echo x>new && cat same 'old' | tee sub/../sub/deep $HOME/y /etc/x";
        let touched = Touched::before(script, &root, &root);
        std::fs::remove_file(root.join("gone")).unwrap();
        for (name, text) in [("old", "22"), ("new", "x"), ("sub/deep", "x"), ("elsewhere", "22")] {
            write(name, text);
        }
        let told: Vec<String> = touched
            .changes()
            .iter()
            .map(|change| format!("{:?} {}", change.operation, change.path))
            .collect();
        assert_eq!(told, ["Delete gone", "Create new", "Update old", "Create sub/deep"]);
    }
}
