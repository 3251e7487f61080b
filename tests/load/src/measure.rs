//! Runs each scenario, most of them on both sides, one after the other, as often as asked, and
//! writes down what was seen: a table, JSON, a plot.
//!
//! Whatever was lost, doubled or changed ends the run with an error, save while `capacity` looks for
//! how many are too many. Bounds that do not hold are said, and are no error: how fast a machine is
//! says little.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use self::figures::{Figures, Side};
use self::ground::Ground;
use self::origin::Origin;
use self::replay::Replay;
use self::report::{Kept, Part};
use crate::clock::today;
use crate::proc::Machine;
use crate::script::Tool;

mod crowd;
mod fan;
mod figures;
mod ground;
mod growth;
pub mod nats;
mod one;
mod origin;
mod plot;
mod replay;
mod report;
mod slow;
mod store;

#[derive(Args)]
pub struct Options {
    /// The server's program
    #[arg(long)]
    polyloop: PathBuf,
    /// The program that makes long sessions; without, `examples/long_session` beside the server
    #[arg(long)]
    maker: Option<PathBuf>,
    /// A folder for logs, stores and results
    #[arg(long)]
    work: PathBuf,
    /// How often each scenario runs
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// How many sessions stream at once
    #[arg(long, value_delimiter = ',', default_value = "10,100,500,1000,2000")]
    sessions: Vec<usize>,
    /// How many connections are idle
    #[arg(long, default_value_t = 10_000)]
    connections: usize,
    /// How many clients never read; 0 shows what the sessions that they watch take by themselves
    #[arg(long, default_value_t = 100)]
    never_read: usize,
    /// Only scenarios whose names contain this: start, first, burst, tools, crowd, capacity, idle,
    /// fan, replay, growth, slow, store. What an earlier run of the same programs found of the
    /// others stays in the results
    #[arg(long)]
    only: Option<String>,
    /// A document whose table, between its marks, is written anew; not if other programs took more
    /// than a tenth of the machine, or if no figure says that the floor was one
    #[arg(long)]
    docs: Option<PathBuf>,
    /// A document whose table of stores is written anew in the same way
    #[arg(long)]
    scale_docs: Option<PathBuf>,
    /// Where the first document's plot goes
    #[arg(long)]
    plot: Option<PathBuf>,
}

/// Where others take more, what waits for a core waits for them.
const OTHERS_PERCENT_MAX: f64 = 10.0;
/// Far more than any takes.
const SCENARIO_TIME_MAX: Duration = Duration::from_secs(300);
const SIDES: [Side; 2] = [Side::Floor, Side::Polyloop];

pub async fn run(options: Options) -> io::Result<()> {
    let began = Instant::now();
    let polyloop = options.polyloop.clone();
    let beside = || polyloop.with_file_name("examples").join("long_session");
    let maker = options.maker.clone().unwrap_or_else(beside);
    let ground = Ground::new(polyloop.clone(), maker, options.work.clone())?;
    // Before it runs: a build may put another program in its place meanwhile.
    let origin = Origin::of(&polyloop)?;
    let (mut figures, mut others) = (Figures::default(), 0f64);
    let replay = match options.wants("replay") {
        true => Some(in_time("replay", Replay::new(&ground)).await?),
        false => None,
    };
    for run in 1..=options.runs {
        println!("-- run {run} of {}, after {} s", options.runs, began.elapsed().as_secs());
        let machine = Machine::now(&ground.model)?;
        one(&ground, &options, &mut figures).await?;
        many(&ground, &options, &mut figures).await?;
        if let Some(replay) = &replay {
            for side in SIDES {
                in_time("replay", replay.run(&ground, side, &mut figures)).await?;
            }
        }
        if options.wants("growth") {
            in_time("growth", growth::growth(&ground, &mut figures)).await?;
        }
        if options.wants("slow") {
            in_time("slow", slow::slow(&ground, options.never_read, &mut figures)).await?;
        }
        if options.wants("store") {
            in_time("store", store::stores(&ground, &mut figures)).await?;
        }
        others = others.max(machine.others_percent(&ground.model)?);
    }
    println!("-- measured in {} s", began.elapsed().as_secs());
    println!("-- other programs took up to {others:.0} % of the machine while a run lasted\n");
    if others > OTHERS_PERCENT_MAX {
        println!(
            "NOT QUIET: waiting times (first text, lag, tool turns, capacity) say little here; \
             processor time says more, and memory most.\n"
        );
    }
    write(&options, &figures, Kept::of(&figures, origin, today()), others)
}

async fn one(ground: &Ground, options: &Options, figures: &mut Figures) -> io::Result<()> {
    if options.wants("first") {
        in_time("first", one::first_text(ground, figures)).await?;
        in_time("first", one::first_text_in_memory(ground, figures)).await?;
    }
    for side in SIDES {
        if options.wants("start") {
            in_time("start", one::start(ground, side, figures)).await?;
        }
        if options.wants("burst") {
            in_time("burst", one::burst(ground, side, figures)).await?;
        }
        if options.wants("tools") {
            in_time("tools", one::tools(ground, side, Tool::Plain, figures)).await?;
            in_time("tools", one::tools(ground, side, Tool::Sandboxed, figures)).await?;
        }
    }
    Ok(())
}

async fn many(ground: &Ground, options: &Options, figures: &mut Figures) -> io::Result<()> {
    for count in options.sessions.iter().filter(|_| options.wants("crowd")) {
        for side in SIDES {
            in_time("crowd", crowd::curve(ground, side, *count, figures)).await?;
        }
    }
    for side in SIDES {
        if options.wants("capacity") {
            in_time("capacity", crowd::capacity(ground, side, figures)).await?;
        }
        if options.wants("idle") {
            in_time("idle", crowd::idle(ground, side, options.connections, figures)).await?;
        }
    }
    if options.wants("fan") {
        in_time("fan", fan::fan_out(ground, figures)).await?;
    }
    Ok(())
}

/// A server that hangs ends the run.
async fn in_time<T>(name: &str, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(SCENARIO_TIME_MAX, work).await {
        Ok(done) => done.map_err(|error| io::Error::other(format!("{name}: {error}"))),
        Err(_) => {
            let seconds = SCENARIO_TIME_MAX.as_secs();
            Err(io::Error::other(format!("{name} did not end within {seconds} s")))
        }
    }
}

impl Options {
    fn wants(&self, scenario: &str) -> bool {
        self.only.as_ref().is_none_or(|only| scenario.contains(&**only))
    }
}

/// Nothing is written of a run that is void.
fn write(options: &Options, figures: &Figures, kept: Kept, others: f64) -> io::Result<()> {
    let void = figures.void();
    if !void.is_empty() {
        println!("{}", kept.text());
        let why = void.join("\n  ");
        return Err(io::Error::other(format!(
            "THE RUN IS VOID: a floor this slow says nothing about what stands beside it.\n  {why}\n\
             Run it again where nothing else runs."
        )));
    }
    let path = options.work.join("figures.json");
    let kept = kept.with_earlier(&path);
    let text = format!("{}\n{}", kept.text(), kept.stores());
    println!("{text}");
    std::fs::write(options.work.join("figures.md"), &text)?;
    std::fs::write(&path, serde_json::to_vec_pretty(&kept).map_err(io::Error::other)?)?;
    let plot = plot::lag(&kept.rows);
    std::fs::write(options.work.join("lag.svg"), &plot)?;
    match kept.broken() {
        broken if broken.is_empty() => println!("every bound holds"),
        broken => println!("bounds that do not hold:\n  {}", broken.join("\n  ")),
    }
    let documents = [&options.docs, &options.scale_docs];
    if others > OTHERS_PERCENT_MAX && documents.into_iter().any(Option::is_some) {
        return Err(io::Error::other(
            "what was measured while others ran is not written into documents; \
             it is in the results",
        ));
    }
    if let Some(docs) = &options.docs {
        kept.write_into(docs, Part::Beside)?;
        if let Some(path) = options.plot.as_ref().filter(|_| !plot.is_empty()) {
            std::fs::write(path, &plot)?;
        }
    }
    if let Some(docs) = &options.scale_docs {
        kept.write_into(docs, Part::Stores)?;
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
        false => Err(io::Error::other(format!("{found} arrived, not {wanted}"))),
    }
}
