//! Where things are, and how programs are started there.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::limit;

/// Of a program that failed.
const QUIET_LINES_SHOWN: usize = 20;

pub struct Place {
    pub root: PathBuf,
    pub target: PathBuf,
    /// What is built is not built again after a change, so that nothing is kept for that.
    pub builds_once: bool,
}

impl Place {
    pub fn find() -> Result<Place, String> {
        let own = std::env::var_os("CARGO_MANIFEST_DIR")
            .ok_or("CARGO_MANIFEST_DIR is not set; start this as `cargo xtask`")?;
        let root = Path::new(&own).parent().ok_or("the workspace has no folder")?.to_path_buf();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => root.join(dir),
            None => root.join("target"),
        };
        Ok(Place { root, target, builds_once: false })
    }

    /// What `cargo build` makes of the server.
    pub fn polyloop(&self) -> PathBuf {
        self.target.join("debug/polyloop")
    }

    /// The scripted model server.
    pub fn fake_model(&self) -> PathBuf {
        self.target.join("debug/fake-model")
    }

    pub fn python(&self) -> PathBuf {
        self.target.join("venv/bin/python")
    }

    /// The NATS server, which is one of the Python packages.
    pub fn nats_server(&self) -> PathBuf {
        self.target.join("venv/bin/nats-server")
    }

    pub fn node_modules(&self) -> PathBuf {
        self.target.join("node/node_modules")
    }

    /// A program in the workspace, with nobody to answer its questions.
    pub fn program(&self, name: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(name);
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }

    pub fn cargo(&self, args: &[&str]) -> Command {
        let mut command = self.program(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        command.args(args);
        if self.builds_once {
            command.env("CARGO_INCREMENTAL", "0");
        }
        command
    }
}

/// Runs a program whose output is for whoever watches.
pub fn show(command: &mut Command, time_max: Duration) -> Result<(), String> {
    println!("$ {}", words(command));
    match limit::run(command, time_max) {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(status)) => Err(format!("`{}` ended with {status}", words(command))),
        Ok(None) => {
            let seconds = time_max.as_secs();
            Err(format!("`{}` was ended: it took more than {seconds} s", words(command)))
        }
        Err(error) => Err(format!("`{}` cannot be started: {error}", words(command))),
    }
}

/// Runs a program whose output matters only if it fails: then the end of it is in the error.
pub fn quietly(place: &Place, command: &mut Command, time_max: Duration) -> Result<(), String> {
    let log = place.target.join("quiet.log");
    let cannot = |error| format!("{} cannot be written: {error}", log.display());
    let file = File::create(&log).map_err(cannot)?;
    command.stdout(file.try_clone().map_err(cannot)?).stderr(file);
    show(command, time_max).map_err(|why| {
        let told = std::fs::read(&log).unwrap_or_default();
        let told = String::from_utf8_lossy(&told);
        let lines: Vec<&str> = told.lines().collect();
        let last = lines.len().saturating_sub(QUIET_LINES_SHOWN);
        format!("{why}; it said at last:\n{}", lines[last..].join("\n"))
    })
}

/// Runs a program for what it writes.
pub fn read(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("`{}` cannot be started: {error}", words(command)))?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        let told = told.trim_end();
        return Err(format!("`{}` ended with {}: {told}", words(command), output.status));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| format!("`{}` wrote something that is no text", words(command)))
}

fn words(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
