//! The threads that sessions live on.
//!
//! A session's actor, the sockets of those who watch it and its road to the model share a thread,
//! so that what streams through it wakes nobody else. Where something runs makes no difference to
//! what it does: whoever is on no rail, or on another, is served as well, only dearer.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Threads beyond so many gain little for one server.
pub const RAILS_MAX: usize = 16;
/// What comes first goes where it was asked for, until that thread has so many sessions more than
/// another.
const SESSIONS_APART_MAX: usize = 16;
/// Threads of one rail that wait for disks and the like.
const BLOCKING_THREADS_MAX: usize = 64;
/// How long one of them stays that has nothing to do: each takes memory.
const BLOCKING_THREAD_TIME_MAX: Duration = Duration::from_secs(1);

thread_local! {
    static HERE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Which of the rails this thread is.
pub(crate) fn here() -> Option<usize> {
    HERE.get()
}

pub struct Rails {
    each: Vec<Rail>,
    /// Where the next one is looked for first, so that many who come at once are spread.
    turn: AtomicUsize,
    ending: CancellationToken,
}

struct Rail {
    runtime: Handle,
    sessions: AtomicUsize,
}

/// Which rail something runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which(usize);

/// A session's place among those of its rail.
pub(crate) struct Seat {
    rails: Arc<Rails>,
    pub(crate) which: Which,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(rail) = self.rails.each.get(self.which.0) {
            rail.sessions.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Rails {
    /// Starts so many threads, at least one.
    pub fn start(count: usize) -> io::Result<Arc<Rails>> {
        let ending = CancellationToken::new();
        let each = (0..count.clamp(1, RAILS_MAX)).map(|at| rail(at, &ending));
        let each = each.collect::<io::Result<_>>()?;
        Ok(Arc::new(Rails { each, turn: AtomicUsize::new(0), ending }))
    }

    /// As many as the machine runs at once.
    pub fn start_all() -> io::Result<Arc<Rails>> {
        Rails::start(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// The thread that something new is best put on: this one, unless others have less to do.
    pub fn choose(&self) -> Which {
        let count = |at: usize| self.each.get(at).map_or(0, |r| r.sessions.load(Ordering::Relaxed));
        let (all, first) = (self.each.len().max(1), self.turn.fetch_add(1, Ordering::Relaxed));
        let rotated = (0..all).map(|at| at.wrapping_add(first) % all);
        let least = rotated.min_by_key(|at| count(*at)).unwrap_or(0);
        match here() {
            Some(here) if count(here) <= count(least) + SESSIONS_APART_MAX => Which(here),
            _ => Which(least),
        }
    }

    pub(crate) fn seat(self: &Arc<Rails>) -> Seat {
        let which = self.choose();
        if let Some(rail) = self.each.get(which.0) {
            rail.sessions.fetch_add(1, Ordering::Relaxed);
        }
        Seat { rails: self.clone(), which }
    }

    pub fn spawn<T: Send + 'static>(
        &self,
        which: Which,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        match self.each.get(which.0) {
            Some(rail) => rail.runtime.spawn(task),
            None => tokio::spawn(task),
        }
    }
}

impl Drop for Rails {
    fn drop(&mut self) {
        self.ending.cancel();
    }
}

fn rail(at: usize, ending: &CancellationToken) -> io::Result<Rail> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_keep_alive(BLOCKING_THREAD_TIME_MAX)
        .thread_name(format!("rail-{at}-waits"))
        .build()?;
    let (handle, ending) = (runtime.handle().clone(), ending.clone());
    std::thread::Builder::new().name(format!("rail-{at}")).spawn(move || {
        HERE.set(Some(at));
        runtime.block_on(ending.cancelled());
        runtime.shutdown_background();
    })?;
    Ok(Rail { runtime: handle, sessions: AtomicUsize::new(0) })
}

/// One of something for each rail, and one for everybody else; made when it is first needed.
pub(crate) struct Each<T> {
    all: [OnceLock<T>; RAILS_MAX + 1],
}

/// Whose of each it is.
#[derive(Clone, Copy)]
pub(crate) struct Slot(usize);

impl Slot {
    pub(crate) fn here() -> Slot {
        Slot(here().map_or(RAILS_MAX, |at| at.min(RAILS_MAX)))
    }
}

impl<T> Default for Each<T> {
    fn default() -> Each<T> {
        Each { all: Default::default() }
    }
}

impl<T> Each<T> {
    pub(crate) fn get(&self, slot: Slot) -> Option<&T> {
        self.all[slot.0].get()
    }

    pub(crate) fn get_or_init(&self, slot: Slot, make: impl FnOnce() -> T) -> &T {
        self.all[slot.0].get_or_init(make)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sessions_stay_where_they_are_asked_for_until_that_is_unfair() {
        let rails = Rails::start(2).unwrap();
        let asked = rails.clone();
        let all = rails
            .spawn(Which(1), async move { (0..60).map(|_| asked.seat()).collect::<Vec<Seat>>() });
        let all = all.await.unwrap();
        let on = |at| all.iter().filter(|seat| seat.which == Which(at)).count();
        assert!(all.iter().take(SESSIONS_APART_MAX).all(|seat| seat.which == Which(1)));
        assert!(on(1).abs_diff(on(0)) <= SESSIONS_APART_MAX + 1, "{} and {}", on(0), on(1));
        drop(all);
        assert!(rails.each.iter().all(|rail| rail.sessions.load(Ordering::Relaxed) == 0));
    }

    #[tokio::test]
    async fn each_rail_has_its_own() {
        let rails = Rails::start(2).unwrap();
        let each: Arc<Each<std::thread::ThreadId>> = Arc::default();
        let of = |which| {
            let each = each.clone();
            rails.spawn(which, async move {
                (
                    *each.get_or_init(Slot::here(), || std::thread::current().id()),
                    std::thread::current().id(),
                )
            })
        };
        let (first, first_thread) = of(Which(0)).await.unwrap();
        let (second, second_thread) = of(Which(1)).await.unwrap();
        assert_eq!((first, second), (first_thread, second_thread));
        assert_ne!(first, second);
        assert_eq!(
            *each.get_or_init(Slot::here(), || std::thread::current().id()),
            std::thread::current().id()
        );
    }
}
