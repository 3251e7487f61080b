//! Who may connect. Every request passes here before anything happens.
//!
//! Against web pages: `Host` must be a name of this server, `Origin` its own or an allowed one.
//! Against everyone else, when a token is set: the token. Never logs a request's query.

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use subtle::ConstantTimeEq;

use crate::config::Access;

/// What the server itself is known as.
pub struct Guard {
    access: Access,
    port: u16,
    /// The address it listens on, where that is a name of its own.
    bound: String,
}

/// Why a request is turned away.
#[derive(Debug, PartialEq, Eq)]
pub struct Denied {
    pub status: StatusCode,
    pub why: &'static str,
}

fn denied(status: StatusCode, why: &'static str) -> Denied {
    Denied { status, why }
}

/// What is known of a request that may go on.
#[derive(Debug, PartialEq, Eq)]
pub struct Passed {
    /// The origin to name in answers to another site that is allowed.
    pub other_origin: Option<String>,
    /// The token came in the URL of a page: it must leave the URL.
    pub token_in_url: bool,
    pub proof: Proof,
}

#[derive(Debug, PartialEq, Eq)]
enum Origin {
    None,
    Own,
    Allowed(String),
}

/// Where a token was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    NotNeeded,
    Header,
    Url,
    Cookie,
}

impl Proof {
    /// Nothing where no token was needed.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Proof::NotNeeded => None,
            Proof::Header => Some("header"),
            Proof::Url => Some("url"),
            Proof::Cookie => Some("cookie"),
        }
    }
}

pub struct Asked<'a> {
    pub method: &'a Method,
    pub uri: &'a Uri,
    pub headers: &'a HeaderMap,
    pub is_upgrade: bool,
}

impl Guard {
    pub fn new(access: Access, bound: std::net::SocketAddr) -> Guard {
        let host = match bound.ip() {
            std::net::IpAddr::V4(ip) => ip.to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        };
        Guard { access, port: bound.port(), bound: host }
    }

    pub fn wants_token(&self) -> bool {
        self.access.token.is_some()
    }

    pub fn cookie_name(&self) -> String {
        format!("polyloop_{}", self.port)
    }

    pub fn check(&self, asked: &Asked<'_>) -> Result<Passed, Denied> {
        let host = self.host(asked)?;
        let origin = self.origin(asked.headers, host)?;
        self.fetch_site(asked, &origin)?;
        let proof = self.proof(asked)?;
        // A browser sends the cookie wherever a page points it, so a socket needs the page's
        // origin too.
        if asked.is_upgrade && proof == Proof::Cookie && origin == Origin::None {
            return Err(denied(StatusCode::FORBIDDEN, "A cookie alone does not open a socket"));
        }
        let other_origin = match origin {
            Origin::Allowed(origin) => Some(origin),
            Origin::None | Origin::Own => None,
        };
        let token_in_url = proof == Proof::Url && asked.uri.path() == "/" && !asked.is_upgrade;
        Ok(Passed { other_origin, token_in_url, proof })
    }

    fn host<'a>(&self, asked: &Asked<'a>) -> Result<&'a str, Denied> {
        let bad = || denied(StatusCode::BAD_REQUEST, "Exactly one valid Host header is needed");
        let mut hosts = asked.headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().map_err(|_| bad())?,
            _ => return Err(bad()),
        };
        let name = host_name(host).ok_or_else(bad)?;
        let foreign = denied(StatusCode::FORBIDDEN, "This Host is not allowed; see ALLOWED_HOSTS");
        if !self.is_own_host(name) {
            return Err(foreign);
        }
        match asked.uri.host() {
            Some(absolute) if !absolute.eq_ignore_ascii_case(name) => Err(foreign),
            _ => Ok(host),
        }
    }

    fn is_own_host(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let loopback = ["localhost", "127.0.0.1", "[::1]"].contains(&name.as_str());
        loopback || name == self.bound || self.access.allowed_hosts.contains(&name)
    }

    fn origin(&self, headers: &HeaderMap, host: &str) -> Result<Origin, Denied> {
        let foreign =
            || denied(StatusCode::FORBIDDEN, "This Origin is not allowed; see ALLOWED_ORIGINS");
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = match (origins.next(), origins.next()) {
            (None, _) => return Ok(Origin::None),
            (Some(origin), None) => origin.to_str().map_err(|_| foreign())?,
            (Some(_), Some(_)) => return Err(foreign()),
        };
        let same = ["http://", "https://"]
            .iter()
            .any(|scheme| origin.strip_prefix(scheme).is_some_and(|o| o == host));
        // Other names of the same place: the port must be the one that was called.
        let port = host_name(host).map_or("", |name| &host[name.len()..]);
        let loopback = ["localhost", "127.0.0.1", "[::1]"]
            .iter()
            .any(|name| origin.strip_prefix("http://") == Some(&format!("{name}{port}")));
        if same || loopback {
            Ok(Origin::Own)
        } else if self.access.allowed_origins.iter().any(|allowed| allowed == origin) {
            Ok(Origin::Allowed(origin.to_string()))
        } else {
            Err(foreign())
        }
    }

    /// Requests that a page of another site makes without an `Origin` are told by this header.
    fn fetch_site(&self, asked: &Asked<'_>, origin: &Origin) -> Result<(), Denied> {
        let header = |name: &str| asked.headers.get(name).and_then(|value| value.to_str().ok());
        let site = header("sec-fetch-site").unwrap_or("none");
        let visit = asked.method == Method::GET
            && asked.uri.path() == "/"
            && header("sec-fetch-mode") == Some("navigate");
        let from_elsewhere = matches!(site, "cross-site" | "same-site");
        if from_elsewhere && !visit && !matches!(origin, Origin::Allowed(_) | Origin::Own) {
            return Err(denied(StatusCode::FORBIDDEN, "Requests from other sites are refused"));
        }
        Ok(())
    }

    fn proof(&self, asked: &Asked<'_>) -> Result<Proof, Denied> {
        let Some(token) = &self.access.token else { return Ok(Proof::NotNeeded) };
        // A preflight request cannot carry a token; it does nothing and learns nothing.
        let preflight = asked.method == Method::OPTIONS;
        if asks_for_health(asked.uri) || preflight {
            return Ok(Proof::NotNeeded);
        }
        let token = token.reveal().as_bytes();
        let is_right = |given: &str| bool::from(given.as_bytes().ct_eq(token));
        let header = asked.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = header.and_then(|value| {
            let (scheme, given) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| given.trim())
        });
        if bearer.is_some_and(is_right) {
            return Ok(Proof::Header);
        }
        let query = crate::query::Query::of(asked.uri);
        if query.get("token").is_some_and(is_right) {
            return Ok(Proof::Url);
        }
        let name = self.cookie_name();
        let cookies = asked.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|cookie| cookie.split(';')).map(str::trim);
        let found = pairs.any(|pair| {
            pair.split_once('=').is_some_and(|(key, value)| key == name && is_right(value))
        });
        match found {
            true => Ok(Proof::Cookie),
            false => Err(denied(
                StatusCode::UNAUTHORIZED,
                "A token is needed: Authorization: Bearer …, or ?token=…",
            )),
        }
    }
}

/// Whether somebody asks only whether the server lives, or can serve.
pub fn asks_for_health(uri: &Uri) -> bool {
    matches!(uri.path(), "/healthz" | "/readyz")
}

/// The host of `host[:port]`; `None` when it is neither.
fn host_name(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']')? + 2;
            (&host[..end], &host[end..])
        }
        None => host.find(':').map_or((host, ""), |at| host.split_at(at)),
    };
    let port_fits = match port.strip_prefix(':') {
        None => port.is_empty(),
        Some(digits) => digits.parse::<u16>().is_ok(),
    };
    let plain =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    (port_fits && !name.is_empty() && name.bytes().all(plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    const TOKEN: &str = "0123456789abcdef";

    fn guard(token: bool) -> Guard {
        let access = Access {
            token: token.then(|| Secret::new(TOKEN)),
            allowed_origins: vec!["https://app.example".into()],
            allowed_hosts: vec!["agent.example".into()],
        };
        Guard::new(access, "127.0.0.1:8080".parse().unwrap())
    }

    /// Headers as `name: value` lines; the answer is the status, 200 for a pass.
    fn status(guard: &Guard, method: &str, uri: &str, lines: &[&str]) -> u16 {
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            let name: axum::http::HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        let asked = Asked {
            method: &method.parse().unwrap(),
            uri: &uri.parse().unwrap(),
            headers: &headers,
            is_upgrade: lines.contains(&"upgrade: websocket"),
        };
        guard.check(&asked).map_or_else(|denied| denied.status.as_u16(), |_| 200)
    }

    #[test]
    fn hosts() {
        let guard = guard(false);
        for (host, want) in [
            ("127.0.0.1:8080", 200),
            ("localhost:8080", 200),
            ("LOCALHOST", 200),
            ("[::1]:8080", 200),
            ("agent.example:99", 200),
            ("evil.example:8080", 403),
            ("127.0.0.1.evil.example:8080", 403),
            ("127.0.0.1:8080, evil", 400),
            ("127.0.0.1:x", 400),
            ("[::1", 400),
            ("", 400),
        ] {
            assert_eq!(
                status(&guard, "GET", "/sessions", &[&format!("host: {host}")]),
                want,
                "{host}"
            );
        }
        assert_eq!(status(&guard, "GET", "/", &[]), 400);
        assert_eq!(status(&guard, "GET", "/", &["host: localhost", "host: localhost"]), 400);
        assert_eq!(status(&guard, "GET", "http://evil/", &["host: localhost"]), 403);
    }

    #[test]
    fn origins() {
        let guard = guard(false);
        for (origin, want) in [
            ("http://127.0.0.1:8080", 200),
            ("http://localhost:8080", 200),
            ("http://[::1]:8080", 200),
            ("https://app.example", 200),
            ("https://evil.example", 403),
            ("null", 403),
            ("http://localhost.evil.example", 403),
            ("http://127.0.0.1.evil.example", 403),
            ("http://evil.example#127.0.0.1", 403),
            ("http://127.0.0.1:8080@evil.example", 403),
            ("HTTP://127.0.0.1:8080.", 403),
            ("http://127.0.0.1:9999", 403),
            ("https://app.example.evil", 403),
        ] {
            let lines = ["host: 127.0.0.1:8080", &format!("origin: {origin}")];
            assert_eq!(status(&guard, "GET", "/ws", &lines), want, "{origin}");
        }
        let two = ["host: localhost:8080", "origin: http://localhost:8080", "origin: http://evil"];
        assert_eq!(status(&guard, "GET", "/ws", &two), 403);
        let mapped = ["host: localhost:9000", "origin: http://localhost:9000"];
        assert_eq!(status(&guard, "GET", "/ws", &mapped), 200);
        // Another program of this machine may have the port that ours is mapped from.
        let other = ["host: localhost:9000", "origin: http://localhost:8080"];
        assert_eq!(status(&guard, "GET", "/ws", &other), 403);
    }

    #[test]
    fn other_sites_may_only_visit() {
        let guard = guard(false);
        let host = "host: localhost:8080";
        let cross = "sec-fetch-site: cross-site";
        assert_eq!(status(&guard, "POST", "/sessions", &[host, cross]), 403);
        assert_eq!(status(&guard, "GET", "/sessions", &[host, cross]), 403);
        assert_eq!(status(&guard, "GET", "/", &[host, cross, "sec-fetch-mode: navigate"]), 200);
        assert_eq!(status(&guard, "GET", "/", &[host, cross, "sec-fetch-mode: no-cors"]), 403);
        let allowed = [host, cross, "origin: https://app.example"];
        assert_eq!(status(&guard, "POST", "/sessions", &allowed), 200);
    }

    #[test]
    fn the_token() {
        let guard = guard(true);
        let host = "host: localhost:8080";
        let right = format!("authorization: Bearer {TOKEN}");
        let cookie = format!("cookie: a=b; polyloop_8080={TOKEN}");
        assert_eq!(status(&guard, "GET", "/sessions", &[host]), 401);
        assert_eq!(status(&guard, "GET", "/healthz", &[host]), 200);
        assert_eq!(status(&guard, "GET", "/readyz", &[host]), 200);
        assert_eq!(status(&guard, "GET", "/sessions", &[host, &right]), 200);
        assert_eq!(status(&guard, "GET", "/sessions", &[host, &cookie]), 200);
        assert_eq!(status(&guard, "GET", &format!("/ws?token={TOKEN}"), &[host]), 200);
        for wrong in ["", "Bearer", "Bearer wrong", "Basic 0123456789abcdef"] {
            let line = format!("authorization: {wrong}");
            assert_eq!(status(&guard, "GET", "/sessions", &[host, &line]), 401, "{wrong}");
        }
        let upgrade = "upgrade: websocket";
        assert_eq!(status(&guard, "GET", "/ws", &[host, &cookie, upgrade]), 403);
        let own = "origin: http://localhost:8080";
        assert_eq!(status(&guard, "GET", "/ws", &[host, &cookie, upgrade, own]), 200);
        let evil = ["host: evil.example", &right];
        assert_eq!(status(&guard, "GET", "/sessions", &evil), 403);
    }
}
