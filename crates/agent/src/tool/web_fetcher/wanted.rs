//! What a call wants to fetch: its arguments, checked. Every error is for the model.

use polyloop_session::Text;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::NAME;
use crate::tool::bash::kind;
use crate::tool::files::Args;

pub const URL_BYTES_MAX: usize = 8 * 1024;
/// Of what is sent.
pub const REQUEST_BYTES_MAX: usize = 64 * 1024;
pub const HEADERS_MAX: usize = 32;
/// Of all of them, names and values.
pub const HEADER_BYTES_MAX: usize = 8 * 1024;

/// Headers that say how the request is carried, which is not the model's to say.
const CARRIERS: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "forwarded",
];
const CARRIER_PREFIXES: &[&str] = &["proxy-", "sec-", "x-forwarded-"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
}

impl Method {
    pub(super) fn word(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
        }
    }
}

#[derive(Debug)]
pub(super) struct Body {
    pub text: String,
    pub content_type: &'static str,
}

#[derive(Debug)]
pub(super) struct Wanted {
    /// Without a fragment; its host is ASCII.
    pub url: Url,
    pub method: Method,
    /// As given, in the order of their names.
    pub headers: Vec<(String, String)>,
    pub body: Option<Body>,
    /// Bytes of the text that are skipped.
    pub offset: usize,
}

impl Wanted {
    pub(super) fn parse(json: &str) -> Result<Wanted, Text> {
        let args = Args::parse(NAME, json)?;
        let mut url = parse_url(&args.required(&["url"], "the URL to fetch")?)?;
        url.set_fragment(None);
        let method = match args.text(&["method"])? {
            None => Method::Get,
            Some(word) if word.eq_ignore_ascii_case("get") => Method::Get,
            Some(word) if word.eq_ignore_ascii_case("post") => Method::Post,
            Some(_) => return Err(format!("{NAME}: `method` must be GET or POST").into()),
        };
        let body = args.value("body").map(parse_body).transpose()?;
        if body.is_some() && method == Method::Get {
            return Err(format!("{NAME}: a GET has no `body`; leave it out or use POST").into());
        }
        let headers = args.value("headers").map(parse_headers).transpose()?.unwrap_or_default();
        Ok(Wanted { url, method, headers, body, offset: args.count("offset", 0)? })
    }

    /// The host that is asked, with the port unless it is the usual one.
    pub(super) fn host(&self) -> String {
        host(&self.url)
    }

    /// Nothing is sent but the URL.
    pub(super) fn is_plain(&self) -> bool {
        self.method == Method::Get && self.headers.is_empty()
    }

    /// Tells what is sent beside the URL from anything else.
    pub(super) fn digest(&self) -> String {
        let body = self.body.as_ref().map(|body| (&body.text, body.content_type));
        let sent = serde_json::json!([self.headers, body]).to_string();
        format!("{:x}", Sha256::digest(sent))
    }

    pub(super) fn header_map(&self) -> Result<HeaderMap, String> {
        let mut map = HeaderMap::new();
        if let Some(body) = &self.body {
            map.insert(CONTENT_TYPE, HeaderValue::from_static(body.content_type));
        }
        for (name, value) in &self.headers {
            let unfit = |_| format!("the header {name} cannot be sent");
            let value = HeaderValue::from_str(value).map_err(|_| unfit(()))?;
            map.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit(()))?, value);
        }
        Ok(map)
    }
}

pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn parse_url(given: &str) -> Result<Url, Text> {
    let unfit = |why: &str| Text::from(format!("{NAME}: `url` {why}"));
    if given.len() > URL_BYTES_MAX {
        let bytes = given.len();
        return Err(unfit(&format!("has {bytes} bytes, the limit is {URL_BYTES_MAX}")));
    }
    let url = Url::parse(given.trim()).map_err(|error| {
        unfit(&format!("is not a whole URL such as https://example.org/page: {error}"))
    })?;
    check_url(&url).map_err(|why| unfit(&why))?;
    Ok(url)
}

/// What holds for a URL from the model and for one from a redirect.
pub(super) fn check_url(url: &Url) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("begins with {}:, but only http and https are fetched", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user name or password before the host; leave them out".to_owned());
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("has no host".to_owned());
    }
    match url.port() {
        Some(0) => Err("has the port 0, where nobody listens".to_owned()),
        Some(_) | None => Ok(()),
    }
}

fn parse_body(body: &Value) -> Result<Body, Text> {
    let body = match body {
        Value::String(text) => {
            Body { text: text.clone(), content_type: "text/plain; charset=utf-8" }
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) | Value::Null => {
            Body { text: body.to_string(), content_type: "application/json" }
        }
    };
    if body.text.len() > REQUEST_BYTES_MAX {
        let bytes = body.text.len();
        let why = format!("{NAME}: `body` has {bytes} bytes, the limit is {REQUEST_BYTES_MAX}");
        return Err(why.into());
    }
    Ok(body)
}

fn parse_headers(headers: &Value) -> Result<Vec<(String, String)>, Text> {
    let unfit = |why: String| Text::from(format!("{NAME}: `headers` {why}"));
    let Value::Object(headers) = headers else {
        let found = kind(headers);
        return Err(unfit(format!("must be an object of names and strings, not {found}")));
    };
    if headers.len() > HEADERS_MAX {
        let count = headers.len();
        return Err(unfit(format!("are {count}, the limit is {HEADERS_MAX}")));
    }
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, value) in headers {
        let shown = polyloop_session::shown::visible(name);
        let Value::String(value) = value else {
            return Err(unfit(format!(
                "hold {shown}, which must be a string, not {}",
                kind(value)
            )));
        };
        let Ok(known) = HeaderName::from_bytes(name.as_bytes()) else {
            return Err(unfit(format!("hold {shown:?}, which is no header's name")));
        };
        // In lower case.
        let name = known.as_str();
        let carries = CARRIERS.contains(&name)
            || CARRIER_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if carries {
            return Err(unfit(format!("hold {name}, which is not yours to set; leave it out")));
        }
        if value.chars().any(char::is_control) || HeaderValue::from_str(value).is_err() {
            return Err(unfit(format!("hold control characters in the value of {name}")));
        }
        if found.iter().any(|(other, _)| other == name) {
            return Err(unfit(format!("hold {name} twice")));
        }
        found.push((name.to_owned(), value.clone()));
    }
    let bytes: usize = found.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > HEADER_BYTES_MAX {
        return Err(unfit(format!("have {bytes} bytes, the limit is {HEADER_BYTES_MAX}")));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: Value) -> Result<Wanted, String> {
        Wanted::parse(&json.to_string()).map_err(|why| why.to_string())
    }

    fn url(url: &str) -> Result<String, String> {
        parsed(serde_json::json!({ "url": url })).map(|wanted| wanted.url.to_string())
    }

    /// Whatever way an address is written, what is judged is the address.
    #[test]
    fn every_spelling_of_an_address_is_the_address() {
        let spellings = [
            ("http://2130706433/", "http://127.0.0.1/"),
            ("http://0x7f000001/", "http://127.0.0.1/"),
            ("http://0177.0.0.1/", "http://127.0.0.1/"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://127.1/", "http://127.0.0.1/"),
            ("http://127.0.0.1./", "http://127.0.0.1/"),
            ("http://%31%32%37.0.0.1/", "http://127.0.0.1/"),
            ("http://①②⑦.0.0.1/", "http://127.0.0.1/"),
            ("http://127。0。0。1/", "http://127.0.0.1/"),
            ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
            ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"),
            ("http://0/", "http://0.0.0.0/"),
            ("HTTP://EXAMPLE.ORG:80/a/../b#c", "http://example.org/b"),
            ("https:example.org", "https://example.org/"),
            ("https:\\\\example.org\\x", "https://example.org/x"),
            ("https://exa\tmple.org/", "https://example.org/"),
            ("https://аpple.com/", "https://xn--pple-43d.com/"),
            ("https://ＧＯＯＧＬＥ.com/", "https://google.com/"),
            ("https://example.org/ä\u{202e}b", "https://example.org/%C3%A4%E2%80%AEb"),
        ];
        for (given, means) in spellings {
            assert_eq!(url(given), Ok(means.to_owned()), "{given}");
        }
    }

    #[test]
    fn what_is_no_usable_url_is_told() {
        let long = format!("https://example.org/{}", "x".repeat(URL_BYTES_MAX));
        for (given, told) in [
            ("example.org", "not a whole URL"),
            ("/page", "not a whole URL"),
            ("", "not a whole URL"),
            ("http://", "not a whole URL"),
            ("http://256.0.0.1/", "not a whole URL"),
            ("http://exa mple.org/", "not a whole URL"),
            ("file:///etc/passwd", "only http and https"),
            ("ftp://example.org/", "only http and https"),
            ("data:text/plain,x", "only http and https"),
            ("javascript:x", "only http and https"),
            ("https://user@example.org/", "user name or password"),
            ("https://:secret@example.org/", "user name or password"),
            ("https://example.org@127.0.0.1/", "user name or password"),
            ("http://example.org:0/", "port 0"),
            (&long, "limit is 8192"),
        ] {
            let why = url(given).unwrap_err();
            assert!(why.starts_with("web_fetcher: `url` ") && why.contains(told), "{given}: {why}");
        }
    }

    #[test]
    fn what_is_sent_is_bounded_and_the_models_own() {
        let with = |field: &str, value: Value| {
            let mut json = serde_json::json!({ "url": "https://example.org/", "method": "post" });
            json[field] = value;
            parsed(json).map(|_| ()).unwrap_err()
        };
        let many: serde_json::Map<String, Value> =
            (0..=HEADERS_MAX).map(|n| (format!("x-{n}"), "1".into())).collect();
        for (field, value, told) in [
            ("url", Value::from(1), "`url` must be a string, not 1"),
            ("method", "PUT".into(), "must be GET or POST"),
            ("method", 1.into(), "`method` must be a string"),
            ("body", "x".repeat(REQUEST_BYTES_MAX + 1).into(), "the limit is 65536"),
            ("headers", "x".into(), "must be an object"),
            ("headers", serde_json::json!({ "x": 1 }), "must be a string, not 1"),
            ("headers", serde_json::json!({ "x y": "1" }), "no header's name"),
            ("headers", serde_json::json!({ "": "1" }), "no header's name"),
            ("headers", serde_json::json!({ "X": "1", "x": "2" }), "hold x twice"),
            ("headers", serde_json::json!({ "x": "a\r\nhost: b" }), "control characters"),
            ("headers", serde_json::json!({ "x": "a\u{0}" }), "control characters"),
            ("headers", many.into(), "are 33, the limit is 32"),
            ("headers", serde_json::json!({ "x": "y".repeat(HEADER_BYTES_MAX) }), "limit is 8192"),
            ("offset", (-1).into(), "`offset` must be a whole number"),
        ] {
            let why = with(field, value);
            assert!(why.contains(told), "{field}: {why}");
        }
        for name in ["Host", "CONTENT-LENGTH", "Transfer-Encoding", "connection", "Proxy-Foo"] {
            let why = with("headers", serde_json::json!({ name: "1" }));
            assert!(why.contains("not yours to set"), "{name}: {why}");
        }
        let get = parsed(serde_json::json!({ "url": "https://example.org/", "body": "x" }));
        assert!(get.unwrap_err().contains("a GET has no `body`"));
    }
}
