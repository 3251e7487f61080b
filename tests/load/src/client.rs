//! A client of either side: says something, and looks when each piece of the answer arrives. It
//! finds stamps in what comes, whatever stands around them, so it costs the same for both.

use std::io;
use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use memchr::memmem;
use serde_json::json;
use tokio::net::TcpStream;
use tokio_websockets::{ClientBuilder, Message, WebSocketStream};

use crate::clock::now_ns;
use crate::script::Script;
use crate::stamp;

pub struct Client {
    socket: WebSocketStream<TcpStream>,
    id: String,
}

/// How one turn arrived.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    pub sent_ns: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    pub chunks: u64,
    pub frames: u64,
    pub bytes: u64,
    /// How long each chunk was under way, with the time it was sent.
    pub lags: Vec<(u64, u64)>,
}

impl Turn {
    pub fn first_text_ns(&self) -> u64 {
        self.first_ns.saturating_sub(self.sent_ns)
    }
}

impl Client {
    pub async fn connect(address: SocketAddr, id: &str, more: &str) -> io::Result<Client> {
        let uri = format!("ws://{address}/unified?session_id={id}{more}");
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let builder = ClientBuilder::new().uri(&uri).map_err(io::Error::other)?;
        let (socket, _) = builder.connect_on(stream).await.map_err(io::Error::other)?;
        Ok(Client { socket, id: id.to_owned() })
    }

    pub async fn say(&mut self, script: Script) -> io::Result<u64> {
        let message = json!({
            "type": "user_message", "session_id": self.id, "content": script.text(),
        });
        let sent = now_ns();
        self.socket.send(Message::text(message.to_string())).await.map_err(io::Error::other)?;
        Ok(sent)
    }

    pub async fn turn(&mut self, script: Script) -> io::Result<Turn> {
        let sent_ns = self.say(script).await?;
        let mut turn = self.watch().await?;
        turn.sent_ns = sent_ns;
        Ok(turn)
    }

    /// Reads until a turn ends.
    pub async fn watch(&mut self) -> io::Result<Turn> {
        let mut turn = Turn::default();
        loop {
            let message = match self.socket.next().await {
                Some(message) => message.map_err(io::Error::other)?,
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            };
            if !message.is_text() {
                continue;
            }
            let now = now_ns();
            let text: &[u8] = message.as_payload();
            turn.frames += 1;
            turn.bytes += text.len() as u64;
            let lags = &mut turn.lags;
            let found = stamp::find(text, |sent| lags.push((sent, now.saturating_sub(sent))));
            if found > 0 {
                turn.chunks += found as u64;
                turn.last_ns = now;
                if turn.first_ns == 0 {
                    turn.first_ns = now;
                }
            } else if memmem::find(text, b"\"turn_completed\"").is_some() {
                return Ok(turn);
            } else if memmem::find(text, b"\"turn_failed\"").is_some() {
                let text = String::from_utf8_lossy(text);
                return Err(io::Error::other(format!("the turn failed: {text}")));
            }
        }
    }
}
