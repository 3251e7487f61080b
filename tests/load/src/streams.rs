//! What a stream of NATS takes by itself: `load streams`, for the tables of sizes in docs/SCALE.md.
//!
//! Nothing of ours is measured here: one publisher keeps so many messages on their way and counts
//! those that NATS acknowledged.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use tokio::time::{sleep, timeout};

use self::wire::Wire;
use crate::measure::nats::{self, Nats};

mod wire;

const MESSAGE_BYTES: usize = 300;
const SUBJECTS: usize = 100;
const ON_THEIR_WAY: [usize; 3] = [1, 64, 1024];
const PUBLISHING_TIME: Duration = Duration::from_secs(1);
/// How long an answer is waited for, and how often it is asked for.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
const TRIES_MAX: usize = 10;
const TRY_EVERY: Duration = Duration::from_millis(500);
/// So many with one message each show what a subject takes.
const SUBJECTS_MANY: usize = 100_000;

#[derive(Args)]
pub struct Options {
    /// A folder for what the NATS servers keep
    #[arg(long)]
    work: PathBuf,
    /// How often each is measured
    #[arg(long, default_value_t = 3)]
    runs: usize,
}

struct Kind {
    name: &'static str,
    servers: usize,
}

const KINDS: [Kind; 2] =
    [Kind { name: "one NATS server", servers: 1 }, Kind { name: "three NATS servers", servers: 3 }];

pub async fn run(options: Options) -> io::Result<()> {
    let missing = || io::Error::other("there is no nats-server; NATS_SERVER names one");
    let program = nats::program().ok_or_else(missing)?;
    println!("| a stream's messages a second | one at a time | 64 on their way | 1024 |");
    println!("|---|---|---|---|");
    let mut costs = Vec::new();
    for kind in &KINDS {
        let mut rates = ON_THEIR_WAY.map(|_| Vec::new());
        let mut cpu = ON_THEIR_WAY.map(|_| Vec::new());
        for _ in 0..options.runs {
            let nats = started(&program, &options.work, kind.servers).await?;
            for (at, most) in ON_THEIR_WAY.into_iter().enumerate() {
                let (rate, cpu_us) = published(&nats, kind, most).await?;
                rates[at].push(rate);
                cpu[at].push(cpu_us);
            }
        }
        println!("| {} | {} |", kind.name, rates.map(|rates| told(rates, 0)).join(" | "));
        costs.push(format!("| {} | {} |", kind.name, cpu.map(|us| told(us, 1)).join(" | ")));
    }
    println!("\n| CPU a message, all NATS servers, µs | one at a time | 64 on their way | 1024 |");
    println!("|---|---|---|---|\n{}\n", costs.join("\n"));
    let mut bytes = Vec::new();
    for _ in 0..options.runs {
        bytes.push(subject_bytes(&program, &options.work).await?);
    }
    println!("memory of each of three NATS servers, a subject, bytes: {}", told(bytes, 0));
    Ok(())
}

async fn started(program: &Path, work: &Path, servers: usize) -> io::Result<Nats> {
    let folder = work.join("nats");
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Nats::start(program, &folder, servers).await,
    }
}

/// A stream of its own, as Polyloop has them.
async fn stream(nats: &Nats, servers: usize, name: &str) -> io::Result<Wire> {
    let config = json!({
        "name": name, "subjects": [format!("{name}.>")], "storage": "file",
        "num_replicas": servers, "retention": "limits", "discard": "new", "max_msgs": -1,
        "max_bytes": -1, "allow_direct": true,
    });
    let subject = format!("$JS.API.STREAM.CREATE.{name}");
    let mut why = "NATS does not answer".to_owned();
    for _ in 0..TRIES_MAX {
        let mut wire = Wire::connect(nats.first()).await?;
        // Servers that were just started let a question drop, or do not know each other yet.
        match timeout(ANSWER_TIME_MAX, wire.ask(&subject, &config)).await {
            Err(_) => {}
            Ok(made) => match made?.get("error") {
                None => return Ok(wire),
                Some(error) => why = format!("NATS makes no stream: {error}"),
            },
        }
        sleep(TRY_EVERY).await;
    }
    Err(io::Error::other(why))
}

/// Messages a second, and what each took of the servers' processors, in microseconds.
async fn published(nats: &Nats, kind: &Kind, most: usize) -> io::Result<(f64, f64)> {
    let name = format!("way{most}");
    let mut wire = stream(nats, kind.servers, &name).await?;
    let (cpu, began) = (nats.cpu()?, Instant::now());
    let (mut sent, mut stored) = (0, 0);
    loop {
        let goes_on = began.elapsed() < PUBLISHING_TIME;
        while goes_on && sent - stored < most {
            wire.put(&format!("{name}.{}", sent % SUBJECTS), MESSAGE_BYTES);
            sent += 1;
        }
        if sent == stored {
            break;
        }
        stored += wire.acknowledged().await?;
    }
    let rate = stored as f64 / began.elapsed().as_secs_f64();
    Ok((rate, nats::used_us(&cpu)? / stored as f64))
}

/// What a subject with one message takes of each server's memory.
async fn subject_bytes(program: &Path, work: &Path) -> io::Result<f64> {
    let servers = 3;
    let nats = started(program, work, servers).await?;
    let mut wire = stream(&nats, servers, "many").await?;
    let before = nats.memory()?;
    let (mut sent, mut stored) = (0, 0);
    while stored < SUBJECTS_MANY {
        while sent < SUBJECTS_MANY && sent - stored < ON_THEIR_WAY[2] {
            wire.put(&format!("many.session-{sent}"), MESSAGE_BYTES);
            sent += 1;
        }
        stored += wire.acknowledged().await?;
    }
    let more = nats.memory()?.saturating_sub(before);
    Ok(more as f64 / (servers * SUBJECTS_MANY) as f64)
}

/// The middle one, with the least and the most.
fn told(mut values: Vec<f64>, digits: usize) -> String {
    values.sort_by(f64::total_cmp);
    let at = |at: usize| values.get(at).copied().unwrap_or(f64::NAN);
    let (least, most) = (at(0), at(values.len().saturating_sub(1)));
    format!("{:.digits$} ({least:.digits$}–{most:.digits$})", at(values.len() / 2))
}
