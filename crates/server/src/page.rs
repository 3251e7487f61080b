//! The page at `/` and its files: what a browser sees.
//!
//! They stand in the binary. The page has no door of its own: what it knows of sessions it learns
//! as any other client does.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION,
    REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::rest;

const PAGE: &str = include_str!("page/index.html");
const TOKEN_PAGE: &str = include_str!("page/token.html");

/// Names and contents of the page's folder, as the build found them.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// Nothing but what this server serves: no script in the page's text, nobody else's anything.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; \
                      base-uri 'none'; form-action 'self'";
/// Whoever has no token yet cannot load files, so its style stands in the page itself.
const TOKEN_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
                            frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

const NEVER_KEPT: &str = "no-store";
/// Kept, but asked about each time: a new binary brings new files under the same names.
const ASKED_ABOUT: &str = "no-cache";

struct File {
    name: &'static str,
    bytes: &'static [u8],
    kind: &'static str,
    tag: HeaderValue,
}

static TABLE: LazyLock<Vec<File>> =
    LazyLock::new(|| FILES.iter().filter_map(|&(name, bytes)| file(name, bytes)).collect());

fn file(name: &'static str, bytes: &'static [u8]) -> Option<File> {
    let kind = match name.rsplit_once('.')?.1 {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    };
    let tag = format!("\"{}\"", sha1_smol::Sha1::from(bytes).digest());
    Some(File { name, bytes, kind, tag: HeaderValue::from_str(&tag).ok()? })
}

pub fn home() -> Response {
    page(StatusCode::OK, PAGE, POLICY)
}

/// `GET /page/{name}`.
pub async fn part(name: Result<Path<String>, PathRejection>, headers: HeaderMap) -> Response {
    let name = name.map(|Path(name)| name).unwrap_or_default();
    let Some(file) = TABLE.iter().find(|file| file.name == name) else {
        return rest::error(StatusCode::NOT_FOUND, "Not Found");
    };
    let mut response = match is_known(&headers, &file.tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => (StatusCode::OK, file.bytes).into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.kind));
    headers.insert(ETAG, file.tag.clone());
    secure(headers, POLICY, ASKED_ABOUT);
    response
}

/// Whether the browser has these very bytes.
fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let lists = headers.get_all(IF_NONE_MATCH).iter().filter_map(|list| list.to_str().ok());
    let mut tags = lists.flat_map(|list| list.split(',')).map(str::trim);
    tags.any(|given| given == "*" || given.strip_prefix("W/").unwrap_or(given) == tag)
}

/// Asks for the token, which comes back in the URL once.
pub fn token_needed() -> Response {
    page(StatusCode::UNAUTHORIZED, TOKEN_PAGE, TOKEN_POLICY)
}

/// Takes the token out of the URL and into a cookie that no script can read.
pub fn token_taken(cookie_name: &str, token: &str) -> Response {
    let cookie = format!("{cookie_name}={token}; HttpOnly; SameSite=Strict; Path=/");
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_static("/"));
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        headers.insert(SET_COOKIE, cookie);
    }
    secure(headers, POLICY, NEVER_KEPT);
    response
}

fn page(status: StatusCode, html: &'static str, policy: &'static str) -> Response {
    let mut response = (status, html).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    secure(headers, policy, NEVER_KEPT);
    response
}

fn secure(headers: &mut HeaderMap, policy: &'static str, kept: &'static str) {
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(kept));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}
