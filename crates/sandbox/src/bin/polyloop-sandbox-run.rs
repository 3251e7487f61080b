//! Runs one command the way the server does, with `PATH` as its only variable:
//! `polyloop-sandbox-run <time limit in ms> <program> [argument…]`.
//!
//! For trying things out by hand, and the small server that this crate's tests need.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use polyloop_sandbox::{Confinement, Exit, Helper, Job, become_helper_if_asked, run};

const STOP_GRACE: Duration = Duration::from_millis(500);

/// The exit code for whatever is no exit code of the command.
const NO_CODE: u8 = 125;

fn main() -> ExitCode {
    become_helper_if_asked();
    match run_from_args() {
        Ok(code) => code,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "polyloop-sandbox-run: {message}");
            ExitCode::from(NO_CODE)
        }
    }
}

fn run_from_args() -> Result<ExitCode, String> {
    let usage = "usage: polyloop-sandbox-run <time limit in ms> <program> [argument…]";
    let mut args = std::env::args_os().skip(1);
    let limit = args.next().and_then(|limit| limit.to_str()?.parse().ok());
    let (Some(limit), Some(program)) = (limit, args.next()) else { return Err(usage.to_owned()) };
    let job = Job {
        program,
        args: args.collect(),
        cwd: ".".into(),
        env: std::env::vars_os().filter(|(name, _)| name == "PATH").collect(),
        time_limit: Duration::from_millis(limit),
        stop_grace: STOP_GRACE,
        confinement: Confinement::None,
    };
    let outcome = run(&Helper::this_program(), &job, &mut std::io::stdout())
        .map_err(|error| error.to_string())?;
    if outcome.left_behind > 0 {
        return Err(format!("{} processes could not be ended", outcome.left_behind));
    }
    match outcome.exit {
        Exit::Code(code) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(NO_CODE))),
        Exit::Signal(signal) => Err(format!("ended by signal {signal}")),
        Exit::TimedOut => Err(format!("ended after its time limit of {limit} ms")),
        Exit::Stopped => Err("stopped".to_owned()),
        Exit::NotStarted(reason) => Err(reason),
        Exit::Lost(text) => Err(format!("the helper ended without a report; it said: {text:?}")),
    }
}
