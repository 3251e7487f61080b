//! Paths whose content runs, or instructs, something later: an edit there is asked about in every
//! mode.
//!
//! Judges names only, so that it also holds before the file exists. Errs on the side of asking.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use polyloop_session::shown::is_deceptive;

/// Directories and files that are protected by their whole name, wherever they are. Lower case.
const NAMES: &[&str] = &[
    // Git runs hooks and what its configuration names; `git~1` is the short name of `.git`.
    ".git",
    "git~1",
    ".gitmodules",
    ".gitconfig",
    // What agents are told.
    "agents.md",
    "soul.md",
    "claude.md",
    "gemini.md",
    ".claude",
    ".codex",
    ".cursor",
    ".cursorrules",
    ".polyloop",
    ".loom",
    ".mcp.json",
    // Editors run tasks from here.
    ".vscode",
    ".idea",
    ".ripgreprc",
    // Shells read these when they start or end.
    ".profile",
    ".login",
    ".logout",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".inputrc",
    "config.fish",
];

/// Whether an edit of this path, relative to the root, needs a person's consent in every mode.
pub fn is_protected(relative: &str) -> bool {
    relative.split(['/', '\\']).any(|name| {
        let name = folded(name);
        name.starts_with(".env") || NAMES.contains(&name.as_str())
    })
}

/// Whether some directory above the path is a Git directory under another name: the target of a
/// `gitdir:` line, or a bare repository.
pub(super) fn is_in_git_directory(root: &Path, relative: &str) -> bool {
    Path::new(relative).ancestors().skip(1).any(|above| {
        let directory = root.join(above);
        is_git_directory(|name| directory.join(OsStr::from_bytes(name)).symlink_metadata().is_ok())
    })
}

/// Whether a directory that holds these names is a Git directory, whatever it is called.
pub(crate) fn is_git_directory(holds: impl Fn(&[u8]) -> bool) -> bool {
    [&b"HEAD"[..], b"objects", b"refs"].into_iter().all(holds)
}

/// A name as the most forgiving file systems see it: without case, invisible characters, a stream
/// suffix, and dots and blanks at the end.
fn folded(name: &str) -> String {
    let visible: String = name.chars().filter(|&c| !is_deceptive(c)).collect();
    let stem = visible.split(':').next().unwrap_or_default();
    // By way of upper case, so that letters like the long s fold too.
    stem.trim_end_matches(['.', ' ', '\t']).to_uppercase().to_lowercase()
}
