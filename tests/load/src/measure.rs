//! Runs each scenario on both sides, one after the other, as often as asked, and writes down what
//! was seen: a table, JSON, a plot.

use std::io;
use std::path::PathBuf;

use clap::Args;

use self::figures::{Figures, Side};
use self::ground::Ground;
use crate::script::Tool;

mod crowd;
mod figures;
mod ground;
mod one;
mod plot;

#[derive(Args)]
pub struct Options {
    /// The server's program
    #[arg(long)]
    polyloop: PathBuf,
    /// A folder for logs, stores and results
    #[arg(long)]
    work: PathBuf,
    /// How often each scenario runs
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// How many sessions stream at once
    #[arg(long, value_delimiter = ',', default_value = "10,100,500,1000,2000")]
    sessions: Vec<usize>,
    #[arg(long, default_value_t = 10_000)]
    connections: usize,
    /// Only scenarios whose names contain this: start, first, burst, tools, crowd, capacity, idle
    #[arg(long)]
    only: Option<String>,
}

const SIDES: [Side; 2] = [Side::Floor, Side::Polyloop];

pub async fn run(options: Options) -> io::Result<()> {
    let Options { polyloop, work, runs, sessions, connections, only } = options;
    let wanted = |name: &str| only.as_ref().is_none_or(|only| name.contains(&**only));
    let ground = Ground::new(polyloop, work.clone())?;
    let mut figures = Figures::default();
    for run in 1..=runs {
        println!("-- run {run} of {runs}");
        for side in SIDES {
            if wanted("start") {
                one::start(&ground, side, &mut figures).await?;
            }
            if wanted("first") {
                one::first_text(&ground, side, &mut figures).await?;
            }
            if wanted("burst") {
                one::burst(&ground, side, &mut figures).await?;
            }
            if wanted("tools") {
                one::tools(&ground, side, Tool::Plain, &mut figures).await?;
                one::tools(&ground, side, Tool::Sandboxed, &mut figures).await?;
            }
        }
        for count in sessions.iter().filter(|_| wanted("crowd")) {
            for side in SIDES {
                crowd::curve(&ground, side, *count, &mut figures).await?;
            }
        }
        for side in SIDES {
            if wanted("capacity") {
                crowd::capacity(&ground, side, &mut figures).await?;
            }
            if wanted("idle") {
                crowd::idle(&ground, side, connections, &mut figures).await?;
            }
        }
    }
    let table = figures.table();
    println!("\n{table}");
    std::fs::write(work.join("figures.md"), &table)?;
    std::fs::write(work.join("figures.json"), figures.json().to_string())?;
    std::fs::write(work.join("lag.svg"), plot::lag(&figures, &sessions))?;
    match figures.all_hold() {
        true => println!("every bound holds"),
        false => println!("some bounds do not hold"),
    }
    Ok(())
}

/// A place among sorted nanoseconds, in milliseconds.
fn at_ms(sorted: &[u64], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((last * part).round() as usize).map_or(f64::NAN, |ns| *ns as f64 / 1e6)
}

fn arrived(found: u64, wanted: u64) -> io::Result<()> {
    match found == wanted {
        true => Ok(()),
        false => Err(io::Error::other(format!("{found} of {wanted} arrived"))),
    }
}
