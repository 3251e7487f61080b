//! What it costs to keep sessions on NATS: the same turns beside the floor, on the embedded store, on
//! one NATS server and on three, in one run. What the server takes and what NATS takes are told apart.

use std::io;
use std::path::Path;

use super::crowd::{self, FLOOR_CHUNK_US_MAX, FLOOR_SESSIONS};
use super::figures::{Bound, Figures, Side};
use super::ground::Ground;
use super::nats::{self, Nats, Taken};
use super::one::{self, Direct, FIRST_TURNS_ALL, FLOOR_ADDS_MS_MAX};
use crate::proc::Process;

/// Their figures stand beside one another in a table of their own.
pub const STORES: [&str; 4] = ["floor", "embedded store", "one NATS server", "three NATS servers"];
/// What a server says that cannot do it.
const WITHOUT: &str = "built without NATS";
const SESSIONS: usize = FLOOR_SESSIONS;

/// One of them while it is measured.
struct Store<'a> {
    name: &'static str,
    side: Side,
    nats: Option<&'a Nats>,
}

pub async fn stores(ground: &Ground, figures: &mut Figures) -> io::Result<()> {
    let Some(program) = nats::program() else {
        println!("-- store: left out, there is no nats-server; NATS_SERVER names one");
        return Ok(());
    };
    let direct_ms = Direct::new(ground).await?.all_turns().await?;
    let [floor, embedded, one, three] = STORES;
    for (name, servers) in [(one, 1), (three, 3)] {
        if !on_nats(ground, &program, (name, servers), figures).await? {
            println!("-- store: left out, the server was {WITHOUT}; build it with --features nats");
            return Ok(());
        }
    }
    for (name, side) in [(floor, Side::Floor), (embedded, Side::Polyloop)] {
        let store = Store { name, side, nats: None };
        let process = ground.start(side).await?;
        let half_ms = store.first(&process, figures).await?;
        if side == Side::Floor {
            let (what, bound) =
                ("p50 above the model alone", Bound::FloorAtMost(FLOOR_ADDS_MS_MAX));
            figures.put(side, name, (what, "ms"), bound, half_ms - direct_ms);
        }
        drop(process);
        store.crowd(ground, &ground.start(side).await?, figures).await?;
    }
    Ok(())
}

/// Whether the server can keep its sessions there.
async fn on_nats(
    ground: &Ground,
    program: &Path,
    (name, servers): (&'static str, usize),
    figures: &mut Figures,
) -> io::Result<bool> {
    let nats = Nats::start(program, &ground.empty("nats")?, servers).await?;
    let store = Store { name, side: Side::Polyloop, nats: Some(&nats) };
    let url = nats.url();
    // All it has is on NATS: no folder of sessions, and none of theirs beside it.
    let settings = [("STORE", &*url), ("SESSION_STORE_PATH", "")];
    let process = match ground.start_with(Side::Polyloop, &settings).await {
        Ok(process) => process,
        Err(error) => {
            let told = ground.errors(Side::Polyloop);
            return match told.contains(WITHOUT) {
                true => Ok(false),
                false => Err(io::Error::other(format!("{name}: {error}: {told}"))),
            };
        }
    };
    store.first(&process, figures).await?;
    store.crowd(ground, &process, figures).await?;
    Ok(true)
}

impl Store<'_> {
    /// Gives the time to the first text, the middle one.
    async fn first(&self, process: &Process, figures: &mut Figures) -> io::Result<f64> {
        let (cpu, before) = (self.cpu()?, self.taken().await?);
        let first = one::first_texts(process).await?;
        self.put(figures, ("first text, p50", "ms"), first.half_ms);
        self.put(figures, ("first text, p99", "ms"), first.most_ms);
        self.put(figures, ("CPU a turn, the server", "µs"), first.cpu_us);
        if self.nats.is_some() {
            let turns = FIRST_TURNS_ALL as f64;
            let after = self.taken().await?;
            self.put(figures, ("CPU a turn, NATS", "µs"), nats::used_us(&cpu)? / turns);
            let (messages, bytes) = (after.messages - before.messages, after.bytes - before.bytes);
            self.put(figures, ("messages stored a turn", ""), messages / turns);
            self.put(figures, ("bytes kept a turn", ""), bytes / turns);
        }
        Ok(first.half_ms)
    }

    /// Many sessions that stream at once.
    async fn crowd(
        &self,
        ground: &Ground,
        process: &Process,
        figures: &mut Figures,
    ) -> io::Result<()> {
        let (cpu, before) = (self.cpu()?, self.taken().await?);
        let found = crowd::crowd_at(ground, process, SESSIONS).await;
        let found = found.map_err(|error| io::Error::other(format!("{}: {error}", self.name)))?;
        let bound = match self.side {
            Side::Floor => Bound::FloorAtMost(FLOOR_CHUNK_US_MAX),
            Side::Polyloop => Bound::None,
        };
        let what = ("CPU a chunk, the server", "µs");
        figures.put(self.side, self.name, what, bound, found.cpu_us);
        if let Some(nats) = self.nats {
            let (chunks, after) = (found.chunks as f64, self.taken().await?);
            self.put(figures, ("CPU a chunk, NATS", "µs"), nats::used_us(&cpu)? / chunks);
            let messages = after.messages - before.messages;
            self.put(figures, ("messages stored a chunk", ""), messages / chunks);
            self.put(figures, ("memory, all of NATS", "MB"), nats.memory()? as f64 / 1e6);
        }
        self.put(figures, ("lag of a chunk, p50", "ms"), found.lag_p50_ms);
        self.put(figures, ("lag of a chunk, p99", "ms"), found.lag_p99_ms);
        self.put(figures, ("memory a session, the server", "kB"), found.session_kb);
        Ok(())
    }

    fn put(&self, figures: &mut Figures, what: (&'static str, &'static str), value: f64) {
        figures.put(self.side, self.name, what, Bound::None, value);
    }

    fn cpu(&self) -> io::Result<Vec<crate::proc::Cpu>> {
        self.nats.map_or(Ok(Vec::new()), Nats::cpu)
    }

    async fn taken(&self) -> io::Result<Taken> {
        match self.nats {
            Some(nats) => nats.taken().await,
            None => Ok(Taken::default()),
        }
    }
}
