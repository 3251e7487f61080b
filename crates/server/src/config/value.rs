//! The types of settings, and how each is read from text.
//!
//! Never looks anything up and never words an error: a parser says `None`, and the table of
//! settings knows what to tell the user.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use super::settings::{TOKEN_CHARS_MAX, TOKEN_CHARS_MIN};

/// Defines an enum whose variants are words in the configuration, and its reader.
///
/// A word after `|` is accepted too, but not advertised.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal $(| $alias:literal)*,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($variant,)+ }

        impl $name {
            pub const WORDS: &[&str] = &[$($word,)+];

            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            pub fn parse(text: &str) -> Option<Self> {
                match text { $($word $(| $alias)* => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

words! {
    /// Who runs the model.
    Provider {
        OpenAi = "openai",
        Anthropic = "anthropic",
        Google = "google",
        Offline = "offline",
    }
}
words! {
    /// Which of OpenAI's interfaces is spoken.
    WireApi {
        Responses = "responses",
        Chat = "chat",
    }
}
words! {
    /// Who of the chat clients is told what.
    ChatBroadcast {
        All = "all",
        Session = "session",
    }
}

words! {
    /// What runs without asking. Other modes exist, but only a client can choose them.
    ApprovalMode {
        Suggest = "suggest",
        AutoEdit = "auto-edit",
        FullAuto = "full-auto",
    }
}
words! {
    /// When a session's context is compacted without being asked.
    ContextStrategy {
        Threshold = "threshold",
        Dummy = "dummy" | "none",
    }
}
words! {
    /// The strategy of a session that names none.
    AgentKind {
        React = "react",
        Dup = "dup",
        Tot = "tot",
        Got = "got",
    }
}
words! {
    /// Which way a tree is searched.
    TotSearch {
        Breadth = "breadth",
        Depth = "depth",
    }
}
words! {
    /// How thoughts are weighed.
    TotJudge {
        Value = "value",
        Vote = "vote",
    }
}
words! {
    LogLevel {
        Trace = "trace",
        Debug = "debug",
        Info = "info",
        Warn = "warn",
        Error = "error",
    }
}
words! {
    LogFormat {
        Human = "human",
        Json = "json",
    }
}

/// A value that nobody may print by accident.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself. Compare it in constant time and never log it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What people see in its place: nothing about the value, not even its length.
    pub fn masked(&self) -> &'static str {
        "(set, hidden)"
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.masked())
    }
}

/// A token travels in a header, a URL and a cookie: it has the characters a cookie may have.
pub(super) fn token(text: &str) -> Option<Secret> {
    let is_fine = (TOKEN_CHARS_MIN..=TOKEN_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_graphic() && !b"\",;\\".contains(&b));
    is_fine.then(|| Secret::new(text))
}

/// A key travels in a header, where nothing else is allowed and nobody sees what is wrong.
pub(super) fn key(text: &str) -> Option<Secret> {
    text.bytes().all(|b| b.is_ascii_graphic()).then(|| Secret::new(text))
}

pub(super) fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// An address, or `localhost`. Other names are refused: what they resolve to may change, and
/// with it who can reach the server.
pub(super) fn host(text: &str) -> Option<IpAddr> {
    if text.eq_ignore_ascii_case("localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text).parse().ok()
}

pub(super) fn address(text: &str) -> Option<SocketAddr> {
    let (name, port) = text.rsplit_once(':')?;
    // An IPv6 address needs its brackets here: in `::1` the last part is no port.
    if name.contains(':') && !name.starts_with('[') {
        return None;
    }
    Some(SocketAddr::new(host(name)?, number(port, 0, u64::from(u16::MAX))?))
}

/// Only digits: `u64::from_str` would also take a sign.
pub(super) fn number<T: TryFrom<u64>>(text: &str, min: u64, max: u64) -> Option<T> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = text.parse().ok().filter(|number| (min..=max).contains(number))?;
    T::try_from(number).ok()
}

/// More than 0 and at most 1.
pub(super) fn part(text: &str) -> Option<f64> {
    text.parse().ok().filter(|part: &f64| (0.0..=1.0).contains(part))
}

pub(super) fn fraction(text: &str) -> Option<f64> {
    text.parse().ok().filter(|&fraction: &f64| fraction > 0.0 && fraction <= 1.0)
}

/// Dollars as millionths of one.
pub(super) fn dollars(text: &str) -> Option<u64> {
    const DOLLARS_MAX: f64 = 1_000_000.0;
    let plain = |c: char| c.is_ascii_digit() || c == '.';
    let amount: f64 = text.parse().ok().filter(|_| text.chars().all(plain))?;
    let micros = (amount * 1_000_000.0).round();
    (micros >= 1.0 && amount <= DOLLARS_MAX).then_some(micros as u64)
}

/// A directory that is there, links followed.
pub(super) fn directory(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().filter(|path| path.is_dir())
}

/// An origin as browsers send it: in lower case and without the scheme's own port.
pub(super) fn origin(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let (scheme, authority) = text.split_once("://")?;
    let scheme_is_fine = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    let authority_is_fine = !authority.is_empty()
        && authority.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~[]:".contains(&b));
    if !scheme_is_fine || !authority_is_fine {
        return None;
    }
    let own_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    Some(format!("{scheme}://{}", authority.strip_suffix(own_port).unwrap_or(authority)))
}

/// A name or address as it stands in a `Host` header without its port, in lower case.
pub(super) fn host_name(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    match host(&text) {
        Some(IpAddr::V6(address)) => return Some(format!("[{address}]")),
        Some(IpAddr::V4(_)) => return Some(text),
        None => {}
    }
    let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    is_name.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `text => what is read from it`.
    fn check<T: fmt::Debug + PartialEq>(
        parse: impl Fn(&str) -> Option<T>,
        cases: &[(&str, Option<T>)],
    ) {
        for (text, expected) in cases {
            assert_eq!(parse(text), *expected, "{text:?}");
        }
    }

    #[test]
    fn hosts_are_addresses_or_localhost() {
        let ip = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        check(
            host,
            &[
                ("127.0.0.1", ip("127.0.0.1")),
                ("localhost", ip("127.0.0.1")),
                ("LocalHost", ip("127.0.0.1")),
                ("::1", ip("::1")),
                ("[::1]", ip("::1")),
                ("0.0.0.0", ip("0.0.0.0")),
                ("example.org", None),
                ("127.1", None),
                ("", None),
                ("[::1", None),
            ],
        );
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        let at = |text: &str| Some(text.parse::<SocketAddr>().unwrap());
        check(
            address,
            &[
                ("127.0.0.1:9000", at("127.0.0.1:9000")),
                ("localhost:0", at("127.0.0.1:0")),
                ("[::1]:8080", at("[::1]:8080")),
                ("::1:8080", None),
                ("::1", None),
                (":8080", None),
                ("127.0.0.1", None),
                ("127.0.0.1:", None),
                ("127.0.0.1:65536", None),
                ("127.0.0.1:+80", None),
            ],
        );
    }

    #[test]
    fn numbers_are_digits_within_bounds() {
        check(
            |text| number::<u16>(text, 1, 300),
            &[
                ("1", Some(1)),
                ("300", Some(300)),
                ("007", Some(7)),
                ("0", None),
                ("301", None),
                ("-1", None),
                ("+1", None),
                ("1.5", None),
                ("1k", None),
                ("", None),
                ("99999999999999999999999", None),
            ],
        );
        assert_eq!(number::<u16>("70000", 0, 100_000), None, "does not fit the type");
    }

    #[test]
    fn dollars_are_read_to_the_millionth() {
        check(
            dollars,
            &[
                ("2.50", Some(2_500_000)),
                ("1", Some(1_000_000)),
                ("0.000001", Some(1)),
                ("1000000", Some(1_000_000_000_000)),
                ("0", None),
                ("0.0000001", None),
                ("1000001", None),
                ("-1", None),
                ("$2", None),
                ("1e3", None),
                ("inf", None),
            ],
        );
    }

    #[test]
    fn fractions_lie_above_zero_and_up_to_one() {
        check(
            fraction,
            &[
                ("0.8", Some(0.8)),
                ("1", Some(1.0)),
                ("0.0001", Some(0.0001)),
                ("0", None),
                ("-0.5", None),
                ("1.01", None),
                ("80%", None),
                ("NaN", None),
                ("inf", None),
            ],
        );
    }

    #[test]
    fn switches_know_the_usual_words() {
        for word in ["true", "TRUE", "1", "yes", "on"] {
            assert_eq!(switch(word), Some(true), "{word}");
        }
        for word in ["false", "False", "0", "no", "off"] {
            assert_eq!(switch(word), Some(false), "{word}");
        }
        check(switch, &[("ja", None), ("2", None), ("", None)]);
    }

    #[test]
    fn origins_are_kept_as_browsers_send_them() {
        let is = |text: &str| Some(text.to_owned());
        check(
            origin,
            &[
                ("http://localhost:3000", is("http://localhost:3000")),
                ("HTTPS://App.Example.ORG", is("https://app.example.org")),
                ("https://a.example:443", is("https://a.example")),
                ("http://a.example:80", is("http://a.example")),
                ("http://a.example:8080", is("http://a.example:8080")),
                ("http://[::1]:3000", is("http://[::1]:3000")),
                ("vscode-webview://0a1b", is("vscode-webview://0a1b")),
                ("*", None),
                ("null", None),
                ("localhost:3000", None),
                ("http://", None),
                ("http://a.example/", None),
                ("http://a.example/path", None),
                ("http://good.example@evil.example", None),
                ("http://*.example", None),
                ("http://a.example#b", None),
                ("://a.example", None),
            ],
        );
    }

    #[test]
    fn host_names_have_no_port_and_no_scheme() {
        let is = |text: &str| Some(text.to_owned());
        check(
            host_name,
            &[
                ("Agent.Example.org", is("agent.example.org")),
                ("192.168.0.7", is("192.168.0.7")),
                ("fd00::0007", is("[fd00::7]")),
                ("[fd00::7]", is("[fd00::7]")),
                ("localhost", is("localhost")),
                ("agent:8080", None),
                ("http://agent", None),
                ("*", None),
                (".example.org", None),
                ("a b", None),
            ],
        );
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for word in Provider::WORDS {
            assert_eq!(Provider::parse(word).unwrap().word(), *word);
        }
        assert_eq!(ContextStrategy::parse("none"), Some(ContextStrategy::Dummy));
        assert_eq!(ContextStrategy::WORDS, ["threshold", "dummy"]);
        assert_eq!(ApprovalMode::parse("Suggest"), None);
    }

    #[test]
    fn tokens_are_long_and_fit_a_cookie() {
        let is_token = |text: &str| token(text).is_some();
        assert!(is_token("0123456789abcdef"));
        assert!(is_token("!#$%&'()*+-./:<=>?@[]^_`{|}~"));
        assert!(is_token(&"x".repeat(TOKEN_CHARS_MAX)));
        assert!(!is_token("0123456789abcde"));
        assert!(!is_token(&"x".repeat(TOKEN_CHARS_MAX + 1)));
        for sign in [" ", ",", ";", "\\", "\"", "\n", "\0", "é"] {
            assert!(!is_token(&format!("0123456789{sign}0123456789")), "{sign:?}");
        }
    }

    #[test]
    fn keys_fit_a_header() {
        for text in ["sk-0", "x", "a/b+c=", "{}~!"] {
            assert_eq!(key(text).unwrap().reveal(), text);
        }
        for text in ["a b", "a\nb", "schlüssel", "\0", "…"] {
            assert!(key(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn a_secret_shows_nothing_of_itself() {
        let secret = Secret::new("hunter2-hunter2-hunter2");
        assert_eq!(format!("{secret:?}"), "(set, hidden)");
        assert_eq!(secret.reveal(), "hunter2-hunter2-hunter2");
    }
}
