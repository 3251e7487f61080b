//! What is checked out in the folder, read from the files of its repository: asking git could run
//! what the repository's configuration names.
//!
//! Those files are written by whoever made the folder, and what they say goes into the prompt. So
//! no link is followed, nothing is waited for, files of other users do not count, and only a short
//! plain name is passed on.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

use super::Looks;
use crate::patch::Root;
use crate::patch::path::{normal, split};
use crate::patch::root::look;
use crate::tool::Place;
use crate::tool::bash::is_forbidden;

/// Of a file that is read; the rest of it does not count.
const FILE_BYTES_MAX: u64 = 4 * 1024;
/// A longer name is not passed on.
const NAME_CHARS_MAX: usize = 100;
/// Of the name of a commit; enough to find it.
const COMMIT_CHARS: usize = 12;

/// In words; nothing if the folder is in no work tree of Git.
pub(super) fn checked_out(place: &Place, looks: &mut Looks) -> Option<String> {
    // Most folders have none: a look at each name is all they cost.
    let mut named = place.cwd.ancestors().map(|dir| dir.join(".git"));
    let git = named.find(|git| {
        let none = git.symlink_metadata().is_err();
        // Of the folder itself it is known what is in it.
        if none && git.parent() != Some(&*place.cwd) {
            looks.saw_nothing(git.clone());
        }
        !none
    })?;
    let head = head_of(git, place, looks);
    if head.is_none() {
        looks.cannot_tell();
    }
    in_words(head?.trim())
}

/// What the repository says is checked out.
fn head_of(git: PathBuf, place: &Place, looks: &mut Looks) -> Option<String> {
    let top = Top { root: Root::open(Path::new("/")).ok()?, place };
    // As git goes: what is found first counts, usable or not.
    let git = match FileType::from_raw_mode(top.look(&git)?.st_mode) {
        FileType::Directory => git,
        FileType::RegularFile => {
            looks.cannot_tell();
            top.named_by(&git)?
        }
        _ => return None,
    };
    top.look(&git).filter(is_own)?;
    let head = git.join("HEAD");
    looks.saw(&head);
    top.text(&head)
}

/// Everything, seen through no link.
struct Top<'a> {
    root: Root,
    place: &'a Place,
}

impl Top<'_> {
    fn look(&self, path: &Path) -> Option<Stat> {
        let (parent, name) = split(relative(path)?);
        look(self.root.directory(parent).ok()?, name).ok()
    }

    /// The beginning of a regular file of the server's own user.
    fn text(&self, path: &Path) -> Option<String> {
        let place = self.place;
        if is_forbidden(path, place) || place.rules.closes(path, &place.cwd) {
            return None;
        }
        let (file, stat) = self.root.open_file(relative(path)?).ok()??;
        if !is_own(&stat) {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        String::from_utf8(bytes).ok()
    }

    /// The directory that a `.git` file names: one beside it or below, or, for a further work tree
    /// of another repository, one that names this file in return.
    fn named_by(&self, file: &Path) -> Option<PathBuf> {
        let above = file.parent()?;
        let text = self.text(file)?;
        let named = normal(&above.join(text.trim().strip_prefix("gitdir: ")?));
        let names_back = || {
            let back = self.text(&named.join("gitdir"));
            back.is_some_and(|back| Path::new(back.trim()) == file)
        };
        (named.starts_with(above) || names_back()).then_some(named)
    }
}

fn relative(path: &Path) -> Option<&str> {
    path.strip_prefix("/").ok()?.to_str()
}

/// What belongs to another user may say what it likes. Root could say it anyway.
fn is_own(stat: &Stat) -> bool {
    let own = rustix::process::geteuid().as_raw();
    [own, 0].contains(&stat.st_uid)
}

fn in_words(head: &str) -> Option<String> {
    if let Some(reference) = head.strip_prefix("ref: refs/") {
        let branch = reference.strip_prefix("heads/").filter(|name| is_plain(name));
        return Some(branch.map_or("git".to_owned(), |name| format!("git, on branch {name}")));
    }
    let is_commit =
        matches!(head.len(), 40 | 64) && head.bytes().all(|byte| byte.is_ascii_hexdigit());
    let commit = head.get(..COMMIT_CHARS).filter(|_| is_commit)?;
    Some(format!("git, on commit {commit}"))
}

fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(plain)
}
