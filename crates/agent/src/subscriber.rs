//! Those who watch a session: a bounded queue each, behind a view that all of one kind share.
//!
//! A frame is made once for all subscribers of a kind, and those of one moment go out together. One
//! that takes less than is made is let go and told so; it comes back by its place in the log.
//! Nothing here waits for anyone.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use polyloop_session::{LogEntry, Seq, SessionId, Update};
use serde::{Deserialize, Serialize};
use tokio::sync::futures::Notified;

use crate::log::LogError;
use crate::meter::Meter;
use crate::peers::wire::Told;

mod feed;
mod queue;

pub(crate) use feed::Feed;
pub(crate) use queue::Queued;
pub use queue::{Door, Passed, QUEUED_BUNDLES_MAX, QUEUED_BYTES_MAX, Subscription};
use queue::{Leaving, Subscriber};

/// Frames and answers that wait for the disk before the session waits, too.
const HELD_MAX: usize = 1024;

/// How a session looks to one kind of client. The agent does not know what comes out.
pub trait View: Send + 'static {
    type Kind: Copy + Eq + Send + Sync + 'static;
    type Frame: Send + 'static;
    /// Frames that go out together, shared by all who get them.
    type Bundle: Clone + Send + Sync + 'static;

    /// A view of what comes after the entry `at`, which is not inside a turn.
    fn open(kind: Self::Kind, session: &SessionId, at: Seq) -> Self;

    /// Takes in an entry that nobody is to be shown.
    fn skip(&mut self, entry: &LogEntry);

    /// Takes in an entry from further back, which a later one names.
    fn recall(&mut self, entry: &LogEntry);

    fn see(&mut self, update: &Update) -> Vec<Self::Frame>;

    fn bundle(frames: Vec<Self::Frame>) -> Self::Bundle;

    fn bundle_bytes(bundle: &Self::Bundle) -> usize;
}

/// What a subscriber can do about what a turn asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// Another server has the session now: it goes on there.
    Moved,
    /// The session's store failed, or its actor broke.
    Failed(String),
}

impl Ending {
    /// What an error of the store comes to.
    pub(crate) fn of(error: &LogError) -> Ending {
        match error.is_lost() {
            true => Ending::Moved,
            false => Ending::Failed(error.to_string()),
        }
    }
}

/// All subscribers of one session.
pub(crate) struct Audience<V: View> {
    lenses: Vec<Lens<V>>,
    leaving: Arc<Leaving>,
    meter: Arc<Meter>,
    /// Other servers that follow it.
    feed: Option<Feed>,
    /// What nobody may be told before something is safe, in order.
    held: VecDeque<Held<V>>,
    /// Who is told behind what was made and is not sent yet.
    answers: Vec<Box<Tell>>,
}

/// Tells somebody what came of a request, or why it cannot be known to be safe.
pub(crate) type Tell = dyn FnOnce(Result<(), &Ending>) + Send;

enum Held<V: View> {
    /// What follows waits for one more thing to be safe.
    Until,
    Frame(V::Kind, V::Frame),
    Fed(Told),
    Told(Box<Tell>),
}

struct Lens<V: View> {
    kind: V::Kind,
    view: V,
    subscribers: Vec<Subscriber<V::Bundle>>,
    /// What was made and is not sent yet.
    gathered: Vec<V::Frame>,
}

impl<V: View> Lens<V> {
    fn deliver(&mut self) {
        if self.gathered.is_empty() {
            return;
        }
        let bundle = V::bundle(std::mem::take(&mut self.gathered));
        let bytes = V::bundle_bytes(&bundle);
        self.subscribers.retain(|subscriber| subscriber.send(&bundle, bytes));
    }
}

impl<V: View> Audience<V> {
    pub(crate) fn new(meter: Arc<Meter>) -> Audience<V> {
        let (lenses, feed, held, answers) = (Vec::new(), None, VecDeque::new(), Vec::new());
        Audience { lenses, leaving: Arc::default(), meter, feed, held, answers }
    }

    /// Other servers may follow, from now on.
    pub(crate) fn feed(&mut self, feed: Feed) {
        self.feed = Some(feed);
    }

    pub(crate) fn fed(&mut self) -> Option<&mut Feed> {
        self.feed.as_mut()
    }

    /// Comes when a server that follows may have gone away without a word.
    pub(crate) fn feed_due(&self) -> impl Future<Output = ()> + use<V> {
        let due = self.feed.as_ref().and_then(Feed::due);
        async move {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        }
    }

    pub(crate) fn has(&self, kind: V::Kind) -> bool {
        self.lenses.iter().any(|lens| lens.kind == kind)
    }

    /// Adds a view that has caught up with the log.
    pub(crate) fn add(&mut self, kind: V::Kind, view: V) {
        self.lenses.push(Lens { kind, view, subscribers: Vec::new(), gathered: Vec::new() });
    }

    /// `None` when no view of that kind was added.
    pub(crate) fn subscribe(
        &mut self,
        kind: V::Kind,
        power: Power,
        presence: Presence,
    ) -> Option<Subscription<V::Bundle>> {
        self.deliver();
        let lens = self.lenses.iter_mut().find(|lens| lens.kind == kind)?;
        let (subscriber, subscription) =
            Subscriber::new(power, presence, self.leaving.clone(), V::bundle_bytes);
        self.meter.watch(subscriber.queued());
        lens.subscribers.push(subscriber);
        Some(subscription)
    }

    /// Makes the frames of an update; they go out with `deliver`.
    pub(crate) fn send(&mut self, update: &Update) {
        let holding = !self.held.is_empty();
        for lens in &mut self.lenses {
            let frames = lens.view.see(update);
            match holding {
                true => self.held.extend(frames.into_iter().map(|f| Held::Frame(lens.kind, f))),
                false if lens.gathered.is_empty() => lens.gathered = frames,
                false => lens.gathered.extend(frames),
            }
        }
        let Some(feed) = &mut self.feed else { return };
        match feed.of(update) {
            Some(told) if holding => self.held.push_back(Held::Fed(told)),
            Some(told) => feed.gather(told),
            None => {}
        }
    }

    /// What was made since the last time goes out together.
    pub(crate) fn deliver(&mut self) {
        self.lenses.iter_mut().for_each(Lens::deliver);
        if let Some(feed) = &mut self.feed {
            feed.deliver();
        }
        self.answers.drain(..).for_each(|tell| tell(Ok(())));
    }

    /// Tells somebody something, in its turn; it goes out with `deliver`.
    pub(crate) fn tell(&mut self, tell: Box<Tell>) {
        match self.held.is_empty() {
            true => self.answers.push(tell),
            false => self.held.push_back(Held::Told(tell)),
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
                None | Some(Held::Until) => return self.deliver(),
                Some(Held::Frame(..) | Held::Fed(_) | Held::Told(_)) => {}
            }
            match self.held.pop_front() {
                Some(Held::Frame(kind, frame)) => {
                    if let Some(lens) = self.lenses.iter_mut().find(|lens| lens.kind == kind) {
                        lens.gathered.push(frame);
                    }
                }
                Some(Held::Fed(told)) => {
                    if let Some(feed) = &mut self.feed {
                        feed.gather(told);
                    }
                }
                Some(Held::Told(tell)) => {
                    self.deliver();
                    tell(Ok(()));
                }
                Some(Held::Until) | None => {}
            }
        }
    }

    pub(crate) fn end(&mut self, ending: &Ending) {
        self.deliver();
        for held in self.held.drain(..) {
            if let (Held::Told(tell), Ending::Failed(_) | Ending::Moved) = (held, ending) {
                tell(Err(ending));
            }
        }
        for subscriber in self.lenses.iter().flat_map(|lens| &lens.subscribers) {
            subscriber.end(ending.clone());
        }
        self.lenses.clear();
    }

    /// Waits until somebody has left; perhaps nobody is there any more.
    pub(crate) fn left(&self) -> Notified<'_> {
        self.leaving.notify.notified()
    }

    /// Forgets those who left, and views that nobody looks through.
    pub(crate) fn tidy(&mut self) {
        if let Some(feed) = &mut self.feed {
            feed.tidy();
        }
        if !self.leaving.any.swap(false, Ordering::AcqRel) {
            return;
        }
        for lens in &mut self.lenses {
            lens.subscribers.retain(|subscriber| !subscriber.has_left());
        }
        self.lenses.retain(|lens| !lens.subscribers.is_empty());
    }

    /// Whether no client is attached; onlookers do not count.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_clients() && !self.feed.as_ref().is_some_and(Feed::has_clients)
    }

    /// Whether a client is attached at this server.
    pub(crate) fn has_clients(&self) -> bool {
        self.subscribers().any(|subscriber| subscriber.presence == Presence::Client)
    }

    /// What the most powerful of those at this server can do; `None` when there are none.
    pub(crate) fn power(&self) -> Option<Power> {
        self.subscribers().filter(|s| !s.has_left()).map(|s| s.power).max()
    }

    /// Whether somebody is attached who can do so much.
    pub(crate) fn can(&self, power: Power) -> bool {
        let here = self.subscribers().any(|s| s.power >= power && !s.has_left());
        here || self.feed.as_ref().is_some_and(|feed| feed.can(power))
    }

    fn subscribers(&self) -> impl Iterator<Item = &Subscriber<V::Bundle>> {
        self.lenses.iter().flat_map(|lens| &lens.subscribers)
    }
}
