//! Where a command would run, where its programs are, and what is never read there without asking.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::show::brief;

/// Where a command that is judged safe finds its program first.
pub const SAFE_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Programs that people install for themselves, under names that mean nothing else.
const OFTEN_OWN: &[&str] = &["bat", "fd", "fdfind", "gawk", "git", "jq", "rg", "tree", "yq"];

const TEMPORARY: &[&str] = &["/tmp", "/var/tmp"];

/// What anybody may write to.
const OTHERS_WRITE: u32 = 0o002;

/// Says of a path whether somebody keeps it from being read unasked.
pub type Closed = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

#[derive(Clone)]
pub struct Scope {
    /// Canonical, if it exists; where it does not, no path is found to be inside.
    pub(super) cwd: PathBuf,
    pub(super) closed: Option<Closed>,
    /// As they were named. Where all these lead is found out when it matters first, since most
    /// commands are judged without.
    pub(super) named: Named,
    pub(super) private: OnceLock<Vec<PathBuf>>,
    pub(super) temporary: OnceLock<Vec<PathBuf>>,
    pub(super) own: OnceLock<Vec<PathBuf>>,
}

#[derive(Clone, Default)]
pub(super) struct Named {
    private: Vec<PathBuf>,
    path: OsString,
}

/// Where paths lead, as far as it was found out in this moment: those that are asked for share most
/// of their way.
#[derive(Default)]
struct Real {
    dirs: HashMap<PathBuf, Option<PathBuf>>,
}

impl Real {
    /// What `canonicalize` would give.
    fn of(&mut self, path: &Path) -> Option<PathBuf> {
        let plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
        let whole = || path.canonicalize().ok();
        if !path.is_absolute() || !path.components().all(plain) {
            return whole();
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return whole();
        };
        let dir = match self.dirs.get(parent) {
            Some(known) => known.clone()?,
            None => {
                let dir = self.of(parent);
                self.dirs.insert(parent.to_owned(), dir.clone());
                dir?
            }
        };
        let found = dir.join(name);
        match found.read_link() {
            // It is there, and no link.
            Err(error) if error.kind() == ErrorKind::InvalidInput => Some(found),
            Err(_) => None,
            Ok(_) => found.canonicalize().ok(),
        }
    }
}

impl Scope {
    /// `private` are files and directories, wherever they are.
    pub fn new(cwd: &Path, private: &[PathBuf]) -> Scope {
        Scope {
            cwd: cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned()),
            closed: None,
            named: Named { private: private.to_vec(), path: OsString::new() },
            private: OnceLock::new(),
            temporary: OnceLock::new(),
            own: OnceLock::new(),
        }
    }

    /// Where the private files and directories are.
    pub(super) fn private(&self) -> &[PathBuf] {
        self.private.get_or_init(|| all_real(self.named.private.iter().map(PathBuf::as_path)))
    }

    /// What everybody may write to and nobody keeps.
    pub(super) fn temporary(&self) -> &[PathBuf] {
        self.temporary.get_or_init(|| all_real(TEMPORARY.iter().map(Path::new)))
    }

    /// Keeps off what is closed, however a command would come to read it.
    pub fn with_closed(mut self, closed: Closed) -> Scope {
        self.closed = Some(closed);
        self
    }

    /// Also finds programs where the user has them.
    pub fn with_path(mut self, path: &OsStr) -> Scope {
        self.named.path = path.to_owned();
        self.own = OnceLock::new();
        self
    }

    /// The directories of the user's own `PATH` that may hold programs, in its order. One that the
    /// session, or just anybody, could write to does not count.
    fn own(&self) -> &[PathBuf] {
        self.own.get_or_init(|| self.trusted())
    }

    fn trusted(&self) -> Vec<PathBuf> {
        let mut known = Real::default();
        let trusted = |dir: &PathBuf| {
            let Some(real) = known.of(dir) else { return false };
            let shared =
                real.metadata().map_or(true, |meta| meta.permissions().mode() & OTHERS_WRITE != 0);
            let ours = real.starts_with(&self.cwd)
                || self.temporary().iter().any(|temporary| real.starts_with(temporary));
            dir.is_absolute() && !ours && !shared
        };
        std::env::split_paths(&self.named.path).filter(trusted).collect()
    }

    /// The `PATH` with which a command that was judged safe must run, without start-up files:
    /// other directories may hold programs of the same names.
    pub fn search_path(&self) -> OsString {
        let mut dirs: Vec<&Path> = SAFE_PATH.split(':').map(Path::new).collect();
        dirs.extend(self.own().iter().map(PathBuf::as_path));
        // Only an entry with a colon in it cannot be joined, and splitting gives none.
        std::env::join_paths(dirs).unwrap_or_else(|_| SAFE_PATH.into())
    }

    /// The name must mean a program that the session could not have written. One that is nowhere
    /// does no harm.
    pub(super) fn check_program(&self, program: &str) -> Result<(), String> {
        self.check_outside()?;
        let mut places = SAFE_PATH.split(':').map(Path::new);
        if places.any(|place| place.join(program).is_file()) || OFTEN_OWN.contains(&program) {
            return Ok(());
        }
        match self.own().iter().map(|dir| dir.join(program)).find(|path| path.is_file()) {
            Some(own) => {
                let shown = brief(&own.display().to_string());
                Err(format!("`{program}` is {shown}, which may be anything"))
            }
            None => Ok(()),
        }
    }

    fn check_outside(&self) -> Result<(), String> {
        match SAFE_PATH.split(':').any(|place| Path::new(place).starts_with(&self.cwd)) {
            true => Err("the working directory holds the system's programs".to_owned()),
            false => Ok(()),
        }
    }

    /// For programs of which people have several: the one that would answer must be the one that
    /// the user means, and must not look for another one in the working directory.
    pub(super) fn check_own_program(&self, program: &str, cwd: &Path) -> Result<(), String> {
        self.check_outside()?;
        let safe = SAFE_PATH.split(':').map(|dir| Path::new(dir).join(program));
        let safe = safe.into_iter().find(|path| path.is_file());
        let own = self.own().iter().map(|dir| dir.join(program)).find(|path| path.is_file());
        let answers = match (safe, own) {
            (None, None) => return Ok(()),
            (Some(safe), None) => safe,
            (Some(safe), Some(own)) if same_file(&safe, &own) => safe,
            (None, Some(own)) => own,
            (Some(_), Some(own)) => {
                let shown = brief(&own.display().to_string());
                return Err(format!("`{program}` is {shown}, which is not the system's own"));
            }
        };
        let is_system = SAFE_PATH.split(':').any(|dir| answers.starts_with(dir));
        // The proxies of rustup run the toolchain that a file in the directory names.
        let chooses = ["cargo", "rustc", "rustfmt"].contains(&program);
        let names_one = |dir: &Path| {
            ["rust-toolchain", "rust-toolchain.toml"].iter().any(|name| dir.join(name).exists())
        };
        if chooses && !cwd.ancestors().any(names_one) || is_system && !chooses {
            return Ok(());
        }
        let shown = brief(&answers.display().to_string());
        Err(format!("`{program}` is {shown}, which may run another program"))
    }
}

fn all_real<'a>(paths: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let mut known = Real::default();
    paths.map(|path| known.of(path).unwrap_or_else(|| path.to_owned())).collect()
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_that_is_partly_known_leads_where_the_whole_one_does() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("a/b/c")).unwrap();
        std::fs::write(at("a/file"), "").unwrap();
        std::os::unix::fs::symlink("a/b", at("to-b")).unwrap();
        std::os::unix::fs::symlink(at("to-b"), at("to-to-b")).unwrap();
        std::os::unix::fs::symlink("nowhere", at("to-nothing")).unwrap();
        std::os::unix::fs::symlink("to-itself", at("to-itself")).unwrap();
        let mut known = Real::default();
        let names = ["", "a", "a/b", "a/b/c", "a/file", "a/file/x", "to-b", "to-b/c", "to-to-b/c"];
        let names = names.into_iter().chain(["to-nothing", "to-itself", "to-itself/c", "none/c"]);
        let names = names.chain(["a/../a/b", "a/./b", "a//b/", "to-b/../file"]);
        for path in names.map(at).chain(["/", "/..", ".", "relative"].map(PathBuf::from)) {
            let whole = path.canonicalize().ok();
            assert_eq!(known.of(&path), whole, "{}", path.display());
            assert_eq!(known.of(&path), whole, "{} again", path.display());
        }
    }
}
