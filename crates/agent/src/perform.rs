//! Performs steps: asks a model, runs a tool. Each gives a stream of what comes of it, which ends
//! with a report; cancelling the step makes that report come soon.
//!
//! Never touches the log or the state. A performer that breaks reports a failure; it does not
//! take the session with it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use polyloop_session::history::Prompt;
use polyloop_session::item::{End, Fault, ItemKind, ToolResult, Usage};
use polyloop_session::policy::{Effect, Judgement, Risk};
use polyloop_session::{Answerable, CallId, ItemId, Proposal, Report, Stream, Text};
use tokio_util::sync::CancellationToken;

use crate::model::{Chunk, Model, Request};
use crate::tool::{self, Place, Progress, Run, ToolSpec};

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
}

pub struct Asked {
    pub call: CallId,
    pub prompt: Prompt,
    pub instructions: Text,
    pub tools: Arc<[ToolSpec]>,
    pub place: Arc<Place>,
    pub stop: CancellationToken,
}

struct Asking {
    call: CallId,
    chunks: BoxStream<'static, Chunk>,
    place: Arc<Place>,
    stop: CancellationToken,
    blocks: Vec<Block>,
    usage: Option<Usage>,
    over: bool,
}

struct Block {
    number: u32,
    kind: ItemKind,
    args: String,
    ended: bool,
}

pub fn ask(model: &dyn Model, asked: Asked) -> BoxStream<'static, Performed> {
    let Asked { call, prompt, instructions, tools, place, stop } = asked;
    let begin = || {
        let chunks = model.ask(Request { prompt, instructions, tools });
        let (blocks, usage, over) = (Vec::new(), None, false);
        let asking = Asking { call, chunks, place, stop, blocks, usage, over };
        let performed = stream::unfold(asking, |mut asking| async move {
            if asking.over {
                return None;
            }
            let performed = asking.next().await;
            Some((performed, asking))
        });
        performed.filter_map(std::future::ready).boxed()
    };
    guarded(begin, move || {
        let fault = Fault::new("internal", "The model client broke; this is a fault of the server");
        Report::CallFailed { call, fault }
    })
}

impl Asking {
    async fn next(&mut self) -> Option<Performed> {
        let chunk = tokio::select! {
            biased;
            () = self.stop.cancelled() => {
                self.over = true;
                return Some(Performed::Report(Report::CallStopped { call: self.call }));
            }
            chunk = self.chunks.next() => chunk,
        };
        let call = self.call;
        match chunk {
            Some(Chunk::Started { block, kind }) => {
                let args = String::new();
                self.blocks.push(Block { number: block, kind: kind.clone(), args, ended: false });
                Some(Performed::Report(Report::BlockStarted { call, block, kind }))
            }
            Some(Chunk::Text { block, text }) => {
                Some(Performed::Grew { call, block, stream: Stream::Text, text })
            }
            Some(Chunk::Args { block, text }) => {
                self.block(block)?.args.push_str(&text);
                Some(Performed::Grew { call, block, stream: Stream::Args, text })
            }
            Some(Chunk::Ended { block, opaque }) => {
                let open = self.block(block)?;
                open.ended = true;
                let is_tool = matches!(open.kind, ItemKind::ToolCall { .. });
                let ended = Report::BlockEnded { call, block, opaque };
                (!is_tool).then_some(Performed::Report(ended))
            }
            Some(Chunk::Raw { provider, json }) => Some(Performed::Raw { call, provider, json }),
            Some(Chunk::Usage(usage)) => {
                self.usage = Some(usage);
                None
            }
            Some(Chunk::Done) => {
                self.over = true;
                Some(Performed::Report(self.answered().await))
            }
            Some(Chunk::Failed(fault)) => self.failed(fault),
            None => self.failed(Fault::new(
                "stream_cut",
                "The model's answer broke off before its end; try again",
            )),
        }
    }

    fn block(&mut self, number: u32) -> Option<&mut Block> {
        self.blocks.iter_mut().find(|block| block.number == number)
    }

    fn failed(&mut self, fault: Fault) -> Option<Performed> {
        self.over = true;
        Some(Performed::Report(Report::CallFailed { call: self.call, fault }))
    }

    /// Judges the calls that came whole; one that did not is never proposed.
    async fn answered(&mut self) -> Report {
        let mut proposals = Vec::new();
        for block in self.blocks.iter().filter(|block| block.ended) {
            let ItemKind::ToolCall { name, .. } = &block.kind else { continue };
            let args: Text = block.args.as_str().into();
            let mut judgement = judge(name, &args, &self.place).await;
            if judgement.effect == Effect::Plan && judgement.refusal.is_none() {
                judgement.plan_file = tool::exit_plan_mode::keep(&args, &self.place).await;
            }
            let judgement = Box::new(judgement);
            proposals.push(Proposal { block: block.number, args, judgement });
        }
        // Whether anyone can answer is for the actor to say, who knows the clients.
        let (call, usage) = (self.call, self.usage);
        Report::Answered { call, usage, proposals, answerable: Answerable::default() }
    }
}

/// What a call would do. One that cannot be judged (no such tool, arguments that do not fit) never
/// runs: the model is told why.
pub async fn judge(name: &str, args: &str, place: &Place) -> Judgement {
    let judged = match tool::find(name) {
        Some(tool) => tool.judge(tool::given(args), place).await,
        None => Err(unknown_tool(name)),
    };
    judged.unwrap_or_else(|why| Judgement {
        effect: Effect::Read,
        safe: false,
        confined: false,
        sandbox: false,
        refusal: Some(why.clone()),
        risk: Risk::Low,
        reason: why,
        command: vec![name.into()],
        patch: None,
        plan_file: None,
        covers: "".into(),
        keys: Vec::new(),
    })
}

fn unknown_tool(name: &str) -> Text {
    let known: Vec<&str> = tool::ALL.iter().map(|tool| tool.spec().name).collect();
    format!("There is no tool named {name}; the tools are {}", known.join(", ")).into()
}

pub struct Ran {
    pub item: ItemId,
    pub name: Text,
    pub run: Run,
}

pub fn run(ran: Ran) -> BoxStream<'static, Performed> {
    let Ran { item, name, mut run } = ran;
    run.args = tool::given(&run.args).into();
    let Some(tool) = tool::find(&name) else {
        let report = failed_tool(item, unknown_tool(&name));
        return stream::once(std::future::ready(Performed::Report(report))).boxed();
    };
    let begin = || {
        let performed = tool.run(run).map(move |progress| match progress {
            Progress::Output(text) => Performed::Output { item, text },
            Progress::Ended { end, result } => {
                Performed::Report(Report::ToolEnded { item, end, result: Box::new(result) })
            }
        });
        performed.boxed()
    };
    guarded(begin, move || {
        failed_tool(item, "The tool broke; this is a fault of the server".into())
    })
}

fn failed_tool(item: ItemId, why: Text) -> Report {
    let result = ToolResult { seen: Some(why), ..ToolResult::default() };
    Report::ToolEnded { item, end: End::Failed, result: Box::new(result) }
}

/// Lets through what a performer gives up to its final report, and makes one if it breaks or ends
/// without. It may break as soon as it is made.
fn guarded(
    begin: impl FnOnce() -> BoxStream<'static, Performed>,
    broken: impl Fn() -> Report + Send + 'static,
) -> BoxStream<'static, Performed> {
    let begun = std::panic::catch_unwind(AssertUnwindSafe(begin));
    let performed = begun.unwrap_or_else(|_| stream::empty().boxed());
    let guarded = AssertUnwindSafe(performed).catch_unwind().boxed();
    stream::unfold(Some((guarded, broken)), |state| async move {
        let (mut guarded, broken) = state?;
        match guarded.next().await {
            Some(Ok(performed)) if is_final(&performed) => Some((performed, None)),
            Some(Ok(performed)) => Some((performed, Some((guarded, broken)))),
            Some(Err(_)) | None => {
                tracing::error!("a performer broke or ended without a report");
                Some((Performed::Report(broken()), None))
            }
        }
    })
    .boxed()
}

fn is_final(performed: &Performed) -> bool {
    matches!(
        performed,
        Performed::Report(
            Report::Answered { .. }
                | Report::CallFailed { .. }
                | Report::CallStopped { .. }
                | Report::ToolEnded { .. }
        )
    )
}
