//! `polyloop doctor`: looks at everything a start would need, and says what is wrong and what to
//! do.
//!
//! Never stops at a problem, never changes anything that stays, and never shows a secret. What it
//! makes to see whether it can, it takes away again.

mod files;
mod model;
mod network;
mod print;
mod report;
mod shared;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::config::settings;
use crate::config::{Config, Examined, Parts, ServeArgs};
use files::Place;
use report::{Check, Report};

/// How the report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Json,
}

/// Prints the report; fails if something in it has failed.
pub async fn run(
    args: &ServeArgs,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    start_dir: &Path,
    form: Form,
) -> ExitCode {
    let report = report(Config::examine(args, environment, start_dir)).await;
    let written = match form {
        Form::Text => print::text(&report, print::Colours::of_stdout()),
        Form::Json => print::json(&report),
    };
    // Whoever closed the other end has read enough.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), written.as_bytes());
    if report.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

async fn report(examined: Examined) -> Report {
    let mut checks = configuration(&examined);
    let parts = &examined.parts;
    if let Some(directory) = &parts.working_directory {
        checks.push(files::working_directory(directory));
    }
    let told = parts.model.as_ref().map(|model| model::told(model, &examined.held));
    if let Some(model) = &parts.model {
        checks.extend(model::checks(model, &examined.held));
        checks.extend(network::endpoint(model).await);
    }
    checks.push(sandbox());
    if let Some(shared) = &parts.shared_store {
        checks.extend(shared::store(shared, parts.store_replicas).await);
    }
    // Beside a shared one it holds what stays on this machine, or is not missed.
    if parts.shared_store.is_none() || parts.session_store.is_some() {
        checks.push(files::store(Place::Sessions, parts.session_store.as_deref()));
    }
    let todos = files::store(Place::Todos, parts.todos_store.as_deref());
    let messages = files::messages(parts.user_message_db.as_deref());
    let memories = files::memories(parts.memory_db.as_deref(), parts.session_store.as_deref());
    checks.extend([todos, messages, memories]);
    checks.extend(token(&examined));
    checks.extend(parts.addr.map(network::port));
    Report::new(examined.held, told, checks).without(&secrets(parts))
}

fn configuration(examined: &Examined) -> Vec<Check> {
    let Examined { env_file, env_file_problems, problems, warnings, .. } = examined;
    let mut checks = Vec::new();
    if problems.is_empty() && env_file_problems.is_empty() {
        checks.push(Check::ok("configuration", "can be read, and nothing needed is missing"));
    }
    checks.extend(problems.iter().map(|problem| Check::fail("configuration", problem)));
    checks.extend(warnings.iter().map(|warning| Check::warn("configuration", warning)));
    checks.extend(env_file_problems.iter().map(|problem| Check::fail(".env", problem)));
    match env_file {
        Some(path) if env_file_problems.is_empty() => {
            checks.push(Check::ok(".env", format!("{} is read", path.display())));
        }
        Some(_) => {}
        None => checks.push(Check::ok(".env", "there is none where you are; none is needed")),
    }
    checks
}

fn sandbox() -> Check {
    use polyloop_sandbox::{Availability, Helper, probe};
    match probe(&Helper::this_program()) {
        Availability::Available { remarks } if remarks.is_empty() => {
            Check::ok("sandbox", "works; it was tried just now")
        }
        Availability::Available { remarks } => {
            Check::warn("sandbox", format!("works, but {}", remarks.join("; ")))
        }
        Availability::NotAvailable(why) => Check::warn(
            "sandbox",
            format!(
                "not available: {why}; commands that may change something ask before they run, \
                 also in full-auto"
            ),
        ),
    }
}

/// What a token means depends on who can reach the address. What is wrong with one has been said.
fn token(examined: &Examined) -> Option<Check> {
    let variable = settings::POLYLOOP_TOKEN.name;
    let addr = examined.parts.addr?;
    let is_given = examined.held.iter().any(|held| held.setting.name == variable);
    if examined.parts.access.token.is_some() {
        let text = format!("{variable} is set; whoever connects to {addr} must show it");
        return Some(Check::ok("token", text));
    }
    let is_local = addr.ip().to_canonical().is_loopback();
    (is_local && !is_given).then(|| {
        let text = format!(
            "not set: every program and every user on this machine can connect to {addr} and use \
             the agent; set {variable} to change that (`openssl rand -hex 32` makes one)"
        );
        Check::warn("token", text)
    })
}

/// What may be in no line, whatever others have put into their errors.
fn secrets(parts: &Parts) -> Vec<String> {
    let mut found: Vec<&str> = Vec::new();
    found.extend(parts.access.token.as_ref().map(|token| token.reveal()));
    let servers = parts.shared_store.iter().flat_map(|shared| &shared.servers);
    found.extend(servers.filter_map(|server| user(server.reveal())));
    if let Some(model) = &parts.model {
        let account = settings::GOOGLE_APPLICATION_CREDENTIALS.name;
        let keys = [&model.openai, &model.anthropic, &model.google];
        let keys = keys.into_iter().filter_map(|access| access.key.as_ref());
        found.extend(keys.filter(|key| key.variable != account).map(|key| key.value.reveal()));
        for url in [&model.proxy.https, &model.proxy.http].into_iter().flatten() {
            found.extend(user(url.reveal()));
        }
    }
    found.into_iter().map(str::to_owned).collect()
}

/// What stands before a URL's host.
fn user(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.rsplit_once('@').map(|(user, _)| user)
}

#[cfg(test)]
mod tests;
