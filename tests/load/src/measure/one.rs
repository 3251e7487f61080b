//! One session: starting, the first text, a burst, a turn with tools.

use std::io;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::figures::{Bound, Figures, Side};
use super::ground::Ground;
use super::{arrived, at_ms};
use crate::client::Client;
use crate::clock::now_ns;
use crate::http::Reader;
use crate::proc::Process;
use crate::script::{Script, Tool};

/// Before memory is looked at.
const SETTLE: Duration = Duration::from_millis(1500);
/// Turns that are not counted: connections are made, code is paged in.
const WARM_TURNS: usize = 2;
const FIRST_TURNS: usize = 10;
const FIRST_SESSIONS: usize = 20;
/// Between turns: nobody types faster.
const PAUSE: Duration = Duration::from_millis(20);
/// A floor that adds more is none.
pub const FLOOR_ADDS_MS_MAX: f64 = 0.5;
const BURST_CHUNKS: u64 = 10_000;
const BURST_TURNS: u64 = 5;
pub const CHUNK_BYTES: usize = 32;
const TOOL_ROUNDS: usize = 50;

pub async fn start(ground: &Ground, side: Side, figures: &mut Figures) -> io::Result<()> {
    let process = ground.start(side).await?;
    tokio::time::sleep(SETTLE).await;
    let ready = process.ready_after.as_secs_f64() * 1e3;
    figures.put(side, "start", ("ready", "ms"), Bound::AtMost(50.0), ready);
    let memory = process.memory()? as f64 / 1e6;
    figures.put(side, "start", ("idle memory", "MB"), Bound::AtMost(20.0), memory);
    Ok(())
}

/// How long the model's first text takes without anything between: what is above it was added.
pub async fn direct(ground: &Ground) -> io::Result<f64> {
    let stream = TcpStream::connect(ground.model.address).await?;
    stream.set_nodelay(true)?;
    let mut model = Reader::new(stream);
    let content = Script::stream(1, CHUNK_BYTES, 0).text();
    let body = json!({"model": "load", "messages": [{"role": "user", "content": content}]});
    let (body, mut times) = (body.to_string(), Vec::with_capacity(FIRST_TURNS));
    let length = body.len();
    let request = format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}");
    for turn in 0..WARM_TURNS + FIRST_SESSIONS * FIRST_TURNS {
        tokio::time::sleep(PAUSE).await;
        let sent = now_ns();
        model.stream_mut().write_all(request.as_bytes()).await?;
        model.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let first = model.chunk().await?;
        let arrived = now_ns();
        if !first.starts_with(b"data: ") {
            return Err(io::Error::other("the model's first chunk is no event"));
        }
        while !model.chunk().await?.is_empty() {}
        if turn >= WARM_TURNS {
            times.push(arrived - sent);
        }
    }
    times.sort_unstable();
    let half = at_ms(&times, 0.5);
    println!("direct   first text: p50 {half:.3} ms");
    Ok(half)
}

pub async fn first_text(
    ground: &Ground,
    side: Side,
    direct_ms: f64,
    figures: &mut Figures,
) -> io::Result<()> {
    let process = ground.start(side).await?;
    let first = first_texts(&process).await?;
    let bound = Bound::TimesAtMost;
    figures.put(side, "first text", ("p50", "ms"), bound(2.0), first.half_ms);
    figures.put(side, "first text", ("p99", "ms"), bound(3.0), first.most_ms);
    let (above, bound) = (first.half_ms - direct_ms, Bound::FloorAtMost(FLOOR_ADDS_MS_MAX));
    figures.put(side, "first text", ("p50 above the model alone", "ms"), bound, above);
    figures.put(side, "first text", ("CPU a turn", "µs"), Bound::None, first.cpu_us);
    Ok(())
}

/// The same where no disk is waited for: what is left is the server's own.
pub async fn first_text_in_memory(
    ground: &Ground,
    side: Side,
    figures: &mut Figures,
) -> io::Result<()> {
    let Some(memory) = ground.start_in_memory(side).await? else { return Ok(()) };
    let first = first_texts(&memory.process).await?;
    let name = "first text, log in memory";
    figures.put(side, name, ("p50", "ms"), Bound::None, first.half_ms);
    figures.put(side, name, ("p99", "ms"), Bound::None, first.most_ms);
    Ok(())
}

pub struct FirstTexts {
    pub half_ms: f64,
    pub most_ms: f64,
    pub cpu_us: f64,
}

/// How many turns all of it takes, with those that do not count.
pub const FIRST_TURNS_ALL: usize = FIRST_SESSIONS * (WARM_TURNS + FIRST_TURNS);

pub async fn first_texts(process: &Process) -> io::Result<FirstTexts> {
    let script = Script::stream(1, CHUNK_BYTES, 0);
    let (mut cpu, mut times) = (0.0, Vec::with_capacity(FIRST_SESSIONS * FIRST_TURNS));
    // A session grows, and what it said before is asked again with every turn; `growth` is about that.
    for session in 0..FIRST_SESSIONS {
        let mut client = Client::connect(process.address, &format!("s{session}")).await?;
        for _ in 0..WARM_TURNS {
            client.turn(script).await?;
        }
        let before = process.cpu()?;
        for _ in 0..FIRST_TURNS {
            tokio::time::sleep(PAUSE).await;
            times.push(client.turn(script).await?.first_text_ns());
        }
        cpu += before.since_us()?;
    }
    let cpu_us = cpu / times.len() as f64;
    times.sort_unstable();
    Ok(FirstTexts { half_ms: at_ms(&times, 0.5), most_ms: at_ms(&times, 0.99), cpu_us })
}

pub async fn burst(ground: &Ground, side: Side, figures: &mut Figures) -> io::Result<()> {
    let process = ground.start(side).await?;
    let mut client = Client::connect(process.address, "one").await?;
    let script = Script::stream(BURST_CHUNKS, CHUNK_BYTES, 0);
    client.turn(script).await?;
    let (before, mut took_ns) = (process.cpu()?, 0);
    for _ in 0..BURST_TURNS {
        let turn = client.turn(script).await?;
        arrived(turn.chunks, BURST_CHUNKS)?;
        took_ns += turn.last_text_ns();
    }
    let chunks = (BURST_TURNS * BURST_CHUNKS) as f64;
    let cpu = before.since_us()? / chunks;
    let rate = chunks * 1e9 / took_ns as f64;
    figures.put(side, "burst", ("chunks", "1/s"), Bound::TimesAtLeast(0.6), rate);
    figures.put(side, "burst", ("CPU a chunk", "µs"), Bound::None, cpu);
    Ok(())
}

pub async fn tools(
    ground: &Ground,
    side: Side,
    tool: Tool,
    figures: &mut Figures,
) -> io::Result<()> {
    let (name, mode) = match tool {
        Tool::Plain => ("tool turn", "suggest"),
        Tool::Sandboxed => ("tool turn, sandboxed", "full-auto"),
    };
    let process = ground.start_with(side, &[("TOOL_USE_APPROVAL_MODE", mode)]).await?;
    let mut client = Client::connect(process.address, "one").await?;
    client.turn(Script::Tools { rounds: 5, tool, done: 0 }).await?;
    ground.gaps().await?;
    client.turn(Script::Tools { rounds: TOOL_ROUNDS, tool, done: 0 }).await?;
    let mut gaps = ground.gaps().await?;
    arrived(gaps.len() as u64, TOOL_ROUNDS as u64)?;
    gaps.sort_unstable();
    let bound = match tool {
        Tool::Plain => Bound::TimesAtMost(1.75),
        Tool::Sandboxed => Bound::None,
    };
    figures.put(side, name, ("call to next request, p50", "ms"), bound, at_ms(&gaps, 0.5));
    figures.put(side, name, ("p99", "ms"), Bound::None, at_ms(&gaps, 0.99));
    Ok(())
}
