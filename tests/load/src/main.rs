//! Measures the server beside a floor: `load measure --polyloop <program>`.

// Not the agent's commands, but the programs that are measured, and the floor's bare one.
#![allow(clippy::disallowed_methods)]

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::net::TcpListener;

mod bare;
mod client;
mod clock;
mod dialect;
mod floor;
mod http;
mod measure;
mod model;
mod piece;
mod proc;
mod script;
mod streams;

#[derive(Parser)]
#[command(about = "Measures the server beside a bare relay, all on this machine")]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A model that streams what it is asked to; prints where it listens
    Model,
    /// The bare relay; prints where it listens
    Floor {
        /// Where the model listens
        #[arg(long)]
        model: std::net::SocketAddr,
        /// The folder of its logs
        #[arg(long)]
        logs: PathBuf,
        #[arg(long)]
        listen: std::net::SocketAddr,
    },
    /// Writes frames of given lengths to those who connect, and does nothing else; prints where it
    /// listens
    Bare {
        /// A file that says what is written, to how many
        #[arg(long)]
        plan: PathBuf,
    },
    /// Starts all of it, and measures
    Measure(measure::Options),
    /// What a stream of NATS takes by itself
    Streams(streams::Options),
}

fn main() -> ExitCode {
    let done = match Cli::parse().what {
        What::Model => alone(serve_model()),
        What::Floor { model, logs, listen } => together(serve_floor(model, logs, listen)),
        What::Bare { plan } => alone(serve_bare(plan)),
        What::Measure(options) => alone(measure::run(options)),
        What::Streams(options) => alone(streams::run(options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

/// On one thread: the machine's other cores are for what is measured.
fn alone(work: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

fn together(work: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}

async fn serve_model() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("model on {}", listener.local_addr()?);
    model::serve(listener).await
}

async fn serve_bare(plan: PathBuf) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("bare writes on {}", listener.local_addr()?);
    bare::serve(listener, &plan).await
}

async fn serve_floor(
    model: std::net::SocketAddr,
    logs: PathBuf,
    listen: std::net::SocketAddr,
) -> io::Result<()> {
    floor::Floor::new(model, logs).serve(TcpListener::bind(listen).await?).await
}
