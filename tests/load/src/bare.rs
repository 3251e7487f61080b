//! A bare write: what fan-out is compared with. It holds as many connections as a session had
//! watchers and writes them frames of the very same lengths at the same pace, one `write` a frame,
//! on one thread, one connection after the other. It reads no model, keeps no log, queues nothing,
//! and wakes nobody but the readers.

use std::io::{self, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio_websockets::ServerBuilder;

/// What is written, to whom.
#[derive(Serialize, Deserialize)]
pub struct Plan {
    pub every_us: u64,
    /// In the order in which they connect.
    pub kinds: Vec<Kind>,
}

#[derive(Serialize, Deserialize)]
pub struct Kind {
    pub watchers: usize,
    /// The length of each frame, without its head.
    pub frames: Vec<usize>,
}

/// Waits for all who watch, then for a word of the first, and writes.
pub async fn serve(listener: TcpListener, plan: &Path) -> io::Result<()> {
    let plan = std::fs::read(plan)?;
    let plan: Plan = serde_json::from_slice(&plan).map_err(io::Error::other)?;
    let mut sockets = Vec::new();
    for kind in &plan.kinds {
        for _ in 0..kind.watchers {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let (_, socket) =
                ServerBuilder::new().accept(stream).await.map_err(io::Error::other)?;
            sockets.push(socket);
        }
    }
    let first = sockets.first_mut().ok_or_else(|| io::Error::other("nobody is to watch"))?;
    first.next().await;
    let mut streams = Vec::with_capacity(sockets.len());
    for socket in sockets {
        let stream = socket.into_inner().into_std()?;
        stream.set_nonblocking(false)?;
        streams.push(stream);
    }
    let every = Duration::from_micros(plan.every_us);
    let kinds = plan.kinds.iter().map(|kind| (kind.watchers, framed(&kind.frames)));
    let kinds: Vec<_> = kinds.collect();
    // On this thread, whose processor time can be read as long as it lives.
    write(&mut streams, every, &kinds)?;
    // It stays, to be looked at, until it is ended.
    std::future::pending().await
}

type Frames = Vec<Vec<u8>>;

fn write(streams: &mut [TcpStream], every: Duration, kinds: &[(usize, Frames)]) -> io::Result<()> {
    let began = Instant::now();
    let most = kinds.iter().map(|(_, frames)| frames.len()).max().unwrap_or(0);
    for turn in 0..most {
        let at = began + every * turn as u32;
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        let mut first = 0;
        for (watchers, frames) in kinds {
            if let Some(frame) = frames.get(turn) {
                for stream in &mut streams[first..first + watchers] {
                    stream.write_all(frame)?;
                }
            }
            first += watchers;
        }
    }
    Ok(())
}

/// Frames as a server sends them: final, text, not masked.
fn framed(lengths: &[usize]) -> Frames {
    let one = |length: &usize| {
        let mut out = vec![0x81];
        match *length {
            length @ ..126 => out.push(length as u8),
            length @ ..0x1_0000 => {
                out.push(126);
                out.extend((length as u16).to_be_bytes());
            }
            length => {
                out.push(127);
                out.extend((length as u64).to_be_bytes());
            }
        }
        out.resize(out.len() + length, b'x');
        out
    };
    lengths.iter().map(one).collect()
}
