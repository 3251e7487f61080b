//! The body of an answer while it goes out: in the given pieces, at the given pace, and with the
//! given end.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::answer::{Answer, End, Pace, Segment};
use crate::flush::Flushes;
use crate::store::Open;

/// What is at hand is sent in pieces of about this size.
const FRAME_BYTES: usize = 8 * 1024;

/// The reason for which a connection ends in the middle: the script said so.
#[derive(Debug)]
pub struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the script ends the connection here")
    }
}

impl std::error::Error for Cut {}

pub struct Paced {
    segments: std::vec::IntoIter<Segment>,
    current: Option<Segment>,
    /// Made, but not yet handed over.
    ready: BytesMut,
    sent: u64,
    length: Option<u64>,
    limit: Option<(u64, End)>,
    end: End,
    pace: Pace,
    timer: Option<Pin<Box<Sleep>>>,
    /// The wait before the next piece is over.
    is_due: bool,
    flushes: Arc<Flushes>,
    /// The last piece must be out before the next one; how many flushes there were then.
    awaits_flush: Option<u64>,
    /// How many flushes there were when the end was reached at which the socket is closed.
    cut_at: Option<u64>,
    /// Counts the request as open until it has ended.
    open: Option<Open>,
}

impl Paced {
    pub fn new(answer: Answer, flushes: Arc<Flushes>, open: Option<Open>) -> Paced {
        Paced {
            segments: answer.body.segments.into_iter(),
            current: None,
            ready: BytesMut::new(),
            sent: 0,
            length: answer.body.length,
            limit: answer.body.limit,
            end: answer.body.end,
            pace: answer.pace,
            timer: None,
            is_due: false,
            flushes,
            awaits_flush: None,
            cut_at: None,
            open,
        }
    }

    fn ended(&mut self) {
        if let Some(open) = self.open.take() {
            open.ended();
        }
    }

    fn waits_before_deltas(&self) -> bool {
        self.pace.delay_ms > 0 && self.pace.chunk_bytes.is_none()
    }

    /// Waits once for the delay; the next wait begins when this one is over.
    fn poll_delay(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_due || self.pace.delay_ms == 0 {
            return Poll::Ready(());
        }
        let delay = Duration::from_millis(self.pace.delay_ms);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + delay)));
        ready!(timer.as_mut().poll(cx));
        // Counted from the time it was due, so that the pace holds on average.
        let next = timer.deadline() + delay;
        timer.as_mut().reset(next);
        self.is_due = true;
        Poll::Ready(())
    }

    /// Makes what can be made without waiting.
    fn fill(&mut self, cx: &mut Context<'_>) {
        while self.ready.len() < FRAME_BYTES {
            let waits = self.waits_before_deltas();
            let Some(segment) = self.current.take().or_else(|| self.segments.next()) else {
                return;
            };
            match segment {
                Segment::Bytes { bytes, times } if times > 0 => {
                    self.ready.extend_from_slice(&bytes);
                    self.current = Some(Segment::Bytes { bytes, times: times - 1 });
                }
                Segment::Bytes { .. } => {}
                Segment::Deltas(mut deltas) => {
                    if waits && (!self.ready.is_empty() || self.poll_delay(cx).is_pending()) {
                        self.current = Some(Segment::Deltas(deltas));
                        return;
                    }
                    if deltas.write_next(&mut self.ready) {
                        self.is_due = false;
                        self.current = Some(Segment::Deltas(deltas));
                    }
                }
            }
        }
    }

    /// The next piece of what was made, within chunk size and limit.
    fn take(&mut self) -> Bytes {
        let left = self.limit.map_or(u64::MAX, |(bytes, _)| bytes - self.sent);
        let most =
            self.pace.chunk_bytes.unwrap_or(usize::MAX).min(left.try_into().unwrap_or(usize::MAX));
        let piece = self.ready.split_to(self.ready.len().min(most)).freeze();
        self.sent += piece.len() as u64;
        if self.pace.chunk_bytes.is_some() {
            self.awaits_flush = Some(self.flushes.count());
        }
        piece
    }

    fn is_at_limit(&self) -> bool {
        self.limit.is_some_and(|(bytes, _)| bytes <= self.sent)
    }

    fn poll_end(
        &mut self,
        end: End,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match end {
            End::Clean => {
                self.ended();
                Poll::Ready(None)
            }
            End::Cut => {
                // The head and all that was handed over must be out before the socket is closed.
                let count = *self.cut_at.get_or_insert_with(|| self.flushes.count());
                ready!(self.flushes.poll_after(count, cx));
                self.ended();
                Poll::Ready(Some(Err(Cut)))
            }
            // Nobody wakes it: only the client ends this, and then the body is dropped.
            End::Hang => Poll::Pending,
        }
    }
}

impl Body for Paced {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if let Some(count) = self.awaits_flush {
            ready!(self.flushes.poll_after(count, cx));
            self.awaits_flush = None;
        }
        if let Some((_, end)) = self.limit.filter(|_| self.is_at_limit()) {
            return self.poll_end(end, cx);
        }
        self.fill(cx);
        if self.ready.is_empty() {
            let is_over = self.current.is_none() && self.segments.len() == 0;
            if !is_over {
                return Poll::Pending; // The timer wakes it.
            }
            let end = self.end;
            return self.poll_end(end, cx);
        }
        if self.pace.chunk_bytes.is_some() {
            ready!(self.poll_delay(cx));
            self.is_due = false;
        }
        let piece = self.take();
        if self.length == Some(self.sent) {
            self.ended(); // The library asks for no more once it has all it was promised.
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests;
