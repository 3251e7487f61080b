//! The writing end of a connection: what goes out on it, whole frame behind whole frame, from
//! whichever task it comes: the writing half, the WebSocket protocol itself, and doors, through
//! which sessions write to a client that keeps up.
//!
//! What the socket does not take at once stays here and goes out before anything else. Nothing in
//! here waits: that it goes out in time is the writing half's affair.

use std::io::{self, IoSlice};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use polyloop_agent::subscriber::Door;
use polyloop_dialects::Frame;
use polyloop_session::SessionId;
use tokio::net::tcp::OwnedWriteHalf;

use super::outgoing::{Sight, Written};
use super::standing::Standing;
use crate::access::Visit;
use crate::app::App;
use crate::view::Bundle;

mod door;
mod rest;

use door::WayIn;
use rest::Rest;

/// What is put together before it is written.
const TOGETHER_BYTES_MAX: usize = 32 * 1024;
/// Pieces given to the socket at once.
const PIECES_MAX: usize = 64;
/// The first byte of the frame that ends a WebSocket.
const CLOSE: u8 = 0x88;

pub(super) struct Outlet {
    now: Mutex<Now>,
    pub(super) written: Arc<Written>,
    app: Arc<App>,
    visit: Arc<Visit>,
}

/// Small, because hundreds of them are gone through for one frame: what that does not need is kept
/// elsewhere.
struct Now {
    /// Nothing once it was shut.
    half: Option<OwnedWriteHalf>,
    phase: Phase,
    /// The socket was full when it was last given something.
    is_full: bool,
    /// The client's run has failed, and it was told.
    run_failed: bool,
    doors: u32,
    /// How often a full socket has taken something again: its client reads.
    moves: u32,
    rest: Rest,
    latest: Option<Latest>,
    sent_bytes: u64,
    standing: Box<Standing>,
    /// The writing half's, for what only it can do.
    waker: Option<Waker>,
}

/// The last that went through a door; the client's standing does not know of it yet.
struct Latest {
    bundle: Arc<Bundle>,
    door: u32,
    session: SessionId,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The last frame was put in: nothing may follow it.
    Closed,
    /// The socket takes nothing any more.
    Broken,
}

/// The socket is broken.
#[derive(Debug)]
pub(super) struct Broken;

impl Now {
    /// Whether what is put in now goes out at once.
    fn is_free(&self) -> bool {
        self.phase == Phase::Open && self.rest.is_empty() && !self.run_failed
    }

    /// Only the writing half can go on.
    fn needs_help(&self) -> bool {
        !self.rest.is_empty() || self.phase == Phase::Broken || self.run_failed
    }

    /// Where the client stands, with all that was put in so far.
    fn standing<T>(&mut self, look: impl FnOnce(&mut Standing) -> T) -> T {
        if let Some(Latest { bundle, session, .. }) = self.latest.take()
            && let Some(stamp) = bundle.stamp()
        {
            self.standing.stamp(&session, stamp);
        }
        let looked = look(&mut self.standing);
        self.run_failed = self.standing.run_failed;
        looked
    }

    /// Puts whole frames behind everything else.
    fn gather(&mut self, bytes: Bytes) {
        if self.phase == Phase::Open && !bytes.is_empty() {
            self.rest.push(bytes);
        }
    }

    /// The same, and gives the socket what it takes at once.
    fn put(&mut self, bytes: &Bytes) {
        if self.phase != Phase::Open || bytes.is_empty() {
            return;
        }
        let taken = match self.rest.is_empty() {
            true => self.write(|half| half.try_write(bytes)).unwrap_or(0),
            false => 0,
        };
        if taken < bytes.len() && self.phase == Phase::Open {
            self.rest.push(bytes.slice(taken..));
        }
    }

    /// Gives the socket as much of the rest as it takes.
    fn write_rest(&mut self) {
        while !self.rest.is_empty() {
            let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
            let rest = std::mem::take(&mut self.rest);
            let count = pieces.iter_mut().zip(&rest.pieces).fold(0, |count, (slot, piece)| {
                *slot = IoSlice::new(piece);
                count + 1
            });
            let taken = self.write(|half| half.try_write_vectored(&pieces[..count]));
            self.rest = rest;
            match taken {
                Some(taken) => self.rest.advance(taken),
                None => return,
            }
        }
    }

    /// `None` when the socket takes nothing now, or never again.
    fn write(&mut self, write: impl Fn(&OwnedWriteHalf) -> io::Result<usize>) -> Option<usize> {
        let half = self.half.as_ref()?;
        match write(half) {
            Ok(taken @ 1..) => {
                self.moves = self.moves.wrapping_add(self.is_full.into());
                self.is_full = false;
                Some(taken)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.is_full = true;
                None
            }
            Ok(0) | Err(_) => {
                self.phase = Phase::Broken;
                None
            }
        }
    }

    fn call_for_help(&mut self) {
        if self.needs_help()
            && let Some(waker) = self.waker.take()
        {
            waker.wake();
        }
    }
}

impl Outlet {
    pub(super) fn new(half: OwnedWriteHalf, app: Arc<App>, visit: Arc<Visit>) -> Arc<Outlet> {
        let now = Now {
            half: Some(half),
            phase: Phase::Open,
            is_full: false,
            run_failed: false,
            doors: 0,
            moves: 0,
            rest: Rest::default(),
            latest: None,
            sent_bytes: 0,
            standing: Box::default(),
            waker: None,
        };
        Arc::new(Outlet { now: Mutex::new(now), written: Arc::default(), app, visit })
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn standing<T>(&self, look: impl FnOnce(&mut Standing, &Written) -> T) -> T {
        self.now().standing(|standing| look(standing, &self.written))
    }

    /// Whether the client's run has failed, and it was told.
    pub(super) fn run_failed(&self) -> bool {
        self.now().run_failed
    }

    /// Another number than before when a full socket has taken something since: its client reads,
    /// however slowly.
    pub(super) fn moves(&self) -> u32 {
        self.now().moves
    }

    fn count(&self, now: &mut Now, text_bytes: usize) {
        now.sent_bytes += text_bytes as u64;
        self.app.metrics.sent(text_bytes as u64);
    }

    /// Puts in what the client sees of a bundle, to go out with the next flush. Breaks when that is
    /// enough for one.
    pub(super) fn feed(
        &self,
        session: &SessionId,
        sight: Sight,
        bundle: &Bundle,
    ) -> ControlFlow<()> {
        let mut now = self.now();
        match (sight, &bundle.shared) {
            (Sight::All, Some(bytes)) => {
                if let Some(stamp) = bundle.stamp() {
                    now.standing(|standing| standing.stamp(session, stamp));
                }
                self.count(&mut now, bundle.text_bytes);
                now.gather(bytes.clone());
            }
            (Sight::All | Sight::OwnRun(_), _) => {
                let bytes = self.own(&mut now, session, sight, bundle);
                now.gather(bytes);
            }
        }
        enough(&now)
    }

    /// The same with one frame.
    pub(super) fn frame(&self, session: Option<&SessionId>, frame: &Frame) -> ControlFlow<()> {
        let mut now = self.now();
        let (mut out, mut text_bytes) = (Vec::new(), frame.text.len());
        match session {
            None => Bundle::push(&mut out, &frame.text),
            Some(session) => now.standing(|standing| {
                text_bytes = standing.feed(session, frame, &self.written, &mut out);
                standing.see_run_end(&self.written);
            }),
        }
        self.count(&mut now, text_bytes);
        now.gather(out.into());
        enough(&now)
    }

    /// Puts in an answer, at the place of what was sent of its session before it.
    pub(super) fn reply(&self, session: Option<&SessionId>, frame: &Frame) {
        let mut now = self.now();
        let stamped = session.map(|session| now.standing(|s| s.stamped(session, frame)));
        let (mut out, text) = (Vec::new(), &stamped.as_ref().unwrap_or(frame).text);
        Bundle::push(&mut out, text);
        self.count(&mut now, text.len());
        now.gather(out.into());
    }

    /// A bundle's bytes as this client alone gets them.
    fn own(&self, now: &mut Now, session: &SessionId, sight: Sight, bundle: &Bundle) -> Bytes {
        let (mut out, mut text_bytes) = (Vec::with_capacity(bundle.text_bytes), 0);
        now.standing(|standing| {
            for frame in bundle.frames.iter().filter(|frame| sight.sees(frame)) {
                text_bytes += standing.feed(session, frame, &self.written, &mut out);
            }
            standing.see_run_end(&self.written);
        });
        self.count(now, text_bytes);
        out.into()
    }

    /// A frame of the protocol's own, whole; nothing comes behind one that closes.
    pub(super) fn control(&self, frame: &[u8]) -> Result<(), Broken> {
        let mut now = self.now();
        now.put(&Bytes::copy_from_slice(frame));
        if now.phase == Phase::Broken {
            return Err(Broken);
        }
        if frame.first() == Some(&CLOSE) {
            now.phase = Phase::Closed;
        }
        now.call_for_help();
        Ok(())
    }

    /// Everything that was put in goes out.
    pub(super) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let mut now = self.now();
        loop {
            now.write_rest();
            let Some(half) = now.half.as_ref().filter(|_| now.phase != Phase::Broken) else {
                return Poll::Ready(Err(Broken));
            };
            if now.rest.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match half.as_ref().poll_write_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => now.phase = Phase::Broken,
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Ready when something waits for the writing half: bytes that the socket did not take, a run
    /// that failed, the connection's end.
    pub(super) fn poll_help(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut now = self.now();
        if now.needs_help() {
            return Poll::Ready(());
        }
        match &mut now.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => now.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// The client is told that nothing more comes.
    pub(super) fn shut(&self) {
        self.now().half = None;
    }

    /// A way in for a session's frames.
    pub(super) fn door(
        self: &Arc<Outlet>,
        session: SessionId,
        sight: Sight,
    ) -> Box<dyn Door<Arc<Bundle>>> {
        let mut now = self.now();
        now.doors += 1;
        Box::new(WayIn { outlet: self.clone(), number: now.doors, session, sight })
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        let sent_bytes = self.now().sent_bytes;
        self.visit.sent(sent_bytes);
    }
}

fn enough(now: &Now) -> ControlFlow<()> {
    match now.rest.bytes < TOGETHER_BYTES_MAX {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    }
}
