//! Sets the stage: a working directory, a log, a model, and the sessions on top of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use polyloop_agent::actor::Kit;
use polyloop_agent::gate::{Capacity, Gates};
use polyloop_agent::log::files::Files;
use polyloop_agent::log::memory::Memory;
use polyloop_agent::log::{Log, OpenMode};
use polyloop_agent::memories::Memories;
use polyloop_agent::model::http::Proxies;
use polyloop_agent::model::offline::Offline;
use polyloop_agent::model::{Model, Only};
use polyloop_agent::place::{Instructions, Places, Recent};
use polyloop_agent::sessions::{Handle, Sessions};
use polyloop_agent::tokens::{Counted, Rough};
use polyloop_agent::tool::web_fetcher::{self, PrivateAddresses, Reach};
use polyloop_agent::tool::{self, Place};
use polyloop_sandbox::Helper;
use polyloop_session::budget::Budget;
use polyloop_session::context::{Overhead, Strategy, WindowSize};
use polyloop_session::event::Settings;
use polyloop_session::policy::Mode;
use polyloop_session::strategy::bounds::Bounds;
use polyloop_session::{Limits, LogEntry, Seq, SessionId};
use tempfile::TempDir;

use super::client::Client;
use super::codec::Plain;
use super::faults::Faulty;
use super::make::{fold, id, who};
use super::view::{Kind, Seeing};

/// Longer than anything here takes; a test that reaches it has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub const LIMITS: Limits = Limits {
    queued_messages_max: 10,
    tokens_max: 200_000,
    window: WindowSize::Known,
    strategy: Strategy::Threshold,
    bypass_allowed: true,
    retries_max: 0,
    compact_at: 800,
    overhead: Overhead { instructions: 0, tools: 0 },
    budget: Budget { cost_micros_max: None, tokens_max: None },
    bounds: Bounds::DEFAULT,
};

/// What the model is told, in this order.
pub const ROLE: &str = "You are a tester.";
pub const RULES: &str = "Be brief.";
pub const OWN: &str = "Be kind.";

pub async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

pub fn temp_dir() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

pub fn memory() -> Arc<Faulty> {
    Faulty::new(Arc::new(Memory::new(Arc::new(Plain))))
}

pub fn files(dir: &Path) -> Arc<Faulty> {
    // Every session has an index here, however short it is.
    Faulty::new(Arc::new(Files::open(dir, Arc::new(Plain)).unwrap().index_from(0)))
}

/// What a server would be started with.
pub struct Setup {
    pub log: Arc<dyn Log>,
    pub model: Arc<dyn Model>,
    pub mode: Mode,
    pub approval_timeout: Option<Duration>,
    pub sleep_after: Duration,
    pub auto_resume: bool,
    pub helper: Helper,
    /// Where work is allowed besides the server's own directory.
    pub roots: Vec<PathBuf>,
    pub plans: Option<PathBuf>,
    pub retries_max: u32,
    pub capacity: Capacity,
    pub awake_sessions_max: usize,
}

impl Setup {
    pub fn new(log: Arc<dyn Log>) -> Setup {
        Setup {
            log,
            model: Arc::new(Offline),
            mode: Mode::Suggest,
            approval_timeout: None,
            sleep_after: PATIENCE * 60,
            auto_resume: false,
            // Most tests only edit files, which needs none.
            helper: Helper::at("/nonexistent"),
            roots: Vec::new(),
            plans: None,
            retries_max: LIMITS.retries_max,
            capacity: Capacity::default(),
            awake_sessions_max: 0,
        }
    }

    pub fn model(self, model: Arc<dyn Model>) -> Setup {
        Setup { model, ..self }
    }

    pub fn start(self, dir: &Path) -> Sessions<Seeing> {
        Sessions::new(self.kit(dir), None)
    }

    pub fn kit(self, dir: &Path) -> Kit {
        let Setup { log, model, mode, approval_timeout, sleep_after, auto_resume, .. } = self;
        let cwd = dir.canonicalize().unwrap();
        let mut roots = self.roots;
        roots.push(cwd.clone());
        let memories = Memories::unkept().unwrap();
        Kit {
            log,
            peers: None,
            passing: Arc::new(Memory::new(Arc::new(Plain))),
            messages: None,
            settings: Settings {
                cwd: cwd.display().to_string().into(),
                model: model.name().into(),
                mode,
                calls_max: 20,
                ..Settings::default()
            },
            models: Arc::new(Only(model)),
            meter: Arc::default(),
            audit: Default::default(),
            instructions: Instructions {
                role: ROLE.into(),
                rules: RULES.into(),
                own: Some(OWN.into()),
                kept: Arc::default(),
            },
            tools: tool::ALL.iter().map(|tool| tool.spec()).collect(),
            tokens: Counted::by(Arc::new(Rough)),
            places: Places {
                common: Place {
                    cwd,
                    root: None,
                    plans: None,
                    outputs: None,
                    todos: None,
                    memories: memories.of(None),
                    forbidden: [].into(),
                    rules: Default::default(),
                    journal: None,
                    command_time_max: PATIENCE * 10,
                    sandbox: false,
                    helper: self.helper.into(),
                    web: web(),
                },
                roots,
                plans: self.plans,
                outputs: None,
                todos: None,
                memories,
                recent: Recent::default(),
            },
            limits: Limits { retries_max: self.retries_max, ..LIMITS },
            approval_timeout,
            sleep_after,
            auto_resume,
            gates: Gates::new(self.capacity),
            awake_sessions_max: self.awake_sessions_max,
        }
    }
}

fn web() -> Reach {
    let limits = web_fetcher::Limits::default();
    Reach::new(&Proxies::default(), PrivateAddresses::Refused, limits).unwrap()
}

/// A working directory, a log in memory, and sessions on it.
pub struct Rig {
    pub dir: TempDir,
    pub log: Arc<Faulty>,
    pub sessions: Sessions<Seeing>,
    pub kind: Kind,
}

impl Rig {
    pub fn new(change: impl FnOnce(Setup) -> Setup) -> Rig {
        let (dir, log) = (temp_dir(), memory());
        let sessions = change(Setup::new(log.clone())).start(dir.path());
        Rig { dir, log, sessions, kind: Kind::new() }
    }

    pub fn offline() -> Rig {
        Rig::new(|setup| setup)
    }

    pub fn handle(&self, name: &str) -> Handle<Seeing> {
        self.sessions.handle(id(name), who())
    }

    pub async fn client(&self, name: &str) -> Client {
        Client::attach(self.handle(name), self.kind).await.unwrap()
    }

    /// A file that `adding` adds to.
    pub fn countable(&self, name: &str) {
        std::fs::write(self.dir.path().join(name), "start\n").unwrap();
    }

    pub fn count(&self, name: &str, line: &str) -> usize {
        count(&self.dir.path().join(name), line)
    }
}

pub fn count(file: &Path, line: &str) -> usize {
    std::fs::read_to_string(file).unwrap().lines().filter(|found| *found == line).count()
}

pub async fn read_all(log: &dyn Log, id: &SessionId) -> Vec<Arc<LogEntry>> {
    let mut all: Vec<Arc<LogEntry>> = Vec::new();
    loop {
        let after = all.last().map_or(Seq::NONE, |entry| entry.seq);
        let page = log.read(id, after, Seq(u64::MAX)).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// Ends a server in good order, and waits until it has let go of the store.
pub async fn stop(sessions: Sessions<Seeing>, log: Arc<Faulty>) {
    in_time("the sessions' end", sessions.close()).await;
    drop(sessions);
    let gone = async {
        while Arc::strong_count(&log) > 1 {
            tokio::task::yield_now().await;
        }
    };
    in_time("the store to be free", gone).await;
    assert_eq!(log.writers(), 0);
}

/// A session that nobody has open: its entries are without gap and add up to what opening it finds,
/// and nothing is left over of open items.
pub async fn check_at_rest(log: &dyn Log, id: &SessionId) {
    let all = read_all(log, id).await;
    let seqs: Vec<u64> = all.iter().map(|entry| entry.seq.0).collect();
    assert_eq!(seqs, (1..=all.len() as u64).collect::<Vec<_>>());
    let opened = log.open(id, OpenMode::Existing).await.unwrap().unwrap();
    assert_eq!(opened.folded.state, fold(all.iter().map(|entry| &**entry)));
    assert!(opened.folded.damage.is_empty(), "{:?}", opened.folded.damage);
    assert!(opened.folded.state.turn().is_some() || opened.live.is_empty(), "{:?}", opened.live);
}

/// A program whose `main` may become the helper, which this one's may not: the test `tools`, which
/// is built along with this one and lies beside it, or a program of the workspace.
pub fn helper() -> Helper {
    let this = std::env::current_exe().unwrap();
    let beside = this.parent().unwrap();
    let is_tools = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("tools-") && path.extension().is_none()
    };
    let tools = std::fs::read_dir(beside).unwrap().map(|file| file.unwrap().path());
    let program = beside.with_file_name("polyloop-sandbox-run");
    let found = tools.filter(is_tools).chain(program.exists().then_some(program));
    let newest = found.max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    Helper::at(newest.expect("build the test `tools` too: cargo test -p polyloop-agent --no-run"))
}

pub fn is_running(process: &str) -> bool {
    Path::new("/proc").join(process).exists()
}
