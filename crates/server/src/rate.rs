//! How fast clients may send: messages, turns, bytes and requests, of one connection and of one
//! client, who is whoever shows the token, or an address where there is none.
//!
//! Only counts. What then happens is for the socket and for the HTTP side to say.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::config::settings::{self, Setting};

#[cfg(test)]
mod tests;

/// As many as are allowed in this time may come at once.
const BURST: Duration = Duration::from_secs(10);
const TURNS_BURST: Duration = Duration::from_secs(60);
const BYTES_BURST: Duration = Duration::from_secs(4);
const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);
/// Clients that are remembered before those are forgotten that have been quiet.
const CLIENTS_SWEPT_AT: usize = 1_024;

/// What is allowed; 0 is anything.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    pub connection: Pace,
    pub client: Pace,
    pub requests_per_sec: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub messages_per_sec: u64,
    pub turns_per_min: u64,
    pub bytes_per_sec: u64,
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sender {
    /// Whoever shows the token.
    Token,
    Address(IpAddr),
}

impl Sender {
    /// Who has one IPv6 address has the billions around it.
    pub fn at(address: IpAddr) -> Sender {
        match address.to_canonical() {
            IpAddr::V6(ip) => {
                let network = ip.to_bits() & !u128::from(u64::MAX);
                Sender::Address(IpAddr::V6(network.into()))
            }
            v4 => Sender::Address(v4),
        }
    }
}

/// Something came sooner than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFast {
    pub setting: &'static str,
    pub count: u64,
    pub again_in: Duration,
}

impl TooFast {
    /// What is too much, and when to try again.
    pub fn text(&self, what: &str) -> String {
        let TooFast { setting, count, .. } = self;
        format!("more than {count} {what} ({setting}); try again in {} s", self.again_secs())
    }

    /// Whole seconds, so that whoever waits for so long has waited long enough.
    pub fn again_secs(&self) -> u64 {
        self.again_in.as_secs() + 1
    }
}

/// So much in a time, and so much of it at once. Holds the moment at which all that was let in will
/// have been due.
#[derive(Debug)]
pub struct Bucket {
    setting: &'static str,
    count: u64,
    per: Duration,
    burst_ns: u64,
    due_ns: AtomicU64,
}

impl Bucket {
    fn new(setting: &Setting, count: u64, per: Duration, burst: Duration) -> Bucket {
        let mut bucket =
            Bucket { setting: setting.name, count, per, burst_ns: 0, due_ns: AtomicU64::new(0) };
        // One at least, however slowly they may come.
        bucket.burst_ns = nanos(burst).max(bucket.cost_ns(1));
        bucket
    }

    fn cost_ns(&self, amount: u64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let cost = u128::from(amount) * self.per.as_nanos() / u128::from(self.count);
        u64::try_from(cost).unwrap_or(u64::MAX)
    }

    /// One more, if it does not come too fast.
    fn take(&self, now_ns: u64) -> Result<(), TooFast> {
        let cost = self.cost_ns(1);
        let fits = |due: u64| {
            let due = due.max(now_ns).saturating_add(cost);
            (due - now_ns <= self.burst_ns).then_some(due)
        };
        let taken = self.due_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map(|_| ()).map_err(|due| {
            let again_ns = due.saturating_add(cost) - now_ns - self.burst_ns;
            let again_in = Duration::from_nanos(again_ns);
            TooFast { setting: self.setting, count: self.count, again_in }
        })
    }

    /// So much has come; says how long to take no more.
    fn spend(&self, amount: u64, now_ns: u64) -> Duration {
        let cost = self.cost_ns(amount);
        let later = |due: u64| Some(due.max(now_ns).saturating_add(cost));
        let before = self.due_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        let due = before.unwrap_or_else(|due| due).max(now_ns).saturating_add(cost);
        Duration::from_nanos((due - now_ns).saturating_sub(self.burst_ns))
    }

    /// So much wants in; says how long it waits for that, or when to come again. Who has not sent
    /// anything of late is let in with any amount.
    fn admit(&self, amount: u64, now_ns: u64, wait_max: Duration) -> Result<Duration, TooFast> {
        let (cost, wait_max_ns) = (self.cost_ns(amount), nanos(wait_max));
        let wait_ns = |due: u64| {
            let left = due.saturating_sub(now_ns).saturating_add(cost);
            left.saturating_sub(self.burst_ns)
        };
        let fits = |due: u64| {
            let is_let_in = due <= now_ns || wait_ns(due) <= wait_max_ns;
            is_let_in.then(|| due.max(now_ns).saturating_add(cost))
        };
        match self.due_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(due) => Ok(Duration::from_nanos(wait_ns(due)).min(wait_max)),
            Err(due) => {
                let again_ns = (due - now_ns).min(wait_ns(due) - wait_max_ns);
                let again_in = Duration::from_nanos(again_ns);
                Err(TooFast { setting: self.setting, count: self.count, again_in })
            }
        }
    }

    fn is_full(&self, now_ns: u64) -> bool {
        self.due_ns.load(Ordering::Relaxed) <= now_ns
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What one connection, or one client, has sent of late.
#[derive(Debug)]
pub struct Sent {
    began: Instant,
    /// Of all clients.
    refused_requests: Arc<AtomicU64>,
    messages: Bucket,
    turns: Bucket,
    bytes: Bucket,
    /// Of a client alone.
    requests: Bucket,
}

impl Sent {
    fn of_connection(began: Instant, rates: &Rates) -> Sent {
        let rows = [
            &settings::RATE_MESSAGES_PER_SEC,
            &settings::RATE_TURNS_PER_MIN,
            &settings::RATE_BYTES_PER_SEC,
        ];
        Sent::new(began, rates.connection, rows, 0)
    }

    fn of_client(began: Instant, rates: &Rates, refused_requests: Arc<AtomicU64>) -> Sent {
        let rows = [
            &settings::RATE_CLIENT_MESSAGES_PER_SEC,
            &settings::RATE_CLIENT_TURNS_PER_MIN,
            &settings::RATE_CLIENT_BYTES_PER_SEC,
        ];
        let sent = Sent::new(began, rates.client, rows, rates.requests_per_sec);
        Sent { refused_requests, ..sent }
    }

    fn new(began: Instant, pace: Pace, rows: [&Setting; 3], requests_per_sec: u64) -> Sent {
        let [messages, turns, bytes] = rows;
        let requests = &settings::RATE_CLIENT_REQUESTS_PER_SEC;
        Sent {
            began,
            refused_requests: Arc::default(),
            messages: Bucket::new(messages, pace.messages_per_sec, SECOND, BURST),
            turns: Bucket::new(turns, pace.turns_per_min, MINUTE, TURNS_BURST),
            bytes: Bucket::new(bytes, pace.bytes_per_sec, SECOND, BYTES_BURST),
            requests: Bucket::new(requests, requests_per_sec, SECOND, BURST),
        }
    }

    fn now_ns(&self) -> u64 {
        nanos(self.began.elapsed())
    }

    pub fn message(&self) -> Result<(), TooFast> {
        self.messages.take(self.now_ns())
    }

    pub fn turn(&self) -> Result<(), TooFast> {
        self.turns.take(self.now_ns())
    }

    /// Counted here, where nothing of what comes too fast is taken all the same.
    pub fn request(&self) -> Result<(), TooFast> {
        let taken = self.requests.take(self.now_ns());
        if taken.is_err() {
            self.refused_requests.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// How long to read no more.
    pub fn bytes(&self, amount: usize) -> Duration {
        self.bytes.spend(amount as u64, self.now_ns())
    }

    /// How long a request with a body of so many bytes waits, or when to send it again.
    pub fn body(&self, bytes: usize, wait_max: Duration) -> Result<Duration, TooFast> {
        let admitted = self.bytes.admit(bytes as u64, self.now_ns(), wait_max);
        if admitted.is_err() {
            self.refused_requests.fetch_add(1, Ordering::Relaxed);
        }
        admitted
    }

    fn is_quiet(&self) -> bool {
        let now_ns = self.now_ns();
        let all = [&self.messages, &self.turns, &self.bytes, &self.requests];
        all.iter().all(|bucket| bucket.is_full(now_ns))
    }
}

/// All clients that have sent something of late.
pub struct Clients {
    began: Instant,
    rates: Rates,
    refused_requests: Arc<AtomicU64>,
    known: Mutex<Known>,
}

struct Known {
    senders: HashMap<Sender, Arc<Sent>>,
    swept_at: usize,
}

impl Clients {
    pub fn new(rates: Rates) -> Clients {
        let known = Known { senders: HashMap::new(), swept_at: CLIENTS_SWEPT_AT };
        let (began, refused_requests) = (Instant::now(), Arc::default());
        Clients { began, rates, refused_requests, known: Mutex::new(known) }
    }

    /// HTTP requests that came too fast since the server began.
    pub fn refused_requests(&self) -> u64 {
        self.refused_requests.load(Ordering::Relaxed)
    }

    pub fn client(&self, sender: Sender) -> Arc<Sent> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.senders.len() >= known.swept_at {
            // Whoever is quiet now has nothing that is worth remembering.
            known.senders.retain(|_, sent| Arc::strong_count(sent) > 1 || !sent.is_quiet());
            known.swept_at = CLIENTS_SWEPT_AT.max(known.senders.len() * 2);
        }
        let refused = &self.refused_requests;
        let fresh = || Arc::new(Sent::of_client(self.began, &self.rates, refused.clone()));
        known.senders.entry(sender).or_insert_with(fresh).clone()
    }

    /// For a connection that begins.
    pub fn connection(&self) -> Sent {
        Sent::of_connection(self.began, &self.rates)
    }
}
