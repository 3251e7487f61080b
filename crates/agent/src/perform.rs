//! Performs steps: asks a model, runs a tool. Each gives a stream of what comes of it, which ends
//! with a report; cancelling the step makes that report come soon.
//!
//! Never touches the log or the state. A performer that breaks reports a failure; it does not
//! take the session with it.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use polyloop_session::item::{End, ToolResult};
use polyloop_session::policy::{Effect, Judgement, Risk, Says};
use polyloop_session::{Answerable, CallId, ItemId, Report, SessionId, Stream, Text};

use crate::gate::{Behind, Gate, behind};
use crate::rules;
use crate::tool::{self, Place, Progress, Run, Tool, Touches};

mod ask;

pub use ask::{ANSWER_BLOCKS_MAX, Asked, ask};

/// Something that came of a step.
#[derive(Debug)]
pub enum Performed {
    /// More of a block of a model's answer.
    Grew {
        call: CallId,
        block: u32,
        stream: Stream,
        text: Text,
    },
    /// More of a tool's output.
    Output {
        item: ItemId,
        text: Text,
    },
    /// What the provider sent that has no event of its own.
    Raw {
        call: CallId,
        provider: Text,
        json: Text,
    },
    Report(Report),
    /// A tool is about to change files; it waits until its stream is asked for more.
    Touches {
        item: ItemId,
        touches: Touches,
    },
}

/// What a call would do. One that cannot be judged (no such tool, arguments that do not fit) never
/// runs: the model is told why.
pub async fn judge(name: &str, args: &str, place: &Place) -> Judgement {
    let judged = match tool::find(name) {
        Some(tool) => tool.judge(tool::given(args), place).await,
        None => Err(unknown_tool(name)),
    };
    ruled(name, judged.unwrap_or_else(|why| refused(name, why)), place)
}

/// With what the rules say of the tool.
pub(crate) fn ruled(name: &str, mut judgement: Judgement, place: &Place) -> Judgement {
    // Leave for a tool is none for what must be asked about wherever it comes from.
    let reaches_out = match judgement.effect {
        Effect::Edit => !judgement.confined,
        // A reading tool that would leave the working directory.
        Effect::Execute => name != "bash",
        Effect::Read | Effect::Network | Effect::Question | Effect::Plan => false,
    };
    let of_tool = place.rules.of_tool(name);
    // A batch is what its parts are.
    let must_ask = reaches_out || name == tool::batch::NAME;
    let of_tool = of_tool.filter(|rule| rule.says != Says::Allow || !must_ask);
    judgement.rule = rules::stricter(judgement.rule, of_tool);
    if name != tool::batch::NAME {
        let effect = judgement.effect;
        for key in &mut judgement.keys {
            key.what = in_folder(&key.what, effect, place);
        }
    }
    judgement
}

/// What is granted in one folder is not in another: the same words name other files there.
fn in_folder(what: &Text, effect: Effect, place: &Place) -> Text {
    match effect {
        Effect::Read | Effect::Edit | Effect::Execute => {
            let folder = place.cwd.to_string_lossy();
            format!("{what} in {folder:?}").into()
        }
        Effect::Network | Effect::Question | Effect::Plan => what.clone(),
    }
}

/// A call that never runs, and why.
fn refused(name: &str, why: Text) -> Judgement {
    Judgement {
        effect: Effect::Read,
        safe: false,
        confined: false,
        sandbox: false,
        refusal: Some(why.clone()),
        risk: Risk::Low,
        reason: why,
        command: vec![name.into()],
        patch: None,
        diff: None,
        plan_file: None,
        covers: "".into(),
        keys: Vec::new(),
        rule: None,
    }
}

fn unknown_tool(name: &str) -> Text {
    let known: Vec<&str> = tool::ALL.iter().map(|tool| tool.spec().name).collect();
    format!("There is no tool named {name}; the tools are {}", known.join(", ")).into()
}

pub struct Ran {
    pub item: ItemId,
    pub name: Text,
    pub run: Run,
    /// Where a command waits until it may begin, among those of all sessions.
    pub gate: Gate,
    pub session: SessionId,
    /// It ran before, in the sandbox, and what that gave has been shown.
    pub again: bool,
}

/// Stands between what the two runs printed.
const AGAIN_TEXT: &str = "[run again, outside the sandbox]\n";

pub fn run(ran: Ran) -> BoxStream<'static, Performed> {
    let Ran { item, name, mut run, gate, session, again } = ran;
    run.args = tool::given(&run.args).into();
    let Some(tool) = tool::find(&name) else {
        let report = failed_tool(item, unknown_tool(&name));
        return stream::once(std::future::ready(Performed::Report(report))).boxed();
    };
    if !tool.starts_processes(&run.args) {
        return begin(tool, item, run, again);
    }
    let interrupted = move || ended_tool(item, End::Interrupted, "Interrupted.".into());
    let waits = Behind {
        gate,
        session,
        delay: Duration::ZERO,
        stop: run.stop.clone(),
        stopped: Box::new(interrupted),
        full: Box::new(move |why| failed_tool(item, format!("{name}: not run: {why}").into())),
    };
    behind(waits, move |permit| {
        let held = move |performed| {
            // Let go of with the stream, at the process's end.
            let _held = &permit;
            performed
        };
        begin(tool, item, run, again).map(held).boxed()
    })
}

fn begin(
    tool: &'static dyn Tool,
    item: ItemId,
    run: Run,
    again: bool,
) -> BoxStream<'static, Performed> {
    let begin = || {
        let performed = tool.run(run).map(move |progress| match progress {
            Progress::Output(text) => Performed::Output { item, text },
            Progress::Ended { end, result } => {
                Performed::Report(Report::ToolEnded { item, end, result: Box::new(result) })
            }
            Progress::Touches(touches) => Performed::Touches { item, touches },
            Progress::Stopped { reason, result } => {
                let (result, answerable) = (Box::new(result), Answerable::default());
                Performed::Report(Report::ToolStopped { item, reason, result, answerable })
            }
        });
        performed.boxed()
    };
    let broken = move || failed_tool(item, "The tool broke; this is a fault of the server".into());
    let output = again.then(|| Performed::Output { item, text: AGAIN_TEXT.into() });
    stream::iter(output).chain(guarded(begin, broken)).boxed()
}

fn failed_tool(item: ItemId, why: Text) -> Report {
    ended_tool(item, End::Failed, why)
}

fn ended_tool(item: ItemId, end: End, why: Text) -> Report {
    let result = ToolResult { seen: Some(why), ..ToolResult::default() };
    Report::ToolEnded { item, end, result: Box::new(result) }
}

/// Lets through what a performer gives up to its final report, and makes one if it breaks or ends
/// without. It may break as soon as it is made.
fn guarded(
    begin: impl FnOnce() -> BoxStream<'static, Performed>,
    broken: impl Fn() -> Report + Send + Unpin + 'static,
) -> BoxStream<'static, Performed> {
    let begun = std::panic::catch_unwind(AssertUnwindSafe(begin));
    Guarded { performed: begun.ok(), broken: Some(broken) }.boxed()
}

struct Guarded<B> {
    /// Gone when it has broken.
    performed: Option<BoxStream<'static, Performed>>,
    /// Gone behind the final report.
    broken: Option<B>,
}

impl<B: Fn() -> Report + Unpin> stream::Stream for Guarded<B> {
    type Item = Performed;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Performed>> {
        let Guarded { performed, broken } = &mut *self;
        if broken.is_none() {
            return Poll::Ready(None);
        }
        let polled = performed.as_mut().map(|performed| {
            std::panic::catch_unwind(AssertUnwindSafe(|| performed.poll_next_unpin(cx)))
        });
        let next = match polled {
            Some(Ok(Poll::Pending)) => return Poll::Pending,
            Some(Ok(Poll::Ready(next))) => next,
            Some(Err(_)) | None => None,
        };
        if next.as_ref().is_none_or(is_final) {
            // What comes behind it is nobody's.
            *performed = None;
            let broken = broken.take();
            if next.is_none() {
                tracing::error!("a performer broke or ended without a report");
                return Poll::Ready(broken.map(|broken| Performed::Report(broken())));
            }
        }
        Poll::Ready(next)
    }
}

fn is_final(performed: &Performed) -> bool {
    matches!(
        performed,
        Performed::Report(
            Report::Answered { .. }
                | Report::CallFailed { .. }
                | Report::CallStopped { .. }
                | Report::ToolEnded { .. }
                | Report::ToolStopped { .. }
        )
    )
}
