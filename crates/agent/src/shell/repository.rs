//! Whether git, asked to read, would run something that a repository tells it to.
//!
//! The configuration inside of a repository can name programs: for watching files, comparing,
//! filtering, checking signatures, fetching what is missing. So every key in it must be known to
//! name none. Reads files of the repository, a bounded part of them; never runs git.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::Scope;
use super::show::brief;

mod config;
mod index;

/// No configuration that people write is longer.
const CONFIG_BYTES_MAX: u64 = 256 * 1024;

/// A longer index is not read: that of a hundred thousand files is shorter.
const INDEX_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a command looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Looks {
    /// What was committed.
    History,
    /// The files, too, and so the repositories inside of this one.
    Files,
}

/// Whether git may read here, from `cwd`, without asking; the error says why not, for people.
pub(super) fn check(cwd: &Path, looks: Looks, scope: &Scope) -> Result<(), String> {
    let top = cwd
        .ancestors()
        .take_while(|dir| dir.starts_with(&scope.cwd))
        .find(|dir| dir.join(".git").symlink_metadata().is_ok() || is_bare(dir))
        .ok_or("there is no git repository in the working directory")?;
    let git = top.join(".git");
    let Ok(found) = git.symlink_metadata() else {
        return Err(format!("`{}` is a bare repository", brief(&top.display().to_string())));
    };
    let (git, common) = match found.file_type() {
        // Its configuration would be somewhere else.
        kind if kind.is_dir() && git.join("commondir").symlink_metadata().is_ok() => {
            return Err("`.git` leads elsewhere".to_owned());
        }
        kind if kind.is_dir() => (git.clone(), git),
        kind if kind.is_file() => worktree(&git)?,
        _ => return Err("`.git` is a link".to_owned()),
    };
    let mine = rustix::process::geteuid().as_raw();
    for path in [top, &git, &common] {
        if path.metadata().map_or(true, |meta| meta.uid() != mine) {
            return Err("the git repository belongs to another user".to_owned());
        }
    }
    let kind = |path: PathBuf| path.symlink_metadata().map(|meta| meta.file_type());
    let whole = kind(git.join("HEAD")).is_ok_and(|kind| kind.is_file())
        && kind(common.join("objects")).is_ok_and(|kind| kind.is_dir())
        && kind(common.join("refs")).is_ok_and(|kind| kind.is_dir());
    if !whole {
        return Err("`.git` is not what git makes".to_owned());
    }
    for name in ["alternates", "http-alternates"] {
        if kind(common.join("objects/info").join(name)).is_ok() {
            return Err("the git repository takes objects from another one".to_owned());
        }
    }
    let mut hash = config::Hash::Sha1;
    config::check(&read(&common.join("config"), CONFIG_BYTES_MAX)?, &mut hash)?;
    if kind(git.join("config.worktree")).is_ok() {
        config::check(&read(&git.join("config.worktree"), CONFIG_BYTES_MAX)?, &mut hash)?;
    }
    let index = git.join("index");
    if looks == Looks::Files && kind(index.clone()).is_ok() {
        let repositories = index::repositories(&read(&index, INDEX_BYTES_MAX)?, hash);
        let repositories = repositories.ok_or("the index of git is not understood")?;
        let there = |path: &&PathBuf| top.join(path).join(".git").symlink_metadata().is_ok();
        if let Some(path) = repositories.iter().find(there) {
            let shown = brief(&path.display().to_string());
            return Err(format!("git looks into the repository `{shown}`, too"));
        }
    }
    Ok(())
}

/// Git takes a directory that looks like this for a repository, with what its configuration says.
fn is_bare(dir: &Path) -> bool {
    dir.join("HEAD").symlink_metadata().is_ok()
        && (dir.join("objects").exists()
            || dir.join("refs").exists()
            || dir.join("config").exists())
}

/// Where a further working tree of a repository keeps its own files, and where the repository is.
fn worktree(file: &Path) -> Result<(PathBuf, PathBuf), String> {
    let odd = || "`.git` leads elsewhere".to_owned();
    let line = |path: &Path| {
        let text = String::from_utf8(read(path, CONFIG_BYTES_MAX)?).map_err(|_| odd())?;
        Ok::<String, String>(text.trim_end_matches('\n').to_owned())
    };
    let git = line(file)?;
    let git = PathBuf::from(git.strip_prefix("gitdir: ").ok_or_else(odd)?);
    let common = git.parent().and_then(Path::parent).ok_or_else(odd)?;
    let is_worktree = git.is_absolute()
        && git.canonicalize().is_ok_and(|real| real == git)
        && git.parent().is_some_and(|dir| dir.ends_with(".git/worktrees"))
        && line(&git.join("commondir"))? == "../.."
        && Path::new(&line(&git.join("gitdir"))?) == file;
    match is_worktree {
        true => Ok((git.clone(), common.to_owned())),
        false => Err(odd()),
    }
}

/// The content of a regular file, no link, not longer than that.
fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let shown = || brief(&path.display().to_string());
    let plain = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
    if !plain {
        return Err(format!("`{}` is no file", shown()));
    }
    let mut content = Vec::new();
    let file = File::open(path).map_err(|error| format!("`{}`: {error}", shown()))?;
    file.take(bytes_max + 1)
        .read_to_end(&mut content)
        .map_err(|error| format!("`{}`: {error}", shown()))?;
    match u64::try_from(content.len()) {
        Ok(bytes) if bytes <= bytes_max => Ok(content),
        _ => Err(format!("`{}` is longer than {bytes_max} bytes", shown())),
    }
}
