//! Counts the instructions of what a server does often, under callgrind: a count does not depend
//! on how busy or fast the machine is.

// What fails here fails the count.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Not the agent's commands, but this very program, under valgrind.
#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use polyloop_session::budget::Budget;
use polyloop_session::context::{Overhead, Strategy, WindowSize};
use polyloop_session::strategy::bounds::Bounds;
use polyloop_session::{Limits, LogEntry};

mod append;
mod compare;
mod decode;
mod encode;
mod fold;
mod growth;
mod kit;
mod meter;
mod run;
mod story;

#[allow(
    dead_code,
    unused_imports,
    reason = "it is the server's own, of which this needs no more than it needs"
)]
#[path = "../../../crates/server/src/view.rs"]
mod view;

use meter::Meter;

const LIMITS: Limits = Limits {
    queued_messages_max: 10,
    tokens_max: 128_000,
    window: WindowSize::Known,
    strategy: Strategy::Threshold,
    bypass_allowed: false,
    retries_max: 0,
    compact_at: 800,
    overhead: Overhead { instructions: 0, tools: 0 },
    budget: Budget { cost_micros_max: None, tokens_max: None },
    bounds: Bounds::DEFAULT,
};

fn flat(batches: story::Batches) -> Vec<Arc<LogEntry>> {
    batches.into_iter().flatten().collect()
}

#[derive(Parser)]
#[command(about = "Counts the instructions of what happens often")]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Counts, and compares with what was kept
    Compare {
        /// Where the counts are kept
        #[arg(long)]
        kept: PathBuf,
        /// Keep what was counted
        #[arg(long)]
        update: bool,
    },
    /// Counts a turn in sessions of short and long pasts
    Growth,
    /// What is run under callgrind
    #[command(hide = true)]
    Inside {
        /// The store of `growth`
        store: Option<PathBuf>,
    },
}

/// What a turn in a session with a long past may cost more or less than in a new one, in
/// hundredths.
const GROWTH_MAX: f64 = 10.0;

fn main() -> ExitCode {
    let done = match Cli::parse().what {
        What::Compare { kept, update } => compare(&kept, update),
        What::Growth => growth(),
        What::Inside { store } => {
            inside(store.as_deref());
            Ok(())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn inside(store: Option<&Path>) {
    let meter = Meter;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if let Some(store) = store {
        return growth::count(&meter, &runtime, store);
    }
    let dir = tempfile::tempdir().unwrap();
    decode::count(&meter);
    encode::count(&meter);
    append::count(&meter, &runtime, dir.path());
    fold::count(&meter);
}

fn compare(kept: &Path, update: bool) -> Result<(), String> {
    let work = tempfile::tempdir().map_err(|error| error.to_string())?;
    let counts = run::counted(&["inside"], work.path())?;
    let failed = |error: std::io::Error| format!("{}: {error}", kept.display());
    if update {
        return std::fs::write(kept, compare::write(&counts)).map_err(failed);
    }
    let text = std::fs::read_to_string(kept).map_err(failed)?;
    let (table, wrong) = compare::compare(&compare::read(&text)?, &counts);
    print!("{table}");
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn growth() -> Result<(), String> {
    let work = tempfile::tempdir().map_err(|error| error.to_string())?;
    let store = work.path().join("sessions");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(growth::prepare(&store));
    let words = ["inside", store.to_str().ok_or("the temporary folder has an odd name")?];
    let counts = run::counted(&words, work.path())?;
    let first = counts.first().map_or(1.0, |(_, count)| *count);
    let mut wrong = Vec::new();
    println!("{:>10} {:>20} {:>8}", "events", "instructions a turn", "");
    for (past, count) in &counts {
        let change = (count / first - 1.0) * 100.0;
        println!("{past:>10} {count:>20.0} {change:>+7.1}%");
        if change.abs() > GROWTH_MAX {
            wrong.push(format!("a turn after {past} events costs {change:+.1} %"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
