//! Every check that a change must pass, from a fresh checkout, in minutes.

use std::process::Command;
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
const PAGE_TIME_MAX: Duration = Duration::from_secs(2 * 60);
const BROWSER_TIME_MAX: Duration = Duration::from_secs(8 * 60);

/// All packages at once, so that what one step compiles is there for the other.
const ON_NATS: [&str; 3] = ["--workspace", "--features", "polyloop/nats"];
/// Many tests wait: for servers, for commands, for NATS to notice something.
const TESTS_TOGETHER: &str = "4";

const FETCHED: &str = "tools: python3, node and a browser, with what the tests import";

pub fn run(place: &Place, install: &Install) -> bool {
    let mut steps = Steps::new();
    let rust = steps.run("tools: rustfmt and clippy", &[], || tools::rust(place));
    let system = steps.run("tools: programs", &[], || tools::system(place, install));
    if [rust, system].contains(&Passed::No) {
        // What is missing is named above; a run that leaves checks out would look like a pass.
        return steps.end();
    }
    let fetch = || tools::fetched(place, install);
    if !install.allowed() && steps.run(FETCHED, &[], fetch) == Passed::No {
        return steps.end();
    }
    std::thread::scope(|scope| {
        // What may take minutes to fetch comes while the compiler works.
        let fetching = install.allowed().then(|| scope.spawn(fetch));
        read(place, &mut steps);
        let fetched = fetching.map_or(Passed::Yes, |thread| {
            let broken = || Err("the fetching of packages broke off".into());
            steps.run(FETCHED, &[], || thread.join().unwrap_or_else(|_| broken()))
        });
        by_themselves(place, &mut steps, fetched);
        against_the_program(place, &mut steps, fetched);
    });
    steps.end()
}

/// What needs nothing that is fetched.
fn read(place: &Place, steps: &mut Steps) {
    let cargo = |args: &[&str]| show(&mut place.cargo(args), CARGO_TIME_MAX);
    steps.run("format", &[], || cargo(&["fmt", "--all", "--check"]));
    steps.run("clippy", &[], || {
        // With all that can be built in.
        let all = "polyloop/otel,polyloop/nats";
        let all = ["clippy", "--workspace", "--all-targets", "--features", all];
        cargo(&[&all[..], &["--", "-D", "warnings"]].concat())
    });
    steps.run("absences", &[], || absences::check(place));
    steps.run("schemas", &[], || schemas(place, &["--check"]));
}

/// What needs no program.
fn by_themselves(place: &Place, steps: &mut Steps, fetched: Passed) {
    steps.run("tests", &[fetched], || {
        let mut tests = place.cargo(&[&["test", "--no-fail-fast"], &ON_NATS[..]].concat());
        tests.env("NATS_SERVER", place.nats_server()).env("RUST_TEST_THREADS", TESTS_TOGETHER);
        show(&mut tests, CARGO_TIME_MAX)
    });
    steps.run("page tests", &[fetched], || page(place));
}

/// What drives the real program.
fn against_the_program(place: &Place, steps: &mut Steps, fetched: Passed) {
    // First, of what the tests were built of: the program is made anew for all that follows.
    steps.run("sessions on NATS", &[fetched], || on_nats(place));
    let built = steps.run("build", &[], || build(place));
    steps.run("black-box tests", &[built, fetched], || black_box(place));
    steps.run("browser tests", &[built, fetched], || browser(place));
    steps.run("kill run, short", &[built, fetched], || {
        soak::kill(place, KILL_CYCLES, KILL_SEED, KILL_TIME_MAX)
    });
    steps.run("power cuts, short", &[built, fetched], || {
        soak::cut_power(place, POWER_CUTS, KILL_SEED, KILL_TIME_MAX)
    });
    steps.run("patches killed, short", &[built, fetched], || {
        soak::kill_patches(place, PATCH_KILLS, KILL_SEED, KILL_TIME_MAX)
    });
    steps.run("real model", &[built, fetched], || real_model::check(place));
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

/// Sessions on a NATS server, which the default build knows nothing of.
fn on_nats(place: &Place) -> Result<(), String> {
    show(&mut place.cargo(&[&["build"], &ON_NATS[..]].concat()), CARGO_TIME_MAX)?;
    let mut tests = place.program(place.python());
    tests.args(["tests/blackbox/run.py", "--folder", "nats", "--polyloop"]).arg(place.polyloop());
    tests.env("NATS_SERVER", place.nats_server());
    show(&mut tests, BLACK_BOX_TIME_MAX)
}

/// The pure parts of the page, in node.
fn page(place: &Place) -> Result<(), String> {
    show(place.program("node").args(["--test", "tests/page/"]), PAGE_TIME_MAX)
}

/// The page in a real browser, against the real program.
fn browser(place: &Place) -> Result<(), String> {
    let mut tests = in_browser(place, "run.mjs");
    tests.arg("--polyloop").arg(place.polyloop());
    show(&mut tests, BROWSER_TIME_MAX)
}

/// A program of tests/browser.
pub fn in_browser(place: &Place, name: &str) -> Command {
    let mut program = place.program("node");
    program.arg(format!("tests/browser/{name}")).arg("--node-modules").arg(place.node_modules());
    program
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
