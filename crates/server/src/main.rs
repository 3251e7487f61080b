//! `polyloop`: one agent server that every client can talk to.

mod about;
mod access;
mod app;
mod auth;
mod catch_up;
mod check;
mod cli;
mod config;
mod doctor;
mod history;
mod logging;
mod metrics;
mod models;
#[cfg(test)]
mod old_stores;
mod page;
mod query;
mod rate;
mod render;
mod rest;
mod room;
mod rules;
mod serve;
mod sessions;
mod socket;
mod view;

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use polyloop_agent::model::offline::SCRIPT_HELP;
use polyloop_sandbox::Availability;

use crate::cli::{Cli, Command, DoctorArgs};
use crate::config::{Config, ConfigError};
use crate::serve::{PortChoice, Ready};

fn main() -> ExitCode {
    polyloop_sandbox::become_helper_if_asked();
    polyloop_sandbox::hide_from_commands();
    let start_dir = match std::env::current_dir() {
        Ok(dir) => dir,
        Err(error) => return fail(&format!("the current directory cannot be used: {error}")),
    };
    match Cli::parse().command {
        Command::Serve(args) => {
            start(Config::load(&args, std::env::vars_os(), &start_dir), PortChoice::Given)
        }
        Command::Demo(args) => {
            let port = args.port.map_or(PortChoice::Preferred, |_| PortChoice::Given);
            start(cli::demo_config(&args, &start_dir), port)
        }
        Command::Chat(args) => polyloop_terminal::run(args.into()),
        Command::Doctor(args) => examine(&args, &start_dir),
        Command::Check(args) => check::run(&args, &start_dir),
        Command::CheckRules(args) => rules::check(&args, &start_dir),
        Command::Sessions(args) => sessions::run(&args, &start_dir),
    }
}

fn examine(args: &DoctorArgs, start_dir: &Path) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("the runtime cannot start: {error}")),
    };
    let form = if args.json { doctor::Form::Json } else { doctor::Form::Text };
    runtime.block_on(doctor::run(&args.serve, std::env::vars_os(), start_dir, form))
}

fn start(config: Result<Config, ConfigError>, port: PortChoice) -> ExitCode {
    let config = match config {
        Ok(config) => config,
        Err(ConfigError { problems, warnings }) => {
            warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
            return fail(&problems.join("\nerror: "));
        }
    };
    let logging = match logging::begin(&config.log) {
        Ok(logging) => logging,
        Err(problem) => return fail(&problem),
    };
    config.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("the runtime cannot start: {error}")),
    };
    let told = config.clone();
    let ended = runtime.block_on(serve::run(config, port, |ready| announce(&told, port, ready)));
    // What still runs in the background has had its time.
    runtime.shutdown_background();
    logging.end();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => fail(&problem),
    }
}

fn fail(problem: &str) -> ExitCode {
    eprintln!("error: {problem}");
    ExitCode::FAILURE
}

/// Says where the server is and what to try, on standard output.
fn announce(config: &Config, port: PortChoice, ready: &Ready) {
    let addr = ready.addr;
    for (name, value) in config.describe() {
        tracing::debug!("{name}={value}");
    }
    println!("Polyloop listens on http://{addr}");
    println!("  working directory  {}", config.working_directory.display());
    println!("  model              {} ({})", config.model.name, config.model.provider.word());
    match &config.session_store {
        _ if config.shared_store.is_some() => {
            println!("  sessions           on NATS, with every server of the same STORE");
        }
        Some(dir) => println!("  sessions           {}", dir.display()),
        None => println!("  sessions           in memory: nothing is kept when the server stops"),
    }
    match config.memory_file() {
        Some(file) => println!("  memories           {}", file.display()),
        None => println!("  memories           in memory: forgotten when the server stops"),
    }
    match &ready.sandbox {
        Availability::Available { .. } => println!("  sandbox            works"),
        Availability::NotAvailable(why) => {
            println!("  sandbox            none: {why}");
            println!("                     so commands ask before they run, also in full-auto");
        }
    }
    if let Some(file) = &config.rules_file {
        println!("  rules              {}", file.display());
    }
    let is_demo = port == PortChoice::Preferred || config.model.provider.word() == "offline";
    println!("\nOpen http://{addr} in a browser, or talk to it in a terminal:");
    println!("  polyloop chat --url http://{addr}");
    if is_demo {
        say_what_to_try(addr);
    }
}

fn say_what_to_try(addr: SocketAddr) {
    println!("The page shows what can be tried, one click each. The offline model follows a");
    println!("script, one step a line; a message may be");
    SCRIPT_HELP.lines().for_each(|line| println!("  {line}"));
    println!(
        "Clients of AgentLoop, the unified protocol, Loom and the agent chat join in, such as"
    );
    println!("  python -m websockets ws://{addr}/ws");
    println!(r#"  {{"type":"chat","message":"Hello","session_id":"demo"}}"#);
    println!("\nStop with Ctrl-C.");
}
