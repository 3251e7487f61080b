//! Lanes to providers: each is one connection, which carries one request at a time and is read by
//! whoever asked.
//!
//! As much of HTTP/1.1 as a streamed answer needs. No task, no channel and no buffer of its own
//! stands between the socket and the one who waits for the next words: what arrives is read into
//! the stack and taken from there, so that a lane takes no memory while it waits. Follows no
//! redirect, unpacks nothing, and sends nothing twice.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::uri::Scheme;
use http::{HeaderMap, StatusCode, Uri};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::http::Proxies;
use super::pieces::Pieces;
use crate::rails::{Each, Slot};
use connect::{Connector, Made, Through};
use framing::Framing;
use idle::Idle;

mod connect;
mod framing;
mod head;
mod idle;

/// Read at once. It stands on the stack while it is looked through, and nowhere else.
const READ_BYTES_MAX: usize = 16 * 1024;
/// What may still come behind an answer that is over before its lane is given up.
const REST_BYTES_MAX: usize = 64 * 1024;
/// Addresses that are known; whoever has more looks them up anew.
const ADDRESSES_MAX: usize = 64;
/// For that rest.
const REST_TIME_MAX: Duration = Duration::from_secs(1);

/// All lanes of a server, kept apart by the threads that sessions live on.
#[derive(Clone)]
pub struct Lanes(Arc<Shared>);

struct Shared {
    connector: Connector,
    /// By their text: it is the same with every call of a model.
    addresses: Mutex<HashMap<String, Arc<Address>>>,
    /// Those that nobody uses.
    idle: Each<Idle>,
}

/// Where a request goes, and how: what a URL comes to.
struct Address {
    uri: Uri,
    /// Which lanes lead there.
    to: Arc<str>,
    through: Through,
    /// How the head of each request to it begins.
    head: Vec<u8>,
}

/// What went wrong on a lane; the text is for people.
#[derive(Debug)]
pub enum Trouble {
    /// There is no such address, or no way to make a request for it.
    Unmade(String),
    Time(String),
    /// Nobody is there, or whoever is does not speak HTTP.
    Unreachable(String),
    /// An answer ended before its end.
    Broken(String),
}

/// One connection.
struct Lane {
    io: Pin<Box<dyn Io>>,
}

trait Io: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Io for T {}

/// The beginning of an answer, and the way to the rest of it.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Body,
}

/// What follows the head of an answer, as it comes.
pub struct Body {
    /// Gone when the answer is over.
    lane: Option<Lane>,
    framing: Framing,
    /// What came with the head.
    early: Vec<u8>,
    /// Where the lane goes when the answer is over; one that cannot be used again goes nowhere.
    home: Option<Home>,
}

struct Home {
    lanes: Lanes,
    slot: Slot,
    to: Arc<str>,
}

/// Whether there is more of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    Perhaps,
    Nothing,
}

impl Lanes {
    pub fn new(proxies: &Proxies) -> Lanes {
        let (connector, addresses) = (Connector::new(proxies), Mutex::default());
        Lanes(Arc::new(Shared { connector, addresses, idle: Each::default() }))
    }

    /// Reads the machine's certificates beside whatever else is done, so that nobody has to wait.
    pub fn prepare(&self) {
        let this = self.clone();
        tokio::task::spawn_blocking(move || this.0.connector.tls().map(drop));
    }

    /// Sends a request and waits for the head of its answer.
    pub async fn post(
        &self,
        url: &str,
        headers: &HeaderMap,
        body: &Pieces,
    ) -> Result<Answer, Trouble> {
        let address = self.address(url)?;
        let slot = Slot::here();
        let idle = self.0.idle.get_or_init(slot, Idle::default);
        let head = head::written(&address.head, headers, body.bytes_len());
        let mut lane = match idle.take(&address.to) {
            Some(lane) => lane,
            None => self.connect(&address).await?,
        };
        let got = head::exchange(&mut lane, &head, body).await?;
        let home = got.again.then(|| Home { lanes: self.clone(), slot, to: address.to.clone() });
        let mut body = Body { lane: Some(lane), framing: got.framing, early: got.early, home };
        if body.framing.is_over() {
            body.over();
        }
        Ok(Answer { status: got.status, headers: got.headers, body })
    }

    fn address(&self, url: &str) -> Result<Arc<Address>, Trouble> {
        let known = || self.0.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = known().get(url) {
            return Ok(address.clone());
        }
        let uri = uri(url)?;
        let to = format!("{}://{}", scheme(&uri), authority(&uri)).into();
        let through = self.0.connector.through(&uri);
        let head = head::begun(&uri, &through);
        let address = Arc::new(Address { uri, to, through, head });
        let mut known = known();
        if known.len() >= ADDRESSES_MAX {
            known.clear();
        }
        known.insert(url.to_owned(), address.clone());
        Ok(address)
    }

    async fn connect(&self, address: &Address) -> Result<Lane, Trouble> {
        let Address { uri, through, .. } = address;
        if through.needs_tls(uri) && !self.0.connector.has_tls() {
            let this = self.clone();
            let made = tokio::task::spawn_blocking(move || this.0.connector.tls().map(drop)).await;
            made.map_err(|error| Trouble::Unmade(error.to_string()))??;
        }
        let made = self.0.connector.connect(uri, through).await?;
        Ok(match made {
            Made::Plain(stream) => Lane { io: Box::pin(stream) },
            Made::Other(io) => Lane { io },
        })
    }
}

impl Lane {
    /// Reads once; what came is gone when `look` has seen it. Nothing came at the end.
    fn poll_read<T>(
        &mut self,
        cx: &mut Context<'_>,
        look: impl FnOnce(&[u8]) -> T,
    ) -> Poll<io::Result<T>> {
        let mut room = [MaybeUninit::<u8>::uninit(); READ_BYTES_MAX];
        let mut read = ReadBuf::uninit(&mut room);
        ready!(self.io.as_mut().poll_read(cx, &mut read))?;
        Poll::Ready(Ok(look(read.filled())))
    }

    /// Whether nothing came on it that nobody asked for: not its end, either.
    fn is_silent(&mut self) -> bool {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        self.poll_read(&mut cx, |_| ()).is_pending()
    }
}

impl Body {
    /// Gives what came to `take`, piece by piece, and says whether more may come.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        take: &mut dyn FnMut(&[u8]),
    ) -> Poll<Result<More, Trouble>> {
        let early = std::mem::take(&mut self.early);
        if !early.is_empty() && self.taken(&early, take)? {
            return Poll::Ready(Ok(self.more()));
        }
        loop {
            let Body { lane, framing, .. } = self;
            let Some(lane) = lane else { return Poll::Ready(Ok(More::Nothing)) };
            let read = ready!(lane.poll_read(cx, |bytes| framing.read(bytes, take)));
            match read.map_err(|error| Trouble::Broken(error.to_string()))? {
                Ok(had) if had.any || framing.is_over() => return Poll::Ready(Ok(self.more())),
                // The sizes between the pieces are nobody's news.
                Ok(_) => {}
                Err(why) => return Poll::Ready(Err(Trouble::Broken(why.to_owned()))),
            }
        }
    }

    fn taken(&mut self, early: &[u8], take: &mut dyn FnMut(&[u8])) -> Result<bool, Trouble> {
        let read = self.framing.read(early, take);
        let had = read.map_err(|why| Trouble::Broken(why.to_owned()))?;
        Ok(had.any || self.framing.is_over())
    }

    /// The whole body, or its beginning where it is longer.
    pub async fn short(&mut self, bytes_max: usize, body: &mut Vec<u8>) {
        let mut more = Ok(More::Perhaps);
        while body.len() < bytes_max && matches!(more, Ok(More::Perhaps)) {
            let mut take = |part: &[u8]| {
                let room = bytes_max - body.len();
                body.extend_from_slice(&part[..part.len().min(room)]);
            };
            more = poll_fn(|cx| self.poll_read(cx, &mut take)).await;
        }
    }

    /// Nobody wants the rest: if there is little of it, the lane can be used again.
    pub fn leave(mut self) {
        if self.lane.is_none() || self.home.is_none() {
            return;
        }
        let mut cx = Context::from_waker(std::task::Waker::noop());
        // Mostly the end came with the last words.
        if !matches!(self.poll_read(&mut cx, &mut |_| ()), Poll::Pending) && self.lane.is_none() {
            return;
        }
        tokio::spawn(tokio::time::timeout(REST_TIME_MAX, async move {
            let mut rest = 0;
            let mut more = Ok(More::Perhaps);
            while rest < REST_BYTES_MAX && matches!(more, Ok(More::Perhaps)) {
                let mut take = |part: &[u8]| rest += part.len();
                more = poll_fn(|cx| self.poll_read(cx, &mut take)).await;
            }
        }));
    }

    fn more(&mut self) -> More {
        if self.framing.is_over() {
            self.over();
            return More::Nothing;
        }
        More::Perhaps
    }

    /// Lets go of the lane, for others if it can be used again.
    fn over(&mut self) {
        if let (Some(lane), Some(home)) = (self.lane.take(), self.home.take()) {
            idle::keep(&home.lanes, home.slot, home.to, lane);
        }
    }
}

/// The address of a request.
fn uri(url: &str) -> Result<Uri, Trouble> {
    let why = || Trouble::Unmade(format!("{url:?} is not the URL of a server"));
    let url = url::Url::parse(url).map_err(|_| why())?;
    let uri: Uri = url.as_str().parse().map_err(|_| why())?;
    let known = uri.scheme().is_some_and(|s| *s == Scheme::HTTP || *s == Scheme::HTTPS);
    if known && uri.host().is_some() { Ok(uri) } else { Err(why()) }
}

fn scheme(uri: &Uri) -> &str {
    uri.scheme_str().unwrap_or_default()
}

/// The host, with its port where that is not the usual one; `Url` has left that out.
fn authority(uri: &Uri) -> &str {
    let whole = uri.authority().map_or("", |authority| authority.as_str());
    // A name or a password in it is not for the server's eyes in this place.
    whole.rsplit('@').next().unwrap_or(whole)
}

#[cfg(test)]
mod tests;
