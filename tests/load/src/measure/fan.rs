//! One session that many watch, in one dialect or in all four, beside a bare write of the same
//! frames to as many.
//!
//! What a further watcher costs is what all of them cost above one, for each frame that they get.

use std::io;
use std::time::Duration;

use futures_util::future::try_join_all;

use super::figures::{Bound, Figures, Side};
use super::ground::Ground;
use super::{arrived, at_ms};
use crate::bare::{Kind, Plan};
use crate::client::{Client, Turn};
use crate::clock::now_ns;
use crate::dialect::{self, Dialect};
use crate::proc::Process;
use crate::script::Script;

const EVERY_US: u64 = 20_000;
const CHUNKS: u64 = 150;
const CHUNK_BYTES: usize = 32;
const WATCHERS: [usize; 3] = [10, 100, 500];
/// With fewer, what they cost is less than what the rest of a turn varies.
const BOUND_WATCHERS_MIN: usize = 100;
const BARE_TIMES_MAX: f64 = 1.3;
const SETTLE: Duration = Duration::from_millis(300);
const SESSION: &str = "watched";

/// What watchers got, and what it took.
struct Watched {
    frames: u64,
    cpu_us: f64,
}

impl Watched {
    fn further_us(&self, one: &Watched) -> f64 {
        (self.cpu_us - one.cpu_us) / (self.frames.saturating_sub(one.frames)).max(1) as f64
    }
}

/// Who watches: how many, in which dialect.
type Audience = Vec<(Dialect, usize)>;

pub async fn fan_out(ground: &Ground, figures: &mut Figures) -> io::Result<()> {
    let one = vec![(Dialect::Unified, 1)];
    let (one_of_ours, one_bare) = both(ground, "fan-out, 1 watcher", &one, figures).await?;
    for watchers in WATCHERS {
        let all = vec![(Dialect::Unified, watchers)];
        let quarter = watchers / dialect::ALL.len();
        let mixed: Audience = dialect::ALL.map(|dialect| (dialect, quarter)).into();
        for (audience, how) in [(all, ""), (mixed, " of all dialects")] {
            if how.is_empty() || watchers >= BOUND_WATCHERS_MIN {
                let name = format!("fan-out, {watchers} watchers{how}");
                let (ours, bare) = both(ground, &name, &audience, figures).await?;
                let bound = match watchers >= BOUND_WATCHERS_MIN {
                    true => Bound::TimesAtMost(BARE_TIMES_MAX),
                    false => Bound::None,
                };
                let what = ("CPU a frame for each further watcher", "µs");
                let (bare, ours) = (bare.further_us(&one_bare), ours.further_us(&one_of_ours));
                figures.put(Side::Floor, &name, what, bound, bare);
                figures.put(Side::Polyloop, &name, what, bound, ours);
            }
        }
    }
    Ok(())
}

/// The server first: what it wrote is what the bare write then writes.
async fn both(
    ground: &Ground,
    name: &str,
    audience: &Audience,
    figures: &mut Figures,
) -> io::Result<(Watched, Watched)> {
    let process = ground.start(Side::Polyloop).await?;
    let script = Script::stream(CHUNKS, CHUNK_BYTES, EVERY_US);
    let mut clients = connect(&process, audience).await?;
    let (before, [loading, _], began) = (process.cpu()?, ground.own_cpu()?, now_ns());
    clients.first_mut().ok_or_else(nobody)?.say(script).await?;
    let turns = try_join_all(clients.iter_mut().map(|client| client.see(script))).await?;
    let took_us = (now_ns() - began) as f64 / 1e3;
    let (ours, loading) = (before.since_us()?, loading.since_us()?);
    let ours = Watched { frames: frames(&turns), cpu_us: ours };
    drop(process);
    let mut lags: Vec<u64> =
        turns.iter().flat_map(|turn| &turn.lags).map(|(_, lag)| *lag).collect();
    lags.sort_unstable();
    if audience.len() == 1 {
        figures.put(Side::Polyloop, name, ("lag p99", "ms"), Bound::None, at_ms(&lags, 0.99));
        let busy = 100.0 * loading / took_us;
        figures.put(Side::Polyloop, name, ("the clients", "% of a core"), Bound::None, busy);
    }
    let mut turns = turns.into_iter();
    let kinds = audience.iter().filter_map(|(_, watchers)| {
        let frames = turns.nth(watchers - 1)?.frames;
        Some(Kind { watchers: *watchers, frames })
    });
    let plan = Plan { every_us: EVERY_US, kinds: kinds.collect() };
    Ok((ours, bare(ground, audience, &plan).await?))
}

async fn bare(ground: &Ground, audience: &Audience, plan: &Plan) -> io::Result<Watched> {
    let process = ground.start_bare(plan)?;
    let mut clients = connect(&process, audience).await?;
    let lengths = plan.kinds.iter().flat_map(|kind| vec![&kind.frames; kind.watchers]);
    let before = process.cpu()?;
    clients.first_mut().ok_or_else(nobody)?.say(Script::stream(1, 1, 0)).await?;
    let read = clients.iter_mut().zip(lengths).map(|(client, lengths)| async move {
        for length in lengths {
            arrived(client.frame().await?.len() as u64, *length as u64)?;
        }
        io::Result::Ok(lengths.len() as u64)
    });
    let frames = try_join_all(read).await?.iter().sum();
    Ok(Watched { frames, cpu_us: before.since_us()? })
}

async fn connect(process: &Process, audience: &Audience) -> io::Result<Vec<Client>> {
    let mut clients = Vec::new();
    for (dialect, watchers) in audience {
        for _ in 0..*watchers {
            clients.push(Client::watch(process.address, *dialect, SESSION, None).await?);
        }
    }
    // Whoever comes is greeted before the time is taken.
    tokio::time::sleep(SETTLE).await;
    Ok(clients)
}

fn frames(turns: &[Turn]) -> u64 {
    turns.iter().map(|turn| turn.frames.len() as u64).sum()
}

fn nobody() -> io::Error {
    io::Error::other("nobody watches")
}
