//! Clients that never read, in sessions that say much: what they cost the server's memory, whether
//! others notice, and whether each has everything once it comes back.
//!
//! Others are measured three times under the same load: before, while nobody reads too slowly;
//! during; and after. How far before and after differ is the noise. The sessions that are watched
//! speak before, too: what they take by themselves is no client's.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use futures_util::future::{try_join, try_join_all};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::at_ms;
use super::figures::{Bound, Figures, Side};
use super::ground::Ground;
use crate::client::{self, Client};
use crate::clock::now_ns;
use crate::dialect::Dialect;
use crate::proc::Process;
use crate::script::Script;

const SESSIONS: usize = 20;
/// 50 × 256 × 4,096 bytes × 20 sessions: a little more than 1 GB. One answer fills a model's window,
/// so each session sums itself up as it goes and holds little: what memory grows by is queued.
const TURNS: u64 = 50;
const CHUNKS: u64 = 256;
const CHUNK_BYTES: usize = 4_096;
const EVERY_US: u64 = 2_000;
/// Turns of the same size, while others are measured without slow readers.
const QUIET_TURNS: u64 = 12;
/// What a client's kernel takes for it.
const RECEIVE_BYTES: u32 = 4_096;
/// What the server queues for a client at most (QUEUED_BYTES_MAX in the agent's queue.rs). Those who
/// watch a session share its frames where they stopped at the same place; nothing ensures that they
/// do, so each is counted whole.
const QUEUED_MB_MAX: f64 = 1.049;
/// What was put together for its socket and not taken (TOGETHER_BYTES_MAX in the server's outlet.rs),
/// with the frame that made it enough.
const TOGETHER_MB_MAX: f64 = 0.037;
/// What the sessions themselves take above `before`, with more turns: 12 to 16 MB were seen with
/// `--never-read 0`.
const SESSIONS_MB_MAX: f64 = 20.0;
/// How much others' p99 may be above the worse of before and after.
const OTHERS_TIMES_MAX: f64 = 1.25;
/// Others: so many, 50 chunks a second each.
const OTHERS: usize = 20;
const OTHERS_EVERY_US: u64 = 20_000;
const OTHERS_CHUNK_BYTES: usize = 32;
/// What arrives while they begin is not counted.
const UNCOUNTED: Duration = Duration::from_secs(1);
const MEMORY_EVERY: Duration = Duration::from_millis(50);
/// How many come back at the same time.
const BACK_TOGETHER: usize = 10;
/// Connections that one may need to have everything.
const CONNECTIONS_MAX: usize = 5;

/// What the kernel holds for a connection is not the process's memory. What catching up holds is not
/// counted either: that begins when a client takes something again, and these take nothing.
fn memory_mb_max(clients: usize) -> f64 {
    let all = SESSIONS_MB_MAX + clients as f64 * (QUEUED_MB_MAX + TOGETHER_MB_MAX);
    all.round()
}

pub async fn slow(ground: &Ground, never_read: usize, figures: &mut Figures) -> io::Result<()> {
    let scenario = format!("{never_read} that never read");
    let mut put = |what: &'static str, unit: &'static str, bound: Bound, value: f64| {
        figures.put(Side::Polyloop, &scenario, (what, unit), bound, value);
    };
    let process = ground.start(Side::Polyloop).await?;
    let work = produce(ground, &process, "b", QUIET_TURNS);
    let before = together(&process, QUIET_TURNS, work).await?;
    let mut slow = Vec::with_capacity(never_read);
    for at in 0..never_read {
        let session = format!("b{}", at % SESSIONS);
        slow.push((Client::narrow(process.address, &session, RECEIVE_BYTES).await?, session));
    }
    let work = produce(ground, &process, "b", TURNS);
    let during = together(&process, TURNS, work).await?;
    let work = produce(ground, &process, "c", QUIET_TURNS);
    let after = together(&process, QUIET_TURNS, work).await?;
    let bytes = TURNS * CHUNKS * (SESSIONS * CHUNK_BYTES) as u64;
    put("produced", "MB", Bound::None, bytes as f64 / 1e6);
    put("memory at most", "MB", Bound::None, during.memory_most as f64 / 1e6);
    let more = during.memory_most.saturating_sub(before.memory_most) as f64 / 1e6;
    let bound = Bound::AtMost(memory_mb_max(never_read));
    put("memory above that without them", "MB", bound, more);
    let (before, during, after) = (before.others_p99_ms, during.others_p99_ms, after.others_p99_ms);
    put("others' lag p99, before", "ms", Bound::None, before);
    put("others' lag p99, during", "ms", Bound::None, during);
    put("others' lag p99, after", "ms", Bound::None, after);
    let times = during / before.max(after);
    put("during, to the worse of both", "×", Bound::AtMost(OTHERS_TIMES_MAX), times);
    let began = now_ns();
    let back = stream::iter(slow)
        .map(|(client, session)| come_back(&process, client, session))
        .buffer_unordered(BACK_TOGETHER);
    let back: Vec<Back> = back.try_collect().await?;
    put("all have come back after", "s", Bound::None, (now_ns() - began) as f64 / 1e9);
    let count = |is: fn(&Back) -> bool| back.iter().filter(|back| is(back)).count() as f64;
    put("were cut off", "", Bound::None, count(|back| back.cut_off));
    put("were told why", "", Bound::None, count(|back| back.told_why));
    Ok(())
}

/// What is seen while something is produced.
struct Seen {
    others_p99_ms: f64,
    memory_most: u64,
}

/// Others talk as long as it takes to produce so many turns of each session.
async fn together(
    process: &Process,
    turns: u64,
    produced: impl Future<Output = io::Result<()>>,
) -> io::Result<Seen> {
    // New connections each time: who does not look does not answer pings either.
    let mut others = Vec::with_capacity(OTHERS);
    for at in 0..OTHERS {
        others.push(Client::connect(process.address, &format!("other{at}")).await?);
    }
    let from = now_ns() + UNCOUNTED.as_nanos() as u64;
    let chunks = turns * CHUNKS * EVERY_US / OTHERS_EVERY_US;
    let script = Script::stream(chunks, OTHERS_CHUNK_BYTES, OTHERS_EVERY_US);
    let talk = others.iter_mut().enumerate().map(|(at, other)| async move {
        // Not all at once.
        tokio::time::sleep(Duration::from_millis(at as u64)).await;
        other.turn(script).await.map_err(|error| lost(other, error))
    });
    let ended = Cell::new(false);
    let all = async {
        let done = try_join(produced, try_join_all(talk)).await;
        ended.set(true);
        done
    };
    let look = async {
        let (mut most, mut every) = (0, tokio::time::interval(MEMORY_EVERY));
        while !ended.get() {
            every.tick().await;
            most = most.max(process.memory()?);
        }
        io::Result::Ok(most)
    };
    let (((), turns), memory_most) = try_join(all, look).await?;
    let lags = turns.into_iter().flat_map(|turn| turn.lags);
    let mut lags: Vec<u64> = lags.filter(|(sent, _)| *sent > from).map(|(_, lag)| lag).collect();
    lags.sort_unstable();
    Ok(Seen { others_p99_ms: at_ms(&lags, 0.99), memory_most })
}

/// So many turns in each session, whose speaker reads and compares all of it.
async fn produce(ground: &Ground, process: &Process, name: &str, turns: u64) -> io::Result<()> {
    let speak = (0..SESSIONS).map(|at| async move {
        let mut speaker = Client::connect(process.address, &format!("{name}{at}")).await?;
        for _ in 0..turns {
            let number = ground.next_number();
            let (bytes, every_us) = (CHUNK_BYTES, EVERY_US);
            let script = Script::Stream { chunks: CHUNKS, bytes, every_us, number };
            speaker.turn(script).await.map_err(|error| lost(&speaker, error))?;
        }
        io::Result::Ok(())
    });
    try_join_all(speak).await.map(drop)
}

/// One that reads must keep its connection; if this process cannot keep up, nothing is measured.
fn lost(client: &Client, error: io::Error) -> io::Error {
    let why = client.told_why.as_deref().unwrap_or("no reason given");
    io::Error::other(format!("one that reads lost its connection ({why}): {error}"))
}

/// How one that never read came to have everything.
struct Back {
    cut_off: bool,
    told_why: bool,
}

/// Reads what is left of its connection, then comes back where that ended, and has every piece of
/// every turn once, in order.
async fn come_back(process: &Process, mut client: Client, session: String) -> io::Result<Back> {
    let mut pieces = Script::stream(CHUNKS, CHUNK_BYTES, EVERY_US).pieces();
    let (mut place, mut back) = (None, Back { cut_off: false, told_why: false });
    for _ in 0..CONNECTIONS_MAX {
        if let Some(last) = client.read_on(&mut pieces, TURNS).await? {
            place = Some(client::place(&last)?);
        }
        if pieces.are_all(TURNS).is_ok() {
            return Ok(back);
        }
        back.cut_off = true;
        back.told_why |= client.told_why.is_some();
        let since = place.as_deref().unwrap_or("0");
        client = Client::watch(process.address, Dialect::Unified, &session, Some(since)).await?;
    }
    pieces.are_all(TURNS).map(|()| back)
}
