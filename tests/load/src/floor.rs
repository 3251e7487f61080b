//! The floor: a bare relay. It reads the model's stream, appends a line to the session's log, and
//! writes a WebSocket frame. What a server costs above it is what an agent costs.
//!
//! It speaks as much of the unified protocol as the load needs, so that the same clients drive
//! both. Whoever connects to a session gets its frames, with `since` first all lines of its log;
//! whoever sends a message has it relayed. A command that the model calls for runs in a bare bash.
//! It remembers no earlier turn, asks nobody for leave, and flushes nothing to the disk.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_websockets::{Message, ServerBuilder, WebSocketStream};

use crate::http::Reader;

const WATCHER_FRAMES_MAX: usize = 8 * 1024;
const EVENT: &[u8] = b"data: ";

pub struct Floor {
    pub model: std::net::SocketAddr,
    pub logs: PathBuf,
    watchers: Mutex<HashMap<String, Vec<mpsc::Sender<Bytes>>>>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    session_id: std::borrow::Cow<'a, str>,
    content: String,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    tool_calls: Vec<Value>,
}

#[derive(Serialize)]
struct Told<'a> {
    r#type: &'a str,
    session_id: &'a str,
    text: &'a str,
}

type Socket = WebSocketStream<TcpStream>;

impl Floor {
    pub fn new(model: std::net::SocketAddr, logs: PathBuf) -> Floor {
        Floor { model, logs, watchers: Mutex::default() }
    }

    pub async fn serve(self, listener: TcpListener) -> io::Result<()> {
        let floor = Arc::new(self);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let floor = floor.clone();
            tokio::spawn(async move {
                // A client that goes away is no news here.
                let _ = floor.connection(stream).await;
            });
        }
    }

    async fn connection(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut peeked = [0; 8];
        stream.peek(&mut peeked).await?;
        if peeked.starts_with(b"GET /hea") {
            return healthy(&mut stream).await;
        }
        let (request, mut socket) =
            ServerBuilder::new().accept(stream).await.map_err(io::Error::other)?;
        let query = request.uri().query().unwrap_or_default().to_owned();
        let word = |name: &str| query.split('&').find_map(|part| part.strip_prefix(name));
        let id = word("session_id=").unwrap_or_default();
        let (sender, mut frames) = mpsc::channel(WATCHER_FRAMES_MAX);
        self.of(id, |watchers| watchers.push(sender.clone()));
        if word("since=").is_some() {
            self.replay(id, &mut socket).await?;
        }
        let mut relay = Relay { floor: self, own: sender, to_model: None, log: None };
        let done = relay.run(&mut socket, &mut frames).await;
        let own = relay.own;
        self.of(id, |watchers| watchers.retain(|watcher| !watcher.same_channel(&own)));
        done
    }

    fn of<T>(&self, id: &str, act: impl FnOnce(&mut Vec<mpsc::Sender<Bytes>>) -> T) -> T {
        let mut all = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        act(all.entry(id.to_owned()).or_default())
    }

    /// Everything in the log, a frame a line.
    async fn replay(&self, id: &str, socket: &mut Socket) -> io::Result<()> {
        let Ok(mut file) = tokio::fs::File::open(self.logs.join(format!("{id}.jsonl"))).await
        else {
            return Ok(());
        };
        let (mut part, mut held) = (vec![0; 64 * 1024], Vec::new());
        loop {
            let read = file.read(&mut part).await?;
            if read == 0 {
                return socket.flush().await.map_err(io::Error::other);
            }
            held.extend_from_slice(&part[..read]);
            let mut at = 0;
            while let Some(end) = memchr::memchr(b'\n', &held[at..]) {
                let line = Bytes::copy_from_slice(&held[at..at + end]);
                feed(socket, line).await?;
                at += end + 1;
            }
            held.drain(..at);
        }
    }
}

struct Relay<'a> {
    floor: &'a Floor,
    own: mpsc::Sender<Bytes>,
    to_model: Option<Reader<TcpStream>>,
    log: Option<File>,
}

impl Relay<'_> {
    async fn run(
        &mut self,
        socket: &mut Socket,
        frames: &mut mpsc::Receiver<Bytes>,
    ) -> io::Result<()> {
        loop {
            tokio::select! {
                message = socket.next() => {
                    let Some(Ok(message)) = message else { return Ok(()) };
                    let Some(text) = message.as_text() else { continue };
                    let Ok(said) = serde_json::from_str::<Said>(text) else { continue };
                    let id = said.session_id.into_owned();
                    self.turn(socket, &id, said.content).await?;
                }
                Some(frame) = frames.recv() => {
                    feed(socket, frame).await?;
                    while let Ok(frame) = frames.try_recv() {
                        feed(socket, frame).await?;
                    }
                    socket.flush().await.map_err(io::Error::other)?;
                }
            }
        }
    }

    async fn turn(&mut self, socket: &mut Socket, id: &str, content: String) -> io::Result<()> {
        let path = self.floor.logs.join(format!("{id}.jsonl"));
        if self.log.is_none() {
            self.log = Some(File::options().create(true).append(true).open(path)?);
        }
        self.keep(json!({"type": "user_message", "text": content}).to_string().as_bytes())?;
        let mut messages = vec![json!({"role": "user", "content": content})];
        while let Some(call) = self.ask(socket, id, &messages).await? {
            let output = run_tool(&call).await?;
            let call_id = call["id"].clone();
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            let result = json!({"role": "tool", "tool_call_id": call_id, "content": output});
            self.keep(result.to_string().as_bytes())?;
            messages.push(result);
        }
        let end = json!({"type": "turn_completed", "session_id": id}).to_string();
        self.tell(socket, id, end.into()).await?;
        socket.flush().await.map_err(io::Error::other)
    }

    /// One call of the model; gives a tool call that it ends with.
    async fn ask(
        &mut self,
        socket: &mut Socket,
        id: &str,
        messages: &[Value],
    ) -> io::Result<Option<Value>> {
        let body = json!({"model": "load", "stream": true, "messages": messages}).to_string();
        let mut model = match self.to_model.take() {
            Some(model) => model,
            None => {
                let stream = TcpStream::connect(self.floor.model).await?;
                stream.set_nodelay(true)?;
                Reader::new(stream)
            }
        };
        let length = body.len();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: model\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        model.stream_mut().write_all(head.as_bytes()).await?;
        model.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut call = None;
        loop {
            let part = model.chunk().await?;
            if part.is_empty() {
                break;
            }
            for data in events(&part) {
                if let Some(found) = self.event(socket, id, data).await? {
                    call = Some(found);
                }
            }
            // What has arrived together is written together.
            if !model.has_chunk() {
                socket.flush().await.map_err(io::Error::other)?;
            }
        }
        self.to_model = Some(model);
        Ok(call)
    }

    async fn event(
        &mut self,
        socket: &mut Socket,
        id: &str,
        data: &[u8],
    ) -> io::Result<Option<Value>> {
        let Ok(chunk) = serde_json::from_slice::<Chunk>(data) else { return Ok(None) };
        let Some(choice) = chunk.choices.into_iter().next() else { return Ok(None) };
        if let Some(text) = choice.delta.content {
            let told = Told { r#type: "assistant_message", session_id: id, text: &text };
            let frame = serde_json::to_vec(&told).map_err(io::Error::other)?;
            self.keep(&frame)?;
            self.tell(socket, id, frame.into()).await?;
        }
        Ok(choice.delta.tool_calls.into_iter().next())
    }

    fn keep(&mut self, line: &[u8]) -> io::Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let mut text = Vec::with_capacity(line.len() + 1);
        text.extend_from_slice(line);
        text.push(b'\n');
        log.write_all(&text)
    }

    async fn tell(&self, socket: &mut Socket, id: &str, frame: Bytes) -> io::Result<()> {
        self.floor.of(id, |watchers| {
            for watcher in watchers.iter().filter(|watcher| !watcher.same_channel(&self.own)) {
                let _ = watcher.try_send(frame.clone());
            }
        });
        feed(socket, frame).await
    }
}

async fn feed(socket: &mut Socket, frame: Bytes) -> io::Result<()> {
    socket.feed(Message::text(frame)).await.map_err(io::Error::other)
}

/// The data of each event in a part of a stream; the model sends whole ones.
fn events(part: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = part;
    std::iter::from_fn(move || {
        let end = memmem::find(rest, b"\n\n")?;
        let event = &rest[..end];
        rest = &rest[end + 2..];
        Some(event)
    })
    .filter_map(|event| event.strip_prefix(EVENT))
}

async fn run_tool(call: &Value) -> io::Result<String> {
    let arguments = call["function"]["arguments"].as_str().unwrap_or("{}");
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let mut command = tokio::process::Command::new("bash");
    command.arg("-c").arg(arguments["command"].as_str().unwrap_or("true"));
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

async fn healthy(stream: &mut TcpStream) -> io::Result<()> {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
    let mut head = [0; 1024];
    let _ = stream.read(&mut head).await?;
    stream.write_all(answer).await
}
