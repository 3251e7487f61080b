//! One session: starting, the first text, a burst, a turn with tools.

use std::io;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::figures::{Bound, Figures, Side};
use super::ground::Ground;
use super::{SIDES, arrived, at_ms};
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

/// Asks the model without anything between: what is above that was added.
pub struct Direct {
    model: Reader<TcpStream>,
    request: String,
    times: Vec<u64>,
}

impl Direct {
    pub async fn new(ground: &Ground) -> io::Result<Direct> {
        let stream = TcpStream::connect(ground.model.address).await?;
        stream.set_nodelay(true)?;
        let content = Script::stream(1, CHUNK_BYTES, 0).text();
        let body = json!({"model": "load", "messages": [{"role": "user", "content": content}]});
        let body = body.to_string();
        let length = body.len();
        let request = format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}");
        let mut direct = Direct { model: Reader::new(stream), request, times: Vec::new() };
        for _ in 0..WARM_TURNS {
            direct.first_text_ns().await?;
        }
        Ok(direct)
    }

    async fn first_text_ns(&mut self) -> io::Result<u64> {
        let sent = now_ns();
        self.model.stream_mut().write_all(self.request.as_bytes()).await?;
        self.model.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let first = self.model.chunk().await?;
        let arrived = now_ns();
        if !first.starts_with(b"data: ") {
            return Err(io::Error::other("the model's first chunk is no event"));
        }
        while !self.model.chunk().await?.is_empty() {}
        Ok(arrived - sent)
    }

    /// As many as of a session.
    async fn turns(&mut self) -> io::Result<()> {
        for _ in 0..FIRST_TURNS {
            tokio::time::sleep(PAUSE).await;
            let took = self.first_text_ns().await?;
            self.times.push(took);
        }
        Ok(())
    }

    pub async fn all_turns(mut self) -> io::Result<f64> {
        for _ in 0..FIRST_SESSIONS {
            self.turns().await?;
        }
        Ok(self.half_ms())
    }

    fn half_ms(mut self) -> f64 {
        self.times.sort_unstable();
        let half = at_ms(&self.times, 0.5);
        println!("direct   first text: p50 {half:.3} ms");
        half
    }
}

/// Both sides and the model alone in turn, session by session: the machine is of one mood for all.
pub async fn first_text(ground: &Ground, figures: &mut Figures) -> io::Result<()> {
    let mut direct = Direct::new(ground).await?;
    let (floor, polyloop) = (ground.start(Side::Floor).await?, ground.start(Side::Polyloop).await?);
    let mut sides = [(floor, Firsts::default()), (polyloop, Firsts::default())];
    for session in 0..FIRST_SESSIONS {
        direct.turns().await?;
        for (process, firsts) in &mut sides {
            firsts.session(process, session).await?;
        }
    }
    let direct_ms = direct.half_ms();
    for (side, (_, firsts)) in SIDES.into_iter().zip(sides) {
        let first = firsts.all();
        let bound = Bound::TimesAtMost;
        figures.put(side, "first text", ("p50", "ms"), bound(2.0), first.half_ms);
        figures.put(side, "first text", ("p99", "ms"), bound(3.0), first.most_ms);
        let (above, bound) = (first.half_ms - direct_ms, Bound::FloorAtMost(FLOOR_ADDS_MS_MAX));
        figures.put(side, "first text", ("p50 above the model alone", "ms"), bound, above);
        figures.put(side, "first text", ("CPU a turn", "µs"), Bound::None, first.cpu_us);
    }
    Ok(())
}

/// The same where no disk is waited for: what is left is the server's own.
pub async fn first_text_in_memory(ground: &Ground, figures: &mut Figures) -> io::Result<()> {
    let Some(floor) = ground.start_in_memory(Side::Floor).await? else { return Ok(()) };
    let Some(polyloop) = ground.start_in_memory(Side::Polyloop).await? else { return Ok(()) };
    let mut sides = [(floor, Firsts::default()), (polyloop, Firsts::default())];
    for session in 0..FIRST_SESSIONS {
        for (memory, firsts) in &mut sides {
            firsts.session(&memory.process, session).await?;
        }
    }
    for (side, (_, firsts)) in SIDES.into_iter().zip(sides) {
        let (first, name) = (firsts.all(), "first text, log in memory");
        figures.put(side, name, ("p50", "ms"), Bound::None, first.half_ms);
        figures.put(side, name, ("p99", "ms"), Bound::None, first.most_ms);
    }
    Ok(())
}

/// How many turns all of it takes, with those that do not count.
pub const FIRST_TURNS_ALL: usize = FIRST_SESSIONS * (WARM_TURNS + FIRST_TURNS);

pub struct FirstTexts {
    pub half_ms: f64,
    pub most_ms: f64,
    pub cpu_us: f64,
}

/// How long first texts took so far, and what processor time.
#[derive(Default)]
struct Firsts {
    times: Vec<u64>,
    cpu_us: f64,
}

impl Firsts {
    /// A session grows, and what it said before is asked again with every turn; `growth` is about
    /// that.
    async fn session(&mut self, process: &Process, session: usize) -> io::Result<()> {
        let script = Script::stream(1, CHUNK_BYTES, 0);
        let mut client = Client::connect(process.address, &format!("s{session}")).await?;
        for _ in 0..WARM_TURNS {
            client.turn(script).await?;
        }
        let before = process.cpu()?;
        for _ in 0..FIRST_TURNS {
            tokio::time::sleep(PAUSE).await;
            self.times.push(client.turn(script).await?.first_text_ns());
        }
        self.cpu_us += before.since_us()?;
        Ok(())
    }

    fn all(mut self) -> FirstTexts {
        let cpu_us = self.cpu_us / self.times.len() as f64;
        self.times.sort_unstable();
        let [half_ms, most_ms] = [0.5, 0.99].map(|part| at_ms(&self.times, part));
        FirstTexts { half_ms, most_ms, cpu_us }
    }
}

pub async fn first_texts(process: &Process) -> io::Result<FirstTexts> {
    let mut firsts = Firsts::default();
    for session in 0..FIRST_SESSIONS {
        firsts.session(process, session).await?;
    }
    Ok(firsts.all())
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
