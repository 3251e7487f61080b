//! Starts and stops the server: the stores, the listener, the accept loop, the signals.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use polyloop_agent::actor::Kit;
use polyloop_agent::audit::Audit;
use polyloop_agent::gate::Gates;
use polyloop_agent::log::{Log, files::Files, memory::Memory};
use polyloop_agent::memories::Memories;
use polyloop_agent::messages::Messages;
use polyloop_agent::meter::{Meter, TimedDisk};
use polyloop_agent::model::Models;
use polyloop_agent::patch::Journal;
use polyloop_agent::peers::Peers;
use polyloop_agent::place::{Instructions, Places, Recent};
use polyloop_agent::rails::Rails;
use polyloop_agent::rules::Rules;
use polyloop_agent::sessions::Sessions;
use polyloop_agent::todos::Todos;
use polyloop_agent::tokens::{Counted, O200k};
use polyloop_agent::tool::web_fetcher::{self, PrivateAddresses, Reach};
use polyloop_agent::tool::{self, Place, ToolList};
use polyloop_dialects::chat::Chat;
use polyloop_sandbox::{Availability, Helper, probe};
use polyloop_session::context::{Overhead, Strategy, WindowSize};
use polyloop_session::event::{Agent, Settings};
use polyloop_session::policy::Mode;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::access::From;
use crate::app::{self, App};
use crate::auth::Guard;
use crate::config::{AgentKind, ApprovalMode, ChatBroadcast, Config, ContextStrategy, SharedStore};
use crate::metrics::Metrics;
use crate::models::{self, Offers, Served};
use crate::rate::Clients;
use crate::rest;
use crate::room::{Broadcast, Room};
use crate::socket;
use crate::view::FileCodec;

/// A request's head must be there in this time.
const HEADER_TIME_MAX: Duration = Duration::from_secs(20);
/// Of a request's head.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;
/// How long a request that was begun has to end when the server stops.
const LAST_ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
/// Beyond MAX_CONNECTIONS, for those who ask how a full server is.
const SPARE_CONNECTIONS: usize = 8;
/// How long each of them may take in all, so that who says nothing does not keep others from asking.
const SPARE_TIME_MAX: Duration = Duration::from_secs(3);
/// What the kernel keeps of a connection and has not sent: a client that reads slowly is seen to
/// read each time that half of it is gone.
const UNSENT_BYTES_MAX: u32 = 128 * 1024;
/// How long sessions and connections have to end after the first signal.
const SHUTDOWN_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a session that nobody uses stays in memory.
const SLEEP_AFTER: Duration = Duration::from_secs(60);

/// The folder of the journal of patches.
const PATCHES: &str = "patches";
/// What a person should know who runs without one.
const TORN: &str = "a kill in the middle of a patch can leave a part of it";

#[cfg(not(feature = "nats"))]
pub const WITHOUT_NATS: &str =
    "this program was built without NATS; build it with `--features nats`";

const INSTRUCTIONS: &str = include_str!("instructions.md");

/// What a person should know once the server listens.
pub struct Ready {
    pub addr: SocketAddr,
    pub sandbox: Availability,
}

/// A port that may be replaced by a free one if it is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PortChoice {
    Given,
    Preferred,
}

/// Runs until a signal ends it. `ready` is called once, when connections are accepted.
pub async fn run(
    config: Config,
    port: PortChoice,
    ready: impl FnOnce(&Ready),
) -> Result<(), String> {
    // A process of its own, which takes its time: the stores are opened meanwhile.
    let probing = tokio::task::spawn_blocking(|| probe(&Helper::this_program()));
    let opening = async {
        let models = Served::open(&config.model)?;
        let offers = models.offers();
        let meter = Arc::new(meter(&offers));
        let kit = kit(&config, models, meter.clone()).await?;
        Ok::<_, String>((kit, offers, meter))
    };
    let (opened, probed) = tokio::join!(opening, probing);
    let (mut kit, offers, meter) = opened?;
    let sandbox = probed.map_err(|error| error.to_string())?;
    kit.places.common.sandbox = sandbox.is_available();
    if let Availability::NotAvailable(why) = &sandbox {
        tracing::warn!(
            "no sandbox: {why}; commands that may change something ask, also in full-auto"
        );
    }
    let todos = match &config.todos_store {
        Some(dir) => Some(Todos::open(dir).map_err(|error| {
            format!("TODOS_STORE_PATH: {} cannot be used: {error}", dir.display())
        })?),
        None => None,
    };
    let listener = bind(config.addr(), port).await?;
    let addr = listener.local_addr().map_err(|error| error.to_string())?;
    kit.places.common.web.keep_from(addr.port());
    let tools = socket::tool_infos(&kit.tools);
    if let Some(messages) = &kit.messages {
        messages.sweep();
    }
    let memories = kit.places.memories.clone();
    let sessions = Sessions::new(kit, todos);
    let rails =
        Rails::start_all().map_err(|error| format!("no threads can be started: {error}"))?;
    sessions.run_on(rails);
    let broadcast = match config.chat_broadcast {
        ChatBroadcast::All => Broadcast::All,
        ChatBroadcast::Session => Broadcast::Session,
    };
    let room = Room::new(sessions.clone(), &Chat, broadcast);
    let closing = CancellationToken::new();
    let app = Arc::new(App {
        sessions: sessions.clone(),
        room,
        tools,
        guard: Guard::new(config.access.clone(), addr),
        clients: Clients::new(config.limits.rates),
        metrics: Metrics::new(meter, &sessions.kit().audit),
        message_bytes_max: config.limits.message_bytes_max,
        offers,
        keeps_sessions: config.session_store.is_some() || config.shared_store.is_some(),
        closing: closing.clone(),
    });
    let signals = signals().map_err(|error| error.to_string())?;
    sessions.serve_peers();
    ready(&Ready { addr, sandbox });
    if config.auto_resume {
        let sessions = sessions.clone();
        tokio::spawn(async move { sessions.resume_unfinished().await });
    }
    let connections = Arc::new(Semaphore::new(config.limits.connections_max));
    tokio::select! {
        () = accept(listener, app, connections.clone()) => {}
        () = signals => {}
    }
    tracing::info!("shutting down");
    closing.cancel();
    let ended = async {
        sessions.close().await;
        sessions.leave_peers().await;
        // Every connection holds a permit until it has ended.
        let all = config.limits.connections_max.try_into().unwrap_or(u32::MAX);
        let _ = connections.acquire_many(all).await;
        memories.close().await;
        let _ = tokio::task::spawn_blocking(move || sessions.kit().audit.close()).await;
    };
    if tokio::time::timeout(SHUTDOWN_TIME_MAX, ended).await.is_err() {
        tracing::warn!("some connections did not end in time");
    }
    Ok(())
}

/// The first signal; a second one ends the process at once.
fn signals() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            std::process::exit(130);
        });
    })
}

async fn bind(addr: SocketAddr, port: PortChoice) -> Result<TcpListener, String> {
    match TcpListener::bind(addr).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && port == PortChoice::Preferred => {
            let any = SocketAddr::new(addr.ip(), 0);
            TcpListener::bind(any).await.map_err(|error| format!("cannot listen on {any}: {error}"))
        }
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(format!(
            "cannot listen on {addr}: another program does already; choose another with --port"
        )),
        Err(error) => Err(format!("cannot listen on {addr}: {error}")),
    }
}

async fn accept(listener: TcpListener, app: Arc<App>, connections: Arc<Semaphore>) {
    let (router, full) = (app::router(app.clone()), app::full(app.clone()));
    let spare = Arc::new(Semaphore::new(SPARE_CONNECTIONS));
    loop {
        let (stream, from) = match listener.accept().await {
            Ok((stream, from)) => (stream, From(from)),
            Err(error) => {
                // Out of descriptors, most likely: others must end before more can begin.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let routed = |router: &Router| TowerToHyperService::new(router.clone());
        let (permit, service, time) = match connections.clone().try_acquire_owned() {
            Ok(permit) => (permit, routed(&router), None),
            Err(_) => match spare.clone().try_acquire_owned() {
                Ok(permit) => (permit, routed(&full), Some(SPARE_TIME_MAX)),
                Err(_) => {
                    app.metrics.turns_away();
                    tokio::spawn(turn_away(stream));
                    continue;
                }
            },
        };
        // Frames are small and must not wait for each other.
        let _ = stream.set_nodelay(true);
        let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
        let closing = app.closing.clone();
        let permit = Arc::new(permit);
        tokio::spawn(async move {
            let served = connection(stream, from, service, closing, Held(permit));
            match time {
                None => served.await,
                Some(time) => _ = tokio::time::timeout(time, served).await,
            }
        });
    }
}

async fn connection(
    stream: TcpStream,
    from: From,
    service: TowerToHyperService<Router>,
    closing: CancellationToken,
    held: Held,
) {
    let service = hyper::service::service_fn(move |mut request: hyper::Request<_>| {
        // An upgraded socket outlives this task; its permit goes with the request.
        request.extensions_mut().insert(held.clone());
        request.extensions_mut().insert(from);
        hyper::service::Service::call(&service, request)
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(serving);
    tokio::select! {
        _ = &mut serving => {}
        () = closing.cancelled() => {
            serving.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(LAST_ANSWER_TIME_MAX, serving).await;
        }
    }
}

/// Keeps a place among the connections for as long as it lives.
#[derive(Clone)]
pub struct Held(
    #[allow(dead_code, reason = "held for its drop")] Arc<tokio::sync::OwnedSemaphorePermit>,
);

async fn turn_away(mut stream: TcpStream) {
    use tokio::io::AsyncWriteExt;
    let body = format!(r#"{{"error":"{}"}}"#, rest::FULL_TEXT);
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
         retry-after: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        rest::OVERLOADED_SECS,
        body.len()
    );
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(answer.as_bytes())).await;
}

fn audit(config: &Config) -> Result<Audit, String> {
    let Some(path) = &config.log.audit else { return Ok(Audit::default()) };
    let failed = |error| format!("AUDIT_LOG: {} cannot be written: {error}", path.display());
    Audit::open(path).map_err(failed)
}

/// Models are counted by name that can be asked for by it.
fn meter(offers: &Offers) -> Meter {
    let known = offers.models.iter().map(|offer| (offer.name.clone(), offer.provider));
    Meter::new(known.collect())
}

/// Where sessions are kept.
async fn kept_on(config: &Config, meter: &Arc<Meter>) -> Result<Kept, String> {
    if let Some(shared) = &config.shared_store {
        let kept = shared_log(shared, config.store_replicas, meter).await;
        return kept.map_err(|why| format!("STORE: {why}"));
    }
    let Some(dir) = &config.session_store else {
        return Ok((Arc::new(Memory::new(FileCodec::shared())), None));
    };
    let disk = Arc::new(TimedDisk(meter.clone()));
    let files = Files::open_on(disk, dir, FileCodec::shared());
    Ok((Arc::new(files.map_err(|error| format!("SESSION_STORE_PATH: {error}"))?), None))
}

/// The log, and other servers on it if there may be some.
type Kept = (Arc<dyn Log>, Option<Arc<dyn Peers>>);

#[cfg(feature = "nats")]
async fn shared_log(
    shared: &SharedStore,
    replicas: Option<usize>,
    meter: &Arc<Meter>,
) -> Result<Kept, String> {
    use polyloop_agent::log::nats;
    let servers = shared.servers.iter().map(|server| server.reveal().to_owned()).collect();
    let place = nats::Place { servers, name: shared.name.clone(), replicas };
    let log = nats::Nats::connect(&place, FileCodec::shared()).await;
    let log = log.map_err(|error| error.to_string())?.timed(meter.clone());
    let peers = log.peers().await.map_err(|error| error.to_string())?;
    Ok((Arc::new(log), Some(peers)))
}

#[cfg(not(feature = "nats"))]
async fn shared_log(_: &SharedStore, _: Option<usize>, _: &Arc<Meter>) -> Result<Kept, String> {
    Err(WITHOUT_NATS.to_owned())
}

/// Whether there is a sandbox is not known yet.
async fn kit(config: &Config, models: Served, meter: Arc<Meter>) -> Result<Kit, String> {
    let (log, peers) = kept_on(config, &meter).await?;
    // Before anything works on files: what a killed server left in the middle is ended.
    let journal = journal(config)?;
    if let Some(journal) = &journal {
        journal.replay();
    }
    let messages = match &config.user_message_db {
        Some(path) => {
            let opened = Messages::open(path, log.clone()).await;
            Some(opened.map_err(|error| format!("USER_MESSAGE_DB: {error}"))?)
        }
        None => None,
    };
    let model = models.find(&config.model.name).map_err(|why| {
        let name = &config.model.name;
        format!("MODEL: {name:?} {why}")
    })?;
    let mode = match config.approval.mode {
        ApprovalMode::Suggest => Mode::Suggest,
        ApprovalMode::AutoEdit => Mode::AutoEdit,
        ApprovalMode::FullAuto => Mode::FullAuto,
    };
    let strategy = match config.context.strategy {
        ContextStrategy::Threshold => Strategy::Threshold,
        ContextStrategy::Dummy => Strategy::Dummy,
    };
    let agent = match config.agent {
        AgentKind::React => None,
        AgentKind::Dup => Some(Agent::Dup),
        AgentKind::Tot => Some(Agent::Tot),
        AgentKind::Got => Some(Agent::Got),
    };
    let tools: ToolList = tool::ALL.iter().map(|tool| tool.spec()).collect();
    let memories = memories(config)?;
    let mut forbidden: Vec<PathBuf> = config.session_store.iter().cloned().collect();
    forbidden.extend(config.own_files.iter().cloned());
    let rules = match &config.rules_file {
        Some(file) => crate::rules::load(file).map_err(|problems| problems.join("\n"))?,
        None => Rules::default(),
    };
    forbidden.extend(journal.iter().map(|journal| journal.directory().to_owned()));
    for database in [config.user_message_db.clone(), config.memory_file()].into_iter().flatten() {
        // SQLite keeps files of its own beside it.
        let beside = ["", "-wal", "-shm", "-journal"].map(|end| {
            let mut path = database.clone().into_os_string();
            path.push(end);
            PathBuf::from(path)
        });
        forbidden.extend(beside);
    }
    let mut places = places(config, forbidden, rules, memories)?;
    places.common.journal = journal;
    Ok(Kit {
        limits: polyloop_session::Limits {
            queued_messages_max: config.limits.queued_messages_max,
            tokens_max: model.card().tokens_max,
            window: WindowSize::Known,
            strategy,
            bypass_allowed: config.approval.allow_bypass,
            retries_max: config.model.retries_max,
            compact_at: (config.context.threshold * 1_000.0).round() as u64,
            overhead: Overhead::default(),
            bounds: config.bounds,
            budget: config.context.budget,
        },
        settings: Settings {
            cwd: config.working_directory.display().to_string().into(),
            model: model.name().into(),
            mode,
            calls_max: config.calls_max,
            agent,
            tokens_max: Some(model.card().tokens_max),
            ..Settings::default()
        },
        places,
        instructions: instructions(config),
        peers,
        passing: Arc::new(Memory::new(FileCodec::shared())),
        messages,
        log,
        models: Arc::new(models),
        tokens: Counted::by(Arc::new(O200k)),
        tools,
        approval_timeout: config.approval.timeout,
        sleep_after: SLEEP_AFTER,
        auto_resume: config.auto_resume,
        gates: Gates::new(config.limits.capacity),
        awake_sessions_max: config.limits.awake_sessions_max,
        meter,
        audit: audit(config)?,
    })
}

/// A file that was named must be usable; one that nobody named stops nobody.
fn memories(config: &Config) -> Result<Memories, String> {
    match config.memory_file() {
        None => Memories::unkept().map_err(|error| error.to_string()),
        Some(path) => match Memories::open(&path) {
            Err(error) if config.memory_db.is_some() => Err(format!("MEMORY_DB: {error}")),
            Err(error) => Ok(Memories::unusable(&error)),
            Ok(memories) => Ok(memories),
        },
    }
}

/// Where patches are written down before they are applied: in the session store, or, without one,
/// where this user's programs keep their state.
fn journal(config: &Config) -> Result<Option<Journal>, String> {
    if let Some(store) = &config.session_store {
        let directory = store.join(PATCHES);
        let opened = Journal::open(&directory);
        let failed = |error| format!("SESSION_STORE_PATH: {}: {error}", directory.display());
        return opened.map(Some).map_err(failed);
    }
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    let opened = match state.map(|state| state.join("polyloop").join(PATCHES)) {
        Some(directory) => Journal::open(&directory)
            .map_err(|error| format!("{} cannot be used: {error}", directory.display())),
        None => Err("neither SESSION_STORE_PATH nor HOME is set".to_owned()),
    };
    Ok(opened.map_err(|why| tracing::warn!("no journal of patches: {why}; {TORN}")).ok())
}

fn places(
    config: &Config,
    forbidden: Vec<PathBuf>,
    rules: Rules,
    memories: Memories,
) -> Result<Places, String> {
    let private = match config.web_private_addresses {
        true => PrivateAddresses::Allowed,
        false => PrivateAddresses::Refused,
    };
    let proxies = models::proxies(&config.model.proxy);
    let web = Reach::new(&proxies, private, web_fetcher::Limits::default())?;
    let mut roots = vec![config.working_directory.clone()];
    roots.extend(config.workspace_roots.iter().cloned());
    let common = Place {
        cwd: config.working_directory.clone(),
        root: None,
        plans: None,
        outputs: None,
        todos: None,
        memories: memories.of(None),
        forbidden: forbidden.into(),
        rules: Arc::new(rules),
        journal: None,
        command_time_max: config.limits.command_timeout,
        sandbox: false,
        helper: Helper::this_program().into(),
        web,
    };
    let plans = config.session_store.as_ref().map(|store| store.join("plans"));
    let outputs = config.session_store.as_ref().map(|store| store.join("outputs"));
    let (todos, recent) = (config.todos_store.clone(), Recent::default());
    Ok(Places { common, roots, plans, outputs, todos, memories, recent })
}

fn instructions(config: &Config) -> Instructions {
    let own = config.instructions_file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    let (role, rules) = INSTRUCTIONS.split_once("\n\n").unwrap_or((INSTRUCTIONS, ""));
    let (role, rules, own) = (role.into(), rules.into(), own.map(Into::into));
    Instructions { role, rules, own, kept: Arc::default() }
}
