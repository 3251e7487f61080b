//! The long checks: random sessions by the hundred thousand, kills of a server in use and of one
//! that applies patches, power that goes, frames of nonsense by the million, commands that try to stay alive,
//! commands that were judged safe, run and watched by the thousand, traces to a collector, and
//! faults of every kind in three servers on three NATS servers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::ci;
use crate::place::{Place, show};
use crate::steps::{Passed, Steps};
use crate::tools::{self, Install};

/// These runs are meant to be long; one that takes a day hangs.
const SOAK_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Building included.
const SPEED_TIME_MAX: Duration = Duration::from_secs(60 * 60);

#[derive(Args)]
pub struct Options {
    /// How often the server is killed
    #[arg(long, default_value_t = 200)]
    cycles: u32,
    /// How often it is killed while it applies a patch
    #[arg(long, default_value_t = 500)]
    patch_kills: u32,
    /// Where the random choices begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many random sessions each property plays
    #[arg(long, default_value_t = 100_000)]
    cases: u32,
    /// How many mutated frames each dialect decodes
    #[arg(long, default_value_t = 1_000_000)]
    frames: u32,
    /// How many are sent to a server over real sockets
    #[arg(long, default_value_t = 100_000)]
    socket_frames: u32,
    /// How many commands try to stay alive
    #[arg(long, default_value_t = 200)]
    stays: u32,
    /// How many mutated commands are judged
    #[arg(long, default_value_t = 100_000)]
    commands: u32,
    /// How many of those that are judged safe are run, and watched
    #[arg(long, default_value_t = 10_000)]
    runs: u32,
    /// How many stores are tried on a disk that fails
    #[arg(long, default_value_t = 10_000)]
    stores: u32,
    /// How often a server in use loses its power
    #[arg(long, default_value_t = 200)]
    power_cuts: u32,
    /// How many sessions are in use while three servers and three NATS servers fail
    #[arg(long, default_value_t = 300)]
    sessions: u32,
    /// How often something fails there
    #[arg(long, default_value_t = 100)]
    faults: u32,
    /// Without fences, to see that it is noticed: then the check passes if it finds two owners
    #[arg(long)]
    unfenced: bool,
    /// One of the checks alone
    #[arg(long, value_enum)]
    only: Option<Only>,
    #[command(flatten)]
    install: Install,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    Kill,
    Patches,
    Properties,
    Frames,
    Stay,
    Judge,
    Disk,
    Traces,
    Chaos,
}

/// One of so many random sessions is also watched: from every place in it, in every dialect.
const SESSIONS_PER_VIEW: u32 = 100;

pub fn run(place: &Place, options: &Options) -> bool {
    let Options {
        cycles,
        patch_kills,
        seed,
        cases,
        frames,
        socket_frames,
        stays,
        commands,
        runs,
        stores,
        power_cuts,
        sessions,
        faults,
        unfenced,
        only,
        install,
    } = options;
    let wanted = |one| only.is_none_or(|only| only == one);
    let mut steps = Steps::new();
    let mut built = Passed::Yes;
    let driven = [Only::Kill, Only::Patches, Only::Frames, Only::Stay, Only::Disk, Only::Traces];
    let driven = driven.into_iter().chain([Only::Chaos]);
    if driven.into_iter().any(wanted) {
        let python =
            steps.run("tools: python3 with websockets", &[], || tools::python(place, install));
        built = steps.run("build", &[python], || ci::build(place));
    }
    if wanted(Only::Kill) {
        steps.run("kill run", &[built], || kill(place, *cycles, *seed, SOAK_TIME_MAX));
    }
    if wanted(Only::Stay) {
        steps.run("commands that try to stay", &[built], || stay(place, *stays));
    }
    if wanted(Only::Patches) {
        steps.run("patches killed", &[built], || {
            kill_patches(place, *patch_kills, *seed, SOAK_TIME_MAX)
        });
        steps.run("patches against swapped links", &[], || swap_links(place));
    }
    if wanted(Only::Frames) {
        steps.run("frames over sockets", &[built], || send_frames(place, *socket_frames, *seed));
        steps.run("frames decoded", &[], || decode_frames(place, *frames, *seed));
    }
    if wanted(Only::Properties) {
        steps.run("properties", &[], || properties(place, *cases, *seed));
    }
    if wanted(Only::Disk) {
        steps.run("disks that fail", &[], || disks(place, *stores, *seed));
        steps.run("power cuts", &[built], || cut_power(place, *power_cuts, *seed, SOAK_TIME_MAX));
    }
    if wanted(Only::Traces) {
        steps.run("traces", &[built], || traces(place));
    }
    if wanted(Only::Chaos) && *unfenced {
        steps.run("chaos without fences", &[built], || unfenced_chaos(place, *seed));
    } else if wanted(Only::Chaos) {
        steps.run("chaos", &[built], || {
            let polyloop = on_nats(place, "nats", Build::Optimised)?;
            chaos(place, &polyloop, (*sessions, *faults), *seed, SOAK_TIME_MAX)
        });
    }
    if wanted(Only::Judge) {
        steps.run("commands judged and run", &[], || judge(place, *commands, *runs, *seed));
        steps.run("time that judging takes", &[], || judge_speed(place));
    }
    steps.end()
}

/// Kills a server in use; see tests/blackbox/soak/kill.py.
pub fn kill(place: &Place, cycles: u32, seed: u64, time_max: Duration) -> Result<(), String> {
    let mut run = place.program(place.python());
    run.arg("tests/blackbox/soak/kill.py").arg("--polyloop").arg(place.polyloop());
    run.args(["--cycles", &cycles.to_string(), "--seed", &seed.to_string()]);
    show(&mut run, time_max)
}

/// Takes the power from a server in use; see tests/blackbox/soak/power.py.
pub fn cut_power(place: &Place, cuts: u32, seed: u64, time_max: Duration) -> Result<(), String> {
    let mut run = place.program(place.python());
    run.arg("tests/blackbox/soak/power.py").arg("--polyloop").arg(place.polyloop());
    run.args(["--cycles", &cuts.to_string(), "--seed", &seed.to_string()]);
    show(&mut run, time_max)
}

/// A server that sends traces, which is another build; see tests/blackbox/soak/traces.py.
fn traces(place: &Place) -> Result<(), String> {
    let target = place.target.join("otel");
    let mut build = place.cargo(&["build", "--package", "polyloop", "--features", "otel"]);
    show(build.arg("--target-dir").arg(&target), SPEED_TIME_MAX)?;
    let mut run = place.program(place.python());
    run.arg("tests/blackbox/soak/traces.py").arg("--polyloop").arg(target.join("debug/polyloop"));
    show(run.env("FAKE_MODEL", place.fake_model()), SOAK_TIME_MAX)
}

#[derive(Clone, Copy)]
enum Build {
    Plain,
    Optimised,
}

/// A server that keeps its sessions on NATS, which is another build; gives its program.
fn on_nats(place: &Place, feature: &str, build: Build) -> Result<PathBuf, String> {
    let target = place.target.join(feature);
    let mut words = place.cargo(&["build", "--package", "polyloop", "--features", feature]);
    words.arg("--target-dir").arg(&target);
    let folder = match build {
        Build::Plain => "debug",
        Build::Optimised => {
            words.arg("--release");
            "release"
        }
    };
    show(&mut words, SPEED_TIME_MAX)?;
    Ok(target.join(folder).join("polyloop"))
}

/// Faults in a cluster in use; see tests/blackbox/nats/run_chaos.py.
fn chaos(
    place: &Place,
    polyloop: &Path,
    (sessions, faults): (u32, u32),
    seed: u64,
    time_max: Duration,
) -> Result<(), String> {
    let mut run = chaos_run(place, polyloop, seed);
    run.args(["--sessions", &sessions.to_string(), "--faults", &faults.to_string()]);
    show(&mut run, time_max)
}

/// Servers that are paused, of a build that lets anybody write: the proofs must say so.
fn unfenced_chaos(place: &Place, seed: u64) -> Result<(), String> {
    let polyloop = on_nats(place, "unfenced", Build::Plain)?;
    let mut run = chaos_run(place, &polyloop, seed);
    run.args(["--sessions", "12", "--faults", "8", "--pace", "3", "--only", "pause replica"]);
    show(run.arg("--unfenced"), SOAK_TIME_MAX)
}

fn chaos_run(place: &Place, polyloop: &Path, seed: u64) -> Command {
    let mut run = place.program(place.python());
    run.arg("tests/blackbox/nats/run_chaos.py").arg("--polyloop").arg(polyloop);
    run.args(["--seed", &seed.to_string()]).env("NATS_SERVER", place.nats_server());
    run
}

/// Nobody is left of them; see tests/blackbox/soak/stay.py.
fn stay(place: &Place, commands: u32) -> Result<(), String> {
    let mut run = place.program(place.python());
    run.arg("tests/blackbox/soak/stay.py").arg("--polyloop").arg(place.polyloop());
    run.args(["--commands", &commands.to_string()]);
    show(&mut run, SOAK_TIME_MAX)
}

/// Kills a server that applies patches; see tests/blackbox/soak/patches.py.
pub fn kill_patches(
    place: &Place,
    kills: u32,
    seed: u64,
    time_max: Duration,
) -> Result<(), String> {
    let mut run = place.program(place.python());
    run.arg("tests/blackbox/soak/patches.py").arg("--polyloop").arg(place.polyloop());
    run.args(["--kills", &kills.to_string(), "--seed", &seed.to_string()]);
    show(&mut run, time_max)
}

/// Case B9 of the patches, at length, and D6.
fn swap_links(place: &Place) -> Result<(), String> {
    let mut tests = place.cargo(&["test", "--release", "--package", "polyloop-agent"]);
    tests.args(["--test", "tools", "every_case_of_patches"]);
    let figures =
        [("POLYLOOP_PATCHES", "1000"), ("POLYLOOP_SWAPS", "10000"), ("POLYLOOP_FILES", "10000")];
    show(tests.envs(figures), SOAK_TIME_MAX)
}

/// Sends nonsense to a server in use; see tests/blackbox/soak/frames.py.
fn send_frames(place: &Place, frames: u32, seed: u64) -> Result<(), String> {
    let mut run = place.program(place.python());
    run.arg("tests/blackbox/soak/frames.py").arg("--polyloop").arg(place.polyloop());
    run.args(["--frames", &frames.to_string(), "--seed", &seed.to_string()]);
    show(&mut run, SOAK_TIME_MAX)
}

fn decode_frames(place: &Place, frames: u32, seed: u64) -> Result<(), String> {
    println!("POLYLOOP_FRAMES={frames} POLYLOOP_SEED={seed}");
    let mut tests = place.cargo(&["test", "--release", "--package", "polyloop-dialects"]);
    tests.args(["--test", "it", "decode::", "--", "--nocapture"]);
    tests.env("POLYLOOP_FRAMES", frames.to_string()).env("POLYLOOP_SEED", seed.to_string());
    show(&mut tests, SOAK_TIME_MAX)
}

/// Optimised, because a hundred thousand sessions are many.
fn properties(place: &Place, cases: u32, seed: u64) -> Result<(), String> {
    println!("POLYLOOP_CASES={cases} POLYLOOP_SEED={seed}");
    let mut tests = place.cargo(&["test", "--release", "--package", "polyloop-session"]);
    tests.args(["--lib", "--test", "it", "--test", "strategies"]);
    tests.env("POLYLOOP_CASES", cases.to_string()).env("POLYLOOP_SEED", seed.to_string());
    show(&mut tests, SOAK_TIME_MAX)?;
    // What clients of every dialect see of such sessions, from wherever they come back.
    let views = (cases / SESSIONS_PER_VIEW).max(1);
    let mut tests = place.cargo(&["test", "--release", "--package", "polyloop-dialects"]);
    tests.args(["--test", "it", "--", "catch_up::", "hostile::"]);
    tests.env("POLYLOOP_CASES", views.to_string()).env("POLYLOOP_SEED", seed.to_string());
    show(&mut tests, SOAK_TIME_MAX)
}

/// Stores on a disk that fails, and ends of the server at every write; see
/// crates/agent/tests/it/{disk,crash}.rs.
fn disks(place: &Place, stores: u32, seed: u64) -> Result<(), String> {
    println!("POLYLOOP_CASES={stores} POLYLOOP_SEED={seed}");
    let mut tests = place.cargo(&["test", "--release", "--package", "polyloop-agent"]);
    tests.args(["--test", "it", "--", "disk::", "crash::", "--nocapture"]);
    tests.env("POLYLOOP_CASES", stores.to_string()).env("POLYLOOP_SEED", seed.to_string());
    show(&mut tests, SOAK_TIME_MAX)
}

/// Mutated commands; see crates/agent/tests/tools/mutate.rs.
fn judge(place: &Place, commands: u32, runs: u32, seed: u64) -> Result<(), String> {
    println!("POLYLOOP_COMMANDS={commands} POLYLOOP_RUNS={runs} POLYLOOP_SEED={seed}");
    let mut tests = place.cargo(&["test", "--release", "--package", "polyloop-agent"]);
    tests.args(["--test", "tools", "mutated_commands"]);
    tests.env("POLYLOOP_COMMANDS", commands.to_string()).env("POLYLOOP_RUNS", runs.to_string());
    tests.env("POLYLOOP_SEED", seed.to_string());
    show(&mut tests, SOAK_TIME_MAX)
}

/// Nothing here but this asks for a time.
fn judge_speed(place: &Place) -> Result<(), String> {
    let mut speed = place.cargo(&["run", "--release", "--package", "polyloop-agent"]);
    speed.args(["--example", "judge_speed"]);
    show(&mut speed, SPEED_TIME_MAX)
}
