//! A server whose environment is not ours: this program again, started with other variables.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use polyloop_agent::tool::bash::Bash;
use polyloop_sandbox::{Confinement, Exit, Helper, Job};

use crate::{Ground, PATIENCE};

/// The first argument that makes this program such a server; the second is the script it runs.
pub const ROLE: &str = "__server";

/// Runs the script with the tool, in a new working directory, and prints what came of it.
pub fn serve(script: &str) {
    let ground = Ground::new();
    let ended = ground.finish(&Bash, serde_json::json!({ "command": script }));
    let mut stdout = std::io::stdout();
    stdout.write_all(ended.output.as_bytes()).unwrap();
    stdout.write_all(format!("\n{:?}\n", ended.end).as_bytes()).unwrap();
}

/// What such a server prints.
pub fn output(env: &[(&str, &Path)], script: &str) -> String {
    let job = Job {
        program: std::env::current_exe().unwrap().into(),
        args: vec![ROLE.into(), script.into()],
        cwd: "/".into(),
        env: env.iter().map(|(name, value)| (OsString::from(name), (*value).into())).collect(),
        time_limit: PATIENCE,
        stop_grace: PATIENCE,
        confinement: Confinement::None,
    };
    let mut output = Vec::new();
    let outcome = polyloop_sandbox::run(&Helper::this_program(), &job, &mut output).unwrap();
    let output = String::from_utf8(output).unwrap();
    assert_eq!(outcome.exit, Exit::Code(0), "{output}");
    output
}
