//! The road to a provider: one client for all models, bounded reading, and what goes wrong on
//! the way, in words.
//!
//! Follows no redirect, asks for no compression, retries nothing by itself: there is one loop for
//! that, in the session.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use polyloop_session::Heal;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, ClientBuilder, NoProxy, Proxy, Response, redirect};

use super::lane::{self, Trouble};
use super::{CUT_CODE, Failure};
use crate::rails::{Each, Slot};

/// Who asks.
pub const USER_AGENT: &str = concat!("polyloop/", env!("CARGO_PKG_VERSION"));

const CONNECT_TIME_MAX: Duration = Duration::from_secs(30);
/// How long an unused connection is kept.
const POOL_IDLE_TIME_MAX: Duration = Duration::from_secs(90);
/// Of a body that is no answer.
pub const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// For reading such a body.
const REFUSAL_TIME_MAX: Duration = Duration::from_secs(10);

/// Through what requests go, as the usual variables say it.
#[derive(Clone, Default)]
pub struct Proxies {
    pub https: Option<String>,
    pub http: Option<String>,
    /// Hosts that are reached directly.
    pub except: Option<String>,
}

/// A way to others whose client is made when it is first needed: that reads the certificates of
/// the machine, for which a server that starts has no time and one that is idle no memory.
#[derive(Clone)]
pub struct Road(Arc<Made>);

struct Made {
    make: Box<dyn Fn() -> Result<Client, String> + Send + Sync>,
    /// One for each thread that sessions live on, so that a stream stays on its session's.
    made: Each<Result<Client, String>>,
}

impl Road {
    /// To providers. What cannot be used of the proxies is told at once.
    pub fn new(proxies: &Proxies) -> Result<Road, String> {
        builder(proxies).map(drop)?;
        let proxies = proxies.clone();
        Ok(Road::by(move || made(builder(&proxies)?)))
    }

    pub(crate) fn by(make: impl Fn() -> Result<Client, String> + Send + Sync + 'static) -> Road {
        Road(Arc::new(Made { make: Box::new(make), made: Each::default() }))
    }

    /// The error is for people.
    pub async fn client(&self) -> Result<Client, String> {
        let here = Slot::here();
        if let Some(made) = self.0.made.get(here) {
            return made.clone();
        }
        let this = self.clone();
        let made = tokio::task::spawn_blocking(move || this.make(here)).await;
        made.unwrap_or_else(|error| Err(error.to_string()))
    }

    fn make(&self, slot: Slot) -> Result<Client, String> {
        self.0.made.get_or_init(slot, &self.0.make).clone()
    }
}

fn builder(proxies: &Proxies) -> Result<ClientBuilder, String> {
    let builder = Client::builder()
        .user_agent(USER_AGENT)
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIME_MAX)
        .pool_idle_timeout(POOL_IDLE_TIME_MAX);
    proxied(builder, proxies)
}

pub(crate) fn made(builder: ClientBuilder) -> Result<Client, String> {
    let failed = |error| format!("the HTTP client cannot be made: {}", chain(&error));
    builder.build().map_err(failed)
}

/// A client that goes through these proxies and no others.
pub(crate) fn proxied(builder: ClientBuilder, proxies: &Proxies) -> Result<ClientBuilder, String> {
    let mut builder = builder.no_proxy();
    let except = || proxies.except.as_deref().and_then(NoProxy::from_string);
    if let Some(url) = &proxies.https {
        let proxy = Proxy::https(url).map_err(|_| "HTTPS_PROXY: is not the URL of a proxy")?;
        builder = builder.proxy(proxy.no_proxy(except()));
    }
    if let Some(url) = &proxies.http {
        let proxy = Proxy::http(url).map_err(|_| "HTTP_PROXY: is not the URL of a proxy")?;
        builder = builder.proxy(proxy.no_proxy(except()));
    }
    Ok(builder)
}

/// As much of a body as anybody wants to read of an error.
pub async fn short_body(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(part)) = response.chunk().await {
            let room = REFUSAL_BYTES_MAX - body.len();
            body.extend_from_slice(&part[..part.len().min(room)]);
            if body.len() == REFUSAL_BYTES_MAX {
                break;
            }
        }
    };
    // What came in time is better than nothing.
    let _ = tokio::time::timeout(REFUSAL_TIME_MAX, reading).await;
    body
}

/// The same, of an answer on a lane.
pub async fn short_answer(mut body: lane::Body) -> Vec<u8> {
    let mut read = Vec::new();
    let reading = body.short(REFUSAL_BYTES_MAX, &mut read);
    let _ = tokio::time::timeout(REFUSAL_TIME_MAX, reading).await;
    read
}

/// How long the answer asks to wait.
pub fn retry_after_ms(headers: &HeaderMap, now: jiff::Timestamp) -> Option<u64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    if let Some(ms) = text("retry-after-ms").and_then(number) {
        return Some(ms.max(0.0).ceil() as u64);
    }
    let value = text(RETRY_AFTER.as_str())?;
    if let Some(seconds) = number(value) {
        return Some((seconds.max(0.0) * 1_000.0).ceil() as u64);
    }
    let then = jiff::fmt::rfc2822::parse(value.trim()).ok()?.timestamp();
    let ms = then.as_millisecond().saturating_sub(now.as_millisecond());
    Some(ms.max(0).unsigned_abs())
}

/// Why there was no answer at all.
pub fn unreachable(error: &reqwest::Error, host: &str) -> Failure {
    let later = Heal::Later { after_ms: None };
    let why = chain(error);
    if error.is_timeout() {
        return Failure::new(later, "timeout", format!("{host} did not answer in time ({why})"));
    }
    if error.is_builder() {
        let message = format!("The request to {host} cannot be made ({why})");
        return Failure::new(Heal::Never, "invalid_request", message);
    }
    Failure::new(later, "unreachable", format!("{host} cannot be reached ({why})"))
}

/// Why there was no answer on a lane, or not all of it.
pub fn troubled(trouble: &Trouble, host: &str) -> Failure {
    let later = Heal::Later { after_ms: None };
    match trouble {
        Trouble::Unmade(why) => {
            let message = format!("The request to {host} cannot be made ({why})");
            Failure::new(Heal::Never, "invalid_request", message)
        }
        Trouble::Time(why) => {
            Failure::new(later, "timeout", format!("{host} did not answer in time ({why})"))
        }
        Trouble::Unreachable(why) => {
            Failure::new(later, "unreachable", format!("{host} cannot be reached ({why})"))
        }
        Trouble::Broken(why) => {
            let message = format!("The answer of {host} broke off before its end ({why})");
            Failure::new(later, CUT_CODE, message)
        }
    }
}

/// The causes, innermost last, without the URL: it may carry what is nobody's business.
fn chain(error: &reqwest::Error) -> String {
    let mut told: Vec<String> = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if told.last() != Some(&text) {
            told.push(text);
        }
        cause = error.source();
    }
    match told.is_empty() {
        true if error.is_timeout() => "time is up".to_owned(),
        true => "unknown cause".to_owned(),
        false => told.join(": "),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn asked(pairs: &[(&'static str, &str)]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        retry_after_ms(&headers, jiff::Timestamp::from_second(1_700_000_000).unwrap())
    }

    #[test]
    fn every_form_of_retry_after_is_read() {
        assert_eq!(asked(&[]), None);
        assert_eq!(asked(&[("retry-after", "3")]), Some(3_000));
        assert_eq!(asked(&[("retry-after", " 0.5 ")]), Some(500));
        assert_eq!(asked(&[("retry-after", "-3")]), Some(0));
        assert_eq!(asked(&[("retry-after", "86400")]), Some(86_400_000));
        assert_eq!(asked(&[("retry-after-ms", "1250.5"), ("retry-after", "9")]), Some(1_251));
        // 2023-11-14T22:13:20Z is 1700000000.
        assert_eq!(asked(&[("retry-after", "Tue, 14 Nov 2023 22:13:30 GMT")]), Some(10_000));
        assert_eq!(asked(&[("retry-after", "Tue, 14 Nov 2023 22:13:00 GMT")]), Some(0));
        assert_eq!(asked(&[("retry-after", "soon")]), None);
        assert_eq!(asked(&[("retry-after", "NaN")]), None);
        assert_eq!(asked(&[("retry-after", "1e300")]), Some(u64::MAX));
    }
}
