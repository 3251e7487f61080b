//! The page at `/`: what a browser sees.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

const PAGE: &str = include_str!("page/index.html");
const TOKEN_PAGE: &str = include_str!("page/token.html");

const POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

pub fn home() -> Response {
    page(StatusCode::OK, PAGE)
}

/// Asks for the token, which comes back in the URL once.
pub fn token_needed() -> Response {
    page(StatusCode::UNAUTHORIZED, TOKEN_PAGE)
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
    secure(headers);
    response
}

fn page(status: StatusCode, html: &'static str) -> Response {
    let mut response = (status, html).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    secure(headers);
    response
}

fn secure(headers: &mut HeaderMap) {
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}
