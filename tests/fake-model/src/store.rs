//! What the server remembers: replies to come, requests that came, and how many are open.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::reply::{self, Reply};

/// The oldest are forgotten first.
pub const REQUESTS_MAX: usize = 10_000;
/// Of the bodies of all remembered requests together.
const REQUEST_BODIES_BYTES_MAX: usize = 512 * 1024 * 1024;

pub struct Store {
    began: Instant,
    pub token_secs: u64,
    queue: Mutex<VecDeque<Queued>>,
    requests: Mutex<Requests>,
    tokens: AtomicU64,
    tally: Arc<Tally>,
}

struct Queued {
    reply: Arc<Reply>,
    left: u64,
}

#[derive(Default)]
struct Requests {
    seen: u64,
    body_bytes: usize,
    kept: VecDeque<Request>,
}

struct Request {
    n: u64,
    at_ms: u64,
    received: Received,
}

pub struct Received {
    pub method: String,
    /// With the query.
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Bytes,
}

#[derive(Default)]
struct Tally {
    open: AtomicU64,
    aborted: AtomicU64,
}

/// A model request that is not yet answered to its end.
pub struct Open {
    tally: Arc<Tally>,
    is_ended: bool,
}

impl Open {
    /// It ended as the script wanted it.
    pub fn ended(mut self) {
        self.is_ended = true;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.tally.open.fetch_sub(1, Ordering::Relaxed);
        if !self.is_ended {
            self.tally.aborted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Store {
    pub fn new(token_secs: u64) -> Store {
        Store {
            began: Instant::now(),
            token_secs,
            queue: Mutex::default(),
            requests: Mutex::default(),
            tokens: AtomicU64::new(0),
            tally: Arc::default(),
        }
    }

    /// Appends replies: all of them, or none.
    pub fn append(&self, script: &[u8]) -> Result<(), String> {
        let replies = reply::replies(script)?;
        let queued = |reply: Reply| Queued {
            left: reply.repeat.map_or(1, std::num::NonZeroU64::get),
            reply: Arc::new(reply),
        };
        lock(&self.queue).extend(replies.into_iter().map(queued));
        Ok(())
    }

    pub fn next_reply(&self) -> Option<Arc<Reply>> {
        let mut queue = lock(&self.queue);
        let first = queue.front_mut()?;
        first.left -= 1;
        let reply = first.reply.clone();
        if first.left == 0 {
            queue.pop_front();
        }
        Some(reply)
    }

    pub fn clear_queue(&self) {
        lock(&self.queue).clear();
    }

    /// Remembers a request; its number.
    pub fn record(&self, received: Received) -> u64 {
        let at_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut requests = lock(&self.requests);
        requests.seen += 1;
        let n = requests.seen;
        requests.body_bytes += received.body.len();
        requests.kept.push_back(Request { n, at_ms, received });
        while requests.kept.len() > REQUESTS_MAX
            || (requests.body_bytes > REQUEST_BODIES_BYTES_MAX && requests.kept.len() > 1)
        {
            if let Some(oldest) = requests.kept.pop_front() {
                requests.body_bytes -= oldest.received.body.len();
            }
        }
        n
    }

    pub fn requests(&self) -> Vec<Value> {
        lock(&self.requests).kept.iter().map(Request::value).collect()
    }

    /// Forgets the requests; their numbers go on.
    pub fn clear_requests(&self) {
        let mut requests = lock(&self.requests);
        requests.kept.clear();
        requests.body_bytes = 0;
    }

    pub fn next_token(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn open(&self) -> Open {
        self.tally.open.fetch_add(1, Ordering::Relaxed);
        Open { tally: self.tally.clone(), is_ended: false }
    }

    pub fn state(&self) -> Value {
        let queued = lock(&self.queue).iter().fold(0, |sum: u64, it| sum.saturating_add(it.left));
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        json!({"open": count(&self.tally.open), "aborted": count(&self.tally.aborted),
            "queued": queued})
    }
}

impl Request {
    fn value(&self) -> Value {
        let Received { method, path, headers, body } = &self.received;
        let body = serde_json::from_slice(body)
            .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(body)));
        json!({"n": self.n, "at_ms": self.at_ms, "method": method, "path": path,
            "headers": headers, "body": body})
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(body: &'static str) -> Received {
        let (method, path) = ("POST".to_owned(), "/x".to_owned());
        Received {
            method,
            path,
            headers: BTreeMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    #[test]
    fn replies_come_in_order_and_repeat() {
        let store = Store::new(1);
        store.append(br#"[{"delay_ms":1,"repeat":2},{"delay_ms":2}]"#).unwrap();
        assert_eq!(store.state()["queued"], 3);
        assert!(store.append(br#"[{"delay_ms":3},{"wrong":1}]"#).is_err());
        let delays: Vec<u64> =
            std::iter::from_fn(|| store.next_reply()).map(|reply| reply.delay_ms).collect();
        assert_eq!(delays, [1, 1, 2]);
        assert_eq!(store.state()["queued"], 0);
    }

    #[test]
    fn the_oldest_requests_are_forgotten() {
        let store = Store::new(1);
        for _ in 0..REQUESTS_MAX + 1 {
            store.record(received("{}"));
        }
        let requests = store.requests();
        assert_eq!(requests.len(), REQUESTS_MAX);
        assert_eq!(requests[0]["n"], 2);
        store.clear_requests();
        assert_eq!(store.record(received("no json")), REQUESTS_MAX as u64 + 2);
        assert_eq!(store.requests()[0]["body"], "no json");
    }

    #[test]
    fn what_is_dropped_was_aborted() {
        let store = Store::new(1);
        let (first, second) = (store.open(), store.open());
        assert_eq!(store.state()["open"], 2);
        first.ended();
        drop(second);
        assert_eq!(store.state(), json!({"open": 0, "aborted": 1, "queued": 0}));
    }
}
