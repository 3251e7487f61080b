//! Measures a session of many events beside a new one (tests/blackbox/soak/long.py), what the ways
//! to think earn and cost (crates/agent/benches/thinking.rs, tests/blackbox/soak/graph_time.py),
//! what the page weighs and how smoothly it goes (tests/browser/budget.mjs), the server under load
//! beside a bare relay (tests/load), and how many instructions what happens often takes
//! (tests/instructions).
//!
//! Asserts nothing of time: how fast a machine is says little about whether a change is right. The
//! load fails where something was lost, doubled or changed (but not while it looks for how many
//! sessions are too many), and where its floor was looked at and is none; bounds that do not hold it
//! only prints. Instructions fail where there are more of them than were kept.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::ci;
use crate::instructions::{self, Counts};
use crate::place::{Place, show};
use crate::steps::Steps;
use crate::tools::{self, Install};

const BENCH_TIME_MAX: Duration = Duration::from_secs(60 * 60);

#[derive(Args)]
pub struct Options {
    /// How many events the long session has
    #[arg(long, default_value_t = 100_000)]
    entries: u64,
    /// How much its tools have printed, all together
    #[arg(long, default_value_t = 500_000_000)]
    bytes: u64,
    /// Measure what it costs without its index, too
    #[arg(long)]
    without_index: bool,
    /// How many puzzles the agents play
    #[arg(long, default_value_t = 100)]
    puzzles: u32,
    /// How often they play each
    #[arg(long, default_value_t = 3)]
    seeds: u32,
    /// A file for the figures of the puzzles, or with `--only page` of the page, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// How often each scenario of the load runs
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// Only scenarios of the load whose names contain this: start, first, burst, tools, crowd,
    /// capacity, idle, fan, replay, growth, slow, store; what was found of the others is kept
    #[arg(long)]
    scenario: Option<String>,
    /// Write what the load came to into docs/PERFORMANCE.md, that of `store` into docs/SCALE.md
    #[arg(long)]
    write_docs: bool,
    /// Keep the instructions that were counted, for the next time
    #[arg(long)]
    update: bool,
    /// One part alone
    #[arg(long, value_enum)]
    only: Option<Only>,
    #[command(flatten)]
    install: Install,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    /// A session of many events beside a new one
    Long,
    /// The agents: puzzles, what their own code costs, and a graph of sub-tasks
    Thinking,
    /// The page: its first load, many items, much output
    Page,
    /// The server under load, beside a bare relay: about 25 minutes for five runs
    Load,
    /// Instructions of what happens often, and of a turn after a short and a long past
    Instructions,
}

pub fn run(place: &Place, options: &Options) -> bool {
    let Options { entries, bytes, without_index, only, install, .. } = options;
    let wanted = |part| only.is_none_or(|only| only == part);
    let mut steps = Steps::new();
    if wanted(Only::Instructions) {
        let valgrind = steps.run("tools: valgrind", &[], || tools::valgrind(place, install));
        let counts = if options.update { Counts::Keep } else { Counts::Compare };
        steps.run("instructions", &[valgrind], || instructions::count(place, counts));
    }
    if *only == Some(Only::Instructions) {
        return steps.end();
    }
    let built = steps.run("build", &[], || {
        let words = ["build", "--release", "--package", "polyloop", "--bins", "--examples"];
        // The others measure what people get who ask for nothing more.
        let features: &[&str] = if options.is_of_stores() { &["--features", "nats"] } else { &[] };
        show(&mut place.cargo(&[&words[..], features].concat()), BENCH_TIME_MAX)
    });
    if wanted(Only::Long) || wanted(Only::Thinking) {
        let tools = || tools::python(place, install);
        let python = steps.run("tools: python3 with websockets", &[], tools);
        if wanted(Only::Long) {
            steps.run("a long session", &[built, python], || long(place, *entries, *bytes, false));
            if *without_index {
                let again = || long(place, *entries, *bytes, true);
                steps.run("the same without its index", &[built, python], again);
            }
        }
        if wanted(Only::Thinking) {
            steps.run("a graph of sub-tasks", &[built, python], || graph(place));
            let puzzles = || thinking(place, options);
            steps.run("puzzles, and what the agents' own code costs", &[], puzzles);
        }
    }
    if wanted(Only::Page) {
        let tools = steps.run("tools: node and a browser", &[], || {
            tools::node(place, install).and_then(|()| tools::browser(place, install))
        });
        steps.run("the page", &[built, tools], || page(place, options));
    }
    if wanted(Only::Load) {
        steps.run("the server beside a bare relay", &[built], || load(place, options));
    }
    steps.end()
}

impl Options {
    /// Whether what sessions cost on NATS is measured, and nothing else.
    fn is_of_stores(&self) -> bool {
        self.scenario.as_deref() == Some("store")
    }
}

/// See tests/browser/budget.mjs.
fn page(place: &Place, options: &Options) -> Result<(), String> {
    let mut budget = ci::in_browser(place, "budget.mjs");
    budget.arg("--polyloop").arg(place.target.join("release/polyloop"));
    if let (Some(path), Some(Only::Page)) = (&options.json, options.only) {
        let here = std::env::current_dir().map_err(|error| error.to_string())?;
        budget.arg("--json").arg(here.join(path));
    }
    show(&mut budget, BENCH_TIME_MAX)
}

/// What it writes is in the target folder: `load/figures.md`, `figures.json`, `lag.svg`. Fails when
/// the floor was too slow to compare with, or something that was sent did not arrive.
fn load(place: &Place, options: &Options) -> Result<(), String> {
    let words = ["build", "--release", "--package", "polyloop-load"];
    show(&mut place.cargo(&words), BENCH_TIME_MAX)?;
    let release = place.target.join("release");
    let mut run = place.program(release.join("load"));
    run.arg("measure").arg("--polyloop").arg(release.join("polyloop"));
    run.arg("--work").arg(place.target.join("load"));
    run.args(["--runs", &options.runs.to_string()]);
    if place.nats_server().is_file() {
        run.env("NATS_SERVER", place.nats_server());
    }
    if options.write_docs && options.is_of_stores() {
        run.arg("--scale-docs").arg(place.root.join("docs/SCALE.md"));
    } else if options.write_docs {
        run.arg("--docs").arg(place.root.join("docs/PERFORMANCE.md"));
        run.arg("--plot").arg(place.root.join("docs/images/lag.svg"));
    }
    if let Some(scenario) = &options.scenario {
        run.args(["--only", scenario]);
    }
    show(&mut run, BENCH_TIME_MAX)
}

/// See docs/THINKING.md.
fn thinking(place: &Place, options: &Options) -> Result<(), String> {
    let mut bench = place.cargo(&["bench", "--package", "polyloop-agent", "--bench", "thinking"]);
    let (puzzles, seeds) = (options.puzzles.to_string(), options.seeds.to_string());
    bench.args(["--", "--puzzles", &puzzles, "--seeds", &seeds]);
    if let Some(path) = &options.json {
        let here = std::env::current_dir().map_err(|error| error.to_string())?;
        bench.arg("--json").arg(here.join(path));
    }
    show(&mut bench, BENCH_TIME_MAX)
}

fn graph(place: &Place) -> Result<(), String> {
    let mut run = place.program(place.python());
    run.arg("tests/blackbox/soak/graph_time.py");
    run.arg("--polyloop").arg(place.target.join("release/polyloop"));
    show(&mut run, BENCH_TIME_MAX)
}

fn long(place: &Place, entries: u64, bytes: u64, without_index: bool) -> Result<(), String> {
    let release = place.target.join("release");
    let mut run = place.program(place.python());
    run.arg("tests/blackbox/soak/long.py").arg("--polyloop").arg(release.join("polyloop"));
    run.arg("--maker").arg(release.join("examples/long_session"));
    run.args(["--entries", &entries.to_string(), "--bytes", &bytes.to_string()]);
    // It takes a minute each, and an index makes no difference to it.
    run.arg(if without_index { "--without-index" } else { "--idle" });
    show(&mut run, BENCH_TIME_MAX)
}
