//! The HTTP side: routes, and the guard that every request passes first.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, CONNECTION, TRANSFER_ENCODING, UPGRADE, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use futures_util::StreamExt;
use polyloop_agent::sessions::Sessions;
use polyloop_dialects::ToolInfo;
use tokio_util::sync::CancellationToken;

use crate::access::{Call, From};
use crate::auth::{Asked, Guard};
use crate::metrics::{self, Metrics};
use crate::models::Offers;
use crate::rate::{Clients, Sender};
use crate::room::Room;
use crate::serve::HEADER_BYTES_MAX;
use crate::view::DialectView;
use crate::{about, auth, history, page, query, rest, socket};

/// Of a request that is for no socket.
pub const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
const TOO_LARGE: &str = "The body is too large; 2 MiB are the most";
const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// Of a body that nobody reads, so that who sends it whole before reading anything has the answer.
const DISCARDED_BYTES_MAX: usize = 64 * 1024 * 1024;
const DISCARD_TIME_MAX: Duration = Duration::from_secs(2);
/// Whoever has sent so much that it would wait longer is told to come back.
const BYTES_WAIT_MAX: Duration = Duration::from_secs(10);

/// What requests share.
pub struct App {
    pub sessions: Sessions<DialectView>,
    pub guard: Guard,
    /// How fast each of them sends.
    pub clients: Clients,
    pub metrics: Metrics,
    pub room: Arc<Room>,
    /// As clients are told of them.
    pub tools: Arc<[ToolInfo]>,
    pub message_bytes_max: usize,
    /// Who runs which models.
    pub offers: Offers,
    /// Whether sessions outlive the server.
    pub keeps_sessions: bool,
    /// Cancelled when the server begins to stop.
    pub closing: CancellationToken,
}

pub fn router(app: Arc<App>) -> Router {
    let sockets = Router::new().route("/", any(socket::or_page));
    let sockets =
        socket::PATHS.iter().fold(sockets, |router, path| router.route(path, any(socket::upgrade)));
    sockets
        .route("/page/{*name}", get(page::part))
        .merge(standing())
        .route("/about", get(about::about))
        .route("/models", get(about::models))
        .route("/render", post(rest::render))
        .merge(kept(&app))
        .fallback(rest::not_here)
        .method_not_allowed_fallback(rest::wrong_method)
        .layer(middleware::from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

/// The routes of a server that has no room for further connections: how it is can still be asked.
pub fn full(app: Arc<App>) -> Router {
    standing()
        .fallback(rest::full)
        .layer(middleware::from_fn_with_state(app.clone(), guard_full))
        .layer(middleware::map_response(closes))
        .with_state(app)
}

/// What asks how the server is.
fn standing() -> Router<Arc<App>> {
    Router::new()
        .route("/healthz", get(rest::healthz))
        .route("/readyz", get(rest::readyz))
        .route("/metrics", get(metrics::metrics))
}

async fn closes(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// What asks the session store.
fn kept(app: &Arc<App>) -> Router<Arc<App>> {
    Router::new()
        .route("/sessions", get(rest::list).post(rest::create))
        .route(
            "/sessions/{id}",
            get(rest::read).delete(rest::archive).post(rest::act).patch(rest::rename),
        )
        .route("/sessions/{id}/frames", get(history::frames))
        .route_layer(middleware::from_fn_with_state(app.clone(), rest::within_reach))
}

pub fn is_upgrade(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    upgrade.is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
}

/// What is wrong with a request's head, whoever sent it.
fn bad_head(headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > HEADER_BYTES_MAX {
        return Some((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "The header is too large"));
    }
    // Two ways to say where a body ends are one too many, and nothing here needs chunks.
    let chunked = headers.contains_key(TRANSFER_ENCODING);
    chunked.then_some((StatusCode::BAD_REQUEST, "Send a Content-Length, not chunks"))
}

async fn guard(app: State<Arc<App>>, request: Request, next: Next) -> Response {
    guarded(app, request, next, Stay::Long).await
}

/// The same where only few may stay for long: nothing is waited for.
async fn guard_full(app: State<Arc<App>>, request: Request, next: Next) -> Response {
    guarded(app, request, next, Stay::Short).await
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stay {
    Long,
    Short,
}

async fn guarded(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
    stay: Stay,
) -> Response {
    let mut call = Call::begin(app.clone(), &request);
    let response = checked(app, request, next, stay, &mut call).await;
    call.answer(response.status());
    response
}

async fn checked(
    app: Arc<App>,
    mut request: Request,
    next: Next,
    stay: Stay,
    call: &mut Call,
) -> Response {
    if let Some((status, why)) = bad_head(request.headers()) {
        call.refused(why);
        let mut response = rest::error(status, why);
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    let asked = Asked {
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
        is_upgrade: is_upgrade(request.headers()),
    };
    let is_home = asked.uri.path() == "/" && asked.method == Method::GET && !asked.is_upgrade;
    let passed = match app.guard.check(&asked) {
        Ok(passed) => passed,
        Err(denied) => {
            tracing::info!(path = asked.uri.path(), status = %denied.status, "refused: {}", denied.why);
            call.refused(denied.why);
            if let Some(sender) = address(&request)
                && let Err(too_fast) = app.clients.client(sender).request()
            {
                return rest::too_fast(&too_fast);
            }
            return match denied.status == StatusCode::UNAUTHORIZED && is_home {
                true => page::token_needed(),
                false => rest::error(denied.status, denied.why),
            };
        }
    };
    call.passes(passed.proof);
    request.extensions_mut().insert(passed.proof);
    if passed.token_in_url && is_home {
        let query = query::Query::of(request.uri());
        let token = query.get("token").unwrap_or_default();
        return page::token_taken(&app.guard.cookie_name(), token);
    }
    let preflight = request.method() == Method::OPTIONS;
    // A preflight request shows no token, so it must not count against whoever has it.
    let sender = match app.guard.wants_token() && !preflight {
        true => Some(Sender::Token),
        false => address(&request),
    };
    let refused = match sender {
        Some(sender) if stay == Stay::Long => slowed(&app, sender, &mut request).await,
        Some(_) | None => None,
    };
    let mut response = match refused {
        Some(refused) => refused,
        None if preflight => StatusCode::NO_CONTENT.into_response(),
        None => next.run(request).await,
    };
    if let Some(origin) = passed.other_origin {
        share(response.headers_mut(), &origin, preflight);
    }
    response
}

fn address(request: &Request) -> Option<Sender> {
    request.extensions().get::<From>().map(|From(address)| Sender::at(address.ip()))
}

/// Keeps a client to its pace: refuses requests too many, and waits for the bytes that it sends.
/// Sockets are counted by what comes over them, and by how many there are.
async fn slowed(app: &App, sender: Sender, request: &mut Request) -> Option<Response> {
    let client = app.clients.client(sender);
    if !socket::is_asked_for(request) && !auth::asks_for_health(request.uri()) {
        let body = std::mem::take(request.body_mut());
        if let Err(too_fast) = client.request() {
            tokio::spawn(discard(body));
            return Some(rest::too_fast(&too_fast));
        }
        if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
            tokio::spawn(discard(body));
            return Some(rest::error(StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE));
        }
        if !body.is_end_stream() {
            // What a head promises is no debt yet: only what has come.
            let body = match read(body).await {
                Ok(body) => body,
                Err((status, why)) => return Some(rest::error(status, why)),
            };
            match client.body(body.len(), BYTES_WAIT_MAX) {
                Ok(wait) if wait.is_zero() => {}
                Ok(wait) => tokio::time::sleep(wait).await,
                Err(too_fast) => return Some(rest::too_many_bytes(&too_fast)),
            }
            *request.body_mut() = body.into();
        }
    }
    request.extensions_mut().insert(client);
    None
}

/// The whole body of a request, which is short and does not take long.
async fn read(body: Body) -> Result<Bytes, (StatusCode, &'static str)> {
    let read = axum::body::to_bytes(body, BODY_BYTES_MAX);
    match tokio::time::timeout(BODY_TIME_MAX, read).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "The body did not arrive whole")),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "The body took too long to arrive")),
    }
}

/// Reads what is sent of a body that is not wanted, for a while, beside the answer: closing a
/// connection with unread data in it would take the answer away from the client.
async fn discard(body: Body) {
    let mut frames = body.into_data_stream();
    let read_all = async {
        let mut bytes = 0;
        while bytes < DISCARDED_BYTES_MAX
            && let Some(Ok(data)) = frames.next().await
        {
            bytes += data.len();
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIME_MAX, read_all).await;
}

/// Lets a page of an allowed origin read the answer.
fn share(headers: &mut HeaderMap, origin: &str, preflight: bool) {
    let Ok(origin) = HeaderValue::from_str(origin) else { return };
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(VARY, HeaderValue::from_static("Origin"));
    if preflight {
        let methods = HeaderValue::from_static("GET, POST, PATCH, DELETE, OPTIONS");
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        let allowed = HeaderValue::from_static("Content-Type, Authorization");
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
}
