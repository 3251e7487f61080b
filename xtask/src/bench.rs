//! Measures a session of many events beside a new one; see tests/blackbox/soak/long.py.
//!
//! Asserts nothing: how fast a machine is says little about whether a change is right.

use std::time::Duration;

use clap::Args;

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
    #[command(flatten)]
    install: Install,
}

pub fn run(place: &Place, options: &Options) -> bool {
    let Options { entries, bytes, without_index, install } = options;
    let mut steps = Steps::new();
    let python = steps.run("tools: python3 with websockets", &[], || tools::python(place, install));
    let built = steps.run("build", &[python], || {
        let words = ["build", "--release", "--package", "polyloop", "--bins", "--examples"];
        show(&mut place.cargo(&words), BENCH_TIME_MAX)
    });
    steps.run("a long session", &[built], || long(place, *entries, *bytes, false));
    if *without_index {
        steps.run("the same without its index", &[built], || long(place, *entries, *bytes, true));
    }
    steps.end()
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
