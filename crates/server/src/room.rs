//! The chat room: what happens in the sessions that chat clients speak in is told to all of them.
//!
//! One onlooker a session, however many members; it follows the session by its place in the log,
//! so nothing is missed when the session sleeps and wakes. A member that does not keep up is cut
//! off, and holds nobody up.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use polyloop_agent::actor::{Attached, CommandError};
use polyloop_agent::sessions::Sessions;
use polyloop_agent::subscriber::{Ending, Power, Presence, Subscription};
use polyloop_dialects::{Cursor, Dialect, Frame, Reply};
use polyloop_session::SessionId;
use polyloop_session::wait::Who;
use tokio::sync::mpsc;

use crate::catch_up::{CatchUp, Moment};
use crate::socket::store_complaint;
use crate::view::{Bundle, DialectKind, DialectView};

/// Frames a member may lag behind: it has no place to come back to.
const MEMBER_FRAMES_MAX: usize = 8 * 1024;
const MEMBER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Who is told what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broadcast {
    /// All members, everything.
    All,
    /// Those who have spoken in a session, what happens there.
    Session,
}

/// A frame for a member.
#[derive(Clone, Debug)]
pub struct Told {
    pub session: Option<SessionId>,
    pub frame: Frame,
}

pub struct Room {
    sessions: Sessions<DialectView>,
    dialect: &'static dyn Dialect,
    broadcast: Broadcast,
    talks: Mutex<HashMap<SessionId, Arc<Talk>>>,
    members: Mutex<HashMap<u64, Seat>>,
    next_member: AtomicU64,
}

/// A session of the room.
#[derive(Default)]
struct Talk {
    /// How often it was opened; whoever follows it compares.
    opened: AtomicU64,
    following: tokio::sync::Mutex<Following>,
}

#[derive(Default)]
struct Following {
    is_followed: bool,
    /// Where the room is in it.
    place: Option<Cursor>,
}

/// A member as the room knows it.
struct Seat {
    frames: mpsc::Sender<Told>,
    queued_bytes: Arc<AtomicUsize>,
    spoke_in: HashSet<SessionId>,
    /// The session that it follows by itself.
    apart: Option<SessionId>,
}

/// A member's own end; leaving is dropping it.
pub struct Member {
    id: u64,
    frames: mpsc::Receiver<Told>,
    queued_bytes: Arc<AtomicUsize>,
    room: Arc<Room>,
}

impl Member {
    pub fn id(&self) -> u64 {
        self.id
    }

    /// `None` when the member was too slow and is one no more.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Told>> {
        let told = self.frames.poll_recv(cx);
        if let Poll::Ready(Some(told)) = &told {
            self.queued_bytes.fetch_sub(told.frame.text.len(), Ordering::Relaxed);
        }
        told
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        lock(&self.room.members).remove(&self.id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Room {
    pub fn new(
        sessions: Sessions<DialectView>,
        dialect: &'static dyn Dialect,
        broadcast: Broadcast,
    ) -> Arc<Room> {
        let (talks, members) = (Mutex::default(), Mutex::default());
        let next_member = AtomicU64::new(0);
        let room = Room { sessions, dialect, broadcast, talks, members, next_member };
        let room = Arc::new(room);
        let follower = Arc::downgrade(&room);
        room.sessions.on_open(move |id| {
            let Some(room) = follower.upgrade() else { return };
            if let Some(talk) = lock(&room.talks).get(id).cloned() {
                talk.opened.fetch_add(1, Ordering::AcqRel);
                tokio::spawn(again(room.clone(), id.clone()));
            }
        });
        room
    }

    pub fn join(self: &Arc<Room>, apart: Option<SessionId>) -> Member {
        let id = self.next_member.fetch_add(1, Ordering::Relaxed);
        let (sender, frames) = mpsc::channel(MEMBER_FRAMES_MAX);
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        let spoke_in = HashSet::new();
        let seat = Seat { frames: sender, queued_bytes: queued_bytes.clone(), spoke_in, apart };
        lock(&self.members).insert(id, seat);
        Member { id, frames, queued_bytes, room: self.clone() }
    }

    /// A member is about to speak in a session, which thereby belongs to the room. When this is
    /// done the room sees what comes of it.
    pub async fn speak(
        self: &Arc<Room>,
        member: u64,
        session: &SessionId,
        who: &Who,
    ) -> Result<(), CommandError> {
        if let Some(seat) = lock(&self.members).get_mut(&member) {
            seat.spoke_in.insert(session.clone());
        }
        lock(&self.talks).entry(session.clone()).or_default();
        self.follow(session, who.clone()).await
    }

    /// The session is gone.
    pub fn forget(&self, session: &SessionId) {
        lock(&self.talks).remove(session);
    }

    /// What a member did wrong, told to all of them or to it alone.
    pub fn complain(&self, member: u64, frame: Frame) {
        let told = Told { session: None, frame };
        let alone = self.broadcast == Broadcast::Session;
        self.tell(&told, |id, _| !alone || id == member);
    }

    /// Follows a session of the room, unless that is done already. When this is over the room sees
    /// what comes, whoever began to follow. A session that is not there is made, by `who`.
    async fn follow(self: &Arc<Room>, session: &SessionId, who: Who) -> Result<(), CommandError> {
        let Some(talk) = lock(&self.talks).get(session).cloned() else { return Ok(()) };
        let mut following = talk.following.lock().await;
        if following.is_followed {
            return Ok(());
        }
        let handle = self.sessions.handle(session.clone(), who);
        let since = following.place.as_ref().map(|cursor| cursor.seq);
        let kind = DialectKind(self.dialect);
        let attached = handle.attach(kind, since, Power::Watch, Presence::Onlooker).await;
        let Attached { head, from, live, waiting, subscription } = attached?;
        let opened = talk.opened.load(Ordering::Acquire);
        let moment = Moment { head, from, live, waiting };
        let place = following.place.clone();
        let mut catching_up = CatchUp::new(self.dialect, &handle, moment, place);
        loop {
            match catching_up.next().await {
                Ok(Some(batch)) => {
                    batch.frames.into_iter().for_each(|frame| self.told(session, frame));
                    following.place = Some(catching_up.place());
                }
                Ok(None) => break,
                Err(error) => return Err(CommandError::Store(error.to_string())),
            }
        }
        following.is_followed = true;
        following.place = Some(catching_up.place());
        let pump =
            Pump { room: self.clone(), session: session.clone(), talk: talk.clone(), opened };
        tokio::spawn(pump.run(subscription));
        Ok(())
    }

    fn told(&self, session: &SessionId, frame: Frame) {
        let told = Told { session: Some(session.clone()), frame };
        let all = self.broadcast == Broadcast::All;
        self.tell(&told, |_, seat| {
            seat.apart.as_ref() != Some(session) && (all || seat.spoke_in.contains(session))
        });
    }

    /// Nobody waits for anybody: whoever cannot take it is a member no more.
    fn tell(&self, told: &Told, to: impl Fn(u64, &Seat) -> bool) {
        lock(&self.members).retain(|id, seat| {
            if !to(*id, seat) {
                return true;
            }
            let bytes = told.frame.text.len();
            let queued = seat.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
            let fits = queued == 0 || queued.saturating_add(bytes) <= MEMBER_BYTES_MAX;
            fits && seat.frames.try_send(told.clone()).is_ok()
        });
    }
}

/// Hands on what happens in one session until that ends or sleeps.
struct Pump {
    room: Arc<Room>,
    session: SessionId,
    talk: Arc<Talk>,
    /// How often the session had been opened when this began.
    opened: u64,
}

impl Pump {
    async fn run(self, mut subscription: Subscription<Arc<Bundle>>) {
        let mut place = None;
        let ending = loop {
            match subscription.next().await {
                Ok(bundle) => {
                    for frame in &bundle.frames {
                        let at = frame.stamp().and_then(|stamp| Cursor::of_stamp(&stamp));
                        place = at.or(place);
                        self.room.told(&self.session, frame.clone());
                    }
                }
                Err(ending) => break ending,
            }
        };
        if let Ending::Failed(why) = &ending {
            tracing::warn!(session = %self.session, why, "the room lost a session");
            // Whoever waits for an answer there would wait for ever.
            let reply = Reply::Complaint(store_complaint(why));
            let frame = self.room.dialect.reply(Some(&self.session), 0, &reply);
            self.room.told(&self.session, frame);
        }
        let mut following = self.talk.following.lock().await;
        following.is_followed = false;
        following.place = place.or(following.place.take());
        drop(following);
        // It may have been opened again before this noticed its end, or go on without this.
        let goes_on = ending == Ending::Behind;
        if goes_on || self.talk.opened.load(Ordering::Acquire) != self.opened {
            tokio::spawn(again(self.room, self.session));
        }
    }
}

/// A future of a named type, because following begins a pump and a pump may follow again.
fn again(room: Arc<Room>, session: SessionId) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let who = Who::via(room.dialect.name());
        if let Err(error) = room.follow(&session, who).await {
            tracing::warn!(%session, ?error, "the room could not follow a session");
        }
    })
}
