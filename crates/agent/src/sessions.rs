//! From a session's id to whoever runs it: opens sessions on use, lets idle ones sleep, lists and
//! archives them.
//!
//! Nobody else may assume that a session's actor is in this process: they hold a `Handle`.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use polyloop_session::event::Settings;
use polyloop_session::state::AUTO_RESUME_VIA;
use polyloop_session::wait::Who;
use polyloop_session::{Command, Refusal, SessionId};
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::actor::{Birth, CommandError, Kept, Kit, MAILBOX_REQUESTS_MAX, Request};
use crate::clock;
use crate::log::{LinePlace, LogError, Summary};
use crate::meter::Limit;
use crate::rails::{Rails, Which};
use crate::subscriber::{Ending, View};
use crate::todos::Todos;

mod fork;
mod handle;
mod part;
mod shared_store;

pub use fork::Forked;
pub use handle::Handle;

use shared_store::Elsewhere;

/// Who interrupts a passing session when its connection has gone.
const DEPARTED_VIA: &str = "connection";
const DEPARTED_REASON: &str = "The connection it belonged to was closed";

type Slot<V> = Arc<tokio::sync::Mutex<Option<Running<V>>>>;

/// A started actor.
struct Running<V: View> {
    /// Boxed, since room for many is kept for each session.
    mailbox: mpsc::Sender<Box<Request<V>>>,
    /// Cancelled when the actor is gone and has let go of its files.
    gone: CancellationToken,
    /// How it went, once it is gone; nothing if it broke.
    ended: Arc<OnceLock<Ending>>,
    /// Where it runs, if there are rails.
    on: Option<Which>,
}

impl<V: View> Clone for Running<V> {
    fn clone(&self) -> Running<V> {
        let (mailbox, gone) = (self.mailbox.clone(), self.gone.clone());
        Running { mailbox, gone, ended: self.ended.clone(), on: self.on }
    }
}

impl<V: View> Running<V> {
    /// `None` when the actor went without an answer. A request that comes into the mailbox in that
    /// very moment lies there as long as anyone can send to it, so its end alone is no sign.
    async fn answered<T>(&self, mut answer: oneshot::Receiver<T>) -> Option<T> {
        tokio::select! {
            biased;
            answered = &mut answer => answered.ok(),
            () = self.gone.cancelled() => answer.try_recv().ok(),
        }
    }
}

/// A panic elsewhere leaves whole values behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Sessions<V: View> {
    shared: Arc<Shared<V>>,
}

struct Shared<V: View> {
    kit: Arc<Kit>,
    todos: Option<Todos>,
    slots: Mutex<HashMap<SessionId, Slot<V>>>,
    /// Sessions that end with their connection.
    passing: Mutex<HashSet<SessionId>>,
    /// Told of every session that is opened.
    opened: OnceLock<Box<Opened>>,
    rails: OnceLock<Arc<Rails>>,
    closing: CancellationToken,
    /// Actors that there are.
    awake: Arc<AtomicUsize>,
}

/// Counts as one session in memory.
struct Awake(Arc<AtomicUsize>);

impl Drop for Awake {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type Opened = dyn Fn(&SessionId) + Send + Sync;

impl<V: View> Clone for Sessions<V> {
    fn clone(&self) -> Sessions<V> {
        Sessions { shared: self.shared.clone() }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Archived {
    Done,
    NotFound,
    /// A turn runs or a client is attached.
    Active,
}

impl<V: View> Sessions<V> {
    pub fn new(kit: Kit, todos: Option<Todos>) -> Sessions<V> {
        let closing = CancellationToken::new();
        Sessions {
            shared: Arc::new(Shared {
                kit: Arc::new(kit),
                todos,
                slots: Mutex::default(),
                passing: Mutex::default(),
                opened: OnceLock::new(),
                rails: OnceLock::new(),
                closing,
                awake: Arc::default(),
            }),
        }
    }

    pub fn todos(&self) -> Option<&Todos> {
        self.shared.todos.as_ref()
    }

    pub fn kit(&self) -> &Kit {
        &self.shared.kit
    }

    /// A handle to a session, which is made when it is first used.
    pub fn handle(&self, id: SessionId, by: Who) -> Handle<V> {
        let kept = self.kept(&id);
        Handle { sessions: self.clone(), id, by, kept, settings: None }
    }

    /// The same; if the session is new, it is made with these settings.
    pub fn handle_with(&self, id: SessionId, by: Who, settings: Settings) -> Handle<V> {
        Handle { settings: Some(Box::new(settings)), ..self.handle(id, by) }
    }

    /// A handle to a new session that is not listed and ends with `discard`.
    pub fn passing(&self, by: Who) -> Handle<V> {
        let id = clock::new_session_id();
        lock(&self.shared.passing).insert(id.clone());
        self.handle(id, by)
    }

    /// Ends a passing session: what runs is stopped, and nothing is left of it.
    pub async fn discard(&self, id: &SessionId) {
        if self.kept(id) == Kept::InStore {
            return;
        }
        let slot = self.slot(id).lock_owned().await;
        if let Some(running) = slot.as_ref() {
            // Also what waits for an answer: nobody will come back to give it.
            let (reply, _) = oneshot::channel();
            let (turn, by) = (None, Who::via(DEPARTED_VIA));
            let command = Command::Interrupt { turn, reason: DEPARTED_REASON.into(), by };
            let _ = running.mailbox.send(Box::new(Request::Command { command, reply })).await;
            let _ = running.mailbox.send(Box::new(Request::Close)).await;
            running.gone.cancelled().await;
        }
        self.shared.kit.passing.remove(id);
        self.shared.kit.places.forget(id).await;
        lock(&self.shared.passing).remove(id);
        drop(slot);
        self.forget(id);
    }

    /// Whether there is such a session, kept or passing.
    pub async fn exists(&self, id: &SessionId) -> Result<bool, LogError> {
        match self.kept(id) {
            Kept::Passing => Ok(true),
            Kept::InStore => Ok(self.summary(id).await?.is_some()),
        }
    }

    /// Calls this, once set, with every session that is opened from now on.
    pub fn on_open(&self, opened: impl Fn(&SessionId) + Send + Sync + 'static) {
        let _ = self.shared.opened.set(Box::new(opened));
    }

    /// Sessions that are opened from now on run on these; without, where they are asked for.
    pub fn run_on(&self, rails: Arc<Rails>) {
        let _ = self.shared.rails.set(rails);
    }

    /// Where a session runs, or would best be put; `None` without rails.
    pub fn rail_of(&self, id: Option<&SessionId>) -> Option<(Arc<Rails>, Which)> {
        let rails = self.shared.rails.get()?.clone();
        let on = id.and_then(|id| self.slots().get(id)?.try_lock().ok()?.as_ref()?.on);
        let which = on.unwrap_or_else(|| rails.choose());
        Some((rails, which))
    }

    fn kept(&self, id: &SessionId) -> Kept {
        match lock(&self.shared.passing).contains(id) {
            true => Kept::Passing,
            false => Kept::InStore,
        }
    }

    /// Makes a session with an id of our own.
    pub async fn create(&self, by: Who, settings: Settings) -> Result<Summary, CommandError> {
        let id = clock::new_session_id();
        self.running(&id, &by, Kept::InStore, Some(&settings)).await?;
        let summary = self.shared.kit.log.summary(&id).await?;
        summary.ok_or_else(|| CommandError::Store("the new session is gone".into()))
    }

    pub async fn list(&self) -> Result<Vec<Summary>, LogError> {
        let mut all = self.shared.kit.log.list().await?;
        all.sort_by(|a, b| b.start.cmp(&a.start).then_with(|| a.id.cmp(&b.id)));
        Ok(all)
    }

    pub async fn summary(&self, id: &SessionId) -> Result<Option<Summary>, LogError> {
        self.shared.kit.log.summary(id).await
    }

    /// Whether a session is in memory, so that its turn goes on. One that sleeps, or that the last
    /// server left behind, may have a turn that nobody works on.
    pub fn is_awake(&self, id: &SessionId) -> bool {
        self.slots().contains_key(id)
    }

    pub async fn lines(
        &self,
        id: &SessionId,
        from: LinePlace,
        upto: LinePlace,
    ) -> Result<(Vec<String>, LinePlace), LogError> {
        self.shared.kit.log.lines(id, from, upto).await
    }

    /// The place after the first `count` lines.
    pub async fn line_place(&self, id: &SessionId, count: u64) -> Result<LinePlace, LogError> {
        self.shared.kit.log.line_place(id, count).await
    }

    /// Puts a session away unless someone uses it. While this runs nobody can open it, also when
    /// whoever asked has left.
    pub async fn archive(&self, id: &SessionId) -> Result<Archived, CommandError> {
        let slot = self.slot(id).lock_owned().await;
        let (sessions, id) = (self.clone(), id.clone());
        let archiving = tokio::spawn(async move {
            let done = sessions.put_away(slot, &id).await;
            sessions.forget(&id);
            done
        });
        archiving.await.unwrap_or_else(|error| {
            Err(CommandError::Store(format!("the session could not be put away: {error}")))
        })
    }

    async fn put_away(
        &self,
        mut slot: OwnedMutexGuard<Option<Running<V>>>,
        id: &SessionId,
    ) -> Result<Archived, CommandError> {
        if let Some(running) = slot.as_ref() {
            let (reply, answer) = oneshot::channel();
            let sent = running.mailbox.send(Box::new(Request::CloseIfIdle { reply })).await.is_ok();
            if sent && running.answered(answer).await == Some(false) {
                return Ok(Archived::Active);
            }
            running.gone.cancelled().await;
        }
        *slot = None;
        let lease = match self.close_elsewhere(id).await? {
            Elsewhere::Active => return Ok(Archived::Active),
            Elsewhere::Ours(lease) => lease,
        };
        let at = clock::now();
        let archived = self.shared.kit.log.archive(id, at).await;
        if let Some(lease) = lease {
            lease.let_go().await;
        }
        if !archived? {
            return Ok(Archived::NotFound);
        }
        if let Some(todos) = &self.shared.todos {
            let archived = todos.archive(id, &self.shared.kit.places.common.cwd, at);
            archived.map_err(|error| CommandError::Store(format!("todos file: {error}")))?;
        }
        self.shared.kit.places.forget(id).await;
        if let Some(messages) = &self.shared.kit.messages {
            // Told by the store itself; the session is put away all the same.
            let _ = messages.forget(id).await;
        }
        Ok(Archived::Done)
    }

    /// Ends every session in good order.
    pub async fn close(&self) {
        self.shared.closing.cancel();
        let slots: Vec<Slot<V>> = self.slots().values().cloned().collect();
        let mut ending = Vec::new();
        for slot in slots {
            let Some(running) = slot.lock().await.clone() else { continue };
            let _ = running.mailbox.send(Box::new(Request::Close)).await;
            ending.push(running.gone);
        }
        for gone in ending {
            gone.cancelled().await;
        }
    }

    /// Opens every session whose last turn was not ended, so that it goes on.
    pub async fn resume_unfinished(&self) {
        let Ok(all) = self.list().await else { return };
        for summary in all.into_iter().filter(|summary| self.is_nobodys(&summary.id)) {
            let by = Who::via(AUTO_RESUME_VIA);
            if let Err(error) = self.running(&summary.id, &by, Kept::InStore, None).await {
                tracing::warn!(session = %summary.id, ?error, "could not be resumed");
            }
        }
    }

    /// Requests that wait in the mailboxes of sessions: of all of them, and of the fullest.
    pub fn mailed(&self) -> (usize, usize) {
        let slots = self.slots();
        let running = slots.values().filter_map(|slot| slot.try_lock().ok());
        let waiting = running.filter_map(|slot| {
            let mailbox = &slot.as_ref()?.mailbox;
            Some(mailbox.max_capacity() - mailbox.capacity())
        });
        waiting.fold((0, 0), |(all, most), one| (all + one, most.max(one)))
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<SessionId, Slot<V>>> {
        lock(&self.shared.slots)
    }

    fn slot(&self, id: &SessionId) -> Slot<V> {
        self.slots().entry(id.clone()).or_default().clone()
    }

    /// The mailbox of a session's actor, which is started if it sleeps.
    async fn running(
        &self,
        id: &SessionId,
        by: &Who,
        kept: Kept,
        settings: Option<&Settings>,
    ) -> Result<Running<V>, CommandError> {
        let slot = self.slot(id).lock_owned().await;
        // Only whoever has the slot discards, so it does not pass from here on.
        if kept == Kept::Passing && self.kept(id) != Kept::Passing {
            drop(slot);
            self.forget(id);
            return Err(CommandError::Store("the session ended with its connection".into()));
        }
        if let Some(running) = slot.as_ref().filter(|running| !running.mailbox.is_closed()) {
            return Ok(running.clone());
        }
        // A task of its own: whoever asked may leave in the middle, and the next one must not begin
        // to work on the same files before this one is done with them.
        let (sessions, id, by) = (self.clone(), id.clone(), by.clone());
        let settings = settings.cloned();
        let opening = tokio::spawn(async move {
            let birth = Birth { id: id.clone(), kept, settings, by };
            let opened = sessions.open(slot, birth).await;
            sessions.forget(&id);
            opened
        });
        opening.await.unwrap_or_else(|error| {
            Err(CommandError::Store(format!("the session could not be opened: {error}")))
        })
    }

    async fn open(
        &self,
        mut slot: OwnedMutexGuard<Option<Running<V>>>,
        birth: Birth,
    ) -> Result<Running<V>, CommandError> {
        if let Some(running) = slot.as_ref() {
            running.gone.cancelled().await;
        }
        if self.shared.closing.is_cancelled() {
            return Err(CommandError::Store("the server is shutting down".into()));
        }
        let awake = self.wake()?;
        let kit = &self.shared.kit;
        // Whoever opens one is about to say something.
        kit.tokens.with.prepare();
        kit.models.prepare();
        let id = birth.id.clone();
        let (sender, mailbox) = mpsc::channel(MAILBOX_REQUESTS_MAX);
        let part = self.part(birth, mailbox).await?;
        let (gone, ended) = (CancellationToken::new(), Arc::default());
        let seat = self.shared.rails.get().map(Rails::seat);
        let on = seat.as_ref().map(|seat| seat.which);
        let running = Running { mailbox: sender, gone, ended, on };
        if let Some(opened) = self.shared.opened.get() {
            opened(&id);
        }
        let (sessions, task) = (self.clone(), running.clone());
        let playing = match (self.shared.rails.get(), on) {
            (Some(rails), Some(which)) => rails.spawn(which, part.play()),
            _ => tokio::spawn(part.play()),
        };
        tokio::spawn(async move {
            let _held = (seat, awake);
            // A panic ends this session alone; it is opened anew from its log when next used.
            match playing.await {
                Ok(ending) => drop(task.ended.set(ending)),
                Err(error) => tracing::error!(session = %id, %error, "the session's actor broke"),
            }
            task.gone.cancel();
            drop(task);
            sessions.forget(&id);
        });
        if self.shared.kit.peers.is_some() {
            // What was heard of it meanwhile was told to nobody.
            let _ = running.mailbox.try_send(Box::new(Request::OwnerChanged));
        }
        *slot = Some(running.clone());
        Ok(running)
    }

    /// One more, if there may be.
    fn wake(&self) -> Result<Awake, CommandError> {
        let limit = self.shared.kit.awake_sessions_max;
        let one_more = |awake: usize| (limit == 0 || awake < limit).then_some(awake + 1);
        let awake = &self.shared.awake;
        match awake.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(Awake(awake.clone())),
            Err(_) => {
                self.shared.kit.meter.refuses(Limit::Sessions);
                Err(CommandError::Refused(Refusal::TooManySessions { limit }))
            }
        }
    }

    /// Drops the slot of a session that ended or never began, unless someone is just opening it.
    fn forget(&self, id: &SessionId) {
        let mut slots = self.slots();
        let unused = slots.get(id).is_some_and(|slot| {
            let ended =
                slot.try_lock().is_ok_and(|s| s.as_ref().is_none_or(|r| r.gone.is_cancelled()));
            ended && Arc::strong_count(slot) == 1
        });
        if unused {
            slots.remove(id);
        }
    }
}
