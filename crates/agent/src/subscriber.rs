//! Those who watch a session: a bounded queue each, behind a view that all of one kind share.
//!
//! A frame is made once for all subscribers of a kind. One that takes less than is made is let go
//! and told so; it comes back by its place in the log. Nothing here waits for anyone.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use polyloop_session::{LogEntry, Seq, SessionId, Update};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, mpsc};

use crate::meter::Meter;

/// Frames one subscriber may lag behind.
pub const QUEUED_FRAMES_MAX: usize = 8 * 1024;
/// Bytes one subscriber may lag behind; the frames themselves are shared.
pub const QUEUED_BYTES_MAX: usize = 1024 * 1024;

/// Frames and answers that wait for the disk before the session waits, too.
const HELD_MAX: usize = 1024;

/// How a session looks to one kind of client. The agent does not know what comes out.
pub trait View: Send + 'static {
    type Kind: Copy + Eq + Send + Sync + 'static;
    type Frame: Clone + Send + Sync + 'static;

    /// A view of what comes after the entry `at`, which is not inside a turn.
    fn open(kind: Self::Kind, session: &SessionId, at: Seq) -> Self;

    /// Takes in an entry that nobody is to be shown.
    fn skip(&mut self, entry: &LogEntry);

    /// Takes in an entry from further back, which a later one names.
    fn recall(&mut self, entry: &LogEntry);

    fn see(&mut self, update: &Update) -> Vec<Self::Frame>;

    fn frame_bytes(frame: &Self::Frame) -> usize;
}

/// What a subscriber can do about what a turn asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Power {
    Watch,
    /// It can answer questions and plans.
    Answer,
    /// It can also give leave.
    Approve,
}

/// Whether a subscriber is a client, for whom a session stays awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Client,
    /// It looks on while there is something to see, and comes back by itself.
    Onlooker,
}

/// Why a subscription ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The session went to sleep or the server stops.
    Closed,
    /// More was made than it took: what is missing is in the log.
    Behind,
    /// The session's store failed, or its actor broke.
    Failed(String),
}

pub struct Subscription<F> {
    frames: mpsc::Receiver<F>,
    shared: Arc<Queued>,
    left: Arc<Notify>,
    bytes_of: fn(&F) -> usize,
}

/// What both ends of a queue know of it.
#[derive(Default)]
pub(crate) struct Queued {
    queued_bytes: AtomicUsize,
    ending: Mutex<Option<Ending>>,
}

impl Queued {
    /// What waits in it.
    pub(crate) fn bytes(&self) -> usize {
        self.queued_bytes.load(Ordering::Relaxed)
    }
}

impl<F> Subscription<F> {
    /// The next frame; `Err` when there will be none.
    pub async fn next(&mut self) -> Result<F, Ending> {
        match self.frames.recv().await {
            Some(frame) => Ok(self.taken(frame)),
            None => Err(self.ending()),
        }
    }

    /// The same, for whoever waits for several things at once.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<F, Ending>> {
        match self.frames.poll_recv(cx) {
            Poll::Ready(Some(frame)) => Poll::Ready(Ok(self.taken(frame))),
            Poll::Ready(None) => Poll::Ready(Err(self.ending())),
            Poll::Pending => Poll::Pending,
        }
    }

    /// A frame that is there already.
    pub fn ready(&mut self) -> Option<F> {
        let frame = self.frames.try_recv().ok()?;
        Some(self.taken(frame))
    }

    fn taken(&self, frame: F) -> F {
        self.shared.queued_bytes.fetch_sub((self.bytes_of)(&frame), Ordering::Relaxed);
        frame
    }

    fn ending(&self) -> Ending {
        let ending = self.shared.ending.lock().unwrap_or_else(PoisonError::into_inner);
        // An actor that breaks says nothing.
        let broke = || Ending::Failed("the session broke; this is a fault of the server".into());
        ending.clone().unwrap_or_else(broke)
    }
}

impl<F> Drop for Subscription<F> {
    /// The session may have nobody left to stay awake for.
    fn drop(&mut self) {
        self.frames.close();
        self.left.notify_one();
    }
}

pub(crate) struct Subscriber<F> {
    frames: mpsc::Sender<F>,
    shared: Arc<Queued>,
    power: Power,
    presence: Presence,
}

impl<F: Clone> Subscriber<F> {
    fn new(
        power: Power,
        presence: Presence,
        left: Arc<Notify>,
        bytes_of: fn(&F) -> usize,
    ) -> (Subscriber<F>, Subscription<F>) {
        let (sender, frames) = mpsc::channel(QUEUED_FRAMES_MAX);
        let shared = Arc::new(Queued::default());
        let subscriber = Subscriber { frames: sender, shared: shared.clone(), power, presence };
        (subscriber, Subscription { frames, shared, left, bytes_of })
    }

    fn end(&self, ending: Ending) {
        let mut place = self.shared.ending.lock().unwrap_or_else(PoisonError::into_inner);
        place.get_or_insert(ending);
    }

    /// False when it is gone or was cut off.
    fn send(&self, frame: &F, bytes: usize) -> bool {
        let queued = self.shared.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        // A single frame is always taken, however long.
        let fits = queued == 0 || queued.saturating_add(bytes) <= QUEUED_BYTES_MAX;
        if fits && self.frames.try_send(frame.clone()).is_ok() {
            return true;
        }
        self.end(Ending::Behind);
        false
    }
}

/// All subscribers of one session.
pub(crate) struct Audience<V: View> {
    lenses: Vec<Lens<V>>,
    left: Arc<Notify>,
    meter: Arc<Meter>,
    /// What nobody may be told before something is safe, in order.
    held: VecDeque<Held<V>>,
}

/// Tells somebody what came of a request, or why it cannot be known to be safe.
type Tell = dyn FnOnce(Result<(), &str>) + Send;

enum Held<V: View> {
    /// What follows waits for one more thing to be safe.
    Until,
    Frame(V::Kind, V::Frame),
    Told(Box<Tell>),
}

struct Lens<V: View> {
    kind: V::Kind,
    view: V,
    subscribers: Vec<Subscriber<V::Frame>>,
}

impl<V: View> Lens<V> {
    fn deliver(&mut self, frame: &V::Frame) {
        let bytes = V::frame_bytes(frame);
        self.subscribers.retain(|subscriber| subscriber.send(frame, bytes));
    }
}

impl<V: View> Audience<V> {
    pub(crate) fn new(meter: Arc<Meter>) -> Audience<V> {
        Audience { lenses: Vec::new(), left: Arc::default(), meter, held: VecDeque::new() }
    }

    pub(crate) fn has(&self, kind: V::Kind) -> bool {
        self.lenses.iter().any(|lens| lens.kind == kind)
    }

    /// Adds a view that has caught up with the log.
    pub(crate) fn add(&mut self, kind: V::Kind, view: V) {
        self.lenses.push(Lens { kind, view, subscribers: Vec::new() });
    }

    /// `None` when no view of that kind was added.
    pub(crate) fn subscribe(
        &mut self,
        kind: V::Kind,
        power: Power,
        presence: Presence,
    ) -> Option<Subscription<V::Frame>> {
        let lens = self.lenses.iter_mut().find(|lens| lens.kind == kind)?;
        let (subscriber, subscription) =
            Subscriber::new(power, presence, self.left.clone(), V::frame_bytes);
        self.meter.watch(&subscriber.shared);
        lens.subscribers.push(subscriber);
        Some(subscription)
    }

    pub(crate) fn send(&mut self, update: &Update) {
        let holding = !self.held.is_empty();
        for lens in &mut self.lenses {
            for frame in lens.view.see(update) {
                match holding {
                    true => self.held.push_back(Held::Frame(lens.kind, frame)),
                    false => lens.deliver(&frame),
                }
            }
        }
    }

    /// Tells somebody something, in its turn.
    pub(crate) fn tell(&mut self, tell: impl FnOnce(Result<(), &str>) + Send + 'static) {
        match self.held.is_empty() {
            true => tell(Ok(())),
            false => self.held.push_back(Held::Told(Box::new(tell))),
        }
    }

    /// Whether so much is held that nothing more should be made meanwhile.
    pub(crate) fn holds_much(&self) -> bool {
        self.held.len() >= HELD_MAX
    }

    /// What is sent from now on is held until `release` was called once more.
    pub(crate) fn hold(&mut self) {
        self.held.push_back(Held::Until);
    }

    /// Lets go what waited for the oldest `hold`.
    pub(crate) fn release(&mut self) {
        self.held.pop_front();
        loop {
            match self.held.front() {
                None | Some(Held::Until) => return,
                Some(Held::Frame(..) | Held::Told(_)) => {}
            }
            match self.held.pop_front() {
                Some(Held::Frame(kind, frame)) => {
                    let lens = self.lenses.iter_mut().find(|lens| lens.kind == kind);
                    lens.into_iter().for_each(|lens| lens.deliver(&frame));
                }
                Some(Held::Told(tell)) => tell(Ok(())),
                Some(Held::Until) | None => {}
            }
        }
    }

    pub(crate) fn end(&mut self, ending: &Ending) {
        for held in self.held.drain(..) {
            if let (Held::Told(tell), Ending::Failed(why)) = (held, ending) {
                tell(Err(why));
            }
        }
        for subscriber in self.lenses.iter().flat_map(|lens| &lens.subscribers) {
            subscriber.end(ending.clone());
        }
        self.lenses.clear();
    }

    /// Waits until somebody has left; perhaps nobody is there any more.
    pub(crate) fn left(&self) -> Notified<'_> {
        self.left.notified()
    }

    /// Forgets those who left, and views that nobody looks through.
    pub(crate) fn tidy(&mut self) {
        for lens in &mut self.lenses {
            lens.subscribers.retain(|subscriber| !subscriber.frames.is_closed());
        }
        self.lenses.retain(|lens| !lens.subscribers.is_empty());
    }

    /// Whether no client is attached; onlookers do not count.
    pub(crate) fn is_empty(&self) -> bool {
        !self.subscribers().any(|subscriber| subscriber.presence == Presence::Client)
    }

    /// Whether somebody is attached who can do so much.
    pub(crate) fn can(&self, power: Power) -> bool {
        self.subscribers().any(|s| s.power >= power && !s.frames.is_closed())
    }

    fn subscribers(&self) -> impl Iterator<Item = &Subscriber<V::Frame>> {
        self.lenses.iter().flat_map(|lens| &lens.subscribers)
    }
}
