//! Where the words of a command lead when they are taken as paths.
//!
//! Reads names and links only, never a file's content.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::Scope;
use super::show::brief;

/// Hidden names that hold no secrets; every other hidden name is asked about.
const HIDDEN_HARMLESS: &[&str] = &[
    ".changeset",
    ".clang-format",
    ".clang-tidy",
    ".dockerignore",
    ".editorconfig",
    ".eslintignore",
    ".eslintrc.js",
    ".eslintrc.json",
    ".flake8",
    ".gitattributes",
    ".github",
    ".gitignore",
    ".gitlab-ci.yml",
    ".gitmodules",
    ".mailmap",
    ".markdownlint.json",
    ".nvmrc",
    ".prettierignore",
    ".prettierrc",
    ".prettierrc.json",
    ".python-version",
    ".ruby-version",
    ".rustfmt.toml",
    ".tool-versions",
    ".travis.yml",
];

/// How the names of files with secrets begin, and how they end. Lower case.
const SECRET_STARTS: &[&str] =
    &["_netrc", "credential", "id_dsa", "id_ec", "id_ed", "id_rsa", "passw", "secret", "shadow"];
const SECRET_ENDS: &[&str] = &[
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".gpg",
    ".asc",
    ".ppk",
    "shadow",
    "token",
    "token.json",
    "token.txt",
    "history",
    ".ovpn",
    "tfstate",
    ".tfvars",
];

/// Files that are no files: reading them shows the machine, or waits for ever.
const SYSTEM_ROOTS: &[&str] = &["/proc", "/sys", "/dev", "/run"];

/// Whether reading this path shows nothing but an ordinary file of the working directory; the
/// error says, for people, why it may not.
pub(super) fn check_readable(operand: &str, scope: &Scope) -> Result<(), String> {
    let shown = brief(operand);
    let path = Path::new(operand);
    if path.is_absolute() || operand.is_empty() {
        return Err(format!("`{shown}` is not a path inside the working directory"));
    }
    if depth(path).is_none() {
        return Err(format!("`{shown}` leads out of the working directory"));
    }
    let unclear = |error| format!("`{shown}` cannot be resolved: {error}");
    let root = &scope.cwd;
    if root.parent().is_none() || !root.is_dir() {
        return Err("the working directory is the whole system, or is not there".to_owned());
    }
    let real = real(&root.join(path)).map_err(unclear)?;
    let Ok(inside) = real.strip_prefix(root) else {
        return Err(format!("`{shown}` is really {}", brief(&real.display().to_string())));
    };
    if let Some(name) = secret_name(path).or_else(|| secret_name(inside)) {
        return Err(format!("`{}` may hold secrets", brief(&name)));
    }
    let private = scope.private.iter().any(|private| real.starts_with(private));
    if private || SYSTEM_ROOTS.iter().any(|system| real.starts_with(system)) {
        return Err(format!("`{shown}` is not a file of the project"));
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

/// Where a path leads, also when its last names do not exist; an error when that is not certain.
fn real(path: &Path) -> std::io::Result<PathBuf> {
    let error = match path.canonicalize() {
        Ok(real) => return Ok(real),
        Err(error) => error,
    };
    // A dangling link is there, and leads nobody knows where.
    let missing = error.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err();
    match (path.parent(), path.file_name()) {
        (Some(above), Some(name)) if missing => Ok(real(above)?.join(name)),
        _ => Err(error),
    }
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

/// The first name in the path that people use for secrets.
fn secret_name(path: &Path) -> Option<String> {
    path.components().find_map(|component| {
        let Component::Normal(name) = component else { return None };
        let name = name.to_string_lossy();
        let folded = name.to_lowercase();
        let secret = (folded.starts_with('.') && !HIDDEN_HARMLESS.contains(&folded.as_str()))
            || SECRET_STARTS.iter().any(|start| folded.starts_with(start))
            || SECRET_ENDS.iter().any(|end| folded.ends_with(end));
        secret.then(|| name.into_owned())
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
    if word.contains(['$', '`', '\0', '{']) || word.starts_with('~') {
        return Reach::Outside;
    }
    let root = &scope.cwd;
    let (fixed, pattern) = before_pattern(word);
    let Ok(real) = real(&root.join(fixed)) else { return Reach::Outside };
    let tops = || scope.temporary.iter().chain(root.parent().is_some().then_some(root));
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
