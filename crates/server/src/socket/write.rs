//! The writing half: answers, the frames of sessions and of the room, pings, heartbeats. A client
//! that does not read is cut off.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::SinkExt;
use futures_util::future::BoxFuture;
use futures_util::stream::SplitSink;
use polyloop_agent::clock;
use polyloop_agent::sessions::Handle;
use polyloop_agent::subscriber::{Ending, Subscription};
use polyloop_dialects::{Cursor, Dialect, Frame, Own, Reply, RunPart};
use polyloop_session::policy::Mode;
use polyloop_session::{Seq, SessionId};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;
use tokio_websockets::{Message, WebSocketStream};

use super::attach::store_complaint;
use super::behind::{self, Caught};
use super::outgoing::{Close, Outgoing, RunId, Sight, Subscribed, Written};
use crate::access::Visit;
use crate::room::{Member, Told};
use crate::view::DialectView;

const PING_EVERY: Duration = Duration::from_secs(20);
const PINGS_UNANSWERED_MAX: u32 = 2;
const HEARTBEAT_EVERY: Duration = Duration::from_secs(30);
/// A client that takes nothing for so long is gone.
const WRITE_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a closing handshake may take.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(2);
/// More runs than can end between a run's acceptance and the news of it.
const ENDED_RUNS_MAX: usize = 64;
/// A longer frame is let go when it is written.
const KEPT_FRAME_BYTES_MAX: usize = 1024;
/// Frames written between two flushes.
const FRAMES_TOGETHER_MAX: usize = 64;

pub(super) type Sink<S> = SplitSink<WebSocketStream<S>, Message>;

/// A session as this connection sees it.
struct Stream {
    session: SessionId,
    dialect: &'static dyn Dialect,
    source: Source,
    sight: Sight,
    handle: Handle<DialectView>,
}

/// Where its frames come from.
enum Source {
    /// As they are made.
    Live(Subscription<Arc<Frame>>),
    /// From its log: more was made than was taken.
    Behind(BoxFuture<'static, Caught>),
}

impl Source {
    fn ready(&mut self) -> Option<Arc<Frame>> {
        match self {
            Source::Live(subscription) => subscription.ready(),
            Source::Behind(_) => None,
        }
    }
}

struct Writer<S> {
    sink: Sink<S>,
    streams: Vec<Stream>,
    member: Option<Member>,
    written: Arc<Written>,
    /// What is known of each session that frames went out about.
    known: HashMap<SessionId, Known>,
    words: Vec<(Mode, &'static str)>,
    /// The run that this connection asked for.
    run: Option<RunId>,
    /// The last runs that ended, perhaps before one was known to be the client's.
    ended: VecDeque<(RunId, RunPart)>,
    heartbeats: Option<(&'static dyn Dialect, Option<SessionId>, u64)>,
    closing: CancellationToken,
    visit: Arc<Visit>,
    /// What was written since the last flush.
    unflushed_bytes: u64,
}

#[derive(Default)]
struct Known {
    /// The stamp of the last frame that went out.
    place: Option<Bytes>,
    own: Own,
}

impl Known {
    fn cursor(&self) -> Cursor {
        let cursor = self.place.as_ref().and_then(|stamp| Cursor::of_stamp(stamp));
        cursor.unwrap_or_else(|| Cursor::at(Seq::NONE))
    }
}

/// What comes next from elsewhere.
enum Next {
    Stream(usize, Result<Arc<Frame>, Ending>),
    Caught(usize, Caught),
    Room(Option<Told>),
}

/// The connection ends, with a last message or without.
enum End {
    Close(Close),
    /// The socket does not take what is written.
    Stuck,
}

pub(super) async fn run<S>(
    sink: Sink<S>,
    queue: mpsc::Receiver<Outgoing>,
    unanswered: Arc<AtomicU32>,
    written: Arc<Written>,
    closing: CancellationToken,
    visit: Arc<Visit>,
) -> Sink<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut writer = Writer {
        sink,
        streams: Vec::new(),
        member: None,
        written,
        known: HashMap::new(),
        words: Vec::new(),
        run: None,
        ended: VecDeque::new(),
        heartbeats: None,
        closing: closing.clone(),
        visit,
        unflushed_bytes: 0,
    };
    match writer.write(queue, &unanswered, &closing).await {
        End::Close(close) => {
            writer.visit.ends(close.word());
            writer.close(&close).await;
        }
        End::Stuck => writer.visit.ends("stuck"),
    }
    writer.sink
}

fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

impl<S: AsyncRead + AsyncWrite + Unpin> Writer<S> {
    async fn write(
        &mut self,
        mut queue: mpsc::Receiver<Outgoing>,
        unanswered: &AtomicU32,
        closing: &CancellationToken,
    ) -> End {
        let (mut ping, mut heartbeat) = (every(PING_EVERY), every(HEARTBEAT_EVERY));
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
                    Next::Stream(at, next) => self.next(at, next).await,
                    Next::Caught(at, caught) => Box::pin(self.caught(at, caught)).await,
                    Next::Room(told) => Box::pin(self.told(told)).await,
                },
                _ = ping.tick() => match unanswered.fetch_add(1, Ordering::Relaxed) {
                    PINGS_UNANSWERED_MAX.. => Err(End::Stuck),
                    _ => self.put_now(Message::ping("")).await,
                },
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
                self.feed(&session, *frame).await?;
                self.flush().await?;
                return self.see_run_end();
            }
            Outgoing::Plain(frame, _room) => self.put_now(Message::text(frame.text)).await?,
            Outgoing::Flush => self.flush().await?,
            Outgoing::Reply(session, frame) => self.reply(session.as_ref(), *frame).await?,
            Outgoing::Count(session, turn, events) => {
                self.known(&session).own.count_from(turn, events);
            }
            Outgoing::Speaks(dialect, session) => self.heartbeats = Some((dialect, session, 0)),
            Outgoing::Call(mode, word) => {
                self.words.retain(|(known, _)| *known != mode);
                self.words.push((mode, word));
                self.known.values_mut().for_each(|known| known.own.call(mode, word));
            }
            Outgoing::Subscribed(subscribed) => self.subscribe(*subscribed),
            Outgoing::Run(run) => return self.own_run(run),
            Outgoing::Left(session) => {
                self.leave(&session);
                self.known.remove(&session);
            }
            Outgoing::Joined(member) => self.member = Some(member),
            Outgoing::LeftRoom => self.member = None,
        }
        Ok(())
    }

    fn subscribe(&mut self, subscribed: Subscribed) {
        let Subscribed { session, dialect, subscription, place, sight, handle } = subscribed;
        self.leave(&session);
        self.known(&session).place = Some(place);
        if let Some((_, named, _)) = &mut self.heartbeats {
            named.get_or_insert_with(|| session.clone());
        }
        let source = Source::Live(subscription);
        self.streams.push(Stream { session, dialect, source, sight, handle });
    }

    fn leave(&mut self, session: &SessionId) {
        self.streams.retain(|stream| stream.session != *session);
    }

    /// The run was accepted; it may even have ended.
    fn own_run(&mut self, run: RunId) -> Result<(), End> {
        for stream in self.streams.iter_mut().filter(|stream| stream.session == run.session) {
            if stream.sight == Sight::OwnRun(None) {
                stream.sight = Sight::OwnRun(Some(run.message));
            }
        }
        self.run = Some(run);
        self.see_run_end()
    }

    /// Looks whether the run that the client waits for is over.
    fn see_run_end(&mut self) -> Result<(), End> {
        let own = self.ended.iter().position(|(run, _)| self.run.as_ref() == Some(run));
        let Some((run, part)) = own.and_then(|at| self.ended.remove(at)) else { return Ok(()) };
        self.run = None;
        self.written.end_run(run);
        match part {
            RunPart::Failed => Err(End::Close(Close::RunFailed)),
            RunPart::Start | RunPart::Event | RunPart::End | RunPart::Interrupted => Ok(()),
        }
    }

    /// The next frame of any session or of the room; streams whose run is not known yet wait.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        for (at, stream) in self.streams.iter_mut().enumerate() {
            if stream.sight == Sight::OwnRun(None) {
                continue;
            }
            match &mut stream.source {
                Source::Live(subscription) => {
                    if let Poll::Ready(next) = subscription.poll_next(cx) {
                        return Poll::Ready(Next::Stream(at, next));
                    }
                }
                Source::Behind(catching_up) => {
                    if let Poll::Ready(caught) = catching_up.as_mut().poll(cx) {
                        return Poll::Ready(Next::Caught(at, caught));
                    }
                }
            }
        }
        match &mut self.member {
            Some(member) => member.poll_next(cx).map(Next::Room),
            None => Poll::Pending,
        }
    }

    async fn next(&mut self, at: usize, next: Result<Arc<Frame>, Ending>) -> Result<(), End> {
        let mut frame = match next {
            Ok(frame) => Some(frame),
            Err(Ending::Behind) => {
                self.fall_behind(at);
                return Ok(());
            }
            Err(ending) => return Box::pin(self.detach(at, ending)).await,
        };
        // Writes those that are ready behind it too, then flushes once.
        let mut written = 0;
        while let Some(one) = frame.take() {
            self.feed_of(at, Arc::unwrap_or_clone(one)).await?;
            written += 1;
            if written < FRAMES_TOGETHER_MAX {
                frame = self.streams.get_mut(at).and_then(|stream| stream.source.ready());
            }
        }
        self.written_of(at).await
    }

    /// Writes a frame of a session as far as this client sees it.
    async fn feed_of(&mut self, at: usize, frame: Frame) -> Result<(), End> {
        let Some(stream) = self.streams.get_mut(at) else { return Ok(()) };
        let seen = match stream.sight {
            Sight::All => true,
            Sight::OwnRun(own) => frame.run.is_some_and(|run| run.message == own),
        };
        if !seen {
            return Ok(());
        }
        let session = stream.session.clone();
        self.feed(&session, frame).await
    }

    /// What was written of a session goes out, and others have their turn.
    async fn written_of(&mut self, at: usize) -> Result<(), End> {
        self.flush().await?;
        if self.streams.len() > 1 && at < self.streams.len() {
            let stream = self.streams.remove(at);
            self.streams.push(stream);
        }
        self.see_run_end()
    }

    /// More came than the client took: from here on it gets what it missed from the log, with what
    /// grew meanwhile in one piece.
    fn fall_behind(&mut self, at: usize) {
        let Some(stream) = self.streams.get_mut(at) else { return };
        let cursor = self.known.get(&stream.session).map(Known::cursor);
        let cursor = cursor.unwrap_or_else(|| Cursor::at(Seq::NONE));
        let catching_up = behind::catch_up(stream.handle.clone(), stream.dialect, cursor);
        stream.source = Source::Behind(catching_up);
    }

    async fn caught(&mut self, at: usize, caught: Caught) -> Result<(), End> {
        let (catching_up, batch) = match caught {
            Caught::Some(catching_up, batch) => (catching_up, batch),
            Caught::All(subscription) => {
                if let Some(stream) = self.streams.get_mut(at) {
                    stream.source = Source::Live(subscription);
                }
                return Ok(());
            }
            Caught::Failed(why) => return self.detach(at, Ending::Failed(why)).await,
        };
        let Some(stream) = self.streams.get_mut(at) else { return Ok(()) };
        stream.source = Source::Behind(catching_up.go_on());
        if let Some((turn, events)) = batch.count {
            let session = stream.session.clone();
            self.known(&session).own.count_from(turn, events);
        }
        for frame in batch.frames {
            self.feed_of(at, frame).await?;
        }
        self.written_of(at).await
    }

    async fn told(&mut self, told: Option<Told>) -> Result<(), End> {
        match told {
            Some(Told { session: Some(session), frame }) => self.feed(&session, frame).await?,
            Some(Told { session: None, frame }) => self.put(Message::text(frame.text)).await?,
            None => return Err(End::Close(Close::TooSlow)),
        }
        self.flush().await
    }

    /// The session ended under the client: it is told, and the reading half attaches it again.
    async fn detach(&mut self, at: usize, ending: Ending) -> Result<(), End> {
        let Stream { session, dialect, .. } = self.streams.remove(at);
        let place = self.known(&session).cursor();
        if let Ending::Failed(why) = ending {
            let reply = Reply::Complaint(store_complaint(&why));
            let frame = dialect.reply(Some(&session), 0, &reply);
            self.reply(Some(&session), frame).await?;
            // The run that the client waits for will have no end that it sees.
            if self.run.as_ref().is_some_and(|run| run.session == session) {
                return Err(End::Close(Close::RunFailed));
            }
        }
        self.written.detach(session, place);
        Ok(())
    }

    async fn reply(&mut self, session: Option<&SessionId>, frame: Frame) -> Result<(), End> {
        let place = |session| self.known.get(session).and_then(|known| known.place.as_ref());
        let stamped = session.map(|session| match place(session) {
            Some(place) => frame.stamped(place),
            None => frame.stamped(format!(",\"session_id\":\"{session}\",\"seq\":0}}").as_bytes()),
        });
        self.put_now(Message::text(stamped.unwrap_or(frame).text)).await
    }

    async fn beat(&mut self) -> Result<(), End> {
        let Some((dialect, session, count)) = &mut self.heartbeats else { return Ok(()) };
        *count += 1;
        match dialect.heartbeat(session.as_ref(), *count, clock::now()) {
            Some(frame) => {
                let session = session.clone();
                self.reply(session.as_ref(), frame).await
            }
            None => Ok(()),
        }
    }

    fn known(&mut self, session: &SessionId) -> &mut Known {
        if !self.known.contains_key(session) {
            let mut known = Known::default();
            self.words.iter().for_each(|(mode, word)| known.own.call(*mode, word));
            self.known.insert(session.clone(), known);
        }
        self.known.entry(session.clone()).or_default()
    }

    async fn feed(&mut self, session: &SessionId, frame: Frame) -> Result<(), End> {
        let known = match self.known.get_mut(session) {
            Some(known) => known,
            None => self.known(session),
        };
        let frame = match frame.run.is_some() || !frame.inserts.is_empty() {
            true => known.own.finish(frame),
            false => frame,
        };
        if let Some(place) = frame.stamp() {
            // A long frame is not kept for the sake of its end.
            known.place = Some(match frame.text.len() > KEPT_FRAME_BYTES_MAX {
                true => Bytes::copy_from_slice(&place),
                false => place,
            });
        }
        if let Some(wait) = frame.presents {
            self.written.show(wait);
        }
        if let Some(run) = frame.run
            && let Some(message) = run.message
            && matches!(run.part, RunPart::End | RunPart::Failed | RunPart::Interrupted)
        {
            if self.ended.len() >= ENDED_RUNS_MAX {
                self.ended.pop_front();
            }
            self.ended.push_back((RunId { session: session.clone(), message }, run.part));
        }
        self.put(Message::text(frame.text)).await
    }

    async fn put(&mut self, message: Message) -> Result<(), End> {
        self.unflushed_bytes += message.as_payload().len() as u64;
        in_time(&self.closing, self.sink.feed(message)).await
    }

    async fn put_now(&mut self, message: Message) -> Result<(), End> {
        self.put(message).await?;
        self.flush().await
    }

    async fn flush(&mut self) -> Result<(), End> {
        self.visit.sent(std::mem::take(&mut self.unflushed_bytes));
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
) -> Result<(), End> {
    let too_late = async {
        tokio::select! {
            () = tokio::time::sleep(WRITE_TIME_MAX) => {}
            () = closing.cancelled() => tokio::time::sleep(CLOSE_TIME_MAX).await,
        }
    };
    tokio::select! {
        biased;
        written = write => written.map_err(|_| End::Stuck),
        // If it should read on after all, it learns why it was left.
        () = too_late => Err(End::Close(Close::TooSlow)),
    }
}
