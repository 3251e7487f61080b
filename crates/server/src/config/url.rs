//! URLs in the configuration: where providers are, and through what they are reached.
//!
//! Only takes text apart; never looks a name up.

use std::net::IpAddr;

use hyper::Uri;

use super::SharedStore;
use super::value::Secret;

/// The name of a store that nobody has named.
const STORE_NAME: &str = "polyloop";
const STORE_NAME_BYTES_MAX: usize = 32;

/// Where a provider's interface begins: in lower case as far as that does not matter, without a
/// slash at the end.
///
/// Nothing may hide in it: neither a password (it would be sent on, and logged) nor a query (what
/// we put behind it would become part of that).
pub(super) fn base_url(text: &str) -> Option<String> {
    let (scheme, uri) = parse(text)?;
    let authority = uri.authority()?.as_str();
    if authority.contains('@') || uri.query().is_some() {
        return None;
    }
    let (authority, path) = (authority.to_ascii_lowercase(), uri.path().trim_end_matches('/'));
    Some(format!("{scheme}://{authority}{path}"))
}

/// A proxy; without a scheme it is spoken to by http, as other programs do it.
pub(super) fn proxy_url(text: &str) -> Option<Secret> {
    let text = match text.contains("://") {
        true => text.to_owned(),
        false => format!("http://{text}"),
    };
    let (scheme, uri) = parse(&text)?;
    let is_plain = matches!(uri.path(), "" | "/") && uri.query().is_none();
    let authority = uri.authority().filter(|_| is_plain)?;
    Some(Secret::new(format!("{scheme}://{authority}")))
}

/// NATS servers, separated by commas; a name behind the last is that of the store on them.
pub(super) fn store(text: &str) -> Option<SharedStore> {
    let (scheme, rest) = text.split_once("://")?;
    let scheme = match &*scheme.to_ascii_lowercase() {
        "nats" => "nats",
        "tls" => "tls",
        _ => return None,
    };
    let (hosts, name) = rest.split_once('/').unwrap_or((rest, ""));
    let name = if name.is_empty() { STORE_NAME } else { name };
    let is_fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    if name.len() > STORE_NAME_BYTES_MAX || !name.bytes().all(is_fine) {
        return None;
    }
    let server = |host: &str| {
        let host = host.trim();
        let host =
            host.strip_prefix(scheme).and_then(|host| host.strip_prefix("://")).unwrap_or(host);
        let (_, uri) = parse(&format!("http://{host}"))?;
        let authority = uri.authority().filter(|_| uri.query().is_none())?;
        Some(Secret::new(format!("{scheme}://{authority}")))
    };
    let servers: Option<Vec<Secret>> = hosts.split(',').map(server).collect();
    Some(SharedStore { servers: servers?, name: name.to_owned() })
}

/// Scheme and parts of an http URL without a fragment.
fn parse(text: &str) -> Option<(&'static str, Uri)> {
    let (scheme, rest) = text.split_once("://")?;
    let scheme = match &*scheme.to_ascii_lowercase() {
        "http" => "http",
        "https" => "https",
        _ => return None,
    };
    if rest.contains('#') {
        return None;
    }
    let uri: Uri = format!("{scheme}://{rest}").parse().ok()?;
    let authority = uri.authority()?;
    let host_and_port = authority.as_str().rsplit('@').next()?;
    let has_port = !host_and_port.ends_with(']') && host_and_port.contains(':');
    let port_is_fine = !has_port || authority.port_u16().is_some();
    (!authority.host().is_empty() && port_is_fine).then_some((scheme, uri))
}

/// The host of a URL that was read above; IPv6 in brackets.
pub(crate) fn host(url: &str) -> &str {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or(authority);
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        Some(_) | None => authority,
    }
}

/// Whether what is sent there stays on this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => bare == "localhost" || bare.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_a_place_and_nothing_else() {
        let fine = [
            ("https://api.openai.com/v1", "https://api.openai.com/v1"),
            ("https://api.openai.com/v1/", "https://api.openai.com/v1"),
            ("https://api.openai.com//", "https://api.openai.com"),
            ("HTTP://LocalHost:11434/v1", "http://localhost:11434/v1"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("http://10.0.0.7/Some/Path", "http://10.0.0.7/Some/Path"),
        ];
        for (text, expected) in fine {
            assert_eq!(base_url(text).as_deref(), Some(expected), "{text}");
        }
        let bad = [
            "",
            "api.openai.com/v1",
            "ftp://a.example",
            "https://",
            "https:///v1",
            "https://:443/v1",
            "https://a.example:http",
            "https://a.example:70000",
            "https://a.example:",
            "https://user@a.example",
            "https://user:pass@a.example/v1",
            "https://a.example/v1?key=1",
            "https://a.example/v1?",
            "https://a.example/v1#x",
            "https://a b.example",
            "https://a.example/v 1",
            "https://exämple.org",
        ];
        for text in bad {
            assert_eq!(base_url(text), None, "{text}");
        }
    }

    #[test]
    fn a_proxy_may_have_a_password_and_no_path() {
        let fine = [
            ("http://proxy.example:3128", "http://proxy.example:3128"),
            ("https://proxy.example/", "https://proxy.example"),
            ("proxy.example:3128", "http://proxy.example:3128"),
            ("http://user:pa%40ss@proxy.example:3128/", "http://user:pa%40ss@proxy.example:3128"),
            ("http://[::1]:3128", "http://[::1]:3128"),
        ];
        for (text, expected) in fine {
            assert_eq!(
                proxy_url(text).map(|url| url.reveal().to_owned()).as_deref(),
                Some(expected)
            );
        }
        let bad = [
            "socks5://proxy.example:1080",
            "http://",
            "http://user:pass@",
            "http://proxy.example/path",
            "http://proxy.example?x",
            "http://proxy.example:99999",
            "pro xy",
        ];
        for text in bad {
            assert!(proxy_url(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_store_is_servers_and_a_name() {
        let fine = [
            ("nats://a.example", "nats://a.example", "polyloop"),
            ("NATS://a:4222,b:4223", "nats://a:4222 nats://b:4223", "polyloop"),
            ("tls://u:p@a:1, b:2/mine_2", "tls://u:p@a:1 tls://b:2", "mine_2"),
            ("nats://[::1]:4222/", "nats://[::1]:4222", "polyloop"),
        ];
        for (text, servers, name) in fine {
            let found = store(text).unwrap();
            let all: Vec<&str> = found.servers.iter().map(Secret::reveal).collect();
            assert_eq!((all.join(" ").as_str(), found.name.as_str()), (servers, name), "{text}");
        }
        let bad = [
            "",
            "a:4222",
            "http://a",
            "nats://",
            "nats://a,,b",
            "nats://a:99999",
            "nats://a/a/b",
            "nats://a/a.b",
            "nats://a?x",
            "nats://a/x?y",
            "nats://a,tls://b",
        ];
        for text in bad {
            assert!(store(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_host_is_found_and_known_to_be_near_or_far() {
        let cases = [
            ("https://api.openai.com/v1", "api.openai.com", false),
            ("http://localhost:11434/v1", "localhost", true),
            ("http://models.localhost", "models.localhost", true),
            ("http://127.9.0.1:1", "127.9.0.1", true),
            ("http://[::1]", "[::1]", true),
            ("http://[::1]:8080/v1", "[::1]", true),
            ("http://[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]", true),
            ("http://10.0.0.7:80/v1", "10.0.0.7", false),
            ("http://localhost.example", "localhost.example", false),
            ("http://127.0.0.1.example:80", "127.0.0.1.example", false),
        ];
        for (url, expected, near) in cases {
            assert_eq!(host(url), expected, "{url}");
            assert_eq!(is_loopback(host(url)), near, "{url}");
        }
    }
}
