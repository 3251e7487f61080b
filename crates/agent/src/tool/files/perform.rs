//! How a call is judged and run: off the async threads, stopped soon if it reads, and never
//! stopped half-way if it writes.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use polyloop_session::Text;
use polyloop_session::item::{End, FileChange, ToolResult};
use polyloop_session::policy::{Effect, Judgement};
use polyloop_session::todos::Todo;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Args;
use crate::tool::apply_patch::ApplyPatch;
use crate::tool::bash::refused;
use crate::tool::touches::{Notes, Recorded, Touches};
use crate::tool::{Place, Progress, Run, Tool as _};

/// How long a call may read.
const LOOK_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a call that was told to stop may take to say what it has.
const STOP_TIME_MAX: Duration = Duration::from_millis(500);

/// What came of a call that could be done.
#[derive(Default)]
pub(crate) struct Done {
    pub text: String,
    pub files: Vec<FileChange>,
    /// Why it ended before all was done, where a part cannot be undone.
    pub failure: Option<String>,
    /// What is open of the todos, where it is about them.
    pub todos: Option<Text>,
    /// The whole list, where it was written.
    pub todo_list: Option<Vec<Todo>>,
}

impl Done {
    pub(crate) fn text(text: impl Into<String>) -> Done {
        Done { text: text.into(), ..Done::default() }
    }
}

/// Tells a call that reads when to end.
pub(crate) struct Watch {
    stop: CancellationToken,
    deadline: Instant,
}

impl Watch {
    pub(crate) fn is_over(&self) -> bool {
        self.stop.is_cancelled() || Instant::now() >= self.deadline
    }

    /// Why, for the end of a text, if it is.
    pub(crate) fn why_over(&self) -> Option<String> {
        if self.stop.is_cancelled() {
            return Some("Interrupted.".to_owned());
        }
        let seconds = LOOK_TIME_MAX.as_secs();
        (Instant::now() >= self.deadline)
            .then(|| format!("(stopped after {seconds} seconds; narrow `path` or the pattern)"))
    }
}

/// Judges off the async threads what a call was given; `Err` of `judge` is a refusal, because it
/// depends on the files.
pub(crate) fn judge_blocking<'a, W: Send + 'static>(
    name: &'static str,
    effect: Effect,
    wanted: Result<W, Text>,
    place: &'a Place,
    judge: impl FnOnce(&W, &Place) -> Result<Judgement, String> + Send + 'static,
) -> BoxFuture<'a, Result<Judgement, Text>> {
    let place = place.clone();
    async move {
        let wanted = wanted?;
        let judged = tokio::task::spawn_blocking(move || judge(&wanted, &place)).await;
        let judged = judged.unwrap_or_else(|_| {
            Err("could not be judged; this is a fault of the server".to_owned())
        });
        Ok(judged.unwrap_or_else(|why| refused(effect, name, &format!("{name}: {why}"))))
    }
    .boxed()
}

/// Runs a call that reads.
pub(crate) fn look(
    name: &'static str,
    run: Run,
    work: impl FnOnce(&Run, &Watch) -> Result<Done, String> + Send + 'static,
) -> BoxStream<'static, Progress> {
    let looked = async move {
        let started = Instant::now();
        let stop = run.stop.clone();
        if stop.is_cancelled() {
            return interrupted(String::new(), started);
        }
        let watch = Watch { stop: stop.clone(), deadline: started + LOOK_TIME_MAX };
        let working = tokio::task::spawn_blocking(move || work(&run, &watch));
        // A file system that does not answer must not keep the session waiting.
        let given_up = async {
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(LOOK_TIME_MAX) => {}
            }
            tokio::time::sleep(STOP_TIME_MAX).await;
        };
        let worked = tokio::select! {
            worked = working => worked,
            () = given_up => {
                return match stop.is_cancelled() {
                    true => interrupted(String::new(), started),
                    false => failed(name, "the file system does not answer", started),
                };
            }
        };
        match worked {
            Ok(Ok(done)) if stop.is_cancelled() => interrupted(done.text, started),
            Ok(Ok(done)) => ended(done, started),
            Ok(Err(_)) if stop.is_cancelled() => interrupted(String::new(), started),
            Ok(Err(why)) => failed(name, &why, started),
            Err(_) => failed(name, "broke; this is a fault of the server", started),
        }
    };
    stream::once(looked).map(stream::iter).flatten().boxed()
}

/// Runs a call that writes. It says what it is about to touch, and touches nothing before that is
/// recorded.
pub(crate) fn edit<W>(
    name: &'static str,
    run: Run,
    parse: impl FnOnce(&str) -> Result<W, Text> + Send + 'static,
    work: impl FnOnce(&W, &Run, &Notes) -> Result<Done, String> + Send + 'static,
) -> BoxStream<'static, Progress> {
    if Args::parse(name, &run.args).is_ok_and(|args| args.is_patch()) {
        return ApplyPatch.run(run);
    }
    noted(name, run, move |run, notes| {
        let wanted = parse(&run.args).map_err(|why| why.to_string());
        let done = wanted.and_then(|wanted| work(&wanted, run, notes));
        done.map_err(|why| prefixed(name, &why))
    })
}

/// The same, for work that names itself in its errors.
pub(crate) fn noted(
    name: &'static str,
    run: Run,
    work: impl FnOnce(&Run, &Notes) -> Result<Done, String> + Send + 'static,
) -> BoxStream<'static, Progress> {
    let begun = async move {
        let started = Instant::now();
        if run.stop.is_cancelled() {
            return stream::iter(interrupted(String::new(), started)).boxed();
        }
        let (sender, receiver) = mpsc::channel(1);
        // From here on it is not stopped: all or nothing.
        let worked = tokio::task::spawn_blocking(move || work(&run, &Notes { sender }));
        let ended = async move {
            let progress = match worked.await {
                Ok(Ok(Done { failure: Some(why), files, .. })) => {
                    let seen = format!("{name}: {why}");
                    vec![end(End::Failed, Some(seen.into()), files, started)]
                }
                Ok(Ok(done)) => ended(done, started),
                Ok(Err(why)) => vec![end(End::Failed, Some(why.into()), Vec::new(), started)],
                Err(_) => failed(name, "broke; this is a fault of the server", started),
            };
            stream::iter(progress)
        };
        // The notes end when the work does.
        told(receiver).chain(stream::once(ended).flatten()).boxed()
    };
    stream::once(begun).flatten().boxed()
}

/// What is to be recorded, each answered when the next is asked for.
fn told(receiver: mpsc::Receiver<(Touches, Recorded)>) -> impl Stream<Item = Progress> + Send {
    stream::unfold((receiver, None), |(mut receiver, recorded)| async move {
        if let Some(recorded) = recorded {
            // The work may have broken meanwhile.
            let _: Result<(), ()> = Recorded::send(recorded, ());
        }
        let (touches, recorded) = receiver.recv().await?;
        Some((Progress::Touches(touches), (receiver, Some(recorded))))
    })
}

/// Runs a call whose work is done elsewhere. `unsure` is what is told of work that was begun and
/// not waited for.
pub(crate) fn wait(
    name: &'static str,
    stop: CancellationToken,
    unsure: &'static str,
    work: impl Future<Output = Result<Done, String>> + Send + 'static,
) -> BoxStream<'static, Progress> {
    let waited = async move {
        let started = Instant::now();
        if stop.is_cancelled() {
            return interrupted(String::new(), started);
        }
        let given_up = async {
            let _ = tokio::time::timeout(LOOK_TIME_MAX, stop.cancelled()).await;
            tokio::time::sleep(STOP_TIME_MAX).await;
        };
        tokio::select! {
            worked = work => match worked {
                Ok(done) => ended(done, started),
                Err(why) => failed(name, &why, started),
            },
            () = given_up => match stop.is_cancelled() {
                true => interrupted(unsure.to_owned(), started),
                false => failed(name, &format!("there is no answer. {unsure}"), started),
            },
        }
    };
    stream::once(waited).map(stream::iter).flatten().boxed()
}

fn ended(done: Done, started: Instant) -> Vec<Progress> {
    let mut progress = Vec::with_capacity(2);
    if !done.text.is_empty() {
        progress.push(Progress::Output(done.text.into()));
    }
    let mut end = end(End::Whole, None, done.files, started);
    if let Progress::Ended { result, .. } = &mut end {
        result.todos = done.todos;
        result.todo_list = done.todo_list;
    }
    progress.push(end);
    progress
}

fn interrupted(text: String, started: Instant) -> Vec<Progress> {
    let seen = match text.as_str() {
        "" => "Interrupted.".to_owned(),
        text if text.ends_with("Interrupted.\n") => text.to_owned(),
        text => format!("{text}Interrupted."),
    };
    let mut progress = Vec::with_capacity(2);
    if !text.is_empty() {
        progress.push(Progress::Output(text.into()));
    }
    progress.push(end(End::Interrupted, Some(seen.into()), Vec::new(), started));
    progress
}

/// `why` says nothing of the tool, unless it is about the arguments and names it already.
fn failed(name: &str, why: &str, started: Instant) -> Vec<Progress> {
    vec![end(End::Failed, Some(prefixed(name, why).into()), Vec::new(), started)]
}

fn prefixed(name: &str, why: &str) -> String {
    let prefix = format!("{name}: ");
    match why.starts_with(&prefix) {
        true => why.to_owned(),
        false => format!("{prefix}{why}"),
    }
}

fn end(end: End, seen: Option<Text>, files: Vec<FileChange>, started: Instant) -> Progress {
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let result = ToolResult { seen, duration_ms, files, ..ToolResult::default() };
    Progress::Ended { end, result }
}
