//! The model's side: streams what a script asks for, at the pace it asks for, and costs little.
//!
//! Speaks the chat completions interface, because most servers do. Every piece of text carries the
//! time at which it was sent. It also measures, from its own end, how long a client takes from the
//! end of a tool call to its next request.

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::clock::now_ns;
use crate::http::{self, Reader};
use crate::piece;
use crate::script::{Script, Tool};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                      transfer-encoding: chunked\r\n\r\n";
const BEFORE: &[u8] = br#"data: {"id":"c","object":"chat.completion.chunk","created":0,"model":"load","choices":[{"index":0,"delta":{"content":""#;
const AFTER: &[u8] = b"\"},\"finish_reason\":null}]}\n\n";
const STOP: &str = concat!(
    r#"data: {"id":"c","object":"chat.completion.chunk","created":0,"model":"load","choices":"#,
    r#"[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    "\n\n",
);
const BYTES_PER_TOKEN: usize = 4;
const WORD: &[u8] = b"Much was said.";
/// How much is written at once when nothing is to be waited for.
const BURST_BYTES: usize = 16 * 1024;

/// Nanoseconds from the end of a tool call to the next request.
#[derive(Default)]
struct Gaps(Mutex<Vec<u64>>);

impl Gaps {
    fn put(&self, ns: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(ns);
    }

    fn take(&self) -> Vec<u64> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub async fn serve(listener: TcpListener) -> io::Result<()> {
    let gaps = Arc::new(Gaps::default());
    // A server may ask on another connection each time; one tool call is open at a time.
    let called = Arc::new(Mutex::new(None));
    let streamed = Arc::new(Mutex::new(HashSet::new()));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (gaps, called, streamed) = (gaps.clone(), called.clone(), streamed.clone());
        let connection = Connection { gaps, called, streamed };
        tokio::spawn(async move {
            // A client that goes away is no news here.
            let _ = connection.serve(stream).await;
        });
    }
}

struct Connection {
    gaps: Arc<Gaps>,
    called: Arc<Mutex<Option<u64>>>,
    /// Numbers of scripts that are not to be streamed again.
    streamed: Arc<Mutex<HashSet<u64>>>,
}

impl Connection {
    async fn serve(self, mut stream: TcpStream) -> io::Result<()> {
        let (read, mut write) = stream.split();
        let mut reader = Reader::new(read);
        while let Some(head) = reader.head().await? {
            let arrived = now_ns();
            let bytes = http::content_length(&head);
            let script = reader.body_seen(bytes, Script::of).await?;
            if head.starts_with(b"GET") {
                let text = serde_json::to_string(&self.gaps.take()).map_err(io::Error::other)?;
                write.write_all(whole(&text).as_bytes()).await?;
                continue;
            }
            if let Some(ended) = self.called().take() {
                self.gaps.put(arrived.saturating_sub(ended));
            }
            match script {
                Some(Script::Stream { number, .. }) if !self.is_new(number) => {
                    write.write_all(&word(bytes)).await?;
                }
                Some(Script::Stream { chunks, bytes: each, every_us: 0, .. }) => {
                    burst(&mut write, chunks, each).await?;
                }
                Some(Script::Stream { chunks, bytes: each, every_us, number }) => {
                    let every = Duration::from_micros(every_us);
                    let used = match number {
                        0 => Used::LITTLE,
                        _ => Used { input: bytes, output: chunks as usize * each },
                    };
                    paced(&mut write, chunks, each, every, used).await?;
                }
                Some(Script::Tools { rounds, tool, done }) if done < rounds => {
                    write.write_all(&tool_call(done, tool)).await?;
                    *self.called() = Some(now_ns());
                }
                Some(Script::Tools { .. }) | None => {
                    burst(&mut write, 1, piece::BYTES_MIN).await?;
                }
            }
        }
        Ok(())
    }

    fn is_new(&self, number: u64) -> bool {
        number == 0 || self.streamed.lock().unwrap_or_else(PoisonError::into_inner).insert(number)
    }

    fn called(&self) -> std::sync::MutexGuard<'_, Option<u64>> {
        self.called.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn whole(text: &str) -> String {
    let length = text.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{text}"
    )
}

async fn burst(write: &mut (impl AsyncWrite + Unpin), chunks: u64, bytes: usize) -> io::Result<()> {
    let mut out = HEAD.to_vec();
    for number in 0..chunks {
        put_chunk(&mut out, bytes, number);
        if out.len() >= BURST_BYTES {
            write.write_all(&out).await?;
            out.clear();
        }
    }
    put_end(&mut out, Used::LITTLE);
    write.write_all(&out).await
}

async fn paced(
    write: &mut (impl AsyncWrite + Unpin),
    chunks: u64,
    bytes: usize,
    every: Duration,
    used: Used,
) -> io::Result<()> {
    let mut ticks = interval_at(Instant::now(), every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut out = HEAD.to_vec();
    for number in 0..chunks {
        ticks.tick().await;
        put_chunk(&mut out, bytes, number);
        write.write_all(&out).await?;
        out.clear();
    }
    put_end(&mut out, used);
    write.write_all(&out).await
}

/// One event in one chunk, as providers send them.
fn put_chunk(out: &mut Vec<u8>, bytes: usize, number: u64) {
    let text = bytes.max(piece::BYTES_MIN);
    let length = BEFORE.len() + text + AFTER.len();
    let _ = write!(out, "{length:x}\r\n");
    out.extend_from_slice(BEFORE);
    piece::put(out, text, now_ns(), number);
    out.extend_from_slice(AFTER);
    out.extend_from_slice(b"\r\n");
}

/// Bytes that a call read and wrote.
#[derive(Clone, Copy)]
struct Used {
    input: usize,
    output: usize,
}

impl Used {
    /// What is said where a conversation is not to be summed up while it is measured.
    const LITTLE: Used = Used { input: 40, output: 40 };
}

fn put_end(out: &mut Vec<u8>, used: Used) {
    let (input, output) = (used.input / BYTES_PER_TOKEN, used.output / BYTES_PER_TOKEN);
    let usage = serde_json::json!({
        "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "load", "choices": [],
        "usage": {
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        },
    });
    let text = format!("{STOP}data: {usage}\n\ndata: [DONE]\n\n");
    let _ = write!(out, "{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
}

/// An answer that is no piece.
fn word(asked_bytes: usize) -> Vec<u8> {
    let mut out = HEAD.to_vec();
    let length = BEFORE.len() + WORD.len() + AFTER.len();
    let _ = write!(out, "{length:x}\r\n");
    for part in [BEFORE, WORD, AFTER, b"\r\n"] {
        out.extend_from_slice(part);
    }
    put_end(&mut out, Used { input: asked_bytes, output: WORD.len() });
    out
}

fn tool_call(round: usize, tool: Tool) -> Vec<u8> {
    let arguments = serde_json::json!({ "command": tool.command() }).to_string();
    let call = serde_json::json!({
        "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "load",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "delta": {"tool_calls": [{
            "index": 0, "id": format!("call_{round}"), "type": "function",
            "function": {"name": "bash", "arguments": arguments},
        }]}}],
    });
    let text = format!("data: {call}\n\ndata: [DONE]\n\n");
    let mut out = HEAD.to_vec();
    let _ = write!(out, "{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
    out
}
