//! Sessions over HTTP: list, create, read, archive, switch, fork, undo. Every error is `{"error": text}`.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_TYPE, LINK, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use polyloop_agent::actor::{CommandError, MOVED};
use polyloop_agent::clock;
use polyloop_agent::log::LogError;
use polyloop_agent::sessions::Archived;
use polyloop_agent::todos::SwitchError;
use polyloop_dialects::rest::{self, RestError, Switched};
use polyloop_session::event::Setting;
use polyloop_session::id::BadSessionId;
use polyloop_session::{Command, Refusal, SessionId};
use serde::Serialize;

use crate::access::From;
use crate::app::App;
use crate::query::Query;
use crate::rate::TooFast;

mod edits;
mod lines;
mod list;

pub use lines::read;
pub use list::{Awake, list, told};

/// Who finds no room tries again after this.
pub const OVERLOADED_SECS: u64 = 5;
pub const FULL_TEXT: &str = "Too many connections (MAX_CONNECTIONS); try again later";
/// Who finds the session store out of reach does so after this.
const AWAY_SECS: u64 = 5;

pub fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let text = serde_json::to_string(body).unwrap_or_else(|_| "{}".to_string());
    (status, [(CONTENT_TYPE, "application/json")], text).into_response()
}

pub fn error(status: StatusCode, text: impl Into<String>) -> Response {
    json(status, &RestError { error: text.into() })
}

/// Says when to come back.
fn later(mut response: Response, secs: u64) -> Response {
    response.headers_mut().insert(RETRY_AFTER, secs.into());
    response
}

pub fn too_fast(too_fast: &TooFast) -> Response {
    too_many("requests", too_fast, "requests a second")
}

pub fn too_many_bytes(too_fast: &TooFast) -> Response {
    too_many("bytes", too_fast, "bytes a second")
}

fn too_many(what: &str, too_fast: &TooFast, pace: &str) -> Response {
    let text = format!("Too many {what}: {}", too_fast.text(pace));
    later(error(StatusCode::TOO_MANY_REQUESTS, text), too_fast.again_secs())
}

/// There are as many connections as may be.
pub async fn full(State(app): State<Arc<App>>) -> Response {
    app.metrics.turns_away();
    later(error(StatusCode::SERVICE_UNAVAILABLE, FULL_TEXT), OVERLOADED_SECS)
}

fn failed(what: &str, why: &dyn std::fmt::Display) -> Response {
    tracing::error!("{what}: {why}");
    error(StatusCode::INTERNAL_SERVER_ERROR, what)
}

/// The store may be back before long, and nothing is wrong with the request.
fn away(why: &dyn std::fmt::Display) -> Response {
    let text = format!("The session store cannot be reached now; try again later ({why})");
    later(error(StatusCode::SERVICE_UNAVAILABLE, text), AWAY_SECS)
}

pub fn store_failed(failure: &LogError) -> Response {
    match failure {
        LogError::Unreachable { .. } => {
            tracing::warn!("{failure}");
            away(failure)
        }
        _ => failed("The session store failed", failure),
    }
}

pub fn command_failed(app: &App, failure: &CommandError) -> Response {
    match failure {
        CommandError::Refused(refusal @ Refusal::TooManySessions { .. }) => {
            let answer = error(StatusCode::SERVICE_UNAVAILABLE, refusal.to_string());
            later(answer, OVERLOADED_SECS)
        }
        CommandError::Refused(refusal) => error(StatusCode::CONFLICT, refusal.to_string()),
        CommandError::Store(why) | CommandError::Failed(why) => {
            match app.sessions.kit().log.out_of_reach() {
                Some(_) => {
                    tracing::warn!("{why}");
                    away(why)
                }
                None => failed("The session store failed", why),
            }
        }
        CommandError::Moved => failed("The session store failed", &MOVED),
    }
}

pub fn bad_id(bad: &BadSessionId) -> Response {
    error(StatusCode::BAD_REQUEST, bad.to_string())
}

pub fn not_found() -> Response {
    error(StatusCode::NOT_FOUND, "Session not found")
}

/// Nobody waits for a store of which it is known that it does not answer.
pub async fn within_reach(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match app.sessions.kit().log.out_of_reach() {
        Some(why) => away(&why),
        None => next.run(request).await,
    }
}

pub async fn healthz() -> Response {
    json(StatusCode::OK, &serde_json::json!({"status": "ok"}))
}

/// Whether clients should be sent here: a proxy asks, and takes another server if not.
pub async fn readyz(State(app): State<Arc<App>>) -> Response {
    if app.closing.is_cancelled() {
        return error(StatusCode::SERVICE_UNAVAILABLE, "The server is shutting down");
    }
    match app.sessions.kit().log.out_of_reach() {
        Some(why) => away(&why),
        None => json(StatusCode::OK, &serde_json::json!({"status": "ready"})),
    }
}

/// A number of the query; the error is for the client.
pub fn whole_number(query: &Query, name: &str) -> Result<Option<u64>, String> {
    match query.get(name).map(str::parse::<u64>) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(_)) => Err(format!("{name}: use a whole number")),
    }
}

/// Says where the next page is.
fn link(response: &mut Response, next: &str) {
    if let Ok(value) = HeaderValue::from_str(&format!("<{next}>; rel=\"next\"")) {
        response.headers_mut().insert(LINK, value);
    }
}

/// A new session, as the body says; an empty body means the server's defaults.
pub async fn create(
    State(app): State<Arc<App>>,
    Extension(from): Extension<From>,
    body: Bytes,
) -> Response {
    let start = match rest::new_session(&body) {
        Ok(start) => start,
        Err(why) => return error(StatusCode::BAD_REQUEST, why),
    };
    let settings = match app.settings(&start) {
        Ok(settings) => settings,
        Err(refusal) => return error(StatusCode::BAD_REQUEST, refusal.to_string()),
    };
    match app.sessions.create(from.rest(), settings).await {
        Ok(summary) => json(StatusCode::CREATED, &told(&summary, Awake::Yes)),
        Err(failure) => command_failed(&app, &failure),
    }
}

/// `PATCH /sessions/{id}` `{"title": …}`.
pub async fn rename(
    State(app): State<Arc<App>>,
    Extension(from): Extension<From>,
    id: Result<Path<String>, PathRejection>,
    body: Bytes,
) -> Response {
    let id = match SessionId::parse(&id.map(|Path(id)| id).unwrap_or_default()) {
        Ok(id) => id,
        Err(bad) => return bad_id(&bad),
    };
    let title = match rest::title(&body) {
        Ok(title) => title,
        Err(why) => return error(StatusCode::BAD_REQUEST, why),
    };
    match app.sessions.summary(&id).await {
        Ok(Some(_)) => {}
        Ok(None) => return not_found(),
        Err(failure) => return store_failed(&failure),
    }
    let by = from.rest();
    let handle = app.sessions.handle(id.clone(), by.clone());
    let setting = Setting::Title { title: title.clone() };
    match handle.command(Command::Set { setting, by }).await {
        Ok(_) => json(StatusCode::OK, &serde_json::json!({"id": id, "title": title})),
        Err(failure @ CommandError::Refused(Refusal::TooManySessions { .. })) => {
            command_failed(&app, &failure)
        }
        Err(CommandError::Refused(refusal)) => error(StatusCode::BAD_REQUEST, refusal.to_string()),
        Err(failure) => command_failed(&app, &failure),
    }
}

/// `POST /render` `{"markdown": …}`: the same as HTML that is safe to show.
pub async fn render(body: Bytes) -> Response {
    match rest::markdown(&body) {
        Ok(markdown) => {
            json(StatusCode::OK, &serde_json::json!({"html": crate::render::html(&markdown)}))
        }
        Err(why) => error(StatusCode::BAD_REQUEST, why),
    }
}

pub async fn archive(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
) -> Response {
    let id = match SessionId::parse(&id.map(|Path(id)| id).unwrap_or_default()) {
        Ok(id) => id,
        Err(bad) => return bad_id(&bad),
    };
    match app.sessions.archive(&id).await {
        Ok(Archived::Done) => {
            app.room.forget(&id);
            StatusCode::NO_CONTENT.into_response()
        }
        Ok(Archived::NotFound) => not_found(),
        Ok(Archived::Active) => error(StatusCode::CONFLICT, "Cannot delete active session"),
        Err(failure) => command_failed(&app, &failure),
    }
}

/// `POST /sessions/{id}:switch`, `:fork`, `:undo`.
pub async fn act(
    State(app): State<Arc<App>>,
    Extension(from): Extension<From>,
    target: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Response {
    let target = target.map(|Path(target)| target).unwrap_or_default();
    let Some((id, action)) = target.rsplit_once(':') else {
        return error(StatusCode::NOT_FOUND, "Not Found");
    };
    if !matches!(action, "switch" | "fork" | "undo") {
        return error(StatusCode::NOT_FOUND, "Not Found: the actions are :switch, :fork and :undo");
    }
    let id = match SessionId::parse(id) {
        Ok(id) => id,
        Err(bad) => return bad_id(&bad),
    };
    match action {
        "fork" => return edits::fork(&app, id, &Query::of(&uri), from.rest()).await,
        "undo" => return edits::undo(&app, id, &Query::of(&uri), from.rest()).await,
        _ => {}
    }
    if app.sessions.todos().is_none() {
        let text = "Todos storage not configured; set TODOS_STORE_PATH";
        return error(StatusCode::SERVICE_UNAVAILABLE, text);
    }
    match app.sessions.summary(&id).await {
        Ok(Some(_)) => switch(&app, id).await,
        Ok(None) => not_found(),
        Err(failure) => store_failed(&failure),
    }
}

async fn switch(app: &Arc<App>, id: SessionId) -> Response {
    let (task, name) = (app.clone(), id.clone());
    let switched = tokio::task::spawn_blocking(move || {
        let todos = task.sessions.todos()?;
        Some(todos.switch(&name, &task.sessions.kit().places.common.cwd, clock::now()))
    });
    match switched.await {
        Ok(Some(Ok((file, link)))) => {
            let (file, link) = (file.display().to_string(), link.display().to_string());
            json(StatusCode::OK, &Switched::new(&id, file, link))
        }
        Ok(Some(Err(SwitchError::Taken))) => error(
            StatusCode::CONFLICT,
            "Cannot switch session: .terraine-todos.md exists as a regular file",
        ),
        Ok(Some(Err(SwitchError::Io(why)))) => failed("Failed to create todos symbolic link", &why),
        Ok(None) => error(StatusCode::SERVICE_UNAVAILABLE, "Todos storage not configured"),
        Err(why) => failed("Failed to create todos symbolic link", &why),
    }
}

pub async fn not_here(_request: Request) -> Response {
    error(StatusCode::NOT_FOUND, "Not Found")
}

pub async fn wrong_method(_request: Request) -> Response {
    error(StatusCode::METHOD_NOT_ALLOWED, "This path does not take that method")
}
