//! A client of any side, in any dialect: says something, and looks when each piece of the answer
//! arrives and whether it is the one that was to come. It does the same for all sides, so it costs
//! the same.

use std::io;
use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio_websockets::{ClientBuilder, Limits, Message, Payload, WebSocketStream};

use crate::clock::now_ns;
use crate::dialect::Dialect;
use crate::piece::Pieces;
use crate::script::Script;

/// Replays may carry an answer whole.
const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;

pub struct Client {
    socket: WebSocketStream<TcpStream>,
    dialect: Dialect,
    session: String,
    /// What the server said when it closed the connection.
    pub told_why: Option<String>,
}

/// How one turn arrived.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    pub sent_ns: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    pub chunks: u64,
    /// The length of each frame, without what greets one who comes.
    pub frames: Vec<usize>,
    /// How long each chunk was under way, with the time it was sent.
    pub lags: Vec<(u64, u64)>,
}

impl Turn {
    pub fn first_text_ns(&self) -> u64 {
        self.first_ns.saturating_sub(self.sent_ns)
    }

    /// From what was said, not from the first text: who holds chunks back to send them together is
    /// no faster for it.
    pub fn last_text_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.sent_ns)
    }
}

impl Client {
    /// A client of the unified protocol.
    pub async fn connect(address: SocketAddr, session: &str) -> io::Result<Client> {
        Client::watch(address, Dialect::Unified, session, None).await
    }

    /// With `since`, what came after that place is replayed.
    pub async fn watch(
        address: SocketAddr,
        dialect: Dialect,
        session: &str,
        since: Option<&str>,
    ) -> io::Result<Client> {
        let stream = TcpStream::connect(address).await?;
        Client::over(stream, dialect, session, since).await
    }

    /// One whose kernel takes little for it while it does not read.
    pub async fn narrow(address: SocketAddr, session: &str, bytes: u32) -> io::Result<Client> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(bytes)?;
        let stream = socket.connect(address).await?;
        Client::over(stream, Dialect::Unified, session, None).await
    }

    async fn over(
        stream: TcpStream,
        dialect: Dialect,
        session: &str,
        since: Option<&str>,
    ) -> io::Result<Client> {
        stream.set_nodelay(true)?;
        let mut uri = format!("ws://{}{}", stream.peer_addr()?, dialect.path(session));
        if let Some(since) = since {
            uri.push_str("&since=");
            uri.extend(since.bytes().map(|byte| format!("%{byte:02x}")));
        }
        let limits = Limits::default().max_payload_len(Some(FRAME_BYTES_MAX));
        let builder = ClientBuilder::new().uri(&uri).map_err(io::Error::other)?.limits(limits);
        let (socket, _) = builder.connect_on(stream).await.map_err(io::Error::other)?;
        Ok(Client { socket, dialect, session: session.to_owned(), told_why: None })
    }

    pub async fn send(&mut self, message: &Value) -> io::Result<()> {
        self.socket.send(Message::text(message.to_string())).await.map_err(io::Error::other)
    }

    pub async fn say(&mut self, script: Script) -> io::Result<u64> {
        let message = json!({
            "type": "user_message", "session_id": self.session, "content": script.text(),
        });
        let sent = now_ns();
        self.send(&message).await?;
        Ok(sent)
    }

    /// The next frame of text.
    pub async fn frame(&mut self) -> io::Result<Payload> {
        loop {
            match self.socket.next().await {
                Some(Ok(message)) if message.is_text() => return Ok(message.into_payload()),
                Some(Ok(message)) => {
                    if let Some((_, reason)) = message.as_close() {
                        self.told_why = Some(reason.to_owned());
                    }
                }
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    /// Reads until a frame has this in it, and gives that.
    pub async fn until(&mut self, word: &str) -> io::Result<Payload> {
        loop {
            let frame = self.frame().await?;
            if memchr::memmem::find(&frame, word.as_bytes()).is_some() {
                return Ok(frame);
            }
        }
    }

    /// A turn all of whose pieces arrived, as they were sent.
    pub async fn turn(&mut self, script: Script) -> io::Result<Turn> {
        let sent_ns = self.say(script).await?;
        let mut turn = self.see(script).await?;
        turn.sent_ns = sent_ns;
        Ok(turn)
    }

    /// Reads until a turn ends.
    pub async fn see(&mut self, script: Script) -> io::Result<Turn> {
        let (mut turn, mut pieces) = (Turn::default(), script.pieces());
        loop {
            let frame = self.frame().await?;
            let now = now_ns();
            if !self.dialect.is_greeting(&frame) {
                turn.frames.push(frame.len());
            }
            if self.dialect.is_text(&frame) {
                let lags = &mut turn.lags;
                let found =
                    pieces.read(&frame, |sent| lags.push((sent, now.saturating_sub(sent))))?;
                if found > 0 {
                    turn.chunks += found;
                    turn.last_ns = now;
                    if turn.first_ns == 0 {
                        turn.first_ns = now;
                    }
                }
            }
            if self.dialect.is_end(&frame) {
                pieces.are_all(1)?;
                return Ok(turn);
            }
            self.fails(&frame)?;
        }
    }

    /// Takes in what a session of several turns says, until all answers are whole or the connection
    /// ends. Gives the last frame, if one came.
    pub async fn read_on(
        &mut self,
        pieces: &mut Pieces,
        answers: u64,
    ) -> io::Result<Option<Payload>> {
        let mut last = None;
        loop {
            let Ok(frame) = self.frame().await else { return Ok(last) };
            if self.dialect.is_text(&frame) {
                pieces.read(&frame, |_| {})?;
            }
            self.fails(&frame)?;
            let is_end = self.dialect.is_end(&frame);
            last = Some(frame);
            if is_end && pieces.are_all(answers).is_ok() {
                return Ok(last);
            }
        }
    }

    fn fails(&self, frame: &[u8]) -> io::Result<()> {
        if !self.dialect.is_failure(frame) {
            return Ok(());
        }
        let shown = String::from_utf8_lossy(&frame[..frame.len().min(1_000)]);
        Err(io::Error::other(format!("a turn failed: {shown}")))
    }
}

/// The place that a frame brings its reader to, as `since` takes it.
pub fn place(frame: &[u8]) -> io::Result<String> {
    let frame: Value = serde_json::from_slice(frame).map_err(io::Error::other)?;
    match (frame["cursor"].as_str(), frame["seq"].as_u64()) {
        (Some(cursor), _) => Ok(cursor.to_owned()),
        (None, Some(seq)) => Ok(seq.to_string()),
        (None, None) => Err(io::Error::other(format!("no place in {frame}"))),
    }
}
