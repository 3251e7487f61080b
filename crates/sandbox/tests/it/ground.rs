//! A place to try to get out of: a directory for work in the sandbox, and one outside, visible from
//! inside, in which nothing may change.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use polyloop_sandbox::{Confinement, Exit, Job, Sandbox};
use tempfile::TempDir;

use crate::{finish, job};

/// Where the ground is, for a user who cannot make one.
pub const GROUND_VARIABLE: &str = "POLYLOOP_SANDBOX_GROUND";

/// Replaced by empty ones in the sandbox, so what is there would be out of sight anyway.
const OUT_OF_SIGHT: &[&str] = &["/tmp", "/var/tmp", "/run", "/dev", "/proc"];

/// What the outside holds: a file in it must keep this.
pub const CANARY: &str = "alive";

pub struct Ground {
    pub work: PathBuf,
    pub outside: PathBuf,
    before: Fingerprint,
    _dir: TempDir,
}

/// All that can be known of the files below a directory: kind and mode, length, times, content.
type Fingerprint = BTreeMap<PathBuf, (u32, u64, i64, i64, Vec<u8>)>;

impl Ground {
    pub fn new() -> Ground {
        let dir = tempfile::Builder::new().prefix("ground-").tempdir_in(base()).unwrap();
        let (work, outside) = (dir.path().join("work"), dir.path().join("outside"));
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(outside.join("directory")).unwrap();
        fs::write(outside.join("canary"), CANARY).unwrap();
        fs::write(outside.join("directory/canary"), CANARY).unwrap();
        let before = fingerprint(&outside);
        Ground { work, outside, before, _dir: dir }
    }

    pub fn sandbox(&self) -> Sandbox {
        Sandbox::new(vec![self.work.clone()])
    }

    /// A script in the directory for work; `$OUT` is the one outside.
    pub fn job(&self, script: &str) -> Job {
        self.job_in(self.sandbox(), script)
    }

    pub fn job_in(&self, sandbox: Sandbox, script: &str) -> Job {
        let mut job = job("bash", &["-c", script]);
        job.cwd = self.work.clone();
        job.env.push(("OUT".into(), self.outside.clone().into()));
        job.env.push(("HOME".into(), self.outside.clone().into()));
        job.confinement = Confinement::Sandbox(Box::new(sandbox));
        job
    }

    pub fn run(&self, script: &str) -> (String, Exit) {
        finish(&self.job(script))
    }

    pub fn run_in(&self, sandbox: Sandbox, script: &str) -> (String, Exit) {
        finish(&self.job_in(sandbox, script))
    }

    /// Runs a script that must fail as a whole, and leave the outside as it was.
    pub fn refuses(&self, script: &str) -> String {
        self.refuses_in(self.sandbox(), script)
    }

    pub fn refuses_in(&self, sandbox: Sandbox, script: &str) -> String {
        let (output, exit) = self.run_in(sandbox, script);
        assert!(matches!(exit, Exit::Code(1..)), "{script}: {exit:?}: {output}");
        self.assert_unchanged(script);
        output
    }

    pub fn assert_unchanged(&self, script: &str) {
        assert_eq!(fingerprint(&self.outside), self.before, "{script}");
    }

    pub fn is_changed(&self) -> bool {
        fingerprint(&self.outside) != self.before
    }

    /// What the outside holds now is as it should be.
    pub fn accept(&mut self) {
        self.before = fingerprint(&self.outside);
    }
}

/// A directory that can be seen in the sandbox.
fn base() -> PathBuf {
    if let Some(given) = std::env::var_os(GROUND_VARIABLE) {
        return given.into();
    }
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let home = std::env::home_dir();
    let candidates = [Some(target), home, Some("/srv".into())];
    let visible = |path: &PathBuf| {
        path.is_dir() && !OUT_OF_SIGHT.iter().any(|hidden| path.starts_with(hidden))
    };
    let path = candidates.into_iter().flatten().find(visible);
    path.expect("a directory outside the temporary ones").canonicalize().unwrap()
}

pub fn fingerprint(directory: &Path) -> Fingerprint {
    let mut all = Fingerprint::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(path) = open.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        let times = (meta.mtime_nsec() ^ meta.mtime(), meta.ctime_nsec() ^ meta.ctime());
        if meta.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        all.insert(path, (meta.mode(), meta.len(), times.0, times.1, content));
    }
    all
}

/// Whether a program is there; says so if not, because then something is not tested.
pub fn has_program(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&paths).any(|path| path.join(name).is_file());
    if !found {
        println!("skipped: there is no `{name}` here");
    }
    found
}
