//! Many at once: sessions that all stream, and connections that do nothing.

use std::io;
use std::time::Duration;

use futures_util::future::join_all;

use super::at_ms;
use super::figures::{Bound, Figures, Side};
use super::ground::Ground;
use super::one::CHUNK_BYTES;
use crate::client::Client;
use crate::clock::now_ns;
use crate::proc::{Cpu, Process};
use crate::script::Script;

const EVERY_US: u64 = 20_000;
const SECONDS: u64 = 6;
const CHUNKS: u64 = SECONDS * 1_000_000 / EVERY_US;
/// All begin within so long, not at once.
const SPREAD: Duration = Duration::from_secs(1);
/// What arrives while they begin is not counted as lag.
const UNCOUNTED: Duration = Duration::from_millis(1500);
const LAG_MAX_MS: f64 = 100.0;
/// Memory that a session may take above the floor's.
const SESSION_KB_MAX: f64 = 65.5;
const IDLE_KB_MAX: f64 = 16.4;
/// Capacity is found to this part of itself.
const CAPACITY_STEP: f64 = 0.05;
const CAPACITY_MAX: usize = 3000;
/// A floor that takes more is none; looked at with so many sessions.
pub const FLOOR_CHUNK_US_MAX: f64 = 15.0;
pub const FLOOR_SESSIONS: usize = 100;

pub struct Crowd {
    /// All that were sent: with fewer there is no crowd, but an error.
    pub chunks: u64,
    pub lag_p50_ms: f64,
    pub lag_p99_ms: f64,
    pub cpu_us: f64,
    pub session_kb: f64,
    /// How busy those were who load, of one core each.
    pub clients_percent: f64,
    pub model_percent: f64,
}

impl Crowd {
    fn holds(&self) -> bool {
        self.lag_p99_ms < LAG_MAX_MS
    }
}

/// The memory of one that has had a turn: what the first one costs (tables, certificates, a pool) is
/// no session's own.
async fn used_once(process: &Process) -> io::Result<u64> {
    let mut client = Client::connect(process.address, "warm").await?;
    client.turn(Script::stream(1, CHUNK_BYTES, 0)).await?;
    process.memory()
}

/// At a server that runs already. An error where a turn of any session did not arrive whole.
pub async fn crowd_at(ground: &Ground, process: &Process, sessions: usize) -> io::Result<Crowd> {
    let empty = used_once(process).await?;
    let mut clients = Vec::with_capacity(sessions);
    for at in 0..sessions {
        clients.push(Client::connect(process.address, &format!("s{at}")).await?);
    }
    let (before, loading, began) = (process.cpu()?, ground.own_cpu()?, now_ns());
    let script = Script::stream(CHUNKS, CHUNK_BYTES, EVERY_US);
    let turns = clients.iter_mut().enumerate().map(|(at, client)| async move {
        tokio::time::sleep(SPREAD.mul_f64(at as f64 / sessions as f64)).await;
        client.turn(script).await
    });
    let memory = async {
        tokio::time::sleep(Duration::from_secs(SECONDS - 1)).await;
        process.memory()
    };
    let (turns, memory) = tokio::join!(join_all(turns), memory);
    let took_us = (now_ns() - began) as f64 / 1e3;
    let cpu = before.since_us()?;
    let busy = |cpu: &Cpu| io::Result::Ok(100.0 * cpu.since_us()? / took_us);
    let (clients_percent, model_percent) = (busy(&loading[0])?, busy(&loading[1])?);
    let turns = all_whole(turns)?;
    let memory = memory?.saturating_sub(empty);
    let chunks: u64 = turns.iter().map(|turn| turn.chunks).sum();
    let counted_from = began + UNCOUNTED.as_nanos() as u64;
    let lags = turns.iter().flat_map(|turn| &turn.lags);
    let mut lags: Vec<u64> =
        lags.filter(|(sent, _)| *sent > counted_from).map(|(_, lag)| *lag).collect();
    lags.sort_unstable();
    Ok(Crowd {
        chunks,
        lag_p50_ms: at_ms(&lags, 0.5),
        lag_p99_ms: at_ms(&lags, 0.99),
        cpu_us: cpu / chunks as f64,
        session_kb: memory as f64 / sessions as f64 / 1e3,
        clients_percent,
        model_percent,
    })
}

/// What the sessions came to if all ended well; otherwise how many did not, and why the first.
fn all_whole<T>(turns: Vec<io::Result<T>>) -> io::Result<Vec<T>> {
    let sessions = turns.len();
    let failed = turns.iter().filter(|turn| turn.is_err()).count();
    turns.into_iter().collect::<io::Result<_>>().map_err(|why| {
        io::Error::other(format!("{failed} of {sessions} sessions did not end well: {why}"))
    })
}

pub async fn curve(
    ground: &Ground,
    side: Side,
    sessions: usize,
    figures: &mut Figures,
) -> io::Result<()> {
    let process = ground.start(side).await?;
    let found = crowd_at(ground, &process, sessions).await?;
    let name = format!("{sessions} sessions");
    figures.put(side, &name, ("lag p50", "ms"), Bound::None, found.lag_p50_ms);
    figures.put(side, &name, ("lag p99", "ms"), Bound::None, found.lag_p99_ms);
    if sessions == FLOOR_SESSIONS {
        let bound = Bound::FloorAtMost(FLOOR_CHUNK_US_MAX);
        figures.put(side, &name, ("CPU a chunk, for the floor", "µs"), bound, found.cpu_us);
    }
    // Where either side is overrun, processor time and memory say little.
    let (cpu, memory) = match sessions {
        100..=500 => (Bound::TimesAtMost(2.0), Bound::AboveAtMost(SESSION_KB_MAX)),
        _ => (Bound::None, Bound::None),
    };
    figures.put(side, &name, ("CPU a chunk", "µs"), cpu, found.cpu_us);
    figures.put(side, &name, ("memory a session", "kB"), memory, found.session_kb);
    let of_a_core = "% of a core";
    figures.put(side, &name, ("the clients", of_a_core), Bound::None, found.clients_percent);
    figures.put(side, &name, ("the model", of_a_core), Bound::None, found.model_percent);
    Ok(())
}

/// The most sessions that this side holds.
pub async fn capacity(ground: &Ground, side: Side, figures: &mut Figures) -> io::Result<()> {
    let (mut held, mut too_many) = (0, CAPACITY_MAX);
    while (too_many - held) as f64 > CAPACITY_STEP * too_many as f64 {
        let tried = (held + too_many) / 2;
        let process = ground.start(side).await?;
        // The only place where something may be lost: too many is what is looked for.
        let holds = crowd_at(ground, &process, tried).await.map(|found| found.holds());
        if let Err(why) = &holds {
            println!("{:8} capacity: {tried} sessions are too many: {why}", side.name());
        }
        match holds.unwrap_or(false) {
            true => held = tried,
            false => too_many = tried,
        }
    }
    if held == 0 {
        return Err(io::Error::other(format!("{} holds not even {too_many}", side.name())));
    }
    figures.put(side, "capacity", ("sessions", ""), Bound::TimesAtLeast(0.6), held as f64);
    Ok(())
}

pub async fn idle(
    ground: &Ground,
    side: Side,
    connections: usize,
    figures: &mut Figures,
) -> io::Result<()> {
    let process = ground.start(side).await?;
    let empty = used_once(&process).await?;
    let mut clients = Vec::with_capacity(connections);
    for _ in 0..connections {
        // All look at one session: what is measured is a connection.
        clients.push(Client::connect(process.address, "idle").await?);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let each = process.memory()?.saturating_sub(empty) as f64 / connections as f64 / 1e3;
    let name = format!("{connections} idle connections");
    figures.put(side, &name, ("memory each", "kB"), Bound::AboveAtMost(IDLE_KB_MAX), each);
    // One that was dropped meanwhile would cost nothing: all of them must see a turn.
    let script = Script::stream(1, CHUNK_BYTES, 0);
    clients.first_mut().ok_or_else(|| io::Error::other("nobody is idle"))?.say(script).await?;
    all_whole(join_all(clients.iter_mut().map(|client| client.see(script))).await)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_lost_something_is_not_left_out() {
        assert_eq!(all_whole(vec![Ok(1), Ok(2)]).unwrap(), [1, 2]);
        let lost = || Err(io::Error::other("299 of 300 pieces arrived"));
        let why = all_whole(vec![Ok(1), lost(), Ok(3), lost()]).unwrap_err().to_string();
        assert_eq!(why, "2 of 4 sessions did not end well: 299 of 300 pieces arrived");
    }
}
