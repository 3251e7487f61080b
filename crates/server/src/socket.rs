//! A WebSocket connection: the handshake, then two halves side by side, one that reads and one
//! that writes, so that a turn never keeps the socket from being read.
//!
//! Holds no session state: it carries frames between a client and its session's handle.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use polyloop_dialects::detect::{self, Decision, Handshake};
use polyloop_dialects::{Cursor, Dialect, Manner};
use polyloop_session::{SessionId, Text};
use tokio_websockets::{Limits, ServerBuilder};

use crate::access::{From, Visit};
use crate::app::{App, is_upgrade};
use crate::query::Query;
use crate::rate::{Sender, Sent};
use crate::serve::Held;
use crate::{page, rest};

mod ask;
mod attach;
mod behind;
mod outgoing;
mod outlet;
mod pace;
mod read;
mod run;
mod standing;
mod start;
mod stream;
mod write;

pub(crate) use attach::store_complaint;
pub use attach::tool_infos;
use stream::Unbound;

/// What a handshake says of the connection it opens.
pub(crate) struct Hello {
    pub dialect: Option<&'static dyn Dialect>,
    pub session: Option<SessionId>,
    pub since: Option<Cursor>,
    pub name: Option<Text>,
    /// The address it comes from.
    pub from: Option<Text>,
    /// Whoever is silent here may be a chat client.
    pub on_chat_path: bool,
}

/// Where sockets are, besides `/`, which shows the page to others.
pub const PATHS: [&str; 8] =
    ["/ws", "/ws/", "/ws/{id}", "/agentloop", "/agentloop/{id}", "/unified", "/loom", "/chat"];

const NAME_CHARS_MAX: usize = 64;
const ACCEPT_GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Whether a request is for a socket: it says so, and is where they are.
pub fn is_asked_for(request: &Request) -> bool {
    let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let is_here = matched.is_some_and(|path| path == "/" || PATHS.contains(&path));
    is_here && is_upgrade(request.headers())
}

pub async fn or_page(state: State<Arc<App>>, request: Request) -> Response {
    if is_upgrade(request.headers()) {
        return upgrade(state, request).await;
    }
    match *request.method() {
        Method::GET | Method::HEAD => page::home(),
        _ => rest::wrong_method(request).await,
    }
}

pub async fn upgrade(State(app): State<Arc<App>>, mut request: Request) -> Response {
    let accept = match accept_key(request.method(), request.headers()) {
        Ok(accept) => accept,
        Err((status, why)) => return rest::error(status, why),
    };
    let (hello, subprotocol) = match hello(&request) {
        Ok(hello) => hello,
        Err(why) => return rest::error(StatusCode::BAD_REQUEST, why),
    };
    let held = request.extensions().get::<Held>().cloned();
    let sent = request.extensions().get::<Arc<Sent>>().cloned();
    let client = sent.unwrap_or_else(|| app.clients.client(Sender::Token));
    let visit = Visit::begin(app.clone(), &request, hello.dialect.map(|dialect| dialect.name()));
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(upgraded) = upgraded.await else { return };
        let Ok(unbound) = Unbound::of(upgraded) else { return };
        let sessions = app.sessions.clone();
        // It goes to the thread of the session that it is about.
        let rail = sessions.rail_of(hello.session.as_ref());
        let connection = connection(app, unbound, hello, client, visit, held);
        match rail {
            Some((rails, which)) => drop(rails.spawn(which, connection)),
            None => connection.await,
        }
    });
    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    if let Some(subprotocol) = subprotocol {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(subprotocol));
    }
    response
}

async fn connection(
    app: Arc<App>,
    unbound: Unbound,
    hello: Hello,
    client: Arc<Sent>,
    visit: Visit,
    _held: Option<Held>,
) {
    let visit = Arc::new(visit);
    let Ok(stream) = unbound.bind(app.clone(), visit.clone()) else { return };
    let outlet = stream.outlet.clone();
    // Fragments and frames obey the same bound; a longer message closes with 1009.
    let limits = Limits::default().max_payload_len(Some(app.message_bytes_max));
    let socket = ServerBuilder::new().limits(limits).serve(stream);
    read::serve(app, (socket, outlet), hello, client, visit).await;
}

fn accept_key(method: &Method, headers: &HeaderMap) -> Result<String, (StatusCode, &'static str)> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if !is_upgrade(headers) || method != Method::GET {
        let why = "This path is for WebSockets: send a GET with `Upgrade: websocket`";
        return Err((StatusCode::UPGRADE_REQUIRED, why));
    }
    let connection = text(CONNECTION).unwrap_or("").to_ascii_lowercase();
    if !connection.split(',').any(|word| word.trim() == "upgrade") {
        return Err((StatusCode::BAD_REQUEST, "A `Connection: Upgrade` header is needed"));
    }
    if text(SEC_WEBSOCKET_VERSION) != Some("13") {
        return Err((StatusCode::UPGRADE_REQUIRED, "Only WebSocket version 13 is spoken here"));
    }
    let key = text(SEC_WEBSOCKET_KEY).unwrap_or("");
    if key.is_empty() {
        return Err((StatusCode::BAD_REQUEST, "A Sec-WebSocket-Key header is needed"));
    }
    let mut sha1 = sha1_smol::Sha1::new();
    sha1.update(key.as_bytes());
    sha1.update(ACCEPT_GUID.as_bytes());
    Ok(base64::engine::general_purpose::STANDARD.encode(sha1.digest().bytes()))
}

fn hello(request: &Request) -> Result<(Hello, Option<&'static str>), String> {
    let (uri, headers) = (request.uri(), request.headers());
    let query = Query::of(uri);
    let offers = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|v| v.to_str().ok());
    let offers: Vec<&str> = offers.flat_map(|list| list.split(',')).map(str::trim).collect();
    let protocol = query.get("protocol");
    let in_query = query.get("session_id");
    let names_session = in_query.is_some();
    let path = uri.path();
    let handshake = Handshake { path, subprotocols: &offers, protocol, names_session };
    let dialect = match detect::decide(&handshake) {
        Decision::Dialect(dialect) => Some(dialect),
        Decision::ByFirstMessage => None,
        Decision::UnknownProtocol => {
            let known: Vec<&str> = detect::ALL.iter().map(|d| d.name()).collect();
            let given = protocol.unwrap_or("");
            return Err(format!("protocol: {given:?} is not spoken here; use {}", known.join("|")));
        }
    };
    let in_path = path.trim_start_matches('/').split_once('/').map(|(_, id)| id);
    let is_runs = dialect.is_none_or(|dialect| dialect.manner() == Manner::Runs);
    let thread = query.get("thread_id").filter(|_| is_runs);
    let id = in_path.filter(|id| !id.is_empty()).or(in_query).or(thread);
    let session = id.map(SessionId::parse).transpose().map_err(|bad| bad.to_string())?;
    let since = query.get("since").map(Cursor::parse).transpose().map_err(|bad| bad.to_string())?;
    let name = query.get("name").and_then(clean_name);
    let subprotocol = detect::by_subprotocol(&offers).map(|dialect| dialect.subprotocol());
    let on_chat_path = matches!(path, "/ws" | "/ws/") && session.is_none();
    let from = request.extensions().get::<From>().map(|from| from.told());
    Ok((Hello { dialect, session, since, name, from, on_chat_path }, subprotocol))
}

/// A client's name as it is shown; `None` when there is nothing to show.
fn clean_name(name: &str) -> Option<Text> {
    let shown: String = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
    Some(shown.trim()).filter(|name| !name.is_empty()).map(Into::into)
}
