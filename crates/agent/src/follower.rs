//! A session that another server has, as this one's clients see it.
//!
//! It shows what the owner tells, which is what the log holds, in the log's order: what was not told
//! is read there. What changes the session goes to the owner. When there is none, and somebody is
//! here, the follower takes the session over, with its clients and all that waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use polyloop_session::{Event, Live, LogEntry, Seq, SessionId, State, Timestamp, Update};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::actor::{Attach, Birth, Kit, Request};
use crate::clock;
use crate::log::{Folded, LogError};
use crate::meter::Meter;
use crate::peers::wire::{self, Told, Watch, What};
use crate::peers::{Lease, Peers, ServerId};
use crate::stand::Stand;
use crate::subscriber::{Audience, Ending, Power, View};

mod asking;
mod take_over;

use asking::Asking;

/// How often the owner hears that somebody watches here, and is looked for if there is none.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a session may be unknown that another server is just making.
const MAKING_TIME_MAX: Duration = Duration::from_secs(10);
const MAKING_LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) struct Follower<V: View> {
    birth: Birth,
    kit: Arc<Kit>,
    peers: Arc<dyn Peers>,
    owner: Option<ServerId>,
    state: State,
    live: Live,
    turns: Vec<Seq>,
    last_at: Timestamp,
    audience: Audience<V>,
    mailbox: mpsc::Receiver<Box<Request<V>>>,
    told: mpsc::Receiver<Bytes>,
    /// What the owner is asked, the oldest first.
    waiting: VecDeque<Waiting<V>>,
    /// Clients that come back with a place, which may be ahead of what is known here.
    arrivals: Vec<Arrival<V>>,
    asking: Option<Asking>,
    /// What the owner was last told of those who watch here.
    said: Option<Watch>,
    looking: Interval,
    /// Since when nobody wants it.
    idle_since: Option<Instant>,
    is_over: bool,
}

/// A request that only the owner can answer.
struct Waiting<V: View> {
    request: Box<Request<V>>,
    until: Instant,
    /// How far the session was when the owner was asked, which has not answered.
    asked_at: Option<Seq>,
}

/// A client that is let in when the owner has said how far the session is.
struct Arrival<V: View> {
    request: Box<Request<V>>,
    until: Instant,
    /// The owner was asked since it came.
    is_asked: bool,
}

impl<V: View> Arrival<V> {
    fn since(&self) -> Option<Seq> {
        match &*self.request {
            Request::Attach { ask, .. } => ask.since,
            _ => None,
        }
    }
}

/// What a follower ends with.
pub(crate) enum Outcome<V: View> {
    Ended(Ending),
    /// The session is this server's.
    Took(Box<Follower<V>>, Lease),
}

enum Flow {
    GoOn,
    End,
}

/// A session as whoever follows it finds it.
pub(crate) struct Found {
    owner: ServerId,
    told: mpsc::Receiver<Bytes>,
    folded: Folded,
    live: Live,
}

impl Found {
    /// `None` when the owner is none any more before it has made the session.
    pub(crate) async fn look(
        peers: &dyn Peers,
        id: &SessionId,
        owner: ServerId,
    ) -> Result<Option<Found>, LogError> {
        // First, so that nothing is missed between what is there and what is told.
        let told = peers.follow(id).await?;
        let made = made(peers, id, &owner).await?;
        Ok(made.map(|(folded, live)| Found { owner, told, folded, live }))
    }
}

impl<V: View> Follower<V> {
    pub(crate) fn new(
        birth: Birth,
        kit: Arc<Kit>,
        peers: Arc<dyn Peers>,
        found: Found,
        mailbox: mpsc::Receiver<Box<Request<V>>>,
    ) -> Follower<V> {
        let Found { owner, told, folded, live } = found;
        let Folded { state, turns, last_at, .. } = folded;
        let live = open_in(&state, &live);
        let audience = Audience::new(kit.meter.clone());
        let mut looking = interval(LOOK_EVERY);
        looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Follower {
            birth,
            kit,
            peers,
            owner: Some(owner),
            state,
            live,
            turns,
            last_at,
            audience,
            mailbox,
            told,
            waiting: VecDeque::new(),
            arrivals: Vec::new(),
            asking: None,
            said: None,
            looking,
            idle_since: None,
            is_over: false,
        }
    }

    pub(crate) fn meter(&self) -> Arc<Meter> {
        self.kit.meter.clone()
    }

    pub(crate) async fn run(mut self) -> Outcome<V> {
        let ending = match self.serve().await {
            Ok(Some(lease)) => return Outcome::Took(Box::new(self), lease),
            Ok(None) => Ending::Closed,
            Err(error) => {
                tracing::warn!(session = %self.birth.id, %error, "the session cannot be followed");
                Ending::Failed(error.to_string())
            }
        };
        self.refuse_what_was_asked();
        self.bid_farewell();
        self.audience.end(&ending);
        Outcome::Ended(ending)
    }

    /// Until nobody is here any more, or the session is this server's.
    async fn serve(&mut self) -> Result<Option<Lease>, LogError> {
        loop {
            self.audience.tidy();
            self.ask_next();
            if self.is_over {
                return Ok(None);
            }
            self.idle_since = match self.is_wanted() {
                true => None,
                false => self.idle_since.or_else(|| Some(Instant::now())),
            };
            let sleeps_at = self.idle_since.map(|since| since + self.kit.sleep_after);
            tokio::select! {
                request = self.mailbox.recv() => match request {
                    Some(request) => match self.handle(request).await? {
                        Flow::GoOn => {}
                        Flow::End => return Ok(None),
                    },
                    None => return Ok(None),
                },
                told = self.told.recv() => match told {
                    Some(told) => self.hear(&told).await?,
                    // The way to others broke; what they say meanwhile is in the log.
                    None => self.told = self.peers.follow(&self.birth.id).await?,
                },
                answered = asking::answer(&mut self.asking) => {
                    self.take_answer(answered).await?;
                }
                _ = self.looking.tick() => {
                    if let Some(lease) = self.look().await? {
                        return Ok(Some(lease));
                    }
                }
                () = self.audience.left() => {}
                () = sleep_until(sleeps_at), if sleeps_at.is_some() => return Ok(None),
            }
        }
    }

    /// What can be said from here is; the rest waits for the owner.
    async fn handle(&mut self, request: Box<Request<V>>) -> Result<Flow, LogError> {
        match *request {
            request @ Request::Attach { ask: Attach { since: Some(_), .. }, .. } => {
                self.arrive(Box::new(request));
            }
            Request::Attach { ask, reply } => {
                let attached = self.stand().attach(ask).await;
                let _ = reply.send(attached.map_err(Into::into));
            }
            request @ (Request::Beginnings { .. }
            | Request::ContextInfo { .. }
            | Request::Look { .. }
            | Request::Shown { .. }) => self.stand().tell(request),
            Request::Audit { line } => {
                let line = line(self.last_at.max(clock::now()), self.state.last_seq());
                self.say(What::Audit { line });
            }
            Request::CloseIfIdle { reply } => {
                self.audience.tidy();
                let idle = !self.is_wanted();
                let _ = reply.send(idle);
                if idle {
                    return Ok(Flow::End);
                }
            }
            Request::Close => return Ok(Flow::End),
            Request::LetGo if !self.is_wanted() && !self.minds() => return Ok(Flow::End),
            Request::OwnerChanged | Request::LetGo => self.looking.reset_immediately(),
            Request::Remote { reply, .. } => {
                let _ = reply.send(wire::Answered::NotHere);
            }
            request @ (Request::Command { .. }
            | Request::SettleWithPatch { .. }
            | Request::Undo { .. }) => self.wait(Box::new(request)),
        }
        Ok(Flow::GoOn)
    }

    fn stand(&mut self) -> Stand<'_, V> {
        Stand {
            id: &self.birth.id,
            kit: &self.kit,
            log: &*self.kit.log,
            state: &self.state,
            live: &self.live,
            turns: &self.turns,
            audience: &mut self.audience,
        }
    }

    /// Whether somebody is here, or asks something.
    fn is_wanted(&self) -> bool {
        self.audience.has_clients() || !self.waiting.is_empty() || !self.arrivals.is_empty()
    }

    /// Those who watch here.
    fn watch(&self) -> Watch {
        let power = self.audience.power().unwrap_or(Power::Watch);
        Watch { power, clients: self.audience.has_clients() }
    }

    async fn hear(&mut self, told: &[u8]) -> Result<(), LogError> {
        for told in wire::read::<Vec<Told>>(told).unwrap_or_default() {
            match told {
                Told::Logged(entry) if entry.seq <= self.state.last_seq() => {}
                Told::Logged(entry) if entry.seq == self.state.last_seq().next() => {
                    self.take(entry);
                }
                Told::Grew(growth) if growth.offset > self.live.len(growth.item, growth.stream) => {
                    // Something before it was not told: the owner says all of it.
                    self.said = None;
                    self.looking.reset_immediately();
                }
                Told::Grew(growth) => self.grow(growth),
                Told::Raw(raw) => self.audience.send(&Update::Raw(raw)),
                Told::Logged(_) | Told::Look => self.read_on().await?,
            }
        }
        self.audience.deliver();
        Ok(())
    }

    /// Takes in what the log holds beyond what was told.
    async fn read_on(&mut self) -> Result<(), LogError> {
        loop {
            let after = self.state.last_seq();
            let page = self.kit.log.read(&self.birth.id, after, Seq(u64::MAX)).await?;
            if page.is_empty() {
                return Ok(());
            }
            for entry in page {
                if entry.seq == self.state.last_seq().next() {
                    self.take(entry);
                }
            }
            if self.state.last_seq() == after {
                return Ok(());
            }
        }
    }

    fn take(&mut self, entry: Arc<LogEntry>) {
        if entry.event.is_beginning() {
            self.turns.push(entry.seq);
        }
        if let Event::ItemCompleted { item, .. } = &entry.event {
            self.live.close(*item);
        }
        self.last_at = self.last_at.max(entry.at);
        self.state.apply(&entry);
        self.audience.send(&Update::Logged(entry));
    }

    /// Shows what is new of growth.
    fn grow(&mut self, mut growth: polyloop_session::Growth) {
        let open = self.state.turn().is_some_and(|turn| turn.items.contains_key(&growth.item));
        let have = self.live.len(growth.item, growth.stream);
        let Some(known) = have.checked_sub(growth.offset) else { return };
        let fresh = usize::try_from(known).ok().and_then(|known| growth.text.get(known..));
        let Some(fresh) = fresh.filter(|fresh| open && !fresh.is_empty()) else { return };
        (growth.offset, growth.text) = (have, fresh.into());
        self.live.grow(&growth);
        self.audience.send(&Update::Grew(growth));
    }
}

/// Growth of items that are open. Of one that is not in the log yet it may be there already.
fn open_in(state: &State, found: &Live) -> Live {
    let mut live = Live::default();
    let is_open = |item| state.turn().is_some_and(|turn| turn.items.contains_key(&item));
    found.growths().filter(|growth| is_open(growth.item)).for_each(|growth| live.grow(&growth));
    live
}

async fn sleep_until(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

/// What a session holds; one that its owner is just making is waited for, unless that has ended.
async fn made(
    peers: &dyn Peers,
    id: &SessionId,
    owner: &ServerId,
) -> Result<Option<(Folded, Live)>, LogError> {
    let until = Instant::now() + MAKING_TIME_MAX;
    loop {
        match peers.peek(id).await? {
            Some(found) if found.0.state.last_seq() != Seq::NONE => return Ok(Some(found)),
            _ if Instant::now() >= until => {
                return Err(LogError::store(format!("session {id}"), "there is no such session"));
            }
            _ => tokio::time::sleep(MAKING_LOOK_EVERY).await,
        }
        if peers.owner(id).as_ref() != Some(owner) {
            return Ok(None);
        }
    }
}
