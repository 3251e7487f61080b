//! What a session costs when it is ten and a hundred times as long. What its model is sent stays
//! the same: the sessions are made so that each ends with a summary of all before.

use std::io;

use serde_json::json;

use super::at_ms;
use super::figures::{Bound, Figures, Side};
use super::ground::{Ground, MADE, get};
use super::report::HISTORIES;
use crate::client::Client;
use crate::clock::now_ns;
use crate::script::Script;

/// The maker's rounds of turns, each of which ends with a summary.
const ROUNDS: [u64; 3] = [4, 40, 400];
/// Events of a round, after the session's first.
const ROUND_EVENTS: u64 = 267;
const EVENT_BYTES: u64 = 100;
const TIMES: usize = 20;
const WARM_TURNS: usize = 5;
const TURNS: usize = 60;
const CHUNK_BYTES: usize = 32;

pub async fn growth(ground: &Ground, figures: &mut Figures) -> io::Result<()> {
    for (rounds, name) in ROUNDS.into_iter().zip(HISTORIES) {
        history(ground, name, 1 + rounds * ROUND_EVENTS, figures).await?;
    }
    Ok(())
}

async fn history(
    ground: &Ground,
    name: &'static str,
    events: u64,
    figures: &mut Figures,
) -> io::Result<()> {
    let process = ground.start_from(&ground.made(events, events * EVENT_BYTES)?).await?;
    let address = process.address;
    let mut put = |what: &'static str, unit: &'static str, value: f64| {
        figures.put(Side::Polyloop, name, (what, unit), Bound::None, value);
    };
    put("events", "", events as f64);
    let list = times(TIMES, async || get(address, "/sessions").await.map(drop)).await?;
    put("list, p50", "ms", list);
    put("open and attach", "ms", times(1, async || attach(address).await.map(drop)).await?);
    put(
        "attach once more, p50",
        "ms",
        times(TIMES, async || attach(address).await.map(drop)).await?,
    );
    let mut client = attach(address).await?;
    // The maker's sessions have a model of their own.
    client.send(&json!({"type": "set_model", "session_id": MADE, "model": "load"})).await?;
    let script = Script::stream(1, CHUNK_BYTES, 0);
    for _ in 0..WARM_TURNS {
        client.turn(script).await?;
    }
    let (before, mut first) = (process.cpu()?, Vec::with_capacity(TURNS));
    for _ in 0..TURNS {
        first.push(client.turn(script).await?.first_text_ns());
    }
    put("CPU a turn", "µs", before.since_us()? / TURNS as f64);
    first.sort_unstable();
    put("first text, p50", "ms", at_ms(&first, 0.5));
    put("memory in use", "MB", process.memory()? as f64 / 1e6);
    Ok(())
}

/// Until the server has answered a question about the session.
async fn attach(address: std::net::SocketAddr) -> io::Result<Client> {
    let mut client = Client::connect(address, MADE).await?;
    client.send(&json!({"type": "get_context", "session_id": MADE})).await?;
    client.until("\"context_info\"").await?;
    Ok(client)
}

/// The middle of so many, in milliseconds.
async fn times(count: usize, work: impl AsyncFn() -> io::Result<()>) -> io::Result<f64> {
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let began = now_ns();
        work().await?;
        all.push(now_ns() - began);
    }
    all.sort_unstable();
    Ok(at_ms(&all, 0.5))
}
