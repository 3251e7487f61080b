//! The head of a request, and that of its answer.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};

use super::connect::Through;
use super::framing::Framing;
use super::{Lane, Trouble, authority};
use crate::model::pieces::Pieces;

/// Of an answer.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 128;
/// Of a request; one with longer keys grows.
const HEADERS_BYTES: usize = 512;

/// A head, and what it says of what follows.
pub(super) struct Got {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub framing: Framing,
    /// What came behind it.
    pub early: Vec<u8>,
    /// The connection can be used again when the body is over.
    pub again: bool,
}

/// How the head of every request to an address begins.
pub(super) fn begun(uri: &Uri, through: &Through) -> Vec<u8> {
    let target = match through {
        Through::Proxy { .. } => uri.to_string(),
        Through::Nothing | Through::Tunnel { .. } => {
            uri.path_and_query().map_or("/", |path| path.as_str()).to_owned()
        }
    };
    let mut head = format!("POST {target} HTTP/1.1\r\nhost: {}\r\n", authority(uri)).into_bytes();
    if let Through::Proxy { auth: Some(auth), .. } = through {
        line(&mut head, "proxy-authorization", auth.as_bytes());
    }
    head
}

/// The head of a request, as it goes out.
pub(super) fn written(begun: &[u8], headers: &HeaderMap, body_bytes: usize) -> Vec<u8> {
    let mut head = Vec::with_capacity(begun.len() + HEADERS_BYTES);
    head.extend_from_slice(begun);
    for (name, value) in headers {
        line(&mut head, name.as_str(), value.as_bytes());
    }
    line(&mut head, "content-length", body_bytes.to_string().as_bytes());
    head.extend_from_slice(b"\r\n");
    head
}

fn line(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        head.extend_from_slice(part);
    }
}

/// Sends a request and reads the head of its answer, which may come before all is sent: one that
/// is refused is not read to its end by everybody.
pub(super) async fn exchange(lane: &mut Lane, head: &[u8], body: &Pieces) -> Result<Got, Trouble> {
    let parts = std::iter::once(head).chain(body.each()).map(IoSlice::new).collect();
    let mut sending = Sending { parts, gone: 0, flushed: false, failed: None };
    let mut read = Vec::new();
    poll_fn(|cx| {
        let sent = sending.poll(lane, cx);
        let got = match ready!(poll_head(lane, cx, &mut read)) {
            Ok(got) => got,
            // That it could not be sent is why nothing came.
            Err(trouble) => Err(match sending.failed.take() {
                Some(error) => Trouble::Unreachable(error.to_string()),
                None => trouble,
            })?,
        };
        let whole = sent.is_ready() && sending.failed.is_none();
        Poll::Ready(Ok(Got { again: got.again && whole, ..got }))
    })
    .await
}

struct Sending<'a> {
    parts: Vec<IoSlice<'a>>,
    /// So many of them are sent.
    gone: usize,
    flushed: bool,
    /// There may be an answer all the same.
    failed: Option<io::Error>,
}

impl Sending<'_> {
    /// Ready when there is nothing more to do.
    fn poll(&mut self, lane: &mut Lane, cx: &mut Context<'_>) -> Poll<()> {
        if self.flushed || self.failed.is_some() {
            return Poll::Ready(());
        }
        match ready!(self.poll_all(lane, cx)) {
            Ok(()) => self.flushed = true,
            Err(error) => self.failed = Some(error),
        }
        Poll::Ready(())
    }

    fn poll_all(&mut self, lane: &mut Lane, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.gone < self.parts.len() {
            let mut left = &mut self.parts[self.gone..];
            let sent = ready!(lane.io.as_mut().poll_write_vectored(cx, left))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            IoSlice::advance_slices(&mut left, sent);
            let left = left.len();
            self.gone = self.parts.len() - left;
        }
        lane.io.as_mut().poll_flush(cx)
    }
}

fn poll_head(
    lane: &mut Lane,
    cx: &mut Context<'_>,
    read: &mut Vec<u8>,
) -> Poll<Result<Got, Trouble>> {
    loop {
        let before = read.len();
        let some = ready!(lane.poll_read(cx, |bytes| read.extend_from_slice(bytes)));
        some.map_err(|error| Trouble::Unreachable(error.to_string()))?;
        if read.len() == before {
            let why = "the connection was closed before it answered";
            return Poll::Ready(Err(Trouble::Unreachable(why.to_owned())));
        }
        // Whoever has something to say first goes on to say the rest.
        while let Some((got, bytes)) = parsed(read)? {
            if got.status.is_informational() && got.status != StatusCode::SWITCHING_PROTOCOLS {
                read.drain(..bytes);
                continue;
            }
            let early = read.split_off(bytes);
            return Poll::Ready(Ok(Got { early, ..got }));
        }
        if read.len() > HEAD_BYTES_MAX {
            return Poll::Ready(Err(bad("its head has no end")));
        }
    }
}

/// A head, and how long it is; `None` while there is less of it.
fn parsed(read: &[u8]) -> Result<Option<(Got, usize)>, Trouble> {
    let mut room = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut room);
    let bytes = match head.parse(read) {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(why) => return Err(bad(&why.to_string())),
    };
    let status =
        StatusCode::from_u16(head.code.unwrap_or(0)).map_err(|_| bad("it has no status"))?;
    let mut headers = HeaderMap::with_capacity(head.headers.len());
    for header in head.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let name = name.map_err(|_| bad("a header has no name"))?;
        let value = HeaderValue::from_bytes(header.value);
        headers.append(name, value.map_err(|_| bad("a header has no value"))?);
    }
    let framing = framing(status, &headers)?;
    let kept = head.version == Some(1) && !says(&headers, &CONNECTION, "close");
    let again = kept && framing != Framing::UntilClosed;
    Ok(Some((Got { status, headers, framing, early: Vec::new(), again }, bytes)))
}

fn framing(status: StatusCode, headers: &HeaderMap) -> Result<Framing, Trouble> {
    if status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
    {
        return Ok(Framing::Over);
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        return Ok(match says(headers, &TRANSFER_ENCODING, "chunked") {
            true => Framing::chunked(),
            false => Framing::UntilClosed,
        });
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let Some(first) = lengths.next() else { return Ok(Framing::UntilClosed) };
    if lengths.any(|other| other != first) {
        return Err(bad("it has two lengths"));
    }
    let digits = first.to_str().ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    let bytes = digits.and_then(|text| text.parse().ok()).ok_or_else(|| bad("its length"))?;
    Ok(Framing::length(bytes))
}

/// Whether a list of words has this one.
fn says(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
}

fn bad(why: &str) -> Trouble {
    Trouble::Unreachable(format!("its answer is not HTTP: {why}"))
}
