//! The project's own commands: everything that checks it, in one place.
//!
//! Never part of what is shipped, and the only place besides the sandbox that starts processes.

#![allow(clippy::disallowed_methods, reason = "to start other programs is what this is for")]

mod absences;
mod ci;
mod limit;
mod lines;
mod place;
mod soak;
mod steps;
mod tools;

use std::process::ExitCode;

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
        Command::Ci(install) => ci::run(&place, &install),
        Command::Soak(options) => soak::run(&place, &options),
        Command::Absences => absences::run(&place),
        Command::Schemas => ci::schemas(&place, &[]).map_err(|why| eprintln!("{why}")).is_ok(),
        Command::Lines => lines::run(&place),
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
