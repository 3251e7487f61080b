//! One fetch: the requests, the redirects among them, and what the model is shown of the answer.
//!
//! Asks for no compression, so that what is read is what was sent. Follows a redirect only to
//! where the approval reaches: the same host by the same way, or from http to https.

use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Response, StatusCode, Url};

use super::charset::{self, Kind};
use super::reach::{Reach, explained};
use super::wanted::{Method, URL_BYTES_MAX, Wanted, check_url, host};
use super::{html, markdown};
use crate::tool::files::TEXT_BYTES_MAX;

pub const REDIRECTS_MAX: usize = 5;
/// Of an answer that is an error, what its sender says.
const ERROR_BYTES_MAX: usize = 2 * 1024;
/// Room for the notes around a text.
const NOTES_BYTES: usize = URL_BYTES_MAX + 1_024;

/// What came of it, for the model; the error too.
pub(super) async fn fetch(wanted: &Wanted, reach: &Reach) -> Result<String, String> {
    let time_max = reach.limits().time_max;
    match tokio::time::timeout(time_max, follow(wanted, reach)).await {
        Ok(fetched) => fetched,
        Err(_) => {
            let (host, seconds) = (wanted.host(), time_max.as_secs_f32());
            Err(format!("{host} gave no whole answer within {seconds} seconds"))
        }
    }
}

async fn follow(wanted: &Wanted, reach: &Reach) -> Result<String, String> {
    let mut url = wanted.url.clone();
    for _ in 0..=REDIRECTS_MAX {
        let response = send(wanted, &url, reach).await?;
        let Some(target) = redirect(&response, &url)? else {
            let moved = (url != wanted.url).then_some(&url);
            return answer(response, wanted, moved, reach).await;
        };
        if wanted.method != Method::Get || !is_covered(&url, &target) {
            return Ok(not_followed(&url, response.status(), &target));
        }
        url = target;
    }
    Err(format!("{} redirects more than {REDIRECTS_MAX} times", wanted.url))
}

async fn send(wanted: &Wanted, url: &Url, reach: &Reach) -> Result<Response, String> {
    let client = reach.client(url).await?;
    let mut headers = wanted.header_map()?;
    headers.insert(ACCEPT_ENCODING, reqwest::header::HeaderValue::from_static("identity"));
    let request = match (wanted.method, &wanted.body) {
        (Method::Get, _) => client.get(url.clone()),
        (Method::Post, None) => client.post(url.clone()).body(String::new()),
        (Method::Post, Some(body)) => client.post(url.clone()).body(body.text.clone()),
    };
    let sent = request.headers(headers).send().await;
    sent.map_err(|error| match error.is_timeout() {
        true => format!("{} cannot be reached in time", host(url)),
        false => format!("{} cannot be reached: {}", host(url), explained(&error)),
    })
}

/// Where an answer sends on to, if it does.
fn redirect(response: &Response, url: &Url) -> Result<Option<Url>, String> {
    let sends_on = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = response.headers().get(LOCATION).filter(|_| sends_on) else {
        return Ok(None);
    };
    let unfit = |why: &str| format!("{} redirects to what {why}", host(url));
    let location = std::str::from_utf8(location.as_bytes());
    let location = location.map_err(|_| unfit("is no URL"))?;
    if location.len() > URL_BYTES_MAX {
        return Err(unfit("is too long for a URL"));
    }
    let mut target = url.join(location).map_err(|_| unfit("is no URL"))?;
    check_url(&target).map_err(|why| unfit(&why))?;
    target.set_fragment(None);
    Ok(Some(target))
}

/// Whether leave for the one is leave for the other.
fn is_covered(from: &Url, to: &Url) -> bool {
    let same_way = from.scheme() == to.scheme() && from.port() == to.port();
    let now_secret = (from.scheme(), to.scheme()) == ("http", "https")
        && from.port().is_none()
        && to.port().is_none();
    from.host() == to.host() && (same_way || now_secret)
}

fn not_followed(url: &Url, status: StatusCode, target: &Url) -> String {
    let host = host(url);
    format!("{host} answered {status}: redirects to {target}; fetch that if you want it\n")
}

async fn answer(
    response: Response,
    wanted: &Wanted,
    moved: Option<&Url>,
    reach: &Reach,
) -> Result<String, String> {
    let (status, url) = (response.status(), response.url().clone());
    let body_bytes_max = match status.is_success() {
        true => reach.limits().body_bytes_max,
        // A page says little at its beginning.
        false => reach.limits().body_bytes_max.min(64 * 1024),
    };
    let received = Received::read(response, body_bytes_max).await?;
    let shown = received.shown(&url).await;
    if !status.is_success() {
        let text = shown.unwrap_or_default();
        let cut = text.floor_char_boundary(ERROR_BYTES_MAX);
        let told = text.get(..cut).unwrap_or_default().trim();
        let more = if cut < text.len() { " …" } else { "" };
        return Err(match told {
            "" => format!("{url} answered {status}"),
            told => format!("{url} answered {status}: {told}{more}"),
        });
    }
    let mut text = match moved {
        Some(url) => format!("(redirected to {url})\n\n"),
        None => String::new(),
    };
    match shown {
        Ok(shown) => text.push_str(&received.page(&shown, wanted)?),
        Err(described) => text.push_str(&described),
    }
    Ok(text)
}

/// What was read of an answer.
struct Received {
    essence: String,
    charset: Option<String>,
    encoded: Option<String>,
    body: Vec<u8>,
    /// There was more.
    cut: bool,
    /// As its sender says.
    length: Option<u64>,
}

impl Received {
    async fn read(mut response: Response, bytes_max: usize) -> Result<Received, String> {
        let headers = response.headers();
        let (essence, charset) = charset::parse_type(&text_of(headers, CONTENT_TYPE));
        let encoded = text_of(headers, CONTENT_ENCODING).to_ascii_lowercase();
        let encoded = Some(encoded).filter(|e| !matches!(e.as_str(), "" | "identity"));
        let length = response.content_length();
        let host = host(response.url());
        let (mut body, mut cut) = (Vec::new(), false);
        loop {
            let chunk = response.chunk().await.map_err(|error| {
                let (bytes, why) = (body.len(), explained(&error));
                format!("the answer of {host} broke off after {bytes} bytes: {why}")
            })?;
            let Some(chunk) = chunk else { break };
            let room = bytes_max - body.len();
            body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if chunk.len() > room {
                cut = true;
                break;
            }
        }
        Ok(Received { essence, charset, encoded, body, cut, length })
    }

    /// The text; or, where there is none, what it is instead.
    async fn shown(&self, url: &Url) -> Result<String, String> {
        let kind = match self.essence.as_str() {
            "" => charset::guess(&self.body),
            essence => charset::kind(essence),
        };
        if self.encoded.is_some() || kind == Kind::Other {
            return Err(self.described());
        }
        let decoded = charset::decode(&self.body, self.charset.as_deref(), kind);
        let text = decoded.ok_or_else(|| self.described())?;
        if kind != Kind::Html {
            return Ok(text);
        }
        let base = url.clone();
        let converted =
            tokio::task::spawn_blocking(move || markdown::write(html::read(&text), &base));
        converted.await.map_err(|_| "(the page could not be converted)\n".to_owned())
    }

    fn described(&self) -> String {
        let bytes = match (self.length, self.cut) {
            (Some(length), _) => length.to_string(),
            (None, true) => format!("more than {}", self.body.len()),
            (None, false) => self.body.len().to_string(),
        };
        let essence = match self.essence.as_str() {
            "" => "an unnamed type",
            essence => essence.get(..essence.floor_char_boundary(100)).unwrap_or_default(),
        };
        let essence: String = essence.chars().filter(|c| !c.is_control()).collect();
        match &self.encoded {
            Some(_) => format!("({bytes} bytes of {essence}, compressed unasked, not shown)\n"),
            None => format!("({bytes} bytes of {essence}, not shown)\n"),
        }
    }

    /// The part of the text that the call asks for, and what is missing of it.
    fn page(&self, text: &str, wanted: &Wanted) -> Result<String, String> {
        if text.trim().is_empty() {
            let bytes = self.body.len();
            return Ok(match bytes {
                0 => "(the answer is empty)\n".to_owned(),
                _ => format!("({bytes} bytes of {} without any text)\n", self.essence),
            });
        }
        let (bytes, offset) = (text.len(), wanted.offset);
        if offset >= bytes {
            return Err(format!("the text has only {bytes} bytes; `offset` is {offset}"));
        }
        let rest = text.get(text.floor_char_boundary(offset)..).unwrap_or_default();
        let end = rest.floor_char_boundary(TEXT_BYTES_MAX - NOTES_BYTES);
        let mut page = rest.get(..end).unwrap_or_default().to_owned();
        if !page.ends_with('\n') {
            page.push('\n');
        }
        if end < rest.len() {
            let next = bytes - rest.len() + end;
            let how = match wanted.method {
                Method::Get => format!("; read on with offset {next}"),
                // Asking again would do it again.
                Method::Post => String::new(),
            };
            page.push_str(&format!("({next} of {bytes} bytes of text{how})\n"));
        }
        if self.cut {
            let read = self.body.len();
            page.push_str(&format!("(only the first {read} bytes of the answer were read)\n"));
        }
        Ok(page)
    }
}

fn text_of(headers: &HeaderMap, name: reqwest::header::HeaderName) -> String {
    let value = headers.get(name).map(|value| value.as_bytes()).unwrap_or_default();
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leave_reaches_as_far_as_the_host() {
        let covered =
            |from: &str, to: &str| is_covered(&Url::parse(from).unwrap(), &Url::parse(to).unwrap());
        assert!(covered("http://a.org/x", "http://a.org/y?z"));
        assert!(covered("http://a.org/x", "https://a.org/x"));
        assert!(covered("https://a.org:8443/x", "https://A.org:8443/"));
        for (from, to) in [
            ("https://a.org/", "http://a.org/"),
            ("http://a.org/", "http://a.org:81/"),
            ("http://a.org:81/", "https://a.org/"),
            ("http://a.org/", "https://a.org:444/"),
            ("http://a.org/", "https://www.a.org/"),
            ("http://a.org/", "http://a.org./"),
            ("http://a.org/", "http://127.0.0.1/"),
        ] {
            assert!(!covered(from, to), "{from} {to}");
        }
    }
}
