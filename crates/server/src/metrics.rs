//! What `GET /metrics` tells: the counts of the agent, of connections and requests, and of the
//! process, in the text form that Prometheus reads.
//!
//! Counts nothing that a client could make endless: paths are the routes' own, and what is not
//! known by name is `other`. Levels that would cost something to keep are looked up when asked for.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use polyloop_agent::audit::Audit;
use polyloop_agent::meter::{Limit, Meter, OTHER};
use polyloop_dialects::detect;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::app::App;
use crate::rest;

mod process;

const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Of a connection that has not said what it speaks.
pub const UNDECIDED: &str = "undecided";
/// An answer over HTTP takes so many seconds.
const ANSWER_SECS: [f64; 9] = [0.000_5, 0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0];

type By<const N: usize> = [(&'static str, &'static str); N];
/// Of the route, the method and the status; there are few of each.
type OfRequest = [(&'static str, Cow<'static, str>); 3];
type OfRoute = [(&'static str, Cow<'static, str>); 1];

pub struct Metrics {
    own: Registry,
    meter: Arc<Meter>,
    open: Family<By<1>, Gauge>,
    opened: Family<By<1>, Counter>,
    closed: Family<By<2>, Counter>,
    turned_away: Counter,
    messages: Family<By<1>, Counter>,
    received_bytes: Counter,
    sent_bytes: Counter,
    requests: Family<OfRequest, Counter>,
    request_seconds: Family<OfRoute, Histogram, AnswerTimes>,
    mailed: Gauge,
    mailed_most: Gauge,
    subscribers: Gauge,
    queued_bytes: Gauge,
    queued_bytes_most: Gauge,
    servers_living: Gauge,
    store_reachable: Gauge,
    gate_running: Family<By<1>, Gauge>,
    gate_waiting: Family<By<1>, Gauge>,
    process: process::Process,
}

#[derive(Clone, Copy)]
struct AnswerTimes;

impl MetricConstructor<Histogram> for AnswerTimes {
    fn new_metric(&self) -> Histogram {
        Histogram::new(ANSWER_SECS)
    }
}

impl Metrics {
    pub fn new(meter: Arc<Meter>, audit: &Audit) -> Metrics {
        let mut metrics = Metrics {
            own: Registry::with_prefix("polyloop"),
            meter,
            open: Family::default(),
            opened: Family::default(),
            closed: Family::default(),
            turned_away: Counter::default(),
            messages: Family::default(),
            received_bytes: Counter::default(),
            sent_bytes: Counter::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(AnswerTimes),
            mailed: Gauge::default(),
            mailed_most: Gauge::default(),
            subscribers: Gauge::default(),
            queued_bytes: Gauge::default(),
            queued_bytes_most: Gauge::default(),
            servers_living: Gauge::default(),
            store_reachable: Gauge::default(),
            gate_running: Family::default(),
            gate_waiting: Family::default(),
            process: process::Process::new(),
        };
        metrics.begin();
        metrics.register();
        audit.register(&mut metrics.own);
        metrics
    }

    /// What has not happened yet is told as 0, so that its first time is a change.
    fn begin(&self) {
        for dialect in detect::ALL.iter().map(|dialect| dialect.name()).chain([UNDECIDED]) {
            let _ = self.open.get_or_create(&[("dialect", dialect)]);
            let _ = self.opened.get_or_create(&[("dialect", dialect)]);
            let _ = self.messages.get_or_create(&[("dialect", dialect)]);
            for reason in ["client", "too_slow", "stuck"] {
                let _ = self.closed.get_or_create(&[("dialect", dialect), ("reason", reason)]);
            }
        }
    }

    fn register(&mut self) {
        let r = &mut self.own;
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        r.register("build", "What runs", version);
        self.meter.register(r);
        r.register("connections", "WebSockets that are open", self.open.clone());
        r.register(
            "connections_opened",
            "WebSockets that were opened, counted when their dialect is known",
            self.opened.clone(),
        );
        r.register(
            "connections_closed",
            "WebSockets that were closed, by reason",
            self.closed.clone(),
        );
        r.register(
            "connections_turned_away",
            "Connections refused because there were too many",
            self.turned_away.clone(),
        );
        r.register(
            "client_messages",
            "Messages that clients sent over WebSockets",
            self.messages.clone(),
        );
        r.register(
            "received_bytes",
            "Bytes of messages received over WebSockets",
            self.received_bytes.clone(),
        );
        r.register("sent_bytes", "Bytes of messages sent over WebSockets", self.sent_bytes.clone());
        r.register(
            "http_requests",
            "HTTP requests that were answered, by route, method and status",
            self.requests.clone(),
        );
        r.register(
            "http_request_seconds",
            "Time to answer an HTTP request",
            self.request_seconds.clone(),
        );
        r.register(
            "mailbox_requests",
            "Requests that wait in the mailboxes of sessions",
            self.mailed.clone(),
        );
        r.register(
            "mailbox_requests_most",
            "Those of the fullest mailbox",
            self.mailed_most.clone(),
        );
        r.register("subscribers", "Queues of those who watch sessions", self.subscribers.clone());
        r.register(
            "subscriber_queued_bytes",
            "Bytes that wait in these queues",
            self.queued_bytes.clone(),
        );
        r.register(
            "subscriber_queued_bytes_most",
            "Those of the longest queue",
            self.queued_bytes_most.clone(),
        );
        r.register(
            "servers_living",
            "Servers of the store that live, as this one sees it and with it",
            self.servers_living.clone(),
        );
        r.register(
            "store_reachable",
            "Whether the session store answers, 1 or 0",
            self.store_reachable.clone(),
        );
        r.register("gate_running", "What runs with a gate's permit", self.gate_running.clone());
        r.register("gate_waiting", "What waits at a gate", self.gate_waiting.clone());
    }

    /// A connection that names no dialect is undecided, and may say later.
    pub fn opens(&self, dialect: &'static str) {
        self.open.get_or_create(&[("dialect", dialect)]).inc();
        if dialect != UNDECIDED {
            self.opened.get_or_create(&[("dialect", dialect)]).inc();
        }
    }

    pub fn decides(&self, dialect: &'static str) {
        self.open.get_or_create(&[("dialect", UNDECIDED)]).dec();
        self.opens(dialect);
    }

    pub fn closes(&self, dialect: &'static str, reason: &'static str) {
        self.open.get_or_create(&[("dialect", dialect)]).dec();
        self.closed.get_or_create(&[("dialect", dialect), ("reason", reason)]).inc();
        if dialect == UNDECIDED {
            self.opened.get_or_create(&[("dialect", dialect)]).inc();
        }
    }

    pub fn turns_away(&self) {
        self.turned_away.inc();
    }

    pub fn received(&self, dialect: &'static str, bytes: usize) {
        self.messages.get_or_create(&[("dialect", dialect)]).inc();
        self.received_bytes.inc_by(bytes as u64);
    }

    /// A message was not taken.
    pub fn refuses(&self, limit: Limit) {
        self.meter.refuses(limit);
    }

    pub fn sent(&self, bytes: u64) {
        self.sent_bytes.inc_by(bytes);
    }

    /// The route must be one of the router's own.
    pub fn answers(&self, route: &str, method: &'static str, status: u16, took: Duration) {
        let route = ("route", Cow::from(route.to_owned()));
        let status = Cow::from(status.to_string());
        let labels = [route.clone(), ("method", method.into()), ("status", status)];
        self.requests.get_or_create(&labels).inc();
        self.request_seconds.get_or_create(&[route]).observe(took.as_secs_f64());
    }

    fn text(&self, app: &App) -> Result<String, std::fmt::Error> {
        let (mailed, most) = app.sessions.mailed();
        let queues = self.meter.queues();
        let reachable = app.sessions.kit().log.out_of_reach().is_none();
        for (gauge, now) in [
            (&self.mailed, mailed),
            (&self.mailed_most, most),
            (&self.subscribers, queues.subscribers),
            (&self.queued_bytes, queues.bytes),
            (&self.queued_bytes_most, queues.bytes_most),
            (&self.servers_living, app.sessions.servers_living()),
            (&self.store_reachable, usize::from(reachable)),
        ] {
            gauge.set(level(now));
        }
        for gate in app.sessions.kit().gates.all() {
            let (busy, labels) = (gate.busy(), [("gate", gate.limit().name())]);
            self.gate_running.get_or_create(&labels).set(level(busy.running));
            self.gate_waiting.get_or_create(&labels).set(level(busy.waiting));
            self.meter.refused_so_far(gate.limit(), gate.refused());
        }
        self.meter.refused_so_far(Limit::Requests, app.clients.refused_requests());
        self.process.look();
        let mut text = String::new();
        encode_registry(&mut text, &self.own)?;
        encode_registry(&mut text, self.process.registry())?;
        encode_eof(&mut text)?;
        Ok(text)
    }
}

fn level(now: usize) -> i64 {
    i64::try_from(now).unwrap_or(i64::MAX)
}

/// A method as it is counted.
pub fn method(method: &axum::http::Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or(OTHER)
}

/// `GET /metrics`.
pub async fn metrics(State(app): State<Arc<App>>) -> Response {
    // The process's own files are read.
    let telling = tokio::task::spawn_blocking(move || app.metrics.text(&app));
    match telling.await {
        Ok(Ok(text)) => ([(CONTENT_TYPE, TEXT)], text).into_response(),
        Ok(Err(_)) | Err(_) => {
            rest::error(StatusCode::INTERNAL_SERVER_ERROR, "The metrics could not be told")
        }
    }
}

/// Seconds since 1970.
fn now_secs() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
