//! Asks a model and turns its chunks into reports.
//!
//! Here an answer is held to what a session can rely on: a call that did not come whole is never
//! proposed, ids of calls are unique in the conversation, nothing is endless, and an answer that
//! says nothing is a failure.

use std::any::Any;
use std::collections::{HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use polyloop_session::event::Level;
use polyloop_session::history::{AssistantPart, Message, Prompt};
use polyloop_session::item::{ItemKind, Opaque, Usage};
use polyloop_session::policy::{Effect, Judgement};
use polyloop_session::{
    Answerable, CallId, Chance, Heal, Proposal, Report, SessionId, Stream, Text,
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::{Performed, guarded, judge, refused};
use crate::gate::{Behind, Gate, Permit, behind};
use crate::model::{CUT_CODE, CUT_TEXT, Chunk, Failure, Model, Request, Stop};
use crate::tool::{self, Place, ToolList, Words};

/// Texts, pieces of reasoning and tool calls in one answer.
pub const ANSWER_BLOCKS_MAX: usize = 1_024;

/// Chunks of one text that are made one, if they come together.
const CHUNKS_TOGETHER_MAX: usize = 256;
/// Whoever sends them faster than this sends them together.
const TOGETHER_TIME_MAX: Duration = Duration::from_millis(1);
/// Providers take back no longer ones.
const CALL_REF_BYTES_MAX: usize = 64;
const TOOL_NAME_CHARS_MAX: usize = 64;
/// What some models put before the names of tools.
const NAMESPACE: &str = "functions.";
/// A call that names nothing.
const NAMELESS: &str = "unnamed";

/// The server itself has no room for the call.
const OVERLOADED_CODE: &str = "overloaded";

const CUT_OFF_TEXT: &str = "The tool call was cut off, not run: the answer reached the model's \
                            limit of output before the call was whole. Send it again, in smaller \
                            pieces.";

pub struct Asked {
    pub call: CallId,
    /// How long to wait first.
    pub delay: Duration,
    pub prompt: Prompt,
    pub instructions: Words,
    pub tools: ToolList,
    pub place: Arc<Place>,
    pub stop: CancellationToken,
    /// Where it waits until it may begin, among the calls of all sessions.
    pub gate: Gate,
    pub session: SessionId,
}

struct Asking {
    call: CallId,
    model: Arc<dyn Model>,
    /// Given back with the rest.
    _permit: Permit,
    chunks: BoxStream<'static, Chunk>,
    /// What was read already, and belongs to something else than what came before it.
    next_chunk: Option<Option<Chunk>>,
    /// The model client broke behind what it gave.
    broke: Option<Box<dyn Any + Send>>,
    /// When the last chunk came.
    came_at: Option<Instant>,
    place: Arc<Place>,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    /// What providers call the tool calls of this conversation.
    refs: HashSet<Text>,
    blocks: Vec<Block>,
    usage: Option<Usage>,
    pending: VecDeque<Performed>,
    over: bool,
}

struct Block {
    number: u32,
    kind: ItemKind,
    args: String,
    /// Something other than blanks was said.
    said: bool,
    ended: bool,
    opaque: Option<Opaque>,
}

pub fn ask(model: Arc<dyn Model>, asked: Asked) -> BoxStream<'static, Performed> {
    let (call, stop) = (asked.call, asked.stop.clone());
    let full = move |why: String| {
        failed(call, Failure::new(Heal::Later { after_ms: None }, OVERLOADED_CODE, why), None)
    };
    let waits = Behind {
        gate: asked.gate.clone(),
        session: asked.session.clone(),
        delay: asked.delay,
        stop,
        stopped: Box::new(move || Report::CallStopped { call }),
        full: Box::new(full),
    };
    behind(waits, move |permit| begin(model, asked, permit))
}

fn begin(model: Arc<dyn Model>, asked: Asked, permit: Permit) -> BoxStream<'static, Performed> {
    let Asked { call, prompt, instructions, tools, place, stop, .. } = asked;
    let begin = || {
        let refs = refs(&prompt);
        let chunks = model.ask(Request { prompt, instructions, tools });
        let asking = Asking {
            call,
            model,
            _permit: permit,
            chunks,
            next_chunk: None,
            broke: None,
            came_at: None,
            place,
            stopped: Box::pin(stop.cancelled_owned()),
            refs,
            blocks: Vec::new(),
            usage: None,
            pending: VecDeque::new(),
            over: false,
        };
        let performed = stream::unfold(asking, |mut asking| async move {
            if let Some(performed) = asking.pending.pop_front() {
                return Some((Some(performed), asking));
            }
            if asking.over {
                return None;
            }
            let performed = asking.next().await;
            Some((performed, asking))
        });
        performed.filter_map(std::future::ready).boxed()
    };
    guarded(begin, move || {
        failed(
            call,
            Failure::new(
                Heal::Never,
                "internal",
                "The model client broke; this is a fault of the server",
            ),
            None,
        )
    })
}

/// The next chunk if it is there; where they come fast, or if it is as soon as everybody else on
/// this thread has had a turn.
async fn soon(
    chunks: &mut BoxStream<'static, Chunk>,
    fast: bool,
) -> Result<Option<Option<Chunk>>, Box<dyn Any + Send>> {
    let mut waited = !fast;
    let polled = std::future::poll_fn(|cx| match chunks.poll_next_unpin(cx) {
        Poll::Ready(chunk) => Poll::Ready(Some(chunk)),
        Poll::Pending if waited => Poll::Ready(None),
        Poll::Pending => {
            waited = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    });
    AssertUnwindSafe(polled).catch_unwind().await
}

/// The names that calls have already.
fn refs(prompt: &Prompt) -> HashSet<Text> {
    let parts = prompt.messages.iter().flat_map(|message| match message {
        Message::Assistant(parts) => parts.as_slice(),
        Message::User(_) | Message::ToolResult { .. } => &[],
    });
    let calls = parts.filter_map(|part| match part {
        AssistantPart::ToolCall { call_ref, .. } => Some(call_ref.clone()),
        AssistantPart::Text { .. } | AssistantPart::Reasoning { .. } => None,
    });
    calls.collect()
}

fn failed(call: CallId, failure: Failure, usage: Option<Usage>) -> Report {
    let Failure { fault, heal } = failure;
    // Chance is the actor's to give.
    Report::CallFailed { call, fault, heal, chance: Chance::default(), usage }
}

impl Asking {
    async fn next(&mut self) -> Option<Performed> {
        if let Some(panic) = self.broke.take() {
            std::panic::resume_unwind(panic);
        }
        let chunk = match self.next_chunk.take() {
            Some(chunk) => chunk,
            None => tokio::select! {
                biased;
                () = &mut self.stopped => {
                    self.over = true;
                    return Some(Performed::Report(Report::CallStopped { call: self.call }));
                }
                chunk = self.chunks.next() => chunk,
            },
        };
        let call = self.call;
        match chunk {
            Some(Chunk::Started { block, kind }) => self.started(block, kind),
            Some(Chunk::Text { block, text }) => {
                let text = self.with_more(Stream::Text, block, text).await;
                let open = self.block(block)?;
                open.said |= !text.trim().is_empty();
                Some(Performed::Grew { call, block, stream: Stream::Text, text })
            }
            Some(Chunk::Args { block, text }) => {
                let text = self.with_more(Stream::Args, block, text).await;
                let open = self.block(block)?;
                open.args.push_str(&text);
                Some(Performed::Grew { call, block, stream: Stream::Args, text })
            }
            Some(Chunk::Ended { block, opaque }) => {
                let open = self.block(block)?;
                open.ended = true;
                if matches!(open.kind, ItemKind::ToolCall { .. }) {
                    open.opaque = opaque;
                    return None;
                }
                Some(Performed::Report(Report::BlockEnded { call, block, opaque }))
            }
            Some(Chunk::Raw { provider, json }) => Some(Performed::Raw { call, provider, json }),
            Some(Chunk::Usage(usage)) => {
                self.usage = Some(usage);
                None
            }
            Some(Chunk::Done(stop)) => self.done(stop).await,
            Some(Chunk::Failed(failure)) => self.failed(failure),
            None => {
                let later = Heal::Later { after_ms: None };
                self.failed(Failure::new(later, CUT_CODE, CUT_TEXT))
            }
        }
    }

    /// A text with what is there behind it of the same block, so that what came together goes on
    /// together. Where chunks come one by one nobody waits for more.
    async fn with_more(&mut self, stream: Stream, block: u32, text: Text) -> Text {
        let (now, before) = (Instant::now(), self.came_at);
        self.came_at = Some(now);
        if before.is_none() {
            // The first words wait for nothing.
            return text;
        }
        let fast = before.is_some_and(|before| now.duration_since(before) <= TOGETHER_TIME_MAX);
        let mut joined: Option<String> = None;
        for _ in 0..CHUNKS_TOGETHER_MAX {
            let next = match soon(&mut self.chunks, fast).await {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(panic) => {
                    // What came before it is not lost.
                    self.broke = Some(panic);
                    break;
                }
            };
            let more = match (stream, &next) {
                (Stream::Text, Some(Chunk::Text { block: of, text })) if *of == block => text,
                (Stream::Args, Some(Chunk::Args { block: of, text })) if *of == block => text,
                _ => {
                    self.next_chunk = Some(next);
                    break;
                }
            };
            joined.get_or_insert_with(|| String::from(&*text)).push_str(more);
        }
        joined.map_or(text, Text::from)
    }

    fn started(&mut self, block: u32, mut kind: ItemKind) -> Option<Performed> {
        if self.blocks.len() >= ANSWER_BLOCKS_MAX {
            let message = format!("The model's answer has more than {ANSWER_BLOCKS_MAX} pieces");
            return self.failed(Failure::new(Heal::Never, "answer_too_long", message));
        }
        let call = self.call;
        if let ItemKind::ToolCall { name, call_ref, .. } = &mut kind {
            // Some servers give none, or the same ones with each answer.
            let usable = !call_ref.is_empty() && call_ref.len() <= CALL_REF_BYTES_MAX;
            if !usable || self.refs.contains(call_ref) {
                *call_ref = format!("call_{}_{block}", call.0.0).into();
            }
            self.refs.insert(call_ref.clone());
            if let Some(tame) = tame_name(name) {
                *name = tame;
            }
        }
        let (args, said, ended, opaque) = (String::new(), false, false, None);
        self.blocks.push(Block { number: block, kind: kind.clone(), args, said, ended, opaque });
        Some(Performed::Report(Report::BlockStarted { call, block, kind }))
    }

    fn block(&mut self, number: u32) -> Option<&mut Block> {
        self.blocks.iter_mut().find(|block| block.number == number)
    }

    fn failed(&mut self, failure: Failure) -> Option<Performed> {
        self.over = true;
        Some(Performed::Report(failed(self.call, failure, self.priced())))
    }

    async fn done(&mut self, stop: Stop) -> Option<Performed> {
        let calls = |block: &Block| matches!(block.kind, ItemKind::ToolCall { .. });
        let says = |block: &Block| matches!(block.kind, ItemKind::Text) && block.said;
        if !self.blocks.iter().any(|block| calls(block) || says(block)) {
            return match stop {
                Stop::End => self.failed(Failure::new(
                    Heal::Once,
                    "empty_answer",
                    "The model gave an empty answer",
                )),
                Stop::Length => self.failed(Failure::new(
                    Heal::Never,
                    "length",
                    "The model reached its limit of output before it had said anything",
                )),
            };
        }
        self.over = true;
        let answered = Performed::Report(self.answered(stop).await);
        match stop {
            Stop::End => Some(answered),
            Stop::Length => {
                self.pending.push_back(answered);
                let text = "The answer reached the model's limit of output and ends there".into();
                let (level, code) = (Level::Warning, "length".into());
                Some(Performed::Report(Report::Noticed { level, code, text }))
            }
        }
    }

    /// What the call cost, with its price where that is known.
    fn priced(&self) -> Option<Usage> {
        let mut usage = self.usage?;
        let price = self.model.card().price;
        usage.cost_micros = price.map(|price| price.cost_micros(&usage));
        Some(usage)
    }

    /// Judges the calls that came whole; one that did not is never proposed.
    async fn answered(&mut self, stop: Stop) -> Report {
        let mut proposals = Vec::new();
        for block in self.blocks.iter_mut().filter(|block| block.ended) {
            let ItemKind::ToolCall { name, .. } = &block.kind else { continue };
            let args: Text = block.args.as_str().into();
            let judgement = match stop {
                Stop::End => judged(name, &args, &self.place).await,
                Stop::Length => refused(name, CUT_OFF_TEXT.into()),
            };
            let (judgement, opaque) = (Box::new(judgement), block.opaque.take());
            proposals.push(Proposal { block: block.number, args, judgement, opaque });
        }
        let usage = self.priced();
        // Whether anyone can answer is for the actor to say, who knows the clients.
        let (call, answerable) = (self.call, Answerable::default());
        Report::Answered { call, usage, proposals, answerable }
    }
}

/// A name that no provider would take back, as one that it does: the call is refused all the same,
/// but the conversation goes on. `None` for those that are fine.
fn tame_name(name: &str) -> Option<Text> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= TOOL_NAME_CHARS_MAX && name.chars().all(fits) {
        return None;
    }
    let bare = name.strip_prefix(NAMESPACE).unwrap_or(name);
    let tame = bare.chars().take(TOOL_NAME_CHARS_MAX);
    let tame: String = tame.map(|c| if fits(c) { c } else { '_' }).collect();
    Some(if tame.is_empty() { NAMELESS.into() } else { tame.into() })
}

async fn judged(name: &str, args: &Text, place: &Place) -> Judgement {
    let mut judgement = judge(name, args, place).await;
    if judgement.effect == Effect::Plan && judgement.refusal.is_none() {
        judgement.plan_file = tool::exit_plan_mode::keep(args, place).await;
    }
    judgement
}
