//! The writing half: answers, what catching up needs, the room's frames, pings, heartbeats, and
//! what sessions could not write through their doors. A client that does not read is cut off.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use polyloop_agent::clock;
use polyloop_dialects::{Dialect, Frame};
use polyloop_session::SessionId;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout_at};
use tokio_util::sync::CancellationToken;

use super::outgoing::{Close, Outgoing};
use super::outlet::{Broken, Outlet};
use crate::access::Visit;
use crate::room::{Member, Told};

mod streams;

use streams::{Next, Stream};

const PING_EVERY: Duration = Duration::from_secs(20);
const PINGS_UNANSWERED_MAX: u32 = 2;
const PING: [u8; 2] = [0x89, 0];
const HEARTBEAT_EVERY: Duration = Duration::from_secs(30);
/// A client that takes nothing for so long is gone.
const WRITE_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a closing handshake may take.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(2);

struct Writer {
    outlet: Arc<Outlet>,
    streams: Vec<Stream>,
    member: Option<Member>,
    heartbeats: Option<(&'static dyn Dialect, Option<SessionId>, u64)>,
    closing: CancellationToken,
}

/// The connection ends, with a last message or without.
enum End {
    Close(Close),
    /// The socket does not take what is written.
    Stuck,
}

/// Until when the client may take to end the closing handshake; `None` when there is none.
pub(super) async fn run(
    outlet: Arc<Outlet>,
    queue: mpsc::Receiver<Outgoing>,
    unanswered: Arc<AtomicU32>,
    closing: CancellationToken,
    visit: Arc<Visit>,
) -> Option<Instant> {
    let (streams, member, heartbeats) = (Vec::new(), None, None);
    let mut writer = Writer { outlet, streams, member, heartbeats, closing: closing.clone() };
    match writer.write(queue, &unanswered, &closing).await {
        End::Close(close) => {
            visit.ends(close.word());
            Some(writer.close(&close).await)
        }
        End::Stuck => {
            visit.ends("stuck");
            None
        }
    }
}

fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

impl Writer {
    async fn write(
        &mut self,
        mut queue: mpsc::Receiver<Outgoing>,
        unanswered: &AtomicU32,
        closing: &CancellationToken,
    ) -> End {
        let (mut ping, mut heartbeat) = (every(PING_EVERY), every(HEARTBEAT_EVERY));
        let mut moves = 0;
        // All connections share it: it is asked once, not with every frame.
        let mut closed = std::pin::pin!(closing.cancelled());
        loop {
            let done = tokio::select! {
                biased;
                () = &mut closed => Err(End::Close(Close::GoingAway)),
                outgoing = queue.recv() => match outgoing {
                    None => Err(End::Close(Close::Answered)),
                    Some(outgoing) => Box::pin(self.take(outgoing)).await,
                },
                next = std::future::poll_fn(|cx| self.poll_next(cx)) => match next {
                    Next::Help => self.flush().await,
                    Next::Stream(at, next) => self.next(at, next).await,
                    Next::Caught(at, caught) => Box::pin(self.caught(at, caught)).await,
                    Next::Room(told) => Box::pin(self.told(told)).await,
                },
                _ = ping.tick() => {
                    // A ping waits behind all that a slow reader has to read before it.
                    if std::mem::replace(&mut moves, self.outlet.moves()) != moves {
                        unanswered.store(0, Ordering::Relaxed);
                    }
                    match unanswered.fetch_add(1, Ordering::Relaxed) {
                        PINGS_UNANSWERED_MAX.. => Err(End::Stuck),
                        _ => self.ping().await,
                    }
                }
                _ = heartbeat.tick(), if self.heartbeats.is_some() => Box::pin(self.beat()).await,
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    async fn take(&mut self, outgoing: Outgoing) -> Result<(), End> {
        match outgoing {
            Outgoing::Close(close) => return Err(End::Close(close)),
            Outgoing::Frame(session, frame, _room) => {
                let _ = self.outlet.frame(Some(&session), &frame);
                self.flush().await?;
            }
            Outgoing::Plain(frame, _room) => {
                let _ = self.outlet.frame(None, &frame);
                self.flush().await?;
            }
            Outgoing::Flush => self.flush().await?,
            Outgoing::Reply(session, frame) => self.reply(session.as_ref(), &frame).await?,
            Outgoing::Place(session, place) => {
                self.outlet.standing(|standing, _| standing.stamp(&session, &place));
            }
            Outgoing::Count(session, turn, events) => {
                self.outlet.standing(|standing, _| standing.count_from(&session, turn, events));
            }
            Outgoing::Speaks(dialect, session) => self.heartbeats = Some((dialect, session, 0)),
            Outgoing::Subscribed(subscribed) => self.subscribe(*subscribed),
            Outgoing::Run(run) => return self.own_run(run),
            Outgoing::Left(session) => {
                self.leave(&session);
                self.outlet.standing(|standing, _| standing.forget(&session));
            }
            Outgoing::Joined(member) => self.member = Some(member),
            Outgoing::LeftRoom => self.member = None,
        }
        Ok(())
    }

    async fn told(&mut self, told: Option<Told>) -> Result<(), End> {
        let Some(Told { session, frame }) = told else { return Err(End::Close(Close::TooSlow)) };
        let _ = self.outlet.frame(session.as_ref(), &frame);
        self.flush().await
    }

    async fn reply(&mut self, session: Option<&SessionId>, frame: &Frame) -> Result<(), End> {
        self.outlet.reply(session, frame);
        self.flush().await
    }

    async fn beat(&mut self) -> Result<(), End> {
        let Some((dialect, session, count)) = &mut self.heartbeats else { return Ok(()) };
        *count += 1;
        match dialect.heartbeat(session.as_ref(), *count, clock::now()) {
            Some(frame) => {
                let session = session.clone();
                self.reply(session.as_ref(), &frame).await
            }
            None => Ok(()),
        }
    }

    async fn ping(&mut self) -> Result<(), End> {
        self.outlet.control(&PING).map_err(|Broken| End::Stuck)?;
        self.flush().await
    }

    /// More of what goes out together; it goes out when that is enough.
    async fn together(&mut self, put: ControlFlow<()>) -> Result<(), End> {
        match put {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => self.flush().await,
        }
    }

    /// What was put into the outlet goes out.
    async fn flush(&mut self) -> Result<(), End> {
        in_time(&self.outlet, &self.closing).await?;
        self.see_run_failed()
    }

    fn see_run_failed(&self) -> Result<(), End> {
        match self.outlet.run_failed() {
            true => Err(End::Close(Close::RunFailed)),
            false => Ok(()),
        }
    }

    async fn close(&mut self, close: &Close) -> Instant {
        let until = Instant::now() + CLOSE_TIME_MAX;
        if let Some(frame) = close.frame() {
            // It may be closed already; what waits still has to go out.
            let _ = self.outlet.control(&frame);
        }
        let _ = timeout_at(until, std::future::poll_fn(|cx| self.outlet.poll_flush(cx))).await;
        until
    }
}

/// A client that takes nothing gets a while, and less when the server stops.
async fn in_time(outlet: &Outlet, closing: &CancellationToken) -> Result<(), End> {
    let mut written = std::pin::pin!(std::future::poll_fn(|cx| outlet.poll_flush(cx)));
    if let Some(written) = written.as_mut().now_or_never() {
        return written.map_err(|Broken| End::Stuck);
    }
    let mut closed = std::pin::pin!(async {
        closing.cancelled().await;
        tokio::time::sleep(CLOSE_TIME_MAX).await;
    });
    loop {
        let moves = outlet.moves();
        tokio::select! {
            biased;
            written = &mut written => return written.map_err(|Broken| End::Stuck),
            // If it should read on after all, it learns why it was left.
            () = &mut closed => return Err(End::Close(Close::TooSlow)),
            () = tokio::time::sleep(WRITE_TIME_MAX) => {
                if outlet.moves() == moves {
                    return Err(End::Close(Close::TooSlow));
                }
            }
        }
    }
}
