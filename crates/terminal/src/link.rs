//! The connection to one session: it is made again when it is lost, from the place it stood at.
//!
//! A user's message is sent until the server has shown that it has it, and never twice: after a
//! reconnect the replay and the answer to a question tell whether it came through.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use hyper::header::{AUTHORIZATION, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_websockets::upgrade::Error as UpgradeError;
use tokio_websockets::{ClientBuilder, Error, Limits, MaybeTlsStream, Message, WebSocketStream};

use crate::address::{Address, query};
use crate::wire::{Head, message};

/// The server sends a heartbeat every 30 seconds, and pings more often.
const SILENCE_MAX: Duration = Duration::from_secs(75);
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(15);
const CLOSE_TIME_MAX: Duration = Duration::from_secs(1);
const WAIT_MIN: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_secs(15);
/// Frames that may wait for the screen; then the socket is not read.
const FRAMES_WAITING_MAX: usize = 256;
const FRAME_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The question whose answer comes behind everything that was missed.
const CAUGHT_UP: &str = "caught-up";

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// What the connection tells.
#[derive(Debug)]
pub enum Told {
    Frame(String),
    /// It is up, and everything that was missed has come.
    Up,
    /// The server has less of the session than was seen: what was shown is gone there. All that it
    /// has comes from the beginning.
    Anew,
    /// It is down, and is tried again after a while.
    Lost {
        why: String,
        again_in: Duration,
    },
    /// It is not tried again.
    GaveUp {
        why: String,
    },
}

enum Outgoing {
    /// A user's message, which must arrive once.
    Say { id: String, frame: String },
    /// Anything else; it is dropped while the connection is down.
    Tell(String),
}

pub struct Link {
    out: mpsc::UnboundedSender<Outgoing>,
    told: mpsc::Receiver<Told>,
}

/// How long a lost connection is tried again.
#[derive(Clone, Copy, Debug)]
pub enum Patience {
    Endless,
    For(Duration),
}

impl Link {
    /// Connects to a session; `since` is the place behind which frames are wanted.
    pub fn open(address: Address, session: &str, since: String, patience: Patience) -> Link {
        let (out, outgoing) = mpsc::unbounded_channel();
        let (told, incoming) = mpsc::channel(FRAMES_WAITING_MAX);
        let keeper = Keeper {
            address,
            session: session.to_owned(),
            place: since,
            patience,
            told,
            outgoing,
            unseen: Vec::new(),
        };
        tokio::spawn(keeper.keep());
        Link { out, told: incoming }
    }

    pub async fn next(&mut self) -> Told {
        match self.told.recv().await {
            Some(told) => told,
            // Its task has told that it gave up before it ended.
            None => std::future::pending().await,
        }
    }

    pub fn say(&self, id: &str, content: &str) {
        let frame = message("user_message", id, json!({ "content": content }));
        let _ = self.out.send(Outgoing::Say { id: id.to_owned(), frame });
    }

    pub fn tell(&self, frame: String) {
        let _ = self.out.send(Outgoing::Tell(frame));
    }

    /// Ends the connection when all is sent, or soon.
    pub async fn close(self) {
        let Link { out, mut told } = self;
        drop(out);
        let ended = async { while told.recv().await.is_some() {} };
        let _ = tokio::time::timeout(CLOSE_TIME_MAX, ended).await;
    }
}

struct Keeper {
    address: Address,
    session: String,
    place: String,
    patience: Patience,
    told: mpsc::Sender<Told>,
    outgoing: mpsc::UnboundedReceiver<Outgoing>,
    /// Users' messages that the server has not shown yet.
    unseen: Vec<(String, String)>,
}

/// Why a connection is over.
enum Over {
    Lost(String),
    /// The server has less of the session than we have seen.
    Anew,
    /// It makes no sense to try again.
    Refused(String),
    /// Nobody wants it any more.
    Left,
}

impl Keeper {
    async fn keep(mut self) {
        let mut tries = 0;
        let mut down_since: Option<Instant> = None;
        loop {
            let why = match self.connection(&mut tries, &mut down_since).await {
                Over::Left => return,
                Over::Refused(why) => return self.give_up(why).await,
                Over::Anew => {
                    // Now everything is wanted; nothing can be before that.
                    self.place = "0".to_owned();
                    if self.told.send(Told::Anew).await.is_err() {
                        return;
                    }
                    continue;
                }
                Over::Lost(why) => why,
            };
            let since = *down_since.get_or_insert_with(Instant::now);
            let again_in = wait(tries);
            tries += 1;
            if let Patience::For(time) = self.patience
                && since.elapsed() + again_in > time
            {
                return self.give_up(why).await;
            }
            if self.told.send(Told::Lost { why, again_in }).await.is_err() {
                return;
            }
            if !self.rest(again_in).await {
                return;
            }
        }
    }

    async fn give_up(&self, why: String) {
        let _ = self.told.send(Told::GaveUp { why }).await;
    }

    /// Waits before the next try; false when nobody waits any more.
    async fn rest(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(end) => return true,
                outgoing = self.outgoing.recv() => match outgoing {
                    None => return false,
                    Some(Outgoing::Say { id, frame }) => self.unseen.push((id, frame)),
                    Some(Outgoing::Tell(_)) => {}
                },
            }
        }
    }

    /// One connection, from the handshake to its end.
    async fn connection(&mut self, tries: &mut u32, down_since: &mut Option<Instant>) -> Over {
        let mut socket = match self.connect().await {
            Ok(socket) => socket,
            Err(over) => return over,
        };
        let question = message("get_context", CAUGHT_UP, json!({}));
        if let Err(error) = socket.send(Message::text(question)).await {
            return Over::Lost(error.to_string());
        }
        let mut caught_up = false;
        loop {
            tokio::select! {
                received = tokio::time::timeout(SILENCE_MAX, socket.next()) => {
                    let frame = match received {
                        Ok(Some(Ok(message))) => frame(&message),
                        Ok(Some(Err(error))) => return Over::Lost(error.to_string()),
                        Ok(None) => return Over::Lost("the server closed it".to_owned()),
                        Err(_) => return Over::Lost("the server is silent".to_owned()),
                    };
                    let Some(frame) = frame else { continue };
                    let head = Head::read(&frame);
                    if self.is_anew(&head) {
                        return Over::Anew;
                    }
                    self.note(&head);
                    if !caught_up && head.refuses(CAUGHT_UP) {
                        return Over::Lost("the server cannot tell how it stands".to_owned());
                    }
                    if !caught_up && head.kind == "context_info" {
                        caught_up = true;
                        *tries = 0;
                        *down_since = None;
                        if self.told.send(Told::Up).await.is_err() {
                            return Over::Left;
                        }
                        for (_, frame) in self.unseen.clone() {
                            if let Err(error) = socket.send(Message::text(frame)).await {
                                return Over::Lost(error.to_string());
                            }
                        }
                    } else if self.told.send(Told::Frame(frame)).await.is_err() {
                        return Over::Left;
                    }
                }
                outgoing = self.outgoing.recv(), if caught_up => {
                    let frame = match outgoing {
                        None => {
                            let _ = socket.close().await;
                            return Over::Left;
                        }
                        Some(Outgoing::Tell(frame)) => frame,
                        Some(Outgoing::Say { id, frame }) => {
                            self.unseen.push((id, frame.clone()));
                            frame
                        }
                    };
                    if let Err(error) = socket.send(Message::text(frame)).await {
                        return Over::Lost(error.to_string());
                    }
                }
            }
        }
    }

    /// Whether the server greets us from before the place where we are.
    fn is_anew(&self, head: &Head) -> bool {
        head.kind == "session_init" && head.seq.is_some_and(|seq| seq < seq_of(&self.place))
    }

    /// Keeps the place, and which messages the server has.
    fn note(&mut self, head: &Head) {
        if let Some(place) = head.place()
            && (head.is_of_the_session() || seq_of(&place) > seq_of(&self.place))
        {
            self.place = place;
        }
        if let Some(seen) = &head.client_ref {
            self.unseen.retain(|(id, _)| id != seen);
        }
    }

    async fn connect(&self) -> Result<Socket, Over> {
        let lost = |why: String| Over::Lost(why);
        let refused = |error: String| Over::Refused(error);
        let (session, since) = (query(&self.session), query(&self.place));
        let path = format!("/unified?session_id={session}&since={since}");
        let builder = ClientBuilder::new()
            .limits(Limits::default().max_payload_len(Some(FRAME_BYTES_MAX)))
            .uri(&self.address.socket_url(&path))
            .map_err(|error| refused(error.to_string()))?;
        let protocol = HeaderValue::from_static("unified.v1");
        let mut builder = builder
            .add_header(SEC_WEBSOCKET_PROTOCOL, protocol)
            .map_err(|error| refused(error.to_string()))?;
        if let Some(token) = &self.address.token {
            let value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|error| refused(error.to_string()))?;
            builder = builder
                .add_header(AUTHORIZATION, value)
                .map_err(|error| refused(error.to_string()))?;
        }
        let stream = self.address.connect().await.map_err(lost)?;
        let shaken = tokio::time::timeout(HANDSHAKE_TIME_MAX, builder.connect_on(stream)).await;
        match shaken {
            Ok(Ok((socket, _))) => Ok(socket),
            Ok(Err(Error::Upgrade(UpgradeError::DidNotSwitchProtocols(status))))
                if (400..500).contains(&status) && status != 429 =>
            {
                Err(Over::Refused(format!("the server refused the connection with {status}")))
            }
            Ok(Err(error)) => Err(Over::Lost(error.to_string())),
            Err(_) => Err(Over::Lost("the server does not answer".to_owned())),
        }
    }
}

/// The number that a place begins with.
fn seq_of(place: &str) -> u64 {
    let number = place.split('~').next().unwrap_or_default();
    number.parse().unwrap_or(0)
}

fn frame(message: &Message) -> Option<String> {
    message.as_text().map(str::to_owned)
}

/// Doubles up to a bound; the half of it is chance, so that clients do not all come at once.
fn wait(tries: u32) -> Duration {
    let whole = WAIT_MIN.saturating_mul(1 << tries.min(10)).min(WAIT_MAX);
    whole.mul_f64(0.5 + fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests;
