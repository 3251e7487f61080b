//! How much runs at once in the whole server: so many model calls, so many processes. What is more
//! waits its turn, session by session, so that one that asks for much holds up nobody.
//!
//! Knows nothing of what passes. The queue is bounded: whoever does not fit in is told at once.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use polyloop_session::SessionId;
use tokio::sync::oneshot;

use crate::meter::{Limit, Passage};

mod behind;
#[cfg(test)]
mod tests;

pub(crate) use behind::{Behind, behind};

/// The doors that every session of a server shares.
#[derive(Clone, Debug)]
pub struct Gates {
    pub calls: Gate,
    pub processes: Gate,
}

/// How many may run and wait; 0 is any number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capacity {
    pub calls_max: usize,
    pub processes_max: usize,
    /// At each of the two.
    pub waiting_max: usize,
}

impl Gates {
    pub fn new(capacity: Capacity) -> Gates {
        let Capacity { calls_max, processes_max, waiting_max } = capacity;
        Gates {
            calls: Gate::new(Kind::Calls, calls_max, waiting_max),
            processes: Gate::new(Kind::Processes, processes_max, waiting_max),
        }
    }

    pub fn all(&self) -> [&Gate; 2] {
        [&self.calls, &self.processes]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Calls,
    Processes,
}

#[derive(Clone, Debug)]
pub struct Gate {
    shared: Arc<Shared>,
    /// Who is told what becomes of the step that comes to it.
    passage: Passage,
}

#[derive(Debug)]
struct Shared {
    kind: Kind,
    max: usize,
    waiting_max: usize,
    queue: Mutex<Queue>,
}

/// Somebody waits only while nothing is free.
#[derive(Debug, Default)]
struct Queue {
    running: usize,
    waiting: usize,
    /// Since the server began.
    refused: u64,
    /// What each session waits with, in its order.
    lanes: HashMap<SessionId, VecDeque<oneshot::Sender<Permit>>>,
    /// Whose turn is next: every session that waits, once.
    order: VecDeque<SessionId>,
}

/// How busy a gate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    pub running: usize,
    pub waiting: usize,
}

/// What came of asking for a permit.
#[derive(Debug)]
pub(crate) enum Entry {
    In(Permit),
    Waits(Waiting),
    /// So many wait already.
    Full(Busy),
}

impl Gate {
    fn new(kind: Kind, max: usize, waiting_max: usize) -> Gate {
        let unless_none = |max| if max == 0 { usize::MAX } else { max };
        let (max, waiting_max) = (unless_none(max), unless_none(waiting_max));
        let shared = Arc::new(Shared { kind, max, waiting_max, queue: Mutex::default() });
        Gate { shared, passage: Passage::default() }
    }

    /// As one step comes to it.
    pub(crate) fn told_to(&self, passage: Passage) -> Gate {
        Gate { shared: self.shared.clone(), passage }
    }

    /// What says how much of it may wait; it names the gate, too.
    pub fn limit(&self) -> Limit {
        match self.shared.kind {
            Kind::Calls => Limit::ModelCalls,
            Kind::Processes => Limit::Processes,
        }
    }

    pub fn busy(&self) -> Busy {
        self.shared.queue().busy()
    }

    /// How many did not fit in since the server began.
    pub fn refused(&self) -> u64 {
        self.shared.queue().refused
    }

    pub(crate) fn enter(&self, session: &SessionId) -> Entry {
        let mut queue = self.shared.queue();
        if queue.running < self.shared.max {
            queue.running += 1;
            return Entry::In(Permit { gate: Some(self.shared.clone()) });
        }
        if queue.waiting >= self.shared.waiting_max {
            queue.refused += 1;
            return Entry::Full(queue.busy());
        }
        let (sender, ticket) = oneshot::channel();
        let lane = queue.lanes.entry(session.clone()).or_default();
        let is_first = lane.is_empty();
        lane.push_back(sender);
        if is_first {
            queue.order.push_back(session.clone());
        }
        queue.waiting += 1;
        let (gate, session) = (self.shared.clone(), session.clone());
        Entry::Waits(Waiting { gate, session, ticket, is_first })
    }
}

impl Shared {
    /// Gives a permit that has become free to whose turn it is.
    fn leave(self: &Arc<Shared>) {
        loop {
            let Some(ticket) = self.queue().next_or_free() else { return };
            match ticket.send(Permit { gate: Some(self.clone()) }) {
                Ok(()) => return,
                // It has just given up; the permit is still to be given away.
                Err(mut permit) => permit.gate = None,
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A panic elsewhere leaves whole values behind.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn busy(&self) -> Busy {
        Busy { running: self.running, waiting: self.waiting }
    }

    /// The ticket whose turn it is. If nobody waits the permit is free.
    fn next_or_free(&mut self) -> Option<oneshot::Sender<Permit>> {
        while let Some(session) = self.order.pop_front() {
            let Some(lane) = self.lanes.get_mut(&session) else { continue };
            let ticket = lane.pop_front();
            if lane.is_empty() {
                self.lanes.remove(&session);
            } else {
                self.order.push_back(session);
            }
            if ticket.is_some() {
                self.waiting -= 1;
                return ticket;
            }
        }
        self.running -= 1;
        None
    }

    /// Takes out what a session does not wait for any more.
    fn forget_closed(&mut self, session: &SessionId) {
        let Some(lane) = self.lanes.get_mut(session) else { return };
        let before = lane.len();
        lane.retain(|ticket| !ticket.is_closed());
        self.waiting -= before - lane.len();
        if lane.is_empty() {
            self.lanes.remove(session);
            self.order.retain(|waiting| waiting != session);
        }
    }
}

/// Leave to run; letting go of it gives it to the next.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Option<Arc<Shared>>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.take() {
            gate.leave();
        }
    }
}

/// Waits in the queue, and comes to a permit.
#[derive(Debug)]
pub(crate) struct Waiting {
    gate: Arc<Shared>,
    session: SessionId,
    ticket: oneshot::Receiver<Permit>,
    /// Nothing else of its session waited here when it came.
    is_first: bool,
}

impl Future for Waiting {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Waiting>, cx: &mut Context<'_>) -> Poll<Permit> {
        // Tickets are only thrown away when nobody holds their other end.
        Pin::new(&mut self.ticket).poll(cx).map(|permit| permit.unwrap_or(Permit { gate: None }))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.ticket.close();
        // A permit that was given in this very moment goes to the next.
        if self.ticket.try_recv().is_err() {
            self.gate.queue().forget_closed(&self.session);
        }
    }
}
