//! The project's own commands: everything that checks it, in one place.
//!
//! Never part of what is shipped, and the only place besides the sandbox that starts processes.

#![allow(clippy::disallowed_methods, reason = "to start other programs is what this is for")]

mod absences;
mod bench;
mod ci;
mod instructions;
mod limit;
mod lines;
mod place;
mod real_model;
mod screenshots;
mod soak;
mod steps;
mod tools;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{ExitCode, Stdio};

use clap::{Parser, Subcommand};

use crate::place::Place;

/// Checks Polyloop, briefly or at length.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every check that a change must pass
    Ci(tools::Install),
    /// Run the long checks: random sessions, kills of a server in use, frames of nonsense
    Soak(soak::Options),
    /// Measure a session of many events beside a new one, what the ways to think earn, and the page
    Bench(bench::Options),
    /// Hold conversations with a small real language model on this machine
    RealModel(tools::Install),
    /// Serve a scripted model, until stopped; what follows is for it
    #[command(disable_help_flag = true)]
    FakeModel {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Make the pictures of the page for the README, from the running product
    Screenshots(tools::Install),
    /// Assert what no crate may depend on, and where there is no unsafe code
    Absences,
    /// Write the JSON Schema of every message into docs/schemas
    Schemas,
    /// Count lines of code, by crate
    Lines,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let place = match Place::find() {
        Ok(place) => place,
        Err(problem) => {
            eprintln!("error: {problem}");
            return ExitCode::FAILURE;
        }
    };
    let passed = match cli.command {
        Command::Ci(install) => {
            let place = Place { builds_once: install.allowed(), ..place };
            ci::run(&place, &install)
        }
        Command::Soak(options) => soak::run(&place, &options),
        Command::Bench(options) => bench::run(&place, &options),
        Command::RealModel(install) => real_model::run(&place, &install),
        Command::FakeModel { words } => fake_model(&place, &words),
        Command::Screenshots(install) => screenshots::run(&place, &install),
        Command::Absences => absences::run(&place),
        Command::Schemas => ci::schemas(&place, &[]).map_err(|why| eprintln!("{why}")).is_ok(),
        Command::Lines => lines::run(&place),
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Takes this process's place, so that whoever stops it stops the server. Comes back only when it
/// cannot begin.
fn fake_model(place: &Place, words: &[OsString]) -> bool {
    let mut server = place.cargo(&["run", "--quiet", "--package", "polyloop-fake-model", "--"]);
    if let Ok(here) = std::env::current_dir() {
        // Files among its words are meant from here.
        server.current_dir(here);
    }
    let error = server.args(words).stdin(Stdio::inherit()).exec();
    eprintln!("error: cargo cannot be started: {error}");
    false
}
