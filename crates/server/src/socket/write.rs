//! The writing half: answers, the session's frames, pings. A client that does not read is cut off.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use polyloop_agent::subscriber::{Ending, Subscription};
use polyloop_dialects::{Cursor, Dialect, Frame, Reply};
use polyloop_session::{Seq, WaitId};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;
use tokio_websockets::{CloseCode, Message, WebSocketStream};

use super::read::store_complaint;

const PING_EVERY: Duration = Duration::from_secs(20);
const PINGS_UNANSWERED_MAX: u32 = 2;
/// A client that takes nothing for so long is gone.
const WRITE_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a closing handshake may take.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(2);
/// Frames written between two flushes.
const FRAMES_TOGETHER_MAX: usize = 64;

pub(super) enum Outgoing {
    /// A frame, and the room it takes in the queue until it is written.
    Frame(Frame, OwnedSemaphorePermit),
    /// Whatever is queued goes out.
    Flush,
    /// An answer, which gets the place of what was sent before it.
    Reply(Frame),
    /// From here on the session's own frames; `place` is the stamp of what went before.
    Subscribed {
        dialect: &'static dyn Dialect,
        subscription: Subscription<Frame>,
        place: Bytes,
    },
    Close(Close),
}

pub(super) enum Close {
    /// The client closed, or the protocol was broken and the answer is queued already.
    Answered,
    TooBig(String),
    TooSlow,
    GoingAway,
}

impl Close {
    fn message(&self) -> Option<Message> {
        let (code, reason) = match self {
            Close::Answered => return None,
            Close::TooBig(reason) => (CloseCode::MESSAGE_TOO_BIG, reason.as_str()),
            Close::TooSlow => {
                (CloseCode::SERVICE_OVERLOAD, "too slow; come back with ?since= your last cursor")
            }
            Close::GoingAway => (CloseCode::GOING_AWAY, "the server is shutting down"),
        };
        Some(Message::close(Some(code), reason))
    }
}

pub(super) type Sink<S> = SplitSink<WebSocketStream<S>, Message>;

/// What the reading half needs to know of what was written.
#[derive(Default)]
pub(super) struct Written {
    /// Set when the subscription ended but the socket did not: where the client is.
    detached: Mutex<Option<Cursor>>,
    wake: Notify,
    shown: Mutex<Option<WaitId>>,
}

impl Written {
    /// Waits until the session ends under the client.
    pub(super) async fn detached(&self) {
        self.wake.notified().await;
    }

    pub(super) fn take_detached(&self) -> Option<Cursor> {
        lock(&self.detached).take()
    }

    /// The wait that was last shown to the client.
    pub(super) fn shown(&self) -> Option<WaitId> {
        *lock(&self.shown)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Writer<S> {
    sink: Sink<S>,
    subscribed: Option<(&'static dyn Dialect, Subscription<Frame>)>,
    written: Arc<Written>,
    /// The stamp of the last frame about the session that went out.
    place: Option<Bytes>,
    closing: CancellationToken,
}

/// The socket does not take what is written.
struct Stuck;

pub(super) async fn run<S>(
    sink: Sink<S>,
    queue: mpsc::Receiver<Outgoing>,
    unanswered: Arc<AtomicU32>,
    written: Arc<Written>,
    closing: CancellationToken,
) -> Sink<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut writer =
        Writer { sink, subscribed: None, written, place: None, closing: closing.clone() };
    if let Ok(close) = writer.write(queue, &unanswered, &closing).await {
        writer.close(&close).await;
    }
    writer.sink
}

impl<S: AsyncRead + AsyncWrite + Unpin> Writer<S> {
    async fn write(
        &mut self,
        mut queue: mpsc::Receiver<Outgoing>,
        unanswered: &AtomicU32,
        closing: &CancellationToken,
    ) -> Result<Close, Stuck> {
        let mut ping = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = closing.cancelled() => return Ok(Close::GoingAway),
                outgoing = queue.recv() => match outgoing {
                    None => return Ok(Close::Answered),
                    Some(Outgoing::Close(close)) => return Ok(close),
                    Some(Outgoing::Frame(frame, _room)) => {
                        self.feed(frame).await?;
                        self.flush().await?;
                    }
                    Some(Outgoing::Flush) => self.flush().await?,
                    Some(Outgoing::Reply(frame)) => {
                        let stamped = self.place.as_ref().map(|place| frame.stamped(place));
                        self.feed(stamped.unwrap_or(frame)).await?;
                        self.flush().await?;
                    }
                    Some(Outgoing::Subscribed { dialect, subscription, place }) => {
                        self.subscribed = Some((dialect, subscription));
                        self.place = Some(place);
                    }
                },
                frame = next(&mut self.subscribed) => match frame {
                    Ok(frame) => self.session_frames(frame).await?,
                    Err(Ending::TooSlow) => return Ok(Close::TooSlow),
                    Err(ending) => self.detach(ending).await?,
                },
                _ = ping.tick() => {
                    if unanswered.fetch_add(1, Ordering::Relaxed) >= PINGS_UNANSWERED_MAX {
                        return Err(Stuck);
                    }
                    self.put(Message::ping("")).await?;
                    self.flush().await?;
                }
            }
        }
    }

    /// Writes a frame and those that are ready behind it, then flushes once.
    async fn session_frames(&mut self, first: Frame) -> Result<(), Stuck> {
        let mut frame = Some(first);
        let mut written = 0;
        while let Some(one) = frame.take() {
            self.feed(one).await?;
            written += 1;
            if written < FRAMES_TOGETHER_MAX {
                frame = self.subscribed.as_mut().and_then(|(_, s)| s.ready());
            }
        }
        self.flush().await
    }

    /// The session ended under the client: it is told, and its next message attaches it again.
    async fn detach(&mut self, ending: Ending) -> Result<(), Stuck> {
        let Some((dialect, _)) = self.subscribed.take() else { return Ok(()) };
        let place = self.place.as_deref().and_then(place_of);
        let place = place.unwrap_or_else(|| Cursor::at(Seq::NONE));
        *lock(&self.written.detached) = Some(place);
        if let Ending::Failed(why) = ending {
            let reply = Reply::Complaint(store_complaint(&why));
            let frame = dialect.reply(None, 0, &reply);
            let stamped = self.place.as_ref().map(|place| frame.stamped(place));
            self.feed(stamped.unwrap_or(frame)).await?;
            self.flush().await?;
        }
        self.written.wake.notify_one();
        Ok(())
    }

    async fn feed(&mut self, frame: Frame) -> Result<(), Stuck> {
        if let Some(place) = frame.stamp() {
            self.place = Some(place);
        }
        if frame.presents.is_some() {
            *lock(&self.written.shown) = frame.presents;
        }
        self.put(Message::text(frame.text)).await
    }

    async fn put(&mut self, message: Message) -> Result<(), Stuck> {
        in_time(&self.closing, self.sink.feed(message)).await
    }

    async fn flush(&mut self) -> Result<(), Stuck> {
        in_time(&self.closing, self.sink.flush()).await
    }

    async fn close(&mut self, close: &Close) {
        let closed = async {
            if let Some(message) = close.message() {
                // It may be closed already; what is queued still has to go out.
                let _ = self.sink.send(message).await;
            }
            let _ = self.sink.flush().await;
            let _ = self.sink.close().await;
        };
        let _ = timeout(CLOSE_TIME_MAX, closed).await;
    }
}

/// A client that does not read gets a while, and less when the server stops.
async fn in_time(
    closing: &CancellationToken,
    write: impl Future<Output = Result<(), tokio_websockets::Error>>,
) -> Result<(), Stuck> {
    let too_late = async {
        tokio::select! {
            () = tokio::time::sleep(WRITE_TIME_MAX) => {}
            () = closing.cancelled() => tokio::time::sleep(CLOSE_TIME_MAX).await,
        }
    };
    tokio::select! {
        biased;
        written = write => written.map_err(|_| Stuck),
        () = too_late => Err(Stuck),
    }
}

/// Waits for ever when there is no subscription.
async fn next(
    subscribed: &mut Option<(&'static dyn Dialect, Subscription<Frame>)>,
) -> Result<Frame, Ending> {
    match subscribed {
        Some((_, subscription)) => subscription.next().await,
        None => std::future::pending().await,
    }
}

/// The place that a stamp names.
fn place_of(stamp: &[u8]) -> Option<Cursor> {
    #[derive(serde::Deserialize)]
    struct Stamp {
        seq: u64,
        cursor: Option<String>,
    }
    // A stamp is the end of an object: put a beginning in the place of its comma.
    let object = [b"{", stamp.strip_prefix(b",")?].concat();
    let stamp: Stamp = serde_json::from_slice(&object).ok()?;
    match stamp.cursor {
        Some(cursor) => Cursor::parse(&cursor).ok(),
        None => Some(Cursor::at(Seq(stamp.seq))),
    }
}
