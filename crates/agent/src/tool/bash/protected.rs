//! Protected paths and the shell: which ones the sandbox holds whatever a command does, and which
//! a script names that it does not hold.
//!
//! The sandbox protects paths, not names. A script that plainly names another protected path is
//! asked about instead of being run in the sandbox; one that hides the name is not found here.

use std::path::Path;

use polyloop_sandbox::{IfMissing, ReadOnly};

use super::touched::BETWEEN;
use crate::patch::{is_protected, path};

/// Directories and files of the working directory that cannot be made in the sandbox either.
const DIRECTORIES: [&str; 5] = [".git", ".vscode", ".idea", ".polyloop", ".loom"];
const FILES: [&str; 4] = [".env", ".envrc", "AGENTS.md", "SOUL.md"];

/// What a command in the sandbox cannot change. Blocks while it lists the directory.
pub(super) fn held(cwd: &Path) -> Vec<ReadOnly> {
    let read_only = |name: &str, if_missing| ReadOnly { path: cwd.join(name), if_missing };
    let entries = std::fs::read_dir(cwd).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let there = names.filter(|name| is_protected(name));
    let mut held: Vec<ReadOnly> = there.map(|name| read_only(&name, IfMissing::Ignore)).collect();
    held.extend(DIRECTORIES.map(|name| read_only(name, IfMissing::HoldDirectory)));
    held.extend(FILES.map(|name| read_only(name, IfMissing::HoldFile)));
    held
}

/// The first protected path below `cwd` that a script names and that may be made in the sandbox.
pub(super) fn named(script: &str, directory: &Path, cwd: &Path) -> Option<String> {
    find(script, directory, cwd, |relative| !is_held(relative, cwd))
}

/// Whether a script names any protected path below `cwd`.
pub(crate) fn names_protected(script: &str, directory: &Path, cwd: &Path) -> bool {
    find(script, directory, cwd, |_| true).is_some()
}

fn find(
    script: &str,
    directory: &Path,
    cwd: &Path,
    counts: impl Fn(&str) -> bool,
) -> Option<String> {
    // However it is quoted, it is the same name.
    let plain: String = script.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    // A home directory is no part of the working directory.
    let words = plain.split(BETWEEN).filter(|word| !word.is_empty() && !word.starts_with('~'));
    let below = words.filter_map(|word| {
        let absolute = path::normal(&directory.join(word));
        absolute.strip_prefix(cwd).ok()?.to_str().map(str::to_owned)
    });
    { below }.find(|relative| is_protected(relative) && counts(relative))
}

/// Whether the sandbox keeps it as it is: by a list, or because it is there.
fn is_held(relative: &str, cwd: &Path) -> bool {
    let first = relative.split('/').next().unwrap_or_default();
    let is_listed = DIRECTORIES.contains(&first) || FILES.contains(&first);
    is_listed || (is_protected(first) && cwd.join(first).symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_names_and_the_sandbox_does_not_hold() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().canonicalize().unwrap();
        std::fs::create_dir(cwd.join("sub")).unwrap();
        std::fs::write(cwd.join(".zshrc"), "").unwrap();
        let named = |script: &str| named(script, &cwd, &cwd);
        for script in [
            "echo x > .bashrc",
            "echo x >.bashrc",
            "tee ./.mcp.json",
            "cp a '.ripgreprc'",
            "printf x > .bash\"rc\"",
            "git init sub/x; echo y >> sub/.git/config",
            "touch .env.local",
            "mkdir .GIT",
            "python3 -c 'open(\".gitmodules\",\"w\")'",
        ] {
            assert!(named(script).is_some(), "{script}");
        }
        for script in [
            "make",
            "echo x > .git/hooks/y",
            "echo x > .env",
            "find . -path ./.git -prune -o -print",
            "cat ~/.bashrc > /tmp/x",
            "echo x >> .zshrc",
        ] {
            assert_eq!(named(script), None, "{script}");
        }
        let sub = super::named("echo x > .git", &cwd.join("sub"), &cwd);
        assert_eq!(sub.as_deref(), Some("sub/.git"));
    }
}
