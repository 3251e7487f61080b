//! The scripted model server as a program.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use polyloop_fake_model::{FakeModel, Options, TOKEN_SECS};
use tokio::signal::unix::{SignalKind, signal};

/// A scripted model server for tests and by hand: OpenAI Responses, OpenAI Chat Completions,
/// Anthropic Messages and Gemini on loopback. Nothing it says costs anything.
#[derive(Parser)]
#[command(name = "fake-model", version, after_long_help = include_str!("help.txt"))]
struct Words {
    /// The port to listen on; 0 takes any that is free.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// A JSON array of replies that are queued at the start.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// How many seconds the tokens of POST …/token are said to be good.
    #[arg(long, value_name = "SECS", default_value_t = TOKEN_SECS)]
    token_secs: u64,
}

/// One thread: a load test leaves the other cores to the program under test.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Words::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("fake-model: {problem}");
            ExitCode::FAILURE
        }
    }
}

async fn run(words: Words) -> Result<(), String> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate()).map_err(|error| format!("SIGTERM: {error}"))?,
        signal(SignalKind::interrupt()).map_err(|error| format!("SIGINT: {error}"))?,
    );
    let options = Options { port: words.port, token_secs: words.token_secs };
    let server = FakeModel::start_with(options)
        .await
        .map_err(|error| format!("port {}: {error}", words.port))?;
    if let Some(path) = &words.script {
        let named = |problem: String| format!("{}: {problem}", path.display());
        let script = std::fs::read(path).map_err(|error| named(error.to_string()))?;
        let script = serde_json::from_slice(&script).map_err(|error| named(error.to_string()))?;
        server.script(&script).map_err(named)?;
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "fake-model listens on {}", server.base_url())
        .and_then(|()| out.flush())
        .map_err(|error| format!("standard output: {error}"))?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
