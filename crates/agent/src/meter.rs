//! What is counted, for whoever runs the server: sessions, turns, calls, tools, waits, the log.
//!
//! Counts what is recorded; nothing here decides anything, and nothing is done for a chunk but a
//! look at a field that is empty after the first. Labels are bounded, whatever clients and models
//! name: what the server does not know by name is counted as `other`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use polyloop_session::item::Usage;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::log::Flush;
use crate::subscriber::Queued;
use crate::tool;

mod disk;
mod limit;
mod peers;
mod running;
mod tally;
#[cfg(test)]
mod tests;
mod told;

pub use disk::TimedDisk;
pub use limit::Limit;
pub(crate) use peers::OneMore;
pub(crate) use running::{Passage, Running};
pub(crate) use tally::{REFUSED_HERE, Tally, decision, status};

/// What a name becomes that is not known.
pub const OTHER: &str = "other";

/// A disk answers in so many seconds, or has trouble.
const DISK_SECS: [f64; 10] =
    [0.000_01, 0.000_04, 0.000_16, 0.000_64, 0.002_5, 0.01, 0.04, 0.16, 0.64, 2.5];
/// A model, a tool or a turn takes so many.
const WORK_SECS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0];

/// How a model call can end; a fault that is not among them is `other`.
const STATUSES: [&str; 21] = [
    "ok",
    "stopped",
    "lost",
    "rate_limited",
    "overloaded",
    "unreachable",
    "timeout",
    "stream_cut",
    "provider_error",
    "unauthorized",
    "not_found",
    "redirected",
    "insufficient_quota",
    "invalid_request",
    "context_length_exceeded",
    "refused",
    "empty_answer",
    "bad_answer",
    "answer_too_long",
    "proxy",
    OTHER,
];

type By<const N: usize> = [(&'static str, &'static str); N];
/// Models have names of the operator's.
type OfModel = [(&'static str, Arc<String>); 2];
type OfCall = [(&'static str, Arc<String>); 3];
type Times<L> = Family<L, Histogram, Seconds>;

/// Makes histograms with the same bounds.
#[derive(Clone, Copy)]
struct Seconds(&'static [f64]);

impl MetricConstructor<Histogram> for Seconds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// The counts of one server. Every session has it, and counts by itself into it.
pub struct Meter {
    sessions: Gauge,
    opened: Counter,
    store_failures: Counter,
    turns: Family<By<1>, Counter>,
    turns_running: Gauge,
    turn_seconds: Histogram,
    queued_messages: Gauge,
    calls: Family<OfCall, Counter>,
    calls_running: Gauge,
    call_seconds: Times<OfModel>,
    first_seconds: Times<OfModel>,
    tokens: Family<OfCall, Counter>,
    cost: Family<OfModel, Counter<f64>>,
    models: Models,
    tool_names: Vec<&'static str>,
    tools: Family<By<2>, Counter>,
    tools_running: Gauge,
    tool_seconds: Times<By<1>>,
    waits: Family<By<1>, Gauge>,
    decisions: Family<By<1>, Counter>,
    compactions: Family<By<1>, Counter>,
    append_seconds: Times<By<1>>,
    /// By what a batch was to survive, in the order of `FLUSHES`.
    appends: [Histogram; FLUSHES.len()],
    flush_seconds: Histogram,
    refused: limit::Refused,
    of_peers: peers::OfPeers,
    queues: Mutex<Vec<Weak<Queued>>>,
}

/// The models that are counted by name.
struct Models {
    /// With their provider.
    known: Vec<(String, &'static str)>,
    made: Mutex<HashMap<(String, &'static str), Arc<ModelMeter>>>,
}

/// What is counted of one model, looked up once a call.
pub(crate) struct ModelMeter {
    labels: OfModel,
    first_seconds: Histogram,
    seconds: Histogram,
    tokens: [Counter; 5],
    cost: Counter<f64>,
}

/// The kinds of tokens, and what a usage has of each. The second and third are parts of the first,
/// the last is a part of the fourth.
const DIRECTIONS: [&str; 5] = ["input", "cached", "cache_written", "output", "reasoning"];

/// What a batch may be to survive.
const FLUSHES: [&str; 3] = ["disk", "soon", "process"];

impl Default for Meter {
    fn default() -> Meter {
        Meter::new(Vec::new())
    }
}

impl Meter {
    /// `known` are the models that may be counted by name, each with its provider.
    pub fn new(known: Vec<(String, &'static str)>) -> Meter {
        let append_seconds: Times<By<1>> = Family::new_with_constructor(Seconds(&DISK_SECS));
        let meter = Meter {
            sessions: Gauge::default(),
            opened: Counter::default(),
            store_failures: Counter::default(),
            turns: Family::default(),
            turns_running: Gauge::default(),
            turn_seconds: Seconds(&WORK_SECS).new_metric(),
            queued_messages: Gauge::default(),
            calls: Family::default(),
            calls_running: Gauge::default(),
            call_seconds: Family::new_with_constructor(Seconds(&WORK_SECS)),
            first_seconds: Family::new_with_constructor(Seconds(&WORK_SECS)),
            tokens: Family::default(),
            cost: Family::default(),
            models: Models { known, made: Mutex::default() },
            tool_names: tool::ALL.iter().map(|tool| tool.spec().name).collect(),
            tools: Family::default(),
            tools_running: Gauge::default(),
            tool_seconds: Family::new_with_constructor(Seconds(&WORK_SECS)),
            waits: Family::default(),
            decisions: Family::default(),
            compactions: Family::default(),
            appends: FLUSHES.map(|flush| append_seconds.get_or_create_owned(&[("flush", flush)])),
            append_seconds,
            flush_seconds: Seconds(&DISK_SECS).new_metric(),
            refused: limit::Refused::default(),
            of_peers: peers::OfPeers::default(),
            queues: Mutex::default(),
        };
        meter.begin();
        meter
    }

    /// What has not happened yet is told as 0, so that its first time is a change.
    fn begin(&self) {
        for outcome in ["completed", "failed", "interrupted"] {
            let _ = self.turns.get_or_create(&[("outcome", outcome)]);
        }
        for kind in tally::WAITS {
            let _ = self.waits.get_or_create(&[("kind", kind)]);
        }
        for decision in ["yes", "always", "no", "answered"] {
            let _ = self.decisions.get_or_create(&[("decision", decision)]);
        }
        for how in ["summary", "trim"] {
            let _ = self.compactions.get_or_create(&[("how", how)]);
        }
        self.refused.begin();
        self.of_peers.begin();
        for tool in &self.tool_names {
            let _ = self.tools.get_or_create(&[("tool", *tool), ("outcome", "ok")]);
        }
        if let Some((name, provider)) = self.models.known.first() {
            let preset = self.model_of(name, provider);
            let _ = self.calls.get_or_create(&preset.with("status", "ok"));
        }
    }

    /// A batch was written, and so is it to be flushed. How long that takes is told by itself.
    pub(crate) fn appended(&self, flush: Flush, took: Duration) {
        let [disk, soon, process] = &self.appends;
        let of_this = match flush {
            Flush::Disk => disk,
            Flush::Soon => soon,
            Flush::Process => process,
        };
        of_this.observe(took.as_secs_f64());
    }

    /// Something is safe, after so long.
    pub(crate) fn flushed(&self, took: Duration) {
        self.flush_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn store_failed(&self) {
        self.store_failures.inc();
    }

    /// The model's counts, under its own name if that is known.
    pub(crate) fn model(&self, name: &str, provider: &'static str) -> Arc<ModelMeter> {
        let known = self.models.known.iter().find(|(known, _)| known == name);
        self.model_of(known.map_or(OTHER, |(known, _)| known), provider)
    }

    /// The tool's name where it is one of ours.
    fn tool(&self, name: &str) -> &'static str {
        self.tool_names.iter().copied().find(|known| *known == name).unwrap_or(OTHER)
    }

    fn model_of(&self, name: &str, provider: &'static str) -> Arc<ModelMeter> {
        let mut made = lock(&self.models.made);
        made.entry((name.to_owned(), provider)).or_insert_with(|| self.make(name, provider)).clone()
    }

    fn make(&self, name: &str, provider: &str) -> Arc<ModelMeter> {
        let labels =
            [("provider", Arc::new(provider.to_owned())), ("model", Arc::new(name.to_owned()))];
        let [of_provider, of_model] = &labels;
        let tokens = DIRECTIONS.map(|direction| {
            let direction = ("direction", Arc::new(direction.to_owned()));
            let labels = [of_provider.clone(), of_model.clone(), direction];
            self.tokens.get_or_create_owned(&labels)
        });
        Arc::new(ModelMeter {
            first_seconds: self.first_seconds.get_or_create_owned(&labels),
            seconds: self.call_seconds.get_or_create_owned(&labels),
            cost: self.cost.get_or_create_owned(&labels),
            tokens,
            labels,
        })
    }

    /// From now on the queue's length is told with the others'.
    pub(crate) fn watch(&self, queue: &Arc<Queued>) {
        let mut queues = lock(&self.queues);
        // Those that are gone are forgotten as often as there is no more room.
        if queues.len() == queues.capacity() {
            queues.retain(|queue| queue.strong_count() > 0);
        }
        queues.push(Arc::downgrade(queue));
    }

    /// How far behind those who watch sessions are.
    pub fn queues(&self) -> Queues {
        let mut told = Queues::default();
        lock(&self.queues).retain(|queue| {
            let Some(queue) = queue.upgrade() else { return false };
            let bytes = queue.bytes();
            told.subscribers += 1;
            told.bytes += bytes;
            told.bytes_most = told.bytes_most.max(bytes);
            true
        });
        told
    }
}

/// What waits for those who watch sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    pub subscribers: usize,
    /// Of all queues together.
    pub bytes: usize,
    /// Of the longest.
    pub bytes_most: usize,
}

impl ModelMeter {
    fn with(&self, name: &'static str, value: &str) -> OfCall {
        let [provider, model] = self.labels.clone();
        [provider, model, (name, Arc::new(value.to_owned()))]
    }

    fn used(&self, usage: &Usage) {
        let counts = [
            usage.input_tokens,
            usage.cached_tokens,
            usage.cache_written_tokens,
            usage.output_tokens,
            usage.reasoning_tokens,
        ];
        for (counter, count) in self.tokens.iter().zip(counts) {
            counter.inc_by(count);
        }
        if let Some(micros) = usage.cost_micros {
            self.cost.inc_by(micros as f64 / 1_000_000.0);
        }
    }
}

/// A panic elsewhere leaves whole values behind.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
