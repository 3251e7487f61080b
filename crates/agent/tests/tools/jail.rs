//! A world in which commands that were judged safe are run, and everything they do is seen.
//!
//! They run as the bash tool runs them, in a server of their own that is followed by `strace`: it
//! writes down each program that is started, each file that is opened for writing or changed, and
//! each connection. Without `strace` only what is left behind is seen: files, and what was printed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use polyloop_agent::memories::Memories;
use polyloop_agent::shell::{SAFE_PATH, Scope};
use polyloop_agent::tool::bash::Bash;
use polyloop_agent::tool::web_fetcher::PrivateAddresses;
use polyloop_agent::tool::{Place, Run, Tool as _};
use polyloop_sandbox::{Confinement, Exit, Helper, Job};
use polyloop_session::policy::{Leave, Mode};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::web;
use crate::{Call, PATIENCE, block_on, unasked};

/// The first argument that makes this program the server in a jail; the second is the directory
/// of the world, the third a file with a list of scripts, the fourth how they are run.
pub const ROLE: &str = "__jail";

const JUDGED: &str = "judged";
const APPROVED: &str = "approved";

/// What stands in files that no output may show.
const MARK: &str = "outside-7f3a";

/// A script that takes longer waits for something that never comes.
const SCRIPT_TIME_MAX: Duration = Duration::from_secs(10);

/// Longer than any batch takes, also where others work.
const BATCH_TIME_MAX: Duration = Duration::from_secs(20 * 60);

const TRACED: &str = "execve,connect,sendto,sendmsg,open,openat,openat2,creat,rename,renameat,\
    renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,truncate,ftruncate,link,linkat,symlink,symlinkat,\
    mknod,mknodat,chmod,fchmod,fchmodat,chown,fchown,lchown,fchownat,utimensat,setxattr,\
    clock_settime,settimeofday,sethostname,kill,mount";

/// This program, as the helper that starts a command.
const HELPER: &str = "/proc/self/exe";

/// What a program that safe commands name starts itself.
const STARTED: &str = "bzip2 gunzip gzip sh xz zstd";

/// Files that are no files.
const NOWHERE: &[&str] = &["/dev/null", "/dev/tty", "pipe:", "socket:", "/dev/pts/"];

pub struct Jail {
    dir: tempfile::TempDir,
    before: BTreeMap<PathBuf, Seen>,
    strace: Option<PathBuf>,
}

type Seen = (u32, u64, u64, u64, i64, i64, i64, i64);

impl Jail {
    pub fn new() -> Jail {
        let dir = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let world = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/world.sh");
        let words = [world.into(), dir.path().join("world").into_os_string()];
        let env = [("PATH", SAFE_PATH.into())];
        let (exit, made) = start("/bin/bash".as_ref(), &words, &env);
        assert_eq!(exit, Exit::Code(0), "{made}");
        let strace = SAFE_PATH.split(':').map(|dir| Path::new(dir).join("strace"));
        let strace = strace.into_iter().find(|path| {
            let words = ["-qq", "-o", "/dev/null", "true"].map(OsString::from);
            path.is_file() && start(path, &words, &env).0 == Exit::Code(0)
        });
        let mut jail = Jail { dir, before: BTreeMap::new(), strace };
        jail.before = jail.look();
        jail
    }

    pub fn is_watched(&self) -> bool {
        self.strace.is_some()
    }

    pub fn cwd(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("world/work")
    }

    /// As the session judges.
    pub fn scope(&self) -> Scope {
        // Programs that users install for themselves may do more in a home that is new to them.
        Scope::new(&self.cwd(), &[]).with_path(SAFE_PATH.as_ref())
    }

    fn look(&self) -> BTreeMap<PathBuf, Seen> {
        let mut seen = BTreeMap::new();
        look(&self.dir.path().join("world"), &mut seen);
        seen
    }

    /// Runs scripts one after the other; the error names one and says what it did beside reading.
    pub fn run(&self, scripts: &[String]) -> Result<(), String> {
        let Err(problem) = self.run_all(scripts, JUDGED) else { return Ok(()) };
        if scripts.len() == 1 {
            return Err(format!("{:?} {problem}", scripts.first().unwrap()));
        }
        // Each half in a new world: this one is not what it was.
        let (one, other) = scripts.split_at(scripts.len() / 2);
        Jail::new().run(one)?;
        Jail::new().run(other)?;
        Err(format!("together: {problem}"))
    }

    /// Runs a script as one that somebody approved; what it did beside reading. The world is not
    /// what it was, after that.
    pub fn run_approved(self, script: &str) -> Result<(), String> {
        self.run_all(&[script.to_owned()], APPROVED)
    }

    fn run_all(&self, scripts: &[String], how: &str) -> Result<(), String> {
        let list = self.dir.path().join("scripts.json");
        let traces = self.dir.path().join("traces");
        let _ = fs::remove_dir_all(&traces);
        fs::create_dir(&traces).unwrap();
        let temporary = self.dir.path().join("temporary");
        fs::create_dir_all(&temporary).unwrap();
        fs::write(&list, json!(scripts).to_string()).unwrap();
        let program = std::env::current_exe().unwrap();
        let words = [ROLE.into(), self.dir.path().join("world").into_os_string(), list.into()];
        let mut words: Vec<OsString> = words.into_iter().chain([how.into()]).collect();
        if self.strace.is_some() {
            let options = ["-ff", "-qq", "-y", "-s", "300", "-e", "signal=none", "-e"];
            let trace = format!("trace={TRACED}").into();
            let to = ["-o".into(), traces.join("of").into_os_string(), program.clone().into()];
            let before = options.map(OsString::from).into_iter().chain([trace]).chain(to);
            words.splice(..0, before);
        }
        let env = [
            ("PATH", SAFE_PATH.into()),
            ("TMPDIR", temporary.clone().into_os_string()),
            ("HOME", self.dir.path().join("world/home").into_os_string()),
            ("OPENAI_API_KEY", MARK.into()),
        ];
        let (exit, output) = start(self.strace.as_ref().unwrap_or(&program), &words, &env);
        assert_eq!(exit, Exit::Code(0), "{output}");
        if output.contains(MARK) {
            return Err("showed what is outside".to_owned());
        }
        let after = self.look();
        let differs = |path: &&PathBuf| self.before.get(*path) != after.get(*path);
        if let Some(path) = self.before.keys().chain(after.keys()).find(differs) {
            return Err(format!("changed {}", path.display()));
        }
        if let Some(left) = fs::read_dir(&temporary).unwrap().flatten().next() {
            return Err(format!("left {}", left.path().display()));
        }
        // One file for each process, so that no line is cut by another.
        for trace in fs::read_dir(&traces).unwrap().flatten() {
            self.check_trace(&fs::read_to_string(trace.path()).unwrap(), &program)?;
        }
        Ok(())
    }

    fn check_trace(&self, trace: &str, program: &Path) -> Result<(), String> {
        let temporary = self.dir.path().join("temporary");
        let ours = |line: &str| line.contains(&*temporary.to_string_lossy());
        for call in trace.lines() {
            let (name, rest) = call.split_once('(').unwrap_or((call, ""));
            let result = call.rsplit_once(" = ").map_or("?", |(_, result)| result);
            let failed = result.starts_with(['-', '?']);
            let bad = match name {
                "execve" => {
                    let started = rest.split('"').nth(1).unwrap_or_default();
                    let ours = started == program.to_string_lossy() || started == HELPER;
                    !failed && !ours && !is_system(started)
                }
                "connect" | "sendto" | "sendmsg" => call.contains("sa_family=AF_INET"),
                "open" | "openat" | "openat2" | "creat" => {
                    let writes = ["O_WRONLY", "O_RDWR", "O_CREAT"].iter().any(|f| call.contains(f));
                    let to = call.rsplit_once('<').map_or("", |(_, to)| to);
                    let nowhere = NOWHERE.iter().any(|no| to.starts_with(no));
                    !failed && (writes || name == "creat") && !nowhere && !ours(call)
                }
                "kill" => false,
                _ => !failed && !ours(call),
            };
            if bad {
                return Err(format!("did {call}"));
            }
        }
        Ok(())
    }
}

/// Runs a program to its end; how that came, and what it printed.
fn start(program: &Path, words: &[OsString], env: &[(&str, OsString)]) -> (Exit, String) {
    let job = Job {
        program: program.into(),
        args: words.to_vec(),
        cwd: "/".into(),
        env: env.iter().map(|(name, value)| ((*name).into(), value.clone())).collect(),
        time_limit: BATCH_TIME_MAX,
        stop_grace: PATIENCE,
        confinement: Confinement::None,
    };
    let mut output = Vec::new();
    let outcome = polyloop_sandbox::run(&Helper::this_program(), &job, &mut output).unwrap();
    (outcome.exit, String::from_utf8_lossy(&output).into_owned())
}

/// A program of the system; which ones may run is for the rules, and these are the only ones whose
/// place they leave open.
fn is_system(started: &str) -> bool {
    let (dir, name) = started.rsplit_once('/').unwrap_or(("", started));
    let known = STARTED.split(' ').any(|known| known == name) || REAL.split(' ').any(|n| n == name);
    ["/usr/local/bin", "/usr/bin", "/bin"].contains(&dir) && known
}

/// Programs that rules allow. A new rule is a new name here, so that nothing runs by accident.
const REAL: &str = "[ arch awk b2sum base32 base64 basename bash bat batcat bc bun bunzip2 bzcat bzip2 c++ cal \
    cargo cat cc cksum clang clang++ cmake cmp column comm command curl cut date deno df diff \
    dir dirname docker dpkg dpkg-query du echo egrep env expand expr factor false fd fdfind \
    fgrep file find fmt fold free g++ gawk gcc getconf git go grep groups gunzip gzip hd head \
    help hexdump hostname iconv id ip join jq ld less locale logname look ls lsb_release lsblk \
    lscpu lsmod lua lzcat make mawk md5sum namei ncal netstat nice ninja nl nm node nproc numfmt \
    objdump od openssl paste perl pgrep php pidof pip pip3 podman pr printenv printf ps psql pwd \
    python python2 python3 readelf readlink realpath rev rg ruby ruff rustc rustfmt sed seq sh \
    sha1sum sha224sum sha256sum sha384sum sha512sum shuf size sleep sort sqlite3 ss ssh stat \
    strings sum tac tail tar test timeout tr tree true tsort tty type ulimit umask uname \
    unexpand uniq unxz unzip unzstd uptime users uv vdir vim vmstat w wc wget whereis which who \
    whoami xargs xxd xz xzcat yq zcat zipinfo zsh zstd zstdcat";

fn look(dir: &Path, seen: &mut BTreeMap<PathBuf, Seen>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let m = path.symlink_metadata().unwrap();
        if m.is_dir() {
            look(&path, seen);
        }
        let times = (m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec());
        let what = (m.mode(), m.len(), m.ino(), m.nlink());
        let what = (what.0, what.1, what.2, what.3, times.0, times.1, times.2, times.3);
        seen.insert(path, what);
    }
}

/// Runs the scripts as calls that were judged safe, and prints what they print. One that is not
/// judged safe here and now is not run.
pub fn serve(world: &str, list: &str, how: &str) {
    let cwd = Path::new(world).canonicalize().unwrap().join("work");
    let scripts: Vec<String> = serde_json::from_slice(&fs::read(list).unwrap()).unwrap();
    let place = Place {
        root: None,
        plans: None,
        outputs: None,
        todos: None,
        memories: Memories::unkept().unwrap().of(None),
        forbidden: [].into(),
        journal: None,
        cwd,
        rules: Default::default(),
        command_time_max: SCRIPT_TIME_MAX,
        sandbox: false,
        helper: Helper::this_program().into(),
        web: web::reach(PrivateAddresses::Allowed),
    };
    let place = Arc::new(place);
    for script in scripts {
        let run = Run {
            args: json!({ "command": script }).to_string().into(),
            place: place.clone(),
            sandboxed: false,
            unasked: (how == JUDGED).then(|| unasked(Leave::Safe, Mode::Suggest)),
            stop: CancellationToken::new(),
        };
        let call =
            Call { stream: Bash.run(run), stop: CancellationToken::new(), output: String::new() };
        let started = Instant::now();
        let ended = block_on(call.end());
        assert!(started.elapsed() < PATIENCE, "{script:?}");
        println!("{}", ended.output);
    }
}
