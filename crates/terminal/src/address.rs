//! Where the server is, and how a connection to it is made.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_websockets::{Connector, MaybeTlsStream};

pub const URL_DEFAULT: &str = "http://127.0.0.1:8080";
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// The server's address, and what it wants to be shown.
#[derive(Clone)]
pub struct Address {
    tls: bool,
    host: String,
    port: u16,
    /// Before every path; empty, or with a slash at its beginning alone.
    base: String,
    pub token: Option<String>,
}

/// Without the token.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Address {
    pub fn parse(url: &str, token: Option<String>) -> Result<Address, String> {
        let bad = |why: &str| format!("--url: {url:?} {why}; use http://HOST:PORT or https://HOST");
        let (scheme, rest) =
            url.split_once("://").ok_or_else(|| bad("has no http:// before it"))?;
        let tls = match scheme {
            "http" | "ws" => false,
            "https" | "wss" => true,
            _ => return Err(bad("is neither http nor https")),
        };
        if rest.contains(['?', '#', '@']) {
            return Err(bad("has more than a host, a port and a path"));
        }
        let (authority, base) = match rest.find('/') {
            Some(at) => (&rest[..at], rest[at..].trim_end_matches('/')),
            None => (rest, ""),
        };
        let (host, port) = split_port(authority);
        let port = match port {
            None => {
                if tls {
                    443
                } else {
                    80
                }
            }
            Some(port) => port.parse().map_err(|_| bad("has a port that is none"))?,
        };
        let host_fits = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        if host.is_empty() || !host.chars().all(host_fits) {
            return Err(bad("has no host"));
        }
        let base_fits = |c: char| c.is_ascii_alphanumeric() || "/-._~%".contains(c);
        if !base.chars().all(base_fits) {
            return Err(bad("has a path that cannot be used"));
        }
        if token.as_deref().is_some_and(|token| !token.bytes().all(|b| b.is_ascii_graphic())) {
            return Err("the token has characters that no token has".to_owned());
        }
        Ok(Address { tls, host: host.to_owned(), port, base: base.to_owned(), token })
    }

    /// Whether others on the way could read the token.
    pub fn shows_token_openly(&self) -> bool {
        let here = self.host == "localhost"
            || self.host.trim_matches(['[', ']']).parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        self.token.is_some() && !self.tls && !here
    }

    /// For people.
    pub fn shown(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}:{}{}", self.host, self.port, self.base)
    }

    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// A path as it stands in a request.
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub fn socket_url(&self, path: &str) -> String {
        let scheme = if self.tls { "wss" } else { "ws" };
        format!("{scheme}://{}{}", self.authority(), self.path(path))
    }

    pub async fn connect(&self) -> Result<MaybeTlsStream<TcpStream>, String> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let connected = async {
            let stream = TcpStream::connect((host, self.port)).await.map_err(|e| e.to_string())?;
            // Keys are answered one by one; a failure only makes them slower.
            let _ = stream.set_nodelay(true);
            let connector = if self.tls { Connector::new() } else { Ok(Connector::Plain) };
            let connector = connector.map_err(|error| format!("TLS cannot be used: {error}"))?;
            connector.wrap(host, stream).await.map_err(|error| error.to_string())
        };
        match tokio::time::timeout(CONNECT_TIME_MAX, connected).await {
            Ok(connected) => connected,
            Err(_) => Err(format!("no answer within {} s", CONNECT_TIME_MAX.as_secs())),
        }
    }
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    // The colons of an IPv6 address stand in brackets.
    match authority.rfind(':') {
        Some(at) if !authority[at..].contains(']') => {
            (&authority[..at], Some(&authority[at + 1..]))
        }
        _ => (authority, None),
    }
}

/// A text as part of a query.
pub fn query(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte as char);
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Whether a text can be the id of a session.
pub fn is_session_id(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=128).contains(&text.len()) && !text.starts_with('.') && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> Result<String, String> {
        Address::parse(url, None).map(|address| address.shown())
    }

    #[test]
    fn addresses_are_read() {
        assert_eq!(shown("http://127.0.0.1:8080").unwrap(), "http://127.0.0.1:8080");
        assert_eq!(shown("https://agent.example/").unwrap(), "https://agent.example:443");
        assert_eq!(shown("ws://[::1]:9/p/q/").unwrap(), "http://[::1]:9/p/q");
        assert_eq!(shown("http://[::1]").unwrap(), "http://[::1]:80");
    }

    #[test]
    fn what_is_no_address_is_said() {
        for url in
            ["127.0.0.1:8080", "ftp://a", "http://", "http://a:b", "http://u@h", "http://h/?q"]
        {
            let error = shown(url).unwrap_err();
            assert!(error.contains(url), "{error}");
        }
    }

    #[test]
    fn the_token_is_not_shown() {
        let address = Address::parse("http://h", Some("secret-token".into())).unwrap();
        assert!(!format!("{address:?}").contains("secret"));
        assert!(Address::parse("http://h", Some("a\r\nb: c".into())).is_err());
        assert!(address.shows_token_openly());
        for url in ["https://h", "http://127.0.0.1:1", "http://[::1]:1", "http://localhost"] {
            let address = Address::parse(url, Some("secret-token".into())).unwrap();
            assert!(!address.shows_token_openly(), "{url}");
        }
    }

    #[test]
    fn queries_are_encoded() {
        assert_eq!(query("14+1~12t57,13o20"), "14%2B1~12t57%2C13o20");
        assert_eq!(query("ä b&c"), "%C3%A4%20b%26c");
    }

    #[test]
    fn ids_are_as_the_server_takes_them() {
        assert!(is_session_id("a.B-c_9"));
        for id in ["", ".a", "a/b", "a b", &"x".repeat(129)] {
            assert!(!is_session_id(id), "{id}");
        }
    }
}
