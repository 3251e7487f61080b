//! The tools on real files and real processes, through the real helper.
//!
//! This program has a `main` of its own, because it is also the helper that starts the commands,
//! and a small server with an environment of its own (`Server`). Each test runs in a process of its
//! own; words on the command line choose among them, as usual, and one alone runs here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tests start themselves, and other programs to hold the tools against.
#![allow(clippy::disallowed_methods)]

mod tools {
    pub mod apply_patch;
    pub mod bash;
    pub mod batch;
    pub mod diffs;
    pub mod edits;
    pub mod git;
    pub mod held;
    pub mod jail;
    pub mod labels;
    pub mod literal;
    pub mod memory;
    pub mod memory_random;
    pub mod mutate;
    pub mod patch_cases;
    pub mod paths;
    pub mod properties;
    pub mod races;
    pub mod read;
    pub mod server;
    pub mod skill;
    pub mod stop;
    pub mod todos;
    pub mod told;
    pub mod trees;
    pub mod waiting;
    pub mod web;
}

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use polyloop_agent::memories::Memories;
use polyloop_agent::patch::Journal;
use polyloop_agent::tool::web_fetcher::PrivateAddresses;
use polyloop_agent::tool::{Place, Progress, Run, Tool, Unasked};
use polyloop_sandbox::Helper;
use polyloop_session::item::{End, ToolResult};
use polyloop_session::policy::{Judgement, Leave, Mode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Longer than any test takes; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

type Test = (&'static str, fn());

fn main() -> ExitCode {
    polyloop_sandbox::become_helper_if_asked();
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [role, script] = args.as_slice()
        && role == tools::server::ROLE
    {
        tools::server::serve(script);
        return ExitCode::SUCCESS;
    }
    if let [role, directory] = args.as_slice()
        && role == tools::patch_cases::ROLE
    {
        tools::patch_cases::apply_in(directory);
        return ExitCode::SUCCESS;
    }
    if let [role, world, list, how] = args.as_slice()
        && role == tools::jail::ROLE
    {
        tools::jail::serve(world, list, how);
        return ExitCode::SUCCESS;
    }
    let tests = [
        tools::apply_patch::ALL,
        tools::bash::ALL,
        tools::batch::ALL,
        tools::diffs::ALL,
        tools::edits::ALL,
        tools::git::ALL,
        tools::held::ALL,
        tools::labels::ALL,
        tools::literal::ALL,
        tools::memory::ALL,
        tools::memory_random::ALL,
        tools::mutate::ALL,
        tools::patch_cases::ALL,
        tools::paths::ALL,
        tools::properties::ALL,
        tools::races::ALL,
        tools::read::ALL,
        tools::skill::ALL,
        tools::stop::ALL,
        tools::todos::ALL,
        tools::told::ALL,
        tools::trees::ALL,
        tools::waiting::ALL,
        tools::web::ALL,
    ];
    let tests: Vec<&Test> = tests.into_iter().flatten().collect();
    if args.iter().any(|arg| arg == "--list") {
        tests.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let words: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let exact = args.iter().any(|arg| arg == "--exact");
    let fits = |name: &str, word: &str| if exact { name == word } else { name.contains(word) };
    let chosen = |name: &str| words.is_empty() || words.iter().any(|word| fits(name, word));
    let chosen: Vec<&Test> = tests.into_iter().filter(|(name, _)| chosen(name)).collect();
    let failed = match chosen.as_slice() {
        [(name, test)] => {
            let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
            println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
            if passed { Vec::new() } else { vec![*name] }
        }
        several => each_alone(several),
    };
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {failed:?}");
    ExitCode::FAILURE
}

/// Runs each test in a process of its own, some at once; those that failed.
fn each_alone(tests: &[&Test]) -> Vec<&'static str> {
    let together = std::thread::available_parallelism().map_or(2, usize::from) + 1;
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((name, _)) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
            let program = std::env::current_exe().unwrap();
            let ran = std::process::Command::new(program).args([name, "--exact"]).output().unwrap();
            let told = [ran.stdout, ran.stderr].concat();
            print!("{}", String::from_utf8_lossy(&told));
            if !ran.status.success() {
                failed.lock().unwrap().push(*name);
            }
        }
    };
    std::thread::scope(|scope| (0..together).for_each(|_| drop(scope.spawn(work))));
    failed.into_inner().unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, future).await.expect("it hangs") })
}

/// A working directory, and one beside it.
struct Ground {
    dir: TempDir,
    place: Arc<Place>,
}

impl Ground {
    fn new() -> Ground {
        let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let cwd = dir.path().canonicalize().unwrap().join("work");
        fs::create_dir_all(cwd.join("sub")).unwrap();
        fs::create_dir_all(cwd.join("store")).unwrap();
        fs::create_dir_all(cwd.with_file_name("out")).unwrap();
        fs::create_dir_all(cwd.with_file_name("todos")).unwrap();
        let place = Place {
            root: None,
            plans: None,
            outputs: Some(cwd.join("store/outputs")),
            todos: Some(cwd.with_file_name("todos").join("s.md")),
            memories: Memories::unkept().unwrap().of(None),
            forbidden: [cwd.join("store")].into(),
            journal: Some(Journal::open(&cwd.join("store/patches")).unwrap()),
            cwd,
            rules: Default::default(),
            command_time_max: PATIENCE * 2,
            sandbox: false,
            helper: Helper::this_program().into(),
            web: tools::web::reach(PrivateAddresses::Allowed),
        };
        Ground { dir, place: Arc::new(place) }
    }

    fn cwd(&self) -> &Path {
        &self.place.cwd
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.cwd().join(path), text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.cwd().join(path)).unwrap()
    }

    fn out(&self) -> PathBuf {
        self.cwd().with_file_name("out")
    }

    fn judge(&self, tool: &dyn Tool, args: serde_json::Value) -> Result<Judgement, String> {
        let judged = block_on(tool.judge(&args.to_string(), &self.place));
        judged.map_err(|why| why.to_string())
    }

    fn start(&self, tool: &dyn Tool, args: serde_json::Value) -> Call {
        let stop = CancellationToken::new();
        let run = Run {
            args: args.to_string().into(),
            place: self.place.clone(),
            sandboxed: false,
            unasked: None,
            stop: stop.clone(),
        };
        Call { stream: tool.run(run), stop, output: String::new() }
    }

    fn finish(&self, tool: &dyn Tool, args: serde_json::Value) -> Ended {
        block_on(async { self.start(tool, args).end().await })
    }
}

/// Nobody was asked, because it was judged safe.
fn safe() -> Unasked {
    unasked(Leave::Safe, Mode::Suggest)
}

fn unasked(leave: Leave, mode: Mode) -> Unasked {
    Unasked { leave, mode, grants: Arc::from([]) }
}

struct Call {
    stream: BoxStream<'static, Progress>,
    stop: CancellationToken,
    output: String,
}

struct Ended {
    output: String,
    end: End,
    result: ToolResult,
}

impl Ended {
    /// What the model sees.
    fn seen(&self) -> &str {
        self.result.seen.as_deref().unwrap_or(&self.output)
    }
}

impl Call {
    /// Waits until the output so far is `text`.
    async fn until(&mut self, text: &str) {
        while self.output != text {
            match self.stream.next().await.unwrap() {
                Progress::Output(more) => self.output.push_str(&more),
                other => panic!("{other:?} {:?}", self.output),
            }
        }
    }

    async fn end(mut self) -> Ended {
        loop {
            match self.stream.next().await.unwrap() {
                Progress::Output(more) => {
                    assert!(!more.is_empty());
                    self.output.push_str(&more);
                }
                Progress::Ended { end, result } => {
                    assert!(self.stream.next().await.is_none());
                    return Ended { output: self.output, end, result };
                }
                // Recorded before it is done; here nobody does.
                Progress::Touches(_) => {}
                Progress::Stopped { result, .. } => {
                    assert!(self.stream.next().await.is_none());
                    return Ended { output: self.output, end: End::Failed, result };
                }
            }
        }
    }
}

/// A FIFO that every process of a command holds open for writing, as descriptor 9: when the last
/// one has gone, it is at its end.
struct Roll {
    file: File,
    path: PathBuf,
}

impl Roll {
    fn new(ground: &Ground) -> Roll {
        let path = ground.dir.path().join("roll");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(&path).unwrap();
        Roll { file, path }
    }

    fn script(&self, script: &str) -> String {
        format!("exec 9>'{}'\n{script}", self.path.display())
    }

    /// Whether nobody is left, at this moment.
    fn is_empty(&mut self) -> bool {
        match self.file.read(&mut [0; 64]) {
            Ok(read) => read == 0,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits until nobody is left.
    fn await_empty(&mut self) {
        while !self.is_empty() {
            let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
            let patience = Timespec::try_from(PATIENCE).unwrap();
            // A child of the test that ends may interrupt it: then it looks again.
            let ready = poll(&mut fds, Some(&patience)).unwrap_or(1);
            assert_ne!(ready, 0, "somebody is still there");
        }
    }
}
