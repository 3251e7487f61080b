//! What the checks need besides Rust: Python with `websockets`, node with `ws`.
//!
//! Packages go into the target folder and nowhere else, and only when asked for; programs of the
//! system are never installed, only named.

use std::time::Duration;

use clap::Args;

use crate::place::{Place, read, show};

/// Older ones lack `asyncio.timeout`.
const PYTHON_MIN: (u32, u32) = (3, 11);
/// The first with the asyncio client that the tests use.
const WEBSOCKETS: &str = "websockets>=13";
const WS: &str = "ws@8";
const INSTALL_TIME_MAX: Duration = Duration::from_secs(5 * 60);

#[derive(Args)]
pub struct Install {
    /// Fetch missing Python and node packages into the target folder [implied by CI=true]
    #[arg(long)]
    install: bool,
}

impl Install {
    fn allowed(&self) -> bool {
        self.install || std::env::var("CI").is_ok_and(|ci| ci == "true")
    }
}

/// rustfmt and clippy.
pub fn rust(place: &Place) -> Result<(), String> {
    let missing: Vec<&str> = ["fmt", "clippy"]
        .into_iter()
        .filter(|part| read(&mut place.cargo(&[part, "--version"])).is_err())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" and ");
    Err(format!("cargo {missing} is missing; run `rustup component add rustfmt clippy`"))
}

/// Python with what the tests import.
pub fn python(place: &Place, install: &Install) -> Result<(), String> {
    let imports = || read(place.program(place.python()).args(["-c", "import websockets.asyncio"]));
    if imports().is_ok() {
        return Ok(());
    }
    let version = "import sys; print(*sys.version_info[:2])";
    let found = read(place.program("python3").args(["-c", version]))
        .map_err(|_| "python3 is missing; on Debian: apt-get install python3 python3-venv")?;
    let numbers: Vec<u32> = found.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let (major, minor) = PYTHON_MIN;
    match numbers.as_slice() {
        [a, b] if (*a, *b) >= PYTHON_MIN => {}
        _ => {
            let found = found.trim().replace(' ', ".");
            return Err(format!("python3 is version {found}; {major}.{minor} or newer is needed"));
        }
    }
    if !install.allowed() {
        return Err(ask_to_install("Python's websockets"));
    }
    let venv = place.target.join("venv");
    let mut make = place.program("python3");
    show(make.args(["-m", "venv", "--clear"]).arg(venv), INSTALL_TIME_MAX).map_err(|why| {
        format!("{why}; on Debian a missing venv module is: apt-get install python3-venv")
    })?;
    let mut fetch = place.program(place.python());
    show(fetch.args(["-m", "pip", "install", "--quiet", WEBSOCKETS]), INSTALL_TIME_MAX)?;
    imports().map(drop)
}

/// node with what the tests import.
pub fn node(place: &Place, install: &Install) -> Result<(), String> {
    if let Err(why) = read(place.program("node").arg("--version")) {
        return Err(format!("node is missing ({why}); on Debian: apt-get install nodejs npm"));
    }
    let folder = place.target.join("node");
    let there = || place.node_modules().join("ws/package.json").is_file();
    if there() {
        return Ok(());
    }
    if !install.allowed() {
        return Err(ask_to_install("node's ws"));
    }
    let quiet = ["install", "--no-audit", "--no-fund", "--no-save", WS, "--prefix"];
    show(place.program("npm").args(quiet).arg(&folder), INSTALL_TIME_MAX)?;
    if there() { Ok(()) } else { Err("npm has installed ws, but not where it was told to".into()) }
}

fn ask_to_install(what: &str) -> String {
    format!("{what} is not in the target folder; run this with --install, or with CI=true")
}
