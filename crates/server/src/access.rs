//! Who comes and goes, and what was asked over HTTP: told to the counts and to the audit log.
//!
//! A visit is one WebSocket from its handshake to its end, whatever ends it. Never tells a query:
//! it may hold the token.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::StatusCode;
use axum::http::header::USER_AGENT;
use polyloop_agent::audit::{Audit, Pairs};
use polyloop_agent::meter::OTHER;
use polyloop_session::wait::Who;
use polyloop_session::{SessionId, Text};
use serde_json::Value;

use crate::app::App;
use crate::auth::Proof;
use crate::metrics::{self, UNDECIDED};

/// Where a connection comes from.
#[derive(Clone, Copy)]
pub struct From(pub SocketAddr);

impl From {
    pub fn told(self) -> Text {
        self.0.to_string().into()
    }

    /// Whoever asks something over HTTP.
    pub fn rest(self) -> Who {
        Who { from: Some(self.told()), ..Who::via("rest") }
    }
}

/// What a request's head says of whoever sent it.
fn head(request: &Request) -> Pairs<4> {
    let extensions = request.extensions();
    let from = extensions.get::<From>().map(|from| from.0.to_string());
    let agent = request.headers().get(USER_AGENT);
    let agent = agent.map(|agent| String::from_utf8_lossy(agent.as_bytes()).into_owned());
    let token = extensions.get::<Proof>().and_then(|proof| proof.word());
    [
        ("from", from.into()),
        ("path", request.uri().path().into()),
        ("user_agent", agent.into()),
        ("token", token.into()),
    ]
}

/// One WebSocket.
pub struct Visit {
    app: Arc<App>,
    from: Value,
    begun: Instant,
    dialect: OnceLock<&'static str>,
    reason: OnceLock<&'static str>,
    messages: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

impl Visit {
    pub fn begin(app: Arc<App>, request: &Request, dialect: Option<&'static str>) -> Visit {
        app.metrics.opens(dialect.unwrap_or(UNDECIDED));
        let [from, path, agent, token] = head(request);
        let spoken = OnceLock::new();
        if let Some(dialect) = dialect {
            let _ = spoken.set(dialect);
        }
        let visit = Visit {
            app,
            from: from.1,
            begun: Instant::now(),
            dialect: spoken,
            reason: OnceLock::new(),
            messages: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
        };
        visit.note("connection_opened", [("dialect", dialect.into()), path, agent, token]);
        visit
    }

    fn audit(&self) -> &Audit {
        &self.app.sessions.kit().audit
    }

    fn note(&self, what: &'static str, pairs: Pairs<4>) {
        if self.audit().is_on() {
            let [a, b, c, d] = pairs;
            self.audit().note(what, [("from", self.from.clone()), a, b, c, d]);
        }
    }

    fn dialect(&self) -> &'static str {
        self.dialect.get().copied().unwrap_or(UNDECIDED)
    }

    /// Its first message has said what it speaks.
    pub fn speaks(&self, dialect: &'static str) {
        if self.dialect.set(dialect).is_ok() {
            self.app.metrics.decides(dialect);
        }
    }

    /// It sees a session from now on.
    pub fn attaches(&self, session: &SessionId, who: &Who) {
        if self.audit().is_on() {
            let (session, by) = (session.as_str().into(), polyloop_agent::audit::who(who));
            self.audit().note("session_attached", [("session", session), ("by", by)]);
        }
    }

    /// It sees what is said in the chat room from now on.
    pub fn joins(&self, who: &Who) {
        if self.audit().is_on() {
            self.audit().note("room_joined", [("by", polyloop_agent::audit::who(who))]);
        }
    }

    pub fn received(&self, bytes: usize) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.app.metrics.received(self.dialect(), bytes);
    }

    /// What it was sent, told at its end; the counts know already.
    pub fn sent(&self, bytes: u64) {
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Why it ends; the first reason counts.
    pub fn ends(&self, reason: &'static str) {
        let _ = self.reason.set(reason);
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let reason = self.reason.get().copied().unwrap_or("lost");
        self.app.metrics.closes(self.dialect(), reason);
        if !self.audit().is_on() {
            return;
        }
        let count = |count: &AtomicU64| Value::from(count.load(Ordering::Relaxed));
        self.audit().note(
            "connection_closed",
            [
                ("from", self.from.clone()),
                ("dialect", self.dialect().into()),
                ("reason", reason.into()),
                ("messages", count(&self.messages)),
                ("received_bytes", count(&self.received_bytes)),
                ("sent_bytes", count(&self.sent_bytes)),
                ("seconds", seconds(self.begun)),
            ],
        );
    }
}

/// Since then, to the millisecond.
fn seconds(begun: Instant) -> Value {
    let millis = u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX);
    (f64::from(millis) / 1_000.0).into()
}

/// One request over HTTP, which is told of when it ends: answered, or left by whoever asked.
pub struct Call {
    app: Arc<App>,
    /// As the router has it; nothing where it has none.
    route: Option<MatchedPath>,
    method: &'static str,
    begun: Instant,
    status: Option<StatusCode>,
    /// Nothing where nobody is told.
    head: Option<Pairs<4>>,
    why: Option<&'static str>,
    token: Option<&'static str>,
}

/// Whoever asked left before there was an answer.
const LEFT_STATUS: u16 = 499;

impl Call {
    pub fn begin(app: Arc<App>, request: &Request) -> Call {
        Call {
            route: request.extensions().get::<MatchedPath>().cloned(),
            method: metrics::method(request.method()),
            begun: Instant::now(),
            status: None,
            head: app.sessions.kit().audit.is_on().then(|| head(request)),
            why: None,
            token: None,
            app,
        }
    }

    /// It was let in, and by which token.
    pub fn passes(&mut self, proof: Proof) {
        self.token = proof.word();
    }

    /// It was turned away.
    pub fn refused(&mut self, why: &'static str) {
        self.why = Some(why);
    }

    pub fn answer(&mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let status = self.status.map_or(LEFT_STATUS, |status| status.as_u16());
        let route = self.route.as_ref().map_or(OTHER, MatchedPath::as_str);
        self.app.metrics.answers(route, self.method, status, self.begun.elapsed());
        // A handshake that went well is a connection, which is told of by itself.
        let Some([from, path, agent, _]) = self.head.take() else { return };
        if self.status == Some(StatusCode::SWITCHING_PROTOCOLS) {
            return;
        }
        self.app.sessions.kit().audit.note(
            "request",
            [
                from,
                path,
                agent,
                ("method", self.method.into()),
                ("status", status.into()),
                ("token", self.token.into()),
                ("refused", self.why.into()),
                ("seconds", seconds(self.begun)),
            ],
        );
    }
}
