//! Runs one command the way the server does, with `PATH` as its only variable:
//! `polyloop-sandbox-run [--writable <directory>]… <time limit in ms> <program> [argument…]`, in a
//! sandbox if a writable directory is named; or says whether there is one: `polyloop-sandbox-run
//! --probe`.
//!
//! For trying things out by hand, and the small server that this crate's tests need.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use polyloop_sandbox::{
    Availability, Confinement, Exit, Helper, Job, Sandbox, become_helper_if_asked, probe, run,
};

const STOP_GRACE: Duration = Duration::from_millis(500);

/// The exit code for whatever is no exit code of the command.
const NO_CODE: u8 = 125;

const USAGE: &str = "usage: polyloop-sandbox-run [--writable <directory>]… <time limit in ms> \
                     <program> [argument…], or polyloop-sandbox-run --probe";

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
    let mut args = std::env::args_os().skip(1).peekable();
    if args.next_if(|arg| arg == "--probe").is_some() {
        return tell_availability();
    }
    let mut writable: Vec<PathBuf> = Vec::new();
    while args.next_if(|arg| arg == "--writable").is_some() {
        writable.push(args.next().ok_or(USAGE)?.into());
    }
    let limit = args.next().and_then(|limit| limit.to_str()?.parse().ok());
    let (Some(limit), Some(program)) = (limit, args.next()) else { return Err(USAGE.to_owned()) };
    run_one(program, args.collect(), Duration::from_millis(limit), writable)
}

fn tell_availability() -> Result<ExitCode, String> {
    match probe(&Helper::this_program()) {
        Availability::Available { remarks } => {
            let mut out = std::io::stdout();
            let _ = writeln!(out, "available");
            for remark in remarks {
                let _ = writeln!(out, "but {remark}");
            }
            Ok(ExitCode::SUCCESS)
        }
        Availability::NotAvailable(why) => Err(format!("not available: {why}")),
    }
}

fn run_one(
    program: OsString,
    args: Vec<OsString>,
    time_limit: Duration,
    writable: Vec<PathBuf>,
) -> Result<ExitCode, String> {
    let job = Job {
        program,
        args,
        cwd: std::env::current_dir().map_err(|error| error.to_string())?,
        env: std::env::vars_os().filter(|(name, _)| name == "PATH").collect(),
        time_limit,
        stop_grace: STOP_GRACE,
        confinement: if writable.is_empty() {
            Confinement::None
        } else {
            Confinement::Sandbox(Box::new(Sandbox::new(writable)))
        },
    };
    let outcome = run(&Helper::this_program(), &job, &mut std::io::stdout())
        .map_err(|error| error.to_string())?;
    if outcome.left_behind > 0 {
        return Err(format!("{} processes could not be ended", outcome.left_behind));
    }
    let limit = time_limit.as_millis();
    match outcome.exit {
        Exit::Code(code) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(NO_CODE))),
        Exit::Signal(signal) => Err(format!("ended by signal {signal}")),
        Exit::TimedOut => Err(format!("ended after its time limit of {limit} ms")),
        Exit::Stopped => Err("stopped".to_owned()),
        Exit::NotStarted(reason) => Err(reason),
        Exit::Lost(text) => Err(format!("the helper ended without a report; it said: {text:?}")),
    }
}
