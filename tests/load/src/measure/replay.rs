//! A long session is replayed to one who comes: the server reads and encodes it, the floor sends
//! the very same frames from its log, a line each.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::arrived;
use super::figures::{Bound, Figures, Side};
use super::ground::{Ground, MADE};
use crate::client::Client;
use crate::clock::now_ns;
use crate::dialect::Dialect;
use crate::proc::Process;

const EVENTS: u64 = 100_000;
/// What its tools printed, all together.
const PRINTED_BYTES: u64 = 10_000_000;
const SCENARIO: &str = "replay of 100,000 events";

/// A replay as it must be.
pub struct Replay {
    store: PathBuf,
    log: PathBuf,
    frames: u64,
    sum: u64,
    events: u64,
}

impl Replay {
    /// Makes the session, takes its replay down for the floor, and looks whether it is in order.
    pub async fn new(ground: &Ground) -> io::Result<Replay> {
        let store = ground.made(EVENTS, PRINTED_BYTES)?;
        let process = ground.start_from(&store).await?;
        let log = ground.file("replay.jsonl");
        let mut out = BufWriter::new(std::fs::File::create(&log)?);
        let mut client = attach(&process).await?;
        // Answered after the replay.
        client.send(&json!({"type": "get_context", "session_id": MADE})).await?;
        let (mut frames, mut last, mut sum) = (0, 0, DefaultHasher::new());
        loop {
            let frame = client.frame().await?;
            let told = serde_json::from_slice::<Value>(&frame).map_err(io::Error::other)?;
            if told["type"] == "context_info" {
                break;
            }
            let seq = told["seq"].as_u64().unwrap_or(0);
            if seq < last {
                return Err(io::Error::other(format!("{seq} was replayed after {last}")));
            }
            last = seq;
            frames += 1;
            sum.write(&frame);
            out.write_all(&frame)?;
            out.write_all(b"\n")?;
        }
        if last + EVENTS / 100 < EVENTS {
            return Err(io::Error::other(format!("the replay ended with event {last}")));
        }
        out.flush()?;
        println!("-- its replay has {frames} frames, up to event {last}");
        Ok(Replay { store, log, frames, sum: sum.finish(), events: last })
    }

    pub async fn run(&self, ground: &Ground, side: Side, figures: &mut Figures) -> io::Result<()> {
        let process = match side {
            Side::Floor => ground.start_floor_from(&self.log).await?,
            Side::Polyloop => ground.start_from(&self.store).await?,
        };
        let (before, began) = (process.cpu()?, now_ns());
        let mut client = attach(&process).await?;
        let mut sum = DefaultHasher::new();
        for _ in 0..self.frames {
            sum.write(&client.frame().await?);
        }
        let took = (now_ns() - began) as f64 / 1e3;
        let cpu = before.since_us()?;
        // Every byte of it, in its order.
        arrived(sum.finish(), self.sum)?;
        let events = self.events as f64;
        figures.put(side, SCENARIO, ("time an event", "µs"), Bound::None, took / events);
        figures.put(side, SCENARIO, ("CPU an event", "µs"), Bound::None, cpu / events);
        let memory = process.memory()? as f64 / 1e6;
        figures.put(side, SCENARIO, ("memory after it", "MB"), Bound::None, memory);
        Ok(())
    }
}

async fn attach(process: &Process) -> io::Result<Client> {
    Client::watch(process.address, Dialect::Unified, MADE, Some("0")).await
}
