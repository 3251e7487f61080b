//! Every check that a change must pass, from a fresh checkout, in minutes.

use std::time::Duration;

use crate::place::{Place, show};
use crate::steps::{Passed, Steps};
use crate::tools::{self, Install};
use crate::{absences, real_model, soak};

/// Kills in the short run; the long one is `soak`.
const KILL_CYCLES: u32 = 6;
const POWER_CUTS: u32 = 8;
const PATCH_KILLS: u32 = 15;
const KILL_SEED: u64 = 1;
/// From nothing, on two slow cores.
const CARGO_TIME_MAX: Duration = Duration::from_secs(15 * 60);
const BLACK_BOX_TIME_MAX: Duration = Duration::from_secs(12 * 60);
const KILL_TIME_MAX: Duration = Duration::from_secs(4 * 60);

pub fn run(place: &Place, install: &Install) -> bool {
    let mut steps = Steps::new();
    let rust = steps.run("tools: rustfmt and clippy", &[], || tools::rust(place));
    let system = steps.run("tools: programs", &[], || tools::system(place, install));
    if system == Passed::No {
        return steps.end();
    }
    let python = steps.run("tools: python3 with websockets", &[], || tools::python(place, install));
    let node = steps.run("tools: node with ws", &[], || tools::node(place, install));
    let model = steps
        .run("tools: python3 with a language model", &[], || real_model::tools(place, install));
    if [rust, python, node, model].contains(&Passed::No) {
        // What is missing is named above; a run that leaves checks out would look like a pass.
        return steps.end();
    }
    let cargo = |args: &[&str]| show(&mut place.cargo(args), CARGO_TIME_MAX);
    steps.run("format", &[], || cargo(&["fmt", "--all", "--check"]));
    steps.run("clippy", &[], || {
        cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
    });
    steps.run("tests", &[], || cargo(&["test", "--workspace", "--no-fail-fast"]));
    steps.run("absences", &[], || absences::check(place));
    steps.run("schemas", &[], || schemas(place, &["--check"]));
    let built = steps.run("build", &[], || build(place));
    steps.run("black-box tests", &[built], || black_box(place));
    steps.run("kill run, short", &[built], || {
        soak::kill(place, KILL_CYCLES, KILL_SEED, KILL_TIME_MAX)
    });
    steps.run("power cuts, short", &[built], || {
        soak::cut_power(place, POWER_CUTS, KILL_SEED, KILL_TIME_MAX)
    });
    steps.run("patches killed, short", &[built], || {
        soak::kill_patches(place, PATCH_KILLS, KILL_SEED, KILL_TIME_MAX)
    });
    steps.run("real model", &[built], || real_model::check(place));
    steps.end()
}

/// Writes or checks the JSON Schemas of the documents, which come from the wire types.
pub fn schemas(place: &Place, words: &[&str]) -> Result<(), String> {
    let run = ["run", "--quiet", "--package", "polyloop-dialects", "--features", "schema"];
    let example = ["--example", "schemas", "--", "docs/schemas"];
    show(&mut place.cargo(&[&run[..], &example, words].concat()), CARGO_TIME_MAX)
}

pub fn build(place: &Place) -> Result<(), String> {
    let packages = ["--package", "polyloop", "--package", "polyloop-fake-model"];
    show(&mut place.cargo(&[&["build"], &packages[..]].concat()), CARGO_TIME_MAX)
}

/// Clients in other languages, against the real program.
fn black_box(place: &Place) -> Result<(), String> {
    let mut tests = place.program(place.python());
    tests.arg("tests/blackbox/run.py");
    tests.arg("--polyloop").arg(place.polyloop());
    tests.arg("--node-modules").arg(place.node_modules());
    tests.env("FAKE_MODEL", place.fake_model());
    show(&mut tests, BLACK_BOX_TIME_MAX)
}
