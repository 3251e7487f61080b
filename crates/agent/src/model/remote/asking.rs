//! One answer, as its asker polls it: the request on its way, then what comes of it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::Stream;
use polyloop_session::Heal;
use tokio::time::{Instant, Sleep};

use super::Endpoint;
use crate::model::api::Decode;
use crate::model::lane::{Body, More};
use crate::model::sse::{Event, Parser};
use crate::model::{Chunk, Failure, http};

/// Of all text, reasoning and arguments of one answer.
pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

pub(super) struct Asking {
    endpoint: Arc<Endpoint>,
    stage: Stage,
    ready: Ready,
    bytes: usize,
}

/// What was read and not asked for yet. What came together of one text is one chunk.
#[derive(Default)]
struct Ready {
    chunks: VecDeque<Chunk>,
    /// What the last of them grows to.
    joined: Option<String>,
}

impl Ready {
    fn push(&mut self, chunk: Chunk) {
        let before = match (self.chunks.back(), &chunk) {
            (Some(Chunk::Text { block, text }), Chunk::Text { block: of, text: more })
            | (Some(Chunk::Args { block, text }), Chunk::Args { block: of, text: more })
                if block == of =>
            {
                Some((text, more))
            }
            _ => None,
        };
        if let Some((text, more)) = before {
            self.joined.get_or_insert_with(|| String::from(&**text)).push_str(more);
            return;
        }
        self.settle();
        self.chunks.push_back(chunk);
    }

    /// Nothing more is known to belong to the last one.
    fn settle(&mut self) {
        if let (Some(joined), Some(Chunk::Text { text, .. } | Chunk::Args { text, .. })) =
            (self.joined.take(), self.chunks.back_mut())
        {
            *text = joined.into();
        }
    }
}

type Sending = BoxFuture<'static, Result<Body, Failure>>;

enum Stage {
    /// The provider has not begun to answer.
    Sending(Sending),
    Reading(Box<Reading>),
    Over,
}

struct Reading {
    body: Body,
    silence: Silence,
    intake: Intake,
    /// Nothing more comes.
    ended: bool,
}

impl Reading {
    fn new(body: Body, decoder: Box<dyn Decode>, idle: Duration) -> Reading {
        let (parser, later) = (Parser::new(), Vec::new());
        let intake = Intake { parser, decoder, later, begun: false, too_long: false };
        Reading { body, silence: Silence::new(idle), intake, ended: false }
    }
}

/// Makes chunks of what comes.
struct Intake {
    parser: Parser,
    decoder: Box<dyn Decode>,
    /// What came with the first words: they are handed on before it is looked at.
    later: Vec<u8>,
    /// Some words were handed on.
    begun: bool,
    /// An event has no end.
    too_long: bool,
}

impl Intake {
    fn take(&mut self, part: &[u8], ready: &mut Ready, bytes: &mut usize) {
        if !self.begun && !ready.chunks.is_empty() {
            self.later.extend_from_slice(part);
            return;
        }
        let decoder = &mut *self.decoder;
        let tell = |event: &Event| *bytes += decoded(decoder, event, ready);
        self.too_long |= self.parser.read(part, tell).is_err();
    }

    /// False when there is nothing of it.
    fn take_later(&mut self, ready: &mut Ready, bytes: &mut usize) -> bool {
        if self.later.is_empty() {
            return false;
        }
        let later = std::mem::take(&mut self.later);
        self.take(&later, ready, bytes);
        true
    }
}

/// Looks now and then whether the provider has gone silent. One timer for the whole answer: setting
/// one anew with every part costs more than the part.
struct Silence {
    timer: Pin<Box<Sleep>>,
    heard_at: Instant,
    /// Whom the timer wakes.
    wakes: Option<Waker>,
}

impl Silence {
    fn new(idle: Duration) -> Silence {
        let timer = Box::pin(tokio::time::sleep(idle));
        Silence { timer, heard_at: Instant::now(), wakes: None }
    }

    fn heard(&mut self) {
        self.heard_at = Instant::now();
    }

    /// Ready when nothing came for so long.
    fn poll(&mut self, cx: &mut Context<'_>, idle: Duration) -> Poll<()> {
        let set = self.wakes.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if set && !self.timer.is_elapsed() {
            return Poll::Pending;
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.heard_at.elapsed() >= idle {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(self.heard_at + idle);
        }
        self.wakes = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Stream for Asking {
    type Item = Chunk;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        loop {
            if let Some(chunk) = self.ready.chunks.pop_front() {
                if matches!(chunk, Chunk::Done(_) | Chunk::Failed(_)) {
                    self.ready.chunks.clear();
                    self.leave();
                }
                return Poll::Ready(Some(self.endpoint.masked(chunk)));
            }
            if matches!(self.stage, Stage::Over) {
                return Poll::Ready(None);
            }
            if let Err(failure) = ready!(self.poll_more(cx)) {
                self.ready.push(Chunk::Failed(failure));
            }
        }
    }
}

impl Asking {
    pub(super) fn new(endpoint: Arc<Endpoint>, sending: Sending) -> Asking {
        Asking { endpoint, stage: Stage::Sending(sending), ready: Ready::default(), bytes: 0 }
    }

    /// Whatever else the provider sends is not read.
    fn leave(&mut self) {
        if let Stage::Reading(reading) = std::mem::replace(&mut self.stage, Stage::Over) {
            reading.body.leave();
        }
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let idle = self.endpoint.idle_time_max;
        let reading = match &mut self.stage {
            Stage::Over => return Poll::Ready(Ok(())),
            Stage::Sending(sending) => {
                let body = ready!(sending.poll_unpin(cx))?;
                let reading = Reading::new(body, self.endpoint.api.decoder(), idle);
                self.stage = Stage::Reading(Box::new(reading));
                return Poll::Ready(Ok(()));
            }
            Stage::Reading(reading) => &mut **reading,
        };
        let Reading { body, silence, intake, ended } = reading;
        let (ready, bytes) = (&mut self.ready, &mut self.bytes);
        let mut read = Ok(if *ended { More::Nothing } else { More::Perhaps });
        if !intake.take_later(ready, bytes) {
            let Poll::Ready(came) = body.poll_read(cx, &mut |part| intake.take(part, ready, bytes))
            else {
                ready!(silence.poll(cx, idle));
                return Poll::Ready(Err(self.endpoint.silent()));
            };
            silence.heard();
            read = came;
            intake.begun |= !ready.chunks.is_empty();
            if read.is_err() {
                // What came before is not lost.
                intake.take_later(ready, bytes);
            }
        }
        let too_long = intake.too_long;
        self.ready.settle();
        if too_long {
            let message = format!("{} sent an event without end", self.endpoint.api.provider());
            return Poll::Ready(Err(Failure::new(Heal::Never, "bad_answer", message)));
        }
        if self.bytes > ANSWER_BYTES_MAX {
            let message = format!("The model's answer has more than {ANSWER_BYTES_MAX} bytes");
            return Poll::Ready(Err(Failure::new(Heal::Never, "answer_too_long", message)));
        }
        let more = read.map_err(|trouble| http::troubled(&trouble, &self.endpoint.host()))?;
        reading.ended = more == More::Nothing;
        if reading.ended && reading.intake.later.is_empty() {
            let ended = reading.intake.decoder.end();
            ended.into_iter().for_each(|chunk| self.ready.push(chunk));
            self.ready.settle();
            // Without a last event it was cut, and whoever asked says so.
            if self.ready.chunks.is_empty() {
                self.stage = Stage::Over;
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Puts what an event says behind what is there already, and says how much it was.
fn decoded(decoder: &mut dyn Decode, event: &Event, ready: &mut Ready) -> usize {
    let chunks = decoder.event(event);
    // What gives nothing may be kept, so it counts as it came.
    let bytes = match chunks.is_empty() {
        true => event.data.len(),
        false => chunks.iter().map(chunk_bytes).sum(),
    };
    chunks.into_iter().for_each(|chunk| ready.push(chunk));
    bytes
}

fn chunk_bytes(chunk: &Chunk) -> usize {
    match chunk {
        Chunk::Text { text, .. } | Chunk::Args { text, .. } => text.len(),
        Chunk::Ended { opaque, .. } => opaque.as_ref().map_or(0, |opaque| opaque.json.len()),
        Chunk::Started { .. }
        | Chunk::Usage(_)
        | Chunk::Raw { .. }
        | Chunk::Done(_)
        | Chunk::Failed(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_together_of_one_text_is_one_chunk() {
        let text = |block, text: &str| Chunk::Text { block, text: text.into() };
        let args = |block, text: &str| Chunk::Args { block, text: text.into() };
        let mut ready = Ready::default();
        let came = [text(1, "a"), text(1, "b"), text(1, "c"), text(2, "d"), args(2, "e")];
        came.into_iter().for_each(|chunk| ready.push(chunk));
        ready.settle();
        [args(2, "f"), args(3, "g")].into_iter().for_each(|chunk| ready.push(chunk));
        ready.settle();
        let wanted = [text(1, "abc"), text(2, "d"), args(2, "ef"), args(3, "g")];
        assert_eq!(ready.chunks, wanted);
    }
}
