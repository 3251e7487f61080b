//! The queue between a session and one who watches it, and the door past it.
//!
//! What is sent goes through the door when nothing waits before it, and into the queue otherwise.
//! Both ends work under one lock, so nothing overtakes anything. Never waits: a queue that is full
//! lets its subscriber go.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::{Ending, Power, Presence};

/// Bundles one subscriber may lag behind.
pub const QUEUED_BUNDLES_MAX: usize = 8 * 1024;
/// Bytes one subscriber may lag behind; the bundles themselves are shared.
pub const QUEUED_BYTES_MAX: usize = 1024 * 1024;
/// An empty queue keeps room for so many.
const KEPT_ROOM_MAX: usize = 64;

/// Where a subscriber takes what is sent at once, on the session's own thread.
pub trait Door<B>: Send {
    /// Takes the bundle whole, behind all that was taken before it, or leaves it to the queue.
    /// Must not wait for anything.
    fn pass(&mut self, bundle: &B) -> Passed;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    Through,
    Shut,
}

/// A subscriber's end.
pub struct Subscription<B> {
    shared: Arc<Shared<B>>,
    leaving: Arc<Leaving>,
    bytes_of: fn(&B) -> usize,
}

/// The session's end.
pub(crate) struct Subscriber<B> {
    shared: Arc<Shared<B>>,
    pub(super) power: Power,
    pub(super) presence: Presence,
}

struct Shared<B> {
    queue: Mutex<Queue<B>>,
    /// Nobody takes anything any more.
    left: AtomicBool,
    queued: Arc<Queued>,
}

struct Queue<B> {
    waiting: VecDeque<B>,
    door: Option<Box<dyn Door<B>>>,
    /// Of whoever waits for something to take.
    waker: Option<Waker>,
    ending: Option<Ending>,
    /// Nothing comes any more.
    is_over: bool,
}

/// What is told of a queue.
#[derive(Default)]
pub(crate) struct Queued {
    bytes: AtomicUsize,
}

/// Those who leave a session say so here.
#[derive(Default)]
pub(super) struct Leaving {
    pub(super) notify: Notify,
    /// Somebody has left since this was last looked at.
    pub(super) any: AtomicBool,
}

impl Queued {
    /// What waits in it.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl<B> Shared<B> {
    fn lock(&self) -> MutexGuard<'_, Queue<B>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> Queue<B> {
    fn ending(&self) -> Ending {
        // An actor that breaks says nothing.
        let broke = || Ending::Failed("the session broke; this is a fault of the server".into());
        self.ending.clone().unwrap_or_else(broke)
    }

    fn wait(&mut self, cx: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.waker = Some(cx.waker().clone()),
        }
    }
}

impl<B> Subscription<B> {
    /// The next bundle; `Err` when there will be none.
    pub async fn next(&mut self) -> Result<B, Ending> {
        loop {
            poll_fn(|cx| self.poll_waiting(cx)).await?;
            let mut next = None;
            self.take(|bundle| {
                next = Some(bundle);
                ControlFlow::Break(())
            });
            if let Some(next) = next {
                return Ok(next);
            }
        }
    }

    /// Ready when something waits to be taken, `Err` when nothing will.
    pub fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ending>> {
        let mut queue = self.shared.lock();
        if !queue.waiting.is_empty() {
            return Poll::Ready(Ok(()));
        }
        if queue.is_over {
            return Poll::Ready(Err(queue.ending()));
        }
        queue.wait(cx);
        Poll::Pending
    }

    /// Hands over what waits, in order, until `take` has enough. Nothing goes through the door
    /// meanwhile: what was handed over comes before what is sent next.
    pub fn take(&mut self, mut take: impl FnMut(B) -> ControlFlow<()>) {
        let mut queue = self.shared.lock();
        while let Some(bundle) = queue.waiting.pop_front() {
            self.shared.queued.bytes.fetch_sub((self.bytes_of)(&bundle), Ordering::Relaxed);
            if take(bundle).is_break() {
                break;
            }
        }
        if queue.waiting.is_empty() && queue.waiting.capacity() > KEPT_ROOM_MAX {
            queue.waiting = VecDeque::new();
        }
    }

    /// From now on what is sent goes through the door, whenever nothing waits before it.
    pub fn open(&mut self, door: Box<dyn Door<B>>) {
        self.shared.lock().door = Some(door);
    }
}

impl<B> Drop for Subscription<B> {
    /// The session may have nobody left to stay awake for.
    fn drop(&mut self) {
        self.shared.left.store(true, Ordering::Release);
        let mut queue = self.shared.lock();
        let (door, waiting) = (queue.door.take(), std::mem::take(&mut queue.waiting));
        self.shared.queued.bytes.store(0, Ordering::Relaxed);
        drop(queue);
        drop((door, waiting));
        self.leaving.any.store(true, Ordering::Release);
        self.leaving.notify.notify_one();
    }
}

impl<B: Clone> Subscriber<B> {
    pub(super) fn new(
        power: Power,
        presence: Presence,
        leaving: Arc<Leaving>,
        bytes_of: fn(&B) -> usize,
    ) -> (Subscriber<B>, Subscription<B>) {
        let (waiting, door, waker, ending) = (VecDeque::new(), None, None, None);
        let queue = Mutex::new(Queue { waiting, door, waker, ending, is_over: false });
        let (left, queued) = (AtomicBool::new(false), Arc::default());
        let shared = Arc::new(Shared { queue, left, queued });
        let subscriber = Subscriber { shared: shared.clone(), power, presence };
        (subscriber, Subscription { shared, leaving, bytes_of })
    }

    /// False when it is gone or was cut off.
    pub(super) fn send(&self, bundle: &B, bytes: usize) -> bool {
        if self.has_left() {
            return false;
        }
        let mut queue = self.shared.lock();
        let first = queue.waiting.is_empty();
        if first
            && let Some(door) = &mut queue.door
            && door.pass(bundle) == Passed::Through
        {
            return true;
        }
        // A single one is always taken, however long.
        let fits = first || self.queued().bytes().saturating_add(bytes) <= QUEUED_BYTES_MAX;
        if !fits || queue.waiting.len() >= QUEUED_BUNDLES_MAX {
            queue.ending.get_or_insert(Ending::Behind);
            return false;
        }
        queue.waiting.push_back(bundle.clone());
        self.queued().bytes.fetch_add(bytes, Ordering::Relaxed);
        let waker = queue.waker.take();
        drop(queue);
        waker.into_iter().for_each(Waker::wake);
        true
    }
}

impl<B> Subscriber<B> {
    pub(super) fn queued(&self) -> &Arc<Queued> {
        &self.shared.queued
    }

    pub(super) fn has_left(&self) -> bool {
        self.shared.left.load(Ordering::Acquire)
    }

    pub(super) fn end(&self, ending: Ending) {
        self.shared.lock().ending.get_or_insert(ending);
    }
}

impl<B> Drop for Subscriber<B> {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.is_over = true;
        let waker = queue.waker.take();
        drop(queue);
        waker.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests;
