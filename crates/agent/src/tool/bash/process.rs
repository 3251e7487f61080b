//! One command under way: a stream of its output that ends with how it ended.
//!
//! Holds no task and no thread: whoever drops the stream lets go of the helper's control socket, and
//! the helper then ends everything the command started.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream;
use polyloop_sandbox::{
    Confinement, Exit, Job, Outcome, REPORT_BYTES_MAX, Refusal, Sandbox, TEMPORARY_DIRECTORY,
    bash_args, refusal,
};
use polyloop_session::Text;
use polyloop_session::item::{End, ToolResult};
use polyloop_session::policy::{Leave, RULE_ADVICE, Says};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Args;
use super::environment::{Ground, bash, environment};
use super::helpers::{Helpers, Started};
use super::output::Output;
use super::private::secrets;
use super::protected;
use super::spill::Spill;
use super::touched::Touched;
use crate::rules;
use crate::shell::unwrapped;
use crate::tool::{Place, Progress, Run, Unasked};

/// The most that is read, and streamed, at once.
const READ_BYTES: usize = 16 * 1024;

/// Between the polite request to end and the other one. An interrupt is to be over in a second.
const STOP_GRACE: Duration = Duration::from_millis(300);

/// How much later than it should a helper may report before it is woken, and then again before it
/// is given up. Long, because whoever kills a helper may leave processes of its command behind.
const HELPER_PATIENCE: Duration = Duration::from_secs(15);

/// How long output is awaited that somebody holds back who could not be ended.
const DRAIN_PATIENCE: Duration = Duration::from_millis(500);

/// How much longer what keeps coming is read after that.
const DRAIN_MAX: Duration = Duration::from_secs(5);

const NO_SANDBOX: &str = "Not run: this server cannot run commands in a sandbox.";

pub(super) fn run(run: Run) -> impl Stream<Item = Progress> + Send + 'static {
    stream::unfold(State::New(Box::new(run)), step)
}

enum State {
    New(Box<Run>),
    Running(Box<Running>),
    Over,
}

async fn step(mut state: State) -> Option<(Progress, State)> {
    loop {
        state = match state {
            State::New(run) => match Running::start(*run).await {
                Ok(running) => State::Running(Box::new(running)),
                Err(progress) => return Some((progress, State::Over)),
            },
            State::Running(mut running) => match running.more().await {
                Some(text) => return Some((Progress::Output(text), State::Running(running))),
                None => return Some((running.end().await, State::Over)),
            },
            State::Over => return None,
        };
    }
}

struct Running {
    stdout: Option<Receiver>,
    report: Option<Receiver>,
    reported: Vec<u8>,
    output: Output,
    started: Instant,
    time_limit: Duration,
    /// When the helper is woken or given up; once it has reported, when its output is given up.
    deadline: Instant,
    woken: bool,
    stop: CancellationToken,
    touched: Option<Touched>,
    sandboxed: bool,
    /// Where output goes that the model will not be shown, once there is some.
    outputs: Option<PathBuf>,
    spill: Option<Spill>,
    helper: Started,
    /// Where it goes when it takes another job.
    helpers: Helpers,
}

impl Running {
    /// The error is the end of the call.
    async fn start(run: Run) -> Result<Running, Progress> {
        let started = Instant::now();
        let failed = |why: String| ended(End::Failed, None, Some(why), started);
        let safe = run.is_safe();
        let Run { args, place, sandboxed, unasked, stop } = run;
        let args = Args::parse(&args).map_err(|why| failed(why.to_string()))?;
        if sandboxed && !place.sandbox {
            return Err(failed(NO_SANDBOX.to_owned()));
        }
        if stop.is_cancelled() {
            return Err(ended(End::Interrupted, None, Some("Interrupted.".to_owned()), started));
        }
        let begun = tokio::task::spawn_blocking(move || -> Result<Running, String> {
            check_rules(&args, &place, unasked.as_ref())?;
            let job = job(&args, &place, safe, sandboxed)?;
            // What was judged safe changes nothing.
            let touched = (!safe).then(|| Touched::before(&args.script, &job.cwd, &place.cwd));
            let not_started = |error| format!("bash: could not be started: {error}");
            // From here, without waiting for the session's thread: the command starts meanwhile.
            let helpers = place.helper.clone();
            let (mut helper, stdout) = helpers.begin(&job, HELPER_PATIENCE).map_err(not_started)?;
            Ok(Running {
                stdout: Some(Receiver::from_owned_fd(stdout.into()).map_err(not_started)?),
                report: Some(helper.report().map_err(not_started)?),
                reported: Vec::new(),
                output: Output::default(),
                started,
                time_limit: job.time_limit,
                deadline: later(started, job.time_limit),
                woken: false,
                stop,
                touched,
                sandboxed,
                outputs: place.outputs.clone(),
                spill: None,
                helper,
                helpers,
            })
        });
        let broke = |_| failed("bash: broke; a fault of the server".to_owned());
        begun.await.map_err(broke)?.map_err(&failed)
    }

    /// The next output; none when there will be no more.
    async fn more(&mut self) -> Option<Text> {
        let mut buffer = vec![0; READ_BYTES];
        let mut report = [0; 1024];
        if self.report.is_none() {
            // The time in which nobody asked for more does not count.
            self.deadline = Instant::now() + DRAIN_PATIENCE;
        }
        while self.report.is_some() || self.stdout.is_some() {
            // In this order, so that a command that never stops printing can be stopped.
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if self.helper.has_control() => self.ask_to_stop(),
                read = read(&mut self.report, &mut report) => {
                    self.reported(report.get(..read).unwrap_or_default());
                }
                () = sleep_until(self.deadline), if self.report.is_some() => self.late(),
                read = read(&mut self.stdout, &mut buffer) => {
                    if read == 0 {
                        self.stdout = None;
                    } else if self.report.is_none() && Instant::now() > self.deadline + DRAIN_MAX {
                        // What was left behind prints for ever.
                        self.late();
                    }
                    let (text, fresh) = self.output.push(buffer.get(..read).unwrap_or_default());
                    self.spill(&fresh).await;
                    if !text.is_empty() {
                        return Some(text.into());
                    }
                }
                // What is there already counts, however late it is looked at.
                () = sleep_until(self.deadline) => self.late(),
            }
        }
        let (last, fresh) = self.output.finish()?;
        self.spill(&fresh).await;
        (!last.is_empty()).then(|| last.into())
    }

    /// Keeps what was printed, if it is more than the model is shown.
    async fn spill(&mut self, fresh: &str) {
        match &mut self.spill {
            Some(spill) => spill.push(fresh).await,
            None if self.output.is_long() => {
                // Once; what cannot be begun now cannot be begun later without a gap.
                if let Some(outputs) = self.outputs.take() {
                    self.spill = Spill::begin(&outputs, &self.output.kept()).await;
                }
            }
            None => {}
        }
    }

    fn ask_to_stop(&mut self) {
        self.helper.stop();
        self.deadline = Instant::now() + STOP_GRACE + HELPER_PATIENCE;
    }

    /// Takes a part of the report. When it is whole the tree has ended, and only what is in the
    /// output pipe is still to come.
    fn reported(&mut self, part: &[u8]) {
        self.reported.extend_from_slice(part);
        let is_whole = part.is_empty() || Outcome::is_whole(&self.reported);
        if is_whole || self.reported.len() > REPORT_BYTES_MAX {
            if let Some(report) = self.report.take().filter(|_| !part.is_empty()) {
                self.helper.take_back(report);
            }
            self.deadline = Instant::now() + DRAIN_PATIENCE;
        }
    }

    /// Nobody answers. The command may have frozen its helper, which is of the same user; if waking
    /// it does not help, it is killed, and the command with it.
    fn late(&mut self) {
        if self.report.is_some() && !self.woken {
            self.woken = true;
            self.helper.wake();
            self.deadline = Instant::now() + HELPER_PATIENCE;
            return;
        }
        if self.report.take().is_some() {
            self.helper.kill();
        }
        self.stdout = None;
    }

    async fn end(mut self) -> Progress {
        let stopped = !self.helper.has_control();
        let outcome = Outcome::decode(&self.reported);
        if outcome.takes_another() && !stopped {
            self.helpers.give_back(self.helper);
        } else {
            // One that has said all is about to end, and is reaped when it has.
            let is_whole = Outcome::is_whole(&self.reported);
            self.helper.stop();
            if !is_whole && !self.helper.ends_within(HELPER_PATIENCE).await {
                self.helper.kill();
            }
        }
        let looked_at = self.sandboxed && !stopped;
        let refused = looked_at.then(|| refusal(&outcome, &self.output.kept())).flatten();
        let never_ran = matches!(refused, Some(Refusal::NotSetUp(_)));
        let reason = refused.map(in_words);
        let (mut end, exit_code, mut note) = told(outcome, self.time_limit);
        if stopped && end == End::Failed {
            end = End::Interrupted;
        }
        // If it never ran, the note says so already.
        if let Some(reason) = reason.as_ref().filter(|_| !never_ran) {
            let note = note.get_or_insert_default();
            note.push_str(&format!(" It ran in a sandbox, which may be why: {reason}."));
        }
        let rest = match self.spill.take() {
            Some(spill) => spill.end(self.output.total_bytes()).await,
            None => None,
        };
        let seen = self.output.seen(note.as_deref(), rest.as_deref());
        let mut result = came_to(exit_code, seen, self.started);
        if let Some(touched) = self.touched.take() {
            let changes = tokio::task::spawn_blocking(move || touched.changes()).await;
            result.files = changes.unwrap_or_default();
        }
        match reason {
            Some(reason) => Progress::Stopped { reason: reason.into(), result },
            None => Progress::Ended { end, result },
        }
    }
}

/// Reads from a pipe that is open; waits for ever on one that is not. 0 is the end.
async fn read(pipe: &mut Option<impl tokio::io::AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

const NOT_ALLOWED_ANY_MORE: &str = "bash: not run: the rules of this server let it run unasked \
                                    when it was proposed, but the files have changed since; \
                                    propose it again";

const NOT_SAFE_ANY_MORE: &str = "bash: not run: when this was proposed it was harmless and \
                                 needed no approval, but the files have changed since; propose \
                                 it again";

/// What the rules say may have changed with the files. Blocks while it resolves paths; the error is
/// for the model.
fn check_rules(args: &Args, place: &Place, unasked: Option<&Unasked>) -> Result<(), String> {
    if place.rules.is_empty() {
        return Ok(());
    }
    let directory = args.directory(place)?;
    let scope = super::scope(&directory, place);
    let of_command = place.rules.of_command(&args.script, &scope, &directory, &place.cwd);
    let Some(rule) = rules::stricter(of_command, place.rules.of_tool("bash")) else {
        return match unasked.map(|unasked| &unasked.leave) {
            Some(Leave::Rule { .. }) => Err(NOT_ALLOWED_ANY_MORE.to_owned()),
            _ => Ok(()),
        };
    };
    match rule.says {
        Says::Deny => Err(format!("{RULE_ADVICE} {}", rule.line)),
        Says::Ask if unasked.is_some() => Err(NOT_ALLOWED_ANY_MORE.to_owned()),
        Says::Ask | Says::Allow => Ok(()),
    }
}

/// Blocks while it resolves paths; the error is for the model. What was judged safe, and so was
/// not asked about, must still be safe.
fn job(args: &Args, place: &Place, was_safe: bool, sandboxed: bool) -> Result<Job, String> {
    let cwd = args.directory(place)?;
    let inside = cwd.starts_with(&place.cwd);
    let scope = super::scope(&cwd, place);
    let safe = inside && scope.judge(&args.script).safe;
    if was_safe && !safe {
        return Err(NOT_SAFE_ANY_MORE.to_owned());
    }
    let (arguments, ground) = match safe {
        true => {
            let script = unwrapped(&args.script).unwrap_or_else(|| args.script.clone());
            let arguments = ["--noprofile", "--norc", "-c", &script].map(Into::into).to_vec();
            (arguments, Ground::Judged { path: scope.search_path() })
        }
        false => (bash_args(args.script.as_str().as_ref()), Ground::User),
    };
    let mut env = environment(std::env::vars_os(), ground);
    if sandboxed {
        env.retain(|(name, _)| name != "TMPDIR");
        env.push(("TMPDIR".into(), TEMPORARY_DIRECTORY.into()));
    }
    Ok(Job {
        program: bash(),
        args: arguments,
        cwd,
        env,
        time_limit: args.time_limit.unwrap_or(place.command_time_max).min(place.command_time_max),
        stop_grace: STOP_GRACE,
        confinement: if sandboxed {
            Confinement::Sandbox(Box::new(sandbox(place)))
        } else {
            Confinement::None
        },
    })
}

/// Blocks while it lists the directory.
fn sandbox(place: &Place) -> Sandbox {
    let mut sandbox = Sandbox::new(vec![place.cwd.clone()]);
    sandbox.read_only = protected::held(&place.cwd);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    sandbox.hidden = place.forbidden.to_vec();
    sandbox.hidden.extend(secrets(home.as_deref(), &place.cwd));
    sandbox.hidden.extend(place.rules.denied_paths(&place.cwd));
    sandbox
}

/// How it ended, for the log, and for the model where the output does not say so.
fn told(outcome: Outcome, time_limit: Duration) -> (End, Option<i32>, Option<String>) {
    let (end, exit_code, mut note) = match outcome.exit {
        Exit::Code(0) => (End::Whole, Some(0), None),
        Exit::Code(code) => (End::Whole, Some(code), Some(format!("Exit code {code}."))),
        Exit::Signal(signal) => {
            // As shells count it.
            (End::Whole, Some(128 + signal), Some(format!("Ended by signal {signal}.")))
        }
        Exit::TimedOut => {
            let limit = time_limit.as_millis();
            let note = format!("Ended after its time limit of {limit} ms; it was not finished.");
            (End::Failed, None, Some(note))
        }
        Exit::Stopped => (End::Interrupted, None, Some("Interrupted.".to_owned())),
        Exit::NotStarted(why) => {
            (End::Failed, None, Some(format!("The command could not be started: {why}")))
        }
        Exit::Lost(why) => {
            let why = if why.is_empty() { "whoever ran it was killed" } else { &why };
            let note = format!("How the command ended is not known: {why}");
            (End::Failed, None, Some(note))
        }
    };
    if outcome.left_behind > 0 {
        let note = note.get_or_insert_default();
        let count = outcome.left_behind;
        note.push_str(&format!(" {count} of its processes could not be ended."));
    }
    (end, exit_code, note)
}

/// What the sandbox did not let a command do, for people and for the model.
fn in_words(refusal: Refusal) -> String {
    match refusal {
        Refusal::NotSetUp(why) => format!("the sandbox could not be set up: {why}"),
        Refusal::Permission => "it tried to read or change what is closed to it there".to_owned(),
        Refusal::Network => "it needs the network, and there is none in the sandbox".to_owned(),
        Refusal::Limit => {
            "it came up against a limit of the sandbox, of memory, processes or file size"
                .to_owned()
        }
    }
}

fn ended(end: End, exit_code: Option<i32>, seen: Option<String>, started: Instant) -> Progress {
    Progress::Ended { end, result: came_to(exit_code, seen, started) }
}

fn came_to(exit_code: Option<i32>, seen: Option<String>, started: Instant) -> ToolResult {
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let seen = seen.map(Text::from);
    ToolResult { seen, exit_code, duration_ms, ..ToolResult::default() }
}

/// When a helper with this time limit should have reported. A limit beyond the end of time is no
/// limit, but still a time.
fn later(from: Instant, time_limit: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    from + time_limit.min(FAR) + STOP_GRACE + HELPER_PATIENCE
}
